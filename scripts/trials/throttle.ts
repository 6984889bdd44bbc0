/**
 * A broken caller beside honest ones at the same address, directly and behind the proxy: how many of the honest
 * requests are served, and in what time, for each method of authentication. In the production profile, under the
 * permission model.
 */
import { randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { Agent } from "node:https";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { importPKCS8, SignJWT } from "jose";
import { defined } from "../../src/result.ts";
import { JWT_BEARER } from "../../src/spec/rfc7523.ts";
import { DRAFT, JWT_SPIFFE } from "../../src/spec/spiffe/client-auth.ts";
import { bundle, derOf, makeKeyPem, mintJwtSvid, publicJwk, type TrustDomain } from "../dev-keys.ts";
import {
  type Issued,
  issueClientCertificate,
  makeAuthority,
  makeTrustDomain,
  mintX509Svid,
} from "../dev-pki.ts";
import { basic, type Form, postForm, type Sent } from "../http-client.ts";
import { freePorts, startServer } from "../server-process.ts";
import { makeProduction } from "./production.ts";

export const PATHS = ["direct", "proxy"] as const;
export const METHODS = [
  "client_secret_basic",
  "client_secret_post",
  "private_key_jwt",
  "spiffe_jwt",
  "spiffe_x509",
  "tls_client_auth",
  "self_signed_tls_client_auth",
] as const;
type Path = (typeof PATHS)[number];
type Method = (typeof METHODS)[number];

/** Failures in a second of one source, and the requests of an honest caller beside them. */
export type Beside = {
  failuresPerSecond: number;
  requests: number;
  paths: readonly Path[];
  /** Failures in a minute that a source may have; without it, what the server has by default. */
  failuresPerMinuteBySource?: number;
};
export type BesideOutcome = {
  path: Path;
  method: Method;
  served: number;
  p50Ms: number;
  p95Ms: number;
  /** Statuses of the failures, and how many were sent in a second. */
  refused: ReadonlySet<number>;
  failuresPerSecond: number;
};

/** What a request proves itself by. */
type Credential = { headers?: Record<string, string>; form?: Form; key?: string; cert?: string };
type Prove = (method: Method, honest: boolean) => Promise<Credential>;
/** Of the client that is known by an authority or by its certificate, and of one that is not. */
type Certificates = { honest: Issued; broken: Issued };

const PROXY = "proxy.example";
const CLIENT = "client.example";
const DOMAIN = "td.example";
const WORKLOAD = `spiffe://${DOMAIN}/reports`;
const API = "https://api.example";
/** A connection has one certificate, so the caller keeps it. */
const BY_CERTIFICATE: readonly Method[] = ["spiffe_x509", "tls_client_auth", "self_signed_tls_client_auth"];
const PAUSE_MS = 50;
const TICK_MS = 5;
const CONNECTS_MAX = 3;
const OPEN_MAX = 60;
/** How much more than the bucket of a source holds comes before the first honest request. */
const FAILURES_BEYOND = 10;
const FAILURES_BY_DEFAULT = 60;

/** One outcome for each path and method, one after the other. */
export async function serveBeside(beside: Beside): Promise<readonly BesideOutcome[]> {
  const [proxyPort = 0] = await freePorts(1);
  const keyPem = await makeKeyPem();
  const operators = await makeAuthority("Operators' authority");
  const others = await makeAuthority("Another authority");
  const [pair, broken] = await Promise.all(
    [operators, others].map((one) => issueClientCertificate(one, [CLIENT])),
  );
  if (pair === undefined || broken === undefined) throw new Error("there are two certificates");
  const production = await makeProduction({
    ...configure(proxyPort, keyPem, pair),
    limits: defined<Partial<Pick<Beside, "failuresPerMinuteBySource">>>({
      failuresPerMinuteBySource: beside.failuresPerMinuteBySource,
    }),
  });
  const { folder, configFile } = production;
  const { issuer } = JSON.parse(readFileSync(configFile, "utf8"));
  const ca = readFileSync(join(folder, "tls/ca.pem"), "utf8");
  const proxy = await issueClientCertificate(operators, [PROXY]);
  const [domain, rogue] = await Promise.all([makeTrustDomain(DOMAIN), makeTrustDomain(DOMAIN)]);
  writeFileSync(join(folder, "operators.pem"), operators.certPem);
  writeFileSync(join(folder, "bundle.json"), JSON.stringify(bundle(domain)));
  const server = await startServer(configFile);
  const prove = await makeProver(issuer, folder, keyPem, domain, rogue, { honest: pair, broken });
  try {
    const outcomes: BesideOutcome[] = [];
    for (const path of beside.paths) {
      for (const method of METHODS) {
        const callers = [true, false].map(async (honest) => {
          const agent = new Agent({ keepAlive: true });
          const own = await prove(method, honest);
          const ask = async (): Promise<number> => {
            const { headers, form, ...certificate } = BY_CERTIFICATE.includes(method)
              ? own
              : await prove(method, honest);
            const sent: Sent = { ca, agent, headers: headers ?? {}, ...certificate };
            const options = path === "direct" ? sent : behind(sent, proxy, proxyPort);
            const body = { grant_type: "client_credentials", audience: API, ...form };
            return (await untilCarried(() => postForm(`${issuer}/token`, body, options))).status;
          };
          return { agent, ask };
        });
        const [honest, broken] = await Promise.all(callers);
        if (honest === undefined || broken === undefined) throw new Error("there are two callers");
        outcomes.push({ path, method, ...(await ask(honest.ask, broken.ask, beside)) });
        for (const { agent } of [honest, broken]) agent.destroy();
      }
    }
    return outcomes;
  } finally {
    await server.stop();
    production.remove();
  }
}

/** A connection that ended before it carried an answer, as on a machine that is busy, is made anew, as clients do. */
async function untilCarried<T>(send: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await send();
    } catch (fault) {
      if ((fault as NodeJS.ErrnoException).code !== "ECONNRESET" || attempt === CONNECTS_MAX) throw fault;
    }
  }
}

async function ask(
  honest: () => Promise<number>,
  broken: () => Promise<number>,
  { failuresPerSecond, requests, failuresPerMinuteBySource = FAILURES_BY_DEFAULT }: Beside,
): Promise<Omit<BesideOutcome, "path" | "method">> {
  const refused = new Set<number>();
  const failing: Promise<void>[] = [];
  let open = 0;
  const failOnce = async (): Promise<void> => {
    open += 1;
    refused.add(await broken());
    open -= 1;
  };
  const fail = (): void => void failing.push(failOnce());
  const failuresBefore = failuresPerSecond > 0 ? failuresPerMinuteBySource + FAILURES_BEYOND : 0;
  for (let sent = 0; sent < failuresBefore; sent++) fail();
  await Promise.all(failing);
  await honest();
  const before = failing.length;
  const beganMs = performance.now();
  const secondsNow = (): number => (performance.now() - beganMs) / 1000;
  // A late timer sends what is due by now, but no machine more than it answers.
  const timer = setInterval(() => {
    while (failing.length - before < secondsNow() * failuresPerSecond && open < OPEN_MAX) fail();
  }, TICK_MS);
  const times: number[] = [];
  let served = 0;
  let rate = 0;
  try {
    for (let sent = 0; sent < requests; sent++) {
      await sleep(PAUSE_MS);
      const startMs = performance.now();
      if ((await honest()) === 200) served += 1;
      times.push(performance.now() - startMs);
    }
    rate = (failing.length - before) / secondsNow();
  } finally {
    clearInterval(timer);
    await Promise.all(failing);
  }
  times.sort((a, b) => a - b);
  const at = (part: number): number => times[Math.ceil(part * times.length) - 1] ?? Number.NaN;
  return { served, p50Ms: at(0.5), p95Ms: at(0.95), refused, failuresPerSecond: rate };
}

function configure(proxyPort: number, keyPem: string, pair: Issued): object {
  const tls = { key: { file: "tls/key.pem" }, cert: { file: "tls/cert.pem" } };
  const secrets = [{ file: "clients/nightly-report" }];
  const rule = { allow: "client_credentials", targets: [API], scopes: ["read"] };
  return {
    proxy: {
      host: "127.0.0.1",
      port: proxyPort,
      tls,
      ca: { file: "operators.pem" },
      name: PROXY,
      clientAddress: "Forwarded",
    },
    trustDomains: { [DOMAIN]: { bundle: { file: "bundle.json" } } },
    drafts: [DRAFT],
    clients: {
      client_secret_basic: { method: "client_secret_basic", secrets },
      client_secret_post: { method: "client_secret_post", secrets },
      private_key_jwt: {
        method: "private_key_jwt",
        jwks: { keys: [{ kid: "k1", ...publicJwk(keyPem) }] },
      },
      tls_client_auth: {
        method: "tls_client_auth",
        ca: { file: "operators.pem" },
        tls_client_auth_san_dns: CLIENT,
      },
      self_signed_tls_client_auth: {
        method: "self_signed_tls_client_auth",
        jwks: { keys: [{ ...publicJwk(pair.keyPem), x5c: [derOf(pair.certPem).toString("base64")] }] },
      },
    },
    targets: [{ names: [API], scopes: ["read"] }],
    policies: [
      { id: "clients", ...rule, clients: METHODS.filter((method) => !method.startsWith("spiffe")) },
      { id: "workloads", ...rule, actors: [WORKLOAD] },
    ],
  };
}

/** The broken caller has a wrong secret, a key of its own, or an SVID of another authority for the same name. */
async function makeProver(
  issuer: string,
  folder: string,
  keyPem: string,
  domain: TrustDomain,
  rogue: TrustDomain,
  certificates: Certificates,
): Promise<Prove> {
  const secretOf = (honest: boolean): string =>
    honest ? readFileSync(join(folder, "clients/nightly-report"), "utf8").trim() : "not the secret";
  const keys = await Promise.all([keyPem, await makeKeyPem()].map((pem) => importPKCS8(pem, "ES256")));
  const mistaken = { ...rogue, jwt: { ...rogue.jwt, kid: domain.jwt.kid } };
  return async (method, honest) => {
    switch (method) {
      case "client_secret_basic":
        return { headers: { authorization: basic(method, secretOf(honest)) } };
      case "client_secret_post":
        return { form: { client_id: method, client_secret: secretOf(honest) } };
      case "private_key_jwt": {
        const key = keys[honest ? 0 : 1];
        if (key === undefined) throw new Error("there are two keys");
        const iat = Math.floor(Date.now() / 1000);
        const claims = { iss: method, sub: method, aud: issuer, iat, exp: iat + 60, jti: randomUUID() };
        const signed = await new SignJWT(claims).setProtectedHeader({ alg: "ES256", kid: "k1" }).sign(key);
        return { form: { client_assertion_type: JWT_BEARER, client_assertion: signed } };
      }
      case "spiffe_jwt": {
        const svid = await mintJwtSvid(honest ? domain : mistaken, { sub: WORKLOAD, aud: issuer });
        return { form: { client_assertion_type: JWT_SPIFFE, client_assertion: svid } };
      }
      case "spiffe_x509": {
        const { keyPem: key, chainPem: cert } = await mintX509Svid(honest ? domain : rogue, WORKLOAD);
        return { key, cert };
      }
      case "tls_client_auth":
      case "self_signed_tls_client_auth": {
        const { keyPem: key, certPem: cert } = certificates[honest ? "honest" : "broken"];
        return { key, cert, form: { client_id: method } };
      }
    }
  };
}

/** The request as the proxy passes it on: by its own certificate, with the client's and the one address in fields. */
function behind(sent: Sent, { keyPem, certPem }: { keyPem: string; certPem: string }, port: number): Sent {
  const { key: _, cert, ...rest } = sent;
  const headers: Record<string, string> = { ...sent.headers, Forwarded: "for=192.0.2.10" };
  if (cert !== undefined) headers["Client-Cert"] = `:${derOf(cert).toString("base64")}:`;
  return { ...rest, headers, key: keyPem, cert: certPem, connect: { host: "127.0.0.1", port } };
}

const REQUESTS = 40;

/** A line for each rate, path and method. */
export async function runThrottle(rounds: number): Promise<readonly string[]> {
  const lines: string[] = [];
  for (let round = 0; round < rounds; round++) {
    for (const rate of [0, 8, 50]) {
      const outcomes = await serveBeside({ failuresPerSecond: rate, requests: REQUESTS, paths: PATHS });
      for (const { path, method, served, p50Ms, p95Ms, refused, failuresPerSecond } of outcomes) {
        const times = `p50 ${p50Ms.toFixed(1)} ms, p95 ${p95Ms.toFixed(1)} ms`;
        const beside = `${failuresPerSecond.toFixed(0)} failures/s (${[...refused].sort().join(", ")})`;
        lines.push(`${path}, ${method}, ${beside}: ${served} of ${REQUESTS} served, ${times}`);
      }
    }
  }
  return lines;
}

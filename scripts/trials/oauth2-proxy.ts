/**
 * oauth2-proxy before an API: it verifies our access tokens as bearer tokens by go-oidc, with the algorithms that our
 * metadata list for readers of OpenID Connect.
 */
import { spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { listenAt, makeWorld } from "../../test/support/world.ts";
import { basic } from "../http-client.ts";
import { freePorts } from "../server-process.ts";
import { missing } from "./spring.ts";

const MODULE = "github.com/oauth2-proxy/oauth2-proxy/v7";
export const VERSION = "v7.15.6";
const SECRET = "a secret of the trial, 1234567890";
const scopes = ["trips.read"];
const API = {
  ES256: "https://es.example",
  EdDSA: "https://ed.example",
  RS256: "https://rs.example",
} as const;
const OTHER = "https://other.example";

const configurationAt = (issuer: string, port: number) => ({
  issuer,
  listen: listenAt(port),
  clients: { caller: { method: "client_secret_basic", secrets: [SECRET] } },
  targets: [
    ...Object.entries(API).map(([alg, name]) => ({ names: [name], alg, scopes })),
    { names: [OTHER], scopes },
  ],
  policies: [
    {
      id: "callers",
      allow: "client_credentials",
      clients: ["caller"],
      targets: [...Object.values(API), OTHER],
      scopes,
    },
  ],
});

export async function* runOauth2Proxy(): AsyncIterable<string> {
  if (missing("go").length > 0) {
    yield "not run here: there is no go";
    return;
  }
  const [port = 0, proxyPort = 0] = await freePorts(2);
  const issuer = `https://localhost:${port}`;
  const world = await makeWorld(configurationAt(issuer, port));
  const api = createServer((_, response) => response.end("trips")).listen(0, "127.0.0.1");
  await once(api, "listening");
  const ends: (() => void)[] = [() => api.close()];
  try {
    const env = { ...process.env, GOBIN: world.folder, GOFLAGS: "-mod=mod" };
    const made = spawnSync("go", ["install", `${MODULE}@${VERSION}`], { env, encoding: "utf8" });
    if (made.status !== 0) throw new Error(made.stderr.slice(-800));
    const { ES256, ...others } = API;
    const flags = {
      provider: "oidc",
      "oidc-issuer-url": issuer,
      "provider-ca-file": join(world.folder, "tls/ca.pem"),
      "client-id": ES256,
      "client-secret": "no user signs in here",
      "oidc-extra-audience": Object.values(others).join(","),
      "oidc-email-claim": "sub",
      "email-domain": "*",
      "cookie-secret": randomBytes(16).toString("hex"),
      "skip-jwt-bearer-tokens": "true",
      "http-address": `127.0.0.1:${proxyPort}`,
      upstream: `http://127.0.0.1:${(api.address() as AddressInfo).port}`,
    };
    const words = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
    const child = spawn(join(world.folder, "oauth2-proxy"), words, { stdio: ["ignore", "pipe", "pipe"] });
    ends.push(() => child.kill());
    let told = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (part) => {
        told += String(part);
      });
    }
    const ask = async (token: string): Promise<number> => {
      const headers = { authorization: `Bearer ${token}`, accept: "application/json" };
      const answer = await fetch(`http://127.0.0.1:${proxyPort}/trips`, { headers, redirect: "manual" });
      await answer.arrayBuffer();
      return answer.status;
    };
    while (
      !(await fetch(`http://127.0.0.1:${proxyPort}/ping`).then(
        ({ ok }) => ok,
        () => false,
      ))
    ) {
      if (child.exitCode !== null) throw new Error(`oauth2-proxy ended: ${told.slice(-800)}`);
      await sleep(50);
    }
    const tokenOf = async (audience: string): Promise<string> => {
      const form = { grant_type: "client_credentials", audience };
      const answer = await world.token(form, { authorization: basic("caller", SECRET) });
      if (answer.status !== 200) throw new Error(answer.text);
      return String(answer.body.access_token);
    };
    const taken: string[] = [];
    for (const [alg, audience] of Object.entries(API)) {
      const status = await ask(await tokenOf(audience));
      if (status !== 200) throw new Error(`${alg}: ${status} in place of 200: ${told.slice(-800)}`);
      taken.push(alg);
    }
    const good = await tokenOf(ES256);
    for (const [what, token] of [
      ["another API", await tokenOf(OTHER)],
      ["a changed token", `${good.slice(0, -8)}AAAAAAAA`],
    ] as const) {
      const status = await ask(token);
      if (status === 200) throw new Error(`${what} is let through`);
    }
    yield `oauth2-proxy ${VERSION} takes ${taken.join(", ")}, and refuses a token for another API and a changed one`;
  } finally {
    for (const end of ends) end();
    await world.stop();
  }
}

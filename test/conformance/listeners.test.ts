/**
 * One server with three listeners: the main one, one that requests certificates, and one for a TLS-terminating proxy
 * that forwards certificates (RFC 9440). What authenticates at one of them does not at the others.
 */

import assert from "node:assert/strict";
import { createHash, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { connect as connectPlain, createServer } from "node:net";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { type Authority, bundle, derOf, type TrustDomain } from "../../scripts/dev-keys.ts";
import {
  issueClientCertificate,
  makeAuthority,
  makeIntermediate,
  makeTrustDomain,
  mintX509Svid,
  type SvidOptions,
  x509,
} from "../../scripts/dev-pki.ts";
import { type Answer, basic } from "../../scripts/http-client.ts";
import { EARLY_LOOK_SECONDS } from "../../src/limits/fetching.ts";
import { reloadBundle } from "../support/reload.ts";
import { stop } from "../support/stop.ts";
import { whilePassing } from "../support/until.ts";
import {
  type Certificate,
  claimsOf,
  type Form,
  ISSUER,
  makeWorld,
  TRUST_DOMAIN,
  type World,
  workload,
} from "../support/world.ts";

const API = "https://api.example";
const MTLS = "https://mtls.as.example";
const PROXY = "proxy.example";
const CC = { grant_type: "client_credentials", audience: API };
const planner = workload("agents/planner");
const booking = workload("agents/booking");

const corporate = await makeAuthority("Corporate authority");
const operators = await makeAuthority("Operators' authority");
const billing = await identity(corporate, "billing.example");
const pinned = await identity(await makeAuthority("Another authority"), "pinned.example");
const proxy = await identity(operators, PROXY);

let world: World;
let main: number;
let mtls: number;
let behind: number;
let operations: number;

before(async () => {
  const tls = { key: { file: "tls/key.pem" }, cert: { file: "tls/cert.pem" } };
  const listener = { host: "127.0.0.1", port: 0, tls };
  const { kty, crv, x, y } = new X509Certificate(pinned.cert).publicKey.export({ format: "jwk" });
  world = await makeWorld(
    {
      mtls: { ...listener, origin: MTLS },
      proxy: { ...listener, ca: { file: "operators.pem" }, name: PROXY },
      operations: { port: 0 },
      clients: {
        billing: {
          method: "tls_client_auth",
          tls_client_auth_san_dns: "billing.example",
          ca: { file: "corporate.pem" },
        },
        gateway: {
          method: "tls_client_auth",
          tls_client_auth_san_dns: PROXY,
          ca: { file: "operators.pem" },
        },
        pinned: {
          method: "self_signed_tls_client_auth",
          jwks: { keys: [{ kty, crv, x, y, x5c: [base64(pinned.cert)] }] },
        },
        posted: { method: "client_secret_post", secrets: ["a-secret"] },
        basic: { method: "client_secret_basic", secrets: ["a-secret"] },
      },
      targets: [{ names: [API], scopes: ["read"] }],
      policies: [
        {
          id: "everybody",
          allow: "client_credentials",
          targets: [API],
          scopes: ["read"],
          clients: ["billing", "gateway", "pinned", "posted", "basic"],
        },
        {
          id: "workloads",
          allow: "client_credentials",
          targets: [API],
          scopes: ["read"],
          actors: [`spiffe://${TRUST_DOMAIN}/*`],
        },
      ],
      limits: { failuresPerMinuteBySource: 100_000, failuresPerMinuteByClient: 100_000 },
    },
    { files: { "corporate.pem": corporate.certPem, "operators.pem": operators.certPem }, skipsLooks: true },
  );
  main = world.server.port;
  const others = world.server.lines.flatMap((line) => /also listens on .*:(\d+)$/.exec(line)?.[1] ?? []);
  [mtls = 0, behind = 0] = others.map(Number);
  const watched = world.server.lines.flatMap((line) => /^Health .*:(\d+)$/.exec(line)?.[1] ?? []);
  [operations = 0] = watched.map(Number);
});

after(() => stop(world));

// --- certificates and connections -------------------------------------------------------------------------------

async function identity(authority: Authority, name: string): Promise<Required<Certificate>> {
  const { keyPem, certPem } = await issueClientCertificate(authority, [name]);
  return { key: keyPem, cert: certPem + authority.intermediatesPem };
}

async function svid(
  id = planner,
  options: SvidOptions = {},
  domain: TrustDomain = world.trustDomain,
): Promise<Required<Certificate>> {
  const { keyPem, chainPem } = await mintX509Svid(domain, id, options);
  return { key: keyPem, cert: chainPem };
}

function base64(pem: string): string {
  return derOf(pem).toString("base64");
}

const sequence = (pem: string): string => `:${base64(pem)}:`;
const pems = (chain: string): string[] =>
  chain.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];

/** The header fields that a proxy sends for a client with this certificate chain. */
function forwarded({ cert }: Required<Certificate>): Record<string, string> {
  const [leaf = "", ...rest] = pems(cert);
  return {
    "Client-Cert": sequence(leaf),
    ...(rest.length > 0 && { "Client-Cert-Chain": rest.map(sequence).join(", ") }),
  };
}

/** A persistent connection on which any bytes can be written. */
class Connection {
  readonly socket: TLSSocket;
  #received = "";

  constructor(port: number, { key, cert }: Certificate = {}, options: ConnectionOptions = {}) {
    this.socket = connect({
      port,
      host: "127.0.0.1",
      servername: "as.example",
      ca: world.ca,
      ...(key !== undefined && cert !== undefined && { key, cert }),
      ...options,
    });
    this.socket.setEncoding("latin1").on("data", (text: string) => {
      this.#received += text;
    });
    this.socket.on("error", () => undefined);
  }

  write(form: Form, fields: readonly string[] = [], trailer?: string): void {
    const body = new URLSearchParams(form as Record<string, string>).toString();
    const framing =
      trailer === undefined
        ? [`Content-Length: ${body.length}`, "", body]
        : ["Transfer-Encoding: chunked", "", body.length.toString(16), body, "0", trailer, "", ""];
    const type = "Content-Type: application/x-www-form-urlencoded";
    this.socket.write(["POST /token HTTP/1.1", "Host: as.example", type, ...fields, ...framing].join("\r\n"));
  }

  /** The next response: its status, its error code, and the client_id in its token. */
  async read(): Promise<{ status: number; error: unknown; client: unknown; connection: string }> {
    for (const endMs = Date.now() + 60_000; Date.now() < endMs; await sleep(2)) {
      const end = this.#received.indexOf("\r\n\r\n");
      const head = this.#received.slice(0, end);
      const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1]);
      if (end < 0 || this.#received.length < end + 4 + length) continue;
      const body = JSON.parse(this.#received.slice(end + 4, end + 4 + length));
      this.#received = this.#received.slice(end + 4 + length);
      const client = body.access_token && claimsOf(body.access_token).client_id;
      const connection = /^connection: (.*)$/im.exec(head)?.[1] ?? "";
      return { status: Number(head.slice(9, 12)), error: body.error, client, connection };
    }
    throw new Error("no response in time");
  }

  async ask(form: Form = CC, fields: readonly string[] = []) {
    this.write(form, fields);
    return this.read();
  }

  close(): void {
    this.socket.destroy();
  }
}

async function assertRefusedOnce(
  port: number,
  certificate: Certificate,
  form: Form,
  fields: readonly string[],
  error: string,
): Promise<void> {
  const connection = new Connection(port, certificate);
  try {
    const answer = await connection.ask(form, fields);
    assert.deepEqual([answer.status, answer.error], [400, error]);
  } finally {
    connection.close();
  }
}

function assertClient(answer: Answer, clientId: string): void {
  assert.equal(answer.status, 200, answer.text);
  assert.equal(claimsOf(answer.body.access_token).client_id, clientId);
}

function assertRefused(answer: Answer, error = "invalid_client"): void {
  assert.deepEqual([answer.status, answer.body.error], [400, error], answer.text);
  assert.equal(answer.headers["cache-control"], "no-store");
}

const at = (port: number, certificate: Certificate, form: Form = {}, headers = {}): Promise<Answer> =>
  world.token({ ...CC, ...form }, headers, certificate, port);
const viaProxy = (headers: Record<string, string>, form: Form = {}): Promise<Answer> =>
  at(behind, proxy, form, headers);

// --- the listener for certificates ------------------------------------------------------------------------------

test("RFC8705-5-1, RFC8705-5-2, RFC8705-5-4, RFC8705-5-5 the metadata name the listener for certificates in mtls_endpoint_aliases", async () => {
  const { body } = await world.get("/.well-known/oauth-authorization-server");
  assert.equal(body.token_endpoint, `${ISSUER}/token`);
  assert.deepEqual(body.mtls_endpoint_aliases, {
    token_endpoint: `${MTLS}/token`,
    introspection_endpoint: `${MTLS}/introspect`,
    revocation_endpoint: `${MTLS}/revoke`,
  });
});

/** The types of the server's first handshake messages, in TLS 1.2, in which they are not encrypted. */
async function serverFlight(port: number): Promise<number[]> {
  const seen: Buffer[] = [];
  const relay = createServer((near) => {
    const far = connectPlain(port, "127.0.0.1");
    far.on("data", (chunk: Buffer) => seen.push(chunk));
    for (const socket of [near, far]) socket.on("error", () => undefined);
    near.on("close", () => far.destroy());
    near.pipe(far).pipe(near);
  });
  await new Promise<void>((resolve) => relay.listen(0, "127.0.0.1", resolve));
  const connection = new Connection(Number(Object(relay.address()).port), {}, { maxVersion: "TLSv1.2" });
  await new Promise((resolve) => connection.socket.once("secureConnect", resolve));
  connection.close();
  relay.close();
  const bytes = Buffer.concat(seen);
  const records: Buffer[] = [];
  // Records of handshake messages (22), up to the first of another type.
  for (let at = 0; bytes[at] === 22; at += 5 + bytes.readUInt16BE(at + 3)) {
    records.push(bytes.subarray(at + 5, at + 5 + bytes.readUInt16BE(at + 3)));
  }
  const flight = Buffer.concat(records);
  const kinds: number[] = [];
  for (let at = 0; kinds.at(-1) !== 14; at += 4 + flight.readUIntBE(at + 1, 3)) kinds.push(flight[at] ?? 14);
  return kinds;
}

test("RFC8705-5-1, RFC8705-6.1-4 the main listener requests no certificate, the other two do", async () => {
  // ServerHello, Certificate, ServerKeyExchange, optionally CertificateRequest, ServerHelloDone.
  assert.deepEqual(await serverFlight(main), [2, 11, 12, 14]);
  assert.deepEqual(await serverFlight(mtls), [2, 11, 12, 13, 14]);
  assert.deepEqual(await serverFlight(behind), [2, 11, 12, 13, 14]);
});

const certificates: readonly [string, () => Promise<Certificate>, Form, string][] = [
  ["RFC8705-5-3 an X.509-SVID", () => svid(), {}, planner],
  ["RFC8705-5-3 an X.509-SVID with its client_id", () => svid(), { client_id: planner }, planner],
  ["RFC8705-5-3 tls_client_auth", async () => billing, { client_id: "billing" }, "billing"],
  ["RFC8705-5-3 self_signed_tls_client_auth", async () => pinned, { client_id: "pinned" }, "pinned"],
];
for (const [name, make, form, clientId] of certificates) {
  test(`${name} is accepted at the listener for certificates and refused at the main listener`, async () => {
    const certificate = await make();
    assertClient(await at(mtls, certificate, form), clientId);
    assertRefused(await at(main, certificate, form));
  });
}

test("RFC8705-5-2 an assertion may name the token endpoint of the listener for certificates, and no other of its URLs is accepted", async () => {
  const sent = async (port: number, aud: string): Promise<Answer> =>
    at(port, {}, world.as(await world.svid("agents/planner", { aud })));
  for (const port of [main, mtls]) assertClient(await sent(port, `${MTLS}/token`), planner);
  for (const aud of [MTLS, `${MTLS}/`, `${MTLS}/token/`, `${MTLS}/introspect`]) {
    assertRefused(await sent(mtls, aud));
  }
});

test("RFC8705-5-3, RFC8705-2-1 a secret is accepted at both listeners, with or without a certificate, and a wrong one is refused", async () => {
  const certificate = await svid();
  for (const port of [main, mtls]) {
    for (const shown of [{}, certificate]) {
      const posted = { client_id: "posted", client_secret: "a-secret" };
      assertClient(await at(port, shown, posted), "posted");
      assertRefused(await at(port, shown, { ...posted, client_secret: "another" }));
      assertClient(await at(port, shown, {}, { authorization: basic("basic", "a-secret") }), "basic");
      const wrong = await at(port, shown, {}, { authorization: basic("basic", "another") });
      assert.deepEqual([wrong.status, wrong.body.error], [401, "invalid_client"]);
    }
  }
});

test("RFC8705-5-3 all other endpoints are the same at both listeners", async () => {
  const { port: _, ...here } = { port: main, host: "127.0.0.1" };
  for (const path of ["/jwks", "/.well-known/oauth-authorization-server", "/nothing"]) {
    const [one, other] = await Promise.all(
      [main, mtls].map((port) => world.get(path, { connect: { ...here, port } })),
    );
    assert.deepEqual([one?.status, one?.text], [other?.status, other?.text]);
  }
});

for (const version of ["TLSv1.2", "TLSv1.3"] as const) {
  test(`RFC8705-2-2 no session is resumed in ${version}, with or without a certificate`, async () => {
    const certificate = await svid();
    for (const [port, shown] of [
      [mtls, certificate],
      [mtls, {}],
      [behind, proxy],
      [main, {}],
    ] as const) {
      const options = { minVersion: version, maxVersion: version };
      const first = new Connection(port, shown, options);
      const sessions: Buffer[] = [];
      first.socket.on("session", (session) => sessions.push(session));
      await first.ask();
      const session = first.socket.getSession();
      first.close();
      const again = new Connection(port, shown, { ...options, session: sessions[0] ?? session });
      await new Promise((resolve) => again.socket.once("secureConnect", resolve));
      assert.equal(again.socket.isSessionReused(), false);
      assert.equal(again.socket.getProtocol(), version);
      again.close();
    }
  });
}

// --- persistent connections -------------------------------------------------------------------------------------

test("PROD-2.4-5, RFC8705-2-2 an SVID that expires between two requests of a connection is refused in the second", async () => {
  const [short, long] = await Promise.all([svid(planner, { expSeconds: 60 }), svid(booking)]);
  const direct = new Connection(mtls, short);
  const other = new Connection(mtls, long);
  const proxied = new Connection(behind, proxy);
  const fields = Object.entries(forwarded(short)).map(([name, value]) => `${name}: ${value}`);
  try {
    assert.equal((await direct.ask()).client, planner);
    assert.equal((await other.ask()).client, booking);
    assert.equal((await proxied.ask(CC, fields)).client, planner);
    world.pass(61);
    assert.equal((await direct.ask()).error, "invalid_client");
    assert.equal((await other.ask()).client, booking);
    assert.equal((await proxied.ask(CC, fields)).error, "invalid_client");
    // The connection still serves clients without a certificate.
    const posted = { ...CC, client_id: "posted", client_secret: "a-secret" };
    assert.equal((await direct.ask(posted)).client, "posted");
  } finally {
    for (const connection of [direct, other, proxied]) connection.close();
  }
});

test("RFC9440-4-2 a proxy whose certificate expires is refused, also on a persistent connection", async () => {
  const { keyPem, chainPem } = await mintX509Svid(world.trustDomain, "", {
    issuer: operators,
    expSeconds: world.passed() + 60,
    names: [{ type: "dns", value: PROXY }],
  });
  const connection = new Connection(behind, { key: keyPem, cert: chainPem });
  const posted = { ...CC, client_id: "posted", client_secret: "a-secret" };
  try {
    assert.equal((await connection.ask(posted)).client, "posted");
    world.pass(61);
    assert.deepEqual((await connection.ask(posted)).error, "invalid_request");
  } finally {
    connection.close();
  }
});

test("X5S-6.2-3, SBN-3-2 an SVID whose authority is removed from the bundle is refused in the next request of its connection", async () => {
  const old = world.trustDomain;
  const next = await makeTrustDomain(TRUST_DOMAIN);
  const [before, beyond] = [await svid(), await svid(booking, {}, next)];
  const direct = new Connection(mtls, before);
  const newer = new Connection(mtls, beyond);
  const proxied = new Connection(behind, proxy);
  const fields = Object.entries(forwarded(before)).map(([name, value]) => `${name}: ${value}`);
  const all = async () => [
    (await direct.ask()).client,
    (await newer.ask()).client,
    (await proxied.ask(CC, fields)).client,
  ];
  try {
    assert.deepEqual(await all(), [planner, undefined, planner]);
    await reloadBundle(world, { ...bundle(next), spiffe_sequence: 2 });
    assert.deepEqual(await whilePassing(world, EARLY_LOOK_SECONDS, all()), [undefined, booking, undefined]);
  } finally {
    await reloadBundle(world, { ...bundle(old), spiffe_sequence: 3 });
  }
  assert.deepEqual(await whilePassing(world, EARLY_LOOK_SECONDS, all()), [planner, undefined, planner]);
  for (const connection of [direct, newer, proxied]) connection.close();
});

// --- the proxy listener: its peer -------------------------------------------------------------------------------

test("RFC9440-4-2 the authenticated proxy is served, and its clients authenticate with their own credentials", async () => {
  assertClient(await viaProxy({}, { client_id: "posted", client_secret: "a-secret" }), "posted");
  assertRefused(await viaProxy({}, { client_id: "posted", client_secret: "another" }));
  const connect = { host: "127.0.0.1", port: behind };
  assert.equal((await world.get("/jwks", { ...proxy, connect })).status, 200);
});

const otherPeers: readonly [string, () => Promise<Certificate>][] = [
  ["no certificate", async () => ({})],
  ["another name of the same authority", () => identity(operators, "other.example")],
  ["a name with the proxy's as prefix", () => identity(operators, `${PROXY}.evil.example`)],
  ["a subdomain of the proxy's name", () => identity(operators, `a.${PROXY}`)],
  ["a wildcard", () => identity(operators, "*.example")],
  ["the name under another authority", () => identity(corporate, PROXY)],
  [
    "the name under an authority with the same name",
    async () => identity(await makeAuthority("Operators' authority"), PROXY),
  ],
  [
    "the name under an authority that the peer sent",
    async () => {
      const own = await makeAuthority("Operators' authority");
      const { key, cert } = await identity(own, PROXY);
      return { key, cert: cert + own.certPem };
    },
  ],
  ["a workload", () => svid()],
  [
    "an expired certificate of the proxy",
    async () => {
      const past = { notBefore: new Date(Date.now() - 7200_000), expSeconds: -60 };
      const { keyPem, chainPem } = await mintX509Svid(world.trustDomain, "", {
        issuer: operators,
        names: [{ type: "dns", value: PROXY }],
        ...past,
      });
      return { key: keyPem, cert: chainPem };
    },
  ],
  [
    "a server certificate of the proxy's name",
    async () => {
      const { keyPem, chainPem } = await mintX509Svid(world.trustDomain, "", {
        issuer: operators,
        names: [{ type: "dns", value: PROXY }],
        extendedKeyUsage: [x509.ExtendedKeyUsage.serverAuth],
      });
      return { key: keyPem, cert: chainPem };
    },
  ],
  ["the authority itself", async () => ({ key: operators.keyPem, cert: operators.certPem })],
];
for (const [name, make] of otherPeers) {
  test(`RFC9440-4-2 a peer that is not the proxy is refused whatever it sends: ${name}`, async () => {
    const peer = await make();
    assertRefused(await at(behind, peer, {}, forwarded(await svid())), "invalid_request");
    assertRefused(
      await at(behind, peer, { client_id: "posted", client_secret: "a-secret" }),
      "invalid_request",
    );
    assertRefused(await at(behind, peer), "invalid_request");
    const connect = { host: "127.0.0.1", port: behind };
    assert.equal((await world.get("/jwks", { ...peer, connect })).status, 400);
  });
}

/** Everything that a connection without TLS receives for a request until it is closed. */
async function plainly(port: number, method: string, path: string, body = ""): Promise<string> {
  const socket = connectPlain(port, "127.0.0.1");
  socket.on("error", () => undefined);
  const type = "Content-Type: application/x-www-form-urlencoded";
  const head = [`${method} ${path} HTTP/1.1`, "Host: as.example", type, `Content-Length: ${body.length}`];
  let received = "";
  socket.setEncoding("latin1").on("data", (text: string) => {
    received += text;
  });
  socket.write([...head, "Connection: close", "", body].join("\r\n"));
  await new Promise((resolve) => socket.once("close", resolve));
  return received;
}

const OF_SECRET = { ...CC, client_id: "posted", client_secret: "a-secret" };

test("RFC9440-4-3, RFC7662-2-1, RFC6749-10.3-2, RFC6749-10.9-1, RFC6750-5.2-5, MCP-S.3-1 no listener serves without TLS what it serves with TLS", async () => {
  const { body: metadata } = await world.get("/.well-known/oauth-authorization-server");
  const urls = [metadata.issuer, metadata.jwks_uri, metadata.token_endpoint, metadata.registration_endpoint];
  for (const url of urls) assert.match(String(url), /^https:/);
  const form = new URLSearchParams(OF_SECRET).toString();
  const requests = [
    ["POST", "/token", form],
    ["POST", "/register", "{}"],
    ["POST", "/introspect", "token=any"],
    ["POST", "/revoke", "token=any"],
    ["POST", "/policy/explain", "{}"],
    ["GET", "/jwks"],
    ["GET", "/.well-known/oauth-authorization-server"],
    ["GET", "/consents"],
    ["GET", "/audit/events"],
  ] as const;
  for (const [method, path, body] of requests) {
    for (const port of [main, mtls, behind]) {
      const certificate = port === behind ? proxy : {};
      const answer = await world.get(path, { method, ...certificate, connect: { host: "127.0.0.1", port } });
      assert.notEqual(answer.status, 404, `${path} at ${port}`);
      assert.doesNotMatch(await plainly(port, method, path, body), /HTTP/, path);
    }
    // Health and metrics are plain HTTP on a separate listener, which has none of these paths.
    assert.match(await plainly(operations, method, path, body), /^HTTP\/1\.1 40[45] /, path);
  }
  assertClient(await at(main, {}, OF_SECRET), "posted");
});

/** The result of a handshake for a peer that trusts these authorities. */
async function handshake(port: number, options: ConnectionOptions): Promise<string> {
  const socket = connect({ port, host: "127.0.0.1", servername: "as.example", ca: world.ca, ...options });
  try {
    await once(socket, "secureConnect");
    return String(socket.getProtocol());
  } catch (error) {
    return String((error as { code?: string }).code);
  } finally {
    socket.destroy();
  }
}

test("RFC6750-5.2-4, RFC8414-6.1-1, RFC6749-10.9-1, RFC7009-2-5, RFC7662-4-10, RFC8705-8-1 each listener supports TLS 1.2 and 1.3, prefers 1.3, and authenticates with its certificate", async () => {
  for (const port of [main, mtls, behind]) {
    for (const version of ["TLSv1.2", "TLSv1.3"] as const) {
      const options = { minVersion: version, maxVersion: version };
      assert.equal(await handshake(port, options), version);
      assert.match(await handshake(port, { ...options, ca: corporate.certPem }), /VERIFY/);
    }
    assert.equal(await handshake(port, {}), "TLSv1.3");
  }
});

test("RFC6750-5.2-8, RFC9700-4.13-2 the connection to a proxy is protected by TLS with mutual authentication", async () => {
  assertClient(await viaProxy({}, OF_SECRET), "posted");
  const form = new URLSearchParams(OF_SECRET).toString();
  assert.doesNotMatch(
    await plainly(behind, "POST", "/token", form),
    /HTTP/,
    "the proxy listener answers without TLS",
  );
  assertRefused(await at(behind, {}, OF_SECRET), "invalid_request");
  assertRefused(await at(behind, await identity(corporate, PROXY), OF_SECRET), "invalid_request");
  assert.match(await handshake(behind, { ...proxy, ca: corporate.certPem }), /VERIFY/, "another server");
});

test("HTTP-D-11, RFC9440-4-1 the proxy is not bound by the cap on connections of one source", async () => {
  const connections = Array.from({ length: 300 }, () => new Connection(behind, proxy));
  try {
    const served = await Promise.all(
      connections.map(
        ({ socket }) =>
          new Promise<number>((resolve) => {
            socket.once("secureConnect", () => resolve(1)).once("close", () => resolve(0));
          }),
      ),
    );
    assert.equal(
      served.reduce((sum, one) => sum + one, 0),
      300,
    );
    assert.equal((await connections[299]?.ask())?.status, 400);
  } finally {
    for (const connection of connections) connection.close();
  }
});

// --- the proxy listener: forwarded certificates -----------------------------------------------------------------

test("RFC9440-2.2-1, RFC9440-2.1-1, RFC9440-2.3-1 the forwarded certificate authenticates the client, and needs no chain", async () => {
  assertClient(await viaProxy(forwarded(await svid())), planner);
  assertClient(await viaProxy(forwarded(await svid()), { client_id: planner }), planner);
  assertRefused(await viaProxy(forwarded(await svid()), { client_id: booking }));
  assertClient(await viaProxy(forwarded(billing), { client_id: "billing" }), "billing");
  assertClient(await viaProxy(forwarded(pinned), { client_id: "pinned" }), "pinned");
  assertRefused(await viaProxy(forwarded(billing), { client_id: "pinned" }));
});

test("RFC9440-2.3-3, RFC9440-2.3-5 intermediates are taken from the chain, with or without the root, for an SVID and for tls_client_auth", async () => {
  const upper = await makeIntermediate(world.trustDomain.x509, "Intermediate 1");
  const lower = await makeIntermediate(upper, "Intermediate 2");
  const leaf = await svid(planner, { issuer: lower });
  assertClient(await viaProxy(forwarded(leaf)), planner);
  const { key, cert } = leaf;
  assertClient(await viaProxy(forwarded({ key, cert: cert + world.trustDomain.x509.certPem })), planner);
  const department = await makeIntermediate(corporate, "Department");
  const below = forwarded(await identity(department, "billing.example"));
  assertClient(await viaProxy(below, { client_id: "billing" }), "billing");
});

test("X5S-5.1-1 the whole chain is validated, whether or not the proxy did", async () => {
  const upper = await makeIntermediate(world.trustDomain.x509, "Intermediate 1");
  const lower = await makeIntermediate(upper, "Intermediate 2");
  const fields = forwarded(await svid(planner, { issuer: lower }));
  const chain = (...signers: Authority[]) => ({
    ...fields,
    "Client-Cert-Chain": signers.map(({ certPem }) => sequence(certPem)).join(","),
  });
  assertClient(await viaProxy(chain(lower, upper)), planner);
  assertRefused(await viaProxy(chain(lower)));
  assertRefused(await viaProxy(chain(upper)));
  assertRefused(await viaProxy({ "Client-Cert": fields["Client-Cert"] ?? "" }));
  const other = await makeAuthority("Intermediate 2");
  assertRefused(await viaProxy(chain(other, upper)));
});

test("RFC9440-2.3-7, RFC9440-2.3-2 a chain may be sent in several fields, which form one list", async () => {
  const upper = await makeIntermediate(world.trustDomain.x509, "Intermediate 1");
  const lower = await makeIntermediate(upper, "Intermediate 2");
  const [leaf = "", ...rest] = pems((await svid(planner, { issuer: lower })).cert);
  const connection = new Connection(behind, proxy);
  const lines = rest.map((pem) => `client-cert-chain: ${sequence(pem)}`);
  const answer = await connection.ask(CC, [`CLIENT-CERT: ${sequence(leaf)}`, ...lines]);
  connection.close();
  assert.equal(answer.client, planner);
});

test("RFC8941-4.2.7-2 missing base64 padding is accepted", async () => {
  const { cert } = await svid();
  const field = (text: string) => ({ "Client-Cert": `:${text}:` });
  assertClient(await viaProxy(field(base64(cert).replace(/=+$/, ""))), planner);
  assertRefused(await viaProxy(field(`${base64(cert)}=`)), "invalid_request");
});

test("RFC9440-3.2-1 the proxy listener accepts larger headers than the others", async () => {
  const filling = new x509.Extension("1.2.3.4.5", false, new Uint8Array(14 * 1024));
  const large = await svid(planner, { extensions: [filling] });
  const fields = forwarded(large);
  assert.ok((fields["Client-Cert"] ?? "").length > 16 * 1024);
  assertClient(await viaProxy(fields), planner);
  assert.equal((await at(main, {}, {}, fields)).status, 431);
  assert.equal((await at(mtls, {}, {}, fields)).status, 431);
  assert.equal((await viaProxy({ "X-Filling": "a".repeat(48 * 1024) })).status, 431);
});

test("RFC7239-8.1-1 without the setting, no field tells the address of a client behind the proxy", async () => {
  const fields = { Forwarded: "for=192.0.2.60", "X-Forwarded-For": "192.0.2.60" };
  const answer = await viaProxy(fields, { client_id: "posted", client_secret: "a-secret", scope: "write" });
  assertRefused(answer, "invalid_scope");
  const event = (await world.events()).findLast(({ type }) => type === "token.denied");
  assert.equal(Object(event?.request).source_ip, "127.0.0.1");
});

test("RFC9440-2.4-3 without the field there is no client certificate, and the proxy's own is never used as one", async () => {
  assertClient(await at(mtls, proxy, { client_id: "gateway" }), "gateway");
  assertRefused(await viaProxy({}, { client_id: "gateway" }));
  assertClient(await viaProxy(forwarded(proxy), { client_id: "gateway" }), "gateway");
  assertRefused(await viaProxy({}));
  assertRefused(await viaProxy({}, { client_id: planner }));
});

test("RFC9440-2.4-3 a forwarded certificate applies to its own request only", async () => {
  const connection = new Connection(behind, proxy);
  const lines = async (id: string): Promise<string[]> =>
    Object.entries(forwarded(await svid(id))).map(([name, value]) => `${name}: ${value}`);
  const [first, second] = [await lines(planner), await lines(booking)];
  connection.write(CC, first);
  connection.write(CC);
  connection.write(CC, second);
  connection.write(CC, first);
  const answers = [];
  for (let i = 0; i < 4; i++) answers.push((await connection.read()).client);
  connection.close();
  assert.deepEqual(answers, [planner, undefined, booking, planner]);
});

type Fields = (good: string, chain: string) => readonly string[];
/** Each contains a valid certificate, which must not be accepted. */
const malformed: readonly [string, Fields][] = [
  ["RFC9440-2.2-3 a duplicate field", (good) => [`Client-Cert: ${good}`, `Client-Cert: ${good}`]],
  ["RFC9440-2.2-3 a list", (good) => [`Client-Cert: ${good}, ${good}`]],
  ["RFC9440-2.2-3 a list with a trailing comma", (good) => [`Client-Cert: ${good},`]],
  ["RFC9440-2.3-4 a chain without a leaf", (_good, chain) => [`Client-Cert-Chain: ${chain}`]],
  ["RFC9440-2.3-4 an empty chain without a leaf", () => ["Client-Cert-Chain:"]],
  ["RFC9440-2.1-1 no colons", (good) => [`Client-Cert: ${good.slice(1, -1)}`]],
  ["RFC9440-2.1-1 a string", (good) => [`Client-Cert: "${good.slice(1, -1)}"`]],
  ["RFC9440-2.1-1 parameters", (good) => [`Client-Cert: ${good};a=1`]],
  ["RFC8941-4.2.7-1 a space", (good) => [`Client-Cert: ${good.slice(0, 80)} ${good.slice(80)}`]],
  [
    "RFC8941-4.2.7-1 the base64url alphabet",
    (good) => [`Client-Cert: ${good.slice(0, 80)}-_${good.slice(82)}`],
  ],
  [
    "RFC8941-4.2.7-1 PEM in percent encoding",
    (good) => [`Client-Cert: ${encodeURIComponent(`-----BEGIN CERTIFICATE-----\n${good.slice(1, -1)}`)}`],
  ],
  [
    "RFC9440-2.3-2 a member that is not a byte sequence",
    (good, chain) => [`Client-Cert: ${good}`, `Client-Cert-Chain: ${chain}, x`],
  ],
  [
    "RFC9440-2.3-2 an empty member",
    (good, chain) => [`Client-Cert: ${good}`, `Client-Cert-Chain: ${chain},, ${chain}`],
  ],
  [
    "RFC9440-2.3-2 too many certificates",
    (good, chain) => [`Client-Cert: ${good}`, `Client-Cert-Chain: ${Array(10).fill(chain).join(", ")}`],
  ],
];
for (const [name, make] of malformed) {
  test(`${name}: 400, before client authentication`, async () => {
    const good = forwarded(await svid())["Client-Cert"] ?? "";
    const fields = make(good, sequence(world.trustDomain.x509.certPem));
    await assertRefusedOnce(behind, proxy, CC, fields, "invalid_request");
    // A valid secret is refused too, because the request of the proxy is malformed.
    const posted = { ...CC, client_id: "posted", client_secret: "a-secret" };
    await assertRefusedOnce(behind, proxy, posted, fields, "invalid_request");
  });
}

const unacceptable: readonly [string, () => Promise<Record<string, string>>][] = [
  [
    "SID-3-1, SPCA-3.2-3 of an unknown authority",
    async () => forwarded(await svid(planner, { issuer: (await makeTrustDomain(TRUST_DOMAIN)).x509 })),
  ],
  [
    "SPCA-3.2-3, X5S-6.2-3 of an authority that was sent along",
    async () => {
      const { x509: issuer } = await makeTrustDomain(TRUST_DOMAIN);
      const { key, cert } = await svid(planner, { issuer });
      return forwarded({ key, cert: cert + issuer.certPem });
    },
  ],
  [
    "SPCA-5-1 of an unknown trust domain",
    async () => {
      const domain = await makeTrustDomain("x.example");
      return forwarded(await svid("spiffe://x.example/a", {}, domain));
    },
  ],
  ["RFC8705-2-3 that is not an SVID, without client_id", async () => forwarded(billing)],
  [
    "X5S-3.1-1, X5S-3.2-3 the authority of the trust domain",
    async () => ({ "Client-Cert": sequence(world.trustDomain.x509.certPem) }),
  ],
  [
    "PROD-2.4-5 expired",
    async () =>
      forwarded(await svid(planner, { notBefore: new Date(Date.now() - 7200_000), expSeconds: -60 })),
  ],
  [
    "RFC9440-2.1-1 with a trailing byte",
    async () => {
      const der = Buffer.concat([derOf((await svid()).cert), Buffer.of(0)]);
      return { "Client-Cert": `:${der.toString("base64")}:` };
    },
  ],
  [
    "RFC9440-2.1-1 that is not a certificate",
    async () => ({ "Client-Cert": `:${Buffer.from("certificate").toString("base64")}:` }),
  ],
  [
    "RFC9440-2.1-1 in base64 of PEM",
    async () => ({ "Client-Cert": `:${Buffer.from((await svid()).cert).toString("base64")}:` }),
  ],
  [
    "X5S-5.1-1 with a changed signature",
    async () => {
      const der = derOf((await svid()).cert);
      der[der.length - 1] = (der.at(-1) ?? 0) ^ 1;
      return { "Client-Cert": `:${der.toString("base64")}:` };
    },
  ],
];
for (const [name, make] of unacceptable) {
  test(`${name}: a well-formed but unacceptable certificate from the proxy is invalid_client`, async () => {
    assertRefused(await viaProxy(await make()));
  });
}

const VENDORS = [
  "X-SSL-Client-Cert",
  "X-Forwarded-Client-Cert",
  "X-Client-Cert",
  "SSL_CLIENT_CERT",
  "Client_Cert",
  "Client-Certificate",
];
test("RFC9440-4-2 no other field authenticates a client, also from the proxy", async () => {
  const { "Client-Cert": good = "" } = forwarded(await svid());
  for (const name of VENDORS) {
    await assertRefusedOnce(behind, proxy, CC, [`${name}: ${good}`], "invalid_client");
  }
  const flags = ["X-SSL-Client-Verify: SUCCESS", "X-SSL-Client-S-DN: CN=billing.example"];
  await assertRefusedOnce(behind, proxy, { ...CC, client_id: "billing" }, flags, "invalid_client");
});

test("RFC9440-2.1-1 the field in a trailer is ignored", async () => {
  const { "Client-Cert": good } = forwarded(await svid());
  const connection = new Connection(behind, proxy);
  connection.write(CC, ["Trailer: Client-Cert"], `Client-Cert: ${good}`);
  const answer = await connection.read();
  connection.close();
  assert.deepEqual([answer.status, answer.error], [400, "invalid_client"]);
});

test("RFC9440-4-1, RFC9440-2.4-6 at the other listeners the fields are ignored, valid or malformed", async () => {
  const fields = forwarded(await svid());
  for (const port of [main, mtls]) {
    assertRefused(await at(port, {}, {}, fields));
    for (const broken of [{ "Client-Cert": "x" }, { "Client-Cert-Chain": ":AAAA:" }]) {
      assertClient(await at(port, {}, { client_id: "posted", client_secret: "a-secret" }, broken), "posted");
    }
  }
  const shown = await svid(booking);
  assertClient(await at(mtls, shown, {}, fields), booking);
  assertRefused(await at(mtls, shown, { client_id: planner }, fields));
  // The proxy's certificate gives no rights at the other listeners.
  for (const port of [main, mtls]) assertRefused(await at(port, proxy, {}, fields));
});

test("RFC9440-2.2-2, RFC9440-2.3-6, RFC9440-2.4-5 no response has the fields, and no response that depends on them is cacheable", async () => {
  const leaf = await svid(planner, {
    issuer: await makeIntermediate(world.trustDomain.x509, "Intermediate"),
  });
  const good = await viaProxy(forwarded(leaf));
  const bad = await viaProxy({ "Client-Cert": "x" });
  const noPeer = await at(behind, {}, {}, forwarded(leaf));
  assert.deepEqual([good.status, bad.status, noPeer.status], [200, 400, 400]);
  for (const { headers } of [good, bad, noPeer]) {
    assert.equal(headers["cache-control"], "no-store");
    assert.equal(headers["client-cert"] ?? headers["client-cert-chain"], undefined);
  }
});

test("RFC8705-6.5-1 the audit trail has the digest of the client's certificate, not of the proxy's", async () => {
  const leaf = await svid();
  const answer = await viaProxy(forwarded(leaf));
  assertClient(answer, planner);
  const { jti } = claimsOf(answer.body.access_token);
  const event = (await world.events()).find(({ granted }) => granted?.jti === jti);
  const digest = createHash("sha256").update(derOf(leaf.cert)).digest("base64url");
  assert.ok(JSON.stringify(event).includes(digest));
  assert.ok(
    !JSON.stringify(event).includes(createHash("sha256").update(derOf(proxy.cert)).digest("base64url")),
  );
});

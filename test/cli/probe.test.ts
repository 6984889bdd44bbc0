/** `mandate probe` against our server, and against one that stands before it and breaks a rule. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { createServer, type ServerOptions } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Answer, send } from "../../scripts/http-client.ts";
import type { Command } from "../../src/cli/command.ts";
import type { Probed, Row } from "../../src/cli/probe/row.ts";
import { metadataUrl, OLD_TLS, ROWS } from "../../src/cli/probe/rows.ts";
import { parseCommand } from "../support/host.ts";
import { files, forPeople } from "../support/people.ts";
import { startProvider, type TestProvider } from "../support/provider.ts";
import { stop } from "../support/stop.ts";
import { ISSUER, makeWorld, type World } from "../support/world.ts";

/** What our server answers to each row, once for all breaks. */
const answers = new Map<Row, Answer>();
const asked: Probed = { issuer: ISSUER, metadata: {}, nowSeconds: Math.floor(Date.now() / 1000) };

let provider: TestProvider;
let world: World;
before(async () => {
  provider = await startProvider();
  const limits = { failuresPerMinuteBySource: 10_000, failuresPerMinuteByClient: 10_000 };
  const config = {
    ...forPeople(provider),
    limits,
    registration: { mode: "open", open: { scopes: ["notes.read"] } },
  };
  world = await makeWorld(config, { files: files(provider) });
  const connect = { host: "127.0.0.1", port: world.server.port };
  const { body } = await send(metadataUrl(ISSUER), { ca: world.ca, connect });
  Object.assign(asked.metadata, body);
  for (const row of ROWS) {
    const { url, ...request } = row.request(asked);
    answers.set(row, await send(url, { ...request, ca: world.ca, connect }));
  }
});
after(() => stop(world, provider));

type Run = { code: number; lines: string[]; err: string };

async function probe(port: number, ...options: string[]): Promise<Run> {
  const ca = join(world.folder, "tls/ca.pem");
  const words = ["probe", ISSUER, "--ca", ca, "--connect", `127.0.0.1:${port}`, ...options];
  const command = await parseCommand(words);
  assert.ok(command.ok && command.value.on === "files", JSON.stringify(command));
  return run(command.value);
}

async function run(command: Command & { on: "files" }): Promise<Run> {
  const lines: string[] = [];
  let err = "";
  const code = await command.run({
    print: (line) => void lines.push(line),
    printError: (line) => {
      err += line;
    },
  });
  return { code, lines, err };
}

type Told = { clause: string; outcome: string; asks: string; got?: string };
const told = ({ lines }: Run): Told[] => lines.map((line) => JSON.parse(line));
const notKept = (run: Run) => told(run).filter(({ outcome }) => outcome !== "kept");

type Break = (answer: Answer, asked: { method: string; path: string; body: string }) => Partial<Answer>;

/** A server of the same name before ours, whose answers are changed. */
async function behind<T>(
  change: Break,
  work: (port: number) => Promise<T>,
  tls: ServerOptions = {},
): Promise<T> {
  const [key, cert] = ["key", "cert"].map((name) => readFileSync(join(world.folder, `tls/${name}.pem`)));
  const server = createServer(
    { ...(key && { key }), ...(cert && { cert }), ...tls },
    async (incoming, outgoing) => {
      const { method = "GET", url: path = "/" } = incoming;
      const body = await textOf(incoming);
      const connect = { host: "127.0.0.1", port: world.server.port };
      const headers = Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]);
      const sent = { method, ca: world.ca, connect, headers: Object.fromEntries(headers) };
      const ours = await send(`${ISSUER}${path}`, body === "" ? sent : { ...sent, body });
      const { status, headers: fields, text } = { ...ours, ...change(ours, { method, path, body }) };
      const { "content-length": _, "transfer-encoding": __, connection: ___, ...rest } = fields;
      outgoing.writeHead(status, rest).end(text);
    },
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    return await work((server.address() as AddressInfo).port);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const textOf = async (incoming: IncomingMessage): Promise<string> =>
  Buffer.concat(await incoming.toArray()).toString("utf8");

test("CONF-D-24 our server keeps every rule that the probe can ask for, which are more than 40, and the exit code is 0", async () => {
  const probed = await probe(world.server.port, "--json");
  assert.deepEqual(notKept(probed), []);
  assert.equal(probed.code, 0);
  assert.equal(told(probed).length, ROWS.length + OLD_TLS.length);
  assert.ok(ROWS.length + OLD_TLS.length >= 40);
});

test("CONF-D-24 the probe makes nothing: no token, no client and no consent", async () => {
  const events = await world.events();
  const made = events.filter(
    ({ outcome, type }) => outcome === "allow" && !/^(key|log|trust_bundle|key_set|config)\./.test(type),
  );
  assert.deepEqual(made, []);
});

type Asking = Parameters<Break>[1];
const ALLOWED = { status: 200, text: JSON.stringify({ access_token: "x", token_type: "Bearer" }) };
const without =
  (name: string): Break =>
  ({ headers }) => ({ headers: Object.fromEntries(Object.entries(headers).filter(([key]) => key !== name)) });
const where =
  (fits: (asked: Asking) => boolean, change: (answer: Answer) => Partial<Answer>): Break =>
  (answer, asked) =>
    fits(asked) ? change(answer) : {};
const inMetadata = (members: object): Break =>
  where(
    ({ path, method }) => path.startsWith("/.well-known/oauth-authorization-server") && method === "GET",
    ({ text }) => ({ text: JSON.stringify({ ...JSON.parse(text), ...members }) }),
  );
const said = (body: string): Break =>
  where(
    (asked) => asked.body.includes(body),
    () => ALLOWED,
  );
const at = (path: string, answer: Partial<Answer>): Break =>
  where(
    (asked) => asked.path.startsWith(path),
    () => answer,
  );
const unsigned = (claim: string): Break =>
  where(
    ({ body }) =>
      (new URLSearchParams(body).get("client_assertion")?.split(".")[0] ?? "") ===
      btoa(claim).replaceAll("=", ""),
    () => ALLOWED,
  );

/** What a server does wrong, and the clauses that it then breaks. */
const BREAKS: readonly (readonly [name: string, change: Break, clauses: readonly string[]])[] = [
  ["names another issuer", inMetadata({ issuer: "https://other.example" }), ["RFC8414-3.3-1"]],
  [
    "lists `none`",
    inMetadata({ token_endpoint_auth_signing_alg_values_supported: ["none"] }),
    ["RFC8414-2-15"],
  ],
  ["offers passwords", inMetadata({ grant_types_supported: ["password"] }), ["RFC9700-2.4-1"]],
  [
    "offers plain PKCE",
    inMetadata({ code_challenge_methods_supported: ["S256", "plain"] }),
    ["RFC9700-2.1.1-7"],
  ],
  ["offers the implicit response", inMetadata({ response_types_supported: ["token"] }), ["RFC9700-2.1.2-1"]],
  [
    "publishes a private key",
    at("/jwks", { text: JSON.stringify({ keys: [{ kty: "EC", d: "x" }] }) }),
    ["RFC7517-7-1"],
  ],
  [
    "takes an assertion that is not signed",
    unsigned('{"alg":"none","typ":"JWT"}'),
    ["RFC7518-3.6-1", "RFC8725-3.2-v5", "RFC7521-4.2-1", "RFC7521-4.2.1-2"],
  ],
  ["knows only one spelling of none", unsigned('{"alg":"noNE","typ":"JWT"}'), ["B8725-3.1-3"]],
  ["gives a token for an invented refresh token", said("grant_type=refresh_token"), ["RFC6749-10.4-6"]],
  [
    "answers GET /token",
    where(
      ({ path, method }) => method === "GET" && path.startsWith("/token"),
      () => ALLOWED,
    ),
    ["RFC6749-3.2-4"],
  ],
  [
    "redirects unknown clients",
    at("/authorize", { status: 303, headers: { location: "https://mandate-probe.invalid/callback" } }),
    [
      ...["RFC6749-4.1.2.1-1", "RFC6749-10.15-1", "RFC9700-2.1-2", "CIMD-3-7", "CIMD-3-1", "RFC9126-4-2"],
      ...["CSP-6.4.2-1", "RFC9700-4.2.4-2"],
    ],
  ],
  ["lets its pages be framed", without("content-security-policy"), ["CSP-6.4.2-1"]],
  ["lets refusals be kept", without("cache-control"), ["RFC6749-5.1-6"]],
  [
    "tells everyone that a token is active",
    at("/introspect", { status: 200, text: '{"active":true}' }),
    ["RFC7662-2.1-1", "RFC7662-2.1-8", "RFC7662-2.3-1"],
  ],
  [
    "shows its trail",
    at("/audit/events", { status: 200, text: "[]" }),
    ["RFC6750-3-1", "RFC6750-3.1-5", "RFC6750-3.1-2", "RFC9700-4.3.2-1"],
  ],
  [
    "registers a script",
    at("/register", { status: 201, text: '{"client_id":"x"}' }),
    ["RFC7591-3.2.2-4", "RFC7592-2-3", "RFC7592-2-1"],
  ],
  [
    "lets every page read what it answers",
    ({ headers }) => ({ headers: { ...headers, "access-control-allow-origin": "*" } }),
    ["PAGE-D-21"],
  ],
];
for (const [name, change, clauses] of BREAKS) {
  test(`CONF-D-24 the probe finds a server that ${name}`, () => {
    const found = [...answers].filter(([row, answer]) => {
      const { url, method, body = "" } = row.request(asked);
      const { pathname, search } = new URL(url);
      return !row.fits(
        { ...answer, ...change(answer, { method, path: `${pathname}${search}`, body }) },
        asked,
      );
    });
    assert.deepEqual(
      found.map(([{ clause }]) => clause),
      clauses,
    );
  });
}

test("CONF-D-24 a server before ours that breaks two rules: the probe names the clauses and exits with 1", async () => {
  const change: Break = (answer, asked) => ({
    ...said("grant_type=refresh_token")(answer, asked),
    ...at("/authorize", { status: 200, headers: {} })(answer, asked),
  });
  const probed = await behind(change, (port) => probe(port, "--json"));
  assert.equal(probed.code, 1);
  const broken = new Set(notKept(probed).map(({ clause, outcome }) => `${outcome} ${clause}`));
  assert.ok(broken.has("broken RFC6749-10.4-6") && broken.has("broken CSP-6.4.2-1"), [...broken].join());
});

test("a server that agrees to TLS 1.0 and 1.1: the probe names it and exits with 1", async () => {
  const old: ServerOptions = { minVersion: "TLSv1", ciphers: "DEFAULT:@SECLEVEL=0" };
  const probed = await behind(
    () => ({}),
    (port) => probe(port, "--json"),
    old,
  );
  assert.equal(probed.code, 1);
  assert.deepEqual(
    notKept(probed).map(({ clause, asks }) => `${clause} ${asks}`),
    OLD_TLS.map(({ clause, version }) => `${clause} a connection by ${version}`),
  );
});

test("what a server without sign-in and registration does not offer is not asked, and a line says what is broken", async () => {
  const gone = {
    authorization_endpoint: undefined,
    pushed_authorization_request_endpoint: undefined,
    registration_endpoint: undefined,
  };
  const probed = await behind(
    (answer, asked) => ({ ...inMetadata(gone)(answer, asked), ...without("cache-control")(answer, asked) }),
    (port) => probe(port),
  );
  assert.equal(probed.code, 1);
  const offered = ROWS.filter(({ needs = "" }) => !(needs in gone)).length + OLD_TLS.length;
  assert.equal(
    probed.lines.filter((line) => line.startsWith("not_asked ")).length,
    ROWS.length + OLD_TLS.length - offered,
  );
  assert.ok(
    probed.lines.includes(
      'broken     RFC6749-5.1-6 whether a refusal may be cached: wants Cache-Control: no-store, got "401 invalid_client"',
    ),
    probed.lines.join("\n"),
  );
  assert.equal(
    probed.lines.at(-1),
    `${ISSUER}: ${offered - 1} kept, 1 broken, ${ROWS.length + OLD_TLS.length - offered} not_asked, 0 not_judged`,
  );
});

test("CONF-D-24 a server that tells the probe to wait is not judged by that: exit code 3", async () => {
  const probed = await behind(at("/token", { status: 429 }), (port) => probe(port, "--json"));
  assert.equal(probed.code, 3);
  const found = notKept(probed);
  assert.ok(
    found.length > 10 &&
      found.every(({ outcome, got }) => outcome === "not_judged" && /^429/.test(got ?? "")),
  );
});

test("the counts of a probe are printed for Prometheus", async () => {
  const { code, lines } = await probe(world.server.port, "--metrics");
  assert.equal(code, 0);
  const all = ROWS.length + OLD_TLS.length;
  const [printed = ""] = lines;
  assert.match(
    printed,
    new RegExp(`^mandate_probe_rules\\{issuer="${ISSUER}",outcome="kept"\\} ${all}$`, "m"),
  );
  assert.match(printed, new RegExp(`^mandate_probe_rules\\{issuer="${ISSUER}",outcome="broken"\\} 0$`, "m"));
  assert.match(printed, new RegExp(`^mandate_probe_time_seconds\\{issuer="${ISSUER}"\\} \\d{10}$`, "m"));
});

test("a server that does not answer: exit code 3, and what was tried", async () => {
  const port = await behind(
    () => ({}),
    async (port) => port,
  );
  const probed = await probe(port);
  assert.deepEqual([probed.code, probed.lines], [3, []]);
  assert.match(probed.err, /^https:\/\/as\.example does not answer: .*ECONNREFUSED/);
});

for (const [name, words, problem] of [
  ["a URL without TLS", ["http://as.example"], "URL is not an https URL"],
  ["a place without a port", [ISSUER, "--connect", "127.0.0.1"], "--connect is not HOST:PORT"],
] as const) {
  test(`the probe refuses ${name}`, async () => {
    assert.deepEqual(await parseCommand(["probe", ...words]), { ok: false, error: problem });
  });
}

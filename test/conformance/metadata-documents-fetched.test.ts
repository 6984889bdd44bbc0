/**
 * What is fetched for clients with a metadata document, and how often, over real TLS: once for many requests, again
 * when it may have changed, within a budget, and only while the configuration permits it.
 */

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import type { ConnectionOptions } from "node:tls";
import { mintX509Svid } from "../../scripts/dev-pki.ts";
import type { Answer } from "../../scripts/http-client.ts";
import { startServer } from "../../scripts/server-process.ts";
import { loadConfig } from "../../src/config/config.ts";
import { EARLY_LOOK_SECONDS } from "../../src/limits/fetching.ts";
import { DRAFT } from "../../src/spec/cimd.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import {
  bearer,
  byKey,
  type Key,
  makeKey,
  openTo,
  type Page,
  type Publisher,
  publish,
  publishKeys,
  startPublisher,
} from "../support/documents.ts";
import { pipeline } from "../support/pipeline.ts";
import { stop } from "../support/stop.ts";
import { until, whilePassing } from "../support/until.ts";
import { LOOPBACK } from "../support/web.ts";
import { claimsOf, type Form, makeWorld, TRUST_DOMAIN, type World, workload } from "../support/world.ts";

const API = "https://api.example";
const CC = { grant_type: "client_credentials", audience: API };
const cart = workload("agents/cart");
const [own, newer, otherKey] = (await Promise.all(["k1", "k2", "k1"].map(makeKey))) as [Key, Key, Key];

let here: Publisher;
let elsewhere: Publisher;
let world: World;
let startedMs: number;

before(async () => {
  [here, elsewhere] = await Promise.all([startPublisher(), startPublisher()]);
  for (const server of [here, elsewhere]) {
    publish(server, "/jwks", byKey({ jwks: { keys: [own.jwk] } }));
    publish(server, "/jwks-uri", byKey({ jwks_uri: publishKeys(server, "/keys", [own]) }));
    publish(server, "/jwt-svid", { token_endpoint_auth_method: "spiffe_jwt", spiffe_id: cart });
    publish(server, "/x509-svid", { token_endpoint_auth_method: "spiffe_x509", spiffe_id: cart });
  }
  publishAgeing();
  const { clientOrigins, files } = openTo({ here, elsewhere });
  world = await makeWorld(
    {
      clientMetadataDocuments: {},
      clientOrigins,
      drafts: [SPIFFE_DRAFT, DRAFT],
      targets: [{ names: [API], scopes: ["read"] }],
      policies: [
        {
          id: "all",
          allow: "client_credentials",
          targets: [API],
          scopes: ["read"],
          clients: [`${here.origin}/*`, `${elsewhere.origin}/*`],
        },
      ],
      limits: {
        failuresPerMinuteBySource: 100_000,
        failuresPerMinuteByClient: 100_000,
        fetchesPerMinuteBySource: 100_000,
        fetchesPerMinuteByHost: 100_000,
        requestsPerSecondByClient: 10_000,
      },
    },
    { files, clock: true },
  );
  startedMs = world.nowMs();
  await ageing();
});

after(() => stop(world, here, elsewhere));

const askByKey = (clientId: string, key = own): Promise<Answer> =>
  world.token({ ...CC, ...bearer(clientId, key) });

/** Authenticates with the kind of SVID in the name of the document. */
async function askByWorkload(client_id: string): Promise<Answer> {
  if (client_id.endsWith("/jwt-svid")) {
    return world.token({ ...CC, ...world.as(await world.svid("agents/cart")), client_id });
  }
  const { keyPem, chainPem } = await mintX509Svid(world.trustDomain, cart);
  return world.token({ ...CC, client_id }, {}, { key: keyPem, cert: chainPem });
}

function assertClient(answer: Answer, clientId: string): void {
  assert.equal(answer.status, 200, answer.text);
  assert.equal(claimsOf(answer.body.access_token).client_id, clientId);
}

function assertRefused(answer: Answer): void {
  assert.deepEqual([answer.status, answer.body.error], [400, "invalid_client"], answer.text);
}

// --- within half a minute of a fetch -----------------------------------------------------------------------------

const NO_TIME = { headers: { "cache-control": "max-age=0" } };
const inline = byKey({ jwks: { keys: [own.jwk] } });

/** Documents that are used at the start, and again when they may have changed. */
const AGEING: Record<string, [members: (origin: string) => object, rest: Page]> = {
  changing: [() => inline, NO_TIME],
  unchanged: [() => inline, { headers: { ...NO_TIME.headers, etag: '"1"' } }],
  replaced: [() => inline, { headers: { ...NO_TIME.headers, etag: '"1"' } }],
  gone: [() => inline, NO_TIME],
  broken: [() => inline, NO_TIME],
  "without-word": [() => inline, {}],
  "for-long": [() => inline, { headers: { "cache-control": "max-age=86400" } }],
  rotating: [(origin) => byKey({ jwks_uri: `${origin}/ageing/rotating-keys` }), {}],
  "keys-gone": [(origin) => byKey({ jwks_uri: `${origin}/ageing/keys-gone-keys` }), {}],
};
const ageingAt = (name: string): string => `${here.origin}/ageing/${name}`;
const looksAt = (name: string): number => here.requests(`/ageing/${name}`).length;

function publishAgeing(): void {
  for (const [name, [members, rest]] of Object.entries(AGEING)) {
    publish(here, `/ageing/${name}`, members(here.origin), rest);
  }
  publishKeys(here, "/ageing/rotating-keys", [own], { headers: { "cache-control": "max-age=600" } });
  publishKeys(here, "/ageing/keys-gone-keys", [own], NO_TIME);
}

async function ageing(): Promise<void> {
  for (const name of Object.keys(AGEING)) assertClient(await askByKey(ageingAt(name)), ageingAt(name));
  // These changes must have no effect for half a minute.
  publish(here, "/ageing/changing", byKey({ jwks: { keys: [newer.jwk] } }), NO_TIME);
  const etag = { headers: { ...NO_TIME.headers, etag: '"2"' } };
  publish(here, "/ageing/replaced", byKey({ jwks: { keys: [newer.jwk] } }), etag);
  here.pages.set("/ageing/gone", { status: 404 });
  publish(here, "/ageing/broken", { token_endpoint_auth_method: "none" }, NO_TIME);
  publish(here, "/ageing/without-word", { token_endpoint_auth_method: "none" });
  publish(here, "/ageing/for-long", { token_endpoint_auth_method: "none" });
  publishKeys(here, "/ageing/rotating-keys", [newer]);
  here.pages.set("/ageing/keys-gone-keys", { status: 500 });
}

test("CIMD-5.2-2, CIMD-9.1-1, MCP-R.1-3 a document is not fetched again within half a minute, whatever its headers say", async () => {
  for (const name of Object.keys(AGEING)) assertClient(await askByKey(ageingAt(name)), ageingAt(name));
  assertRefused(await askByKey(ageingAt("changing"), newer));
  assert.ok(world.nowMs() - startedMs < 29_000, "the half minute is over before the check");
  for (const name of [...Object.keys(AGEING), "rotating-keys", "keys-gone-keys"]) {
    assert.equal(looksAt(name), 1, name);
  }
});

// --- concurrent requests ------------------------------------------------------------------------------------------

const CONNECTIONS = 10;
const PER_CONNECTION = 20;

test("CIMD-9.1-1, CIMD-5.2-1 many concurrent requests with a new document cause one fetch of it and one of its keys", async () => {
  const gate = Promise.withResolvers<void>();
  const keysGate = Promise.withResolvers<void>();
  const clientId = publish(
    here,
    "/many",
    byKey({ jwks_uri: publishKeys(here, "/many-keys", [own], { after: keysGate.promise }) }),
    { after: gate.promise },
  );
  const forms = Array.from({ length: CONNECTIONS * PER_CONNECTION }, () => ({
    ...CC,
    ...bearer(clientId, own),
  }));
  const sent = Array.from({ length: CONNECTIONS }, (_, index) =>
    pipeline(world, forms.slice(index * PER_CONNECTION, (index + 1) * PER_CONNECTION)),
  );
  for (const [path, { resolve }] of [["/many", gate] as const, ["/many-keys", keysGate] as const]) {
    await until(() => here.requests(path).length > 0, `${path} is fetched`);
    // The server reads this after everything that was sent before, so all requests have arrived.
    await world.get("/jwks");
    resolve();
  }
  assert.deepEqual(new Set((await Promise.all(sent)).flat()), new Set(["200"]));
  assert.deepEqual([here.requests("/many").length, here.requests("/many-keys").length], [1, 1]);
});

// --- configuration ------------------------------------------------------------------------------------------------

const readConfig = (): Record<string, unknown> => JSON.parse(readFileSync(world.configFile, "utf8"));

/** Reloads the server with a changed configuration. */
async function reload(change: (config: ReturnType<typeof readConfig>) => object): Promise<void> {
  writeFileSync(world.configFile, JSON.stringify(change(readConfig())));
  assert.deepEqual(await world.server.reload(), []);
}

const REMOVALS: readonly [string, string, (config: ReturnType<typeof readConfig>) => object][] = [
  ["PROD-4.4-12", "documents are disabled", ({ clientMetadataDocuments: _, ...config }) => config],
  [
    "CIMD-8.9-1, MCP-S.7.3-1",
    "its origin is not in the allow-list",
    (config) => ({ ...config, clientMetadataDocuments: { origins: [elsewhere.origin] } }),
  ],
  [
    "CIMD-8.6-1",
    "the private network of its origin is not permitted",
    ({ clientOrigins, ...config }) => ({
      ...config,
      clientOrigins: { ...Object(clientOrigins), [here.origin]: { ca: { file: "here.pem" } } },
    }),
  ],
  [
    "CIMD-8.6-1, PROD-4.3r1-1",
    "the authority of its origin is removed",
    ({ clientOrigins, ...config }) => ({
      ...config,
      clientOrigins: { ...Object(clientOrigins), [here.origin]: { privateNetworks: LOOPBACK } },
    }),
  ],
];
let unknowns = 0;
for (const [id, what, change] of REMOVALS) {
  test(`${id} a client is refused at once when ${what}, and accepted again when that is undone`, async (t) => {
    const before = readConfig();
    t.after(() => reload(() => before));
    const clients = ["jwks", "jwks-uri"].map((name) => `${here.origin}/${name}`);
    for (const clientId of clients) assertClient(await askByKey(clientId), clientId);
    const asked = here.count();
    await reload(change);
    const unknown = publish(here, `/never/${++unknowns}`, byKey({ jwks: { keys: [own.jwk] } }));
    for (const clientId of [...clients, unknown]) assertRefused(await askByKey(clientId));
    assert.equal(here.count(), asked);
    await reload(() => before);
    for (const clientId of clients) assertClient(await askByKey(clientId), clientId);
  });
}

test("CIMD-8.9-1 clients of an origin in the allow-list are still accepted", async (t) => {
  const before = readConfig();
  t.after(() => reload(() => before));
  await reload((config) => ({ ...config, clientMetadataDocuments: { origins: [elsewhere.origin] } }));
  const clientId = `${elsewhere.origin}/jwks-uri`;
  assertClient(await askByKey(clientId), clientId);
});

test("CIMD-8.2-3, CIMD-8.6-1 keys of another origin are accepted only with foreignKeys", async (t) => {
  const before = readConfig();
  t.after(() => reload(() => before));
  const jwks_uri = publishKeys(elsewhere, "/foreign-keys", [own]);
  const clientId = publish(here, "/foreign", byKey({ jwks_uri }));
  assertRefused(await askByKey(clientId));
  assert.equal(elsewhere.requests("/foreign-keys").length, 0);
  await reload((config) => ({ ...config, clientMetadataDocuments: { foreignKeys: true } }));
  assertClient(await askByKey(clientId), clientId);
  // CIMD-8.6-1: the address rules apply to keys of another origin too.
  const inside = byKey({ jwks_uri: jwks_uri.replace("localhost", "127.0.0.1") });
  assertRefused(await askByKey(publish(here, "/inside", inside)));
  await reload(() => before);
  assertRefused(await askByKey(clientId));
  assert.equal(elsewhere.requests("/foreign-keys").length, 1);
});

for (const [what, admit, isAdmitted] of [
  ["none", "none", false],
  ["other workloads", [workload("crew/*")], false],
  ["this workload", [workload("agents/*")], true],
] as const) {
  test(`HTTP-D-32, SPCA-3.1-8, SPCA-5-2 a document does not override admit of the trust domain: ${what} admitted`, async (t) => {
    const before = readConfig();
    t.after(() => reload(() => before));
    await reload((config) => ({
      ...config,
      trustDomains: { [TRUST_DOMAIN]: { ...Object(config.trustDomains)[TRUST_DOMAIN], admit } },
    }));
    for (const name of ["jwt-svid", "x509-svid"]) {
      const clientId = `${here.origin}/${name}`;
      const answer = await askByWorkload(clientId);
      if (isAdmitted) assertClient(answer, clientId);
      else assertRefused(answer);
    }
  });
}

test("CIMD-8.6-3, CIMD-8.6-2 loopback is permitted in development, and a production configuration with it is refused", async () => {
  const config = readConfig();
  const production = (privateNetworks: readonly string[]): string => {
    const file = join(world.folder, "production.json");
    const clientOrigins = { "https://agents.example": { privateNetworks } };
    const { listen, issuer, keys, drafts, clientMetadataDocuments } = config;
    const rest = { version: 1, listen, issuer, keys, drafts, clientMetadataDocuments, clientOrigins };
    const apart = { audit: { instance: "production" }, store: { sqlite: "production.sqlite" } };
    writeFileSync(file, JSON.stringify({ ...rest, ...apart, profile: "production" }));
    return file;
  };
  const problem = "opens loopback, which only the development profile allows";
  for (const network of ["127.0.0.0/8", "127.0.0.1/32", "::1/128", "0.0.0.0/0", "::/0"]) {
    const loaded = loadConfig(production(["10.0.0.0/8", network]));
    const want = [`clientOrigins.https://agents.example.privateNetworks: ${problem}`];
    assert.deepEqual(loaded, { ok: false, error: want });
  }
  await assert.rejects(startServer(production(["10.0.0.0/8", "::1/128"])), new RegExp(problem));
  await (await startServer(production(["10.0.0.0/8"]))).stop();
});

// --- budget of fetches --------------------------------------------------------------------------------------------

test("HTTP-D-34, PROD-8.3-1, CIMD-5.2-3 fetches have a budget by source and by host, and known clients are not affected by it", async (t) => {
  const { clientOrigins, files } = openTo({ here, elsewhere });
  const scarce = await makeWorld(
    {
      clientMetadataDocuments: {},
      clientOrigins,
      drafts: [SPIFFE_DRAFT, DRAFT],
      targets: [{ names: [API], scopes: ["read"] }],
      policies: [
        {
          id: "all",
          allow: "client_credentials",
          targets: [API],
          scopes: ["read"],
          clients: [`${here.origin}/*`, `${elsewhere.origin}/*`],
        },
      ],
      limits: { fetchesPerMinuteBySource: 3, fetchesPerMinuteByHost: 6 },
    },
    { files },
  );
  t.after(() => scarce.stop());
  const [one, two, three, four, five] = ["one", "two", "three", "four", "five"].map((name) =>
    publish(here, `/scarce/${name}`, byKey({ jwks: { keys: [own.jwk] } })),
  ) as [string, string, string, string, string];
  const another = publish(elsewhere, "/scarce/one", byKey({ jwks: { keys: [own.jwk] } }));
  const from = (address: string, clientId: string, key = own) =>
    askFrom(scarce, address, { ...CC, ...bearer(clientId, key) });

  // Two documents and a failure use up the budget; a wrong key for a known document costs nothing.
  assert.equal((await from("127.0.0.2", one)).status, 200);
  assert.equal((await from("127.0.0.2", two)).status, 200);
  assert.equal((await from("127.0.0.2", one, otherKey)).error, "invalid_client");
  assert.equal((await from("127.0.0.2", `${here.origin}/nowhere`)).error, "invalid_client");
  const asked = here.count();
  const refused = await from("127.0.0.2", three);
  assert.deepEqual([refused.status, refused.error], [429, "temporarily_unavailable"]);
  const wait = Number(refused.retryAfter);
  assert.ok(wait >= 1 && wait <= 20, `${refused.retryAfter} s`);
  assert.equal(here.count(), asked);
  assert.equal((await from("127.0.0.2", one)).status, 200);

  // Another source has its own budget, and the host has one for all sources.
  for (const clientId of [three, four, five]) assert.equal((await from("127.0.0.3", clientId)).status, 200);
  for (const clientId of [another, `${here.origin}/scarce/six`]) {
    const late = await from("127.0.0.4", clientId);
    assert.deepEqual([late.status, late.error], [429, "temporarily_unavailable"]);
    assert.match(late.retryAfter ?? "", /^\d+$/);
  }
  for (const clientId of [one, five]) assert.equal((await from("127.0.0.4", clientId)).status, 200);
  assert.equal(here.count(), asked + 3);
});

type Short = { status: number | undefined; error: unknown; retryAfter: string | undefined };

/** A token request from a given loopback address. */
function askFrom({ server, ca }: World, localAddress: string, form: Form): Promise<Short> {
  const { promise, resolve, reject } = Promise.withResolvers<Short>();
  const tls: ConnectionOptions = { host: "127.0.0.1", port: server.port, servername: "as.example", ca };
  const headers = { host: "as.example", "content-type": "application/x-www-form-urlencoded" };
  const options = { ...tls, localAddress, agent: false, method: "POST", path: "/token", headers };
  const outgoing = request(options as object, async (response) => {
    const { error } = JSON.parse(await text(response));
    resolve({ status: response.statusCode, error, retryAfter: response.headers["retry-after"] });
  });
  outgoing.on("error", reject);
  outgoing.end(new URLSearchParams(form as Record<string, string>).toString());
  return promise;
}

// --- after half a minute ------------------------------------------------------------------------------------------

const later = (): void => world.pass(Math.max(0, 32 - world.passed()));

test("CIMD-5-2, CIMD-5.2-2 after half a minute the new content of a document replaces the old", async () => {
  later();
  assertRefused(await askByKey(ageingAt("changing")));
  assertClient(await askByKey(ageingAt("changing"), newer), ageingAt("changing"));
  assert.equal(looksAt("changing"), 2);
});

test("CIMD-5.2-2, PROD-4.3-6 a document with an ETag is fetched conditionally", async () => {
  later();
  for (let round = 0; round < 2; round++) {
    assertClient(await askByKey(ageingAt("unchanged")), ageingAt("unchanged"));
  }
  assertRefused(await askByKey(ageingAt("replaced")));
  assertClient(await askByKey(ageingAt("replaced"), newer), ageingAt("replaced"));
  for (const name of ["unchanged", "replaced"]) {
    const named = here.requests(`/ageing/${name}`).map(({ headers }) => headers.get("if-none-match"));
    assert.deepEqual(named, [null, '"1"']);
  }
});

test("MCPC-D-17, CIMD-5.1-1, CIMD-5.2-3, CIMD-5.2-4 a document that was good and is missing or invalid is refused until it is valid again", async () => {
  later();
  for (const name of ["gone", "broken"]) {
    for (const looks of [2, 3]) {
      const { status, body, headers } = await askByKey(ageingAt(name));
      const want =
        name === "gone" ? [503, "temporarily_unavailable", "10"] : [400, "invalid_client", undefined];
      assert.deepEqual([status, body.error, headers["retry-after"]], want);
      assert.equal(looksAt(name), looks);
    }
    publish(here, `/ageing/${name}`, inline);
    assertClient(await askByKey(ageingAt(name)), ageingAt(name));
  }
});

test("CIMD-5.2-2 a document with a longer max-age or without one is cached for longer", async () => {
  later();
  for (const name of ["without-word", "for-long"]) {
    assertClient(await askByKey(ageingAt(name)), ageingAt(name));
    assert.equal(looksAt(name), 1);
  }
});

test("RFC8725-3.10-v1, PROD-2.2-14 a new key at jwks_uri is found when it is first used, and the old one is refused from then on", async () => {
  later();
  assertClient(await askByKey(ageingAt("rotating")), ageingAt("rotating"));
  assertClient(await askByKey(ageingAt("rotating"), newer), ageingAt("rotating"));
  assert.equal(looksAt("rotating-keys"), 2);
  assertRefused(await whilePassing(world, EARLY_LOOK_SECONDS, askByKey(ageingAt("rotating"))));
  assert.deepEqual([looksAt("rotating-keys"), looksAt("rotating")], [3, 1]);
});

test("RFC7517-9.1-1 keys that cannot be fetched are taken from the last good copy", async () => {
  later();
  assertClient(await askByKey(ageingAt("keys-gone")), ageingAt("keys-gone"));
  assertRefused(await askByKey(ageingAt("keys-gone"), newer));
  assert.equal(looksAt("keys-gone-keys"), 3, "once because it is stale, once for the unknown key");
});

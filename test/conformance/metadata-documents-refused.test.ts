/**
 * Metadata documents that are refused, over real TLS: each for its own reason, which the audit trail has, and all with
 * the same response, which does not reveal what is at a URL.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { issueClientCertificate, makeAuthority, mintX509Svid } from "../../scripts/dev-pki.ts";
import type { Answer } from "../../scripts/http-client.ts";
import { DRAFT } from "../../src/spec/cimd.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import {
  bearer,
  type Key,
  makeKey,
  openTo,
  type Page,
  type Publisher,
  startPublisher,
} from "../support/documents.ts";
import { stop } from "../support/stop.ts";
import { type Certificate, type Form, makeWorld, type World, workload } from "../support/world.ts";
import { assertShort, type Stretch, stretch } from "../support/yardstick.ts";

const API = "https://api.example";
const CC = { grant_type: "client_credentials", audience: API };
const DOCUMENT_BYTES_MAX = 5120;
const cart = workload("agents/cart");
const [own, otherKey] = (await Promise.all(["k1", "k1"].map(makeKey))) as [Key, Key];
const pinned = await issueClientCertificate(await makeAuthority("Unknown authority"), ["pinned.example"]);

let server: Publisher;
/** A server of another origin that the configuration permits too. */
let elsewhere: Publisher;
/** A server on loopback that the configuration does not permit, named by its address, so that no DNS is involved. */
let closed: Publisher;
let world: World;
/** An origin at which no server listens. */
let deserted: string;
/** How long a client is waited for whose server does not answer. */
let waiting: Promise<Stretch>;

before(async () => {
  [server, elsewhere, closed] = await Promise.all([startPublisher(), startPublisher(), startPublisher()]);
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  deserted = `https://localhost:${(listener.address() as AddressInfo).port}`;
  listener.close();
  closed = { ...closed, origin: closed.origin.replace("localhost", "127.0.0.1") };
  const { clientOrigins, files } = openTo({ server, elsewhere });
  world = await makeWorld(
    {
      clientMetadataDocuments: {
        origins: [server, closed, { origin: deserted }].map(({ origin }) => origin),
      },
      clientOrigins: { ...clientOrigins, [deserted]: clientOrigins[server.origin] },
      drafts: [SPIFFE_DRAFT, DRAFT],
      targets: [{ names: [API], scopes: ["read"] }],
      policies: [
        {
          id: "all",
          allow: "client_credentials",
          targets: [API],
          scopes: ["read"],
          clients: [server, elsewhere, closed, { origin: deserted }].map(({ origin }) => `${origin}/*`),
        },
      ],
      limits: {
        failuresPerMinuteBySource: 100_000,
        failuresPerMinuteByClient: 100_000,
        fetchesPerMinuteBySource: 100_000,
        fetchesPerMinuteByHost: 100_000,
      },
    },
    { files },
  );
  waiting = measureTimeout();
  // Looked at by its own test.
  waiting.catch(() => undefined);
});

after(() => stop(world, server, elsewhere, closed));

/** The time that a request takes whose document server does not respond; it runs beside the other tests. */
async function measureTimeout(): Promise<Stretch> {
  const path = newPath();
  const clientId = server.origin + path;
  server.pages.set(path, { after: sleep(60_000, undefined, { ref: false }), body: documentOf(clientId) });
  const waited = stretch();
  await assertRefused("document_timeout", bearer(clientId, own));
  const [endedMs, busy] = [waited.tookMs(), waited.wasBusy()];
  return { tookMs: () => endedMs, wasBusy: () => busy };
}

// --- requests and refusals ----------------------------------------------------------------------------------------

/** The number of refusals that the audit trail must have at the end, by reason. */
const expected = new Map<string, number>();
/** The first refusal; every other one must look the same. */
let seen: Pick<Answer, "status" | "headers" | "text"> | undefined;

async function assertRefused(reason: string, form: Form, certificate: Certificate = {}): Promise<void> {
  const answer = await world.token({ ...CC, ...form }, {}, certificate);
  expected.set(reason, (expected.get(reason) ?? 0) + 1);
  const { date: _, "x-request-id": id, ...headers } = answer.headers;
  assert.ok(id);
  const shown = { status: answer.status, headers, text: answer.text };
  seen ??= shown;
  assert.deepEqual(shown, seen);
  assert.deepEqual([answer.status, answer.body.error], [400, "invalid_client"]);
}

async function assertClient(form: Form, certificate: Certificate = {}): Promise<void> {
  const answer = await world.token({ ...CC, ...form }, {}, certificate);
  assert.equal(answer.status, 200, answer.text);
}

const KEYS = { jwks: { keys: [own.jwk] } };

const documentOf = (clientId: string, members: object = KEYS): string =>
  JSON.stringify({
    client_id: clientId,
    token_endpoint_auth_method: "private_key_jwt",
    grant_types: ["client_credentials"],
    ...members,
  });

let paths = 0;
const newPath = (): string => `/d${++paths}`;

/** The assertion is valid, so that the document alone is the reason of the refusal. */
async function assertPageRefused(reason: string, build: (clientId: string) => Page): Promise<void> {
  const path = newPath();
  const clientId = server.origin + path;
  server.pages.set(path, build(clientId));
  for (const looks of [1, 2]) {
    await assertRefused(reason, bearer(clientId, own));
    // CIMD-5.2-3, CIMD-5.2-4: a refused document is not cached.
    assert.equal(server.requests(path).length, looks);
  }
  server.pages.set(path, { body: documentOf(clientId) });
  await assertClient(bearer(clientId, own));
}

// --- responses ----------------------------------------------------------------------------------------------------

const padded = (text: string, bytes: number): string => text + " ".repeat(bytes - text.length);

const ANSWERS: [id: string, what: string, page: (good: string) => Page, reason: string][] = [
  ["CIMD-5.1-1, CIMD-3-10", "a status of 404", (body) => ({ status: 404, body }), "document_status"],
  ["CIMD-5-4, CIMD-4-3", "a status of 201", (body) => ({ status: 201, body }), "document_status"],
  ["CIMD-4-4, PROD-4.3-4", "HTML", (body) => typed("text/html", body), "document_type_refused"],
  [
    "CIMD-4-4, PROD-4.3-5",
    "a key set",
    (body) => typed("application/jwk-set", body),
    "document_type_refused",
  ],
  [
    "CIMD-8.7-1, PROD-4.3r3-2, PROD-8.4-2",
    "one byte more than 5 KiB",
    (good) => ({ body: padded(good, DOCUMENT_BYTES_MAX + 1) }),
    "document_too_large",
  ],
  [
    "CIMD-8.7-1",
    "a content encoding",
    (body) => ({ body, headers: { "content-encoding": "gzip" } }),
    "document_encoded",
  ],
  ["PROD-4.3-2", "content that is not JSON", () => ({ body: "a: b" }), "document_json_malformed"],
  [
    "PROD-4.3-2",
    "a duplicate member",
    (good) => ({ body: good.replace("{", '{"client_id":"https://other.example/a",') }),
    "document_json_duplicate_member",
  ],
];
const typed = (type: string, body: string): Page => ({ body, headers: { "content-type": type } });

for (const [id, what, page, reason] of ANSWERS) {
  test(`${id} a response with ${what} is refused each time, and the document is accepted when it is corrected`, () =>
    assertPageRefused(reason, (clientId) => page(documentOf(clientId))));
}

test("CIMD-8.7-1, CIMD-4-4, PROD-8.4-2 a document of 5 KiB, and one of a +json media type, are accepted", async () => {
  const [large, special] = [newPath(), newPath()].map((path) => server.origin + path) as [string, string];
  server.pages.set(new URL(large).pathname, { body: padded(documentOf(large), DOCUMENT_BYTES_MAX) });
  server.pages.set(new URL(special).pathname, typed("application/client+json", documentOf(special)));
  for (const clientId of [large, special]) await assertClient(bearer(clientId, own));
});

for (const status of [302, 308]) {
  test(`CIMD-5-5, PROD-4.3-5 a redirect with ${status} is not followed, even to a valid document`, async () => {
    const path = newPath();
    const clientId = server.origin + path;
    const goal = server.origin + newPath();
    server.pages.set(new URL(goal).pathname, { body: documentOf(clientId) });
    server.pages.set(path, { status, headers: { location: goal } });
    await assertRefused("document_redirected", bearer(clientId, own));
    assert.equal(server.requests(new URL(goal).pathname).length, 0);
  });
}

// --- content of documents -----------------------------------------------------------------------------------------

const SAYS: [id: string, what: string, members: (clientId: string) => object, reason: string][] = [
  ["CIMD-4-1", "no client_id", () => ({ client_id: undefined, ...KEYS }), "document_client_id_missing"],
  [
    "CIMD-4-2, MCP-R.1-2, PROD-2.2-3",
    "the client_id of another path",
    (clientId) => ({ client_id: `${clientId}0`, ...KEYS }),
    "document_client_id_differs",
  ],
  [
    "CIMD-4.1-1, PROD-2.2-12",
    "the method client_secret_basic",
    () => ({ token_endpoint_auth_method: "client_secret_basic", ...KEYS }),
    "document_method_secret",
  ],
  ["CIMD-4.1-2", "a secret", () => ({ client_secret: "s", ...KEYS }), "document_secret"],
  [
    "CIMD-4.1-3",
    "a private key",
    () => ({ jwks: { keys: [own.jwk, { ...otherKey.jwk, d: otherKey.jwk.x }] } }),
    "document_keys_private",
  ],
  [
    "CIMD-4.1-4",
    "a secret among its methods",
    () => ({ token_endpoint_auth_methods_supported: ["private_key_jwt", "client_secret_post"], ...KEYS }),
    "document_method_secret",
  ],
  ["CIMD-8.2-4", "the method none", () => ({ token_endpoint_auth_method: "none" }), "document_public"],
  [
    "CIMD-8.2-5",
    "a method that its list of methods lacks",
    () => ({ token_endpoint_auth_methods_supported: ["spiffe_jwt"], ...KEYS }),
    "document_methods_disagree",
  ],
  [
    "CIMD-8.2-6, CHG-D-5",
    "a method that needs a configured authority",
    () => ({ token_endpoint_auth_method: "tls_client_auth", tls_client_auth_san_dns: "a.example" }),
    "document_method_unsupported",
  ],
  [
    "PROD-2.2-10",
    "a method that is not a string",
    () => ({ token_endpoint_auth_method: ["private_key_jwt"] }),
    "document_method_malformed",
  ],
  ["CIMD-8.2-3, PROD-2.2-15", "no keys", () => ({}), "document_keys_missing"],
  [
    "PROD-4.3r1-1, CIMD-8.6-5",
    "a jwks_uri in plain HTTP",
    (clientId) => ({ jwks_uri: `${clientId.replace("https", "http")}-keys` }),
    "document_jwks_uri_refused",
  ],
  [
    "CIMD-8.6-1",
    "a jwks_uri with userinfo",
    (clientId) => ({ jwks_uri: clientId.replace("//", "//good.example@") }),
    "document_jwks_uri_refused",
  ],
  [
    "CIMD-4.2-2, PROD-2.2-15",
    "a redirect grant without redirect_uris",
    () => ({ grant_types: ["authorization_code"], ...KEYS }),
    "document_redirect_uris_missing",
  ],
  [
    "PROD-2.2-17",
    "grant types that are not a list",
    () => ({ grant_types: "a", ...KEYS }),
    "document_grant_types_refused",
  ],
  [
    "SPCA-5.1-1",
    "a SPIFFE method without a SPIFFE ID",
    () => ({ token_endpoint_auth_method: "spiffe_jwt" }),
    "document_spiffe_id_missing",
  ],
  [
    "SPCA-5.1-2",
    "the SPIFFE ID of a whole trust domain",
    () => ({ token_endpoint_auth_method: "spiffe_jwt", spiffe_id: "spiffe://td.example/*" }),
    "document_spiffe_id_refused",
  ],
  [
    "RFC7591-2-21",
    "a text that says whether tokens are bound",
    () => ({ dpop_bound_access_tokens: "true", ...KEYS }),
    "document_dpop_bound_access_tokens_refused",
  ],
];
for (const [id, what, members, reason] of SAYS) {
  test(`${id} a document with ${what} is refused`, async () => {
    await assertPageRefused(reason, (clientId) => ({ body: documentOf(clientId, members(clientId)) }));
  });
}

/** Valid documents, which are cached, but refused by the configuration. */
const FORBIDDEN: typeof SAYS = [
  [
    "CIMD-8.2-3",
    "a jwks_uri of another origin",
    () => ({ jwks_uri: `${elsewhere.origin}/keys` }),
    "document_keys_foreign",
  ],
  [
    "SPCA-5.1-5, SPCA-6.1-4",
    "a bundle endpoint of its own",
    (clientId) => ({
      token_endpoint_auth_method: "spiffe_jwt",
      spiffe_id: cart,
      spiffe_bundle_endpoint: `${clientId}-bundle`,
    }),
    "document_bundle_endpoint_differs",
  ],
];
for (const [id, what, members, reason] of FORBIDDEN) {
  test(`${id} a document with ${what} is refused, and nothing is fetched for it`, async () => {
    const path = newPath();
    const clientId = server.origin + path;
    server.pages.set(path, { body: documentOf(clientId, members(clientId)) });
    const asked = [server.count(), elsewhere.count()] as const;
    await assertRefused(reason, bearer(clientId, own));
    await assertRefused(reason, { ...world.as(await world.svid("agents/cart")), client_id: clientId });
    assert.deepEqual([server.count(), elsewhere.count()], [asked[0] + 1, asked[1]]);
  });
}

test("CIMD-4.3-1, RFC7591-2-20 a document with unknown members is accepted, and they are ignored", async () => {
  const path = newPath();
  const clientId = server.origin + path;
  const more = { software_statement: "a.b.c", workload: cart, source: "operator", __proto__: { a: 1 } };
  server.pages.set(path, { body: documentOf(clientId, { ...KEYS, ...more }) });
  await assertClient(bearer(clientId, own));
});

// --- URLs of documents --------------------------------------------------------------------------------------------

const PLACES: [id: string, what: string, clientId: () => string, reason: string][] = [
  ["CIMD-3-2", "with a user", () => server.origin.replace("//", "//user@") + newPath(), "url_userinfo"],
  ["CIMD-3-4", "without a path", () => server.origin, "url_path_missing"],
  ["CIMD-3-5", "with dots", () => `${server.origin}/a/..${newPath()}`, "url_dot_segment"],
  ["CIMD-3-6", "with a query", () => `${server.origin}${newPath()}?a=b`, "url_query"],
  ["CIMD-3-7", "with a fragment", () => `${server.origin}${newPath()}#a`, "url_fragment"],
  ["CIMD-3-9", "with the path / alone", () => `${server.origin}/`, "url_path_bare"],
  ["CIMD-3-8", "with a backslash", () => `${server.origin}\\${newPath()}`, "url_character_refused"],
  ["CIMD-3-3", "with an invalid port", () => `https://localhost:65536${newPath()}`, "url_port_refused"],
  [
    "CIMD-8.9-1",
    "of an origin outside of the allow-list",
    () => elsewhere.origin + newPath(),
    "document_origin_refused",
  ],
  [
    "CIMD-8.6-1, PROD-4.3r2-1",
    "on loopback",
    () => closed.origin.replace("localhost", "127.0.0.1") + newPath(),
    "document_address_refused",
  ],
  ["CIMD-5.1-1", "at which no server listens", () => deserted + newPath(), "document_connection_failed"],
];
for (const [id, what, build, reason] of PLACES) {
  test(`${id} the URL of a document ${what} is refused`, async () => {
    const asked = [server, elsewhere, closed].map((one) => one.count());
    const clientId = build();
    await assertRefused(reason, bearer(clientId, own));
    await assertRefused(reason, { ...world.as(await world.svid("agents/cart")), client_id: clientId });
    assert.deepEqual(
      [server, elsewhere, closed].map((one) => one.count()),
      asked,
    );
  });
}

test("PROD-4.3r3-1, PROD-4.3r3-2 a server that does not respond within five seconds is given up", async (t) => {
  const waited = await waiting;
  assert.ok(waited.tookMs() > 4900);
  assertShort(waited, 6500, "a document that does not come", t);
});

// --- key sets -----------------------------------------------------------------------------------------------------

const keySet = (...keys: readonly object[]): string => JSON.stringify({ keys });
const KEY_SETS: [id: string, what: string, page: Page, reason: string][] = [
  ["CIMD-5-4", "that does not exist", { status: 404, body: keySet(own.jwk) }, "key_set_status"],
  ["CIMD-8.7-1", "in HTML", typed("text/html", keySet(own.jwk)), "key_set_type_refused"],
  ["RFC7517-9.2-1", "with a private key", { body: keySet({ ...own.jwk, d: own.jwk.x }) }, "jwk_set_private"],
  [
    "RFC7517-5-1",
    "with a duplicate member",
    { body: `{"keys":[],${keySet(own.jwk).slice(1)}` },
    "jwk_set_malformed",
  ],
  ["RFC7517-4.5-1", "with other keys", { body: keySet({ ...own.jwk, kid: "k2" }) }, "key_unknown"],
  ["RFC7523-3-16", "with the key of another client", { body: keySet(otherKey.jwk) }, "signature_invalid"],
];
for (const [id, what, page, reason] of KEY_SETS) {
  test(`${id}, CIMD-8.2-3 a key set ${what} is refused`, async () => {
    const path = newPath();
    const clientId = server.origin + path;
    server.pages.set(path, { body: documentOf(clientId, { jwks_uri: `${clientId}-keys` }) });
    server.pages.set(`${path}-keys`, page);
    await assertRefused(reason, bearer(clientId, own));
  });
}

test("CIMD-8.6-1, CIMD-5-5 keys are fetched like documents: without redirects, and only from permitted origins", async () => {
  const [redirected, inside] = [newPath(), newPath()] as const;
  server.pages.set("/goal", { body: keySet(own.jwk) });
  server.pages.set(`${redirected}-keys`, { status: 302, headers: { location: `${server.origin}/goal` } });
  for (const [path, jwks_uri, reason] of [
    [redirected, `${server.origin}${redirected}-keys`, "key_set_redirected"],
    [inside, `${closed.origin}/keys`, "document_keys_foreign"],
  ] as const) {
    server.pages.set(path, { body: documentOf(server.origin + path, { jwks_uri }) });
    await assertRefused(reason, bearer(server.origin + path, own));
  }
  assert.deepEqual([server.requests("/goal").length, closed.count()], [0, 0]);
});

// --- client authentication ----------------------------------------------------------------------------------------

test("HTTP-D-34, CIMD-8.2-2, CIMD-8.2-3, SPCA-3.1-12, SPCA-3.2-8 failed authentication with a valid document gets the same response", async () => {
  const publish = (members: object): string => {
    const path = newPath();
    server.pages.set(path, { body: documentOf(server.origin + path, members) });
    return server.origin + path;
  };
  const [byKey, byJwt, byCertificate] = [
    publish(KEYS),
    publish({ token_endpoint_auth_method: "spiffe_jwt", spiffe_id: cart }),
    publish({ token_endpoint_auth_method: "spiffe_x509", spiffe_id: cart }),
  ];
  const svid = async (path: string, client_id: string): Promise<Form> => ({
    ...world.as(await world.svid(path)),
    client_id,
  });
  const x509 = async (path: string): Promise<Certificate> => {
    const { keyPem, chainPem } = await mintX509Svid(world.trustDomain, workload(path));
    return { key: keyPem, cert: chainPem };
  };
  const strange: Certificate = { key: pinned.keyPem, cert: pinned.certPem };
  await assertClient(bearer(byKey, own));
  await assertClient(await svid("agents/cart", byJwt));
  await assertClient({ client_id: byCertificate }, await x509("agents/cart"));

  await assertRefused("signature_invalid", bearer(byKey, otherKey));
  await assertRefused("key_unknown", bearer(byKey, { ...own, jwk: { ...own.jwk, kid: "k2" } }));
  await assertRefused("method_not_registered", bearer(byJwt, own));
  await assertRefused("method_not_registered", await svid("agents/cart", byKey));
  await assertRefused("method_not_registered", { client_id: byKey }, await x509("agents/cart"));
  await assertRefused("workload_not_associated", await svid("agents/other", byJwt));
  await assertRefused("workload_not_associated", { client_id: byCertificate }, await x509("agents/other"));
  await assertRefused("svid_uri_missing", { client_id: byCertificate }, strange);
  await assertRefused("credentials_missing", { client_id: byKey });
  await assertRefused("client_unknown", { client_id: byKey, client_secret: "a-secret" });
  await assertRefused("client_unknown", bearer("unknown", own));
});

// --- audit trail and log ------------------------------------------------------------------------------------------

test("CIMD-5.1-1, AUDIT-D-2, PROD-7.2-2 the audit trail has every refusal with its reason", async () => {
  await world.server.stop();
  const failures = (await world.events()).filter(({ type }) => type === "client.auth_failed");
  const counted = new Map<string, number>();
  for (const { reason, count } of failures) counted.set(reason, (counted.get(reason) ?? 0) + Number(count));
  assert.deepEqual(Object.fromEntries([...counted].sort()), Object.fromEntries([...expected].sort()));
});

test("RFC6749-10.14-1 the log has a printable line for each fetch, and no content of requests or documents", () => {
  const fetched = world.server.lines.filter((line) => line.includes('"fetched":"client_url"'));
  assert.equal(fetched.length, server.count() + elsewhere.count() + unanswered());
  for (const line of fetched) assert.match(line, /^\{[ -~]+\}$/);
  for (const line of world.server.lines) assert.doesNotMatch(line, /client_assertion|"x":|javascript:/);
});

/** The number of fetches that reached no server of the test. */
const unanswered = (): number =>
  ["document_address_refused", "document_connection_failed"].reduce(
    (sum, reason) => sum + (expected.get(reason) ?? 0),
    0,
  );

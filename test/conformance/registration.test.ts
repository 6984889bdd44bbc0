/**
 * POST /register over TLS (RFC 7591): which metadata are accepted, the response, and that each client then authenticates
 * at the token endpoint with its registered method. What the store decides is tested with both stores.
 */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { request as send } from "node:https";
import { type AddressInfo, createConnection, createServer, type Server } from "node:net";
import { after, before, test } from "node:test";
import { connect } from "node:tls";
import { derOf, makeKeyPem, publicJwk } from "../../scripts/dev-keys.ts";
import { issueClientCertificate, makeAuthority, mintX509Svid } from "../../scripts/dev-pki.ts";
import { type Answer, basic, type Form } from "../../scripts/http-client.ts";
import { createInitialToken } from "../support/host.ts";
import { freshDatabase, type SharedPostgres, sharePostgres } from "../support/postgres.ts";
import {
  API,
  assertError,
  assertion,
  assertRegistered,
  assertToken,
  bearer,
  byBasic,
  CC,
  GRANT_TYPES,
  JSON_TYPE,
  lastEvent,
  type Metadata,
  PATIENT,
  post,
  type Registered,
  reload,
} from "../support/registration.ts";
import { stop } from "../support/stop.ts";
import { type DocumentServer, LOOPBACK, startDocumentServer } from "../support/web.ts";
import {
  type Certificate,
  EXCHANGE,
  IDP,
  ISSUER,
  makeWorld,
  TRUST_DOMAIN,
  type World,
  workload,
} from "../support/world.ts";

const STATEMENTS = "https://statements.example";

const [keyPem, otherKeyPem, vouchedKeyPem, corporate] = await Promise.all([
  makeKeyPem(),
  makeKeyPem(),
  makeKeyPem(),
  makeAuthority("Corporate authority"),
]);
const jwk = { ...publicJwk(keyPem), kid: "k1" };
const [crewCertificate, strangeCertificate] = await Promise.all([
  issueClientCertificate(corporate, ["crew.example"]),
  issueClientCertificate(corporate, ["strange.example"]),
]);

const configuration = (origin: string) => ({
  registration: { tlsAuthorities: { file: "corporate.pem" } },
  clientOrigins: { [origin]: { ca: { file: "documents.pem" }, privateNetworks: LOOPBACK } },
  trustDomains: { [TRUST_DOMAIN]: { bundle: { file: "bundle.json" }, admit: [workload("agents/*")] } },
  agents: { [workload("agents/planner")]: { title: { en: "Trip planner", de: "Reiseplaner" } } },
  targets: [{ names: [API], scopes: ["read", "write"] }],
  policies: [
    { id: "crew", allow: "client_credentials", classes: ["crew"], targets: [API], scopes: ["read", "write"] },
  ],
  limits: PATIENT,
});

let documents: DocumentServer;
/** Counts connections and closes them. */
let internal: Server;
let callers = 0;
let database: SharedPostgres;
let world: World;
/** The same on PostgreSQL. */
let shared: World;
const crew = new Map<World, string>();

before(async () => {
  documents = await startDocumentServer();
  documents.documents.set("/keys", { keys: [jwk] });
  internal = createServer((socket) => {
    callers++;
    socket.destroy();
  });
  await new Promise<void>((resolve) => internal.listen(0, "127.0.0.1", resolve));
  database = await sharePostgres();
  const files = { "corporate.pem": corporate.certPem, "documents.pem": documents.ca };
  const options = { idp: { statements: true }, files };
  const postgres = await freshDatabase(database);
  [world, shared] = await Promise.all([
    makeWorld(configuration(documents.origin), options),
    makeWorld(configuration(documents.origin), { ...options, postgres }),
  ]);
  for (const one of [world, shared]) crew.set(one, await createInitialToken(one, "crew", "--uses", "1000"));
});

after(() => stop(world, shared, database, documents, internal));

const stores: readonly (readonly [string, () => World])[] = [
  ["SQLite", () => world],
  ["PostgreSQL", () => shared],
];

const asCrew = (at = world): Record<string, string> => bearer(crew.get(at) ?? "");
const postAsCrew = (body: Metadata | string, at = world): Promise<Answer> => post(at, body, asCrew(at));
const register = async (metadata: Metadata, at = world): Promise<Registered> =>
  assertRegistered(await postAsCrew(metadata, at));

// --- the response -----------------------------------------------------------------------------------------------

for (const [name, at] of stores) {
  test(`RFC6750-5.2-1, RFC7591-3.2-1, RFC7591-3.2.1-10, PROD-2.7-2, PROD-3-1, PROD-4.2-6 a registration gets 201 and the complete record (${name})`, async () => {
    const answer = await postAsCrew({ client_name: "Ledger Sync", contacts: ["ops@crew.example"] }, at());
    assert.equal(answer.status, 201, answer.text);
    for (const [field, value] of [
      ["content-type", "application/json"],
      ["cache-control", "no-store"],
      ["pragma", "no-cache"],
    ] as const) {
      assert.equal(answer.headers[field], value);
    }
    assert.equal(answer.headers.location, undefined);
    const { client_id, client_secret, registration_access_token, client_id_issued_at, ...rest } = answer.body;
    assert.match(String(client_id), /^c_[A-Za-z0-9_-]{22}$/);
    for (const secret of [client_secret, registration_access_token]) {
      assert.equal(Buffer.from(String(secret), "base64url").length, 32);
    }
    assert.ok(Math.abs(Number(client_id_issued_at) - Date.now() / 1000) < 30);
    assert.deepEqual(rest, {
      client_secret_expires_at: 0,
      client_name: "Ledger Sync",
      contacts: ["ops@crew.example"],
      token_endpoint_auth_method: "client_secret_basic",
      grant_types: GRANT_TYPES,
      response_types: [],
      registration_client_uri: `${ISSUER}/register/${client_id}`,
    });
  });
}

test("RFC7591-3.1-1, RFC7591-3.2.1-2, RFC7591-3.2.1-4, RFC7591-5-14 the same body twice registers two unrelated clients", async () => {
  const [one, other] = await Promise.all([register({ software_id: "s" }), register({ software_id: "s" })]);
  for (const name of ["client_id", "client_secret", "registration_access_token", "registration_client_uri"]) {
    assert.notEqual(one[name], other[name]);
  }
  assertToken(await byBasic(one, world), one.client_id);
  assert.equal((await byBasic({ ...one, client_secret: other.client_secret }, world)).status, 401);
});

test("RFC7591-3.2.1-8, RFC7591-2-18, RFC7591-2.2-1, RFC7591-2-17 supported metadata are returned as sent", async () => {
  const sent = {
    redirect_uris: ["https://app.example/cb", "http://127.0.0.1:8000/cb", "http://localhost:8000/cb"],
    token_endpoint_auth_method: "private_key_jwt",
    token_endpoint_auth_signing_alg: "ES256",
    client_name: "Ledger Sync",
    "client_name#ja-Jpan-JP": "台帳",
    client_uri: "https://app.example/",
    logo_uri: "https://app.example/logo.png",
    tos_uri: "https://app.example/terms",
    "tos_uri#fr": "https://app.example/fr/terms",
    policy_uri: "https://app.example/privacy",
    scope: "read",
    contacts: ["ops@app.example"],
    jwks: { keys: [jwk] },
    software_id: "4NRB1-0XZABZI9E6-5SM3R",
    software_version: "2.2",
  };
  const answer = await register({ ...sent, grant_types: GRANT_TYPES, response_types: [] });
  for (const [name, value] of Object.entries(sent)) assert.deepEqual(answer[name], value, name);
  assert.equal("jwks_uri" in answer, false);
});

const ignored = [
  [
    "RFC7591-2-20, RFC7591-6-1, PROD-2.2-16 members that only the server sets",
    { client_id: "registrar", client_secret: "s" },
  ],
  [
    "RFC7591-6-1 client_id_issued_at and registration_client_uri",
    { client_id_issued_at: 1, registration_client_uri: "https://a.example/" },
  ],
  ["RFC7591-2-20 unknown members", { registration_class: "managed", class: "managed", ceiling: {} }],
  [
    "RFC7591-2-20 members of other specifications",
    { workload: workload("agents/planner"), id_token_signed_response_alg: "RS256" },
  ],
  ["RFC7591-1.1-1 names in another case", { SCOPE: "admin", Grant_Types: ["password"] }],
  ["RFC7591-3.1-2 null", { scope: null, grant_types: null, jwks: null, software_statement: null }],
] as const;
for (const [name, metadata] of ignored) {
  test(`${name}: ignored`, async () => {
    const usual = Object.keys(await register({ client_name: "a" })).sort();
    const answer = await register({ client_name: "a", ...metadata });
    assert.deepEqual(Object.keys(answer).sort(), usual);
    for (const [member, value] of Object.entries(metadata)) assert.notDeepEqual(answer[member], value);
    assert.equal((await lastEvent(world, "client.registered"))?.detail.class, "crew");
  });
}

test("RFC7591-2-20, RFC7591-6-1 members named like inherited properties are ordinary unknown members", async () => {
  const text =
    '{"__proto__":{"scope":"admin"},"constructor":{"prototype":{"scope":"admin"}},"client_name":"a"}';
  const answer = await register(JSON.parse(text));
  const raw = assertRegistered(await postAsCrew(text));
  assert.deepEqual(Object.keys(raw).sort(), Object.keys(answer).sort());
  assert.equal("scope" in raw, false);
});

const likenesses = [
  ["of an agent of the operator", { client_name: "Trip pIanner" }, workload("agents/planner")],
  ["of its own", { client_name: "Notes" }, undefined],
  ["in a language", { client_name: "Notes", "client_name#de": "Reiseplaner" }, workload("agents/planner")],
  ["with letters of two scripts", { client_name: "Nоtes" }, "mixed_scripts"],
] as const;
for (const [name, metadata, like] of likenesses) {
  test(`NAME-D-3 a client with a name ${name} is registered, and the trail ${like === undefined ? "says no more" : `has name_like ${like}`}`, async () => {
    await register(metadata);
    assert.equal((await lastEvent(world, "client.registered"))?.detail.name_like, like);
  });
}

test("NAME-D-1, NAME-D-3 agents that a reload names are known at the next registration", async () => {
  const likeOf = async (client_name: string): Promise<unknown> => {
    await register({ client_name });
    return (await lastEvent(world, "client.registered"))?.detail.name_like;
  };
  assert.equal(await likeOf("Library"), undefined);
  const before = configuration(documents.origin).agents;
  await reload(world, (config) =>
    Object.assign(config, { agents: { ...before, desk: { title: "Library" } } }),
  );
  assert.equal(await likeOf("Library"), "desk");
  await reload(world, (config) => Object.assign(config, { agents: before }));
});

// --- the body of the product document ---------------------------------------------------------------------------

/** The six members of section 2.2, with the values in the document. */
const sixFields = () => ({
  client_id: "https://agents.example/planner.json",
  client_name: "Planner",
  redirect_uris: ["https://agents.example/callback"],
  grant_types: ["authorization_code"],
  token_endpoint_auth_method: "private_key_jwt",
  jwks_uri: `${documents.origin}/keys`,
});

test("PROD-2.2-1, PROD-4.2-1, PROD-4.2-4, PROD-4.2-5, PROD-2.1-9, RFC7591-2-3 the six members are registered under a client_id of ours", async () => {
  const { client_id: sent, ...kept } = sixFields();
  const answer = await register(sixFields());
  assert.notEqual(answer.client_id, sent);
  assert.doesNotMatch(answer.client_id, /:|\//);
  assert.equal("client_secret" in answer, false);
  for (const [name, value] of Object.entries(kept)) assert.deepEqual(answer[name], value);
  assert.deepEqual(answer.response_types, ["code"]);
});

test("HTTP-D-20, PROD-2.2-8, PROD-4.1-25 authorization_code can be registered and is not served", async () => {
  const { client_id } = await register(sixFields());
  for (const grant_type of ["authorization_code", "password"]) {
    const answer = await world.token({ ...assertion(client_id, keyPem), grant_type, code: "a" });
    assertError(answer, 400, "unsupported_grant_type");
  }
});

const REDIRECTS = { redirect_uris: ["https://a.example/cb"] };
const INTERACTIVE = ["authorization_code", "refresh_token"];
const UNNAMED = { grant_types: undefined };
const unasked = [
  ["RFC7591-2-7 no grant type named", { ...UNNAMED, ...REDIRECTS }, ["authorization_code"]],
  ["RFC7591-2-7 neither grant types nor redirect URIs named", UNNAMED, []],
  [
    "PROD-2.2-8 only types named that are not served",
    { grant_types: INTERACTIVE, ...REDIRECTS },
    INTERACTIVE,
  ],
] as const;
for (const [name, metadata, recorded] of unasked) {
  test(`RFC7591-3.2.1-9, RFC6749-5.2-7, ${name}: the client can use no grant type`, async () => {
    const client = await register({ token_endpoint_auth_method: "client_secret_basic", ...metadata });
    assert.deepEqual(client.grant_types, recorded);
    for (const grant_type of [CC.grant_type, EXCHANGE]) {
      assertError(await byBasic(client, world, { grant_type }), 400, "unauthorized_client");
    }
  });
}

const grantsAndRedirects = [
  ["RFC7591-2-7, RFC7591-2-10 without grant_types", { ...UNNAMED, ...REDIRECTS }, ["authorization_code"]],
  ["HTTP-D-21, RFC7591-2-7, RFC7591-2-10 without grant_types and redirect_uris", UNNAMED, []],
  ["RFC7591-2-6, RFC7591-2-8 a supported grant type", { grant_types: [EXCHANGE] }, [EXCHANGE]],
  [
    "RFC6749-2-1, RFC7591-2.1-1, RFC7591-2-9 with authorization_code and its response type",
    {
      grant_types: ["authorization_code", CC.grant_type],
      response_types: ["code"],
      ...REDIRECTS,
    },
    ["authorization_code", CC.grant_type],
  ],
] as const;
for (const [name, metadata, granted] of grantsAndRedirects) {
  test(`${name}: the response lists the permitted grant types`, async () => {
    const answer = await register(metadata);
    const responses = granted.some((type) => type === "authorization_code") ? ["code"] : [];
    assert.deepEqual([answer.grant_types, answer.response_types], [granted, responses]);
  });
}

test("RFC6749-5.2-7 a grant type that the client did not register is refused", async () => {
  const client = await register({ grant_types: [EXCHANGE] });
  assertError(await byBasic(client, world), 400, "unauthorized_client");
});

// --- bodies -------------------------------------------------------------------------------------------------------

const nested = (containers: number): string =>
  `{"x":${"[".repeat(containers - 1)}${"]".repeat(containers - 1)}}`;

const goodBodies = [
  ["RFC7591-3-1 application/json", "{}", "application/json"],
  ["RFC7591-3-1 with its charset", "{}", "application/json; charset=UTF-8"],
  ["RFC7591-3-1 in another case, with an unknown parameter", "{}", 'Application/JSON;x="y"'],
  ["RFC7591-3-1 white space around", "\r\n\t {} \n", "application/json"],
  ["RFC7591-3-1 of the greatest permitted depth", nested(8), "application/json"],
] as const;
for (const [name, body, type] of goodBodies) {
  test(`${name}: accepted`, async () => {
    assertRegistered(await post(world, body, { ...asCrew(), "content-type": type }));
  });
}

const badBodies = [
  ["PROD-4.2-3, RFC7591-3-1 a form", "client_name=a", "application/x-www-form-urlencoded"],
  ["PROD-4.2-3 JSON with another media type", "{}", "text/json"],
  ["PROD-4.2-3 JSON with a +json media type", "{}", "application/scim+json"],
  ["PROD-4.2-3 no media type", "{}", ""],
  ["RFC7591-3-1 another charset", "{}", "application/json; charset=iso-8859-1"],
  ["RFC7591-3-1 a list", "[{}]", "application/json"],
  ["RFC7591-3-1 a byte order mark", "\ufeff{}", "application/json"],
  ["RFC7591-3-1 a duplicate member", '{"scope":"read","scope":"admin"}', "application/json"],
  ["RFC7591-3-1 too deep", nested(9), "application/json"],
] as const;
for (const [name, body, type] of badBodies) {
  test(`RFC7591-3.2.2-2, ${name}: invalid_client_metadata`, async () => {
    const headers = { ...asCrew(), "content-type": type };
    assertError(await post(world, body, headers), 400, "invalid_client_metadata");
  });
}

test("RFC7591-3-1 bytes that are not UTF-8: invalid_client_metadata", async () => {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  const request = send({
    method: "POST",
    host: "127.0.0.1",
    port: world.server.port,
    path: "/register",
    ca: world.ca,
    servername: "as.example",
    agent: false,
    headers: { host: "as.example", ...JSON_TYPE, ...asCrew() },
  });
  request.on("error", reject);
  request.on("response", (response) => resolve(response.resume().statusCode));
  request.end(Buffer.from('{"client_name":"é"}', "latin1"));
  assert.equal(await promise, 400);
});

test("PROD-8.4-2, PROD-7.5-1 too large: 413", async () => {
  const ofBytes = (count: number): string => JSON.stringify({ x: "a".repeat(count - '{"x":""}'.length) });
  assertRegistered(await postAsCrew(ofBytes(64 * 1024)));
  assertError(await postAsCrew(ofBytes(64 * 1024 + 1)), 413, "invalid_request");
});

test("RFC7591-3-2, RFC7591-5-1, RFC7592-2-2, RFC7592-5-3 TLS 1.2 is supported, and nothing is served without TLS", async () => {
  const { port } = world.server;
  const old = connect({
    host: "127.0.0.1",
    port,
    servername: "as.example",
    ca: world.ca,
    maxVersion: "TLSv1.2",
  });
  await once(old, "secureConnect");
  assert.equal(old.getProtocol(), "TLSv1.2");
  old.destroy();
  const plain = createConnection({ host: "127.0.0.1", port });
  plain.write("POST /register HTTP/1.1\r\nHost: as.example\r\nContent-Length: 2\r\n\r\n{}");
  assert.doesNotMatch((await plain.toArray()).join(""), /HTTP/);
});

test("RFC7591-3-1 other methods get 405 with Allow", async () => {
  for (const method of ["GET", "PUT", "DELETE"]) {
    const answer = await world.get("/register", { method, headers: asCrew() });
    assert.deepEqual([answer.status, answer.headers.allow], [405, "POST"]);
  }
});

// --- refused metadata ---------------------------------------------------------------------------------------------

const redirect = (uri: string) => ({ redirect_uris: ["https://a.example/cb", uri] });
const by = (method: string, rest: Metadata = {}) => ({ token_endpoint_auth_method: method, ...rest });
const whole = { ...jwk, d: "x3xu9qieo3piI9XuwCBOrUheAovbI-PAcZl8zLP7eVc" };

const badMetadata: readonly (readonly [string, Metadata, string, string?])[] = [
  ["RFC7591-3.2.2-5, PROD-2.2-17 a name that is a number", { client_name: 1 }, "client_name_refused"],
  ["PROD-2.2-9 an unsupported grant type", { grant_types: ["password"] }, "grant_types_refused"],
  ["RFC7591-2-9 another response type", { response_types: ["token"] }, "response_types_refused"],
  [
    "RFC7591-2.1-1 a response type without its grant type",
    { grant_types: [CC.grant_type], response_types: ["code"] },
    "response_types_inconsistent",
  ],
  [
    "RFC6749-2-1, RFC7591-2-2, RFC7591-5-2, PROD-2.2-15 authorization_code without redirect_uris",
    { grant_types: ["authorization_code"] },
    "redirect_uris_missing",
  ],
  ["RFC8252-8.4-1, PROD-2.2-12 the method none", by("none"), "token_endpoint_auth_method_refused"],
  ["PROD-2.2-15 private_key_jwt without keys", by("private_key_jwt"), "keys_missing"],
  [
    "RFC7591-2-17 both jwks and jwks_uri",
    by("private_key_jwt", { jwks: { keys: [jwk] }, jwks_uri: "https://a.example/k" }),
    "keys_twice",
  ],
  ["RFC7591-2-18 a private key", by("private_key_jwt", { jwks: { keys: [jwk, whole] } }), "keys_private"],
  ["RFC7591-2-16 a jwks_uri without TLS", { jwks_uri: "http://a.example/keys" }, "jwks_uri_refused"],
  ["RFC7591-2-14 a malformed scope", { scope: 'read "write"' }, "scope_refused"],
  ["RFC7591-2.2-4 a name with a control character", { client_name: "a\u0000b" }, "client_name_refused"],
  [
    "RFC7591-2.2-2 one language tag in two cases",
    { "client_name#fr": "a", "client_name#FR": "b" },
    "languages_repeated",
  ],
  ["RFC7591-5-8 a javascript URL", { logo_uri: "javascript:alert(1)" }, "logo_uri_refused"],
  [
    "SPCA-5.1-2 a pattern for a whole trust domain",
    by("spiffe_jwt", { spiffe_id: `spiffe://${TRUST_DOMAIN}/*` }),
    "spiffe_id_refused",
  ],
  ["SPCA-5.1-1 a SPIFFE method without SPIFFE ID", by("spiffe_jwt"), "spiffe_id_missing"],
  [
    "SPCA-6.1-4 a bundle endpoint chosen by the client",
    by("spiffe_jwt", {
      spiffe_id: workload("agents/crew"),
      spiffe_bundle_endpoint: "https://evil.example/bundle",
    }),
    "spiffe_bundle_endpoint_refused",
  ],
  ["RFC8705-2.1.2-1 tls_client_auth without a subject", by("tls_client_auth"), "subject_missing"],
  [
    "RFC8705-2.1.2-1 a SPIFFE ID as tls_client_auth_san_uri",
    by("tls_client_auth", { tls_client_auth_san_uri: workload("agents/planner") }),
    "tls_client_auth_san_uri_refused",
  ],
  [
    "RFC8705-2.2-1 self_signed_tls_client_auth without a certificate",
    by("self_signed_tls_client_auth", { jwks: { keys: [jwk] } }),
    "certificates_missing",
  ],
  [
    "RFC7591-5-8 a text that says whether tokens are bound",
    { dpop_bound_access_tokens: "true" },
    "dpop_bound_access_tokens_refused",
  ],
  [
    "RFC7591-3.2.2-4, MCPC-D-4, RFC8252-8.4-3 an app alone that the operator does not list",
    { redirect_uris: ["com.example.app:/cb"] },
    "redirect_uris_unavailable",
    "invalid_redirect_uri",
  ],
  ...(
    [
      ["RFC7591-5-3 an http URI", "http://a.example/cb", "redirect_uri_not_loopback"],
      [
        "RFC8252-8.3-1 a name of the local machine",
        "http://app.localhost:8000/cb",
        "redirect_uri_not_loopback",
      ],
      ["RFC8252-8.4-2 a pattern", "https://*.a.example/cb", "redirect_uri_wildcard"],
    ] as const
  ).map(
    ([name, uri, reason]) =>
      [`RFC7591-3.2.2-4, ${name}`, redirect(uri), reason, "invalid_redirect_uri"] as const,
  ),
];
for (const [name, metadata, reason, error = "invalid_client_metadata"] of badMetadata) {
  test(`${name}: ${error} and an event`, async () => {
    const answer = await postAsCrew({ client_name: "a", ...metadata });
    assertError(answer, 400, error);
    const event = await lastEvent(world, "client.registration_denied");
    assert.deepEqual([event?.outcome, event?.reason, event?.detail.class], ["deny", reason, "crew"]);
  });
}

test("RFC7591-3.2.2-2 a registration whose method is refused is told which methods are accepted", async () => {
  const { body } = await postAsCrew(by("client_secret_jwt"));
  assert.equal(
    body.error_description,
    "token_endpoint_auth_method has a type, a length or a value that is not accepted: one of client_secret_basic, client_secret_post, private_key_jwt, spiffe_jwt, spiffe_x509, tls_client_auth, self_signed_tls_client_auth is",
  );
});

/** Metadata with this text in each member that can have one. */
const withText = (text: string): readonly Metadata[] => [
  ...["client_name", "client_name#fr", "client_uri", "software_id", "software_version", "scope"].map(
    (name) => ({
      [name]: text,
    }),
  ),
  ...["contacts", "redirect_uris", "grant_types", "response_types"].map((name) => ({ [name]: [text] })),
  ...["jwks_uri", "spiffe_id", "tls_client_auth_subject_dn", "software_statement"].map((name) => ({
    [name]: text,
  })),
  { tls_client_auth_subject_dn: `CN=${text}` },
  ...["kid", "use", "alg", "crv", "x"].map((name) => ({ jwks: { keys: [{ ...jwk, [name]: text }] } })),
  { jwks: { keys: [{ ...jwk, key_ops: ["verify", text] }] } },
  { jwks: { keys: [{ ...jwk, x5c: [derOf(crewCertificate.certPem).toString("base64"), text] }] } },
  { [text]: text },
];
for (const [name, at] of stores) {
  for (const [what, text] of [
    ["a NUL", "a\u0000b"],
    ["a character beyond the basic plane", "😀"],
    ["an SQL injection", "'; drop table client; --"],
  ] as const) {
    test(`RFC6749-10.14-1 ${what} in any member is stored or refused, and causes no fault (${name})`, async () => {
      let kept = 0;
      for (const metadata of withText(text)) {
        const answer = await postAsCrew(by("private_key_jwt", { jwks: { keys: [jwk] }, ...metadata }), at());
        assert.ok(answer.status === 201 || answer.status === 400, answer.text);
        if (answer.status === 400) continue;
        const { client_id, registration_access_token } = answer.body as Registered;
        const headers = bearer(registration_access_token);
        assert.deepEqual((await at().get(`/register/${client_id}`, { headers })).body, answer.body);
        kept++;
      }
      assert.ok(kept > 1, `${kept}`);
    });
  }
}

// --- authentication methods ---------------------------------------------------------------------------------------

type Proof = { form?: Form; headers?: Record<string, string>; certificate?: Certificate };
type Way = {
  method: string;
  by?: string;
  metadata: () => Metadata;
  /** Authenticates with the client's own credential, or with another one. */
  prove: (client: Registered, own: boolean, at: World) => Proof | Promise<Proof>;
};

const shownBy = ({ keyPem: key, certPem: cert }: typeof crewCertificate): Certificate => ({ key, cert });
const pinned = () => ({
  keys: [
    {
      ...new X509Certificate(crewCertificate.certPem).publicKey.export({ format: "jwk" }),
      x5c: [derOf(crewCertificate.certPem).toString("base64")],
    },
  ],
});
const byKey = ({ client_id }: Registered, own: boolean): Proof => ({
  form: assertion(client_id, own ? keyPem : otherKeyPem),
});
const byCertificate = ({ client_id }: Registered, own: boolean): Proof => ({
  form: { client_id },
  certificate: shownBy(own ? crewCertificate : strangeCertificate),
});

const ways: readonly Way[] = [
  {
    method: "client_secret_basic",
    metadata: () => ({}),
    prove: ({ client_id, client_secret }, own) => ({
      headers: { authorization: basic(client_id, own ? client_secret : "a guess") },
    }),
  },
  {
    method: "client_secret_post",
    metadata: () => ({}),
    prove: ({ client_id, client_secret }, own) => ({
      form: { client_id, client_secret: own ? client_secret : "a guess" },
    }),
  },
  { method: "private_key_jwt", by: "jwks", metadata: () => ({ jwks: { keys: [jwk] } }), prove: byKey },
  {
    method: "private_key_jwt",
    by: "jwks_uri",
    metadata: () => ({ jwks_uri: `${documents.origin}/keys` }),
    prove: byKey,
  },
  {
    method: "spiffe_jwt",
    metadata: () => ({ spiffe_id: workload("agents/crew/*") }),
    prove: async ({ client_id }, own, at) => ({
      form: { client_id, ...at.as(await at.svid(own ? "agents/crew/ana" : "agents/crews")) },
    }),
  },
  {
    method: "spiffe_x509",
    metadata: () => ({ spiffe_id: workload("agents/crew") }),
    async prove({ client_id }, own, at) {
      const svid = await mintX509Svid(at.trustDomain, workload(own ? "agents/crew" : "agents/other"));
      return { form: { client_id }, certificate: { key: svid.keyPem, cert: svid.chainPem } };
    },
  },
  { method: "self_signed_tls_client_auth", metadata: () => ({ jwks: pinned() }), prove: byCertificate },
  {
    method: "tls_client_auth",
    metadata: () => ({ tls_client_auth_san_dns: "crew.example" }),
    prove: byCertificate,
  },
];

async function prove(at: World, { form = {}, headers = {}, certificate = {} }: Proof): Promise<Answer> {
  return at.token({ ...CC, audience: API, ...form }, headers, certificate);
}

for (const [name, at] of stores) {
  for (const { method, by: place = "its own metadata", metadata, prove: by } of ways) {
    test(`PROD-1.6-2, PROD-0-3, PROD-2.2-12, RFC7591-2-5 a client that registers for ${method} with ${place} authenticates with its credential and no other (${name})`, async () => {
      const client = await register({ token_endpoint_auth_method: method, ...metadata() }, at());
      assert.equal(client.token_endpoint_auth_method, method);
      assert.equal("client_secret" in client, method.startsWith("client_secret_"));
      assertToken(await prove(at(), await by(client, true, at())), client.client_id);
      const event = await lastEvent(at(), "token.issued");
      const { client_id, auth_method, source } = Object(event?.client);
      assert.deepEqual([client_id, auth_method, source], [client.client_id, method, "registration"]);
      const { status, body } = await prove(at(), await by(client, false, at()));
      assert.deepEqual(
        [status, body.error],
        [method === "client_secret_basic" ? 401 : 400, "invalid_client"],
      );
    });
  }
}

test("RFC7591-2-4 the default method is client_secret_basic", async () => {
  const client = await register({});
  assert.equal(client.token_endpoint_auth_method, "client_secret_basic");
  assertToken(await byBasic(client, world), client.client_id);
  const { client_id, client_secret } = client;
  assertError(await world.token({ ...CC, client_id, client_secret, audience: API }), 400, "invalid_client");
});

test("RFC6749-2.1-1, RFC6749-2.3.1-5, PROD-2.1-3 a client authenticates with its registered method only", async () => {
  for (const registered of ways) {
    const sent = { token_endpoint_auth_method: registered.method, ...registered.metadata() };
    const { client_secret = "a guess", ...rest } = await register(sent);
    // One certificate may serve two methods; the record decides which one applies.
    for (const way of ways.filter((one) => one.prove !== registered.prove)) {
      const { body } = await prove(
        world,
        await way.prove({ ...rest, client_secret } as Registered, true, world),
      );
      assert.equal(body.error, "invalid_client", `${registered.method} by ${way.method}`);
    }
  }
});

test("HTTP-D-32, SPCA-3.1-10, PROD-2.1-7 a registration does not override admit of a trust domain", async () => {
  const client = await register(by("spiffe_jwt", { spiffe_id: workload("other/crew") }));
  const form = {
    ...CC,
    client_id: client.client_id,
    audience: API,
    ...world.as(await world.svid("other/crew")),
  };
  assertError(await world.token(form), 400, "invalid_client");
  await reload(world, (config) => {
    config.trustDomains[TRUST_DOMAIN]?.admit.push(workload("other/*"));
  });
  assertToken(await world.token(form), client.client_id);
  await reload(world, (config) => {
    config.trustDomains[TRUST_DOMAIN]?.admit.pop();
  });
});

test("PROD-4.4-12, RFC8705-2.1-1 tls_client_auth is supported only while authorities are configured", async () => {
  const sent = by("tls_client_auth", { tls_client_auth_san_dns: "crew.example" });
  const client = await register(sent);
  const { tlsAuthorities } = configuration(documents.origin).registration;
  await reload(world, ({ registration }) => {
    Reflect.deleteProperty(registration, "tlsAuthorities");
  });
  assertError(await postAsCrew(sent), 400, "invalid_client_metadata");
  // A client that registered before is refused too.
  assertError(await prove(world, byCertificate(client, true)), 400, "invalid_client");
  await reload(world, ({ registration }) => {
    Object.assign(registration, { tlsAuthorities });
  });
  assertToken(await prove(world, byCertificate(client, true)), client.client_id);
});

test("RFC7591-2-16, PROD-2.2-14 keys are not fetched from private addresses, however the URL names them", async () => {
  const { port } = internal.address() as AddressInfo;
  const urls = ["localhost", "127.0.0.1", "[::1]", "[::ffff:7f00:1]", "169.254.169.254", "10.0.0.1"];
  for (const host of urls) {
    const client = await register(by("private_key_jwt", { jwks_uri: `https://${host}:${port}/keys` }));
    const answer = await world.token({ ...CC, ...assertion(client.client_id, keyPem), audience: API });
    assert.equal(answer.status, 400, `${host} ${answer.text}`);
    assertError(answer, 400, "invalid_client");
    assert.equal(answer.body.error_description, "client authentication failed");
  }
  assert.equal(callers, 0);
});

// --- software statements ------------------------------------------------------------------------------------------

type Statement = Parameters<World["idp"]["mintUserToken"]>[0];
/** A software statement without subject and audience, unless given. */
const state = (claims: Metadata, rest: Partial<Statement> = {}): Promise<string> =>
  world.idp.mintUserToken({
    sub: "",
    aud: "",
    ...rest,
    claims: { sub: undefined, aud: undefined, software_id: "4NRB1-0XZABZI9E6-5SM3R", ...claims },
  });

test("RFC7591-2-22, RFC7591-3.1.1-2, RFC7591-3.2.1-11, RFC7591-3.2.1-12, RFC7591-5-11 claims of a statement take precedence over the body", async () => {
  const vouched = { client_name: "Vouched", jwks: { keys: [{ ...publicJwk(vouchedKeyPem), kid: "k1" }] } };
  const statement = await state(vouched, { aud: ISSUER });
  const sent = { client_name: "Mine", contacts: ["a@a.example"], jwks: { keys: [jwk] } };
  const client = await register({ ...by("private_key_jwt", sent), software_statement: statement });
  assert.deepEqual([client.client_name, client.contacts], ["Vouched", sent.contacts]);
  assert.deepEqual([client.software_id, client.software_statement], ["4NRB1-0XZABZI9E6-5SM3R", statement]);
  for (const name of ["iss", "aud", "exp", "iat", "jti"]) assert.equal(name in client, false);
  const cc = { ...CC, audience: API };
  assertToken(await world.token({ ...cc, ...assertion(client.client_id, vouchedKeyPem) }), client.client_id);
  assertError(await world.token({ ...cc, ...assertion(client.client_id, keyPem) }), 400, "invalid_client");
});

test("RFC7591-5-12 a statement permits no more than the initial access token, and does not replace it", async () => {
  const software_statement = await state({
    scope: "admin read",
    grant_types: GRANT_TYPES,
    client_id: "registrar",
  });
  assert.equal((await post(world, { software_statement })).status, 401);
  const words = ["--scope", "read", "--grant-type", CC.grant_type];
  const token = bearer(await createInitialToken(world, "crew", ...words));
  const client = assertRegistered(await post(world, { scope: "read", software_statement }, token));
  assert.deepEqual([client.scope, client.grant_types], ["read", [CC.grant_type]]);
  assert.match(client.client_id, /^c_/);
});

test("RFC7592-2.2-3, RFC7591-5-7 an update without the statement removes its claims", async () => {
  const statement = await state({ client_name: "Vouched" });
  const client = await register({ software_statement: statement });
  const put = (by: Registered, body: Metadata): Promise<Answer> =>
    world.get(`/register/${by.client_id}`, {
      method: "PUT",
      body: JSON.stringify({ client_id: by.client_id, ...body }),
      headers: { ...JSON_TYPE, ...bearer(by.registration_access_token) },
    });
  const again = await put(client, { client_name: "Mine", software_statement: statement });
  assert.deepEqual([again.body.client_name, again.body.software_statement], ["Vouched", statement]);
  const next = again.body as Registered;
  const broken = await put(next, { software_statement: `${statement}A` });
  assertError(broken, 400, "invalid_software_statement");
  const { body } = await put(next, { client_name: "Mine" });
  assert.deepEqual(
    [body.client_name, body.software_statement, body.software_id],
    ["Mine", undefined, undefined],
  );
});

const statements: readonly (readonly [string, () => unknown, string, string])[] = [
  ["RFC7591-3.2.2-6 a number", () => 1, "invalid", "software_statement_refused"],
  ["RFC7591-3.2.2-6 no JWT", () => "a.b", "invalid", "jws_not_compact"],
  [
    "RFC7591-2.3-1 unsigned",
    async () => (await state({})).replace(/[^.]+$/, ""),
    "invalid",
    "jws_not_compact",
  ],
  ["RFC7591-2.3-1 without iss", () => state({ iss: undefined }), "invalid", "issuer_missing"],
  [
    "RFC7591-2.3-1 with the signature of another",
    async () => {
      const [header, , signature] = (await state({})).split(".");
      return [header, (await state({ client_name: "b" })).split(".")[1], signature].join(".");
    },
    "invalid",
    "signature_invalid",
  ],
  ["RFC7591-3.2.2-6 expired", () => state({}, { expSeconds: -31 }), "invalid", "jwt_expired"],
  [
    "RFC7591-3.2.2-6 not yet valid",
    () => state({ nbf: Date.now() / 1000 + 60 }),
    "invalid",
    "jwt_not_yet_valid",
  ],
  ["RFC7591-3.2.2-6 for another server", () => state({ aud: IDP }), "invalid", "jwt_audience_refused"],
  [
    "RFC8725-3.11-1 an access token",
    () => state({}, { header: { typ: "at+jwt" } }),
    "invalid",
    "jwt_type_refused",
  ],
  [
    "RFC8725-3.12-v1 a token of a user",
    () => state({ software_id: undefined }),
    "invalid",
    "software_missing",
  ],
  [
    "CONF-D-7, RFC8725-3.12-v1 an event of its issuer",
    () => state({ events: {} }),
    "invalid",
    "untyped_event",
  ],
  [
    "RFC7591-3.2.2-7 of an issuer that is not trusted for statements",
    () => state({ iss: "https://other.example" }),
    "unapproved",
    "issuer_not_approved",
  ],
];
for (const [name, make, code, reason] of statements) {
  test(`${name}: ${code}_software_statement`, async () => {
    const answer = await postAsCrew({ software_statement: await make() });
    assertError(answer, 400, `${code}_software_statement`);
    assert.equal((await lastEvent(world, "client.registration_denied"))?.reason, reason);
  });
}

test("RFC7591-2-22, PROD-2.2-17 claims of a statement are checked like the body", async () => {
  const software_statement = await state({ redirect_uris: ["https://a.example/#"] });
  assertError(await postAsCrew({ software_statement }), 400, "invalid_redirect_uri");
  assertError(
    await postAsCrew({
      jwks: { keys: [jwk] },
      software_statement: await state({ jwks_uri: "https://a.example/k" }),
    }),
    400,
    "invalid_client_metadata",
  );
});

test("RFC7591-3.2.2-7, RFC7591-3.1.1-1 only statements of configured issuers are accepted; without such an issuer a statement is ignored", async () => {
  const ofUsers = await state({ client_name: "Vouched" });
  await reload(world, ({ trustedIssuers }) => {
    const { [IDP]: idp = {} } = trustedIssuers;
    idp.statements = false;
    trustedIssuers[STATEMENTS] = { ...idp, statements: true, acceptAs: [], subjects: { prefix: "s:" } };
  });
  assertError(await postAsCrew({ software_statement: ofUsers }), 400, "unapproved_software_statement");
  // RFC8725-3.12-v1: an issuer of statements alone may omit software_id.
  const software_statement = await state({ iss: STATEMENTS, software_id: undefined, client_name: "Vouched" });
  assert.equal((await register({ client_name: "Mine", software_statement })).client_name, "Vouched");
  // RFC8725-3.12-v1: one that signs tokens of workloads too may not, since such a token has the same types.
  await reload(world, ({ trustedIssuers }) => {
    const { [STATEMENTS]: issuer = {} } = trustedIssuers;
    issuer.workloads = { agents: { tenancy: "dedicated", subjects: ["agent/*"], uses: ["client"] } };
  });
  const ofWorkload = await state(
    { iss: STATEMENTS, sub: "agent/1", software_id: undefined },
    { aud: ISSUER },
  );
  const refused = await postAsCrew({ client_name: "Mine", software_statement: ofWorkload });
  assertError(refused, 400, "invalid_software_statement");
  assert.equal((await lastEvent(world, "client.registration_denied"))?.reason, "software_missing");
  await reload(world, ({ trustedIssuers }) => {
    Reflect.deleteProperty(trustedIssuers, STATEMENTS);
  });
  for (const software_statement of [ofUsers, "a.b.c", 1]) {
    const client = await register({ client_name: "Mine", software_statement });
    assert.equal(client.client_name, "Mine");
    assert.equal("software_statement" in client, false);
  }
});

test("AUDIT-D-2 unreadable bodies are counted when the server stops at the latest, with and without a token", async () => {
  const before = (await world.events()).length;
  assertError(await postAsCrew("{"), 400, "invalid_client_metadata");
  await world.server.stop();
  const failures = (await world.events())
    .slice(before)
    .filter(({ type, reason }) => type === "client.auth_failed" && reason === "body_unreadable");
  assert.ok(failures.length > 0);
});

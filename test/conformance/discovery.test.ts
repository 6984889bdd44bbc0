/**
 * The published metadata, over real TLS: they list exactly what is enabled, and what they list works. Each mode is one
 * change of a configuration in which everything optional is disabled.
 */
import assert from "node:assert/strict";
import { constants, generateKeyPairSync, type KeyObject, randomUUID, sign } from "node:crypto";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { type Answer, basic, send } from "../../scripts/http-client.ts";
import { DRAFT as DOCUMENTS } from "../../src/spec/cimd.ts";
import { DRAFT as ID_JAG } from "../../src/spec/id-jag.ts";
import { DRAFT as CHAINING } from "../../src/spec/identity-chaining.ts";
import { DRAFT as SPIFFE } from "../../src/spec/spiffe/client-auth.ts";
import { stop } from "../support/stop.ts";
import { EXCHANGE, type Form, IDP, ISSUER, makeWorld, TRUST_DOMAIN, type World } from "../support/world.ts";

const CLIENT_CREDENTIALS = "client_credentials";
const JWT_BEARER_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const PATHS = ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"];
const API_SCOPES = [
  "audit:read",
  "client:manage",
  "consent:manage",
  "job:manage",
  "policy:explain",
  "receipt:read",
  "token:revoke",
];
const OWN_METHODS = ["client_secret_basic", "client_secret_post", "private_key_jwt"];
const TLS_METHODS = ["tls_client_auth", "self_signed_tls_client_auth"];
const CREDENTIALS = { authorization: basic("secret", "a-secret") };

// --- assertions in every algorithm --------------------------------------------------------------------------------

type Pair = { publicKey: KeyObject; privateKey: KeyObject };
const rsa: Pair = generateKeyPairSync("rsa", { modulusLength: 2048 });
const p256: Pair = generateKeyPairSync("ec", { namedCurve: "P-256" });
const p384: Pair = generateKeyPairSync("ec", { namedCurve: "P-384" });
const p521: Pair = generateKeyPairSync("ec", { namedCurve: "P-521" });
const ed25519: Pair = generateKeyPairSync("ed25519");
const ieee = { dsaEncoding: "ieee-p1363" } as const;
const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };

const ALGORITHMS: Record<string, readonly [pair: Pair, hash: string | null, how: object]> = {
  ES256: [p256, "sha256", ieee],
  ES384: [p384, "sha384", ieee],
  ES512: [p521, "sha512", ieee],
  EdDSA: [ed25519, null, {}],
  Ed25519: [ed25519, null, {}],
  RS256: [rsa, "sha256", {}],
  RS384: [rsa, "sha384", {}],
  RS512: [rsa, "sha512", {}],
  PS256: [rsa, "sha256", pss],
  PS384: [rsa, "sha384", pss],
  PS512: [rsa, "sha512", pss],
};

function assertion(alg: string): Form {
  const [{ privateKey: key }, hash, how] = ALGORITHMS[alg] ?? assert.fail(alg);
  const seconds = Math.floor(Date.now() / 1000);
  const claims = {
    iss: "signer",
    sub: "signer",
    aud: ISSUER,
    iat: seconds,
    exp: seconds + 60,
    jti: randomUUID(),
  };
  const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString("base64url");
  const input = `${encode({ alg, kid: alg })}.${encode(claims)}`;
  const signature = sign(hash, Buffer.from(input), { key, ...how }).toString("base64url");
  return { client_assertion_type: JWT_BEARER, client_assertion: `${input}.${signature}` };
}

const jwks = {
  keys: Object.entries(ALGORITHMS).map(([alg, [{ publicKey }]]) => ({
    ...publicKey.export({ format: "jwk" }),
    alg,
    kid: alg,
  })),
};

// --- everything optional is disabled ------------------------------------------------------------------------------

const NOTHING = {
  trustDomains: {},
  trustedIssuers: {},
  drafts: [],
  registration: { mode: "off" },
  clients: {
    secret: { method: "client_secret_basic", secrets: ["a-secret"] },
    signer: { method: "private_key_jwt", jwks },
  },
};
const SIGNING = ["ES256", "ES384", "EdDSA", "Ed25519", "PS256", "RS256"];
const METADATA = {
  issuer: ISSUER,
  token_endpoint: `${ISSUER}/token`,
  jwks_uri: `${ISSUER}/jwks`,
  scopes_supported: API_SCOPES,
  response_types_supported: [],
  grant_types_supported: [CLIENT_CREDENTIALS, EXCHANGE],
  token_endpoint_auth_methods_supported: [...OWN_METHODS, ...TLS_METHODS],
  token_endpoint_auth_signing_alg_values_supported: SIGNING,
  introspection_endpoint: `${ISSUER}/introspect`,
  introspection_endpoint_auth_methods_supported: [...OWN_METHODS, ...TLS_METHODS],
  introspection_endpoint_auth_signing_alg_values_supported: SIGNING,
  revocation_endpoint: `${ISSUER}/revoke`,
  revocation_endpoint_auth_methods_supported: [...OWN_METHODS, ...TLS_METHODS],
  revocation_endpoint_auth_signing_alg_values_supported: SIGNING,
  dpop_signing_alg_values_supported: ["ES256", "ES384", "EdDSA", "Ed25519", "PS256"],
  tls_client_certificate_bound_access_tokens: true,
};

let world: World;
/** A server whose issuer has a path, with a separate listener for certificates. */
let below: World;

before(async () => {
  const listener = { host: "127.0.0.1", port: 0 };
  const tls = { key: { file: "tls/key.pem" }, cert: { file: "tls/cert.pem" } };
  [world, below] = await Promise.all([
    makeWorld(NOTHING),
    makeWorld({
      ...NOTHING,
      issuer: `${ISSUER}/t1`,
      mtls: { ...listener, tls, origin: "https://mtls.as.example" },
      registration: { mode: "initial-access-token" },
    }),
  ]);
});

after(() => stop(world, below));

/** What readers of OpenID Connect require beside the metadata. */
const forOpenId = (...others: string[]) => ({
  subject_types_supported: ["public"],
  id_token_signing_alg_values_supported: ["RS256", ...others],
});

/** The metadata, which must be the same at both well-known paths, but for what readers of OpenID Connect require. */
async function readMetadata(from = world, path = ""): Promise<Record<string, unknown>> {
  const [answer, other] = await Promise.all(PATHS.map((one) => from.get(`${one}${path}`)));
  assert.ok(answer && other);
  assert.deepEqual([answer.status, answer.headers["content-type"]], [200, "application/json"]);
  assert.deepEqual(other.body, { ...answer.body, ...forOpenId("ES256") });
  return answer.body;
}

/** Reloads the server with these settings. */
async function reload(change: object): Promise<void> {
  const config = JSON.parse(readFileSync(world.configFile, "utf8"));
  writeFileSync(world.configFile, JSON.stringify({ ...config, ...NOTHING, ...NONE, ...change }));
  assert.deepEqual(await world.server.reload(), []);
}

/** Sections to leave out: undefined members are not written. */
const NONE = { clientMetadataDocuments: undefined, targets: undefined, mtls: undefined };

const usual = { keys: { url: "https://idp.example/jwks" }, subjects: "keep" };
const trusting = (issuer: object, drafts: readonly string[] = []) => ({
  trustedIssuers: { [IDP]: { ...usual, ...issuer } },
  drafts,
});
const partner = (more: object = {}) => ({
  targets: [{ kind: "partner", issuer: "https://as.partner.example", scopes: ["stays.read"], ...more }],
  drafts: [CHAINING, ID_JAG],
});
const REGISTERS = { registration_endpoint: `${ISSUER}/register` };
const REDEEMS = { grant_types_supported: [CLIENT_CREDENTIALS, EXCHANGE, JWT_BEARER_GRANT] };
const ID_JAG_PROFILE = "urn:ietf:params:oauth:grant-profile:id-jag";

const WITH_SPIFFE = [...OWN_METHODS, "spiffe_jwt", "spiffe_x509", ...TLS_METHODS];

const MODES: [id: string, what: string, change: object, difference: object][] = [
  ["PROD-4.4-12, RFC8414-2-2, RFC8414-2-19", "everything optional disabled", {}, {}],
  ["PROD-4.4-2", "registration by default", { registration: undefined }, REGISTERS],
  [
    "PROD-4.4-2, RFC8414-2-7",
    "registration with an initial token",
    { registration: { mode: "initial-access-token" } },
    REGISTERS,
  ],
  ["PROD-4.4-2", "open registration", { registration: { mode: "open", open: { scopes: ["a"] } } }, REGISTERS],
  [
    "PROD-4.4-1, CIMD-6-1, MCP-R.1-7",
    "metadata documents",
    { clientMetadataDocuments: {}, drafts: [DOCUMENTS] },
    { client_id_metadata_document_supported: true },
  ],
  [
    "PROD-4.4-1",
    "metadata documents of one origin",
    { clientMetadataDocuments: { origins: ["https://agents.example"] }, drafts: [DOCUMENTS] },
    { client_id_metadata_document_supported: true },
  ],
  [
    "SPCA-4-1, SPCA-4-2, SPCA-4-3, SPCA-4-4",
    "a trust domain",
    { trustDomains: { [TRUST_DOMAIN]: { bundle: { file: "bundle.json" } } }, drafts: [SPIFFE] },
    {
      token_endpoint_auth_methods_supported: WITH_SPIFFE,
      introspection_endpoint_auth_methods_supported: WITH_SPIFFE,
      revocation_endpoint_auth_methods_supported: WITH_SPIFFE,
    },
  ],
  ["PROD-4.4-12", "an issuer of subject tokens", trusting({}), {}],
  [
    "RFC8414-2-11",
    "an issuer of plain grants",
    trusting({ grants: { profiles: ["jwt"] } }, [CHAINING]),
    REDEEMS,
  ],
  [
    "IDJAG-7.2-1, IDJAG-7.2-2, EMA-6-1",
    "an issuer of ID-JAGs",
    trusting({ grants: { profiles: ["id-jag"] } }, [ID_JAG]),
    { ...REDEEMS, authorization_grant_profiles_supported: [ID_JAG_PROFILE] },
  ],
  [
    "IDJAG-9.5-1",
    "an issuer of both",
    trusting({ grants: {} }, [CHAINING, ID_JAG]),
    { ...REDEEMS, authorization_grant_profiles_supported: [ID_JAG_PROFILE] },
  ],
  [
    "PROD-4.4-12",
    "an issuer of grants that is disabled",
    trusting({ grants: {}, disabled: true }, [CHAINING, ID_JAG]),
    {},
  ],
  [
    "IDC-3-1, IDJAG-7.1-1, RFC8414-2-21",
    "a partner",
    partner(),
    {
      identity_chaining_requested_token_types_supported: [
        "urn:ietf:params:oauth:token-type:jwt",
        "urn:ietf:params:oauth:token-type:id-jag",
      ],
    },
  ],
  [
    "RFC8414-2-8, RFC8414-3.2-2",
    "targets with scopes",
    {
      targets: [
        { names: ["https://api.example"], scopes: ["read", "write"] },
        { names: ["https://other.example"], scopes: ["read"] },
      ],
    },
    { scopes_supported: [...API_SCOPES, "read", "write"].sort() },
  ],
];

/** The grant types to try; exactly those in the metadata must not be refused as unsupported. */
const GRANT_TYPES = [
  CLIENT_CREDENTIALS,
  EXCHANGE,
  JWT_BEARER_GRANT,
  "authorization_code",
  "refresh_token",
  "password",
  "implicit",
  "token-exchange",
  "jwt-bearer",
  "urn:ietf:params:oauth:grant-type:device_code",
  "urn:ietf:params:oauth:grant-type:saml2-bearer",
  "urn:openid:params:grant-type:ciba",
  EXCHANGE.toUpperCase(),
];

for (const [id, what, change, difference] of MODES) {
  test(`${id} with ${what} the metadata list exactly that, and it works`, async () => {
    await reload(change);
    const metadata = await readMetadata();
    assert.deepEqual(metadata, { ...METADATA, ...difference });

    const served: string[] = [];
    for (const grant_type of GRANT_TYPES) {
      const { body } = await world.token({ grant_type }, CREDENTIALS);
      if (body.error !== "unsupported_grant_type") served.push(grant_type);
    }
    assert.deepEqual(served, metadata.grant_types_supported);
    const registering = await post("/register", "{}");
    assert.equal(registering.status === 404, !("registration_endpoint" in metadata), registering.text);
  });
}

const post = (path: string, body: string): Promise<Answer> =>
  send(`${ISSUER}${path}`, {
    method: "POST",
    body,
    ca: world.ca,
    headers: { "content-type": "application/json" },
    connect: { host: "127.0.0.1", port: world.server.port },
  });

for (const alg of Object.keys(ALGORITHMS)) {
  const isListed = METADATA.token_endpoint_auth_signing_alg_values_supported.includes(alg);
  test(`RFC8414-2-13, RFC8414-2-14 assertions with ${alg} are ${isListed ? "accepted" : "refused"}`, async () => {
    const { body } = await world.token({ grant_type: CLIENT_CREDENTIALS, ...assertion(alg) });
    // The client is authenticated, but no rule allows it anything.
    assert.equal(body.error, isListed ? "unauthorized_client" : "invalid_client");
  });
}

test("MCC-2.3-2 with the method private_key_jwt its algorithms are listed, at each endpoint", async () => {
  const metadata = await readMetadata();
  for (const endpoint of ["token", "introspection", "revocation"]) {
    const methods = metadata[`${endpoint}_endpoint_auth_methods_supported`];
    assert.ok(Array.isArray(methods) && methods.includes("private_key_jwt"), endpoint);
    assert.deepEqual(metadata[`${endpoint}_endpoint_auth_signing_alg_values_supported`], SIGNING, endpoint);
  }
});

test("MCC-2.3-1, RFC8414-2-12, PROD-0-2 the methods that programs need are listed", async () => {
  const { token_endpoint_auth_methods_supported: methods } = await readMetadata();
  assert.ok(Array.isArray(methods) && methods.includes("private_key_jwt"));
  assert.ok(methods.includes("client_secret_basic") && !methods.includes("none"));
});

// --- location -----------------------------------------------------------------------------------------------------

test("RFC8414-3-1, RFC8414-3-2, RFC8414-3-4, MCP-D.3-2, PROD-4.4-3, PROD-0-5 the metadata of an issuer with a path are between host and path", async () => {
  const metadata = await readMetadata(below, "/t1");
  assert.deepEqual(metadata, {
    ...METADATA,
    issuer: `${ISSUER}/t1`,
    token_endpoint: `${ISSUER}/t1/token`,
    jwks_uri: `${ISSUER}/t1/jwks`,
    registration_endpoint: `${ISSUER}/t1/register`,
    introspection_endpoint: `${ISSUER}/t1/introspect`,
    revocation_endpoint: `${ISSUER}/t1/revoke`,
    mtls_endpoint_aliases: {
      token_endpoint: "https://mtls.as.example/t1/token",
      introspection_endpoint: "https://mtls.as.example/t1/introspect",
      revocation_endpoint: "https://mtls.as.example/t1/revoke",
    },
  });
  assert.equal((await below.get("/t1/jwks")).status, 200);
});

test("RFC8414-3.1-2, MCP-D.3-2, PAGE-D-20 the same document is appended to the issuer, and where an issuer with a final slash leads: for every page, by GET and HEAD", async () => {
  for (const [from, base] of [
    [world, ""],
    [below, "/t1"],
  ] as const) {
    const places = PATHS.flatMap((path) =>
      [`${path}${base}/`, `${base}${path}`].map((place) => ({ path, place })),
    );
    for (const { path, place } of places) {
      const plain = await from.get(`${path}${base}`);
      const answer = await from.get(place);
      assert.deepEqual(
        [answer.status, answer.text, answer.headers.etag],
        [200, plain.text, plain.headers.etag],
        place,
      );
      assert.equal(answer.headers["access-control-allow-origin"], "*");
      assert.equal(answer.headers["cache-control"], plain.headers["cache-control"]);
      const head = await from.get(place, { method: "HEAD" });
      assert.deepEqual([head.status, head.text, head.headers.etag], [200, "", answer.headers.etag], place);
      assert.equal((await from.get(place, { method: "OPTIONS" })).status, 204, place);
    }
  }
});

test("RFC8414-D-1 readers of OpenID Connect find RS256 and the algorithm of each target, so that a verifier takes its tokens", async () => {
  const target = (name: string, alg: string) => ({
    names: [`https://${name}.example`],
    scopes: ["read"],
    alg,
  });
  await reload({ targets: [target("one", "EdDSA"), target("two", "ES256"), target("three", "RS256")] });
  const [plain, openId] = await Promise.all(PATHS.map((path) => world.get(path)));
  assert.deepEqual(openId?.body, { ...plain?.body, ...forOpenId("EdDSA", "ES256") });
  await reload(partner({ alg: "EdDSA" }));
  assert.deepEqual(
    (await world.get(PATHS[1] ?? "")).body.id_token_signing_alg_values_supported,
    ["RS256", "ES256"],
    "a partner gets no access token",
  );
});

test("RFC8414-3.2-4, MCP-D.3-1 the well-known path of another issuer is not found", async () => {
  for (const [from, path] of [
    [below, ""],
    [below, "/t2"],
    [below, "/t1//"],
    [below, "/"],
    [world, "/t1"],
  ] as const) {
    for (const place of PATHS) assert.equal((await from.get(`${place}${path}`)).status, 404, place + path);
  }
});

test("RFC8414-3.1-1, RFC8414-3.2-1, RFC9700-2.6-1, MCP-O.3-4 the metadata are public, served by GET and cacheable", async () => {
  for (const path of PATHS) {
    const { status, headers, text: told } = await world.get(path);
    assert.deepEqual([status, headers["access-control-allow-origin"]], [200, "*"]);
    assert.match(headers["cache-control"] ?? "", /^public, max-age=\d+$/);
    const { etag = "" } = headers;
    assert.deepEqual(await askIfOther(path, etag), [304, ""]);
    assert.deepEqual(await askIfOther(path, `"other", W/${etag}`), [304, ""]);
    assert.deepEqual(await askIfOther(path, "*"), [304, ""]);
    assert.deepEqual(await askIfOther(path, '"other"'), [200, told]);
    const posted = await post(path, "{}");
    assert.deepEqual([posted.status, posted.headers.allow], [405, "GET, HEAD"]);
  }
});

test("PRM-D-1, RFC9728-3-1, RFC9728-3.1-1, RFC9728-3.2-1, RFC9728-7.10-1, RFC9728-7-1 the metadata of our own endpoints are at the URL of their audience", async () => {
  const WELL_KNOWN = "/.well-known/oauth-protected-resource";
  for (const [from, base] of [
    [world, ""],
    [below, "/t1"],
  ] as const) {
    const { status, headers, body } = await from.get(`${WELL_KNOWN}${base}/api`);
    assert.deepEqual(
      [status, headers["content-type"], headers["cache-control"]],
      [200, "application/json", "public, max-age=300"],
    );
    assert.deepEqual(body, {
      resource: `${ISSUER}${base}/api`,
      authorization_servers: [`${ISSUER}${base}`],
      scopes_supported: [
        "policy:explain",
        "audit:read",
        "receipt:read",
        "consent:manage",
        "client:manage",
        "token:revoke",
        "job:manage",
      ],
      bearer_methods_supported: ["header"],
      dpop_signing_alg_values_supported: METADATA.dpop_signing_alg_values_supported,
      resource_name: "Mandate administration",
    });
    for (const path of ["", base, `${base}/api/`, `${base}/account`, `${base}/consents`, "/t2/api"]) {
      assert.equal((await from.get(WELL_KNOWN + path)).status, 404, path);
    }
    const asked = await from.get(`${WELL_KNOWN}${base}/api`, { method: "OPTIONS" });
    assert.deepEqual([asked.status, asked.text, asked.headers["content-length"]], [204, "", undefined]);
  }
});

/** A conditional request, as a cache sends it; the response need not be JSON. */
async function askIfOther(path: string, etag: string): Promise<[number | undefined, string]> {
  const headers = { host: "as.example", "if-none-match": etag };
  const at = { host: "127.0.0.1", port: world.server.port, servername: "as.example", ca: world.ca };
  const asked = request({ ...at, path, headers, agent: false }).end();
  const [response] = (await once(asked, "response")) as [IncomingMessage];
  return [response.statusCode, await text(response)];
}

test("PRM-D-3, PRM-D-4 our own document names the one audience and our issuer alone, whatever Host the request has", async () => {
  const path = "/.well-known/oauth-protected-resource/api";
  for (const headers of [{}, { host: "evil.example" }, { host: `as.example:${world.server.port}` }]) {
    const { status, body } = await world.get(path, { headers: { ...headers } });
    assert.equal(status, 200);
    assert.deepEqual([body.resource, body.authorization_servers], [`${ISSUER}/api`, [ISSUER]]);
  }
});

test("RFC8414-3-1, RFC8414-3.3-1 the issuer does not depend on the Host of the request", async () => {
  const { text: told } = await world.get("/.well-known/oauth-authorization-server");
  for (const headers of [
    { host: "evil.example" },
    { "x-forwarded-host": "evil.example", forwarded: "host=evil.example" },
  ]) {
    const answer = await world.get("/.well-known/oauth-authorization-server", { headers: { ...headers } });
    assert.ok(!answer.text.includes("evil.example"));
    if (answer.status === 200) assert.equal(answer.text, told);
  }
});

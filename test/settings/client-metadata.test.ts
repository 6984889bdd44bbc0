import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { before, test } from "node:test";
import { derOf, makeKeyPem, publicJwk } from "../../scripts/dev-keys.ts";
import { issueClientCertificate, makeAuthority } from "../../scripts/dev-pki.ts";
import { type DescribedClient, parseClientMetadata, toClient } from "../../src/settings/client-metadata.ts";
import { selectKey } from "../../src/spec/rfc7517.ts";
import type { Json, JsonObject } from "../../src/spec/rfc8259.ts";
import { supplied } from "../support/nasty.ts";

let ec: JsonObject;
let rsa: JsonObject;
let certified: JsonObject;
let der: Uint8Array;

before(async () => {
  ec = { kid: "ec", ...publicJwk(await makeKeyPem()) };
  const {
    kty = "",
    n = "",
    e = "",
  } = generateKeyPairSync("rsa", { modulusLength: 2048 }).publicKey.export({
    format: "jwk",
  });
  rsa = { kid: "rsa", kty, n, e };
  const { keyPem, certPem } = await issueClientCertificate(await makeAuthority("Anyone"), ["client.example"]);
  der = derOf(certPem);
  certified = { ...publicJwk(keyPem), x5c: [der.toBase64()] };
});

/** The client that results from these metadata, or the reason why there is none. */
function make(json: { [name: string]: Json | undefined }, known: Partial<DescribedClient> = {}) {
  const present = Object.entries(json).filter((pair): pair is [string, Json] => pair[1] !== undefined);
  const metadata = parseClientMetadata(Object.fromEntries(present));
  assert.ok(metadata.ok, JSON.stringify(metadata));
  const { method = assert.fail("the metadata have no method") } = metadata.value;
  const client = toClient({
    clientId: "c_1",
    source: "registration",
    metadata: { ...metadata.value, method },
    grantTypes: ["client_credentials"],
    origins: new Map(),
    ...known,
  });
  return client.ok ? client.value : client.error.kind;
}

function authOf(json: { [name: string]: Json | undefined }, known: Partial<DescribedClient> = {}) {
  const client = make(json, known);
  return typeof client === "string" ? client : client.auth;
}

const byKeys = (keys: JsonObject[], signingAlg?: string) =>
  authOf({
    token_endpoint_auth_method: "private_key_jwt",
    jwks: { keys },
    token_endpoint_auth_signing_alg: signingAlg,
  });

test("CIMD-7.1-2 a client has what it was granted, and its source", () => {
  const json = {
    token_endpoint_auth_method: "client_secret_post",
    grant_types: ["authorization_code"],
    redirect_uris: ["https://a.example/cb"],
  };
  const secrets = [{ digest: "d", expiresAtSeconds: 1 }];
  assert.deepEqual(make(json, { secrets, scopes: ["a"], registrationClass: "partners" }), {
    clientId: "c_1",
    source: "registration",
    auth: { method: "client_secret_post", secrets },
    grantTypes: ["client_credentials"],
    scopes: ["a"],
    registrationClass: "partners",
    redirectUris: ["https://a.example/cb"],
  });
  assert.deepEqual(make({ token_endpoint_auth_method: "client_secret_basic" }), {
    clientId: "c_1",
    source: "registration",
    auth: { method: "client_secret_basic", secrets: [] },
    grantTypes: ["client_credentials"],
  });
});

test("CIMD-8.2-3, PROD-2.2-14 a client has the keys of its metadata", () => {
  assert.deepEqual(byKeys([ec, rsa]), { method: "private_key_jwt", keys: [ec, rsa] });
});

const NARROWED: [alg: string, key: "ec" | "rsa"][] = [
  ["ES256", "ec"],
  ["PS256", "rsa"],
  ["RS256", "rsa"],
];
for (const [alg, kid] of NARROWED) {
  test(`RFC8725-3.1-v1 a client that named ${alg} has keys only for ${alg}`, () => {
    const auth = byKeys([ec, rsa], alg);
    assert.ok(typeof auth !== "string" && "keys" in auth);
    const found = ["ES256", "PS256", "RS256"].map((one) => selectKey(auth.keys, { alg: one }).ok);
    assert.deepEqual(
      found,
      ["ES256", "PS256", "RS256"].map((one) => one === alg),
    );
    assert.equal(selectKey(auth.keys, { alg, kid }).ok, true);
  });
}

test("RFC8725-3.1-v1 a key that names another algorithm is dropped, not changed to the client's algorithm", () => {
  const auth = byKeys(
    [
      { ...rsa, alg: "RS256" },
      { ...rsa, kid: "other" },
    ],
    "PS256",
  );
  assert.ok(typeof auth !== "string" && "keys" in auth);
  assert.deepEqual(auth.keys, [{ ...rsa, kid: "other", alg: "PS256" }]);
});

test("CIMD-8.6-1 a jwks_uri has the access that the operator configured for its own origin, and the client's algorithm", () => {
  const reach = { privateNetworks: ["10.0.0.0/8"], ca: "pem" };
  const origins = new Map([["https://keys.example:8443", reach]]);
  const at = (url: string, signingAlg?: string) =>
    authOf(
      {
        token_endpoint_auth_method: "private_key_jwt",
        jwks_uri: url,
        token_endpoint_auth_signing_alg: signingAlg,
      },
      { origins },
    );
  for (const [url, more] of [
    ["https://keys.example:8443/jwks", reach],
    ["https://keys.example/jwks", { privateNetworks: [] }],
    ["https://other.example:8443/jwks", { privateNetworks: [] }],
  ] as const) {
    const keySet = { ...supplied(url), ...more };
    assert.deepEqual(at(url), { method: "private_key_jwt", keySet });
    assert.deepEqual(at(url, "ES256"), {
      method: "private_key_jwt",
      keySet: { ...keySet, algorithm: "ES256" },
    });
  }
});

for (const method of ["spiffe_jwt", "spiffe_x509"] as const) {
  test(`SPCA-5.1-1 a client of ${method} has the SPIFFE ID of its metadata`, () => {
    const spiffeId = "spiffe://td.example/agents/*";
    assert.deepEqual(authOf({ token_endpoint_auth_method: method, spiffe_id: spiffeId }), {
      method,
      spiffeId,
    });
  });
}

test("RFC8705-2.2.2-1 a client of self_signed_tls_client_auth has the certificates of its keys", () => {
  const auth = authOf({
    token_endpoint_auth_method: "self_signed_tls_client_auth",
    jwks: { keys: [certified] },
  });
  assert.ok(typeof auth !== "string" && "certificates" in auth);
  assert.deepEqual(
    auth.certificates.map((one) => Buffer.from(one.der)),
    [Buffer.from(der)],
  );
});

test("RFC8705-2.1.2-1 a client of tls_client_auth has its subject and the configured certificate authorities", () => {
  const json = { token_endpoint_auth_method: "tls_client_auth", tls_client_auth_san_dns: "Client.example" };
  const anchors = [Uint8Array.of(1)];
  const subject = { parameter: "tls_client_auth_san_dns", name: "client.example" };
  assert.deepEqual(authOf(json, { anchors }), { method: "tls_client_auth", subject, anchors });
});

test("RFC8705-2.1-1 tls_client_auth is refused without configured certificate authorities", () => {
  const json = { token_endpoint_auth_method: "tls_client_auth", tls_client_auth_san_dns: "client.example" };
  for (const known of [{}, { anchors: [] }]) assert.equal(authOf(json, known), "authorities_missing");
});

/** Stored metadata that the rules no longer accept. */
const STALE: [what: string, metadata: Partial<DescribedClient["metadata"]>, kind: string][] = [
  ["without keys", { method: "private_key_jwt" }, "keys_unusable"],
  ["with unusable keys", { method: "private_key_jwt", jwks: { keys: [{ kty: "oct" }] } }, "keys_unusable"],
  [
    "without a certificate",
    { method: "self_signed_tls_client_auth", jwks: { keys: [{}] } },
    "certificates_missing",
  ],
  ["without a key for the certificate", { method: "self_signed_tls_client_auth" }, "certificates_missing"],
  ["without a subject", { method: "tls_client_auth" }, "subject_refused"],
  [
    "with keys at a plain http URL",
    { method: "private_key_jwt", jwksUri: "http://a.example/" },
    "keys_unusable",
  ],
  [
    "with keys at a URL that is not in normal form",
    { method: "private_key_jwt", jwksUri: "https://127.1/" },
    "keys_unusable",
  ],
];
for (const [what, metadata, kind] of STALE) {
  test(`stored metadata ${what} are refused`, () => {
    const client = toClient({
      clientId: "c_1",
      source: "registration",
      metadata: { members: {}, redirectUris: [], method: "spiffe_jwt", ...metadata },
      grantTypes: [],
      origins: new Map(),
    });
    assert.equal(client.ok ? "ok" : client.error.kind, kind);
  });
}

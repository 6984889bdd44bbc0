/** Clients of the configuration file, one of each authentication method, and what is reported of wrong ones. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { derOf, makeKeyPem, publicJwk } from "../../scripts/dev-keys.ts";
import { issueClientCertificate, makeAuthority } from "../../scripts/dev-pki.ts";
import { makeProfile } from "../../scripts/dev-profile.ts";
import { loadConfig, loadSettings } from "../../src/config/config.ts";
import type { Client } from "../../src/settings/settings.ts";

const authority = await makeAuthority("Authority of clients");
const certificate = await issueClientCertificate(authority, ["client.example"]);
const der = derOf(certificate.certPem);
const certified = { ...publicJwk(certificate.keyPem), x5c: [der.toString("base64")] };
const key = { kid: "k1", ...publicJwk(await makeKeyPem()) };
const PRIVATE = { ...key, d: "AAAA" };
const CLUSTER = "https://cluster.example";
const ISSUERS = {
  [CLUSTER]: {
    keys: { url: `${CLUSTER}/jwks` },
    subjects: { prefix: "cluster:" },
    acceptAs: [],
    vouches: {},
  },
};

let parent: string;
let configFile: string;

before(async () => {
  parent = mkdtempSync(join(tmpdir(), "mandate test "));
  ({ configFile } = await makeProfile(join(parent, "data")));
  for (const [name, content] of Object.entries({
    secret: "the secret\n",
    "authority.pem": authority.certPem,
    "empty.pem": "",
  })) {
    writeFileSync(join(parent, "data", name), content);
  }
});

after(() => rmSync(parent, { recursive: true, force: true }));

function save(client: object, rest: object = {}): string {
  const base = JSON.parse(readFileSync(configFile, "utf8"));
  const file = join(parent, "data", "patched.json");
  const patch = { policies: [], targets: [], trustedIssuers: ISSUERS, clients: { one: client }, ...rest };
  writeFileSync(file, JSON.stringify({ ...base, ...patch }));
  return file;
}

function read(client: object): Client | undefined {
  const config = loadConfig(save(client));
  assert.ok(config.ok, JSON.stringify(config));
  return config.value.settings.clients.get("one");
}

function problems(client: object, rest: object = {}): readonly string[] {
  const config = loadConfig(save(client, rest));
  return config.ok ? [] : config.error;
}

const SUBJECT = { method: "tls_client_auth", tls_client_auth_san_dns: "Client.example" };
const digest = createHash("sha256").update("the secret").digest("base64url");

const good: readonly (readonly [name: string, client: object, auth: object])[] = [
  [
    "RFC6749-2.3.1-5 a secret from a file, as its digest and with its end",
    { method: "client_secret_basic", secrets: [{ file: "secret", expires: "2027-01-31T00:00:00Z" }] },
    { secrets: [{ digest, expiresAtSeconds: Date.UTC(2027, 0, 31) / 1000 }] },
  ],
  [
    "RFC6749-2.3.1-3 a secret for the body, inline for development",
    { method: "client_secret_post", secrets: ["the secret", { file: "secret" }] },
    { secrets: [{ digest }, { digest }] },
  ],
  ["PROD-2.2-14 keys in the file", { method: "private_key_jwt", jwks: { keys: [key] } }, { keys: [key] }],
  [
    "PROD-2.2-14 keys at a URL",
    {
      method: "private_key_jwt",
      jwksUri: {
        url: "https://keys.example/jwks",
        ca: { file: "authority.pem" },
        privateNetworks: ["10.0.0.0/8"],
      },
    },
    {
      jwksUri: {
        url: "https://keys.example/jwks",
        privateNetworks: ["10.0.0.0/8"],
        ca: authority.certPem,
      },
    },
  ],
  [
    "RFC7523-5-1 an issuer that vouches",
    { method: "private_key_jwt", vouchedBy: [{ issuer: CLUSTER, claims: { sub: "job" } }] },
    { vouchers: [{ issuer: CLUSTER, claims: new Map([["sub", "job"]]) }] },
  ],
  [
    "SPCA-5.1-1 a workload",
    { method: "spiffe_jwt", spiffeId: "spiffe://td.example/a" },
    { spiffeId: "spiffe://td.example/a" },
  ],
  [
    "SPCA-5.1-1 workloads",
    { method: "spiffe_x509", spiffeId: "spiffe://td.example/a/*" },
    { spiffeId: "spiffe://td.example/a/*" },
  ],
  [
    "RFC8705-2.1.2-1 a subject and its authorities",
    { ...SUBJECT, ca: { file: "authority.pem" } },
    {
      subject: { parameter: "tls_client_auth_san_dns", name: "client.example" },
      anchors: [new Uint8Array(derOf(authority.certPem))],
    },
  ],
];
for (const [name, client, want] of good) {
  test(`${name}`, () => {
    const { auth, source } = read(client) ?? assert.fail("there is no client");
    const plain =
      "anchors" in auth ? { ...auth, anchors: auth.anchors.map((one) => new Uint8Array(one)) } : auth;
    assert.deepEqual(plain, { method: Object(client).method, ...want });
    assert.equal(source, "configuration");
  });
}

test("RFC8705-2.2.2-1 the certificates of registered keys", () => {
  const { auth } =
    read({ method: "self_signed_tls_client_auth", jwks: { keys: [certified] } }) ?? assert.fail();
  assert.ok("certificates" in auth);
  assert.deepEqual(
    auth.certificates.map((one) => Buffer.from(one.der)),
    [Buffer.from(der)],
  );
});

test("what a client may do and whom it acts as stands beside its method", () => {
  const more = {
    grantTypes: ["client_credentials"],
    workload: "spiffe://td.example/a",
    actorAccessToken: true,
  };
  const { auth: _, ...rest } =
    read({ method: "client_secret_basic", secrets: ["a"], ...more }) ?? assert.fail();
  assert.deepEqual(rest, { clientId: "one", source: "configuration", ...more });
  const plain = read({ method: "client_secret_basic", secrets: ["a"], grantTypes: [] }) ?? assert.fail();
  assert.deepEqual(Object.keys(plain).sort(), ["auth", "clientId", "grantTypes", "source"]);
});

const JWT = { method: "private_key_jwt" };
const wrong: readonly (readonly [name: string, client: object, ...want: string[]])[] = [
  ["no keys at all", JWT, "clients.one: requires exactly one of jwks, jwksUri and vouchedBy"],
  [
    "keys in two places",
    { ...JWT, jwks: { keys: [key] }, jwksUri: { url: "https://keys.example/jwks" } },
    "clients.one: requires exactly one of jwks, jwksUri and vouchedBy",
  ],
  ["an empty set", { ...JWT, jwks: { keys: [] } }, "clients.one.jwks: has no usable public key"],
  [
    "RFC7517-9.2-1 a private key",
    { ...JWT, jwks: { keys: [PRIVATE] } },
    "clients.one.jwks: has no usable public key (jwk_set_private)",
  ],
  [
    "an issuer that does not vouch, for any token",
    { ...JWT, vouchedBy: [{ issuer: "https://other.example", claims: {} }] },
    'clients.one.vouchedBy.0.issuer: is not a trusted issuer that "vouches"',
    "clients.one.vouchedBy.0.claims: names no claim, so that every token of the issuer would match",
  ],
  [
    "RFC8705-2.1.2-1 no subject",
    { method: "tls_client_auth", ca: { file: "authority.pem" } },
    "clients.one: requires exactly one valid tls_client_auth_* parameter (subject_missing)",
  ],
  [
    "RFC8705-2.1.2-1 two subjects",
    { ...SUBJECT, tls_client_auth_subject_dn: "CN=a", ca: { file: "authority.pem" } },
    "clients.one: requires exactly one valid tls_client_auth_* parameter (subject_repeated)",
  ],
  [
    "an address that is none",
    { method: "tls_client_auth", tls_client_auth_san_ip: "300.1.1.1", ca: { file: "authority.pem" } },
    "clients.one.tls_client_auth_san_ip: is not an IP address in its usual form",
  ],
  [
    "a SPIFFE ID as the URI of a certificate",
    {
      ...SUBJECT,
      tls_client_auth_san_dns: undefined,
      tls_client_auth_san_uri: "spiffe://a.example/b",
      ca: { file: "authority.pem" },
    },
    "clients.one.tls_client_auth_san_uri: is not an absolute URI, or is a SPIFFE ID, for which there is the method spiffe_x509",
  ],
  [
    "a file of authorities that is not there",
    { ...SUBJECT, ca: { file: "nowhere.pem" } },
    "clients.one.ca.file: nowhere.pem cannot be read: there is no such file or folder: correct its name, or make it",
  ],
  [
    "RFC8705-2.1-1 no authority",
    { ...SUBJECT, ca: { file: "empty.pem" } },
    "clients.one.ca.file: empty.pem has no certificates in PEM: it is empty: fill it",
  ],
  [
    "RFC8705-2.2-1 a key without a certificate",
    { method: "self_signed_tls_client_auth", jwks: { keys: [certified, key] } },
    "clients.one.jwks: is not a set of keys that each have their certificate in x5c",
  ],
  [
    "RFC8705-2.2-1 no key",
    { method: "self_signed_tls_client_auth", jwks: { keys: [] } },
    "clients.one.jwks: is not a set of keys that each have their certificate in x5c",
  ],
  [
    "an end that is not in the calendar",
    { method: "client_secret_basic", secrets: [{ file: "secret", expires: "2027-02-31T00:00:00Z" }] },
    "clients.one.secrets.0.expires: is not a valid date, or its time zone has no minutes",
  ],
  [
    "RFC6749-2.3.1-5 an end with a time zone without minutes",
    { method: "client_secret_basic", secrets: [{ file: "secret", expires: "2099-01-31T00:00:00+01" }] },
    "clients.one.secrets.0.expires: is not a valid date, or its time zone has no minutes",
  ],
  [
    "RFC6749-2.3.1-5 an end with no time zone",
    { method: "client_secret_basic", secrets: [{ file: "secret", expires: "2099-01-31T00:00:00" }] },
    "clients.one.secrets.0.expires: is not a time like 2027-01-31T00:00:00Z",
  ],
  [
    "RFC6749-2.3.1-5 an end with a date alone",
    { method: "client_secret_basic", secrets: [{ file: "secret", expires: "2099-01-31" }] },
    "clients.one.secrets.0.expires: is not a time like 2027-01-31T00:00:00Z",
  ],
  [
    "an actor token of a client that has an SVID",
    {
      method: "spiffe_jwt",
      spiffeId: "spiffe://td.example/a",
      workload: "spiffe://td.example/a",
      actorAccessToken: true,
    },
    'clients.one.actorAccessToken: is for a client that was given a "workload" and has no SVID',
  ],
  [
    "a member of another method",
    { method: "client_secret_basic", secrets: ["a"], jwks: { keys: [key] } },
    'clients.one.jwks: is not a setting of a client with "method": "client_secret_basic"',
  ],
  [
    "PROD-2.2-12 a method that is not in the table",
    { method: "client_secret_jwt", secrets: ["a"] },
    'clients.one.method: is not one of "metadata_document", "client_secret", "client_secret_basic", "client_secret_post", "private_key_jwt", "spiffe_jwt", "spiffe_x509", "tls_client_auth", "self_signed_tls_client_auth", "none"',
  ],
];
for (const [name, client, ...want] of wrong) {
  test(`${name} is refused, by its path`, () => {
    assert.deepEqual(problems(client), want);
  });
}

for (const client of [
  { ...SUBJECT, ca: { file: "not-there.pem" } },
  { method: "client_secret_basic", secrets: [{ file: "not-there" }] },
]) {
  test(`a policy is judged without the files of a client of ${client.method}`, () => {
    const loaded = loadSettings(save(client));
    assert.ok(loaded.ok, JSON.stringify(loaded));
    assert.equal(loaded.value.settings.clients.get("one")?.auth.method, client.method);
  });
}

test("RFC8705-3.4-1, RFC9449-5.2-2 a client says what its tokens must be bound by, and DPoP must be on for that", () => {
  const secretly = { method: "client_secret_basic", secrets: [{ file: "secret" }] };
  assert.equal(read(secretly)?.bindsBy, undefined);
  const certificate = { ...secretly, tls_client_certificate_bound_access_tokens: true };
  assert.deepEqual(read(certificate)?.bindsBy, ["certificate"]);
  const dpop = { ...secretly, dpop_bound_access_tokens: true };
  assert.deepEqual(read(dpop)?.bindsBy, ["dpop"]);
  assert.deepEqual(problems(certificate, { dpop: { algorithms: [] } }), []);
  assert.deepEqual(problems(dpop, { dpop: { algorithms: [] } }), [
    "clients.one.dpop_bound_access_tokens: needs DPoP, which dpop.algorithms turns off",
  ]);
});

// --- pinned documents ---------------------------------------------------------------------------------------------

const URL = "https://agents.example/client.json";
const DOCUMENT = {
  client_id: URL,
  client_name: "Agent",
  redirect_uris: ["https://agents.example/cb"],
  token_endpoint_auth_method: "private_key_jwt",
  jwks: { keys: [key] },
};
const pinned = (document: object, name = URL) => ({
  clients: { [name]: { method: "metadata_document", document } },
});

test("MCPC-D-17, CIMD-5-3, CIMD-7.2-1 a document in the configuration makes its URL a client, of the operator", () => {
  const config = loadConfig(save({}, pinned({ ...DOCUMENT, "x-odd": [1] })));
  assert.ok(config.ok, JSON.stringify(config));
  assert.deepEqual(config.value.settings.clients.get(URL), {
    clientId: URL,
    source: "configuration",
    auth: { method: "private_key_jwt", keys: [key] },
    grantTypes: ["authorization_code"],
    redirectUris: ["https://agents.example/cb"],
    claimedName: "Agent",
  });
});

const elsewhere = "https://agents.example/other.json";
const badDocuments = [
  [
    "of another URL",
    pinned(DOCUMENT, elsewhere),
    `clients.${elsewhere}.document: is not a valid metadata document (document_client_id_differs)`,
  ],
  [
    "with a secret",
    pinned({ ...DOCUMENT, client_secret: "a" }),
    `clients.${URL}.document: is not a valid metadata document (document_secret)`,
  ],
  [
    "of a public client where no user signs in",
    pinned({ ...DOCUMENT, token_endpoint_auth_method: "none", jwks: undefined }),
    `clients.${URL}.document: describes a client that is not served here (document_public)`,
  ],
  [
    "at a name that is no URL",
    pinned({ ...DOCUMENT, client_id: "agent" }, "agent"),
    "clients.agent: is not the URL of a metadata document (url_not_https)",
  ],
  [
    "at a URL with a query",
    pinned({ ...DOCUMENT, client_id: `${URL}?a` }, `${URL}?a`),
    `clients.${URL}?a: is not the URL of a metadata document (url_query)`,
  ],
] as const;
for (const [what, rest, want] of badDocuments) {
  test(`MCPC-D-17 a document ${what} is a problem of the configuration`, () => {
    assert.deepEqual(problems({}, rest), [want]);
  });
}

test("a secret that clients send wrongly in HTTP Basic is warned of, and only there", () => {
  const warned = (method: string, secret: string): readonly string[] => {
    const loaded = loadConfig(save({ method, secrets: [secret] }));
    assert.ok(loaded.ok, JSON.stringify(loaded));
    return loaded.value.warnings.filter((one) => one.includes("form-encode"));
  };
  const long = "f7c3bc1d808e04732adf679965ccc34c";
  for (const character of ["+", "%", " ", "é"]) {
    assert.equal(warned("client_secret_basic", long + character).length, 1, character);
    assert.deepEqual(warned("client_secret_post", long + character), [], character);
  }
  for (const text of [long, `${long}/=-._~:`]) assert.deepEqual(warned("client_secret_basic", text), []);
});

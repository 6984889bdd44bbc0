import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { JSON_DEPTH_MAX } from "../../src/limits/input.ts";
import { MACHINE_GRANT_TYPES } from "../../src/modes.ts";
import { defined } from "../../src/result.ts";
import { parseClientMetadata } from "../../src/settings/client-metadata.ts";
import {
  buildClientInformation,
  type Ceiling,
  grantedScopes,
  grantedTypes,
  mergeStatement,
  registerMetadata,
  servedTypes,
} from "../../src/spec/rfc7591.ts";
import { METADATA_REASONS, type MetadataReason } from "../../src/spec/rfc7591-errors.ts";
import { membersFor } from "../../src/spec/rfc7591-members.ts";
import { isJsonObject, type JsonObject, parseJson } from "../../src/spec/rfc8259.ts";
import { prng } from "../support/prng.ts";
import { rounds } from "../support/rounds.ts";

/** Parsed as a request body is. */
function json(text: string): JsonObject {
  const got = parseJson(text, JSON_DEPTH_MAX);
  assert(got.ok && isJsonObject(got.value), text);
  return got.value;
}
const parse = (metadata: object) => parseClientMetadata(json(JSON.stringify(metadata)));

const reason = (metadata: object): string => {
  const got = parse(metadata);
  return got.ok ? "ok" : got.error.reason;
};
const members = (metadata: object): JsonObject => {
  const got = parse(metadata);
  assert(got.ok, JSON.stringify(got));
  return got.value.members;
};

const EC = {
  kty: "EC",
  crv: "P-256",
  x: "MQgPAkAgXSv3VyGBXzRSTgy98uhTeEwjuqIt9saw4UA",
  y: "F-dUk8AniOPrUBz75sWa1KnYLxAIkp-Vkm1DBLI65zs",
};
const OKP = { kty: "OKP", crv: "Ed25519", x: "z3xu9qieo3piI9XuwCBOrUheAovbI-PAcZl8zLP7eVc" };
const RSA = {
  kty: "RSA",
  e: "AQAB",
  n: "xr532X7oFIQkvYGe5-8RIobFLZZsv1vVkTEjfR71nw-1UMuk2NfHIRPrrc9sRZlzpcFXqXVKwaCj6mQRmXhCpGOFdB8QeutgfzY_DXN-JvOb5J2eOSfQ7SbrX-53dwBxGZhES0EDX3G7JxyeiggzyseD_NuyOAqOBi9o-cWemZTBtpNsy6bfsxjAGBr8-eLpdg3f8rx-nq5NkLdYLwsFOftybrTpm_U9FQ7Zq7V9xtEJeoH-TSwJx4XSvF3SrLgEJDAwxHa14f1N6chjN0X9DIHLjIHwrWYwfdjHBelXz6ElQWiCVowsWMen3YaAivgiZC5EaQyY8PiwxbUFbudfAw",
};
const P521 = generateKeyPairSync("ec", { namedCurve: "P-521" }).publicKey.export({ format: "jwk" });
const SECRET_EC = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ format: "jwk" });
const SECRET_RSA = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ format: "jwk" });
const CERTIFICATE =
  "MIIBqDCCAU+gAwIBAgIUcrT5BY92iI+wRxPFPX674227kPgwCgYIKoZIzj0EAwIwKjEQMA4GA1UECgwHRXhhbXBsZTEWMBQGA1UEAwwNYmlsbGluZy1hZ2VudDAeFw0yNjExMjEwMTEzMDdaFw0zNjExMTgwMTEzMDdaMCoxEDAOBgNVBAoMB0V4YW1wbGUxFjAUBgNVBAMMDWJpbGxpbmctYWdlbnQwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAR2LlHKlnhFlsWEprUdrnu3IXHmd0LnR9hDxtmgJynL5B4EiAWTdbCp4FIQg8u0C3RJkJrOYIonR0adAE5/FluUo1MwUTAdBgNVHQ4EFgQUavVo8Zhffr88TsJJfftoWywp/3AwHwYDVR0jBBgwFoAUavVo8Zhffr88TsJJfftoWywp/3AwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiBCrEjmVV/vtrkwxCsog91+4E+Jo+Z19/osfzrAkhxOQgIgSOhB2IbZ20V/vcgU8avh4lpDYLa8/7LZE/cLKztawt8=";
const CERTIFIED = {
  kty: "EC",
  crv: "P-256",
  x: "di5RypZ4RZbFhKa1Ha57tyFx5ndC50fYQ8bZoCcpy-Q",
  y: "HgSIBZN1sKngUhCDy7QLdEmQms5giidHRp0ATn8WW5Q",
  x5c: [CERTIFICATE],
};

const KEYS = { jwks: { keys: [EC] } };
const KEY_URI = { jwks_uri: "https://sync.example.net/keys.json" };
const WORKLOAD = { spiffe_id: "spiffe://td.example/agents/planner" };
const SUBJECT = { tls_client_auth_san_dns: "sync.example.net" };
const by = (method: string, metadata: object = {}) => ({ token_endpoint_auth_method: method, ...metadata });

/** Every member with an accepted value; the whole is accepted too. */
const FULL = {
  redirect_uris: ["https://app.example/cb", "com.example.app:/cb"],
  token_endpoint_auth_method: "private_key_jwt",
  token_endpoint_auth_signing_alg: "ES256",
  grant_types: ["client_credentials", "authorization_code"],
  response_types: ["code"],
  client_name: "Ledger Sync",
  "client_name#fr": "Synchro",
  client_uri: "https://app.example/",
  logo_uri: "https://app.example/logo.png",
  tos_uri: "https://app.example/terms",
  policy_uri: "https://app.example/privacy",
  scope: "ledger.read ledger.write",
  contacts: ["ops@app.example"],
  jwks: { keys: [{ ...EC, kid: "k1" }] },
  software_id: "4NRB1-0XZABZI9E6-5SM3R",
  software_version: "2.2",
  software_statement: "a.b.c",
  spiffe_id: "spiffe://td.example/agents/*",
  spiffe_bundle_endpoint: "https://td.example/bundle",
  tls_client_auth_san_dns: "sync.example.net",
  tls_client_certificate_bound_access_tokens: false,
  dpop_bound_access_tokens: false,
};

// --- one member ---------------------------------------------------------------------------------------------

test("RFC7591-3.2.1-8 every understood member is kept unchanged", () => {
  assert.deepEqual(members(FULL), FULL);
});

test("PROD-2.2-1, PROD-2.2-6, PROD-2.2-7, PROD-2.2-11, PROD-2.2-13, PROD-4.2-4 the six fields of a metadata document are read", () => {
  const six = {
    client_id: "https://app.example/client.json",
    client_name: "App",
    redirect_uris: ["https://app.example/cb"],
    grant_types: ["authorization_code"],
    token_endpoint_auth_method: "private_key_jwt",
    jwks_uri: "https://app.example/jwks.json",
  };
  const got = parse(six);
  assert(got.ok);
  const { client_id: _, ...rest } = six;
  assert.deepEqual(got.value, {
    members: rest,
    redirectUris: ["https://app.example/cb"],
    grantTypes: ["authorization_code"],
    method: "private_key_jwt",
    jwksUri: "https://app.example/jwks.json",
  });
});

test("metadata are parsed into the values that a client has", () => {
  const { members: _, ...read } = (() => {
    const got = parse(FULL);
    assert(got.ok);
    return got.value;
  })();
  assert.deepEqual(read, {
    redirectUris: FULL.redirect_uris,
    method: "private_key_jwt",
    signingAlg: "ES256",
    grantTypes: FULL.grant_types,
    responseTypes: ["code"],
    scope: ["ledger.read", "ledger.write"],
    jwks: FULL.jwks,
    spiffeId: "spiffe://td.example/agents/*",
    bundleEndpoint: "https://td.example/bundle",
  });
});

test("empty metadata are accepted", () => {
  assert.deepEqual(parse({}), { ok: true, value: { members: {}, redirectUris: [] } });
});

const unknown = [
  ["RFC7591-2-20", "an unknown member", '{"shoe_size":43}'],
  ["RFC7591-2-20", "a member of another specification", '{"require_pushed_authorization_requests":true}'],
  [
    "RFC7591-2-20",
    "the names of an object's built-in members",
    '{"__proto__":{"scope":"a"},"constructor":1}',
  ],
  ["RFC7591-2-20", "a built-in member with a language tag", '{"__proto__#fr":"a","constructor#fr":"a"}'],
  ["RFC7591-1.1-1", "a member with other capitals", '{"Client_Name":"a","SCOPE":"a"}'],
  ["RFC7591-6-1, PROD-2.2-16", "a client_id chosen by the client", '{"client_id":"admin"}'],
  ["RFC7592-2.2-8", "a secret chosen by the client", '{"client_secret":"s","client_secret_expires_at":0}'],
  ["RFC7591-6-1", "a registration time", '{"client_id_issued_at":1}'],
  [
    "RFC7591-6-1",
    "the registration access token and its URI",
    '{"registration_access_token":"a","registration_client_uri":"b"}',
  ],
  [
    "RFC7591-2.2-1",
    "a language tag on a member that people do not read",
    '{"jwks_uri#fr":"https://a.example/","scope#fr":"a"}',
  ],
  ["RFC7591-2.2-1", "a malformed language tag", '{"client_name#":"a","client_name#fr_FR":"a"}'],
  ["RFC7591-2.2-1", "a language tag that is too long", `{"client_name#${"a-".repeat(8)}a":"a"}`],
  ["RFC7591-2.2-1", "two language tags", '{"client_name#fr#de":"a"}'],
] as const;
for (const [ids, what, text] of unknown) {
  test(`${ids} ${what} is ignored`, () => {
    const got = parseClientMetadata(json(text));
    assert.deepEqual(got, { ok: true, value: { members: {}, redirectUris: [] } });
  });
}

const wrong = [43, true, {}, [43], [[]], [null], ["", "a"], { a: "b" }];
/** Every member refuses all of these values, except for the ones named here. */
const exceptions: { [name: string]: readonly unknown[] } = {
  tls_client_certificate_bound_access_tokens: [true],
  dpop_bound_access_tokens: [true],
};
for (const name of Object.keys(FULL)) {
  test(`PROD-2.2-17 ${name} of a wrong type is refused`, () => {
    const want = `${name.replace("#fr", "")}_refused`;
    for (const value of wrong) {
      const allowed = exceptions[name]?.some((one) => JSON.stringify(one) === JSON.stringify(value));
      const expected = allowed ? ["ok"] : [want, "redirect_uri_malformed"];
      assert.ok(
        expected.includes(reason({ ...FULL, grant_types: null, response_types: null, [name]: value })),
        JSON.stringify(value),
      );
    }
  });
  test(`RFC7592-2.2-4, RFC7592-2.2-5, MCPC-D-23 ${name} of null or empty is treated as absent`, () => {
    const { [name as "scope"]: _, ...rest } = FULL;
    const none = name === "redirect_uris" ? [] : [" ", [""]];
    for (const empty of [null, "", [], ...none])
      assert.deepEqual(parse({ ...rest, [name]: empty }), parse(rest));
  });
}

const long = (name: string, bytes: number) => ({
  [name]: "é".repeat(bytes / 2 - 1).padEnd(bytes / 2 + 1, "a"),
});
for (const name of ["client_name", "client_name#fr"]) {
  test(`MCPC-D-12, RFC7591-2.2-5 ${name} of 256 characters of any script is accepted, and of more is refused`, () => {
    for (const character of ["é", "字", "😀", "<", "("]) {
      assert.equal(reason({ [name]: character.repeat(256) }), "ok");
      assert.equal(reason({ [name]: character.repeat(257) }), "client_name_refused");
    }
  });
}
for (const name of ["software_id", "software_version"]) {
  test(`RFC7591-2.2-5 ${name} of 2 KiB, measured in bytes, is accepted, and of more is refused`, () => {
    assert.equal(reason(long(name, 2048)), "ok");
    assert.equal(reason(long(name, 2050)), `${name}_refused`);
  });
}

const padded = (start: string, length: number): string => start.padEnd(length, "a");
const limits: readonly (readonly [string, (length: number) => object, number])[] = [
  ["scope", (length) => ({ scope: padded("", length) }), 2048],
  ["client_uri", (length) => ({ client_uri: padded("https://a.example/", length) }), 2048],
  ["policy_uri", (length) => ({ "policy_uri#de": padded("https://a.example/", length) }), 2048],
  ["jwks_uri", (length) => ({ jwks_uri: padded("https://a.example/", length) }), 2048],
  ["spiffe_bundle_endpoint", (n) => ({ spiffe_bundle_endpoint: padded("https://a.example/", n) }), 2048],
  ["spiffe_id", (length) => ({ spiffe_id: padded("spiffe://td.example/", length) }), 2048],
  ["tls_client_auth_san_dns", (length) => ({ tls_client_auth_san_dns: padded("", length) }), 2048],
  ["grant_types", (length) => ({ grant_types: [padded("", length)] }), 2048],
  ["response_types", (length) => ({ response_types: [padded("", length)] }), 2048],
  ["contacts", (length) => ({ contacts: [padded("", length)] }), 2048],
  ["software_statement", (length) => ({ software_statement: padded("", length) }), 16_384],
  ["redirect_uris", (length) => ({ redirect_uris: Array(length).fill("https://a.example/") }), 64],
  ["grant_types", (length) => ({ grant_types: Array(length).fill("a") }), 64],
  ["response_types", (length) => ({ response_types: Array(length).fill("a") }), 64],
  ["contacts", (length) => ({ contacts: Array(length).fill("a") }), 64],
];
for (const [name, make, most] of limits) {
  test(`PROD-2.2-17 ${name} of length ${most} is accepted, and of more is refused`, () => {
    assert.equal(reason(make(most)), "ok");
    assert.equal(reason(make(most + 1)), `${name}_refused`);
  });
}

const names = [
  ["Latin letters", "Ledger Sync", true],
  ["other letters", "Größe 帳簿 دفتر", true],
  ["a joiner between letters", "می‌خواهم", true],
  ["an emoji of several code points", "👩‍💻", true],
  ["quotes and markup, which are escaped on output", "<b>\"a\" & 'b'</b>", true],
  ["a line feed", "a\nb", false],
  ["a carriage return at the end", "a\r", false],
  ["NUL", "a\0b", false],
  ["an escape character", "a\u001b[31m", false],
  ["a delete character", "a\u007f", false],
  ["a C1 control character", "a\u0085b", false],
  ["a line separator", "a\u2028b", false],
  ["a paragraph separator", "a\u2029b", false],
  ["a direction override", "a\u202egro.elpmaxe", false],
  ["a direction isolate", "a\u2066b", false],
  ["a direction mark", "a\u200fb", false],
] as const;
for (const [what, name, want] of names) {
  test(`RFC7591-2.2-4, RFC7591-2.2-5, PROD-2.2-4 a name with ${what} is ${want ? "kept" : "refused"}`, () => {
    const readers = ["client_name", "client_name#en", "software_id", "software_version"];
    for (const member of readers) {
      const metadata = { [member]: name };
      if (want) assert.deepEqual(members(metadata), metadata);
      else assert.equal(reason(metadata), `${member.replace("#en", "")}_refused`);
    }
    assert.equal(reason({ contacts: ["a", name] }), want ? "ok" : "contacts_refused");
  });
}

const pages = [
  ["a site", "https://app.example", true],
  ["a page", "https://app.example/a/b.html?c=d#e", true],
  ["a page without TLS", "http://app.example:8080/", true],
  ["a page at an address", "https://[2001:db8::1]/", true],
  ["javascript", "javascript:alert(1)", false],
  ["javascript in capitals", "JavaScript:alert(1)", false],
  ["javascript after a blank", " javascript:alert(1)", false],
  ["data", "data:text/html,<script>alert(1)</script>", false],
  ["a file", "file:///etc/passwd", false],
  ["another scheme", "ftp://app.example/", false],
  ["a missing scheme", "app.example/", false],
  ["userinfo", "https://app.example@evil.example/", false],
  ["a blank", "https://app.example/a b", false],
  ["a line break", "https://app.example/\n", false],
  ["a backslash", "https://app.example\\a", false],
  ["a quote", 'https://app.example/"onclick', false],
  ["markup", "https://app.example/<a>", false],
  ["non-ASCII letters", "https://app.example/é", false],
  ["an incomplete escape", "https://app.example/%4", false],
  ["a missing host", "https:///a", false],
  ["a port above 65535", "https://app.example:99999/", false],
] as const;
for (const [what, uri, want] of pages) {
  test(`CIMD-8.6-5 a page URL is ${want ? "kept" : "refused"}: ${what}`, () => {
    for (const member of ["client_uri", "logo_uri", "tos_uri", "policy_uri"]) {
      assert.equal(reason({ [member]: uri }), want ? "ok" : `${member}_refused`);
      assert.equal(reason({ [`${member}#fr`]: uri }), want ? "ok" : `${member}_refused`);
    }
  });
}

const values = [
  ["PROD-2.2-13 keys at an https URL are accepted", KEY_URI, "ok"],
  ["PROD-2.2-13 keys at a plain http URL are refused", { jwks_uri: "http://a.example/" }, "jwks_uri_refused"],
  [
    "PROD-2.2-13 keys at a URL with userinfo are refused",
    { jwks_uri: "https://a@b.example/" },
    "jwks_uri_refused",
  ],
  [
    "PROD-2.2-13 keys at a URL with a fragment are refused",
    { jwks_uri: "https://a.example/#" },
    "jwks_uri_refused",
  ],
  ["PROD-2.2-13 keys in a file are refused", { jwks_uri: "file:///etc/passwd" }, "jwks_uri_refused"],
  ["RFC7591-2-19 a version in any spelling is accepted", { software_version: "02.2-beta" }, "ok"],
  ["RFC7591-2-19 a number as version is refused", { software_version: 2.2 }, "software_version_refused"],
  ["RFC6749-3.3-1 scope tokens are accepted", { scope: "a b:c d/e" }, "ok"],
  ["RFC6749-3.3-1 two spaces are refused", { scope: "a  b" }, "scope_refused"],
  ["RFC6749-3.3-1 a quote in a scope is refused", { scope: 'a"' }, "scope_refused"],
  ["SPCA-5.1-1 a SPIFFE ID is accepted", WORKLOAD, "ok"],
  ["SPCA-5.1-2 a prefix of SPIFFE IDs is accepted", { spiffe_id: "spiffe://td.example/ns/shop/*" }, "ok"],
  [
    "SPCA-5.1-2 a star that ends a partial segment is refused",
    { spiffe_id: "spiffe://td.example/cart*" },
    "spiffe_id_refused",
  ],
  [
    "SPCA-5.1-2 a star inside the path is refused",
    { spiffe_id: "spiffe://td.example/*/cart" },
    "spiffe_id_refused",
  ],
  [
    "SPCA-5.1-2 a pattern for a whole trust domain is refused",
    { spiffe_id: "spiffe://td.example/*" },
    "spiffe_id_refused",
  ],
  [
    "SPCA-5.1-2 a trust domain without a path is refused",
    { spiffe_id: "spiffe://td.example" },
    "spiffe_id_refused",
  ],
  ["SPCA-5.1-2 another URL is refused", { spiffe_id: "https://td.example/cart" }, "spiffe_id_refused"],
  [
    "SPCA-5.1-5 a bundle endpoint with plain http is refused",
    { spiffe_bundle_endpoint: "http://td.example/" },
    "spiffe_bundle_endpoint_refused",
  ],
  [
    "RFC8705-3.4-1 metadata that ask for certificate-bound tokens is accepted",
    { tls_client_certificate_bound_access_tokens: true },
    "ok",
  ],
  [
    "RFC9449-5.2-2 metadata that ask for DPoP-bound tokens is accepted",
    { dpop_bound_access_tokens: true },
    "ok",
  ],
  [
    "RFC9449-5.2-2 a text is refused where metadata ask for DPoP-bound tokens",
    { dpop_bound_access_tokens: "true" },
    "dpop_bound_access_tokens_refused",
  ],
] as const;
for (const [name, metadata, want] of values) test(name, () => assert.equal(reason(metadata), want));

test("RFC7591-3.2.2-4, RFC7591-3.2.2-5, PROD-2.2-17 a bad redirect URI is reported with another error than other bad members", () => {
  const kinds = [
    [{ redirect_uris: ["https://a.example/#"] }, "redirect_uri_invalid", "redirect_uri_fragment"],
    [{ redirect_uris: ["https://a.example/", "a"] }, "redirect_uri_invalid", "redirect_uri_malformed"],
    [{ redirect_uris: "https://a.example/" }, "redirect_uri_invalid", "redirect_uris_refused"],
    [{ redirect_uris: ["https://a.example/", 1] }, "redirect_uri_invalid", "redirect_uris_refused"],
    [{ client_name: 1 }, "client_metadata_invalid", "client_name_refused"],
    [{ contacts: ["a", 1] }, "client_metadata_invalid", "contacts_refused"],
  ] as const;
  for (const [metadata, kind, because] of kinds) {
    assert.deepEqual(parse(metadata), { ok: false, error: { kind, reason: because } });
  }
});

test("RFC7591-2-3, RFC8252-8.4-2 redirect URIs are kept unchanged", () => {
  const uris = ["https://app.example:443/cb", "https://app.example/%41?b=%2f", "http://127.0.0.1:80/cb"];
  const got = parse({ redirect_uris: uris });
  assert.ok(got.ok);
  assert.deepEqual([got.value.redirectUris, got.value.members.redirect_uris], [uris, uris]);
});

// --- languages ----------------------------------------------------------------------------------------------

const languages = [
  ["RFC7591-2.2-1 a name in several languages is kept", { client_name: "a", "client_name#fr": "b" }, "ok"],
  ["RFC7591-2.2-1 a tagged name without a plain one is kept", { "client_name#ja-Jpan-JP": "a" }, "ok"],
  ["RFC7591-2.2-1 pages in several languages are kept", { "tos_uri#de-1996": "https://a.example/" }, "ok"],
  ["RFC7591-2.2-2 the tag as it was written is kept", { "client_name#EN-us": "a" }, "ok"],
  [
    "RFC7591-2.2-2 tags that differ only in case are refused",
    { "client_name#fr": "a", "client_name#FR": "a" },
    "languages_repeated",
  ],
  [
    "RFC7591-2.2-2 one language for two members is accepted",
    { "client_name#fr": "a", "client_uri#FR": "https://a.example/" },
    "ok",
  ],
] as const;
for (const [name, metadata, want] of languages) {
  test(name, () => {
    assert.equal(reason(metadata), want);
    if (want === "ok") assert.deepEqual(members(metadata), metadata);
  });
}

test("RFC7591-2.2-2 a null under a differently cased tag is treated as absent", () => {
  assert.deepEqual(members({ "client_name#fr": null, "client_name#FR": "a" }), { "client_name#FR": "a" });
});

test("RFC7591-2.2-1 64 language tags are accepted, and 65 refused", () => {
  const tagged = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`client_name#x-${at}`, "a"]));
  assert.equal(reason(tagged(64)), "ok");
  assert.equal(reason(tagged(65)), "languages_too_many");
});

// --- methods ------------------------------------------------------------------------------------------------

const SELF_SIGNED = "self_signed_tls_client_auth";
const methods = [
  ["PROD-2.2-12 a secret in the header is accepted", by("client_secret_basic"), "ok"],
  ["PROD-2.2-12 a secret in the body is accepted", by("client_secret_post"), "ok"],
  [
    "PROD-2.2-12 secret authentication with keys registered for other uses is accepted",
    by("client_secret_post", KEYS),
    "ok",
  ],
  [
    "PROD-2.2-11, PROD-2.2-15 assertions with keys in the metadata are accepted",
    by("private_key_jwt", KEYS),
    "ok",
  ],
  [
    "PROD-2.2-11, PROD-2.2-15 assertions with keys at a URL are accepted",
    by("private_key_jwt", KEY_URI),
    "ok",
  ],
  ["PROD-2.2-15 assertions without keys are refused", by("private_key_jwt"), "keys_missing"],
  ["RFC7591-2-5, PROD-2.2-12 JWT-SVIDs are accepted", by("spiffe_jwt", WORKLOAD), "ok"],
  ["RFC7591-2-5, PROD-2.2-12 X.509-SVIDs are accepted", by("spiffe_x509", WORKLOAD), "ok"],
  ["SPCA-5.1-1 JWT-SVIDs without a SPIFFE ID are refused", by("spiffe_jwt"), "spiffe_id_missing"],
  ["SPCA-5.1-1 X.509-SVIDs without a SPIFFE ID are refused", by("spiffe_x509"), "spiffe_id_missing"],
  ["PROD-2.2-12 a certificate by its subject is accepted", by("tls_client_auth", SUBJECT), "ok"],
  ["RFC8705-2.1.2-1 a certificate without a subject is refused", by("tls_client_auth"), "subject_missing"],
  [
    "RFC8705-2.1.2-1 two subjects are refused",
    by("tls_client_auth", { ...SUBJECT, tls_client_auth_san_ip: "192.0.2.7" }),
    "subject_repeated",
  ],
  [
    "RFC8705-2.1.2-1 two subjects are refused even with a method that uses none",
    by("client_secret_post", { ...SUBJECT, tls_client_auth_san_ip: "192.0.2.7" }),
    "subject_repeated",
  ],
  [
    "RFC8705-2.1.2-3 a wildcard as subject is refused",
    by("tls_client_auth", { tls_client_auth_san_dns: "*.example" }),
    "tls_client_auth_san_dns_refused",
  ],
  [
    "RFC8705-2.1.2-3 a malformed subject is refused even with a method that uses none",
    { tls_client_auth_san_ip: "127.1" },
    "tls_client_auth_san_ip_refused",
  ],
  [
    "RFC8705-2.2-1, PROD-2.2-12 certificates are accepted",
    by(SELF_SIGNED, { jwks: { keys: [CERTIFIED] } }),
    "ok",
  ],
  ["RFC8705-2.2-1 keys without certificates are refused", by(SELF_SIGNED, KEYS), "certificates_missing"],
  ["RFC8705-2.2-1 missing keys are refused", by(SELF_SIGNED), "certificates_missing"],
  ["RFC8705-2.2-1 certificates at a URL are refused", by(SELF_SIGNED, KEY_URI), "certificates_missing"],
  [
    "RFC8705-2.2-1 one key without its certificate is refused",
    by(SELF_SIGNED, { jwks: { keys: [CERTIFIED, EC] } }),
    "certificates_missing",
  ],
  [
    "RFC8705-2.2.2-2 a certificate of another key is refused",
    by(SELF_SIGNED, { jwks: { keys: [{ ...EC, x5c: [CERTIFICATE] }] } }),
    "certificates_missing",
  ],
  [
    "RFC8705-2.2.2-1 a chain with an element that is not a string is refused",
    by(SELF_SIGNED, { jwks: { keys: [{ ...CERTIFIED, x5c: [CERTIFICATE, 1] }] } }),
    "certificates_missing",
  ],
  [
    "RFC8705-2.2.2-1 a chain with an element that is too large is refused",
    by(SELF_SIGNED, { jwks: { keys: [{ ...CERTIFIED, x5c: [CERTIFICATE, "A".repeat(16_385)] }] } }),
    "certificates_missing",
  ],
  [
    "RFC8705-2.2.2-1 a chain that is too long is refused",
    by(SELF_SIGNED, { jwks: { keys: [{ ...CERTIFIED, x5c: Array(65).fill(CERTIFICATE) }] } }),
    "certificates_missing",
  ],
  [
    "RFC8725-3.2-v2 a signing algorithm for assertions is accepted",
    by("private_key_jwt", { ...KEY_URI, token_endpoint_auth_signing_alg: "PS256" }),
    "ok",
  ],
  [
    "RFC7591-2.1-1 a signing algorithm for a secret is refused",
    by("client_secret_basic", { token_endpoint_auth_signing_alg: "ES256" }),
    "signing_alg_alone",
  ],
  [
    "RFC7591-2-4 a signing algorithm for the default method is refused",
    { ...KEY_URI, token_endpoint_auth_signing_alg: "ES256" },
    "signing_alg_alone",
  ],
] as const;
for (const [name, metadata, want] of methods) test(name, () => assert.equal(reason(metadata), want));

const notMethods = [
  "client_secret_jwt",
  "tls_client_certificate",
  "private_key_JWT",
  "Client_Secret_Basic",
  "spiffe_wit",
  "attest_jwt_client_auth",
  "https://a.example/method",
  "private_key_jwt ",
];
for (const method of notMethods) {
  test(`PROD-2.2-12, RFC7591-1.1-1 the method ${method} is refused`, () => {
    const everything = { ...KEYS, ...WORKLOAD, ...SUBJECT };
    assert.equal(reason(by(method, everything)), "token_endpoint_auth_method_refused");
  });
}

for (const method of [["private_key_jwt"], { name: "private_key_jwt" }, 7, true]) {
  test(`PROD-2.2-10 ${JSON.stringify(method)}, which is no string, is refused as method`, () => {
    const metadata = { ...KEYS, token_endpoint_auth_method: method };
    assert.equal(reason(metadata), "token_endpoint_auth_method_refused");
  });
}

test("RFC6749-10.2-2 a public client that names no redirect URI is refused, and one that does is accepted", () => {
  for (const none of [{}, { redirect_uris: [] }]) {
    assert.equal(reason(by("none", none)), "token_endpoint_auth_method_refused");
  }
  assert.ok(parse(by("none", { redirect_uris: ["http://127.0.0.1/cb"] })).ok);
});

for (const alg of ["none", "HS256", "ES512", "RS384", "es256", "EdDSA "]) {
  test(`RFC8725-3.2-v2 assertions with the algorithm ${alg} are refused`, () => {
    const metadata = by("private_key_jwt", { ...KEY_URI, token_endpoint_auth_signing_alg: alg });
    assert.equal(reason(metadata), "token_endpoint_auth_signing_alg_refused");
  });
}

// --- keys ---------------------------------------------------------------------------------------------------

const withKeys = (...keys: readonly unknown[]) => by("private_key_jwt", { jwks: { keys } });
const withAlg = (alg: string, ...keys: readonly unknown[]) => ({
  ...withKeys(...keys),
  token_endpoint_auth_signing_alg: alg,
});

const keySets = [
  ["RFC7591-2-18 keys of three types are accepted", withKeys(EC, OKP, RSA), "ok"],
  ["RFC7591-2-17 both jwks and jwks_uri are refused", { ...KEYS, ...KEY_URI }, "keys_twice"],
  ["RFC7591-2-17 jwks with a jwks_uri of null is accepted", { ...KEYS, jwks_uri: null }, "ok"],
  ["RFC7591-2-18 a set without keys is refused", { jwks: {} }, "jwks_refused"],
  ["RFC7591-2-18 keys that are not an array are refused", { jwks: { keys: EC } }, "jwks_refused"],
  ["RFC7591-2-18 an array instead of a set is refused", { jwks: [EC] }, "jwks_refused"],
  ["RFC7591-2-18 a set in a string is refused", { jwks: JSON.stringify({ keys: [EC] }) }, "jwks_refused"],
  ["RFC7591-2-18 65 keys are refused", withKeys(...Array(65).fill(EC)), "jwks_refused"],
  ["RFC7591-2-18 64 keys are accepted", withKeys(...Array(64).fill(EC)), "ok"],
  ["RFC7591-2-18 an empty set is refused", withKeys(), "keys_unusable"],
  [
    "RFC7591-2-18 an empty set is refused even with a method that uses no keys",
    { jwks: { keys: [] } },
    "keys_unusable",
  ],
  ["RFC7591-2-18 entries that are not keys are refused", withKeys(1, "a", null, [EC]), "keys_unusable"],
  ["RFC7517-5-v2 a key beside unknown ones is accepted", withKeys(1, { kty: "AKP" }, EC), "ok"],
  [
    "RFC7517-4.2-v1 a set with only encryption keys is refused",
    withKeys({ ...EC, use: "enc" }),
    "keys_unusable",
  ],
  [
    "RFC8725-3.4-v1 a point that is not on its curve is refused",
    withKeys({ ...EC, y: EC.x }),
    "keys_unusable",
  ],
  ["RFC7517-9.2-1 a private EC key is refused", withKeys(SECRET_EC), "keys_private"],
  ["RFC7517-9.2-1 a private RSA key is refused", withKeys(SECRET_RSA), "keys_private"],
  ["RFC7517-9.2-1 a private key beside a public one is refused", withKeys(EC, SECRET_EC), "keys_private"],
  [
    "RFC7517-9.2-1 a private key is refused even with a method that uses no keys",
    { jwks: { keys: [SECRET_EC] } },
    "keys_private",
  ],
  ["RFC7517-9.2-1 a symmetric key is refused", withKeys(EC, { kty: "oct", k: "AAAA" }), "keys_private"],
  [
    "RFC7517-9.2-1 a symmetric key without its value is refused",
    withKeys(EC, { kty: "oct" }),
    "keys_private",
  ],
  [
    "RFC8725-3.1-v4 a set without a key for a supported algorithm is refused",
    withKeys(P521),
    "keys_unusable",
  ],
  ["RFC8725-3.1-v4 such a set with a method that uses no keys is accepted", { jwks: { keys: [P521] } }, "ok"],
  [
    "RFC7517-4.4-1 a key that names an unsupported algorithm is refused",
    withKeys({ ...RSA, alg: "RS512" }),
    "keys_unusable",
  ],
  ["RFC8725-3.1-v4 a set with one key for the named algorithm is accepted", withAlg("ES256", RSA, EC), "ok"],
  ["RFC8725-3.1-v4 an RSA key for PS256 is accepted", withAlg("PS256", RSA), "ok"],
  ["RFC8725-3.1-v4 both names of Ed25519 are accepted", withAlg("EdDSA", { ...OKP, alg: "Ed25519" }), "ok"],
  ["RFC8725-3.1-v4 an RSA key for ES256 is refused", withAlg("ES256", RSA), "keys_unusable"],
  ["RFC8725-3.1-v4 an EC key for RS256 is refused", withAlg("RS256", EC), "keys_unusable"],
  [
    "RFC7517-4.4-1 a key that names another algorithm is refused",
    withAlg("PS256", { ...RSA, alg: "RS256" }),
    "keys_unusable",
  ],
] as const;
for (const [name, metadata, want] of keySets) test(name, () => assert.equal(reason(metadata), want));

for (const member of ["d", "p", "q", "dp", "dq", "qi", "oth", "k", "priv"]) {
  test(`RFC7517-9.2-1 the secret member ${member} is refused in a key of any type`, () => {
    for (const kty of ["EC", "OKP", "RSA", "AKP", "ec", undefined]) {
      assert.equal(reason(withKeys(EC, { kty, [member]: null })), "keys_private");
    }
  });
}

test("RFC7517-4-v2, RFC7517-5-v3 the known members of a set are kept, and unknown keys dropped", () => {
  const known = { ...EC, kid: "k1", alg: "ES256", use: "sig", key_ops: ["verify"] };
  const more = { ...known, x5c: ["a"], x5t: "b", n: "c".repeat(9000), nested: { a: [1] } };
  const metadata = by("private_key_jwt", { jwks: { keys: [more, { kty: "AKP", pub: "a" }], version: 1 } });
  assert.deepEqual(members(metadata), by("private_key_jwt", { jwks: { keys: [known] } }));
});

test("RFC8725-3.1-v4 only the keys that can sign an assertion are kept", () => {
  assert.deepEqual(members(withKeys(P521, EC)).jwks, { keys: [EC] });
  assert.deepEqual(members(withAlg("RS256", RSA, EC, { ...RSA, alg: "PS256" })).jwks, { keys: [RSA] });
});

test("RFC8705-2.2.2-1 certificates are kept only for the method that compares them", () => {
  const jwks = { keys: [{ ...CERTIFIED, x5c: [CERTIFICATE, "AAAA"] }] };
  assert.deepEqual(members(by(SELF_SIGNED, { jwks })).jwks, jwks);
  const { x5c: _, ...key } = CERTIFIED;
  assert.deepEqual(members(by("private_key_jwt", { jwks })).jwks, { keys: [key] });
});

// --- software statements ------------------------------------------------------------------------------------

test("RFC7591-2-22, RFC7591-3.1.1-2, RFC7591-5-11 values of the software statement replace those of the request", () => {
  const stated = { client_name: "Stated", redirect_uris: ["https://a.example/"], ...KEY_URI };
  const asked = {
    client_name: "Asked",
    redirect_uris: ["https://evil.example/"],
    jwks_uri: "https://evil.example/keys",
    scope: "a",
  };
  assert.deepEqual(members(mergeStatement(asked, stated)), { ...stated, scope: "a" });
});

test("RFC7591-3.1.1-2 no registered JWT claim is treated as metadata", () => {
  const claims = { iss: "a", sub: "b", aud: "c", exp: 2, nbf: 1, iat: 1, jti: "d", software_id: "e" };
  assert.deepEqual(members(mergeStatement({ client_name: "f" }, claims)), {
    client_name: "f",
    software_id: "e",
  });
});

test("RFC7591-3.1.1-2 request members that the statement lacks are kept", () => {
  assert.deepEqual(members(mergeStatement({ scope: "a" }, { scope: null })), { scope: "a" });
});

test("RFC7591-5-12 the merged statement and request are validated", () => {
  assert.equal(reason(mergeStatement(KEYS, KEY_URI)), "keys_twice");
  assert.equal(reason(mergeStatement({ client_name: "a" }, { client_name: 1 })), "client_name_refused");
  assert.equal(reason(mergeStatement({ client_name: 1 }, { client_name: "a" })), "ok");
});

test("RFC7591-3.2.1-11, RFC7591-3.2.1-12 the statement is kept unchanged, and its values as members", () => {
  const merged = mergeStatement({ software_statement: "a.b.c" }, { client_name: "Stated" });
  assert.deepEqual(register(merged).members, {
    ...register({}).members,
    software_statement: "a.b.c",
    client_name: "Stated",
  });
});

// --- grant types, response types, scope ---------------------------------------------------------------------

const [CREDENTIALS = "", EXCHANGE = "", BEARER = ""] = MACHINE_GRANT_TYPES;
const CODE = "authorization_code";
const REDIRECT = { redirect_uris: ["https://app.example/cb"] };
const ALL: Ceiling = { grantTypes: MACHINE_GRANT_TYPES };

test("RFC7591-2-6, RFC7591-2-8, PROD-2.2-9 three grant types are supported", () => {
  assert.deepEqual(MACHINE_GRANT_TYPES, [
    "client_credentials",
    "urn:ietf:params:oauth:grant-type:token-exchange",
    "urn:ietf:params:oauth:grant-type:jwt-bearer",
  ]);
});

const grants: readonly (readonly [string, readonly string[] | undefined, readonly string[], unknown])[] = [
  ["RFC7591-2-7 no requested type is taken as authorization_code alone", undefined, [EXCHANGE], [CODE]],
  ["PROD-2.2-8 authorization_code alone is recorded", [CODE], [CREDENTIALS, BEARER], [CODE]],
  [
    "PROD-2.2-8 refresh_token beside authorization_code is recorded",
    [CODE, "refresh_token"],
    [CREDENTIALS],
    [CODE, "refresh_token"],
  ],
  ["PROD-2.2-8 refresh_token alone is refused", ["refresh_token"], [CREDENTIALS], "grant_types_unavailable"],
  ["RFC7591-2-21 unknown types alone are refused", ["implicit"], [EXCHANGE], "grant_types_unavailable"],
  ["RFC7591-2-21 the requested type is granted", [EXCHANGE], MACHINE_GRANT_TYPES, [EXCHANGE]],
  [
    "RFC7591-2-21 the requested types that are allowed are granted",
    [CREDENTIALS, EXCHANGE],
    [EXCHANGE],
    [EXCHANGE],
  ],
  ["RFC7591-2-21 unknown types are dropped", ["implicit", BEARER], MACHINE_GRANT_TYPES, [BEARER]],
  ["PROD-2.2-8 authorization_code beside another type is recorded", [CODE, BEARER], [BEARER], [CODE, BEARER]],
  ["RFC7591-2-21 repeated types are dropped", [BEARER, BEARER], MACHINE_GRANT_TYPES, [BEARER]],
  [
    "RFC7591-2-21 a type that is not allowed is refused",
    [CREDENTIALS],
    [EXCHANGE],
    "grant_types_unavailable",
  ],
  [
    "RFC7591-2-21 a type that is not allowed beside authorization_code is dropped",
    [CODE, CREDENTIALS],
    [EXCHANGE],
    [CODE],
  ],
  [
    "RFC7591-1.1-1 a grant type in capitals is not recognised",
    ["CLIENT_CREDENTIALS"],
    [CREDENTIALS],
    "grant_types_unavailable",
  ],
  ["RFC7591-2-7 no permission is needed for authorization_code", undefined, [], [CODE]],
];
for (const [name, requested, grantTypes, want] of grants) {
  test(name, () => {
    const metadata = defined<Parameters<typeof grantedTypes>[0]>({
      grantTypes: requested,
      redirectUris: REDIRECT.redirect_uris,
    });
    const got = grantedTypes(metadata, { grantTypes });
    assert.deepEqual(got.ok ? got.value : got.error.reason, want);
  });
}

const scopes: readonly (readonly [
  string,
  readonly string[] | undefined,
  readonly string[] | undefined,
  unknown,
])[] = [
  ["RFC7591-2-14 every allowed scope is granted if none is requested", undefined, ["a", "b"], ["a", "b"]],
  ["RFC7591-2-14 no scope is granted without request and ceiling", undefined, undefined, undefined],
  ["RFC7591-2-21 the requested scopes are granted without a ceiling", ["a", "b"], undefined, ["a", "b"]],
  ["RFC7591-2-21 the requested scopes that are allowed are granted", ["b", "c"], ["a", "b"], ["b"]],
  [
    "RFC7591-2-21 a request is refused if no requested scope is allowed",
    ["c"],
    ["a", "b"],
    "scope_unavailable",
  ],
  ["RFC7591-1.1-1 scope is compared by case", ["A"], ["a"], "scope_unavailable"],
  ["RFC7591-2-14 nothing is granted under an empty ceiling", undefined, [], []],
  ["RFC7591-2-21 every scope under an empty ceiling is refused", ["a"], [], "scope_unavailable"],
];
for (const [name, requested, ceiling, want] of scopes) {
  test(name, () => {
    const got = grantedScopes(requested, {
      grantTypes: [],
      ...(ceiling !== undefined && { scopes: ceiling }),
    });
    assert.deepEqual(got.ok ? got.value : got.error.reason, want);
  });
}

const registering = (metadata: object, ceiling = ALL): string => {
  const parsed = parse(metadata);
  const got = parsed.ok ? registerMetadata(parsed.value, ceiling, MACHINE_GRANT_TYPES) : parsed;
  return got.ok ? "ok" : got.error.reason;
};
function register(metadata: object, ceiling = ALL) {
  const parsed = parse(metadata);
  assert(parsed.ok, JSON.stringify(parsed));
  const got = registerMetadata(parsed.value, ceiling, MACHINE_GRANT_TYPES);
  assert(got.ok, JSON.stringify(got));
  return got.value;
}

const inconsistent = "response_types_inconsistent";
const registrations = [
  [
    "PROD-2.2-8, RFC7591-2-2 authorization_code with a redirect URI is accepted",
    { grant_types: [CODE], ...REDIRECT },
    "ok",
  ],
  [
    "RFC7591-5-2, PROD-2.2-15, RFC6749-3.1.2.2-2, RFC6749-10.6-3 authorization_code without a redirect URI is refused",
    { grant_types: [CODE] },
    "redirect_uris_missing",
  ],
  [
    "RFC7591-5-2 authorization_code with an empty list of redirect URIs is refused",
    { grant_types: [CODE], redirect_uris: [] },
    "redirect_uris_missing",
  ],
  [
    "RFC7591-5-2 authorization_code without a redirect URI beside another grant type is refused",
    { grant_types: [CREDENTIALS, CODE] },
    "redirect_uris_missing",
  ],
  ["metadata without grant types and redirect URIs is accepted", {}, "ok"],
  [
    "RFC7592-2.2-5 an empty list of grant types is treated as absent",
    { grant_types: [], response_types: ["code"] },
    "ok",
  ],
  ["PROD-2.2-9 client credentials are accepted", { grant_types: [CREDENTIALS] }, "ok"],
  [
    "PROD-2.2-9 all four grant types are accepted",
    { grant_types: [...MACHINE_GRANT_TYPES, CODE], ...REDIRECT },
    "ok",
  ],
  ["PROD-2.2-9 implicit is refused", { grant_types: ["implicit"] }, "grant_types_refused"],
  [
    "PROD-2.2-8 the grant types of interactive clients are accepted",
    { grant_types: [CODE, "refresh_token"], ...REDIRECT },
    "ok",
  ],
  ["PROD-2.2-9 refresh_token alone is refused", { grant_types: ["refresh_token"] }, "grant_types_refused"],
  [
    "PROD-2.2-9 refresh_token beside client credentials is left out",
    { grant_types: [CREDENTIALS, "refresh_token"] },
    "ok",
  ],
  [
    "PROD-2.2-9 a misspelt grant type is refused",
    { grant_types: ["client_credential"] },
    "grant_types_refused",
  ],
  [
    "RFC7591-1.1-1 a grant type in capitals is refused",
    { grant_types: ["Client_Credentials"] },
    "grant_types_refused",
  ],
  [
    "RFC7591-2.1-1 code with authorization_code is accepted",
    { grant_types: [CODE], response_types: ["code"], ...REDIRECT },
    "ok",
  ],
  ["RFC7591-2.1-1 code with default grant types is accepted", { response_types: ["code"] }, "ok"],
  ["RFC7591-2.1-1 an empty list with default grant types is accepted", { response_types: [] }, "ok"],
  [
    "RFC7591-2.1-1 an empty list with client credentials is accepted",
    { grant_types: [CREDENTIALS], response_types: [] },
    "ok",
  ],
  [
    "RFC7591-2.1-1 default response types with client credentials are accepted",
    { grant_types: [CREDENTIALS] },
    "ok",
  ],
  [
    "RFC7591-2.1-1 code with client credentials is refused",
    { grant_types: [CREDENTIALS], response_types: ["code"] },
    inconsistent,
  ],
  [
    "RFC7591-2.1-1, MCPC-D-23 authorization_code with an empty list of response types is accepted",
    { grant_types: [CODE], response_types: [], ...REDIRECT },
    "ok",
  ],
  ["RFC7591-2-9 response type token is refused", { response_types: ["token"] }, "response_types_refused"],
  ["RFC7591-2-9, MCPC-D-23 id_token beside code is left out", { response_types: ["code", "id_token"] }, "ok"],
  [
    "RFC7591-2-9 a combined response type is refused",
    { response_types: ["code token"] },
    "response_types_refused",
  ],
] as const;
for (const [name, metadata, want] of registrations) {
  test(name, () => assert.equal(registering(metadata), want));
}

test("RFC7591-2-21 grant types and scopes outside the ceiling are refused", () => {
  const ceiling = { grantTypes: [EXCHANGE], scopes: ["a"] };
  assert.equal(registering({ grant_types: [CREDENTIALS] }, ceiling), "grant_types_unavailable");
  assert.equal(registering({ scope: "b" }, ceiling), "scope_unavailable");
});

// --- record and answer --------------------------------------------------------------------------------------

test("RFC7591-2-4, RFC7591-2-7, RFC7591-2-10, RFC7591-3.1-2, RFC7591-3.2.1-8 defaults are recorded", () => {
  assert.deepEqual(register(REDIRECT, { grantTypes: [EXCHANGE], scopes: ["b", "c"] }), {
    members: {
      ...REDIRECT,
      token_endpoint_auth_method: "client_secret_basic",
      grant_types: [CODE],
      response_types: ["code"],
      scope: "b c",
    },
    method: "client_secret_basic",
    grantTypes: [CODE],
    scopes: ["b", "c"],
  });
});

test("RFC7591-3.2.1-9, PROD-2.2-8 authorization_code is recorded with the permitted types and the redirect URIs", () => {
  const shown = { grant_types: [CODE, CREDENTIALS, EXCHANGE], ...REDIRECT };
  const got = register(by("private_key_jwt", { ...shown, ...KEY_URI }), { grantTypes: [CREDENTIALS] });
  assert.deepEqual(got, {
    members: by("private_key_jwt", {
      ...REDIRECT,
      ...KEY_URI,
      grant_types: [CODE, CREDENTIALS],
      response_types: ["code"],
    }),
    method: "private_key_jwt",
    grantTypes: [CODE, CREDENTIALS],
  });
});

test("RFC7591-2.1-1 no response type is recorded without authorization_code", () => {
  assert.deepEqual(register({ grant_types: [CREDENTIALS] }).members.response_types, []);
  assert.deepEqual(register({ response_types: [], ...REDIRECT }).members.response_types, ["code"]);
});

test("RFC7591-2-7, RFC7591-2-10, RFC7591-5-2 no grant type is recorded by default without a redirect URI", () => {
  const { members, grantTypes } = register({ response_types: ["code"] });
  assert.deepEqual([members.grant_types, members.response_types, grantTypes], [[], [], []]);
});

test("RFC7591-2-7, PROD-2.2-9, MCPC-D-6, REFRESH-D-1 a client can use the grant types of its record that are served", () => {
  assert.deepEqual(servedTypes({ redirectUris: [] }, MACHINE_GRANT_TYPES), []);
  const named = (...grantTypes: string[]) =>
    servedTypes({ redirectUris: [], grantTypes }, MACHINE_GRANT_TYPES);
  assert.deepEqual(named(CODE, "refresh_token", "implicit"), [CODE, "refresh_token"]);
  assert.deepEqual(named("refresh_token"), []);
  const redirectUris = ["https://app.example/cb"];
  assert.deepEqual(
    servedTypes({ redirectUris }, MACHINE_GRANT_TYPES),
    [CODE],
    "without grant_types no refresh token",
  );
  const ofPublic = { redirectUris, method: "none", grantTypes: [CODE, "refresh_token", EXCHANGE] };
  assert.deepEqual(servedTypes(ofPublic, MACHINE_GRANT_TYPES), [CODE, "refresh_token"]);
  assert.deepEqual(named(CODE, EXCHANGE), [EXCHANGE, CODE]);
});

test("RFC7591-3.2.1-9 the scopes that remain under the ceiling are recorded", () => {
  const got = register({ scope: "a b c" }, { ...ALL, scopes: ["c", "a", "d"] });
  assert.deepEqual([got.members.scope, got.scopes], ["a c", ["a", "c"]]);
});

test("RFC7591-2-14 an empty scope ceiling is distinguished from no ceiling", () => {
  const none = register({}, { ...ALL, scopes: [] });
  assert.deepEqual([none.members.scope, none.scopes], [undefined, []]);
  const any = register({});
  assert.deepEqual([any.members.scope, any.scopes], [undefined, undefined]);
});

test("RFC8252-8.4-1, RFC7591-2-4 the requested method is recorded", () => {
  for (const metadata of [
    by("client_secret_post"),
    by("private_key_jwt", KEYS),
    by("spiffe_jwt", WORKLOAD),
    by("spiffe_x509", WORKLOAD),
    by("tls_client_auth", SUBJECT),
    by(SELF_SIGNED, { jwks: { keys: [CERTIFIED] } }),
  ]) {
    const { method, members: record } = register(metadata);
    assert.equal(method, metadata.token_endpoint_auth_method);
    assert.equal(record.token_endpoint_auth_method, method);
  }
});

const INFORMATION = {
  clientId: "c_1",
  issuedAtSeconds: 1_790_000_000,
  metadata: register({ client_name: "a", grant_types: MACHINE_GRANT_TYPES }).members,
  registrationUri: "https://as.example/register/c_1",
  registrationToken: "t",
};

test("RFC7592-3-1, RFC7592-3-2 the answer says where and by which token the registration is managed", () => {
  const answer = buildClientInformation(INFORMATION);
  assert.equal(answer.registration_client_uri, "https://as.example/register/c_1");
  assert.equal(answer.registration_access_token, "t");
});

test("RFC7591-3.2.1-1, RFC7591-3.2.1-6, RFC7591-3.2.1-10, RFC7592-3-5, PROD-4.2-5 the members of the answer are at the top level", () => {
  assert.deepEqual(buildClientInformation(INFORMATION), {
    client_id: "c_1",
    client_id_issued_at: 1_790_000_000,
    client_name: "a",
    token_endpoint_auth_method: "client_secret_basic",
    grant_types: MACHINE_GRANT_TYPES,
    response_types: [],
    registration_client_uri: "https://as.example/register/c_1",
    registration_access_token: "t",
  });
});

test("RFC7591-3.2.1-7, PROD-2.7-2 a secret is returned with its expiry", () => {
  const { client_secret: secret, client_secret_expires_at: end } = buildClientInformation({
    ...INFORMATION,
    secret: "s",
    secretExpiresAtSeconds: 1_790_086_400,
  });
  assert.deepEqual([secret, end], ["s", 1_790_086_400]);
});

test("RFC7591-3.2.1-7 0 is returned as expiry of a secret that does not expire", () => {
  const answer = buildClientInformation({ ...INFORMATION, secret: "s" });
  assert.deepEqual([answer.client_secret, answer.client_secret_expires_at], ["s", 0]);
});

test("RFC7591-3.2.1-8, RFC7592-3-3 every recorded member is returned", () => {
  const { members: record } = register({ ...FULL, "client_name#de": "b" });
  const answer = buildClientInformation({ ...INFORMATION, metadata: record });
  for (const [name, value] of Object.entries(record)) assert.deepEqual(answer[name], value, name);
});

test("RFC7592-2.2-1, RFC7592-3-3 a response that is sent back registers the same client", () => {
  const random = prng(7591);
  const options: { [name: string]: readonly unknown[] } = {
    redirect_uris: [["https://a.example/cb"], [], null, ["http://localhost/"]],
    token_endpoint_auth_method: [
      "client_secret_post",
      "private_key_jwt",
      "spiffe_jwt",
      SELF_SIGNED,
      null,
      "none",
    ],
    token_endpoint_auth_signing_alg: ["ES256", null, null, null],
    grant_types: [[CODE], [CREDENTIALS], [EXCHANGE, CODE], [], ["implicit"]],
    response_types: [[], ["code"], ["token"]],
    client_name: ["a", "", 1],
    "client_name#fr": ["b", null],
    "client_name#FR": ["c", null, null],
    scope: ["a", "b a", "a a", "d", ""],
    jwks: [{ keys: [EC] }, { keys: [P521, RSA] }, { keys: [CERTIFIED] }, { keys: [SECRET_EC] }, {}],
    jwks_uri: ["https://a.example/jwks", null, null, null],
    spiffe_id: ["spiffe://td.example/a", "spiffe://td.example/*"],
    tls_client_auth_san_ip: ["192.0.2.7", "127.1"],
    dpop_bound_access_tokens: [false, false, true],
    shoe_size: [43],
  };
  const ceilings: readonly Ceiling[] = [
    ALL,
    { grantTypes: [CREDENTIALS], scopes: ["a", "b"] },
    { grantTypes: [EXCHANGE], scopes: [] },
  ];
  let registered = 0;
  for (let round = 0; round < rounds(500); round++) {
    const chosen = Object.entries(options).filter(() => random.below(3) === 0);
    const metadata = Object.fromEntries(chosen.map(([name, from]) => [name, random.pick(from)]));
    const ceiling = random.pick(ceilings);
    if (registering(metadata, ceiling) !== "ok") continue;
    registered++;
    const first = register(metadata, ceiling);
    const answer = buildClientInformation({ ...INFORMATION, metadata: first.members });
    assert.deepEqual(register(answer, ceiling), first);
    const { grantTypes } = first;
    const used = servedTypes({ grantTypes, redirectUris: [] }, MACHINE_GRANT_TYPES).filter(
      (type) => type !== CODE,
    );
    assert.ok(used.every((type) => ceiling.grantTypes.includes(type)));
    const asked = Array.isArray(metadata.grant_types) ? metadata.grant_types : [];
    assert.ok(used.every((type) => asked.includes(type)));
    assert.ok(
      first.scopes === undefined ||
        !ceiling.scopes ||
        first.scopes.every((one) => ceiling.scopes?.includes(one)),
    );
  }
  assert.ok(registered > rounds(37), String(registered));
});

// --- error descriptions -------------------------------------------------------------------------------------

test("RFC7591-3.2.2-2 each failure is described in plain ASCII and differently from the others", () => {
  const reasons: MetadataReason[] = [
    "not_an_object",
    "redirect_uri_malformed",
    "redirect_uri_fragment",
    "redirect_uri_wildcard",
    "redirect_uri_userinfo",
    "redirect_uri_dot_segment",
    "redirect_uri_incomplete",
    "redirect_uri_not_loopback",
    "redirect_uri_scheme",
    "redirect_uris_unavailable",
    "redirect_uris_missing",
    "grant_types_unavailable",
    "response_types_inconsistent",
    "scope_unavailable",
    "languages_repeated",
    "languages_too_many",
    "method_unsupported",
    "keys_missing",
    "keys_twice",
    "keys_private",
    "keys_unusable",
    "certificates_missing",
    "signing_alg_alone",
    "spiffe_id_missing",
    "subject_missing",
    "subject_repeated",
    "server_member_sent",
    "client_id_differs",
    "client_secret_differs",
    "client_name_refused",
    "scope_refused",
  ];
  const texts = reasons.map((one) => METADATA_REASONS[one]);
  for (const text of texts) assert.match(text, /^[\x20\x21\x23-\x5b\x5d-\x7e]{10,120}$/);
  assert.equal(new Set(texts).size, reasons.length);
  for (const [at, one] of reasons.entries()) {
    assert.equal(texts[at]?.endsWith("a value that is not accepted"), one.endsWith("_refused"), one);
  }
  assert.match(METADATA_REASONS.client_name_refused, /^client_name has /);
});

test("PROD-7.4-3, RFC7591-3.2.2-2 a text about metadata that are refused names their member, in plain ASCII", () => {
  const whole = ["not_an_object", "languages_repeated", "languages_too_many", "server_member_sent"];
  const members = [
    ...Object.keys(membersFor([]).entries),
    "client_id",
    "client_secret",
    "tls_client_auth",
    "jwks",
  ];
  for (const [reason, text] of Object.entries(METADATA_REASONS)) {
    assert.match(text, /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/, reason);
    const named = members.some((member) => new RegExp(`(?<!\\w)${member}(?!\\w)`).test(text));
    assert.equal(named, !whole.includes(reason), `${reason}: ${text}`);
  }
});

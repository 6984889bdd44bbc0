import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { derOf } from "../../scripts/dev-keys.ts";
import { parseClientDocument } from "../../src/settings/client-metadata.ts";
import { checkKeysOrigin, isDocumentUrl, parseDocumentUrl } from "../../src/spec/cimd.ts";
import { parseCertificate } from "../../src/spec/rfc5280.ts";
import type { Json, JsonObject } from "../../src/spec/rfc8259.ts";
import { mutate, prng } from "../support/prng.ts";
import { rounds } from "../support/rounds.ts";

// --- the identifier -------------------------------------------------------------------------------------------

const forms = [
  [
    "PROD-2.1-2, PROD-4.3-3 an https URL is treated as the address of a document",
    "https://cart.example/c",
    true,
  ],
  [
    "PROD-4.3-3 a malformed https URL is treated as a URL, not as an opaque name",
    "https://cart.example/../c",
    true,
  ],
  ["PROD-2.1-2, PROD-4.3-3 plain http is treated as no document URL", "http://cart.example/c", false],
  ["PROD-4.3-3 an upper-case scheme is treated as no document URL", "HTTPS://cart.example/c", false],
  ["PROD-4.3-3 a URL with one slash is treated as no document URL", "https:/cart.example/c", false],
  ["PROD-2.1-2, PROD-4.3-3 a SPIFFE ID is treated as no document URL", "spiffe://td.example/cart", false],
  ["PROD-2.1-2, PROD-4.3-3 an opaque name is treated as no document URL", "cart", false],
  ["PROD-4.3-3 a URL after other text is treated as no document URL", "cart https://cart.example/c", false],
  ["PROD-4.3-3 an empty client_id is treated as no document URL", "", false],
] as const;
for (const [name, clientId, want] of forms) {
  test(name, () => assert.equal(isDocumentUrl(clientId), want));
}

const long = (bytes: number) => `https://cart.example/${"a".repeat(bytes - "https://cart.example/".length)}`;

const identifiers = [
  ["CIMD-3-1 https is accepted", "https://cart.example/oauth.json", "ok"],
  ["CIMD-3-1, PROD-4.3r1-1 http is refused", "http://cart.example/c", "url_not_https"],
  ["CIMD-3-1 another scheme is refused", "ftp://cart.example/c", "url_not_https"],
  ["CIMD-3-1 a scheme in upper case is refused", "HTTPS://cart.example/c", "url_not_https"],
  ["CIMD-3-1 a missing scheme is refused", "//cart.example/c", "url_not_https"],
  ["CIMD-3-2 a user name is refused", "https://u@cart.example/c", "url_userinfo"],
  ["CIMD-3-2 a name and password are refused", "https://u:p@cart.example/c", "url_userinfo"],
  ["CIMD-3-2 an empty userinfo is refused", "https://@cart.example/c", "url_userinfo"],
  ["CIMD-3-2 a host that is the user name is refused", "https://cart.example@b.example/c", "url_userinfo"],
  ["CIMD-3-2 an at sign in the path is accepted", "https://cart.example/@c", "ok"],
  ["CIMD-3-3 a port is accepted", "https://cart.example:8443/c", "ok"],
  ["CIMD-3-3 the default port is accepted", "https://cart.example:443/c", "ok"],
  ["CIMD-3-3 an empty port is refused", "https://cart.example:/c", "url_port_refused"],
  ["CIMD-3-3 port 0 is refused", "https://cart.example:0/c", "url_port_refused"],
  ["CIMD-3-3 a port above 65535 is refused", "https://cart.example:65536/c", "url_port_refused"],
  ["CIMD-3-4 a missing path is refused", "https://cart.example", "url_path_missing"],
  ["CIMD-3-4 a missing path after a port is refused", "https://cart.example:443", "url_path_missing"],
  ["CIMD-3-4 a query in place of the path is refused", "https://cart.example?c", "url_path_missing"],
  ["CIMD-3-5 one dot is refused", "https://cart.example/./c", "url_dot_segment"],
  ["CIMD-3-5 two dots are refused", "https://cart.example/a/../c", "url_dot_segment"],
  ["CIMD-3-5 two dots at the end are refused", "https://cart.example/a/..", "url_dot_segment"],
  ["CIMD-3-5 one dot at the end is refused", "https://cart.example/.", "url_dot_segment"],
  ["CIMD-3-5 encoded dots are refused", "https://cart.example/a/%2e%2e/c", "url_dot_segment"],
  ["CIMD-3-5 dots with upper-case escapes are refused", "https://cart.example/a/%2E%2E/c", "url_dot_segment"],
  [
    "CIMD-3-5 two dots of which one is encoded are refused",
    "https://cart.example/a/.%2e/c",
    "url_dot_segment",
  ],
  ["CIMD-3-5 dots in a name are accepted", "https://cart.example/.well-known/a..b/...", "ok"],
  ["CIMD-3-6 a query is refused", "https://cart.example/c?v=1", "url_query"],
  ["CIMD-3-6 an empty query is refused", "https://cart.example/c?", "url_query_empty"],
  ["CIMD-3-7 a fragment is refused", "https://cart.example/c#a", "url_fragment"],
  ["CIMD-3-7 an empty fragment is refused", "https://cart.example/c#", "url_fragment"],
  [
    "CIMD-3-7 a fragment that contains a question mark is refused",
    "https://cart.example/c#?",
    "url_fragment",
  ],
  ["CIMD-3-9 the bare path is refused", "https://cart.example/", "url_path_bare"],
  ["CIMD-3-9 the bare path after a port is refused", "https://cart.example:8443/", "url_path_bare"],
  ["CIMD-3-9 an empty segment is accepted", "https://cart.example//", "ok"],
  [
    "CIMD-8.6-5 a backslash that hides another host is refused",
    "https://cart.example\\@b.example/c",
    "url_character_refused",
  ],
  ["CIMD-3-8 a tab that a URL parser drops is refused", "https://cart.exa\tmple/c", "url_character_refused"],
  [
    "CIMD-3-8 a line break that a URL parser drops is refused",
    "https://cart.example/c\n",
    "url_character_refused",
  ],
  ["CIMD-3-8 a blank that a URL parser drops is refused", " https://cart.example/c", "url_character_refused"],
  [
    "CIMD-3-8 a backslash that a URL parser turns into a slash is refused",
    "https://cart.example\\c",
    "url_character_refused",
  ],
  [
    "CIMD-3-8 letters that a URL parser encodes are refused",
    "https://cart.example/é",
    "url_character_refused",
  ],
  [
    "CIMD-3-8 a host that a URL parser encodes is refused",
    "https://bücher.example/c",
    "url_character_refused",
  ],
  ["CIMD-3-8 the encoded form of that host is accepted", "https://xn--bcher-kva.example/c", "ok"],
  [
    "CIMD-3-8 a host that a URL parser changes to lower case is refused",
    "https://Cart.example/c",
    "url_host_refused",
  ],
  ["CIMD-3-8 a host with a dot at the end is refused", "https://cart.example./c", "url_host_refused"],
  ["CIMD-3-8 a host with an escape is refused", "https://c%61rt.example/c", "url_host_refused"],
  ["CIMD-3-8 an empty host is refused", "https:///c", "url_host_refused"],
  ["CIMD-3-8 an octal address is refused", "https://0177.0.0.1/c", "url_host_refused"],
  ["CIMD-3-8 a hexadecimal address is refused", "https://0x7f000001/c", "url_host_refused"],
  ["CIMD-3-8 an address written as one number is refused", "https://2130706433/c", "url_host_refused"],
  ["CIMD-3-8 a short address is refused", "https://127.1/c", "url_host_refused"],
  ["CIMD-3-8 uncompressed IPv6 is refused", "https://[2606:4700:0::1]/c", "url_host_refused"],
  ["CIMD-3-8 an incomplete escape is refused", "https://cart.example/c%2", "url_malformed"],
  ["CIMD-3-1 2 KiB is accepted", long(2048), "ok"],
  ["CIMD-3-1 more than 2 KiB is refused", long(2049), "url_too_long"],
] as const;
for (const [name, text, want] of identifiers) {
  test(name, () => {
    const got = parseDocumentUrl(text);
    assert.equal(got.ok ? "ok" : got.error.kind, want);
  });
}

const sweeps = [
  ["CIMD-3-8 the path of an identifier", "https://cart.example/a", "b/c", /[A-Za-z0-9._~!$&'()*+,;=:@/-]/],
  // A slash ends the host early; what remains is a valid URL.
  ["CIMD-3-8 the host of an identifier", "https://a", "b.example/c", /[a-z0-9./-]/],
  ["CIMD-3-8 the port of an identifier", "https://cart.example:1", "2/c", /[0-9/]/],
] as const;
for (const [name, before, after, allowed] of sweeps) {
  test(`${name} contains only ${allowed}`, () => {
    const codes = [
      ...Array.from({ length: 0x180 }, (_, code) => code),
      0x3002,
      0xff0e,
      0xff0f,
      0xd800,
      0xfeff,
    ];
    for (const character of codes.map((code) => String.fromCharCode(code))) {
      const text = `${before}${character}${after}`;
      assert.equal(parseDocumentUrl(text).ok, allowed.test(character), JSON.stringify(text));
    }
  });
}

/** An independent reference: checks the text first, then that a URL parser returns it unchanged. */
function isIdentifier(text: string): boolean {
  if (text.length > 2048 || !/^https:\/\/[a-z0-9.:[\]-]+\/[A-Za-z0-9._~!$&'()*+,;=:@/%-]+$/.test(text))
    return false;
  if (/%(?![0-9A-F]{2})|%2e/i.test(text) || text.split("/").some((one) => /^\.{1,2}$/.test(one)))
    return false;
  const url = URL.parse(text);
  if (url?.hostname.split(".").includes("")) return false;
  return [text, text.replace(/^(https:\/\/[^/]*):443\//, "$1/")].includes(url?.href ?? "");
}

test("CIMD-3-8 on random text the result is that of the reference, and nothing is thrown", () => {
  const random = prng(3986);
  const pieces = [
    ..."aZ09.-_~/:@?#%*[] \t\n\0é",
    "//",
    "..",
    "/./",
    "%2e",
    "%2F",
    ":443",
    "0x7f",
    "[::1]",
    "\\",
  ];
  const seeds = [
    "https://cart.example/oauth.json",
    "https://cart.example:8443/a/b/c",
    "https://8.8.8.8/c",
    "https://[2606:4700::1111]/c",
  ];
  const seen = { true: 0, false: 0 };
  for (let round = 0; round < 10_000; round++) {
    const text = mutate(random, random.pick(seeds), pieces);
    const want = isIdentifier(text);
    assert.equal(parseDocumentUrl(text).ok, want, JSON.stringify(text));
    seen[`${want}`]++;
  }
  assert.ok(seen.true > 500 && seen.false > 500, JSON.stringify(seen));
});

// --- the document -----------------------------------------------------------------------------------------------

const ADDRESS = "https://cart.example/oauth.json";

const KEY = generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey.export({
  format: "jwk",
}) as JsonObject;
const DER = derOf(readFileSync(join(import.meta.dirname, "../fixtures/x509/client.pem"), "utf8"));
const certificate = parseCertificate(DER);
assert.ok(certificate.ok);
const CERTIFIED: JsonObject = { ...certificate.value.publicKey, x5c: [DER.toBase64()] };

const bare: JsonObject = { client_id: ADDRESS };
const declared: JsonObject = { ...bare, token_endpoint_auth_method: "private_key_jwt" };
const machine: JsonObject = { ...declared, jwks_uri: "https://cart.example/jwks.json" };
const app: JsonObject = {
  ...machine,
  client_name: "Cart agent",
  redirect_uris: ["https://cart.example/cb"],
  grant_types: ["authorization_code", "client_credentials"],
};
const { client_name: _name, ...nameless } = app;
const { redirect_uris: _uris, ...nowhere } = app;
const withKey = (key: Json): JsonObject => ({ ...declared, jwks: { keys: [key] } });
const withList = (list: Json, method: Json = null): JsonObject => ({
  ...machine,
  token_endpoint_auth_methods_supported: list,
  token_endpoint_auth_method: method,
});
const withMethod = (method: Json, more: JsonObject = {}): JsonObject => ({
  ...bare,
  ...more,
  token_endpoint_auth_method: method,
});

const documents: readonly (readonly [name: string, document: Json, want: string])[] = [
  ["PROD-2.2-1, PROD-4.3-2 the six fields are accepted", app, "private_key_jwt"],
  [
    "CIMD-4-1, PROD-2.2-2 a document without client_id is refused",
    { token_endpoint_auth_method: "spiffe_jwt", spiffe_id: "spiffe://td.example/cart" },
    "client_id_missing",
  ],
  ["CIMD-4-1 a client_id of null is refused", { ...machine, client_id: null }, "client_id_missing"],
  [
    "CIMD-4-1 a client_id that is not a string is refused",
    { ...machine, client_id: [ADDRESS] },
    "client_id_missing",
  ],
  [
    "CIMD-4-2, MCP-R.1-2, PROD-2.2-3 the URL that the document is served from is accepted",
    machine,
    "private_key_jwt",
  ],
  [
    "CIMD-4-2, MCP-R.1-2, PROD-2.2-3 a client_id with another URL is refused",
    { ...machine, client_id: "https://cart.example/other.json" },
    "client_id_differs",
  ],
  [
    "CIMD-4-2 the URL with other capitals is refused",
    { ...machine, client_id: "https://cart.example/OAuth.json" },
    "client_id_differs",
  ],
  [
    "CIMD-4-2 the URL with a slash appended is refused",
    { ...machine, client_id: `${ADDRESS}/` },
    "client_id_differs",
  ],
  [
    "CIMD-4-2, CIMD-3-8 the URL with the default port spelled out is refused",
    { ...machine, client_id: "https://cart.example:443/oauth.json" },
    "client_id_differs",
  ],
  [
    "CIMD-4-2 the URL with an escape for a letter is refused",
    { ...machine, client_id: "https://cart.example/o%61uth.json" },
    "client_id_differs",
  ],
  ["CIMD-4-2 an empty client_id is refused", { ...machine, client_id: "" }, "client_id_differs"],
  ...[null, true, 1, "{}", [machine]].map(
    (value) =>
      [
        `CIMD-4-1, PROD-4.3-2 ${JSON.stringify(value).slice(0, 9)} as the whole document is refused`,
        value,
        "not_object",
      ] as const,
  ),

  ...["client_secret_basic", "client_secret_post", "client_secret_jwt", "client_secret_new"].map(
    (method) =>
      [
        `CIMD-4.1-1, PROD-2.2-12 ${method} is refused`,
        { ...machine, token_endpoint_auth_method: method },
        "method_secret",
      ] as const,
  ),
  ["CIMD-4.1-2 a client_secret is refused", { ...machine, client_secret: "s3cret" }, "secret"],
  ["CIMD-4.1-2 a client_secret that is not a string is refused", { ...machine, client_secret: 1 }, "secret"],
  ["CIMD-4.1-2 a client_secret of null is refused", { ...machine, client_secret: null }, "secret"],
  ["CIMD-4.1-2 client_secret_expires_at is refused", { ...machine, client_secret_expires_at: 0 }, "secret"],
  ["CIMD-4.1-3 public keys are accepted", withKey(KEY), "private_key_jwt"],
  ...["d", "p", "q", "dp", "dq", "qi", "oth", "k"].map(
    (name) =>
      [
        `CIMD-4.1-3 a key with ${name} is refused`,
        withKey({ ...KEY, [name]: "AQAB" }),
        "keys_private",
      ] as const,
  ),
  ["CIMD-4.1-3 a symmetric key is refused", withKey({ kty: "oct", k: "AQAB" }), "keys_private"],
  [
    "CIMD-4.1-3 a private key beside a public one is refused",
    { ...declared, jwks: { keys: [KEY, { ...KEY, d: "AQAB" }] } },
    "keys_private",
  ],
  [
    "CIMD-4.1-3 a private key is refused even if the method does not use keys",
    withMethod("spiffe_jwt", {
      spiffe_id: "spiffe://td.example/cart",
      jwks: { keys: [{ ...KEY, d: "AQAB" }] },
    }),
    "keys_private",
  ],
  [
    "CIMD-4.1-4 a list of methods that contains a secret method is refused",
    withList(["private_key_jwt", "client_secret_basic"]),
    "method_secret",
  ],
  [
    "CIMD-4.1-4 such a list is refused even if the chosen method is acceptable",
    withList(["private_key_jwt", "client_secret_post"], "private_key_jwt"),
    "method_secret",
  ],
  [
    "CIMD-4.1-4, CIMD-4.3-1 what a software statement contains is ignored",
    { ...machine, software_statement: "eyJhbGciOiJub25lIn0.eyJjbGllbnRfc2VjcmV0IjoicyJ9." },
    "private_key_jwt",
  ],
  [
    "CIMD-4.3-1 a malformed software statement is ignored",
    { ...machine, software_statement: 1 },
    "private_key_jwt",
  ],

  [
    "HTTP-D-35, CIMD-8.2-4 a missing method is treated as none, not as RFC 7591's default",
    { ...bare, jwks_uri: "https://cart.example/k" },
    "public",
  ],
  ["CIMD-8.2-4 a method of null is treated as none", withMethod(null), "public"],
  ["CIMD-8.2-4 a client that declares none is treated as public", withMethod("none"), "public"],
  [
    "CIMD-8.2-4 never treats a list without a single method as none",
    withList(["private_key_jwt"]),
    "private_key_jwt",
  ],
  ["CIMD-8.2-4 never chooses none from a list", withList(["none", "private_key_jwt"]), "private_key_jwt"],
  ["CIMD-8.2-4 a list that contains only none is refused", withList(["none"]), "method_unsupported"],
  ["CIMD-8.2-4 an empty list is refused", withList([]), "method_unsupported"],
  [
    "CIMD-8.2-4 a listed method that is not supported is skipped",
    withList(["attest_jwt", "private_key_jwt"]),
    "private_key_jwt",
  ],
  [
    "CIMD-8.2-4 the first supported method of the list is chosen",
    { ...withList(["spiffe_jwt", "private_key_jwt"]), spiffe_id: "spiffe://td.example/cart" },
    "spiffe_jwt",
  ],
  ["CIMD-8.2-4 a list of null is treated as absent", withList(null, "private_key_jwt"), "private_key_jwt"],
  [
    "CIMD-8.2-5 a method that the list contains is accepted",
    withList(["spiffe_jwt", "private_key_jwt"], "private_key_jwt"),
    "private_key_jwt",
  ],
  [
    "CIMD-8.2-5 a method that the list does not contain is refused",
    withList(["spiffe_jwt"], "private_key_jwt"),
    "methods_disagree",
  ],
  [
    "CIMD-8.2-5 a method is refused if the list is empty",
    withList([], "private_key_jwt"),
    "methods_disagree",
  ],
  [
    "CIMD-8.2-5 none is refused if the list does not contain it",
    withList(["private_key_jwt"], "none"),
    "methods_disagree",
  ],
  [
    "PROD-2.2-17 a method that is not a string is refused",
    withMethod(["private_key_jwt"]),
    "method_malformed",
  ],
  [
    "PROD-2.2-17 a list of methods that is not an array is refused",
    withList("private_key_jwt"),
    "methods_malformed",
  ],
  [
    "PROD-2.2-17 a list with an element that is not a string is refused",
    withList(["private_key_jwt", 1]),
    "methods_malformed",
  ],

  ["CIMD-8.2-2, PROD-2.2-11, MCP-R.1-8 keys in the document are accepted", withKey(KEY), "private_key_jwt"],
  ["CIMD-8.2-3, PROD-2.2-13 keys at a URL are accepted", machine, "private_key_jwt"],
  ["CIMD-8.2-3, PROD-2.2-15 private_key_jwt without keys is refused", declared, "keys_missing"],
  [
    "CIMD-8.2-3, PROD-2.2-15 keys in two places are refused",
    { ...machine, jwks: { keys: [KEY] } },
    "keys_twice",
  ],
  ["CIMD-8.2-3 an empty key set is refused", { ...declared, jwks: { keys: [] } }, "keys_unusable"],
  [
    "CIMD-8.2-7 symmetric signatures are refused",
    { ...machine, token_endpoint_auth_signing_alg: "HS256" },
    "token_endpoint_auth_signing_alg_refused",
  ],
  [
    "CIMD-8.2-7 a supported algorithm is accepted",
    { ...machine, token_endpoint_auth_signing_alg: "ES256" },
    "private_key_jwt",
  ],
  ...["spiffe_jwt", "spiffe_x509"].flatMap((method) => [
    [
      `CIMD-8.2-2, PROD-2.2-12 ${method} is accepted`,
      withMethod(method, { spiffe_id: "spiffe://td.example/cart" }),
      method,
    ] as const,
    [`CIMD-8.2-2 ${method} without a SPIFFE ID is refused`, withMethod(method), "spiffe_id_missing"] as const,
  ]),
  [
    "CIMD-8.2-2, PROD-2.2-12 self_signed_tls_client_auth is accepted",
    withMethod("self_signed_tls_client_auth", { jwks: { keys: [CERTIFIED] } }),
    "self_signed_tls_client_auth",
  ],
  [
    "CIMD-8.2-2 self_signed_tls_client_auth without the certificate is refused",
    withMethod("self_signed_tls_client_auth", { jwks: { keys: [KEY] } }),
    "certificates_missing",
  ],
  [
    "CIMD-8.2-2 self_signed_tls_client_auth with keys at a URL is refused",
    withMethod("self_signed_tls_client_auth", { jwks_uri: "https://cart.example/k" }),
    "certificates_missing",
  ],
  [
    "PROD-2.2-12 tls_client_auth is refused, for which no certificate authority is configured",
    withMethod("tls_client_auth", { tls_client_auth_san_dns: "cart.example" }),
    "method_unsupported",
  ],
  ["PROD-2.2-12 an unknown method is refused", withMethod("attest_jwt"), "method_unsupported"],
  [
    "PROD-2.2-12 a method with other capitals is refused",
    withMethod("Private_Key_JWT"),
    "method_unsupported",
  ],

  [
    "CIMD-4.2-2, MCP-R.1-5 neither name nor redirect URIs are required from a workload",
    machine,
    "private_key_jwt",
  ],
  [
    "CIMD-4.2-2 neither is required for grants without redirect",
    { ...machine, grant_types: ["client_credentials"] },
    "private_key_jwt",
  ],
  ["MCPC-D-8, PROD-2.2-15 no name is required with authorization_code", nameless, "private_key_jwt"],
  [
    "MCPC-D-4, MCPC-D-5 sites, loopback and apps beside each other are taken",
    {
      ...app,
      redirect_uris: ["https://a.example/cb", "http://localhost/cb", "cursor://a/cb"],
      application_type: "x",
    },
    "private_key_jwt",
  ],
  [
    "PROD-2.2-15, MCP-R.1-5 redirect URIs are required with authorization_code",
    nowhere,
    "redirect_uris_missing",
  ],
  ["PROD-2.2-17 a name that is not a string is refused", { ...app, client_name: 1 }, "client_name_refused"],
  [
    "PROD-2.2-17 redirect URIs that are not an array are refused",
    { ...app, redirect_uris: "https://cart.example/cb" },
    "redirect_uris_refused",
  ],
  [
    "PROD-2.2-17 grant types that are not an array are refused",
    { ...machine, grant_types: "client_credentials" },
    "grant_types_refused",
  ],
  ["PROD-2.2-17 a jwks_uri that is not a string is refused", { ...machine, jwks_uri: 1 }, "jwks_uri_refused"],
  [
    "CIMD-8.6-5, PROD-4.3r1-1 a jwks_uri with plain http is refused",
    { ...machine, jwks_uri: "http://cart.example/k" },
    "jwks_uri_refused",
  ],
  [
    "CIMD-8.6-5 a client_uri with javascript: is refused",
    { ...app, client_uri: "javascript:alert(1)" },
    "client_uri_refused",
  ],
  [
    "CIMD-8.6-5 a logo_uri with javascript: is refused",
    { ...app, logo_uri: "javascript:alert(1)" },
    "logo_uri_refused",
  ],
  [
    "CIMD-8.6-5 a redirect URI with javascript: is refused",
    { ...app, redirect_uris: ["javascript:alert(1)"] },
    "redirect_uri_scheme",
  ],
  [
    "PROD-2.2-9 unsupported grant types are ignored",
    { ...machine, grant_types: ["implicit", "refresh_token", "client_credentials", "urn:example:grant"] },
    "private_key_jwt",
  ],
  [
    "MCPC-D-23 empty members are absent",
    { ...app, token_endpoint_auth_method: "none", scope: "", client_uri: "", logo_uri: "", contacts: [] },
    "none",
  ],
  ["MCPC-D-23 an empty method is absent", { ...app, token_endpoint_auth_method: "" }, "none"],
  [
    "MCPC-D-23 an empty list of redirect URIs is absent, and a public client has one",
    { ...app, token_endpoint_auth_method: "none", redirect_uris: [] },
    "public",
  ],
  ["MCPC-D-23, CIMD-4.1-2 an empty secret is refused", { ...app, client_secret: "" }, "secret"],
  [
    "PROD-2.2-16 unknown members are ignored",
    { ...machine, application_type: "web", "x-team": { lead: ["a"] } },
    "private_key_jwt",
  ],
];
for (const [name, document, want] of documents) {
  test(name, () => {
    const got = parseClientDocument(ADDRESS, JSON.stringify(document));
    if (got.ok) assert.equal(got.value.method, want);
    else assert.equal(got.error.kind, `document_${want}`);
  });
}

const nested = (depth: number) =>
  JSON.stringify(machine).replace("{", `{"deep":${"[".repeat(depth)}${"]".repeat(depth)},`);
const doubled = (member: string) => JSON.stringify(machine).replace("{", `{${member},`);

const texts = [
  ["CIMD-4-1, PROD-4.3-2 white space around the document is accepted", ` ${JSON.stringify(machine)}\n`, "ok"],
  ["PROD-4.3-2 an empty body is refused", "", "document_json_malformed"],
  ["PROD-4.3-2 HTML is refused", "<!doctype html><title>404</title>", "document_json_malformed"],
  [
    "PROD-4.3-2 a truncated document is refused",
    JSON.stringify(machine).slice(0, -1),
    "document_json_malformed",
  ],
  [
    "PROD-4.3-2 a second document after the first is refused",
    `${JSON.stringify(machine)}{}`,
    "document_json_malformed",
  ],
  [
    "PROD-4.3-2 a comma at the end is refused",
    JSON.stringify(machine).replace("}", ",}"),
    "document_json_malformed",
  ],
  ["PROD-4.3-2 an unpaired surrogate is refused", doubled('"a":"\\ud800"'), "document_json_malformed"],
  [
    "CIMD-4-2 a second client_id is refused",
    doubled(`"client_id":"${ADDRESS}"`),
    "document_json_duplicate_member",
  ],
  [
    "CIMD-4-2 a second client_id written with an escape is refused",
    doubled('"client\\u005fid":"x"'),
    "document_json_duplicate_member",
  ],
  [
    "CIMD-4.1-1 two methods are refused",
    doubled('"token_endpoint_auth_method":"none"'),
    "document_json_duplicate_member",
  ],
  ["PROD-2.2-16 members of __proto__ are ignored", doubled('"__proto__":{"client_secret":"s3cret"}'), "ok"],
  [
    "CIMD-4-1 no client_id is taken from __proto__",
    `{"__proto__":${JSON.stringify(machine)}}`,
    "document_client_id_missing",
  ],
  ["PROD-4.3-2 eight levels are accepted", nested(7), "ok"],
  ["PROD-4.3-2 nine levels are refused", nested(8), "document_json_too_deep"],
  ["PROD-4.3-2 a thousand levels is refused", nested(1000), "document_json_too_deep"],
  [
    "PROD-4.3-2 a number that is not finite is refused",
    doubled('"a":1e400'),
    "document_json_number_not_finite",
  ],
] as const;
for (const [name, text, want] of texts) {
  test(name, () => {
    const got = parseClientDocument(ADDRESS, text);
    assert.equal(got.ok ? "ok" : got.error.kind, want);
  });
}

test("PROD-2.2-16, CIMD-4.3-1 the members that are understood are kept, and all others dropped", () => {
  const got = parseClientDocument(
    ADDRESS,
    JSON.stringify({ ...app, software_statement: "a.b.c", scope: "trips.read", "x-team": 1 }),
  );
  assert.ok(got.ok);
  const { method, grantTypes, redirectUris, jwksUri, scope, members } = got.value;
  assert.deepEqual(
    { method, grantTypes, redirectUris, jwksUri, scope },
    {
      method: "private_key_jwt",
      grantTypes: ["authorization_code", "client_credentials"],
      redirectUris: ["https://cart.example/cb"],
      jwksUri: "https://cart.example/jwks.json",
      scope: ["trips.read"],
    },
  );
  assert.deepEqual(Object.keys(members).sort(), [
    "client_name",
    "grant_types",
    "jwks_uri",
    "redirect_uris",
    "scope",
    "token_endpoint_auth_method",
  ]);
});

test("CIMD-8.2-4 the method chosen from the list is recorded", () => {
  const got = parseClientDocument(ADDRESS, JSON.stringify(withList(["none", "private_key_jwt"])));
  assert.equal(got.ok && got.value.members.token_endpoint_auth_method, "private_key_jwt");
});

test("CIMD-4-2, CIMD-3-8 the URL with its default port is treated as another client", () => {
  const other = "https://cart.example:443/oauth.json";
  assert.ok(parseClientDocument(other, JSON.stringify({ ...machine, client_id: other })).ok);
  assert.ok(!parseClientDocument(other, JSON.stringify(machine)).ok);
});

test("CIMD-4-2, CIMD-4.1-2 a random document is refused or describes its own URL, and parsing never throws", () => {
  const random = prng(7591);
  const pieces = [
    ...'{}[]",:\\ \n\0é019-',
    "null",
    "true",
    "[]",
    "{}",
    '"client_secret":1,',
    '"__proto__":{},',
    '"k":"',
    "none",
    "client_secret_basic",
    "\\u0000",
    "\\ud800",
    "1e400",
    '"grant_types":',
    "/../",
    "[".repeat(9),
  ];
  const seeds = [
    app,
    machine,
    withKey(KEY),
    withMethod("spiffe_jwt", { spiffe_id: "spiffe://td.example/cart" }),
  ];
  const kinds = new Map<string, number>();
  for (let round = 0; round < rounds(1_000); round++) {
    const text = mutate(random, JSON.stringify(random.pick(seeds)), pieces);
    const got = parseClientDocument(ADDRESS, text);
    const kind = got.ok ? "ok" : got.error.kind;
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    if (!got.ok) {
      assert.match(got.error.kind, /^document_[a-z0-9_]+$/, text);
      continue;
    }
    const said = JSON.parse(text);
    assert.equal(said.client_id, ADDRESS, text);
    assert.equal(said.token_endpoint_auth_method ?? "none", got.value.method, text);
    assert.ok(!("client_secret" in said), text);
    const { jwks, jwksUri, spiffeId, redirectUris } = got.value;
    const isPublic = got.value.method === "none" && redirectUris.length > 0;
    assert.ok(isPublic || (jwks ?? jwksUri ?? spiffeId), text);
  }
  assert.ok((kinds.get("ok") ?? 0) > 30 && kinds.size > 10, JSON.stringify([...kinds]));
});

// --- the keys ---------------------------------------------------------------------------------------------------

const keys = [
  ["keys beside the document are accepted", "https://cart.example/jwks.json", true],
  ["the default port spelled out is accepted", "https://cart.example:443/jwks.json", true],
  ["another host is refused", "https://keys.example/jwks.json", false],
  ["a subdomain is refused", "https://keys.cart.example/jwks.json", false],
  ["the parent domain is refused", "https://example/jwks.json", false],
  ["another port is refused", "https://cart.example:8443/jwks.json", false],
  ["plain http is refused", "http://cart.example/jwks.json", false],
  ["text that is not a URL is refused", "cart.example", false],
] as const;
for (const [name, jwksUri, want] of keys) {
  test(`the jwks_uri of a metadata document: ${name}`, () => {
    const got = checkKeysOrigin(new URL(ADDRESS), jwksUri);
    assert.equal(got.ok ? "ok" : got.error.kind, want ? "ok" : "document_keys_foreign");
  });
}

import assert from "node:assert/strict";
import { test } from "node:test";
import { ID_JAG_PROFILE } from "../../src/spec/id-jag.ts";
import { buildMetadata, discoveryUrls, metadataPaths, parseIssuerMetadata } from "../../src/spec/rfc8414.ts";
import { ID_JAG, JWT } from "../../src/spec/rfc8693.ts";
import { transmitterPath } from "../../src/spec/ssf.ts";
import { mutate, prng } from "../support/prng.ts";

const offer = {
  issuer: "https://as.example/t1",
  grantTypes: ["client_credentials"],
  authMethods: ["client_secret_basic", "spiffe_jwt"],
  signingAlgorithms: ["ES256", "RS256"],
  proofAlgorithms: ["ES256", "EdDSA"],
  scopes: ["trips.read"],
  requestedTokenTypes: [],
  grantProfiles: [],
  detailTypes: [],
  certificates: true,
};

const members = [
  [
    "B7523-4-4, RFC8414-2-1, RFC8414-3.3-1 the server's metadata have the configured issuer",
    "issuer",
    "https://as.example/t1",
  ],
  [
    "RFC6749-3.2-2, RFC8414-2-3 the server's metadata have the token endpoint below the issuer",
    "token_endpoint",
    "https://as.example/t1/token",
  ],
  [
    "RFC8414-2-4, PROD-4.4-5 the server's metadata have the key set below the issuer",
    "jwks_uri",
    "https://as.example/t1/jwks",
  ],
  ["RFC8414-2-8, RFC8414-3.2-2 scopes are listed", "scopes_supported", ["trips.read"]],
  ["RFC8414-2-9 the server's metadata have an empty list of response types", "response_types_supported", []],
  [
    "RFC8414-2-11 grant types are listed, so that clients assume no default",
    "grant_types_supported",
    ["client_credentials"],
  ],
  [
    "RFC8414-2-12, SPCA-4-3 authentication methods by name are listed",
    "token_endpoint_auth_methods_supported",
    ["client_secret_basic", "spiffe_jwt"],
  ],
  [
    "RFC8414-2-13, RFC8414-2-14, RFC8414-2-15 the accepted assertion algorithms are listed",
    "token_endpoint_auth_signing_alg_values_supported",
    ["ES256", "RS256"],
  ],
  [
    "RFC8414-2-18, SPCA-4-4 the methods of the introspection endpoint are listed",
    "introspection_endpoint_auth_methods_supported",
    ["client_secret_basic", "spiffe_jwt"],
  ],
  [
    "RFC8414-2-15, RFC8414-2-18 the assertion algorithms of the introspection endpoint are listed",
    "introspection_endpoint_auth_signing_alg_values_supported",
    ["ES256", "RS256"],
  ],
  [
    "RFC7009-2-3, RFC7009-2-4, RFC7009-2-8 the server's metadata have the revocation endpoint below the issuer, by https",
    "revocation_endpoint",
    "https://as.example/t1/revoke",
  ],
  [
    "RFC8414-2-18, SPCA-4-4 the methods of the revocation endpoint are listed",
    "revocation_endpoint_auth_methods_supported",
    ["client_secret_basic", "spiffe_jwt"],
  ],
  [
    "RFC8414-2-15, RFC8414-2-18 the assertion algorithms of the revocation endpoint are listed",
    "revocation_endpoint_auth_signing_alg_values_supported",
    ["ES256", "RS256"],
  ],
  [
    "RFC9449-5.1-1, MDP-3-1 the algorithms of DPoP proofs are listed",
    "dpop_signing_alg_values_supported",
    ["ES256", "EdDSA"],
  ],
  [
    "RFC8705-3.3-1 tokens bound to certificates are announced",
    "tls_client_certificate_bound_access_tokens",
    true,
  ],
  [
    "RFC8705-5-1 the server's metadata have no aliases if certificates use the same endpoint",
    "mtls_endpoint_aliases",
    undefined,
  ],
  ["RFC8414-2-2 the server's metadata have no authorization endpoint", "authorization_endpoint", undefined],
  ["PRM-D-2 no resources are listed", "protected_resources", undefined],
  ["PROD-4.4-12 the server's metadata have no registration endpoint", "registration_endpoint", undefined],
  ["PROD-4.4-12 metadata documents are not announced", "client_id_metadata_document_supported", undefined],
] as const;

for (const [name, member, want] of members) {
  test(name, () => assert.deepEqual(buildMetadata(offer)[member], want));
}

test("PROD-4.4-12 only what is enabled is listed", () => {
  const metadata = buildMetadata({ ...offer, grantTypes: ["a"], authMethods: ["b"], scopes: ["c", "d"] });
  assert.equal(
    "dpop_signing_alg_values_supported" in buildMetadata({ ...offer, proofAlgorithms: [] }),
    false,
  );
  assert.deepEqual(metadata.grant_types_supported, ["a"]);
  assert.deepEqual(metadata.token_endpoint_auth_methods_supported, ["b"]);
  assert.deepEqual(metadata.scopes_supported, ["c", "d"]);
});

test("RFC8705-5-1, RFC8705-5-2 each endpoint that authenticates clients has an alias for certificates", () => {
  const metadata = buildMetadata({ ...offer, mtlsBase: "https://mtls.as.example/t1" });
  assert.deepEqual(metadata.mtls_endpoint_aliases, {
    token_endpoint: "https://mtls.as.example/t1/token",
    introspection_endpoint: "https://mtls.as.example/t1/introspect",
    revocation_endpoint: "https://mtls.as.example/t1/revoke",
  });
  assert.equal(metadata.token_endpoint, "https://as.example/t1/token");
});

test("RFC8414-2-7, PROD-4.4-2 the registration endpoint is below the issuer if clients can register", () => {
  const metadata = buildMetadata({ ...offer, registration: true });
  assert.equal(metadata.registration_endpoint, "https://as.example/t1/register");
  assert.ok(!("registration_endpoint" in buildMetadata({ ...offer, registration: false })));
});

test("PROD-4.4-1, MCP-R.1-7 metadata documents are announced if they are enabled", () => {
  const metadata = buildMetadata({ ...offer, clientDocuments: true });
  assert.equal(metadata.client_id_metadata_document_supported, true);
  assert.ok(
    !("client_id_metadata_document_supported" in buildMetadata({ ...offer, clientDocuments: false })),
  );
});

test("IDC-3-1, IDJAG-7.1-1 the token types of issued grants are listed", () => {
  const metadata = buildMetadata({ ...offer, requestedTokenTypes: [JWT, ID_JAG] });
  assert.deepEqual(metadata.identity_chaining_requested_token_types_supported, [JWT, ID_JAG]);
});

test("IDJAG-7.2-1, IDJAG-7.2-2, EMA-6-1 the profiles of redeemable grants are listed", () => {
  const metadata = buildMetadata({ ...offer, grantProfiles: [ID_JAG_PROFILE] });
  assert.deepEqual(metadata.authorization_grant_profiles_supported, [ID_JAG_PROFILE]);
});

test("RFC8414-3.2-3, IDJAG-7.2-1 empty lists about grants are omitted", () => {
  const names = Object.keys(buildMetadata(offer));
  assert.ok(!names.includes("identity_chaining_requested_token_types_supported"));
  assert.ok(!names.includes("authorization_grant_profiles_supported"));
});

test("RFC8414-3.2-3 an empty list of scopes is omitted", () => {
  assert.ok(!("scopes_supported" in buildMetadata({ ...offer, scopes: [] })));
});

const paths = [
  ["RFC8414-3-1 an issuer without path is published at the root", "https://as.example", ""],
  ["RFC8414-3-1 the well-known part is inserted before the path", "https://as.example/t1", "/t1"],
  ["RFC8414-3-1 the whole path after the well-known part is kept", "https://as.example/a/b", "/a/b"],
  ["RFC8414-3-1 the port is omitted", "https://as.example:8443/t1", "/t1"],
  ["RFC8414-3.1-2 a trailing slash is removed", "https://as.example/t1/", "/t1"],
  ["RFC8414-3.1-2 a path of one slash is removed", "https://as.example/", ""],
] as const;

for (const [name, issuer, path] of paths) {
  test(name, () => {
    // RFC8414-3-3, RFC8414-3-4, PROD-4.4-3: the default suffix, and OpenID Connect's for clients that know only it.
    const inserted = [
      `/.well-known/oauth-authorization-server${path}`,
      `/.well-known/openid-configuration${path}`,
    ];
    const appended = [
      `${path}/.well-known/oauth-authorization-server`,
      `${path}/.well-known/openid-configuration`,
    ];
    const all = [...inserted, ...inserted.map((one) => `${one}/`), ...(path === "" ? [] : appended)];
    assert.deepEqual(metadataPaths(issuer), all);
  });
}

// --- metadata of other issuers ----------------------------------------------------------------------------------

const discoveries: [string, string, string[]][] = [
  [
    "RFC8414-3-1 both documents are fetched at the root for an issuer without path",
    "https://idp.example",
    [
      "https://idp.example/.well-known/oauth-authorization-server",
      "https://idp.example/.well-known/openid-configuration",
    ],
  ],
  [
    "RFC8414-3-1 a document is fetched between host and path first, and after the path last",
    "https://idp.example:8443/a/t1",
    [
      "https://idp.example:8443/.well-known/oauth-authorization-server/a/t1",
      "https://idp.example:8443/.well-known/openid-configuration/a/t1",
      "https://idp.example:8443/a/t1/.well-known/openid-configuration",
    ],
  ],
  [
    "RFC8414-3.1-2 a document is fetched without the trailing slash of the path",
    "https://idp.example/t1/",
    [
      "https://idp.example/.well-known/oauth-authorization-server/t1",
      "https://idp.example/.well-known/openid-configuration/t1",
      "https://idp.example/t1/.well-known/openid-configuration",
    ],
  ],
  [
    "RFC8414-3.1-2 a document is fetched without a path of one slash",
    "https://idp.example/",
    [
      "https://idp.example/.well-known/oauth-authorization-server",
      "https://idp.example/.well-known/openid-configuration",
    ],
  ],
];
for (const [name, issuer, want] of discoveries) {
  test(name, () => assert.deepEqual(discoveryUrls(issuer), want));
}

const idp = "https://idp.example/t1";
const keys = "https://keys.idp.example/jwks?v=1";
const document = { issuer: idp, jwks_uri: keys, token_endpoint: `${idp}/token`, x: { y: [null, 1] } };
const { jwks_uri: _keys, ...withoutKeys } = document;
const { issuer: _issuer, ...withoutIssuer } = document;

const documents: [string, string, string][] = [
  ["RFC8414-3.3-2 a document of this issuer is accepted", JSON.stringify(document), keys],
  [
    "RFC8414-4-1 an issuer written with escapes is accepted",
    `{"issuer":"https:\\/\\/idp.example\\u002ft1","jwks_uri":"${keys}"}`,
    keys,
  ],
  ...[
    "https://idp.example",
    `${idp}/`,
    "https://IDP.example/t1",
    "https://idp.example:443/t1",
    `${idp}?`,
    "",
    "http://idp.example/t1",
    "https://idp.example/T1",
    `${idp}x`,
    null,
    1,
    [idp],
    { [idp]: idp },
  ].map((issuer): [string, string, string] => [
    `RFC8414-3.3-2 a document with the issuer ${JSON.stringify(issuer)} is refused`,
    JSON.stringify({ ...document, issuer }),
    "metadata_issuer_differs",
  ]),
  [
    "RFC8414-3.3-2 a document without issuer is refused",
    JSON.stringify(withoutIssuer),
    "metadata_issuer_differs",
  ],
  [
    "RFC8414-3.3-2 a document with two issuers is refused",
    `{"issuer":"${idp}","issuer":"https://evil.example","jwks_uri":"${keys}"}`,
    "metadata_malformed",
  ],
  ["RFC8414-3.3-2 an array is refused", JSON.stringify([document]), "metadata_malformed"],
  ["RFC8414-3.3-2 a document that is not JSON is refused", "<html>", "metadata_malformed"],
  ["RFC8414-3.3-2 an empty document is refused", "", "metadata_malformed"],
  [
    "RFC8414-3.3-2 a document nested too deep is refused",
    `{"x":${"[".repeat(8)}${"]".repeat(8)}}`,
    "metadata_malformed",
  ],
  [
    "RFC8414-2-4 a document without jwks_uri is refused",
    JSON.stringify(withoutKeys),
    "metadata_jwks_uri_missing",
  ],
  ...[
    "http://idp.example/jwks",
    "https://user@idp.example/jwks",
    "https://idp.example/a/../jwks",
    "/jwks",
    "",
    "https://idp.example/jwks#k",
    "https://0x7f000001/jwks",
    "file:///etc/jwks",
    null,
    1,
    [keys],
    { keys: [] },
  ].map((jwks): [string, string, string] => [
    `RFC8414-2-4 ${JSON.stringify(jwks)} as jwks_uri is refused`,
    JSON.stringify({ ...document, jwks_uri: jwks }),
    "metadata_jwks_uri_malformed",
  ]),
];
for (const [name, text, want] of documents) {
  test(name, () => {
    const got = parseIssuerMetadata(text, idp);
    assert.equal(got.ok ? got.value.jwksUri : got.error.kind, want);
  });
}

test("RFC8414-4-2 issuers are compared without Unicode normalization", () => {
  const [composed, decomposed] = ["https://idp.example/caf\u00e9", "https://idp.example/cafe\u0301"] as const;
  const got = parseIssuerMetadata(JSON.stringify({ ...document, issuer: decomposed }), composed);
  assert.equal(got.ok ? "" : got.error.kind, "metadata_issuer_differs");
});

test("RFC8414-3.3-2 a seeded random document is refused or has a jwks_uri that may be fetched", () => {
  const random = prng(8414);
  const pieces = [
    "null",
    "[]",
    "{}",
    '"',
    ":",
    ",",
    "@",
    "#",
    "..",
    "\\",
    "issuer",
    "jwks_uri",
    "https://",
    "é",
  ];
  let accepted = 0;
  for (let round = 0; round < 2_000; round++) {
    const got = parseIssuerMetadata(mutate(random, JSON.stringify(document), pieces), idp);
    if (!got.ok) continue;
    accepted++;
    assert.match(got.value.jwksUri, /^https:\/\/[^@#\\"/?]+(?:\/[^#\\"]*)?$/);
  }
  assert.ok(accepted > 100, String(accepted));
});

test("JWKS-D-4 metadata of another issuer are told with both names, and what a document names is cut", () => {
  const got = parseIssuerMetadata(JSON.stringify({ ...document, issuer: `${idp}/` }), idp);
  assert.deepEqual(got.ok ? "" : got.error, {
    kind: "metadata_issuer_differs",
    says: `the document names "${idp}/", not "${idp}"`,
  });
  const long = parseIssuerMetadata(JSON.stringify({ ...document, issuer: "x".repeat(5_000) }), idp);
  assert.ok(!long.ok && "says" in long.error && long.error.says.length < 400);
});

test("SSF-7.2-1 the path of an issuer stands behind the well-known one of its transmitter", () => {
  const path = "/.well-known/ssf-configuration";
  assert.equal(transmitterPath("https://as.example"), path);
  assert.equal(transmitterPath("https://as.example/tenant"), `${path}/tenant`);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { buildMetadata, metadataPaths } from "../../src/spec/rfc8414.ts";

const offer = {
  issuer: "https://as.example/t1",
  grantTypes: ["client_credentials"],
  authMethods: ["client_secret_basic", "spiffe_jwt"],
  signingAlgorithms: ["ES256", "RS256"],
  scopes: ["trips.read"],
};

const members = [
  ["RFC8414-2-1, RFC8414-3.3-1 has the issuer as it is configured", "issuer", "https://as.example/t1"],
  ["RFC8414-2-3 has the token endpoint below the issuer", "token_endpoint", "https://as.example/t1/token"],
  ["RFC8414-2-4, PROD-4.4-5 has the key set below the issuer", "jwks_uri", "https://as.example/t1/jwks"],
  ["RFC8414-2-8, RFC8414-3.2-2 lists scopes", "scopes_supported", ["trips.read"]],
  ["RFC8414-2-9 has response types, none of them", "response_types_supported", []],
  [
    "RFC8414-2-11 lists grant types, so that no default is assumed",
    "grant_types_supported",
    ["client_credentials"],
  ],
  [
    "RFC8414-2-12, SPCA-4-3 lists authentication methods by name",
    "token_endpoint_auth_methods_supported",
    ["client_secret_basic", "spiffe_jwt"],
  ],
  [
    "RFC8414-2-13, RFC8414-2-14, RFC8414-2-15 lists the algorithms of assertions as they are accepted",
    "token_endpoint_auth_signing_alg_values_supported",
    ["ES256", "RS256"],
  ],
  [
    "RFC8705-5-1 has no aliases where certificates come to the same place",
    "mtls_endpoint_aliases",
    undefined,
  ],
  ["RFC8414-2-2 has no authorization endpoint", "authorization_endpoint", undefined],
  ["PROD-4.4-12 has no registration endpoint", "registration_endpoint", undefined],
  ["PROD-4.4-12 does not promise metadata documents", "client_id_metadata_document_supported", undefined],
] as const;

for (const [name, member, want] of members) {
  test(name, () => assert.deepEqual(buildMetadata(offer)[member], want));
}

test("PROD-4.4-12 tells what is on, and nothing else", () => {
  const metadata = buildMetadata({ ...offer, grantTypes: ["a"], authMethods: ["b"], scopes: ["c", "d"] });
  assert.deepEqual(metadata.grant_types_supported, ["a"]);
  assert.deepEqual(metadata.token_endpoint_auth_methods_supported, ["b"]);
  assert.deepEqual(metadata.scopes_supported, ["c", "d"]);
});

test("RFC8705-5-1, RFC8705-5-2 has the token endpoint for certificates beside the other", () => {
  const metadata = buildMetadata({ ...offer, mtlsBase: "https://mtls.as.example/t1" });
  assert.deepEqual(metadata.mtls_endpoint_aliases, { token_endpoint: "https://mtls.as.example/t1/token" });
  assert.equal(metadata.token_endpoint, "https://as.example/t1/token");
});

test("RFC8414-3.2-3 leaves an empty list of scopes out", () => {
  assert.ok(!("scopes_supported" in buildMetadata({ ...offer, scopes: [] })));
});

const paths = [
  ["RFC8414-3-1 publishes an issuer without path at the top", "https://as.example", ""],
  ["RFC8414-3-1 inserts the well-known part before the path", "https://as.example/t1", "/t1"],
  ["RFC8414-3-1 keeps the whole path behind it", "https://as.example/a/b", "/a/b"],
  ["RFC8414-3-1 leaves the port out", "https://as.example:8443/t1", "/t1"],
  ["RFC8414-3.1-2 removes a slash at the end", "https://as.example/t1/", "/t1"],
  ["RFC8414-3.1-2 removes a slash alone", "https://as.example/", ""],
] as const;

for (const [name, issuer, path] of paths) {
  test(name, () => {
    // RFC8414-3-3, RFC8414-3-4, PROD-4.4-3: the default suffix, and one more for clients that know only that.
    assert.deepEqual(metadataPaths(issuer), [
      `/.well-known/oauth-authorization-server${path}`,
      `/.well-known/openid-configuration${path}`,
    ]);
  });
}

import assert from "node:assert/strict";
import { test } from "node:test";
import { buildResourceMetadata, resourceMetadataPath, resourceMetadataUrl } from "../../src/spec/rfc9728.ts";

const offer = {
  resource: "https://as.example/api",
  authorizationServers: ["https://as.example"],
  scopes: ["audit:read"],
  proofAlgorithms: ["ES256"],
  name: "Administration",
};

test("RFC9728-3.2-3, RFC9728-3.2-1 values are arrays, and empty ones are left out", () => {
  const all = {
    resource: "https://as.example/api",
    authorization_servers: ["https://as.example"],
    scopes_supported: ["audit:read"],
    bearer_methods_supported: ["header"],
    dpop_signing_alg_values_supported: ["ES256"],
    resource_name: "Administration",
  };
  assert.deepEqual(buildResourceMetadata(offer), all);
  const { scopes_supported: _, dpop_signing_alg_values_supported: __, ...rest } = all;
  assert.deepEqual(buildResourceMetadata({ ...offer, scopes: [], proofAlgorithms: [] }), rest);
});

for (const [resource, path] of [
  ["https://as.example/api", "/.well-known/oauth-protected-resource/api"],
  ["https://as.example/t1/api", "/.well-known/oauth-protected-resource/t1/api"],
  ["https://as.example:8443/t1/consents", "/.well-known/oauth-protected-resource/t1/consents"],
] as const) {
  test(`RFC9728-3-1, RFC9728-3.1-1 the well-known part stands between host and path: ${resource}`, () => {
    assert.equal(resourceMetadataPath(resource), path);
    assert.equal(resourceMetadataUrl(resource), new URL(resource).origin + path);
  });
}

/**
 * The client of the Model Context Protocol's TypeScript SDK registers, authenticates and obtains tokens, for machines:
 * this server has no `signIn`. The discovery of the SDK requires an authorization endpoint, so it is left out here but
 * for its refusal; mcp-people.test.ts has it, with users.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  type AuthorizationServerMetadata,
  auth,
  ClientCredentialsProvider,
  discoverAuthorizationServerMetadata,
  fetchToken,
  type OAuthClientMetadata,
  OAuthError,
  PrivateKeyJwtProvider,
  RegistrationRejectedError,
  registerClient,
  type StoredOAuthClientInformation,
} from "@modelcontextprotocol/client";
import { makeKeyPem, publicJwk } from "../../scripts/dev-keys.ts";
import { DRAFT } from "../../src/spec/cimd.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { createInitialToken } from "../support/host.ts";
import { stop } from "../support/stop.ts";
import { type DocumentServer, type Fetch, fetchAt, LOOPBACK, startDocumentServer } from "../support/web.ts";
import { claimsOf, ISSUER, makeWorld, type World } from "../support/world.ts";

const SCOPE = "tools.call";

let key: string;
let otherKey: string;
/** The web server of the MCP server, which also serves client documents. */
let tools: DocumentServer;
let resource: string;
let world: World;
let metadata: Record<string, unknown>;
let fetchFn: Fetch;
/** Adds the initial access token, for which the SDK has no parameter. */
let fetchWithToken: Fetch;

before(async () => {
  [key = "", otherKey = ""] = await Promise.all([makeKeyPem(), makeKeyPem()]);
  tools = await startDocumentServer();
  resource = `${tools.origin}/tools`;
  tools.documents.set("/.well-known/oauth-protected-resource/tools", {
    resource,
    authorization_servers: [ISSUER],
    scopes_supported: [SCOPE],
  });
  const rule = { allow: "client_credentials", targets: [resource], scopes: [SCOPE] };
  world = await makeWorld(
    {
      clientMetadataDocuments: {},
      clientOrigins: { [tools.origin]: { ca: { file: "tools.pem" }, privateNetworks: LOOPBACK } },
      drafts: [SPIFFE_DRAFT, DRAFT],
      targets: [{ names: [resource], scopes: [SCOPE] }],
      policies: [
        { id: "registered", classes: ["mcp"], ...rule },
        { id: "documents", clients: [`${tools.origin}/*`], ...rule },
      ],
    },
    { files: { "tools.pem": tools.ca } },
  );
  metadata = (await world.get("/.well-known/oauth-authorization-server")).body;
  fetchFn = fetchAt({
    "as.example": { ca: world.ca, port: world.server.port },
    localhost: { ca: tools.ca },
  });
  const token = await createInitialToken(world, "mcp", "--uses", "10");
  fetchWithToken = (url, init) => {
    const headers = new Headers(init?.headers);
    headers.set("authorization", `Bearer ${token}`);
    return fetchFn(url, { ...init, headers });
  };
});

after(() => stop(world, tools));

const bySecret = (clientId: string, clientSecret = ""): ClientCredentialsProvider =>
  new ClientCredentialsProvider({ clientId, clientSecret, scope: SCOPE, expectedIssuer: ISSUER });
const byKey = (clientId: string, privateKey = key): PrivateKeyJwtProvider =>
  new PrivateKeyJwtProvider({
    clientId,
    privateKey,
    algorithm: "ES256",
    scope: SCOPE,
    expectedIssuer: ISSUER,
  });

/** The client metadata of the SDK's providers. */
const withSecret = (): OAuthClientMetadata => bySecret("").clientMetadata;
const withKey = (): OAuthClientMetadata => ({
  ...byKey("").clientMetadata,
  jwks: { keys: [publicJwk(key)] },
});

const register = (clientMetadata: OAuthClientMetadata, by = fetchWithToken, given: object = {}) =>
  registerClient(ISSUER, { clientMetadata, fetchFn: by, ...given });

test("RFC7591-3.2-1, RFC7591-3.2.1-1, RFC7591-3.2.1-7, RFC7591-3.2.1-8, MCP-O.3-3 the SDK registers the metadata of its provider", async () => {
  const { client_id, client_secret, client_secret_expires_at, ...rest } = await register(withSecret());
  assert.match(
    `${client_id}:${client_secret}`,
    /^[\w-]+:[\w-]+$/,
    "client_id and secret need no encoding, because the SDK does none for Basic",
  );
  assert.equal(client_secret_expires_at, 0);
  const { redirect_uris, grant_types, token_endpoint_auth_method, scope, client_name } = rest;
  assert.deepEqual(
    { redirect_uris, grant_types, token_endpoint_auth_method, scope, client_name },
    withSecret(),
  );
});

// Without metadata the SDK uses default paths under the issuer, which are the same as ours.
for (const [name, given] of [
  ["at the SDK's default paths", () => ({})],
  ["at the endpoints in our metadata", () => ({ metadata: metadata as AuthorizationServerMetadata })],
] as const) {
  test(`MCC-2.2-1, MCC-2.3-1, MCP-O.8-1, MCP-O.9-1 a client registers and obtains a token by secret, ${name}`, async () => {
    const { client_id, client_secret } = await register(withSecret(), fetchWithToken, given());
    const provider = bySecret(client_id, client_secret);
    const tokens = await fetchToken(provider, ISSUER, { ...given(), resource, fetchFn });
    assert.deepEqual([tokens.token_type, tokens.scope], ["Bearer", SCOPE]);
    const claims = claimsOf(tokens.access_token);
    assert.deepEqual([claims.aud, claims.client_id], [resource, client_id]);
  });

  test(`MCC-2.2-1, MCC-2.5-1 a client registers and obtains a token by key, without kid or client_id, ${name}`, async () => {
    const { client_id, client_secret } = await register(withKey(), fetchWithToken, given());
    assert.equal(client_secret, undefined);
    const tokens = await fetchToken(byKey(client_id), ISSUER, { ...given(), resource, fetchFn });
    assert.equal(claimsOf(tokens.access_token).client_id, client_id);
  });
}

for (const [name, clientMetadata, provider] of [
  ["a wrong secret", withSecret, (clientId: string) => bySecret(clientId, "wrong")],
  ["a wrong key", withKey, (clientId: string) => byKey(clientId, otherKey)],
  ["a key instead of a secret", withSecret, (clientId: string) => byKey(clientId)],
] as const) {
  test(`RFC6749-5.2-3 the SDK reports ${name} as invalid_client`, async () => {
    const { client_id } = await register(clientMetadata());
    await assert.rejects(fetchToken(provider(client_id), ISSUER, { resource, fetchFn }), (error) => {
      assert.ok(OAuthError.isInstance(error));
      assert.equal(error.code, "invalid_client");
      return true;
    });
  });
}

test("RFC8707-2-9 the SDK reports an unknown resource as invalid_target", async () => {
  const { client_id, client_secret } = await register(withSecret());
  const unknown = { resource: "https://unknown.example", fetchFn };
  await assert.rejects(fetchToken(bySecret(client_id, client_secret), ISSUER, unknown), {
    code: "invalid_target",
  });
});

const REFUSED: [string, OAuthClientMetadata, () => Fetch, [number, string | undefined]][] = [
  ["RFC7591-3.2.2-1 no initial access token", { redirect_uris: [] }, () => fetchFn, [401, "invalid_token"]],
  [
    "RFC7591-3.2.2-5 a public client",
    { redirect_uris: [], token_endpoint_auth_method: "none" },
    () => fetchWithToken,
    [400, "invalid_client_metadata"],
  ],
  [
    "RFC7591-3.2.2-4 an http redirect URI of another host",
    { redirect_uris: ["http://app.example/callback"] },
    () => fetchWithToken,
    [400, "invalid_redirect_uri"],
  ],
];
for (const [name, clientMetadata, by, want] of REFUSED) {
  test(`${name} is refused, and the SDK reports the rejection`, async () => {
    await assert.rejects(register(clientMetadata, by()), (error) => {
      assert.ok(RegistrationRejectedError.isInstance(error));
      assert.deepEqual([error.status, JSON.parse(error.body).error], want);
      return true;
    });
  });
}

/** A client for `auth`: the SDK's own private_key_jwt provider, with one metadata document URL for all servers. */
class DocumentClient extends PrivateKeyJwtProvider {
  readonly clientMetadataUrl: string;
  #information: StoredOAuthClientInformation | undefined;
  constructor(clientMetadataUrl: string) {
    super({ clientId: clientMetadataUrl, privateKey: key, algorithm: "ES256", expectedIssuer: ISSUER });
    this.clientMetadataUrl = clientMetadataUrl;
  }
  override clientInformation(): StoredOAuthClientInformation {
    return this.#information as StoredOAuthClientInformation;
  }
  saveClientInformation(information: StoredOAuthClientInformation): void {
    this.#information = information;
  }
  discoveryState() {
    return {
      authorizationServerUrl: ISSUER,
      authorizationServerMetadata: metadata as AuthorizationServerMetadata,
    };
  }
}

/** Publishes the metadata document of a client at this path. */
function publish(path: string, clientId = `${tools.origin}${path}`): DocumentClient {
  const provider = new DocumentClient(`${tools.origin}${path}`);
  const { clientMetadata } = provider;
  tools.documents.set(path, { ...clientMetadata, client_id: clientId, jwks: { keys: [publicJwk(key)] } });
  return provider;
}

test("MCP-O.3-2, MCP-R.1-1, MCP-R.1-7, MCP-R.1-8, MCP-O.9-1, CIMD-6-1 auth() relies on our metadata and identifies itself by its metadata document", async () => {
  const provider = publish("/client.json");
  assert.equal(await auth(provider, { serverUrl: resource, fetchFn }), "AUTHORIZED");
  const { client_id, aud, scope } = claimsOf(provider.tokens()?.access_token);
  assert.deepEqual([client_id, aud, scope], [provider.clientMetadataUrl, resource, SCOPE]);
});

test("MCP-R.1-2, CIMD-4-2, PROD-9.2-8 a document with the client_id of another URL is refused", async () => {
  const provider = publish("/other.json", `${tools.origin}/client.json`);
  await assert.rejects(fetchToken(provider, ISSUER, { resource, fetchFn }), { code: "invalid_client" });
  assert.ok(tools.fetched.includes("/other.json"));
});

test("MCP-O.3-4, MCP-D.3-1 the SDK's discovery lacks only the authorization endpoint in our metadata", async () => {
  await assert.rejects(discoverAuthorizationServerMetadata(ISSUER, { fetchFn }), (error) => {
    const issues: { path: string[] }[] = Object(error).issues;
    assert.deepEqual(
      issues.map(({ path }) => path),
      [["authorization_endpoint"]],
    );
    return true;
  });
  const withEndpoint: Fetch = async (url, init) => {
    const document = await (await fetchFn(url, init)).json();
    return Response.json({ ...Object(document), authorization_endpoint: `${ISSUER}/authorize` });
  };
  const found = await discoverAuthorizationServerMetadata(ISSUER, { fetchFn: withEndpoint });
  assert.equal(found?.issuer, ISSUER);
});

/**
 * A client library that we did not write discovers the server, registers, authenticates with each of its methods,
 * obtains tokens and grants, introspects and revokes tokens. The flow that begins at the authorization endpoint is in
 * authorization-code.test.ts.
 */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { after, before, test } from "node:test";
import * as oauth from "oauth4webapi";
import { issueClientCertificate, makeAuthority } from "../../scripts/dev-pki.ts";
import { freePorts } from "../../scripts/server-process.ts";
import { DRAFT as DOCUMENTS_DRAFT } from "../../src/spec/cimd.ts";
import { DRAFT as ID_JAG_DRAFT } from "../../src/spec/id-jag.ts";
import { DRAFT as CHAINING_DRAFT } from "../../src/spec/identity-chaining.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { createInitialToken } from "../support/host.ts";
import { stop } from "../support/stop.ts";
import { type DocumentServer, type Fetch, fetchAt, LOOPBACK, startDocumentServer } from "../support/web.ts";
import {
  claimsOf,
  EXCHANGE,
  IDP,
  ISSUER,
  JWT,
  JWT_SPIFFE,
  makeWorld,
  type World,
  workload,
} from "../support/world.ts";

const API = "https://api.example";
const PARTNER = "https://partner.example";
const SECRET = "a secret: with %, + and ü";
const scopes = ["trips.read"];
const planner = workload("agents/planner");

/** The authority of the certificates that clients register with. */
const authority = await makeAuthority("Clients' authority");
const batch = await issueClientCertificate(authority, ["batch.example"]);
const unregistered = await issueClientCertificate(authority, ["unregistered.example"]);
const own = await oauth.generateKeyPair("ES256");
const another = await oauth.generateKeyPair("ES256");
const jwk = await crypto.subtle.exportKey("jwk", own.publicKey);

let documents: DocumentServer;
let world: World;
let server: oauth.AuthorizationServer;
let initialAccessToken: string;
/** The library's transport, because our host name and authority are known only here. */
type Transport = { [oauth.customFetch]: Fetch };
let transport: Transport;
/** Transports with a client certificate. */
let asBatch: Transport;
let asUnregistered: Transport;

before(async () => {
  documents = await startDocumentServer();
  const [mtlsPort = 0] = await freePorts(1);
  const tls = { key: { file: "tls/key.pem" }, cert: { file: "tls/cert.pem" } };
  const forUsers = {
    allow: "delegation",
    actors: [planner],
    subjects: { issuers: [IDP] },
    subjectToken: { audiences: [ISSUER] },
    consent: "record",
  };
  world = await makeWorld(
    {
      // The metadata name this listener for certificates; the other listener requests none.
      mtls: { host: "127.0.0.1", port: mtlsPort, tls, origin: `https://localhost:${mtlsPort}` },
      clients: {
        report: { method: "client_secret_basic", secrets: [SECRET] },
        poster: { method: "client_secret_post", secrets: [SECRET] },
        pasted: { method: "client_secret", secrets: [SECRET] },
      },
      registration: { mode: "open", open: { scopes }, tlsAuthorities: { file: "clients.pem" } },
      clientMetadataDocuments: {},
      clientOrigins: { [documents.origin]: { ca: { file: "documents.pem" }, privateNetworks: LOOPBACK } },
      targets: [
        { names: [API], introspectors: ["poster"], scopes },
        { kind: "partner", issuer: PARTNER, scopes, clients: { [planner]: "planner-there" } },
      ],
      policies: [
        {
          id: "cc",
          allow: "client_credentials",
          targets: [API],
          scopes,
          clients: ["report", "poster", "pasted", `${documents.origin}/*`],
          classes: ["open", "batch"],
        },
        { id: "planner", ...forUsers, targets: [API], scopes },
        { id: "planner-abroad", issues: "grant", ...forUsers, targets: [PARTNER], scopes },
      ],
      drafts: [SPIFFE_DRAFT, DOCUMENTS_DRAFT, ID_JAG_DRAFT, CHAINING_DRAFT],
    },
    { files: { "clients.pem": authority.certPem, "documents.pem": documents.ca } },
  );
  await world.consent("u-1", "agents/planner", API, scopes);
  await world.consent("u-1", "agents/planner", PARTNER, scopes);
  initialAccessToken = await createInitialToken(world, "batch", "--uses", "20");
  const places = { "as.example": { ca: world.ca, port: world.server.port }, localhost: { ca: world.ca } };
  transport = { [oauth.customFetch]: fetchAt(places) };
  [asBatch, asUnregistered] = [batch, unregistered].map(
    ({ keyPem: key, certPem: cert }): Transport => ({
      [oauth.customFetch]: fetchAt(places, { key, cert }),
    }),
  ) as [Transport, Transport];
  const response = await oauth.discoveryRequest(new URL(ISSUER), { algorithm: "oauth2", ...transport });
  server = await oauth.processDiscoveryResponse(new URL(ISSUER), response);
});

after(() => stop(world, documents));

async function obtain(
  client: oauth.Client,
  authentication: oauth.ClientAuth,
  by = transport,
): Promise<oauth.TokenEndpointResponse> {
  const parameters = { resource: API, scope: "trips.read" };
  const response = await oauth.clientCredentialsGrantRequest(server, client, authentication, parameters, by);
  return oauth.processClientCredentialsResponse(server, client, response);
}

function assertToken(answer: oauth.TokenEndpointResponse, clientId: string): void {
  assert.deepEqual([answer.token_type, answer.scope], ["bearer", "trips.read"]);
  assert.equal(claimsOf(answer.access_token).client_id, clientId);
}

async function assertRefused(asked: Promise<unknown>, code: string): Promise<void> {
  await assert.rejects(asked, (error) => {
    assert.ok(error instanceof oauth.ResponseBodyError);
    assert.equal(error.error, code);
    return true;
  });
}

// --- secrets ------------------------------------------------------------------------------------------------------

for (const [name, authentication] of [
  ["report", oauth.ClientSecretBasic(SECRET)],
  ["poster", oauth.ClientSecretPost(SECRET)],
  ["pasted", oauth.ClientSecretBasic(SECRET)],
  ["pasted", oauth.ClientSecretPost(SECRET)],
] as const) {
  const [, by] = /(Basic|_secret)/.exec(String(authentication)) ?? [];
  test(`RFC6749-5.1-1, RFC8414-3.3-1, PROD-9.2-1 client ${name} obtains a token with the library's own encoding of the secret by ${by}`, async () => {
    assertToken(await obtain({ client_id: name }, authentication), name);
  });
}

test("RFC6749-2.3.1-5 a client of one of the two strict methods is refused with its right secret by the other", async () => {
  await assertRefused(obtain({ client_id: "report" }, oauth.ClientSecretPost(SECRET)), "invalid_client");
  await assert.rejects(
    obtain({ client_id: "poster" }, oauth.ClientSecretBasic(SECRET)),
    oauth.WWWAuthenticateChallengeError,
  );
});

test("RFC6749-2.3-4 a client that may send its secret either way is refused with both at once", async () => {
  const both: oauth.ClientAuth = (...of) => {
    oauth.ClientSecretBasic(SECRET)(...of);
    oauth.ClientSecretPost(SECRET)(...of);
  };
  await assert.rejects(obtain({ client_id: "pasted" }, both), (error) => {
    assert.ok(
      error instanceof oauth.ResponseBodyError || error instanceof oauth.WWWAuthenticateChallengeError,
    );
    assert.equal(error instanceof oauth.ResponseBodyError && error.error, "invalid_request");
    return true;
  });
});

test("RFC6749-5.2-5, PROD-9.2-1 the library reports a wrong secret as invalid_client", async () => {
  await assert.rejects(
    obtain({ client_id: "report" }, oauth.ClientSecretBasic("wrong")),
    oauth.WWWAuthenticateChallengeError,
  );
  await assertRefused(obtain({ client_id: "poster" }, oauth.ClientSecretPost("wrong")), "invalid_client");
});

// --- exchange -----------------------------------------------------------------------------------------------------

async function exchange(parameters: Record<string, string>, options = {}) {
  const svid = await world.svid("agents/planner");
  const client = { client_id: planner };
  const bySvid: oauth.ClientAuth = (_as, _client, body) => {
    body.set("client_assertion_type", JWT_SPIFFE);
    body.set("client_assertion", svid);
  };
  const subject = await world.idp.mintUserToken({ sub: "u-1", aud: ISSUER, scope: "trips.read" });
  const form = {
    subject_token: subject,
    subject_token_type: JWT,
    actor_token: svid,
    actor_token_type: JWT,
    ...parameters,
  };
  const response = await oauth.genericTokenEndpointRequest(server, client, bySvid, EXCHANGE, form, transport);
  return oauth.processGenericTokenEndpointResponse(server, client, response, options);
}

test("RFC8693-2.2.1-3, RFC8693-2.2.1-4, PROD-9.2-5, PROD-2.5-1 a token from an exchange passes the library's RFC 9068 validation", async () => {
  const answer = await exchange({ audience: API });
  assert.equal(answer.issued_token_type, "urn:ietf:params:oauth:token-type:access_token");

  const request = new Request(`${API}/trips`, {
    headers: { authorization: `Bearer ${answer.access_token}` },
  });
  const claims = await oauth.validateJwtAccessToken(server, request, API, transport);
  assert.equal(claims.sub, "u-1");
  assert.deepEqual(claims.act, { sub: planner });
});

test("IDC-2.3.3-1, RFC8693-2.2.1-4 the library completes an exchange for a grant, and does not treat the grant as an access token", async () => {
  const asGrant = { audience: PARTNER, requested_token_type: JWT };
  const known = { recognizedTokenTypes: { n_a: () => {} } };
  const answer = await exchange(asGrant, known);
  assert.deepEqual([answer.token_type, answer.issued_token_type], ["n_a", JWT]);
  assert.equal(claimsOf(answer.access_token).aud, PARTNER);
  await assert.rejects(exchange(asGrant), oauth.UnsupportedOperationError);
});

// --- introspection and revocation ---------------------------------------------------------------------------------

async function introspect(token: string, authentication = oauth.ClientSecretPost(SECRET)) {
  const client = { client_id: "poster" };
  const response = await oauth.introspectionRequest(server, client, authentication, token, transport);
  return oauth.processIntrospectionResponse(server, client, response);
}

async function revoke(client: oauth.Client, authentication: oauth.ClientAuth, token: string, by = transport) {
  return oauth.processRevocationResponse(
    await oauth.revocationRequest(server, client, authentication, token, by),
  );
}

test("RFC7662-2.2-1, RFC7662-2.2-2, RFC7009-2.1-8, RFC7009-2.2-1, RFC8693-4.1-8 the library introspects a token, its client revokes it, and the library sees it inactive", async () => {
  const { access_token: token } = await exchange({ audience: API });
  const active = await introspect(token);
  const { sub, aud, client_id, token_type, exp, act } = active;
  assert.deepEqual([active.active, sub, aud, client_id], [true, "u-1", API, planner]);
  assert.deepEqual([token_type, exp, act], ["Bearer", claimsOf(token).exp, { sub: planner }]);

  const svid = await world.svid("agents/planner");
  const bySvid: oauth.ClientAuth = (_as, _client, body) => {
    body.set("client_assertion_type", JWT_SPIFFE);
    body.set("client_assertion", svid);
  };
  await revoke({ client_id: planner }, bySvid, token);
  assert.deepEqual(await introspect(token), { active: false });
  await revoke({ client_id: planner }, bySvid, token);
  await revoke({ client_id: planner }, bySvid, "unknown");
});

test("RFC7009-2.1-7, RFC7009-2.2.1-1, RFC7662-2.3-1 the library reports the token of another client, and a wrong secret at introspection", async () => {
  const report = oauth.ClientSecretBasic(SECRET);
  const { access_token: token } = await obtain({ client_id: "report" }, report);
  await assertRefused(
    revoke({ client_id: "poster" }, oauth.ClientSecretPost(SECRET), token),
    "invalid_grant",
  );
  await assert.rejects(
    introspect(token, oauth.ClientSecretPost("wrong")),
    oauth.WWWAuthenticateChallengeError,
  );
  assert.equal((await introspect(token)).active, true);
});

test("RFC8705-5-1, RFC8705-5-2, RFC7009-2.1-6 a client with a certificate revokes at the endpoint alias", async () => {
  const metadata = {
    token_endpoint_auth_method: "tls_client_auth",
    tls_client_auth_san_dns: "batch.example",
  };
  const registered = await register(metadata as Metadata);
  const client = { ...registered, use_mtls_endpoint_aliases: true };
  const { access_token: token } = await obtain(client, oauth.TlsClientAuth(), asBatch);
  await assertRefused(revoke(client, oauth.TlsClientAuth(), token), "invalid_client");
  assert.equal((await introspect(token)).active, true);
  await revoke(client, oauth.TlsClientAuth(), token, asBatch);
  assert.deepEqual(await introspect(token), { active: false });
});

// --- registration -------------------------------------------------------------------------------------------------

type Metadata = Partial<oauth.Client>;

/** Returns the client as the library parses it from the response. */
async function register(metadata: Metadata, options: object = {}): Promise<oauth.Client> {
  const named = { grant_types: ["client_credentials"], ...metadata };
  const response = await oauth.dynamicClientRegistrationRequest(server, named, {
    ...transport,
    ...options,
  });
  return oauth.processDynamicClientRegistrationResponse(response);
}

test("RFC7591-3.2-1, RFC7591-3.2.1-7, RFC7591-2-4, PROD-9.2-4 a client registers with an initial access token, and its secret is accepted", async () => {
  const client = await register({}, { initialAccessToken });
  const authentication = oauth.ClientSecretBasic(String(client.client_secret));
  assertToken(await obtain(client, authentication), client.client_id);
});

test("RFC7591-3.2-1, RFC7591-3.2.1-7 a client registers without credentials where registration is open, and its secret is accepted", async () => {
  const client = await register({ token_endpoint_auth_method: "client_secret_post" });
  const authentication = oauth.ClientSecretPost(String(client.client_secret));
  assertToken(await obtain(client, authentication), client.client_id);
});

test("RFC7591-3.2.2-1, RFC7591-3.2.2-5, PROD-9.2-4 the library reports a refused registration with its error code", async () => {
  await assert.rejects(
    register({}, { initialAccessToken: "iat_unknown" }),
    oauth.WWWAuthenticateChallengeError,
  );
  await assertRefused(register({ token_endpoint_auth_method: "none" }), "invalid_client_metadata");
});

const byKey = { token_endpoint_auth_method: "private_key_jwt" };
for (const [name, keys] of [
  ["in jwks", () => ({ jwks: { keys: [{ ...jwk, kid: "k1" }] } })],
  ["at jwks_uri", () => ({ jwks_uri: `${documents.origin}/keys` })],
] as const) {
  test(`RFC7523-2.2-1, RFC7591-2-16, RFC7591-2-18, PROD-9.2-2, PROD-9.2-3 a client registers with a key ${name}, and authenticates with it`, async () => {
    documents.documents.set("/keys", { keys: [{ ...jwk, kid: "k1" }] });
    const client = await register({ ...byKey, ...keys() } as Metadata);
    assert.equal(client.client_secret, undefined);
    const prove = (key: CryptoKey) => oauth.PrivateKeyJwt({ key, kid: "k1" });
    assertToken(await obtain(client, prove(own.privateKey)), client.client_id);
    await assertRefused(obtain(client, prove(another.privateKey)), "invalid_client");
  });
}

const { publicKey, raw } = new X509Certificate(batch.certPem);
const pinned = { ...publicKey.export({ format: "jwk" }), x5c: [raw.toString("base64")] };
for (const [name, method, metadata] of [
  ["RFC8705-2.1-1, RFC8705-2.1.2-1", "tls_client_auth", { tls_client_auth_san_dns: "batch.example" }],
  ["RFC8705-2.2-1, RFC8705-2.2-2", "self_signed_tls_client_auth", { jwks: { keys: [pinned] } }],
] as const) {
  test(`${name}, RFC8705-5-1 a client registers for ${method}, and authenticates at the endpoint alias`, async () => {
    const registered = await register({ token_endpoint_auth_method: method, ...metadata } as Metadata);
    const client = { ...registered, use_mtls_endpoint_aliases: true };
    const prove = oauth.TlsClientAuth();
    assertToken(await obtain(client, prove, asBatch), client.client_id);
    await assertRefused(obtain(client, prove, asUnregistered), "invalid_client");
    await assertRefused(obtain(client, prove), "invalid_client");
    // The other listener requests no certificate.
    await assertRefused(obtain(registered, prove, asBatch), "invalid_client");
  });
}

test("CIMD-5-1, CIMD-8.2-3, MCP-R.1-8, PROD-9.2-8 a client without registration is identified by its metadata document, and authenticates with its key", async () => {
  const client_id = `${documents.origin}/client.json`;
  const metadata = { client_id, ...byKey, jwks: { keys: [jwk] }, grant_types: ["client_credentials"] };
  documents.documents.set("/client.json", metadata);
  assert.equal(server.client_id_metadata_document_supported, true);
  assertToken(await obtain({ client_id }, oauth.PrivateKeyJwt(own.privateKey)), client_id);
  await assertRefused(obtain({ client_id }, oauth.PrivateKeyJwt(another.privateKey)), "invalid_client");
});

/**
 * A client library that we did not write obtains tokens that are bound to a key or a certificate, and uses them at a
 * resource server that verifies them by other code than ours. A thief uses none of them anywhere.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as oauth from "oauth4webapi";
import * as openid from "openid-client";
import { issueClientCertificate, makeAuthority, x509 } from "../../scripts/dev-pki.ts";
import { freePorts } from "../../scripts/server-process.ts";
import { type ResourceServer, startResourceServer } from "../support/resource-server.ts";
import { stop } from "../support/stop.ts";
import { type Fetch, fetchAt } from "../support/web.ts";
import {
  ACCESS_TOKEN,
  claimsOf,
  EXCHANGE,
  ISSUER,
  JWT,
  makeWorld,
  type World,
  workload,
} from "../support/world.ts";

const SECRET = "a secret: with %, + and ü, and more than 32 characters";
const OWN = `${ISSUER}/api`;
const scopes = ["trips.read"];
const planner = workload("agents/planner");

const authority = await makeAuthority("Clients' authority");
const batch = await issueClientCertificate(authority, ["batch.example"]);
const thiefs = await issueClientCertificate(authority, ["thief.example"]);
const keys = await oauth.generateKeyPair("ES256");
const otherKeys = await oauth.generateKeyPair("ES256");

type Transport = { [oauth.customFetch]: Fetch };
let api: ResourceServer;
let world: World;
let server: oauth.AuthorizationServer;
let transport: Transport;
let asBatch: Transport;
let asThief: Transport;

before(async () => {
  api = await startResourceServer();
  const [mtlsPort = 0] = await freePorts(1);
  const tls = { key: { file: "tls/key.pem" }, cert: { file: "tls/cert.pem" } };
  world = await makeWorld(
    {
      mtls: { host: "127.0.0.1", port: mtlsPort, tls, origin: `https://localhost:${mtlsPort}` },
      clients: {
        report: { method: "client_secret_basic", secrets: [SECRET], dpop_bound_access_tokens: true },
        batch: {
          method: "tls_client_auth",
          tls_client_auth_san_dns: "batch.example",
          ca: { file: "clients.pem" },
          tls_client_certificate_bound_access_tokens: true,
        },
      },
      targets: [{ names: [api.origin], scopes, owners: [planner] }],
      policies: [
        {
          id: "own",
          allow: "client_credentials",
          clients: ["report", "batch"],
          targets: [api.origin],
          scopes,
        },
        {
          id: "operators",
          allow: "client_credentials",
          clients: ["report", "batch"],
          targets: [OWN],
          scopes: ["policy:explain"],
        },
        {
          id: "onward",
          allow: "delegation",
          actors: [planner],
          subjects: { issuers: [ISSUER] },
          subjectToken: { audiences: ["self"] },
          consent: "implied",
          acknowledge: "subjects-not-asked",
          targets: [api.origin],
          scopes,
        },
      ],
      limits: { failuresPerMinuteBySource: 1_000, failuresPerMinuteByClient: 1_000 },
    },
    { files: { "clients.pem": authority.certPem } },
  );
  const places = {
    "as.example": { ca: world.ca, port: world.server.port },
    localhost: { ca: world.ca + api.ca },
  };
  const by = (certificate: object): Transport => ({ [oauth.customFetch]: fetchAt(places, certificate) });
  transport = by({});
  asBatch = by({ key: batch.keyPem, cert: batch.certPem });
  asThief = by({ key: thiefs.keyPem, cert: thiefs.certPem });
  const response = await oauth.discoveryRequest(new URL(ISSUER), { algorithm: "oauth2", ...transport });
  server = await oauth.processDiscoveryResponse(new URL(ISSUER), response);
  api.trust(server, transport);
});

after(() => stop(world, api));

// --- obtaining and using ------------------------------------------------------------------------------------------

const report: oauth.Client = { client_id: "report" };
const machine: oauth.Client = { client_id: "batch", use_mtls_endpoint_aliases: true };

async function obtain(
  client: oauth.Client,
  by: Transport,
  {
    DPoP,
    resource = api.origin,
    scope = "trips.read",
  }: Partial<Record<"resource" | "scope", string>> & {
    DPoP?: oauth.DPoPHandle;
  } = {},
): Promise<oauth.TokenEndpointResponse> {
  const authentication = client === report ? oauth.ClientSecretBasic(SECRET) : oauth.TlsClientAuth();
  const options = { ...by, ...(DPoP && { DPoP }) };
  const parameters = { resource, scope };
  const response = await oauth.clientCredentialsGrantRequest(
    server,
    client,
    authentication,
    parameters,
    options,
  );
  return oauth.processClientCredentialsResponse(server, client, response);
}

/** At the resource server. */
const use = (token: string, by: Transport, DPoP?: oauth.DPoPHandle): Promise<Response> =>
  oauth.protectedResourceRequest(token, "GET", new URL(`${api.origin}/trips?of=alice`), undefined, null, {
    ...by,
    ...(DPoP && { DPoP }),
  });

/** At our own endpoint. */
const ask = (token: string, by: Transport, base: string, DPoP?: oauth.DPoPHandle): Promise<Response> =>
  oauth.protectedResourceRequest(
    token,
    "POST",
    new URL(`${base}/policy/explain`),
    new Headers({ "content-type": "application/json" }),
    JSON.stringify({ client: "report", target: api.origin }),
    { ...by, ...(DPoP && { DPoP }) },
  );

/** As the library advises: once more with the nonce that the challenge brought. */
async function retried(send: () => Promise<Response>): Promise<Response> {
  try {
    return await send();
  } catch (error) {
    assert.ok(oauth.isDPoPNonceError(error), String(error));
    return send();
  }
}

const REFUSED = oauth.WWWAuthenticateChallengeError;

/** By the workload that the token is meant for, which has no proof of its key. */
async function assertNotExchanged(subject: string): Promise<void> {
  const svid = await world.svid("agents/planner");
  const form = {
    subject_token: subject,
    subject_token_type: ACCESS_TOKEN,
    actor_token: svid,
    actor_token_type: JWT,
    audience: api.origin,
  };
  const bySvid: oauth.ClientAuth = (_server, _client, body) => {
    for (const [name, value] of Object.entries(world.as(svid))) body.set(name, String(value));
  };
  const client = { client_id: planner };
  const answer = await oauth.genericTokenEndpointRequest(server, client, bySvid, EXCHANGE, form, transport);
  const { error } = (await answer.json()) as { error?: string };
  assert.deepEqual([answer.status, error], [400, "invalid_request"]);
  assert.equal((await world.events()).at(-1)?.reason, "subject_key_not_proven");
}

// --- DPoP ---------------------------------------------------------------------------------------------------------

test("RFC9449-5-4, RFC9449-6.1-1, RFC9449-6-2, PROD-9.2-6 the library obtains a DPoP-bound token and uses it, and jkt is the thumbprint that the library computes", async () => {
  const DPoP = oauth.DPoP(report, keys);
  const answer = await obtain(report, transport, { DPoP });
  assert.equal(answer.token_type, "dpop");
  const { cnf } = claimsOf(answer.access_token);
  assert.deepEqual(cnf, { jkt: await DPoP.calculateThumbprint() });
  assert.equal((await use(answer.access_token, transport, DPoP)).status, 200);
});

test("RFC9449-5.2-1 the library reports the token request without a proof of a client that demands one", async () => {
  await assert.rejects(obtain(report, transport), (error) => {
    assert.ok(error instanceof oauth.ResponseBodyError);
    assert.equal(error.error, "invalid_request");
    return true;
  });
});

test("RFC9449-8-1 the library is challenged with a nonce at our own endpoint, and repeats the request with it", async () => {
  const DPoP = oauth.DPoP(report, keys);
  const { access_token } = await obtain(report, transport, { DPoP, resource: OWN, scope: "policy:explain" });
  const response = await retried(() => ask(access_token, transport, ISSUER, DPoP));
  assert.equal(response.status, 200);
});

test("RFC9449-7.2-1, RFC9700-4.10.1-1 a stolen DPoP-bound token is of no use at the resource server, at our endpoints, or in an exchange", async () => {
  const DPoP = oauth.DPoP(report, keys);
  const thief = oauth.DPoP({}, otherKeys);
  const { access_token } = await obtain(report, transport, { DPoP });
  await assert.rejects(use(access_token, transport), REFUSED);
  await assert.rejects(use(access_token, transport, thief), REFUSED);
  await assertNotExchanged(access_token);
  const own = await obtain(report, transport, { DPoP, resource: OWN, scope: "policy:explain" });
  await assert.rejects(ask(own.access_token, transport, ISSUER), REFUSED);
  await assert.rejects(
    retried(() => ask(own.access_token, transport, ISSUER, thief)),
    REFUSED,
  );
});

// --- certificates -------------------------------------------------------------------------------------------------

test("RFC8705-3.1-2, RFC8705-3-2, PROD-9.2-6 the library obtains a certificate-bound token and uses it, and x5t#S256 is what another library computes", async () => {
  const answer = await obtain(machine, asBatch);
  assert.equal(answer.token_type, "bearer");
  const thumbprint = await new x509.X509Certificate(batch.certPem).getThumbprint("SHA-256");
  const { cnf } = claimsOf(answer.access_token);
  assert.deepEqual(cnf, { "x5t#S256": Buffer.from(thumbprint).toString("base64url") });
  assert.equal((await use(answer.access_token, asBatch)).status, 200);
});

test("RFC8705-3-4, RFC9700-4.10.1-1 a stolen certificate-bound token is of no use at the resource server, at our endpoints, or in an exchange", async () => {
  const { access_token } = await obtain(machine, asBatch);
  for (const by of [asThief, transport]) await assert.rejects(use(access_token, by), REFUSED);
  await assertNotExchanged(access_token);
  const own = await obtain(machine, asBatch, { resource: OWN, scope: "policy:explain" });
  const mtls = new URL(String(server.mtls_endpoint_aliases?.token_endpoint)).origin;
  assert.equal((await ask(own.access_token, asBatch, mtls)).status, 200);
  for (const by of [asThief, transport]) await assert.rejects(ask(own.access_token, by, mtls), REFUSED);
});

// --- openid-client, which discovers and retries by itself ---------------------------------------------------------

const discovered = (id: string, by: openid.ClientAuth, fetch: Transport, more = {}) =>
  openid.discovery(new URL(ISSUER), id, more, by, {
    algorithm: "oauth2",
    [openid.customFetch]: fetch[oauth.customFetch] as openid.CustomFetch,
  });

test("RFC9449-5-4, RFC9449-8-1, PROD-9.2-6 openid-client obtains a DPoP-bound token and uses it, at our own endpoint after a nonce", async () => {
  const config = await discovered("report", openid.ClientSecretBasic(SECRET), transport);
  const DPoP = openid.getDPoPHandle(config, keys);
  const { access_token, token_type } = await openid.clientCredentialsGrant(
    config,
    { resource: api.origin, scope: "trips.read" },
    { DPoP },
  );
  assert.equal(token_type, "dpop");
  const used = new URL(`${api.origin}/trips?of=alice`);
  const fetched = (url: URL, token: string, method = "GET", body?: string) => {
    const headers = new Headers(body === undefined ? {} : { "content-type": "application/json" });
    return openid.fetchProtectedResource(config, token, url, method, body, headers, { DPoP });
  };
  assert.equal((await fetched(used, access_token)).status, 200);
  const operators = { resource: OWN, scope: "policy:explain" };
  const own = await openid.clientCredentialsGrant(config, operators, { DPoP });
  const question = JSON.stringify({ client: "report", target: api.origin });
  const explain = new URL(`${ISSUER}/policy/explain`);
  assert.equal((await fetched(explain, own.access_token, "POST", question)).status, 200);
});

test("RFC8705-3.1-2, PROD-9.2-6 openid-client obtains a certificate-bound token at the alias and uses it", async () => {
  const metadata = { use_mtls_endpoint_aliases: true };
  const config = await discovered("batch", openid.TlsClientAuth(), asBatch, metadata);
  const asked = { resource: api.origin, scope: "trips.read" };
  const { access_token, token_type } = await openid.clientCredentialsGrant(config, asked);
  assert.equal(token_type, "bearer");
  const used = new URL(`${api.origin}/trips?of=alice`);
  assert.equal((await openid.fetchProtectedResource(config, access_token, used, "GET")).status, 200);
});

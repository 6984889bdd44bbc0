/** A client library that we did not write discovers the server and obtains tokens by secret and by exchange. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as oauth from "oauth4webapi";
import { send } from "../../scripts/http-client.ts";
import type { World } from "../support/world.ts";
import { EXCHANGE, IDP, ISSUER, JWT, JWT_SPIFFE, makeWorld, workload } from "../support/world.ts";

const API = "https://api.example";
const SECRET = "a secret: with %, + and ü";
const planner = workload("agents/planner");

let world: World;
let server: oauth.AuthorizationServer;
/** The library's transport: our host's name and authority exist only here. */
let transport: { [oauth.customFetch]: (url: string, init: Init) => Promise<Response> };
type Init = { method: string; headers: Record<string, string>; body?: unknown };

before(async () => {
  world = await makeWorld({
    clients: {
      report: { method: "client_secret_basic", secrets: [SECRET] },
      poster: { method: "client_secret_post", secrets: [SECRET] },
    },
    targets: [{ names: [API], scopes: ["trips.read"] }],
    policies: [
      {
        id: "cc",
        allow: "client_credentials",
        clients: ["report", "poster"],
        targets: [API],
        scopes: ["trips.read"],
      },
      {
        id: "planner",
        allow: "delegation",
        actors: [planner],
        subjects: { issuers: [IDP] },
        subjectToken: { audiences: [ISSUER] },
        consent: "record",
        targets: [API],
        scopes: ["trips.read"],
      },
    ],
  });
  await world.consent("u-1", "agents/planner", API, ["trips.read"]);
  transport = {
    [oauth.customFetch]: async (url, { method, headers, body }) => {
      const answer = await send(url, {
        method,
        headers,
        ca: world.ca,
        connect: { host: "127.0.0.1", port: world.server.port },
        ...(body !== undefined && { body: String(body) }),
      });
      return new Response(answer.text, { status: answer.status, headers: answer.headers });
    },
  };
  const response = await oauth.discoveryRequest(new URL(ISSUER), { algorithm: "oauth2", ...transport });
  server = await oauth.processDiscoveryResponse(new URL(ISSUER), response);
});

after(() => world.stop());

for (const [name, authentication] of [
  ["report", oauth.ClientSecretBasic(SECRET)],
  ["poster", oauth.ClientSecretPost(SECRET)],
] as const) {
  test(`RFC6749-5.1-1, RFC8414-3.3-1 ${name}: client credentials by its own way of sending the secret`, async () => {
    const client = { client_id: name };
    const response = await oauth.clientCredentialsGrantRequest(
      server,
      client,
      authentication,
      { resource: API, scope: "trips.read" },
      transport,
    );
    const answer = await oauth.processClientCredentialsResponse(server, client, response);
    assert.equal(answer.token_type, "bearer");
    assert.equal(answer.scope, "trips.read");
  });
}

test("RFC8693-2.2.1-3, RFC8693-2.2.1-4 token exchange, and the token passes the library's RFC 9068 validation", async () => {
  const svid = await world.svid("agents/planner");
  const client = { client_id: planner };
  const bySvid: oauth.ClientAuth = (_as, _client, body) => {
    body.set("client_assertion_type", JWT_SPIFFE);
    body.set("client_assertion", svid);
  };
  const subject = await world.idp.mintUserToken({ sub: "u-1", aud: ISSUER, scope: "trips.read" });
  const parameters = {
    subject_token: subject,
    subject_token_type: JWT,
    actor_token: svid,
    actor_token_type: JWT,
    audience: API,
  };
  const response = await oauth.genericTokenEndpointRequest(
    server,
    client,
    bySvid,
    EXCHANGE,
    parameters,
    transport,
  );
  const answer = await oauth.processGenericTokenEndpointResponse(server, client, response);
  assert.equal(answer.issued_token_type, "urn:ietf:params:oauth:token-type:access_token");

  const request = new Request(`${API}/trips`, {
    headers: { authorization: `Bearer ${answer.access_token}` },
  });
  const claims = await oauth.validateJwtAccessToken(server, request, API, transport);
  assert.equal(claims.sub, "u-1");
  assert.deepEqual(claims.act, { sub: planner });
});

test("RFC6749-5.2-5 a wrong secret reaches the library's caller as what it is", async () => {
  const client = { client_id: "report" };
  const wrong = oauth.ClientSecretBasic("wrong");
  const response = await oauth.clientCredentialsGrantRequest(server, client, wrong, {}, transport);
  await assert.rejects(oauth.processClientCredentialsResponse(server, client, response), (error: Error) => {
    assert.ok(
      error instanceof oauth.WWWAuthenticateChallengeError || error instanceof oauth.ResponseBodyError,
    );
    return true;
  });
});

/** What `error_description` tells of the form of a request over TLS, endpoint by endpoint, and what it does not tell. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { registerClient } from "@modelcontextprotocol/client";
import { registerClient as registerClientV1 } from "@modelcontextprotocol/sdk/client/auth.js";
import { encodeForm } from "../../scripts/http-client.ts";
import { forAskingAgents } from "../support/asking-agents.ts";
import { AS_WEB, files, NOTES, PRIVATE, request, verifierOf, WEB_REDIRECT } from "../support/people.ts";
import { startProvider, type TestProvider } from "../support/provider.ts";
import { stop } from "../support/stop.ts";
import { fetchAt } from "../support/web.ts";
import { ACCESS_TOKEN, EXCHANGE, ISSUER, JWT, makeWorld, type World } from "../support/world.ts";

const ID_JAG = "urn:ietf:params:oauth:token-type:id-jag";

let provider: TestProvider;
let world: World;

before(async () => {
  provider = await startProvider();
  const limits = { pagesPerMinuteBySource: 100_000, failuresPerMinuteBySource: 100_000 };
  world = await makeWorld(
    { ...forAskingAgents(provider), registration: { mode: "initial-access-token" }, limits },
    { files: files(provider) },
  );
});
after(() => stop(world, provider));

/** A body as it stands, or members; `own` is replaced by the credentials of a client that exists. */
type Sent = string | Record<string, string | readonly string[]>;
type Case = readonly [what: string, sent: Sent, error: string, description: string, headers?: object];

const CC = { grant_type: "client_credentials" };
const EX = { grant_type: EXCHANGE, subject_token: "t", subject_token_type: JWT };
const MALFORMED = "the request is malformed: ";
const NO_CLIENT = "client authentication failed: ";
const NO_TARGET = "the target (resource, audience) is not available";
const ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/** Before any client is looked for: no credentials are sent, or none that are any client's. */
const unauthenticated: readonly Case[] = [
  ["without a grant type", { scope: "a" }, "invalid_request", `${MALFORMED}the request has no grant_type`],
  [
    "with a parameter twice",
    "grant_type=a&scope=x&scope=y",
    "invalid_request",
    `${MALFORMED}a parameter is repeated (scope)`,
  ],
  [
    "with an unknown parameter twice",
    "grant_type=a&tok%65n_=x&tok%65n_=y",
    "invalid_request",
    `${MALFORMED}a parameter is repeated`,
  ],
  [
    "with a control character",
    "grant_type=a&audience=%00",
    "invalid_request",
    `${MALFORMED}a parameter has characters that are not allowed in it (audience)`,
  ],
  [
    "with a wrong encoding",
    "grant_type=%zz",
    "invalid_request",
    `${MALFORMED}the form is not correctly encoded`,
  ],
  [
    "as JSON",
    "{}",
    "invalid_request",
    `${MALFORMED}the body of the request is not application/x-www-form-urlencoded`,
    { "content-type": "application/json" },
  ],
  [
    "with a secret beside Basic",
    { ...CC, client_secret: "s" },
    "invalid_request",
    `${MALFORMED}the request has a client_secret beside an Authorization header`,
    { authorization: "Basic YTpi" },
  ],
  [
    "with two names of a client",
    { ...CC, client_id: "b" },
    "invalid_request",
    `${MALFORMED}client_id is missing or names another client`,
    { authorization: "Basic YTpi" },
  ],
  [
    "with a secret alone",
    { ...CC, client_secret: "s" },
    "invalid_client",
    `${NO_CLIENT}the request has a client_secret and no client_id`,
  ],
  [
    "with a malformed header",
    CC,
    "invalid_client",
    `${NO_CLIENT}the Authorization header is malformed`,
    { authorization: "Basic !" },
  ],
  [
    "with an assertion without its type",
    { ...CC, client_assertion: "a" },
    "invalid_client",
    `${NO_CLIENT}the request has a client_assertion without client_assertion_type`,
  ],
  [
    "with a type alone",
    { ...CC, client_assertion_type: ASSERTION_TYPE },
    "invalid_client",
    `${NO_CLIENT}the request has no assertion`,
  ],
  [
    "with an unknown type",
    { ...CC, client_assertion_type: "x", client_assertion: "a" },
    "invalid_client",
    `${NO_CLIENT}the client_assertion_type is not supported`,
  ],
  [
    "with an assertion and a secret",
    {
      ...CC,
      client_assertion_type: ASSERTION_TYPE,
      client_assertion: "a",
      client_id: "c",
      client_secret: "s",
    },
    "invalid_client",
    `${NO_CLIENT}the request has a client_assertion beside other credentials`,
  ],
  // Which of the two it is would say whether there is such a client.
  [
    "of a client that is not there",
    { ...CC, client_id: "not-there", client_secret: "s" },
    "invalid_client",
    "client authentication failed",
  ],
  [
    "with a wrong secret",
    { ...CC, client_id: PRIVATE, client_secret: "s" },
    "invalid_client",
    "client authentication failed",
  ],
];

for (const [what, sent, error, description, headers = {}] of unauthenticated) {
  test(`PROD-7.4-3 a token request ${what} is refused, and is told what its form alone shows`, async () => {
    const answer = await world.token(sent, headers as Record<string, string>);
    assert.deepEqual([answer.body.error, answer.body.error_description], [error, description]);
  });
}

/** Of an agent that proved itself. */
const authenticated: readonly Case[] = [
  [
    "without a subject token",
    { grant_type: EXCHANGE },
    "invalid_request",
    `${MALFORMED}the exchange has no subject_token`,
  ],
  [
    "without the type of its subject token",
    { grant_type: EXCHANGE, subject_token: "t" },
    "invalid_request",
    `${MALFORMED}the exchange has no subject_token_type`,
  ],
  [
    "with another type of its subject token",
    { ...EX, subject_token_type: "x" },
    "invalid_request",
    `${MALFORMED}the subject_token_type is not supported`,
  ],
  [
    "with an actor token without its type",
    { ...EX, actor_token: "t" },
    "invalid_request",
    `${MALFORMED}the exchange has an actor_token without actor_token_type`,
  ],
  [
    "with a type of no actor token",
    { ...EX, actor_token_type: JWT },
    "invalid_request",
    `${MALFORMED}the exchange has an actor_token_type without actor_token`,
  ],
  [
    "with another type of its actor token",
    { ...EX, actor_token: "t", actor_token_type: "x" },
    "invalid_request",
    `${MALFORMED}the actor_token_type is not supported`,
  ],
  [
    "for another type of token",
    { ...EX, requested_token_type: "x" },
    "invalid_request",
    `${MALFORMED}the requested_token_type is not supported`,
  ],
  [
    "for an ID-JAG without audience",
    { ...EX, requested_token_type: ID_JAG },
    "invalid_request",
    `${MALFORMED}a request for an ID-JAG has no audience`,
  ],
  [
    "with a relative resource",
    { ...CC, resource: "/a" },
    "invalid_target",
    `${NO_TARGET}: a resource is not an absolute URI, or has a fragment or a user name`,
  ],
  [
    "with a long audience",
    { ...CC, audience: "a".repeat(5000) },
    "invalid_target",
    `${NO_TARGET}: a resource or audience is too long`,
  ],
  [
    "with two targets",
    { ...CC, audience: ["booking-agent", "https://api.example"] },
    "invalid_target",
    `${NO_TARGET}: the request names more than one target by resource and audience`,
  ],
  [
    "with a malformed scope",
    { ...CC, audience: "booking-agent", scope: 'a"' },
    "invalid_scope",
    "the scope is not available: the scope is malformed",
  ],
  [
    "with authorization details",
    { ...CC, authorization_details: "[]" },
    "invalid_authorization_details",
    "the authorization_details are not available",
  ],
  [
    "with another grant type",
    { grant_type: "password" },
    "unsupported_grant_type",
    "the grant_type is not supported",
  ],
  // Whether a target is there, a rule names it, or a token is good, is not told.
  [
    "for a target that is not there",
    { ...EX, actor_token: "t", actor_token_type: JWT, audience: "not-there" },
    "invalid_request",
    "the request is not allowed",
  ],
  [
    "with a subject token that is none",
    { ...EX, subject_token_type: ACCESS_TOKEN },
    "invalid_request",
    "the request is not allowed",
  ],
];

for (const [what, sent, error, description] of authenticated) {
  test(`PROD-7.4-3 a token request of an agent ${what} is refused, and is told what its parameters alone show`, async () => {
    const form = { ...world.as(await world.svid("agents/planner")), ...(sent as object) };
    const answer = await world.token(form);
    assert.deepEqual([answer.body.error, answer.body.error_description], [error, description]);
  });
}

const asked = (extra: object): string => encodeForm({ ...request(verifierOf()), ...extra });
const FORM = { "content-type": "application/x-www-form-urlencoded" };

const elsewhere: readonly (readonly [string, string, Sent, string, string])[] = [
  ["introspection", "/introspect", {}, "invalid_request", `${MALFORMED}the request has no token`],
  [
    "introspection",
    "/introspect",
    "token=a&token=b",
    "invalid_request",
    `${MALFORMED}a parameter is repeated (token)`,
  ],
  ["revocation", "/revoke", {}, "invalid_request", `${MALFORMED}the request has no token`],
  [
    "revocation",
    "/revoke?token=a",
    {},
    "invalid_request",
    `${MALFORMED}the URL of the request has parameters that belong into the body (token)`,
  ],
  [
    "pushed request",
    "/par",
    asked({ response_type: "token" }),
    "unsupported_response_type",
    "response_type has to be code",
  ],
  ["pushed request", "/par", asked({ code_challenge: "" }), "invalid_request", "code_challenge is missing"],
  [
    "pushed request",
    "/par",
    asked({ request_uri: "urn:x" }),
    "invalid_request",
    `${MALFORMED}a pushed request has a request_uri`,
  ],
  ["pushed request", "/par", asked({ resource: "/a" }), "invalid_target", "resource is not an absolute URI"],
  [
    "pushed request",
    "/par",
    `${asked({})}&state=b`,
    "invalid_request",
    `${MALFORMED}a parameter is repeated (state)`,
  ],
  [
    "code",
    "/token",
    { grant_type: "authorization_code" },
    "invalid_request",
    `${MALFORMED}the request has no code`,
  ],
  [
    "refresh token",
    "/token",
    { grant_type: "refresh_token" },
    "invalid_request",
    `${MALFORMED}the request has no refresh_token`,
  ],
  [
    "code",
    "/token",
    {
      grant_type: "authorization_code",
      code: "c",
      code_verifier: "v",
      redirect_uri: WEB_REDIRECT,
      resource: NOTES,
    },
    "invalid_grant",
    "the grant is not accepted",
  ],
];

for (const [what, path, sent, error, description] of elsewhere) {
  test(`PROD-7.4-3 ${path} refuses a ${what}: ${description}`, async () => {
    const body = typeof sent === "string" ? sent : encodeForm(sent);
    const answer = await world.get(path, { method: "POST", headers: { ...FORM, ...AS_WEB }, body });
    assert.deepEqual([answer.body.error, answer.body.error_description], [error, description]);
  });
}

const NO_TOKEN =
  "the request has no initial access token (Authorization: Bearer), which the operator of this server gives";

test("HTTP-D-64, RFC6750-3-1 a registration without an initial access token is refused: 401 with a challenge, and with an error in the body", async () => {
  for (const authorization of [{}, { authorization: "Basic YTpi" }]) {
    const headers = { "content-type": "application/json", ...authorization };
    const answer = await world.get("/register", { method: "POST", headers, body: "{}" });
    assert.equal(answer.status, 401);
    assert.deepEqual(answer.body, { error: "invalid_token", error_description: NO_TOKEN });
    assert.match(answer.headers["www-authenticate"] ?? "", /^Bearer realm="as\.example", resource_metadata=/);
    assert.doesNotMatch(answer.headers["www-authenticate"] ?? "", /error/);
  }
});

test("HTTP-D-64 both MCP SDKs tell why they cannot register: the registration is refused", async () => {
  const fetchFn = fetchAt({ "as.example": { ca: world.ca, port: world.server.port } });
  const { body } = await world.get("/.well-known/oauth-authorization-server");
  const metadata = body as never;
  const clientMetadata = { redirect_uris: ["https://app.example/cb"], client_name: "Desk" };
  for (const register of [registerClient, registerClientV1]) {
    await assert.rejects(register(ISSUER, { metadata, clientMetadata, fetchFn }), (fault: Error) =>
      fault.message.includes(NO_TOKEN),
    );
  }
});

test("PROD-7.4-3 the name of an unknown parameter is not told, since it may be a secret in the wrong place", async () => {
  const form = `grant_type=${CC.grant_type}&hunter2=a&hunter2=b`;
  const answer = await world.token(form, AS_WEB);
  assert.equal(answer.body.error, "invalid_request");
  assert.doesNotMatch(answer.text, /hunter2/);
});

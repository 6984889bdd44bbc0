/**
 * The product document's rules for any token request, beside its nine variants: each parameter, each claim of an
 * assertion, the response and its token. Over TLS; a complete request comes before those that are derived from it.
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { createLocalJWKSet, exportJWK, generateKeyPair, jwtVerify, SignJWT } from "jose";
import type { Answer } from "../../scripts/http-client.ts";
import { DRAFT as ID_JAG_DRAFT } from "../../src/spec/id-jag.ts";
import { DRAFT as CHAINING_DRAFT } from "../../src/spec/identity-chaining.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { type DatabaseProxy, openDatabaseProxy } from "../support/database-proxy.ts";
import { freshDatabase, type SharedPostgres, sharePostgres } from "../support/postgres.ts";
import { stop } from "../support/stop.ts";
import { until } from "../support/until.ts";
import {
  ACCESS_TOKEN,
  claimsOf,
  type Event,
  EXCHANGE,
  type Form,
  IDP,
  ISSUER,
  JWT,
  JWT_SPIFFE,
  makeWorld,
  type World,
  workload,
} from "../support/world.ts";

const API = "https://api.example";
const SECRET = "nightly-nightly-nightly-nightly-1";
const JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const REDEMPTION = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const SCOPE = "trips.read";
const planner = workload("agents/planner");
const booking = workload("agents/booking");

const [own, others] = await Promise.all([makeKey(), makeKey()]);

async function makeKey() {
  const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
  return { jwk: { ...(await exportJWK(publicKey)), kid: "r1" }, privateKey };
}

const implied = { consent: "implied", acknowledge: "subjects-not-asked", targets: [API], scopes: [SCOPE] };
const exchange = {
  actors: [planner, booking],
  subjects: { issuers: [IDP, ISSUER] },
  subjectToken: { audiences: [ISSUER, API] },
  ...implied,
};

const CONFIGURATION = {
  clients: {
    nightly: { method: "client_secret_post", secrets: [SECRET], defaultTarget: API },
    report: { method: "private_key_jwt", jwks: { keys: [own.jwk] }, defaultTarget: API },
    other: { method: "private_key_jwt", jwks: { keys: [others.jwk] }, defaultTarget: API },
  },
  // Both agents own this target, so that either may exchange a token that the other obtained.
  targets: [{ names: [API, "api"], owners: [workload("agents/*")], scopes: [SCOPE] }],
  policies: [
    {
      id: "machines",
      allow: "client_credentials",
      clients: ["nightly", "report", "other"],
      targets: [API],
      scopes: [SCOPE],
    },
    { id: "planner-reads", allow: "client_credentials", actors: [planner], targets: [API], scopes: [SCOPE] },
    { id: "agents", allow: "delegation", ...exchange },
    { id: "agents-unseen", allow: "impersonation", ...exchange },
    {
      id: "guests",
      allow: "redemption",
      clients: ["nightly"],
      subjects: { issuers: [IDP] },
      ...implied,
    },
  ],
  limits: { failuresPerMinuteBySource: 100_000, failuresPerMinuteByClient: 100_000 },
  drafts: [SPIFFE_DRAFT, CHAINING_DRAFT, ID_JAG_DRAFT],
};

let database: SharedPostgres;
let proxy: DatabaseProxy;
let world: World;

before(async () => {
  database = await sharePostgres();
  proxy = await openDatabaseProxy(await freshDatabase(database));
  world = await makeWorld(CONFIGURATION, { idp: { grants: {} }, postgres: proxy.url });
});

after(() => stop(world, proxy, database));

const seconds = (): number => Math.floor(Date.now() / 1000);

/** Changed parameters of a form; `undefined` removes a parameter. */
type Change = Record<string, string | readonly string[] | undefined>;

const formOf = (parameters: Change): Form =>
  Object.fromEntries(
    Object.entries(parameters).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );

function assertGranted(answer: Answer): Record<string, unknown> {
  assert.equal(answer.status, 200, answer.text);
  return claimsOf(answer.body.access_token);
}

function assertRefused(answer: Answer, error: string): void {
  assert.deepEqual([answer.status, answer.body.error], [400, error], answer.text);
  assert.equal(answer.body.access_token, undefined);
}

const eventOf = async (answer: Answer): Promise<Event | undefined> => {
  const { jti } = claimsOf(answer.body.access_token);
  return (await world.events()).find(({ granted }) => granted?.jti === jti);
};

// --- complete requests ------------------------------------------------------------------------------------------

const userToken = (input = {}): Promise<string> =>
  world.idp.mintUserToken({ sub: "u-1", aud: ISSUER, scope: SCOPE, ...input });

function assertion(claims: object = {}, key = own): Promise<string> {
  const usual = { iss: "report", sub: "report", aud: `${ISSUER}/token`, jti: randomUUID() };
  return new SignJWT({ ...usual, iat: seconds(), exp: seconds() + 60, ...claims })
    .setProtectedHeader({ alg: "ES256", kid: "r1" })
    .sign(key.privateKey);
}

const NIGHTLY = { client_id: "nightly", client_secret: SECRET };

const bySecret = async (change: Change = {}): Promise<Form> =>
  formOf({ grant_type: "client_credentials", ...NIGHTLY, ...change });

const byAssertion = async (change: Change = {}): Promise<Form> =>
  formOf({
    grant_type: "client_credentials",
    client_assertion_type: JWT_BEARER,
    client_assertion: await assertion(),
    ...change,
  });

/** A delegation, by the planner for a user unless changed. */
async function delegation(change: Change = {}, agent = "agents/planner"): Promise<Form> {
  const svid = await world.svid(agent);
  return formOf({
    grant_type: EXCHANGE,
    subject_token: await userToken(),
    subject_token_type: JWT,
    actor_token: svid,
    actor_token_type: JWT,
    ...world.as(svid),
    audience: API,
    ...change,
  });
}

const redemption = async (change: Change = {}): Promise<Form> => {
  const claims = { jti: randomUUID(), client_id: "nightly" };
  const grant = await userToken({ header: { typ: "authz-grant+jwt" }, expSeconds: 60, claims });
  return formOf({ grant_type: REDEMPTION, assertion: grant, ...NIGHTLY, ...change });
};

// --- the client -------------------------------------------------------------------------------------------------

const COMPLETE: Record<string, (change?: Change) => Promise<Form>> = {
  client_credentials: bySecret,
  [EXCHANGE]: delegation,
  [REDEMPTION]: redemption,
};
const NO_CREDENTIALS = {
  client_id: undefined,
  client_secret: undefined,
  client_assertion: undefined,
  client_assertion_type: undefined,
};

test("PROD-1.2-1, PROD-4.1r1-1 no grant type issues a token without client authentication", async () => {
  const { body } = await world.get("/.well-known/oauth-authorization-server");
  assert.deepEqual((body.grant_types_supported as string[]).toSorted(), Object.keys(COMPLETE).toSorted());
  for (const make of Object.values(COMPLETE)) {
    assertGranted(await world.token(await make()));
    assertRefused(await world.token(await make(NO_CREDENTIALS)), "invalid_client");
    assertRefused(
      await world.token(await make({ ...NO_CREDENTIALS, client_id: "nightly" })),
      "invalid_client",
    );
  }
});

test("PROD-1-1 a subject is a user or a workload, and the audit trail records which", async () => {
  const forUser = await world.token(await delegation());
  assert.equal(assertGranted(forUser).sub, "u-1");
  const itself = await world.token(await bySvid(await world.svid("agents/planner")));
  const subject = { subject_token: String(itself.body.access_token), subject_token_type: ACCESS_TOKEN };
  const forWorkload = await world.token(await delegation(subject, "agents/booking"));
  const { sub, act } = assertGranted(forWorkload);
  assert.deepEqual([sub, act], [planner, { sub: booking }]);
  const kinds: unknown[] = [];
  for (const answer of [forUser, forWorkload]) {
    kinds.push(Object((await eventOf(answer))?.subject).kind);
  }
  assert.deepEqual(kinds, ["user", "workload"]);
  const posing = await delegation({ subject_token: await userToken({ sub: planner }) });
  assertRefused(await world.token(posing), "invalid_request");
});

test("PROD-1-2, PROD-2.1-1 token and audit trail name the sender of the request as the client", async () => {
  for (const [agent, name] of [
    ["agents/planner", planner],
    ["agents/booking", booking],
  ] as const) {
    const answer = await world.token(await delegation({}, agent));
    assert.equal(assertGranted(answer).client_id, name);
    assert.equal(Object((await eventOf(answer))?.client).client_id, name);
    assertRefused(await world.token(await delegation({ client_id: "nightly" }, agent)), "invalid_client");
  }
});

// --- parameters -------------------------------------------------------------------------------------------------

const FOREIGN = "urn:ietf:params:oauth:token-type:saml2";

const parameters: readonly [string, (change?: Change) => Promise<Form>, Change, string][] = [
  ["PROD-4.1-5 no grant_type", bySecret, { grant_type: undefined }, "invalid_request"],
  ["PROD-4.1-5 no grant_type in an exchange", delegation, { grant_type: undefined }, "invalid_request"],
  ["PROD-4.1-6 a secret without client_id", bySecret, { client_id: undefined }, "invalid_client"],
  [
    "PROD-4.1-6, PROD-5-2 the client_id of another client",
    bySecret,
    { client_id: "report" },
    "invalid_client",
  ],
  ["PROD-4.1-7 a client_id without secret", bySecret, { client_secret: undefined }, "invalid_client"],
  ["PROD-4.1-7, PROD-5-2 a wrong secret", bySecret, { client_secret: `${SECRET}x` }, "invalid_client"],
  ["PROD-4.1-8 a malformed scope", bySecret, { scope: "a  b" }, "invalid_scope"],
  ["PROD-4.1-8 a malformed scope with an assertion", byAssertion, { scope: '"' }, "invalid_scope"],
  ["PROD-4.1-8 a malformed scope in an exchange", delegation, { scope: "é" }, "invalid_scope"],
  [
    "PROD-4.1-9 no client_assertion_type",
    byAssertion,
    { client_assertion_type: undefined },
    "invalid_client",
  ],
  [
    "PROD-4.1-9 the other client_assertion_type",
    byAssertion,
    { client_assertion_type: JWT_SPIFFE },
    "invalid_client",
  ],
  ["PROD-4.1-10 no client_assertion", byAssertion, { client_assertion: undefined }, "invalid_client"],
  ["PROD-4.1-10, PROD-2.3-1 no JWT", byAssertion, { client_assertion: "report" }, "invalid_client"],
  [
    "PROD-4.1-10, PROD-2.3-1 a JWT in two parts",
    byAssertion,
    { client_assertion: "e30.e30" },
    "invalid_client",
  ],
  ["PROD-4.1-11 no subject_token", delegation, { subject_token: undefined }, "invalid_request"],
  ["PROD-4.1-11 a malformed subject_token", delegation, { subject_token: "u-1" }, "invalid_request"],
  ["PROD-4.1-12 no subject_token_type", delegation, { subject_token_type: undefined }, "invalid_request"],
  [
    "PROD-4.1-12 an unsupported subject_token_type",
    delegation,
    { subject_token_type: FOREIGN },
    "invalid_request",
  ],
  ["PROD-4.1-13 an actor_token that is not a JWT", delegation, { actor_token: "planner" }, "invalid_request"],
  ["PROD-4.1-13 a type without actor_token", delegation, { actor_token: undefined }, "invalid_request"],
  ["PROD-4.1-14 no actor_token_type", delegation, { actor_token_type: undefined }, "invalid_request"],
  [
    "PROD-4.1-14 an unsupported actor_token_type",
    delegation,
    { actor_token_type: FOREIGN },
    "invalid_request",
  ],
  ["PROD-4.1-15 no audience", delegation, { audience: undefined }, "invalid_target"],
  ["PROD-4.1-15 an unknown audience", delegation, { audience: `${API}/` }, "invalid_target"],
];

test("PROD-4.1-5, PROD-4.1-6, PROD-4.1-7, PROD-4.1-8 these parameters are sufficient for client credentials by secret", async () => {
  assertGranted(await world.token(await bySecret({ scope: SCOPE })));
});

test("PROD-4.1-9, PROD-4.1-10, PROD-4.1-8 these parameters are sufficient for client credentials by assertion", async () => {
  assertGranted(await world.token(await byAssertion({ scope: SCOPE })));
});

test("PROD-4.1-11, PROD-4.1-12, PROD-4.1-13, PROD-4.1-14, PROD-4.1-15, PROD-4.1-8 these parameters are sufficient for a delegation", async () => {
  assertGranted(await world.token(await delegation({ scope: SCOPE })));
});

for (const [name, make, change, error] of parameters) {
  test(`${name}: ${error}`, async () => {
    assertRefused(await world.token(await make(change)), error);
  });
}

const ONCE = [
  ["grant_type", bySecret],
  ["client_id", bySecret],
  ["client_secret", bySecret],
  ["scope", bySecret],
  ["client_assertion_type", byAssertion],
  ["client_assertion", byAssertion],
  ["subject_token", delegation],
  ["subject_token_type", delegation],
  ["actor_token", delegation],
  ["actor_token_type", delegation],
  ["requested_token_type", delegation],
  ["assertion", redemption],
] as const;

for (const [name, make] of ONCE) {
  test(`PROD-4.1-29 a repeated ${name} is refused`, async () => {
    const form = { scope: SCOPE, requested_token_type: ACCESS_TOKEN, ...(await make()) };
    assertGranted(await world.token(form));
    const { [name]: value = "" } = form as Record<string, string>;
    assertRefused(await world.token({ ...(await make()), [name]: [value, value] }), "invalid_request");
  });
}

test("PROD-4.1-29 audience and resource may be repeated if they name one target", async () => {
  const form = { audience: [API, "api", API], resource: [API, API] };
  assert.equal(assertGranted(await world.token(await delegation(form))).aud, API);
  assertRefused(await world.token(await delegation({ resource: "https://other.example" })), "invalid_target");
});

test("PROD-4.1-29 empty parameters count as absent, and unknown ones are ignored", async () => {
  const beside = { scope: "", client_assertion: "", assertion: "", requested_token_type: "", resource: "" };
  assertGranted(await world.token(await bySecret({ ...beside, color: "red" })));
  assertRefused(await world.token(await bySecret({ grant_type: "" })), "invalid_request");
});

// --- assertions -------------------------------------------------------------------------------------------------

const claims: readonly [string, () => object, boolean][] = [
  ["PROD-2.3-2, PROD-2.3-3, PROD-2.3-7, PROD-2.3-8, PROD-2.3-11 all of its claims", () => ({}), true],
  ["PROD-2.3-2 no iss", () => ({ iss: undefined }), false],
  ["PROD-2.3-2 a list of iss", () => ({ iss: ["report"] }), false],
  ["PROD-2.3-2 another issuer as iss", () => ({ iss: IDP }), false],
  ["PROD-2.3-3 no sub", () => ({ sub: undefined }), false],
  ["PROD-2.3-3 a sub in an object", () => ({ sub: { id: "report" } }), false],
  ["PROD-2.3-3, PROD-2.3-12 the sub of another client", () => ({ iss: "other", sub: "other" }), false],
  ["PROD-2.3-4 no aud", () => ({ aud: undefined }), false],
  ["PROD-2.3-4 the token endpoint of another server", () => ({ aud: `${IDP}/token` }), false],
  ["PROD-2.3-4 another address of ours", () => ({ aud: `${ISSUER}/introspect` }), false],
  ["PROD-2.3-4 a slash after our token endpoint", () => ({ aud: `${ISSUER}/token/` }), false],
  ["PROD-2.3-4 ours beside another", () => ({ aud: [`${ISSUER}/token`, `${IDP}/token`] }), false],
  ["PROD-2.3-7, RFC7519-2-v2 an iat with a fraction", () => ({ iat: seconds() - 0.5 }), true],
  ["PROD-2.3-8, RFC7519-2-v2 an exp with a fraction", () => ({ exp: seconds() + 60.5 }), true],
  ["PROD-2.3-7 an iat as a string", () => ({ iat: String(seconds()) }), false],
  ["PROD-2.3-7, PROD-2.3-11 an iat in the future", () => ({ iat: seconds() + 50 }), false],
  ["PROD-2.3-8 no exp", () => ({ exp: undefined }), false],
  ["PROD-2.3-8 an exp as a string", () => ({ exp: String(seconds() + 60) }), false],
  ["PROD-2.3-8, PROD-2.3-11 an exp in the past", () => ({ exp: seconds() - 31 }), false],
  ["PROD-2.3-9, PROD-8.1-1 five minutes", () => ({ exp: seconds() + 299 }), true],
  ["PROD-2.3-9, PROD-8.1-1 an hour", () => ({ exp: seconds() + 3600 }), false],
];

for (const [name, change, isTaken] of claims) {
  test(`${name} in an assertion: ${isTaken ? "accepted" : "invalid_client"}`, async () => {
    const form = await byAssertion({ client_assertion: await assertion(change()) });
    const answer = await world.token(form);
    if (isTaken) assert.equal(assertGranted(answer).client_id, "report");
    else assertRefused(answer, "invalid_client");
  });
}

test("PROD-2.3-10, PROD-2.3-12 an assertion must be signed with the client's own key", async () => {
  const by = async (claim: object, key = own): Promise<Answer> =>
    world.token(await byAssertion({ client_assertion: await assertion(claim, key) }));
  const other = { iss: "other", sub: "other" };
  assert.equal(assertGranted(await by({})).client_id, "report");
  assert.equal(assertGranted(await by(other, others)).client_id, "other");
  assertRefused(await by({}, others), "invalid_client");
  assertRefused(await by(other, own), "invalid_client");
  const [head, body, signature = ""] = (await assertion()).split(".");
  const spoilt = `${head}.${body}.${signature.startsWith("A") ? "B" : "A"}${signature.slice(1)}`;
  assertRefused(await world.token(await byAssertion({ client_assertion: spoilt })), "invalid_client");
});

/** An SVID with these claims in addition to sub, aud and exp. */
const svidOf = (claims: object): Promise<string> =>
  world.svid("agents/planner", { claims: { iat: undefined, ...claims } });

const bySvid = async (svid: string): Promise<Form> => ({
  grant_type: "client_credentials",
  audience: API,
  ...world.as(svid),
});

const svidClaims: readonly [string, () => object, boolean][] = [
  ["sub, aud and exp alone", () => ({}), true],
  ["iss, iat and jti beside them", () => ({ iss: "https://td.example", iat: seconds(), jti: "1" }), true],
  ["no sub", () => ({ sub: undefined }), false],
  ["no aud", () => ({ aud: undefined }), false],
  ["no exp", () => ({ exp: undefined }), false],
];

for (const [name, change, isTaken] of svidClaims) {
  test(`PROD-2.3-15 ${name} in a JWT-SVID: ${isTaken ? "accepted repeatedly" : "invalid_client"}`, async () => {
    const form = await bySvid(await svidOf(change()));
    for (const answer of [await world.token(form), await world.token(form)]) {
      if (isTaken) assert.equal(assertGranted(answer).client_id, planner);
      else assertRefused(answer, "invalid_client");
    }
  });
}

// --- the response -----------------------------------------------------------------------------------------------

test("PROD-2.5-1, PROD-2.5-12 an access token is a JWT that is signed with a published key and has the typ at+jwt", async () => {
  const { access_token: token } = (await world.token(await bySecret())).body;
  const { body } = await world.get("/jwks");
  const keys = createLocalJWKSet(body as unknown as Parameters<typeof createLocalJWKSet>[0]);
  const rule = { issuer: ISSUER, audience: API, typ: "at+jwt" };
  const { payload, protectedHeader } = await jwtVerify(String(token), keys, rule);
  assert.deepEqual([payload.client_id, typeof payload.jti], ["nightly", "string"]);
  assert.equal(typeof protectedHeader.kid, "string");
  const [head, claims = "", signature] = String(token).split(".");
  const more = Buffer.from(claims, "base64url").toString().replace(SCOPE, "trips.all");
  const changed = `${head}.${Buffer.from(more).toString("base64url")}.${signature}`;
  await assert.rejects(jwtVerify(changed, keys, rule), { code: "ERR_JWS_SIGNATURE_VERIFICATION_FAILED" });
});

test("PROD-1.3-3 an exchange issues one new token, even if nothing changes", async () => {
  const first = await world.token(await delegation({ actor_token: undefined, actor_token_type: undefined }));
  const before = assertGranted(first);
  const again = await delegation({
    subject_token: String(first.body.access_token),
    subject_token_type: ACCESS_TOKEN,
    actor_token: undefined,
    actor_token_type: undefined,
    scope: SCOPE,
  });
  const answer = await world.token(again);
  const { iat, exp, jti, ...rest } = assertGranted(answer);
  assert.deepEqual({ ...rest, iat: before.iat, exp: before.exp, jti: before.jti }, before);
  assert.notEqual(jti, before.jti);
  const sent = new Set(Object.values(again).flat());
  const tokens = Object.values(answer.body).filter((value) => /^[\w-]+(\.[\w-]+){2}$/.test(String(value)));
  assert.deepEqual(tokens, [answer.body.access_token]);
  assert.ok(!sent.has(String(answer.body.access_token)));
});

test("PROD-2.5r2-2 the audit trail has the prior actors, in both modes", async () => {
  const first = String((await world.token(await delegation())).body.access_token);
  const subject = { subject_token: first, subject_token_type: ACCESS_TOKEN };
  const unseen = { actor_token: undefined, actor_token_type: undefined };
  for (const change of [subject, { ...subject, ...unseen }]) {
    const answer = await world.token(await delegation(change, "agents/booking"));
    assertGranted(answer);
    assert.deepEqual((await eventOf(answer))?.chain, [{ iss: ISSUER, sub: planner }]);
  }
});

const alike: readonly [string, string, readonly (() => Promise<Form>)[]][] = [
  [
    "client authentication",
    "client authentication failed",
    [
      () => bySecret({ client_secret: "<script>" }),
      () => bySecret({ client_id: "unknown\u0022" }),
      () => byAssertion({ client_assertion: "e30.e30.e30" }),
      () => delegation(NO_CREDENTIALS),
    ],
  ],
  [
    "exchange",
    "the request is not allowed",
    [
      () => delegation({ subject_token: "<script>" }),
      () => delegation({ actor_token: "e30.e30.e30" }),
      async () => delegation({ subject_token: await userToken({ aud: API }) }),
      () => delegation({}, "agents/other"),
    ],
  ],
];

for (const [what, description, made] of alike) {
  test(`PROD-7.4-1 a refused ${what} has one code and one fixed text, which depend neither on the request nor on the cause`, async () => {
    const texts = new Set<string>();
    for (const make of made) {
      const answer = await world.token(await make());
      assert.deepEqual(Object.keys(answer.body), ["error", "error_description"]);
      assert.equal(answer.body.error_description, description);
      assert.equal(answer.headers["content-type"], "application/json");
      texts.add(answer.text);
    }
    assert.equal(texts.size, 1);
  });
}

test("PROD-7.5-1, PROD-6.3-1 a token that cannot be recorded is not issued: 503 with Retry-After", async () => {
  proxy.manner = "close";
  proxy.cut();
  const answer = await world.token(await delegation());
  assert.deepEqual([answer.status, answer.body.error], [503, "temporarily_unavailable"]);
  assert.equal(answer.body.error_description, "the server cannot answer at present: send the request again");
  assert.equal(answer.headers["retry-after"], "1");
  proxy.manner = "pass";
  await until(async () => (await world.token(await delegation())).status === 200, "it is issued again");
});

// --- paths ------------------------------------------------------------------------------------------------------

test("PROD-4.1-1, PROD-9.1-1 endpoints are directly below the base URL, and no path has a version", async () => {
  const { body } = await world.get("/.well-known/oauth-authorization-server");
  const places = Object.entries(body).filter(([name]) => /_(endpoint|uri)$/.test(name));
  assert.deepEqual(Object.fromEntries(places), {
    token_endpoint: `${ISSUER}/token`,
    registration_endpoint: `${ISSUER}/register`,
    introspection_endpoint: `${ISSUER}/introspect`,
    revocation_endpoint: `${ISSUER}/revoke`,
    jwks_uri: `${ISSUER}/jwks`,
  });
  for (const path of ["/v1/token", "/token/v1", "/1/token", "/v1/register", "/oauth2/token"]) {
    assert.equal((await world.get(path, { method: "POST" })).status, 404, path);
  }
  assertGranted(await world.token(await bySecret()));
});

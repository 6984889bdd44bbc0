/**
 * An exchange as a request, and its token: its client, its lifetime after the subject token is renewed, and its
 * audience among many tenants.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Answer } from "../../scripts/http-client.ts";
import { stop } from "../support/stop.ts";
import {
  ACCESS_TOKEN,
  claimsOf,
  EXCHANGE,
  type Form,
  IDP,
  ISSUER,
  JWT,
  makeWorld,
  type World,
  workload,
} from "../support/world.ts";

const TENANTS = ["https://api.example/t1", "https://api.example/t2"];
const DESK = "https://desk.example";
const front = workload("agents/front");
const desk = workload("agents/desk");
const scopes = ["read", "write"];

const forUsers = {
  allow: "delegation",
  subjects: { issuers: [IDP] },
  subjectToken: { audiences: [ISSUER, "self"] },
  consent: "implied",
  acknowledge: "subjects-not-asked",
  scopes,
};

const CONFIGURATION = {
  targets: [
    { names: [DESK], owners: [desk], scopes },
    ...TENANTS.map((name) => ({ names: [name], scopes: ["read"] })),
  ],
  policies: [
    { id: "front", actors: [front], targets: [DESK, ...TENANTS], ...forUsers },
    { id: "desk", actors: [desk], targets: TENANTS, ...forUsers },
  ],
};

let world: World;
/** Exchanges of a user token that expires in a minute, and of the token that replaced it. */
let early: Answer;
let renewed: Answer;

before(async () => {
  world = await makeWorld(CONFIGURATION, { clock: true });
  early = await exchange("front", { resource: DESK, subject_token: await user({ expSeconds: 60 }) });
  renewed = await exchange("front", { resource: DESK, subject_token: await user() });
});

after(() => stop(world));

const user = (input = {}): Promise<string> =>
  world.idp.mintUserToken({ sub: "u-1", aud: ISSUER, scope: "read write", ...input });

async function formOf(agent: string, form: Form): Promise<Form> {
  const svid = await world.svid(`agents/${agent}`);
  return {
    grant_type: EXCHANGE,
    subject_token: await user(),
    subject_token_type: JWT,
    actor_token: svid,
    actor_token_type: JWT,
    ...world.as(svid),
    ...form,
  };
}

const exchange = async (agent: string, form: Form): Promise<Answer> => world.token(await formOf(agent, form));

/** The desk exchanges a token that it received. */
const traded = (answer: Answer, form: Form = {}): Promise<Answer> =>
  exchange("desk", {
    subject_token: String(answer.body.access_token),
    subject_token_type: ACCESS_TOKEN,
    resource: TENANTS[0] ?? "",
    ...form,
  });

function assertRefused(answer: Answer, error: string): void {
  assert.deepEqual([answer.status, answer.body.error], [400, error], answer.text);
}

// --- the request --------------------------------------------------------------------------------------------------

const FORM = "application/x-www-form-urlencoded";

const REQUESTS: [what: string, type: string, change: (body: string) => string, isTaken: boolean][] = [
  ["a form", FORM, (body) => body, true],
  ["a form with its charset", `${FORM};charset=UTF-8`, (body) => body, true],
  ["a form in UTF-8", FORM, (body) => `${body}&x=%C3%A9`, true],
  ["a form in Latin-1", FORM, (body) => `${body}&x=%E9`, false],
  ["a form with another charset", `${FORM};charset=ISO-8859-1`, (body) => body, false],
  [
    "JSON",
    "application/json",
    (body) => JSON.stringify(Object.fromEntries(new URLSearchParams(body))),
    false,
  ],
  ["a form with another media type", "text/plain", (body) => body, false],
];
for (const [what, type, change, isTaken] of REQUESTS) {
  test(`RFC8693-2.1-2 an exchange as ${what}: ${isTaken ? "accepted" : "invalid_request"}`, async () => {
    const form = await formOf("front", { resource: DESK });
    const body = change(new URLSearchParams(form as Record<string, string>).toString());
    const answer = await world.token(body, { "content-type": type });
    if (isTaken) assert.equal(answer.status, 200, answer.text);
    else assertRefused(answer, "invalid_request");
  });
}

test("RFC8693-2.1-2 an exchange in the query is refused for every method", async () => {
  const query = new URLSearchParams((await formOf("front", { resource: DESK })) as Record<string, string>);
  for (const method of ["GET", "PUT", "DELETE"]) {
    assert.equal((await world.get(`/token?${query}`, { method })).status, 405);
  }
  const headers = { "content-type": FORM };
  assertRefused(await world.get(`/token?${query}`, { method: "POST", headers, body: "" }), "invalid_request");
});

const UNACCEPTABLE: [what: string, form: () => Promise<Form>, reason: string, agent?: string][] = [
  [
    "a subject token with another signature",
    async () => ({ subject_token: `${(await user()).slice(0, -86)}${"A".repeat(86)}` }),
    "subject_signature_invalid",
  ],
  ["a malformed subject token", async () => ({ subject_token: "none" }), "subject_jws_not_compact"],
  [
    "an actor token of another workload",
    async () => ({ actor_token: await world.svid("agents/desk") }),
    "actor_not_the_caller",
  ],
  ["a request that no rule allows", async () => ({}), "no_rule", "guest"],
];
for (const [what, form, reason, agent = "front"] of UNACCEPTABLE) {
  test(`RFC8693-2.2.2-1, RFC8693-2.2.2-2 ${what}: invalid_request`, async () => {
    assertRefused(await exchange(agent, { resource: DESK, ...(await form()) }), "invalid_request");
    const event = (await world.events()).findLast(({ outcome }) => outcome === "deny");
    assert.equal(event?.reason, reason);
  });
}

// --- the client ---------------------------------------------------------------------------------------------------

test("RFC8693-1-1, RFC8693-1.1-3, RFC9068-2.2-5 a resource server that exchanges a token it received is the client and the actor of the new token", async () => {
  const first = claimsOf(renewed.body.access_token);
  assert.deepEqual([first.client_id, first.aud], [front, DESK]);
  const answer = await traded(renewed);
  assert.equal(answer.status, 200, answer.text);
  const { client_id, sub, act } = claimsOf(answer.body.access_token);
  assert.deepEqual([client_id, sub, act], [desk, "u-1", { sub: desk, act: { sub: front } }]);
  // It cannot name the client to which the received token was issued.
  assertRefused(await traded(renewed, { client_id: front }), "invalid_client");
});

// --- tenants ------------------------------------------------------------------------------------------------------

test("RFC8707-3-1, RFC9728-7.4-1 a token is for one tenant, and only configured tenants are accepted, byte for byte", async () => {
  for (const tenant of TENANTS) {
    const answer = await exchange("front", { resource: tenant });
    assert.equal(claimsOf(answer.body.access_token).aud, tenant, answer.text);
  }
  for (const other of ["https://api.example", "https://api.example/", "https://api.example/t3"]) {
    assertRefused(await exchange("front", { resource: other }), "invalid_target");
  }
  assertRefused(await exchange("front", { resource: `${TENANTS[0]}/` }), "invalid_target");
});

test("RFC8707-2.2-6, RFC8693-5-3 the response has the granted scope, reduced or not", async () => {
  const [tenant = ""] = TENANTS;
  for (const [resource, scope, want] of [
    [tenant, "read write", "read"],
    [tenant, "read", "read"],
    [tenant, undefined, "read"],
    [DESK, "read write", "read write"],
  ] as const) {
    const answer = await exchange("front", { resource, ...(scope !== undefined && { scope }) });
    assert.equal(answer.body.scope, want, answer.text);
    assert.equal(claimsOf(answer.body.access_token).scope, want);
  }
});

// --- lifetime -----------------------------------------------------------------------------------------------------

test("RFC8693-2.1-23, RFC9068-4-13 a token expires at its time, also when its subject token was renewed", async () => {
  const [short, long] = [early, renewed].map(({ body }) => claimsOf(body.access_token));
  assert.ok(Number(short?.exp) - Number(short?.iat) <= 60 && Number(long?.exp) - Number(long?.iat) > 60);
  assert.equal((await traded(early)).status, 200);
  world.pass(60);
  assertRefused(await traded(early), "invalid_request");
  // By type, because the minute that passed also wrote the counts of refused authentications.
  const event = (await world.events()).findLast(({ type }) => type === "token_exchange.denied");
  assert.equal(event?.reason, "subject_jwt_expired");
  assert.equal((await traded(renewed)).status, 200);
});

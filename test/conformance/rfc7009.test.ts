/**
 * POST /revoke and POST /revocations over TLS, in the production profile, with three instances on one PostgreSQL: what
 * one instance ends, the others refuse at the next request.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Answer, basic, postForm, send } from "../../scripts/http-client.ts";
import type { ServerProcess } from "../../scripts/server-process.ts";
import { DRAFT as ID_JAG } from "../../src/spec/id-jag.ts";
import { DRAFT as CHAINING } from "../../src/spec/identity-chaining.ts";
import { DRAFT as SPIFFE } from "../../src/spec/spiffe/client-auth.ts";
import { freshDatabase, type SharedPostgres, sharePostgres } from "../support/postgres.ts";
import { stop } from "../support/stop.ts";
import {
  ACCESS_TOKEN,
  claimsOf,
  type Event,
  EXCHANGE,
  type Form,
  ISSUER,
  JWT,
  makeWorld,
  type World,
  workload,
} from "../support/world.ts";

const SECRET = "x7Qd-revocation-k2Lm9-Zr4T-8vWb1";
const PARTNER = "https://as.partner.example";
const scopes = ["trips.read"];
const OWN = `${ISSUER}/api`;
const HOPS = ["planner", "booking", "crew", "ledger"];
const agent = (name: string): string => workload(`agents/${name}`);
const implied = { consent: "implied", acknowledge: "subjects-not-asked" };
/** The subject is the client desk, which acts for itself: a user's issuer on loopback is for development only. */
const forDesk = {
  allow: "delegation",
  subjects: { issuers: [ISSUER] },
  subjectToken: { audiences: [ISSUER, "self"] },
  scopes,
};

const CONFIGURATION = {
  profile: "production",
  trustedIssuers: {},
  clients: {
    desk: { method: "client_secret_basic", secrets: [{ file: "secret" }] },
    gate: { method: "client_secret_basic", secrets: [{ file: "secret-2" }] },
  },
  targets: [
    ...HOPS.map((name) => ({ names: [name], owners: [agent(name)], introspectors: ["gate"], scopes })),
    { kind: "partner", issuer: PARTNER, scopes, clients: { [agent("planner")]: "planner-there" } },
  ],
  policies: [
    {
      id: "orders",
      allow: "client_credentials",
      clients: ["desk"],
      targets: [OWN],
      scopes: ["token:revoke"],
    },
    { id: "desk", allow: "client_credentials", clients: ["desk"], targets: ["planner"], scopes },
    { id: "hops", ...forDesk, ...implied, actors: HOPS.map(agent), targets: HOPS },
    {
      id: "abroad",
      ...forDesk,
      ...implied,
      issues: "grant",
      actors: [agent("planner")],
      targets: [PARTNER],
    },
  ],
  drafts: [SPIFFE, CHAINING, ID_JAG],
};

let database: SharedPostgres;
let world: World;
let others: ServerProcess[];
/** The ports of the three instances. */
let ports: number[];

before(async () => {
  database = await sharePostgres();
  const postgres = await freshDatabase(database);
  const files = { secret: SECRET, "secret-2": SECRET.toUpperCase(), "store-url": postgres };
  world = await makeWorld(
    { ...CONFIGURATION, store: { postgres: { file: "store-url" } } },
    { postgres, files },
  );
  others = [await world.beside("second"), await world.beside("third")];
  ports = [world.server, ...others].map(({ port }) => port);
});
after(() => stop(...(others ?? []), world, database));

// --- asking -------------------------------------------------------------------------------------------------------

const at = (instance: number) => ({ host: "127.0.0.1", port: ports[instance] ?? 0 });
const gate = { authorization: basic("gate", SECRET.toUpperCase()) };

type From = { audience: string; subject?: string; instance?: number };

/** A token that the client desk gets for itself. */
async function own(audience: string): Promise<string> {
  const form = { grant_type: "client_credentials", audience };
  const answer = await world.token(form, { authorization: basic("desk", SECRET) });
  assert.equal(answer.status, 200, answer.text);
  return String(answer.body.access_token);
}

/** An exchange by this agent: of a new token of desk, or of the given one. */
async function tryExchange(name: string, { audience, subject, instance = 0 }: From): Promise<Answer> {
  const svid = await world.svid(`agents/${name}`);
  const form = {
    grant_type: EXCHANGE,
    subject_token: subject ?? (await own("planner")),
    subject_token_type: ACCESS_TOKEN,
    actor_token: svid,
    actor_token_type: JWT,
    audience,
    ...world.as(svid),
  };
  return world.token(form, {}, {}, ports[instance]);
}

async function exchange(name: string, from: From): Promise<string> {
  const answer = await tryExchange(name, from);
  assert.equal(answer.status, 200, answer.text);
  return String(answer.body.access_token);
}

/** The tokens of desk, of planner for desk, of booking behind planner, and of crew; each from another instance. */
async function chain(): Promise<[string, string, string, string]> {
  const first = await own("planner");
  const second = await exchange("planner", { audience: "booking", subject: first, instance: 1 });
  const third = await exchange("booking", { audience: "crew", subject: second, instance: 2 });
  return [first, second, third, await exchange("crew", { audience: "ledger", subject: third })];
}

const post = (
  path: string,
  form: Form,
  headers: Record<string, string> = {},
  instance = 0,
): Promise<Answer> => postForm(`${ISSUER}${path}`, form, { ca: world.ca, headers, connect: at(instance) });

/** Revokes as this agent. */
const revoke = async (name: string, form: Form, instance = 0): Promise<Answer> =>
  post("/revoke", { ...form, ...world.as(await world.svid(`agents/${name}`)) }, {}, instance);

async function isActive(token: string, instance = 0): Promise<boolean> {
  const answer = await post("/introspect", { token }, gate, instance);
  assert.equal(answer.status, 200, answer.text);
  return answer.body.active === true;
}

async function order(body: object, instance: number): Promise<Answer> {
  return send(`${ISSUER}/revocations`, {
    method: "POST",
    ca: world.ca,
    connect: at(instance),
    headers: { authorization: `Bearer ${await own(OWN)}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

const jtiOf = (token: string): string => String(claimsOf(token).jti);
const eventsOf = async (type: string): Promise<Event[]> =>
  (await world.events()).filter((event) => event.type === type);

// --- a client ends its own token ----------------------------------------------------------------------------------

test("RFC7009-2-2, RFC7009-2.1-8, RFC7009-2.1-9, RFC8693-2.1-25, RFC7662-4-4 a revoked token ends with all its descendants, on every instance at the next request", async () => {
  const [first, second, third, fourth] = await chain();
  for (const instance of ports.keys()) assert.equal(await isActive(fourth, instance), true);
  const revoked = await post("/revoke", { token: first }, { authorization: basic("desk", SECRET) });
  assert.deepEqual([revoked.status, revoked.text, revoked.headers["cache-control"]], [200, "{}", "no-store"]);
  assert.equal(revoked.headers["content-type"], "application/json");
  for (const instance of ports.keys()) {
    const from = { audience: "planner", subject: fourth, instance };
    const answer = await tryExchange("ledger", from);
    assert.deepEqual([answer.status, answer.body.error], [400, "invalid_request"]);
    for (const token of [first, second, third, fourth]) assert.equal(await isActive(token, instance), false);
  }
});

test("RFC7009-2.1-9 a revoked descendant leaves the tokens above it as they are", async () => {
  const [first, second, third, fourth] = await chain();
  assert.equal((await revoke("crew", { token: fourth })).status, 200);
  for (const token of [first, second, third]) assert.equal(await isActive(token, 1), true);
  assert.equal(await isActive(fourth, 2), false);
  const { outcome, reason, client, detail } = (await eventsOf("token.revoked")).at(-1) ?? assert.fail();
  assert.deepEqual([outcome, reason], ["allow", "by_client"]);
  assert.equal((client as { client_id: string }).client_id, agent("crew"));
  const { ends, accepted_until_ms: until } = detail as Record<string, unknown>;
  assert.deepEqual(ends, { by: "token", jti: jtiOf(fourth) });
  assert.ok(Number(until) > 1000 * Number(claimsOf(fourth).exp));
});

test("RFC7009-2.1-3, RFC7009-2.1-4, RFC7009-2.1-5, RFC7009-2.2-3, RFC7009-5-3 the hint has no effect", async () => {
  for (const token_type_hint of ["access_token", "refresh_token", "no such type"]) {
    const token = await exchange("planner", { audience: "booking" });
    assert.equal((await revoke("planner", { token, token_type_hint })).status, 200);
    assert.equal(await isActive(token), false, token_type_hint);
  }
});

test("RFC7009-2.2-1, RFC7009-2.2-2 what is no living token of ours gets the same answer as an ended one, and nothing is recorded as ended", async () => {
  const token = await exchange("planner", { audience: "booking" });
  const before = (await eventsOf("token.revoked")).length;
  const user = await world.idp.mintUserToken({ sub: "alice", aud: ISSUER });
  const forged = `${token.slice(0, -8)}AAAAAAAA`;
  for (const one of ["unknown", user, forged]) {
    const answer = await revoke("planner", { token: one });
    assert.deepEqual([answer.status, answer.text], [200, "{}"], one);
  }
  assert.equal(await isActive(token), true);
  assert.equal((await eventsOf("token.revoked")).length, before);
  for (let time = 0; time < 2; time++) assert.equal((await revoke("planner", { token })).status, 200);
  assert.equal((await eventsOf("token.revoked")).length, before + 1, "an ended token is not ended again");
  const reasons = (await eventsOf("token.revocation_denied")).map(({ reason }) => reason);
  for (const reason of ["jws_not_compact", "jwt_type_refused", "signature_invalid", "token_revoked"]) {
    assert.ok(reasons.includes(reason), reason);
  }
});

test("RFC7009-2.1-7 the token of another client is not ended, and the answer does not tell whether it stands", async () => {
  const token = await exchange("planner", { audience: "booking" });
  const refused = [
    400,
    { error: "invalid_grant", error_description: "the token was issued to another client" },
  ];
  const first = await revoke("booking", { token });
  assert.deepEqual([first.status, first.body], refused);
  assert.equal(await isActive(token), true);
  await revoke("planner", { token });
  const second = await revoke("booking", { token });
  assert.deepEqual([second.status, second.body], refused);
});

test("HTTP-D-17, RFC7009-2.2.1-1, RFC7009-2.2.1-2 a grant for another server is refused as a type that cannot be revoked", async () => {
  const token = await exchange("planner", { audience: PARTNER });
  const answer = await revoke("planner", { token });
  assert.deepEqual([answer.status, answer.body.error], [400, "unsupported_token_type"]);
});

test("RFC7009-2.1-1, RFC7009-2.1-2, RFC7009-2.3-2 the request is a form in a POST with one token", async () => {
  const token = await exchange("planner", { audience: "booking" });
  for (const form of [{}, { token: "" }, { token: [token, token] }]) {
    const { status, body } = await revoke("planner", form);
    assert.deepEqual([status, body.error], [400, "invalid_request"]);
  }
  const read = await world.get(`/revoke?token=${token}`);
  assert.deepEqual([read.status, read.headers.allow], [405, "POST"]);
  const inUri = await post(`/revoke?token=${token}`, {
    token,
    ...world.as(await world.svid("agents/planner")),
  });
  assert.deepEqual([inUri.status, inUri.body.error], [400, "invalid_request"]);
  assert.equal(await isActive(token), true);
});

test("RFC7009-2.1-6, RFC7009-5-4 nothing is ended without client authentication", async () => {
  const token = await exchange("planner", { audience: "booking" });
  const bare = await post("/revoke", { token, client_id: agent("planner") });
  assert.deepEqual([bare.status, bare.body.error], [400, "invalid_client"]);
  const wrong = await post("/revoke", { token }, { authorization: basic("desk", "wrong") });
  assert.deepEqual([wrong.status, wrong.body.error], [401, "invalid_client"]);
  const svid = await world.svid("agents/planner", { expSeconds: -60 });
  assert.equal((await post("/revoke", { token, ...world.as(svid) })).body.error, "invalid_client");
  assert.equal(await isActive(token), true);
});

// --- an operator ends by what tokens have in common ---------------------------------------------------------------

test("RFC7009-3-1, PROD-5r4-1 an operator ends every token in whose chain an agent acted, however far below it", async () => {
  const [first, second, third, fourth] = await chain();
  const ended = await order({ actor: agent("booking") }, 2);
  assert.equal(ended.status, 200, ended.text);
  assert.ok(Number(ended.body.cut_off_ms) > Date.now(), "what is written at the same time is ended too");
  for (const instance of ports.keys()) {
    for (const token of [first, second]) assert.equal(await isActive(token, instance), true);
    for (const token of [third, fourth]) assert.equal(await isActive(token, instance), false);
  }
});

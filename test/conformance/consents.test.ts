/**
 * The consent endpoints: who may record a consent, for which subject, and its effect. Two servers share one PostgreSQL,
 * because a withdrawal applies to every instance.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Answer, basic, send } from "../../scripts/http-client.ts";
import type { UserTokenInput } from "../../scripts/idp.ts";
import type { ServerProcess } from "../../scripts/server-process.ts";
import { freshDatabase, type SharedPostgres, sharePostgres } from "../support/postgres.ts";
import { stop } from "../support/stop.ts";
import { until } from "../support/until.ts";
import {
  ACCESS_TOKEN,
  claimsOf,
  EXCHANGE,
  IDP,
  ISSUER,
  JWT,
  makeWorld,
  type World,
  workload,
} from "../support/world.ts";

const SECRET = "registry-registry-registry-12345";
const API = "https://api.example";
const AUDIENCE = `${ISSUER}/consents`;
const planner = workload("agents/planner");
const booking = workload("agents/booking");
const scopes = ["trips.read", "trips.book"];
const forUsers = {
  subjects: { issuers: [IDP] },
  subjectToken: { audiences: [ISSUER, "self"] },
  consent: "record",
};

const CONFIGURATION = {
  clients: {
    desk: { method: "client_secret_basic", secrets: [SECRET], defaultTarget: `${ISSUER}/api` },
    agent: { method: "client_secret_basic", secrets: [SECRET], workload: planner },
  },
  consents: { issuers: { [IDP]: { clients: ["consent-page", "consent-app"] } } },
  targets: [
    { names: ["booking-agent"], owners: [booking], scopes },
    { names: [API, "api"], scopes },
  ],
  policies: [
    {
      id: "desk",
      allow: "client_credentials",
      clients: ["desk", "agent"],
      targets: [`${ISSUER}/api`],
      scopes: ["consent:manage", "policy:explain", "token:revoke"],
    },
    {
      id: "agents",
      allow: "delegation",
      actors: [planner, booking],
      targets: ["booking-agent", API],
      scopes,
      ...forUsers,
    },
    {
      id: "agents-as-desk",
      allow: "impersonation",
      actors: [planner],
      subjects: { issuers: [IDP, ISSUER] },
      subjectToken: { audiences: [ISSUER] },
      consent: "implied",
      acknowledge: "subjects-not-asked",
      targets: [`${ISSUER}/api`],
      scopes: ["consent:manage"],
    },
  ],
};

let database: SharedPostgres;
let world: World;
let other: ServerProcess;
let admin: string;

before(async () => {
  database = await sharePostgres();
  world = await makeWorld(CONFIGURATION, { postgres: await freshDatabase(database), clock: true });
  other = await world.beside("second");
  admin = await own("desk");
});

after(() => stop(other, world, database));

async function own(client: string, scope = "consent:manage"): Promise<string> {
  const authorization = basic(client, SECRET);
  const form = { grant_type: "client_credentials", audience: `${ISSUER}/api`, scope };
  const answer = await world.token(form, { authorization });
  assert.equal(answer.status, 200, answer.text);
  return String(answer.body.access_token);
}

/** A request as the user's consent page sends it. */
const page = (sub: string, input: Partial<UserTokenInput> = {}): Promise<string> =>
  world.idp.mintUserToken({ sub, aud: AUDIENCE, claims: { azp: "consent-page" }, ...input });

type Call = { body?: object | string; headers?: Record<string, string>; port?: number };

async function call(
  method: string,
  path: string,
  token: string,
  { body, headers = {}, port = world.server.port }: Call = {},
): Promise<Answer> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return send(`${ISSUER}/consents${path}`, {
    method,
    ca: world.ca,
    connect: { host: "127.0.0.1", port },
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
    ...(body !== undefined && { body: text }),
  });
}

const wish = { actor: planner, targets: ["booking-agent"], scope: "trips.read trips.book" };

async function exchange(
  agent: string,
  {
    sub = "",
    subjectToken,
    audience = "booking-agent",
    scope,
    port = world.server.port,
  }: { sub?: string; subjectToken?: string; audience?: string; scope?: string; port?: number },
): Promise<Answer> {
  const svid = await world.svid(agent);
  const user = subjectToken ?? (await world.idp.mintUserToken({ sub, aud: ISSUER, scope: scopes.join(" ") }));
  const form = {
    grant_type: EXCHANGE,
    subject_token: user,
    subject_token_type: subjectToken === undefined ? JWT : ACCESS_TOKEN,
    ...(scope !== undefined && { scope }),
    actor_token: svid,
    actor_token_type: JWT,
    audience,
    ...world.as(svid),
  };
  return world.token(form, {}, {}, port);
}

// --- a user's own consents --------------------------------------------------------------------------------------

test("PROD-2.6-4 after a user consents, the agent may act for them", async () => {
  assert.equal((await exchange("agents/planner", { sub: "anna" })).body.error, "invalid_request");
  const put = await call("PUT", "/anna-planner", await page("anna"), { body: wish });
  assert.equal(put.status, 201, put.text);
  assert.deepEqual(put.body, {
    id: "anna-planner",
    version: 1,
    subject: { iss: IDP, sub: "anna" },
    ...wish,
    state: "in-force",
  });
  assert.equal(put.headers.etag, '"1"');
  assert.equal(put.headers["cache-control"], "no-store");
  const got = await call("GET", "/anna-planner", await page("anna"));
  assert.deepEqual([got.status, got.body], [200, put.body]);
  const answer = await exchange("agents/planner", { sub: "anna" });
  assert.equal(answer.status, 200, answer.text);
  const events = await world.events();
  const event = events.findLast(({ type }) => type === "consent.recorded");
  assert.equal(event?.reason, "by_subject");
  assert.equal((event?.policy as { consent?: string } | undefined)?.consent, "anna-planner");
});

test("PROD-2.6-4 a consent that is replaced with other scopes applies to the next exchange", async () => {
  const token = await page("bert");
  assert.equal((await call("PUT", "/bert-1", token, { body: wish })).status, 201);
  const narrowed = await call("PUT", "/bert-1", token, { body: { ...wish, scope: "trips.read" } });
  assert.deepEqual([narrowed.status, narrowed.body.version], [200, 2]);
  assert.equal((await exchange("agents/planner", { sub: "bert" })).body.scope, "trips.read");
  const widened = await call("PUT", "/bert-1", token, { body: wish, headers: { "if-match": '"2"' } });
  assert.deepEqual([widened.status, widened.body.version, widened.headers.etag], [200, 3, '"3"']);
  assert.equal((await exchange("agents/planner", { sub: "bert" })).body.scope, scopes.join(" "));
});

test("PROD-2.6-4 a change that names an older version is refused", async () => {
  const token = await page("cleo");
  const create = { body: wish, headers: { "if-none-match": "*" } };
  assert.equal((await call("PUT", "/cleo-1", token, create)).status, 201);
  assert.equal((await call("PUT", "/cleo-1", token, create)).status, 412);
  const older = { headers: { "if-match": '"7"' } };
  assert.equal((await call("PUT", "/cleo-1", token, { body: wish, ...older })).status, 412);
  assert.equal((await call("DELETE", "/cleo-1", token, older)).status, 412);
  assert.equal((await call("DELETE", "/cleo-1", token, { headers: { "if-match": "7" } })).status, 400);
  assert.equal((await call("GET", "/cleo-1", token)).body.version, 1);
});

test("PROD-2.6-4 of concurrent replacements of one version, one succeeds", async () => {
  const token = await page("dora");
  await call("PUT", "/dora-1", token, { body: wish });
  const ports = [world.server.port, other.port];
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, index) =>
      call("PUT", "/dora-1", token, {
        body: wish,
        headers: { "if-match": '"1"' },
        port: ports[index % 2] ?? 0,
      }),
    ),
  );
  const statuses = answers.map(({ status }) => status).sort();
  assert.deepEqual(statuses, [200, ...Array.from({ length: 7 }, () => 412)]);
  assert.equal((await call("GET", "/dora-1", token)).body.version, 2);
});

test("PROD-2.6-4 a consent ends at its expiry", async () => {
  const token = await page("emil");
  const expires = Math.floor(world.nowMs() / 1000) + 60;
  await call("PUT", "/emil-1", token, { body: { ...wish, expires_at: expires } });
  assert.equal((await exchange("agents/planner", { sub: "emil" })).status, 200);
  world.pass(60);
  assert.equal((await exchange("agents/planner", { sub: "emil" })).body.error, "invalid_request");
  assert.equal((await call("GET", "/emil-1", token)).body.state, "expired");
});

test("POLICY-D-21, POLICY-D-22 the log line of a refused exchange has all that a rule lacks, and the known name that was meant", async () => {
  const logged = async ({ headers }: Answer): Promise<unknown[]> => {
    const line = () => world.server.lines.find((one) => one.includes(String(headers["x-request-id"])));
    await until(() => line() !== undefined, "the refusal is logged");
    const { refused, lacks, meant } = JSON.parse(line() ?? "{}");
    return [refused, lacks, meant];
  };
  const several = await exchange("agents/planner", { sub: "gert", scope: "trip.read" });
  assert.deepEqual(await logged(several), ["consent_missing", "consent scope", "trips.read"]);
  const wrong = await exchange("agents/planner", { sub: "gert", audience: "bookin-agent" });
  assert.deepEqual(await logged(wrong), ["target_unknown", undefined, "booking-agent"]);
  assert.deepEqual(await logged(await exchange("agents/planner", { sub: "gert" })), [
    "consent_missing",
    undefined,
    undefined,
  ]);
});

test("PROD-2.6-4 a withdrawal stops the next exchange on every instance, and the tokens issued under the consent", async () => {
  const token = await page("finn");
  await call("PUT", "/finn-planner", token, { body: wish });
  await call("PUT", "/finn-booking", token, { body: { ...wish, actor: booking, targets: [API] } });
  const ports = [world.server.port, other.port];
  const first = await exchange("agents/planner", { sub: "finn" });
  const subjectToken = String(first.body.access_token);
  for (const port of ports) {
    assert.equal((await exchange("agents/planner", { sub: "finn", port })).status, 200);
    assert.equal((await exchange("agents/booking", { subjectToken, audience: API, port })).status, 200);
  }
  const withdrawn = await call("DELETE", "/finn-planner", token);
  assert.deepEqual([withdrawn.status, withdrawn.text], [204, ""]);
  for (const port of ports) {
    assert.equal((await exchange("agents/planner", { sub: "finn", port })).body.error, "invalid_request");
    const onward = await exchange("agents/booking", { subjectToken, audience: API, port });
    assert.equal(onward.body.error, "invalid_request");
  }
  const got = await call("GET", "/finn-planner", token);
  assert.equal(typeof got.body.withdrawn_at, "number");
  // PAGE-D-34
  const { consents } = (await call("GET", "", token)).body as { consents: { id: string; state: string }[] };
  assert.deepEqual(
    [got.body.state, ...consents.map(({ id, state }) => [id, state])],
    ["withdrawn", ["finn-booking", "in-force"], ["finn-planner", "withdrawn"]],
  );
  assert.equal((await call("DELETE", "/finn-planner", token)).status, 404);
  // A new consent with the same id must not make tokens of the withdrawn one valid again.
  assert.equal((await call("PUT", "/finn-planner", token, { body: wish })).status, 409);
  const event = (await world.events()).findLast(({ type }) => type === "consent.withdrawn");
  assert.deepEqual([event?.outcome, event?.reason], ["allow", "by_subject"]);
});

test("PROD-2.6-4 an ending by subject refuses the user's older token here too, on every instance, and no later one", async () => {
  const body = { actor: planner, targets: ["booking-agent"], scope: "trips.read" };
  const stolen = await page("u-ended");
  assert.equal((await call("PUT", "/before-the-ending", stolen, { body })).status, 201);
  const ended = await send(`${ISSUER}/revocations`, {
    method: "POST",
    ca: world.ca,
    connect: { host: "127.0.0.1", port: world.server.port },
    headers: {
      authorization: `Bearer ${await own("desk", "token:revoke")}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ subject: { iss: IDP, sub: "u-ended" } }),
  });
  assert.equal(ended.status, 200, ended.text);
  for (const { port } of [world.server, other]) {
    const refused = await call("PUT", "/after-the-ending", stolen, { body, port });
    assert.deepEqual([refused.status, refused.body.error], [401, "invalid_token"]);
    assert.equal((await call("GET", "", stolen, { port })).status, 401);
  }
  world.pass(6);
  const iat = Math.floor(world.nowMs() / 1000);
  const later = await page("u-ended", { claims: { azp: "consent-page", iat } });
  assert.equal((await call("GET", "", later)).status, 200);
});

test("PROD-2.6-4 a user cannot read, change or withdraw the consents of another", async () => {
  await call("PUT", "/gina-1", await page("gina"), { body: wish });
  const otherUser = await page("hans");
  assert.equal((await call("GET", "/gina-1", otherUser)).status, 404);
  assert.equal((await call("DELETE", "/gina-1", otherUser)).status, 404);
  assert.equal((await call("PUT", "/gina-1", otherUser, { body: wish })).status, 409);
  const forGina = { ...wish, subject: { iss: IDP, sub: "gina" } };
  assert.equal((await call("PUT", "/hans-1", otherUser, { body: forGina })).status, 403);
  assert.deepEqual((await call("GET", "", otherUser)).body, { consents: [] });
  const filtered = await call("GET", `?iss=${encodeURIComponent(IDP)}&sub=gina`, otherUser);
  assert.deepEqual(filtered.body, { consents: [] });
  assert.equal((await call("GET", "/gina-1", await page("gina"))).body.version, 1);
});

test("PROD-2.6-4 the actor of a consent does not change", async () => {
  const token = await page("ines");
  await call("PUT", "/ines-1", token, { body: wish });
  assert.equal((await call("PUT", "/ines-1", token, { body: { ...wish, actor: booking } })).status, 409);
});

const malformed: [string, object | string, number][] = [
  ["no JSON", "{", 400],
  ["an array", [wish], 400],
  ["another member", { ...wish, admin: true }, 400],
  ["no target", { ...wish, targets: [] }, 400],
  ["an unknown target", { ...wish, targets: ["booking-agent", "nowhere"] }, 400],
  ["an unknown scope", { ...wish, scope: "trips.read everything" }, 400],
  ["scopes with two spaces", { ...wish, scope: "trips.read  trips.book" }, 400],
  ["an empty scope", { ...wish, scope: "" }, 400],
  ["a trust domain as actor", { ...wish, actor: "spiffe://td.example" }, 400],
  ["a broken SPIFFE ID as actor", { ...wish, actor: "spiffe://TD.example/agents/planner" }, 400],
  ["a prefix as actor", { ...wish, actor: "spiffe://td.example/agents/*" }, 400],
  ["a past time", { ...wish, expires_at: 1_600_000_000 }, 400],
  ["a time with a fraction", { ...wish, expires_at: 4_000_000_000.5 }, 400],
];
for (const [name, body, status] of malformed) {
  test(`PROD-2.6-4 ${name} is refused`, async () => {
    const answer = await call("PUT", "/jens-1", await page("jens"), { body });
    assert.deepEqual([answer.status, answer.body.error], [status, "invalid_request"], answer.text);
    assert.equal((await call("GET", "/jens-1", await page("jens"))).status, 404);
  });
}

test("PROD-2.6-4 invalid ids, other content types and unknown filters are refused", async () => {
  const token = await page("jens");
  assert.equal((await call("PUT", "/a.b", token, { body: wish })).status, 404);
  assert.equal((await call("PUT", `/${"a".repeat(65)}`, token, { body: wish })).status, 404);
  const typed = { body: wish, headers: { "content-type": "text/plain" } };
  assert.equal((await call("PUT", "/jens-2", token, typed)).status, 415);
  assert.equal((await call("GET", "?actor=x", token)).status, 400);
  assert.equal((await call("GET", "?limit=101", token)).status, 400);
  assert.equal((await call("GET", "?iss=x", token)).status, 400);
});

// --- tokens of users ----------------------------------------------------------------------------------------------

const good: [string, Partial<UserTokenInput>][] = [
  ["azp", {}],
  ["client_id", { claims: { client_id: "consent-app" } }],
  ["both", { claims: { azp: "consent-page", client_id: "consent-app" } }],
  ["another typ that the configuration accepts", { header: { typ: "at+jwt" } }],
];
for (const [name, input] of good) {
  test(`PROD-2.6-4 a user's own token with ${name} is accepted`, async () => {
    assert.equal((await call("GET", "", await page("karl", input))).status, 200);
  });
}

const bad: [string, Partial<UserTokenInput>][] = [
  ["a subject token", { aud: ISSUER }],
  ["a token that is also for exchanges", { aud: [AUDIENCE, ISSUER] }],
  ["a token for our own protected endpoints", { aud: `${ISSUER}/api` }],
  ["no audience", { claims: { aud: undefined, azp: "consent-page" } }],
  ["no client", { claims: {} }],
  ["an agent's client", { claims: { azp: "planner" } }],
  ["a listed client beside one that is not", { claims: { azp: "consent-page", client_id: "planner" } }],
  ["several clients in one claim", { claims: { azp: ["consent-page"] } }],
  ["an actor", { claims: { azp: "consent-page", act: { sub: planner } } }],
  ["an actor of null", { claims: { azp: "consent-page", act: null } }],
  ["an empty actor", { claims: { azp: "consent-page", act: {} } }],
  ["the nonce of an ID token (CONF-D-7)", { claims: { azp: "consent-page", nonce: "n" } }],
  ["the members of an event (CONF-D-7)", { claims: { azp: "consent-page", events: { e: {} } } }],
  ["another issuer", { claims: { azp: "consent-page", iss: "https://idp.other" } }],
  ["another type", { header: { typ: "oauth-id-jag+jwt" } }],
  ["an exp in the past", { expSeconds: -60 }],
  ["a subject that looks like a workload", { sub: planner }],
];
for (const [name, input] of bad) {
  test(`PROD-2.6-4, RFC6750-3.1-2 a token with ${name} is refused`, async () => {
    const answer = await call("PUT", "/lena-1", await page("lena", input), { body: wish });
    assert.deepEqual([answer.status, answer.body.error], [401, "invalid_token"], answer.text);
    assert.match(answer.headers["www-authenticate"] ?? "", /^Bearer realm=/);
  });
}

test("RFC6750-3.1-2 a token that is no JWT is refused", async () => {
  for (const token of ["abc", "a.b.c", `${await page("lena")}.d`]) {
    const answer = await call("GET", "", token);
    assert.deepEqual([answer.status, answer.body.error], [401, "invalid_token"], answer.text);
  }
});

test("PRM-D-1, RFC9728-5.1-1 a client of users is led to the issuer of their tokens, an administrator to ours", async () => {
  const wellKnown = `${ISSUER}/.well-known/oauth-protected-resource`;
  const anonymous = await world.get("/consents");
  assert.match(
    anonymous.headers["www-authenticate"] ?? "",
    new RegExp(`^Bearer realm="as.example", resource_metadata="${wellKnown}/consents", DPoP `),
  );
  const { body } = await world.get("/.well-known/oauth-protected-resource/consents");
  assert.deepEqual([body.resource, body.authorization_servers], [AUDIENCE, [IDP]]);
  assert.equal(body.scopes_supported, undefined);
  const [before, after] = (anonymous.headers["www-authenticate"] ?? "").split(", DPoP ");
  assert.ok(before && after?.includes(`resource_metadata="${wellKnown}/consents"`));
});

test("PROD-2.6-4 an agent cannot consent on its own behalf: not by delegation, as the user or as an administrator", async () => {
  await call("PUT", "/mara-1", await page("mara"), { body: { ...wish, targets: ["booking-agent", API] } });
  const svid = await world.svid("agents/planner");
  const user = await world.idp.mintUserToken({
    sub: "mara",
    aud: ISSUER,
    scope: "trips.read trips.book consent:manage",
  });
  const trade = async (form: Record<string, string>): Promise<Answer> =>
    world.token({
      grant_type: EXCHANGE,
      subject_token: user,
      subject_token_type: JWT,
      ...world.as(svid),
      ...form,
    });
  const actor = { actor_token: svid, actor_token_type: JWT };

  // Our own tokens cannot have the audience of the users' endpoint.
  assert.equal((await trade({ ...actor, audience: AUDIENCE })).body.error, "invalid_target");
  assert.equal((await trade({ audience: AUDIENCE })).body.error, "invalid_target");

  const delegated = await trade({ ...actor, audience: API });
  assert.equal(delegated.status, 200, delegated.text);
  // A rule lets the agent get an administrator's scope by impersonation, but the token comes from an exchange.
  const impersonated = await trade({ audience: `${ISSUER}/api`, scope: "consent:manage" });
  assert.equal(impersonated.status, 200, impersonated.text);
  assert.equal(claimsOf(impersonated.body.access_token).act, undefined);

  const more = { ...wish, targets: [API], subject: { iss: IDP, sub: "mara" } };
  for (const token of [
    user,
    svid,
    String(delegated.body.access_token),
    String(impersonated.body.access_token),
  ]) {
    for (const [method, body] of [
      ["PUT", more],
      ["GET", undefined],
      ["DELETE", undefined],
    ] as const) {
      const answer = await call(method, "/mara-1", token, body === undefined ? {} : { body });
      assert.deepEqual([answer.status, answer.body.error], [401, "invalid_token"], answer.text);
    }
  }
  // Even with an administrator's token from its own credentials, the agent cannot name itself as the actor.
  const itself = await call("PUT", "/mara-2", await own("agent"), { body: more });
  assert.equal(itself.status, 403);
  const forAnother = await call("PUT", "/mara-2", await own("agent"), { body: { ...more, actor: booking } });
  assert.equal(forAnother.status, 201);
});

// --- an administrator ---------------------------------------------------------------------------------------------

test("PROD-5r4-1 an administrator manages the consents of any subject", async () => {
  const subject = { iss: IDP, sub: "nina" };
  const put = await call("PUT", "/nina-1", admin, { body: { ...wish, subject } });
  assert.equal(put.status, 201, put.text);
  assert.equal((await exchange("agents/planner", { sub: "nina" })).status, 200);
  const event = (await world.events()).findLast(({ type }) => type === "consent.recorded");
  assert.deepEqual(
    [event?.reason, (event?.client as { client_id?: string } | undefined)?.client_id],
    ["by_administrator", "desk"],
  );
  assert.equal((await call("GET", "/nina-1", await page("nina"))).status, 200);
  assert.equal((await call("DELETE", "/nina-1", admin)).status, 204);
  assert.equal((await exchange("agents/planner", { sub: "nina" })).body.error, "invalid_request");
});

test("PROD-5r4-1 an administrator names the subject, with a known issuer", async () => {
  assert.equal((await call("PUT", "/otto-1", admin, { body: wish })).status, 403);
  const unknown = { ...wish, subject: { iss: "https://idp.other", sub: "otto" } };
  assert.equal((await call("PUT", "/otto-1", admin, { body: unknown })).status, 403);
  const unprintable = { ...wish, subject: { iss: IDP, sub: "otto\0" } };
  assert.equal((await call("PUT", "/otto-1", admin, { body: unprintable })).status, 400);
});

test("PROD-5r4-1, RFC6750-3.1-3 another scope of our endpoints is insufficient", async () => {
  const form = { grant_type: "client_credentials", scope: "policy:explain" };
  const answer = await world.token(form, { authorization: basic("desk", SECRET) });
  const got = await call("GET", "", String(answer.body.access_token));
  assert.deepEqual([got.status, got.body.error], [403, "insufficient_scope"]);
});

test("AUDIT-D-6 reading the consents of others is recorded, and is paged", async () => {
  for (const id of ["pia-1", "pia-2", "pia-3"]) {
    await call("PUT", `/${id}`, await page("pia"), { body: wish });
  }
  const query = `?iss=${encodeURIComponent(IDP)}&sub=pia&limit=2`;
  const first = await call("GET", query, admin);
  const ids = (answer: Answer) => (answer.body.consents as { id: string }[]).map(({ id }) => id);
  assert.deepEqual([ids(first), first.body.next], [["pia-1", "pia-2"], "pia-2"]);
  const second = await call("GET", `${query}&after=pia-2`, admin);
  assert.deepEqual([ids(second), second.body.next], [["pia-3"], undefined]);
  const everybody = await call("GET", "", admin);
  assert.ok(ids(everybody).length > 3);
  const event = (await world.events()).findLast(
    ({ type, detail }) => type === "admin.access" && (detail as { sub?: string }).sub === "pia",
  );
  assert.deepEqual([event?.outcome, event?.reason], ["allow", "by_administrator"]);
});

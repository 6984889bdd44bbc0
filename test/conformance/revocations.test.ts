/** POST /revocations over TLS: who may end tokens, by what they have in common, and the dry run before it. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Answer, basic, postForm, send } from "../../scripts/http-client.ts";
import { stop } from "../support/stop.ts";
import {
  ACCESS_TOKEN,
  claimsOf,
  EXCHANGE,
  IDP,
  ISSUER,
  JWT,
  makeWorld,
  TRUST_DOMAIN,
  type World,
  workload,
} from "../support/world.ts";

const SECRET = "revocations-revocations-1234567890";
const HOPS = ["planner", "booking", "crew"];
const agent = (name: string): string => workload(`agents/${name}`);
const scopes = ["trips.read"];

const CONFIGURATION = {
  clients: {
    desk: { method: "client_secret_basic", secrets: [SECRET] },
    gate: { method: "client_secret_basic", secrets: [SECRET] },
  },
  targets: HOPS.map((name) => ({ names: [name], owners: [agent(name)], introspectors: ["gate"], scopes })),
  policies: [
    {
      id: "desk",
      allow: "client_credentials",
      clients: ["desk"],
      targets: [`${ISSUER}/api`],
      scopes: ["token:revoke", "policy:explain", "audit:read"],
    },
    {
      id: "hops",
      allow: "delegation",
      actors: HOPS.map(agent),
      subjects: { issuers: [IDP] },
      subjectToken: { audiences: [ISSUER, "self"] },
      consent: "record",
      targets: HOPS,
      scopes,
    },
  ],
};

let world: World;
let consent: string;
before(async () => {
  world = await makeWorld(CONFIGURATION, { clock: true });
  for (const sub of ["alice", "bob"]) {
    for (const name of HOPS) {
      for (const target of HOPS) consent = await world.consent(sub, `agents/${name}`, target, scopes);
    }
  }
});
after(() => stop(world));

const svidOf = (name: string): Promise<string> =>
  world.svid(`agents/${name}`, { expSeconds: world.passed() + 300 });

/** An exchange by this agent, of the user's token or of the given one. */
async function exchange(
  name: string,
  audience: string,
  from: { sub?: string; subject?: string } = {},
): Promise<Answer> {
  const svid = await svidOf(name);
  const seconds = Math.floor(world.nowMs() / 1000);
  const claims = { iat: seconds, exp: seconds + 600 };
  const { sub = "alice", subject } = from;
  const user = () => world.idp.mintUserToken({ sub, aud: ISSUER, scope: scopes.join(" "), claims });
  return world.token({
    grant_type: EXCHANGE,
    subject_token: subject ?? (await user()),
    subject_token_type: subject === undefined ? JWT : ACCESS_TOKEN,
    actor_token: svid,
    actor_token_type: JWT,
    audience,
    ...world.as(svid),
  });
}

const tokenOf = ({ status, body, text }: Answer): string => {
  assert.equal(status, 200, text);
  return String(body.access_token);
};
const jtiOf = (token: string): string => String(claimsOf(token).jti);

/** A token of planner for booking, and one of booking for crew that comes from it. */
async function twoHops(sub = "alice"): Promise<[first: string, second: string]> {
  const first = tokenOf(await exchange("planner", "booking", { sub }));
  return [first, tokenOf(await exchange("booking", "crew", { subject: first }))];
}

async function administrator(scope = "token:revoke"): Promise<string> {
  const form = { grant_type: "client_credentials", audience: `${ISSUER}/api`, scope };
  return tokenOf(await world.token(form, { authorization: basic("desk", SECRET) }));
}

async function order(body: unknown, token?: string): Promise<Answer> {
  return send(`${ISSUER}/revocations`, {
    method: "POST",
    ca: world.ca,
    connect: { host: "127.0.0.1", port: world.server.port },
    headers: {
      authorization: `Bearer ${token ?? (await administrator())}`,
      "content-type": "application/json",
    },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

async function isActive(token: string): Promise<boolean> {
  const { body } = await postForm(
    `${ISSUER}/introspect`,
    { token },
    {
      ca: world.ca,
      headers: { authorization: basic("gate", SECRET) },
      connect: { host: "127.0.0.1", port: world.server.port },
    },
  );
  return body.active === true;
}

type Listed = { jti: string; client_id: string; parents: string[] };

/** Everything that a dry run lists, page by page. */
async function listAll(selector: object, token: string, limit = 2): Promise<Listed[]> {
  const listed: Listed[] = [];
  for (let after: string | undefined; ; ) {
    const { status, body, text } = await order({ ...selector, dryRun: true, limit, after }, token);
    assert.equal(status, 200, text);
    const tokens = body.tokens as Listed[];
    assert.ok(tokens.length <= limit);
    listed.push(...tokens);
    if (after === undefined) assert.equal(body.count, Number(body.count));
    if (body.next === undefined) return listed;
    after = String(body.next);
  }
}

/** Past the cut-off of an earlier test, which reaches a little into the future. */
const passCutOff = (): void => world.pass(6);

// --- what is ended ------------------------------------------------------------------------------------------------

const SELECTORS: [name: string, selector: (first: string) => object][] = [
  ["its jti", (first) => ({ token: jtiOf(first) })],
  ["the subject", () => ({ subject: { iss: IDP, sub: "alice" } })],
  ["an actor", () => ({ actor: agent("booking") })],
  ["the client", () => ({ client: agent("planner") })],
  ["the rule", () => ({ rule: "hops" })],
  ["the issuer of the subject", () => ({ issuer: IDP })],
  ["the trust domain", () => ({ trustDomain: TRUST_DOMAIN })],
  ["everything", () => ({ everything: {} })],
];
for (const [name, selector] of SELECTORS) {
  test(`HTTP-D-19, RFC7009-3-1 an ending by ${name} ends exactly what its dry run lists, and descendants with it`, async () => {
    passCutOff();
    const [first, second] = await twoHops();
    const token = await administrator();
    const body = selector(first);
    const listed = await listAll(body, token);
    const jtis = listed.map(({ jti }) => jti);
    assert.equal(new Set(jtis).size, jtis.length);
    assert.ok(jtis.includes(jtiOf(second)));
    assert.deepEqual(listed.find(({ jti }) => jti === jtiOf(second))?.parents, [jtiOf(first)]);
    assert.equal(await isActive(second), true, "a dry run ends nothing");
    const ended = await order(body, token);
    assert.deepEqual([ended.status, ended.body.ended], [200, jtis.length], ended.text);
    assert.match(String(ended.body.note), /what is issued up to the cut-off; to keep a party out/);
    assert.equal(await isActive(second), false);
    assert.equal(await isActive(first), !jtis.includes(jtiOf(first)));
    const [event] = (await world.events()).filter(({ type }) => type === "token.revoked").slice(-1);
    assert.deepEqual(
      [event?.id, event?.outcome, event?.reason],
      [ended.body.event, "allow", "by_administrator"],
    );
    const authorization = await order({ ...body, dryRun: true }, token);
    const isOwn = name === "everything";
    assert.equal(
      authorization.status,
      isOwn ? 401 : 200,
      "everything includes the administrator's own token",
    );
    if (!isOwn) assert.deepEqual([authorization.body.count, authorization.body.tokens], [0, []]);
  });
}

test("RFC7009-3-1 an ending by consent ends what was issued under it", async () => {
  passCutOff();
  const other = tokenOf(await exchange("planner", "booking", { sub: "bob" }));
  const subject = tokenOf(await exchange("booking", "crew", { subject: other }));
  const under = tokenOf(await exchange("crew", "crew", { subject }));
  const listed = await listAll({ consent }, await administrator());
  assert.deepEqual(
    listed.map(({ jti }) => jti),
    [jtiOf(under)],
  );
  const ended = await order({ consent });
  assert.equal(ended.body.ended, 1, ended.text);
  assert.deepEqual([await isActive(subject), await isActive(under)], [true, false]);
});

test("POLICY-D-1 an ending ends what exists, and does not keep a party out", async () => {
  passCutOff();
  const { body } = await order({ subject: { iss: IDP, sub: "alice" } });
  assert.equal(
    (await exchange("planner", "booking")).status,
    400,
    "until the cut-off, which is in the future",
  );
  assert.ok(Number(body.cut_off_ms) > world.nowMs());
  passCutOff();
  assert.equal(await isActive(tokenOf(await exchange("planner", "booking"))), true);
});

test("POLICY-D-20 a subject that is disabled is kept out until it is enabled, and what it had stays ended", async () => {
  passCutOff();
  const subject = { iss: IDP, sub: "alice" };
  const [first, second] = await twoHops();
  const others = tokenOf(await exchange("planner", "booking", { sub: "bob" }));
  const token = await administrator();
  const previewed = await order({ subject, disabled: true, dryRun: true }, token);
  assert.ok(Number(previewed.body.count) >= 2, previewed.text);
  assert.equal(await isActive(second), true);
  const disabled = await order({ subject, disabled: true }, token);
  assert.deepEqual([disabled.status, disabled.body.ended], [200, previewed.body.count], disabled.text);
  assert.deepEqual([disabled.body.families, disabled.body.sessions], [0, 0]);
  assert.deepEqual(
    [disabled.body.cut_off_ms, disabled.body.accepted_until],
    [undefined, Math.max(...[first, second].map((one) => Number(claimsOf(one).exp)))],
  );
  assert.deepEqual(
    [await isActive(first), await isActive(second), await isActive(others)],
    [false, false, true],
  );
  // A token of ours that an agent holds, and tokens of the user's provider.
  for (const [seconds, reason, ask] of [
    [0, "subject_token_revoked", () => exchange("booking", "crew", { subject: first })],
    ...[0, 6, 3600].map(
      (later) => [later, "subject_disabled", () => exchange("planner", "booking")] as const,
    ),
  ] as const) {
    world.pass(seconds);
    assert.equal((await ask()).status, 400);
    const denied = (await world.events()).findLast(({ type }) => type === "token_exchange.denied");
    assert.equal(denied?.reason, reason);
  }
  assert.equal((await exchange("planner", "booking", { sub: "bob" })).status, 200);
  const asked = await order({ subject, disabled: false, dryRun: true });
  assert.deepEqual(asked.body, { dry_run: true, disabled: true });
  const enabled = await order({ subject, disabled: false });
  assert.equal(enabled.body.enabled, true, enabled.text);
  world.pass(2);
  assert.equal((await exchange("planner", "booking")).status, 200);
  assert.equal(await isActive(second), false);
  assert.equal((await order({ subject, disabled: false })).body.enabled, false);
  const events = (await world.events()).filter(({ type }) => type.startsWith("subject."));
  assert.deepEqual(
    events.map(({ type, reason, id }) => [type, reason, id]),
    [
      ["subject.disabled", "by_administrator", disabled.body.event],
      ["subject.enabled", "by_administrator", enabled.body.event],
    ],
  );
});

for (const body of [
  { client: "c", disabled: true },
  { subject: { iss: IDP, sub: "alice", upTo: 5 }, disabled: true },
  { disabled: true },
  { subject: { iss: IDP, sub: "alice" }, disabled: "yes" },
]) {
  test(`POLICY-D-20 the order ${JSON.stringify(body)} is refused`, async () => {
    assert.equal((await order(body)).status, 400);
  });
}

test("everything up to a time leaves what was issued after it", async () => {
  passCutOff();
  const early = tokenOf(await exchange("planner", "booking"));
  const upTo = Math.floor(world.nowMs() / 1000) + 1;
  world.pass(3);
  const late = tokenOf(await exchange("planner", "booking"));
  const { status, body } = await order({ everything: { upTo } });
  assert.deepEqual([status, body.cut_off_ms], [200, upTo * 1000]);
  assert.deepEqual([await isActive(early), await isActive(late)], [false, true]);
});

test("RFC7009-2.2-1, RFC7662-4-4 an expired token is neither active nor ended again", async () => {
  passCutOff();
  const token = tokenOf(await exchange("planner", "booking"));
  const { exp } = claimsOf(token);
  world.pass(Number(exp) - Math.floor(world.nowMs() / 1000));
  const svid = await svidOf("planner");
  const answer = await postForm(
    `${ISSUER}/revoke`,
    { token, ...world.as(svid) },
    { ca: world.ca, connect: { host: "127.0.0.1", port: world.server.port } },
  );
  assert.deepEqual([answer.status, answer.text], [200, "{}"]);
  const denied = (await world.events()).filter(({ type }) => type === "token.revocation_denied");
  const { reason, detail } = denied.at(-1) ?? assert.fail();
  assert.deepEqual([reason, detail], ["jwt_expired", { jti: jtiOf(token) }]);
});

test("PROD-6.3-3 an ending is found by what it ends", async () => {
  passCutOff();
  const [first] = await twoHops();
  for (const body of [{ token: jtiOf(first) }, { actor: agent("booking") }, { rule: "hops" }])
    await order(body);
  await order({ subject: { iss: IDP, sub: "alice" } });
  passCutOff();
  const reader = await administrator("audit:read");
  for (const [query, by] of [
    [`jti=${jtiOf(first)}`, "token"],
    [`actor=${encodeURIComponent(agent("booking"))}`, "actor"],
    ["rule=hops", "rule"],
    [`iss=${encodeURIComponent(IDP)}&sub=alice`, "subject"],
  ] as const) {
    const found = await world.get(`/audit/events?type=token.revoked&${query}`, {
      headers: { authorization: `Bearer ${reader}` },
    });
    const events = found.body.events as { detail: { ends: { by: string } } }[];
    assert.ok(events.length > 0, query);
    for (const { detail } of events) assert.equal(detail.ends.by, by, query);
  }
});

// --- who may ------------------------------------------------------------------------------------------------------

test("PROD-5r4-1, RFC6750-3.1-3 an order needs an access token of ours with the scope token:revoke", async () => {
  passCutOff();
  const [first] = await twoHops();
  const little = await order({ token: jtiOf(first) }, await administrator("policy:explain"));
  assert.deepEqual([little.status, little.body.error], [403, "insufficient_scope"]);
  const wrong = await order({ token: jtiOf(first) }, first);
  assert.deepEqual([wrong.status, wrong.body.error], [401, "invalid_token"]);
  assert.equal(await isActive(first), true);
});

test("AUDIT-D-2, AUDIT-D-6 a dry run and a malformed order are recorded, with the caller and what they are about", async () => {
  const token = await administrator();
  await order({ rule: "hops", dryRun: true }, token);
  await order({ rule: 7 }, token);
  const events = (await world.events()).filter(({ type }) => type === "admin.access").slice(-2);
  assert.deepEqual(
    events.map(({ outcome, reason }) => [outcome, reason]),
    [
      ["allow", "revocation_previewed"],
      ["deny", "revocation_malformed"],
    ],
  );
  const [shown] = events.map(({ detail }) => detail as { ends: object });
  assert.deepEqual(shown?.ends, { by: "rule", id: "hops" });
  for (const { client } of events) assert.equal((client as { client_id: string }).client_id, "desk");
});

test("HTTP-D-18 a malformed order ends nothing", async () => {
  const token = await administrator();
  const before = (await world.events()).filter(({ type }) => type === "token.revoked").length;
  const wrong: unknown[] = [
    {},
    [],
    "null",
    "{",
    { token: "a", client: "b" },
    { token: "" },
    { token: null },
    { token: "a", since: 5 },
    { subject: "alice" },
    { subject: { sub: "alice" } },
    { actor: "planner" },
    { actor: `spiffe://${TRUST_DOMAIN}` },
    { actor: `spiffe://${TRUST_DOMAIN}/agents/*` },
    { trustDomain: `spiffe://${TRUST_DOMAIN}` },
    { everything: true },
    { everything: { upTo: "now" } },
    { everything: { upTo: 1.5 } },
    { everything: { upTo: Date.now() } },
    { everything: { upTo: 1.7e308 } },
    { token: "a\0b" },
    { rule: "hops", dryRun: true, after: "\0" },
    { rule: "hops", dryRun: "yes" },
    { rule: "hops", dryRun: true, limit: 0 },
    { rule: "hops", dryRun: true, limit: 1_001 },
    { client: "x".repeat(2_049) },
  ];
  for (const body of wrong) {
    const { status, body: told } = await order(body, token);
    assert.deepEqual([status, told.error], [400, "invalid_request"], JSON.stringify(body));
  }
  assert.equal((await world.events()).filter(({ type }) => type === "token.revoked").length, before);
});

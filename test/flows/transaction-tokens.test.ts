/**
 * Transaction tokens: who gets one of what, what stands in it, and that nothing else takes it. The service runs in this
 * process; at its end every decision of the trail is decided again.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Answer, basic } from "../../scripts/http-client.ts";
import { DRAFT as ID_JAG_DRAFT } from "../../src/spec/id-jag.ts";
import { DRAFT as CHAINING_DRAFT } from "../../src/spec/identity-chaining.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { DRAFT } from "../../src/spec/transaction-tokens.ts";
import { makeService } from "../support/service.ts";
import { stop } from "../support/stop.ts";
import {
  ACCESS_TOKEN,
  claimsOf,
  type Event,
  EXCHANGE,
  type Form,
  IDP,
  ISSUER,
  JWT,
  workload,
} from "../support/world.ts";

const URN = "urn:ietf:params:oauth:token-type:";
const TXN = `${URN}txn_token`;
const ID_TOKEN = `${URN}id_token`;
const API = "https://api.example";
const PARTNER = "https://as.partner.example";
const SECRET = "the-secret-of-all-clients-12345678";
const SCOPES = ["stocks", "orders", "orders.write"];

const forUsers = {
  subjects: { issuers: [IDP] },
  subjectToken: { audiences: ["self"] },
  ...{ consent: "implied", acknowledge: "subjects-not-asked" },
};
const inside = { allow: "transaction", issues: "transaction", ...forUsers, targets: ["td.example"] };

const LISTS = ["via", "also", "more", "last"];
const CONFIGURATION = {
  clients: {
    auditor: { method: "client_secret_basic", secrets: [SECRET] },
    plain: { method: "client_secret_basic", secrets: [SECRET] },
    mover: {
      method: "client_secret_basic",
      secrets: [SECRET],
      workload: workload("mover"),
      actorAccessToken: true,
    },
  },
  targets: [
    {
      names: [API],
      owners: [workload("gateway"), workload("deep"), workload("far"), workload("quiet")],
      scopes: SCOPES,
    },
    { kind: "partner", issuer: PARTNER, scopes: SCOPES },
    {
      kind: "transaction",
      names: ["td.example"],
      owners: [
        workload("gateway"),
        workload("inner/*"),
        workload("mover"),
        workload("quiet"),
        workload("wide"),
        workload("foreign"),
      ],
      purposes: {
        "trade.stocks": ["stocks", "orders.write"],
        "look.stocks": ["stocks"],
        "look.orders": ["orders"],
      },
      rctx: {
        req_ip: { is: "string", chars: 40 },
        tries: { is: "integer" },
        ...Object.fromEntries(LISTS.map((name) => [name, { is: "strings", chars: 8 }])),
      },
      tctx: {
        acr: { from: "computed", value: "acr", optional: true },
        region: { from: "token", claim: "region", optional: true },
        ticker: { from: "witness", workloads: [workload("gateway")], is: "string", chars: 5, optional: true },
        quantity: { from: "witness", workloads: [workload("gateway")], is: "integer", optional: true },
        legs: { from: "witness", workloads: [workload("gateway")], is: "strings", optional: true },
        checked: { from: "witness", workloads: [workload("inner/*")], is: "boolean", optional: true },
      },
    },
    {
      kind: "transaction",
      names: ["open.example"],
      owners: [workload("gateway"), workload("deep")],
      purposes: { "look.stocks": ["stocks"] },
      tctx: { region: { from: "token", claim: "region" } },
      chain: "all",
    },
    {
      kind: "transaction",
      names: ["near.example"],
      owners: [workload("gateway"), workload("deep")],
      purposes: { "look.stocks": ["stocks"] },
      chain: "current",
    },
  ],
  policies: [
    {
      ...{ id: "to-api", allow: "delegation", actors: [workload("agent"), workload("gateway")], ...forUsers },
      ...{ subjectToken: { audiences: [ISSUER, "self"] }, targets: [API], scopes: SCOPES },
    },
    {
      id: "gateway",
      ...inside,
      actors: [workload("gateway")],
      scopes: ["trade.stocks", "look.stocks"],
      replacements: 2,
    },
    {
      id: "inner",
      ...inside,
      actors: [workload("inner/*")],
      scopes: ["trade.stocks", "look.stocks"],
      replacements: 2,
    },
    { id: "far", ...inside, actors: [workload("far")], scopes: ["look.stocks"] },
    {
      ...{ id: "wide", ...inside, actors: [workload("wide")], scopes: ["look.stocks"] },
      subjectToken: { scopes: ["stocks"] },
    },
    {
      ...{ id: "open", ...inside, actors: [workload("gateway"), workload("deep")], scopes: ["look.stocks"] },
      ...{
        subjectToken: { audiences: [ISSUER, "self"] },
        targets: ["open.example", "near.example"],
        replacements: 1,
      },
    },
    {
      ...{ id: "foreign", ...inside, actors: [workload("foreign")], scopes: ["trade.stocks", "look.stocks"] },
      subjectToken: { audiences: [ISSUER] },
    },
    {
      ...{ id: "unseen", allow: "impersonation", actors: [workload("unseen")], ...forUsers },
      ...{ subjectToken: { audiences: [ISSUER] }, targets: [API], scopes: SCOPES },
    },
    {
      ...{
        id: "abroad",
        allow: "impersonation",
        issues: "grant",
        actors: [workload("inner/*")],
        ...forUsers,
      },
      ...{ targets: [PARTNER], scopes: SCOPES, idJagSubjects: ["jwt", "access_token"] },
    },
    {
      ...{ id: "back", allow: "impersonation", actors: [workload("inner/*")], ...forUsers },
      ...{ targets: [API], scopes: [...SCOPES, "look.stocks"], subjectToken: { scopes: ["look.stocks"] } },
    },
    {
      ...{ id: "auditor", allow: "client_credentials", clients: ["auditor"], targets: [`${ISSUER}/api`] },
      scopes: ["policy:explain", "audit:read", "token:revoke"],
    },
  ],
  drafts: [SPIFFE_DRAFT, CHAINING_DRAFT, ID_JAG_DRAFT, DRAFT],
};

let world: Awaited<ReturnType<typeof makeService>>;
let auditor: string;

before(async () => {
  world = await makeService(CONFIGURATION, { idp: { scopes: [], grants: {} } });
  const wish = { grant_type: "client_credentials" };
  const answer = await world.token(wish, { authorization: basic("auditor", SECRET) });
  auditor = `Bearer ${answer.body.access_token}`;
});

after(() => stop(world));

// --- what a test asks ---------------------------------------------------------------------------------------------

type Brought = { subject_token: string; subject_token_type: string };

/** The agent's token for the API, which the user let it have. */
async function incoming(
  scope = SCOPES.join(" "),
  form: Form = {},
  claims: { [name: string]: unknown } = {},
): Promise<Brought> {
  const user = await world.idp.mintUserToken({ sub: "u-1", aud: ISSUER, scope, claims });
  const svid = await world.svid("agent");
  const answer = await world.token({
    ...{ grant_type: EXCHANGE, audience: API, subject_token: user, subject_token_type: JWT },
    ...{ actor_token: svid, actor_token_type: JWT, ...world.as(svid), ...form },
  });
  return { subject_token: tokenOf(answer), subject_token_type: ACCESS_TOKEN };
}

function tokenOf(answer: Answer): string {
  assert.equal(answer.status, 200, answer.text);
  return String(answer.body.access_token);
}

/** A request for a transaction token, by the gateway unless told otherwise. */
async function request(brought: Form, form: Form = {}, by = "gateway"): Promise<Answer> {
  return world.token({
    ...{ grant_type: EXCHANGE, requested_token_type: TXN, audience: "td.example", scope: "look.stocks" },
    ...world.as(await world.svid(by)),
    ...brought,
    ...form,
  });
}

const replacing = (token: string): Brought => ({ subject_token: token, subject_token_type: TXN });

const eventOf = async ({ headers }: Answer): Promise<Event> => {
  const isIt = ({ request }: Event) =>
    (request as { id?: string } | undefined)?.id === headers["x-request-id"];
  return (await world.events()).find(isIt) ?? assert.fail("there is no event");
};

async function assertRefused(answer: Answer, reason: string, error = "invalid_request"): Promise<void> {
  const event = await eventOf(answer);
  assert.deepEqual([answer.status, answer.body.error, event.reason], [400, error, reason], answer.text);
  assert.equal(answer.body.access_token, undefined);
}

const headerOf = (token: string) =>
  JSON.parse(Buffer.from(token.split(".")[0] ?? "", "base64url").toString());

// --- what one has -------------------------------------------------------------------------------------------------

/** What the gateway gets for the agent's token, with its header and claims. */
async function issued() {
  const brought = await incoming();
  const answer = await request(brought, {
    scope: "trade.stocks look.stocks",
    request_context: '{"req_ip":"192.0.2.7","tries":3,"via":["a","b"]}',
    request_details: '{"ticker":"ACME","quantity":100}',
  });
  const token = tokenOf(answer);
  return { brought, answer, header: headerOf(token), claims: claimsOf(token) };
}

test("TXN-9.1-1, TXN-9.1-2, TXN-5.1-1, TXN-11.4-1, TXN-11.4-2 the gateway gets a token of its own type, and an answer that says so", async () => {
  const { answer, header } = await issued();
  const { alg, kid, typ, ...more } = header;
  assert.deepEqual([alg, typ, typeof kid, more], ["ES256", "txntoken+jwt", "string", {}]);
  const { access_token: _, ...rest } = answer.body;
  assert.deepEqual(rest, {
    token_type: "N_A",
    issued_token_type: TXN,
    expires_in: 60,
    scope: "trade.stocks look.stocks",
  });
});

test("TXN-9.2-1, TXN-9.2-2, TXN-9.2-4, TXN-9.2-7, TXN-9.2-9, TXN-13.16-1 it has these claims and no others", async () => {
  const { iat, exp, jti, txn, rctx: _, tctx: __, ...claims } = (await issued()).claims;
  assert.deepEqual(claims, {
    ...{ iss: ISSUER, aud: "td.example", sub: "u-1", scope: "trade.stocks look.stocks" },
    req_wl: workload("gateway"),
  });
  assert.deepEqual([Number(exp) - Number(iat), txn], [60, `txn_${jti}`]);
});

test("TXN-9.2-6, TXN-9.2.2-1, TXN-9.2.3-1, TXN-11.1-2, TXN-11.3-7, TXN-11.3-8 what the gateway claims and what it witnessed stand apart", async () => {
  const { rctx, tctx } = (await issued()).claims;
  assert.deepEqual(rctx, { req_ip: "192.0.2.7", tries: 3, via: ["a", "b"] });
  assert.deepEqual(tctx, { ticker: "ACME", quantity: 100 });
  const bare = claimsOf(tokenOf(await request(await incoming())));
  assert.deepEqual([bare.rctx, bare.tctx], [{}, {}]);
});

test("TXN-11.1-3, TXN-11.3-2, TXN-13.4-1 it is made of a verified token, which it does not hold", async () => {
  const { brought, claims } = await issued();
  const [, payload = "", signature = ""] = brought.subject_token.split(".");
  for (const part of [payload, signature]) assert.ok(!JSON.stringify(claims).includes(part));
  const forged = { ...brought, subject_token: brought.subject_token.replace(/.{9}$/, "AAAAAAAAA") };
  await assertRefused(await request(forged), "subject_signature_invalid");
});

test("TXN-D-6, TXN-D-14, TXN-15.1-1, TXN-15.2-1 the trail has the chain, the transaction and the names of what is stated, and neither values nor tokens", async () => {
  const brought = await incoming();
  const answer = await request(brought, {
    request_context: '{"req_ip":"192.0.2.77","X-Forwarded-For":"203.0.113.9","__proto__":"x"}',
    request_details: '{"ticker":"SECRT"}',
  });
  const { act, rctx, jti, txn } = claimsOf(tokenOf(answer));
  assert.deepEqual([act, rctx], [undefined, { req_ip: "192.0.2.77" }]);
  const event = await eventOf(answer);
  assert.deepEqual([event.type, event.mode], ["token_exchange.transaction", "transaction"]);
  assert.deepEqual(event.chain, [{ iss: ISSUER, sub: workload("agent") }]);
  const { granted } = event as Event & { granted: Record<string, unknown> };
  assert.deepEqual(granted.context, {
    claimed: ["req_ip"],
    dropped: ["X-Forwarded-For", "__proto__"],
    verified: ["ticker"],
  });
  assert.deepEqual([granted.txn, granted.act_depth], [txn, 1]);
  const text = JSON.stringify(event);
  for (const secret of ["192.0.2.77", "203.0.113.9", "SECRT", tokenOf(answer), brought.subject_token]) {
    assert.ok(!text.includes(secret), secret);
  }
  const found = await world.get(`/audit/events?txn=${txn}`, { headers: { authorization: auditor } });
  const events = found.body.events as { granted?: { jti: string } }[];
  assert.deepEqual(
    events.map(({ granted }) => granted?.jti),
    [jti],
  );
});

for (const [name, audience, act] of [
  ["shows the whole chain", "open.example", { sub: workload("gateway"), act: { sub: workload("agent") } }],
  ["shows the current actor", "near.example", { sub: workload("gateway") }],
] as const) {
  test(`TXN-D-6 a trust domain with that setting ${name}`, async () => {
    const svid = await world.svid("gateway");
    const twice = await world.token({
      ...{ grant_type: EXCHANGE, audience: API, ...(await incoming()), ...world.as(svid) },
      ...{ actor_token: svid, actor_token_type: JWT },
    });
    const user = await world.idp.mintUserToken({
      sub: "u-1",
      aud: ISSUER,
      scope: "stocks",
      claims: { region: "EU" },
    });
    const alone = await request(
      { subject_token: user, subject_token_type: JWT },
      { audience: "open.example" },
      "deep",
    );
    const { tctx, act: none } = claimsOf(tokenOf(alone));
    assert.deepEqual([tctx, none], [{ region: "EU" }, undefined]);
    const brought = { subject_token: tokenOf(twice), subject_token_type: ACCESS_TOKEN };
    if (audience === "open.example") {
      // TXN-D-9: a token of ours has no such claim, and the domain wants it in each.
      await assertRefused(await request(brought, { audience }, "deep"), "transaction_fact_missing");
      return;
    }
    assert.deepEqual(claimsOf(tokenOf(await request(brought, { audience }, "deep"))).act, act);
  });
}

// --- who gets one, of what ----------------------------------------------------------------------------------------

const RTC = "request_context";
const refused: [name: string, form: Form, reason: string, error?: string | undefined, by?: string][] = [
  ["TXN-11.1-1, TXN-11.3-3 without audience", { audience: "" }, "transaction_audience"],
  ["TXN-11.1-1 with two audiences", { audience: ["td.example", "open.example"] }, "transaction_audience"],
  ["TXN-D-1 for an unknown domain", { audience: "other.example" }, "target_unknown", "invalid_target"],
  ["TXN-D-1 for an API", { audience: API }, "token_type_not_for_target"],
  ["TXN-D-1, TXN-14-1 for a partner", { audience: PARTNER }, "token_type_not_for_target"],
  ["TXN-D-1 of a workload of another domain", {}, "workload_not_in_domain", "invalid_target", "far"],
  ["TXN-D-2, TXN-11.3-1, TXN-13.10-1 of a workload without rule", {}, "no_rule", undefined, "quiet"],
  ["TXN-5.1-2 without scope", { scope: "" }, "transaction_scope_missing"],
  [
    "TXN-D-4, TXN-13.6-1 with a purpose that no one has",
    { scope: "look.all" },
    "purpose_not_allowed",
    "invalid_scope",
  ],
  [
    "TXN-D-4 with a purpose beside the rule's",
    { scope: "look.stocks look.orders" },
    "purpose_not_allowed",
    "invalid_scope",
  ],
  ["TXN-D-4 with an external scope as purpose", { scope: "stocks" }, "purpose_not_allowed", "invalid_scope"],
  [
    "TXN-13.3-1, TXN-11.2-1 of a refresh token",
    { subject_token_type: `${URN}refresh_token` },
    "subject_token_type_unsupported",
  ],
  [
    "TXN-D-11, TXN-11.2.1-1 self-signed",
    { subject_token_type: `${URN}self_signed` },
    "subject_token_type_unsupported",
  ],
  [
    "TXN-D-11, TXN-11.2.2-1 of unsigned JSON",
    { subject_token_type: `${URN}unsigned_json`, subject_token: '{"sub":"u-1"}' },
    "subject_token_type_unsupported",
  ],
  ["TXN-D-7 with an actor token", { actor_token: "x", actor_token_type: JWT }, "transaction_with_actor"],
  ["TXN-D-8 with a context that is no object", { [RTC]: '["req_ip"]' }, "request_context_malformed"],
  ["TXN-D-8 with a context that is a text", { [RTC]: '"req_ip"' }, "request_context_malformed"],
  ["TXN-D-8 with a context that is null", { [RTC]: "null" }, "request_context_malformed"],
  ["TXN-D-8 with a context that is no JSON", { [RTC]: "{req_ip:1}" }, "request_context_malformed"],
  ["TXN-D-8 with a name twice", { [RTC]: '{"req_ip":"a","req_ip":"b"}' }, "request_context_malformed"],
  ["TXN-D-8 with a name twice by escapes", { [RTC]: '{"a":"a","\\u0061":"b"}' }, "request_context_malformed"],
  ["TXN-D-8 with an object in it", { [RTC]: '{"req_ip":{"v4":"x"}}' }, "request_context_malformed"],
  ["TXN-D-8 with lists in lists", { [RTC]: '{"via":[["a"]]}' }, "request_context_malformed"],
  [
    "TXN-D-8 nested a thousand times",
    { [RTC]: `{"a":${"[".repeat(1000)}${"]".repeat(1000)}}` },
    "request_context_malformed",
  ],
  ["TXN-D-8 too long", { [RTC]: `{"a":"${"x".repeat(2048)}"}` }, "request_context_too_large"],
  [
    "TXN-D-8 with seventeen members",
    { [RTC]: JSON.stringify(Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`m${at}`, 1]))) },
    "request_context_too_large",
  ],
  ["TXN-D-8 with a fraction", { [RTC]: '{"tries":1.5}' }, "request_context_malformed"],
  ["TXN-D-8 with an exponent", { [RTC]: '{"tries":1e3}' }, "request_context_malformed"],
  ["TXN-D-8 with minus zero", { [RTC]: '{"tries":-0}' }, "request_context_malformed"],
  [
    "TXN-D-8 with a number beyond doubles",
    { [RTC]: '{"tries":9007199254740993}' },
    "request_context_malformed",
  ],
  [
    "TXN-D-8 with a number without end",
    { [RTC]: `{"tries":${"9".repeat(400)}}` },
    "request_context_malformed",
  ],
  ["TXN-D-8 with a lone surrogate", { [RTC]: '{"req_ip":"\\ud800"}' }, "request_context_malformed"],
  ["TXN-D-8 with another type of member", { [RTC]: '{"req_ip":7}' }, "request_context_refused"],
  [
    "TXN-D-8 with a text that is too long",
    { [RTC]: `{"req_ip":"${"1".repeat(41)}"}` },
    "request_context_refused",
  ],
  [
    "TXN-D-8 with a list with a text too long",
    { [RTC]: '{"via":["a","123456789"]}' },
    "request_context_refused",
  ],
  [
    "TXN-D-10 with a requester of its own",
    { request_details: '{"requesters":["x"]}' },
    "request_details_malformed",
  ],
  [
    "TXN-D-9 with an unknown fact",
    { request_details: '{"txn":"txn_forged"}' },
    "transaction_fact_unverified",
  ],
  [
    "TXN-D-9 with a fact of another source",
    { request_details: '{"acr":"gold"}' },
    "transaction_fact_unverified",
  ],
  [
    "TXN-D-9 with a fact of another witness",
    { request_details: '{"checked":true}' },
    "transaction_fact_unverified",
  ],
  ["TXN-D-9 with a look-alike name", { request_details: '{"tickеr":"ACME"}' }, "transaction_fact_unverified"],
  [
    "TXN-D-9 with a fact of another type",
    { request_details: '{"quantity":"100"}' },
    "transaction_fact_unverified",
  ],
  [
    "TXN-D-9 with a text that is too long",
    { request_details: '{"ticker":"ACMEAB"}' },
    "transaction_fact_unverified",
  ],
  [
    "TXN-D-9 with a name that objects inherit",
    { request_details: '{"constructor":"x"}' },
    "transaction_fact_unverified",
  ],
  [
    "TXN-D-9 with details too long",
    { request_details: `{"a":"${"x".repeat(2048)}"}` },
    "request_details_too_large",
  ],
];
for (const [name, form, reason, error, by] of refused) {
  test(`TXN-11.4-3, ${name} is refused`, async () => {
    await assertRefused(await request(await incoming(), form, by), reason, error);
  });
}

test("TXN-D-13 a token that would not fit into a header field is refused", async () => {
  const wide = Array.from({ length: 40 }, (_, at) => `${at}`.padEnd(8, "x"));
  const legs = JSON.stringify({ legs: wide });
  tokenOf(await request(await incoming(), { request_details: legs }));
  const lists = JSON.stringify({ via: wide, also: wide, more: wide, last: wide });
  await assertRefused(
    await request(await incoming(), { request_context: lists, request_details: legs }),
    "token_too_large",
  );
});

test("TXN-D-3 a token that was meant for another workload is refused, whatever scopes the rule takes", async () => {
  const user = await world.idp.mintUserToken({ sub: "u-1", aud: "https://other.example", scope: "stocks" });
  await assertRefused(
    await request({ subject_token: user, subject_token_type: JWT }, {}, "wide"),
    "subject_jwt_audience_refused",
  );
  // Of no earlier actor, so that nothing else refuses it.
  const alone = await world.idp.mintUserToken({ sub: "u-1", aud: ISSUER, scope: "stocks" });
  const plain = await world.token({
    ...{ grant_type: EXCHANGE, audience: API, subject_token: alone, subject_token_type: JWT },
    ...world.as(await world.svid("unseen")),
  });
  const brought = { subject_token: tokenOf(plain), subject_token_type: ACCESS_TOKEN };
  await assertRefused(await request(brought, {}, "wide"), "subject_token_does_not_permit");
  tokenOf(await request(brought));
});

for (const [name, scope, reason] of [
  ["TXN-13.6-1, TXN-D-4 with one of two scopes that the purpose needs", "stocks", "purpose_not_allowed"],
  ["TXN-13.14-1 of unknown scope", undefined, "purpose_not_allowed"],
] as const) {
  test(`${name} a subject token gives no such purpose: refused`, async () => {
    const claims = { scope };
    const user = await world.idp.mintUserToken({ sub: "u-1", aud: ISSUER, claims });
    const brought = { subject_token: user, subject_token_type: JWT };
    const form = { scope: "look.stocks trade.stocks" };
    await assertRefused(await request(brought, form, "foreign"), reason, "invalid_scope");
  });
}

test("TXN-9.2-5, TXN-11.3-6 each purpose is judged by the scopes that it needs", async () => {
  const of = async (scope: string) => {
    const user = await world.idp.mintUserToken({ sub: "u-1", aud: ISSUER, scope });
    return { subject_token: user, subject_token_type: JWT };
  };
  const look = await request(await of("stocks orders"), {}, "foreign");
  assert.equal(claimsOf(tokenOf(look)).scope, "look.stocks");
  const trade = await request(await of("orders.write stocks"), { scope: "trade.stocks" }, "foreign");
  assert.equal(claimsOf(tokenOf(trade)).scope, "trade.stocks");
});

test("TXN-6-1, TXN-6-3, TXN-11.3-4, TXN-13.1-1, TXN-D-5 it ends in a minute, with its subject token before that, and is refused where that has five seconds left", async () => {
  const of = async (expSeconds: number) => {
    const user = await world.idp.mintUserToken({ sub: "u-1", aud: ISSUER, scope: "stocks", expSeconds });
    return request({ subject_token: user, subject_token_type: JWT }, {}, "foreign");
  };
  assert.equal((await of(200)).body.expires_in, 60);
  assert.ok(Number((await of(30)).body.expires_in) <= 30);
  await assertRefused(await of(4), "subject_token_expires_too_soon");
  await assertRefused(await of(-60), "subject_jwt_expired");
});

// --- replaced -----------------------------------------------------------------------------------------------------

test("TXN-13.15-1, TXN-13.15-2, TXN-13.15-3, TXN-D-10 a replacement keeps transaction, subject, context and facts, has fewer purposes, ends no later and tells its requesters", async () => {
  const brought = await incoming();
  const first = tokenOf(
    await request(brought, {
      ...{ scope: "trade.stocks look.stocks", request_context: '{"req_ip":"192.0.2.7"}' },
      request_details: '{"ticker":"ACME"}',
    }),
  );
  const second = tokenOf(await request(replacing(first), { request_details: '{"checked":true}' }, "inner/a"));
  const [one, two] = [claimsOf(first), claimsOf(second)];
  assert.deepEqual(two, {
    ...one,
    ...{ iat: two.iat, exp: two.exp, jti: two.jti, scope: "look.stocks", req_wl: workload("inner/a") },
    tctx: { ticker: "ACME", checked: true, requesters: [workload("gateway")] },
  });
  assert.ok(Number(two.exp) <= Number(one.exp) && two.jti !== one.jti);
  const answer = await request(replacing(second), {}, "inner/b");
  const three = claimsOf(tokenOf(answer));
  assert.deepEqual(three.tctx, {
    ...{ ticker: "ACME", checked: true, requesters: [workload("gateway"), workload("inner/a")] },
  });
  assert.deepEqual([three.txn, three.exp], [one.txn, one.exp]);
  const { subject, chain, granted } = (await eventOf(answer)) as Event & {
    subject: { token: { txn: string } };
  };
  assert.deepEqual([subject.token.txn, chain], [one.txn, [{ iss: ISSUER, sub: workload("agent") }]]);
  assert.deepEqual(granted?.parent_jti.slice(0, 2), [two.jti, one.jti]);
  await assertRefused(
    await request(replacing(tokenOf(answer)), {}, "inner/c"),
    "subject_token_does_not_permit",
  );
});

const unreplaced: [name: string, form: Form, reason: string, error?: string | undefined, by?: string][] = [
  ["with a purpose that it has not", { scope: "trade.stocks" }, "purpose_not_allowed", "invalid_scope"],
  ["with another context", { request_context: '{"req_ip":"192.0.2.8"}' }, "transaction_fact_stands"],
  [
    "with another fact",
    { request_details: '{"ticker":"OTHER"}' },
    "transaction_fact_stands",
    undefined,
    "gateway",
  ],
  ["for another domain", { audience: "open.example" }, "transaction_of_another_domain", undefined, "gateway"],
  ["by a workload of another domain", {}, "not_meant_for_caller", undefined, "deep"],
  ["by a rule that lets none be replaced", {}, "subject_token_does_not_permit", undefined, "wide"],
  ["as an access token", { subject_token_type: ACCESS_TOKEN }, "subject_jwt_type_refused"],
  ["as a JWT", { subject_token_type: JWT }, "subject_jwt_type_refused"],
  ["as an ID token", { subject_token_type: ID_TOKEN }, "subject_issuer_unknown"],
];
for (const [name, form, reason, error, by = "inner/a"] of unreplaced) {
  test(`TXN-13.15-1, TXN-D-10 a replacement ${name} is refused`, async () => {
    const first = tokenOf(await request(await incoming(), { request_details: '{"ticker":"ACME"}' }));
    await assertRefused(await request(replacing(first), form, by), reason, error);
  });
}

test("TXN-11.3-5, TXN-13.2-1 forged, cut and foreign transaction tokens are refused, and each transaction has a name of its own", async () => {
  const brought = await incoming();
  const [one, other] = [tokenOf(await request(brought)), tokenOf(await request(brought))];
  assert.notEqual(claimsOf(one).txn, claimsOf(other).txn);
  const [header = "", payload = "", signature = ""] = one.split(".");
  const encoded = (claims: object) => Buffer.from(JSON.stringify(claims)).toString("base64url");
  for (const [token, reason] of [
    [
      `${header}.${encoded({ ...claimsOf(one), txn: claimsOf(other).txn })}.${signature}`,
      "subject_signature_invalid",
    ],
    [`${header}.${payload}.${other.split(".")[2]}`, "subject_signature_invalid"],
    [`${encoded({ ...headerOf(one), typ: "at+jwt" })}.${payload}.${signature}`, "subject_jwt_type_refused"],
    [brought.subject_token, "subject_jwt_type_refused"],
    [
      await world.idp.mintUserToken({
        ...{ sub: "u-1", aud: "td.example", scope: "look.stocks", header: { typ: "txntoken+jwt" } },
        claims: { txn: claimsOf(one).txn, req_wl: workload("gateway"), rctx: {}, tctx: {} },
      }),
      "subject_issuer_not_ours",
    ],
  ] as const) {
    await assertRefused(await request(replacing(token), {}, "inner/a"), reason);
  }
});

test("TXN-D-14, TXN-13.4-2 an ending of the token that came in stops what is made of it, and of what was made of that", async () => {
  const brought = await incoming();
  const first = tokenOf(await request(brought));
  const ended = await world.get("/revocations", {
    method: "POST",
    headers: { authorization: auditor, "content-type": "application/json" },
    body: JSON.stringify({ token: claimsOf(brought.subject_token).jti }),
  });
  assert.equal(ended.status, 200, ended.text);
  await assertRefused(await request(brought), "subject_token_revoked");
  await assertRefused(await request(replacing(first), {}, "inner/a"), "subject_token_revoked");
});

// --- nowhere else -------------------------------------------------------------------------------------------------

test("TXN-13.12-1, TXN-14-1, TXN-D-12 a transaction token is nothing elsewhere: no subject, actor, grant, assertion or credential", async () => {
  const token = tokenOf(await request(await incoming()));
  const svid = world.as(await world.svid("inner/a"));
  const [basicMover, form] = [
    { authorization: basic("mover", SECRET) },
    { grant_type: EXCHANGE, scope: "stocks" },
  ];
  const user = await world.idp.mintUserToken({ sub: "u-1", aud: ISSUER, scope: "stocks" });
  const ofUser = { subject_token: user, subject_token_type: JWT };
  for (const audience of [API, PARTNER]) {
    for (const requested of [undefined, `${URN}access_token`, JWT, `${URN}id-jag`]) {
      for (const type of [TXN, ACCESS_TOKEN, JWT, ID_TOKEN]) {
        const asked = { ...form, ...svid, audience, subject_token: token, subject_token_type: type };
        const answer = await world.token({ ...asked, ...(requested && { requested_token_type: requested }) });
        assert.deepEqual(
          [answer.status, answer.body.error],
          [400, "invalid_request"],
          `${audience} ${requested} ${type}`,
        );
      }
    }
  }
  for (const type of [ACCESS_TOKEN, JWT]) {
    const actor = { ...form, audience: API, ...ofUser, actor_token: token, actor_token_type: type };
    assert.equal((await world.token(actor, basicMover)).body.error, "invalid_request");
  }
  // It is not even looked at, whatever a rule would let become of it.
  const unread = { ...form, ...svid, audience: API, subject_token: token, subject_token_type: TXN };
  await assertRefused(await world.token(unread), "subject_token_type_unsupported");
  const grant = { grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer", assertion: token };
  assert.equal((await world.token({ ...grant, ...svid })).body.error, "invalid_grant");
  assert.notEqual((await world.token(grant)).status, 200);
  for (const type of ["jwt-bearer", "jwt-spiffe"]) {
    const by = {
      client_assertion_type: `urn:ietf:params:oauth:client-assertion-type:${type}`,
      client_assertion: token,
    };
    assert.equal(
      (await world.token({ grant_type: "client_credentials", ...by })).body.error,
      "invalid_client",
    );
  }
  const asForm = (body: string) => ({
    ...{ method: "POST", body },
    headers: { "content-type": "application/x-www-form-urlencoded" },
  });
  const me = new URLSearchParams({
    ...(world.as(await world.svid("gateway")) as Record<string, string>),
    token,
  });
  assert.deepEqual((await world.get("/introspect", asForm(String(me)))).body, { active: false });
  for (const path of ["/audit/events", "/policy/explain", "/revocations", "/consents", "/jobs"]) {
    const method = path === "/audit/events" || path === "/consents" ? "GET" : "POST";
    const answer = await world.get(path, {
      method,
      headers: { authorization: `Bearer ${token}` },
      ...(method === "POST" && { body: "{}" }),
    });
    assert.equal(answer.status, 401, `${path} ${answer.text}`);
  }
  const document = await world.get("/.well-known/oauth-authorization-server");
  for (const word of ["look.stocks", "txn_token", "td.example"])
    assert.ok(!document.text.includes(word), word);
  const { keys } = (await world.get("/jwks")).body as { keys: { kid: string }[] };
  assert.ok(keys.some(({ kid }) => kid === headerOf(token).kid));
});

test("TXN-D-2 an explanation is that of the token endpoint, and states no facts", async () => {
  const explain = async (question: object) => {
    const answer = await world.get("/policy/explain", {
      ...{ method: "POST", body: JSON.stringify(question) },
      headers: { authorization: auditor, "content-type": "application/json" },
    });
    return answer.body as {
      decision: string;
      reason?: string;
      would_issue?: { claims: Record<string, unknown> };
    };
  };
  const claims = { iss: IDP, sub: "u-1", aud: ISSUER, scope: "stocks", iat: 1, exp: 9_999_999_999 };
  const question = {
    ...{ client: workload("foreign"), issues: "txn_token", target: "td.example", scope: "look.stocks" },
    subjectClaims: claims,
  };
  const { would_issue, decision } = await explain(question);
  const { iat: _, exp: __, ...would } = would_issue?.claims ?? {};
  assert.deepEqual(
    [decision, would],
    [
      "allow",
      {
        ...{ iss: ISSUER, aud: "td.example", sub: "u-1", scope: "look.stocks", req_wl: workload("foreign") },
        ...{ rctx: {}, tctx: {} },
      },
    ],
  );
  assert.equal((await explain({ ...question, scope: undefined })).reason, "transaction_scope_missing");
  assert.equal((await explain({ ...question, scope: "trade.stocks" })).reason, "purpose_not_allowed");
  assert.equal((await explain({ ...question, issues: undefined })).reason, "token_type_not_for_target");
  assert.equal((await explain({ ...question, target: API })).reason, "token_type_not_for_target");
});

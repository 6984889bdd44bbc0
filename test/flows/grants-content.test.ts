/**
 * What the token for a redeemed grant takes from it: its subject, its scope, its APIs, its actors; and the exchange of
 * that token.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Answer } from "../../scripts/http-client.ts";
import type { Claims } from "../support/foreign.ts";
import {
  aGrant,
  booking,
  FAR,
  type Guests,
  hop,
  type IssuerName,
  issuerOf,
  JWT_BEARER,
  KINDS,
  type Kind,
  openToGuests,
  ROOMS,
  SCOPES,
  STAYS,
  TYP,
  tokenOf,
  tool,
} from "../support/guests.ts";
import { stop } from "../support/stop.ts";
import { ACCESS_TOKEN, claimsOf, EXCHANGE, type Form, ISSUER, JWT } from "../support/world.ts";

const ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token";
const NOWHERE = "https://nowhere.example";
const partner = issuerOf("partner");

let guests: Guests;

before(async () => {
  guests = await openToGuests();
});

after(() => stop(guests));

async function originOf(answer: Answer): Promise<unknown[]> {
  const { iss, sub } = ((await guests.eventOf(answer))?.subject ?? {}) as { iss?: string; sub?: string };
  return [iss, sub];
}

// --- subject ------------------------------------------------------------------------------------------------------

const OTHERS = "refused: sub_belongs_to_another_issuer";

const subjects: [string, IssuerName, string, string][] = [
  ["IDC-2.5-3, IDC-2.4.2-3 gets a prefix", "partner", "u-77", "p:u-77"],
  ["IDC-2.5-3, IDC-2.4.2-3, IDJAG-4.1-1 is kept", "enterprise", "u-77", "u-77"],
  ["IDC-2.5-3, IDC-2.4.2-3 is mapped by a table", "pairwise", "7f3a", "anna"],
  ["IDC-2.4.2-3 is not mapped by the mapped name", "pairwise", "anna", "refused: sub_not_mapped"],
  [
    "IDC-2.4.2-3 is not mapped by the name of an inherited property",
    "pairwise",
    "constructor",
    "refused: sub_not_mapped",
  ],
  ["RFC7519-4.1.2-v1 must not have the prefix of another issuer", "enterprise", "p:u-77", OTHERS],
  ["RFC7519-4.1.2-v1 must not be in the table of another issuer", "enterprise", "anna", OTHERS],
  ["RFC9068-5-1 must not be a client of ours", "enterprise", "hotel", "refused: sub_looks_like_machine"],
];
for (const [name, issuer, sub, want] of subjects) {
  test(`${name}: the subject ${sub} of ${issuer}, ${want}`, async () => {
    const typ = issuer === "enterprise" ? TYP["id-jag"] : TYP.plain;
    const claims = { sub, client_id: "hotel", scope: "stays.read" };
    const answer = await guests.redeem(await guests.foreign[issuer].grant(claims, { typ }));
    const [, reason] = want.split("refused: ");
    if (reason !== undefined) return guests.assertRefused(answer, reason);
    assert.equal(tokenOf(answer).sub, want);
    assert.deepEqual(await originOf(answer), [issuerOf(issuer), sub]);
  });
}

test("PROD-2.6-4 a consent on record applies to the subject of one issuer and to one client, until it is withdrawn", async () => {
  const ask = async (from: IssuerName, sub: string, scope = SCOPES.join(" ")): Promise<Answer> => {
    const assertion = await guests.foreign[from].grant({ sub, client_id: "careful", scope });
    return guests.redeem(assertion, { resource: STAYS }, "careful");
  };
  const assertMissing = (answer: Answer) => guests.assertRefused(answer, "consent_missing");
  await assertMissing(await ask("partner", "u-1"));
  const subject = { iss: partner, sub: "u-1" };
  const consent = { subject, actor: "careful", targets: ["stays"], scope: "stays.read" };
  assert.equal((await guests.call("PUT", "/consents/redeeming", consent)).status, 201);
  assert.equal(tokenOf(await ask("partner", "u-1")).scope, "stays.read");
  // The same sub of another issuer is another subject.
  await assertMissing(await ask("both", "u-1"));
  await assertMissing(await ask("partner", "u-2"));
  const wider = await ask("partner", "u-1", "stays.book");
  await guests.assertRefused(wider, "scope_empty", "invalid_scope");
  assert.equal((await guests.call("DELETE", "/consents/redeeming", {})).status, 204);
  await assertMissing(await ask("partner", "u-1"));
});

// --- scope and APIs -----------------------------------------------------------------------------------------------

const NOTHING = "";
const read = { scope: "stays.read" };
const unsaid = { scope: undefined };

const scoped: [string, Claims, Form, string][] = [
  ["EMA-7.2.1-1, RFC7521-4.1-3 the whole scope of the grant", {}, {}, "stays.read stays.book"],
  ["EMA-7.2.1-1, IDC-2.4.1-2 the requested part of it", {}, { scope: "stays.book" }, "stays.book"],
  ["EMA-7.2.1-1, RFC7521-4.1-2 no more than the grant has", read, { scope: SCOPES.join(" ") }, "stays.read"],
  [
    "RFC7521-4.1-2, IDJAG-4.4.1-6 refused, if the grant has none of the requested scope",
    read,
    { scope: "stays.book" },
    NOTHING,
  ],
  ["IDJAG-4.4.1-6 no more than the target has", { scope: "stays.read stays.pay" }, {}, "stays.read"],
  ["IDJAG-4.4.1-6 refused, if the grant has no scope", unsaid, {}, NOTHING],
  ["IDJAG-4.4.1-6 refused, if the grant has no scope and one is requested", unsaid, read, NOTHING],
];
for (const kind of KINDS) {
  for (const [name, claims, form, want] of scoped) {
    test(`${name}: the scope for ${aGrant(kind)}`, async () => {
      const answer = await guests.redeem(await guests.grant(claims, kind), form);
      if (want === NOTHING) return guests.assertRefused(answer, "scope_empty", "invalid_scope");
      assert.deepEqual([tokenOf(answer).scope, answer.body.scope], [want, want]);
    });
  }
}

test("IDJAG-4.4.1-6 a grant without scope gets the scopes configured for its issuer", async () => {
  const bare = () => guests.foreign.pairwise.grant({ sub: "7f3a" });
  assert.equal(tokenOf(await guests.redeem(await bare())).scope, "stays.read");
  const wider = await guests.redeem(await bare(), { scope: "stays.book" });
  await guests.assertRefused(wider, "scope_empty", "invalid_scope");
});

const [UNKNOWN, DIFFERS] = ["grant_resource_unknown", "grant_resource_differs"];
const byAlias = { audience: "stays" };
const ofStays = { resource: STAYS };
const ofTwo = { resource: [ROOMS, STAYS] };

const apis: [string, Claims, Form, string, string?][] = [
  ["IDC-2.4.1-2 the only target of the rule", {}, {}, STAYS],
  ["IDC-2.4.1-2 the requested target", {}, ofStays, STAYS],
  ["IDC-2.4.1-2 the requested target, by another name", {}, byAlias, "stays"],
  ["EMA-5.1-1 the resource of the grant", ofStays, {}, STAYS],
  ["EMA-5.1-1 the resource of the grant, in a list", { resource: [STAYS] }, {}, STAYS],
  ["EMA-5.1-1 the resource of the grant, also requested", ofStays, ofStays, STAYS],
  ["EMA-5.1-1 the resource of the grant as named there, requested by another name", ofStays, byAlias, STAYS],
  ["IDJAG-4.4.1-6 the requested one of several resources", ofTwo, ofStays, STAYS],
  [
    "IDJAG-4.4.1-6 none of several resources without a request",
    ofTwo,
    {},
    "grant_resources_several",
    "invalid_grant",
  ],
  [
    "EMA-5.1-1 none other than the resource of the grant",
    ofStays,
    { resource: ROOMS },
    DIFFERS,
    "invalid_grant",
  ],
  ["EMA-5.1-1 no unknown requested resource", ofStays, { resource: NOWHERE }, DIFFERS, "invalid_grant"],
  ["EMA-7.6.2-1 no unknown resource", { resource: NOWHERE }, {}, UNKNOWN, "invalid_grant"],
  [
    "EMA-7.6.2-1 none if one resource is unknown",
    { resource: [STAYS, NOWHERE] },
    ofStays,
    UNKNOWN,
    "invalid_grant",
  ],
  ["EMA-7.6.2-1 no resource with an extra slash", { resource: `${STAYS}/` }, {}, UNKNOWN, "invalid_grant"],
  ["EMA-7.6.2-1 no partner as resource", { resource: FAR }, {}, UNKNOWN, "invalid_grant"],
  [
    "IDC-2.4.2-5, EMA-7.6.2-1 none without a rule",
    { resource: ROOMS },
    {},
    "target_not_allowed",
    "invalid_grant",
  ],
  ["IDC-2.4.1-2 no unknown target", {}, { resource: NOWHERE }, "target_unknown", "invalid_target"],
  ["PROD-1.7-3 no partner", {}, { audience: FAR }, "target_is_partner", "invalid_target"],
];
for (const [name, claims, form, want, error] of apis) {
  test(`${name}: the audience of the token, ${want}`, async () => {
    const answer = await guests.redeem(await guests.grant(claims, "id-jag"), form);
    if (error !== undefined) return guests.assertRefused(answer, want, error);
    assert.equal(tokenOf(answer).aud, want);
    // IDJAG-4.4.1-7: returned if the grant has a resource.
    assert.equal(answer.body.resource, "resource" in claims ? want : undefined);
  });
}

test("RFC9068-3-4, RFC9068-3-5 of several APIs the client's default is used; without a default the request is refused", async () => {
  const ask = async (by: string, form: Form = {}, claims: Claims = {}): Promise<Answer> =>
    guests.redeem(await guests.grant({ client_id: by, ...claims }, "id-jag"), form, by);
  assert.equal(tokenOf(await ask("lobby")).aud, "stays-tool");
  assert.equal(tokenOf(await ask("lobby", ofStays)).aud, STAYS);
  // EMA-5.1-1: the resource of the grant takes precedence over the default.
  assert.equal(tokenOf(await ask("lobby", {}, ofStays)).aud, STAYS);
  await guests.assertRefused(await ask("porter"), "target_missing", "invalid_target");
});

test("POLICY-D-12, RFC7521-4.1-5, PROD-8.4-1 the lifetime of the token is that of the rule, whatever remains of the grant", async () => {
  const answer = await guests.redeem(await guests.grant({ exp: Math.floor(Date.now() / 1000) + 2 }));
  const { iat, exp } = tokenOf(answer);
  assert.deepEqual([answer.body.expires_in, Number(exp) - Number(iat)], [300, 300]);
});

// --- actors -------------------------------------------------------------------------------------------------------

const third = hop("a", undefined, "https://third.example");

const acts: [string, object, object][] = [
  ["gets the issuer of the grant", hop("bot"), hop("bot", undefined, partner)],
  ["keeps its order and issuers", hop("b", third, partner), hop("b", third, partner)],
  [
    "may claim an earlier actor of ours, which keeps its iss",
    hop("b", hop(booking, undefined, ISSUER)),
    hop("b", hop(booking, undefined, ISSUER), partner),
  ],
  [
    "loses members other than the identity",
    { ...hop("bot"), exp: 1, scope: "all" },
    hop("bot", undefined, partner),
  ],
];
for (const [name, act, want] of acts) {
  test(`POLICY-D-12, IDC-2.3.2-2, RFC8693-4.1-2, IDJAG-9.8-2 the chain ${name}, and the redeeming client is not added`, async () => {
    const answer = await guests.redeem(await guests.grant({ act }));
    assert.deepEqual(tokenOf(answer).act, want);
    const hops = (text: unknown): number => JSON.stringify(text).split('"sub"').length - 1;
    assert.equal(hops((await guests.eventOf(answer))?.chain), hops(act));
  });
}

test("RFC8693-4.1-6 a grant of another server that names one of our actors as the current actor is refused", async () => {
  for (const kind of KINDS) {
    for (const sub of [booking, "hotel"]) {
      const act = hop(sub, undefined, ISSUER);
      const answer = await guests.redeem(await guests.grant({ act }, kind));
      await guests.assertRefused(answer, "act_names_our_actor");
    }
  }
  // The same name as an actor of the partner is accepted, because the token carries the partner's iss.
  const act = hop(booking, undefined, partner);
  assert.deepEqual(tokenOf(await guests.redeem(await guests.grant({ act }))).act, act);
});

test("PROD-4.1v6-6 a chain is limited by the rule, and to eight actors", async () => {
  const ask = async (count: number): Promise<Answer> => {
    const act = Array.from({ length: count }).reduce<object | undefined>(
      (inner) => hop("b", inner),
      undefined,
    );
    return guests.redeem(await guests.grant({ act }), { resource: STAYS });
  };
  tokenOf(await ask(3));
  await guests.assertRefused(await ask(4), "chain_too_deep");
  await guests.assertRefused(await ask(9), "act_too_deep");
});

const mayActs: [string, object, string, boolean][] = [
  ["the client, with our issuer", { sub: "invited", iss: ISSUER }, "invited", true],
  ["a client with that name at the partner", { sub: "invited" }, "invited", false],
  ["another actor", { sub: "spiffe://td.example/agents/other" }, "invited", false],
  ["another client, with implied consent", { sub: "other", iss: ISSUER }, "hotel", false],
];
for (const [name, mayAct, client, isRedeemed] of mayActs) {
  test(`RFC8693-4.4-2 a may_act that names ${name} is ${isRedeemed ? "carried over" : "refused"}`, async () => {
    const assertion = await guests.grant({ client_id: client, may_act: mayAct });
    const answer = await guests.redeem(assertion, {}, client);
    if (!isRedeemed) return guests.assertRefused(answer, "may_act_names_another");
    assert.deepEqual(tokenOf(answer).may_act, mayAct);
  });
}

test("RFC8693-4.4-2 consent by may_act is missing if the grant has no may_act", async () => {
  const assertion = await guests.grant({ client_id: "invited" });
  await guests.assertRefused(
    await guests.redeem(assertion, { resource: STAYS }, "invited"),
    "consent_missing",
  );
});

// --- exchanging the token -----------------------------------------------------------------------------------------

const bot = hop("bot", undefined, partner);

/** The token for the partner's grant, which the booking agent sends to our tool. */
async function arrived(claims: Claims = {}): Promise<string> {
  const { world } = guests;
  const assertion = await guests.grant({ client_id: booking, act: hop("bot"), ...claims });
  const svid = await world.svid("agents/booking");
  const answer = await world.token({ grant_type: JWT_BEARER, assertion, ...world.as(svid) });
  tokenOf(answer);
  return String(answer.body.access_token);
}

async function exchange(subjectToken: string, form: Form = {}, path = "tools/stays", actor = true) {
  const { world } = guests;
  const svid = await world.svid(path);
  return world.token({
    grant_type: EXCHANGE,
    subject_token: subjectToken,
    subject_token_type: ACCESS_TOKEN,
    audience: ROOMS,
    ...world.as(svid),
    ...(actor && { actor_token: svid, actor_token_type: JWT }),
    ...form,
  });
}

test("PROD-4.1v9-4, RFC8693-4.1-5 a token for a redeemed grant is exchanged like any other: the caller outermost, no more scope or lifetime", async () => {
  const token = await arrived();
  const answer = await exchange(token, { scope: SCOPES.join(" ") });
  const claims = tokenOf(answer);
  assert.deepEqual([claims.sub, claims.act, claims.scope], ["p:u-77", hop(tool, bot), "stays.read"]);
  assert.ok(Number(claims.exp) <= Number(claimsOf(token).exp));
  const event = await guests.eventOf(answer);
  assert.deepEqual(event?.granted?.parent_jti, [claimsOf(token).jti]);
  assert.deepEqual(await originOf(answer), [partner, "u-77"]);
});

test("PROD-3-10, PROD-6.1-2 impersonation drops the partner's actors too, and the audit trail has them", async () => {
  const answer = await exchange(await arrived(), {}, "tools/stays", false);
  assert.equal(tokenOf(answer).act, undefined);
  assert.deepEqual((await guests.eventOf(answer))?.chain, [{ iss: partner, sub: "bot", claimed: true }]);
});

test("EMA-7.2.1-1, RFC7521-4.1-3 redeeming and then exchanging never adds scope", async () => {
  const answer = await exchange(await arrived({ scope: "stays.book" }), { scope: "stays.read" });
  assert.deepEqual([answer.status, answer.body.error], [400, "invalid_scope"]);
});

test("PROD-4.1v6-5 a token for a redeemed grant is exchanged only by the owner of its audience", async () => {
  const answer = await exchange(await arrived(), {}, "agents/booking");
  assert.deepEqual([answer.status, answer.body.error], [400, "invalid_request"]);
  assert.equal((await guests.eventOf(answer))?.reason, "not_meant_for_caller");
});

test("IDJAG-9.4-2, IDC-2.3.3-3 the next partner gets a grant of ours, never the grant that we received", async () => {
  const assertion = await guests.grant({ client_id: booking, act: hop("bot") });
  for (const type of [JWT, ID_TOKEN, ACCESS_TOKEN]) {
    const answer = await exchange(assertion, { subject_token_type: type, audience: FAR });
    assert.deepEqual([answer.status, answer.body.error], [400, "invalid_request"]);
  }
  const answer = await exchange(await arrived(), { audience: FAR });
  assert.equal(answer.body.token_type, "N_A", answer.text);
  const { iss, sub, aud, act, client_id } = claimsOf(answer.body.access_token);
  assert.deepEqual([iss, sub, aud, act, client_id], [ISSUER, "p:u-77", FAR, hop(tool, bot), "tool-there"]);
});

// --- explanations -------------------------------------------------------------------------------------------------

const questions: [string, Kind, Claims, Form, object][] = [
  ["a valid grant", "plain", { act: hop("bot") }, {}, {}],
  ["a valid ID-JAG", "id-jag", ofStays, {}, {}],
  ["an ID-JAG requested by another name", "id-jag", ofStays, byAlias, { target: "stays" }],
  ["an ID-JAG for a partner of ours", "id-jag", { resource: FAR }, {}, {}],
  ["an ID-JAG with a tenant", "id-jag", { tenant: "t" }, {}, {}],
  ["the grant of another client", "plain", { client_id: "other" }, {}, {}],
  ["an expired grant", "plain", { exp: 1_000_000_000 }, {}, {}],
  [
    "a grant with one of our actors as the current actor",
    "plain",
    { act: hop(booking, undefined, ISSUER) },
    {},
    {},
  ],
  ["a grant of an unknown issuer", "plain", { iss: "https://unknown.example" }, {}, {}],
  ["a grant with a workload as subject", "plain", { sub: booking }, {}, {}],
  ["a scope that is not in the grant", "plain", {}, { scope: "stays.pay" }, { scope: "stays.pay" }],
  ["an API without a rule", "plain", {}, { audience: ROOMS }, { target: ROOMS }],
];
for (const [name, kind, claims, form, question] of questions) {
  test(`PROD-2.6-1 the explanation of ${name} agrees with the answer`, async () => {
    const assertion = await guests.grant(claims, kind);
    const answer = await guests.redeem(assertion, form);
    const { body: explained } = await guests.call("POST", "/policy/explain", {
      client: "hotel",
      grantClaims: claimsOf(assertion),
      ...question,
      grantProfile: kind === "plain" ? "jwt" : "id-jag",
    });
    const seen = JSON.stringify({ answer: answer.body, explained });
    assert.deepEqual([explained.mode, explained.error], ["redemption", answer.body.error], seen);
    const event = await guests.eventOf(answer);
    if (answer.status !== 200) return assert.equal(explained.reason, event?.reason, seen);
    const timeless = ({ jti: _, iat, exp, ...rest }: Claims) => ({
      ...rest,
      life: Number(exp) - Number(iat),
    });
    const { claims: would } = explained.would_issue as { claims: Claims };
    assert.deepEqual(timeless(claimsOf(answer.body.access_token)), timeless(would), seen);
  });
}

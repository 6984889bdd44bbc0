/**
 * What becomes of the content of a grant that is redeemed here: its subject, its scope, its APIs, its actors; and of
 * the token that came of it, on its way onward.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Answer } from "../../scripts/http-client.ts";
import type { Claims } from "../support/foreign.ts";
import type { Guests, IssuerName, Kind } from "../support/guests.ts";
import {
  aGrant,
  booking,
  FAR,
  hop,
  issuerOf,
  JWT_BEARER,
  KINDS,
  openToGuests,
  ROOMS,
  SCOPES,
  STAYS,
  TYP,
  tokenOf,
  tool,
} from "../support/guests.ts";
import type { Form } from "../support/world.ts";
import { ACCESS_TOKEN, claimsOf, EXCHANGE, ISSUER, JWT } from "../support/world.ts";

const ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token";
const NOWHERE = "https://nowhere.example";
const partner = issuerOf("partner");

let guests: Guests;

before(async () => {
  guests = await openToGuests();
});

after(() => guests?.stop());

async function originOf(answer: Answer): Promise<unknown[]> {
  const { iss, sub } = ((await guests.eventOf(answer))?.subject ?? {}) as { iss?: string; sub?: string };
  return [iss, sub];
}

// --- its subject --------------------------------------------------------------------------------------------------

const OTHERS = "refused: sub_belongs_to_another_issuer";

const subjects: [string, IssuerName, string, string][] = [
  ["IDC-2.5-3, IDC-2.4.2-3 has a prefix", "partner", "u-77", "p:u-77"],
  ["IDC-2.5-3, IDC-2.4.2-3, IDJAG-4.1-1 is the same here and there", "enterprise", "u-77", "u-77"],
  ["IDC-2.5-3, IDC-2.4.2-3 is found by its name for us", "pairwise", "7f3a", "anna"],
  ["IDC-2.4.2-3 is not found by our name for it", "pairwise", "anna", "refused: sub_not_mapped"],
  ["IDC-2.4.2-3 is not found by that of a method", "pairwise", "constructor", "refused: sub_not_mapped"],
  ["RFC7519-4.1.2-v1 is never another issuer's, by its prefix", "enterprise", "p:u-77", OTHERS],
  ["RFC7519-4.1.2-v1 is never another issuer's, by its table", "enterprise", "anna", OTHERS],
  ["RFC9068-5-1 is never a client of ours", "enterprise", "hotel", "refused: sub_looks_like_machine"],
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

test("PROD-2.6-4 a consent on record is that of this issuer's subject, for this client, and ends when it is taken back", async () => {
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
  // Equal names of two issuers are two subjects.
  await assertMissing(await ask("both", "u-1"));
  await assertMissing(await ask("partner", "u-2"));
  const wider = await ask("partner", "u-1", "stays.book");
  await guests.assertRefused(wider, "scope_empty", "invalid_scope");
  assert.equal((await guests.call("DELETE", "/consents/redeeming", {})).status, 204);
  await assertMissing(await ask("partner", "u-1"));
});

// --- its scope and its APIs ---------------------------------------------------------------------------------------

const NOTHING = "";
const read = { scope: "stays.read" };
const unsaid = { scope: undefined };

const scoped: [string, Claims, Form, string][] = [
  ["EMA-7.2.1-1, RFC7521-4.1-3 all of the grant's", {}, {}, "stays.read stays.book"],
  ["EMA-7.2.1-1, IDC-2.4.1-2 what is asked for of it", {}, { scope: "stays.book" }, "stays.book"],
  ["EMA-7.2.1-1, RFC7521-4.1-2 no more than it has", read, { scope: SCOPES.join(" ") }, "stays.read"],
  ["RFC7521-4.1-2, IDJAG-4.4.1-6 nothing that it does not have", read, { scope: "stays.book" }, NOTHING],
  ["IDJAG-4.4.1-6 no more than the target has", { scope: "stays.read stays.pay" }, {}, "stays.read"],
  ["IDJAG-4.4.1-6 nothing, where it says nothing of that", unsaid, {}, NOTHING],
  ["IDJAG-4.4.1-6 nothing, whatever is asked for then", unsaid, read, NOTHING],
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

test("IDJAG-4.4.1-6 a grant without scope has what the operator set for that", async () => {
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
  ["IDC-2.4.1-2 the only one of its rule", {}, {}, STAYS],
  ["IDC-2.4.1-2 the one that is asked for", {}, ofStays, STAYS],
  ["IDC-2.4.1-2 the one that is asked for by another name", {}, byAlias, "stays"],
  ["EMA-5.1-1 the grant's", ofStays, {}, STAYS],
  ["EMA-5.1-1 the grant's, in a list", { resource: [STAYS] }, {}, STAYS],
  ["EMA-5.1-1 the grant's, asked for as well", ofStays, ofStays, STAYS],
  ["EMA-5.1-1 the grant's by its own name, asked for by another", ofStays, byAlias, STAYS],
  ["IDJAG-4.4.1-6 the one of the grant's that is asked for", ofTwo, ofStays, STAYS],
  ["IDJAG-4.4.1-6 none of several without a word", ofTwo, {}, "grant_resources_several", "invalid_grant"],
  ["EMA-5.1-1 no other than the grant's", ofStays, { resource: ROOMS }, DIFFERS, "invalid_grant"],
  ["EMA-5.1-1 no unknown one beside it", ofStays, { resource: NOWHERE }, DIFFERS, "invalid_grant"],
  ["EMA-7.6.2-1 none that is not ours", { resource: NOWHERE }, {}, UNKNOWN, "invalid_grant"],
  ["EMA-7.6.2-1 none if one is not ours", { resource: [STAYS, NOWHERE] }, ofStays, UNKNOWN, "invalid_grant"],
  ["EMA-7.6.2-1 none that is ours but for a slash", { resource: `${STAYS}/` }, {}, UNKNOWN, "invalid_grant"],
  ["EMA-7.6.2-1 no server that is a partner of ours", { resource: FAR }, {}, UNKNOWN, "invalid_grant"],
  [
    "IDC-2.4.2-5, EMA-7.6.2-1 none without a rule",
    { resource: ROOMS },
    {},
    "target_not_allowed",
    "invalid_grant",
  ],
  ["IDC-2.4.1-2 no unknown one", {}, { resource: NOWHERE }, "target_unknown", "invalid_target"],
  ["PROD-1.7-3 no partner", {}, { audience: FAR }, "target_is_partner", "invalid_target"],
];
for (const [name, claims, form, want, error] of apis) {
  test(`${name}: the audience of the token, ${want}`, async () => {
    const answer = await guests.redeem(await guests.grant(claims, "id-jag"), form);
    if (error !== undefined) return guests.assertRefused(answer, want, error);
    assert.equal(tokenOf(answer).aud, want);
    // IDJAG-4.4.1-7: told where the grant has spoken of it.
    assert.equal(answer.body.resource, "resource" in claims ? want : undefined);
  });
}

test("RFC9068-3-4, RFC9068-3-5 of several APIs the client's default is taken, and without one none is guessed", async () => {
  const ask = async (by: string, form: Form = {}, claims: Claims = {}): Promise<Answer> =>
    guests.redeem(await guests.grant({ client_id: by, ...claims }, "id-jag"), form, by);
  assert.equal(tokenOf(await ask("lobby")).aud, "stays-tool");
  assert.equal(tokenOf(await ask("lobby", ofStays)).aud, STAYS);
  // EMA-5.1-1: a default is no reason to leave what the grant says.
  assert.equal(tokenOf(await ask("lobby", {}, ofStays)).aud, STAYS);
  await guests.assertRefused(await ask("porter"), "target_missing", "invalid_target");
});

test("RFC7521-4.1-5, PROD-8.4-1 a token lives as its rule says, whatever is left of the grant", async () => {
  const answer = await guests.redeem(await guests.grant({ exp: Math.floor(Date.now() / 1000) + 2 }));
  const { iat, exp } = tokenOf(answer);
  assert.deepEqual([answer.body.expires_in, Number(exp) - Number(iat)], [300, 300]);
});

// --- its actors ---------------------------------------------------------------------------------------------------

const third = hop("a", undefined, "https://third.example");

const acts: [string, object, object][] = [
  ["says whose it is", hop("bot"), hop("bot", undefined, partner)],
  ["keeps its order and its issuers", hop("b", third, partner), hop("b", third, partner)],
  ["may come back to us", hop("b", hop(booking, undefined, ISSUER)), hop("b", hop(booking), partner)],
  ["loses what is no identity", { ...hop("bot"), exp: 1, scope: "all" }, hop("bot", undefined, partner)],
];
for (const [name, act, want] of acts) {
  test(`IDC-2.3.2-2, RFC8693-4.1-2, IDJAG-9.8-2 the chain ${name}, and nobody joins it who only redeemed it`, async () => {
    const answer = await guests.redeem(await guests.grant({ act }));
    assert.deepEqual(tokenOf(answer).act, want);
    const hops = (text: unknown): number => JSON.stringify(text).split('"sub"').length - 1;
    assert.equal(hops((await guests.eventOf(answer))?.chain), hops(act));
  });
}

test("RFC8693-4.1-6 that one of ours acts now is for nobody else to say", async () => {
  for (const kind of KINDS) {
    for (const sub of [booking, "hotel"]) {
      const act = hop(sub, undefined, ISSUER);
      const answer = await guests.redeem(await guests.grant({ act }, kind));
      await guests.assertRefused(answer, "act_names_our_actor");
    }
  }
  // By its own name for it, it may: the token says by whose word.
  const act = hop(booking, undefined, partner);
  assert.deepEqual(tokenOf(await guests.redeem(await guests.grant({ act }))).act, act);
});

test("PROD-4.1v6-6 a chain is no longer than the rule allows, and never longer than eight", async () => {
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
  ["the client, by its name here", { sub: "invited", iss: ISSUER }, "invited", true],
  ["a client of that name there", { sub: "invited" }, "invited", false],
  ["somebody else", { sub: "spiffe://td.example/agents/other" }, "invited", false],
  ["somebody else, where consent is implied", { sub: "other", iss: ISSUER }, "hotel", false],
];
for (const [name, mayAct, client, isRedeemed] of mayActs) {
  test(`RFC8693-4.4-2 a may_act that names ${name}: ${isRedeemed ? "it goes along" : "refused"}`, async () => {
    const assertion = await guests.grant({ client_id: client, may_act: mayAct });
    const answer = await guests.redeem(assertion, {}, client);
    if (!isRedeemed) return guests.assertRefused(answer, "may_act_names_another");
    assert.deepEqual(tokenOf(answer).may_act, mayAct);
  });
}

test("RFC8693-4.4-2 consent by may_act is not there where the grant has none", async () => {
  const assertion = await guests.grant({ client_id: "invited" });
  await guests.assertRefused(
    await guests.redeem(assertion, { resource: STAYS }, "invited"),
    "consent_missing",
  );
});

// --- and onward ---------------------------------------------------------------------------------------------------

const bot = hop("bot", undefined, partner);

/** What the booking agent brings to our tool: a token that came of the partner's grant. */
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
    ...{ grant_type: EXCHANGE, subject_token: subjectToken, subject_token_type: ACCESS_TOKEN },
    ...{ audience: ROOMS, ...world.as(svid) },
    ...(actor && { actor_token: svid, actor_token_type: JWT }),
    ...form,
  });
}

test("PROD-4.1v9-4, RFC8693-4.1-5 a token of a redeemed grant is exchanged like any other: the caller outermost, scope and life no more", async () => {
  const token = await arrived();
  const answer = await exchange(token, { scope: SCOPES.join(" ") });
  const claims = tokenOf(answer);
  assert.deepEqual([claims.sub, claims.act, claims.scope], ["p:u-77", hop(tool, bot), "stays.read"]);
  assert.ok(Number(claims.exp) <= Number(claimsOf(token).exp));
  const event = await guests.eventOf(answer);
  assert.deepEqual(event?.granted?.parent_jti, [claimsOf(token).jti]);
  assert.deepEqual(await originOf(answer), [partner, "u-77"]);
});

test("PROD-3-10, PROD-6.1-2 impersonation with it drops the partner's actors too, and the trail has them", async () => {
  const answer = await exchange(await arrived(), {}, "tools/stays", false);
  assert.equal(tokenOf(answer).act, undefined);
  assert.deepEqual((await guests.eventOf(answer))?.chain, [{ iss: partner, sub: "bot" }]);
});

test("EMA-7.2.1-1, RFC7521-4.1-3 redeeming and exchanging in turn never widens the scope", async () => {
  const answer = await exchange(await arrived({ scope: "stays.book" }), { scope: "stays.read" });
  assert.deepEqual([answer.status, answer.body.error], [400, "invalid_scope"]);
});

test("PROD-4.1v6-5 a token of a redeemed grant is exchanged by whom it is for, and by no other", async () => {
  const answer = await exchange(await arrived(), {}, "agents/booking");
  assert.deepEqual([answer.status, answer.body.error], [400, "invalid_request"]);
  assert.equal((await guests.eventOf(answer))?.reason, "not_meant_for_caller");
});

test("IDJAG-9.4-2, IDC-2.3.3-3 across the next border goes a grant of ours, never the one that came", async () => {
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

// --- and why ------------------------------------------------------------------------------------------------------

const questions: [string, Kind, Claims, Form, object][] = [
  ["a good grant", "plain", { act: hop("bot") }, {}, {}],
  ["a good ID-JAG", "id-jag", ofStays, {}, {}],
  ["an ID-JAG that is asked for by another name", "id-jag", ofStays, byAlias, { target: "stays" }],
  ["an ID-JAG for a partner of ours", "id-jag", { resource: FAR }, {}, {}],
  ["an ID-JAG with a tenant", "id-jag", { tenant: "t" }, {}, {}],
  ["another client's", "plain", { client_id: "other" }, {}, {}],
  ["one that is over", "plain", { exp: 1_000_000_000 }, {}, {}],
  ["one by an actor that is said to be ours", "plain", { act: hop(booking, undefined, ISSUER) }, {}, {}],
  ["a stranger's", "plain", { iss: "https://stranger.example" }, {}, {}],
  ["one for a machine", "plain", { sub: booking }, {}, {}],
  ["too much scope", "plain", {}, { scope: "stays.pay" }, { scope: "stays.pay" }],
  ["an API without a rule", "plain", {}, { audience: ROOMS }, { target: ROOMS }],
];
for (const [name, kind, claims, form, question] of questions) {
  test(`PROD-2.6-1 the explanation of ${name} agrees with the answer`, async () => {
    const assertion = await guests.grant(claims, kind);
    const answer = await guests.redeem(assertion, form);
    const { body: explained } = await guests.call("POST", "/policy/explain", {
      ...{ client: "hotel", grantClaims: claimsOf(assertion), ...question },
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

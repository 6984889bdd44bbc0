/** The smallest change of a refusal in words, and its ladder; that it flips random ones is shown beside the oracle. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as v from "valibot";
import type { Subject } from "../../src/policy/access.ts";
import { changeText, formatSuggestion } from "../../src/policy/change-words.ts";
import { type AskedRequest, decideRequest } from "../../src/policy/decision.ts";
import { ladderOf } from "../../src/policy/explanation.ts";
import { compilePolicy, Rule, Target } from "../../src/policy/rules.ts";
import { smallestChange } from "../../src/policy/smallest-change.ts";
import { defined, type Loose } from "../../src/result.ts";

const US = "https://as.example";
const IDP = "https://idp.example";
const AGENT = "spiffe://td.example/agent";
const API = "https://api.example";

const rule = (patch: object = {}): Rule =>
  v.parse(Rule, {
    ...{ id: "r", allow: "delegation", actors: [AGENT], subjects: { issuers: [IDP] }, consent: "record" },
    ...{ subjectToken: { audiences: [US] }, targets: [API], scopes: ["a"], lifetimeSeconds: 300 },
    ...patch,
  });
const SUBJECT: Subject = {
  ...{ tokenType: "jwt", origin: { iss: IDP, sub: "u" }, audiences: [US], scopes: ["a", "b"] },
  ...{ expiresAtSeconds: 2000, chain: [], issuer: IDP },
};
const consent = {
  ...{ id: "c", version: 1, origin: SUBJECT.origin, actor: AGENT, targets: [API], scopes: ["a"] },
};
const ASKED: AskedRequest = {
  ...{ mode: "delegation", clientId: AGENT, workload: AGENT, subject: SUBJECT, target: API, scope: ["a"] },
  ...{ keys: {}, consents: [consent], nowSeconds: 1000, sub: "u" },
};

function policyOf(rules: readonly Rule[]) {
  const names = [API, "desk"];
  const targets = names.map((name) =>
    v.parse(Target, { kind: "resource", names: [name], scopes: ["a", "b"] }),
  );
  const set = compilePolicy(rules, targets, US, "");
  return set.ok ? set.value : assert.fail(set.error.join());
}

type Patch = Loose<Partial<Omit<AskedRequest, "mode" | "clientId" | "nowSeconds" | "sub" | "consents">>> &
  Partial<Pick<AskedRequest, "clientId" | "consents">>;
const subject = (patch: Partial<Subject>): Patch => ({ subject: { ...SUBJECT, ...patch } });
const other = "spiffe://td.example/other";
const cases: readonly [what: string, asked: Patch, rule: object, says: readonly string[]][] = [
  [
    "an actor",
    { clientId: other, workload: other, consents: [{ ...consent, actor: other }] },
    {},
    [`Add "${other}" to actors of rule "r".`],
  ],
  [
    "a target",
    { target: "desk", consents: [{ ...consent, targets: ["desk"] }] },
    {},
    ['Add "desk" to targets of rule "r".'],
  ],
  ["a target that is unknown", { target: "deks" }, {}, [`Set target of the request to "${API}".`]],
  [
    "an issuer",
    subject({ origin: { iss: "https://x.example", sub: "u" } }),
    { consent: "implied", acknowledge: "subjects-not-asked" },
    ['Add "https://x.example" to subjects.issuers of rule "r".'],
  ],
  ["a subject", {}, { subjects: { issuers: [IDP], subs: ["v"] } }, ['Add "u" to subjects.subs of rule "r".']],
  ["an audience", subject({ audiences: ["elsewhere"] }), {}, [`Add "${US}" to aud of the subject token.`]],
  ["a consent", { consents: [] }, {}, [`The subject consents to "a" for this caller at "${API}".`]],
  [
    "a scope of the consent",
    { scope: ["b"] },
    { scopes: ["b"] },
    [`The subject consents to "b" for this caller at "${API}".`],
  ],
  [
    "a scope of the rule and of the consent",
    { scope: ["b"] },
    {},
    ['Add "b" to scopes of rule "r".', `The subject consents to "b" for this caller at "${API}".`],
  ],
  ["a scope of the token", subject({ scopes: ["b"] }), {}, ['Add "a" to scope of the subject token.']],
  ["a registration", { clientScopes: ["b"] }, {}, ['Add "a" to scope of the client.']],
  [
    "a longer chain",
    subject({ chain: [{ iss: US, sub: other }] }),
    { maxChainDepth: 1 },
    ['Set maxChainDepth of rule "r" to 2.'],
  ],
  ["a token that ends", subject({ expiresAtSeconds: 1001 }), {}, ["The subject token is valid for longer."]],
  ["a key", subject({ boundTo: { jkt: "k" } }), {}, ["The request proves the key that is demanded."]],
  ["a job", {}, { jobs: "required" }, ['Set jobs of rule "r" to "optional".']],
];
for (const [what, patch, ruled, says] of cases) {
  test(`CHANGE-D-1 the smallest change of a refusal for want of ${what} says that and no more`, () => {
    const asked = defined<AskedRequest>({ ...ASKED, ...patch });
    const policy = policyOf([rule(ruled)]);
    assert.equal(decideRequest(policy, asked).ok, false);
    const found = smallestChange(policy, asked);
    assert.deepEqual(found?.changes.map(changeText).toSorted(), says.toSorted());
  });
}

test("CHANGE-D-1 of two rules the one with fewer parts is told, and a caller that is the subject has none", () => {
  const policy = policyOf([rule({ id: "far", actors: [other] }), rule({ id: "near", scopes: ["b"] })]);
  const asked = { ...ASKED, consents: [{ ...consent, scopes: ["a", "b"] }] };
  assert.equal(smallestChange(policy, asked)?.changes.length, 1);
  const self = { ...ASKED, subject: { ...SUBJECT, origin: { iss: US, sub: AGENT } } };
  assert.deepEqual(formatSuggestion(smallestChange(policy, self)), [
    "No change of one rule, consent, token or registration would have allowed it.",
  ]);
});

test("CHANGE-D-2 it is marked as a suggestion, and a ladder says what holds and where a scope fell", () => {
  const policy = policyOf([rule()]);
  const asked = { ...ASKED, scope: ["b"], consents: [] };
  const decided = decideRequest(policy, asked);
  const ladder = ladderOf(decided.ok ? assert.fail() : decided.error.trace, asked);
  assert.deepEqual(
    ladder?.rungs.filter(({ holds }) => !holds).map(({ text }) => text),
    ["the consent of the subject", "something is left of the scope"],
  );
  assert.deepEqual(ladder?.scopes, [{ scope: "b", fell: "rule" }]);
  assert.match(
    formatSuggestion(smallestChange(policy, asked))[0] ?? "",
    /^A suggestion, which is not applied/,
  );
});

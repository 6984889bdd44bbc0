/** Rules with `askUser`: which consent is named as the only thing that is missing, and what such a rule may be. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as v from "valibot";
import type { AccessRequest, Consent, Subject } from "../../src/policy/access.ts";
import { checkPolicy } from "../../src/policy/checks.ts";
import { decide } from "../../src/policy/decide.ts";
import { compilePolicy, type PolicySet, Rule, Target } from "../../src/policy/rules.ts";

const issuer = "https://as.example";
const idp = "https://idp.example";
const planner = "spiffe://td.example/agents/planner";
const now = 1790000000;

type Patch = Record<string, unknown>;

const TARGETS = [
  { names: ["booking", "booking-too"], scopes: ["trips.read", "trips.book"] },
  { names: ["api"], scopes: ["trips.read", "trips.book"] },
  { names: ["keyed"], scopes: ["trips.read"], binding: "dpop" },
];
const rule: Patch = {
  id: "asks",
  allow: "delegation",
  actors: [planner],
  subjects: { issuers: [idp] },
  subjectToken: { audiences: [issuer] },
  consent: "record",
  askUser: true,
  targets: ["booking"],
  scopes: ["trips.read", "trips.book"],
};
const implied = { consent: "implied", acknowledge: "subjects-not-asked", askUser: undefined };

const subject: Subject = {
  tokenType: "jwt",
  origin: { iss: idp, sub: "alice" },
  audiences: [issuer],
  scopes: ["trips.read", "trips.book"],
  expiresAtSeconds: now + 600,
  chain: [],
  issuer: idp,
};
const consent: Consent = {
  id: "c",
  version: 1,
  origin: subject.origin,
  actor: planner,
  targets: ["booking"],
  scopes: ["trips.read"],
};
const access: AccessRequest = {
  mode: "delegation",
  clientId: planner,
  workload: planner,
  subject,
  target: "booking",
  consents: [],
  nowSeconds: now,
};

const defined = (patch: Patch): Patch =>
  Object.fromEntries(Object.entries(patch).filter(([, one]) => one !== undefined));
const rulesOf = (rules: readonly Patch[]) => rules.map((one) => v.parse(Rule, defined(one)));
function compile(rules: readonly Patch[]): PolicySet {
  const targets = TARGETS.map((one) => v.parse(Target, one));
  const set = compilePolicy(rulesOf(rules), targets, issuer, "sha256:00");
  assert.ok(set.ok, JSON.stringify(set));
  return set.value;
}

/** The reason of the refusal; then the rule and the scopes that the user could be asked for, if any. */
function outcome(rules: readonly Patch[], patch: Partial<AccessRequest>): string {
  const got = decide(compile(rules), { ...access, ...patch });
  if (got.ok) return `allowed ${got.value.scope.join(" ")}`;
  const { reason, missing } = got.error;
  return missing === undefined ? reason : `${reason}, ${missing.rule.id}: ${missing.scope.join(" ")}`;
}

const cases: readonly (readonly [
  name: string,
  rules: readonly Patch[],
  patch: Partial<AccessRequest>,
  want: string,
])[] = [
  ["names all that would be granted", [rule], {}, "consent_missing, asks: trips.read trips.book"],
  [
    "names what was asked for and no more",
    [rule],
    { scope: ["trips.book"] },
    "consent_missing, asks: trips.book",
  ],
  [
    "names no scope that the subject token, the client or the rule does not have",
    [{ ...rule, scopes: ["trips.read", "trips.book"] }],
    { subject: { ...subject, scopes: ["trips.book"] }, clientScopes: ["trips.book"] },
    "consent_missing, asks: trips.book",
  ],
  [
    "names the scopes that a consent on record does not cover",
    [rule],
    { consents: [consent], scope: ["trips.book"] },
    "consent_missing, asks: trips.book",
  ],
  [
    "grants what is consented to, without asking for more",
    [rule],
    { consents: [consent] },
    "allowed trips.read",
  ],
  [
    "names the consent also where the agent may act at another target",
    [rule, { ...rule, ...implied, id: "elsewhere", targets: ["api"] }],
    {},
    "consent_missing, asks: trips.read trips.book",
  ],
  [
    "names that of the rule that would grant more",
    [{ ...rule, id: "a", scopes: ["trips.read"] }, rule],
    {},
    "consent_missing, asks: trips.read trips.book",
  ],
  [
    "names that of a rule that asks, beside one that would grant more and does not",
    [
      { ...rule, id: "a", scopes: ["trips.read"] },
      { ...rule, askUser: false },
    ],
    {},
    "consent_missing, a: trips.read",
  ],
  ["names none without askUser", [{ ...rule, askUser: undefined }], {}, "consent_missing"],
  [
    "names none for an impersonation, which no token shows",
    [{ ...rule, allow: "impersonation", askUser: undefined }],
    { mode: "impersonation" },
    "consent_missing",
  ],
  [
    "names none for a redemption",
    [{ ...rule, allow: "redemption", askUser: undefined, subjectToken: undefined }],
    { mode: "redemption", subject: { ...subject, tokenType: "grant" } },
    "consent_missing",
  ],
  [
    "names none of another user",
    [rule],
    { subject: { ...subject, origin: { iss: "https://other.example", sub: "alice" } } },
    "no_rule",
  ],
  [
    "names none for a token that is not meant for the exchange",
    [rule],
    { subject: { ...subject, audiences: ["x"] } },
    "subject_token_does_not_permit",
  ],
  [
    "names none for a bound token whose key is not proven",
    [rule],
    { subject: { ...subject, boundTo: { jkt: "k" } } },
    "subject_key_not_proven",
  ],
  [
    "names none where the chain would be too long",
    [{ ...rule, maxChainDepth: 1 }],
    { subject: { ...subject, audiences: [issuer], chain: [{ iss: issuer, sub: "spiffe://td.example/a" }] } },
    "consent_missing",
  ],
  [
    "names none where a key is not proven either",
    [{ ...rule, targets: ["keyed"] }],
    { target: "keyed" },
    "consent_missing",
  ],
  [
    "names none where the subject token ends too soon",
    [rule],
    { subject: { ...subject, expiresAtSeconds: now + 1 } },
    "consent_missing",
  ],
  ["names none where no scope would be left", [rule], { scope: ["trips.pay"] }, "consent_missing"],
  [
    "names none where a scope falls at another side than the consent",
    [rule],
    { consents: [consent], scope: ["trips.pay"] },
    "scope_empty",
  ],
  [
    "names none for an actor that the token excludes",
    [rule],
    { subject: { ...subject, mayAct: { sub: "spiffe://td.example/agents/other" } } },
    "may_act_names_another",
  ],
  ["names none at an unknown target", [rule], { target: "nowhere" }, "target_unknown"],
];
for (const [name, rules, patch, want] of cases) {
  test(`PROD-2.6-4 the decision ${name}`, () => assert.equal(outcome(rules, patch), want));
}

test("PROD-2.6-4 the target of a missing consent is the one in force, by whatever name it was asked for", () => {
  const policy = compile([rule]);
  const got = decide(policy, { ...access, target: "booking-too" });
  assert.ok(!got.ok);
  assert.equal(got.error.missing?.target, policy.targets.get("booking"));
});

test("PROD-2.6-4 with exactly the consent that was missing, the decision allows what was named", () => {
  const policy = compile([rule]);
  const refused = decide(policy, access);
  assert.ok(!refused.ok && refused.error.missing !== undefined);
  const given = { ...consent, scopes: refused.error.missing.scope };
  const allowed = decide(policy, { ...access, consents: [given] });
  assert.ok(allowed.ok);
  assert.deepEqual([...allowed.value.scope], [...refused.error.missing.scope]);
});

// --- the rule -------------------------------------------------------------------------------------------------------

const wrong = [
  ["may_act", { consent: "may_act" }],
  ["implied", { ...implied, askUser: true }],
] as const;
for (const [name, patch] of wrong) {
  test(`PROD-2.6-4 a rule with consent "${name}" asks no user`, () => {
    const parsed = v.safeParse(Rule, { ...rule, ...patch });
    assert.match(parsed.issues?.[0].message ?? "", /"askUser" requires consent "record"/);
  });
}

for (const allow of ["impersonation", "redemption", "client_credentials"]) {
  test(`PROD-2.6-7 askUser is no field of a rule for ${allow}`, () => {
    assert.equal(v.safeParse(Rule, { ...rule, allow }).success, false);
  });
}

test("PROD-2.6-7, PAGE-D-25 a partner has words for users like any other target", () => {
  const shown = { title: "the partner", sentences: { "stays.read": "read your stays" } };
  const partner = { kind: "partner", issuer: "https://as.partner.example", scopes: ["stays.read"], ...shown };
  const { title, sentences } = v.parse(Target, partner);
  assert.deepEqual({ title, sentences }, shown);
});

const warnings = (rules: readonly Patch[], providers: object | undefined): readonly string[] =>
  checkPolicy(compile(rules), rulesOf(rules), {
    trustDomains: { "td.example": {} },
    trustedIssuers: { [idp]: { acceptAs: ["jwt"], subjects: "keep" } },
    clients: {},
    signIn: providers && { providers: providers as Record<string, { issuer: string }> },
  }).warnings;

test("PROD-2.6-7 a rule that asks users who cannot sign in is warned of", () => {
  const [warned = ""] = warnings([rule], undefined);
  assert.match(warned, /rule "asks" cannot ask users of "https:\/\/idp.example", who do not sign in here/);
  // The other provider has a warning of its own, because no rule is for its users.
  const beside = warnings([rule], { company: { issuer: "https://other.example" } });
  assert.deepEqual(
    beside.filter((one) => one.startsWith("policies: ")),
    [warned],
  );
  assert.deepEqual(warnings([rule], { company: { issuer: idp } }), []);
});

test("PROD-2.6-7 a rule that asks is not redundant beside one that does not, but beside one that needs no consent", () => {
  const signIn = { company: { issuer: idp } };
  const found = (others: Patch): boolean =>
    warnings([rule, { ...rule, id: "a", ...others }], signIn).some((one) => /"asks" is redundant/.test(one));
  assert.equal(found({ askUser: undefined }), false);
  assert.equal(found({}), true);
  assert.equal(found(implied), true);
});

test("POLICY-D-21 each condition that does not hold is named, and why no user is asked", () => {
  const lacks = (rules: readonly Patch[], patch: Partial<AccessRequest>) => {
    const got = decide(compile(rules), { ...access, ...patch });
    assert.ok(!got.ok);
    const { reason, notAsked, trace } = got.error;
    return [reason, notAsked, ...trace.map(({ failed, also = [] }) => [failed, ...also].join(" "))];
  };
  assert.deepEqual(lacks([rule], {}), ["consent_missing", undefined, "consent"]);
  assert.deepEqual(lacks([{ ...rule, askUser: false }], {}), [
    "consent_missing",
    "rule_asks_no_user",
    "consent",
  ]);
  assert.deepEqual(lacks([rule], { scope: ["trips.pay"] }), [
    "consent_missing",
    "more_than_consent_missing",
    "consent scope",
  ]);
  const late = {
    ...subject,
    origin: { iss: "https://other.example", sub: "alice" },
    expiresAtSeconds: now + 1,
  };
  assert.deepEqual(lacks([{ ...rule, targets: ["keyed"] }], { target: "keyed", subject: late }), [
    "no_rule",
    "more_than_consent_missing",
    "subject_issuer consent binding lifetime",
  ]);
});

test("POLICY-D-21 a missing consent is told as one beside a consent for another target, and beside a rule without the scope", () => {
  const elsewhere = { ...consent, targets: ["api"] };
  const both = [rule, { ...rule, id: "api", targets: ["api"] }];
  const kindOf = (rules: readonly Patch[], patch: Partial<AccessRequest>) => {
    const got = decide(compile(rules), { ...access, ...patch });
    return got.ok ? "allowed" : `${got.error.kind} ${got.error.reason} ${got.error.missing?.rule.id}`;
  };
  assert.equal(kindOf(both, {}), "policy_denied consent_missing asks");
  assert.equal(kindOf(both, { consents: [elsewhere] }), "policy_denied consent_missing asks");
  const narrow = { ...rule, ...implied, id: "narrow", scopes: ["trips.book"] };
  assert.equal(kindOf([narrow, rule], { scope: ["trips.read"] }), "policy_denied consent_missing asks");
});

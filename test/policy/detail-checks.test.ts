import assert from "node:assert/strict";
import { test } from "node:test";
import * as v from "valibot";
import { checkPolicy } from "../../src/policy/checks.ts";
import { compilePolicy, Rule, Target } from "../../src/policy/rules.ts";

const ISSUER = "https://as.example";
const IDP = "https://idp.example";
const PLANNER = "spiffe://td.example/planner";

type Patch = Record<string, unknown>;

const invoice = {
  governs: ["invoices.pay"],
  needs: ["actions"],
  fields: {
    actions: { is: "strings", narrows: "subset", from: ["read", "pay"] },
    max_amount: { is: "decimal", narrows: "max", unit: "currency" },
    currency: { is: "string", narrows: "equal" },
  },
};
const ledger: Patch = {
  names: ["ledger"],
  owners: [PLANNER],
  scopes: ["invoices.read", "invoices.pay"],
  details: { invoice },
};
const reports: Patch = { names: ["reports"], scopes: ["reports.read", "invoices.pay"] };
const exchange: Patch = {
  id: "r",
  allow: "delegation",
  actors: [PLANNER],
  subjects: { issuers: [IDP], subs: ["u"] },
  subjectToken: { audiences: ["self"] },
  consent: "record",
  targets: ["ledger"],
  scopes: ["invoices.pay"],
};

function check(rules: readonly Patch[], targets: readonly Patch[] = [ledger, reports], details?: string[]) {
  const parsed = rules.map((rule) => v.parse(Rule, rule));
  const compiled = compilePolicy(
    parsed,
    targets.map((target) => v.parse(Target, target)),
    ISSUER,
    "sha256:0",
  );
  if (!compiled.ok) return { problems: compiled.error, warnings: [] };
  return checkPolicy(compiled.value, parsed, {
    trustDomains: { "td.example": {} },
    trustedIssuers: { [IDP]: { acceptAs: ["jwt"], subjects: "keep", details } },
    clients: {},
  });
}

const pay = { type: "invoice", actions: ["pay"] };

test("RAR-D-1, RAR-D-5 a rule with details of a declared type, and one that demands it, are taken without a word", () => {
  assert.deepEqual(check([{ ...exchange, details: [pay], demands: ["invoice"] }]), {
    problems: [],
    warnings: [],
  });
});

const PROBLEMS: readonly (readonly [string, Patch, string])[] = [
  [
    "of an unknown type",
    { details: [{ type: "payment" }] },
    'of the type "payment", which none of its targets declares',
  ],
  [
    "with an unknown field",
    { details: [{ ...pay, colour: "red" }] },
    'to their type "invoice": "colour" is no field of it',
  ],
  [
    "with a wrong value",
    { details: [{ ...pay, max_amount: "1e3", currency: "EUR" }] },
    '"max_amount" has a value that its field does not take',
  ],
  ["without a needed field", { details: [{ type: "invoice" }] }, "is needed, and is missing"],
  [
    "without the unit of an amount",
    { details: [{ ...pay, max_amount: "5" }] },
    '"currency" is needed, and is missing',
  ],
];
for (const [name, patch, want] of PROBLEMS) {
  test(`RAR-D-1 a rule with details ${name} is refused`, () => {
    const { problems } = check([{ ...exchange, ...patch }]);
    assert.ok(problems.join().startsWith('policies: rule "r" has details'), problems.join());
    assert.ok(problems.join().includes(want), problems.join());
  });
}

test("RAR-D-12 a rule with an empty list of details, or a number that is rounded, is refused", () => {
  for (const details of [[], [{ ...pay, count: 0.5 }], [{ ...pay, count: 2 ** 53 }]]) {
    assert.equal(v.safeParse(Rule, { ...exchange, details }).success, false);
  }
});

test("RAR-D-5 a rule that demands what none of its targets declares is refused", () => {
  const { problems } = check([{ ...exchange, demands: ["payment"] }]);
  assert.match(problems.join(), /can never grant anything: it demands details of the type "payment"/);
});

test("RAR-D-5 a rule that demands what one of its targets does not declare is warned of", () => {
  const { warnings } = check([{ ...exchange, targets: ["ledger", "reports"], demands: ["invoice"] }]);
  assert.match(
    warnings.join(),
    /grants nothing at the target "reports", which does not declare the type "invoice"/,
  );
});

test("RAR-D-1 a type that two targets declare in two ways is refused", () => {
  const other = { ...reports, details: { invoice: { ...invoice, needs: [] } } };
  const { problems } = check([exchange], [ledger, other]);
  assert.deepEqual(problems, [
    'targets: "reports" declares the type "invoice" otherwise than another target',
  ]);
  assert.deepEqual(check([exchange], [ledger, { ...reports, details: { invoice } }]).problems, []);
});

test("RAR-D-1 a type that governs no scope of its target is refused", () => {
  const { problems } = check([exchange], [ledger, { ...reports, scopes: ["x"], details: { invoice } }]);
  assert.deepEqual(problems, ['targets: "reports" has none of the scopes that its type "invoice" governs']);
});

test("RAR-D-6 a rule that lets a type lapse is warned of, and so is one that does so without effect", () => {
  const lapsing = { ...exchange, lapses: ["invoice"] };
  const { warnings } = check([{ ...lapsing, targets: ["reports"] }]);
  assert.match(warnings.join(), /lets details of the type "invoice" lapse/);
  assert.match(check([lapsing]).warnings.join(), /has "invoice" in "lapses" without effect/);
});

test("RAR-D-6, RAR-D-8 a rule for grants cannot let a type lapse", () => {
  const rule = { ...exchange, issues: "grant", lapses: ["invoice"] };
  assert.equal(v.safeParse(Rule, rule).success, false);
});

test("RAR-D-7 a type of an issuer that no target declares is warned of", () => {
  assert.deepEqual(check([exchange], [ledger], ["invoice", "payment"]).warnings, [
    'trustedIssuers.https://idp.example.details: names the type "payment", which no target declares',
  ]);
});

test("RAR-D-5 a rule is redundant only beside one that sets no narrower limit and demands no more", () => {
  const redundant = (rule: Patch, other: Patch): boolean =>
    check([
      { ...exchange, ...rule },
      { ...exchange, id: "s", ...other },
    ]).warnings.some((one) => one.startsWith('policies: rule "r" is redundant'));
  const wide = { details: [{ type: "invoice", actions: ["read", "pay"] }] };
  const narrow = { details: [pay] };
  assert.equal(redundant(narrow, wide), true);
  assert.equal(redundant(narrow, {}), true);
  assert.equal(redundant(wide, narrow), false);
  assert.equal(redundant({ lifetimeSeconds: 200 }, narrow), false);
  assert.equal(redundant({ lifetimeSeconds: 200 }, { demands: ["invoice"] }), false);
  assert.equal(redundant({ demands: ["invoice"], lifetimeSeconds: 200 }, {}), true);
  assert.equal(redundant({ lapses: ["other"], lifetimeSeconds: 200 }, {}), false);
});

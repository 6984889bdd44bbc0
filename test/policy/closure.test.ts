/** The closure report of a job: what may still be accepted, where and until when, and when nothing is. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as v from "valibot";
import { STORE_TIMEOUT_MS } from "../../src/limits/store.ts";
import { buildClosure, type ClosureFacts, unaskedRules } from "../../src/policy/closure.ts";
import { compilePolicy, Rule, Target } from "../../src/policy/rules.ts";

const NOW = 1_790_000_000;
const API = "https://api.example";
const DESK = "https://desk.example";
const PARTNER = "https://as.partner.example";
const DEAF = "https://as.deaf.example";

const set = compilePolicy(
  [],
  [
    { names: [API], scopes: ["read"] },
    { names: [DESK], scopes: ["read"], checks: "introspection" },
    { kind: "partner", issuer: PARTNER, scopes: ["read"], jobs: "honours" },
    { kind: "partner", issuer: DEAF, scopes: ["read"] },
  ].map((target) => v.parse(Target, target)),
  "https://as.example",
  "digest",
);
assert.ok(set.ok);
const compiled = set.value;

const facts = (values: Partial<ClosureFacts>): ClosureFacts => ({
  job: { notAfterSeconds: NOW + 3600, targets: [API, DESK, PARTNER] },
  endedMs: NOW * 1000 - STORE_TIMEOUT_MS,
  living: [],
  streams: [],
  nowMs: NOW * 1000,
  ...values,
});
const at = (audience: string) => ({ audience, count: 2, recent: 2, untilSeconds: NOW + 100 });
const stream = (audience: string, isWaiting: boolean) => ({ targets: new Set([audience]), isWaiting });

test("JOB-D-21: a job with a token that may be taken offline is partial, until its stream has acknowledged the end", () => {
  const untold = buildClosure(compiled, facts({ living: [at(API)] }));
  assert.deepEqual(untold, {
    state: "partial",
    settled: true,
    open: [{ target: API, tokens: 2, untilSeconds: NOW + 100, told: "never" }],
    partners: [],
  });
  const waits = buildClosure(compiled, facts({ living: [at(API)], streams: [stream(API, true)] }));
  assert.deepEqual([waits.state, waits.open[0]?.told], ["partial", "sent"]);
  const told = buildClosure(compiled, facts({ living: [at(API)], streams: [stream(API, false)] }));
  assert.deepEqual([told.state, told.open[0]?.told], ["closed", "acknowledged"]);
  // Of two streams for a target, the one that waits decides.
  const streams = [stream(API, false), stream(API, true)];
  assert.equal(buildClosure(compiled, facts({ living: [at(API)], streams })).state, "partial");
});

test("JOB-D-20: a target that asks at each use keeps no job open", () => {
  const { state, open } = buildClosure(compiled, facts({ living: [at(DESK)] }));
  assert.deepEqual([state, open[0]?.told], ["closed", "introspects"]);
});

test("JOB-D-21: a target that is no longer configured keeps the job open until its tokens expire", () => {
  assert.equal(buildClosure(compiled, facts({ living: [at("https://gone.example")] })).state, "partial");
});

test("JOB-D-22: no report is settled before what another instance was writing at the stop can be counted", () => {
  const endedMs = NOW * 1000 - STORE_TIMEOUT_MS + 1;
  const { state, settled } = buildClosure(compiled, facts({ endedMs }));
  assert.deepEqual([state, settled], ["partial", false]);
  assert.equal(buildClosure(compiled, facts({})).state, "closed");
});

test("JOB-D-20: a partner's part lasts until the job's end, unless the partner was told", () => {
  const { state, partners } = buildClosure(compiled, facts({ living: [at(PARTNER)] }));
  assert.deepEqual(partners, [{ issuer: PARTNER, grants: 2, untilSeconds: NOW + 3600, told: "never" }]);
  assert.equal(state, "partial");
  assert.equal(
    buildClosure(compiled, facts({ living: [at(PARTNER)], streams: [stream(PARTNER, false)] })).state,
    "closed",
  );
});

test("JOB-D-21: a partner that was not told keeps the job open while what it gave for a grant may live, and not beyond the job", () => {
  const expired = [PARTNER, API].map((audience) => ({
    ...{ audience, count: 0, recent: 2, untilSeconds: NOW - 100 },
  }));
  const { state, open, partners } = buildClosure(compiled, facts({ living: expired }));
  assert.deepEqual([state, open, partners[0]?.grants], ["partial", [], 2]);
  const over = { notAfterSeconds: NOW, targets: [API, PARTNER] };
  assert.equal(buildClosure(compiled, facts({ living: expired, job: over })).state, "closed");
});

test("JOB-D-21: a job that could reach a partner which takes no notice of jobs never reads as closed", () => {
  const reaching = (targets?: readonly string[]) =>
    buildClosure(compiled, facts({ job: { notAfterSeconds: NOW + 3600, ...(targets && { targets }) } }))
      .state;
  assert.deepEqual([reaching([DEAF]), reaching(), reaching([API])], ["unknown", "unknown", "closed"]);
});

test("JOB-D-20: what time ended is settled at once", () => {
  const { endedMs: _, ...over } = facts({ nowMs: NOW * 1000 });
  assert.equal(buildClosure(compiled, over).settled, true);
});

const IDP = "https://idp.example";
const PLANNER = "spiffe://td.example/crew/planner";
const unasked = {
  allow: "delegation",
  actors: ["spiffe://td.example/crew/*"],
  subjectToken: { audiences: ["self"] },
};
const implied = { consent: "implied", acknowledge: "subjects-not-asked" };
const ruled = compilePolicy(
  [
    { ...unasked, ...implied, id: "goes-on", subjects: { issuers: [IDP] } },
    { ...unasked, ...implied, id: "one-of-them", subjects: { issuers: [IDP], subs: ["alice"] } },
    { ...unasked, ...implied, id: "in-a-job", subjects: { issuers: [IDP] }, jobs: "required" },
    { ...unasked, ...implied, id: "of-others", subjects: { issuers: ["https://other.example"] } },
    { ...unasked, consent: "may_act", id: "named", subjects: { issuers: [IDP], subs: ["carol"] } },
    { ...unasked, consent: "record", id: "asks", subjects: { issuers: [IDP] } },
    { ...implied, id: "of-a-class", allow: "redemption", classes: ["apps"], subjects: { issuers: [IDP] } },
  ].map((rule) => v.parse(Rule, { targets: [API], scopes: ["read"], ...rule })),
  [v.parse(Target, { names: [API], scopes: ["read"] })],
  "https://as.example",
  "digest",
);

for (const [of, sub, caller, want] of [
  ["an agent", "bob", { clientId: PLANNER, workload: PLANNER }, ["goes-on"]],
  [
    "an agent with a rule for one user",
    "alice",
    { clientId: "app", workload: PLANNER },
    ["goes-on", "one-of-them"],
  ],
  ["an agent that tokens name", "carol", { clientId: PLANNER, workload: PLANNER }, ["goes-on", "named"]],
  ["another agent", "bob", { clientId: "app", workload: "spiffe://td.example/other" }, []],
  ["a client of a class", "bob", { clientId: "app", registrationClass: "apps" }, ["of-a-class"]],
] as const) {
  test(`JOB-D-23: the rules of ${of} that need neither job nor consent for the subject are named, and no others`, () => {
    assert.ok(ruled.ok);
    const found = unaskedRules(ruled.value, { iss: IDP, sub }, caller);
    assert.deepEqual(
      found.map(({ id }) => id),
      want,
    );
  });
}

import assert from "node:assert/strict";
import { test } from "node:test";
import * as v from "valibot";
import type { Surroundings } from "../../src/policy/checks.ts";
import { checkPolicy } from "../../src/policy/checks.ts";
import type { Ask, Consent } from "../../src/policy/decide.ts";
import { decide } from "../../src/policy/decide.ts";
import type { PolicySet } from "../../src/policy/rules.ts";
import { compilePolicy, Rule, Target } from "../../src/policy/rules.ts";
import { prng } from "../spec/prng.ts";

const issuer = "https://as.example";
const idp = "https://idp.example";
const staff = "https://staff.example";
const planner = "spiffe://td.example/agents/planner";
const booking = "spiffe://td.example/agents/booking";
const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";

type Patch = Record<string, unknown>;

const targets: Patch[] = [
  { names: ["planner-agent"], owners: [planner], scopes: ["trips.read", "trips.book"] },
  { names: ["booking-agent"], owners: [booking], scopes: ["trips.read", "trips.book"] },
  { names: ["api", "https://api.example"], scopes: ["trips.read", "trips.pay"] },
  { names: ["reports"], scopes: ["reports.read"] },
];
const grantTypes = ["client_credentials", EXCHANGE];
const around: Surroundings = {
  trustDomains: { "td.example": {} },
  trustedIssuers: {
    [idp]: { acceptAs: ["jwt"], subjects: "keep" },
    [staff]: { acceptAs: ["jwt"], subjects: { table: { "7": "anna" } } },
    "https://cluster.example": { acceptAs: [], subjects: { prefix: "cluster:" } },
  },
  clients: {
    report: { grantTypes },
    portal: { grantTypes, workload: "spiffe://apps.example/portal" },
    desk: { grantTypes, spiffeId: "spiffe://td.example/desk/*" },
    batch: { grantTypes: ["client_credentials"] },
  },
};

const machine: Patch = {
  id: "r",
  allow: "client_credentials",
  clients: ["report"],
  targets: ["api"],
  scopes: ["trips.read"],
};
const delegation: Patch = {
  id: "r",
  allow: "delegation",
  actors: [planner],
  subjects: { issuers: [idp] },
  subjectToken: { audiences: [issuer, "self"] },
  consent: "record",
  targets: ["booking-agent"],
  scopes: ["trips.read"],
};
const impersonation: Patch = {
  ...delegation,
  allow: "impersonation",
  subjects: { issuers: [idp], subs: ["u"] },
};
const implied = { consent: "implied", acknowledge: "subjects-not-asked" };
const byClient = (...clients: string[]): Patch => ({ ...impersonation, actors: undefined, clients });

/** As in a file: what is undefined is not there. */
const written = (rule: object): unknown => JSON.parse(JSON.stringify(rule));

function check(rules: readonly Patch[], registry = targets, surroundings = around) {
  const parsed = rules.map((rule) => v.parse(Rule, written(rule)));
  const set = compilePolicy(
    parsed,
    registry.map((target) => v.parse(Target, target)),
    issuer,
    "sha256:00",
  );
  assert.ok(set.ok, JSON.stringify(set));
  return { policy: set.value, parsed, ...checkPolicy(set.value, parsed, surroundings) };
}

// --- one rule -------------------------------------------------------------------------------------------------------

const fine: [string, Patch][] = [
  ["PROD-2.6-7 is content with client credentials", machine],
  ["PROD-2.6-7 is content with a delegation", delegation],
  ["PROD-2.6-7 is content with an impersonation of somebody", impersonation],
  [
    "PROD-2.6-7 is content with scopes that each have their target",
    { ...delegation, targets: ["booking-agent", "api"], scopes: ["trips.book", "trips.pay"] },
  ],
  ["PROD-2.6-2 is content with a client of an origin", { ...machine, clients: ["https://agents.example/*"] }],
  ["PROD-2.6-2 is content with a client that the server made", { ...machine, clients: ["c_123"] }],
  ["PROD-2.6-2 is content with a client that is a workload", { ...machine, clients: [planner] }],
  ["PROD-2.6-2 is content with a client for client credentials alone", { ...machine, clients: ["batch"] }],
  [
    "PROD-2.6-2 is content with a folder of workloads",
    { ...delegation, actors: ["spiffe://td.example/agents/*"] },
  ],
  [
    "PROD-2.6-3 is content with the workload of a client",
    { ...machine, clients: undefined, actors: ["spiffe://apps.example/portal"] },
  ],
  [
    "PROD-2.6-3 is content with a client and its workload",
    { ...machine, clients: ["portal"], actors: ["spiffe://apps.example/portal", planner] },
  ],
  [
    "PROD-2.6-3 is content with a client and its SPIFFE ID",
    { ...machine, clients: ["desk"], actors: ["spiffe://td.example/desk/7"] },
  ],
  [
    "PROD-2.6-3 is content with a stored client and any actor",
    { ...machine, clients: ["c_1"], actors: [planner] },
  ],
  [
    "PROD-2.6-9 is content with self where the actor owns a target",
    { ...delegation, subjectToken: { audiences: ["self"] } },
  ],
  [
    "PROD-2.6-9 is content with the target of the actor",
    { ...delegation, subjectToken: { audiences: ["planner-agent"] } },
  ],
  ["PROD-2.6-9 is content with the actor itself", { ...delegation, subjectToken: { audiences: [planner] } }],
  [
    "PROD-2.6-9 is content with the client itself",
    { ...byClient("report"), subjectToken: { audiences: ["report"] } },
  ],
  [
    "PROD-2.6-9 is content with the workload that a client may have",
    { ...byClient("report"), subjectToken: { audiences: [booking] } },
  ],
  [
    "PROD-2.6-9 is content with self where a client may own a target",
    { ...byClient("report"), subjectToken: { audiences: ["self"] } },
  ],
  ["PROD-2.6-9 is content with scopes", { ...delegation, subjectToken: { scopes: ["delegate"] } }],
  [
    "PROD-2.6-8 is content with may_act of a foreign issuer",
    { ...delegation, consent: "may_act", subjects: { issuers: [issuer, idp] } },
  ],
  [
    "RFC7519-4.1.2-v1 is content with a subject of the table",
    { ...impersonation, subjects: { issuers: [staff], subs: ["7"] } },
  ],
  [
    "RFC7519-4.1.2-v1 is content with a subject of one of its issuers",
    { ...impersonation, subjects: { issuers: [staff, idp], subs: ["8"] } },
  ],
];
for (const [name, rule] of fine) {
  test(name, () => {
    const { problems, warnings } = check([rule]);
    assert.deepEqual({ problems, warnings }, { problems: [], warnings: [] });
  });
}

const refused: [string, Patch, string][] = [
  [
    "PROD-2.6-7 refuses scopes that no target knows",
    { ...delegation, scopes: ["trips.pay", "x"] },
    'can never grant anything: none of its targets knows any of its scopes ("trips.pay", "x")',
  ],
  [
    "PROD-2.6-7 says no more of a rule that is refused",
    { ...delegation, scopes: ["x"], actors: ["spiffe://gone.example/*"], ...implied },
    'can never grant anything: none of its targets knows any of its scopes ("x")',
  ],
  [
    "PROD-2.6-2 refuses a prefix of workloads among clients",
    { ...machine, clients: ["report", "spiffe://td.example/crew/*"] },
    'names as client what is no client_id and no https origin: "spiffe://td.example/crew/*"',
  ],
  [
    "PROD-2.6-2 refuses a folder of documents among clients",
    { ...machine, clients: ["https://agents.example/crew/*"] },
    'names as client what is no client_id and no https origin: "https://agents.example/crew/*"',
  ],
  [
    "PROD-2.6-9 refuses self where the actor owns no target",
    { ...delegation, actors: ["spiffe://td.example/crew/*"], subjectToken: { audiences: ["self"] } },
    "can never match: it wants a token for a target that the caller owns, and its callers own none",
  ],
  [
    "PROD-2.6-8 refuses may_act of subjects that are ours alone",
    { ...delegation, consent: "may_act", subjects: { issuers: [issuer] } },
    "can never match: no token of a subject of this server carries may_act",
  ],
];
for (const [name, rule, want] of refused) {
  test(name, () => {
    const { problems, warnings } = check([rule]);
    assert.deepEqual({ problems, warnings }, { problems: [`policies: rule "r" ${want}`], warnings: [] });
  });
}

const warned: [string, Patch, ...string[]][] = [
  // --- whom the rest of the configuration keeps out
  [
    "PROD-2.6-3 warns of actors of no trust domain",
    { ...delegation, actors: ["spiffe://gone.example/a"], subjectToken: { audiences: [issuer] } },
    'can never match: its actors are of no configured trust domain ("spiffe://gone.example/a")',
  ],
  [
    "PROD-2.6-3 warns of one actor of no trust domain",
    { ...delegation, actors: [planner, "spiffe://td.example.org/crew/*"] },
    'names the actor "spiffe://td.example.org/crew/*", which is of no configured trust domain',
  ],
  [
    "PROD-2.6-3 takes the name of a property for no trust domain",
    { ...delegation, actors: [planner, "spiffe://constructor/a"] },
    'names the actor "spiffe://constructor/a", which is of no configured trust domain',
  ],
  [
    "PROD-2.6-2 warns of a client that nobody configured",
    { ...machine, clients: ["report", "rapport"] },
    'names the client "rapport", which is not configured',
  ],
  [
    "PROD-2.6-2 warns of a client that is a workload of no trust domain",
    { ...machine, clients: ["spiffe://gone.example/a"] },
    'can never match: its clients are not configured ("spiffe://gone.example/a")',
  ],
  [
    "PROD-2.6-2 warns of a client that may not ask for this",
    byClient("batch"),
    `can never match: its clients are not registered for ${EXCHANGE} ("batch")`,
  ],
  ...["report", "portal", "desk", booking].map((client): [string, Patch, string] => [
    `PROD-2.6-3 warns of ${client} that is never among the actors`,
    { ...machine, clients: [client], actors: [planner] },
    "can never match: none of its clients has a workload among its actors",
  ]),
  [
    "PROD-2.6-4 warns of an issuer that nobody trusts",
    { ...delegation, subjects: { issuers: [idp, "https://gone.example"] } },
    'names the subject issuer "https://gone.example", which is neither trusted for subject tokens nor this server',
  ],
  [
    "PROD-2.6-4 warns of issuers that are not trusted for subject tokens",
    { ...delegation, subjects: { issuers: ["https://cluster.example", "toString"] } },
    'can never match: its subject issuers are neither trusted for subject tokens nor this server ("https://cluster.example", "toString")',
  ],
  [
    "RFC7519-4.1.2-v1 warns of a subject that no table has",
    { ...impersonation, subjects: { issuers: [staff], subs: ["7", "8"] } },
    'names the subject "8", which is in the table of none of its issuers',
  ],
  // --- what is wide
  [
    "PROD-2.6-2 warns of a whole trust domain",
    { ...delegation, actors: ["spiffe://td.example/*"] },
    "lets every workload under spiffe://td.example/* act",
  ],
  [
    "PROD-2.6-8 warns of implied consent",
    { ...delegation, ...implied },
    `takes consent as implied, without asking any subject of "${idp}"`,
  ],
  [
    "PROD-2.6-8 warns of implied consent of subjects by name",
    { ...impersonation, ...implied },
    'takes consent as implied, without asking "u"',
  ],
  [
    "PROD-2.6-4 warns of an impersonation of anybody",
    { ...impersonation, subjects: { issuers: [idp] } },
    `lets its callers pass for any subject of "${idp}", and no token shows it: name whom in subjects.subs`,
  ],
  [
    "PROD-2.6-4 warns of everything that is wide at once",
    { ...impersonation, actors: ["spiffe://td.example/*"], subjects: { issuers: [idp] }, ...implied },
    "lets every workload under spiffe://td.example/* act",
    `takes consent as implied, without asking any subject of "${idp}"`,
    `lets its callers pass for any subject of "${idp}", and no token shows it: name whom in subjects.subs`,
  ],
  // --- what does nothing
  [
    "PROD-2.6-6 warns of a scope that no target knows",
    { ...delegation, scopes: ["trips.read", "trips.raed"] },
    'has the scope "trips.raed", which none of its targets knows',
  ],
  [
    "PROD-2.6-6 warns of a target that knows no scope",
    { ...delegation, targets: ["booking-agent", "reports"] },
    'grants nothing at "reports", which knows none of its scopes',
  ],
  [
    "PROD-2.6-9 warns of self where the actor owns no target",
    { ...delegation, actors: ["spiffe://td.example/crew/*"] },
    'names the audience "self", but its callers own no target',
  ],
  ...Object.entries({
    "the target of another": "booking-agent",
    "nobody's target": "api",
    "another workload": booking,
    "a stranger": idp,
  }).map(([whose, audience]): [string, Patch, string] => [
    `PROD-2.6-9 warns of an audience that is ${whose}`,
    { ...delegation, subjectToken: { audiences: [audience] } },
    `names the audience ${JSON.stringify(audience)}: a token for that alone is not meant for its callers, and is refused`,
  ]),
];
for (const [name, rule, ...want] of warned) {
  test(name, () => {
    const { problems, warnings } = check([rule]);
    assert.deepEqual(problems, []);
    assert.deepEqual(
      warnings,
      want.map((words) => `policies: rule "r" ${words}`),
    );
  });
}

test("PROD-2.6-9 warns of a target that belongs to a whole trust domain", () => {
  const wide = {
    names: ["wide"],
    owners: ["spiffe://td.example/*", "spiffe://td.example/a/*"],
    scopes: ["a"],
  };
  assert.deepEqual(check([], [...targets, wide]).warnings, [
    'targets: "wide" belongs to every workload under spiffe://td.example/*',
  ]);
});

test("PROD-2.6-7 takes trust away without refusing the rules that still name it", () => {
  const nobody: Surroundings = { trustDomains: {}, trustedIssuers: {}, clients: {} };
  for (const rule of [machine, delegation, impersonation]) {
    const { problems, warnings } = check([rule], targets, nobody);
    assert.deepEqual(problems, []);
    assert.match(warnings.join(), /can never match/);
  }
});

// --- two rules ------------------------------------------------------------------------------------------------------

const wide: Patch = {
  ...delegation,
  id: "w",
  actors: ["spiffe://td.example/agents/*"],
  subjects: { issuers: [idp, staff] },
  subjectToken: { audiences: [issuer, "self"], scopes: ["delegate"] },
  maxChainDepth: 4,
  targets: ["booking-agent", "api"],
  scopes: ["trips.read", "trips.book"],
  lifetimeSeconds: 600,
};
const narrow: Patch = { ...delegation, maxChainDepth: 2 };
const wideImpersonation = { ...impersonation, ...implied, id: "w" };

const pairs: [string, Patch, Patch, boolean][] = [
  ["by one that is wider in everything", narrow, wide, true],
  ["by one that is wider in nothing", delegation, { ...delegation, id: "a" }, true],
  ["by one that came later", delegation, { ...delegation, id: "s" }, false],
  ["by one with other actors", { ...narrow, actors: [planner, "spiffe://td.example/crew/*"] }, wide, false],
  ["by one with fewer subjects", narrow, { ...wide, subjects: { issuers: [idp], subs: ["u"] } }, false],
  ["by one with any subjects", { ...narrow, subjects: { issuers: [idp], subs: ["u"] } }, wide, true],
  [
    "by one with some of the subjects",
    { ...narrow, subjects: { issuers: [idp], subs: ["u", "w"] } },
    { ...wide, subjects: { issuers: [idp], subs: ["u"] } },
    false,
  ],
  ["by one with other issuers", narrow, { ...wide, subjects: { issuers: [staff] } }, false],
  ["by one with fewer audiences", narrow, { ...wide, subjectToken: { audiences: [issuer] } }, false],
  [
    "by one with fewer scopes of the subject token",
    { ...narrow, subjectToken: { audiences: [issuer], scopes: ["x"] } },
    wide,
    false,
  ],
  ["by one that takes consent as implied", narrow, { ...wide, ...implied }, true],
  ["by one that wants another consent", narrow, { ...wide, consent: "may_act" }, false],
  ["by one that wants more consent", { ...narrow, ...implied }, wide, false],
  ["by one with a shorter chain", narrow, { ...wide, maxChainDepth: 1 }, false],
  [
    "by one with no word on the chain",
    { ...narrow, maxChainDepth: 8 },
    { ...wide, maxChainDepth: undefined },
    true,
  ],
  [
    "by one with a word on the chain",
    { ...narrow, maxChainDepth: undefined },
    { ...wide, maxChainDepth: 7 },
    false,
  ],
  ["by one with fewer targets", { ...narrow, targets: ["booking-agent", "planner-agent"] }, wide, false],
  ["by one with another name of the target", { ...narrow, targets: ["https://api.example"] }, wide, true],
  ["by one with fewer scopes", narrow, { ...wide, scopes: ["trips.book"] }, false],
  ["by one that lives shorter", narrow, { ...wide, lifetimeSeconds: 60 }, false],
  [
    "by one of another mode",
    { ...impersonation, ...implied },
    { ...wideImpersonation, allow: "delegation" },
    false,
  ],
  [
    "by one for its client",
    { ...byClient("report"), ...implied },
    { ...wideImpersonation, actors: undefined, clients: ["desk", "report"] },
    true,
  ],
  [
    "by one for the origin of its client",
    { ...machine, clients: ["https://a.example/b"] },
    { ...machine, id: "w", clients: ["https://a.example/*"] },
    true,
  ],
  [
    "by one for another client",
    byClient("report"),
    { ...wideImpersonation, actors: undefined, clients: ["desk"] },
    false,
  ],
  [
    "by one that narrows its client by actors",
    byClient("desk"),
    { ...wideImpersonation, clients: ["desk"], actors: ["spiffe://td.example/desk/*"] },
    false,
  ],
  [
    "by one that has its actors and any client",
    { ...impersonation, clients: ["desk"], actors: ["spiffe://td.example/desk/*"] },
    { ...impersonation, id: "w", actors: ["spiffe://td.example/desk/*"] },
    true,
  ],
];
for (const [name, rule, other, want] of pairs) {
  test(`PROD-2.6-10 ${want ? "finds" : "does not find"} a rule covered ${name}`, () => {
    const expected = [
      `policies: rule "r" adds nothing to rule ${JSON.stringify(other.id)}, which allows all of it`,
    ];
    const ours = (found: readonly string[]) =>
      found.filter((warning) => warning.startsWith('policies: rule "r" adds nothing'));
    assert.deepEqual(ours(check([rule, other]).warnings), want ? expected : []);
    assert.deepEqual(ours(check([other, rule]).warnings), want ? expected : []);
  });
}

test("PROD-2.6-10 warns of all but one of many that are the same", () => {
  const same = ["c", "a", "b"].map((id) => ({ ...machine, id }));
  assert.deepEqual(check(same).warnings, [
    'policies: rule "c" adds nothing to rule "a", which allows all of it',
    'policies: rule "b" adds nothing to rule "a", which allows all of it',
  ]);
});

test("PROD-2.6-10 checks ten thousand rules for one actor and one target in a moment", () => {
  const rules = Array.from({ length: 10_000 }, (_, index) => ({
    ...delegation,
    id: `r${index}`,
    actors: index % 2 === 0 ? [planner] : ["spiffe://td.example/agents/*"],
    subjects: { issuers: [idp], subs: [`u${index}`] },
  }));
  const parsed = rules.map((rule) => v.parse(Rule, rule));
  const registry = targets.map((target) => v.parse(Target, target));
  const set = compilePolicy(parsed, registry, issuer, "sha256:00");
  assert.ok(set.ok);
  const beforeMs = performance.now();
  assert.deepEqual(checkPolicy(set.value, parsed, around), { problems: [], warnings: [] });
  // Each with each would be a hundred million pairs.
  assert.ok(performance.now() - beforeMs < 2000);
});

// --- what is said is so ---------------------------------------------------------------------------------------------

const random = prng(2607);
const chance = (percent: number): boolean => random.below(100) < percent;
const some = <T>(from: readonly T[], percent = 50): T[] => {
  const taken = from.filter(() => chance(percent));
  return taken.length > 0 ? taken : [random.pick(from)];
};
const workloads = [planner, booking, "spiffe://td.example/crew/1"];
const names = ["planner-agent", "booking-agent", "api", "reports"];
const scopes = ["trips.read", "trips.book", "trips.pay", "reports.read", "x"];

const makeRule = (id: string): Patch => {
  const allow = random.pick(["client_credentials", "delegation", "impersonation"]);
  const exchange = {
    subjects: { issuers: some([idp, issuer]), ...(chance(40) && { subs: some(["u", "w"]) }) },
    subjectToken: {
      ...(chance(75)
        ? { audiences: some([issuer, "self", ...names.slice(0, 2), planner]) }
        : { scopes: some(scopes, 30) }),
    },
    ...random.pick([{ consent: "record" }, { consent: "may_act" }, implied]),
  };
  const by = allow === "delegation" ? 0 : random.below(3);
  return {
    id,
    allow,
    ...(by < 2 && {
      actors: some([...workloads, "spiffe://td.example/agents/*", "spiffe://td.example/*"], 25),
    }),
    ...(by > 0 && { clients: some(["report", "portal", planner]) }),
    ...(allow !== "client_credentials" && exchange),
    ...(allow === "delegation" && chance(40) && { maxChainDepth: 1 + random.below(3) }),
    targets: some(names),
    scopes: some(scopes, 40),
    lifetimeSeconds: random.pick([60, 300]),
  };
};

const now = 1_790_000_000;
const makeAsk = (): Ask => {
  const mode = random.pick(["client_credentials", "delegation", "impersonation"] as const);
  const workload = random.pick(workloads);
  const clientId = chance(60) ? workload : random.pick(["report", "portal"]);
  const origin = { iss: random.pick([idp, issuer]), sub: random.pick(["u", "w"]) };
  const consent: Consent = {
    ...{ id: "k", version: 1, origin, actor: workload, targets: names, scopes },
  };
  const chain = Array.from({ length: random.below(3) }, () => ({ iss: issuer, sub: random.pick(workloads) }));
  return {
    ...{ mode, clientId, workload, target: random.pick(names), nowSeconds: now },
    ...(chance(50) && { scope: some(scopes) }),
    consents: chance(70) ? [consent] : [],
    ...(mode !== "client_credentials" && {
      subject: {
        ...{ origin, issuer, chain, scopes: some(scopes, 70), expiresAtSeconds: now + 1000 },
        audiences: some([issuer, ...names, planner], 40),
        // What the server issues to a client for itself never has it.
        ...(origin.iss !== issuer && chance(50) && { mayAct: { sub: workload } }),
      },
    }),
  };
};

function granted(policy: PolicySet, ask: Ask): { scopes: number; seconds: number } {
  const got = decide(policy, ask);
  return got.ok
    ? { scopes: got.value.scope.length, seconds: got.value.expiresAtSeconds - now }
    : { scopes: 0, seconds: 0 };
}

test("PROD-2.6-7 refuses no rule that could ever allow anything", () => {
  let dead = 0;
  for (let round = 0; round < 600; round++) {
    const { problems, policy } = check([makeRule("r")]);
    if (problems.length === 0) continue;
    dead++;
    for (let asked = 0; asked < 150; asked++) {
      const ask = makeAsk();
      assert.equal(granted(policy, ask).scopes, 0, JSON.stringify({ problems, ask }));
    }
  }
  assert.ok(dead > 50, `only ${dead} rules were refused`);
});

test("PROD-2.6-10 calls no rule covered that allows anything that the others do not", () => {
  const seen = { covered: 0, allowed: 0 };
  for (let round = 0; round < 400; round++) {
    const rules = Array.from({ length: 12 }, (_, index) => makeRule(`r${index}`));
    const { warnings, problems, policy } = check(rules);
    if (problems.some((words) => !/can never/.test(words))) continue;
    const covered = warnings.flatMap(
      (words) => /^policies: rule "(r\d+)" adds nothing/.exec(words)?.[1] ?? [],
    );
    if (covered.length === 0) continue;
    seen.covered += covered.length;
    const { policy: without } = check(rules.filter(({ id }) => !covered.includes(String(id))));
    for (let asked = 0; asked < 150; asked++) {
      const ask = makeAsk();
      const [all, rest] = [granted(policy, ask), granted(without, ask)];
      if (all.scopes > 0) seen.allowed++;
      assert.equal(rest.scopes, all.scopes, JSON.stringify({ warnings, rules, ask }));
    }
  }
  assert.ok(seen.covered > 30 && seen.allowed > 1000, JSON.stringify(seen));
});

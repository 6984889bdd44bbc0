import assert from "node:assert/strict";
import { test } from "node:test";
import * as v from "valibot";
import { cpuMs } from "../../src/adapters/clock.ts";
import type { Mode } from "../../src/modes.ts";
import type { AccessRequest, Consent } from "../../src/policy/access.ts";
import { checkPolicy } from "../../src/policy/checks.ts";
import { decide } from "../../src/policy/decide.ts";
import type { ConfiguredParties } from "../../src/policy/parties.ts";
import { compilePolicy, type PolicySet, Rule, Target } from "../../src/policy/rules.ts";
import { prng } from "../support/prng.ts";
import { rounds } from "../support/rounds.ts";

const issuer = "https://as.example";
const idp = "https://idp.example";
const staff = "https://staff.example";
const planner = "spiffe://td.example/agents/planner";
const booking = "spiffe://td.example/agents/booking";
const partner = "https://as.partner.example";
const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const REDEMPTION = "urn:ietf:params:oauth:grant-type:jwt-bearer";

type Patch = Record<string, unknown>;

const targets: Patch[] = [
  { names: ["planner-agent"], owners: [planner], scopes: ["trips.read", "trips.book"] },
  { names: ["booking-agent"], owners: [booking], scopes: ["trips.read", "trips.book"] },
  { names: ["api", "https://api.example"], scopes: ["trips.read", "trips.pay"] },
  { names: ["reports"], scopes: ["reports.read"] },
  {
    kind: "partner",
    issuer: partner,
    aliases: ["partner"],
    scopes: ["trips.read", "stays.read"],
    clients: { [planner]: "planner-there", report: "report-there" },
  },
  { kind: "partner", issuer: "https://as.other.example", scopes: ["stays.read"] },
];
const grantTypes = ["client_credentials", EXCHANGE, REDEMPTION];
const around: ConfiguredParties = {
  trustDomains: { "td.example": {} },
  trustedIssuers: {
    [idp]: { acceptAs: ["jwt"], subjects: "keep" },
    [staff]: { acceptAs: ["jwt"], subjects: { table: { "7": "anna" } } },
    "https://cluster.example": { acceptAs: [], subjects: { prefix: "cluster:" } },
    [partner]: { acceptAs: [], subjects: { table: { "p-7": "berta" } }, grants: {} },
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
const grant: Patch = { ...delegation, issues: "grant", targets: [partner] };
const redemption: Patch = {
  id: "r",
  allow: "redemption",
  clients: ["report"],
  subjects: { issuers: [partner] },
  consent: "record",
  targets: ["api"],
  scopes: ["trips.read"],
};
const implied = { consent: "implied", acknowledge: "subjects-not-asked" };
const byClient = (...clients: string[]): Patch => ({ ...impersonation, actors: undefined, clients });
const plain = { issues: "grant", targets: [partner] };
const toPartner = { issues: "grant", targets: [partner], idJagSubjects: ["id_token"] };
const named = { subjects: { issuers: [idp], subs: ["u"] } };

/** As in a file: undefined members are absent. */
const written = (rule: object): unknown => JSON.parse(JSON.stringify(rule));

function check(rules: readonly Patch[], registry = targets, surroundings = around) {
  const parsed = rules.map((rule) => v.parse(Rule, written(rule)));
  const set = compilePolicy(
    parsed,
    registry.map((target) => v.parse(Target, target)),
    issuer,
    "sha256:00",
  );
  if (!set.ok) assert.fail(JSON.stringify(set));
  return { policy: set.value, parsed, ...checkPolicy(set.value, parsed, surroundings) };
}

// --- one rule -------------------------------------------------------------------------------------------------------

const fine: [string, Patch][] = [
  ["PROD-2.6-7 client credentials are accepted", machine],
  ["PROD-2.6-7 a delegation is accepted", delegation],
  ["PROD-2.6-7 an impersonation of a named subject is accepted", impersonation],
  [
    "PROD-2.6-7 scopes that different targets have are accepted",
    { ...delegation, targets: ["booking-agent", "api"], scopes: ["trips.book", "trips.pay"] },
  ],
  ["PROD-2.6-7 a grant is accepted", grant],
  [
    "PROD-2.6-7 a grant by impersonation of a named subject is accepted",
    { ...impersonation, ...grant, ...named, allow: "impersonation" },
  ],
  ["PROD-2.6-7 a redemption is accepted", redemption],
  [
    "PROD-2.6-7 a redemption for workloads is accepted",
    { ...redemption, clients: undefined, actors: [planner] },
  ],
  [
    "PROD-2.6-8 may_act in a grant is accepted",
    { ...redemption, consent: "may_act", subjects: { issuers: [partner], subs: ["p-7"] } },
  ],
  [
    "PROD-2.6-3 a client that cannot be an actor beside a class that can is accepted",
    { ...machine, clients: ["report"], classes: ["staff"], actors: [planner] },
  ],
  ["PROD-2.6-2 classes are accepted", { ...machine, clients: undefined, classes: ["staff"] }],
  [
    "PROD-2.6-2 classes and actors are accepted",
    { ...machine, clients: undefined, classes: ["staff"], actors: [planner] },
  ],
  [
    "PROD-2.6-4 subjects of an issuer of grants are accepted",
    { ...delegation, subjects: { issuers: [partner] } },
  ],
  [
    "IDJAG-5-1 ID-JAGs for a client with a client_id at the partner are accepted",
    { ...byClient("report"), ...toPartner },
  ],
  [
    "IDJAG-5-1 ID-JAGs for clients with documents are accepted",
    { ...byClient("https://agents.example/planner.json"), ...toPartner },
  ],
  [
    "IDJAG-5-1 ID-JAGs for classes are accepted",
    { ...byClient(), clients: undefined, classes: ["staff"], ...toPartner },
  ],
  [
    "IDJAG-5-1 plain grants for a client without a client_id at the partner are accepted",
    { ...byClient("portal"), ...plain },
  ],
  [
    "IDJAG-5-1 ID-JAGs for a workload with a client_id at the partner are accepted",
    { ...delegation, ...toPartner },
  ],
  [
    "IDJAG-5-1 ID-JAGs for a prefix of workloads of which one has a client_id at the partner are accepted",
    {
      ...delegation,
      actors: ["spiffe://td.example/agents/*"],
      subjectToken: { audiences: [issuer] },
      ...toPartner,
    },
  ],
  ["PROD-2.6-2 a generated client_id is accepted", { ...machine, clients: ["c_123"] }],
  ["PROD-2.6-2 a client that is a workload is accepted", { ...machine, clients: [planner] }],
  [
    "PROD-2.6-2 a client registered only for client credentials is accepted",
    { ...machine, clients: ["batch"] },
  ],
  [
    "PROD-2.6-2 a prefix of workloads is accepted",
    { ...delegation, actors: ["spiffe://td.example/agents/*"] },
  ],
  [
    "PROD-2.6-3 the workload of a client is accepted",
    { ...machine, clients: undefined, actors: ["spiffe://apps.example/portal"] },
  ],
  [
    "PROD-2.6-3 a client and its workload are accepted",
    { ...machine, clients: ["portal"], actors: ["spiffe://apps.example/portal", planner] },
  ],
  [
    "PROD-2.6-3 a client and its SPIFFE ID are accepted",
    { ...machine, clients: ["desk"], actors: ["spiffe://td.example/desk/7"] },
  ],
  [
    "PROD-2.6-3 a stored client and any actor are accepted",
    { ...machine, clients: ["c_1"], actors: [planner] },
  ],
  [
    "PROD-2.6-9 self is accepted if the actor owns a target",
    { ...delegation, subjectToken: { audiences: ["self"] } },
  ],
  [
    "PROD-2.6-9 the actor's target as audience is accepted",
    { ...delegation, subjectToken: { audiences: ["planner-agent"] } },
  ],
  ["PROD-2.6-9 the actor as audience is accepted", { ...delegation, subjectToken: { audiences: [planner] } }],
  [
    "PROD-2.6-9 the client as audience is accepted",
    { ...byClient("report"), subjectToken: { audiences: ["report"] } },
  ],
  [
    "PROD-2.6-9 the workload of a client as audience is accepted",
    { ...byClient("report"), subjectToken: { audiences: [booking] } },
  ],
  [
    "PROD-2.6-9 self is accepted if a client may own a target",
    { ...byClient("report"), subjectToken: { audiences: ["self"] } },
  ],
  [
    "PROD-2.6-9 scopes of the subject token are accepted",
    { ...delegation, subjectToken: { scopes: ["delegate"] } },
  ],
  [
    "PROD-2.6-8 consent by may_act with a foreign issuer is accepted",
    { ...delegation, consent: "may_act", subjects: { issuers: [issuer, idp] } },
  ],
  [
    "RFC7519-4.1.2-v1 a subject of the issuer's table is accepted",
    { ...impersonation, subjects: { issuers: [staff], subs: ["7"] } },
  ],
  [
    "RFC7519-4.1.2-v1 a subject outside the table is accepted if another issuer has no table",
    { ...impersonation, subjects: { issuers: [staff, idp], subs: ["8"] } },
  ],
];
for (const [name, rule] of fine) {
  test(name, () => {
    const { problems, warnings } = check([rule]);
    assert.deepEqual({ problems, warnings }, { problems: [], warnings: [] });
  });
}

const neitherClientNorOrigin = (entry: string): string =>
  `has entries in "clients" that are neither a client_id nor an https origin (${JSON.stringify(entry)}): only an origin may end in /*, and workloads belong in "actors"`;

const refused: [string, Patch, string][] = [
  [
    "PROD-2.6-7 a rule is refused if no target has any of its scopes",
    { ...delegation, scopes: ["trips.pay", "x"] },
    'can never grant anything: none of its targets has any of its scopes ("trips.pay", "x")',
  ],
  [
    "PROD-2.6-7 a refused rule causes no warnings",
    { ...delegation, scopes: ["x"], actors: ["spiffe://gone.example/*"], ...implied },
    'can never grant anything: none of its targets has any of its scopes ("x")',
  ],
  [
    "PROD-2.6-2 a prefix of workloads among clients is refused",
    { ...machine, clients: ["report", "spiffe://td.example/crew/*"] },
    neitherClientNorOrigin("spiffe://td.example/crew/*"),
  ],
  [
    "PROD-2.6-2 a path prefix of URLs among clients is refused",
    { ...machine, clients: ["https://agents.example/crew/*"] },
    neitherClientNorOrigin("https://agents.example/crew/*"),
  ],
  [
    "PROD-2.6-9 self alone is refused if the actor owns no target",
    { ...delegation, actors: ["spiffe://td.example/crew/*"], subjectToken: { audiences: ["self"] } },
    "can never match: it requires a subject token for a target that the caller owns, but none of its callers owns one",
  ],
  [
    "PROD-2.6-8 consent by may_act is refused if every subject is this server's",
    { ...delegation, consent: "may_act", subjects: { issuers: [issuer] } },
    "can never match: subjects.issuers names only this server, which issues no may_act for its own subjects",
  ],
  [
    "IDC-2.4.2-4 a redemption of this server's own grants is refused",
    { ...redemption, subjects: { issuers: [issuer] }, consent: "may_act" },
    "can never match: subjects.issuers names only this server, whose own grants are not redeemed here",
  ],
  [
    "PROD-2.6-7 a grant is refused if its partner has none of the scopes",
    { ...grant, scopes: ["trips.book"] },
    'can never grant anything: none of its targets has any of its scopes ("trips.book")',
  ],
  [
    "PROD-2.6-2 a prefix of workloads among the clients of a redemption is refused",
    { ...redemption, clients: ["spiffe://td.example/crew/*"] },
    neitherClientNorOrigin("spiffe://td.example/crew/*"),
  ],
];
for (const [name, rule, want] of refused) {
  test(name, () => {
    const { problems, warnings } = check([rule]);
    assert.deepEqual({ problems, warnings }, { problems: [`policies: rule "r" ${want}`], warnings: [] });
  });
}

const warned: [string, Patch, ...string[]][] = [
  // --- names that the rest of the configuration does not have
  [
    "PROD-2.6-3 there is a warning if no actor is of a configured trust domain",
    { ...delegation, actors: ["spiffe://gone.example/a"], subjectToken: { audiences: [issuer] } },
    'can never match: its actors are in no configured trust domain ("spiffe://gone.example/a"): configure them or remove the rule',
  ],
  [
    "PROD-2.6-3 an actor of an unconfigured trust domain is warned of",
    { ...delegation, actors: [planner, "spiffe://td.example.org/crew/*"] },
    'names the actor "spiffe://td.example.org/crew/*", which is in no configured trust domain: configure it or remove it from the rule',
  ],
  [
    "PROD-2.6-3 the name of a built-in property is not treated as a trust domain",
    { ...delegation, actors: [planner, "spiffe://constructor/a"] },
    'names the actor "spiffe://constructor/a", which is in no configured trust domain: configure it or remove it from the rule',
  ],
  [
    "PROD-2.6-2 a client that is not configured is warned of",
    { ...machine, clients: ["report", "rapport"] },
    'names the client "rapport", which is not configured: configure it or remove it from the rule',
  ],
  [
    "PROD-2.6-2 a client that is a workload of an unconfigured trust domain is warned of",
    { ...machine, clients: ["spiffe://gone.example/a"] },
    'can never match: its clients are not configured ("spiffe://gone.example/a"): configure them or remove the rule',
  ],
  [
    "PROD-2.6-2 a client that is not registered for token exchange is warned of",
    byClient("batch"),
    `can never match: its clients are not allowed the grant type ${EXCHANGE} ("batch"): configure them or remove the rule`,
  ],
  ...["report", "portal", "desk", booking].map((client): [string, Patch, string] => [
    `PROD-2.6-3 there is a warning if ${client} cannot be one of the actors`,
    { ...machine, clients: [client], actors: [planner] },
    'can never match: no workload of its "clients" is among its "actors"',
  ]),
  [
    "PROD-2.6-4 an issuer that is not trusted is warned of",
    { ...delegation, subjects: { issuers: [idp, "https://gone.example"] } },
    'names the subject issuer "https://gone.example", which is neither trusted for subject tokens nor this server: configure it or remove it from the rule',
  ],
  [
    "PROD-2.6-4 issuers that are not trusted for subject tokens are warned of",
    { ...delegation, subjects: { issuers: ["https://cluster.example", "toString"] } },
    'can never match: its subject issuers are neither trusted for subject tokens nor this server ("https://cluster.example", "toString"): configure them or remove the rule',
  ],
  [
    "RFC7519-4.1.2-v1 a subject that is in no table is warned of",
    { ...impersonation, subjects: { issuers: [staff], subs: ["7", "8"] } },
    'names the subject "8", which is in no subjects.table of its issuers: configure it or remove it from the rule',
  ],
  [
    "IDC-2.4.2-4 issuers whose grants are not trusted are warned of",
    { ...redemption, subjects: { issuers: [partner, idp, issuer] } },
    `names the subject issuer ${JSON.stringify(idp)}, which is not trusted for grants: configure it or remove it from the rule`,
    `names the subject issuer ${JSON.stringify(issuer)}, which is not trusted for grants: configure it or remove it from the rule`,
  ],
  [
    "IDC-2.4.2-4 there is a warning if no issuer is trusted for grants",
    { ...redemption, subjects: { issuers: [idp, "toString"] } },
    `can never match: its subject issuers are not trusted for grants (${JSON.stringify(idp)}, "toString"): configure them or remove the rule`,
  ],
  [
    "RFC7519-4.1.2-v1 a subject of a grant that is in no table is warned of",
    { ...redemption, subjects: { issuers: [partner], subs: ["p-7", "p-8"] } },
    'names the subject "p-8", which is in no subjects.table of its issuers: configure it or remove it from the rule',
  ],
  [
    "PROD-2.6-2 a client that is not registered for redemption is warned of",
    { ...redemption, clients: ["batch"] },
    `can never match: its clients are not allowed the grant type ${REDEMPTION} ("batch"): configure them or remove the rule`,
  ],
  [
    "PROD-2.6-2 a client that is not configured in a rule that also names a class is warned of",
    { ...machine, clients: ["rapport"], classes: ["staff"] },
    'names the client "rapport", which is not configured: configure it or remove it from the rule',
  ],
  [
    "PROD-2.6-2 a client that is not registered for token exchange in a rule that also names a class is warned of",
    { ...byClient("batch"), classes: ["staff"] },
    `names the client "batch", which is not allowed the grant type ${EXCHANGE}: configure it or remove it from the rule`,
  ],
  // --- clients without a client_id at a partner
  [
    "IDJAG-5-1 ID-JAGs for a client without a client_id at the partner are warned of",
    { ...byClient("report", "portal"), ...toPartner },
    `names the client "portal", which has no client_id at ${JSON.stringify(partner)} and so gets no ID-JAG: add it to "clients" of that target`,
  ],
  [
    "IDJAG-5-1 ID-JAGs at a partner without configured clients are warned of",
    { ...delegation, ...toPartner, targets: ["https://as.other.example"], scopes: ["stays.read"] },
    'is for ID-JAGs, but only clients with a metadata document have a client_id at "https://as.other.example": add others to "clients" of that target',
  ],
  [
    "IDJAG-5-1 ID-JAGs for workloads without a client_id at the partner are warned of",
    { ...impersonation, actors: [booking], ...toPartner },
    `is for ID-JAGs, but only clients with a metadata document have a client_id at ${JSON.stringify(partner)}: add others to "clients" of that target`,
  ],
  // --- wide permissions
  [
    "PROD-4.1v7-3, PROD-2.6-4 an impersonation of any subject at a partner is warned of",
    { ...impersonation, issues: "grant", targets: [partner], subjects: { issuers: [idp] } },
    `lets its callers impersonate any subject of "${idp}" in another domain, which no token shows: name the subjects in subjects.subs`,
  ],
  [
    "PROD-2.6-8 implied consent in a redemption is warned of",
    { ...redemption, ...implied },
    `takes the consent of any subject of "${partner}" as implied, without asking`,
  ],
  [
    "PROD-2.6-2 a whole trust domain is warned of",
    { ...delegation, actors: ["spiffe://td.example/*"] },
    'lets every workload under spiffe://td.example/* act: narrow "actors" unless that is intended',
  ],
  [
    "PROD-2.6-2 the class of open registration is warned of",
    { ...machine, clients: undefined, classes: ["staff", "open"] },
    "lets every client of open registration ask: name another class or clients unless that is intended",
  ],
  [
    "PROD-2.6-2 a whole origin of metadata documents is warned of",
    { ...machine, clients: ["https://agents.example/*", "https://x.example/c.json"] },
    'lets every metadata document under https://agents.example/* ask: name the documents in "clients" unless that is intended',
  ],
  [
    "PROD-2.6-8 implied consent is warned of",
    { ...delegation, ...implied },
    `takes the consent of any subject of "${idp}" as implied, without asking`,
  ],
  [
    "PROD-2.6-8 implied consent of named subjects is warned of",
    { ...impersonation, ...implied },
    'takes the consent of "u" as implied, without asking',
  ],
  [
    "PROD-2.6-4 an impersonation of any subject is warned of",
    { ...impersonation, subjects: { issuers: [idp] } },
    `lets its callers impersonate any subject of "${idp}", which no token shows: name the subjects in subjects.subs`,
  ],
  [
    "PROD-2.6-4 all wide permissions of a rule are warned of at once",
    { ...impersonation, actors: ["spiffe://td.example/*"], subjects: { issuers: [idp] }, ...implied },
    'lets every workload under spiffe://td.example/* act: narrow "actors" unless that is intended',
    `takes the consent of any subject of "${idp}" as implied, without asking`,
    `lets its callers impersonate any subject of "${idp}", which no token shows: name the subjects in subjects.subs`,
  ],
  // --- parts without effect
  [
    "PROD-2.6-6 a scope that no target has is warned of",
    { ...delegation, scopes: ["trips.read", "trips.raed"] },
    'has the scope "trips.raed", which none of its targets has: correct or remove it',
  ],
  [
    "PROD-2.6-6 a target that has none of the scopes is warned of",
    { ...delegation, targets: ["booking-agent", "reports"] },
    'grants nothing at the target "reports", which has none of its scopes',
  ],
  [
    "PROD-2.6-6 a partner that has none of the scopes is warned of",
    { ...grant, targets: ["partner", "https://as.other.example"] },
    'grants nothing at the target "https://as.other.example", which has none of its scopes',
  ],
  [
    "PROD-2.6-9 self is warned of if the actor owns no target",
    { ...delegation, actors: ["spiffe://td.example/crew/*"] },
    'names the audience "self", but its callers own no target: set "owners" of a target or remove it',
  ],
  ...Object.entries({
    "the target of another workload": "booking-agent",
    "a target without owner": "api",
    "another workload": booking,
    "an issuer": idp,
  }).map(([what, audience]): [string, Patch, string] => [
    `PROD-2.6-9 an audience that is ${what} is warned of`,
    { ...delegation, subjectToken: { audiences: [audience] } },
    `names the audience ${JSON.stringify(audience)}, but a token with that audience alone is not meant for its callers and is refused`,
  ]),
];
for (const [name, rule, ...want] of warned) {
  test(name, () => {
    const { problems, warnings } = check([rule]);
    assert.deepEqual(problems, []);
    assert.deepEqual(
      warnings,
      want.map((message) => `policies: rule "r" ${message}`),
    );
  });
}

test("PROD-4.1v7-3 grants that two servers could exchange in a circle by impersonation are warned of", () => {
  const subjects = { issuers: [idp, partner], subs: ["u"] };
  const out = { ...impersonation, ...plain, id: "out", subjects };
  const back = { ...redemption, id: "back" };
  const circles = (...rules: Patch[]) =>
    check(rules).warnings.filter((warning) => warning.includes("circle without end"));
  assert.deepEqual(circles(out, back), [
    `policies: rule "out" lets its callers impersonate subjects of "${partner}" at that server, whose grants are redeemed here: if it does the same, grants can be exchanged in a circle without end; use delegation, which has a limited depth`,
  ]);
  assert.deepEqual(circles(out), []);
  assert.deepEqual(circles({ ...out, subjects: named.subjects }, back), []);
  assert.deepEqual(circles({ ...out, allow: "delegation" }, back), []);
});

test("PROD-2.6-9 a target that belongs to a whole trust domain is warned of", () => {
  const wide = {
    names: ["wide"],
    owners: ["spiffe://td.example/*", "spiffe://td.example/a/*"],
    scopes: ["a"],
  };
  assert.deepEqual(check([], [...targets, wide]).warnings, [
    'targets: "wide" belongs to every workload under spiffe://td.example/*: narrow "owners" unless that is intended',
  ]);
});

test("PAGE-D-47 targets with one title are warned of, in whatever language it is", () => {
  const titled = [
    { names: ["one"], scopes: ["a"], title: "Ledger" },
    { names: ["two"], scopes: ["a"], title: { en: "Books", de: "Ledger" } },
    { names: ["three"], scopes: ["a"], title: "Bank" },
  ];
  assert.deepEqual(
    check([], titled).warnings,
    ["one", "two"].map(
      (name) =>
        `targets: "${name}" has a title that is another target's too: give each target a title of its own`,
    ),
  );
});

test("RFC7662-4-8 an introspector that is not configured is warned of", () => {
  const introspectors = [
    "rapport",
    "report",
    planner,
    "c_1",
    "https://x.example/c.json",
    "spiffe://gone.example/a",
  ];
  assert.deepEqual(
    check([], [{ names: ["asked"], introspectors, scopes: ["a"] }]).warnings,
    ["rapport", "spiffe://gone.example/a"].map(
      (client) =>
        `targets: "asked" names the introspector ${JSON.stringify(client)}, which is not configured: remove it or add it to clients`,
    ),
  );
});

test("IDJAG-5-1 a client_id at a partner for a client that is not configured is warned of", () => {
  const clients = {
    rapport: "a",
    [planner]: "b",
    c_1: "c",
    "https://x.example/c.json": "d",
    "spiffe://gone.example/a": "e",
  };
  const other = { kind: "partner", issuer: "https://as.third.example", scopes: ["a"], clients };
  assert.deepEqual(
    check([], [other]).warnings,
    ["rapport", "spiffe://gone.example/a"].map(
      (client) =>
        `targets: "https://as.third.example" lists the client ${JSON.stringify(client)}, which is not configured: remove it or add it to clients`,
    ),
  );
});

test("POLICY-D-10, PROD-2.6-7 removed trust leads to warnings, not to refusal of the rules that still name it", () => {
  const nothing: ConfiguredParties = { trustDomains: {}, trustedIssuers: {}, clients: {} };
  for (const rule of [machine, delegation, impersonation, grant, redemption]) {
    const { problems, warnings } = check([rule], targets, nothing);
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
const wideRedemption: Patch = {
  ...redemption,
  ...implied,
  id: "w",
  clients: ["desk", "report"],
  classes: ["staff", "guests"],
  targets: ["booking-agent", "api"],
  lifetimeSeconds: 600,
};
const wideGrant: Patch = { ...grant, id: "w", idJagSubjects: ["id_token", "jwt"], lifetimeSeconds: 300 };
const byClass = (...classes: string[]): Patch => ({ ...redemption, clients: undefined, classes });
const wideImpersonation = { ...impersonation, ...implied, id: "w" };

const pairs: [string, Patch, Patch, boolean][] = [
  ["by one that is wider in every part", narrow, wide, true],
  ["by an equal one with a smaller id", delegation, { ...delegation, id: "a" }, true],
  ["by an equal one with a larger id", delegation, { ...delegation, id: "s" }, false],
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
  ["by one with implied consent", narrow, { ...wide, ...implied }, true],
  ["by one that requires another kind of consent", narrow, { ...wide, consent: "may_act" }, false],
  ["by one that requires consent on record", { ...narrow, ...implied }, wide, false],
  ["by one with a shorter chain", narrow, { ...wide, maxChainDepth: 1 }, false],
  [
    "by one without maxChainDepth",
    { ...narrow, maxChainDepth: 8 },
    { ...wide, maxChainDepth: undefined },
    true,
  ],
  [
    "by one with a maxChainDepth",
    { ...narrow, maxChainDepth: undefined },
    { ...wide, maxChainDepth: 7 },
    false,
  ],
  ["by one with fewer targets", { ...narrow, targets: ["booking-agent", "planner-agent"] }, wide, false],
  ["by one with another name of the target", { ...narrow, targets: ["https://api.example"] }, wide, true],
  ["by one with fewer scopes", narrow, { ...wide, scopes: ["trips.book"] }, false],
  ["by one with a shorter lifetime", narrow, { ...wide, lifetimeSeconds: 60 }, false],
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
    "by one that restricts its client by actors",
    byClient("desk"),
    { ...wideImpersonation, clients: ["desk"], actors: ["spiffe://td.example/desk/*"] },
    false,
  ],
  ["by one that issues grants with a longer lifetime", grant, wideGrant, true],
  [
    "by one that issues grants instead of access tokens",
    { ...delegation, targets: ["booking-agent"] },
    wideGrant,
    false,
  ],
  [
    "by one that issues ID-JAGs for other subject tokens",
    { ...grant, idJagSubjects: ["access_token"] },
    wideGrant,
    false,
  ],
  [
    "by one that issues ID-JAGs for ID tokens by default",
    { ...grant, idJagSubjects: ["id_token"] },
    { ...grant, id: "a" },
    true,
  ],
  ["by one that allows redemption for more", redemption, wideRedemption, true],
  ["by one that allows redemption for its class", byClass("guests"), wideRedemption, true],
  [
    "by one that allows redemption for its class and client",
    { ...byClass("guests"), clients: ["desk"] },
    wideRedemption,
    true,
  ],
  ["by one that allows redemption for another class", byClass("guests", "crew"), wideRedemption, false],
  [
    "by one that allows redemption for clients, not for classes",
    byClass("guests"),
    { ...wideRedemption, classes: undefined },
    false,
  ],
  [
    "by one that allows redemption for classes, not for clients",
    redemption,
    { ...wideRedemption, clients: undefined },
    false,
  ],
  [
    "by one that allows redemption for fewer of its workloads",
    { ...byClass("guests"), actors: [planner, booking] },
    { ...wideRedemption, actors: [planner] },
    false,
  ],
  [
    "by one that allows redemption for its workloads and any class",
    { ...byClass("guests"), actors: [planner] },
    { ...wideRedemption, clients: undefined, classes: undefined, actors: ["spiffe://td.example/agents/*"] },
    true,
  ],
  [
    "by one that allows redemption for a class of its workloads",
    { ...byClass(), classes: undefined, actors: [planner] },
    { ...wideRedemption, actors: [planner] },
    false,
  ],
  [
    "by one that allows redemption of shorter chains",
    redemption,
    { ...wideRedemption, maxChainDepth: 7 },
    false,
  ],
  [
    "by one that allows redemption for fewer subjects",
    redemption,
    { ...wideRedemption, subjects: { issuers: [idp] } },
    false,
  ],
  [
    "by one with its actors and any client",
    { ...impersonation, clients: ["desk"], actors: ["spiffe://td.example/desk/*"] },
    { ...impersonation, id: "w", actors: ["spiffe://td.example/desk/*"] },
    true,
  ],
];
for (const [name, rule, other, want] of pairs) {
  test(`PROD-2.6-10 a rule is ${want ? "made redundant" : "not made redundant"} ${name}`, () => {
    const expected = [
      `policies: rule "r" is redundant: rule ${JSON.stringify(other.id)} allows everything that it allows`,
    ];
    const ours = (found: readonly string[]) =>
      found.filter((warning) => warning.startsWith('policies: rule "r" is redundant'));
    assert.deepEqual(ours(check([rule, other]).warnings), want ? expected : []);
    assert.deepEqual(ours(check([other, rule]).warnings), want ? expected : []);
  });
}

/** A platform that says of its workloads beside which client they work. */
const vouching: ConfiguredParties = {
  ...around,
  trustedIssuers: {
    ...around.trustedIssuers,
    "https://platform.example": { acceptAs: [], workloads: { brought: { clients: ["report"] } } },
  },
};
const atPlatform = { ...machine, actors: ["platform://brought/*"] };

for (const [beside, other] of [
  ["one for the client alone", { ...machine, id: "w", scopes: ["trips.read", "trips.pay"] }],
  ["one for the workload alone", { ...atPlatform, id: "w", clients: undefined }],
] as const) {
  test(`PLAT-D-10 a rule for a workload beside a client is not made redundant by ${beside}`, () => {
    const { warnings } = check([atPlatform, other], targets, vouching);
    assert.ok(!warnings.some((warning) => warning.includes("is redundant")), String(warnings));
  });
}

test("PLAT-D-10 a rule for a workload beside a client is made redundant by one for more of both", () => {
  const other = { ...atPlatform, id: "w", clients: ["report", "portal"] };
  const { warnings } = check([atPlatform, other], targets, vouching);
  assert.ok(
    warnings.some((warning) => warning.includes("is redundant")),
    String(warnings),
  );
});

test("PROD-2.6-10 a rule of another mode makes none of several rules redundant", () => {
  const same = { ...impersonation, ...implied };
  const others = ["v", "w", "x"].map((sub) => ({
    ...same,
    id: sub,
    subjects: { issuers: [idp], subs: [sub] },
  }));
  const { warnings } = check([same, ...others, { ...same, id: "a", allow: "delegation" }]);
  assert.deepEqual(
    warnings.filter((warning) => warning.includes("is redundant")),
    [],
  );
});

test("PROD-2.6-10 all but one of several equal rules are warned of", () => {
  const same = ["c", "a", "b"].map((id) => ({ ...machine, id }));
  assert.deepEqual(check(same).warnings, [
    'policies: rule "c" is redundant: rule "a" allows everything that it allows',
    'policies: rule "b" is redundant: rule "a" allows everything that it allows',
  ]);
});

/** Of the thread, as it lengthens with the work and not with what else the machine does. */
const CHECK_CPU_MS_MAX = 2_000;

test("PROD-2.6-10 ten thousand rules for one actor and one target are checked without comparing every pair", () => {
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
  const beforeMs = cpuMs();
  assert.deepEqual(checkPolicy(set.value, parsed, around), { problems: [], warnings: [] });
  // Comparing every pair would be a hundred million comparisons.
  assert.ok(cpuMs() - beforeMs < CHECK_CPU_MS_MAX);
});

for (const [actor, owner] of [
  ["spiffe://td.example/desk/7", "spiffe://td.example/desk/*"],
  ["spiffe://td.example/desk/*", "spiffe://td.example/desk/7"],
  ["spiffe://td.example/desk/7/*", "spiffe://td.example/desk/*"],
] as const) {
  test(`PROD-2.6-9 self for ${actor} is accepted if ${owner} owns a target`, () => {
    const registry = [...targets, { names: ["desks"], owners: [owner], scopes: ["trips.read"] }];
    const rule = { ...delegation, actors: [actor], subjectToken: { audiences: ["self"] } };
    const { problems, warnings } = check([rule], registry);
    assert.deepEqual({ problems, warnings }, { problems: [], warnings: [] });
  });
}

test("PROD-2.6-9 ten thousand rules with self are checked against as many owners without comparing every pair", () => {
  const owner = (index: number): string => `spiffe://td.example/desk/${index}`;
  const indices = Array.from({ length: 10_000 }, (_, index) => index);
  const desks = indices.map((index) => ({ names: [`t${index}`], owners: [owner(index)], scopes: ["x"] }));
  const rules = indices.map((index) =>
    v.parse(Rule, { ...delegation, id: `r${index}`, actors: [owner(9_999 - index)] }),
  );
  const registry = [...targets, ...desks].map((target) => v.parse(Target, target));
  const set = compilePolicy(rules, registry, issuer, "sha256:00");
  assert.ok(set.ok);
  const beforeMs = cpuMs();
  assert.deepEqual(checkPolicy(set.value, rules, around), { problems: [], warnings: [] });
  assert.ok(cpuMs() - beforeMs < CHECK_CPU_MS_MAX);
});

for (const [actor, warns] of [
  ["spiffe://apps.example/shop/cart", false],
  ["spiffe://apps.example/shop/*", false],
  ["spiffe://apps.example/sho/*", true],
  ["spiffe://apps.example/shop/cart/*", true],
] as const) {
  test(`PROD-2.6-3 the actor ${actor} ${warns ? "is warned of, as no trust domain or client is configured for it" : "is accepted"}, where a client is the workload shop/cart`, () => {
    const clients = { ...around.clients, shop: { workload: "spiffe://apps.example/shop/cart" } };
    const { warnings } = check([{ ...delegation, actors: [actor] }], targets, { ...around, clients });
    assert.equal(
      warnings.some((text) => text.includes("in no configured trust domain")),
      warns,
    );
  });
}

test("PROD-2.6-3 ten thousand rules for workloads of as many clients are checked without comparing every pair", () => {
  const workload = (index: number): string => `spiffe://elsewhere.example/desk/${index}`;
  const indices = Array.from({ length: 10_000 }, (_, index) => index);
  const clients = Object.fromEntries(indices.map((index) => [`c${index}`, { workload: workload(index) }]));
  const rules = indices.map((index) =>
    v.parse(Rule, { ...delegation, id: `r${index}`, actors: [workload(9_999 - index)] }),
  );
  const set = compilePolicy(
    rules,
    targets.map((target) => v.parse(Target, target)),
    issuer,
    "sha256:00",
  );
  assert.ok(set.ok);
  const beforeMs = cpuMs();
  const { warnings } = checkPolicy(set.value, rules, { ...around, clients });
  assert.deepEqual(
    warnings.filter((text) => text.includes("trust domain")),
    [],
  );
  assert.ok(cpuMs() - beforeMs < CHECK_CPU_MS_MAX);
});

// --- refusals and warnings against the decision, by seeded random rules and requests --------------------------------

const random = prng(2607);
const chance = (percent: number): boolean => random.below(100) < percent;
const some = <T>(from: readonly T[], percent = 50): T[] => {
  const taken = from.filter(() => chance(percent));
  return taken.length > 0 ? taken : [random.pick(from)];
};
const workloads = [planner, booking, "spiffe://td.example/crew/1"];
const names = ["planner-agent", "booking-agent", "api", "reports"];
const partners = [partner, "partner", "https://as.other.example"];
const scopes = ["trips.read", "trips.book", "trips.pay", "reports.read", "stays.read", "x"];
const modes = ["client_credentials", "delegation", "impersonation", "redemption"] as const;
const isExchange = (mode: Mode): boolean => mode === "delegation" || mode === "impersonation";

const makeRule = (id: string, allow = random.pick(modes)): Patch => {
  const forWhom = {
    subjects: { issuers: some([idp, issuer]), ...(chance(40) && { subs: some(["u", "w"]) }) },
    ...random.pick([{ consent: "record" }, { consent: "may_act" }, implied]),
  };
  const exchange = {
    subjectToken: {
      ...(chance(75)
        ? { audiences: some([issuer, "self", ...names.slice(0, 2), planner]) }
        : { scopes: some(scopes, 30) }),
    },
  };
  const grants = isExchange(allow) && chance(40);
  const by = allow === "delegation" ? 0 : random.below(4);
  return {
    id,
    allow,
    ...(by < 2 && {
      actors: some([...workloads, "spiffe://td.example/agents/*", "spiffe://td.example/*"], 25),
    }),
    ...((by === 1 || by === 2) && { clients: some(["report", "portal", planner]) }),
    ...((by === 3 || (by === 1 && chance(50))) && { classes: some(["staff", "guests"]) }),
    ...(allow !== "client_credentials" && forWhom),
    ...(isExchange(allow) && exchange),
    ...(grants && { issues: "grant", ...(chance(50) && { idJagSubjects: some(["id_token", "jwt"]) }) }),
    ...((allow === "delegation" || allow === "redemption") &&
      chance(40) && { maxChainDepth: 1 + random.below(3) }),
    ...(chance(20) && { jobs: random.pick(["optional", "required", "never"]) }),
    ...(grants && chance(20) && { acknowledgeJob: "job-ends-here" }),
    targets: some(grants ? partners : names),
    scopes: some(scopes, 40),
    lifetimeSeconds: random.pick([60, 300]),
  };
};

/** The same rule with some members of another one of its mode, so that one of the two is often redundant. */
const varied = (rule: Patch, id: string): Patch => {
  let other: Patch;
  do other = makeRule(id, rule.allow as (typeof modes)[number]);
  while (other.issues !== rule.issues);
  const isTaken = ([name]: [string, unknown]) => name !== "consent" && name !== "acknowledge" && chance(30);
  return { ...rule, ...Object.fromEntries(Object.entries(other).filter(isTaken)), id };
};

const now = 1_790_000_000;
const makeAsk = (): AccessRequest => {
  const mode = random.pick(modes);
  const workload = random.pick(workloads);
  const clientId = chance(60) ? workload : random.pick(["report", "portal"]);
  // A grant of this server is refused before the policy decides.
  const iss = mode === "redemption" ? idp : random.pick([idp, issuer]);
  const origin = { iss, sub: random.pick(["u", "w"]) };
  const consent: Consent = {
    id: "k",
    version: 1,
    origin,
    actor: workload,
    targets: [...names, ...partners],
    scopes,
  };
  const tokenType =
    mode === "redemption" ? "grant" : random.pick(["id_token", "jwt", "access_token"] as const);
  const chain = Array.from({ length: random.below(3) }, () => ({ iss: issuer, sub: random.pick(workloads) }));
  return {
    mode,
    clientId,
    workload,
    nowSeconds: now,
    target: random.pick(isExchange(mode) ? [...names, ...partners] : names),
    ...(chance(30) && { registrationClass: random.pick(["staff", "guests"]) }),
    ...(isExchange(mode) && chance(30) && { requestedType: random.pick(["jwt", "id-jag"] as const) }),
    ...(chance(50) && { scope: some(scopes) }),
    ...(chance(30) && { job: { id: "j", bounds: { notAfterSeconds: now + 600, targets: some(names) } } }),
    consents: chance(70) ? [consent] : [],
    ...(mode !== "client_credentials" && {
      subject: {
        tokenType,
        origin,
        issuer,
        chain,
        scopes: some(scopes, 70),
        expiresAtSeconds: now + 1000,
        audiences: some([issuer, ...names, planner], 40),
        // A token that this server issues to a client for itself never has may_act.
        ...(origin.iss !== issuer && chance(50) && { mayAct: { sub: workload } }),
      },
    }),
  };
};

function granted(policy: PolicySet, access: AccessRequest): { scopes: number; seconds: number } {
  const got = decide(policy, access);
  return got.ok
    ? { scopes: got.value.scope.length, seconds: got.value.expiresAtSeconds - now }
    : { scopes: 0, seconds: 0 };
}

test("PROD-2.6-7 a refused rule allows none of many random requests", () => {
  let dead = 0;
  for (let round = 0; round < rounds(100); round++) {
    const { problems, policy } = check([makeRule("r")]);
    if (problems.length === 0) continue;
    dead++;
    for (let asked = 0; asked < 60; asked++) {
      const access = makeAsk();
      const { scopes } = granted(policy, access);
      // The input is printed for a failure alone, because it takes longer than the decision.
      if (scopes !== 0) assert.fail(JSON.stringify({ scopes, problems, access }));
    }
  }
  assert.ok(dead > rounds(8), `only ${dead} rules were refused`);
});

test("PROD-2.6-10, PLAT-D-10 removing the redundant rules of random policies changes no decision", () => {
  const seen = { covered: 0, allowed: 0, beside: 0 };
  for (let round = 0; round < rounds(500); round++) {
    const [first, ...others] = [0, 1, 2].map((index) => makeRule(`r${index}`));
    const rules = [first ?? {}, varied(first ?? {}, "r3"), ...others];
    const surroundings = round % 2 === 0 ? around : vouching;
    const { warnings, problems, policy } = check(rules, targets, surroundings);
    if (problems.some((problem) => !/can never/.test(problem))) continue;
    const covered = warnings.flatMap(
      (warning) => /^policies: rule "(r\d+)" is redundant/.exec(warning)?.[1] ?? [],
    );
    if (covered.length === 0) continue;
    seen.covered += covered.length;
    const { policy: without } = check(rules.filter(({ id }) => !covered.includes(String(id))));
    for (let asked = 0; asked < 60; asked++) {
      const access = makeAsk();
      // Only where a platform vouches for clients, a workload asks beside one.
      if (surroundings === vouching && access.mode === "client_credentials" && chance(50)) {
        access.forWorkload = true;
      }
      const [all, rest] = [granted(policy, access), granted(without, access)];
      if (all.scopes > 0) seen.allowed++;
      if (all.scopes > 0 && access.forWorkload) seen.beside++;
      if (rest.scopes !== all.scopes) assert.fail(JSON.stringify({ rest, all, warnings, rules, access }));
    }
  }
  assert.ok(
    seen.covered > rounds(80) && seen.allowed > rounds(100) && seen.beside > rounds(3),
    JSON.stringify(seen),
  );
});

test("a target for people and a provider that no rule leads to are warned of, and are used once one does", () => {
  const asked = { names: ["asked"], people: true, scopes: ["a"] };
  const configured = { ...around, signIn: { providers: { company: { issuer: idp } } } };
  assert.deepEqual(check([], [asked], configured).warnings, [
    'targets: "asked" is marked "people": true, but no rule with "allow": "authorization_code" names it: add that rule, or remove the mark',
    `signIn.providers.company: its users sign in for nothing, because no rule has "${idp}" in subjects.issuers: add that rule, or remove the provider`,
  ]);
  const subjects = { issuers: [idp] };
  const clients = ["https://app.example/client"];
  const rule = { id: "r", allow: "authorization_code", clients, subjects, targets: ["asked"] };
  const { problems, warnings } = check([{ ...rule, scopes: ["a"], consent: "record" }], [asked], configured);
  assert.deepEqual({ problems, warnings }, { problems: [], warnings: [] });
});

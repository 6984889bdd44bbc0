import assert from "node:assert/strict";
import { test } from "node:test";
import * as v from "valibot";
import { isClassName } from "../../src/policy/rule-members.ts";
import {
  type Caller,
  candidates,
  compilePolicy,
  isNamed,
  kindsFor,
  Rule,
  Target,
} from "../../src/policy/rules.ts";

const issuer = "https://as.example";
const planner = "spiffe://td.example/agents/planner";

// --- the format -----------------------------------------------------------------------------------------------------

const common = { id: "r", targets: ["api"], scopes: ["trips.read"] };
const machine = { ...common, allow: "client_credentials", clients: ["c-report"] };
const exchange = {
  ...common,
  subjects: { issuers: ["https://idp.example"] },
  subjectToken: { audiences: ["self"] },
  consent: "record",
};
const delegation = { ...exchange, allow: "delegation", actors: [planner] };
const impersonation = { ...exchange, allow: "impersonation", actors: [planner] };
const grant = { ...delegation, issues: "grant" };
const redemption = {
  ...common,
  allow: "redemption",
  clients: ["c-stays"],
  subjects: { issuers: ["https://as.partner.example"] },
  consent: "record",
};

const rules: [string, object, boolean][] = [
  ["PROD-2.6-7 a rule for client credentials is accepted", machine, true],
  ["PROD-2.6-7 a rule for delegation is accepted", delegation, true],
  ["PROD-2.6-7 a rule for impersonation is accepted", impersonation, true],
  [
    "PROD-2.6-7 every field of a delegation is accepted",
    { ...delegation, maxChainDepth: 4, lifetimeSeconds: 60 },
    true,
  ],
  ["PROD-2.6-7 a rule for redemption is accepted", redemption, true],
  [
    "PROD-2.6-7 every field of a redemption is accepted",
    { ...redemption, actors: [planner], classes: ["staff"], maxChainDepth: 4, lifetimeSeconds: 3600 },
    true,
  ],
  [
    "PROD-2.6-7 a delegation that explicitly issues access tokens is accepted",
    { ...delegation, issues: "access_token" },
    true,
  ],
  ["PROD-2.6-7 a delegation that issues grants is accepted", grant, true],
  ["PROD-2.6-7 an impersonation that issues grants is accepted", { ...impersonation, issues: "grant" }, true],
  ["PROD-2.6-7 a rule that issues something else is refused", { ...delegation, issues: "id-jag" }, false],
  ["PROD-2.6-7 client credentials that issue grants are refused", { ...machine, issues: "grant" }, false],
  ["PROD-2.6-7 issues for client credentials are refused", { ...machine, issues: "access_token" }, false],
  ["PROD-2.6-7 a redemption that issues grants is refused", { ...redemption, issues: "grant" }, false],
  [
    "PROD-2.6-7 a subject token in a redemption is refused",
    { ...redemption, subjectToken: { audiences: ["self"] } },
    false,
  ],
  ["PROD-2.6-7 a redemption without subjects is refused", { ...redemption, subjects: undefined }, false],
  ["PROD-2.6-7 a redemption without consent is refused", { ...redemption, consent: undefined }, false],
  ["PROD-2.6-7 an unknown mode is refused", { ...machine, allow: "nothing" }, false],
  ["PROD-2.6-7 a rule without mode is refused", { ...machine, allow: undefined }, false],
  ["PROD-2.6-7 an unknown field is refused", { ...machine, deny: true }, false],
  [
    "PROD-2.6-7 an unknown field of subjects is refused",
    { ...delegation, subjects: { issuers: [issuer], groups: ["x"] } },
    false,
  ],
  ["PROD-2.6-7 consent for client credentials is refused", { ...machine, consent: "record" }, false],
  [
    "PROD-2.6-7 subjects for client credentials are refused",
    { ...machine, subjects: { issuers: [issuer] } },
    false,
  ],
  ["PROD-2.6-7 a chain depth for impersonation is refused", { ...impersonation, maxChainDepth: 2 }, false],
  ["PROD-2.6-7 an id with a blank is refused", { ...machine, id: "a b" }, false],
  ["PROD-2.6-7 an empty id is refused", { ...machine, id: "" }, false],
  ["PROD-2.6-7 an id of 128 characters is accepted", { ...machine, id: "a".repeat(128) }, true],
  ["PROD-2.6-7 an id of 129 characters is refused", { ...machine, id: "a".repeat(129) }, false],
  ["PROD-2.6-7 an empty list of targets is refused", { ...machine, targets: [] }, false],
  ["PROD-2.6-7 an empty target is refused", { ...machine, targets: [""] }, false],
  ["PROD-2.6-7 an empty list of scopes is refused", { ...machine, scopes: [] }, false],
  [
    "PROD-2.6-7 two scopes in one string are refused",
    { ...machine, scopes: ["trips.read trips.book"] },
    false,
  ],
  [
    "PROD-2.6-7 an empty list of subject issuers is refused",
    { ...delegation, subjects: { issuers: [] } },
    false,
  ],
  [
    "PROD-2.6-7 an empty list of subjects is refused",
    { ...delegation, subjects: { issuers: [issuer], subs: [] } },
    false,
  ],
  ["PROD-2.6-3 a client as actor is refused", { ...delegation, actors: ["c-report"] }, false],
  [
    "PROD-2.6-3 a trust domain as actor is refused",
    { ...delegation, actors: ["spiffe://td.example"] },
    false,
  ],
  [
    "PROD-2.6-3 a prefix of workloads is accepted",
    { ...delegation, actors: ["spiffe://td.example/crew/*"] },
    true,
  ],
  [
    "PROD-2.6-3 a prefix that ends inside a segment is refused",
    { ...delegation, actors: ["spiffe://td.example/crew*"] },
    false,
  ],
  ["PROD-2.6-3 clients in a delegation are refused", { ...delegation, clients: ["c-report"] }, false],
  ["PROD-2.6-2 a delegation without actors is refused", { ...delegation, actors: undefined }, false],
  ["PROD-2.6-2 an empty list of actors is refused", { ...delegation, actors: [] }, false],
  ["PROD-2.6-2 an impersonation without callers is refused", { ...impersonation, actors: undefined }, false],
  [
    "PROD-2.6-2 an impersonation for a client is accepted",
    { ...impersonation, actors: undefined, clients: ["c"] },
    true,
  ],
  ["PROD-2.6-2 client credentials without callers are refused", { ...machine, clients: undefined }, false],
  ["PROD-2.6-2 an empty list of clients is refused", { ...machine, clients: [] }, false],
  ["PROD-2.6-2 a redemption without callers is refused", { ...redemption, clients: undefined }, false],
  [
    "PROD-2.6-2 a redemption for workloads is accepted",
    { ...redemption, clients: undefined, actors: [planner] },
    true,
  ],
  [
    "PROD-2.6-2 client credentials for a class are accepted",
    { ...machine, clients: undefined, classes: ["staff"] },
    true,
  ],
  [
    "PROD-2.6-2 an impersonation for a class is accepted",
    { ...impersonation, actors: undefined, classes: ["staff"] },
    true,
  ],
  [
    "PROD-2.6-2 a redemption for a class is accepted",
    { ...redemption, clients: undefined, classes: ["staff"] },
    true,
  ],
  ["PROD-2.6-3 classes in a delegation are refused", { ...delegation, classes: ["staff"] }, false],
  ["PROD-2.6-2 an empty list of classes is refused", { ...machine, classes: [] }, false],
  ["PROD-2.6-8 consent by may_act is accepted", { ...delegation, consent: "may_act" }, true],
  ["PROD-2.6-8 missing consent is refused", { ...delegation, consent: undefined }, false],
  ["PROD-2.6-8 an unknown consent is refused", { ...delegation, consent: "none" }, false],
  [
    "PROD-2.6-8 implied consent without acknowledgement is refused",
    { ...delegation, consent: "implied" },
    false,
  ],
  [
    "PROD-2.6-8 implied consent with acknowledgement is accepted",
    { ...delegation, consent: "implied", acknowledge: "subjects-not-asked" },
    true,
  ],
  [
    "PROD-2.6-8 implied consent with another acknowledgement is refused",
    { ...delegation, consent: "implied", acknowledge: "yes" },
    false,
  ],
  [
    "PROD-2.6-8 an acknowledgement without implied consent is refused",
    { ...delegation, acknowledge: "subjects-not-asked" },
    false,
  ],
  [
    "PROD-2.6-9 a subject token by scopes alone is accepted",
    { ...delegation, subjectToken: { scopes: ["trips.read"] } },
    true,
  ],
  [
    "PROD-2.6-9 a subject token by audiences and scopes is accepted",
    { ...delegation, subjectToken: { audiences: ["self"], scopes: ["trips.read"] } },
    true,
  ],
  ["PROD-2.6-9 an empty subjectToken is refused", { ...delegation, subjectToken: {} }, false],
  [
    "PROD-2.6-9 an empty list of audiences is refused",
    { ...delegation, subjectToken: { audiences: [] } },
    false,
  ],
  ["PROD-2.6-9 a missing subjectToken is refused", { ...delegation, subjectToken: undefined }, false],
  ["PROD-4.1v6-6 a depth of eight is accepted", { ...delegation, maxChainDepth: 8 }, true],
  ["PROD-4.1v6-6 a depth of nine is refused", { ...delegation, maxChainDepth: 9 }, false],
  ["PROD-4.1v6-6 a depth of zero is refused", { ...delegation, maxChainDepth: 0 }, false],
  ["PROD-4.1v6-6 a fractional depth is refused", { ...delegation, maxChainDepth: 1.5 }, false],
  ["PROD-4.1v6-6 a depth of nine in a redemption is refused", { ...redemption, maxChainDepth: 9 }, false],
  [
    "PROD-8.4-1, IDC-5.5-1 a lifetime of five minutes for a grant is accepted",
    { ...grant, lifetimeSeconds: 300 },
    true,
  ],
  [
    "PROD-8.4-1, IDC-5.5-1 a longer lifetime for a grant is refused",
    { ...grant, lifetimeSeconds: 301 },
    false,
  ],
  [
    "PROD-8.4-1 a lifetime of less than five seconds for a grant is refused",
    { ...grant, lifetimeSeconds: 4 },
    false,
  ],
  [
    "IDJAG-4.3-3 each kind of subject token is accepted",
    { ...grant, idJagSubjects: ["id_token", "jwt", "access_token"] },
    true,
  ],
  ["IDJAG-4.3-3 an unknown kind of subject token is refused", { ...grant, idJagSubjects: ["grant"] }, false],
  ["IDJAG-4.3-3 an empty list of kinds is refused", { ...grant, idJagSubjects: [] }, false],
  [
    "IDJAG-4.3-3 idJagSubjects in a rule that issues no grants are refused",
    { ...delegation, idJagSubjects: ["jwt"] },
    false,
  ],
  ["IDJAG-4.3-3 idJagSubjects in a redemption are refused", { ...redemption, idJagSubjects: ["jwt"] }, false],
  [
    "RFC6750-5.2-9, RFC6750-5.3-2, PROD-8.4-1 a lifetime of one hour is accepted",
    { ...machine, lifetimeSeconds: 3600 },
    true,
  ],
  [
    "RFC6750-5.2-9, RFC6750-5.3-2, PROD-8.4-1 a lifetime of more than one hour is refused",
    { ...machine, lifetimeSeconds: 3601 },
    false,
  ],
  ["PROD-8.4-1 a lifetime of five seconds is accepted", { ...machine, lifetimeSeconds: 5 }, true],
  ["PROD-8.4-1 a lifetime of less than five seconds is refused", { ...machine, lifetimeSeconds: 4 }, false],
  ["PROD-8.4-1 a fractional lifetime is refused", { ...machine, lifetimeSeconds: 60.5 }, false],
];

/** As in a file: undefined members are absent. */
const written = (rule: object): unknown => JSON.parse(JSON.stringify(rule));

for (const [name, rule, want] of rules) {
  test(name, () => assert.equal(v.is(Rule, written(rule)), want));
}

test("PROD-8.4-1 the default lifetime is 300 s for a token and 60 s for a grant", () => {
  const rules = [
    machine,
    delegation,
    impersonation,
    redemption,
    grant,
    { ...impersonation, issues: "grant" },
  ];
  assert.deepEqual(
    rules.map((rule) => v.parse(Rule, rule).lifetimeSeconds),
    [300, 300, 300, 300, 60, 60],
  );
});

const classes: [string, boolean][] = [
  ["a", true],
  ["staff-2", true],
  ["-", true],
  ["a".repeat(63), true],
  ["a".repeat(64), false],
  ["", false],
  ["Staff", false],
  ["staff_2", false],
  ["a.b", false],
  ["a b", false],
  ["a\n", false],
  ["ä", false],
];
for (const [name, want] of classes) {
  test(`PROD-2.6-2 the class ${JSON.stringify(name)} is ${want ? "accepted" : "refused"}`, () => {
    assert.equal(isClassName(name), want);
    assert.equal(v.is(Rule, { ...machine, classes: [name] }), want);
  });
}

const api = { names: ["api", "https://api.example"], scopes: ["trips.read"] };
const partner = { kind: "partner", issuer: "https://as.partner.example", scopes: ["trips.read"] };
const withClients = (clients: object) => ({ ...partner, clients });
const withSubjects = (subjects: unknown) => ({ ...partner, subjects });
const targets: [string, object, boolean][] = [
  ["PROD-2.6-7 a target is accepted", api, true],
  [
    "PROD-2.6-7 every field of a target is accepted",
    {
      ...api,
      owners: [planner],
      introspectors: [planner, "gate", "https://gate.example/c.json"],
      alg: "EdDSA",
      chain: "current",
    },
    true,
  ],
  ["PROD-2.6-7 a target without name is refused", { ...api, names: [] }, false],
  ["PROD-2.6-7 a target without scope is refused", { ...api, scopes: [] }, false],
  ["PROD-2.6-7 an owner that is not a workload is refused", { ...api, owners: ["c-report"] }, false],
  [
    "RFC7662-4-8 a prefix as introspector is refused",
    { ...api, introspectors: ["spiffe://td.example/a/*"] },
    false,
  ],
  [
    "RFC7662-4-8 an origin as introspector is refused",
    { ...api, introspectors: ["https://a.example/*"] },
    false,
  ],
  [
    "RFC7662-4-8 a malformed SPIFFE ID as introspector is refused",
    { ...api, introspectors: ["spiffe://"] },
    false,
  ],
  ["PROD-2.6-7 an unknown field of a target is refused", { ...api, kinds: ["x"] }, false],
  ["RFC9068-2.1-3 a target with alg none is refused", { ...api, alg: "none" }, false],
  ["RFC9068-2.1-4 a target with RS256 is accepted", { ...api, alg: "RS256" }, true],
  [
    "PROD-2.6-7 a target that is explicitly a resource server is accepted",
    { ...api, kind: "resource" },
    true,
  ],
  ["PROD-2.6-7 a target of another kind is refused", { ...api, kind: "server" }, false],
  ["PROD-2.6-7 a resource server with the fields of a partner is refused", { ...api, resources: [] }, false],

  // --- partners
  ["PROD-2.6-7 a partner is accepted", partner, true],
  [
    "PROD-2.6-7 every field of a partner is accepted",
    {
      ...partner,
      aliases: ["partner"],
      alg: "EdDSA",
      chain: "current",
      clients: { [planner]: "planner-there", "c-portal": "https://x.example/client.json" },
      subjects: { table: { "u-1": "a", "u-2": "b" } },
      claims: ["email", "groups"],
      resources: ["https://api.partner.example", "urn:partner:stays"],
    },
    true,
  ],
  ["PROD-2.6-7 a partner with names is refused", { ...partner, names: ["partner"] }, false],
  ["PROD-2.6-7 a partner with owners is refused", { ...partner, owners: [planner] }, false],
  ["PROD-2.6-7 a partner with introspectors is refused", { ...partner, introspectors: [planner] }, false],
  ["PROD-2.6-7 a partner without scope is refused", { ...partner, scopes: [] }, false],
  ["RFC9068-2.1-3 a partner with alg none is refused", { ...partner, alg: "none" }, false],
  ["RFC8414-2-1 a partner without issuer is refused", { ...partner, issuer: undefined }, false],
  [
    "RFC8414-2-1 an issuer with plain http is refused",
    { ...partner, issuer: "http://as.partner.example" },
    false,
  ],
  [
    "RFC8414-2-1 an issuer with a query is refused",
    { ...partner, issuer: "https://as.partner.example/?a=b" },
    false,
  ],
  [
    "RFC8414-2-1 an issuer with a fragment is refused",
    { ...partner, issuer: "https://as.partner.example/#a" },
    false,
  ],
  [
    "RFC8414-2-1 an issuer with capitals in its host is refused",
    { ...partner, issuer: "https://AS.partner.example" },
    false,
  ],
  [
    "RFC8414-2-1 an issuer with a trailing slash is accepted",
    { ...partner, issuer: "https://as.partner.example/" },
    true,
  ],
  ["PROD-2.6-7 an empty alias is refused", { ...partner, aliases: [""] }, false],
  [
    "IDJAG-5-1 a prefix of workloads as a client is refused",
    withClients({ "spiffe://td.example/agents/*": "x" }),
    false,
  ],
  ["IDJAG-5-1 an origin as a client is refused", withClients({ "https://agents.example/*": "x" }), false],
  ["IDJAG-5-1 a trust domain as a client is refused", withClients({ "spiffe://td.example": "x" }), false],
  [
    "IDJAG-5-1 a SPIFFE ID with an upper-case scheme as a client is refused",
    withClients({ "SPIFFE://td.example/a": "x" }),
    false,
  ],
  ["IDJAG-5-1 an empty client_id at the partner is refused", withClients({ "c-portal": "" }), false],
  [
    "IDJAG-5-1 a client_id with a line break at the partner is refused",
    withClients({ "c-portal": "a\nb" }),
    false,
  ],
  [
    "IDJAG-5-1 an array of client_ids at the partner is refused",
    withClients({ "c-portal": ["a", "b"] }),
    false,
  ],
  ["IDC-2.5-3 unchanged subjects are accepted", withSubjects("keep"), true],
  ["IDC-2.5-3 a prefix is accepted", withSubjects({ prefix: "as:" }), true],
  ["IDC-2.5-3 an empty table is accepted", withSubjects({ table: {} }), true],
  ["IDC-2.5-3 another string is refused", withSubjects("drop"), false],
  ["IDC-2.5-3 an empty object is refused", withSubjects({}), false],
  ["IDC-2.5-3 a prefix and a table are refused", withSubjects({ prefix: "as:", table: {} }), false],
  ["IDC-2.5-3 an empty prefix is refused", withSubjects({ prefix: "" }), false],
  ["IDC-2.5-3 a prefix with a line break is refused", withSubjects({ prefix: "a\n" }), false],
  [
    "IDC-2.5-3 a prefix that makes URLs is refused",
    withSubjects({ prefix: "https://users.example/" }),
    false,
  ],
  ["IDC-2.5-3 a prefix that could make SPIFFE IDs is refused", withSubjects({ prefix: "spiffe:" }), false],
  ["IDC-2.5-3 a table with an empty value is refused", withSubjects({ table: { "u-1": "" } }), false],
  [
    "IDC-2.5-3 a table with a SPIFFE ID as value is refused",
    withSubjects({ table: { "u-1": "spiffe://td.example/a" } }),
    false,
  ],
  [
    "IDC-2.5-3 a table with a control character in a value is refused",
    withSubjects({ table: { "u-1": "a\u0085b" } }),
    false,
  ],
  [
    "IDJAG-3.1-2 a table that maps two subjects to one is refused",
    withSubjects({ table: { "u-1": "a", "u-2": "a" } }),
    false,
  ],
  ["EMA-7.6.1-1 a resource that is not a URI is refused", { ...partner, resources: ["api"] }, false],
  [
    "EMA-7.6.1-1 a resource with a fragment is refused",
    { ...partner, resources: ["https://api.example/#a"] },
    false,
  ],
];

for (const [name, target, want] of targets) {
  test(name, () => assert.equal(v.is(Target, written(target)), want));
}

for (const claim of [
  "sub",
  "act",
  "may_act",
  "client_id",
  "scope",
  "cnf",
  "azp",
  "sub_id",
  "tenant",
  "exp",
  "",
]) {
  test(`IDC-2.5-4 ${claim === "" ? "a claim without name" : `the claim ${claim}`} among the claims to carry over is refused`, () => {
    assert.equal(v.is(Target, { ...partner, claims: ["email", claim] }), false);
  });
}

// --- the set --------------------------------------------------------------------------------------------------------

const compile = (ruleSet: object[], targetSet: object[]) =>
  compilePolicy(
    ruleSet.map((rule) => v.parse(Rule, written(rule))),
    targetSet.map((target) => v.parse(Target, target)),
    issuer,
    "sha256:00",
  );
const other = { names: ["other"], scopes: ["trips.read"] };

const toPartner = { ...grant, targets: ["https://as.partner.example"] };

const sets: [string, object[], object[], string[]][] = [
  ["RFC9068-5-2, RFC8693-2.1-11 distinct names are accepted", [machine], [api, other], []],
  [
    "RFC9068-5-2, RFC8693-2.1-11 one name for two targets is refused",
    [machine],
    [api, { ...other, names: ["other", "api"] }],
    ['targets: the name "api" is given twice'],
  ],
  [
    "RFC8693-2.1-11 this server's issuer as a target is refused",
    [machine],
    [api, { ...other, names: [issuer] }],
    [`targets: the name "${issuer}" is reserved`],
  ],
  [
    "RFC8693-2.1-11 a target named self is refused",
    [machine],
    [api, { ...other, names: ["self"] }],
    ['targets: the name "self" is reserved'],
  ],
  [
    "PROD-2.6-10 two rules with the same id are refused",
    [machine, delegation],
    [api],
    ['policies: the rule id "r" is given twice'],
  ],
  [
    "PROD-2.6-7 a rule for an unknown target is refused",
    [{ ...machine, targets: ["api", "nowhere"] }],
    [api],
    ['policies: rule "r" names the unknown target "nowhere"'],
  ],
  [
    "RFC8693-2.1-11 a partner and its alias are accepted",
    [{ ...toPartner, targets: ["there"] }],
    [api, { ...partner, aliases: ["there"] }],
    [],
  ],
  [
    "RFC8693-2.1-11 the name of a target as an alias of a partner is refused",
    [],
    [api, { ...partner, aliases: ["api"] }],
    ['targets: the name "api" is given twice'],
  ],
  [
    "RFC8693-2.1-11 two partners of one issuer are refused",
    [machine],
    [api, partner, partner],
    ['targets: the name "https://as.partner.example" is given twice'],
  ],
  [
    "RFC8693-2.1-11 this server's issuer as a partner and self as an alias are refused",
    [machine],
    [api, { ...partner, issuer, aliases: ["self"] }],
    [`targets: the name "${issuer}" is reserved`, 'targets: the name "self" is reserved'],
  ],
  ["PROD-1.7-3 grants for a partner are accepted", [toPartner], [api, partner], []],
  [
    "PROD-1.7-3, PROD-4.1v7-4 access tokens for a partner are refused",
    [{ ...delegation, targets: ["api", "https://as.partner.example"] }],
    [api, partner],
    ['policies: rule "r" issues access tokens, but its target "https://as.partner.example" is a partner'],
  ],
  [
    "PROD-1.7-3 client credentials and redemption at a partner are refused",
    [
      { ...machine, targets: ["https://as.partner.example"] },
      { ...redemption, id: "s", targets: ["https://as.partner.example"] },
    ],
    [api, partner],
    ["r", "s"].map(
      (id) =>
        `policies: rule "${id}" issues access tokens, but its target "https://as.partner.example" is a partner`,
    ),
  ],
  [
    "PROD-1.7-3, PROD-4.1v7-4 grants for a resource server are refused even beside a partner",
    [{ ...toPartner, targets: ["https://as.partner.example", "https://api.example"] }],
    [api, partner],
    ['policies: rule "r" issues grants, but its target "api" is a resource server'],
  ],
  [
    "PROD-2.6-7 every problem is reported at once",
    [machine, { ...machine, targets: ["x"] }],
    [api, api],
    [
      'targets: the name "api" is given twice',
      'targets: the name "https://api.example" is given twice',
      'policies: the rule id "r" is given twice',
      'policies: rule "r" names the unknown target "x"',
    ],
  ],
];

for (const [name, ruleSet, targetSet, problems] of sets) {
  test(name, () => {
    const got = compile(ruleSet, targetSet);
    assert.deepEqual(got.ok ? [] : got.error, problems);
  });
}

test("IDC-2.5-3, IDJAG-5-1 the names of built-in members are not treated as names at a partner", () => {
  const set = compile([], [{ ...partner, clients: { a: "b" }, subjects: { table: { u: "w" } } }]);
  assert.ok(set.ok);
  const { clients, subjects } = set.value.targets.get(partner.issuer)?.partner ?? {};
  assert.deepEqual([clients?.get("a"), clients?.get("toString")], ["b", undefined]);
  assert.ok(typeof subjects === "object" && "table" in subjects);
  assert.deepEqual([subjects.table.get("u"), subjects.table.get("toString")], ["w", undefined]);
});

// --- finding rules --------------------------------------------------------------------------------------------------

const found = (ruleSet: object[], caller: Caller, name?: string): string[] => {
  const set = compile(ruleSet, [api, other, { ...other, names: ["x y"] }, { ...other, names: ["y"] }]);
  assert.ok(set.ok);
  const target = name === undefined ? undefined : set.value.targets.get(name);
  return candidates(set.value, caller, target).map(({ id }) => id);
};

const asPlanner: Caller = { mode: "delegation", clientId: planner, workload: planner };
const asClient: Caller = { mode: "client_credentials", clientId: "c-report" };
const asDocument: Caller = { mode: "client_credentials", clientId: "https://agents.example/planner.json" };
const actors = (...named: string[]) => ({ ...delegation, actors: named });
const clients = (...named: string[]) => ({ ...machine, clients: named });
const ofClass: Caller = { mode: "client_credentials", clientId: "c_1", registrationClass: "staff" };

const finds: [string, object, Caller, boolean][] = [
  ["PROD-2.6-3 a rule is found by the workload", actors(planner), asPlanner, true],
  [
    "PROD-2.6-3 a rule is found by a prefix of the workload",
    actors("spiffe://td.example/agents/*"),
    asPlanner,
    true,
  ],
  ["PROD-2.6-3 a rule is found by the trust domain", actors("spiffe://td.example/*"), asPlanner, true],
  [
    "PROD-2.6-3 a rule is found by one of several names",
    actors("spiffe://td.example/x", planner),
    asPlanner,
    true,
  ],
  [
    "PROD-2.6-3 no rule is found for another workload",
    actors("spiffe://td.example/agents/booking"),
    asPlanner,
    false,
  ],
  ["PROD-2.6-3 no rule is found for another prefix", actors("spiffe://td.example/agent/*"), asPlanner, false],
  [
    "PROD-2.6-3 no rule is found for another trust domain",
    actors("spiffe://td.example2/*"),
    asPlanner,
    false,
  ],
  ["PROD-2.6-3 no rule is found for a prefix below the workload", actors(`${planner}/*`), asPlanner, false],
  [
    "PROD-2.6-3 no rule is found for a name with other capitals",
    actors("spiffe://td.example/agents/Planner"),
    asPlanner,
    false,
  ],
  [
    "PROD-2.6-3 no actor is found by a client_id",
    actors(planner),
    { mode: "delegation", clientId: planner },
    false,
  ],
  [
    "PROD-2.6-2 no rule is found for another mode",
    actors(planner),
    { ...asPlanner, mode: "impersonation" },
    false,
  ],
  ["PROD-2.6-2 a rule is found by the client", clients("c-report"), asClient, true],
  ["PROD-2.6-2 no rule is found for another client", clients("c-report2"), asClient, false],
  [
    "PROD-2.6-2 a rule is found by the URL of a client",
    clients("https://agents.example/planner.json"),
    asDocument,
    true,
  ],
  [
    "PROD-2.6-2 a rule is found by the origin of a client",
    clients("https://agents.example/*"),
    asDocument,
    true,
  ],
  [
    "PROD-2.6-2 no rule is found for another origin",
    clients("https://agents.example.org/*"),
    asDocument,
    false,
  ],
  [
    "PROD-2.6-2 no rule is found for another port",
    clients("https://agents.example:8443/*"),
    asDocument,
    false,
  ],
  [
    "PROD-2.6-2 userinfo is not treated as the origin",
    clients("https://agents.example/*"),
    { ...asDocument, clientId: "https://agents.example@evil.example/a" },
    false,
  ],
  [
    "PROD-2.6-2 a longer host is not treated as the origin",
    clients("https://agents.example/*"),
    { ...asDocument, clientId: "https://agents.example.evil.example/a" },
    false,
  ],
  [
    "PROD-2.6-2 no rule is found for a client by the workload of another client",
    clients(planner),
    { ...asClient, workload: planner },
    false,
  ],
  [
    "PROD-2.6-2 a prefix of workloads is not treated as a client",
    clients("spiffe://td.example/*"),
    { mode: "client_credentials", clientId: planner, workload: planner },
    false,
  ],
  ["PROD-2.6-2 a rule is found by the class", { ...clients("c-x"), classes: ["staff"] }, ofClass, true],
  [
    "PROD-2.6-2 a rule is found by the client beside a class",
    { ...clients("c_1"), classes: ["x"] },
    ofClass,
    true,
  ],
  [
    "PROD-2.6-2 no rule is found for another class",
    { ...machine, clients: undefined, classes: ["guests"] },
    ofClass,
    false,
  ],
  [
    "PROD-2.6-2 no rule is found for a class if the caller has no class",
    { ...machine, clients: undefined, classes: ["staff"] },
    { mode: "client_credentials", clientId: "c_1" },
    false,
  ],
  [
    "PROD-2.6-2 the name of a class is not treated as a client",
    { ...machine, clients: undefined, classes: ["staff"] },
    { mode: "client_credentials", clientId: "staff" },
    false,
  ],
  ["PROD-2.6-2 the name of a client is not treated as a class", clients("staff"), ofClass, false],
  [
    "PROD-2.6-2 no rule is found for a class by its actors alone",
    { ...machine, clients: undefined, classes: ["staff"], actors: [planner] },
    { mode: "client_credentials", clientId: planner, workload: planner },
    false,
  ],
  [
    "PROD-2.6-2 a rule is found for a client that is a workload",
    clients(planner),
    { mode: "client_credentials", clientId: planner, workload: planner },
    true,
  ],
];

for (const [name, rule, caller, want] of finds) {
  test(name, () => {
    assert.deepEqual(found([rule], caller), want ? ["r"] : []);
    assert.deepEqual(found([rule], caller, "api"), want ? ["r"] : []);
  });
}

test("PROD-2.6-10 a rule that names client, class and workload of a caller is found once", () => {
  const rule = { ...clients("c_1"), classes: ["staff"], actors: [planner] };
  assert.deepEqual(found([rule, { ...rule, id: "a" }], { ...ofClass, workload: planner }, "api"), ["a", "r"]);
});

test("PROD-2.6-1 a rule is found at its own targets only, by any of their names", () => {
  assert.deepEqual(found([delegation], asPlanner, "https://api.example"), ["r"]);
  assert.deepEqual(found([delegation], asPlanner, "other"), []);
});

test("PROD-2.6-2 names that contain blanks are distinguished", () => {
  const rule = { ...machine, clients: ["c x"], targets: ["y"] };
  assert.deepEqual(found([rule], { mode: "client_credentials", clientId: "c x" }, "y"), ["r"]);
  assert.deepEqual(found([rule], { mode: "client_credentials", clientId: "c" }, "x y"), []);
});

test("PROD-2.6-10 every rule is found once, by id", () => {
  const named = {
    ...delegation,
    actors: [planner, "spiffe://td.example/*"],
    targets: ["api", "https://api.example"],
  };
  const set = [
    { ...named, id: "b" },
    { ...named, id: "c" },
    { ...delegation, id: "a" },
  ];
  assert.deepEqual(found(set, asPlanner, "api"), ["a", "b", "c"]);
  assert.deepEqual(found(set.toReversed(), asPlanner), ["a", "b", "c"]);
});

test("RFC8693-2.2.2-3 for a caller, finds one of the rules that differ only in targets and scopes", () => {
  const ruleSet = [
    { ...delegation, id: "a" },
    { ...delegation, id: "b", targets: ["other"], scopes: ["x"] },
    { ...delegation, id: "c", consent: "may_act" },
    { ...delegation, id: "d", lifetimeSeconds: 60 },
    { ...delegation, id: "e", actors: ["spiffe://td.example/*"] },
    { ...delegation, id: "f", actors: ["spiffe://td.example/agents/booking"] },
  ];
  const kinds = (rules: object[]): number => {
    const set = compile(rules, [api, other]);
    assert.ok(set.ok);
    return kindsFor(set.value, asPlanner).length;
  };
  assert.deepEqual(
    ruleSet.map((_, index) => kinds(ruleSet.slice(0, index + 1))),
    [1, 1, 2, 3, 4, 4],
  );
});

// --- whether any rule names a caller --------------------------------------------------------------------------------

type AnyCaller = Omit<Caller, "mode">;

/** How a rule names a caller, a caller that it names, and a similar caller that it does not name. */
const namings: [string, object, AnyCaller, AnyCaller][] = [
  ["its client_id", { clients: ["c_1"] }, { clientId: "c_1" }, { clientId: "c_2" }],
  [
    "the origin of its document",
    { clients: ["https://agents.example/*"] },
    { clientId: "https://agents.example/planner.json" },
    { clientId: "https://agents.example.org/planner.json" },
  ],
  [
    "its class",
    { classes: ["staff"] },
    { clientId: "c_1", registrationClass: "staff" },
    { clientId: "staff", registrationClass: "guests" },
  ],
  ["its workload", { actors: [planner] }, { clientId: "c_1", workload: planner }, { clientId: planner }],
  [
    "a prefix of its workload",
    { actors: ["spiffe://td.example/agents/*"] },
    { clientId: "c_1", workload: planner },
    { clientId: "c_1", workload: "spiffe://td.example/crew/ana" },
  ],
];
for (const rule of [machine, delegation, impersonation, redemption]) {
  for (const [how, names, caller, other] of namings) {
    // PROD-2.6-3: a delegation names only workloads.
    if (rule === delegation && !("actors" in names)) continue;
    test(`PROD-8.3-1 a rule for ${rule.allow} names a caller by ${how} and does not name another caller`, () => {
      const set = compile([{ ...rule, clients: undefined, actors: undefined, ...names }], [api]);
      assert.ok(set.ok);
      assert.deepEqual([isNamed(set.value, caller), isNamed(set.value, other)], [true, false]);
    });
  }
}

/** What a rule demands of the claims of a subject: what matches, what never does, and how old it may be. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as v from "valibot";
import type { AccessRequest } from "../../src/policy/access.ts";
import type { ClaimDemands } from "../../src/policy/claims.ts";
import {
  compileClaims,
  countedFor,
  lackOf,
  latestOf,
  readClaims,
  textOfDemands,
} from "../../src/policy/claims.ts";
import { warnOfClaims } from "../../src/policy/claims-checks.ts";
import { decide } from "../../src/policy/decide.ts";
import { findWiderRule, indexBySubject } from "../../src/policy/redundant.ts";
import { compilePolicy, Rule, Target } from "../../src/policy/rules.ts";
import type { Json, JsonObject } from "../../src/spec/rfc8259.ts";
import type { Prng } from "../support/prng.ts";
import { prng } from "../support/prng.ts";
import { rounds } from "../support/rounds.ts";

const ISSUER = "https://as.example";
const IDP = "https://idp.example";
const NOW = 1_790_000_000;
const MAX_SECONDS = 900;

const ruleFile = (id: string, subjects: object) => ({
  id,
  allow: "impersonation",
  clients: ["app"],
  subjects: { issuers: [IDP], ...subjects },
  subjectToken: { audiences: ["app"] },
  consent: "implied",
  acknowledge: "subjects-not-asked",
  targets: ["notes"],
  scopes: ["read"],
});
const ruleOf = (claims: ClaimDemands, id = "r"): Rule => v.parse(Rule, ruleFile(id, { claims }));

function policyOf(...rules: Rule[]) {
  const policy = compilePolicy(rules, [v.parse(Target, { names: ["notes"], scopes: ["read"] })], ISSUER, "d");
  assert.ok(policy.ok);
  return policy.value;
}

/** What the rule says of a token of its issuer with these claims, `ageSeconds` after they were true. */
function reasonOf(demands: ClaimDemands, claims: JsonObject, ageSeconds = 0, iss = IDP): string {
  const policy = policyOf(ruleOf(demands));
  const wanted = policy.claims.get(iss);
  const access: AccessRequest = {
    mode: "impersonation",
    clientId: "app",
    subject: {
      tokenType: "jwt",
      origin: { iss, sub: "alice" },
      audiences: ["app"],
      scopes: ["read"],
      expiresAtSeconds: NOW + 3600,
      chain: [],
      issuer: iss,
      ...(wanted && { claims: countedFor(readClaims(claims, wanted, NOW - ageSeconds), MAX_SECONDS) }),
    },
    target: "notes",
    consents: [],
    nowSeconds: NOW,
  };
  const decided = decide(policy, access);
  if (!decided.ok) return decided.error.reason;
  return `allowed for ${decided.value.expiresAtSeconds - NOW} s`;
}

const eng = { "/groups": ["Engineering", "Research"] };
const nested = { "/resource_access/app/roles": ["editor"] };
const deep = (levels: number): Json => (levels === 0 ? "Engineering" : { a: deep(levels - 1) });
const cases: readonly (readonly [string, ClaimDemands, JsonObject, string])[] = [
  ["PCL-D-1 one of the texts, in a list", eng, { groups: ["Sales", "Research"] }, "allowed"],
  ["PCL-D-2 a text alone", eng, { groups: "Engineering" }, "allowed"],
  ["PCL-D-1 a text behind objects", nested, { resource_access: { app: { roles: ["editor"] } } }, "allowed"],
  [
    "PCL-D-1 a name with a slash",
    { "/https:~1~1x.example~1groups": ["a"] },
    { "https://x.example/groups": "a" },
    "allowed",
  ],
  ["PCL-D-5 a path", { "/groups": ["/eng/backend"] }, { groups: ["/eng/backend"] }, "allowed"],
  [
    "PCL-D-1 one of two pointers",
    { ...eng, "/hd": ["a.example"] },
    { groups: ["Engineering"] },
    "claims_absent",
  ],
  [
    "PCL-D-1 both pointers",
    { ...eng, "/hd": ["a.example"] },
    { groups: "Research", hd: "a.example" },
    "allowed",
  ],
  ["PCL-D-1 none of the texts", eng, { groups: ["Sales"] }, "claims_differ"],
  ["PCL-D-5 another case", eng, { groups: ["engineering"] }, "claims_differ"],
  ["PCL-D-5 a Cyrillic letter", eng, { groups: ["Еngineering"] }, "claims_differ"],
  ["PCL-D-5 a composed letter", { "/groups": ["Caf\u00e9"] }, { groups: ["Cafe\u0301"] }, "claims_differ"],
  ["PCL-D-5 blanks around it", eng, { groups: [" Engineering", "Engineering\u200b"] }, "claims_differ"],
  [
    "PCL-D-5 a path above",
    { "/groups": ["/eng/backend"] },
    { groups: ["/eng", "/eng/backend/"] },
    "claims_differ",
  ],
  ["PCL-D-5 a star", eng, { groups: ["*"] }, "claims_differ"],
  ["PCL-D-2 several in one text", eng, { groups: "Engineering,Research" }, "claims_differ"],
  ["PCL-D-3 nothing", eng, {}, "claims_absent"],
  ["PCL-D-3 an empty list", eng, { groups: [] }, "claims_absent"],
  ["PCL-D-3 null", eng, { groups: null }, "claims_absent"],
  [
    "PCL-D-3 a pointer into a list",
    { "/groups/0": ["Engineering"] },
    { groups: ["Engineering"] },
    "claims_absent",
  ],
  ["PCL-D-3 an inherited name", { "/toString/name": ["toString"] }, {}, "claims_absent"],
  ["PCL-D-2 an object", eng, { groups: { Engineering: true } }, "claims_unreadable"],
  ["PCL-D-2 a list in the list", eng, { groups: ["Engineering", ["Research"]] }, "claims_unreadable"],
  ["PCL-D-2 a number", { "/level": ["1"] }, { level: 1 }, "claims_unreadable"],
  [
    "PCL-D-2 a number beyond doubles",
    { "/level": ["9007199254740993"] },
    { level: 9_007_199_254_740_992 },
    "claims_unreadable",
  ],
  ["PCL-D-2 a truth value", { "/staff": ["true"] }, { staff: true }, "claims_unreadable"],
  ["PCL-D-2 a lone surrogate", eng, { groups: ["Engineering", "\ud800"] }, "claims_unreadable"],
  [
    "PCL-D-2 a value of 513 bytes",
    eng,
    { groups: ["Engineering", `${"é".repeat(256)}x`] },
    "claims_unreadable",
  ],
  ["PCL-D-2 1,001 values", eng, { groups: ["Engineering", ...Array(1000).fill("x")] }, "claims_unreadable"],
  ["PCL-D-2 1,000 values", eng, { groups: ["Engineering", ...Array(999).fill("x")] }, "allowed"],
  ["PCL-D-2 much nesting", { "/groups/a/a": ["Engineering"] }, { groups: deep(60) }, "claims_unreadable"],
  [
    "PCL-D-3, PCL-D-4 the overage of Entra",
    eng,
    {
      _claim_names: { groups: "src1" },
      _claim_sources: { src1: { endpoint: "https://graph.windows.net/x" } },
    },
    "claims_overage",
  ],
  [
    "PCL-D-3 an overage beside a list",
    eng,
    { groups: ["Engineering"], _claim_names: { groups: "src1" } },
    "claims_overage",
  ],
  ["PCL-D-3 the overage of the implicit flow", eng, { hasgroups: true }, "claims_overage"],
  [
    "PCL-D-3 the overage of another claim",
    eng,
    { groups: ["Engineering"], _claim_names: { address: "src1" } },
    "allowed",
  ],
];
for (const [name, demands, claims, want] of cases) {
  test(`${name}: ${want}`, () => {
    assert.equal(reasonOf(demands, claims).replace(/ for .*/, ""), want);
  });
}

test("PCL-D-1 the same group of another issuer is no match", () => {
  assert.equal(reasonOf(eng, { groups: ["Engineering"] }, 0, "https://other.example"), "no_rule");
});

test("PCL-D-8 claims count for their time, and so long lives what rests on them", () => {
  const groups = ["Engineering"];
  assert.equal(reasonOf(eng, { groups }, 0), "allowed for 300 s");
  assert.equal(reasonOf(eng, { groups }, 700), "allowed for 200 s");
  assert.equal(reasonOf(eng, { groups }, 900), "claims_too_old");
  // A token that does not say when it was issued.
  assert.equal(reasonOf(eng, { groups }, NOW), "claims_too_old");
});

test("PCL-D-8 of two words the later one counts, and one that is stale gives nothing", () => {
  const wanted = policyOf(ruleOf(eng)).claims.get(IDP);
  assert.ok(wanted);
  const at = (atSeconds: number, stale?: true) =>
    countedFor({ ...readClaims({ groups: "Engineering" }, wanted, atSeconds), ...(stale && { stale }) }, 900);
  assert.equal(latestOf(at(1), at(2))?.atSeconds, 2);
  assert.equal(latestOf(at(2), at(1))?.atSeconds, 2);
  assert.equal(latestOf(at(2), at(2, true))?.untilSeconds, 0);
  assert.equal(latestOf(undefined, at(1))?.atSeconds, 1);
  assert.equal(latestOf(at(1), undefined)?.atSeconds, 1);
});

test("PCL-D-7 of the values of a token those are kept that a rule names, each once, and no others", () => {
  const wanted = policyOf(ruleOf(eng), ruleOf({ "/hd": ["a.example"] }, "s")).claims.get(IDP);
  assert.ok(wanted);
  const kept = readClaims(
    { groups: ["Sales", "Engineering", "Engineering"], hd: "b.example", email: "a@b" },
    wanted,
    NOW,
  );
  assert.deepEqual(kept.values, { "/groups": ["Engineering"], "/hd": [] });
});

// --- as it is written -------------------------------------------------------------------------------------------

const refused: readonly (readonly [string, object])[] = [
  ["two issuers", { issuers: [IDP, "https://b.example"], claims: eng }],
  ["no pointer", { claims: { groups: ["a"] } }],
  ["an empty list", { claims: { "/groups": [] } }],
  ["an empty text", { claims: { "/groups": [""] } }],
  ["a number", { claims: { "/groups": [1] } }],
  ["no claim", { claims: {} }],
  ["a sentence alone", { because: "You are in Engineering." }],
  ...["act", "may_act", "exp", "iat", "auth_time", "jti", "sid", "sub", "cnf", "scope"].map(
    (name) => [`the claim ${name}`, { claims: { [`/${name}`]: ["a"] } }] as const,
  ),
  ["a part of may_act", { claims: { "/may_act/sub": ["a"] } }],
];
for (const [what, subjects] of refused) {
  test(`PCL-D-1 a rule with ${what} is refused`, () => {
    assert.equal(v.safeParse(Rule, ruleFile("r", subjects)).success, false);
  });
}

test("PCL-D-1 a rule that demands more is redundant beside one that demands less, and not the other way", () => {
  const widerThan = (wide: ClaimDemands | undefined, narrow: ClaimDemands | undefined) => {
    const [a, b] = [wide, narrow].map((claims, at) => v.parse(Rule, ruleFile(`r${at}`, { claims })));
    assert.ok(a && b);
    return findWiderRule(policyOf(a, b), b, indexBySubject([a, b]), false) === a;
  };
  assert.equal(widerThan(undefined, eng), true);
  assert.equal(widerThan(eng, undefined), false);
  assert.equal(widerThan(eng, { "/groups": ["Research"], "/hd": ["a"] }), true);
  assert.equal(widerThan({ "/groups": ["Research"] }, eng), false);
  assert.equal(textOfDemands(eng), textOfDemands({ "/groups": ["Research", "Engineering"] }));
});

const ENTRA = "https://login.microsoftonline.com/t/v2.0";
const GOOGLE = "https://accounts.google.com";
const warned: readonly (readonly [string, string, ClaimDemands, readonly string[], RegExp | undefined])[] = [
  ["an issuer of which nothing is heard", IDP, eng, [], /set "claimsFrom"/],
  ["an address", IDP, { "/email": ["a@b.example"] }, ["token"], /demands \/email/],
  ["a name of Entra", ENTRA, eng, ["token"], /use the id/],
  ["groups of Google", GOOGLE, eng, ["sign_in"], /have no groups/],
  ["roles of Keycloak at a sign-in", IDP, { "/realm_access/roles": ["a"] }, ["sign_in"], /access tokens/],
  ["roles of Keycloak in tokens", IDP, { "/realm_access/roles": ["a"] }, ["token"], undefined],
  ["an id of Entra", ENTRA, { "/groups": ["0f1c0a52-5f0a-4c3b-9d35-2a1b3c4d5e6f"] }, ["token"], undefined],
  ["the domain of Google", GOOGLE, { "/hd": ["a.example"] }, ["sign_in"], undefined],
];
for (const [what, issuer, claims, claimsFrom, want] of warned) {
  test(`PCL-D-6 a rule that demands ${what} is ${want ? "warned of" : "in order"}`, () => {
    const rule = v.parse(Rule, ruleFile("r", { issuers: [issuer], claims }));
    const found = [...warnOfClaims(rule, { trustedIssuers: { [issuer]: { claimsFrom } } })];
    if (want === undefined) assert.deepEqual(found, []);
    else assert.match(found.join("\n"), want);
  });
}

// --- by an oracle that shares no code with it ---------------------------------------------------------------------

/** Walks both at once, as the texts of the decisions say it. */
function oracle(demands: ClaimDemands, claims: JsonObject): boolean {
  for (const pointer in demands) {
    const [, ...steps] = pointer.split("/").map((one) => one.replace(/~1/g, "/").replace(/~0/g, "~"));
    const sources = claims._claim_names as JsonObject | undefined;
    if (sources && Object.keys(sources).includes(String(steps[0]))) return false;
    if (steps[0] === "groups" && claims.hasgroups) return false;
    let at: unknown = claims;
    for (const step of steps) {
      if (Object.prototype.toString.call(at) !== "[object Object]") return false;
      at = new Map(Object.entries(at as object)).get(step);
    }
    const list: unknown = typeof at === "string" ? [at] : at;
    if (!Array.isArray(list) || list.length > 1000) return false;
    if (list.some((one) => typeof one !== "string" || new TextEncoder().encode(one).length > 512))
      return false;
    if (!list.some((one) => demands[pointer]?.some((text) => Buffer.from(text).equals(Buffer.from(one)))))
      return false;
  }
  return true;
}

const NAMES = ["groups", "roles", "a/b", "c~d", "0", "length"];
const TEXTS = ["Engineering", "engineering", "Еngineering", "/eng", "/eng/", "*", "1", "true", ""];
const LONG = "x".repeat(513);
const MANY = Array<string>(1001).fill("Engineering");
const escaped = (name: string): string => name.replaceAll("~", "~0").replaceAll("/", "~1");

function anyClaim(random: Prng, levels: number): Json {
  const kind = random.below(10);
  if (kind < 3) return random.pick(TEXTS);
  if (kind < 6) return Array.from({ length: random.below(4) }, () => random.pick(TEXTS));
  if (kind < 7) return random.pick([1, 2 ** 53, true, null, LONG, MANY]);
  if (kind < 8 || levels === 0) return [random.pick(TEXTS), [random.pick(TEXTS)]];
  return anyObject(random, levels - 1);
}
const anyObject = (random: Prng, levels: number): JsonObject =>
  Object.fromEntries(
    NAMES.filter(() => random.below(100) < 50).map((name) => [name, anyClaim(random, levels)]),
  );

test("PCL-D-1 random claims match random rules exactly where an oracle says so", () => {
  const count = rounds(10_000);
  const seed = 51;
  const random = prng(seed);
  let matches = 0;
  for (let round = 0; round < count; round++) {
    const pointer = () =>
      Array.from({ length: random.below(100) < 70 ? 1 : 2 }, () => `/${escaped(random.pick(NAMES))}`).join(
        "",
      );
    const texts = () =>
      Array.from({ length: 1 + random.below(3) }, () => random.pick(TEXTS)).map((one) => one || "x");
    const demands = Object.fromEntries(
      Array.from({ length: random.below(100) < 70 ? 1 : 2 }, () => [pointer(), texts()] as const),
    );
    const claims = anyObject(random, 2);
    if (random.below(100) < 5) claims._claim_names = { [random.pick(NAMES)]: "src1" };
    if (random.below(100) < 5) claims.hasgroups = true;
    const want = oracle(demands, claims);
    if (want) matches++;
    const wanted = compileClaims([{ subjects: { issuers: [IDP], claims: demands } }]).get(IDP);
    assert.ok(wanted);
    const got = lackOf(demands, countedFor(readClaims(claims, wanted, NOW), 1), NOW) === undefined;
    if (got !== want)
      assert.fail(`seed ${seed}, round ${round}: ${JSON.stringify({ demands, claims, want }).slice(0, 400)}`);
  }
  assert.ok(matches > count / 50, `${matches} of ${count} match`);
});

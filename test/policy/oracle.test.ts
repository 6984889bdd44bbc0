/** The decision against an oracle that was written from the design page alone: seeded random policies and asks. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as v from "valibot";
import type { Ask } from "../../src/policy/decide.ts";
import { decide } from "../../src/policy/decide.ts";
import { compilePolicy, Rule, Target } from "../../src/policy/rules.ts";
import { prng } from "../spec/prng.ts";

// --- the oracle: nothing below this line and above the next comes from the code under test ------------------------

type RuleFile = {
  id: string;
  allow: "client_credentials" | "delegation" | "impersonation";
  actors?: string[];
  clients?: string[];
  subjects?: { issuers: string[]; subs?: string[] };
  subjectToken?: { audiences?: string[]; scopes?: string[] };
  consent?: "record" | "may_act" | "implied";
  acknowledge?: string;
  maxChainDepth?: number;
  targets: string[];
  scopes: string[];
  lifetimeSeconds: number;
};
type TargetFile = { names: string[]; owners: string[]; scopes: string[] };
type Person = { iss: string; sub: string };
type Token = {
  origin: Person;
  audiences: string[];
  scopes: string[];
  expiresAtSeconds: number;
  chain: Person[];
  mayAct?: { sub: string; iss?: string };
  issuer: string;
};
type ConsentFile = {
  id: string;
  version: number;
  origin: Person;
  actor: string;
  targets: string[];
  scopes: string[];
  expiresAtSeconds?: number;
};
type Question = {
  mode: RuleFile["allow"];
  clientId: string;
  workload?: string;
  subject?: Token;
  target?: string;
  scope?: string[];
  consents: ConsentFile[];
  nowSeconds: number;
};
type Grant = { rule: string; scope: string[]; audience: string; exp: number; consent?: string };

const us = "https://as.example";

const fits = (pattern: string, id: string): boolean => {
  const [wanted, given] = [pattern.split("/"), id.split("/")];
  if (wanted.at(-1) !== "*") return pattern === id;
  const folder = wanted.slice(0, -1);
  return given.length > folder.length && folder.every((segment, index) => segment === given[index]);
};

/** The grant, or nothing where the answer is no. */
function oracle(rules: RuleFile[], targets: TargetFile[], asked: Question): Grant | undefined {
  const { mode, clientId, workload, subject, nowSeconds } = asked;
  const whoActs = mode === "delegation" ? [workload] : [clientId, workload];
  const ownedNames = targets
    .filter(({ owners }) => owners.some((owner) => workload !== undefined && fits(owner, workload)))
    .flatMap(({ names }) => names);
  const mine = [us, clientId, ...(workload === undefined ? [] : [workload]), ...ownedNames];
  const meantForMe = subject?.audiences.some((audience) => mine.includes(audience)) ?? false;

  if (mode === "delegation" && workload === undefined) return undefined;
  if (subject !== undefined) {
    const { mayAct } = subject;
    if (mayAct !== undefined) {
      if (!whoActs.includes(mayAct.sub)) return undefined;
      // Without an issuer it is one of the token's own issuer, unless the name means the same everywhere.
      if (!mayAct.sub.startsWith("spiffe://") && (mayAct.iss ?? subject.issuer) !== us) return undefined;
      if (mayAct.iss !== undefined && mayAct.iss !== us) return undefined;
    }
    if (subject.origin.iss === us && whoActs.includes(subject.origin.sub)) return undefined;
    if (subject.chain.length > 0 && !meantForMe) return undefined;
  }

  const matches = (rule: RuleFile): boolean => {
    if (rule.allow !== mode) return false;
    if (rule.actors && !(workload !== undefined && rule.actors.some((one) => fits(one, workload))))
      return false;
    if (rule.clients && !rule.clients.some((one) => fits(one, clientId))) return false;
    if (rule.allow === "client_credentials") return true;
    if (subject === undefined) return false;
    if (!rule.subjects?.issuers.includes(subject.origin.iss)) return false;
    if (rule.subjects.subs && !rule.subjects.subs.includes(subject.origin.sub)) return false;
    const { audiences = [], scopes = [] } = rule.subjectToken ?? {};
    const accepted = audiences.flatMap((one) => (one === "self" ? ownedNames : [one]));
    const byAudience = meantForMe && subject.audiences.some((one) => accepted.includes(one));
    if (!byAudience && !subject.scopes.some((one) => scopes.includes(one))) return false;
    if (rule.consent === "may_act" && subject.mayAct === undefined) return false;
    return rule.allow !== "delegation" || subject.chain.length < (rule.maxChainDepth ?? 8);
  };
  const matching = rules.filter(matches);
  const called = (name: string) => targets.find(({ names }) => names.includes(name));

  let audience = asked.target;
  if (audience === undefined) {
    if (mode !== "client_credentials") return undefined;
    const within = targets.filter(({ names }) =>
      matching.some((rule) => rule.targets.some((one) => names.includes(one))),
    );
    const implied = within.filter(
      ({ scopes }) => asked.scope === undefined || asked.scope.some((one) => scopes.includes(one)),
    );
    if (implied.length !== 1) return undefined;
    audience = implied[0]?.names[0] ?? "";
  }
  const target = called(audience);
  if (target === undefined) return undefined;

  const grants: Grant[] = [];
  for (const rule of matching) {
    if (!rule.targets.some((name) => called(name) === target)) continue;
    const exp = Math.min(
      nowSeconds + rule.lifetimeSeconds,
      subject?.expiresAtSeconds ?? Number.MAX_SAFE_INTEGER,
    );
    if (exp < nowSeconds + 5) continue;
    const sides = [rule.scopes, target.scopes, ...(subject ? [subject.scopes] : [])];
    const left = (consent: string[][]): string[] =>
      [...new Set([...sides, ...consent].flat())].filter((one) =>
        [...sides, ...consent, asked.scope ?? [one]].every((side) => side.includes(one)),
      );
    if (rule.consent !== "record") {
      grants.push({ rule: rule.id, scope: left([]), audience, exp });
      continue;
    }
    for (const consent of asked.consents) {
      const { origin, actor, expiresAtSeconds = Number.MAX_SAFE_INTEGER } = consent;
      if (origin.iss !== subject?.origin.iss || origin.sub !== subject.origin.sub) continue;
      if (actor !== (workload ?? clientId) || expiresAtSeconds <= nowSeconds) continue;
      if (!consent.targets.some((name) => called(name) === target)) continue;
      grants.push({ rule: rule.id, scope: left([consent.scopes]), audience, exp, consent: consent.id });
    }
  }
  const order = (grant: Grant): string => `${grant.rule} ${grant.consent}`;
  return grants
    .filter(({ scope }) => scope.length > 0)
    .sort((a, b) => b.scope.length - a.scope.length || (order(a) < order(b) ? -1 : 1))[0];
}

// --- random policies and asks -------------------------------------------------------------------------------------

const idp = "https://idp.example";
const workloads = ["spiffe://td/agents/a", "spiffe://td/agents/b", "spiffe://td/crew/c"];
const patterns = [
  ...workloads,
  "spiffe://td/agents/*",
  "spiffe://td/crew/*",
  "spiffe://td/*",
  "spiffe://td2/*",
];
const clientIds = ["c1", "c2", "https://d.example/a", "https://d.example/b"];
const clientNames = [...clientIds, "https://d.example/*"];
const scopeNames = ["s1", "s2", "s3", "s4"];
const targetFiles: TargetFile[] = [
  { names: ["t1", "https://t1"], owners: ["spiffe://td/agents/a"], scopes: ["s1", "s2", "s3"] },
  { names: ["t2"], owners: ["spiffe://td/crew/*"], scopes: ["s2", "s3"] },
  { names: ["t3"], owners: [], scopes: ["s4"] },
];
const targetNames = targetFiles.flatMap(({ names }) => names);
const origins = [
  { iss: idp, sub: "u1" },
  { iss: idp, sub: "u2" },
  { iss: us, sub: "u1" },
  { iss: us, sub: "spiffe://td/agents/a" },
];
const now = 1_000_000;

function generator(seed: number) {
  const random = prng(seed);
  const chance = (percent: number): boolean => random.below(100) < percent;
  /** Each with the same chance, at least one. */
  const some = <T>(from: readonly T[], percent = 50): T[] => {
    const taken = from.filter(() => chance(percent));
    return taken.length > 0 ? taken : [random.pick(from)];
  };
  const maybe = <Name extends string, T>(
    percent: number,
    name: Name,
    value: () => T,
  ): { [Key in Name]?: T } => (chance(percent) ? { [name]: value() } : {}) as { [Key in Name]?: T };

  const makeRule = (id: string): RuleFile => {
    const allow = random.pick(["client_credentials", "delegation", "delegation", "impersonation"] as const);
    const by = allow === "delegation" ? 0 : random.below(3);
    const consent = random.pick(["record", "may_act", "implied", "implied"] as const);
    const permitted = {
      ...maybe(80, "audiences", () => some([us, "self", "t1", "t2", "c1"])),
      ...maybe(30, "scopes", () => some(scopeNames, 25)),
    };
    return {
      id,
      allow,
      ...(by < 2 && { actors: some(patterns, 55) }),
      ...(by > 0 && { clients: some(clientNames, 60) }),
      ...(allow !== "client_credentials" && {
        subjects: { issuers: some([idp, us]), ...maybe(20, "subs", () => some(["u1", "u2"])) },
        subjectToken: Object.keys(permitted).length > 0 ? permitted : { audiences: ["self"] },
        consent,
        ...(consent === "implied" && { acknowledge: "subjects-not-asked" }),
      }),
      ...(allow === "delegation" && maybe(40, "maxChainDepth", () => 1 + random.below(4))),
      targets: some(targetNames, 60),
      scopes: some(scopeNames, 60),
      lifetimeSeconds: random.pick([5, 60, 300]),
    };
  };
  const makeToken = (who: readonly string[]): Token => ({
    origin: chance(60) ? { iss: idp, sub: "u1" } : random.pick(origins),
    audiences: some([us, "t1", "t2", "t3", "c1", "x", ...workloads], 35),
    scopes: chance(5) ? [] : some(scopeNames, 70),
    expiresAtSeconds: now + random.pick([-10, 4, 5, 40, 100, 200, 1000, 1000]),
    chain: Array.from({ length: chance(70) ? 0 : random.below(4) }, () => ({
      iss: random.pick([us, idp]),
      sub: random.pick(workloads),
    })),
    ...maybe(35, "mayAct", () => ({
      sub: random.pick([...workloads, "c1", ...who, ...who, ...who, ...who]),
      ...maybe(30, "iss", () => random.pick([us, us, idp])),
    })),
    issuer: random.pick([us, idp]),
  });
  const makeAsk = (): Question => {
    const mode = random.pick(["client_credentials", "delegation", "delegation", "impersonation"] as const);
    const workload = chance(85) ? random.pick(workloads) : undefined;
    const clientId = workload !== undefined && chance(50) ? workload : random.pick(clientIds);
    const subject =
      mode === "client_credentials" || chance(3) ? undefined : makeToken([workload ?? clientId]);
    const makeConsent = (id: string): ConsentFile => ({
      id,
      version: 1,
      origin: subject !== undefined && chance(80) ? subject.origin : random.pick(origins),
      actor: chance(80) ? (workload ?? clientId) : random.pick(workloads),
      targets: some(targetNames),
      scopes: some(scopeNames, 70),
      ...maybe(30, "expiresAtSeconds", () => now + random.pick([-1, 0, 1, 500])),
    });
    return {
      mode,
      clientId,
      ...(workload !== undefined && { workload }),
      ...(subject !== undefined && { subject }),
      ...maybe(mode === "client_credentials" ? 50 : 95, "target", () => random.pick([...targetNames, "t4"])),
      ...maybe(70, "scope", () => some([...scopeNames, "s5"], 60)),
      consents: ["k1", "k2", "k3"].slice(random.below(4)).map(makeConsent),
      nowSeconds: now,
    };
  };
  const shuffle = <T>(from: readonly T[]): T[] =>
    from
      .map((one) => ({ one, at: random.below(1e9) }))
      .sort((a, b) => a.at - b.at)
      .map(({ one }) => one);
  return { random, makeRule, makeAsk, shuffle };
}

function compile(rules: readonly RuleFile[], targets: readonly TargetFile[]) {
  const set = compilePolicy(
    rules.map((rule) => v.parse(Rule, rule)),
    targets.map((target) => v.parse(Target, target)),
    us,
    "sha256:00",
  );
  assert.ok(set.ok, JSON.stringify(set));
  return set.value;
}

const { random, makeRule, makeAsk, shuffle } = generator(2606);
const samples = Array.from({ length: 1200 }, () => {
  const rules = Array.from({ length: 4 + random.below(9) }, (_, index) => makeRule(`r${index + 10}`));
  const asks = Array.from({ length: 5 }, makeAsk);
  return { rules, policy: compile(rules, targetFiles), asks };
});

/** What the test says of a decision, and the question by which to find it again. */
function each(check: (sample: (typeof samples)[number], ask: Question, why: string) => void): void {
  for (const sample of samples) {
    for (const ask of sample.asks) check(sample, ask, JSON.stringify({ rules: sample.rules, ask }, null, 1));
  }
}

test("PROD-1.5-1, PROD-1.5-2, PROD-2.6-10 decides as the oracle does, rule, scope, audience and end", () => {
  const seen = { yes: 0, no: 0 };
  each(({ rules, policy }, ask, why) => {
    const want = oracle(rules, targetFiles, ask);
    const got = decide(policy, ask as Ask);
    seen[got.ok ? "yes" : "no"]++;
    const found: Grant | undefined = got.ok
      ? {
          rule: got.value.rule.id,
          scope: got.value.scope.toSorted(),
          audience: got.value.audience,
          exp: got.value.expiresAtSeconds,
          ...(got.value.consent && { consent: got.value.consent.id }),
        }
      : undefined;
    assert.deepEqual(found, want && { ...want, scope: want.scope.toSorted() }, why);
  });
  assert.ok(seen.yes > 500 && seen.no > 500, JSON.stringify(seen));
});

test("PROD-2.6-6, PROD-8.2-1 never grants a scope outside any side", () => {
  each((_, ask, why) => {
    const got = decide(_.policy, ask as Ask);
    if (!got.ok) return;
    const { rule, target, scope, consent } = got.value;
    const consented = ask.consents.find(({ id }) => id === consent?.id)?.scopes;
    assert.ok(scope.length > 0, why);
    assert.equal(new Set(scope).size, scope.length, why);
    for (const one of scope) {
      for (const side of [rule.scopes, target.scopes, ask.scope, ask.subject?.scopes, consented]) {
        assert.ok(side?.includes(one) ?? true, why);
      }
    }
    assert.equal("consent" in rule && rule.consent === "record", consented !== undefined, why);
  });
});

test("PROD-8.4-1 never outlives rule or subject token, and never ends at once", () => {
  each(({ policy }, ask, why) => {
    const got = decide(policy, ask as Ask);
    if (!got.ok) return;
    const { expiresAtSeconds, rule } = got.value;
    assert.ok(expiresAtSeconds <= (ask.subject?.expiresAtSeconds ?? expiresAtSeconds), why);
    assert.ok(expiresAtSeconds <= now + rule.lifetimeSeconds, why);
    assert.ok(expiresAtSeconds >= now + 5, why);
  });
});

test("PROD-2.6-10 decides the same, trace and all, in whatever order rules, targets and consents come", () => {
  each(({ rules, policy }, ask, why) => {
    const shuffled = compile(shuffle(rules), shuffle(targetFiles));
    const got = decide(shuffled, { ...ask, consents: shuffle(ask.consents) } as Ask);
    assert.deepEqual(got, decide(policy, ask as Ask), why);
  });
});

test("PROD-2.6-7 allows no less with one rule more, for rules only allow", () => {
  each(({ rules, policy }, ask, why) => {
    // Without a target one more rule may make the choice of it ambiguous.
    if (ask.target === undefined) return;
    const before = decide(policy, ask as Ask);
    const after = decide(compile([...rules, makeRule("r99")], targetFiles), ask as Ask);
    if (before.ok) assert.ok(after.ok && after.value.scope.length >= before.value.scope.length, why);
  });
});

test("RFC8693-4.1-7 decides the same whoever acted before", () => {
  each(({ policy }, ask, why) => {
    if (ask.subject === undefined) return;
    const chain = ask.subject.chain.map(() => ({ iss: "https://x.example", sub: "x" }));
    const got = decide(policy, { ...ask, subject: { ...ask.subject, chain } } as Ask);
    assert.deepEqual(got, decide(policy, ask as Ask), why);
  });
});

/** The decision against an oracle that shares no code with it, by seeded random policies and requests. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as v from "valibot";
import type { AccessRequest, Product } from "../../src/policy/access.ts";
import { decide } from "../../src/policy/decide.ts";
import type { AskedRequest } from "../../src/policy/decision.ts";
import type { ChangePart } from "../../src/policy/next-change.ts";
import { compilePolicy, Rule, Target } from "../../src/policy/rules.ts";
import { smallestChange } from "../../src/policy/smallest-change.ts";
import { prng } from "../support/prng.ts";
import { rounds } from "../support/rounds.ts";

// --- the oracle, which uses none of the code under test -----------------------------------------------------------

type RuleFile = {
  id: string;
  allow: "client_credentials" | "delegation" | "impersonation" | "redemption";
  issues?: "access_token" | "grant";
  idJagSubjects?: string[];
  actors?: string[];
  clients?: string[];
  classes?: string[];
  subjects?: { issuers: string[]; subs?: string[] };
  subjectToken?: { audiences?: string[]; scopes?: string[] };
  consent?: "record" | "may_act" | "implied";
  acknowledge?: string;
  maxChainDepth?: number;
  jobs?: "optional" | "required" | "never";
  acknowledgeJob?: "job-ends-here";
  targets: string[];
  scopes: string[];
  lifetimeSeconds: number;
};
type Server = { names: string[]; owners: string[]; scopes: string[] };
type PartnerFile = {
  kind: "partner";
  issuer: string;
  aliases: string[];
  clients: { [here: string]: string };
  scopes: string[];
  resources: string[];
  jobs?: "honours";
};
type TargetFile = Server | PartnerFile;
type Person = { iss: string; sub: string };
type Token = {
  tokenType: "access_token" | "jwt" | "id_token" | "grant";
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
  jobId?: string;
  jobIssuer?: string;
};
type JobFile = {
  id: string;
  iss?: string;
  bounds: {
    notAfterSeconds: number;
    targets?: string[];
    scopes?: string[];
    agents?: string[];
    maxDepth?: number;
  };
};
type Question = {
  job?: JobFile;
  mode: RuleFile["allow"];
  clientId: string;
  workload?: string;
  registrationClass?: string;
  clientScopes?: string[];
  subject?: Token;
  target?: string;
  requestedType?: "access_token" | "jwt" | "id-jag";
  resources?: string[];
  scope?: string[];
  consents: ConsentFile[];
  nowSeconds: number;
};
type Grant = {
  rule: string;
  product: string;
  scope: string[];
  audience: string;
  exp: number;
  consent?: string;
};

const us = "https://as.example";

const fits = (pattern: string, id: string): boolean => {
  const [wanted, given] = [pattern.split("/"), id.split("/")];
  if (wanted.at(-1) !== "*") return pattern === id;
  const folder = wanted.slice(0, -1);
  return given.length > folder.length && folder.every((segment, index) => segment === given[index]);
};

const namesOf = (target: TargetFile): string[] =>
  "issuer" in target ? [target.issuer, ...target.aliases] : target.names;

/** What this target issues to this caller if that was requested; an ID-JAG with its client and its resources. */
function productAt(target: TargetFile, { mode, clientId, requestedType, resources = [] }: Question) {
  if (!("issuer" in target)) {
    return requestedType !== "id-jag" && resources.length === 0 ? "token" : undefined;
  }
  if (mode === "client_credentials" || mode === "redemption" || requestedType === "access_token")
    return undefined;
  const there = target.clients[clientId] ?? (clientId.startsWith("https://") ? clientId : undefined);
  if (requestedType !== "id-jag") return resources.length === 0 ? ["jwt", there].join(" ") : undefined;
  const known = resources.every((one) => target.resources.includes(one));
  return known && there !== undefined ? `id-jag ${[there, ...resources].join(" ")}` : undefined;
}

/** The grant, or undefined if the request is denied. */
function oracle(rules: RuleFile[], targets: TargetFile[], asked: Question): Grant | undefined {
  const { mode, clientId, workload, registrationClass = "", subject, nowSeconds, job } = asked;
  const bounds: Partial<JobFile["bounds"]> = job?.bounds ?? {};
  if (bounds.agents?.includes(workload ?? clientId) === false) return undefined;
  const inJob = (rule: RuleFile, target: TargetFile): boolean => {
    if (job === undefined) return true;
    if (bounds.targets?.some((name) => namesOf(target).includes(name)) === false) return false;
    return !("issuer" in target) || target.jobs === "honours" || rule.acknowledgeJob !== undefined;
  };
  const acting = mode === "delegation" ? [workload] : [clientId, workload];
  const ownedNames = targets
    .flatMap((target) => ("owners" in target ? [target] : []))
    .filter(({ owners }) => owners.some((owner) => workload !== undefined && fits(owner, workload)))
    .flatMap(({ names }) => names);
  const ownNames = [us, clientId, ...(workload === undefined ? [] : [workload]), ...ownedNames];
  const isAudience =
    mode === "redemption" || (subject?.audiences.some((audience) => ownNames.includes(audience)) ?? false);

  if (mode === "delegation" && workload === undefined) return undefined;
  if (subject !== undefined) {
    const { mayAct } = subject;
    if (mayAct !== undefined) {
      if (!acting.includes(mayAct.sub)) return undefined;
      // Without iss it is a party of the token's issuer, unless the name is globally unique.
      if (!mayAct.sub.includes("://") && (mayAct.iss ?? subject.issuer) !== us) return undefined;
      if (mayAct.iss !== undefined && mayAct.iss !== us) return undefined;
    }
    if (subject.origin.iss === us && acting.includes(subject.origin.sub)) return undefined;
    if (subject.chain.length > 0 && !isAudience) return undefined;
  }

  const names = ({ clients = [], classes = [], actors = [] }: RuleFile): boolean => {
    const acts = workload !== undefined && actors.some((one) => fits(one, workload));
    if (clients.length + classes.length === 0) return acts;
    const named = clients.some((one) => fits(one, clientId)) || classes.includes(registrationClass);
    return named && (actors.length === 0 || acts);
  };
  const matches = (rule: RuleFile): boolean => {
    if (rule.allow !== mode || !names(rule)) return false;
    if (rule.jobs === (job === undefined ? "required" : "never")) return false;
    if (rule.allow === "client_credentials") return true;
    if (subject === undefined) return false;
    if (!rule.subjects?.issuers.includes(subject.origin.iss)) return false;
    if (rule.subjects.subs && !rule.subjects.subs.includes(subject.origin.sub)) return false;
    if (rule.consent === "may_act" && subject.mayAct === undefined) return false;
    const deepest = Math.min(rule.maxChainDepth ?? 8, bounds.maxDepth ?? 8);
    if (rule.allow === "redemption") return subject.chain.length <= deepest;
    if (rule.allow === "impersonation" && bounds.maxDepth !== undefined && subject.chain.length > 0)
      return false;
    const { audiences = [], scopes = [] } = rule.subjectToken ?? {};
    const accepted = audiences.flatMap((one) => (one === "self" ? ownedNames : [one]));
    const byAudience = isAudience && subject.audiences.some((one) => accepted.includes(one));
    if (!byAudience && !subject.scopes.some((one) => scopes.includes(one))) return false;
    const { idJagSubjects = ["id_token"] } = rule;
    if (asked.requestedType === "id-jag" && !idJagSubjects.includes(subject.tokenType)) return false;
    if (asked.requestedType === "id-jag" && !isAudience) return false;
    return rule.allow !== "delegation" || subject.chain.length < deepest;
  };
  const matching = rules.filter(matches);
  const called = (name: string) => targets.find((target) => namesOf(target).includes(name));

  let audience = asked.target;
  if (audience === undefined) {
    if (mode !== "client_credentials" && mode !== "redemption") return undefined;
    const within = targets.filter((target) =>
      matching.some(
        (rule) => rule.targets.some((one) => namesOf(target).includes(one)) && inJob(rule, target),
      ),
    );
    const wanted = asked.scope ?? subject?.scopes;
    const implied = within.filter(
      ({ scopes }) => wanted === undefined || wanted.some((one) => scopes.includes(one)),
    );
    if (implied.length !== 1) return undefined;
    audience = implied.flatMap(namesOf)[0] ?? "";
  }
  const target = called(audience);
  if (target === undefined) return undefined;
  if ("issuer" in target) audience = target.issuer;
  const product = productAt(target, asked);
  if (product === undefined) return undefined;

  const grants: Grant[] = [];
  for (const rule of matching) {
    if (!rule.targets.some((name) => called(name) === target) || !inJob(rule, target)) continue;
    const ends = mode === "redemption" ? undefined : subject?.expiresAtSeconds;
    const exp = Math.min(
      nowSeconds + rule.lifetimeSeconds,
      ends ?? Number.MAX_SAFE_INTEGER,
      bounds.notAfterSeconds ?? Number.MAX_SAFE_INTEGER,
    );
    if (exp < nowSeconds + 5) continue;
    const registered = asked.clientScopes === undefined ? [] : [asked.clientScopes];
    const sides = [
      rule.scopes,
      target.scopes,
      ...registered,
      ...(bounds.scopes ? [bounds.scopes] : []),
      ...(subject ? [subject.scopes] : []),
    ];
    const left = (consent: string[][]): string[] =>
      [...new Set([...sides, ...consent].flat())].filter((one) =>
        [...sides, ...consent, asked.scope ?? [one]].every((side) => side.includes(one)),
      );
    const common = { rule: rule.id, product, audience, exp };
    if (rule.consent !== "record") {
      grants.push({ ...common, scope: left([]) });
      continue;
    }
    for (const consent of asked.consents) {
      const { origin, actor, expiresAtSeconds = Number.MAX_SAFE_INTEGER } = consent;
      if (origin.iss !== subject?.origin.iss || origin.sub !== subject.origin.sub) continue;
      if (actor !== (workload ?? clientId) || expiresAtSeconds < nowSeconds + 5) continue;
      const isOfJob = consent.jobId === job?.id && consent.jobIssuer === job?.iss;
      if (consent.jobId !== undefined && !isOfJob) continue;
      if (!consent.targets.some((name) => called(name) === target)) continue;
      grants.push({
        ...common,
        exp: Math.min(exp, expiresAtSeconds),
        scope: left([consent.scopes]),
        consent: consent.id,
      });
    }
  }
  const order = (grant: Grant): string => `${grant.rule} ${grant.consent}`;
  return grants
    .filter(({ scope }) => scope.length > 0)
    .sort((a, b) => b.scope.length - a.scope.length || (order(a) < order(b) ? -1 : 1))[0];
}

// --- random policies and requests ---------------------------------------------------------------------------------

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
const classNames = ["k1", "k2"];
const servers: Server[] = [
  { names: ["t1", "https://t1"], owners: ["spiffe://td/agents/a"], scopes: ["s1", "s2", "s3"] },
  { names: ["t2"], owners: ["spiffe://td/crew/*"], scopes: ["s2", "s3"] },
  { names: ["t3"], owners: [], scopes: ["s4"] },
];
const partners: PartnerFile[] = [
  {
    kind: "partner",
    issuer: "https://p1",
    aliases: ["p1"],
    jobs: "honours",
    scopes: ["s1", "s2", "s4"],
    resources: ["urn:1", "urn:2"],
    clients: {
      "spiffe://td/agents/a": "a",
      "spiffe://td/crew/c": "c",
      c1: "c1-there",
      "https://d.example/a": "d",
    },
  },
  {
    kind: "partner",
    issuer: "https://p2",
    aliases: [],
    scopes: ["s2", "s3"],
    resources: ["urn:2"],
    clients: {},
  },
];
const targetFiles: TargetFile[] = [...servers, ...partners];
const serverNames = servers.flatMap(namesOf);
const partnerNames = partners.flatMap(namesOf);
const targetNames = [...serverNames, ...partnerNames];
const SERVER_TYPES = ["access_token"] as const;
const PARTNER_TYPES = ["jwt", "id-jag", "id-jag"] as const;
const modes = [
  "delegation",
  "delegation",
  "impersonation",
  "impersonation",
  "client_credentials",
  "redemption",
] as const;
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
  /** Each element with the same probability, at least one. */
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
    const allow = random.pick(modes);
    const exchanges = allow === "delegation" || allow === "impersonation";
    const grants = exchanges && chance(60);
    const by = allow === "delegation" ? 0 : random.below(5);
    const consent = random.pick(["record", "may_act", "implied", "implied", "implied"] as const);
    const permitted = {
      ...maybe(80, "audiences", () => some([us, "self", "t1", "t2", "c1"], 70)),
      ...maybe(30, "scopes", () => some(scopeNames, 25)),
    };
    return {
      id,
      allow,
      ...(by < 2 && { actors: some(patterns, 55) }),
      ...((by === 1 || by === 2 || by === 4) && { clients: some(clientNames, 60) }),
      ...(by > 2 && { classes: some(classNames) }),
      ...(allow !== "client_credentials" && {
        subjects: { issuers: some([idp, us], 75), ...maybe(20, "subs", () => some(["u1", "u2"])) },
        consent,
        ...(consent === "implied" && { acknowledge: "subjects-not-asked" }),
      }),
      ...(exchanges && {
        subjectToken: Object.keys(permitted).length > 0 ? permitted : { audiences: ["self"] },
        ...maybe(50, "issues", () => "access_token" as const),
      }),
      ...(grants && {
        issues: "grant",
        ...maybe(60, "idJagSubjects", () => some(["id_token", "jwt", "access_token"], 70)),
      }),
      ...((allow === "delegation" || allow === "redemption") &&
        maybe(40, "maxChainDepth", () => 1 + random.below(4))),
      targets: some(grants ? partnerNames : serverNames, 60),
      scopes: some(scopeNames, 60),
      lifetimeSeconds: random.pick([5, 60, 300]),
    };
  };
  const makeToken = (mode: Question["mode"], acting: readonly string[]): Token => ({
    tokenType: mode === "redemption" ? "grant" : random.pick(["access_token", "jwt", "id_token"]),
    origin: chance(75) ? { iss: idp, sub: "u1" } : random.pick(origins),
    audiences: some([us, "t1", "t2", "t3", "c1", "x", ...workloads], 35),
    scopes: chance(5) ? [] : some(scopeNames, 70),
    expiresAtSeconds: now + random.pick([-10, 4, 5, 40, 100, 200, 1000, 1000]),
    chain: Array.from({ length: chance(70) ? 0 : random.below(4) }, () => ({
      iss: random.pick([us, idp]),
      sub: random.pick(workloads),
    })),
    ...maybe(20, "mayAct", () => ({
      sub: random.pick([...workloads, "c1", ...acting, ...acting, ...acting, ...acting]),
      ...maybe(30, "iss", () => random.pick([us, us, idp])),
    })),
    issuer: random.pick([us, idp]),
  });
  const makeAsk = (): Question => {
    const mode = random.pick(modes);
    const exchanges = mode === "delegation" || mode === "impersonation";
    const workload = chance(85) ? random.pick(workloads) : undefined;
    const clientId = workload !== undefined && chance(50) ? workload : random.pick(clientIds);
    const subject =
      mode === "client_credentials" || chance(3) ? undefined : makeToken(mode, [workload ?? clientId]);
    const makeConsent = (id: string): ConsentFile => ({
      id,
      version: 1,
      origin: subject !== undefined && chance(80) ? subject.origin : random.pick(origins),
      actor: chance(80) ? (workload ?? clientId) : random.pick(workloads),
      targets: some(targetNames),
      scopes: some(scopeNames, 70),
      ...maybe(30, "expiresAtSeconds", () => now + random.pick([-1, 0, 4, 5, 40, 500])),
    });
    const target = chance(exchanges ? 97 : 50)
      ? random.pick([...(exchanges ? partnerNames : serverNames), ...targetNames, "t4"])
      : undefined;
    // Mostly a token type that such a target has.
    const atPartner = target !== undefined && partnerNames.includes(target) !== chance(10);
    const requestedType = random.pick([undefined, ...(atPartner ? PARTNER_TYPES : SERVER_TYPES)]);
    return {
      mode,
      clientId,
      ...(workload !== undefined && { workload }),
      ...maybe(40, "registrationClass", () => random.pick(classNames)),
      ...maybe(20, "clientScopes", () => some(scopeNames, 70)),
      ...(subject !== undefined && { subject }),
      ...(target !== undefined && { target }),
      ...(exchanges && requestedType !== undefined && { requestedType }),
      ...(exchanges &&
        maybe(requestedType === "id-jag" ? 30 : 3, "resources", () => some(["urn:1", "urn:2"]))),
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
  return { random, some, maybe, makeRule, makeAsk, shuffle };
}

const parseRule = (rule: RuleFile): Rule => v.parse(Rule, rule);

function compile(rules: readonly Rule[], targets: readonly v.InferOutput<typeof Target>[]) {
  const set = compilePolicy(rules, targets, us, "sha256:00");
  if (!set.ok) assert.fail(JSON.stringify(set));
  return set.value;
}

const { random, makeRule, makeAsk, shuffle } = generator(2606);
const targets = targetFiles.map((target) => v.parse(Target, target));
const samples = Array.from({ length: rounds(240) }, () => {
  const files = Array.from({ length: 8 + random.below(13) }, (_, index) => makeRule(`r${index + 10}`));
  const rules = files.map(parseRule);
  const policy = compile(rules, targets);
  const asks = Array.from({ length: 5 }, makeAsk);
  return {
    files,
    rules,
    policy,
    asks,
    decided: asks.map((access) => decide(policy, access as AccessRequest)),
  };
});

type Sample = (typeof samples)[number];

/** Makes one check of every sample and runs it for each of its requests and decisions; a failure prints the input. */
function each(checkOf: (sample: Sample) => (access: Question, got: Sample["decided"][number]) => void): void {
  for (const sample of samples) {
    const check = checkOf(sample);
    sample.decided.forEach((got, index) => {
      const access = sample.asks[index] ?? assert.fail();
      try {
        check(access, got);
      } catch (cause) {
        throw new Error(JSON.stringify({ rules: sample.files, access }, null, 1), { cause });
      }
    });
  }
}

test("PROD-1.5-1, PROD-1.5-2, PROD-2.6-10 a decision is that of the oracle: rule, scope, audience and expiry", () => {
  const seen: { [what: string]: number } = {};
  each(({ files }) => (access, got) => {
    const want = oracle(files, targetFiles, access);
    const what = `${access.mode} ${want?.product.split(" ")[0] ?? "no"}`;
    seen[what] = (seen[what] ?? 0) + 1;
    const found: Grant | undefined = got.ok
      ? {
          rule: got.value.rule.id,
          product: describeProduct(got.value.product),
          scope: got.value.scope.toSorted(),
          audience: got.value.audience,
          exp: got.value.expiresAtSeconds,
          ...(got.value.consent && { consent: got.value.consent.id }),
        }
      : undefined;
    assert.deepEqual(found, want && { ...want, scope: want.scope.toSorted() });
  });
  // Every mode with each of its products and with refusals.
  assert.equal(Object.keys(seen).length, 4 + 2 + 3 + 3, JSON.stringify(seen));
  for (const [what, times] of Object.entries(seen)) assert.ok(times > 2, `${what}: ${times}`);
});

function describeProduct(product: Product): string {
  if (product.kind === "access_token") return "token";
  if (product.kind === "txn_token") return product.kind;
  return [product.profile, product.clientIdThere, ...product.resources].join(" ");
}

// --- the smallest change of a refusal -----------------------------------------------------------------------------

type Files = { rules: RuleFile[]; targets: TargetFile[]; access: Question };
type Members = Record<string, unknown>;

/** The change as its words say, by none of the code under test. */
function changed({ rules, targets, access }: Files, { at, of, path, adds, is }: ChangePart): Files {
  const put = (object: unknown, [name = "", ...rest]: readonly string[]): Members => {
    const { [name]: old, ...others } = object as Members;
    if (rest.length > 0) return { ...others, [name]: put(old ?? {}, rest) };
    if (adds !== undefined) return { ...others, [name]: [...((old as string[] | undefined) ?? []), adds] };
    return is === null ? others : { ...others, [name]: is };
  };
  const { subject } = access;
  switch (at) {
    case "rule":
      return {
        rules: rules.map((one) => (one.id === of ? (put(one, path) as RuleFile) : one)),
        targets,
        access,
      };
    case "target": {
      // As it is written: an agreement is no member of its own there.
      const own = path[0] === "partner" ? path.slice(1) : path;
      const changedTargets = targets.map((one) =>
        namesOf(one)[0] === of ? (put(one, own) as TargetFile) : one,
      );
      return { rules, targets: changedTargets, access };
    }
    case "subject_token":
      return { rules, targets, access: { ...access, subject: put(subject, path) as Token } };
    case "consent": {
      const given = {
        ...{ id: "new", version: 1, origin: subject?.origin ?? assert.fail(), targets: [of ?? ""] },
        ...{ actor: access.workload ?? access.clientId, scopes: (adds ?? "").split(" ") },
      };
      return { rules, targets, access: { ...access, consents: [...access.consents, given] } };
    }
    default:
      return { rules, targets, access: put(access, path) as Question };
  }
}

test("CHANGE-D-1 the smallest change flips each of many random refusals, and no part of it can be left away", () => {
  const kinds = new Set<string>();
  let flipped = 0;
  each(({ files, policy }) => (access, got) => {
    if (got.ok || flipped === rounds(300)) return;
    const asked = { ...access, sub: access.subject?.origin.sub ?? access.clientId } as AskedRequest;
    const found = smallestChange(policy, asked);
    if (found === undefined) {
      // Nothing helps a caller that is the subject, or where no rule of the mode issues what the target takes.
      const { subject, clientId, workload = "", target = "t4", mode } = access;
      const isSubject = subject?.origin.iss === us && [clientId, workload].includes(subject.origin.sub);
      const isKnown = targetNames.includes(target);
      const fits = ({ allow, issues }: RuleFile): boolean =>
        allow === mode && (!isKnown || (issues === "grant") === partnerNames.includes(target));
      const lacksSubject = mode !== "client_credentials" && subject === undefined;
      assert.ok(isSubject || lacksSubject || !files.some(fits), JSON.stringify(got));
      return;
    }
    const { changes } = found;
    const allowedBy = (parts: readonly ChangePart[]) => {
      const all = parts.reduce<Files>(changed, { rules: files, targets: targetFiles, access });
      return oracle(all.rules, all.targets, all.access) !== undefined;
    };
    assert.ok(changes.length > 0 && allowedBy(changes), JSON.stringify(found));
    for (const part of changes) {
      const rest = changes.filter((one) => one !== part);
      assert.ok(!allowedBy(rest), JSON.stringify({ found, part }));
      kinds.add(part.at);
    }
    flipped++;
  });
  assert.equal(flipped, rounds(300));
  assert.deepEqual([...kinds].sort(), ["client", "consent", "request", "rule", "subject_token", "target"]);
});

// --- in jobs ------------------------------------------------------------------------------------------------------

const ofJobs = generator(3631);
/** Its jobs may have the ids of ours. */
const PARTNER_OF_JOBS = "https://partner.example";

const makeJob = (): JobFile => {
  const { some, maybe } = ofJobs;
  return {
    id: ofJobs.random.pick(["j1", "j2"]),
    ...maybe(40, "iss", () => PARTNER_OF_JOBS),
    bounds: {
      notAfterSeconds: now + ofJobs.random.pick([4, 5, 30, 100, 1000]),
      ...maybe(40, "targets", () => some(targetNames, 70)),
      ...maybe(40, "scopes", () => some(scopeNames, 70)),
      ...maybe(30, "agents", () => some([...workloads, ...clientIds], 70)),
      ...maybe(40, "maxDepth", () => 1 + ofJobs.random.below(4)),
    },
  };
};

/** The same policies with rules for jobs alone and for none, and the same requests in two jobs, and in none. */
const inJobs = samples.flatMap(({ files, asks }) => {
  const { maybe, random: chooses } = ofJobs;
  const withJobs = files.map((file) => ({
    ...file,
    ...maybe(25, "jobs", () => chooses.pick(["optional", "required", "never"] as const)),
    ...(file.issues === "grant" && maybe(50, "acknowledgeJob", () => "job-ends-here" as const)),
  }));
  const policy = compile(withJobs.map(parseRule), targets);
  return asks.flatMap((ask) => {
    const consents = ask.consents.map((one) => ({
      ...one,
      ...maybe(40, "jobId", () => chooses.pick(["j1", "j2"])),
      ...maybe(40, "jobIssuer", () => PARTNER_OF_JOBS),
    }));
    const requests: Question[] = [{ ...ask, consents }];
    for (let each = 0; each < 2; each++) requests.push({ ...ask, consents, job: makeJob() });
    return requests.map((request) => ({
      files: withJobs,
      request,
      got: decide(policy, request as AccessRequest),
    }));
  });
});

test("JOB-D-6, JOB-D-7, JOB-D-10 a decision in a job is that of the oracle", () => {
  let allowed = 0;
  for (const { files, request, got } of inJobs) {
    const want = oracle(files, targetFiles, request);
    const found = got.ok && {
      rule: got.value.rule.id,
      scope: got.value.scope.toSorted(),
      exp: got.value.expiresAtSeconds,
    };
    const wanted = want !== undefined && { rule: want.rule, scope: want.scope.toSorted(), exp: want.exp };
    assert.deepEqual(found, wanted, JSON.stringify({ files, request }));
    if (got.ok && request.job !== undefined) allowed++;
  }
  assert.ok(inJobs.length > rounds(3_000) && allowed > rounds(80), `${inJobs.length} ${allowed}`);
});

test("JOB-D-10 of many random jobs, none gives anything beyond its bounds, or more than without it", () => {
  let narrowed = 0;
  for (const [index, { request, got }] of inJobs.entries()) {
    const { job, workload, clientId, subject } = request;
    if (job === undefined || !got.ok) continue;
    const { bounds } = job;
    const { scope, target, expiresAtSeconds, rule } = got.value;
    assert.ok(expiresAtSeconds <= bounds.notAfterSeconds);
    assert.ok(scope.every((one) => bounds.scopes?.includes(one) ?? true));
    assert.ok(bounds.targets?.some((name) => target.names.includes(name)) ?? true);
    assert.ok(bounds.agents?.includes(workload ?? clientId) ?? true);
    const hops = (subject?.chain.length ?? 0) + (request.mode === "delegation" ? 1 : 0);
    assert.ok(hops <= (bounds.maxDepth ?? 8));
    // A rule for jobs alone, and a consent for one, give nothing without it.
    const isOfJob = rule.jobs === "required" || request.consents.some(({ jobId }) => jobId !== undefined);
    const without = inJobs[index - (index % 3)]?.got ?? assert.fail();
    if (isOfJob || request.target === undefined) continue;
    assert.ok(without.ok);
    assert.ok(without.value.scope.length >= scope.length);
    if (without.value.rule.id === rule.id) {
      assert.ok(scope.every((one) => without.value.scope.includes(one)));
      assert.ok(without.value.expiresAtSeconds >= expiresAtSeconds);
    }
    narrowed++;
  }
  assert.ok(narrowed > rounds(30), `${narrowed}`);
});

test("PROD-1.7-3, RFC8693-2.1-14 access tokens are issued only for resource servers, grants only for partners, and of those the requested type", () => {
  each(() => (access, got) => {
    if (!got.ok) return;
    const { rule, target, product, audience } = got.value;
    const grants = partnerNames.includes(target.names[0] ?? "");
    assert.equal(product.kind, grants ? "grant" : "access_token");
    assert.equal("issues" in rule && rule.issues === "grant", grants);
    assert.equal(audience, grants ? target.names[0] : (access.target ?? target.names[0]));
    const issued = product.kind === "grant" ? product.profile : product.kind;
    assert.equal(issued, grants ? (access.requestedType ?? "jwt") : "access_token");
  });
});

test("PROD-2.6-6, PROD-8.2-1 every granted scope is in request, registration, subject token, rule, target and consent", () => {
  each(() => (access, got) => {
    if (!got.ok) return;
    const { rule, target, scope, consent } = got.value;
    const consented = access.consents.find(({ id }) => id === consent?.id)?.scopes;
    assert.ok(scope.length > 0);
    assert.equal(new Set(scope).size, scope.length);
    for (const one of scope) {
      const own = [access.scope, access.clientScopes, access.subject?.scopes, consented];
      for (const side of [rule.scopes, target.scopes, ...own]) assert.ok(side?.includes(one) ?? true);
    }
    assert.equal("consent" in rule && rule.consent === "record", consented !== undefined);
  });
});

test("PROD-8.4-1 a token lives at least 5 s and never longer than its rule and its subject token allow", () => {
  each(() => (access, got) => {
    if (!got.ok) return;
    const { expiresAtSeconds, rule } = got.value;
    // RFC7521-4.1-5: the lifetime of the grant does not limit the token that it is redeemed for.
    const ends = access.mode === "redemption" ? undefined : access.subject?.expiresAtSeconds;
    assert.ok(expiresAtSeconds <= (ends ?? expiresAtSeconds));
    assert.ok(expiresAtSeconds <= now + rule.lifetimeSeconds);
    assert.ok(expiresAtSeconds >= now + 5);
  });
});

test("PROD-2.6-10 the decision and its trace do not depend on the order of rules, targets and consents", () => {
  each(({ rules }) => {
    const shuffled = compile(shuffle(rules), shuffle(targets));
    return (access, got) => {
      assert.deepEqual(
        decide(shuffled, { ...access, consents: shuffle(access.consents) } as AccessRequest),
        got,
      );
    };
  });
});

test("PROD-2.6-7 an additional rule never takes away a permission", () => {
  each(({ rules }) => {
    const more = compile([...rules, parseRule(makeRule("r99"))], targets);
    return (access, before) => {
      // Without a target an additional rule may make the choice of the target ambiguous.
      if (access.target === undefined) return;
      const after = decide(more, access as AccessRequest);
      if (before.ok) assert.ok(after.ok && after.value.scope.length >= before.value.scope.length);
    };
  });
});

test("RFC8693-4.1-7 the decision does not depend on the earlier actors", () => {
  each(({ policy }) => (access, got) => {
    if (access.subject === undefined) return;
    const chain = access.subject.chain.map(() => ({ iss: "https://x.example", sub: "x" }));
    assert.deepEqual(
      decide(policy, { ...access, subject: { ...access.subject, chain } } as AccessRequest),
      got,
    );
  });
});

/**
 * The exchange policy (clauses PROD-2.6) as data: the format of rules and targets (PROD-2.6-7), and the index that
 * finds the few rules that name a caller. A rule only allows; there are no denying rules.
 */
import * as v from "valibot";
import { ACT_HOPS_MAX } from "../limits/tokens.ts";
import { type Brought, MODE_NAMES, MODES, type Mode, type ModeWith } from "../modes.ts";
import { defined, err, ok, type Result } from "../result.ts";
import { flag, maybe, setting } from "../setting.ts";
import { matchesPattern, prefixesOver } from "../spec/spiffe/id.ts";
import type { DomainRules } from "../spec/transaction-tokens.ts";
import { compileClaims, type WantedClaims } from "./claims.ts";
import { compileTypes } from "./detail-types.ts";
import type { DetailTypes } from "./details.ts";
import { type KnownNames, knownNames, meant } from "./nearest.ts";
import { misfitOf } from "./products.ts";
import {
  accessToken,
  acknowledgeText,
  actorsText,
  allow,
  asAccessToken,
  asGrant,
  common,
  consentText,
  delegation,
  forWhom,
  impersonation,
  lapses,
  maxChainDepth,
  transaction,
  who,
} from "./rule-members.ts";
import {
  names,
  type Partner,
  PartnerServer,
  ResourceServer,
  readPartner,
  withSharedTitles,
} from "./targets.ts";
import { readDomain, TransactionDomain } from "./transaction-domains.ts";

// --- rules and targets as written -------------------------------------------------------------------------------

/** One rule; a field that its mode does not use is an error. */
const Variant = v.variant("allow", [
  v.strictObject({ allow: allow("client_credentials"), ...who, ...common, ...accessToken }),
  v.variant("issues", [
    v.strictObject({ ...delegation, ...asAccessToken }),
    v.strictObject({ ...delegation, ...asGrant }),
    v.strictObject({ ...impersonation, ...asAccessToken }),
    v.strictObject({ ...impersonation, ...asGrant }),
  ]),
  v.strictObject(transaction),
  // A redemption has no `subjectToken`, because a grant names this server and its client itself.
  v.strictObject({
    allow: allow("redemption"),
    ...who,
    ...common,
    ...forWhom,
    ...accessToken,
    maxChainDepth,
    lapses,
  }),
  // The user signs in and is asked on our own page, so the consent is always the one on record.
  v.strictObject({
    allow: allow("authorization_code"),
    clients: who.clients,
    classes: who.classes,
    /** A client of people is no actor before it exchanges what it got, so there is none to name. */
    actors: maybe(v.never(), actorsText),
    ...common,
    subjects: forWhom.subjects,
    consent: setting(v.optional(v.literal("record"), "record"), consentText),
    acknowledge: maybe(v.never(), acknowledgeText),
    /** REFRESH-D-1: the rule says whether clients may go on without the user. */
    refresh: flag("Whether the clients may get refresh tokens of their users"),
    /** OIDC-D-7: this setting and the next one are demands on the user's sign-in. */
    acr: maybe(names, "The authentication context classes of which the sign-in of the user must have one."),
    signInSecondsMax: maybe(
      v.pipe(v.number(), v.integer(), v.minValue(1)),
      "How many seconds ago the user may have signed in, at most; with refresh tokens, also at each refresh.",
    ),
    /** MCPC-D-20: the rule may require that the client pushes its request. */
    pushed: flag("Whether the client has to push its authorization request (RFC 9126)"),
    ...accessToken,
  }),
]);
export type Rule = v.InferOutput<typeof Variant>;

export const Rule = v.pipe(
  Variant,
  v.check(
    (rule) => (rule.actors ?? clientsOf(rule) ?? classesOf(rule)) !== undefined,
    "names neither actors, clients nor classes",
  ),
  // PROD-2.6-8: implied consent is the operator's responsibility, which the rule has to acknowledge.
  v.check(
    (rule) => !hasSubject(rule) || (rule.consent === "implied") === (rule.acknowledge !== undefined),
    'consent "implied" requires "acknowledge": "subjects-not-asked", which no other consent may have',
  ),
  // PROD-2.6-4: what a user gives on our page is a consent on record, and helps no other rule.
  v.check(
    (rule) => !asksUser(rule) || consentOf(rule) === "record",
    '"askUser" requires consent "record", because no other consent is given on our page',
  ),
);

type RuleOf<M extends Rule["allow"]> = Extract<Rule, { allow: M }>;
/** The rules for requests that bring this kind of evidence. */
type RuleFor<B extends Brought> = RuleOf<ModeWith<{ brings: B }>>;

export type SubjectRule = RuleFor<"subject_token" | "grant" | "code">;
export type ExchangeRule = RuleFor<"subject_token">;
export type CodeRule = RuleFor<"code">;

export const isFor = <B extends Brought>(rule: Rule, brought: B): rule is RuleFor<B> =>
  MODES[rule.allow].brings === brought;

export const hasSubject = (rule: Rule): rule is SubjectRule => !isFor(rule, "nothing");

/** PROD-2.6-4: how its subjects consent. */
export const consentOf = (rule: Rule): SubjectRule["consent"] | undefined =>
  hasSubject(rule) ? rule.consent : undefined;

/** Whether the rule lets its clients go on with refresh tokens. */
export const allowsRefresh = (rule: Rule): boolean => "refresh" in rule && rule.refresh;

/** Whether the rule gives its callers a link, at which users are asked for the consent that it requires. */
export const asksUser = (rule: Rule): boolean => "askUser" in rule && rule.askUser === true;

/** The clients and classes that a rule names; a delegation names actors only, because its token shows the actor. */
export const clientsOf = (rule: Rule): readonly string[] | undefined =>
  "clients" in rule ? rule.clients : undefined;
export const classesOf = (rule: Rule): readonly string[] | undefined =>
  "classes" in rule ? rule.classes : undefined;

/** JOB-D-16: whether the rule lets grants of jobs leave for partners that do not end what they give for a job. */
export const endsJobHere = (rule: Rule): boolean =>
  "acknowledgeJob" in rule && rule.acknowledgeJob !== undefined;

/** The most hops that the chain of an issued token may have. */
export const hopsMaxOf = (rule: Rule): number =>
  ("maxChainDepth" in rule ? rule.maxChainDepth : undefined) ?? ACT_HOPS_MAX;

/** IDJAG-4.3-3: only ID tokens count, unless the rule names other kinds (PROD-4.1-27). */
export const idJagSubjectsOf = (rule: ExchangeRule): readonly string[] =>
  (rule.issues === "grant" ? rule.idJagSubjects : undefined) ?? ["id_token"];

export const Target = v.variant(
  "kind",
  [ResourceServer, PartnerServer, TransactionDomain],
  'is neither "resource", "partner" nor "transaction"',
);
export type TargetFile = v.InferOutput<typeof Target>;
/**
 * A target in force; `partner` is present for an authorization server of another domain, and `transaction` for a trust
 * domain inside which transaction tokens are used.
 */
export type Target = Omit<v.InferOutput<typeof ResourceServer>, "details" | "chain"> & {
  chain: "all" | "current" | "none";
  partner?: Partner;
  transaction?: DomainRules;
  /** The types of details that it declares. */
  details: DetailTypes;
  /** PAGE-D-47: another target has a title of the same words, so that its name has to stand beside it. */
  sharesTitle?: true;
};

// --- the set in force -------------------------------------------------------------------------------------------

export type PolicySet = {
  /** The digest is recorded in every audit event, to identify the rules and targets in force (AUDIT-D-4). */
  digest: string;
  issuer: string;
  /** The rules, by id. */
  rules: ReadonlyMap<string, Rule>;
  /** The targets, by each of their names. */
  targets: ReadonlyMap<string, Target>;
  /** The targets of each list of several names in a rule, each once: many rules have one list. */
  listed: ReadonlyMap<readonly string[], readonly Target[]>;
  /** The types of details of all targets. */
  details: DetailTypes;
  /** The rules, by mode and named caller, so that a look-up does not slow down with more rules. */
  byWho: ReadonlyMap<string, RulesOf>;
  /** The names of all targets, and the scopes of all, for what a refused request names. */
  known: { target: KnownNames; scope: KnownNames };
  /** PCL-D-7: what rules demand of the claims of subjects, by issuer. */
  claims: ReadonlyMap<string, WantedClaims>;
  /** Rules and targets in the order of the file, of which the digest is (REPL-D-2). */
  written: { policies: readonly Rule[]; targets: readonly TargetFile[] };
};

/** The rules that name one caller, sorted by id. Most callers have a single rule, for which there is nothing to index. */
export type RulesOf = {
  rules: readonly Rule[];
  /** The rules by the first name of each target; absent for a single rule. */
  byTarget?: ReadonlyMap<string, readonly Rule[]>;
  /** One rule of each group that differs in targets and scopes only. */
  kinds: readonly Rule[];
};

/** The value in `subjectToken.audiences` that stands for every target that the actor owns. */
export const SELF = "self";

/** A caller as rules name it. A client, a class and a workload with the same name are different callers. */
type Who = readonly [kind: "actor" | "client" | "class", name: string];

// The key is unambiguous, because only the name, which comes last, may hold a space.
const whoKey = (mode: Mode, [kind, name]: Who): string => `${mode} ${kind} ${name}`;

/** Builds the index of rules and targets, or returns every problem of the set as a text that begins with its path. */
export function compilePolicy(
  rules: readonly Rule[],
  targets: readonly TargetFile[],
  issuer: string,
  digest: string,
): Result<PolicySet, readonly string[]> {
  const problems: string[] = [];
  const byName = new Map<string, Target>();
  const types = compileTypes(targets);
  problems.push(...types.problems);
  const alike = withSharedTitles(targets);
  for (const file of targets) {
    const { details = {}, ...rest } = file;
    const target = defined<Target>({
      ...rest,
      partner: "partner" in file ? readPartner(file.partner) : undefined,
      transaction: "transaction" in file ? readDomain(file.transaction) : undefined,
      details: new Map([...types.all].filter(([type]) => Object.hasOwn(details, type))),
      sharesTitle: alike.has(file) ? true : undefined,
    });
    for (const name of target.names) {
      // RFC8693-2.1-11, RFC9068-5-2: a name identifies one target.
      if (byName.has(name)) problems.push(`targets: the name "${name}" is given twice`);
      if (name === issuer || name === SELF) problems.push(`targets: the name "${name}" is reserved`);
      byName.set(name, target);
    }
  }
  const byRuleId = new Map<string, Rule>();
  const byWho = new Map<string, Rule[]>();
  const listed = new Map<readonly string[], readonly Target[]>();
  // PROD-2.6-10: sorted by id, so that neither the decision nor its trace depends on the order in the file.
  for (const rule of rules.toSorted(byId)) {
    if (byRuleId.has(rule.id)) problems.push(`policies: the rule id "${rule.id}" is given twice`);
    byRuleId.set(rule.id, rule);
    for (const name of rule.targets) {
      if (byName.has(name)) continue;
      problems.push(
        `policies: rule "${rule.id}" names the unknown target "${name}"${meant(name, byName.keys())}`,
      );
    }
    const targetsOfRule = targetsOf({ targets: byName, listed }, rule);
    if (rule.targets.length > 1) listed.set(rule.targets, targetsOfRule);
    for (const target of targetsOfRule) {
      const misfit = misfitOf(rule, target);
      if (misfit !== undefined) problems.push(`policies: rule "${rule.id}" ${misfit}`);
    }
    for (const who of namedBy(rule)) add(byWho, whoKey(rule.allow, who), rule);
  }
  if (problems.length > 0) return err(problems);
  const indexed = [...byWho].map(
    ([key, list]) => [key, indexRules(list, { targets: byName, listed })] as const,
  );
  return ok({
    digest,
    issuer,
    rules: byRuleId,
    targets: byName,
    listed,
    details: types.all,
    byWho: new Map(indexed),
    claims: compileClaims(rules.filter(hasSubject)),
    known: {
      target: knownNames(byName.keys()),
      scope: knownNames(targets.flatMap(({ scopes }) => scopes)),
    },
    written: { policies: rules, targets },
  });
}

function indexRules(rules: readonly Rule[], policy: Pick<PolicySet, "targets" | "listed">): RulesOf {
  if (rules.length === 1) return { rules, kinds: rules };
  const byTarget = new Map<string, Rule[]>();
  const kinds = new Map<string, Rule>();
  for (const rule of rules) {
    for (const { names } of targetsOf(policy, rule)) add(byTarget, names[0] ?? "", rule);
    kinds.set(JSON.stringify({ ...rule, id: "", targets: [], scopes: [] }), rule);
  }
  return { rules, byTarget, kinds: [...kinds.values()] };
}

/** The callers by which a rule is indexed: its clients and classes, which `actors` then narrows, or else its actors. */
function namedBy(rule: Rule): readonly Who[] {
  const clients = (clientsOf(rule) ?? []).map((name): Who => ["client", name]);
  const classes = (classesOf(rule) ?? []).map((name): Who => ["class", name]);
  const named = [...clients, ...classes];
  return named.length > 0 ? named : (rule.actors ?? []).map((name) => ["actor", name]);
}

function add(index: Map<string, Rule[]>, key: string, rule: Rule): void {
  const rules = index.get(key);
  if (rules === undefined) index.set(key, [rule]);
  // A rule that lists the same name twice is added once.
  else if (rules.at(-1) !== rule) rules.push(rule);
}

/** The caller of a request, by everything that a rule may name. */
export type Caller = { mode: Mode; clientId: string; workload?: string; registrationClass?: string };

/**
 * The rules of the mode that name this caller, exactly or by prefix, sorted by id; with `target`, only those for it.
 */
export function candidates(policy: PolicySet, caller: Caller, target?: Target): readonly Rule[] {
  const [first = [], ...others] = listsFor(policy, caller, target);
  // Each list is sorted already, and most callers have only one.
  return others.length === 0 ? first : [...new Set([first, ...others].flat())].sort(byId);
}

/** Finds the same rules as sorted lists, one for each name of this caller; a rule may be in several of them. */
export function listsFor(policy: PolicySet, caller: Caller, target?: Target): readonly (readonly Rule[])[] {
  return whoAsks(caller).flatMap((who) => {
    const named = policy.byWho.get(whoKey(caller.mode, who));
    const rules = named && (target === undefined ? named.rules : rulesFor(policy, named, target));
    return rules === undefined ? [] : [rules];
  });
}

function rulesFor(
  policy: PolicySet,
  { rules, byTarget }: RulesOf,
  { names: [first = ""] }: Target,
): readonly Rule[] | undefined {
  if (byTarget !== undefined) return byTarget.get(first);
  return rules.every((rule) => targetsOf(policy, rule).some(({ names }) => names[0] === first))
    ? rules
    : undefined;
}

/** Whether any rule of any mode names this caller. */
export function isNamed(policy: PolicySet, caller: Omit<Caller, "mode">): boolean {
  return MODE_NAMES.some((mode) => listsFor(policy, { ...caller, mode }).length > 0);
}

/** One rule of each group that names this caller and differs in targets and scopes only. */
export function kindsFor({ byWho }: PolicySet, caller: Caller): readonly Rule[] {
  return whoAsks(caller).flatMap((who) => byWho.get(whoKey(caller.mode, who))?.kinds ?? []);
}

const byId = (a: Rule, b: Rule): number => (a.id < b.id ? -1 : 1);

/** The names by which rules may name this caller: its own, its class, its origin, and each whole-segment prefix. */
function whoAsks({ clientId, workload, registrationClass }: Caller): readonly Who[] {
  const keys: Who[] = [["client", clientId]];
  if (registrationClass !== undefined) keys.push(["class", registrationClass]);
  // A rule may name the origin of metadata documents for all clients there.
  const origin = /^https:\/\/[^/]+/.exec(clientId)?.[0];
  if (origin !== undefined) keys.push(["client", `${origin}/*`]);
  if (workload !== undefined) {
    keys.push(["actor", workload]);
    for (const prefix of prefixesOver(workload)) keys.push(["actor", prefix]);
  }
  return keys;
}

/**
 * The rules of any mode by which this caller could get something for the subject, whatever it brings; with `target`, only
 * those for it.
 */
export function subjectRules(
  policy: PolicySet,
  { iss, sub }: { iss: string; sub: string },
  caller: Omit<Caller, "mode">,
  target?: Target,
): readonly SubjectRule[] {
  const { workload } = caller;
  return MODE_NAMES.flatMap((mode) => candidates(policy, { ...caller, mode }, target))
    .filter(hasSubject)
    .filter(
      ({ actors, subjects: { issuers, subs } }) =>
        actors?.some((one) => workload !== undefined && matchesPattern(one, workload)) !== false &&
        issuers.includes(iss) &&
        subs?.includes(sub) !== false,
    );
}

/** RAR-D-6: the types of details that the rule lets lapse for targets that do not declare them. */
export const lapsesOf = (rule: Rule): readonly string[] => ("lapses" in rule ? (rule.lapses ?? []) : []);

/** The targets that the rule names, each once. */
export const targetsOf = (
  { targets, listed }: Pick<PolicySet, "targets" | "listed">,
  { targets: names }: Rule,
): readonly Target[] =>
  // Every check of each rule asks for them. A rule of another set is not listed in this one.
  (names.length > 1 ? listed.get(names) : undefined) ?? targetsNamed(targets, names);

function targetsNamed(targets: PolicySet["targets"], names: readonly string[]): readonly Target[] {
  const [first = "", ...others] = names;
  const target = targets.get(first);
  // Most rules name one.
  if (others.length === 0) return target === undefined ? [] : [target];
  return [...new Set(names.flatMap((name) => targets.get(name) ?? []))];
}

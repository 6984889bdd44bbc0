/** Redundant rules of a policy (clauses PROD-2.6): another rule allows everything that the rule allows. */

import { defined } from "../result.ts";
import { matchesPattern } from "../spec/spiffe/id.ts";
import { isUnbound } from "./binding.ts";
import { isWithin } from "./details.ts";
import { replacementsOf } from "./products.ts";
import {
  asksUser,
  type Caller,
  type CodeRule,
  classesOf,
  clientsOf,
  endsJobHere,
  hasSubject,
  hopsMaxOf,
  idJagSubjectsOf,
  isFor,
  lapsesOf,
  listsFor,
  type PolicySet,
  type Rule,
  type SubjectRule,
  targetsOf,
} from "./rules.ts";

/**
 * Finds a rule that makes `rule` redundant. Of two rules that allow the same, the one with the greater id is redundant.
 * `vouched`: a platform vouches for clients, so that there are requests of a workload beside a client (PLAT-D-10).
 */
export function findWiderRule(
  policy: PolicySet,
  rule: Rule,
  bySubject: BySubject,
  vouched: boolean,
): Rule | undefined {
  const [target] = targetsOf(policy, rule);
  const [workload] = rule.actors ?? [];
  const [registrationClass] = classesOf(rule) ?? [];
  // A wider rule also names the first caller and the first subject of this one, exactly or by prefix.
  const caller = defined<Caller>({
    mode: rule.allow,
    clientId: clientsOf(rule)?.[0] ?? "",
    workload,
    registrationClass,
  });
  const lists = [listsFor(policy, caller, target), listsOf(subjectsOf(rule), bySubject)];
  const [fewest = []] = lists.sort((a, b) => lengthOf(a) - lengthOf(b));
  for (const other of fewest.flat()) {
    if (other === rule || !isWider(policy, other, rule, vouched)) continue;
    if (other.id < rule.id || !isWider(policy, rule, other, vouched)) return other;
  }
  return undefined;
}

/**
 * The rules by each subject that they name, or under undefined; this keeps the search fast with ten thousand rules for
 * one actor.
 */
type BySubject = ReadonlyMap<string | undefined, readonly Rule[]>;

const subjectsOf = (rule: Rule): readonly (string | undefined)[] =>
  (hasSubject(rule) ? rule.subjects.subs : undefined) ?? [undefined];

/** The index for findWiderRule. */
export function indexBySubject(rules: readonly Rule[]): BySubject {
  const pairs = rules.flatMap((rule) => subjectsOf(rule).map((sub) => ({ sub, rule })));
  const grouped = Map.groupBy(pairs, ({ sub }) => sub);
  return new Map([...grouped].map(([sub, found]) => [sub, found.map(({ rule }) => rule)]));
}

const listsOf = ([first]: readonly (string | undefined)[], bySubject: BySubject) =>
  [...new Set([first, undefined])].map((sub) => bySubject.get(sub) ?? []);

const lengthOf = (lists: readonly (readonly Rule[])[]): number =>
  lists.reduce((sum, { length }) => sum + length, 0);

/** Whether `wider` allows everything that `rule` allows. */
export function isWider(policy: PolicySet, wider: Rule, rule: Rule, vouched: boolean): boolean {
  const targets = targetsOf(policy, wider);
  const scopes = targetsOf(policy, rule).flatMap((target) =>
    rule.scopes.filter((scope) => target.scopes.includes(scope)),
  );
  return (
    isWiderMode(wider, rule) &&
    (wider.jobs === undefined || wider.jobs === "optional" || wider.jobs === rule.jobs) &&
    (!endsJobHere(rule) || endsJobHere(wider)) &&
    rule.lifetimeSeconds <= wider.lifetimeSeconds &&
    within(scopes, wider.scopes) &&
    isWithin(policy.details, rule.details, wider.details) &&
    within(wider.demands ?? [], rule.demands ?? []) &&
    within(lapsesOf(rule), lapsesOf(wider)) &&
    targetsOf(policy, rule).every((target) => targets.includes(target)) &&
    hasWiderCallers(wider, rule, vouched)
  );
}

/** Compares the fields that depend on the mode. `issues` is not compared, because it follows from the targets. */
function isWiderMode(wider: Rule, rule: Rule): boolean {
  if (wider.allow !== rule.allow) return false;
  if (!hasSubject(wider) || !hasSubject(rule)) return true;
  const forWhom =
    within(rule.subjects.subs, wider.subjects.subs) &&
    within(rule.subjects.issuers, wider.subjects.issuers) &&
    demandsNoMoreClaims(wider.subjects, rule.subjects) &&
    (wider.consent === rule.consent || wider.consent === "implied") &&
    (!asksUser(rule) || asksUser(wider) || wider.consent === "implied") &&
    hopsMaxOf(rule) <= hopsMaxOf(wider);
  if (isFor(rule, "code") && isFor(wider, "code")) {
    return forWhom && demandsNoMore(wider, rule) && (!rule.refresh || wider.refresh);
  }
  if (!forWhom || !isFor(wider, "subject_token") || !isFor(rule, "subject_token")) return forWhom;
  return (
    within(rule.subjectToken.audiences ?? [], wider.subjectToken.audiences ?? []) &&
    within(rule.subjectToken.scopes ?? [], wider.subjectToken.scopes ?? []) &&
    (rule.boundSubject !== "audience" || wider.boundSubject === "audience") &&
    (!isUnbound(rule) || isUnbound(wider)) &&
    replacementsOf(rule) <= replacementsOf(wider) &&
    within(idJagSubjectsOf(rule), idJagSubjectsOf(wider))
  );
}

/** PCL-D-1: claims that meet the demands of the rule meet those of the wider one. */
const demandsNoMoreClaims = (
  { claims: wider = {} }: SubjectRule["subjects"],
  { claims = {} }: SubjectRule["subjects"],
): boolean => Object.entries(wider).every(([at, texts]) => within(claims[at], texts));

/** Compares what the rules demand of the sign-in and of the request. */
const demandsNoMore = (wider: CodeRule, rule: CodeRule): boolean =>
  within(rule.acr, wider.acr) &&
  (rule.signInSecondsMax ?? Number.POSITIVE_INFINITY) <=
    (wider.signInSecondsMax ?? Number.POSITIVE_INFINITY) &&
  (rule.pushed || !wider.pushed);

function hasWiderCallers(wider: Rule, rule: Rule, vouched: boolean): boolean {
  // PLAT-D-10: a workload beside a client is allowed only what a rule allows that names both.
  const namesBoth = (one: Rule) => one.actors !== undefined && clientsOf(one) !== undefined;
  if (vouched && namesBoth(rule) && !namesBoth(wider)) return false;
  const isForSome = (one: Rule) => clientsOf(one) !== undefined || classesOf(one) !== undefined;
  if (!withinPatterns(rule.actors, wider.actors)) return false;
  // A rule that names actors alone is for every client of these workloads.
  if (!isForSome(wider)) return true;
  return (
    isForSome(rule) &&
    withinPatterns(clientsOf(rule) ?? [], clientsOf(wider) ?? []) &&
    within(classesOf(rule) ?? [], classesOf(wider) ?? [])
  );
}

/** Whether `wider` contains all names; absent means every name. */
function within(names: readonly string[] | undefined, wider: readonly string[] | undefined): boolean {
  return wider === undefined || (names?.every((name) => wider.includes(name)) ?? false);
}

function withinPatterns(
  patterns: readonly string[] | undefined,
  wider: readonly string[] | undefined,
): boolean {
  if (wider === undefined) return true;
  return patterns?.every((inner) => wider.some((outer) => matchesPattern(outer, inner))) ?? false;
}

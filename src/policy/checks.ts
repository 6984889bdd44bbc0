/**
 * What a policy (product document 2.6) says beyond its grammar, looked at before it is in force.
 *
 * Refused is what rules and targets alone show to be a slip: a rule that could never grant anything whatever else is
 * configured, or a name that can name nobody. Warned of is what works but is wide (a whole trust domain, subjects who
 * are not asked, anybody impersonated), what is superfluous (a rule that another one covers), and what is dead only
 * because of the rest of the configuration (trust domains, issuers, clients): trust must never be hard to take away,
 * and a reload that is refused would leave it in force because some rule still names what is to go.
 */

import { ACT_HOPS_MAX } from "../spec/limits.ts";
import { CLIENT_CREDENTIALS } from "../spec/rfc6749.ts";
import { TOKEN_EXCHANGE } from "../spec/rfc8693.ts";
import { matchesPattern, parseSpiffeId } from "../spec/spiffe/id.ts";
import type { PolicySet, Rule, Target } from "./rules.ts";
import { listsFor, SELF } from "./rules.ts";

type ByName<T> = { readonly [name: string]: T };

/** Whom the rest of the configuration lets in. */
export type Surroundings = {
  trustDomains: ByName<unknown>;
  trustedIssuers: ByName<{
    acceptAs: readonly string[];
    subjects: "keep" | { prefix: string } | { table: ByName<string> };
  }>;
  clients: ByName<{ grantTypes: readonly string[]; workload?: string | undefined; spiffeId?: string }>;
};

export type Findings = { problems: readonly string[]; warnings: readonly string[] };

type ExchangeRule = Exclude<Rule, { allow: "client_credentials" }>;

const quote = (text: string): string => JSON.stringify(text);
const list = (texts: readonly string[]): string => texts.map(quote).join(", ");

export function checkPolicy(policy: PolicySet, rules: readonly Rule[], around: Surroundings): Findings {
  const problems: string[] = [];
  const warnings: string[] = [];
  const bySubject = indexBySubject(rules);
  for (const rule of rules) {
    const dead = [...deadByItself(policy, rule)];
    for (const words of dead) problems.push(`policies: rule ${quote(rule.id)} ${words}`);
    // Of a rule that is refused anyway, more need not be said.
    if (dead.length > 0) continue;
    const suspect = [...deadAround(policy, rule, around), ...wide(rule), ...idle(policy, rule)];
    const other = coveredBy(policy, rule, bySubject);
    if (other !== undefined) suspect.push(`adds nothing to rule ${quote(other.id)}, which allows all of it`);
    for (const words of suspect) warnings.push(`policies: rule ${quote(rule.id)} ${words}`);
  }
  for (const target of new Set(policy.targets.values())) {
    for (const owner of target.owners.filter(isWholeDomain)) {
      warnings.push(`targets: ${quote(target.names[0] ?? "")} belongs to every workload under ${owner}`);
    }
  }
  return { problems, warnings };
}

// --- refused ------------------------------------------------------------------------------------------------------

/** PROD-2.6-7: a rule is there to allow something. */
function* deadByItself(policy: PolicySet, rule: Rule): Generator<string> {
  const targets = targetsOf(policy, rule);
  if (!targets.some((target) => knowsAny(target, rule.scopes))) {
    yield `can never grant anything: none of its targets knows any of its scopes (${list(rule.scopes)})`;
  }
  // PROD-2.6-2: only an origin stands for many clients; workloads under a prefix are actors.
  const isNobody = (name: string): boolean => name.endsWith("/*") && !/^https:\/\/[^/]+\/\*$/.test(name);
  const nobody = clientsOf(rule)?.filter(isNobody) ?? [];
  if (nobody.length > 0) yield `names as client what is no client_id and no https origin: ${list(nobody)}`;
  if (rule.allow === "client_credentials") return;
  // PROD-2.6-9
  const { audiences = [], scopes } = rule.subjectToken;
  if (scopes === undefined && audiences.every((name) => name === SELF) && !ownTargets(policy, rule)) {
    yield "can never match: it wants a token for a target that the caller owns, and its callers own none";
  }
  // PROD-2.6-8: `may_act` comes from a foreign issuer, and what we issue to a client for itself has none.
  if (rule.consent === "may_act" && rule.subjects.issuers.every((one) => one === policy.issuer)) {
    yield "can never match: no token of a subject of this server carries may_act";
  }
}

function targetsOf(policy: PolicySet, rule: Rule): readonly Target[] {
  return [...new Set(rule.targets.flatMap((name) => policy.targets.get(name) ?? []))];
}

const knowsAny = (target: Target, scopes: readonly string[]): boolean =>
  scopes.some((scope) => target.scopes.includes(scope));

const clientsOf = (rule: Rule): readonly string[] | undefined =>
  rule.allow === "delegation" ? undefined : rule.clients;

/** Whether a caller of the rule may own one of these targets; a client may have any workload. */
function ownTargets(policy: PolicySet, { actors }: Rule, targets = [...policy.targets.values()]): boolean {
  const owners = targets.flatMap((target) => target.owners);
  return owners.some((owner) => actors?.some((actor) => overlap(owner, actor)) ?? true);
}

/** Whether a token for this audience alone is meant for somebody whom the rule names. */
function isForCaller(policy: PolicySet, rule: ExchangeRule, name: string): boolean {
  if (name === policy.issuer) return true;
  const target = policy.targets.get(name);
  if (target !== undefined && ownTargets(policy, rule, [target])) return true;
  const workloads = rule.actors ?? (parseSpiffeId(name).ok ? [name] : []);
  return [...workloads, ...(clientsOf(rule) ?? [])].some((one) => matchesPattern(one, name));
}

/** Whether there can be a workload that fits both; of two prefixes one is within the other, or they are apart. */
const overlap = (a: string, b: string): boolean => matchesPattern(a, b) || matchesPattern(b, a);

// --- warned of: whom the rest of the configuration keeps out ------------------------------------------------------

function* deadAround(policy: PolicySet, rule: Rule, around: Surroundings): Generator<string> {
  const { actors = [] } = rule;
  yield* named("actor", "of no configured trust domain", actors, (one) => isActor(one, around));
  const clients = clientsOf(rule) ?? [];
  yield* named("client", "not configured", clients, (one) => isClient(one, around));
  const grantType = rule.allow === "client_credentials" ? CLIENT_CREDENTIALS : TOKEN_EXCHANGE;
  const allowed = (one: string) => member(around.clients, one)?.grantTypes.includes(grantType) ?? true;
  yield* named("client", `not registered for ${grantType}`, clients, allowed);
  const both = clients.length > 0 && actors.length > 0;
  if (both && !clients.some((client) => actors.some((actor) => canBe(client, actor, around)))) {
    yield "can never match: none of its clients has a workload among its actors";
  }
  if (rule.allow === "client_credentials") return;

  const { issuers, subs } = rule.subjects;
  yield* named("subject issuer", "neither trusted for subject tokens nor this server", issuers, (one) =>
    hasSubjects(one, policy.issuer, around),
  );
  const known = (sub: string) => issuers.some((one) => canHave(member(around.trustedIssuers, one), sub));
  yield* named("subject", "in the table of none of its issuers", subs ?? [], known);
}

/** What of the names is not as it should be; where that is all of them, the rule is dead. */
function* named(
  kind: string,
  what: string,
  names: readonly string[],
  holds: (name: string) => boolean,
): Generator<string> {
  const wrong = names.filter((name) => !holds(name));
  if (wrong.length === 0) return;
  if (wrong.length === names.length) yield `can never match: its ${kind}s are ${what} (${list(wrong)})`;
  else for (const name of wrong) yield `names the ${kind} ${quote(name)}, which is ${what}`;
}

/** A name may be one that every object has. */
const member = <T>(from: ByName<T>, name: string): T | undefined =>
  Object.hasOwn(from, name) ? from[name] : undefined;

/** PROD-2.6-3: a workload is proven within a trust domain, or was given to a client. */
export function isActor(pattern: string, { trustDomains, clients }: Surroundings): boolean {
  const [, , trustDomain = ""] = pattern.split("/");
  const given = ({ workload }: { workload?: string | undefined }) =>
    workload !== undefined && matchesPattern(pattern, workload);
  return Object.hasOwn(trustDomains, trustDomain) || Object.values(clients).some(given);
}

/** PROD-2.1-2: what is no configured name proves itself otherwise, or was made by the server, with this prefix. */
export function isClient(name: string, around: Surroundings): boolean {
  if (name.startsWith("spiffe://")) return isActor(name, around);
  return name.includes("://") || name.startsWith("c_") || Object.hasOwn(around.clients, name);
}

export function hasSubjects(issuer: string, own: string, { trustedIssuers }: Surroundings): boolean {
  return issuer === own || (member(trustedIssuers, issuer)?.acceptAs.length ?? 0) > 0;
}

/** Of clients that are not configured nothing is known here. */
function canBe(client: string, actor: string, { clients }: Surroundings): boolean {
  if (client.startsWith("spiffe://")) return matchesPattern(actor, client);
  const configured = member(clients, client);
  if (configured === undefined) return true;
  const { workload, spiffeId } = configured;
  if (workload !== undefined) return matchesPattern(actor, workload);
  return spiffeId !== undefined && overlap(actor, spiffeId);
}

function canHave(issuer: Surroundings["trustedIssuers"][string] | undefined, sub: string): boolean {
  if (issuer === undefined || issuer.subjects === "keep" || "prefix" in issuer.subjects) return true;
  return Object.hasOwn(issuer.subjects.table, sub);
}

// --- warned of: what is wide --------------------------------------------------------------------------------------

/** `spiffe://` and a name, and everything below it. */
const isWholeDomain = (pattern: string): boolean => /^spiffe:\/\/[^/]+\/\*$/.test(pattern);

function* wide(rule: Rule): Generator<string> {
  for (const actor of (rule.actors ?? []).filter(isWholeDomain)) {
    yield `lets every workload under ${actor} act`;
  }
  if (rule.allow === "client_credentials") return;
  const { issuers, subs } = rule.subjects;
  const whom = subs === undefined ? `any subject of ${list(issuers)}` : list(subs);
  // PROD-2.6-4, PROD-2.6-8
  if (rule.consent === "implied") {
    yield `takes consent as implied, without asking ${whom}`;
  }
  if (rule.allow === "impersonation" && subs === undefined) {
    yield `lets its callers pass for ${whom}, and no token shows it: name whom in subjects.subs`;
  }
}

// --- warned of: what does nothing ---------------------------------------------------------------------------------

function* idle(policy: PolicySet, rule: Rule): Generator<string> {
  const targets = targetsOf(policy, rule);
  for (const scope of new Set(rule.scopes)) {
    if (!targets.some((target) => target.scopes.includes(scope))) {
      yield `has the scope ${quote(scope)}, which none of its targets knows`;
    }
  }
  for (const target of targets) {
    if (!knowsAny(target, rule.scopes)) {
      yield `grants nothing at ${quote(target.names[0] ?? "")}, which knows none of its scopes`;
    }
  }
  if (rule.allow !== "client_credentials") {
    for (const name of rule.subjectToken.audiences ?? []) {
      if (name === SELF && !ownTargets(policy, rule)) {
        yield `names the audience ${quote(SELF)}, but its callers own no target`;
      }
      // A token of a foreign issuer may have several audiences.
      if (name !== SELF && !isForCaller(policy, rule, name)) {
        yield `names the audience ${quote(name)}: a token for that alone is not meant for its callers, and is refused`;
      }
    }
  }
}

/** Of two rules that allow the same, the one with the greater id is covered. */
function coveredBy(policy: PolicySet, rule: Rule, bySubject: BySubject): Rule | undefined {
  const [target] = targetsOf(policy, rule);
  const workload = rule.actors?.[0];
  // Who covers it names the first of each as well, exactly or by a prefix.
  const caller = { mode: rule.allow, clientId: clientsOf(rule)?.[0] ?? "", ...(workload && { workload }) };
  const lists = [listsFor(policy, caller, target), listsOf(subjectsOf(rule), bySubject)];
  const [fewest = []] = lists.sort((a, b) => lengthOf(a) - lengthOf(b));
  for (const other of fewest.flat()) {
    if (other === rule || !covers(policy, other, rule)) continue;
    if (other.id < rule.id || !covers(policy, rule, other)) return other;
  }
  return undefined;
}

/** Rules by each subject they name, and those that name none: so ten thousand rules for one actor are no burden. */
type BySubject = ReadonlyMap<string | undefined, readonly Rule[]>;

const subjectsOf = (rule: Rule): readonly (string | undefined)[] =>
  (rule.allow === "client_credentials" ? undefined : rule.subjects.subs) ?? [undefined];

function indexBySubject(rules: readonly Rule[]): BySubject {
  const pairs = rules.flatMap((rule) => subjectsOf(rule).map((sub) => ({ sub, rule })));
  const grouped = Map.groupBy(pairs, ({ sub }) => sub);
  return new Map([...grouped].map(([sub, found]) => [sub, found.map(({ rule }) => rule)]));
}

const listsOf = ([first]: readonly (string | undefined)[], bySubject: BySubject) =>
  [...new Set([first, undefined])].map((sub) => bySubject.get(sub) ?? []);

const lengthOf = (lists: readonly (readonly Rule[])[]): number =>
  lists.reduce((sum, { length }) => sum + length, 0);

function covers(policy: PolicySet, wider: Rule, rule: Rule): boolean {
  if (wider.allow !== rule.allow) return false;
  if (wider.allow !== "client_credentials" && rule.allow !== "client_credentials") {
    const fits =
      within(rule.subjects.subs, wider.subjects.subs) &&
      within(rule.subjects.issuers, wider.subjects.issuers) &&
      within(rule.subjectToken.audiences ?? [], wider.subjectToken.audiences ?? []) &&
      within(rule.subjectToken.scopes ?? [], wider.subjectToken.scopes ?? []) &&
      (wider.consent === rule.consent || wider.consent === "implied") &&
      depthOf(rule) <= depthOf(wider);
    if (!fits) return false;
  }
  const targets = targetsOf(policy, wider);
  const scopes = targetsOf(policy, rule).flatMap((target) =>
    rule.scopes.filter((scope) => target.scopes.includes(scope)),
  );
  return (
    rule.lifetimeSeconds <= wider.lifetimeSeconds &&
    within(scopes, wider.scopes) &&
    targetsOf(policy, rule).every((target) => targets.includes(target)) &&
    withinPatterns(rule.actors, wider.actors) &&
    withinPatterns(clientsOf(rule), clientsOf(wider))
  );
}

const depthOf = (rule: ExchangeRule): number =>
  (rule.allow === "delegation" ? rule.maxChainDepth : undefined) ?? ACT_HOPS_MAX;

/** Absent is everything. */
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

/**
 * What a policy (product document 2.6) says beyond its grammar, looked at before it is in force.
 *
 * Refused is what rules and targets alone show to be a slip: a rule that could never grant anything whatever else is
 * configured, or a name that can name nobody. Warned of is what works but is wide (a whole trust domain, subjects who
 * are not asked, anybody impersonated), what is superfluous (a rule that another one covers), and what is dead only
 * because of the rest of the configuration (trust domains, issuers, clients): trust must never be hard to take away,
 * and a reload that is refused would leave it in force because some rule still names what is to go.
 */

import { CLIENT_ID_PREFIX } from "../spec/rfc7591.ts";
import { matchesPattern, parseSpiffeId } from "../spec/spiffe/id.ts";
import { coveredBy, indexBySubject } from "./redundant.ts";
import type { ExchangeRule, PolicySet, Rule, Target } from "./rules.ts";
import { classesOf, clientsOf, GRANT_TYPES, issuesGrants, SELF, targetsOf } from "./rules.ts";
import { clientIdAt } from "./targets.ts";

type ByName<T> = { readonly [name: string]: T };

/** Whom the rest of the configuration lets in. */
export type Surroundings = {
  trustDomains: ByName<unknown>;
  trustedIssuers: ByName<{
    acceptAs: readonly string[];
    subjects: "keep" | { prefix: string } | { table: ByName<string> };
    /** Present: its JWT authorization grants are redeemed here. */
    grants?: unknown;
  }>;
  clients: ByName<{ grantTypes: readonly string[]; workload?: string | undefined; spiffeId?: string }>;
};

export type Findings = { problems: readonly string[]; warnings: readonly string[] };

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
    const suspect = [
      ...deadAround(policy, rule, around),
      ...wide(rule),
      ...idle(policy, rule),
      ...nameless(policy, rule, around),
    ];
    const other = coveredBy(policy, rule, bySubject);
    if (other !== undefined) suspect.push(`adds nothing to rule ${quote(other.id)}, which allows all of it`);
    for (const words of suspect) warnings.push(`policies: rule ${quote(rule.id)} ${words}`);
  }
  for (const target of new Set(policy.targets.values())) {
    for (const owner of target.owners.filter(isWholeDomain)) {
      warnings.push(`targets: ${quote(target.names[0] ?? "")} belongs to every workload under ${owner}`);
    }
    const { issuer = "", clients = new Map<string, string>() } = target.partner ?? {};
    for (const client of [...clients.keys()].filter((one) => !isClient(one, around))) {
      warnings.push(
        `targets: ${quote(issuer)} has a name for the client ${quote(client)}, which is not configured`,
      );
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
  if (rule.allow === "redemption") {
    // PROD-4.1v9-4
    if (rule.subjects.issuers.every((one) => one === policy.issuer)) {
      yield "can never match: grants of this server itself are not redeemed here";
    }
    return;
  }
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

const knowsAny = (target: Target, scopes: readonly string[]): boolean =>
  scopes.some((scope) => target.scopes.includes(scope));

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
  // Whoever is of a class may still match where no client does.
  const rest = classesOf(rule) ?? [];
  yield* named("client", "not configured", clients, (one) => isClient(one, around), rest);
  const grantType = GRANT_TYPES[rule.allow];
  const allowed = (one: string) => member(around.clients, one)?.grantTypes.includes(grantType) ?? true;
  yield* named("client", `not registered for ${grantType}`, clients, allowed, rest);
  const both = clients.length > 0 && actors.length > 0 && rest.length === 0;
  if (both && !clients.some((client) => actors.some((actor) => canBe(client, actor, around)))) {
    yield "can never match: none of its clients has a workload among its actors";
  }
  if (rule.allow === "client_credentials") return;

  const { issuers, subs } = rule.subjects;
  if (rule.allow === "redemption") {
    yield* named("subject issuer", "not trusted for grants", issuers, (one) => hasGrants(one, around));
  } else {
    yield* named("subject issuer", "neither trusted for subject tokens nor this server", issuers, (one) =>
      hasSubjects(one, policy.issuer, around),
    );
  }
  const known = (sub: string) => issuers.some((one) => canHave(member(around.trustedIssuers, one), sub));
  yield* named("subject", "in the table of none of its issuers", subs ?? [], known);
}

/** What of the names is not as it should be; where that is all of them, and there is no rest, the rule is dead. */
function* named(
  kind: string,
  what: string,
  names: readonly string[],
  holds: (name: string) => boolean,
  rest: readonly string[] = [],
): Generator<string> {
  const wrong = names.filter((name) => !holds(name));
  if (wrong.length === 0) return;
  if (wrong.length === names.length + rest.length)
    yield `can never match: its ${kind}s are ${what} (${list(wrong)})`;
  else for (const name of wrong) yield `names the ${kind} ${quote(name)}, which is ${what}`;
}

/** A name may be one that every object has. */
const member = <T>(from: ByName<T>, name: string): T | undefined =>
  Object.hasOwn(from, name) ? from[name] : undefined;

/** PROD-2.6-3: a workload is proven within a trust domain, or was given to a client. */
function isActor(pattern: string, { trustDomains, clients }: Surroundings): boolean {
  const [, , trustDomain = ""] = pattern.split("/");
  const given = ({ workload }: { workload?: string | undefined }) =>
    workload !== undefined && matchesPattern(pattern, workload);
  return Object.hasOwn(trustDomains, trustDomain) || Object.values(clients).some(given);
}

/** PROD-2.1-2: what is no configured name proves itself otherwise, or was made by the server, with this prefix. */
function isClient(name: string, around: Surroundings): boolean {
  if (name.startsWith("spiffe://")) return isActor(name, around);
  return name.includes("://") || name.startsWith(CLIENT_ID_PREFIX) || Object.hasOwn(around.clients, name);
}

/** Of its tokens, or of ours that its grants were redeemed for. */
function hasSubjects(issuer: string, own: string, around: Surroundings): boolean {
  const tokens = member(around.trustedIssuers, issuer)?.acceptAs ?? [];
  return issuer === own || tokens.length > 0 || hasGrants(issuer, around);
}

const hasGrants = (issuer: string, { trustedIssuers }: Surroundings): boolean =>
  member(trustedIssuers, issuer)?.grants !== undefined;

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
    // PROD-4.1v7-3: who does not see it is then a server of others.
    const where = issuesGrants(rule) ? " in another domain" : "";
    yield `lets its callers pass for ${whom}${where}, and no token shows it: name whom in subjects.subs`;
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
  if (rule.allow === "delegation" || rule.allow === "impersonation") {
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

/** IDJAG-5-1: who has no name at a partner gets no ID-JAG for it, though a rule speaks of ID-JAGs. */
function* nameless(policy: PolicySet, rule: Rule, around: Surroundings): Generator<string> {
  if (!("idJagSubjects" in rule)) return;
  for (const { partner } of targetsOf(policy, rule)) {
    if (partner === undefined) continue;
    const at = `at ${quote(partner.issuer)}`;
    const [clients, classes] = [clientsOf(rule), classesOf(rule)];
    const strangers = clients?.filter((one) => clientIdAt(partner, one) === undefined) ?? [];
    for (const client of strangers) {
      yield `names the client ${quote(client)}, which has no name ${at} for an ID-JAG`;
    }
    // Found by its actors alone: whatever clients they are.
    const isCaller = (client: string) => rule.actors?.some((actor) => canBe(client, actor, around)) ?? false;
    if (clients === undefined && classes === undefined && !partner.clients.keys().some(isCaller)) {
      yield `is for ID-JAGs, but only a client with a document of its own has a name ${at}`;
    }
  }
}

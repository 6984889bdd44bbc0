/**
 * Checks of a policy (clauses PROD-2.6) beyond its grammar, made before it comes into force.
 *
 * A problem refuses the configuration: a rule that can never grant anything whatever else is configured, or a client
 * name that can never match. A warning is given for a rule that is wide (a whole trust domain, subjects that are not
 * asked, impersonation of any subject), for a redundant rule, and for a rule that cannot match only because a trust
 * domain, issuer or client is not configured. The last is no problem, because removing trust has to be easy: if a
 * reload were refused while a rule still names a removed issuer, that issuer would stay trusted.
 */

import { MODES } from "../modes.ts";
import { OWN_CLASSES } from "../spec/rfc7591.ts";
import { matchesPattern, prefixesOver } from "../spec/spiffe/id.ts";
import { isWorkloadName } from "../spec/workload-grant.ts";
import { targetsWithoutTokens, warnOfBinding } from "./binding-checks.ts";
import { warnOfClaims } from "./claims-checks.ts";
import { findDetailProblems, warnOfDetails, warnOfForeignDetails } from "./detail-checks.ts";
import { warnOfIdle } from "./idle-checks.ts";
import { meant } from "./nearest.ts";
import {
  type ConfiguredParties,
  canBe,
  canHave,
  hasGrants,
  hasSubjects,
  type IndexedParties,
  isActor,
  isClient,
  member,
  signsIn,
  vouchesForClients,
  workloadsOf,
} from "./parties.ts";
import { issuesGrants } from "./products.ts";
import { findWiderRule, indexBySubject } from "./redundant.ts";
import {
  asksUser,
  classesOf,
  clientsOf,
  type ExchangeRule,
  endsJobHere,
  hasSubject,
  isFor,
  type PolicySet,
  type Rule,
  SELF,
  type Target,
  targetsOf,
} from "./rules.ts";
import { clientIdAt } from "./targets.ts";

/** The warnings are looked for when they are asked for. */
export type Findings = { problems: readonly string[]; readonly warnings: readonly string[] };

const quote = (text: string): string => JSON.stringify(text);
const list = (texts: readonly string[]): string => texts.map(quote).join(", ");

/** All problems and warnings of a policy, each as a text that begins with its path. */
export function checkPolicy(
  policy: PolicySet,
  rules: readonly Rule[],
  configured: ConfiguredParties,
): Findings {
  const parties: IndexedParties = { ...configured, workloads: workloadsOf(configured) };
  const owners = indexOwners(policy.targets.values());
  const problems: string[] = [];
  const refused = new Set<Rule>();
  for (const rule of rules) {
    for (const problem of [...findProblems(policy, rule, owners), ...findDetailProblems(policy, rule)]) {
      problems.push(`policies: rule ${quote(rule.id)} ${problem}`);
      refused.add(rule);
    }
  }
  // RFC9449-5.1-1: no target may demand what is not offered.
  for (const name of targetsWithoutTokens(
    policy,
    parties.dpop === undefined || parties.dpop.algorithms.length > 0,
  )) {
    problems.push(`targets: ${quote(name)} demands DPoP, which dpop.algorithms turns off`);
  }
  return {
    problems,
    // Most commands tell none, and of a large policy they take longer to find than all else.
    get warnings() {
      return [
        ...warnOfRules(policy, rules, { refused, owners, parties }),
        ...warnOfTargets(policy, parties),
        ...warnOfForeignDetails(policy, parties.trustedIssuers),
        ...warnOfIdle(policy, rules, parties.signIn?.providers),
      ];
    },
  };
}

/** A refused rule gets no warnings. */
function* warnOfRules(
  policy: PolicySet,
  rules: readonly Rule[],
  { refused, owners, parties }: { refused: ReadonlySet<Rule>; owners: Owners; parties: IndexedParties },
): Generator<string> {
  const bySubject = indexBySubject(rules);
  const vouched = vouchesForClients(parties);
  const redeemed = new Set(rules.flatMap((one) => (isFor(one, "grant") ? one.subjects.issuers : [])));
  for (const rule of rules) {
    if (refused.has(rule)) continue;
    const warned = [
      ...warnOfUnknownParties(policy, rule, parties),
      ...warnOfWidth(rule),
      ...warnOfCircles(policy, rule, redeemed, parties),
      ...warnOfUselessEntries(policy, rule, owners),
      ...warnOfClientsUnknownAtPartner(policy, rule, parties),
      ...warnOfBinding(policy, rule),
      ...warnOfDetails(policy, rule),
      ...warnOfClaims(rule, parties),
    ];
    const other = findWiderRule(policy, rule, bySubject, vouched);
    if (other !== undefined)
      warned.push(`is redundant: rule ${quote(other.id)} allows everything that it allows`);
    for (const warning of warned) yield `policies: rule ${quote(rule.id)} ${warning}`;
  }
}

function* warnOfTargets(policy: PolicySet, parties: IndexedParties): Generator<string> {
  for (const target of new Set(policy.targets.values())) {
    for (const owner of target.owners.filter(isWholeDomain)) {
      const name = quote(target.names[0] ?? "");
      yield `targets: ${name} belongs to every workload under ${owner}: narrow "owners" unless that is intended`;
    }
    for (const client of target.introspectors.filter((one) => !isClient(one, parties))) {
      yield `targets: ${quote(target.names[0] ?? "")} names the introspector ${quote(client)}, which is not configured: remove it or add it to clients`;
    }
    if (target.sharesTitle)
      yield `targets: ${quote(target.names[0] ?? "")} has a title that is another target's too: give each target a title of its own`;
    for (const scope of Object.keys(target.sentences).filter((one) => !target.scopes.includes(one))) {
      yield `targets: ${quote(target.names[0] ?? "")} has a sentence for ${quote(scope)}, which is none of its scopes${meant(scope, target.scopes)}`;
    }
    const { issuer = "", clients = new Map<string, string>() } = target.partner ?? {};
    for (const client of [...clients.keys()].filter((one) => !isClient(one, parties))) {
      yield `targets: ${quote(issuer)} lists the client ${quote(client)}, which is not configured: remove it or add it to clients`;
    }
  }
}

// --- problems -----------------------------------------------------------------------------------------------------

/** PROD-2.6-7: a rule that can never allow anything is a mistake. */
function* findProblems(policy: PolicySet, rule: Rule, owners: Owners): Generator<string> {
  const targets = targetsOf(policy, rule);
  if (!targets.some((target) => knowsAny(target, rule.scopes))) {
    yield `can never grant anything: none of its targets has any of its scopes (${list(rule.scopes)})`;
  }
  // PROD-2.6-2: only an origin may stand for many clients; workloads under a prefix are named as actors.
  const isInvalid = (name: string): boolean => name.endsWith("/*") && !/^https:\/\/[^/]+\/\*$/.test(name);
  const invalid = clientsOf(rule)?.filter(isInvalid) ?? [];
  if (invalid.length > 0) {
    yield `has entries in "clients" that are neither a client_id nor an https origin (${list(invalid)}): only an origin may end in /*, and workloads belong in "actors"`;
  }
  // JOB-D-16
  const ignoring = targets.filter(({ partner }) => partner?.jobs === "ignores");
  if (rule.jobs === "required" && ignoring.length === targets.length && !endsJobHere(rule)) {
    yield `can never match: its partners ignore jobs, so that "jobs": "required" also needs "acknowledgeJob": "job-ends-here"`;
  }
  if (!hasSubject(rule)) return;
  if (isFor(rule, "code")) {
    // MCPC-D-14: what a client gets by asking a user is for targets that the operator marked for that, never our own.
    const others = targets.filter(({ people }) => !people).flatMap(({ names }) => names.slice(0, 1));
    if (others.length > 0) {
      yield `names targets that are not marked "people": true (${list(others)})`;
    }
    return;
  }
  if (isFor(rule, "grant")) {
    // PROD-4.1v9-4: a grant that we issued is never redeemed here.
    if (rule.subjects.issuers.every((one) => one === policy.issuer)) {
      yield "can never match: subjects.issuers names only this server, whose own grants are not redeemed here";
    }
    return;
  }
  // PROD-2.6-9: a rule whose only condition is "self" needs a caller that owns a target.
  const { audiences = [], scopes } = rule.subjectToken;
  if (scopes === undefined && audiences.every((name) => name === SELF) && !canOwn(owners, rule)) {
    yield "can never match: it requires a subject token for a target that the caller owns, but none of its callers owns one";
  }
  // PROD-2.6-8: `may_act` comes from a foreign issuer; tokens whose subject is a client of ours never carry it.
  if (rule.consent === "may_act" && rule.subjects.issuers.every((one) => one === policy.issuer)) {
    yield "can never match: subjects.issuers names only this server, which issues no may_act for its own subjects";
  }
}

const knowsAny = (target: Target, scopes: readonly string[]): boolean =>
  scopes.some((scope) => target.scopes.includes(scope));

/** The owners of targets and the prefixes over them, indexed because every check of a rule looks for some of them. */
type Owners = { named: ReadonlySet<string>; above: ReadonlySet<string>; hasPrefixes: boolean };

function indexOwners(targets: Iterable<Target>): Owners {
  const owners = Array.from(targets, (target) => target.owners).flat();
  const above = new Set(owners.flatMap(prefixesOver));
  return { named: new Set(owners), above, hasPrefixes: owners.some((owner) => owner.endsWith("/*")) };
}

/** Whether a caller of the rule can own one of the targets. Without `actors` any workload can be a caller. */
function canOwn({ named, above, hasPrefixes }: Owners, { actors }: Rule): boolean {
  if (actors === undefined) return named.size > 0;
  // A workload can match both only if they are equal or one is a prefix that contains the other.
  return actors.some(
    (actor) =>
      named.has(actor) ||
      above.has(actor) ||
      (hasPrefixes && prefixesOver(actor).some((prefix) => named.has(prefix))),
  );
}

/** Whether a token with this audience alone can be meant for a caller of the rule. */
function isForCaller(policy: PolicySet, rule: ExchangeRule, name: string): boolean {
  if (name === policy.issuer) return true;
  const target = policy.targets.get(name);
  if (target !== undefined && canOwn(indexOwners([target]), rule)) return true;
  const workloads = rule.actors ?? (isWorkloadName(name) ? [name] : []);
  return [...workloads, ...(clientsOf(rule) ?? [])].some((one) => matchesPattern(one, name));
}

// --- warnings: parties that are not configured --------------------------------------------------------------------

function* warnOfUnknownParties(policy: PolicySet, rule: Rule, parties: IndexedParties): Generator<string> {
  const { actors = [] } = rule;
  yield* warnOfNames("actor", "in no configured trust domain", actors, (one) => isActor(one, parties));
  const clients = clientsOf(rule) ?? [];
  // A rule with classes can still match through them.
  const rest = classesOf(rule) ?? [];
  yield* warnOfNames("client", "not configured", clients, (one) => isClient(one, parties), rest);
  const { grantType } = MODES[rule.allow];
  const allowed = (one: string) => member(parties.clients, one)?.grantTypes?.includes(grantType) ?? true;
  yield* warnOfNames("client", `not allowed the grant type ${grantType}`, clients, allowed, rest);
  const both = clients.length > 0 && actors.length > 0 && rest.length === 0;
  if (both && !clients.some((client) => actors.some((actor) => canBe(client, actor, parties)))) {
    yield 'can never match: no workload of its "clients" is among its "actors"';
  }
  if (!hasSubject(rule)) return;

  const { issuers, subs } = rule.subjects;
  if (isFor(rule, "code")) {
    yield* warnOfNames("subject issuer", "no provider of signIn", issuers, (one) => signsIn(one, parties));
  } else if (isFor(rule, "grant")) {
    yield* warnOfNames("subject issuer", "not trusted for grants", issuers, (one) => hasGrants(one, parties));
  } else {
    yield* warnOfNames(
      "subject issuer",
      "neither trusted for subject tokens nor this server",
      issuers,
      (one) => hasSubjects(one, policy.issuer, parties),
    );
  }
  for (const issuer of asksUser(rule) ? issuers.filter((one) => !signsIn(one, parties)) : []) {
    yield `cannot ask users of ${quote(issuer)}, who do not sign in here: add a provider of signIn for it or remove "askUser"`;
  }
  const known = (sub: string) => issuers.some((one) => canHave(member(parties.trustedIssuers, one), sub));
  yield* warnOfNames("subject", "in no subjects.table of its issuers", subs ?? [], known);
}

/** One warning for each name that does not hold, or one for the rule if none holds and `rest` is empty. */
function* warnOfNames(
  kind: string,
  what: string,
  names: readonly string[],
  holds: (name: string) => boolean,
  rest: readonly string[] = [],
): Generator<string> {
  const wrong = names.filter((name) => !holds(name));
  if (wrong.length === 0) return;
  if (wrong.length === names.length + rest.length)
    yield `can never match: its ${kind}s are ${what} (${list(wrong)}): configure them or remove the rule`;
  else
    for (const name of wrong)
      yield `names the ${kind} ${quote(name)}, which is ${what}: configure it or remove it from the rule`;
}

// --- warnings: wide rules -----------------------------------------------------------------------------------------

/** A prefix that is a whole trust domain: `spiffe://td.example/*`. */
const isWholeDomain = (pattern: string): boolean => /^spiffe:\/\/[^/]+\/\*$/.test(pattern);

function* warnOfWidth(rule: Rule): Generator<string> {
  for (const actor of (rule.actors ?? []).filter(isWholeDomain)) {
    yield `lets every workload under ${actor} act: narrow "actors" unless that is intended`;
  }
  // PROD-2.6-2: anyone can register where registration is open, and often publish under an origin.
  if (classesOf(rule)?.includes(OWN_CLASSES.anybody)) {
    yield `lets every client of open registration ask: name another class or clients unless that is intended`;
  }
  for (const origin of (clientsOf(rule) ?? []).filter((name) => name.endsWith("/*"))) {
    yield `lets every metadata document under ${origin} ask: name the documents in "clients" unless that is intended`;
  }
  if (!hasSubject(rule)) return;
  const { issuers, subs } = rule.subjects;
  const subjects = () => (subs === undefined ? `any subject of ${list(issuers)}` : list(subs));
  // PROD-2.6-4, PROD-2.6-8: the subjects are not asked, so the operator is reminded at every load.
  if (rule.consent === "implied") {
    yield `takes the consent of ${subjects()} as implied, without asking`;
  }
  if (MODES[rule.allow].chain === "hidden" && subs === undefined) {
    // PROD-4.1v7-3: with a grant, the server that cannot see the impersonation is in another domain.
    const where = issuesGrants(rule) ? " in another domain" : "";
    yield `lets its callers impersonate ${subjects()}${where}, which no token shows: name the subjects in subjects.subs`;
  }
}

/**
 * PROD-4.1v7-3: a delegation adds a hop, so the depth of the chain ends a circle; an impersonation adds none. What the
 * partner allows is not known here.
 */
function* warnOfCircles(
  policy: PolicySet,
  rule: Rule,
  redeemed: ReadonlySet<string>,
  parties: IndexedParties,
): Generator<string> {
  if (!hasSubject(rule) || MODES[rule.allow].chain !== "hidden" || !issuesGrants(rule)) return;
  for (const { partner } of targetsOf(policy, rule)) {
    const issuer = partner?.issuer ?? "";
    if (!rule.subjects.issuers.includes(issuer) || !hasGrants(issuer, parties) || !redeemed.has(issuer))
      continue;
    yield `lets its callers impersonate subjects of ${quote(issuer)} at that server, whose grants are redeemed here: if it does the same, grants can be exchanged in a circle without end; use delegation, which has a limited depth`;
  }
}

// --- warnings: entries without effect -----------------------------------------------------------------------------

function* warnOfUselessEntries(policy: PolicySet, rule: Rule, owners: Owners): Generator<string> {
  const targets = targetsOf(policy, rule);
  for (const scope of new Set(rule.scopes)) {
    if (!targets.some((target) => target.scopes.includes(scope))) {
      yield `has the scope ${quote(scope)}, which none of its targets has: correct or remove it`;
    }
  }
  for (const target of targets) {
    if (!knowsAny(target, rule.scopes)) {
      yield `grants nothing at the target ${quote(target.names[0] ?? "")}, which has none of its scopes`;
    }
  }
  if (isFor(rule, "subject_token")) {
    for (const name of rule.subjectToken.audiences ?? []) {
      if (name === SELF && !canOwn(owners, rule)) {
        yield `names the audience ${quote(SELF)}, but its callers own no target: set "owners" of a target or remove it`;
      }
      // This is only a warning, because a foreign token with several audiences may also name the caller.
      if (name !== SELF && !isForCaller(policy, rule, name)) {
        yield `names the audience ${quote(name)}, but a token with that audience alone is not meant for its callers and is refused`;
      }
    }
  }
}

/** IDJAG-5-1: a rule for ID-JAGs has no effect for a client without a client_id at the partner, which gets none. */
function* warnOfClientsUnknownAtPartner(
  policy: PolicySet,
  rule: Rule,
  parties: IndexedParties,
): Generator<string> {
  if (!("idJagSubjects" in rule)) return;
  for (const { partner } of targetsOf(policy, rule)) {
    if (partner === undefined) continue;
    const at = `at ${quote(partner.issuer)}`;
    const [clients, classes] = [clientsOf(rule), classesOf(rule)];
    const unknown = clients?.filter((one) => clientIdAt(partner, one) === undefined) ?? [];
    for (const client of unknown) {
      yield `names the client ${quote(client)}, which has no client_id ${at} and so gets no ID-JAG: add it to "clients" of that target`;
    }
    // A rule that names actors alone is for every client that has such a workload.
    const isCaller = (client: string) => rule.actors?.some((actor) => canBe(client, actor, parties)) ?? false;
    if (clients === undefined && classes === undefined && !partner.clients.keys().some(isCaller)) {
      yield `is for ID-JAGs, but only clients with a metadata document have a client_id ${at}: add others to "clients" of that target`;
    }
  }
}

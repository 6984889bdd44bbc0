/**
 * The decision of the exchange policy (product document 2.6): who may act, for whom, with which scopes, and why.
 * It is pure and total, the order of the rules is nothing to it, exactly one rule decides, and what it looked at
 * comes back as a trace.
 */

import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";
import type { JsonObject } from "../spec/json.ts";
import { ACT_HOPS_MAX, TOKEN_SECONDS_MIN } from "../spec/limits.ts";
import type { Chain } from "../spec/rfc8693.ts";
import { fitsAct, mayActNames } from "../spec/rfc8693.ts";
import { matchesPattern } from "../spec/spiffe/id.ts";
import type { Caller, PolicySet, Rule, Target } from "./rules.ts";
import { candidates, kindsFor, SELF } from "./rules.ts";

// --- the question -----------------------------------------------------------------------------------------------

/** A subject with the issuer that first vouched for it; equal `sub` of two issuers are two subjects. */
export type Origin = { iss: string; sub: string };

export type Consent = {
  id: string;
  version: number;
  origin: Origin;
  actor: string;
  targets: readonly string[];
  scopes: readonly string[];
  expiresAtSeconds?: number;
};

/** What the verified subject token says. */
export type Subject = {
  origin: Origin;
  audiences: readonly string[];
  scopes: readonly string[];
  expiresAtSeconds: number;
  chain: Chain;
  mayAct?: JsonObject;
  /** The issuer of the token itself. */
  issuer: string;
};

/** Who asks: the client, and the SPIFFE ID that was proven or that the operator gave this client. */
export type Ask = Caller & {
  subject?: Subject;
  /** A name as requested, or the client's default. */
  target?: string;
  scope?: readonly string[];
  consents: readonly Consent[];
  nowSeconds: number;
};

// --- the answer -------------------------------------------------------------------------------------------------

export type Condition =
  | "actor"
  | "target"
  | "subject_issuer"
  | "subject"
  | "subject_token"
  | "consent"
  | "chain_depth"
  | "lifetime"
  | "scope";

/** Where each requested scope was lost. */
export type Fallen = { scope: string; at: "subject_token" | "rule" | "target" | "consent" };

export type Trace = readonly { rule: string; failed?: Condition; fallen?: readonly Fallen[] }[];

export type Allowed = {
  rule: Rule;
  target: Target;
  /** The issued `aud`: the name that was asked for, byte for byte (PROD-4.1r5-1). */
  audience: string;
  scope: readonly string[];
  expiresAtSeconds: number;
  consent?: { id: string; version: number };
  trace: Trace;
};

export type Denied = {
  kind: "policy_denied" | "target_refused" | "scope_refused";
  reason:
    | "may_act_names_another"
    | "actor_without_workload"
    | "actor_is_subject"
    | "not_meant_for_caller"
    | "target_missing"
    | "target_unknown"
    | "target_not_allowed"
    | "scope_ambiguous"
    | "scope_empty"
    | "subject_token_expires_too_soon"
    | "subject_token_does_not_permit"
    | "consent_missing"
    | "chain_too_deep"
    | "no_rule";
  trace: Trace;
};

const deny = (kind: Denied["kind"], reason: Denied["reason"], trace: Trace = []) =>
  err({ kind, reason, trace });

export function decide(policy: PolicySet, ask: Ask): Result<Allowed, Denied> {
  const { subject } = ask;
  if (ask.mode === "delegation" && ask.workload === undefined) {
    return deny("policy_denied", "actor_without_workload"); // PROD-2.6-3
  }
  if (subject !== undefined) {
    const refused = subjectRefuses(policy, ask, subject);
    if (refused !== undefined) return deny("policy_denied", refused);
  }
  const aimed = aim(policy, ask);
  if (!aimed.ok) return aimed;
  const { audience, target } = aimed.value;

  const judged = candidates(policy, ask, target).map((rule) => judge(policy, ask, rule, target));
  const trace: Trace = judged.map(({ rule, failed, fallen }) => ({
    rule: rule.id,
    ...(failed !== undefined && { failed }),
    ...(fallen !== undefined && fallen.length > 0 && { fallen }),
  }));
  const best = judged.filter((one) => one.failed === undefined).reduce<Judged | undefined>(better, undefined);
  if (best !== undefined) {
    const { rule, scope, consent, expiresAtSeconds } = best;
    return ok({ rule, target, audience, scope, expiresAtSeconds, ...(consent && { consent }), trace });
  }
  if (judged.some((one) => one.failed === "scope")) return deny("scope_refused", "scope_empty", trace);
  if (judged.some((one) => one.failed === "lifetime")) {
    return deny("policy_denied", "subject_token_expires_too_soon", trace);
  }
  // RFC8693-2.2.2-3: the caller may act, only not there.
  if (mayActElsewhere(policy, ask)) return deny("target_refused", "target_not_allowed", trace);
  // PROD-1.5-2, PROD-7.1-1: denied; the auditor is told what stopped the rule that came furthest.
  const furthest = FURTHEST.find(([condition]) => judged.some((one) => one.failed === condition));
  return deny("policy_denied", furthest?.[1] ?? "no_rule", trace);
}

const FURTHEST: readonly (readonly [Condition, Denied["reason"]])[] = [
  ["chain_depth", "chain_too_deep"],
  ["consent", "consent_missing"],
  ["subject_token", "subject_token_does_not_permit"],
];

/** What the subject token itself rules out, whatever the rules say. */
function subjectRefuses(policy: PolicySet, ask: Ask, subject: Subject): Denied["reason"] | undefined {
  const { issuer } = policy;
  const parties = ask.mode === "delegation" ? [ask.workload] : [ask.clientId, ask.workload];
  const { mayAct } = subject;
  if (mayAct !== undefined) {
    // RFC8693-4.4-2: it only restricts; without it nothing is allowed that a rule does not allow.
    const named = parties.some(
      (sub) => sub !== undefined && mayActNames(mayAct, { sub, iss: issuer }, subject.issuer),
    );
    if (!named) return "may_act_names_another";
  }
  if (subject.origin.iss === issuer && parties.includes(subject.origin.sub)) return "actor_is_subject";
  // PROD-4.1v6-5: a delegated token is exchanged onward only by the one it was given to.
  if (subject.chain.length > 0 && !meantForCaller(policy, ask, subject)) return "not_meant_for_caller";
  return undefined;
}

/** The token's audience is the caller, a target that the caller owns, or our issuer. */
function meantForCaller(policy: PolicySet, ask: Ask, subject: Subject): boolean {
  return subject.audiences.some(
    (name) =>
      name === policy.issuer ||
      name === ask.clientId ||
      name === ask.workload ||
      owns(policy, ask.workload, name),
  );
}

function owns(policy: PolicySet, workload: string | undefined, name: string): boolean {
  if (workload === undefined) return false;
  return policy.targets.get(name)?.owners.some((owner) => matchesPattern(owner, workload)) ?? false;
}

/** The target: as requested; for client credentials else by scope or by rule (RFC9068-3-4, RFC9068-3-5). */
function aim(policy: PolicySet, ask: Ask): Result<{ audience: string; target: Target }, Denied> {
  if (ask.target !== undefined) {
    const target = policy.targets.get(ask.target);
    if (target === undefined) return deny("target_refused", "target_unknown");
    return ok({ audience: ask.target, target });
  }
  if (ask.mode !== "client_credentials") return deny("target_refused", "target_missing"); // PROD-4.1-30
  const allowed = new Set<Target>();
  for (const rule of candidates(policy, ask)) {
    if (unmet(policy, ask, rule) !== undefined) continue;
    for (const name of rule.targets) {
      const target = policy.targets.get(name);
      if (target !== undefined) allowed.add(target);
    }
  }
  const { scope } = ask;
  const fitting = [...allowed].filter((target) => scope?.some((one) => target.scopes.includes(one)) ?? true);
  const [target, another] = fitting;
  if (another !== undefined) {
    // RFC9068-3-6: scopes of several targets, and no word on which one is meant.
    return scope === undefined
      ? deny("target_refused", "target_missing")
      : deny("scope_refused", "scope_ambiguous");
  }
  if (target !== undefined) return ok({ audience: target.names[0] ?? "", target });
  return allowed.size > 0 ? deny("scope_refused", "scope_empty") : deny("policy_denied", "no_rule");
}

// --- one rule ---------------------------------------------------------------------------------------------------

type Judged = {
  rule: Rule;
  failed?: Condition;
  scope: readonly string[];
  fallen?: readonly Fallen[];
  consent?: { id: string; version: number };
  expiresAtSeconds: number;
};

/** PROD-2.6-10: of two rules that allow, the one that grants more; then the smaller id, which comes first. */
function better(best: Judged | undefined, one: Judged): Judged {
  return best === undefined || one.scope.length > best.scope.length ? one : best;
}

function judge(policy: PolicySet, ask: Ask, rule: Rule, target: Target): Judged {
  const { subject } = ask;
  const fail = (failed: Condition): Judged => ({ rule, failed, scope: [], expiresAtSeconds: 0 });
  const failed = unmet(policy, ask, rule);
  if (failed !== undefined) return fail(failed);

  const consents =
    rule.allow === "client_credentials" || rule.consent !== "record" ? [undefined] : ask.consents;
  const fitting = consents.filter((one) => one === undefined || covers(policy, one, ask, target));
  if (fitting.length === 0) return fail("consent"); // PROD-2.6-4

  if (rule.allow === "delegation") {
    // PROD-4.1v6-6: with the caller as its new hop.
    const chain = [{ sub: ask.workload ?? "", iss: policy.issuer }, ...(subject?.chain ?? [])];
    if (chain.length > (rule.maxChainDepth ?? ACT_HOPS_MAX) || !fitsAct(chain)) return fail("chain_depth");
  }

  const longest = ask.nowSeconds + rule.lifetimeSeconds;
  const expiresAtSeconds = Math.min(longest, subject?.expiresAtSeconds ?? longest);
  if (expiresAtSeconds - ask.nowSeconds < TOKEN_SECONDS_MIN) return fail("lifetime");

  const grants = fitting
    .map((consent) => ({ consent, ...intersect(ask, rule, target, consent) }))
    .toSorted(
      (a, b) => b.scope.length - a.scope.length || ((a.consent?.id ?? "") < (b.consent?.id ?? "") ? -1 : 1),
    );
  const [grant] = grants;
  if (grant === undefined || grant.scope.length === 0) {
    return { ...fail("scope"), ...(grant !== undefined && { fallen: grant.fallen }) };
  }
  const { consent, scope, fallen } = grant;
  return {
    rule,
    scope,
    fallen,
    expiresAtSeconds,
    ...(consent !== undefined && { consent: { id: consent.id, version: consent.version } }),
  };
}

/** The first condition on caller and subject that does not hold, target and scope aside. */
function unmet(policy: PolicySet, ask: Ask, rule: Rule): Condition | undefined {
  const { subject, workload } = ask;
  const { actors } = rule;
  if (
    actors !== undefined &&
    !actors.some((one) => workload !== undefined && matchesPattern(one, workload))
  ) {
    return "actor"; // PROD-2.6-2, PROD-7.3-2
  }
  if (rule.allow === "client_credentials") return undefined;
  if (subject === undefined) return "subject";
  if (!rule.subjects.issuers.includes(subject.origin.iss)) return "subject_issuer";
  if (rule.subjects.subs !== undefined && !rule.subjects.subs.includes(subject.origin.sub)) return "subject";
  if (!permits(policy, ask, rule.subjectToken, subject)) return "subject_token";
  // RFC8693-4.4-2: consent given in the token; that it names this caller was settled before.
  if (rule.consent === "may_act" && subject.mayAct === undefined) return "consent";
  return undefined;
}

/**
 * PROD-2.6-5, PROD-7.3-1: the subject token's audience or scope lets it be exchanged. An audience does so only
 * for the caller it was meant for; a scope that the rule names may stand in for it.
 */
function permits(
  policy: PolicySet,
  ask: Ask,
  {
    audiences,
    scopes,
  }: { audiences?: readonly string[] | undefined; scopes?: readonly string[] | undefined },
  subject: Subject,
): boolean {
  if (scopes?.some((scope) => subject.scopes.includes(scope))) return true;
  const named = subject.audiences.some(
    (name) =>
      (name !== SELF && audiences?.includes(name)) ||
      (audiences?.includes(SELF) && owns(policy, ask.workload, name)),
  );
  return named && meantForCaller(policy, ask, subject);
}

function covers(
  policy: PolicySet,
  consent: Consent,
  { subject, workload, clientId, nowSeconds }: Ask,
  target: Target,
): boolean {
  return (
    consent.origin.iss === subject?.origin.iss &&
    consent.origin.sub === subject.origin.sub &&
    consent.actor === (workload ?? clientId) &&
    consent.targets.some((name) => policy.targets.get(name) === target) &&
    (consent.expiresAtSeconds ?? Number.POSITIVE_INFINITY) > nowSeconds
  );
}

/** PROD-2.6-6, PROD-8.2-1: requested ∩ subject token ∩ rule ∩ target ∩ consent. */
function intersect(
  { scope, subject }: Ask,
  rule: Rule,
  target: Target,
  consent: Consent | undefined,
): { scope: readonly string[]; fallen: readonly Fallen[] } {
  const granted: string[] = [];
  const fallen: Fallen[] = [];
  // RFC6749-3.3-4: without a request, all that the other sides allow; RFC6749-3.3-1: each scope once.
  for (const one of new Set(scope ?? subject?.scopes ?? rule.scopes)) {
    if (subject !== undefined && !subject.scopes.includes(one))
      fallen.push({ scope: one, at: "subject_token" });
    else if (!rule.scopes.includes(one)) fallen.push({ scope: one, at: "rule" });
    else if (!target.scopes.includes(one)) fallen.push({ scope: one, at: "target" });
    else if (consent !== undefined && !consent.scopes.includes(one))
      fallen.push({ scope: one, at: "consent" });
    else granted.push(one);
  }
  return { scope: granted, fallen };
}

/**
 * Whether some rule would let the caller act for this subject at a target of its own. Where consent is on record, the
 * target is among those of a consent; else only the kind of rule counts, so that a caller may have many.
 */
function mayActElsewhere(policy: PolicySet, ask: Ask): boolean {
  const allows = (rule: Rule, target: Target): boolean => {
    const { failed } = judge(policy, ask, rule, target);
    return failed === undefined || failed === "scope";
  };
  const known = (name: string): readonly Target[] => {
    const target = policy.targets.get(name);
    return target === undefined ? [] : [target];
  };
  return (
    kindsFor(policy, ask).some((rule) => {
      const onRecord = rule.allow !== "client_credentials" && rule.consent === "record";
      return (
        !onRecord &&
        rule.targets
          .slice(0, 1)
          .flatMap(known)
          .some((target) => allows(rule, target))
      );
    }) ||
    ask.consents
      .flatMap(({ targets }) => targets.flatMap(known))
      .some((target) => candidates(policy, ask, target).some((rule) => allows(rule, target)))
  );
}

/** Judges one rule of the exchange policy (PROD-2.6-7): whether it allows the request at a target. */

import { ACT_HOPS_MAX, SKEW_SECONDS, TOKEN_SECONDS_MIN } from "../limits/tokens.ts";
import { MODES, staysInside } from "../modes.ts";
import { defined } from "../result.ts";
import { fitsAct } from "../spec/rfc8693.ts";
import { matchesPattern } from "../spec/spiffe/id.ts";
import { purposesOf } from "../spec/transaction-tokens.ts";
import type { AccessRequest, Condition, Consent, ConsentUsed, Fallen, Subject } from "./access.ts";
import { type Bound, bind, isProven } from "./binding.ts";
import { lackOf } from "./claims.ts";
import { type NarrowedDetails, narrowDetails, UNLIMITED } from "./narrow-details.ts";
import { replacementsOf } from "./products.ts";
import {
  allowsRefresh,
  type CodeRule,
  clientsOf,
  consentOf,
  type ExchangeRule,
  endsJobHere,
  hasSubject,
  hopsMaxOf,
  idJagSubjectsOf,
  isFor,
  type PolicySet,
  type Rule,
  SELF,
  type SubjectRule,
  type Target,
} from "./rules.ts";

export type Judged = {
  rule: Rule;
  failed?: Condition;
  scope: readonly string[];
  fallen?: readonly Fallen[];
  /** What it leaves of the details; absent where that was not asked. */
  narrowed?: NarrowedDetails;
  consent?: ConsentUsed;
  expiresAtSeconds: number;
  /** Present if the rule allows the request. */
  bound?: Bound;
};

/** `waived` are conditions that count as met, so that what lacks besides them is found. */
export function judge(
  policy: PolicySet,
  access: AccessRequest,
  rule: Rule,
  target: Target,
  waived: readonly Condition[] = NONE,
): Judged {
  const fail = (failed: Condition): Judged => ({ rule, failed, scope: [], expiresAtSeconds: 0 });
  const failed = unmet(policy, access, rule, waived);
  if (failed !== undefined) return fail(failed);
  // JOB-D-7, JOB-D-10
  if (!fitsJob(policy, access, rule, target) && !waived.includes("job")) return fail("job");

  const isRecord = consentOf(rule) === "record" && !waived.includes("consent");
  const consents = isRecord ? access.consents : [undefined];
  const fitting = consents.filter((one) => one === undefined || covers(policy, one, access, target));
  if (fitting.length === 0) return fail("consent"); // PROD-2.6-4

  if (isTooDeep(policy, access, rule) && !waived.includes("chain_depth")) return fail("chain_depth");

  const binding = bind(access, rule, target);
  if (!binding.ok && !waived.includes(binding.error)) return fail(binding.error);
  const bound = binding.ok ? binding.value : undefined;

  const expiresAtSeconds = endOf(access, rule, bound);
  const isShort = expiresAtSeconds - access.nowSeconds < TOKEN_SECONDS_MIN;
  if (isShort && !waived.includes("lifetime")) return fail("lifetime");

  const grants = fitting.map((consent) => {
    const { scope, fallen } = intersectScopes(access, rule, target, consent);
    const narrowed = isLimited(access, rule, consent)
      ? narrowDetails(policy, access, rule, target, consent, scope)
      : UNLIMITED;
    return { consent, scope, fallen, narrowed };
  });
  const grant = grants.length > 1 ? grants.toSorted(byGain)[0] : grants[0];
  if (grant === undefined || grant.scope.length === 0 || isRefusedWhole(target, grant)) {
    return defined<Judged>({ ...fail("scope"), fallen: grant?.fallen });
  }
  const { consent, scope, fallen, narrowed } = grant;
  if (narrowed.failed !== undefined) return defined<Judged>({ ...fail(narrowed.failed), fallen, narrowed });
  const under =
    consent &&
    defined<ConsentUsed>({
      id: consent.id,
      version: consent.version,
      expiresAtSeconds: consent.expiresAtSeconds,
    });
  return defined<Judged>({
    rule,
    scope,
    fallen,
    narrowed,
    // RTE-D-6: the user's word has an end, and nothing that rests on it is good for longer.
    expiresAtSeconds: Math.min(expiresAtSeconds, consent?.expiresAtSeconds ?? expiresAtSeconds),
    consent: under,
    bound,
  });
}

/** TXN-D-4: a purpose that is too wide refuses the request, and does not fall away. */
const isRefusedWhole = ({ transaction }: Target, { fallen }: { fallen: readonly Fallen[] }): boolean =>
  transaction !== undefined && fallen.length > 0;

/** The end of what the rule allows, without that of a consent. */
function endOf(access: AccessRequest, rule: Rule, bound: Bound | undefined): number {
  const longest = Math.min(
    access.nowSeconds + rule.lifetimeSeconds,
    bound?.endsAtSeconds ?? Number.POSITIVE_INFINITY,
    access.endsAtSeconds ?? Number.POSITIVE_INFINITY,
    access.job?.bounds.notAfterSeconds ?? Number.POSITIVE_INFINITY,
    claimsEnd(rule, access.subject) ?? Number.POSITIVE_INFINITY,
  );
  // RFC7521-4.1-5: a grant or a code lives for a minute, and what it is redeemed for as long as the rule says.
  // REFRESH-D-12: a refresh token lasts, and nothing that it gives lasts longer.
  const isBounded = isFor(rule, "subject_token") || access.subject?.tokenType === "refresh_token";
  const ends = isBounded ? access.subject?.expiresAtSeconds : undefined;
  return Math.min(longest, ends ?? longest);
}

/** Whether any side limits by details. */
const isLimited = ({ details, subject, job }: AccessRequest, rule: Rule, consent?: Consent): boolean =>
  (details ?? subject?.details ?? rule.details ?? rule.demands ?? consent?.details ?? job?.bounds.details) !==
  undefined;

const NONE: readonly Condition[] = [];

/** The conditions behind which nothing can be judged. */
const LAST: readonly Condition[] = ["scope", "details", "details_type"];

/** The rule as it was judged, with each further condition that does not hold, as if those before it held. */
export function withAllLacks(
  policy: PolicySet,
  access: AccessRequest,
  judged: Judged,
  target: Target,
): Judged & { also: readonly Condition[] } {
  const lacks: Condition[] = [];
  let last = judged;
  while (last.failed !== undefined && !lacks.includes(last.failed)) {
    lacks.push(last.failed);
    if (LAST.includes(last.failed)) break;
    last = judge(policy, access, judged.rule, target, lacks);
  }
  const { fallen, narrowed } = last;
  return defined<Judged & { also: readonly Condition[] }>({
    ...judged,
    fallen,
    narrowed,
    also: lacks.slice(1),
  });
}

type Grant = { consent: Consent | undefined; scope: readonly string[]; narrowed: NarrowedDetails };

/** The consent that leaves more scopes comes first, then one that cuts nothing of the details, then the smaller id. */
const byGain = (a: Grant, b: Grant): number =>
  gainOf(b) - gainOf(a) ||
  b.scope.length - a.scope.length ||
  Number(a.narrowed.isCut) - Number(b.narrowed.isCut) ||
  ((a.consent?.id ?? "") < (b.consent?.id ?? "") ? -1 : 1);

const gainOf = ({ scope, narrowed }: Grant): number => (narrowed.failed === undefined ? scope.length : 0);

/**
 * JOB-D-7, JOB-D-10: whether the rule is for requests with or without a job, and whether agent and target are within the
 * bounds of the job. JOB-D-16: to a partner that does not end what it gave for a job, a grant leaves only where the rule
 * says that the job ends here.
 */
export function fitsJob(
  policy: PolicySet,
  { job, workload, clientId }: Pick<AccessRequest, "job" | "workload" | "clientId">,
  rule: Rule,
  target: Target,
): boolean {
  if (job === undefined) return rule.jobs !== "required";
  if (rule.jobs === "never") return false;
  const { agents, targets } = job.bounds;
  if (agents?.includes(workload ?? clientId) === false) return false;
  if (targets?.some((name) => policy.targets.get(name) === target) === false) return false;
  return target.partner === undefined || target.partner.jobs === "honours" || endsJobHere(rule);
}

/** The first condition on caller, subject and subject token that does not hold. */
export function unmet(
  policy: PolicySet,
  access: AccessRequest,
  rule: Rule,
  waived: readonly Condition[] = NONE,
): Condition | undefined {
  const { subject, workload } = access;
  const { actors } = rule;
  if (
    actors !== undefined &&
    !actors.some((one) => workload !== undefined && matchesPattern(one, workload)) &&
    !waived.includes("actor")
  ) {
    return "actor"; // PROD-2.6-2, PROD-7.3-2
  }
  // PLAT-D-10: neither what is for the client alone, nor what is for the workload alone.
  const isOneSided = access.forWorkload && (actors === undefined || clientsOf(rule) === undefined);
  if (isOneSided && !waived.includes("actor")) return "actor";
  if (!hasSubject(rule)) return undefined;
  if (subject === undefined) return "subject";
  const lacks = (condition: Condition, holds: boolean): boolean => !holds && !waived.includes(condition);
  if (lacks("subject_issuer", rule.subjects.issuers.includes(subject.origin.iss))) return "subject_issuer";
  if (lacks("subject", rule.subjects.subs?.includes(subject.origin.sub) ?? true)) return "subject";
  // PCL-D-1: after the issuer, which alone says what the claims of its own subjects are.
  const { claims: demands } = rule.subjects;
  const lack =
    demands === undefined || subject.claims === "assumed"
      ? undefined
      : lackOf(demands, subject.claims, access.nowSeconds);
  if (lack !== undefined && lacks(lack, false)) return lack;
  if (isFor(rule, "subject_token") && lacks("subject_token", permits(policy, access, rule, subject)))
    return "subject_token";
  // REFRESH-D-10: a rule that no longer allows refresh tokens also stops those that were given before.
  if (subject.tokenType === "refresh_token" && lacks("subject_token", allowsRefresh(rule)))
    return "subject_token";
  if (isFor(rule, "code")) {
    if (lacks("sign_in", isSignedIn(rule, subject, access.nowSeconds))) return "sign_in";
    // MCPC-D-20, RFC9126-4-4: this is checked while the request is at hand, and not again when its code is redeemed.
    if (rule.pushed && lacks("pushed", access.pushed !== false)) return "pushed";
  }
  if (lacks("subject_key", mayPresent(policy, access, rule, subject))) return "subject_key";
  // RFC8693-4.4-2: the token holds the consent; that it names this caller is checked for every rule at once.
  if (rule.consent === "may_act" && lacks("consent", subject.mayAct !== undefined)) return "consent";
  return undefined;
}

/** PCL-D-8: what rests on claims is good for no longer than they are. */
const claimsEnd = (rule: Rule, subject: Subject | undefined): number | undefined =>
  hasSubject(rule) && rule.subjects.claims !== undefined && typeof subject?.claims === "object"
    ? subject.claims.untilSeconds
    : undefined;

/** OIDC-D-7: what the provider did not say does not count, so an absent class or time meets no demand. */
function isSignedIn(
  { acr, signInSecondsMax }: CodeRule,
  { signIn = {} }: Subject,
  nowSeconds: number,
): boolean {
  if (acr !== undefined && (signIn.acr === undefined || !acr.includes(signIn.acr))) return false;
  if (signInSecondsMax === undefined) return true;
  const { authTimeSeconds = Number.NEGATIVE_INFINITY } = signIn;
  return nowSeconds <= authTimeSeconds + signInSecondsMax + SKEW_SECONDS;
}

/** PROD-4.1v6-6: a delegation adds the caller as a hop; a redemption adds none, as the redeeming client is not an actor. */
export function isTooDeep(policy: PolicySet, { workload, subject, job }: AccessRequest, rule: Rule): boolean {
  const { chain } = MODES[rule.allow];
  const { maxDepth } = job?.bounds ?? {};
  // JOB-D-10: behind a chain that is hidden, nothing would tell any more how deep it is.
  if (chain === "hidden" && maxDepth !== undefined) return (subject?.chain.length ?? 0) > 0;
  if (chain !== "grows" && chain !== "kept") return false;
  const hop = { sub: workload ?? "", iss: policy.issuer };
  const hops = [...(chain === "grows" ? [hop] : []), ...(subject?.chain ?? [])];
  return hops.length > Math.min(hopsMaxOf(rule), maxDepth ?? ACT_HOPS_MAX) || !fitsAct(hops);
}

/**
 * PROD-2.6-5, PROD-7.3-1: the subject token's audience or scope lets it be exchanged. An audience does so only
 * for the caller it was meant for; a scope that the rule names may stand in for it.
 */
function permits(policy: PolicySet, access: AccessRequest, rule: ExchangeRule, subject: Subject): boolean {
  const { audiences, scopes } = rule.subjectToken;
  // IDJAG-4.3-3: a token that is no identity assertion becomes an ID-JAG only where the rule lists its type.
  if (access.requestedType === "id-jag" && !idJagSubjectsOf(rule).includes(subject.tokenType)) return false;
  const meant = meantForCaller(policy, access, subject);
  // IDJAG-4.3.3-2, IDC-5.3-1: an ID-JAG is made only of a token that is meant for its caller, against stolen tokens.
  if (access.requestedType === "id-jag" && !meant) return false;
  // TXN-D-3: what is used inside is made of what came in at its requester, or of what is used inside already.
  if (staysInside(rule.allow) && !meant) return false;
  // TXN-D-10, TXN-13.15-3
  if (subject.tokenType === "txn_token" && (subject.replaced ?? 0) >= replacementsOf(rule)) return false;
  if (scopes?.some((scope) => subject.scopes.includes(scope))) return true;
  const named = subject.audiences.some(
    (name) =>
      (name !== SELF && audiences?.includes(name)) ||
      (audiences?.includes(SELF) && owns(policy, access.workload, name)),
  );
  return named && meant;
}

/** PROD-4.1v6-5: the token's audience is the caller, a target that the caller owns, or our issuer. */
export function meantForCaller(policy: PolicySet, access: AccessRequest, subject: Subject): boolean {
  return subject.audiences.includes(policy.issuer) || isAudience(policy, access, subject);
}

/**
 * Whether the caller may ask about tokens for this audience: a workload that owns the target, or a client that the
 * target names.
 */
export function mayIntrospect(
  policy: PolicySet,
  { clientId, workload }: Pick<AccessRequest, "clientId" | "workload">,
  audience: string,
): boolean {
  const named = policy.targets.get(audience)?.introspectors.includes(clientId) ?? false;
  return named || owns(policy, workload, audience);
}

/** Whether the caller may ask about tokens of any target. */
export const isIntrospector = (
  policy: PolicySet,
  caller: Pick<AccessRequest, "clientId" | "workload">,
): boolean => [...policy.targets.keys()].some((name) => mayIntrospect(policy, caller, name));
const isAudience = (
  policy: PolicySet,
  { clientId, workload }: AccessRequest,
  { audiences }: Subject,
): boolean =>
  audiences.some((name) => name === clientId || name === workload || owns(policy, workload, name));

/**
 * RFC9449-4.3-12, RFC8705-3-3: the holder of the key of a bound token may exchange it. By a rule with `boundSubject`
 * "audience" the API that received it may do so too, which checked that the sender held the key. Our own issuer as
 * audience does not make the caller such an API, since every caller may have such a token.
 */
function mayPresent(policy: PolicySet, access: AccessRequest, rule: SubjectRule, subject: Subject): boolean {
  if (holdsKey(access, subject)) return true;
  return "boundSubject" in rule && rule.boundSubject === "audience" && isAudience(policy, access, subject);
}

/** Whether the token is not bound, or the caller proved the key that it is bound to. */
export const holdsKey = ({ keys = {} }: AccessRequest, { boundTo }: Subject): boolean =>
  boundTo === undefined || keys === "assumed" || isProven(boundTo, keys);

function owns(policy: PolicySet, workload: string | undefined, name: string): boolean {
  const target = policy.targets.get(name);
  return target !== undefined && ownsTarget(target, workload);
}

export const ownsTarget = ({ owners }: Pick<Target, "owners">, workload: string | undefined): boolean =>
  workload !== undefined && owners.some((owner) => matchesPattern(owner, workload));

function covers(
  policy: PolicySet,
  consent: Consent,
  { subject, workload, clientId, job, nowSeconds }: AccessRequest,
  target: Target,
): boolean {
  return (
    consent.origin.iss === subject?.origin.iss &&
    consent.origin.sub === subject.origin.sub &&
    consent.actor === (workload ?? clientId) &&
    // JOB-D-6: what was given for one job counts in no other, and not without it.
    (consent.jobId === undefined || (consent.jobId === job?.id && consent.jobIssuer === job.iss)) &&
    consent.targets.some((name) => policy.targets.get(name) === target) &&
    (consent.expiresAtSeconds ?? Number.POSITIVE_INFINITY) - nowSeconds >= TOKEN_SECONDS_MIN
  );
}

/**
 * PAGE-D-34: what of a record still counts: the targets that are in force under its names, each with those of its scopes
 * that it has, which may be none. The exchange asks the same of the one target of its request.
 */
export const inForceOf = (
  { targets: known }: Pick<PolicySet, "targets">,
  { targets, scopes }: Pick<Consent, "targets" | "scopes">,
): readonly { target: Target; name: string; scopes: readonly string[] }[] =>
  targets.flatMap((name) => {
    const target = known.get(name);
    return target === undefined
      ? []
      : [{ target, name, scopes: scopes.filter((one) => target.scopes.includes(one)) }];
  });

/** TXN-D-4: the scopes of a token that is used inside are purposes already; those of any other permit some. */
export const scopesAt = ({ transaction }: Target, { tokenType, scopes }: Subject): readonly string[] =>
  transaction === undefined || tokenType === "txn_token" ? scopes : purposesOf(transaction, scopes);

/** PROD-2.6-6, PROD-8.2-1: the scope is requested ∩ subject token ∩ client ∩ rule ∩ target ∩ job ∩ consent. */
function intersectScopes(
  { scope, subject, clientScopes, job }: AccessRequest,
  rule: Rule,
  target: Target,
  consent: Consent | undefined,
): { scope: readonly string[]; fallen: readonly Fallen[] } {
  const granted: string[] = [];
  const fallen: Fallen[] = [];
  const held = subject && scopesAt(target, subject);
  // RFC6749-3.3-4: a request without scope gets all that the other sides allow; RFC6749-3.3-1: each scope counts once.
  for (const one of new Set(scope ?? subject?.scopes ?? rule.scopes)) {
    if (held?.includes(one) === false) fallen.push({ scope: one, at: "subject_token" });
    else if (clientScopes?.includes(one) === false) fallen.push({ scope: one, at: "client" });
    else if (!rule.scopes.includes(one)) fallen.push({ scope: one, at: "rule" });
    else if (!target.scopes.includes(one)) fallen.push({ scope: one, at: "target" });
    else if (job?.bounds.scopes?.includes(one) === false) fallen.push({ scope: one, at: "job" });
    else if (consent !== undefined && !consent.scopes.includes(one))
      fallen.push({ scope: one, at: "consent" });
    else granted.push(one);
  }
  return { scope: granted, fallen };
}

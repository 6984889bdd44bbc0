/**
 * The decision of the exchange policy (PROD-2.6-1): which actor, for which subject, with which scopes, and why. It is
 * pure and total, it does not depend on rule order, exactly one rule decides, and the rules that were judged come back
 * as a trace.
 */

import { exchanges, MODES, redeems, staysInside } from "../modes.ts";
import { defined, err, ok, type Result, sparse } from "../result.ts";
import { mayActNames } from "../spec/rfc8693.ts";
import type {
  AccessRequest,
  Allowed,
  Condition,
  Denied,
  MissingConsent,
  Product,
  Subject,
  Trace,
} from "./access.ts";
import {
  fitsJob,
  holdsKey,
  isTooDeep,
  type Judged,
  judge,
  meantForCaller,
  ownsTarget,
  unmet,
  withAllLacks,
} from "./judge.ts";
import { detailsRefuse, withGovernedScopes } from "./narrow-details.ts";
import {
  asksUser,
  candidates,
  consentOf,
  kindsFor,
  type PolicySet,
  type Rule,
  type Target,
} from "./rules.ts";
import { clientIdAt } from "./targets.ts";

const unlessEmpty = <T>(list: readonly T[] = []): readonly T[] | undefined =>
  list.length > 0 ? list : undefined;

const deny = (kind: Denied["kind"], reason: Denied["reason"], trace: Trace = []) =>
  err({ kind, reason, trace });

export function decide(policy: PolicySet, asked: AccessRequest): Result<Allowed, Denied> {
  const { subject } = asked;
  if (MODES[asked.mode].chain === "grows" && asked.workload === undefined) {
    return deny("policy_denied", "actor_without_workload"); // PROD-2.6-3
  }
  if (subject !== undefined) {
    const refused = subjectRefuses(policy, asked, subject);
    if (refused !== undefined) return deny("policy_denied", refused);
  }
  const aimed = aim(policy, asked);
  if (!aimed.ok) return aimed;
  const { audience, target } = aimed.value;
  const product = productOf(asked, target, audience);
  if (!product.ok) return product;
  const refused = asked.details && detailsRefuse(asked, asked.details, target);
  if (refused !== undefined) return deny(refused.kind, refused.reason);
  const access = asked.details ? withGovernedScopes(asked, asked.details, target) : asked;

  const judged = candidates(policy, access, target).map((rule) => judge(policy, access, rule, target));
  const best = judged.filter((one) => one.failed === undefined).reduce<Judged | undefined>(better, undefined);
  if (best !== undefined) {
    const { rule, scope, narrowed, consent, expiresAtSeconds, bound } = best;
    return ok(
      sparse<Allowed>({
        rule,
        target,
        product: product.value,
        audience,
        scope,
        details: narrowed?.details,
        lapsed: unlessEmpty(narrowed?.lapsed),
        expiresAtSeconds,
        consent,
        demand: bound?.demand ?? "none",
        confirmation: bound?.confirmation,
        trace: traceOf(judged),
      }),
    );
  }
  const lacking = judged.map((one) => withAllLacks(policy, access, one, target));
  const { alone, missing } = missingConsent(policy, access, target, judged);
  // POLICY-D-21: it is told as what lacks, whatever the rules and consents for other targets allow.
  const { error } = alone
    ? deny("policy_denied", "consent_missing", traceOf(lacking))
    : refusal(policy, access, judged, traceOf(lacking));
  return err(
    defined<Denied>({ ...error, missing, notAsked: missing ? undefined : notAsked(lacking, alone) }),
  );
}

const traceOf = (judged: readonly (Judged & { also?: readonly Condition[] })[]): Trace =>
  judged.map(({ rule, failed, also, fallen, narrowed }) =>
    defined({
      rule: rule.id,
      failed,
      also: unlessEmpty(also),
      fallen: unlessEmpty(fallen),
      fallenDetails: unlessEmpty(narrowed?.fallen),
    }),
  );

/** Why no user is asked, where a rule lacks a consent. */
function notAsked(
  lacking: readonly (Judged & { also: readonly Condition[] })[],
  alone: boolean,
): Denied["notAsked"] {
  const lackConsent = lacking.filter(({ failed, also }) => failed === "consent" || also.includes("consent"));
  if (lackConsent.length === 0) return undefined;
  return alone || !lackConsent.some(({ rule }) => isAskedFor(rule))
    ? "rule_asks_no_user"
    : "more_than_consent_missing";
}

/** The refusal where no rule allows the request at its target: the caller is told what would help it most. */
function refusal(policy: PolicySet, access: AccessRequest, judged: readonly Judged[], trace: Trace) {
  if (judged.some((one) => one.failed === "scope"))
    return deny("scope_refused", staysInside(access.mode) ? "purpose_not_allowed" : "scope_empty", trace);
  const emptied = judged.filter((one) => one.failed === "details");
  if (emptied.length > 0) {
    const fell = emptied.some(({ narrowed }) => narrowed?.fallen !== undefined);
    return deny("details_refused", fell ? "details_empty" : "details_demanded", trace);
  }
  if (judged.some((one) => one.failed === "details_type")) {
    return deny("target_refused", "details_type_not_at_target", trace);
  }
  if (judged.some((one) => one.failed === "lifetime")) {
    return deny("policy_denied", "subject_token_expires_too_soon", trace);
  }
  // RFC9449-5.2-1, RFC8705-3.4-2: the caller only has to prove a key, or to leave the proof away.
  if (judged.some((one) => one.failed === "binding"))
    return deny("binding_refused", "binding_not_proven", trace);
  if (judged.some((one) => one.failed === "binding_conflict")) {
    return deny("binding_refused", "binding_excluded", trace);
  }
  // JOB-D-7: the caller only has to ask for a job.
  if (access.job === undefined && judged.some((one) => one.failed === "job"))
    return deny("policy_denied", "job_required", trace);
  // RFC8693-2.2.2-3: the caller may act for this subject, only not at this target.
  // POLICY-D-21: what a consent for this target lacks is not told by those for others.
  const lacksConsent = judged.some((one) => one.failed === "consent");
  if (!lacksConsent && mayActElsewhere(policy, access))
    return deny("target_refused", "target_not_allowed", trace);
  // PROD-1.5-2, PROD-7.1-1: no rule allows it; the reason is the last condition that any rule reached.
  const furthest = FURTHEST.find(([condition]) => judged.some((one) => one.failed === condition));
  return deny("policy_denied", furthest?.[1] ?? "no_rule", trace);
}

/** Rules whose consent a user is asked for: by the link of an agent, or whenever a client of people wants a code. */
const isAskedFor = (rule: Rule): boolean => asksUser(rule) || MODES[rule.allow].asks === "by_request";

/**
 * PROD-2.6-4: what such a rule would allow if the user had consented to all that the target has; `alone`, whether some rule
 * lacks a consent and nothing else.
 */
function missingConsent(
  policy: PolicySet,
  access: AccessRequest,
  target: Target,
  judged: readonly Judged[],
): { missing?: MissingConsent; alone: boolean } {
  const { subject } = access;
  if (subject === undefined) return { alone: false };
  const consents = [
    {
      id: "",
      version: 0,
      origin: subject.origin,
      actor: access.workload ?? access.clientId,
      targets: target.names,
      scopes: target.scopes,
    },
  ];
  const met = judged.flatMap(({ rule, failed }) => {
    const matters =
      failed === "consent" || isAskedFor(rule) || ("consent" in rule && rule.consent === "record");
    if (failed === undefined || !matters || !ASKABLE.includes(failed)) return [];
    const under = judge(policy, { ...access, consents }, rule, target);
    return under.failed === undefined ? [{ failed, under }] : [];
  });
  const best = met
    .map(({ under }) => under)
    .filter(({ rule }) => isAskedFor(rule))
    .reduce<Judged | undefined>(better, undefined);
  const missing =
    best &&
    defined<MissingConsent>({ rule: best.rule, target, scope: best.scope, details: best.narrowed?.details });
  return defined<{ missing?: MissingConsent; alone: boolean }>({
    missing,
    // POLICY-D-21: one that gives less of this target is the same lack as none; a grant of the user says what it gives.
    alone: met.some(({ failed }) => failed === "consent" || isExchange(access)),
  });
}

const isExchange = ({ mode }: AccessRequest): boolean => MODES[mode].brings === "subject_token";

/** The conditions that a consent of the user could meet. */
const ASKABLE: readonly Condition[] = ["consent", "scope", "details"];

const FURTHEST: readonly (readonly [Condition, Denied["reason"]])[] = [
  ["chain_depth", "chain_too_deep"],
  ["consent", "consent_missing"],
  ["job", "job_does_not_permit"],
  ["sign_in", "sign_in_insufficient"],
  ["pushed", "request_not_pushed"],
  ["subject_key", "subject_key_not_proven"],
  ["subject_token", "subject_token_does_not_permit"],
  ["claims_too_old", "claims_too_old"],
  ["claims_overage", "claims_overage"],
  ["claims_unreadable", "claims_unreadable"],
  ["claims_differ", "claims_differ"],
  ["claims_absent", "claims_absent"],
];

/** The reasons for which the subject token itself is refused, whatever the rules allow. */
function subjectRefuses(
  policy: PolicySet,
  access: AccessRequest,
  subject: Subject,
): Denied["reason"] | undefined {
  const { issuer } = policy;
  const parties =
    MODES[access.mode].chain === "grows" ? [access.workload] : [access.clientId, access.workload];
  // IDJAG-9.9-3, IDJAG-9.9-4: a bound grant is redeemed by the holder of its key alone.
  if (redeems(access.mode) && !holdsKey(access, subject)) return "subject_key_not_proven";
  const { mayAct } = subject;
  if (mayAct !== undefined) {
    // RFC8693-4.4-2: `may_act` only restricts; a rule still has to allow the party that it names.
    const named = parties.some(
      (sub) => sub !== undefined && mayActNames(mayAct, { sub, iss: issuer }, subject.issuer),
    );
    if (!named) return "may_act_names_another";
  }
  if (subject.origin.iss === issuer && parties.includes(subject.origin.sub)) return "actor_is_subject";
  // PROD-4.1v6-5: a delegated token is exchanged onward only by the party that received it; a grant has us as audience.
  const delegated = exchanges(access.mode) && subject.chain.length > 0;
  if (delegated && !meantForCaller(policy, access, subject)) return "not_meant_for_caller";
  return undefined;
}

/**
 * Finds the target: the requested one, or for client credentials and redemption else the one that scope or rules imply
 * (RFC9068-3-4, RFC9068-3-5).
 */
function aim(policy: PolicySet, access: AccessRequest): Result<{ audience: string; target: Target }, Denied> {
  if (access.target !== undefined) {
    const target = policy.targets.get(access.target);
    if (target === undefined) return deny("target_refused", "target_unknown");
    // IDC-2.3.3-2, IDJAG-3.1-4, IDJAG-4.3-2: a grant's audience is the partner's issuer, by whatever name it was requested.
    return ok({ audience: target.partner?.issuer ?? access.target, target });
  }
  if (exchanges(access.mode)) {
    return deny("target_refused", "target_missing"); // PROD-4.1-30
  }
  const allowed = new Set<Target>();
  for (const rule of candidates(policy, access)) {
    if (unmet(policy, access, rule) !== undefined || isTooDeep(policy, access, rule)) continue;
    for (const name of rule.targets) {
      const target = policy.targets.get(name);
      if (target !== undefined && fitsJob(policy, access, rule, target)) allowed.add(target);
    }
  }
  const { details } = access;
  const scope = access.scope ?? (details === undefined ? access.subject?.scopes : undefined);
  const fitting = [...allowed].filter(
    (target) =>
      (scope?.some((one) => target.scopes.includes(one)) ?? true) &&
      (details?.every(({ type }) => target.details.has(type)) ?? true),
  );
  const [target, another] = fitting;
  if (another !== undefined) {
    // RFC9068-3-6: the request is refused, because its scopes are those of several targets and it names none.
    return access.scope === undefined
      ? deny("target_refused", "target_missing")
      : deny("scope_refused", "scope_ambiguous");
  }
  if (target !== undefined) return ok({ audience: target.names[0] ?? "", target });
  if (allowed.size === 0) return deny("policy_denied", "no_rule");
  return details === undefined
    ? deny("scope_refused", "scope_empty")
    : deny("details_refused", "details_type_unknown");
}

/** PROD-4.1v7-4, RFC8693-2.1-14: the kind of target decides what is issued, and a requested type has to fit it. */
function productOf(access: AccessRequest, target: Target, audience: string): Result<Product, Denied> {
  const { mode, requestedType, resources = [], subject } = access;
  const { partner } = target;
  // A client alone has no subject to convey, and another domain's grant is first redeemed for a token of ours.
  if (partner !== undefined && !exchanges(mode)) {
    return deny("target_refused", "target_is_partner");
  }
  if (!fitsKind(access, target)) return deny("policy_denied", "token_type_not_for_target");
  if (target.transaction !== undefined) {
    // TXN-5.1-2, TXN-11.1-1: the purpose of a transaction is said, and not implied by what its caller could have.
    if (access.scope === undefined) return deny("policy_denied", "transaction_scope_missing");
    // TXN-D-1: the workloads of another domain get nothing here, whatever a rule says.
    if (!ownsTarget(target, access.workload)) return deny("target_refused", "workload_not_in_domain");
    // TXN-13.15-1: a replacement is for the same domain, also for a workload of both.
    const isOfAnother = subject?.tokenType === "txn_token" && !subject.audiences.includes(audience);
    return isOfAnother
      ? deny("policy_denied", "transaction_of_another_domain")
      : ok({ kind: "txn_token", domain: target.transaction });
  }
  // EMA-7.6.1-1: only the APIs that were agreed with this partner may be named; no other target has any.
  const known = requestedType === "id-jag" ? partner?.resources : undefined;
  if (!resources.every((one) => known?.includes(one))) return deny("target_refused", "resource_not_allowed");
  if (partner === undefined || requestedType === "access_token") return ok({ kind: "access_token" });
  const clientIdThere = clientIdAt(partner, access.clientId);
  // IDJAG-3.1-5, IDJAG-5-1: a client without a name at the partner could not redeem it there.
  if (requestedType === "id-jag" && clientIdThere === undefined) {
    return deny("policy_denied", "client_unknown_at_partner");
  }
  const profile = requestedType === "id-jag" ? "id-jag" : "jwt";
  return ok(defined<Product>({ kind: "grant", profile, resources, clientIdThere }));
}

/**
 * PROD-1.7-3: a partner gets no access token, and a resource server no ID-JAG. Whatever these two get is a JWT. TXN-D-1: a
 * trust domain gets transaction tokens alone, and alone gets them.
 */
function fitsKind({ mode, requestedType = "jwt" }: AccessRequest, { partner, transaction }: Target): boolean {
  const isInside = staysInside(mode);
  if (isInside !== (transaction !== undefined) || isInside !== (requestedType === "txn_token")) return false;
  return (
    isInside || requestedType === "jwt" || (requestedType === "access_token") === (partner === undefined)
  );
}

/**
 * PROD-2.6-10: of two rules that allow, the one decides that grants more, then (RAR-D-5) the one that cuts nothing of the
 * requested details, then the one with the smaller id, which comes first.
 */
function better(best: Judged | undefined, one: Judged): Judged {
  if (best === undefined || one.scope.length > best.scope.length) return one;
  const isAlike = one.scope.length === best.scope.length;
  return isAlike && best.narrowed?.isCut && !one.narrowed?.isCut ? one : best;
}

/**
 * Whether some rule would let the caller act for this subject at another target. Where consent is on record, only the
 * targets of a consent are tried; elsewhere one target for each kind of rule, so that ten thousand rules cost no more.
 */
function mayActElsewhere(policy: PolicySet, access: AccessRequest): boolean {
  const allows = (rule: Rule, target: Target): boolean => {
    if (!fitsKind(access, target)) return false;
    const { failed } = judge(policy, access, rule, target);
    return failed === undefined || failed === "scope";
  };
  const known = (name: string): readonly Target[] => {
    const target = policy.targets.get(name);
    return target === undefined ? [] : [target];
  };
  return (
    kindsFor(policy, access)
      .filter((rule) => consentOf(rule) !== "record")
      .some((rule) =>
        rule.targets
          .slice(0, 1)
          .flatMap(known)
          .some((target) => allows(rule, target)),
      ) ||
    access.consents
      .flatMap(({ targets }) => targets.flatMap(known))
      .some((target) => candidates(policy, access, target).some((rule) => allows(rule, target)))
  );
}

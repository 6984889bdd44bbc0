/**
 * Whether what was issued is still within every limit in force: client, workload, subject, rule, target and consent. A
 * limit that is narrowed or removed reaches what is out, from the next request on; nothing is written for that.
 */
import type { TokenReason } from "../audit/reasons.ts";
import { MODES } from "../modes.ts";
import { demandOfClient, isUnbound, meets } from "../policy/binding.ts";
import type { ClaimsWord } from "../policy/claims.ts";
import { checkConforms, isWithin } from "../policy/details.ts";
import { limitsOf } from "../policy/narrow-details.ts";
import { type Caller, candidates, hasSubject, hopsMaxOf, type Rule, type Target } from "../policy/rules.ts";
import type { StoredConsent, TokenRecord } from "../records.ts";
import { defined, err, ok, type Result } from "../result.ts";
import { type DocumentSettings, documentPlace } from "../settings/client-metadata.ts";
import type { Client, Settings } from "../settings/settings.ts";
import { nameHere } from "../settings/subject-names.ts";
import { isDocumentUrl, parseDocumentUrl } from "../spec/cimd.ts";
import { JWT_BEARER_GRANT } from "../spec/rfc7523.ts";
import { isAdmitted } from "../spec/spiffe/client-auth.ts";
import { matchesPattern, parseSpiffeId } from "../spec/spiffe/id.ts";
import { isPlatformName, isWorkloadName, parsePlatformId, takesName } from "../spec/workload-grant.ts";
import { meetsClaims } from "./subject-claims.ts";

/** What is known now of the parties of one token. */
export type CurrentFacts = {
  /**
   * Absent for a workload without registration, and for a client with a metadata document, because that is not fetched.
   */
  client?: Client;
  consent?: StoredConsent;
  /** What the issuer of the subject said of it last. */
  claims?: ClaimsWord;
  /** The token of ours from which it was exchanged. */
  parent?: TokenRecord;
};

type Limits = Pick<Settings, "issuer" | "policy" | "trustedIssuers" | "platforms"> & DocumentSettings;
type Judged = Result<undefined, TokenReason>;
const STANDS = ok(undefined);

export function stillCovers(
  record: TokenRecord,
  { client, consent, claims, parent }: CurrentFacts,
  limits: Limits,
  nowSeconds: number,
): Judged {
  const { policy } = limits;
  const known = checkClient(record, client, limits);
  if (!known.ok) return known;
  const subject = checkSubject(limits, record.origin, record.subject);
  if (!subject.ok) return subject;
  const rule = policy.rules.get(record.ruleId);
  if (rule === undefined) return err("token_rule_gone");
  if (!isTrustedFor(record, rule, limits)) return err("token_issuer_narrowed");
  if (!mayHave(client, rule, record)) return err("token_client_narrowed");
  const target = policy.targets.get(record.audience);
  if (target === undefined) return err("token_target_gone");
  const { scopes } = target;
  if (!scopesOf(record).every((one) => scopes.includes(one))) return err("token_target_narrowed");
  // RAR-D-11: a type or field that is gone, or a value that is not taken any more, limits nothing at the target.
  if (!checkConforms(target.details, record.details ?? []).ok) return err("token_target_narrowed");
  // RFC9449-5-1, RFC8705-3-1: what a target demands from now on, it also demands of the tokens that were issued before.
  const { confirmation } = record;
  if (!meets(target.binding, confirmation)) return err("token_target_narrowed");
  // RFC9449-5.2-1, RFC8705-3.4-2: the same holds for what a client demands.
  if (!meets(demandOfClient(client?.bindsBy, target), confirmation)) return err("token_client_narrowed");
  const unbound = parent?.confirmation !== undefined && confirmation === undefined;
  if (unbound && !isUnbound(rule)) return err("token_rule_narrowed");
  if (!allows(rule, record, client, target, limits, nowSeconds)) return err("token_rule_narrowed");
  // PCL-D-9: a user who left the group has nothing left of what rests on it, from the next request on.
  if (!meetsClaims(limits, rule, record, claims, nowSeconds)) return err("token_claims_changed");
  return checkConsent(record, consent, target, rule, limits, nowSeconds);
}

const scopesOf = ({ scope }: TokenRecord): readonly string[] => (scope === "" ? [] : scope.split(" "));

// --- parties ----------------------------------------------------------------------------------------------------

function checkClient(record: TokenRecord, client: Client | undefined, limits: Limits): Judged {
  const { clientId, workload } = record;
  if (client === undefined && isDocumentUrl(clientId)) {
    // A setting tells whether documents of this origin are accepted; the document itself is fetched when it is needed.
    const url = parseDocumentUrl(clientId);
    if (!url.ok || !documentPlace(url.value, limits).ok) return err("token_client_gone");
  } else if (client === undefined && !isWorkloadName(clientId)) {
    return err("token_client_gone");
  }
  if (client !== undefined && !isVouchedFor(client, limits)) return err("token_client_gone");
  if (workload !== undefined && isPlatformName(workload)) return checkPlatform(limits, workload, record);
  const id = workload === undefined ? undefined : parseSpiffeId(workload);
  if (workload === undefined || !id?.ok) return STANDS;
  if (client?.workload !== undefined) {
    return client.workload === workload ? STANDS : err("token_workload_changed");
  }
  if (
    client !== undefined &&
    !("spiffeId" in client.auth && matchesPattern(client.auth.spiffeId, workload))
  ) {
    return err("token_workload_changed");
  }
  const admit = limits.trustDomains.get(id.value.trustDomain)?.admit;
  if (admit === undefined) return err("token_workload_gone");
  const byOperator = client?.source === "configuration" || client?.source === "operator";
  return byOperator || isAdmitted(admit, workload) ? STANDS : err("token_workload_gone");
}

/** PLAT-D-16: a registration that is removed, disabled or narrowed ends the tokens of its workloads. */
function checkPlatform(
  { platforms, trustedIssuers }: Pick<Limits, "platforms" | "trustedIssuers">,
  name: string,
  record?: TokenRecord,
): Judged {
  const id = parsePlatformId(name);
  const registration = id && platforms.get(id.registration);
  if (id === undefined || registration === undefined) return err("token_workload_gone");
  if (trustedIssuers.get(registration.issuer)?.disabledSubjects.has(id.named.join("/")))
    return err("subject_disabled");
  if (!takesName(registration, id)) return err("token_workload_gone");
  const isBrought = record !== undefined && isBroughtGrant(record);
  const needsClient = record !== undefined && registration.clients?.includes(record.clientId) === false;
  return needsClient || (isBrought && !registration.uses.includes("grant"))
    ? err("token_workload_gone")
    : STANDS;
}

/** PLAT-D-10: a client brought the grant of a workload, which is the subject. */
const isBroughtGrant = ({ clientId, workload, origin }: TokenRecord): boolean =>
  workload !== undefined && isPlatformName(workload) && origin.sub === workload && clientId !== workload;

/** RFC7523-3-2: a client that other issuers vouch for is one only as long as one of them still does. */
const isVouchedFor = ({ auth }: Client, { trustedIssuers }: Limits): boolean =>
  !("vouchers" in auth) ||
  auth.vouchers.some(({ issuer }) => trustedIssuers.get(issuer)?.vouches !== undefined);

/** A disabled issuer or subject is refused in our own tokens too. */
export function checkOrigin(
  limits: Pick<Settings, "issuer" | "trustedIssuers" | "platforms">,
  { iss, sub }: TokenRecord["origin"],
): Judged {
  const { issuer, trustedIssuers } = limits;
  if (iss === issuer) return isPlatformName(sub) ? checkPlatform(limits, sub) : STANDS;
  const trusted = trustedIssuers.get(iss);
  if (trusted === undefined) return err("origin_not_trusted");
  return trusted.disabledSubjects.has(sub) ? err("subject_disabled") : STANDS;
}

/**
 * RFC7519-4.1.2-v1: a subject that has another name here by now is refused, since the old one may be that of another
 * subject.
 */
export function checkSubject(
  limits: Pick<Settings, "issuer" | "trustedIssuers" | "platforms">,
  origin: TokenRecord["origin"],
  sub: string,
): Judged {
  const standing = checkOrigin(limits, origin);
  const trusted = limits.trustedIssuers.get(origin.iss);
  if (!standing.ok || trusted === undefined) return standing;
  const named = nameHere(trusted.subjects, origin.sub);
  return named.ok && named.value === sub ? STANDS : err("token_issuer_narrowed");
}

/** Whether the issuer of the subject is still trusted for that. */
function isTrustedFor(
  { origin, ancestors }: TokenRecord,
  { allow }: Rule,
  { issuer, trustedIssuers }: Limits,
): boolean {
  const trusted = trustedIssuers.get(origin.iss);
  if (origin.iss === issuer || trusted === undefined) return origin.iss === issuer;
  const { brings } = MODES[allow];
  if (brings === "grant") return trusted.grants !== undefined;
  // What was exchanged from a token of ours is judged with that token.
  return brings !== "subject_token" || ancestors.length > 0 || trusted.acceptAs.length > 0;
}

function mayHave(client: Client | undefined, rule: Rule, record: TokenRecord): boolean {
  if (client === undefined) return true;
  const { grantTypes, scopes } = client;
  return (
    grantTypes.includes(isBroughtGrant(record) ? JWT_BEARER_GRANT : MODES[rule.allow].grantType) &&
    (scopes === undefined || scopesOf(record).every((one) => scopes.includes(one)))
  );
}

// --- rule and consent -------------------------------------------------------------------------------------------

/** Judges what was issued, and not the subject token that it was issued for, which was judged when it was exchanged. */
function allows(
  rule: Rule,
  record: TokenRecord,
  client: Client | undefined,
  target: Target,
  limits: Limits,
  nowSeconds: number,
): boolean {
  const { clientId, origin, chain, issuedAtSeconds } = record;
  const ofClient = origin.sub === clientId || isBroughtGrant(record);
  if (!namesCaller(rule, record, client, target, limits)) return false;
  if (!scopesOf(record).every((one) => rule.scopes.includes(one))) return false;
  const { details: types } = target;
  const limit = rule.details?.filter(({ type }) => types.has(type));
  if (!isWithin(types, record.details, limit)) return false;
  const isMissing = (type: string): boolean => !record.details?.some((one) => one.type === type);
  if (rule.demands?.some(isMissing)) return false;
  if (issuedAtSeconds + rule.lifetimeSeconds <= nowSeconds) return false;
  if (!hasSubject(rule)) return origin.iss === limits.issuer && ofClient;
  const { issuers, subs } = rule.subjects;
  if (!issuers.includes(origin.iss) || subs?.includes(origin.sub) === false) return false;
  const { chain: shown } = MODES[rule.allow];
  return shown === "hidden" || chain.length <= (shown === "none" ? 0 : hopsMaxOf(rule));
}

/** Whether the rule still names this caller, and this target. */
function namesCaller(
  rule: Rule,
  record: TokenRecord,
  client: Client | undefined,
  target: Target,
  { policy }: Limits,
): boolean {
  const { clientId, workload } = record;
  const registrationClass = client?.registrationClass;
  const caller = defined<Caller>({ mode: rule.allow, clientId, workload, registrationClass });
  const isActor = (one: string): boolean => workload !== undefined && matchesPattern(one, workload);
  return candidates(policy, caller, target).includes(rule) && rule.actors?.some(isActor) !== false;
}

function checkConsent(
  record: TokenRecord,
  consent: StoredConsent | undefined,
  target: Target,
  rule: Rule,
  { policy }: Limits,
  nowSeconds: number,
): Judged {
  if (record.consentId === undefined) {
    if (!hasSubject(rule)) return STANDS;
    // An impersonation shows no `may_act`, and its record has none either.
    const named = MODES[rule.allow].chain === "hidden" || record.mayAct !== undefined;
    const lacks = rule.consent === "record" || (rule.consent === "may_act" && !named);
    return lacks ? err("token_rule_narrowed") : STANDS;
  }
  if (consent === undefined || consent.withdrawnAtSeconds !== undefined) return err("token_consent_gone");
  const isOfJob = consent.jobId === record.jobId && consent.jobIssuer === record.jobIssuer;
  if (consent.jobId !== undefined && !isOfJob) return err("token_consent_narrowed");
  const { targets, scopes, expiresAtSeconds = Number.POSITIVE_INFINITY } = consent;
  if (expiresAtSeconds <= nowSeconds) return err("token_consent_gone");
  const covers =
    targets.some((name) => policy.targets.get(name) === target) &&
    scopesOf(record).every((one) => scopes.includes(one)) &&
    isWithin(target.details, record.details, consent.details && limitsOf(policy, consent, target));
  return covers ? STANDS : err("token_consent_narrowed");
}

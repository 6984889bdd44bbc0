/**
 * Consent records (PROD-2.6-4): users manage their own, with a token that an issuer in `consents.issuers` gave them
 * directly; administrators manage those of every user. A token that came from an exchange is refused, because an agent
 * that holds it could consent to itself.
 */

import type { AuditEvent, AuditedToken } from "../audit/event.ts";
import type { Reason } from "../audit/reasons.ts";
import type { Consent, Origin } from "../policy/access.ts";
import { type ConsentBody, type ConsentFailure, parseConsent } from "../policy/consent.ts";
import { foreignKeys } from "../policy/endings.ts";
import { inForceOf } from "../policy/judge.ts";
import { consentsAudience } from "../policy/own-target.ts";
import type { BasePorts, ForeignTokenPorts, Ports } from "../ports.ts";
import type { StoredConsent } from "../records.ts";
import { defined, err, ok, type Result } from "../result.ts";
import { type Jws, parseJws } from "../spec/rfc7515.ts";
import { checkSoleAudience } from "../spec/rfc7519.ts";
import { readConfirmation } from "../spec/rfc7800.ts";
import type { Json, JsonObject } from "../spec/rfc8259.ts";
import { checkKind } from "../spec/rfc8725.ts";
import { detailsJson } from "../spec/rfc9396.ts";
import { matchesPattern } from "../spec/spiffe/id.ts";
import { describeDetails, describeToken } from "./audit-fields.ts";
import {
  type ApiCaller,
  type ApiCallerPorts,
  type ApiRefusal,
  authorizeToken,
  type Bearer,
  checkHolder,
  describeCaller,
  type PresentedToken,
} from "./authorize-api.ts";
import { isDisabled, notDisabled } from "./endings.ts";
import { jobOverFor } from "./jobs.ts";
import {
  checkForeignTimes,
  findIssuer,
  foreignRoot,
  subjectOf as foreignSubject,
  mapSubject,
} from "./order/subject.ts";
import type { AuditedRequest } from "./refusal.ts";
import { checkOrigin } from "./still-covers.ts";
import { verifySigned } from "./subject-token.ts";

/** The party that manages consents: a user, for their own consents, or an administrator or operator, for all of them. */
export type Manager =
  | { by: "subject"; origin: Origin; token: AuditedToken }
  | { by: "administrator"; caller: ApiCaller }
  /** What an operator does on the host says so in its events. */
  | { by: "operator"; says: JsonObject };

/** Verifies the token of a manager. Its unverified `iss` only decides whether it is verified as ours or as a user's. */
/** Verifies a user by a token straight from their issuer. */
export type UserPorts = ForeignTokenPorts & Pick<Ports, "endings" | "throttle">;

export type ConsentPorts = BasePorts & Pick<Ports, "clients" | "consents" | "journal">;

export async function authorizeConsents(
  ports: ApiCallerPorts & UserPorts,
  token: Bearer,
): Promise<Result<Manager, ApiRefusal>> {
  if (!token.ok) return token;
  const jws = parseJws(token.value.token);
  if (!jws.ok) return err({ kind: "token_invalid", reason: jws.error.kind });
  if (jws.value.claims.iss !== ports.settings().issuer) {
    return verifyUser(ports, jws.value, token.value);
  }
  const caller = await authorizeToken(ports, token.value, "/consents");
  if (!caller.ok) return caller;
  if (caller.value.exchanged) return err({ kind: "token_invalid", reason: "token_was_exchanged" });
  return ok({ by: "administrator", caller: caller.value });
}

async function verifyUser(
  ports: UserPorts,
  jws: Jws,
  presented: PresentedToken,
): Promise<Result<Manager, ApiRefusal>> {
  const user = await readUser(ports, jws);
  if (!user.ok) return err({ kind: "token_invalid", reason: user.error.reason });
  const held = checkHolder(presented, readConfirmation(jws.claims));
  if (!held.ok) return err({ kind: "token_invalid", reason: held.error.reason });
  const waitSeconds = ports.throttle.spend(JSON.stringify(user.value));
  if (waitSeconds > 0) return err({ kind: "throttled", reason: "requests_too_many", waitSeconds });
  return ok({ by: "subject", origin: user.value, token: describeToken(ports, jws, "jwt") });
}

async function readUser(ports: UserPorts, jws: Jws): Promise<Result<Origin, { reason: Reason }>> {
  const { issuer: us, consentIssuers } = ports.settings();
  const { claims } = jws;
  const issuer = findIssuer(ports, claims);
  const rule = issuer.ok ? consentIssuers.get(issuer.value.issuer) : undefined;
  if (!issuer.ok || rule === undefined) return err({ reason: "issuer_not_for_consents" });
  const kind = checkKind(claims, "consentToken");
  if (!kind.ok) return err({ reason: kind.error.kind });
  const verified = await verifySigned(ports, issuer.value, rule.types, jws);
  if (!verified.ok) return verified;
  // The only audience is the consent endpoint, because with a token that can be exchanged too, its holder could
  // consent.
  const meant = checkSoleAudience(claims, [consentsAudience(us)]);
  if (!meant.ok) return err({ reason: meant.error.kind });
  const times = checkForeignTimes(ports, issuer.value, claims);
  if (!times.ok) return times;
  // RFC8693-4.1-1: with `act` the caller is an actor and not the user, whatever the claim holds.
  if (claims.act !== undefined) return err({ reason: "token_was_exchanged" });
  const clients = [claims.azp, claims.client_id].filter((one) => one !== undefined);
  const listed = clients.every((one) => typeof one === "string" && rule.clients.has(one));
  if (clients.length === 0 || !listed) return err({ reason: "client_not_for_consents" });
  const sub = foreignSubject(issuer.value, claims);
  if (!sub.ok) return err({ reason: sub.error.kind });
  const mapped = await mapSubject(ports, issuer.value, sub.value, claims);
  if (!mapped.ok) return mapped;
  const { origin } = mapped.value;
  // A stolen token that was ended for exchanges must not give the thief a consent either.
  const { issuedAtSeconds } = foreignRoot(issuer.value, claims);
  if (!(await ports.endings.isEnded(foreignKeys(ports.hash.sha256, origin, issuedAtSeconds))))
    return ok(origin);
  return err({ reason: (await isDisabled(ports, origin)) ? "subject_disabled" : "ended" });
}

// --- reading ----------------------------------------------------------------------------------------------------

export const PAGE_MAX = 100;

export type ConsentFilter = { origin?: Origin; afterId?: string; limit: number };

/** AUDIT-D-6: lists consents, the manager's own or those that the filter names; the access is recorded first. */
export async function listConsents(
  ports: ConsentPorts,
  manager: Manager,
  audited: AuditedRequest,
  { origin, afterId, limit }: ConsentFilter,
): Promise<readonly StoredConsent[]> {
  const whose = manager.by === "subject" ? manager.origin : origin;
  await ports.journal.record({ event: readEvent(ports, manager, audited, { ...whose }) });
  return ports.consents.list(whose, defined({ limit, afterId }));
}

/** PAGE-D-34: what an exchange would find of it. */
export async function consentState(
  ports: Pick<Ports, "settings" | "clock" | "hash" | "jobs" | "endings">,
  consent: StoredConsent,
): Promise<ConsentState> {
  const { withdrawnAtSeconds, expiresAtSeconds = Number.POSITIVE_INFINITY } = consent;
  if (withdrawnAtSeconds !== undefined) return "withdrawn";
  if (expiresAtSeconds <= ports.clock.nowSeconds()) return "expired";
  const over = await jobOverFor(ports, consent);
  if (over !== undefined) return JOB_STATES[over];
  const isLeft = inForceOf(ports.settings().policy, consent).some(({ scopes }) => scopes.length > 0);
  return isLeft ? "in-force" : "target-gone";
}

const JOB_STATES = {
  job_unknown: "job-unknown",
  job_ended: "job-ended",
  job_expired: "job-expired",
} as const;

export type ConsentState =
  | (typeof JOB_STATES)[keyof typeof JOB_STATES]
  | "withdrawn"
  | "expired"
  | "in-force"
  | "target-gone";

/** One consent, if the manager may manage it; a user gets no hint that another user's consent exists. */
export async function getConsent(
  ports: ConsentPorts,
  manager: Manager,
  audited: AuditedRequest,
  id: string,
): Promise<StoredConsent | undefined> {
  await ports.journal.record({ event: readEvent(ports, manager, audited, { consent: id }) });
  const found = await ports.consents.find(id);
  return found !== undefined && mayManage(manager, found) ? found : undefined;
}

function mayManage(manager: Manager, { origin }: StoredConsent): boolean {
  if (manager.by !== "subject") return true;
  return origin.iss === manager.origin.iss && origin.sub === manager.origin.sub;
}

// --- changing ---------------------------------------------------------------------------------------------------

export type ChangeFailure = {
  kind:
    | ConsentFailure["kind"]
    | "subject_refused"
    | "subject_disabled"
    | "actor_is_caller"
    | "id_taken"
    | "version_differs"
    | "not_found";
};

/** The state that the caller expects: no consent yet, or this version; undefined accepts any. */
export type Expected = "none" | number | undefined;

/** A change is tried twice, in case the same consent is changed by another request at the same time. */
const ATTEMPTS_MAX = 2;

/** Records a new consent, or replaces one by its next version; refusals are recorded too. */
export async function putConsent(
  ports: ConsentPorts,
  manager: Manager,
  audited: AuditedRequest | undefined,
  put: { id: string; json: Json; expected: Expected },
): Promise<Result<{ consent: Consent; created: boolean }, ChangeFailure>> {
  const { id, expected } = put;
  const refuse = (kind: ChangeFailure["kind"]) => refuseChange(ports, manager, audited, id, { kind });
  const body = parseConsent(put.json, ports.settings().policy, ports.clock.nowSeconds());
  if (!body.ok) return refuse(body.error.kind);
  const origin = subjectOf(ports, manager, body.value);
  if (!origin.ok) return refuse(origin.error);
  const { actor, targets, scopes, details, expiresAtSeconds } = body.value;
  if (await isCaller(ports, manager, actor)) return refuse("actor_is_caller");

  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const before = await ports.consents.find(id);
    if (before !== undefined && !isSame(before, origin.value, actor)) return refuse("id_taken");
    // A withdrawn consent is never restored, because the tokens issued under it would become valid again.
    if (before?.withdrawnAtSeconds !== undefined) return refuse("id_taken");
    if (!fits(expected, before)) return refuse("version_differs");
    const version = (before?.version ?? 0) + 1;
    const consent = defined<Consent>({
      id,
      version,
      origin: origin.value,
      actor,
      targets,
      scopes,
      details,
      expiresAtSeconds,
    });
    const event = changeEvent(ports, manager, audited, "consent.recorded", consent);
    const change = before === undefined ? { add: consent } : { replace: consent };
    const guards = [notDisabled(ports, origin.value)];
    const recorded = await ports.journal.record({ event, consent: change, guards });
    if (recorded.ok) return ok({ consent, created: before === undefined });
    if (recorded.error.includes("not_ended")) return refuse("subject_disabled");
  }
  return refuse("version_differs");
}

/** Withdraws a consent, which ends the tokens issued under it; refusals are recorded too. */
export async function withdrawConsent(
  ports: ConsentPorts,
  manager: Manager,
  audited: AuditedRequest,
  { id, expected }: { id: string; expected: Expected },
): Promise<Result<undefined, ChangeFailure>> {
  const refuse = (kind: ChangeFailure["kind"]) => refuseChange(ports, manager, audited, id, { kind });
  const before = await ports.consents.find(id);
  if (before === undefined || !mayManage(manager, before)) return refuse("not_found");
  if (!fits(expected, before)) return refuse("version_differs");
  const event = changeEvent(ports, manager, audited, "consent.withdrawn", before);
  const recorded = await ports.journal.record({
    event,
    consent: { withdraw: id, atSeconds: ports.clock.nowSeconds() },
  });
  return recorded.ok ? ok(undefined) : refuse("not_found");
}

function fits(expected: Expected, before: Consent | undefined): boolean {
  return (
    expected === undefined || (expected === "none" ? before === undefined : before?.version === expected)
  );
}

/**
 * The subject of the consent. A user consents for themselves only; an administrator names a subject of a trusted issuer or
 * of this server.
 */
function subjectOf(
  { settings }: BasePorts,
  manager: Manager,
  { subject }: ConsentBody,
): Result<Origin, "subject_refused" | "subject_disabled"> {
  const own = manager.by === "subject" ? manager.origin : undefined;
  const named = subject ?? own;
  const isOthers = own !== undefined && (named?.iss !== own.iss || named.sub !== own.sub);
  if (named === undefined || isOthers) return err("subject_refused");
  const stands = checkOrigin(settings(), named);
  if (stands.ok) return ok(named);
  return err(stands.error === "subject_disabled" ? stands.error : "subject_refused");
}

/** Whether the consent names the administrator's own client as actor, which is refused. */
async function isCaller(ports: Pick<Ports, "clients">, manager: Manager, actor: string): Promise<boolean> {
  if (manager.by !== "administrator") return false;
  const { clientId } = manager.caller;
  if (actor === clientId) return true;
  const client = await ports.clients.find(clientId);
  if (client === undefined) return false;
  const { auth, workload } = client;
  return actor === workload || ("spiffeId" in auth && matchesPattern(auth.spiffeId, actor));
}

const isSame = (before: Consent, origin: Origin, actor: string): boolean =>
  before.origin.iss === origin.iss && before.origin.sub === origin.sub && before.actor === actor;

// --- the record -------------------------------------------------------------------------------------------------

function who(manager: Manager): Pick<AuditEvent, "client" | "subject" | "reason"> {
  if (manager.by === "operator") return { reason: "by_operator" };
  return manager.by === "subject"
    ? { subject: { ...manager.origin, kind: "user", token: manager.token }, reason: "by_subject" }
    : { client: describeCaller(manager.caller), reason: "by_administrator" };
}

const saidBy = (manager: Manager): JsonObject => (manager.by === "operator" ? manager.says : {});

function readEvent(
  ports: BasePorts,
  manager: Manager,
  audited: AuditedRequest | undefined,
  detail: JsonObject,
): AuditEvent {
  const { digest } = ports.settings().policy;
  return defined<AuditEvent>({
    type: "admin.access",
    outcome: "allow",
    ...who(manager),
    request: audited,
    policy: { digest },
    detail: { ...detail, ...saidBy(manager) },
  });
}

function changeEvent(
  ports: BasePorts,
  manager: Manager,
  audited: AuditedRequest | undefined,
  type: "consent.recorded" | "consent.withdrawn",
  { id, version, origin, actor, targets, scopes, details, expiresAtSeconds: expires }: Consent,
): AuditEvent {
  const { policy } = ports.settings();
  return defined<AuditEvent>({
    type,
    outcome: "allow",
    ...who(manager),
    request: audited,
    policy: { digest: policy.digest, consent: id },
    detail: defined<JsonObject>({
      ...origin,
      version,
      actor,
      targets: [...targets],
      scope: scopes.join(" "),
      authorization_details: detailsJson(details && describeDetails(ports.hash, policy.details, details)),
      expires_at: expires,
      ...saidBy(manager),
    }),
  });
}

/** AUDIT-D-2: the refusal is recorded with its reason before it is returned. */
async function refuseChange(
  ports: ConsentPorts,
  manager: Manager,
  audited: AuditedRequest | undefined,
  id: string,
  failure: ChangeFailure,
): Promise<{ ok: false; error: ChangeFailure }> {
  const event = readEvent(ports, manager, audited, { consent: id });
  await ports.journal.record({ event: { ...event, outcome: "deny", reason: failure.kind } });
  return err(failure);
}

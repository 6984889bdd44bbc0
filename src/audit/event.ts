/**
 * The audit event: our own design (clauses AUDIT-D), after RFC 8417 and RFC 9162.
 * Covers the fields of one event, and the bytes that are hashed into the chain of one log.
 */

import type { Mode } from "../modes.ts";
import type { Loose } from "../result.ts";
import type { BoundTo, Confirmation } from "../spec/rfc7800.ts";
import type { Json, JsonObject } from "../spec/rfc8259.ts";
import type { Chain } from "../spec/rfc8693.ts";
import { canonicalizeSparse } from "../spec/rfc8785.ts";
import type { Detail } from "../spec/rfc9396.ts";
import type { Reason } from "./reasons.ts";

export const EVENT_TYPES = [
  "client.authenticated",
  "client.auth_failed",
  "client.registered",
  "client.updated",
  "client.disabled",
  "client.removed",
  "client.registration_denied",
  "initial_access_token.created",
  "initial_access_token.revoked",
  "replay.detected",
  "token.issued",
  "token.denied",
  "token.refreshed",
  "refresh.issued",
  "refresh.retried",
  "refresh.retried_elsewhere",
  "refresh.reuse_detected",
  "refresh.ended",
  "token.revoked",
  "subject.disabled",
  "subject.enabled",
  "job.ended",
  "token.revocation_denied",
  "token_exchange.delegation",
  "token_exchange.impersonation",
  "token_exchange.transaction",
  "token_exchange.denied",
  "token.introspected",
  "deferral.opened",
  "deferral.granted",
  "deferral.refused",
  "deferral.cancelled",
  "grant.redeemed",
  "grant.denied",
  "consent.recorded",
  "consent.withdrawn",
  "job.approved",
  "job.refused",
  "authorization.denied",
  "authorization.expired",
  "user.signed_in",
  "user.signin_failed",
  "user.signed_out",
  "user.rechecked",
  "config.changed",
  "admin.access",
  "key.created",
  "key.rotation_ordered",
  "key.rotated",
  "key.retired",
  "key.removed",
  "key.withdrawn",
  "key.reencrypted",
  "trust_bundle.updated",
  "trust_bundle.failed",
  "key_set.updated",
  "key_set.failed",
  "signal.received",
  "signal.ignored",
  "signal.refused",
  "signal.expired",
  "signal.delayed",
  "signal.unreachable",
  "signal.reachable",
  "log.genesis",
  "log.ended",
  "log.retired",
  "log.resumed",
  "log.checkpoint",
  "log.pruned",
  "log.verification_failed",
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** A token as recorded in the audit trail: enough to recognise it, never the token itself (AUDIT-D-3). */
export type AuditedToken = {
  type: string;
  jti?: string;
  iat?: number;
  exp?: number;
  aud?: readonly string[];
  scope?: string;
  client_id?: string;
  /** The key that it is bound to. */
  cnf?: BoundTo;
  /** The transaction of a transaction token (TXN-D-14). */
  txn?: string;
  /** SHA-256 of the signing input (base64url), which does not change with the encoding of the signature. */
  fingerprint: string;
};

/**
 * Whether the caller got a link to its user, by the digest of the pending consent's id, or why it got none;
 * `answered` where the user had decided before. The event that ends the pending consent has how often it was asked again
 * meanwhile, and when last (AUDIT-D-13).
 */
export type AskedUser =
  | { pending: string; answered?: true; count?: number; last?: string }
  | {
      refused:
        | "pending_consents_too_many"
        | "request_decided"
        | "deferrals_too_many"
        | "deferrals_cancelled"
        | "deferral_too_short"
        | NotAsked;
    };

/** What the event that ends a pending consent has of it; polls that an earlier event told are not told again. */
export function askedUntilNow(
  pending: string,
  { polls, polledAtSeconds = 0, pollsRecorded }: Polled,
): AskedUser {
  const count = polls - pollsRecorded;
  return count > 0 ? { pending, count, last: new Date(polledAtSeconds * 1000).toISOString() } : { pending };
}

type Polled = { polls: number; polledAtSeconds?: number; pollsRecorded: number };

export type Meant = { asked: string; known: string };

/** Why the decision asks no user for a consent that lacks (POLICY-D-21). */
export type NotAsked = "rule_asks_no_user" | "more_than_consent_missing" | "user_cannot_sign_in";

/**
 * REPL-D-1: what the decision of the policy read and no other member says; null: it had none, though another member says
 * otherwise. An event without them has no decision.
 */
export type DecisionFacts = {
  /** By what the client's metadata bind its tokens. */
  bind?: string;
  /** The end of the certificate that was proven, and its thumbprint where it is not `client.x5t`. */
  cert?: readonly [notAfter: number, x5t?: string];
  /** The class in which the client is registered. */
  class?: string;
  /** Id and version of each consent of the subject to the caller; of the used one, which `policy` names, its version. */
  consents?: "many" | readonly (number | readonly [id: string, version: number])[];
  /** The requested details; values that are private stand as digests. */
  details?: readonly Detail[];
  /** Nothing lasts longer, because of the token that proved the caller. */
  ends?: number;
  /** The client brought the grant of the workload. */
  for?: true;
  /** The end of another server's job. */
  job_ends?: number;
  job_id?: string | null;
  /** The time that was used, in seconds since 1970. */
  now: number;
  /** The bounds of a job that was asked for. */
  proposes?: JsonObject;
  pushed?: boolean;
  resources?: readonly string[];
  scope?: string | null;
  /** The scopes of the client that take something from the request, or may do so. */
  scopes?: string;
  /** Our name of the subject. */
  sub?: string;
  subject?: SubjectFacts | null;
  target?: string | null;
  type?: string | null;
  /** The types of details that the client is registered for. */
  types?: readonly string[];
  workload?: string | null;
};

/** Of the subject, what its token as recorded does not say; `acr` and `since` are of the user's sign-in. */
export type SubjectFacts = {
  acr?: string;
  aud?: readonly string[];
  chain?: Chain;
  /** PCL-D-7: by claim, digests of the values that rules name, or why there are none; when they were true, and until when. */
  claims?: { at: number; until: number; said: Readonly<Record<string, readonly string[] | string>> };
  cnf?: BoundTo | null;
  details?: readonly Detail[];
  exp?: number;
  issuer?: string;
  may_act?: JsonObject | null;
  origin?: { iss: string; sub: string };
  /** TXN-D-10: how often a transaction token was replaced before. */
  replaced?: number;
  scope?: string;
  since?: number;
  type?: string;
};

export type AuditEvent = {
  type: EventType;
  outcome: "allow" | "deny" | "error";
  /** A precise, stable code; it is never sent to the caller. */
  reason: Reason;
  /**
   * `trace` is what the caller said of its own trace (W3C Trace Context): a claim by which records are found elsewhere.
   */
  request?: {
    id: string;
    endpoint: string;
    source_ip: string;
    trace?: { trace_id: string; parent_id: string };
  };
  client?: {
    client_id: string;
    auth_method: string;
    /** Where the client comes from (CIMD-7.1-2); absent for a workload without registration. */
    source?: string;
    /** The agent of the operator for which what the client calls itself could be taken (NAME-D-3). */
    name_like?: string;
    /** The workload's SPIFFE ID, or the name of a platform's workload. */
    workload?: string;
    /** PLAT-D-17: the registration of that workload, its name there, and the claims that the registration demands. */
    platform?: {
      registration: string;
      iss: string;
      sub: string;
      claims: JsonObject;
      fingerprint: string;
      /** PLAT-D-9: a `client_id` that came beside its grant. */
      ignored_client_id?: string;
    };
    /** Key, type, audience and `jti` of the client's assertion, or the thumbprint of its certificate. */
    kid?: string;
    typ?: string;
    aud?: string;
    jti?: string;
    x5t?: string;
    /** The thumbprint of the key that its DPoP proof proved. */
    jkt?: string;
  };
  mode?: Mode;
  subject?: { iss: string; sub: string; kind: "user" | "workload"; token: AuditedToken };
  actor?: { iss: string; sub: string; token: AuditedToken };
  /** The whole chain of the subject token, current actor first. */
  chain?: Chain;
  may_act?: JsonObject;
  /**
   * REFRESH-D-19: the refresh family, which a user gave by a click, and the number of the refresh token that was
   * presented.
   */
  grant?: { id: string; generation?: number };
  /** JOB-D-8: the job; `iss` is there for another server's. */
  job?: { id: string; iss?: string };
  requested?: {
    audience: readonly string[];
    resource: readonly string[];
    scope?: string;
    requested_token_type?: string;
    /** Why the agent asks, in its own words and cut (NAME-D-7). */
    reason?: string;
  };
  policy?: {
    digest: string;
    rule_id?: string;
    consent?: string;
    /** RAR-D-6: the types of details of the subject token that the rule let lapse. */
    lapsed?: readonly string[];
    /** PROD-2.6-8: the rule issued without asking the subject, and its author acknowledged that. */
    acknowledged?: "subjects-not-asked";
    /** The rule let an unbound token come out of a bound one. */
    unbound?: true;
    /** The pending consent that a refusal opened, or that a user decided about. */
    asked?: AskedUser;
    /** POLICY-D-22: names of the request that are unknown here, each with the known one that is like it. */
    meant?: readonly Meant[];
    trace?: Json;
  };
  granted?: {
    jti: string;
    issued_token_type?: string;
    token_type: string;
    sub: string;
    aud: string;
    scope: string;
    /** Values that are private stand as digests (RAR-D-13). */
    authorization_details?: readonly Detail[];
    exp: number;
    /** Of the issued token, as `AuditedToken` has it. */
    fingerprint: string;
    act_depth: number;
    kid: string;
    /** The key that it is bound to. */
    cnf?: Confirmation;
    /** `jti` of the tokens of ours from which this one was exchanged, nearest first (AUDIT-D-5). */
    parent_jti: readonly string[];
    /** TXN-D-14: the transaction. */
    txn?: string;
    /** TXN-D-8, TXN-15.1-1: the names of what a transaction token states as claimed and as verified, and of what was left out. */
    context?: { claimed: readonly string[]; dropped: readonly string[]; verified: readonly string[] };
  };
  error?: { error: string; status: number };
  facts?: DecisionFacts;
  /** The number of equal events in this record; only for failures before authentication, and for introspection. */
  count?: number;
  /** Further facts of events that are not decisions about a token. */
  detail?: JsonObject;
};

/** The position of an event in its log, and the secret of its parts (RCPT-D-1), assigned by the log's writer. */
export type LogPosition = {
  log: string;
  seq: number;
  id: string;
  timeMs: number;
  prev: string;
  salt: string;
};

/** AUDIT-D-12: the last record of a log, after which there is no other. */
export const LOG_END: EventType = "log.ended";

/**
 * REPL-D-1, RCPT-D-1: from version 2 on an event has what its decision read, and is hashed in parts. Records of version 1
 * have the other members alone, and are hashed as one text.
 */
export const RECORD_VERSION = 2;
/** The versions that are read. */
export const RECORD_VERSIONS: readonly unknown[] = [1, RECORD_VERSION];

export const GENESIS_PREV = "0".repeat(64);

/** The members of an event in its log; in order, so that there is nothing to sort. */
export function placeEvent(
  event: AuditEvent,
  { log, seq, id, timeMs, prev, salt }: LogPosition,
): Required<Loose<Sealed>> {
  const { actor, chain, client, count, detail, error, facts, grant, granted, job, may_act, mode } = event;
  const { outcome, policy, reason, request, requested, subject, type } = event;
  const time = new Date(timeMs).toISOString();
  return {
    actor,
    chain,
    client,
    count,
    detail,
    error,
    facts,
    grant,
    granted,
    id,
    job,
    log,
    may_act,
    mode,
    outcome,
    policy,
    prev,
    reason,
    request,
    requested,
    salt,
    seq,
    subject,
    time,
    type,
    v: RECORD_VERSION,
  };
}

/** The exact text that is stored (RFC8785-3.2.3-1). `prev` is the hash of the previous event of the same log. */
export const sealRecord = (record: Loose<Sealed>): string => canonicalizeSparse(record as unknown as Json);

type Sealed = AuditEvent & Omit<LogPosition, "timeMs"> & { time: string; v: typeof RECORD_VERSION };

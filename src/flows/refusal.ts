/** The answer of a flow that issues nothing: a failure for the caller, and the event that tells the auditor why. */

import type { AuditEvent } from "../audit/event.ts";
import type { Reason } from "../audit/reasons.ts";
import { UNREACHABLE_SECONDS } from "../limits/clients.ts";
import { REFRESH_WAIT_SECONDS } from "../limits/people.ts";
import type { Ending } from "../policy/endings.ts";
import type { KeyFailure } from "../ports.ts";
import type { Guard, PendingConsent, RowChange } from "../records.ts";

/**
 * MCPC-D-24: the same request may be accepted later, with nothing changed in it: the answer tells the seconds to wait. At
 * any other refusal a client may forget its registration or its user.
 */
export type PassingKind =
  /** The client's metadata document was good before and cannot be fetched now. */
  | "client_unreachable"
  /** The keys that verify what the request brings cannot be fetched now. */
  | "keys_unreachable"
  /** The provider of the user has not answered for too long. */
  | "provider_unreachable"
  | "throttled"
  | "overloaded";

export type FinalKind =
  | "request_malformed"
  | "client_refused"
  /** A client that sent no credential and is not known, or not known any more. */
  | "client_gone"
  | "client_unauthorized"
  | "grant_type_unsupported"
  | "token_refused"
  | "grant_refused"
  /** The token of a platform is signed well, and it is for the platform to issue a better one. */
  | "platform_refused"
  /** The same, and it is for the operator to admit its workload. */
  | "workload_not_admitted"
  /** The same two where the token came as the subject token of an exchange. */
  | "exchange_platform_refused"
  | "exchange_not_admitted"
  | "token_of_another"
  | "token_type_unsupported"
  | "policy_denied"
  | "target_refused"
  | "details_refused"
  | "scope_refused"
  | "binding_refused"
  | "proof_refused"
  | "nonce_demanded"
  /** The user has not decided: the client polls. */
  | "interaction_required"
  | "polled_too_soon"
  /** Nothing comes of a deferral any more. */
  | "deferral_ended"
  | "deferral_expired";

/** There are few kinds, because the wire tells little; `reason` is precise, and is for the audit trail alone. */
export type Failure = FinalFailure | (FailureFacts & { kind: PassingKind; waitSeconds: number });
export type FinalFailure = FailureFacts & { kind: FinalKind; waitSeconds?: never };

type FailureFacts = {
  reason: Reason;
  /** Which parameter is malformed, for the log. */
  parameter?: string;
  /** The algorithms of which the proof has none. */
  algorithms?: readonly string[];
  /** The registrations that match the same token of a platform. */
  registrations?: readonly string[];
  /** Why the job of what the caller presented, or its own job, gives nothing any more. */
  jobError?: "ended" | "expired" | "exhausted";
  /** All that a rule lacks, and the known names that are like unknown ones, for the log. */
  lacks?: string;
  meant?: string;
  /** A page at which the caller's user can give what is missing. */
  errorUri?: string;
  /** The same for a client that waits, and the code with which it polls. */
  interactionUri?: string;
  deferral?: { code: string; seconds: number };
};

/** `spends` is what the refusal uses up, as a token would; `ending` is what it ends, and `rows` and `question` change with it. */
export type RefusedRequest = {
  failure: Failure;
  event: AuditEvent;
  spends?: Guard;
  ending?: Ending;
  rows?: readonly RowChange[];
  question?: PendingConsent;
};

/** An answer without a token of which nothing is to be recorded any more. */
export type Unrecorded = { failure: Failure; event?: never };

/** MCPC-D-24: what becomes of keys that were not found: a new failure answers here, or does not compile. */
const OUTLOOK: Readonly<Record<KeyFailure, "passes" | "stays">> = {
  source_unknown: "stays",
  source_unavailable: "stays",
  source_silent: "passes",
  key_unknown: "stays",
  key_ambiguous: "stays",
};
const PASSING = Object.entries(OUTLOOK).flatMap(([end, outlook]) => (outlook === "passes" ? `_${end}` : []));

/** MCPC-D-24: what is refused only because keys cannot be fetched now may come again, and is not told as final. */
export function mayPass(failure: Failure): Failure {
  if (!PASSING.some((end) => failure.reason.endsWith(end))) return failure;
  return { ...failure, kind: "keys_unreachable", waitSeconds: UNREACHABLE_SECONDS };
}

/** Another use of the same family, or of the same code, came first, so that its state has to be read anew. */
export const REFRESH_RACED = "refresh_raced";
export const DEFERRAL_RACED = "deferral_raced";

/** REFRESH-D-5: what another request changed meanwhile says nothing of this one, so it may come again. */
export const raced = (reason: Reason): Failure => ({
  kind: "throttled",
  waitSeconds: REFRESH_WAIT_SECONDS,
  reason,
});

export const ASSERTION_REPLAYED = "assertion_replayed";
export const CODE_REPLAYED = "code_replayed";
export const GRANT_REPLAYED = "grant_replayed";

/** RFC7523-3-14: a client that sends a used assertion again is not authenticated, whatever else the request says. */
export function assertionReplayed(event: AuditEvent): RefusedRequest {
  return replayed(event, { kind: "client_refused", reason: ASSERTION_REPLAYED });
}

/** IDC-5.5-2, EMA-7.4.2-2: a grant is redeemed once. */
export function grantReplayed(event: AuditEvent): RefusedRequest {
  return replayed(event, { kind: "grant_refused", reason: GRANT_REPLAYED });
}

/** RFC8693-2.2.2-2: the same for a token of a platform that came as subject or actor. */
export function exchangeReplayed(event: AuditEvent): RefusedRequest {
  return replayed(event, { kind: "token_refused", reason: GRANT_REPLAYED });
}

/** RFC9449-11.1-2: a proof serves for one request. */
export function proofReplayed(event: AuditEvent): RefusedRequest {
  return replayed(event, { kind: "proof_refused", reason: "proof_replayed" });
}

/** RFC6749-4.1.2-3, RFC6749-10.5-2: a code is redeemed once. */
export function codeReplayed(event: AuditEvent): RefusedRequest {
  return replayed(event, { kind: "grant_refused", reason: CODE_REPLAYED });
}

function replayed(event: AuditEvent, failure: Failure): RefusedRequest {
  const { reason } = failure;
  return { failure, event: { ...refusedFor(event, reason), type: "replay.detected", outcome: "deny" } };
}

/** REPL-D-1: refused for another reason than that of its decision, an event has none, unless it says what was granted. */
export function refusedFor(event: AuditEvent, reason: Reason): AuditEvent {
  const { facts: _, ...rest } = event;
  return event.granted === undefined ? { ...rest, reason } : { ...event, reason };
}

export type AuditedRequest = NonNullable<AuditEvent["request"]>;

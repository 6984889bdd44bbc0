/** What a flow can come to besides a token: a refusal for the caller, with the event that tells the auditor why. */
import type { AuditEvent } from "../audit/event.ts";

/** Few kinds, because the wire tells little; `reason` is the precise one, for the audit trail alone. */
export type Failure = {
  kind:
    | "request_malformed"
    | "client_refused"
    | "client_unauthorized"
    | "grant_type_unsupported"
    | "token_refused"
    | "grant_refused"
    | "policy_denied"
    | "target_refused"
    | "details_refused"
    | "scope_refused"
    | "throttled";
  reason: string;
  /** Of a throttled request: when to come again. */
  waitSeconds?: number;
};

export type RefusedRequest = { failure: Failure; event: AuditEvent };

export const ASSERTION_REPLAYED = "assertion_replayed";

/** RFC7523-3-14: whoever sends a used assertion again is nobody, whatever else the request may say. */
export function assertionReplayed(event: AuditEvent): RefusedRequest {
  const reason = ASSERTION_REPLAYED;
  return {
    failure: { kind: "client_refused", reason },
    event: { ...event, type: "replay.detected", outcome: "deny", reason },
  };
}

/** IDC-5.5-2, EMA-7.4.2-2: a grant is good for one token. */
export function grantReplayed(event: AuditEvent): RefusedRequest {
  const reason = "grant_replayed";
  return {
    failure: { kind: "grant_refused", reason },
    event: { ...event, type: "replay.detected", outcome: "deny", reason },
  };
}

export type RequestNote = NonNullable<AuditEvent["request"]>;

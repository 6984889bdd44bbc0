/** What a flow can come to besides a token: a refusal for the caller, with the event that tells the auditor why. */
import type { AuditEvent } from "../spec/audit.ts";

/** Few kinds, because the wire tells little; `reason` is the precise one, for the audit trail alone. */
export type Failure = {
  kind:
    | "request_malformed"
    | "client_refused"
    | "client_unauthorized"
    | "grant_type_unsupported"
    | "token_refused"
    | "policy_denied"
    | "target_refused"
    | "scope_refused";
  reason: string;
};

export type Refusal = { failure: Failure; event: AuditEvent };

export type RequestNote = NonNullable<AuditEvent["request"]>;

/** What a browser is given next: a place to go to, or a page; `http/` alone knows how that is said. */
import type { Reason } from "../../audit/reasons.ts";
import type { AuditedRequest } from "../../flows/refusal.ts";
import { defined } from "../../result.ts";
import type { PeoplePorts } from "../ports.ts";
import type { PagePlace } from "../records.ts";

/** What a notice says, by the text of the catalogue. */
export type NoticeKind =
  | "request_invalid"
  | "client_unknown"
  | "client_unreachable"
  | "redirect_refused"
  | "request_gone"
  | "request_decided"
  | "sign_in_failed"
  | "sign_in_used"
  | "account_disabled"
  | "form_refused"
  | "session_over"
  | "taken_back_before"
  | "job_stopped_before"
  | "provider_down"
  | "busy"
  | "unavailable"
  | "ask_gone"
  | "job_over"
  | "jobs_too_many"
  | "ask_allowed"
  | "ask_refused"
  | "ask_refused_before";

export type NoticeFacts = {
  kind: NoticeKind;
  /** The reason, for the audit trail and the log. */
  reason: Reason;
  /** The malformed parameter, for the log. */
  parameter?: string;
  /** The known name that is like an unknown one of the request, for the log (POLICY-D-22). */
  meant?: string;
  /** PAGE-D-3: a way back to the client that the user may take, which names its host. */
  back?: string;
  /** A page at which the user can go on. */
  onwards?: PagePlace;
};

export type Outcome =
  | { next: "notice"; notice: NoticeFacts }
  /** Leads to the client with a code, or with an error; then `refused` is the reason, for the log. */
  | { next: "client"; location: string; refused?: Reason; meant?: string }
  | { next: "provider"; location: string }
  /** Leads to a page of our own, or to the sign-in before it. */
  | { next: "place" | "sign_in"; place: PagePlace };

export const notice = (kind: NoticeKind, reason: Reason, onwards?: PagePlace): Outcome => ({
  next: "notice",
  notice: defined<NoticeFacts>({ kind, reason, onwards }),
});

/**
 * Makes the notice of a refusal that is counted and has no event of its own, so that no page lets a visitor fill the
 * trail.
 */
export function countedNotice(
  { authFailures }: Pick<PeoplePorts, "authFailures">,
  audited: AuditedRequest,
  kind: NoticeKind,
  reason: Reason,
  onwards?: PagePlace,
): Outcome {
  authFailures.note(audited, reason);
  return notice(kind, reason, onwards);
}

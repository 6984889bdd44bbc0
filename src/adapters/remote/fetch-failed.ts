/** Why a fetch failed. */

import type { UrlFailure } from "../../spec/rfc3986.ts";

/** Each cause has a reason of its own, for the audit trail. */
export type FetchReason =
  | UrlFailure["kind"]
  | "name_unresolved"
  | "address_refused"
  | "peer_refused"
  | "connection_failed"
  | "certificate_expired"
  | "certificate_not_yet_valid"
  | "certificate_name_wrong"
  | "certificate_untrusted"
  | "tls_failed"
  | "endpoint_refused"
  | "protocol"
  | "headers_too_large"
  | "redirected"
  | "status"
  | "encoded"
  | "too_large"
  | "broke_off"
  | "not_utf8"
  | "timeout";

/** A failed fetch. The message is for our log and never sent to a caller. */
export class FetchFailed extends Error {
  override name = "FetchFailed";
  readonly reason: FetchReason;
  /** Of a response that was refused for its status: this, and its `Retry-After`, empty if absent. */
  readonly status: number | undefined;
  readonly retryAfter: string;

  constructor(reason: FetchReason, message: string, status?: number, retryAfter = "") {
    super(message);
    this.reason = reason;
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

export const late = (): FetchFailed => new FetchFailed("timeout", "no response in time");

const PASSING: readonly FetchReason[] = [
  "name_unresolved",
  "connection_failed",
  "certificate_expired",
  "certificate_not_yet_valid",
  "tls_failed",
  "broke_off",
  "timeout",
];
const TOO_MANY_REQUESTS = 429;

/** Whether the same fetch may succeed a moment later, with nothing changed at the place. */
export const maySucceedLater = ({ reason, status = 0 }: FetchFailed): boolean =>
  PASSING.includes(reason) || status === TOO_MANY_REQUESTS || status >= 500;

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

/** MCPC-D-24: what becomes of a failed fetch: a new reason answers here, or does not compile. */
const OUTLOOK: Readonly<Record<FetchReason, "passes" | "stays">> = {
  url_too_long: "stays",
  url_not_https: "stays",
  url_character_refused: "stays",
  url_userinfo: "stays",
  url_fragment: "stays",
  url_query_empty: "stays",
  url_path_missing: "stays",
  url_dot_segment: "stays",
  url_malformed: "stays",
  url_host_refused: "stays",
  url_port_refused: "stays",
  name_unresolved: "passes",
  address_refused: "stays",
  peer_refused: "stays",
  connection_failed: "passes",
  certificate_expired: "passes",
  certificate_not_yet_valid: "passes",
  certificate_name_wrong: "stays",
  certificate_untrusted: "stays",
  tls_failed: "passes",
  endpoint_refused: "stays",
  protocol: "stays",
  headers_too_large: "stays",
  redirected: "stays",
  // But for the statuses below.
  status: "stays",
  encoded: "stays",
  too_large: "stays",
  broke_off: "passes",
  not_utf8: "stays",
  timeout: "passes",
};
const TOO_MANY_REQUESTS = 429;

/** Whether the same fetch may succeed a moment later, with nothing changed at the place. */
export const maySucceedLater = ({ reason, status = 0 }: FetchFailed): boolean =>
  OUTLOOK[reason] === "passes" || status === TOO_MANY_REQUESTS || status >= 500;

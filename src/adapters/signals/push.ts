/** Delivers one security event: RFC 8935, https://www.rfc-editor.org/rfc/rfc8935.html */

import { JSON_DEPTH_MAX } from "../../limits/input.ts";
import { SIGNAL_ANSWER_BYTES_MAX } from "../../limits/signals.ts";
import { defined } from "../../result.ts";
import type { StreamSettings } from "../../settings/settings.ts";
import { isJsonObject, parseJson } from "../../spec/rfc8259.ts";
import { SECURITY_EVENT_TYPE } from "../../spec/rfc8417.ts";
import type { CheckedAgent } from "../remote/checked-agent.ts";
import { fetchDocument, type Posted } from "../remote/fetch.ts";
import { FetchFailed } from "../remote/fetch-failed.ts";

/** `cause`: for the operator, in words of ours; `retryAfter` as the receiver sent it. */
export type Pushed =
  | { is: "delivered" }
  | { is: "refused"; cause: string }
  | { is: "failed"; cause: string; retryAfter?: string };

const DELIVERED = 202;
const REFUSED = 400;
/** These may end without a change of the event: the receiver did not know us, or not as its transmitter. */
const PASSING: readonly unknown[] = ["authentication_failed", "access_denied"];

/**
 * RFC8935-2.3-1: 202 is delivered, 400 refused for good with an `err`. SSF-D-5: whatever else comes is tried again until
 * the event ends nothing any more, because the operator of either side can mend it, and the event is still true.
 */
export async function push(
  { endpoint, authorization }: StreamSettings,
  body: string,
  agent: CheckedAgent,
): Promise<Pushed> {
  // RFC8935-2.1-1, RFC8935-3-1, SSF-6.1-1
  const post = defined<Posted>({
    contentType: SECURITY_EVENT_TYPE,
    text: body,
    authorization,
    errors: [REFUSED],
  });
  try {
    const { status, text } = await fetchDocument(endpoint, SIGNAL_ANSWER_BYTES_MAX, { post, agent });
    if (status === DELIVERED) return { is: "delivered" };
    // A page of a proxy in between, say, was taken by no receiver.
    if (status !== REFUSED) return { is: "failed", cause: `status_${status}` };
    const json = parseJson(text, JSON_DEPTH_MAX);
    const err = json.ok && isJsonObject(json.value) ? json.value.err : undefined;
    if (typeof err !== "string" || PASSING.includes(err)) return { is: "failed", cause: `status_${status}` };
    return { is: "refused", cause: /^[a-z_]{1,64}$/.test(err) ? err : "other" };
  } catch (fault) {
    if (!(fault instanceof FetchFailed)) throw fault;
    const { status, reason, retryAfter } = fault;
    if (status === undefined) return { is: "failed", cause: reason };
    const asked = status === 429 || status === 503 ? retryAfter : undefined;
    return defined<Pushed>({ is: "failed", cause: `status_${status}`, retryAfter: asked });
  }
}

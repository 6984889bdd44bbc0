/**
 * RFC 7662, OAuth 2.0 Token Introspection: https://www.rfc-editor.org/rfc/rfc7662.html
 * Covers 2.2 response, with RFC 8705 section 3.2 and RFC 9449 section 6.2; the request is that of RFC 7009 2.1.
 * Elsewhere: 2.1 flows/introspect.ts, http/form.ts, http/introspect.ts, spec/rfc7009.ts; 2.2 flows/standing.ts,
 * spec/rfc9068.ts; 2.3 http/introspect.ts; 4 flows/introspect.ts, http/introspect.ts, spec/rfc9068.ts; 5
 * flows/introspect.ts.
 */

import { readConfirmation } from "./rfc7800.ts";
import type { JsonObject } from "./rfc8259.ts";
import { claimNames } from "./rfc9068.ts";

/**
 * RFC7662-2.2-6, RFC7662-2.2-7, RFC7662-2.3-3, RFC7662-4-12: nothing else is told of a token that is not active,
 * whatever the reason.
 */
export const INACTIVE = { active: false } as const;

/** The claims of an access token that the answer repeats. */
const SHOWN = claimNames("atIntrospection");

/** RFC7662-2.2-1: the answer about an active access token with these claims. */
export function buildActiveAnswer(claims: JsonObject): JsonObject {
  const answer: JsonObject = { active: true };
  for (const name of SHOWN) {
    const value = claims[name];
    if (value !== undefined) answer[name] = value;
  }
  const boundTo = readConfirmation(claims);
  const byProof = boundTo !== undefined && boundTo !== "unknown" && "jkt" in boundTo;
  answer.token_type = byProof ? "DPoP" : "Bearer"; // RFC9449-6.2-2
  return answer;
}

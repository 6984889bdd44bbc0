/**
 * RFC 7636, Proof Key for Code Exchange: https://www.rfc-editor.org/rfc/rfc7636.html
 * Covers 4.1 the verifier, 4.2 and 4.3 the challenge, 4.6 their comparison; S256 alone, with the updates of RFC 9700.
 * Elsewhere: 4.2 people/flows/redeem-code.ts; 4.4 people/flows/decide-review.ts; 4.4.1 people/flows/told.ts; 4.5
 * people/flows/redeem-code.ts; 4.6 people/flows/redeem-code.ts; 7.2 spec/rfc8414.ts.
 */
import { err, ok, type Result } from "../../result.ts";

export type ChallengeFailure = {
  kind: "challenge_missing" | "challenge_method_refused" | "challenge_malformed";
};

/** RFC 7636 4.2: the base64url of a SHA-256 has 43 characters, the last of which holds four bits. */
const CHALLENGE = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;
const VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/;

/** The challenge of an authorization request, which every client has to send (RFC7636-5-1). */
export function parseChallenge(
  challenge: string | undefined,
  method: string | undefined,
): Result<string, ChallengeFailure> {
  // RFC7636-4.4.1-1, RFC9700-2.1.1-1, RFC9700-2.1.1-8: required of public and of confidential clients.
  if (challenge === undefined) return err({ kind: "challenge_missing" });
  // RFC7636-4.3-1, RFC7636-4.4.1-3: absent means `plain`, which anyone who sees the request could use; compared exactly.
  if (method !== "S256") return err({ kind: "challenge_method_refused" });
  return CHALLENGE.test(challenge) ? ok(challenge) : err({ kind: "challenge_malformed" });
}

/** RFC7636-4.1-1: 43 to 128 unreserved characters. */
export const isVerifier = (text: string): boolean => VERIFIER.test(text);

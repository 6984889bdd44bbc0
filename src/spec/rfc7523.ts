/**
 * RFC 7523, JWT Profile for OAuth 2.0 Client Authentication: https://www.rfc-editor.org/rfc/rfc7523.html
 * with its update draft-ietf-oauth-rfc7523bis-11. Covers 2.2 and 3 for client assertions.
 */
import type { Result } from "../result.ts";
import { ok } from "../result.ts";
import { ASSERTION_SECONDS_MAX } from "./limits.ts";
import type { Jws } from "./rfc7515.ts";
import type { AudienceFailure, ClaimFailure, TimeFailure } from "./rfc7519.ts";
import { checkSoleAudience, checkTimes, stringClaim } from "./rfc7519.ts";
import type { JwtAlgorithmFailure, JwtTypeFailure } from "./rfc8725.ts";
import { ASSERTION_ALGORITHMS, checkAlgorithm, checkType, JWT_TYPES } from "./rfc8725.ts";

/** RFC7523-2.2-1 */
export const JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/** What an unverified assertion says: enough to choose whose keys to ask for, and no more. */
export type ClientAssertion = { issuer: string; subject: string };

export type AssertionFailure =
  | JwtAlgorithmFailure
  | JwtTypeFailure
  | ClaimFailure
  | AudienceFailure
  | TimeFailure;

export function parseClientAssertion({ header, claims }: Jws): Result<ClientAssertion, AssertionFailure> {
  const algorithm = checkAlgorithm(header, ASSERTION_ALGORITHMS);
  if (!algorithm.ok) return algorithm;
  // B7523-4-9: no type is fine, another kind's type is not (RFC8725-3.12-v1).
  const type = checkType(header, JWT_TYPES.clientAssertion);
  if (!type.ok) return type;
  // RFC7523-3-3, RFC7523-3-5
  const issuer = stringClaim(claims, "iss");
  if (!issuer.ok) return issuer;
  const subject = stringClaim(claims, "sub");
  if (!subject.ok) return subject;
  return ok({ issuer: issuer.value, subject: subject.value });
}

export type AssertionRule = {
  audiences: readonly string[];
  nowSeconds: number;
  skewSeconds: number;
  /** Of an issuer whose tokens live longer than an assertion of the client itself may. */
  maxAgeSeconds?: number;
};

export type CheckedAssertion = { audience: string; jti?: string; expiresAtSeconds: number };

/** Call it only with a signature that is valid under a key of the assertion's own issuer (RFC8725-3.8-v1). */
export function checkClientAssertion(
  { claims }: Jws,
  { audiences, nowSeconds, skewSeconds, maxAgeSeconds = ASSERTION_SECONDS_MAX }: AssertionRule,
): Result<CheckedAssertion, AssertionFailure> {
  // RFC7523-3-7, B7523-4-6: one audience, ours.
  const audience = checkSoleAudience(claims, audiences);
  if (!audience.ok) return audience;
  // RFC7523-3-10, RFC7523-3-11, RFC7523-3-12, RFC7523-3-13, PROD-8.1-2
  const times = checkTimes(claims, {
    nowSeconds,
    skewSeconds,
    lifetimeSecondsMax: maxAgeSeconds,
    ageSecondsMax: maxAgeSeconds,
  });
  if (!times.ok) return times;
  // PROD-2.3-5: it may be missing; what is there has to be a string, since it is spent.
  const jti = claims.jti === undefined ? undefined : stringClaim(claims, "jti");
  if (jti?.ok === false) return jti;
  return ok({
    audience: audience.value,
    expiresAtSeconds: Math.ceil(times.value.exp),
    ...(jti !== undefined && { jti: jti.value }),
  });
}

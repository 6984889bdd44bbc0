/**
 * RFC 7519, JSON Web Token: https://www.rfc-editor.org/rfc/rfc7519.html
 * Covers 2 StringOrURI and NumericDate, 4.1 registered claims, with the audience rule of RFC 7523 section 3 and RFC
 * 10070.
 * Elsewhere: 4 spec/rfc7515.ts, spec/rfc8259.ts; 4.1.2 config/issuers.ts, flows/order/subject.ts, flows/still-covers.ts,
 * settings/settings.ts, settings/subject-names.ts; 4.1.3 flows/order/subject.ts; 4.1.5 spec/rfc8417.ts; 4.1.7
 * adapters/crypto/random.ts; 4.3 spec/rfc9068.ts; 5.2 spec/rfc7515.ts; 7.2 adapters/crypto/verifier.ts,
 * spec/rfc7515.ts; 12 spec/rfc9068.ts.
 */

import { defined, err, ok, type Result } from "../result.ts";
import type { JsonObject } from "./rfc8259.ts";

type TimeClaim = "exp" | "nbf" | "iat";

export type TimeFailure =
  | { kind: "jwt_time_missing"; claim: TimeClaim }
  | { kind: "jwt_time_malformed"; claim: TimeClaim }
  | { kind: "jwt_expired" }
  | { kind: "jwt_not_yet_valid" }
  | { kind: "jwt_issued_in_future" }
  | { kind: "jwt_lifetime_too_long" }
  | { kind: "jwt_too_old" };

export type ClaimFailure = { kind: "jwt_claim_missing" | "jwt_claim_malformed"; claim: string };

export type AudienceFailure =
  | { kind: "jwt_audience_missing" }
  | { kind: "jwt_audience_malformed" }
  | { kind: "jwt_audience_several" }
  | { kind: "jwt_audience_refused" };

export type TimeRule = {
  nowSeconds: number;
  skewSeconds: number;
  /** Leeway for `exp` if it differs from `skewSeconds`; our own tokens get none. */
  expSkewSeconds?: number;
  /** `exp − iat` at most this, and `exp − now` at most this plus the skew. */
  lifetimeSecondsMax?: number;
  /** `now − iat` at most this; `iat` is then required, unless `lifetimeSecondsMax` is set too. */
  ageSecondsMax?: number;
  /** `exp − now` at most this. */
  remainingSecondsMax?: number;
};

export type Times = { exp: number; nbf?: number; iat?: number };

/** Checks `exp`, `nbf` and `iat` against the clock; returns them as numbers of seconds. */
export function checkTimes(claims: JsonObject, rule: TimeRule): Result<Times, TimeFailure> {
  const { nowSeconds: now, skewSeconds: skew, expSkewSeconds: expSkew = skew } = rule;
  const { lifetimeSecondsMax: lifetimeMax, ageSecondsMax: ageMax, remainingSecondsMax: remainingMax } = rule;

  for (const claim of ["exp", "nbf", "iat"] as const) {
    // RFC7519-4.1.4-v3, RFC7519-4.1.5-v2, RFC7519-4.1.6-v1, RFC7519-2-v2, RFC7521-5.1-3: times are numbers of seconds,
    // with or without a fraction.
    if (claims[claim] !== undefined && !isTime(claims[claim]))
      return err({ kind: "jwt_time_malformed", claim });
  }
  const { exp, nbf, iat } = claims as Partial<Times>;

  // RFC7523-3-10, JSV-3.3-1: a token without `exp` is refused.
  if (exp === undefined) return err({ kind: "jwt_time_missing", claim: "exp" });
  // RFC7519-4.1.4-v1, RFC7519-4.1.4-v2: at `exp` plus leeway the token has expired.
  if (now >= exp + expSkew) return err({ kind: "jwt_expired" });
  // RFC7519-4.1.5-v1, RFC7523-3-12: not before `nbf` minus leeway.
  if (nbf !== undefined && nbf > now + skew) return err({ kind: "jwt_not_yet_valid" });
  // RFC7523-3-2: an `iat` in the future would make the token younger than it is, and extend every limit below.
  if (iat !== undefined && iat > now + skew) return err({ kind: "jwt_issued_in_future" });

  // RFC7523-3-11: a token that is valid for long is as dangerous as a password, so its lifetime is limited.
  if (lifetimeMax !== undefined) {
    if (exp - now > lifetimeMax + skew) return err({ kind: "jwt_lifetime_too_long" });
    if (iat !== undefined && exp - iat > lifetimeMax) return err({ kind: "jwt_lifetime_too_long" });
  }
  if (remainingMax !== undefined && exp - now > remainingMax) return err({ kind: "jwt_lifetime_too_long" });

  // RFC7523-3-13: an assertion that is too old is refused, even before it expires.
  if (ageMax !== undefined) {
    if (iat === undefined && lifetimeMax === undefined)
      return err({ kind: "jwt_time_missing", claim: "iat" });
    if (iat !== undefined && now - iat > ageMax) return err({ kind: "jwt_too_old" });
  }
  return ok(defined<Times>({ exp, nbf, iat }));
}

function isTime(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
}

/** RFC7523-3-17, PROD-2.3-2, PROD-2.3-3: `iss`, `sub`, `jti` and similar claims are non-empty strings, never arrays. */
export function stringClaim(claims: JsonObject, claim: string): Result<string, ClaimFailure> {
  const value = claims[claim];
  if (value === undefined) return err({ kind: "jwt_claim_missing", claim });
  if (typeof value !== "string" || value === "") return err({ kind: "jwt_claim_malformed", claim });
  return ok(value);
}

/** RFC7519-2-v2: a time in seconds, with or without a fraction. */
export function numberClaim(claims: JsonObject, claim: "iat" | "nbf"): Result<number, TimeFailure> {
  const value = claims[claim];
  if (value === undefined) return err({ kind: "jwt_time_missing", claim });
  return isTime(value) ? ok(value) : err({ kind: "jwt_time_malformed", claim });
}

const URI = /^[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*$/;

/**
 * RFC7519-2-v1: `iss` and `sub` are any string, but a string with a colon has to be a URI; the value is returned
 * unchanged.
 */
export function stringOrUriClaim(claims: JsonObject, claim: string): Result<string, ClaimFailure> {
  const text = stringClaim(claims, claim);
  if (!text.ok || !text.value.includes(":") || URI.test(text.value)) return text;
  return err({ kind: "jwt_claim_malformed", claim });
}

/** RFC7519-4.1.3-v2: `aud` is one string or an array of at least one string. */
export function audiences(claims: JsonObject): Result<readonly string[], AudienceFailure> {
  const { aud } = claims;
  if (aud === undefined) return err({ kind: "jwt_audience_missing" });
  const values: string[] = [];
  for (const value of Array.isArray(aud) ? aud : [aud]) {
    if (typeof value !== "string" || value === "") return err({ kind: "jwt_audience_malformed" });
    values.push(value);
  }
  return values.length === 0 ? err({ kind: "jwt_audience_malformed" }) : ok(values);
}

/**
 * For assertions and grants: `aud` has exactly one value, which is one of `accepted` and is returned.
 * B7523-4-6: a second audience could replay the token here, so two values are refused even if both are ours.
 */
export function checkSoleAudience(
  claims: JsonObject,
  accepted: readonly string[],
): Result<string, AudienceFailure> {
  const named = audiences(claims);
  if (!named.ok) return named;
  const [audience, ...others] = named.value;
  if (others.length > 0) return err({ kind: "jwt_audience_several" });
  // RFC7523-3-7, RFC7523-3-9, B7523-4-7, RFC7519-7.3-v1, RFC8725-3.9-v2: compared byte for byte; a prefix or an
  // additional slash does not match.
  if (audience === undefined || !accepted.includes(audience)) return err({ kind: "jwt_audience_refused" });
  return ok(audience);
}

/**
 * RFC7519-4.1.3-v1: for subject tokens, which may have several audiences: returns the first one that is in `accepted`.
 */
export function checkAudienceContains(
  claims: JsonObject,
  accepted: readonly string[],
): Result<string, AudienceFailure> {
  const named = audiences(claims);
  if (!named.ok) return named;
  const audience = named.value.find((value) => accepted.includes(value));
  return audience === undefined ? err({ kind: "jwt_audience_refused" }) : ok(audience);
}

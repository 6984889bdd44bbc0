/**
 * OpenID Connect Core 1.0 (errata set 2): https://openid.net/specs/openid-connect-core-1_0.html
 * Covers 2 what an ID token says of its user, whether they sign in here or a client presents it.
 */
import { err, ok, type Result } from "../result.ts";
import {
  type AudienceFailure,
  audiences,
  type ClaimFailure,
  numberClaim,
  stringClaim,
  type TimeFailure,
} from "./rfc7519.ts";
import type { JsonObject } from "./rfc8259.ts";

/** What is kept of the sign-in: a claim that is absent stays absent (OIDC-D-7). */
export type SignInFacts = { authTimeSeconds?: number; acr?: string };

export type IdTokenUserFailure = ClaimFailure | TimeFailure | { kind: "id_token_sub_refused" };

/**
 * OIDC-2-1: a `sub` has at most 255 characters of ASCII, so that every reader sees the same, and no Cyrillic letter
 * passes for a Latin one.
 */
const SUB = /^\p{ASCII}{1,255}$/u;

/** OIDC-2-1: reads the user that an ID token names, at sign-in and as the subject token of an exchange. */
export function checkIdTokenUser(claims: JsonObject): Result<undefined, IdTokenUserFailure> {
  const sub = stringClaim(claims, "sub");
  if (!sub.ok) return sub;
  if (!SUB.test(sub.value)) return err({ kind: "id_token_sub_refused" });
  const iat = numberClaim(claims, "iat");
  return iat.ok ? ok(undefined) : iat;
}

/** OIDC-D-10: the same of an ID token as subject token, whose further audiences are trusted too. */
export function checkIdTokenOf(
  claims: JsonObject,
  trusted: readonly string[],
): Result<undefined, IdTokenUserFailure | AudienceFailure | { kind: "jwt_audience_untrusted" }> {
  const named = audiences(claims);
  if (!named.ok) return named;
  const isTrusted = named.value.every((one) => trusted.includes(one));
  return isTrusted ? checkIdTokenUser(claims) : err({ kind: "jwt_audience_untrusted" });
}

/** OIDCB-2.1-2: what the provider calls its own session of the user, by which it may end that later. */
export const sessionName = ({ sid }: JsonObject): string | undefined =>
  typeof sid === "string" && sid !== "" ? sid : undefined;

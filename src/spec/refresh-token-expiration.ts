/**
 * OAuth 2.0 Refresh Token and Authorization Expiration, draft-ietf-oauth-refresh-token-expiration-03.
 * Covers 6.1 the members of a token answer, 8 metadata.
 */
import { defined } from "../result.ts";

export const DRAFT = "draft-ietf-oauth-refresh-token-expiration-03";

/** RTE-8-1, RTE-D-9 */
export const EXPIRATION_TYPES: readonly string[] = ["authorization", "token_timeout"];

/** When a refresh token ends, in seconds since 1970: at the latest, and if it is not used; absent: never for want of use. */
export type RefreshEnds = { endsAtSeconds: number; idleEndsAtSeconds?: number };

/** How long a refresh token of an answer lasts, in seconds from that answer on. */
export type RefreshLifetimes = { refresh_token_timeout?: number; authorization_expires_in: number };

/**
 * RTE-6.1-2, RTE-D-1, RTE-D-2: `until` are the ends of what it rests on, its consent and its job. RTE-6.1-1: the idle time
 * is never told as longer than all of it. RTE-D-3: both by the clock reading of `expires_in`, which has whole seconds.
 */
export function lifetimesOf(
  { endsAtSeconds, idleEndsAtSeconds }: RefreshEnds,
  until: readonly (number | undefined)[],
  nowSeconds: number,
): RefreshLifetimes {
  const end = Math.floor(Math.min(endsAtSeconds, ...until.filter((one) => one !== undefined)));
  const idle = idleEndsAtSeconds && Math.min(Math.floor(idleEndsAtSeconds), end) - nowSeconds;
  return defined<RefreshLifetimes>({
    refresh_token_timeout: idle,
    authorization_expires_in: end - nowSeconds,
  });
}

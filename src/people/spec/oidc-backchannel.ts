/**
 * OpenID Connect Back-Channel Logout 1.0: https://openid.net/specs/openid-connect-backchannel-1_0.html
 * Covers 2.4 the logout token, 2.5 the request, 2.6 validation.
 */

import { SKEW_SECONDS } from "../../limits/tokens.ts";
import { err, ok, type Result } from "../../result.ts";
import { decodeFormText } from "../../spec/rfc6749.ts";
import type { JwsHeader } from "../../spec/rfc7515.ts";
import {
  type AudienceFailure,
  type ClaimFailure,
  checkSoleAudience,
  checkTimes,
  numberClaim,
  stringClaim,
  type TimeFailure,
} from "../../spec/rfc7519.ts";
import { isJsonObject, type JsonObject } from "../../spec/rfc8259.ts";
import {
  checkAlgorithm,
  checkKind,
  checkType,
  JWT_TYPES,
  type JwtAlgorithmFailure,
  type JwtKindFailure,
  type JwtTypeFailure,
} from "../../spec/rfc8725.ts";

/** OIDCB-2.5-1: the one parameter of the request; others are not looked at. */
export function parseLogoutForm(body: string): Result<string, { kind: "logout_token_missing" }> {
  const tokens = body.split("&").flatMap((pair) => {
    const [name = "", ...rest] = pair.split("=");
    return decodeFormText(name) === "logout_token" ? [decodeFormText(rest.join("="))] : [];
  });
  const [token, ...more] = tokens;
  return token === undefined || token === "" || more.length > 0
    ? err({ kind: "logout_token_missing" })
    : ok(token);
}

/** What a logout token has to say: of our provider, and to us. */
type LogoutRule = { issuer: string; clientId: string; nowSeconds: number };

type LogoutFailure =
  | JwtTypeFailure
  | JwtKindFailure
  | JwtAlgorithmFailure
  | TimeFailure
  | AudienceFailure
  | ClaimFailure
  | { kind: "logout_issuer_differs" | "logout_event_missing" | "logout_subject_missing" };

/** OIDCB-2.6-2, OIDCB-D-1: the header, before a key is looked for; an encrypted token was refused before it was parsed. */
export function checkLogoutHeader(
  header: JwsHeader,
  { algorithm }: { algorithm: string },
): Result<undefined, JwtTypeFailure | JwtAlgorithmFailure> {
  const type = checkType(header, JWT_TYPES.logoutToken);
  return type.ok ? checkAlgorithm(header, [algorithm]) : type;
}

/** OIDCB-2.4-1: the event that makes a JWT a logout token. */
const LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout";

const AGE_SECONDS = 300;

/** `sid` is the one session that ends; without it, all of the subject's. */
export type Logout = { sid?: string; jti: string; atSeconds: number; rememberedUntilSeconds: number };

/** OIDCB-2.6, clause by clause; the subject, by the claim that the operator named, and the signature are checked beside it. */
export function checkLogoutToken(claims: JsonObject, rule: LogoutRule): Result<Logout, LogoutFailure> {
  // OIDCB-2.6-3: issuer, audience and times as in an ID token.
  if (claims.iss !== rule.issuer) return err({ kind: "logout_issuer_differs" });
  const meant = checkSoleAudience(claims, [rule.clientId]);
  if (!meant.ok) return meant;
  const times = checkTimes(claims, {
    nowSeconds: rule.nowSeconds,
    skewSeconds: SKEW_SECONDS,
    ageSecondsMax: AGE_SECONDS,
  });
  if (!times.ok) return times;
  const iat = numberClaim(claims, "iat");
  if (!iat.ok) return iat;
  // OIDCB-2.6-4
  const { sub, sid, events } = claims;
  if (sub === undefined && sid === undefined) return err({ kind: "logout_subject_missing" });
  const subject = sub === undefined ? ok(undefined) : stringClaim(claims, "sub");
  if (!subject.ok) return subject;
  const session = sid === undefined ? ok(undefined) : stringClaim(claims, "sid");
  if (!session.ok) return session;
  // OIDCB-2.6-5
  if (!isJsonObject(events) || !isJsonObject(events[LOGOUT_EVENT]))
    return err({ kind: "logout_event_missing" });
  // OIDCB-2.6-6: an ID token of the code flow has a nonce, so that it is never taken for a logout token.
  const kind = checkKind(claims, "logoutToken");
  if (!kind.ok) return kind;
  const jti = stringClaim(claims, "jti");
  if (!jti.ok) return jti;
  const logout = {
    jti: jti.value,
    atSeconds: Math.floor(iat.value),
    // A token is refused for its age after that, whatever its `exp` says.
    rememberedUntilSeconds: Math.ceil(Math.min(times.value.exp, iat.value + AGE_SECONDS)) + SKEW_SECONDS,
  };
  return ok(session.value === undefined ? logout : { ...logout, sid: session.value });
}

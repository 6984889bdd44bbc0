/**
 * JWT-SVID: https://github.com/spiffe/spiffe/blob/main/standards/JWT-SVID.md, state of 1 July 2026
 * Covers 2 header, 3 claims, 4 validation. Between the two functions the caller selects the bundle of the trust domain
 * and verifies the signature.
 * Elsewhere: JSV 2 spec/rfc7515.ts; JSV 2.1 spec/rfc8725.ts; JSV 2.3 spec/rfc8725.ts; JSV 3.3 spec/rfc7519.ts; JSV 6.1
 * spec/spiffe/bundle.ts; JSV 6.2 spec/spiffe/bundle.ts.
 */

import { SVID_SECONDS_MAX } from "../../limits/tokens.ts";
import { err, ok, type Result } from "../../result.ts";
import type { Jws } from "../rfc7515.ts";
import {
  type AudienceFailure,
  checkSoleAudience,
  checkTimes,
  type TimeFailure,
  type Times,
} from "../rfc7519.ts";
import {
  checkAlgorithm,
  checkKind,
  checkType,
  JWT_TYPES,
  type JwtAlgorithmFailure,
  type JwtKindFailure,
  type JwtTypeFailure,
  SVID_ALGORITHMS,
} from "../rfc8725.ts";
import { isWorkloadId, parseSpiffeId, type SpiffeId } from "./id.ts";

/** What an unverified JWT-SVID says; it may only be used to select the bundle. */
type JwtSvid = { spiffeId: SpiffeId; trustDomain: string };

type JwtSvidFailure =
  | JwtAlgorithmFailure
  | JwtTypeFailure
  | JwtKindFailure
  | { kind: "svid_header_refused"; member: string }
  | { kind: "svid_subject_malformed" };

type JwtSvidRule = {
  audiences: readonly string[];
  nowSeconds: number;
  skewSeconds: number;
  remainingSecondsMax?: number;
};

type CheckedJwtSvid = Times & { audience: string };

const HEADER_MEMBERS: ReadonlySet<string> = new Set(["alg", "kid", "typ"]);

/** Reads header and subject (2, 3.1); the result is unverified and may only be used to select the bundle. */
export function parseJwtSvid({ header, claims }: Jws): Result<JwtSvid, JwtSvidFailure> {
  // JSV-4-1, JSV-2.1-1: the algorithm is checked first, against the nine of the standard.
  const algorithm = checkAlgorithm(header, SVID_ALGORITHMS);
  if (!algorithm.ok) return algorithm;
  // JSV-2-1: only these three members, so `crit`, `jku`, `x5c` and every other one are refused.
  for (const member in header.members) {
    if (!HEADER_MEMBERS.has(member)) return err({ kind: "svid_header_refused", member });
  }
  // JSV-2.3-1: `typ` is absent, `JWT` or `JOSE`.
  const type = checkType(header, JWT_TYPES.jwtSvid);
  if (!type.ok) return type;
  const kind = checkKind(claims, "jwtSvid");
  if (!kind.ok) return kind;
  // JSV-3.1-1: `sub` is the SPIFFE ID of a workload, never that of the trust domain itself.
  if (typeof claims.sub !== "string") return err({ kind: "svid_subject_malformed" });
  const id = parseSpiffeId(claims.sub);
  if (!id.ok || !isWorkloadId(id.value)) return err({ kind: "svid_subject_malformed" });
  return ok({ spiffeId: id.value, trustDomain: id.value.trustDomain });
}

/**
 * SPCA-D-1: whether the claims are those of a JWT-SVID of a trust domain that is configured, whatever the assertion is
 * called: `sub` is a SPIFFE ID of it, and there is no `iss`, or one of that domain. No other JWT is read so.
 */
export function isSvidOf(
  { sub, iss }: Jws["claims"],
  trustDomains: ReadonlyMap<string, { jwtIssuer?: string }>,
): boolean {
  const id = typeof sub === "string" ? parseSpiffeId(sub) : undefined;
  const domain = id?.ok ? trustDomains.get(id.value.trustDomain) : undefined;
  if (!id?.ok || domain === undefined) return false;
  return iss === undefined || iss === `spiffe://${id.value.trustDomain}` || iss === domain.jwtIssuer;
}

/** To be called only after the signature was verified with a key of the SVID's own trust domain. */
export function checkJwtSvid(
  { claims }: Jws,
  rule: JwtSvidRule,
): Result<CheckedJwtSvid, AudienceFailure | TimeFailure> {
  // PROD-2.3-15: `aud` and `exp` are required besides `sub`. JSV-3.2-1, JSV-7.2-1: the only audience is this server.
  const audience = checkSoleAudience(claims, rule.audiences);
  if (!audience.ok) return audience;
  // JSV-3.3-1, JSV-A-1: `exp` is required. JSV-7.1-1: an SVID is not single use, because agents cache and reuse it; its
  // remaining lifetime is limited instead.
  const { nowSeconds, skewSeconds, remainingSecondsMax = SVID_SECONDS_MAX } = rule;
  const times = checkTimes(claims, { nowSeconds, skewSeconds, remainingSecondsMax });
  if (!times.ok) return times;
  return ok({ ...times.value, audience: audience.value });
}

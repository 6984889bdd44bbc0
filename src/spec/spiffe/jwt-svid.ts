/**
 * JWT-SVID: https://github.com/spiffe/spiffe/blob/main/standards/JWT-SVID.md, state of 1 July 2026
 * Covers 2 header, 3 claims, 4 validation. Between the two functions the shell finds the bundle of the trust domain and
 * verifies the signature.
 */

import { SVID_SECONDS_MAX } from "../../limits.ts";
import type { Result } from "../../result.ts";
import { err, ok } from "../../result.ts";
import type { Jws } from "../rfc7515.ts";
import type { AudienceFailure, TimeFailure, Times } from "../rfc7519.ts";
import { checkSoleAudience, checkTimes } from "../rfc7519.ts";
import type { JwtAlgorithmFailure, JwtTypeFailure } from "../rfc8725.ts";
import { checkAlgorithm, checkType, JWT_TYPES, SVID_ALGORITHMS } from "../rfc8725.ts";
import type { SpiffeId } from "./id.ts";
import { isWorkloadId, parseSpiffeId } from "./id.ts";

/** What an unverified JWT-SVID says: good for choosing the bundle and for nothing else. */
export type JwtSvid = { spiffeId: SpiffeId; trustDomain: string };

export type JwtSvidFailure =
  | JwtAlgorithmFailure
  | JwtTypeFailure
  | { kind: "svid_header_refused"; member: string }
  | { kind: "svid_subject_malformed" };

export type JwtSvidRule = {
  audiences: readonly string[];
  nowSeconds: number;
  skewSeconds: number;
  remainingSecondsMax?: number;
};

export type CheckedJwtSvid = Times & { audience: string };

const HEADER_MEMBERS: ReadonlySet<string> = new Set(["alg", "kid", "typ"]);

export function parseJwtSvid({ header, claims }: Jws): Result<JwtSvid, JwtSvidFailure> {
  // JSV-4-1, JSV-2.1-1
  const algorithm = checkAlgorithm(header, SVID_ALGORITHMS);
  if (!algorithm.ok) return algorithm;
  // JSV-2-1: no member but these three, which ends `crit`, `jku`, `x5c` and what is yet to be invented.
  for (const member in header.members) {
    if (!HEADER_MEMBERS.has(member)) return err({ kind: "svid_header_refused", member });
  }
  // JSV-2.3-1
  const type = checkType(header, JWT_TYPES.jwtSvid);
  if (!type.ok) return type;
  // JSV-3.1-1: a workload's, so never the trust domain's own.
  if (typeof claims.sub !== "string") return err({ kind: "svid_subject_malformed" });
  const id = parseSpiffeId(claims.sub);
  if (!id.ok || !isWorkloadId(id.value)) return err({ kind: "svid_subject_malformed" });
  return ok({ spiffeId: id.value, trustDomain: id.value.trustDomain });
}

/** Call it only with a signature that is valid under a key of the SVID's own trust domain (SID-3-1). */
export function checkJwtSvid(
  { claims }: Jws,
  rule: JwtSvidRule,
): Result<CheckedJwtSvid, AudienceFailure | TimeFailure> {
  // PROD-2.3-15: beside `sub` this much has to be there. JSV-3.2-1, JSV-7.2-1: one audience, ours.
  const audience = checkSoleAudience(claims, rule.audiences);
  if (!audience.ok) return audience;
  // JSV-3.3-1, JSV-A-1. No single use (JSV-7.1-1): agents cache and send again, so what is left of its life is capped.
  const { nowSeconds, skewSeconds, remainingSecondsMax = SVID_SECONDS_MAX } = rule;
  const times = checkTimes(claims, { nowSeconds, skewSeconds, remainingSecondsMax });
  if (!times.ok) return times;
  return ok({ ...times.value, audience: audience.value });
}

/**
 * SPIFFE-ID: https://github.com/spiffe/spiffe/blob/main/standards/SPIFFE-ID.md, state of 1 July 2026
 * Covers 2 grammar and limits, and our patterns over IDs.
 */

import { SPIFFE_ID_BYTES_MAX, TRUST_DOMAIN_BYTES_MAX } from "../../limits.ts";
import type { Result } from "../../result.ts";
import { err, ok } from "../../result.ts";

export type SpiffeId = {
  /** The whole ID; it is its own canonical form. */
  id: string;
  trustDomain: string;
  /** Empty, or segments each behind a `/`. */
  path: string;
};

export type SpiffeIdFailure = { kind: "spiffe_id_malformed" };

export type SpiffePatternFailure = { kind: "spiffe_pattern_malformed" };

// SID-2.1-3, SID-2.1-4, SID-2.1-1: these characters only, so neither userinfo nor port nor percent-encoding.
const TRUST_DOMAIN = /^[a-z0-9._-]+$/;
// SID-2-1, SID-2-2, SID-2.1-2: no folding of case, for two spellings would be two clients of one name.
// SID-2.2-1, SID-2.2-2, SID-2.2-3, SID-2.2-4, SID-2-3: segments of these characters, none empty, nothing behind them.
const SPIFFE_ID = /^spiffe:\/\/([a-z0-9._-]+)((?:\/[A-Za-z0-9._-]+)*)$/;
// SID-2.2-2
const DOT_SEGMENT = /\/\.\.?(?:\/|$)/;

/** SID-2.1-5: a name that looks like a DNS name or an address is no different from others. */
export function isTrustDomainName(text: string): boolean {
  // SID-2.3-3
  return text.length <= TRUST_DOMAIN_BYTES_MAX && TRUST_DOMAIN.test(text);
}

/** From the raw text: a URL parser would repair what must be refused. */
export function parseSpiffeId(text: string): Result<SpiffeId, SpiffeIdFailure> {
  // SID-2.3-1, SID-2.3-2: all that is allowed is ASCII, so characters are bytes.
  const match = text.length <= SPIFFE_ID_BYTES_MAX ? SPIFFE_ID.exec(text) : null;
  if (match === null) return err({ kind: "spiffe_id_malformed" });
  const [id, trustDomain = "", path = ""] = match;
  if (!isTrustDomainName(trustDomain) || DOT_SEGMENT.test(path)) return err({ kind: "spiffe_id_malformed" });
  return ok({ id, trustDomain, path });
}

/** SID-3.1-1: an ID without a path is the trust domain's, or its authority's, and never a workload's. */
export function isWorkloadId({ path }: SpiffeId): boolean {
  return path !== "";
}

const ANY_BELOW = "/*";

/** A workload's ID, or `spiffe://…/*` for whole segments, so that `/pay/*` has nothing of `/payroll`. */
export function parsePattern(text: string): Result<string, SpiffePatternFailure> {
  const prefix = text.endsWith(ANY_BELOW);
  const id = parseSpiffeId(prefix ? text.slice(0, -ANY_BELOW.length) : text);
  if (!id.ok || !(prefix || isWorkloadId(id.value))) return err({ kind: "spiffe_pattern_malformed" });
  return ok(text);
}

/**
 * Both parsed before. SID-2.4-1: case counts. The slash that stays behind the prefix keeps other segments and other
 * trust domains out.
 */
export function matchesPattern(pattern: string, id: string): boolean {
  return pattern.endsWith(ANY_BELOW) ? id.startsWith(pattern.slice(0, -1)) : id === pattern;
}

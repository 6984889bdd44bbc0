/**
 * SPIFFE-ID: https://github.com/spiffe/spiffe/blob/main/standards/SPIFFE-ID.md, state of 1 July 2026
 * Covers 2 grammar and limits, and the patterns over IDs that our configuration uses.
 * Elsewhere: SID 3 flows/verify-certificate.ts, flows/verify-svid.ts; SID 3.1 spec/spiffe/x509-svid.ts; SID 3.2
 * flows/verify-svid.ts.
 */

import { SPIFFE_ID_BYTES_MAX, TRUST_DOMAIN_BYTES_MAX } from "../../limits/input.ts";
import { err, ok, type Result } from "../../result.ts";

export type SpiffeId = {
  /** The whole ID; it is its own canonical form. */
  id: string;
  trustDomain: string;
  /** The path is empty, or has segments that each begin with `/`. */
  path: string;
};

type SpiffeIdFailure = { kind: "spiffe_id_malformed" };

type SpiffePatternFailure = { kind: "spiffe_pattern_malformed" };

// SID-2.1-3, SID-2.1-4, SID-2.1-1: only these characters, so there is no userinfo, port or percent-encoding.
const TRUST_DOMAIN = /^[a-z0-9._-]+$/;
// SID-2-1, SID-2-2, SID-2.1-2: case is not folded, so that an ID has one spelling.
// SID-2.2-1, SID-2.2-2, SID-2.2-3, SID-2.2-4, SID-2-3: non-empty segments of these characters; no query, no fragment.
const SPIFFE_ID = /^spiffe:\/\/([a-z0-9._-]+)((?:\/[A-Za-z0-9._-]+)*)$/;
// SID-2.2-2: no `.` and `..` segments.
const DOT_SEGMENT = /\/\.\.?(?:\/|$)/;

/** SID-2.1-5: a name that looks like a DNS name or an IP address is treated like any other. */
export function isTrustDomainName(text: string): boolean {
  // SID-2.3-3: at most 255 bytes.
  return text.length <= TRUST_DOMAIN_BYTES_MAX && TRUST_DOMAIN.test(text);
}

/** Parses the raw text, because a URL parser would repair IDs that have to be refused. */
export function parseSpiffeId(text: string): Result<SpiffeId, SpiffeIdFailure> {
  // SID-2.3-1, SID-2.3-2: only ASCII is allowed, so the number of characters is the number of bytes.
  const match = text.length <= SPIFFE_ID_BYTES_MAX ? SPIFFE_ID.exec(text) : null;
  if (match === null) return err({ kind: "spiffe_id_malformed" });
  const [id, trustDomain = "", path = ""] = match;
  if (!isTrustDomainName(trustDomain) || DOT_SEGMENT.test(path)) return err({ kind: "spiffe_id_malformed" });
  return ok({ id, trustDomain, path });
}

/** SID-3.1-1: an ID without a path names the trust domain or its authority, never a workload. */
export function isWorkloadId({ path }: SpiffeId): boolean {
  return path !== "";
}

const ANY_BELOW = "/*";

/** A workload's ID, or a prefix `spiffe://…/*` of whole segments: `/pay/*` does not match `/payroll`. */
export function parsePattern(text: string): Result<string, SpiffePatternFailure> {
  const prefix = text.endsWith(ANY_BELOW);
  const id = parseSpiffeId(prefix ? text.slice(0, -ANY_BELOW.length) : text);
  if (!id.ok || !(prefix || isWorkloadId(id.value))) return err({ kind: "spiffe_pattern_malformed" });
  return ok(text);
}

/**
 * Whether the ID is the pattern's or below its prefix; both have been parsed before. SID-2.4-1, SPCA-5.1-4: compared with
 * case. SPCA-5.1-3: the prefix is compared with its final slash, so that it matches whole segments of its own trust
 * domain only.
 */
export function matchesPattern(pattern: string, id: string): boolean {
  return pattern.endsWith(ANY_BELOW) ? id.startsWith(pattern.slice(0, -1)) : id === pattern;
}

/** The prefixes that match an ID, the narrowest first; of a prefix, itself and the wider ones. */
export function prefixesOver(id: string): readonly string[] {
  const prefixes: string[] = [];
  const authority = id.indexOf("://") + "://".length;
  for (let end = id.lastIndexOf("/"); end > authority; end = id.lastIndexOf("/", end - 1)) {
    prefixes.push(id.slice(0, end) + ANY_BELOW);
  }
  return prefixes;
}

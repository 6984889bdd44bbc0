/**
 * SPIFFE Trust Domain and Bundle:
 * https://github.com/spiffe/spiffe/blob/main/standards/SPIFFE_Trust_Domain_and_Bundle.md, and SPIFFE Federation:
 * https://github.com/spiffe/spiffe/blob/main/standards/SPIFFE_Federation.md, both in the state of 1 July 2026
 * Covers 4 bundle format, and of federation 4.2 the order of bundles.
 * Elsewhere: SBN 3 adapters/remote/key-sources.ts, adapters/remote/trust-bundles.ts; SFD 4.2
 * adapters/remote/polled-document.ts, adapters/remote/trust-bundles.ts, adapters/store/store.ts, ports.ts; SFD 5.1
 * adapters/remote/key-sources.ts, config/bundles.ts; SFD 5.2.1.4 config/bundles.ts; SFD 5.2.2.2 config/bundles.ts,
 * settings/settings.ts; SFD 5.2.2.4 adapters/remote/trust-bundles.ts; SFD 6.2 adapters/remote/polled-document.ts; SFD
 * 6.3 adapters/remote/key-sources.ts; SFD 7.2 adapters/remote/checked-agent.ts, adapters/remote/trust-bundles.ts,
 * config/bundles.ts; SFD 7.6 adapters/remote/key-sources.ts, http/log.ts, start/remote.ts.
 */

import { FETCHED_SECONDS, FETCHED_SECONDS_MAX, FETCHED_SECONDS_MIN } from "../../limits/fetching.ts";
import { defined, err, ok, type Result } from "../../result.ts";
import { type Jwk, type JwkSetFailure, parseJwk, readJwkSet } from "../rfc7517.ts";
import { isJsonObject, type Json } from "../rfc8259.ts";

/** A bundle does not name its trust domain: that name comes from the configuration (SBN-3-1). */
export type Bundle = {
  sequence?: number;
  refreshHintSeconds?: number;
  /** Keys that verify JWT-SVIDs, each with a `kid`. */
  jwtKeys: Jwk[];
  /** CA certificates, base64 of DER. */
  x509Authorities: string[];
};

type BundleFailure =
  | JwkSetFailure
  | { kind: "bundle_sequence_malformed" }
  | { kind: "bundle_refresh_hint_malformed" };

/** Reads a bundle (4) in its JSON text. */
export function parseBundle(text: string): Result<Bundle, BundleFailure> {
  // SBN-4.1.3-1: `keys` is required.
  const set = readJwkSet(text);
  if (!set.ok) return set;
  const { spiffe_sequence: sequence, spiffe_refresh_hint: hint } = set.value.members;
  // SBN-4.1.1-1: above 2^53 two sequence numbers may compare as equal, and an older bundle would not be noticed.
  if (sequence !== undefined && !isCount(sequence)) return err({ kind: "bundle_sequence_malformed" });
  // SBN-4.1.2-1: the hint is a whole number of seconds.
  if (hint !== undefined && !isCount(hint)) return err({ kind: "bundle_refresh_hint_malformed" });
  // SBN-4.1.3-3: a bundle without usable keys is valid and revokes all of them.
  return ok(
    defined<Bundle>({
      sequence,
      refreshHintSeconds: hint,
      jwtKeys: set.value.entries.flatMap(jwtKey),
      x509Authorities: set.value.entries.flatMap(x509Authority),
    }),
  );
}

function isCount(value: Json): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

/** SBN-4.1.3-2, SBN-4.2.1-1, SBN-4.2.2-1, JSV-6.2-1: entries of another type or use are skipped. */
function jwtKey(entry: Json): Jwk[] {
  // JSV-6.1-1: `use` is `jwt-svid`.
  const key = parseJwk(entry, ["jwt-svid"]);
  // JSV-6.1-2: `kid` is required.
  return key.ok && key.value.kid !== undefined ? [key.value] : [];
}

const KEY_TYPES: readonly (Json | undefined)[] = ["EC", "RSA", "OKP"];

function x509Authority(entry: Json): string[] {
  // SBN-4.2.1-1, SBN-4.2.2-1, X5S-6.1-1: entries of an unknown type or another use are skipped.
  if (!isJsonObject(entry) || entry.use !== "x509-svid" || !KEY_TYPES.includes(entry.kty)) return [];
  // X5S-6.2-1, X5S-6.2-2: the first certificate of `x5c` is the authority; without one the entry is skipped.
  const [certificate] = Array.isArray(entry.x5c) ? entry.x5c : [];
  return typeof certificate === "string" && isBase64(certificate) ? [certificate] : [];
}

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** RFC7517-4.7-1: base64 with padding; the certificate inside is parsed by the caller. */
function isBase64(text: string): boolean {
  return BASE64.test(text) && text.length % 4 === 0 && Uint8Array.fromBase64(text).toBase64() === text;
}

/** SBN-6.1-1, SFD-4.1-1: how many seconds to the next poll, as the bundle suggests, within our bounds. */
export function refreshSeconds({ refreshHintSeconds = FETCHED_SECONDS }: Bundle): number {
  return Math.min(Math.max(refreshHintSeconds, FETCHED_SECONDS_MIN), FETCHED_SECONDS_MAX);
}

/**
 * SFD-4.2-2: a bundle with a lower sequence number is an older copy, which may hold a revoked key; without numbers the
 * last one received counts.
 */
export function acceptsSuccessor(old: Bundle, next: Bundle): boolean {
  return old.sequence === undefined || next.sequence === undefined || next.sequence >= old.sequence;
}

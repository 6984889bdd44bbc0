/**
 * SPIFFE X509-SVID: https://github.com/spiffe/spiffe/blob/main/standards/X509-SVID.md, state of 1 July 2026
 * Covers 2 SPIFFE ID, 3 hierarchy, 4 constraints and usage, 5.2 leaf validation. For the path itself (5.1) see
 * ../rfc5280-path.ts.
 * Elsewhere: X5S 3.2 adapters/crypto/x509.ts, spec/rfc5280-path.ts; X5S 4.1 spec/rfc5280-path.ts; X5S 4.2
 * spec/rfc5280-path.ts; X5S 4.3 spec/rfc5280-path.ts; X5S 5.1 adapters/crypto/x509.ts, spec/rfc5280-path.ts,
 * spec/rfc5280.ts; X5S 6.1 spec/spiffe/bundle.ts; X5S 6.2 adapters/crypto/x509.ts, spec/spiffe/bundle.ts.
 */

import { err, ok, type Result } from "../../result.ts";
import type { Certificate } from "../rfc5280.ts";
import { isWorkloadId, parseSpiffeId, type SpiffeId } from "./id.ts";

export const SERVER_AUTH = "1.3.6.1.5.5.7.3.1";
export const CLIENT_AUTH = "1.3.6.1.5.5.7.3.2";

type X509SvidFailure = {
  kind:
    | "svid_uri_missing"
    | "svid_uri_repeated"
    | "svid_id_malformed"
    | "svid_id_without_path"
    | "svid_is_ca"
    | "svid_key_usage_missing"
    | "svid_key_usage_not_critical"
    | "svid_may_not_sign"
    | "svid_signs_certificates"
    | "svid_extended_key_usage_refused"
    | "svid_names_not_critical";
};

type SvidSignerFailure =
  | { kind: "svid_signer_uri_repeated"; at: number }
  | { kind: "svid_signer_id_malformed"; at: number }
  | { kind: "svid_signer_id_with_path"; at: number }
  | { kind: "svid_signer_of_other_domain"; at: number }
  | { kind: "svid_signer_key_usage_not_critical"; at: number };

/**
 * The workload that a leaf names, unproven: the trust domain in it only selects the bundle against which the path has
 * to be validated.
 */
export function parseX509Svid(leaf: Certificate): Result<SpiffeId, X509SvidFailure> {
  const { subjectAltNames, subject, basicConstraints, keyUsage, extendedKeyUsage } = leaf;
  // X5S-2-1, X5S-2-2, X5S-5.2-4, SPCA-3.2-4, PROD-2.1-10: a leaf has exactly one URI. X5S-2-3: names of other kinds are
  // ignored.
  const [uri, ...others] = subjectAltNames?.uris ?? [];
  if (uri === undefined) return err({ kind: "svid_uri_missing" });
  if (others.length > 0) return err({ kind: "svid_uri_repeated" });
  // X5S-5.2-3, X5S-3.1-2: the URI is a SPIFFE ID with a path.
  const spiffeId = parseSpiffeId(uri);
  if (!spiffeId.ok) return err({ kind: "svid_id_malformed" });
  if (!isWorkloadId(spiffeId.value)) return err({ kind: "svid_id_without_path" });
  // X5S-3.1-3: with an empty subject, the alternative names must be critical.
  if (subject.rdns.length === 0 && subjectAltNames?.critical !== true) {
    return err({ kind: "svid_names_not_critical" });
  }
  // X5S-3.1-1, X5S-3.2-3, X5S-4.1-1, X5S-5.2-1, SPCA-3.2-5: an authority's certificate does not authenticate a caller.
  if (basicConstraints?.ca === true) return err({ kind: "svid_is_ca" });
  // X5S-4.3-1: key usage must be present and critical.
  if (keyUsage === undefined) return err({ kind: "svid_key_usage_missing" });
  if (!keyUsage.critical) return err({ kind: "svid_key_usage_not_critical" });
  // X5S-4.3-3, SPCA-3.2-6: the key must be one that may sign the handshake.
  if (!keyUsage.usages.has("digitalSignature")) return err({ kind: "svid_may_not_sign" });
  // X5S-4.3-4, X5S-5.2-2: a leaf signs neither certificates nor revocation lists.
  if (keyUsage.usages.has("keyCertSign") || keyUsage.usages.has("cRLSign")) {
    return err({ kind: "svid_signs_certificates" });
  }
  // X5S-4.4-2: both usages are named; anyExtendedKeyUsage does not replace them.
  if (
    extendedKeyUsage !== undefined &&
    ![SERVER_AUTH, CLIENT_AUTH].every((id) => extendedKeyUsage.includes(id))
  ) {
    return err({ kind: "svid_extended_key_usage_refused" });
  }
  return spiffeId;
}

/** The rules that the SVID standard adds to RFC 5280 for the authorities of a path; the path begins with the leaf. */
export function checkSigners(
  path: readonly Certificate[],
  trustDomain: string,
): Result<undefined, SvidSignerFailure> {
  for (const [at, { subjectAltNames, keyUsage }] of path.entries()) {
    if (at === 0) continue;
    // X5S-4.3-1: key usage must be present and critical.
    if (keyUsage?.critical !== true) return err({ kind: "svid_signer_key_usage_not_critical", at });
    const [uri, ...others] = subjectAltNames?.uris ?? [];
    // X5S-2-2: an authority has at most one URI.
    if (others.length > 0) return err({ kind: "svid_signer_uri_repeated", at });
    if (uri === undefined) continue;
    const id = parseSpiffeId(uri);
    if (!id.ok) return err({ kind: "svid_signer_id_malformed", at });
    // X5S-3.2-1: an authority's SPIFFE ID has no path.
    if (isWorkloadId(id.value)) return err({ kind: "svid_signer_id_with_path", at });
    // X5S-3.2-2, SID-3.1-1: this is a SHOULD that we enforce, because otherwise the authority of one domain could sign
    // for another.
    if (id.value.trustDomain !== trustDomain) return err({ kind: "svid_signer_of_other_domain", at });
  }
  return ok(undefined);
}

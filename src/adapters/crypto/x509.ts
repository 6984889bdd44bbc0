/**
 * Certificate paths with their signatures (RFC 5280 6.1, X509-SVID 5.1): from the certificates that a peer sent to the
 * anchors of one trust domain or one client, and to no others.
 */
import { constants, createPublicKey, verify } from "node:crypto";
import {
  CERTIFICATE_CACHE_MAX,
  CERTIFICATE_PATH_MAX,
  CERTIFICATES_SENT_MAX,
  SIGNATURE_CHECKS_MAX,
} from "../../limits/input.ts";
import { err, ok, type Result } from "../../result.ts";
import { type Certificate, type CertificateFailure, parseCertificate } from "../../spec/rfc5280.ts";
import { checkPath, type PathFailure } from "../../spec/rfc5280-path.ts";
import { sameBytes } from "../../spec/x690.ts";
import { hash } from "./hash.ts";

type VerifyPathFailure =
  | CertificateFailure
  | PathFailure
  | { kind: "certificate_missing" }
  | { kind: "certificates_too_many" }
  | { kind: "leaf_is_anchor" }
  | { kind: "issuer_unknown" }
  | { kind: "issuer_signature_wrong" }
  | { kind: "signature_checks_exceeded" };

/** A path from the first of the certificates that a peer sent. */
export function verifyPresented(
  presented: readonly Uint8Array[],
  anchors: readonly Uint8Array[],
  nowSeconds: number,
): Result<readonly Certificate[], VerifyPathFailure> {
  const [first, ...others] = presented;
  if (first === undefined) return err({ kind: "certificate_missing" });
  const leaf = recall(first);
  return leaf.ok ? verifyPath(leaf.value, others, anchors, nowSeconds) : leaf;
}

/**
 * X5S-5.1-1: finds a valid path from the leaf to an anchor, or says why there is none. Names and key identifiers select
 * candidates for the issuer; only a signature by the candidate's key proves it.
 */
export function verifyPath(
  parsed: Certificate,
  others: readonly Uint8Array[],
  anchors: readonly Uint8Array[],
  nowSeconds: number,
): Result<readonly Certificate[], VerifyPathFailure> {
  // The work for one peer is limited: certificates here, signature checks and path length below.
  if (others.length >= CERTIFICATES_SENT_MAX) return err({ kind: "certificates_too_many" });
  // An earlier connection may have left this certificate in the cache; its object is used, since checked signatures are
  // remembered by object.
  const leaf = kept.get(hash.sha256(parsed.der)) ?? parsed;
  const trusted = readable(anchors.map(recall));
  trusted.forEach(keep);
  // X5S-3.2-3: an authority's key authenticates no caller, in any certificate.
  if (trusted.some((anchor) => sameBytes(anchor.spki, leaf.spki))) return err({ kind: "leaf_is_anchor" });

  // A certificate that cannot be parsed is ignored, since peers also send certificates that no path needs.
  const sent = others.map(recall);
  const unreadable = sent.find((certificate) => !certificate.ok);
  // SPCA-3.2-3, X5S-6.2-3: a certificate that was sent is never an anchor, self-signed or not.
  const signers = [...readable(sent), ...trusted];
  const steps = stepsFrom([leaf], signers, trusted);
  let refusal: PathFailure | undefined;
  let wrong = false;
  let checks = 0;
  for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
    if (checks === SIGNATURE_CHECKS_MAX) return err({ kind: "signature_checks_exceeded" });
    checks++;
    const { path, signed, signer } = step;
    if (!isSignedBy(signed, signer)) {
      wrong = true;
      continue;
    }
    const longer = [...path, signer];
    if (trusted.includes(signer)) {
      const checked = checkPath(longer, { nowSeconds });
      if (checked.ok) {
        checked.value.forEach(keep);
        return checked;
      }
      refusal ??= checked.error;
    } else if (longer.length < CERTIFICATE_PATH_MAX) {
      steps.push(...stepsFrom(longer, signers, trusted));
    } else {
      refusal ??= { kind: "path_too_long" };
    }
  }
  if (refusal !== undefined) return err(refusal);
  if (wrong) return err({ kind: "issuer_signature_wrong" });
  return unreadable ?? err({ kind: "issuer_unknown" });
}

function readable(results: readonly Result<Certificate, CertificateFailure>[]): Certificate[] {
  return results.flatMap((result) => (result.ok ? [result.value] : []));
}

type Step = { path: readonly Certificate[]; signed: Certificate; signer: Certificate };

/** Candidates for the issuer of the last certificate of the path, the likeliest last. */
function stepsFrom(
  path: readonly Certificate[],
  signers: readonly Certificate[],
  trusted: readonly Certificate[],
): Step[] {
  const signed = path.at(-1);
  if (signed === undefined) return [];
  const { issuer, authorityKeyId } = signed;
  const rank = ({ subjectKeyId }: Certificate) =>
    authorityKeyId !== undefined && subjectKeyId !== undefined && sameBytes(authorityKeyId, subjectKeyId)
      ? 1
      : 0;
  return signers
    .filter(({ subject, spki }) => {
      if (!sameBytes(subject.der, issuer.der)) return false;
      // Authorities that signed each other would make the path circular.
      return !path.some((part) => sameBytes(part.subject.der, subject.der) && sameBytes(part.spki, spki));
    })
    .map((signer) => ({ path, signed, signer }))
    .sort(
      (a, b) =>
        rank(a.signer) - rank(b.signer) ||
        Number(trusted.includes(a.signer)) - Number(trusted.includes(b.signer)),
    );
}

// --- signatures ---------------------------------------------------------------------------------------------

/** The signers whose signature on a certificate was verified, by certificate. */
const verified = new WeakMap<Certificate, WeakSet<Certificate>>();

function isSignedBy(signed: Certificate, signer: Certificate): boolean {
  const known = verified.get(signed);
  if (known?.has(signer)) return true;
  if (!verifySignature(signed, signer)) return false;
  if (known === undefined) verified.set(signed, new WeakSet([signer]));
  else known.add(signer);
  return true;
}

/** The algorithm that the certificate names, which must be one for the signer's kind of key. */
function verifySignature({ tbs, signature, signatureAlgorithm }: Certificate, signer: Certificate): boolean {
  if (signatureAlgorithm.kty !== signer.publicKey.kty) return false;
  const key = createPublicKey({ key: Buffer.from(signer.spki), format: "der", type: "spki" });
  switch (signatureAlgorithm.kty) {
    case "EC":
      return verify(signatureAlgorithm.hash, tbs, { key, dsaEncoding: "der" }, signature);
    case "RSA": {
      const { RSA_PKCS1_PADDING, RSA_PKCS1_PSS_PADDING, RSA_PSS_SALTLEN_DIGEST: saltLength } = constants;
      const padding = signatureAlgorithm.padding === "pss" ? RSA_PKCS1_PSS_PADDING : RSA_PKCS1_PADDING;
      return verify(signatureAlgorithm.hash, tbs, { key, padding, saltLength }, signature);
    }
    case "OKP":
      return verify(null, tbs, key, signature);
  }
}

// --- parsed certificates ------------------------------------------------------------------------------------

/**
 * The same certificates come with every request, and neither their content nor their signatures change; dates and
 * anchors are checked each time. Only anchors and valid paths are kept, so that an unauthenticated peer cannot fill the
 * cache.
 */
const kept = new Map<string, Certificate>();

function recall(bytes: Uint8Array): Result<Certificate, CertificateFailure> {
  const known = kept.get(hash.sha256(bytes));
  return known === undefined ? parseCertificate(bytes) : ok(known);
}

function keep(certificate: Certificate): void {
  const id = hash.sha256(certificate.der);
  if (kept.has(id)) return;
  const [oldest] = kept.keys();
  if (oldest !== undefined && kept.size >= CERTIFICATE_CACHE_MAX) kept.delete(oldest);
  kept.set(id, certificate);
}

/**
 * RFC 5280, X.509 Certificate Profile: https://www.rfc-editor.org/rfc/rfc5280.html
 * Covers 4.1 fields. Names are in rfc5280-names.ts, extensions in rfc5280-extensions.ts, keys and algorithms in
 * rfc5280-keys.ts, paths in rfc5280-path.ts; signatures are checked by the caller, over `tbs`. Certificate policies are
 * not supported: a path with critical ones is refused. Revocation lists are not read: SVIDs are short-lived.
 */

import { CERTIFICATE_BYTES_MAX } from "../limits/input.ts";
import { err, ok, type Result } from "../result.ts";
import { type ExtensionFailure, type Extensions, readExtensions } from "./rfc5280-extensions.ts";
import {
  readPublicKey,
  readSignatureAlgorithm,
  type SignatureAlgorithm,
  type SignatureFailure,
} from "./rfc5280-keys.ts";
import { type Name, readName } from "./rfc5280-names.ts";
import type { Jwk } from "./rfc7517.ts";
import * as der from "./x690.ts";
import {
  childrenOf,
  type DerFailure,
  readDer,
  readInteger,
  readOctets,
  readTime,
  sameBytes,
} from "./x690.ts";

export type Certificate = Extensions & {
  /** The whole certificate is copied, so that the caller's buffer may be reused. */
  der: Uint8Array;
  /** The signed part (TBSCertificate), as received. */
  tbs: Uint8Array;
  /** Hexadecimal. */
  serial: string;
  signatureAlgorithm: SignatureAlgorithm;
  signature: Uint8Array;
  issuer: Name;
  subject: Name;
  notBeforeSeconds: number;
  notAfterSeconds: number;
  /** SubjectPublicKeyInfo, DER. */
  spki: Uint8Array;
  publicKey: Jwk;
};

export type CertificateFailure =
  | { kind: "certificate_too_large" }
  | { kind: "certificate_not_der"; cause: DerFailure["kind"] }
  | {
      kind: "certificate_malformed";
      part: "frame" | "serial" | "issuer" | "subject" | "validity";
    }
  | { kind: "certificate_version_refused" }
  | { kind: "certificate_algorithms_differ" }
  | SignatureFailure
  | { kind: "certificate_key_refused" }
  | ExtensionFailure;

const VERSION = 0xa0;
const VERSION_3 = 2n;
const SERIAL_BITS_MAX = 160n;

/** X5S-5.1-1: reads one DER certificate, version 3; anything with more than one possible reading is refused. */
export function parseCertificate(bytes: Uint8Array): Result<Certificate, CertificateFailure> {
  if (bytes.length > CERTIFICATE_BYTES_MAX) return err({ kind: "certificate_too_large" });
  const read = readDer(new Uint8Array(bytes));
  if (!read.ok) return err({ kind: "certificate_not_der", cause: read.error.kind });
  const [tbs, outerAlgorithm, signatureValue, ...behind] = childrenOf(read.value, der.SEQUENCE);
  const signature = readOctets(signatureValue);
  const [version, ...fields] = childrenOf(tbs, der.SEQUENCE);
  const [serialNumber, algorithm, issuerName, validity, subjectName, spki, extensions, ...more] = fields;
  if (tbs === undefined || signature === undefined || behind.length > 0) return malformed("frame");
  // 4.1.2.1: earlier versions have no extensions, so an authority cannot be told from a leaf.
  const [number, ...others] = childrenOf(version, VERSION);
  if (readInteger(number) !== VERSION_3 || others.length > 0)
    return err({ kind: "certificate_version_refused" });
  // 4.1.2.8: unique identifiers, which would come before the extensions, are not in use and are refused.
  if (spki === undefined || algorithm === undefined || more.length > 0) return malformed("frame");

  // 4.1.2.2: at most 20 octets; zero is tolerated, because some authorities use it.
  const serial = readInteger(serialNumber);
  if (serial === undefined || serial < 0n || serial >> SERIAL_BITS_MAX !== 0n) return malformed("serial");
  // 4.1.1.2: the outer algorithm is not signed, so it has to equal the signed one.
  if (outerAlgorithm === undefined || !sameBytes(outerAlgorithm.bytes, algorithm.bytes)) {
    return err({ kind: "certificate_algorithms_differ" });
  }
  const signatureAlgorithm = readSignatureAlgorithm(algorithm);
  if (!signatureAlgorithm.ok) return signatureAlgorithm;
  // 4.1.2.4: the issuer's name is not empty.
  const issuer = readName(issuerName);
  if (issuer === undefined || issuer.rdns.length === 0) return malformed("issuer");
  const [from, to, ...later] = childrenOf(validity, der.SEQUENCE);
  const [notBeforeSeconds, notAfterSeconds] = [readTime(from), readTime(to)];
  if (notBeforeSeconds === undefined || notAfterSeconds === undefined || later.length > 0) {
    return malformed("validity");
  }
  const subject = readName(subjectName);
  if (subject === undefined) return malformed("subject");
  const publicKey = readPublicKey(spki);
  if (publicKey === undefined) return err({ kind: "certificate_key_refused" });
  const known = readExtensions(extensions);
  if (!known.ok) return known;

  return ok({
    der: read.value.bytes,
    tbs: tbs.bytes,
    serial: serial.toString(16),
    signatureAlgorithm: signatureAlgorithm.value,
    signature,
    issuer,
    subject,
    notBeforeSeconds,
    notAfterSeconds,
    spki: spki.bytes,
    publicKey,
    ...known.value,
  });
}

function malformed(part: (CertificateFailure & { kind: "certificate_malformed" })["part"]) {
  return err({ kind: "certificate_malformed" as const, part });
}

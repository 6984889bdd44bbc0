/**
 * RFC 5280, X.509 Certificate Profile: https://www.rfc-editor.org/rfc/rfc5280.html
 * Covers 4.1 fields, 4.2.1.1 to 4.2.1.3, 4.2.1.6, 4.2.1.9, 4.2.1.10, 4.2.1.12 extensions. Paths are in
 * rfc5280-path.ts; signatures are checked elsewhere, over `tbs`. Keys by RFC 3279 2.3.1, RFC 5480 2, RFC 8410 4; signature
 * algorithms by RFC 4055 5 and 3.1, RFC 5758 3.2, RFC 8410 6. No certificate policies: where they are critical the path
 * is refused. No revocation lists: SVIDs are short-lived.
 */

import { CERTIFICATE_BYTES_MAX } from "../limits.ts";
import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";
import { encodeBase64url } from "./rfc7515.ts";
import type { Jwk } from "./rfc7517.ts";
import { parseJwk } from "./rfc7517.ts";
import { decodeUtf8 } from "./rfc8259.ts";
import type { Der, DerFailure } from "./x690.ts";
import * as der from "./x690.ts";
import {
  childrenOf,
  readAscii,
  readBits,
  readBoolean,
  readDer,
  readInteger,
  readOid,
  readTime,
  sameBytes,
} from "./x690.ts";

export type SignatureAlgorithm =
  | { kty: "EC"; hash: Digest }
  | { kty: "RSA"; hash: Digest; padding: "pkcs1" | "pss" }
  | { kty: "OKP" };
export type Digest = "sha256" | "sha384" | "sha512";

export type Attribute = {
  type: string;
  /** Absent for the old encodings, whose text has more than one reading. */
  text?: string;
  value: Der;
};
export type Name = { der: Uint8Array; rdns: readonly (readonly Attribute[])[] };

export type KeyUsage =
  | "digitalSignature"
  | "nonRepudiation"
  | "keyEncipherment"
  | "dataEncipherment"
  | "keyAgreement"
  | "keyCertSign"
  | "cRLSign"
  | "encipherOnly"
  | "decipherOnly";

export type SubjectAltNames = {
  critical: boolean;
  uris: readonly string[];
  dnsNames: readonly string[];
  emails: readonly string[];
  /** 4 or 16 bytes each. */
  ipAddresses: readonly Uint8Array[];
  /** How many names of other kinds. */
  others: number;
};

/** What a name is compared by. `host` is in lower case, and empty or with a leading dot only in a constraint. */
export type Place =
  | { type: "dns" | "uri"; host: string }
  | { type: "email"; local?: string; host: string }
  | { type: "ip"; bytes: Uint8Array };

export type NameConstraints = {
  permitted: readonly Place[];
  excluded: readonly Place[];
  /** There are constraints on kinds of names that we do not compare. */
  unjudged: boolean;
};

export type Certificate = {
  /** A copy of its own. */
  der: Uint8Array;
  /** The signed part, as it was received. */
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
  basicConstraints?: { ca: boolean; pathLength?: number };
  keyUsage?: { critical: boolean; usages: ReadonlySet<KeyUsage> };
  extendedKeyUsage?: readonly string[];
  subjectAltNames?: SubjectAltNames;
  nameConstraints?: NameConstraints;
  subjectKeyId?: Uint8Array;
  authorityKeyId?: Uint8Array;
  /** Critical extensions that nobody here understands, by OID. */
  unhandledCritical: readonly string[];
};

export type CertificateFailure =
  | { kind: "certificate_too_large" }
  | { kind: "certificate_not_der"; cause: DerFailure["kind"] }
  | {
      kind: "certificate_malformed";
      part: "frame" | "serial" | "issuer" | "subject" | "validity" | "extensions";
    }
  | { kind: "certificate_version_refused" }
  | { kind: "certificate_algorithms_differ" }
  | { kind: "certificate_signature_weak" }
  | { kind: "certificate_signature_unknown" }
  | { kind: "certificate_key_refused" }
  | { kind: "certificate_extension_repeated"; oid: string }
  | { kind: "certificate_extension_malformed"; oid: string };

// --- a certificate ------------------------------------------------------------------------------------------

const VERSION = 0xa0;
const EXTENSIONS = 0xa3;
const VERSION_3 = 2n;
const SERIAL_BITS_MAX = 160n;

/** X5S-5.1-1: one strict reading, or none. */
export function parseCertificate(bytes: Uint8Array): Result<Certificate, CertificateFailure> {
  if (bytes.length > CERTIFICATE_BYTES_MAX) return err({ kind: "certificate_too_large" });
  const read = readDer(new Uint8Array(bytes));
  if (!read.ok) return err({ kind: "certificate_not_der", cause: read.error.kind });
  const [tbs, outerAlgorithm, signatureValue, ...behind] = childrenOf(read.value, der.SEQUENCE);
  const signature = readOctets(signatureValue);
  const [version, ...fields] = childrenOf(tbs, der.SEQUENCE);
  const [serialNumber, algorithm, issuerName, validity, subjectName, spki, extensions, ...more] = fields;
  if (tbs === undefined || signature === undefined || behind.length > 0) return malformed("frame");
  // 4.1.2.1: before version 3 there were no extensions, so nothing tells an authority from a leaf.
  const [number, ...others] = childrenOf(version, VERSION);
  if (readInteger(number) !== VERSION_3 || others.length > 0)
    return err({ kind: "certificate_version_refused" });
  // 4.1.2.8: unique identifiers, which would come before the extensions, are not made any more.
  if (spki === undefined || algorithm === undefined || more.length > 0) return malformed("frame");

  // 4.1.2.2: zero occurs and does no harm.
  const serial = readInteger(serialNumber);
  if (serial === undefined || serial < 0n || serial >> SERIAL_BITS_MAX !== 0n) return malformed("serial");
  // 4.1.1.2: the outer field is not signed.
  if (outerAlgorithm === undefined || !sameBytes(outerAlgorithm.bytes, algorithm.bytes)) {
    return err({ kind: "certificate_algorithms_differ" });
  }
  const signatureAlgorithm = readSignatureAlgorithm(algorithm);
  if (!signatureAlgorithm.ok) return signatureAlgorithm;
  // 4.1.2.4: an issuer has a name.
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

/** A BIT STRING of whole octets. */
function readOctets(node: Der | undefined): Uint8Array | undefined {
  const bits = readBits(node);
  return bits?.unused === 0 ? bits.bytes : undefined;
}

// --- algorithms and keys ------------------------------------------------------------------------------------

const NULL_HEX = "0500";

/**
 * By OID, and the parameters in hexadecimal. RSASSA-PSS (…1.10) only as RFC 4055 3.1 would have it: one hash for both
 * uses, and a salt of its length.
 */
const SIGNATURE_ALGORITHMS: ReadonlyMap<string, SignatureAlgorithm> = new Map<string, SignatureAlgorithm>([
  ["1.2.840.10045.4.3.2 ", { kty: "EC", hash: "sha256" }],
  ["1.2.840.10045.4.3.3 ", { kty: "EC", hash: "sha384" }],
  ["1.2.840.10045.4.3.4 ", { kty: "EC", hash: "sha512" }],
  [`1.2.840.113549.1.1.11 ${NULL_HEX}`, { kty: "RSA", hash: "sha256", padding: "pkcs1" }],
  [`1.2.840.113549.1.1.12 ${NULL_HEX}`, { kty: "RSA", hash: "sha384", padding: "pkcs1" }],
  [`1.2.840.113549.1.1.13 ${NULL_HEX}`, { kty: "RSA", hash: "sha512", padding: "pkcs1" }],
  [`1.2.840.113549.1.1.10 ${pssParameters("01", "20")}`, { kty: "RSA", hash: "sha256", padding: "pss" }],
  [`1.2.840.113549.1.1.10 ${pssParameters("02", "30")}`, { kty: "RSA", hash: "sha384", padding: "pss" }],
  [`1.2.840.113549.1.1.10 ${pssParameters("03", "40")}`, { kty: "RSA", hash: "sha512", padding: "pss" }],
  ["1.3.101.112 ", { kty: "OKP" }],
]);

function pssParameters(hash: string, saltBytes: string): string {
  const algorithm = `300d06096086480165030402${hash}${NULL_HEX}`;
  const maskGeneration = `301a06092a864886f70d010108${algorithm}`;
  return `3034a00f${algorithm}a11c${maskGeneration}a2030201${saltBytes}`;
}

/** MD2, MD4, MD5 and SHA-1 with RSA, DSA and ECDSA, and RSASSA-PSS with its default, which is SHA-1. */
const WEAK_ALGORITHMS: ReadonlySet<string> = new Set([
  ...["1.2.840.113549.1.1.2", "1.2.840.113549.1.1.3", "1.2.840.113549.1.1.4", "1.2.840.113549.1.1.5"],
  ...["1.3.14.3.2.29", "1.3.14.3.2.27", "1.2.840.10040.4.3", "1.2.840.10045.4.1"],
]);
const WEAK_PSS = "1.2.840.113549.1.1.10 3000";

function readSignatureAlgorithm(node: Der): Result<SignatureAlgorithm, CertificateFailure> {
  const [id, ...parameters] = childrenOf(node, der.SEQUENCE);
  const oid = readOid(id) ?? "";
  const text = `${oid} ${parameters.map(({ bytes }) => bytes.toHex()).join("")}`;
  const algorithm = SIGNATURE_ALGORITHMS.get(text);
  if (algorithm !== undefined) return ok(algorithm);
  const weak = WEAK_ALGORITHMS.has(oid) || text === WEAK_PSS;
  return err({ kind: weak ? "certificate_signature_weak" : "certificate_signature_unknown" });
}

/** RFC 5480 2.1.1.1; no other curve. */
const CURVES: ReadonlyMap<string | undefined, string> = new Map([
  ["1.2.840.10045.3.1.7", "P-256"],
  ["1.3.132.0.34", "P-384"],
  ["1.3.132.0.35", "P-521"],
]);
const UNCOMPRESSED = 0x04;

/** A certificate's key is bound by the same rules as one that comes as JWK: size, exponent, point on its curve. */
function readPublicKey(spki: Der): Jwk | undefined {
  const [algorithm, keyBits, ...more] = childrenOf(spki, der.SEQUENCE);
  const [id, parameters, ...others] = childrenOf(algorithm, der.SEQUENCE);
  const bytes = readOctets(keyBits);
  if (bytes === undefined || more.length > 0 || others.length > 0) return undefined;
  switch (readOid(id)) {
    case "1.2.840.113549.1.1.1":
      return parameters?.tag === der.NULL ? readRsaKey(bytes) : undefined;
    case "1.2.840.10045.2.1": {
      const crv = CURVES.get(readOid(parameters));
      if (crv === undefined || bytes[0] !== UNCOMPRESSED) return undefined;
      const middle = (bytes.length + 1) / 2;
      return toJwk({
        kty: "EC",
        crv,
        x: encodeBase64url(bytes.subarray(1, middle)),
        y: encodeBase64url(bytes.subarray(middle)),
      });
    }
    case "1.3.101.112":
      return parameters === undefined
        ? toJwk({ kty: "OKP", crv: "Ed25519", x: encodeBase64url(bytes) })
        : undefined;
    default:
      return undefined;
  }
}

function readRsaKey(bytes: Uint8Array): Jwk | undefined {
  const read = readDer(bytes);
  if (!read.ok) return undefined;
  const [modulus, exponent, ...more] = childrenOf(read.value, der.SEQUENCE).map(readUnsigned);
  if (modulus === undefined || exponent === undefined || more.length > 0) return undefined;
  return toJwk({ kty: "RSA", n: encodeBase64url(modulus), e: encodeBase64url(exponent) });
}

/** The octets of a number above zero, without the one that holds its sign. */
function readUnsigned(node: Der): Uint8Array | undefined {
  if (node.tag !== der.INTEGER || (node.content[0] ?? 0) >= 0x80) return undefined;
  return node.content[0] === 0 ? node.content.subarray(1) : node.content;
}

function toJwk(members: { [name: string]: string }): Jwk | undefined {
  const key = parseJwk(members);
  return key.ok ? key.value : undefined;
}

// --- names --------------------------------------------------------------------------------------------------

function readName(node: Der | undefined): Name | undefined {
  if (node?.tag !== der.SEQUENCE) return undefined;
  const rdns: Attribute[][] = [];
  for (const set of node.children) {
    const rdn = childrenOf(set, der.SET).map(readAttribute);
    if (rdn.length === 0 || !rdn.every((attribute) => attribute !== undefined)) return undefined;
    rdns.push(rdn);
  }
  return { der: node.bytes, rdns };
}

function readAttribute(node: Der): Attribute | undefined {
  const [id, value, ...more] = childrenOf(node, der.SEQUENCE);
  const type = readOid(id);
  if (type === undefined || value === undefined || more.length > 0) return undefined;
  const text = readText(value);
  return { type, value, ...(text !== undefined && { text }) };
}

const PRINTABLE = /^[A-Za-z0-9 '()+,./:=?-]*$/;

function readText({ tag, content }: Der): string | undefined {
  switch (tag) {
    case der.UTF8_STRING: {
      const text = decodeUtf8(content);
      return text.ok ? text.value : undefined;
    }
    case der.PRINTABLE_STRING: {
      const text = readAscii(content);
      return text !== undefined && PRINTABLE.test(text) ? text : undefined;
    }
    case der.IA5_STRING:
      return readAscii(content);
    default:
      return undefined;
  }
}

// --- extensions ---------------------------------------------------------------------------------------------

type Known = Pick<Partial<Certificate>, OptionalField>;
type OptionalField =
  | "basicConstraints"
  | "keyUsage"
  | "extendedKeyUsage"
  | "subjectAltNames"
  | "nameConstraints"
  | "subjectKeyId"
  | "authorityKeyId";
type ExtensionReader = (value: Der, critical: boolean) => Known | undefined;

const EXTENSION_READERS: ReadonlyMap<string, ExtensionReader> = new Map<string, ExtensionReader>([
  ["2.5.29.14", readSubjectKeyId],
  ["2.5.29.15", readKeyUsage],
  ["2.5.29.17", readSubjectAltNames],
  ["2.5.29.19", readBasicConstraints],
  ["2.5.29.30", readNameConstraints],
  ["2.5.29.35", readAuthorityKeyId],
  ["2.5.29.37", readExtendedKeyUsage],
]);

function readExtensions(
  wrapper: Der | undefined,
): Result<Known & Pick<Certificate, "unhandledCritical">, CertificateFailure> {
  const known: Known = {};
  const unhandledCritical: string[] = [];
  if (wrapper === undefined) return ok({ unhandledCritical });
  const [list, ...more] = childrenOf(wrapper, EXTENSIONS);
  const extensions = childrenOf(list, der.SEQUENCE);
  if (extensions.length === 0 || more.length > 0) return malformed("extensions");

  const seen = new Set<string>();
  for (const extension of extensions) {
    const [id, ...rest] = childrenOf(extension, der.SEQUENCE);
    const [oid, value] = [readOid(id), rest.pop()];
    if (oid === undefined || value?.tag !== der.OCTET_STRING) return malformed("extensions");
    // X.690 11.5: what is not critical does not say so.
    const critical = rest.length > 0;
    if (critical && (rest.length > 1 || readBoolean(rest[0]) !== true)) return malformed("extensions");
    // 4.2: a second one could say the opposite of the first.
    if (seen.has(oid)) return err({ kind: "certificate_extension_repeated", oid });
    seen.add(oid);

    const read = EXTENSION_READERS.get(oid);
    if (read === undefined) {
      if (critical) unhandledCritical.push(oid);
      continue;
    }
    const inner = readDer(value.content);
    const fields = inner.ok ? read(inner.value, critical) : undefined;
    if (fields === undefined) return err({ kind: "certificate_extension_malformed", oid });
    Object.assign(known, fields);
  }
  return ok({ ...known, unhandledCritical });
}

/** 4.2.1.9 */
function readBasicConstraints(node: Der): Known | undefined {
  if (node.tag !== der.SEQUENCE) return undefined;
  const [first, ...rest] = node.children;
  if (first === undefined) return { basicConstraints: { ca: false } };
  // X.690 11.5: FALSE is the default; and a leaf has no path below it.
  if (readBoolean(first) !== true || rest.length > 1) return undefined;
  if (rest.length === 0) return { basicConstraints: { ca: true } };
  const pathLength = readInteger(rest[0]);
  if (pathLength === undefined || pathLength < 0n) return undefined;
  return { basicConstraints: { ca: true, pathLength: Number(pathLength) } };
}

const KEY_USAGES: readonly KeyUsage[] = [
  "digitalSignature",
  "nonRepudiation",
  "keyEncipherment",
  "dataEncipherment",
  "keyAgreement",
  "keyCertSign",
  "cRLSign",
  "encipherOnly",
  "decipherOnly",
];

/** 4.2.1.3 */
function readKeyUsage(node: Der, critical: boolean): Known | undefined {
  const bits = readBits(node);
  if (bits === undefined) return undefined;
  const length = bits.bytes.length * 8 - bits.unused;
  const isSet = (index: number) => (((bits.bytes[index >> 3] ?? 0) << (index & 7)) & 0x80) !== 0;
  // X.690 11.2.2: a named list ends with a bit that is set; and an empty one allows nothing.
  if (length === 0 || length > KEY_USAGES.length || !isSet(length - 1)) return undefined;
  return { keyUsage: { critical, usages: new Set(KEY_USAGES.filter((_, index) => isSet(index))) } };
}

/** 4.2.1.12 */
function readExtendedKeyUsage(node: Der): Known | undefined {
  const usages = childrenOf(node, der.SEQUENCE).map(readOid);
  if (usages.length === 0 || !usages.every((usage) => usage !== undefined)) return undefined;
  return { extendedKeyUsage: usages };
}

/** 4.2.1.2 */
function readSubjectKeyId({ tag, content }: Der): Known | undefined {
  return tag === der.OCTET_STRING ? { subjectKeyId: content } : undefined;
}

const KEY_ID = 0x80;

/** 4.2.1.1: of use only to try the likely issuer first. */
function readAuthorityKeyId(node: Der): Known | undefined {
  if (node.tag !== der.SEQUENCE) return undefined;
  const [first] = node.children;
  return first?.tag === KEY_ID ? { authorityKeyId: first.content } : {};
}

const EMAIL_NAME = 0x81;
const DNS_NAME = 0x82;
const URI_NAME = 0x86;
const IP_NAME = 0x87;
/** Other name, X.400 address, directory name, EDI party name, registered ID. */
const OTHER_NAMES: readonly number[] = [0xa0, 0xa3, 0xa4, 0xa5, 0x88];

/** 4.2.1.6. By tag, never from a text that one name could make look like two (RFC8705-2.1.2-3). */
function readSubjectAltNames(node: Der, critical: boolean): Known | undefined {
  const uris: string[] = [];
  const dnsNames: string[] = [];
  const emails: string[] = [];
  const ipAddresses: Uint8Array[] = [];
  let others = 0;
  const texts: ReadonlyMap<number, string[]> = new Map([
    [EMAIL_NAME, emails],
    [DNS_NAME, dnsNames],
    [URI_NAME, uris],
  ]);
  const names = childrenOf(node, der.SEQUENCE);
  for (const { tag, content } of names) {
    const list = texts.get(tag);
    if (list !== undefined) {
      const text = readAscii(content);
      if (text === undefined) return undefined;
      list.push(text);
    } else if (tag === IP_NAME) {
      if (content.length !== 4 && content.length !== 16) return undefined;
      ipAddresses.push(content);
    } else if (OTHER_NAMES.includes(tag)) {
      others++;
    } else {
      return undefined;
    }
  }
  if (names.length === 0) return undefined;
  return { subjectAltNames: { critical, uris, dnsNames, emails, ipAddresses, others } };
}

// --- name constraints ---------------------------------------------------------------------------------------

const PERMITTED = 0xa0;
const EXCLUDED = 0xa1;

/** 4.2.1.10 */
function readNameConstraints(node: Der): Known | undefined {
  if (node.tag !== der.SEQUENCE || node.children.length === 0) return undefined;
  const constraints = { permitted: [] as Place[], excluded: [] as Place[], unjudged: false };
  let last = 0;
  for (const { tag, children } of node.children) {
    if ((tag !== PERMITTED && tag !== EXCLUDED) || tag <= last || children.length === 0) return undefined;
    last = tag;
    for (const subtree of children) {
      // Minimum and maximum are not used, and zero, the default, is left out.
      const [base, ...bounds] = childrenOf(subtree, der.SEQUENCE);
      if (base === undefined || bounds.length > 0) return undefined;
      if (OTHER_NAMES.includes(base.tag)) {
        constraints.unjudged = true;
        continue;
      }
      const place = readBase(base);
      if (place === undefined) return undefined;
      constraints[tag === PERMITTED ? "permitted" : "excluded"].push(place);
    }
  }
  return { nameConstraints: constraints };
}

const LABELS = "[a-z0-9_*-]+(?:\\.[a-z0-9_*-]+)*";
export const HOST = new RegExp(`^${LABELS}$`);
/** With a leading dot: what is below; without anything: all. */
const HOST_BASE = new RegExp(`^(?:\\.?${LABELS})?$`);
const DNS_BASE = new RegExp(`^(?:${LABELS})?$`);
/** No quotes, by which one mailbox would have several spellings. */
const MAILBOX = /^([A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+)@([^@]+)$/;

function readBase({ tag, content }: Der): Place | undefined {
  if (tag === IP_NAME) return isNetwork(content) ? { type: "ip", bytes: content } : undefined;
  const text = readAscii(content);
  if (text === undefined) return undefined;
  const host = lowerCase(text);
  switch (tag) {
    case DNS_NAME:
      return DNS_BASE.test(host) ? { type: "dns", host } : undefined;
    case URI_NAME:
      return HOST_BASE.test(host) ? { type: "uri", host } : undefined;
    case EMAIL_NAME:
      return HOST_BASE.test(host) ? { type: "email", host } : mailbox(text);
    default:
      return undefined;
  }
}

/** An address and a mask: ones, then zeros. */
function isNetwork(bytes: Uint8Array): boolean {
  if (bytes.length !== 8 && bytes.length !== 32) return false;
  const mask = [...bytes.subarray(bytes.length / 2)].map((octet) => octet.toString(2).padStart(8, "0"));
  return /^1*0*$/.test(mask.join(""));
}

export const lowerCase = (text: string): string => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

export function mailbox(text: string): Place | undefined {
  const [, local, domain = ""] = MAILBOX.exec(text) ?? [];
  const host = lowerCase(domain);
  return local !== undefined && HOST.test(host) ? { type: "email", local, host } : undefined;
}

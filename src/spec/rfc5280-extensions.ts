/**
 * RFC 5280, X.509 Certificate Profile: https://www.rfc-editor.org/rfc/rfc5280.html
 * Covers 4.2 extensions: 4.2.1.1 to 4.2.1.3, 4.2.1.9, 4.2.1.12; those that hold names are read in rfc5280-names.ts.
 */

import { err, ok, type Result } from "../result.ts";
import {
  type NameConstraints,
  readNameConstraints,
  readSubjectAltNames,
  type SubjectAltNames,
} from "./rfc5280-names.ts";
import * as der from "./x690.ts";
import { childrenOf, type Der, readBits, readBoolean, readDer, readInteger, readOid } from "./x690.ts";

type KeyUsage =
  | "digitalSignature"
  | "nonRepudiation"
  | "keyEncipherment"
  | "dataEncipherment"
  | "keyAgreement"
  | "keyCertSign"
  | "cRLSign"
  | "encipherOnly"
  | "decipherOnly";

type Handled = {
  basicConstraints?: { ca: boolean; pathLength?: number };
  keyUsage?: { critical: boolean; usages: ReadonlySet<KeyUsage> };
  extendedKeyUsage?: readonly string[];
  subjectAltNames?: SubjectAltNames;
  nameConstraints?: NameConstraints;
  subjectKeyId?: Uint8Array;
  authorityKeyId?: Uint8Array;
};
export type Extensions = Handled & {
  /** OIDs of critical extensions that this reader does not support. */
  unhandledCritical: readonly string[];
};
type ExtensionReader = (value: Der, critical: boolean) => Handled | undefined;

export type ExtensionFailure =
  | { kind: "certificate_malformed"; part: "extensions" }
  | { kind: "certificate_extension_repeated"; oid: string }
  | { kind: "certificate_extension_malformed"; oid: string };

const EXTENSIONS = 0xa3;

const EXTENSION_READERS: ReadonlyMap<string, ExtensionReader> = new Map<string, ExtensionReader>([
  ["2.5.29.14", readSubjectKeyId],
  ["2.5.29.15", readKeyUsage],
  ["2.5.29.17", readSubjectAltNames],
  ["2.5.29.19", readBasicConstraints],
  ["2.5.29.30", readNameConstraints],
  ["2.5.29.35", readAuthorityKeyId],
  ["2.5.29.37", readExtendedKeyUsage],
]);

const malformed = err({ kind: "certificate_malformed", part: "extensions" } as const);

/** Reads the extensions; `wrapper` is the `[3]` field of a certificate. A certificate without the field has none. */
export function readExtensions(wrapper: Der | undefined): Result<Extensions, ExtensionFailure> {
  const handled: Handled = {};
  const unhandledCritical: string[] = [];
  if (wrapper === undefined) return ok({ unhandledCritical });
  const [list, ...more] = childrenOf(wrapper, EXTENSIONS);
  const extensions = childrenOf(list, der.SEQUENCE);
  if (extensions.length === 0 || more.length > 0) return malformed;

  const seen = new Set<string>();
  for (const extension of extensions) {
    const [id, ...rest] = childrenOf(extension, der.SEQUENCE);
    const [oid, value] = [readOid(id), rest.pop()];
    if (oid === undefined || value?.tag !== der.OCTET_STRING) return malformed;
    // X.690 11.5: DER leaves out `critical` when it is FALSE, the default.
    const critical = rest.length > 0;
    if (critical && (rest.length > 1 || readBoolean(rest[0]) !== true)) return malformed;
    // 4.2: an extension occurs once, because a second one could contradict the first.
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
    Object.assign(handled, fields);
  }
  return ok({ ...handled, unhandledCritical });
}

/** 4.2.1.9, basic constraints. */
function readBasicConstraints(node: Der): Handled | undefined {
  if (node.tag !== der.SEQUENCE) return undefined;
  const [first, ...rest] = node.children;
  if (first === undefined) return { basicConstraints: { ca: false } };
  // X.690 11.5: `cA` is left out when it is FALSE; and only an authority has a path length.
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

/** 4.2.1.3, key usage. */
function readKeyUsage(node: Der, critical: boolean): Handled | undefined {
  const bits = readBits(node);
  if (bits === undefined) return undefined;
  const length = bits.bytes.length * 8 - bits.unused;
  const isSet = (index: number) => (((bits.bytes[index >> 3] ?? 0) << (index & 7)) & 0x80) !== 0;
  // X.690 11.2.2: a named bit list ends with a bit that is set; an empty one would allow no use at all.
  if (length === 0 || length > KEY_USAGES.length || !isSet(length - 1)) return undefined;
  return { keyUsage: { critical, usages: new Set(KEY_USAGES.filter((_, index) => isSet(index))) } };
}

/** 4.2.1.12, extended key usage. */
function readExtendedKeyUsage(node: Der): Handled | undefined {
  const usages = childrenOf(node, der.SEQUENCE).map(readOid);
  if (usages.length === 0 || !usages.every((usage) => usage !== undefined)) return undefined;
  return { extendedKeyUsage: usages };
}

/** 4.2.1.2, subject key identifier. */
function readSubjectKeyId({ tag, content }: Der): Handled | undefined {
  return tag === der.OCTET_STRING ? { subjectKeyId: content } : undefined;
}

const KEY_ID = 0x80;

/** 4.2.1.1, authority key identifier: it is only a hint for which issuer to try first. */
function readAuthorityKeyId(node: Der): Handled | undefined {
  if (node.tag !== der.SEQUENCE) return undefined;
  const [first] = node.children;
  return first?.tag === KEY_ID ? { authorityKeyId: first.content } : {};
}

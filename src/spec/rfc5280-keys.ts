/**
 * RFC 5280, X.509 Certificate Profile: https://www.rfc-editor.org/rfc/rfc5280.html
 * Covers 4.1.1.2 signature algorithms and 4.1.2.7 public keys. Keys by RFC 3279 2.3.1, RFC 5480 2, RFC 8410 4;
 * signature algorithms by RFC 4055 5 and 3.1, RFC 5758 3.2, RFC 8410 6.
 */

import { err, ok, type Result } from "../result.ts";
import { encodeBase64url } from "./rfc7515.ts";
import { type Jwk, parseJwk } from "./rfc7517.ts";
import * as der from "./x690.ts";
import { childrenOf, type Der, readDer, readOctets, readOid } from "./x690.ts";

export type SignatureAlgorithm =
  | { kty: "EC"; hash: Digest }
  | { kty: "RSA"; hash: Digest; padding: "pkcs1" | "pss" }
  | { kty: "OKP" };
export type Digest = "sha256" | "sha384" | "sha512";

export type SignatureFailure = { kind: "certificate_signature_weak" | "certificate_signature_unknown" };

const NULL_HEX = "0500";

/**
 * By OID and parameters in hexadecimal. RSASSA-PSS (…1.10) is accepted only as RFC 4055 3.1 recommends: the same hash
 * for message and mask, and a salt of the hash's length.
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

/** Broken algorithms, listed so that the audit trail can tell a weak signature from an unknown one. */
const WEAK_ALGORITHMS: ReadonlySet<string> = new Set([
  "1.2.840.113549.1.1.2", // MD2 with RSA
  "1.2.840.113549.1.1.3", // MD4 with RSA
  "1.2.840.113549.1.1.4", // MD5 with RSA
  "1.2.840.113549.1.1.5", // SHA-1 with RSA
  "1.3.14.3.2.29", // SHA-1 with RSA, the older identifier
  "1.3.14.3.2.27", // SHA-1 with DSA, the older identifier
  "1.2.840.10040.4.3", // SHA-1 with DSA
  "1.2.840.10045.4.1", // SHA-1 with ECDSA
]);
/** RSASSA-PSS with its default hash, SHA-1. */
const WEAK_PSS = "1.2.840.113549.1.1.10 3000";

/** 4.1.1.2: reads an AlgorithmIdentifier; weak and unknown algorithms are refused. */
export function readSignatureAlgorithm(node: Der): Result<SignatureAlgorithm, SignatureFailure> {
  const [id, ...parameters] = childrenOf(node, der.SEQUENCE);
  const oid = readOid(id) ?? "";
  const text = `${oid} ${parameters.map(({ bytes }) => bytes.toHex()).join("")}`;
  const algorithm = SIGNATURE_ALGORITHMS.get(text);
  if (algorithm !== undefined) return ok(algorithm);
  const weak = WEAK_ALGORITHMS.has(oid) || text === WEAK_PSS;
  return err({ kind: weak ? "certificate_signature_weak" : "certificate_signature_unknown" });
}

/** RFC 5480 2.1.1.1: the supported curves, by OID. */
const CURVES: ReadonlyMap<string | undefined, string> = new Map([
  ["1.2.840.10045.3.1.7", "P-256"],
  ["1.3.132.0.34", "P-384"],
  ["1.3.132.0.35", "P-521"],
]);
const UNCOMPRESSED = 0x04;

/** A certificate's key has to meet the same rules as a JWK: size, exponent, point on its curve. */
export function readPublicKey(spki: Der): Jwk | undefined {
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

/** The octets of a positive integer, without the leading zero octet that holds its sign. */
function readUnsigned(node: Der): Uint8Array | undefined {
  if (node.tag !== der.INTEGER || (node.content[0] ?? 0) >= 0x80) return undefined;
  return node.content[0] === 0 ? node.content.subarray(1) : node.content;
}

function toJwk(members: { [name: string]: string }): Jwk | undefined {
  const key = parseJwk(members);
  return key.ok ? key.value : undefined;
}

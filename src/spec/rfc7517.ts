/**
 * RFC 7517, JSON Web Key: https://www.rfc-editor.org/rfc/rfc7517.html
 * Covers 4 members, 5 JWK Set, with the public keys of RFC 7518 section 6 (EC, RSA) and RFC 8037 section 2 (Ed25519).
 * Elsewhere: 4 spec/rfc7591-members.ts, spec/rfc8259.ts; 4.7 spec/rfc8705.ts, spec/spiffe/bundle.ts; 5
 * spec/rfc7591-members.ts; 7 adapters/crypto/key-ring.ts; 9.2 adapters/crypto/seal.ts, spec/rfc7591-members.ts; RFC7518
 * 3.4 adapters/crypto/primitives.ts, adapters/crypto/signer.ts; RFC7518 3.5 adapters/crypto/primitives.ts; RFC7518 3.6
 * spec/rfc7515.ts; RFC8037 2 spec/rfc7638.ts.
 */

import { JSON_DEPTH_MAX, KEYS_MAX, KID_CHARS_MAX, RSA_BITS_MAX, RSA_BITS_MIN } from "../limits/input.ts";
import { err, ok, type Result } from "../result.ts";
import { decodeBase64url, type JwsHeader } from "./rfc7515.ts";
import { isJsonObject, type Json, type JsonFailure, type JsonObject, parseJson } from "./rfc8259.ts";

type Named = { kid?: string; alg?: string };
export type EcJwk = Named & { kty: "EC"; crv: string; x: string; y: string };
type OkpJwk = Named & { kty: "OKP"; crv: "Ed25519"; x: string };
type RsaJwk = Named & { kty: "RSA"; n: string; e: string };
/** A checked public key that may verify signatures; every value except `kid` is plain ASCII. */
export type Jwk = EcJwk | OkpJwk | RsaJwk;

export type JwkFailure = { kind: "jwk_unusable" | "jwk_private" };

export type JwkSetFailure =
  | { kind: "jwk_set_malformed"; cause: "not_object" | "no_keys" | JsonFailure["kind"] }
  | { kind: "jwk_set_too_large" }
  | { kind: "jwk_set_private" };

type KeyChoiceFailure = { kind: "key_unknown" | "key_unsuitable" | "key_ambiguous" };

type Curve = { alg: string; bytes: number; prime: bigint; b: bigint };

const CURVES: ReadonlyMap<Json | undefined, Curve> = new Map([
  [
    "P-256",
    {
      alg: "ES256",
      bytes: 32,
      prime: 2n ** 256n - 2n ** 224n + 2n ** 192n + 2n ** 96n - 1n,
      b: 0x5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604bn,
    },
  ],
  [
    "P-384",
    {
      alg: "ES384",
      bytes: 48,
      prime: 2n ** 384n - 2n ** 128n - 2n ** 96n + 2n ** 32n - 1n,
      b: 0xb3312fa7e23ee7e4988e056be3f82d19181d9c6efe8141120314088f5013875ac656398d8a2ed19d2a85c8edd3ec2aefn,
    },
  ],
  [
    "P-521",
    {
      alg: "ES512",
      bytes: 66,
      prime: 2n ** 521n - 1n,
      b: 0x51953eb9618e1c9a1f929a21a0b68540eea2da725b99b315f3b8b489918ef109e156193951ec7e937b1652c0bd3bb1bf073573df883d2c34f1ef451fd46b503f00n,
    },
  ],
]);

const ED25519_BYTES = 32;
const ED25519_ALGORITHMS = ["EdDSA", "Ed25519"] as const;
export const RSA_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"] as const;

// --- one key ------------------------------------------------------------------------------------------------

const PRIVATE_MEMBERS: ReadonlyMap<Json | undefined, readonly string[]> = new Map([
  ["EC", ["d"]],
  ["OKP", ["d"]],
  ["RSA", ["d", "p", "q", "dp", "dq", "qi", "oth"]],
  ["oct", ["kty"]],
  ["AKP", ["priv"]],
]);

/**
 * RFC7517-9.2-1, RFC8037-2-v1: a private or symmetric key that was published, or sent to us, proves nothing. Refusing
 * them also means that signatures are never verified with a secret (RFC7515-10.9-v1).
 */
function isPrivate(members: JsonObject): boolean {
  return PRIVATE_MEMBERS.get(members.kty)?.some((name) => name in members) ?? false;
}

/** The members that hold private or symmetric key material, also of unknown key types. */
export const SECRET_MEMBERS: readonly string[] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k", "priv"];

const SIGNATURE_USES: readonly (string | undefined)[] = [undefined, "sig"];

/** The key without unknown members (RFC7517-4-v2). `uses` are the values of `use` that are accepted. */
export function parseJwk(value: Json, uses = SIGNATURE_USES): Result<Jwk, JwkFailure> {
  if (!isJsonObject(value)) return err({ kind: "jwk_unusable" });
  if (isPrivate(value)) return err({ kind: "jwk_private" });
  const key = parsePublicKey(value);
  if (key === undefined || !mayVerify(value, uses)) return err({ kind: "jwk_unusable" });

  const { kid, alg } = value;
  if (kid !== undefined) {
    if (typeof kid !== "string" || kid.length > KID_CHARS_MAX) return err({ kind: "jwk_unusable" });
    key.kid = kid;
  }
  if (alg !== undefined) {
    // RFC8725-3.1-v5: `alg` has to be an algorithm for this key's type and curve.
    if (typeof alg !== "string" || !algorithmsOf(key, RSA_ALGORITHMS).includes(alg)) {
      return err({ kind: "jwk_unusable" });
    }
    key.alg = alg;
  }
  return ok(key);
}

function mayVerify({ use, key_ops }: JsonObject, uses: readonly (string | undefined)[]): boolean {
  // RFC7517-4.2-v1: a key for another use verifies no signature.
  if (!uses.some((allowed) => allowed === use)) return false;
  if (key_ops === undefined) return true;
  // RFC7517-4.3-v1, RFC7517-4.3-v2: no operation twice, `verify` among them, and no purpose other than signatures.
  return (
    Array.isArray(key_ops) &&
    new Set(key_ops).size === key_ops.length &&
    key_ops.includes("verify") &&
    key_ops.every((operation) => operation === "verify" || operation === "sign")
  );
}

function parsePublicKey({ kty, crv, x, y, n, e }: JsonObject): Jwk | undefined {
  // RFC7517-4.1-v1: a key of an unknown type is not used; `kty` is case-sensitive.
  switch (kty) {
    case "EC":
      // RFC7518-6.2.1-v1: the curve and both coordinates are required.
      if (typeof crv !== "string" || typeof x !== "string" || typeof y !== "string") return undefined;
      return isPoint(crv, x, y) ? { kty, crv, x, y } : undefined;
    case "OKP":
      // RFC8037-2-v1, RFC8037-3.1-v1: Ed25519 is the only curve of this type that is supported.
      if (crv !== "Ed25519" || typeof x !== "string") return undefined;
      return decodeBase64url(x)?.length === ED25519_BYTES ? { kty, crv, x } : undefined;
    case "RSA":
      if (typeof n !== "string" || typeof e !== "string") return undefined;
      return isModulus(n) && isExponent(e) ? { kty, n, e } : undefined;
    default:
      return undefined;
  }
}

function toBigInt(bytes: Uint8Array): bigint {
  return BigInt(`0x${bytes.toHex()}`);
}

/** RFC8725-3.4-v1: whether y² = x³ − 3x + b holds; computing with a point off the curve can leak a private key. */
function isPoint(crv: string, xText: string, yText: string): boolean {
  const curve = CURVES.get(crv);
  const xBytes = decodeBase64url(xText);
  const yBytes = decodeBase64url(yText);
  // RFC7518-6.2.1-v2: coordinates have their full length, leading zeros included.
  if (curve === undefined || xBytes?.length !== curve.bytes || yBytes?.length !== curve.bytes) return false;
  const { prime, b } = curve;
  const x = toBigInt(xBytes);
  const y = toBigInt(yBytes);
  return x < prime && y < prime && (y * y - (x * x - 3n) * x - b) % prime === 0n;
}

/**
 * RFC7518-3.3-v1, RFC7518-3.5-v1: a modulus has at least 2048 bits. RFC7523-3-2: it has at most 4096, because
 * verification time grows with size.
 */
function isModulus(text: string): boolean {
  const bytes = decodeBase64url(text);
  // RFC7518-6.3.1-v1: a value begins with no zero octet.
  if (bytes === undefined || !bytes[0] || bytes.length * 8 > RSA_BITS_MAX) return false;
  const bits = bytes.length * 8 - Math.clz32(bytes[0]) + 24;
  return bits >= RSA_BITS_MIN && !isWeakModulus(toBigInt(bytes));
}

function isExponent(text: string): boolean {
  const bytes = decodeBase64url(text);
  if (bytes === undefined || !bytes[0] || bytes.length > 4) return false;
  const exponent = toBigInt(bytes);
  return exponent >= 65537n && exponent % 2n === 1n;
}

const SMALL_PRIMES: readonly { prime: bigint; powers: ReadonlySet<number> }[] = [
  2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103,
  107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167,
].map((prime) => ({ prime: BigInt(prime), powers: powersOf65537(prime) }));

function powersOf65537(prime: number): ReadonlySet<number> {
  const powers = new Set<number>();
  for (let power = 1; !powers.has(power); power = (power * 65537) % prime) powers.add(power);
  return powers;
}

/**
 * RFC8725-3.4-v1: whether the modulus has a small prime factor, or the fingerprint of ROCA (CVE-2017-15361: a power of
 * 65537 modulo each small prime). In both cases the private key can be computed.
 */
function isWeakModulus(modulus: bigint): boolean {
  let hasFingerprint = true;
  for (const { prime, powers } of SMALL_PRIMES) {
    const rest = Number(modulus % prime);
    if (rest === 0) return true;
    hasFingerprint &&= powers.has(rest);
  }
  return hasFingerprint;
}

// --- a set of keys ------------------------------------------------------------------------------------------

/** The set as a whole, before keys are selected: its members and the entries of `keys`, unchecked. */
export function readJwkSet(text: string): Result<{ members: JsonObject; entries: Json[] }, JwkSetFailure> {
  const json = parseJson(text, JSON_DEPTH_MAX);
  if (!json.ok) return err({ kind: "jwk_set_malformed", cause: json.error.kind });
  // RFC7517-5-v1, RFC7517-5-1: an object with an array `keys`. RFC7517-5-v3: unknown members are ignored.
  if (!isJsonObject(json.value)) return err({ kind: "jwk_set_malformed", cause: "not_object" });
  const { keys } = json.value;
  if (!Array.isArray(keys)) return err({ kind: "jwk_set_malformed", cause: "no_keys" });
  // RFC7523-3-2: this limit is our own.
  if (keys.length > KEYS_MAX) return err({ kind: "jwk_set_too_large" });
  // RFC7517-9.2-1: a set with one private key is refused as a whole, because its owner may have published the others
  // too.
  if (keys.some((entry) => isJsonObject(entry) && isPrivate(entry))) return err({ kind: "jwk_set_private" });
  return ok({ members: json.value, entries: keys });
}

/** RFC7517-5-v2: the usable keys of a set; unusable ones are skipped. */
export function parseJwkSet(text: string): Result<Jwk[], JwkSetFailure> {
  const set = readJwkSet(text);
  if (!set.ok) return set;
  return ok(set.value.entries.map((entry) => parseJwk(entry)).flatMap((key) => (key.ok ? [key.value] : [])));
}

/**
 * RFC8725-3.1-v4: the algorithms that a key may be used with. An RSA key without `alg` may be used with the caller's;
 * `EdDSA` and `Ed25519` are two names of one algorithm.
 */
export function algorithmsOf(key: Jwk, rsaAlgorithms: readonly string[]): readonly string[] {
  switch (key.kty) {
    case "EC": {
      // RFC7518-3.4-v3: each curve belongs to one algorithm.
      const curve = CURVES.get(key.crv);
      return curve === undefined ? [] : [curve.alg];
    }
    case "OKP":
      return ED25519_ALGORITHMS;
    case "RSA":
      // RFC7517-4.4-1: a key with `alg` is used with that algorithm only.
      return key.alg === undefined ? rsaAlgorithms : [key.alg];
  }
}

/**
 * RFC7515-6-v2: the one key for this header; several matching keys are an error. The order in the set has no meaning
 * (RFC7517-5.1-1), and keys are never tried one after another.
 */
export function selectKey(
  keys: readonly Jwk[],
  { alg, kid }: Pick<JwsHeader, "alg" | "kid">,
  rsaAlgorithms: readonly string[] = ["RS256"],
): Result<Jwk, KeyChoiceFailure> {
  // RFC7517-4.5-2, RFC7515-5.3-v1: `kid` is compared byte for byte.
  const named = kid === undefined ? keys : keys.filter((key) => key.kid === kid);
  if (kid !== undefined && named.length === 0) return err({ kind: "key_unknown" });
  // RFC8725-3.1-v5, B8725-3.1-2: the key decides which algorithms are allowed, never the header alone.
  const [key, ...others] = named.filter((candidate) => algorithmsOf(candidate, rsaAlgorithms).includes(alg));
  if (key === undefined) return err({ kind: "key_unsuitable" });
  // JWKS-D-1: the same key twice is one key.
  return others.every((one) => isSameKey(one, key)) ? ok(key) : err({ kind: "key_ambiguous" });
}

/** Whether both have the same material, whatever they are called. */
const isSameKey = (one: Jwk, other: Jwk): boolean => materialOf(one) === materialOf(other);

const materialOf = ({ kid: _, alg: __, ...material }: Jwk): string => JSON.stringify(material);

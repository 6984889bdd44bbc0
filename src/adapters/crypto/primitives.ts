/** The algorithms of RFC 7518 section 3 and RFC 8037 section 3.1 as calls of the platform. */
import { constants } from "node:crypto";

type Primitive = {
  /** Absent if the algorithm hashes by itself. */
  digest: string | undefined;
  options: { dsaEncoding?: "ieee-p1363"; padding?: number; saltLength?: number };
};

// RFC7518-3.4-v1, RFC7518-3.4-v2: a signature is R and S, each in full length, and not DER.
const ecdsa = (digest: string): Primitive => ({ digest, options: { dsaEncoding: "ieee-p1363" } });
const pkcs1 = (digest: string): Primitive => ({
  digest,
  options: { padding: constants.RSA_PKCS1_PADDING },
});
// RFC7518-3.5-v2: the salt is as long as the digest, and MGF1 uses the same digest, which is the platform's default.
const pss = (digest: string): Primitive => ({
  digest,
  options: { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST },
});
const ed25519: Primitive = { digest: undefined, options: {} };

const PRIMITIVES: ReadonlyMap<string, Primitive> = new Map([
  ["ES256", ecdsa("sha256")],
  ["ES384", ecdsa("sha384")],
  ["ES512", ecdsa("sha512")],
  ["RS256", pkcs1("sha256")],
  ["RS384", pkcs1("sha384")],
  ["RS512", pkcs1("sha512")],
  ["PS256", pss("sha256")],
  ["PS384", pss("sha384")],
  ["PS512", pss("sha512")],
  ["EdDSA", ed25519],
  ["Ed25519", ed25519],
]);

export function primitiveOf(alg: string): Primitive {
  const primitive = PRIMITIVES.get(alg);
  if (primitive === undefined) throw new Error(`no primitive for ${alg}`);
  return primitive;
}

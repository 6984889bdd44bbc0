/**
 * The keys by which this server proves itself to OpenID Providers (private_key_jwt): a pair for each, derived from the
 * key-encryption key, so that every instance has the same without a row in the store. They sign nothing else, and no
 * resource server finds them in `/jwks`. RFC 7515: https://www.rfc-editor.org/rfc/rfc7515.html, section 3.1
 */
import { createECDH, createPrivateKey, createPublicKey, hkdfSync, type KeyObject, sign } from "node:crypto";
import { hash } from "../../adapters/crypto/hash.ts";
import { primitiveOf } from "../../adapters/crypto/primitives.ts";
import { encodeBase64url } from "../../spec/rfc7515.ts";
import type { Jwk } from "../../spec/rfc7517.ts";
import { thumbprintInput } from "../../spec/rfc7638.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";

const ALG = "ES256";
const INFO = "relying party key";

export type ProviderKey = {
  /** The public keys as they are published. */
  publicJwk: JsonObject;
  sign(claims: JsonObject): string;
};

export const deriveProviderKey = (encryptionKey: Uint8Array, provider: string): ProviderKey =>
  signingPair(derive(encryptionKey, provider));

function signingPair(privateKey: KeyObject): ProviderKey {
  const { kty, crv, x, y } = createPublicKey(privateKey).export({ format: "jwk" });
  const jwk = { kty, crv, x, y } as Jwk;
  const kid = hash.sha256(thumbprintInput(jwk));
  const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString("base64url");
  return {
    publicJwk: { ...(jwk as unknown as JsonObject), kid, alg: ALG, use: "sig" },
    sign(claims) {
      const signingInput = `${encode({ alg: ALG, kid, typ: "JWT" })}.${encode(claims)}`;
      const { digest, options } = primitiveOf(ALG);
      const signature = sign(digest, Buffer.from(signingInput), { key: privateKey, ...options });
      return `${signingInput}.${encodeBase64url(signature)}`;
    },
  };
}

/**
 * The remainder of a hundred bytes by the order of the curve is as good as a random number below it (FIPS 186-5,
 * A.2.1).
 */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

function derive(encryptionKey: Uint8Array, provider: string): KeyObject {
  const bytes = Buffer.from(hkdfSync("sha256", encryptionKey, "", JSON.stringify([INFO, provider]), 100));
  const scalar = (BigInt(`0x${bytes.toString("hex")}`) % (ORDER - 1n)) + 1n;
  const d = Buffer.from(scalar.toString(16).padStart(64, "0"), "hex");
  const pair = createECDH("prime256v1");
  pair.setPrivateKey(d);
  const point = pair.getPublicKey();
  const jwk = {
    kty: "EC",
    crv: "P-256",
    d: d.toString("base64url"),
    x: point.subarray(1, 33).toString("base64url"),
    y: point.subarray(33).toString("base64url"),
  };
  return createPrivateKey({ key: jwk, format: "jwk" });
}

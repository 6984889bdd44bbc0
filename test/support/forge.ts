/** JWTs by hand: any header, any payload, any signature, so that each can be wrong in one place and right in all others. */
import { constants, createPrivateKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";

export type Key = {
  kid: string;
  alg: string;
  /** Of the tokens that it signs. */
  typ?: string;
  privateKey: KeyObject;
  jwk: Record<string, unknown>;
};

export type Forgery = {
  /** A text or bytes are taken as they are. */
  header?: object | string | Uint8Array;
  claims?: object | string | Uint8Array;
  signature?: (input: Buffer, signature: Buffer) => Buffer;
};

const PAIRS: Record<string, () => { privateKey: KeyObject; publicKey: KeyObject }> = {
  ES256: () => generateKeyPairSync("ec", { namedCurve: "P-256" }),
  ES384: () => generateKeyPairSync("ec", { namedCurve: "P-384" }),
  ES512: () => generateKeyPairSync("ec", { namedCurve: "P-521" }),
  EdDSA: () => generateKeyPairSync("ed25519"),
  Ed25519: () => generateKeyPairSync("ed25519"),
  RS256: () => generateKeyPairSync("rsa", { modulusLength: 2048 }),
  PS256: () => generateKeyPairSync("rsa", { modulusLength: 2048 }),
};

export function makeKey(alg: string, kid: string): Key {
  const { privateKey, publicKey } = (PAIRS[alg] as (typeof PAIRS)[string])();
  return { kid, alg, privateKey, jwk: { ...publicKey.export({ format: "jwk" }), kid } };
}

export const keyOf = (pem: string, kid: string): Key => ({
  ...{ kid, alg: "ES256", privateKey: createPrivateKey(pem), jwk: {} },
});

export const encode = (part: object | string | Uint8Array): string => {
  const plain = typeof part === "string" || part instanceof Uint8Array;
  return Buffer.from(plain ? part : JSON.stringify(part)).toString("base64url");
};

/** `header` and `claims` of an object come on top of what a good one has. */
export function forge(key: Key, good: object, { header = {}, claims = {}, signature }: Forgery = {}): string {
  const bare = (part: object | string | Uint8Array): part is string | Uint8Array =>
    typeof part === "string" || part instanceof Uint8Array;
  const { alg, kid, typ } = key;
  const head = bare(header) ? header : { alg, kid, ...(typ !== undefined && { typ }), ...header };
  const input = Buffer.from(`${encode(head)}.${encode(bare(claims) ? claims : { ...good, ...claims })}`);
  const made = signedBy(key, input);
  return `${input}.${(signature?.(input, made) ?? made).toString("base64url")}`;
}

export function signedBy({ alg, privateKey }: Pick<Key, "alg" | "privateKey">, input: Buffer): Buffer {
  if (alg.startsWith("Ed")) return sign(null, input, privateKey);
  const { RSA_PKCS1_PSS_PADDING, RSA_PSS_SALTLEN_DIGEST: saltLength } = constants;
  const how = alg.startsWith("PS") ? { padding: RSA_PKCS1_PSS_PADDING, saltLength } : {};
  return sign(`sha${alg.slice(2)}`, input, { key: privateKey, dsaEncoding: "ieee-p1363", ...how });
}

/** One bit of the middle. */
export const flipped = (_input: Buffer, signature: Buffer): Buffer =>
  Buffer.from(signature.map((byte, at) => (at === 9 ? byte ^ 1 : byte)));

export const seconds = (): number => Math.floor(Date.now() / 1000);

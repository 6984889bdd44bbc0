/** The key-encryption keys, and what is derived from them: every instance makes and accepts the same values. */
import { createHmac, hkdfSync } from "node:crypto";
import { hash } from "./hash.ts";

/**
 * Key-encryption keys: the first one encrypts, and what is derived from it is handed out; each of them decrypts, and
 * what is derived from it is accepted. There are two while one replaces the other.
 */
export type EncryptionKeys = readonly [Uint8Array, ...Uint8Array[]];

export const encryptionKeysOf = (given: {
  encryptionKey: Uint8Array;
  otherEncryptionKey?: Uint8Array;
}): EncryptionKeys =>
  given.otherEncryptionKey === undefined
    ? [given.encryptionKey]
    : [given.encryptionKey, given.otherEncryptionKey];

/** A key for each purpose, so that nothing made for one is accepted for another. */
export const deriveKey = (encryptionKey: Uint8Array, purpose: string): Uint8Array =>
  new Uint8Array(hkdfSync("sha256", encryptionKey, "", purpose, 32));

/** Makes values by the first key, and accepts those that any of them makes. */
export function deriver<P extends readonly unknown[]>(encryptionKeys: EncryptionKeys, purpose: string) {
  const keys = encryptionKeys.map((one) => deriveKey(one, purpose));
  // JSON keeps the parts apart.
  const make = (key: Uint8Array, parts: P): string =>
    createHmac("sha256", key)
      .update(JSON.stringify([purpose, ...parts]))
      .digest("base64url");
  const [first = deriveKey(encryptionKeys[0], purpose)] = keys;
  return {
    of: (...parts: P): string => make(first, parts),
    accepts: (value: string, ...parts: P): boolean =>
      keys.map((key) => hash.equal(value, make(key, parts))).includes(true),
  };
}

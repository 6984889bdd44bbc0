/**
 * What is encrypted until it is used again: the successor of a refresh token, a request that waits in a browser, the
 * refresh token of a provider.
 */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { deriveKey, type EncryptionKeys } from "../../adapters/crypto/encryption-keys.ts";
import type { ProviderSecrets, Successors, Waiting } from "../ports.ts";

const CIPHER = "aes-256-gcm";
const [IV_BYTES, TAG_BYTES] = [12, 16];

function encrypt(key: Uint8Array, text: string): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv(CIPHER, key, iv);
  const parts = [iv, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()];
  return Buffer.concat(parts).toString("base64url");
}

/** Decrypts a text; throws if it was not encrypted with this key. */
function decrypt(key: Uint8Array, sealed: string): string {
  const bytes = Buffer.from(sealed, "base64url");
  const [iv, tag] = [bytes.subarray(0, IV_BYTES), bytes.subarray(-TAG_BYTES)];
  const decipher = createDecipheriv(CIPHER, key, iv, { authTagLength: TAG_BYTES });
  decipher.setAuthTag(tag);
  const text = decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES));
  return Buffer.concat([text, decipher.final()]).toString("utf8");
}

const SUCCESSOR = "refresh token successor";
const successorKey = (presented: string): Uint8Array => deriveKey(Buffer.from(presented), SUCCESSOR);

/**
 * REFRESH-D-6: the successor is encrypted under a key that is derived from the token before, of which the store has the
 * digest alone.
 */
export const successors: Successors = {
  seal: (presented, successor) => encrypt(successorKey(presented), successor),
  open: (presented, sealed) => decrypt(successorKey(presented), sealed),
};

const WAITING = "waiting in a browser";

/**
 * PAGE-D-4: there is a key for each kind and holder, so that nothing opens elsewhere, and no key encrypts so much that
 * random initialisation vectors could meet.
 */
export function makeWaiting(encryptionKeys: EncryptionKeys): Waiting {
  const keyOf = (one: Uint8Array, kind: string, holder: string): Uint8Array =>
    deriveKey(one, JSON.stringify([WAITING, kind, holder]));
  return {
    seal(kind, holder, body) {
      return encrypt(keyOf(encryptionKeys[0], kind, holder), JSON.stringify(body));
    },
    open(kind, holder, sealed, nowSeconds) {
      const text = decryptBy(encryptionKeys, (one) => keyOf(one, kind, holder), sealed);
      const body = text === undefined ? undefined : JSON.parse(text);
      return body?.expiresAtSeconds > nowSeconds ? body : undefined;
    },
  };
}

const PROVIDER_SECRET = "refresh token of a provider";

/** RECHECK-D-7: there is a key for each provider, `client_id` there and user, so that nothing opens for another one. */
export function makeProviderSecrets(encryptionKeys: EncryptionKeys): ProviderSecrets {
  type From = Parameters<ProviderSecrets["seal"]>[0];
  const keyOf = (one: Uint8Array, { issuer, clientId }: From, sub: string): Uint8Array =>
    deriveKey(one, JSON.stringify([PROVIDER_SECRET, issuer, clientId, sub]));
  return {
    seal: (from, sub, refreshToken) => encrypt(keyOf(encryptionKeys[0], from, sub), refreshToken),
    open: (from, sub, sealed) => decryptBy(encryptionKeys, (one) => keyOf(one, from, sub), sealed),
  };
}

/** Tries the key-encryption key in force, and the one that it replaces. */
function decryptBy(
  encryptionKeys: EncryptionKeys,
  keyOf: (one: Uint8Array) => Uint8Array,
  sealed: string,
): string | undefined {
  for (const one of encryptionKeys) {
    try {
      return decrypt(keyOf(one), sealed);
    } catch {
      // The text was not encrypted with this key, so the next one is tried.
    }
  }
  return undefined;
}

/** Where private keys are: in the store, encrypted with the key-encryption key (JWE, RFC 7516), or at a key service. */
import { createPrivateKey, type KeyObject, sign } from "node:crypto";
import type { JWK } from "jose";
import { compactDecrypt } from "jose/jwe/compact/decrypt";
import { CompactEncrypt } from "jose/jwe/compact/encrypt";
import { exportJWK } from "jose/key/export";
import { generateKeyPair } from "jose/key/generate/keypair";
import { type Jwk, parseJwkSet } from "../../spec/rfc7517.ts";
import { thumbprintInput } from "../../spec/rfc7638.ts";
import type { KeyRow } from "../store/store.ts";
import type { EncryptionKeys } from "./encryption-keys.ts";
import { hash } from "./hash.ts";
import { primitiveOf } from "./primitives.ts";

/** The signing keys in the store cannot be used, and only the operator can change that. */
export class KeysUnusable extends Error {
  override name = "KeysUnusable";
}

/** What makes the signatures of one key over the bytes of a text. */
export type Hand = (input: string) => Uint8Array | Promise<Uint8Array>;

type MadeKey = Pick<KeyRow, "kid" | "publicJwk" | "privateJwe">;

export interface KeyCustody {
  make(alg: string): Promise<MadeKey>;
  /** Opens a private key; throws KeysUnusable for a key that it does not have. */
  open(row: KeyRow): Promise<OpenedAt>;
}

type OpenedAt = { publicJwk: Jwk; hand: Hand; at: "store" | "service" };

const WRAPPING = { alg: "dir", enc: "A256GCM" } as const;

export const sealedKeys = (encryptionKeys: EncryptionKeys): KeyCustody => ({
  /** RFC7515-10.1-v1, RFC7517-9.2-1: the platform generates the key, and it is stored encrypted only. */
  async make(alg) {
    const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
    const named = namedKey(await exportJWK(publicKey), alg);
    return { ...named, privateJwe: await seal(await exportJWK(privateKey), named.kid, encryptionKeys) };
  },
  async open(row) {
    const { kid, alg } = row;
    const publicJwk = readPublic(row);
    const content = await openSealed(row, encryptionKeys);
    if ("keyService" in content)
      throw new KeysUnusable(`keys.service is missing: the signing key ${kid} is at a key service`);
    return { publicJwk, hand: handOf(createPrivateKey({ key: content, format: "jwk" }), alg), at: "store" };
  },
});

/** For a key at a key service, its name there is encrypted in place of the private half. */
export type Elsewhere = { keyService: string; kid: string };

/**
 * RFC7638-3.2.1-v1: both halves have the same thumbprint. Only what is encrypted proves that: without this check, write
 * access to the store would be enough to publish another public key as ours.
 */
export async function openSealed(row: KeyRow, encryptionKeys: EncryptionKeys): Promise<JWK | Elsewhere> {
  const content: JWK | Elsewhere = JSON.parse(
    new TextDecoder().decode((await unseal(row, encryptionKeys)).secret),
  );
  const kid = "keyService" in content ? content.kid : thumbprint(content);
  if (kid !== row.kid) throw damaged(row.kid);
  return content;
}

/** RFC7515-6-v1: the `kid` is the thumbprint. */
export function namedKey(publicJwk: JWK, alg: string): Pick<MadeKey, "kid" | "publicJwk"> {
  const kid = thumbprint(publicJwk);
  return { kid, publicJwk: JSON.stringify({ ...publicJwk, kid, alg }) };
}

const handOf = (key: KeyObject, alg: string): Hand => {
  const { digest, options } = primitiveOf(alg);
  return (input) => sign(digest, Buffer.from(input), { key, ...options });
};

/** The public half, if it is the one that its `kid` names. */
export function readPublic({ kid, alg, publicJwk: text }: Pick<KeyRow, "kid" | "alg" | "publicJwk">): Jwk {
  const parsed = parseJwkSet(`{"keys":[${text}]}`);
  const publicJwk = parsed.ok ? parsed.value[0] : undefined;
  const fits = publicJwk?.kid === kid && publicJwk.alg === alg && thumbprint(publicJwk) === kid;
  if (publicJwk === undefined || !fits) throw damaged(kid);
  return publicJwk;
}

/** Throws if a key cannot be used. */
export async function checkKeys(rows: readonly KeyRow[], custody: KeyCustody): Promise<void> {
  for (const row of rows) await custody.open(row);
}

/** The private half encrypted with the first key; undefined if it already is. */
export async function sealAnew(row: KeyRow, encryptionKeys: EncryptionKeys): Promise<string | undefined> {
  const { secret, by } = await unseal(row, encryptionKeys);
  return by === encryptionKeys[0] ? undefined : encrypt(secret, row.kid, encryptionKeys);
}

export const seal = (
  content: JWK | Elsewhere,
  kid: string,
  encryptionKeys: EncryptionKeys,
): Promise<string> => encrypt(new TextEncoder().encode(JSON.stringify(content)), kid, encryptionKeys);

const encrypt = (secret: Uint8Array, kid: string, [encryptionKey]: EncryptionKeys): Promise<string> =>
  new CompactEncrypt(secret).setProtectedHeader({ ...WRAPPING, kid }).encrypt(encryptionKey);

async function unseal(
  { privateJwe }: KeyRow,
  encryptionKeys: EncryptionKeys,
): Promise<{ secret: Uint8Array; by: Uint8Array }> {
  const options = {
    keyManagementAlgorithms: [WRAPPING.alg],
    contentEncryptionAlgorithms: [WRAPPING.enc],
  };
  for (const by of encryptionKeys) {
    const opened = await compactDecrypt(privateJwe, by, options).catch(() => undefined);
    if (opened !== undefined) return { secret: opened.plaintext, by };
  }
  throw new KeysUnusable(
    "keys.encryptionKey is not the key that the signing keys in the store were encrypted with: restore that key",
  );
}

const damaged = (kid: string): KeysUnusable =>
  new KeysUnusable(`the signing key ${kid} in the store is damaged: restore the store from a backup`);

/** RFC7638-3-v1: the thumbprint is the SHA-256 of the required members. */
const thumbprint = (jwk: JWK): string => hash.sha256(thumbprintInput(jwk as Jwk));

/** Signatures by the JOSE library: verification of what others signed, and our own signing keys. */
import type { CryptoKey, JWK } from "jose";
import {
  CompactEncrypt,
  CompactSign,
  compactDecrypt,
  compactVerify,
  errors,
  exportJWK,
  generateKeyPair,
  importJWK,
} from "jose";
import type { Clock, Signer, SigningKey, Verifier } from "../../ports.ts";
import type { Jwk } from "../../spec/rfc7517.ts";
import { algorithmsOf, parseJwkSet, RSA_ALGORITHMS } from "../../spec/rfc7517.ts";
import { thumbprintInput } from "../../spec/rfc7638.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import type { KeyRow, Store } from "../store/store.ts";
import { hash } from "./system.ts";

export const verifier: Verifier = {
  async verify({ header: { alg }, compact }, key) {
    // RFC8725-3.1-v2: the one algorithm of the slot, and only with a key for it.
    if (!algorithmsOf(key, RSA_ALGORITHMS).includes(alg)) return false;
    // Of the two names of Ed25519 the library wants the same on both sides. A key that it saw before it knows again.
    const named = key.alg === undefined || key.alg === alg ? key : { ...key, alg };
    try {
      // RFC8725-3.3-v1, RFC7519-7.2-v1; the digest inside a PKCS #1 signature is that of `alg` (RFC7515-10.6-v1).
      await compactVerify(compact, named, { algorithms: [alg] });
      return true;
    } catch (error) {
      // RFC8725-3.3-1, RFC7521-3-1. A key that cannot be imported, off its curve for instance, verifies nothing (RFC8725-3.4-v1).
      if (error instanceof errors.JOSEError || error instanceof DOMException) return false;
      throw error;
    }
  },
};

type Held = SigningKey & { state: KeyRow["state"]; publicJwk: Jwk; privateKey: CryptoKey };

const isActive = ({ state }: { state: KeyRow["state"] }): boolean => state === "active";

/** Opens the store's keys of one purpose; makes the first one for each algorithm that is asked for and has none. */
export async function openSigner(
  store: Store,
  encryptionKey: Uint8Array,
  algorithms: readonly string[],
  clock: Clock,
  onCreated: (key: SigningKey) => void,
  purpose: KeyRow["purpose"] = "token",
): Promise<Signer> {
  const list = async () => (await store.keys.list()).filter((row) => row.purpose === purpose);
  const present = new Set((await list()).filter(isActive).map((row) => row.alg));
  for (const alg of algorithms) {
    if (present.has(alg)) continue;
    const row = { ...(await makeKey(alg, encryptionKey, clock)), purpose };
    // Of instances that start at once, one has made it.
    if (await store.keys.insertIfNone(row)) onCreated({ kid: row.kid, alg });
  }
  const rows = await list();
  const held = await Promise.all(rows.map((row) => openKey(row, encryptionKey)));

  return {
    current(alg) {
      const key = held.find((one) => one.alg === alg && isActive(one));
      if (key === undefined) throw new Error(`no active signing key for ${alg}`);
      return { kid: key.kid, alg };
    },
    async sign({ kid, alg }, typ, claims) {
      const key = held.find((one) => one.kid === kid && one.alg === alg && isActive(one));
      if (key === undefined) throw new Error("this key does not sign");
      // RFC9068-2.1-1, RFC6749-10.3-3, RFC6750-5.2-2, RFC7515-6-v1, RFC7515-5.1-v1
      // RFC7515-4.1.11-v2: no `crit`; RFC7518-3.4-v2: R and S in full length.
      return new CompactSign(new TextEncoder().encode(JSON.stringify(claims)))
        .setProtectedHeader({ typ, alg, kid })
        .sign(key.privateKey);
    },
    // RFC7517-7-1, RFC8414-2-6: public members, each key with its use.
    published: () => held.map(({ publicJwk }) => ({ ...publicJwk, use: "sig" }) as JsonObject),
    own({ kid, alg }) {
      const key = held.find((one) => one.kid === kid && one.state !== "announced");
      return key !== undefined && algorithmsOf(key.publicJwk, []).includes(alg) ? key.publicJwk : undefined;
    },
  };
}

const WRAPPING = { alg: "dir", enc: "A256GCM" } as const;

/** RFC7515-10.1-v1, RFC7517-9.2-1: made by the platform, and in the store only encrypted. */
async function makeKey(
  alg: string,
  encryptionKey: Uint8Array,
  clock: Clock,
): Promise<Omit<KeyRow, "purpose">> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  const publicJwk = await exportJWK(publicKey);
  // RFC7515-6-v1: the name of a key is its thumbprint.
  const kid = thumbprint(publicJwk);
  const secret = new TextEncoder().encode(JSON.stringify(await exportJWK(privateKey)));
  const privateJwe = await new CompactEncrypt(secret)
    .setProtectedHeader({ ...WRAPPING, kid })
    .encrypt(encryptionKey);
  const createdAtSeconds = Math.floor(clock.nowMs() / 1000);
  return {
    kid,
    alg,
    state: "active",
    publicJwk: JSON.stringify({ ...publicJwk, kid, alg }),
    privateJwe,
    createdAtSeconds,
  };
}

async function openKey(row: KeyRow, encryptionKey: Uint8Array): Promise<Held> {
  const { kid, alg, state } = row;
  const parsed = parseJwkSet(`{"keys":[${row.publicJwk}]}`);
  const publicJwk = parsed.ok ? parsed.value[0] : undefined;
  if (publicJwk === undefined) throw damaged(kid);
  let secret: Uint8Array;
  try {
    const opened = await compactDecrypt(row.privateJwe, encryptionKey, {
      keyManagementAlgorithms: [WRAPPING.alg],
      contentEncryptionAlgorithms: [WRAPPING.enc],
    });
    secret = opened.plaintext;
  } catch {
    throw new Error(
      "keys.encryptionKey is not the one that the signing keys in the store were encrypted with",
    );
  }
  const privateJwk: JWK = JSON.parse(new TextDecoder().decode(secret));
  // RFC7638-3.2.1-v1: both halves have one thumbprint. Only the private one is sealed, so whoever can write to the
  // store could slip another public key under our name.
  const thumbprints = [privateJwk, publicJwk].map(thumbprint);
  if (publicJwk.kid !== kid || publicJwk.alg !== alg || thumbprints.some((one) => one !== kid)) {
    throw damaged(kid);
  }
  const privateKey = await importJWK(privateJwk, alg);
  if (privateKey instanceof Uint8Array) throw damaged(kid);
  return { kid, alg, state, publicJwk, privateKey };
}

const damaged = (kid: string): Error => new Error(`the signing key ${kid} in the store is damaged`);

/** RFC7638-3-v1 */
const thumbprint = (jwk: JWK): string => hash.sha256(thumbprintInput(jwk as Jwk));

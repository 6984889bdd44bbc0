/** Clock, randomness and digests of the platform; registration tokens and nonces derived with the key-encryption key. */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  hkdfSync,
  hash as oneDigest,
  randomBytes,
  timingSafeEqual,
} from "node:crypto";
import { NONCE_SECONDS } from "../../limits/tokens.ts";
import type { Clock, Hash, Nonces, Random, RegistrationTokens, Timers } from "../../ports.ts";
import type { FormTokens, Successors, Waiting } from "../../ports-people.ts";

/** Seconds and milliseconds come from one function, so that they cannot disagree. */
export const makeClock = (nowMs: () => number, monotonicMs = () => performance.now()): Clock => ({
  nowMs,
  nowSeconds: () => Math.floor(nowMs() / 1000),
  monotonicMs,
});

export const clock: Clock = makeClock(() => Date.now());

/** CPU time of this thread so far. */
export function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

export const timers: Timers = {
  after(ms, work) {
    const timer = setTimeout(work, ms).unref();
    return () => clearTimeout(timer);
  },
  every(ms, work) {
    const timer = setInterval(work, ms).unref();
    return () => clearInterval(timer);
  },
};

const ID_BYTES = 16;

/** Drawn from the platform for many ids at once, because each draw has a fixed cost; every byte is used once. */
const drawn = { bytes: Buffer.alloc(0), used: 0 };

function drawId(): string {
  if (drawn.used === drawn.bytes.length) {
    drawn.bytes = randomBytes(256 * ID_BYTES);
    drawn.used = 0;
  }
  const from = drawn.used;
  drawn.used += ID_BYTES;
  return drawn.bytes.toString("base64url", from, drawn.used);
}

/** RFC6749-10.10-2, RFC6749-10.10-3, RFC7519-4.1.7-v1: too many bits to guess, or to meet twice. */
export const random: Random = {
  id: drawId,
  secret: () => randomBytes(32).toString("base64url"),
};

export const hash: Hash = {
  sha256: (data) => oneDigest("sha256", data, "base64url"),
  equal(a, b) {
    // By bytes: texts of one length may be of several lengths in UTF-8.
    const [one, other] = [Buffer.from(a), Buffer.from(b)];
    return one.length === other.length && timingSafeEqual(one, other);
  },
};

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

/** What is derived from a key-encryption key, each under a key of its own. */
const REGISTRATION_TOKEN = "registration access token";
const NONCE = "DPoP nonce";
const FORM_TOKEN = "form token";

const deriveKey = (encryptionKey: Uint8Array, purpose: string): Uint8Array =>
  new Uint8Array(hkdfSync("sha256", encryptionKey, "", purpose, 32));

/** Makes values by the first key, and accepts those that any of them makes. */
function deriver<P extends readonly unknown[]>(encryptionKeys: EncryptionKeys, purpose: string) {
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

/** RFC7592-5-4, RFC6750-5.2-1: 256 bits, unguessable without the key-encryption key. */
export const makeRegistrationTokens = (encryptionKeys: EncryptionKeys): RegistrationTokens =>
  deriver<[clientId: string, generation: number]>(encryptionKeys, REGISTRATION_TOKEN);

/**
 * RFC9449-8-3, RFC9449-9-1: an HMAC over issuer and minute, which only the instances of this server can make;
 * RFC9449-8.1-1: in base64url. The one before the newest is accepted too, and, from an instance whose clock is ahead,
 * the one after it.
 */
export function makeNonces(encryptionKeys: EncryptionKeys, issuer: string, { nowSeconds }: Clock): Nonces {
  const { of, accepts } = deriver<[issuer: string, slot: number]>(encryptionKeys, NONCE);
  const slotNow = (): number => Math.floor(nowSeconds() / NONCE_SECONDS);
  return {
    current: () => of(issuer, slotNow()),
    endSeconds(nonce) {
      const newest = slotNow();
      const slot = [newest, newest - 1, newest + 1].find((one) => accepts(nonce, issuer, one));
      return slot === undefined ? undefined : (slot + 2) * NONCE_SECONDS;
    },
  };
}

/** PAGE-D-5: 256 bits, the same on every instance. */
export const makeFormTokens = (encryptionKeys: EncryptionKeys): FormTokens =>
  deriver<[session: string, subject: string]>(encryptionKeys, FORM_TOKEN);

const CIPHER = "aes-256-gcm";
const [IV_BYTES, TAG_BYTES] = [12, 16];

function encrypt(key: Uint8Array, text: string): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv(CIPHER, key, iv);
  const parts = [iv, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()];
  return Buffer.concat(parts).toString("base64url");
}

/** Throws for what was not encrypted with this key. */
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

/** REFRESH-D-6: encrypted under a key that is derived from the token before, of which the store has the digest alone. */
export const successors: Successors = {
  seal: (presented, successor) => encrypt(successorKey(presented), successor),
  open: (presented, sealed) => decrypt(successorKey(presented), sealed),
};

const WAITING = "waiting in a browser";

/**
 * PAGE-D-4: under a key for each kind and holder, so that nothing opens elsewhere, and no key encrypts so much that
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
      for (const one of encryptionKeys) {
        try {
          const body = JSON.parse(decrypt(keyOf(one, kind, holder), sealed));
          return body.expiresAtSeconds > nowSeconds ? body : undefined;
        } catch {
          // Not with this key.
        }
      }
      return undefined;
    },
  };
}

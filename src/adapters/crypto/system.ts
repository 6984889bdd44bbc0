/** Clock, randomness and digests of the platform; registration tokens and nonces derived with the key-encryption key. */
import { createHmac, hkdfSync, hash as oneDigest, randomBytes, timingSafeEqual } from "node:crypto";
import { NONCE_SECONDS } from "../../limits.ts";
import type { Clock, FormTokens, Hash, Nonces, Random, RegistrationTokens, Timers } from "../../ports.ts";

/** Seconds and milliseconds come from one function, so that they cannot disagree. */
export const makeClock = (nowMs: () => number, monotonicMs = () => performance.now()): Clock => ({
  nowMs,
  nowSeconds: () => Math.floor(nowMs() / 1000),
  monotonicMs,
});

export const clock: Clock = makeClock(() => Date.now());

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

/** What is derived from the key-encryption key, each under a key of its own. */
const REGISTRATION_TOKEN = "registration access token";
const NONCE = "DPoP nonce";
const FORM_TOKEN = "form token";

const deriveKey = (encryptionKey: Uint8Array, purpose: string): Uint8Array =>
  new Uint8Array(hkdfSync("sha256", encryptionKey, "", purpose, 32));

/** RFC7592-5-4, RFC6750-5.2-1: 256 bits, unguessable without the key-encryption key; JSON keeps the parts apart. */
export function makeRegistrationTokens(encryptionKey: Uint8Array): RegistrationTokens {
  const key = deriveKey(encryptionKey, REGISTRATION_TOKEN);
  return {
    of: (clientId, generation) =>
      createHmac("sha256", key)
        .update(JSON.stringify([REGISTRATION_TOKEN, clientId, generation]))
        .digest("base64url"),
  };
}

/**
 * RFC9449-8-3, RFC9449-9-1: an HMAC over issuer and minute, which only the instances of this server can make;
 * RFC9449-8.1-1: in base64url. The one before the newest is accepted too, and, from an instance whose clock is ahead,
 * the one after it.
 */
export function makeNonces(encryptionKey: Uint8Array, issuer: string, { nowSeconds }: Clock): Nonces {
  const key = deriveKey(encryptionKey, NONCE);
  const of = (slot: number): string =>
    createHmac("sha256", key)
      .update(JSON.stringify([NONCE, issuer, slot]))
      .digest("base64url");
  const slotNow = (): number => Math.floor(nowSeconds() / NONCE_SECONDS);
  return {
    current: () => of(slotNow()),
    endSeconds(nonce) {
      const newest = slotNow();
      const slot = [newest, newest - 1, newest + 1].find((one) => hash.equal(of(one), nonce));
      return slot === undefined ? undefined : (slot + 2) * NONCE_SECONDS;
    },
  };
}

/** PAGE-D-5: 256 bits, the same on every instance. */
export function makeFormTokens(encryptionKey: Uint8Array): FormTokens {
  const key = deriveKey(encryptionKey, FORM_TOKEN);
  return {
    of: (session, subject) =>
      createHmac("sha256", key)
        .update(JSON.stringify([FORM_TOKEN, session, subject]))
        .digest("base64url"),
  };
}

/** Clock, randomness and digests of the platform; registration tokens derived with the key-encryption key. */
import { createHash, createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";
import type { Clock, Hash, Random, RegistrationTokens, Timers } from "../../ports.ts";

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

/** RFC6749-10.10-2, RFC6749-10.10-3, RFC7519-4.1.7-v1: too many bits to guess, or to meet twice. */
export const random: Random = {
  id: () => randomBytes(16).toString("base64url"),
  secret: () => randomBytes(32).toString("base64url"),
};

export const hash: Hash = {
  sha256: (data) => createHash("sha256").update(data).digest("base64url"),
  equal: (a, b) => a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b)),
};

const REGISTRATION_TOKEN = "registration access token";

/** RFC7592-5-4, RFC6750-5.2-1: 256 bits, unguessable without the key-encryption key; JSON keeps the parts apart. */
export function makeRegistrationTokens(encryptionKey: Uint8Array): RegistrationTokens {
  const key = new Uint8Array(hkdfSync("sha256", encryptionKey, "", REGISTRATION_TOKEN, 32));
  return {
    of: (clientId, generation) =>
      createHmac("sha256", key)
        .update(JSON.stringify([REGISTRATION_TOKEN, clientId, generation]))
        .digest("base64url"),
  };
}

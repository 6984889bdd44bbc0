/** Clock, randomness and digests of the platform. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Clock, Hash, Random } from "../ports.ts";

export const clock: Clock = { nowMs: () => Date.now() };

/** RFC6749-10.10-2, RFC7519-4.1.7-v1 */
export const random: Random = { id: () => randomBytes(16).toString("base64url") };

export const hash: Hash = {
  sha256: (data) => createHash("sha256").update(data).digest("base64url"),
  equal: (a, b) => a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b)),
};

/** Digests, and the comparison of secrets in constant time. */
import { hash as oneDigest, timingSafeEqual } from "node:crypto";
import type { Hash } from "../../ports.ts";

export const hash: Hash = {
  sha256: (data) => oneDigest("sha256", data, "base64url"),
  equal(a, b) {
    // Lengths are compared in bytes, because texts of equal length may have different lengths in UTF-8.
    const [one, other] = [Buffer.from(a), Buffer.from(b)];
    return one.length === other.length && timingSafeEqual(one, other);
  },
};

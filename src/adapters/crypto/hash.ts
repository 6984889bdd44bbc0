/** Digests, and the comparison of secrets in constant time. */
import { hash as oneDigest, timingSafeEqual } from "node:crypto";
import { NAME_REMEMBERED_CHARS_MAX, NAMES_REMEMBERED_MAX } from "../../limits/input.ts";
import type { Hash } from "../../ports.ts";

const sha256: Hash["sha256"] = (data) => oneDigest("sha256", data, "base64url");

export const hash: Hash = {
  sha256,
  ofName(name) {
    const known = recent.get(name);
    if (known !== undefined) return known;
    const digest = older.get(name) ?? sha256(name);
    if (name.length <= NAME_REMEMBERED_CHARS_MAX) remember(name, digest);
    return digest;
  },
  equal(a, b) {
    // Lengths are compared in bytes, because texts of equal length may have different lengths in UTF-8.
    const [one, other] = [Buffer.from(a), Buffer.from(b)];
    return one.length === other.length && timingSafeEqual(one, other);
  },
};

/** Two generations: a name that comes again stays, and many that come once drive out each other. */
let recent = new Map<string, string>();
let older = new Map<string, string>();

function remember(name: string, digest: string): void {
  if (recent.size >= NAMES_REMEMBERED_MAX / 2) {
    older = recent;
    recent = new Map();
  }
  recent.set(name, digest);
}

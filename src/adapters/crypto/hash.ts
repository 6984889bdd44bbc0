/** Digests, and the comparison of secrets in constant time. */
import { hash as oneDigest, timingSafeEqual } from "node:crypto";
import { NAME_REMEMBERED_CHARS_MAX, NAMES_REMEMBERED_MAX } from "../../limits/input.ts";
import type { Hash } from "../../ports.ts";
import { makeRecentValues } from "../recent-values.ts";

const sha256: Hash["sha256"] = (data) => oneDigest("sha256", data, "base64url");

export const hash: Hash = {
  sha256,
  ofName(name, once = false) {
    if (once) return sha256(name);
    const known = named.find(name);
    if (known !== undefined) return known;
    const digest = sha256(name);
    if (name.length <= NAME_REMEMBERED_CHARS_MAX) named.keep(name, digest);
    return digest;
  },
  equal(a, b) {
    // Lengths are compared in bytes, because texts of equal length may have different lengths in UTF-8.
    const [one, other] = [Buffer.from(a), Buffer.from(b)];
    return one.length === other.length && timingSafeEqual(one, other);
  },
};

/** Names come again with every token. */
const named = makeRecentValues<string>(NAMES_REMEMBERED_MAX);

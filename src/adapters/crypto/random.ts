/** The randomness of the platform. */
import { randomBytes } from "node:crypto";
import type { Random } from "../../ports.ts";

/**
 * Bytes are drawn from the platform for many values at once, because each draw has a fixed cost; every byte is used once.
 */
const drawn = { bytes: Buffer.alloc(0), used: 0 };
const DRAWN_BYTES = 4096;

function draw(bytes: number): string {
  if (drawn.used + bytes > drawn.bytes.length) {
    drawn.bytes = randomBytes(DRAWN_BYTES);
    drawn.used = 0;
  }
  const from = drawn.used;
  drawn.used += bytes;
  return drawn.bytes.toString("base64url", from, drawn.used);
}

/** RFC6749-10.10-2, RFC6749-10.10-3, RFC7519-4.1.7-v1: these have too many bits to be guessed, or to occur twice. */
export const random: Random = {
  id: () => draw(16),
  secret: () => draw(32),
};

/** The randomness of the platform. */
import { randomBytes } from "node:crypto";
import type { Random } from "../../ports.ts";

const ID_BYTES = 16;

/**
 * Bytes are drawn from the platform for many ids at once, because each draw has a fixed cost; every byte is used once.
 */
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

/** RFC6749-10.10-2, RFC6749-10.10-3, RFC7519-4.1.7-v1: these have too many bits to be guessed, or to occur twice. */
export const random: Random = {
  id: drawId,
  secret: () => randomBytes(32).toString("base64url"),
};

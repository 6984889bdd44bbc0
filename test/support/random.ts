/** Whether texts can be guessed, by what is seen of them. */
import assert from "node:assert/strict";

/** Texts enough for `assertRandom`. */
export const DRAWS = 24;

/**
 * Each of the first places of these texts of base64url is random. Of 64 characters, 24 draws give about 20; fewer than 8
 * come once in 10^14 times.
 */
export function assertRandom(texts: readonly string[], places: number): void {
  assert.ok(texts.length >= DRAWS);
  for (let place = 0; place < places; place++) {
    const seen = new Set(texts.map((text) => text[place]));
    assert.ok(seen.size >= 8 && !seen.has(undefined), `${seen.size} different characters at ${place}`);
  }
}

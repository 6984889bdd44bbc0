/** How well two colours can be told apart. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { contrast, isReadable } from "../../src/settings/colours.ts";

// From the definition: black on white, a colour on itself, and greys at the limit of 4.5 as published.
const cases = [
  ["#000000", "#ffffff", 21],
  ["#ffffff", "#000000", 21],
  ["#1f4fbf", "#1f4fbf", 1],
  ["#767676", "#ffffff", 4.54],
  ["#777777", "#ffffff", 4.48],
  ["#ff0000", "#ffffff", 4.0],
  ["#0000FF", "#FFFFFF", 8.59],
] as const;
for (const [one, other, want] of cases) {
  test(`WCAG-1.4.3-1 the contrast of ${one} to ${other} is ${want}`, () =>
    assert.equal(Math.round(contrast(one, other) * 100) / 100, want));
}

test("WCAG-1.4.3-1 a colour is readable where it is on every ground of its scheme", () => {
  assert.ok(isReadable("#1f4fbf", "light"));
  assert.ok(!isReadable("#1f4fbf", "dark"));
  // On white it would do, but not on the ground around the card.
  assert.ok(!isReadable("#767676", "light"));
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { hash } from "../../../src/adapters/crypto/hash.ts";
import { NAME_REMEMBERED_CHARS_MAX, NAMES_REMEMBERED_MAX } from "../../../src/limits/input.ts";

test("the digest of a name is that of the text, whether it is remembered, forgotten or too long", () => {
  const names = Array.from({ length: 2 * NAMES_REMEMBERED_MAX }, (_, index) => `name ${index}`);
  names.push(
    "x".repeat(NAME_REMEMBERED_CHARS_MAX),
    "x".repeat(NAME_REMEMBERED_CHARS_MAX + 1),
    "",
    "__proto__",
  );
  // Forwards and backwards, so that some come again at once and others after many.
  for (const name of [...names, ...names.toReversed()]) assert.equal(hash.ofName(name), hash.sha256(name));
});

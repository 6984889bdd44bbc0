import assert from "node:assert/strict";
import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
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

test("a name that comes again is not digested again, but for a long one, and for one after which many others came", (t) => {
  const digested = t.mock.method(crypto, "hash");
  syncBuiltinESMExports();
  t.after(() => {
    digested.mock.restore();
    syncBuiltinESMExports();
  });
  const digestsOf = (names: readonly string[]): number => {
    const before = digested.mock.callCount();
    for (const name of names) hash.ofName(name);
    return digested.mock.callCount() - before;
  };
  const others = (round: string) =>
    Array.from({ length: NAMES_REMEMBERED_MAX }, (_, n) => `other ${round} ${n}`);
  const half = (round: string) => others(round).slice(0, NAMES_REMEMBERED_MAX / 2);
  assert.equal(digestsOf(["a", "a"]), 1);
  const long = "x".repeat(NAME_REMEMBERED_CHARS_MAX + 1);
  assert.equal(digestsOf([long, long]), 2);
  assert.equal(digestsOf(["a", ...half("1"), "a", ...half("2"), "a"]), NAMES_REMEMBERED_MAX);
  assert.equal(digestsOf([...others("3"), "a"]), NAMES_REMEMBERED_MAX + 1);
});

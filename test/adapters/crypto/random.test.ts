import assert from "node:assert/strict";
import { test } from "node:test";
import { random } from "../../../src/adapters/crypto/random.ts";

test("RFC6749-10.10-2, RFC6749-10.10-3, RFC7519-4.1.7-v1 ids have 128 random bits and secrets 256", () => {
  for (const [make, bytes] of [
    [random.id, 16],
    [random.secret, 32],
  ] as const) {
    const made = Array.from({ length: 1_000 }, make);
    assert.equal(new Set(made).size, made.length);
    for (const one of made) assert.equal(Buffer.from(one, "base64url").length, bytes);
    // Every bit is set in some values and not in all.
    const all = made.map((one) => BigInt(`0x${Buffer.from(one, "base64url").toString("hex")}`));
    const ones = (1n << BigInt(8 * bytes)) - 1n;
    assert.equal(
      all.reduce((bits, one) => bits | one, 0n),
      ones,
    );
    assert.equal(
      all.reduce((bits, one) => bits & one, ones),
      0n,
    );
  }
});

test("RFC6749-10.10-3, RFC7519-4.1.7-v1 no part of an id is part of the next one, however many are drawn at once", () => {
  const ids = Array.from({ length: 3_000 }, () => Buffer.from(random.id(), "base64url"));
  const parts = ids.flatMap((id) => [0, 4, 8].map((from) => id.subarray(from, from + 8).toString("hex")));
  assert.ok(ids.every(({ length }) => length === 16));
  assert.equal(new Set(parts).size, parts.length);
});

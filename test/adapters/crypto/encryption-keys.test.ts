import assert from "node:assert/strict";
import { test } from "node:test";
import { makeClock } from "../../../src/adapters/clock.ts";
import { makeNonces } from "../../../src/adapters/crypto/nonces.ts";
import { makeRegistrationTokens } from "../../../src/adapters/crypto/registration-tokens.ts";
import { makeFormTokens } from "../../../src/people/adapters/form-tokens.ts";

const KEY = new Uint8Array(32).fill(7);
const OLD = new Uint8Array(32).fill(8);

test("while one key-encryption key replaces another, what is derived from either is accepted, and made by the new one", () => {
  const clock = makeClock(() => 1_790_000_040_000);
  const derived = (keys: readonly [Uint8Array, ...Uint8Array[]]) => {
    const [registration, forms] = [makeRegistrationTokens(keys), makeFormTokens(keys)];
    const nonces = makeNonces(keys, "https://as.example", clock);
    return {
      made: [registration.of("c", 1), forms.of("s", "r"), nonces.current()],
      accepts: ([token = "", form = "", nonce = ""]: readonly string[]) => [
        registration.accepts(token, "c", 1),
        forms.accepts(form, "s", "r"),
        nonces.endSeconds(nonce) !== undefined,
      ],
    };
  };
  const [before, both, after] = [derived([OLD]), derived([KEY, OLD]), derived([KEY])];
  const [all, none] = [
    [true, true, true],
    [false, false, false],
  ];
  assert.deepEqual(both.made, after.made);
  assert.deepEqual(both.accepts(before.made), all);
  assert.deepEqual(both.accepts(after.made), all);
  assert.deepEqual(after.accepts(before.made), none);
  // An instance that does not have the new key yet: it is given as the other one first.
  assert.deepEqual(derived([OLD, KEY]).accepts(after.made), all);
  assert.deepEqual(before.accepts(after.made), none);
  const parts = makeRegistrationTokens([KEY, OLD]);
  for (const [client, generation] of [
    ["c", 2],
    ["d", 1],
  ] as const)
    assert.equal(parts.accepts(before.made[0] ?? "", client, generation), false);
});

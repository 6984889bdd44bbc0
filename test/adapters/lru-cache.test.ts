import assert from "node:assert/strict";
import { test } from "node:test";
import { makeLruCache } from "../../src/adapters/lru-cache.ts";

const NAMES = ["a", "b", "c", "d"];

/** What is still there, in a map that had room for three entries of ten bytes. */
function left(use: (kept: ReturnType<typeof makeLruCache<{ bytes: number; name: string }>>) => void): string {
  const kept = makeLruCache<{ bytes: number; name: string }>(3, 10);
  use(kept);
  return NAMES.filter((name) => kept.find(name)?.name === name).join("");
}

const entry = (name: string, bytes = 1) => [name, { name, bytes }] as const;

test("as many are kept as there is room for, and the last of them", () => {
  assert.equal(
    left(({ keep }) => {
      for (const name of NAMES) keep(...entry(name));
    }),
    "bcd",
  );
});

test("what was asked for stays longer than what was not", () => {
  assert.equal(
    left(({ keep, find }) => {
      for (const name of ["a", "b", "c"]) keep(...entry(name));
      find("a");
      keep(...entry("d"));
    }),
    "acd",
  );
});

test("large ones take the room of several", () => {
  assert.equal(
    left(({ keep }) => {
      keep(...entry("a", 5));
      keep(...entry("b", 5));
      keep(...entry("c", 6));
    }),
    "c",
  );
});

test("as many bytes as there is room for are kept, and one that is larger than all the room is not", () => {
  assert.equal(
    left(({ keep }) => keep(...entry("a", 10))),
    "a",
  );
  assert.equal(
    left(({ keep }) => keep(...entry("a", 11))),
    "",
  );
});

test("an entry that takes the place of another one takes its bytes too", () => {
  assert.equal(
    left(({ keep }) => {
      for (let round = 0; round < 100; round++) keep(...entry("a", 5));
      keep(...entry("b", 5));
    }),
    "ab",
  );
});

test("asking does not change how much room is taken", () => {
  assert.equal(
    left(({ keep, find }) => {
      keep(...entry("a", 5));
      for (let round = 0; round < 100; round++) find("a");
      find("nobody");
      keep(...entry("b", 5));
    }),
    "ab",
  );
});

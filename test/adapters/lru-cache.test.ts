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

test("the last entries are kept up to the limit", () => {
  assert.equal(
    left(({ keep }) => {
      for (const name of NAMES) keep(...entry(name));
    }),
    "bcd",
  );
});

test("the least recently used entry is evicted", () => {
  assert.equal(
    left(({ keep, find }) => {
      for (const name of ["a", "b", "c"]) keep(...entry(name));
      find("a");
      keep(...entry("d"));
    }),
    "acd",
  );
});

test("large entries evict several others", () => {
  assert.equal(
    left(({ keep }) => {
      keep(...entry("a", 5));
      keep(...entry("b", 5));
      keep(...entry("c", 6));
    }),
    "c",
  );
});

test("an entry of the byte limit is kept, and a larger one is dropped", () => {
  assert.equal(
    left(({ keep }) => keep(...entry("a", 10))),
    "a",
  );
  assert.equal(
    left(({ keep }) => keep(...entry("a", 11))),
    "",
  );
});

test("replacing an entry releases its bytes", () => {
  assert.equal(
    left(({ keep }) => {
      for (let round = 0; round < 100; round++) keep(...entry("a", 5));
      keep(...entry("b", 5));
    }),
    "ab",
  );
});

test("finding an entry does not change the counted bytes", () => {
  assert.equal(
    left(({ keep, find }) => {
      keep(...entry("a", 5));
      for (let round = 0; round < 100; round++) find("a");
      find("unknown");
      keep(...entry("b", 5));
    }),
    "ab",
  );
});

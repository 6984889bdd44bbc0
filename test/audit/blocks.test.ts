import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockEvent } from "../../src/audit/blocks.ts";
import { buildParts, readNumbers, readTimes, TERM_PARTS, TIMES } from "../../src/audit/blocks.ts";
import { prng } from "../support/prng.ts";

const random = prng(11);
const FROM_MS = 1_790_000_000_000;

/** Some numbers are missing, as where a record was removed by force. */
const EVENTS: readonly BlockEvent[] = Array.from({ length: 1_024 }, (_, number) => ({
  number,
  timeMs: FROM_MS + random.pick([0, 127, 128, 86_400_000, 2 ** 40]) + random.below(200),
  keys: [
    { part: 0, tag: 0 },
    { part: random.below(TERM_PARTS), tag: random.pick([0, 1, 2 ** 31, 2 ** 32 - 1]) },
    { part: 5, tag: random.below(2 ** 32) },
  ],
})).filter(({ number }) => number % 100 !== 7);

const entriesOf = (part: number): Uint8Array =>
  buildParts(EVENTS, FROM_MS).find((one) => one.part === part)?.entries ?? assert.fail("no such part");

test("PROD-6.3-3 a block lists each event under each of its terms, and under no other", () => {
  const keys = new Map(EVENTS.flatMap((event) => event.keys.map((key) => [JSON.stringify(key), key])));
  for (const { part, tag } of keys.values()) {
    const having = EVENTS.filter((event) => event.keys.some((key) => key.part === part && key.tag === tag));
    assert.deepEqual(
      readNumbers(entriesOf(part), tag),
      having.map(({ number }) => number),
    );
  }
  assert.deepEqual(readNumbers(entriesOf(0), 7), []);
});

test("PROD-6.3-3 a block keeps the time of each event", () => {
  const times = readTimes(entriesOf(TIMES), FROM_MS);
  assert.deepEqual(
    EVENTS.map(({ number }) => times[number]),
    EVENTS.map(({ timeMs }) => timeMs),
  );
});

test("a damaged part is read to its end and no further", () => {
  const entries = entriesOf(5);
  for (let length = 0; length < 300; length++) {
    const cut = entries.slice(0, length);
    for (let rounds = 0; rounds < 3 && length > 0; rounds++) cut[random.below(length)] = random.below(256);
    assert.ok(Array.isArray(readNumbers(cut, random.below(4))));
  }
});

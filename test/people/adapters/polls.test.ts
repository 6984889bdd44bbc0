import assert from "node:assert/strict";
import { test } from "node:test";
import { POLLS_KNOWN_MAX } from "../../../src/limits/people.ts";
import { makePolls } from "../../../src/people/adapters/polls.ts";

function start() {
  let nowMs = 0;
  let count = 0;
  const polls = makePolls({ monotonicMs: () => nowMs });
  return {
    polls,
    /** So many seconds later, in a request of its own. */
    after(seconds: number, key = "code", request = `r-${count++}`): boolean {
      nowMs += seconds * 1000;
      return polls.isTooSoon(key, request);
    },
  };
}

test("DTR-11.3-1 polls at the interval are not slowed down, and the first comes at any time", () => {
  const { after } = start();
  assert.deepEqual([after(0), after(10), after(10), after(0, "another")], [false, false, false, false]);
});

test("DTR-11.3-1 each poll that comes too soon raises the interval by five seconds, up to a minute", () => {
  const { after } = start();
  after(0);
  assert.deepEqual([after(9), after(6)], [true, false]);
  assert.deepEqual([after(14), after(6)], [true, false]);
  for (let count = 0; count < 20; count++) assert.equal(after(1), true);
  assert.equal(after(40), false);
  assert.deepEqual([after(59), after(1)], [true, false]);
});

test("DTR-D-10 one request that is read again is one poll", () => {
  const { after } = start();
  assert.deepEqual(
    [after(0, "code", "r"), after(0, "code", "r"), after(0, "code", "s")],
    [false, false, true],
  );
});

test("DTR-D-10 of more codes than are known the first is forgotten, and no other is displaced", () => {
  const { after } = start();
  for (let count = 0; count <= POLLS_KNOWN_MAX; count++) after(0, `code-${count}`);
  assert.equal(after(0, "code-1"), true);
  assert.equal(after(0, "code-0"), false);
});

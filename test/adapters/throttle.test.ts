/** Token buckets under a clock that only the test moves. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { makeClock } from "../../src/adapters/crypto/system.ts";
import { makeThrottle } from "../../src/adapters/throttle.ts";
import type { Throttle } from "../../src/ports.ts";
import type { Rates } from "../../src/settings/settings.ts";

const HERE = "192.0.2.1";
const THERE = "192.0.2.2";

/** By default ten failures of a source and three as one client, refilled every 6 and 20 seconds; two of the others. */
const RATES: Rates = {
  failuresBySource: { perSecond: 10 / 60, burst: 10 },
  failuresByClient: { perSecond: 3 / 60, burst: 3 },
  requestsByClient: { perSecond: 1, burst: 2 },
  registrationRequestsByClient: { perSecond: 1, burst: 3 },
  registrationsBySource: { perSecond: 2 / 60, burst: 2 },
  fetchesBySource: { perSecond: 1, burst: 2 },
  fetchesByHost: { perSecond: 1, burst: 2 },
};

function setUp(rates: Partial<Rates> = {}) {
  let nowMs = Date.UTC(2026, 0, 1);
  const throttle = makeThrottle(
    makeClock(() => nowMs),
    { ...RATES, ...rates },
  );
  return {
    throttle,
    pass: (seconds: number) => {
      nowMs += seconds * 1000;
    },
  };
}

function fail(throttle: Throttle, times: number, source: string, clientId?: string): void {
  for (let i = 0; i < times; i++) throttle.failed(source, clientId);
}

test("RFC6749-2.3.1-8 a client waits after as many failures as its bucket holds, not before", () => {
  const { throttle } = setUp();
  assert.equal(throttle.waitSeconds(HERE, "a"), 0);
  fail(throttle, 2, HERE, "a");
  assert.equal(throttle.waitSeconds(HERE, "a"), 0);
  fail(throttle, 1, HERE, "a");
  assert.equal(throttle.waitSeconds(HERE, "a"), 20);
});

test("RFC6749-2.3.1-8 the wait is rounded up to whole seconds and then ends", () => {
  const { throttle, pass } = setUp();
  fail(throttle, 3, HERE, "a");
  pass(0.5);
  assert.equal(throttle.waitSeconds(HERE, "a"), 20);
  pass(19);
  assert.equal(throttle.waitSeconds(HERE, "a"), 1);
  pass(0.5);
  assert.equal(throttle.waitSeconds(HERE, "a"), 0);
  fail(throttle, 1, HERE, "a");
  assert.equal(throttle.waitSeconds(HERE, "a"), 20);
});

test("RFC6749-2.3.1-8 the bucket refills to its capacity and no further", () => {
  const { throttle, pass } = setUp();
  fail(throttle, 3, HERE, "a");
  pass(24 * 3600);
  fail(throttle, 3, HERE, "a");
  assert.equal(throttle.waitSeconds(HERE, "a"), 20);
});

test("RFC6749-2.3.1-8 failures as one client delay only that client from that source", () => {
  const { throttle } = setUp();
  fail(throttle, 3, HERE, "a");
  const waits = [
    throttle.waitSeconds(HERE, "a"),
    throttle.waitSeconds(HERE, "b"),
    throttle.waitSeconds(HERE, undefined),
    throttle.waitSeconds(THERE, "a"),
  ];
  assert.deepEqual(waits, [20, 0, 0, 0]);
});

test("PROD-8.3-1 failures of a source as many clients or none delay every client of that source and no other source", () => {
  const { throttle } = setUp();
  for (let i = 0; i < 5; i++) fail(throttle, 1, HERE, `c${i}`);
  fail(throttle, 5, HERE);
  const waits = [
    throttle.waitSeconds(HERE, "other"),
    throttle.waitSeconds(HERE, undefined),
    throttle.waitSeconds(THERE, "c0"),
  ];
  assert.deepEqual(waits, [6, 6, 0]);
});

test("RFC6749-2.3.1-8 reports the longer of two waits", () => {
  const { throttle } = setUp({ failuresBySource: { perSecond: 1 / 60, burst: 3 } });
  fail(throttle, 3, HERE, "a");
  assert.equal(throttle.waitSeconds(HERE, "a"), 60);
});

test("RFC6749-2.3.1-8 source and client are not confused with another pair", () => {
  const { throttle } = setUp();
  fail(throttle, 3, "a", 'b","c');
  assert.equal(throttle.waitSeconds("a", 'b","c'), 20);
  assert.equal(throttle.waitSeconds('a","b', "c"), 0);
});

const PAIRS = [
  ["addresses of one /64", "2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", true],
  ["two spellings of one address", "2001:db8::1", "2001:0DB8:0:0:0:0:0:1", true],
  ["addresses of two /64", "2001:db8::1", "2001:db8:0:1::1", false],
  ["two addresses of IPv4", "192.0.2.1", "192.0.2.2", false],
] as const;
for (const [what, one, other, same] of PAIRS) {
  test(`RFC6749-2.3.1-8 ${what} are ${same ? "one source" : "two sources"}`, () => {
    const { throttle } = setUp();
    fail(throttle, 10, one);
    assert.equal(throttle.waitSeconds(other, undefined) > 0, same);
    fail(throttle, 3, one, "a");
    assert.equal(throttle.waitSeconds(other, "a") > 0, same);
  });
}

test("RFC6749-2.3.1-8 simultaneous failures are counted one by one", () => {
  const { throttle, pass } = setUp();
  fail(throttle, 3 + 30, HERE, "a");
  pass(20 * 30);
  assert.equal(throttle.waitSeconds(HERE, "a"), 20);
  pass(20);
  assert.equal(throttle.waitSeconds(HERE, "a"), 0);
});

test("RFC6749-2.3.1-8 the wait never exceeds a quarter of an hour", () => {
  const { throttle, pass } = setUp();
  fail(throttle, 100_000, HERE, "a");
  const wait = throttle.waitSeconds(HERE, "a");
  assert.ok(wait > 890 && wait <= 920, `${wait} s`);
  pass(wait);
  assert.equal(throttle.waitSeconds(HERE, "a"), 0);
});

test("PROD-8.3-1 a source may try again as soon as its bucket refills", () => {
  const { throttle, pass } = setUp();
  for (let i = 0; i < 1_000; i++) fail(throttle, 1, HERE, `c${i}`);
  pass(6);
  assert.equal(throttle.waitSeconds(HERE, "other"), 0);
});

test("PROD-8.3-1 counts the requests of an authenticated client, separately from other clients", () => {
  const { throttle, pass } = setUp();
  assert.deepEqual([throttle.spend("a"), throttle.spend("a"), throttle.spend("a")], [0, 0, 1]);
  assert.equal(throttle.spend("b"), 0);
  pass(1);
  assert.deepEqual([throttle.spend("a"), throttle.spend("a")], [0, 1]);
});

test("RFC6749-2.3.1-8 failed authentications and requests of a client are counted separately", () => {
  const { throttle } = setUp();
  fail(throttle, 10, HERE, "a");
  assert.equal(throttle.spend("a"), 0);
  throttle.spend("b");
  throttle.spend("b");
  throttle.spend("b");
  assert.equal(throttle.waitSeconds(THERE, "b"), 0);
});

test("RFC7591-3-5 limits registrations by source, over all addresses of the source", () => {
  const { throttle, pass } = setUp();
  const [here, beside, there] = ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"];
  assert.deepEqual([throttle.register(here), throttle.register(beside), throttle.register(here)], [0, 0, 30]);
  assert.equal(throttle.register(there), 0);
  assert.equal(throttle.waitSeconds(here, undefined), 0, "a registration is not a failure");
  pass(30);
  assert.deepEqual([throttle.register(here), throttle.register(here)], [0, 30]);
});

test("a refused request is not counted", () => {
  const { throttle, pass } = setUp();
  for (let i = 0; i < 100; i++) throttle.spend("a");
  pass(1);
  assert.equal(throttle.spend("a"), 0);
});

test("a clock that is set back neither adds nor removes tokens", () => {
  const { throttle, pass } = setUp();
  fail(throttle, 3, HERE, "a");
  pass(-3600);
  assert.equal(throttle.waitSeconds(HERE, "a"), 20);
  assert.equal(throttle.waitSeconds(HERE, "b"), 0);
});

test("RFC6749-2.3.1-8 keeps the latest sources up to the limit", () => {
  const { throttle } = setUp({ failuresBySource: { perSecond: 1, burst: 1 } });
  fail(throttle, 1, "first");
  for (let i = 0; i < 9_999; i++) throttle.failed(`source ${i}`, undefined);
  assert.equal(throttle.waitSeconds("first", undefined), 1);
  throttle.failed("one too many", undefined);
  assert.equal(throttle.waitSeconds("first", undefined), 0);
  assert.equal(throttle.waitSeconds("source 0", undefined), 1);
  assert.equal(throttle.waitSeconds("one too many", undefined), 1);
});

test("RFC6749-2.3.1-8 a long client_id takes no more memory than a short one", () => {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  const { throttle } = setUp();
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let i = 0; i < 1_000; i++) throttle.failed(`source ${i}`, `${"x".repeat(60_000)}${i}`);
  collect();
  const grown = process.memoryUsage().heapUsed - before;
  assert.ok(grown < 10e6, `${grown} bytes`);
  assert.equal(throttle.waitSeconds("source 0", undefined), 0);
});

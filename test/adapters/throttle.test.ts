/** Token buckets under a clock that only the test moves. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import * as v from "valibot";
import { makeClock } from "../../src/adapters/clock.ts";
import { makeThrottle } from "../../src/adapters/throttle.ts";
import type { Throttle } from "../../src/ports.ts";
import { type Limits, LimitsFile } from "../../src/settings/sections.ts";

const HERE = "192.0.2.1";
const THERE = "192.0.2.2";

/** By default ten failures of a source and three as one client, refilled every 6 and 20 seconds; two of the others. */
const RATES: Limits = {
  ...v.parse(LimitsFile, {}),
  failuresPerMinuteBySource: { perSecond: 10 / 60, burst: 10 },
  failuresPerMinuteByClient: { perSecond: 3 / 60, burst: 3 },
  pagesPerMinuteBySource: { perSecond: 1, burst: 1 },
  requestsPerSecondByClient: { perSecond: 1, burst: 2 },
  registrationRequestsPerMinuteByClient: { perSecond: 1, burst: 3 },
  registrationsPerHourBySource: { perSecond: 2 / 60, burst: 2 },
};

function setUp(rates: Partial<Limits> = {}) {
  const time = { wallMs: Date.UTC(2026, 0, 1), monotonicMs: 5_000 };
  const clock = makeClock(
    () => time.wallMs,
    () => time.monotonicMs,
  );
  return {
    time,
    throttle: makeThrottle(clock, { ...RATES, ...rates }),
    pass: (seconds: number) => {
      time.wallMs += seconds * 1000;
      time.monotonicMs += seconds * 1000;
    },
  };
}

/** The seconds to wait that each of these failures is told. */
const fail = (throttle: Throttle, times: number, source: string, clientId?: string): number[] =>
  Array.from({ length: times }, () => throttle.failed(source, clientId));

const told = (count: number, seconds: number): number[] => Array.from({ length: count }, () => seconds);

test("RFC6749-2.3.1-8 a failure is told to wait after as many as its bucket holds, not before", () => {
  const { throttle } = setUp();
  assert.deepEqual(fail(throttle, 5, HERE, "a"), [0, 0, 0, 20, 20]);
});

test("RFC6749-2.3.1-8 the wait is rounded up to whole seconds and then ends", () => {
  const { throttle, pass } = setUp();
  fail(throttle, 3, HERE, "a");
  pass(0.5);
  assert.deepEqual(fail(throttle, 1, HERE, "a"), [20]);
  pass(19);
  assert.deepEqual(fail(throttle, 1, HERE, "a"), [1]);
  pass(0.5);
  assert.deepEqual(fail(throttle, 2, HERE, "a"), [0, 20]);
});

test("RFC6749-2.3.1-8 the bucket refills to its capacity and no further", () => {
  const { throttle, pass } = setUp();
  fail(throttle, 3, HERE, "a");
  pass(24 * 3600);
  assert.deepEqual(fail(throttle, 4, HERE, "a"), [0, 0, 0, 20]);
});

test("RFC6749-2.3.1-8 failures as one client count for that client at that source only", () => {
  const { throttle } = setUp();
  fail(throttle, 3, HERE, "a");
  const waits = [
    throttle.failed(HERE, "a"),
    throttle.failed(HERE, "b"),
    throttle.failed(HERE, undefined),
    throttle.failed(THERE, "a"),
  ];
  assert.deepEqual(waits, [20, 0, 0, 0]);
});

test("PROD-8.3-1 failures of a source as many clients or none count for all of them at that source, and for no other source", () => {
  const { throttle } = setUp();
  for (let i = 0; i < 5; i++) fail(throttle, 1, HERE, `c${i}`);
  fail(throttle, 5, HERE);
  const waits = [
    throttle.failed(HERE, "other"),
    throttle.failed(HERE, undefined),
    throttle.failed(THERE, "c0"),
  ];
  assert.deepEqual(waits, [6, 6, 0]);
});

test("RFC6749-2.3.1-8 the longer of two waits is told", () => {
  const { throttle } = setUp({ failuresPerMinuteBySource: { perSecond: 1 / 60, burst: 3 } });
  fail(throttle, 3, HERE, "a");
  assert.deepEqual(fail(throttle, 1, HERE, "a"), [60]);
});

test("RFC6749-2.3.1-8 source and client are not confused with another pair", () => {
  const { throttle } = setUp();
  assert.deepEqual(fail(throttle, 4, "a", 'b","c'), [0, 0, 0, 20]);
  assert.deepEqual(fail(throttle, 1, 'a","b', "c"), [0]);
});

const PAIRS = [
  ["addresses of one /64", "2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", true],
  ["two spellings of one address", "2001:db8::1", "2001:0DB8:0:0:0:0:0:1", true],
  ["addresses of two /64", "2001:db8::1", "2001:db8:0:1::1", false],
  ["two addresses of IPv4", "192.0.2.1", "192.0.2.2", false],
] as const;
for (const [what, one, other, same] of PAIRS) {
  test(`RFC6749-2.3.1-8 ${what} are ${same ? "one source" : "two sources"}`, () => {
    const as = setUp().throttle;
    fail(as, 3, one, "a");
    assert.equal(as.failed(other, "a") > 0, same);
    const { throttle } = setUp();
    fail(throttle, 10, one);
    assert.equal(throttle.failed(other, undefined) > 0, same);
  });
}

test("HTTP-D-3, PROD-8.3-1 a failure that is told to wait is not counted: the usual answer comes back as soon as the bucket refills", () => {
  const { throttle, pass } = setUp();
  fail(throttle, 1_000, HERE, "a");
  pass(20);
  assert.deepEqual(fail(throttle, 2, HERE, "a"), [0, 20]);
});

test("PROD-8.3-1 the requests of an authenticated client are counted separately from other clients", () => {
  const { throttle, pass } = setUp();
  assert.deepEqual([throttle.spend("a"), throttle.spend("a"), throttle.spend("a")], [0, 0, 1]);
  assert.equal(throttle.spend("b"), 0);
  pass(1);
  assert.deepEqual([throttle.spend("a"), throttle.spend("a")], [0, 1]);
});

test("RFC6749-2.3.1-8 failed authentications and requests of a client are counted separately", () => {
  const { throttle } = setUp();
  fail(throttle, 10, HERE, "a");
  assert.deepEqual(
    Array.from({ length: 3 }, () => throttle.spend("a")),
    [0, 0, 1],
  );
  assert.deepEqual(fail(throttle, 1, THERE, "a"), [0]);
});

test("RFC7591-3-5 registrations are limited by source, over all addresses of the source", () => {
  const { throttle, pass } = setUp();
  const [here, beside, there] = ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"];
  assert.deepEqual([throttle.register(here), throttle.register(beside), throttle.register(here)], [0, 0, 30]);
  assert.equal(throttle.register(there), 0);
  assert.deepEqual(fail(throttle, 10, here), told(10, 0), "a registration is not a failure");
  pass(30);
  assert.deepEqual([throttle.register(here), throttle.register(here)], [0, 30]);
});

test("a refused request is not counted", () => {
  const { throttle, pass } = setUp();
  for (let i = 0; i < 100; i++) throttle.spend("a");
  pass(1);
  assert.equal(throttle.spend("a"), 0);
});

test("PROD-8.3-1 a wall clock that is set forward or back neither adds nor removes tokens", () => {
  const { throttle, time } = setUp();
  fail(throttle, 3, HERE, "a");
  for (const seconds of [-3600, 7200]) {
    time.wallMs += seconds * 1000;
    assert.deepEqual(fail(throttle, 1, HERE, "a"), [20]);
  }
});

test("RFC6749-2.3.1-8 the latest sources are kept up to the limit", () => {
  const { throttle } = setUp({ failuresPerMinuteBySource: { perSecond: 1, burst: 1 } });
  fail(throttle, 1, "first");
  for (let i = 0; i < 9_999; i++) throttle.failed(`source ${i}`, undefined);
  assert.deepEqual(fail(throttle, 1, "first"), [1]);
  throttle.failed("one too many", undefined);
  assert.deepEqual(fail(throttle, 1, "source 0"), [1]);
  assert.deepEqual(fail(throttle, 1, "one too many"), [1]);
  assert.deepEqual(fail(throttle, 1, "first"), [0]);
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
  assert.deepEqual(fail(throttle, 1, "source 0"), [0]);
});

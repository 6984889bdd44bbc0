/** The fetch budget, under a clock that only the test moves. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { makeFetchBudget } from "../../../src/adapters/remote/fetch-budget.ts";
import {
  FETCHES_IN_FLIGHT_BY_HOST_MAX,
  FETCHES_IN_FLIGHT_BY_SOURCE_MAX,
  FETCHES_IN_FLIGHT_MAX,
} from "../../../src/limits/fetching.ts";
import type { Rate } from "../../../src/settings/sections.ts";

const HERE = "192.0.2.1";
const THERE = "192.0.2.2";
const PLENTY: Rate = { perSecond: 1_000, burst: 10_000 };
/** Two fetches, and one more every ten seconds. */
const FEW: Rate = { perSecond: 0.1, burst: 2 };

function setUp({
  fetchesPerMinuteBySource = PLENTY,
  fetchesPerMinuteByHost = PLENTY,
}: {
  fetchesPerMinuteBySource?: Rate;
  fetchesPerMinuteByHost?: Rate;
}) {
  const time = { nowMs: Date.UTC(2026, 0, 1) };
  const budget = makeFetchBudget(
    { monotonicMs: () => time.nowMs },
    { fetchesPerMinuteBySource, fetchesPerMinuteByHost },
  );
  /** A fetch that ends at once: the seconds to wait, or 0. */
  const spend = (source: string, place: string): number => {
    const begun = budget.begin(source, place);
    if (begun.ok) begun.value();
    return begun.ok ? 0 : begun.error;
  };
  return { budget, spend, time };
}

test("PROD-8.3-1 the fetches of a source are limited over all hosts and all its addresses", () => {
  const { spend, time } = setUp({ fetchesPerMinuteBySource: FEW });
  assert.deepEqual(
    [spend("2001:db8::1", "a"), spend("2001:db8::2", "b"), spend("2001:db8::3", "c")],
    [0, 0, 10],
  );
  assert.equal(spend(HERE, "a"), 0);
  time.nowMs += 10_000;
  assert.deepEqual([spend("2001:db8::1", "a"), spend("2001:db8::1", "a")], [0, 10]);
});

test("PROD-8.3-1 the fetches to a host are limited over all sources", () => {
  const { spend, time } = setUp({ fetchesPerMinuteByHost: FEW });
  assert.deepEqual([spend(HERE, "a"), spend(THERE, "a"), spend(HERE, "a")], [0, 0, 10]);
  assert.equal(spend(HERE, "b"), 0);
  time.nowMs += 10_000;
  assert.deepEqual([spend(THERE, "a"), spend(THERE, "a")], [0, 10]);
});

test("PROD-8.3-1 the longer of two waits is reported, and a refused fetch counts for neither limit", () => {
  const { spend, time } = setUp({
    fetchesPerMinuteBySource: { perSecond: 1, burst: 2 },
    fetchesPerMinuteByHost: FEW,
  });
  assert.deepEqual([spend(HERE, "a"), spend(HERE, "a"), spend(HERE, "a")], [0, 0, 10]);
  time.nowMs += 1_000;
  for (let round = 0; round < 100; round++) assert.equal(spend(HERE, "a"), 9);
  assert.equal(spend(HERE, "b"), 0);
});

test("simultaneous fetches to one host are limited without delaying others", () => {
  const { budget, spend } = setUp({});
  const begun = Array.from({ length: FETCHES_IN_FLIGHT_BY_HOST_MAX }, () => budget.begin(HERE, "a"));
  assert.ok(begun.every(({ ok }) => ok));
  assert.deepEqual([spend(HERE, "a"), spend(HERE, "b")], [1, 0]);
  const [first] = begun;
  if (first?.ok) first.value();
  assert.equal(spend(HERE, "a"), 0);
});

test("simultaneous fetches of one source are limited without delaying others", () => {
  const { budget, spend } = setUp({});
  const begun = Array.from({ length: FETCHES_IN_FLIGHT_BY_SOURCE_MAX }, (_, at) =>
    budget.begin(HERE, `${at}`),
  );
  assert.ok(begun.every(({ ok }) => ok));
  assert.deepEqual([spend(HERE, "another"), spend(THERE, "another")], [1, 0]);
  for (const one of begun) if (one.ok) one.value();
  assert.equal(spend(HERE, "another"), 0);
});

test("PROD-8.3-1 a renewal counts for no source and has its own limit", () => {
  const { budget, spend } = setUp({ fetchesPerMinuteBySource: FEW, fetchesPerMinuteByHost: FEW });
  const renew = (): boolean => {
    const begun = budget.begin(undefined, "known");
    if (begun.ok) begun.value();
    return begun.ok;
  };
  assert.deepEqual([renew(), renew(), renew()], [true, true, false]);
  assert.deepEqual([spend(HERE, "a"), spend(HERE, "b"), spend(HERE, "c")], [0, 0, 10]);
});

test("the number of all simultaneous fetches is limited", () => {
  const { budget, spend } = setUp({});
  const begun = Array.from({ length: FETCHES_IN_FLIGHT_MAX }, (_, at) =>
    budget.begin(`198.51.100.${at}`, `place ${at}`),
  );
  assert.ok(begun.every(({ ok }) => ok));
  assert.equal(spend(THERE, "another place"), 1);
  // A renewal does not wait for other fetches.
  const renewed = budget.begin(undefined, "a known place");
  assert.ok(renewed.ok);
  renewed.value();
  for (const one of begun) if (one.ok) one.value();
  assert.equal(spend(THERE, "another place"), 0);
});

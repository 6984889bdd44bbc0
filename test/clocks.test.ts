/** The clock of an instance beside that of its database, and those of others: which is told, and which is not ready. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { takeName } from "../src/adapters/audit/instance-name.ts";
import { makeClock } from "../src/adapters/clock.ts";
import { type ClockState, judgeClock, measureClock } from "../src/adapters/store/clock-difference.ts";
import { openStore } from "../src/adapters/store/open.ts";
import type { InstanceClock } from "../src/adapters/store/store.ts";
import type { Notice } from "../src/http/log-events.ts";
import { CLOCK_LOOK_MS } from "../src/limits/process.ts";
import { SKEW_SECONDS } from "../src/limits/tokens.ts";
import { watchClocks } from "../src/start/clocks.ts";
import { migratedFile } from "./support/migrated.ts";
import { freshDatabase, sharePostgres } from "./support/postgres.ts";
import { makeTimers } from "./support/timers.ts";
import { until } from "./support/until.ts";

const ALONE = {
  instance: "as-1",
  name: { host: "node-1", noteClock: async () => {} },
  settings: () => ({ clockSkewSeconds: SKEW_SECONDS }),
};

test("an instance is not ready while its clock is more than 2 s from that of PostgreSQL, and tells it once", async (t) => {
  const server = await sharePostgres();
  t.after(server.stop);
  const store = await openStore({ postgres: await freshDatabase(server), connections: 1 });
  t.after(store.close);
  let aheadMs = 0;
  const clock = makeClock(() => Date.now() + aheadMs);
  const timers = makeTimers();
  const told: Notice[] = [];
  const log = { tell: (one: Notice) => void told.push(one) };
  const watch = await watchClocks({ ...ALONE, store, clock, timers, log });
  assert.deepEqual([watch.state(), told], ["agrees", []]);
  const look = async (isReached: () => boolean): Promise<void> => {
    timers.pass(CLOCK_LOOK_MS);
    await until(isReached, "the clocks are compared");
  };
  for (const [ms, state, event, says] of [
    [3_500, "differs", "clock_differs", /is 3\.\d s ahead of that of the database/],
    [1_500, "agrees", "clock_agrees", /agrees/],
    [-3_500, "differs", "clock_differs", /is 3\.\d s behind that of the database/],
  ] as const) {
    aheadMs = ms;
    told.length = 0;
    const close = () => Math.abs((watch.differenceSeconds() ?? 0) - ms / 1000) < 0.4;
    await look(() => close() && watch.state() === state);
    await look(close);
    assert.deepEqual(
      told.map((one) => one.event),
      [event],
    );
    assert.match(told[0]?.message ?? "", says);
  }
  watch.stop();
});

test("STORE-D-9 instances that agree serve on while the database's clock alone differs, and one that differs from them does not", async (t) => {
  const server = await sharePostgres();
  t.after(server.stop);
  const postgres = await freshDatabase(server);
  const open = async (instance: string, host: string) => {
    const store = await openStore({ postgres, connections: 1 });
    t.after(store.close);
    const name = await takeName({
      names: store.names,
      name: instance,
      leaseSeconds: 60,
      onWait: assert.fail,
    });
    t.after(name.close);
    const timers = makeTimers();
    const told: string[] = [];
    const shown = { aheadMs: 0, looks: 0, told };
    const watch = await watchClocks({
      ...{ store, instance, name: { ...name, host }, timers },
      // Asked for when the clocks are known.
      settings() {
        shown.looks++;
        return ALONE.settings();
      },
      clock: makeClock(() => Date.now() + shown.aheadMs),
      log: { tell: ({ event }) => void told.push(event) },
    });
    const look = async (): Promise<void> => {
      const before = shown.looks;
      timers.pass(CLOCK_LOOK_MS);
      await until(() => shown.looks > before, "the clocks are compared");
    };
    return Object.assign(shown, { state: watch.state, look });
  };
  const all = [await open("as-1", "node-1"), await open("as-2", "node-2"), await open("as-3", "node-3")];
  /** Sets the clocks, and lets one after the other look. */
  const set = async (...aheadMs: readonly number[]) => {
    for (const [index, one] of all.entries()) one.aheadMs = aheadMs[index] ?? 0;
    return look();
  };
  const look = async () => {
    for (const one of all) await one.look();
    return all.map((one) => one.state());
  };
  assert.deepEqual(await look(), ["agrees", "agrees", "agrees"]);
  // The clock of the database was set. The first ones to look know only what the others noted before.
  assert.deepEqual(await set(-4_000, -4_500, -5_000), ["agrees", "agrees", "database_differs"]);
  assert.deepEqual(await look(), ["database_differs", "database_differs", "database_differs"]);
  // That of one instance was set, which now stands beside the database.
  assert.deepEqual(await set(-4_000, -4_500, 0), ["database_differs", "database_differs", "agrees"]);
  await look();
  assert.deepEqual(await look(), ["differs", "differs", "agrees"]);
  assert.deepEqual(await set(0, 0, 0), ["agrees", "agrees", "agrees"]);
  const whole = ["database_clock_differs", "clock_differs", "clock_agrees"];
  assert.deepEqual(
    all.map(({ told }) => told),
    [whole, whole, ["database_clock_differs", "clock_agrees"]],
  );
  // No instance serves with a clock that is further from the database than those of others may be.
  const far = 1_000 * SKEW_SECONDS + 5_000;
  await set(far, far, far);
  await look();
  assert.deepEqual(await look(), ["differs", "differs", "differs"]);
});

const other = (aheadMs: number, host = "node-2") => ({ name: "as-2", host, aheadMs });
const judged: [
  what: string,
  aheadMs: number,
  others: InstanceClock[],
  skewSeconds: number,
  state: ClockState,
][] = [
  ["alone is not ready", 2_100, [], 30, "differs"],
  ["that agrees with the database is ready, whatever the others have", 1_900, [other(9_000)], 30, "agrees"],
  ["that agrees with another serves", 3_000, [other(4_900)], 30, "database_differs"],
  ["that differs from another is not ready", 3_000, [other(5_100)], 30, "differs"],
  ["that differs from one of two is not ready", 3_000, [other(3_000), other(0)], 30, "differs"],
  ["that agrees with one of its own host alone is not ready", 3_000, [other(3_000, "node-1")], 30, "differs"],
  ["at the tolerance serves", 30_000, [other(30_000)], 30, "database_differs"],
  ["beyond the tolerance is not ready", 30_001, [other(30_001)], 30, "differs"],
  ["without tolerance is not ready", -2_100, [other(-2_100)], 0, "differs"],
];
for (const [what, differenceMs, others, skewSeconds, state] of judged) {
  test(`STORE-D-9 an instance ${what}`, () => {
    const measured = { differenceMs, uncertaintyMs: 0 };
    assert.equal(judgeClock(measured, "node-1", others, skewSeconds), state);
  });
}

test("SQLite uses the clock of the machine, so that nothing is compared", async (t) => {
  const store = await openStore({ sqlite: await migratedFile() });
  t.after(store.close);
  const log = { tell: (one: Notice) => assert.fail(one.message) };
  const watch = await watchClocks({
    ...ALONE,
    store,
    clock: makeClock(() => 0),
    timers: makeTimers(),
    log,
  });
  assert.deepEqual([watch.state(), watch.differenceSeconds()], ["agrees", undefined]);
});

test("the store is taken to have read its clock between question and answer", async () => {
  let monotonicMs = 70_000;
  const clock = { nowMs: () => 1_000_000, monotonicMs: () => monotonicMs };
  const nowMs = async () => {
    monotonicMs += 400;
    return 1_000_000 - 2_000;
  };
  assert.deepEqual(await measureClock({ nowMs }, clock), { differenceMs: 2_200, uncertaintyMs: 200 });
});

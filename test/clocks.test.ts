/** The clock of an instance beside that of its database: told and not ready beyond 2 s, and ready again afterwards. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { makeClock } from "../src/adapters/clock.ts";
import { measureClock } from "../src/adapters/store/clock-difference.ts";
import { openStore } from "../src/adapters/store/open.ts";
import type { Notice } from "../src/http/log-events.ts";
import { CLOCK_LOOK_MS } from "../src/limits/process.ts";
import { watchClocks } from "../src/start/clocks.ts";
import { migratedFile } from "./support/migrated.ts";
import { freshDatabase, sharePostgres } from "./support/postgres.ts";
import { makeTimers } from "./support/timers.ts";
import { until } from "./support/until.ts";

test("an instance is not ready while its clock is more than 2 s from that of PostgreSQL, and tells it once", async (t) => {
  const server = await sharePostgres();
  t.after(server.stop);
  const store = await openStore({ postgres: await freshDatabase(server), connections: 1 });
  t.after(store.close);
  let aheadMs = 0;
  const clock = makeClock(() => Date.now() + aheadMs);
  const timers = makeTimers();
  const told: Notice[] = [];
  const watch = await watchClocks({ store, clock, timers, log: { tell: (one) => void told.push(one) } });
  assert.deepEqual([watch.agrees(), told], [true, []]);
  const look = async (isReached: () => boolean): Promise<void> => {
    timers.pass(CLOCK_LOOK_MS);
    await until(isReached, "the clocks are compared");
  };
  for (const [ms, agrees, event, says] of [
    [3_500, false, "clock_differs", /is 3\.\d s ahead of that of the database/],
    [1_500, true, "clock_agrees", /agrees/],
    [-3_500, false, "clock_differs", /is 3\.\d s behind that of the database/],
  ] as const) {
    aheadMs = ms;
    told.length = 0;
    const close = () => Math.abs((watch.differenceSeconds() ?? 0) - ms / 1000) < 0.4;
    await look(() => close() && watch.agrees() === agrees);
    await look(close);
    assert.deepEqual(
      told.map((one) => one.event),
      [event],
    );
    assert.match(told[0]?.message ?? "", says);
  }
  watch.stop();
});

test("SQLite uses the clock of the machine, so that nothing is compared", async (t) => {
  const store = await openStore({ sqlite: await migratedFile() });
  t.after(store.close);
  const log = { tell: (one: Notice) => assert.fail(one.message) };
  const watch = await watchClocks({ store, clock: makeClock(() => 0), timers: makeTimers(), log });
  assert.deepEqual([watch.agrees(), watch.differenceSeconds()], [true, undefined]);
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

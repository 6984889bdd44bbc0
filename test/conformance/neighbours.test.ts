/** Honest callers beside a broken one at their address, as users run the server: one short round of a trial. */
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { METHODS, PATHS, serveBeside } from "../../scripts/trials/throttle.ts";
import type { SharedPostgres } from "../support/postgres.ts";
import { freshDatabase, sharePostgres } from "../support/postgres.ts";
import { stop } from "../support/stop.ts";

/** A bucket that a few failures empty: how many it holds has no part in the order of callers. */
const BESIDE = { failuresPerSecond: 50, requests: 4, failuresPerMinuteBySource: 6 };

let database: SharedPostgres;
before(async () => {
  database = await sharePostgres();
});
after(() => stop(database));

type Run = readonly [
  where: string,
  paths: typeof PATHS | readonly ["proxy"],
  () => Promise<string | undefined>,
];
// The store has no part in the order of callers, so one path is enough for the second.
const runs: readonly Run[] = [
  ["directly and behind the proxy, on SQLite", PATHS, async () => undefined],
  ["behind the proxy, on PostgreSQL", ["proxy"], () => freshDatabase(database)],
];
// Each waits most of its time: a JWT-SVID of another authority is refused after an early look at the keys.
suite("honest callers beside a broken one", { concurrency: true }, () => {
  for (const [where, paths, place] of runs) {
    test(`RFC6749-2.3.1-8, PROD-8.3-1 50 failures a second of one source refuse no valid proof at it, by any method, ${where}`, async () => {
      const outcomes = await serveBeside({ ...BESIDE, paths }, await place());
      assert.equal(outcomes.length, paths.length * METHODS.length);
      for (const { path, method, served, refused } of outcomes) {
        assert.equal(served, BESIDE.requests, `${path} ${method}`);
        assert.ok(refused.has(429) && !refused.has(200), `${path} ${method}: ${[...refused]}`);
      }
    });
  }
});

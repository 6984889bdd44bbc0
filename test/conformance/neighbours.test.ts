/** Honest callers beside a broken one at their address, as users run the server: one short round of a trial. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { METHODS, PATHS, serveBeside } from "../../scripts/trials/throttle.ts";
import type { SharedPostgres } from "../support/postgres.ts";
import { freshDatabase, sharePostgres } from "../support/postgres.ts";

const BESIDE = { failuresPerSecond: 50, requests: 4, paths: PATHS };

let database: SharedPostgres;
before(async () => {
  database = await sharePostgres();
});
after(() => database.stop());

const stores: readonly (readonly [string, () => Promise<string | undefined>])[] = [
  ["SQLite", async () => undefined],
  ["PostgreSQL", () => freshDatabase(database)],
];
for (const [store, place] of stores) {
  test(`RFC6749-2.3.1-8, PROD-8.3-1 50 failures a second of one source refuse no valid proof at it, by any method, directly and behind the proxy, on ${store}`, async () => {
    const outcomes = await serveBeside(BESIDE, await place());
    assert.equal(outcomes.length, PATHS.length * METHODS.length);
    for (const { path, method, served, refused } of outcomes) {
      assert.equal(served, BESIDE.requests, `${path} ${method}`);
      assert.ok(refused.has(429) && !refused.has(200), `${path} ${method}: ${[...refused]}`);
    }
  });
}

/** Honest callers beside a broken one at their address, as users run the server: one short round of a trial. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { METHODS, PATHS, serveBeside } from "../../scripts/trials/throttle.ts";

/** A bucket that a few failures empty: how many it holds has no part in the order of callers. */
const BESIDE = { failuresPerSecond: 50, requests: 2, failuresPerMinuteBySource: 6 };

// The store has no part in the order of callers.
test("RFC6749-2.3.1-8, PROD-8.3-1 50 failures a second of one source refuse no valid proof at it, by any method, directly and behind the proxy", async () => {
  const outcomes = await serveBeside({ ...BESIDE, paths: PATHS });
  assert.equal(outcomes.length, PATHS.length * METHODS.length);
  for (const { path, method, served, refused } of outcomes) {
    assert.equal(served, BESIDE.requests, `${path} ${method}`);
    assert.ok(refused.has(429) && !refused.has(200), `${path} ${method}: ${[...refused]}`);
  }
});

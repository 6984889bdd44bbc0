/** What a commit waits for; no timer ends where the test does not say so. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { Company } from "../../../src/adapters/audit/batch.ts";
import { JOURNAL_COMPANY_MS } from "../../../src/limits/store.ts";

/** Longer than a batch waits for turns of the event loop that bring no work, on a busy machine too. */
const TURNS_MS = 3 * JOURNAL_COMPANY_MS;

/** The company of `waiting` entries, after a commit of `written` that took so long. */
function companyAfter(t: TestContext, written: number, tookMs = 10) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const state = { waiting: 0, gathered: false };
  const company = new Company(() => state.waiting);
  company.expect(written, tookMs);
  return {
    company,
    state,
    async gather(waiting: number): Promise<boolean> {
      state.waiting = waiting;
      state.gathered = false;
      void company.gather().then(() => {
        state.gathered = true;
      });
      for (const endMs = performance.now() + TURNS_MS; performance.now() < endMs; ) await turn();
      return state.gathered;
    },
  };
}

test("a commit waits until as many callers came as the last one had, and goes on with the last of them", async (t) => {
  const { company, state, gather } = companyAfter(t, 3);
  assert.equal(await gather(1), false);
  for (const waiting of [2, 3]) {
    state.waiting = waiting;
    company.join();
    await turn();
    assert.equal(state.gathered, waiting === 3);
  }
  assert.ok(await gather(3));
});

test("a commit whose callers do not come again goes on without them after a part of the time of the last one", async (t) => {
  const { state, gather } = companyAfter(t, 2);
  assert.equal(await gather(1), false);
  t.mock.timers.tick(JOURNAL_COMPANY_MS);
  await turn();
  assert.ok(state.gathered);
});

test("after a commit that held the event loop the next one waits for nothing", async (t) => {
  const { gather } = companyAfter(t, 2, 0);
  assert.ok(await gather(1));
});

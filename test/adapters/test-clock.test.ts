import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { openTestClock } from "../../src/adapters/test-clock.ts";
import { until } from "../support/until.ts";

const HOUR_MS = 3_600_000;

function open(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), "mandate-clock-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "clock.json");
  const set = (offsets: object): void => writeFileSync(file, JSON.stringify(offsets));
  set({});
  return { ...openTestClock(file), set };
}

test("the test clock is the platform's clock plus the offset in the file", (t) => {
  const { clock, set } = open(t);
  for (const offset of [0, HOUR_MS, -HOUR_MS]) {
    set({ wallMs: offset });
    assert.ok(Math.abs(clock.nowMs() - Date.now() - offset) < 1_000);
  }
});

test("a timer of the test clock fires once, when the monotonic offset makes it due", async (t) => {
  const { timers, set } = open(t);
  const fired: string[] = [];
  timers.after(HOUR_MS, () => fired.push("hour"));
  timers.after(2 * HOUR_MS, () => fired.push("two hours"));
  const cancel = timers.after(HOUR_MS, () => fired.push("cancelled"));
  cancel();
  set({ monotonicMs: HOUR_MS });
  await until(() => fired.length > 0, "the first timer fires");
  set({ monotonicMs: 2 * HOUR_MS });
  await until(() => fired.length > 1, "the second timer fires");
  assert.deepEqual(fired, ["hour", "two hours"]);
});

test("a timer of the test clock does not depend on the wall clock", async (t) => {
  const { timers, set } = open(t);
  const fired: string[] = [];
  const cancel = timers.after(HOUR_MS, () => fired.push("hour"));
  timers.after(0, () => fired.push("now"));
  set({ wallMs: 2 * HOUR_MS });
  await until(() => fired.length > 0, "a timer fires");
  cancel();
  assert.deepEqual(fired, ["now"]);
});

test("a repeated timer of the test clock fires after each interval until it is cancelled", async (t) => {
  const { timers, set } = open(t);
  let count = 0;
  const cancel = timers.every(HOUR_MS, () => count++);
  for (const hours of [1, 2, 3]) {
    set({ monotonicMs: hours * HOUR_MS });
    await until(() => count === hours, "the timer fires again");
  }
  cancel();
  timers.after(HOUR_MS, () => count++);
  set({ monotonicMs: 5 * HOUR_MS });
  await until(() => count > 3, "the other timer fires");
  assert.equal(count, 4);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { cpuMs } from "../../src/adapters/clock.ts";

test("PROD-8.3-1 the CPU time of the thread grows with its work, in milliseconds", () => {
  const [beganCpuMs, beganMs] = [cpuMs(), performance.now()];
  const passedMs = () => performance.now() - beganMs;
  while (cpuMs() - beganCpuMs < 20) assert.ok(passedMs() < 10_000);
  // A thread works on one core; the platform counts by some milliseconds.
  assert.ok(passedMs() > 10);
});

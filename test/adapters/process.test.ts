import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { watchProcess } from "../../src/adapters/process.ts";

test("a blocked event loop is seen by the next reading of the process, and by no later one", async () => {
  const ours = watchProcess();
  try {
    const longest = (): number => {
      const { loopDelaySeconds } = ours.read();
      return loopDelaySeconds.find(({ rank }) => rank === "max")?.seconds ?? 0;
    };
    // The monitor begins with the first run of its own timer after a reading.
    await sleep(50);
    longest();
    await sleep(50);
    const endMs = performance.now() + 300;
    while (performance.now() < endMs);
    await sleep(50);
    assert.ok(longest() > 0.2);
    assert.ok(longest() < 0.2);
    const { cpuSeconds, residentBytes, startSeconds } = ours.read();
    assert.ok(cpuSeconds > 0.1 && residentBytes > 10_000_000);
    assert.ok(Math.abs(startSeconds - Date.now() / 1000) < 600);
  } finally {
    ours.close();
  }
});

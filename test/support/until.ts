/** Waits until something has happened in another process; the failure says what has not. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

const TIMEOUT_MS = 10_000;
const POLL_MS = 5;

export async function until(reached: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const endMs = performance.now() + TIMEOUT_MS;
  while (!(await reached())) {
    assert.ok(performance.now() < endMs, `not within ${TIMEOUT_MS} ms: ${what}`);
    await sleep(POLL_MS);
  }
}

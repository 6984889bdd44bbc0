/** Waits until something has happened in another process; the failure says what has not. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

/** So long only on a machine that does much else: it is there to end a wait for what never happens, not to measure. */
const TIMEOUT_MS = 300_000;
const POLL_MS = 5;

export async function until(reached: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const endMs = performance.now() + TIMEOUT_MS;
  while (!(await reached())) {
    assert.ok(performance.now() < endMs, `not within ${TIMEOUT_MS} ms: ${what}`);
    await sleep(POLL_MS);
  }
}

/** Longer than a request takes that does not wait. */
const STEP_MS = 200;

/** Lets the clock of the servers run, by these seconds at a time, until this work has ended. */
export async function whilePassing<T>(
  { pass }: { pass(seconds: number): void },
  seconds: number,
  work: Promise<T>,
  stepMs = STEP_MS,
): Promise<T> {
  const ended = work.then(
    () => true,
    () => true,
  );
  while (!(await Promise.race([ended, sleep(stepMs, false)]))) pass(seconds);
  return work;
}

/** How busy this machine is, measured in the same moment as a time that has a bound: such a bound holds on a calm one alone. */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { Worker } from "node:worker_threads";

/** Of the processor time that the work of the yardstick takes; on a calm machine it is 1. */
const BUSY = 1.3;

/** Works for 5 ms of processor time in each tenth of a second, and adds up how long that took and should have taken. */
const WORK = `
const { workerData: totals } = require("node:worker_threads");
const cpuMs = () => { const { user, system } = process.threadCpuUsage(); return (user + system) / 1000; };
const pause = new Int32Array(new SharedArrayBuffer(4));
for (;;) {
  const [beganMs, beganCpuMs] = [performance.now(), cpuMs()];
  while (cpuMs() - beganCpuMs < 5);
  totals[0] += performance.now() - beganMs;
  totals[1] += cpuMs() - beganCpuMs;
  Atomics.wait(pause, 0, 0, 95);
}`;

let totals: Float64Array | undefined;

/** Begins with the first use, and ends with the process. */
function start(): Float64Array {
  const shared = new Float64Array(new SharedArrayBuffer(16));
  new Worker(WORK, { eval: true, workerData: shared }).unref();
  return shared;
}

export type Stretch = { tookMs(): number; wasBusy(): boolean };

/** What is measured from here on. A stretch in which the yardstick never came to work was busy, or is too short to tell. */
export function stretch(): Stretch {
  totals ??= start();
  const [tookBefore = 0, neededBefore = 0] = totals;
  const beganMs = performance.now();
  return {
    tookMs: () => performance.now() - beganMs,
    wasBusy() {
      const [took = 0, needed = 0] = totals ?? [];
      return took - tookBefore >= BUSY * (needed - neededBefore);
    },
  };
}

/** Asserts that a stretch was shorter than the bound, unless the machine was busy meanwhile, which is printed. */
export function assertShort(
  { tookMs, wasBusy }: Stretch,
  boundMs: number,
  what: string,
  t?: TestContext,
): void {
  const ms = Math.round(tookMs());
  if (ms < boundMs) return;
  const text = `${what}: ${ms} ms, of ${boundMs} at most`;
  assert.ok(wasBusy(), text);
  const told = `not measured: this machine was too busy (${text})`;
  if (t === undefined) console.log(told);
  else t.diagnostic(told);
}

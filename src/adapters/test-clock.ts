/**
 * The clock of a server under test: the platform's, moved by the milliseconds that a file gives at that moment, for the
 * wall clock and for the monotonic clock apart.
 */
import { readFileSync } from "node:fs";
import * as v from "valibot";
import type { Clock, Timers } from "../ports.ts";
import { makeClock } from "./clock.ts";

/** A timer notices this late that the clock was moved. */
const POLL_MS = 20;

const Offsets = v.object({ wallMs: v.optional(v.number(), 0), monotonicMs: v.optional(v.number(), 0) });

export function openTestClock(file: string): { clock: Clock; timers: Timers } {
  const offsets = () => v.parse(Offsets, JSON.parse(readFileSync(file, "utf8")));
  const monotonicMs = (): number => performance.now() + offsets().monotonicMs;
  const waiting = new Set<{ dueMs: number; work: () => void }>();
  // One reading of the file for all timers.
  setInterval(() => {
    if (waiting.size === 0) return;
    const nowMs = monotonicMs();
    for (const one of waiting) {
      if (nowMs < one.dueMs) continue;
      waiting.delete(one);
      one.work();
    }
  }, POLL_MS).unref();
  const after = (ms: number, work: () => void): (() => void) => {
    const one = { dueMs: monotonicMs() + ms, work };
    waiting.add(one);
    return () => waiting.delete(one);
  };
  const every = (ms: number, work: () => void): (() => void) => {
    let cancel = (): void => {};
    const arm = (): void => {
      cancel = after(ms, () => {
        arm();
        work();
      });
    };
    arm();
    return () => cancel();
  };
  const clock = makeClock(() => Date.now() + offsets().wallMs, monotonicMs);
  return { clock, timers: { after, every } };
}

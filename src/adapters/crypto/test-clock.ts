/**
 * The clock of a server under test: the platform's, moved by the milliseconds that a file gives at that moment, for the
 * wall clock and for the monotonic clock apart.
 */
import { readFileSync } from "node:fs";
import * as v from "valibot";
import type { Clock, Timers } from "../../ports.ts";
import { makeClock } from "./system.ts";

/** A timer notices this late that the clock was moved. */
const POLL_MS = 20;

const Offsets = v.object({ wallMs: v.optional(v.number(), 0), monotonicMs: v.optional(v.number(), 0) });

export function openTestClock(file: string): { clock: Clock; timers: Timers } {
  const offsets = () => v.parse(Offsets, JSON.parse(readFileSync(file, "utf8")));
  const monotonicMs = (): number => performance.now() + offsets().monotonicMs;
  const after = (ms: number, work: () => void): (() => void) => {
    const dueMs = monotonicMs() + ms;
    const poll = setInterval(() => {
      if (monotonicMs() < dueMs) return;
      clearInterval(poll);
      work();
    }, POLL_MS).unref();
    return () => clearInterval(poll);
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

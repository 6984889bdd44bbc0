/** Clocks that only a test moves, and timers that become due when it lets time pass, and never before. */
import { makeClock } from "../../src/adapters/clock.ts";
import type { Clock, Timers } from "../../src/ports.ts";

/** `nowMs` moves both clocks; `wallAheadMs` is by how much the wall clock alone was set. */
export type TestTime = { nowMs: number; wallAheadMs: number; clock: Clock };

export function makeTime(nowMs: number): TestTime {
  const time: TestTime = {
    nowMs,
    wallAheadMs: 0,
    clock: makeClock(
      () => time.nowMs + time.wallAheadMs,
      () => time.nowMs,
    ),
  };
  return time;
}

export type TestTimers = Timers & {
  /** Everything that is due within these milliseconds runs, in order. */
  pass(ms: number): void;
  /** The time that passed. */
  nowMs(): number;
};

export function makeTimers(): TestTimers {
  let nowMs = 0;
  const armed = new Set<{ atMs: number; work: () => void; everyMs?: number }>();
  const arm = (timer: { atMs: number; work: () => void; everyMs?: number }) => {
    armed.add(timer);
    return () => void armed.delete(timer);
  };
  return {
    after: (ms, work) => arm({ atMs: nowMs + ms, work }),
    every: (ms, work) => arm({ atMs: nowMs + ms, work, everyMs: ms }),
    pass(ms) {
      const endMs = nowMs + ms;
      for (;;) {
        const [next] = [...armed].filter(({ atMs }) => atMs <= endMs).sort((a, b) => a.atMs - b.atMs);
        if (next === undefined) break;
        nowMs = next.atMs;
        if (next.everyMs === undefined) armed.delete(next);
        else next.atMs += next.everyMs;
        next.work();
      }
      nowMs = endMs;
    },
    nowMs: () => nowMs,
  };
}

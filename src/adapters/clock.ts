/** The clocks and timers of the platform. */
import type { Clock, Timers } from "../ports.ts";

/** Seconds and milliseconds come from one function, so that they cannot disagree. */
export const makeClock = (nowMs: () => number, monotonicMs = () => performance.now()): Clock => ({
  nowMs,
  nowSeconds: () => Math.floor(nowMs() / 1000),
  monotonicMs,
});

export const clock: Clock = makeClock(() => Date.now());

/** The CPU time of this thread so far. */
export function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

export const timers: Timers = {
  after(ms, work) {
    const timer = setTimeout(work, ms).unref();
    return () => clearTimeout(timer);
  },
  every(ms, work) {
    const timer = setInterval(work, ms).unref();
    return () => clearInterval(timer);
  },
};

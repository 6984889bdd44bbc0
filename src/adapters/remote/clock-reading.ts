/**
 * A point in time by both clocks, for the age of what was fetched. The monotonic clock gives durations; where the wall
 * clock disagrees, it was set, or the machine slept, and then the age of what was fetched before is unknown.
 */
import { SKEW_SECONDS } from "../../limits/tokens.ts";
import type { Clock } from "../../ports.ts";

export type ClockReading = { wallMs: number; monotonicMs: number };

export const readClocks = (clock: Clock): ClockReading => ({
  wallMs: clock.nowMs(),
  monotonicMs: clock.monotonicMs(),
});

/** Milliseconds by the monotonic clock. */
export const msSince = (clock: Clock, { monotonicMs }: ClockReading): number =>
  clock.monotonicMs() - monotonicMs;

export const clocksDisagree = (clock: Clock, since: ClockReading): boolean =>
  Math.abs(clock.nowMs() - since.wallMs - msSince(clock, since)) > SKEW_SECONDS * 1000;

/** By how much the clock of this machine differs from that of the store, where the store has one of its own. */
import { CLOCK_DIFFERENCE_MS_MAX } from "../../limits/process.ts";
import type { Clock } from "../../ports.ts";
import type { InstanceClock, Store } from "./store.ts";

export type ClockDifference = {
  /** It is positive if the clock of this machine is ahead. */
  differenceMs: number;
  /** The true difference is at most this far from it. */
  uncertaintyMs: number;
};

/** Asks the store for its time; undefined for a store that uses the clock of this machine. */
export async function measureClock(
  { nowMs: askStore }: Pick<Store, "nowMs">,
  clock: Pick<Clock, "nowMs" | "monotonicMs">,
): Promise<ClockDifference | undefined> {
  if (askStore === undefined) return undefined;
  const [askedMs, startMs] = [clock.nowMs(), clock.monotonicMs()];
  const storeMs = await askStore();
  // The store read its clock between question and answer, so the middle is wrong by half of that time at most.
  const halfMs = (clock.monotonicMs() - startMs) / 2;
  return { differenceMs: askedMs + halfMs - storeMs, uncertaintyMs: halfMs };
}

/** `database_differs`: the clock of the database is the one that is wrong, as all instances say. */
export type ClockState = "agrees" | "database_differs" | "differs";

/**
 * STORE-D-9: the database alone is wrong where this clock agrees with that of every other instance, one of which runs on
 * another host, because those of one host have one clock. Beyond the tolerance for clocks of others, nothing is served
 * by a clock that the database does not have.
 */
export function judgeClock(
  measured: ClockDifference,
  host: string,
  others: readonly InstanceClock[],
  skewSeconds: number,
): ClockState {
  const { differenceMs, uncertaintyMs } = measured;
  const differsFrom = (aheadMs: number, ms: number): boolean =>
    Math.abs(differenceMs - aheadMs) - uncertaintyMs > ms;
  if (!differsFrom(0, CLOCK_DIFFERENCE_MS_MAX)) return "agrees";
  const isAlone =
    others.some((other) => other.host !== host) &&
    !others.some(({ aheadMs }) => differsFrom(aheadMs, CLOCK_DIFFERENCE_MS_MAX));
  return isAlone && !differsFrom(0, 1_000 * skewSeconds) ? "database_differs" : "differs";
}

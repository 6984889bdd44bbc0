/** By how much the clock of this machine differs from that of the store, where the store has one of its own. */
import type { Clock } from "../../ports.ts";
import type { Store } from "./store.ts";

type ClockDifference = {
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

/** Whether the clocks differ by more than `ms` even if the measurement is as wrong as it can be. */
export const differsBy = ({ differenceMs, uncertaintyMs }: ClockDifference, ms: number): boolean =>
  Math.abs(differenceMs) - uncertaintyMs > ms;

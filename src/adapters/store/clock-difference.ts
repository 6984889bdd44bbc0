/** By how much the clock of this machine differs from that of the store, where the store has one of its own. */
import type { Clock } from "../../ports.ts";
import type { Store } from "./store.ts";

type ClockDifference = {
  /** Positive: this machine is ahead. */
  differenceMs: number;
  /** The true difference is at most this far from it. */
  uncertaintyMs: number;
};

/** Undefined for a store that uses the clock of this machine. */
export async function measureClock(
  { nowMs: askStore }: Pick<Store, "nowMs">,
  clock: Pick<Clock, "nowMs" | "monotonicMs">,
): Promise<ClockDifference | undefined> {
  if (askStore === undefined) return undefined;
  const [askedMs, startMs] = [clock.nowMs(), clock.monotonicMs()];
  const storeMs = await askStore();
  // The store read its clock between question and answer.
  const halfMs = (clock.monotonicMs() - startMs) / 2;
  return { differenceMs: askedMs + halfMs - storeMs, uncertaintyMs: halfMs };
}

/** Whether they differ by more than this for certain. */
export const differsBy = ({ differenceMs, uncertaintyMs }: ClockDifference, ms: number): boolean =>
  Math.abs(differenceMs) - uncertaintyMs > ms;

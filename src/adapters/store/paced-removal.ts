/** Removes rows in slices of time, because SQLite holds the event loop meanwhile and requests share what PostgreSQL has. */
import { setTimeout as sleep } from "node:timers/promises";
import { SLICE_PAUSES, SLICE_ROWS_MIN, STORE_SWEEP_MAX } from "../../limits/store.ts";
import type { Store } from "./store.ts";

/**
 * Calls `remove` with the most that it may remove until nothing is left or `closing`. The next slice is larger or smaller
 * by the time of the last one, at most twice as large, and comes after a pause of a few times that.
 */
export async function removePaced(
  { sliceMs }: Pick<Store, "sliceMs">,
  closing: () => boolean,
  remove: (limit: number) => Promise<number>,
  monotonicMs = () => performance.now(),
): Promise<void> {
  let rows = SLICE_ROWS_MIN;
  while (!closing()) {
    const beganMs = monotonicMs();
    const gone = await remove(rows);
    if (gone === 0) return;
    const tookMs = monotonicMs() - beganMs;
    const fitting = Math.floor(rows * Math.min(2, sliceMs / tookMs));
    rows = Math.min(STORE_SWEEP_MAX, Math.max(SLICE_ROWS_MIN, fitting));
    await sleep(SLICE_PAUSES * Math.min(tookMs, sliceMs));
  }
}

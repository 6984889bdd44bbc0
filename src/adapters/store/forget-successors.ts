/** REFRESH-D-6: removes the kept successors of refresh tokens after their window; every instance does it. */
import { REFRESH_FORGET_MS, REFRESH_RETRY_SECONDS_MAX } from "../../limits/people.ts";
import type { Timers } from "../../ports.ts";
import { type PeriodicWork, runPeriodically } from "../periodic.ts";
import { removePaced } from "./paced-removal.ts";
import type { Store } from "./store.ts";

/** By the longest window that can be set: within the shorter one in force, the store opens nothing either. */
export function startForgetting(
  store: Pick<Store, "families" | "sliceMs">,
  timers: Timers,
  onFault: (text: string) => void,
): PeriodicWork {
  const windowMs = REFRESH_RETRY_SECONDS_MAX * 1000;
  const work = (closing: () => boolean): Promise<void> =>
    removePaced(store, closing, (limit) => store.families.forgetSuccessors(windowMs, limit));
  return runPeriodically(work, { name: "refresh tokens", everyMs: REFRESH_FORGET_MS, timers, onFault });
}

/** When the next connection to a database may be tried, so that one that refuses or is gone is not flooded. */
import {
  STORE_CONNECTS_MAX,
  STORE_CONNECTS_WINDOW_MS,
  STORE_RETRY_MS,
  STORE_TURN_MS,
} from "../../../limits/store.ts";
import type { StoreUnavailable } from "../../../ports.ts";

export type Attempts = ReturnType<typeof attemptsAtOne>;

/** For each server. One of several is asked again sooner, because the next one that writes may be any of them. */
export const makeAttempts = (servers = 1): readonly Attempts[] =>
  Array.from({ length: servers }, () => attemptsAtOne(servers === 1 ? STORE_RETRY_MS : STORE_TURN_MS));

/** A limited number in any second, and none for a moment after a failure. */
function attemptsAtOne(retryMs: number) {
  const beganMs: number[] = [];
  let failedMs = Number.NEGATIVE_INFINITY;
  let failure: StoreUnavailable | undefined;
  return {
    /** Why the last attempt that ended failed. */
    get failure() {
      return failure;
    },
    waitMs(): number {
      const oldestMs = beganMs.at(-STORE_CONNECTS_MAX) ?? Number.NEGATIVE_INFINITY;
      const freeMs = Math.max(oldestMs + STORE_CONNECTS_WINDOW_MS, failedMs + retryMs);
      return Math.max(0, Math.ceil(freeMs - performance.now()));
    },
    begin(): void {
      beganMs.push(performance.now());
      if (beganMs.length > STORE_CONNECTS_MAX) beganMs.shift();
    },
    end(fault?: StoreUnavailable): void {
      failure = fault;
      failedMs = fault === undefined ? Number.NEGATIVE_INFINITY : performance.now();
    },
  };
}

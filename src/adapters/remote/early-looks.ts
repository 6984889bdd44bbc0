/**
 * Early looks at a document, because a request needs a key that its copy lacks (RFC8725-3.10-v1). They have a budget of
 * their own, which scheduled fetches do not use up: the first look at once, then one in `EARLY_LOOK_SECONDS`. Requests
 * wait for the look that begins after them, since an earlier answer may be older than their key.
 */
import { ANSWER_TIMEOUT_MS, EARLY_LOOK_SECONDS, EARLY_LOOK_WAITERS_MAX } from "../../limits.ts";
import type { Clock, Timers } from "../../ports.ts";

export type EarlyLookOptions = {
  /** Fetches the document. */
  look: () => Promise<unknown> | undefined;
  /** The fetch of this document under way, for whatever reason it began. */
  underWay: () => Promise<unknown> | undefined;
  clock: Pick<Clock, "monotonicMs">;
  timers: Pick<Timers, "after">;
};

export type EarlyLooks = {
  /**
   * Yields after each fetch that may have brought what one request needs: the one under way, then the next look. Ends
   * at once if too many requests wait already, and when the request must have been answered.
   */
  fetches(): AsyncGenerator<void, void, void>;
};

/** The budget and the waiting requests of one document. */
export function makeEarlyLooks({ look, underWay, clock, timers }: EarlyLookOptions): EarlyLooks {
  let dueMs = -Infinity;
  let next: Promise<void> | undefined;
  let waiting = 0;

  const lookWhenDue = async (): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const waitMs = dueMs - clock.monotonicMs();
    if (waitMs > 0) timers.after(waitMs, resolve);
    else resolve();
    await promise;
    for (let running = underWay(); running !== undefined; running = underWay()) {
      await running.catch(() => undefined);
    }
    // Requests from here on wait for a later look.
    next = undefined;
    dueMs = clock.monotonicMs() + EARLY_LOOK_SECONDS * 1000;
    await look();
  };

  return {
    async *fetches() {
      if (waiting >= EARLY_LOOK_WAITERS_MAX) return;
      waiting++;
      const late = Promise.withResolvers<"late">();
      const cancel = timers.after(ANSWER_TIMEOUT_MS, () => late.resolve("late"));
      try {
        const running = underWay();
        if (running !== undefined) {
          if ((await Promise.race([running, late.promise])) === "late") return;
          yield;
        }
        next ??= lookWhenDue();
        if ((await Promise.race([next, late.promise])) === "late") return;
        yield;
      } finally {
        cancel();
        waiting--;
      }
    },
  };
}

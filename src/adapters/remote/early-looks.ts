/**
 * Early looks at a document, because a request needs a key that its copy lacks (RFC8725-3.10-v1). They have a budget of
 * their own, which scheduled fetches do not use up: the first look at once, then one in `EARLY_LOOK_SECONDS`. Requests
 * wait for the look that begins after them, since an earlier answer may be older than their key.
 */
import { EARLY_LOOK_SECONDS, EARLY_LOOK_WAITERS_MAX } from "../../limits/fetching.ts";
import type { Clock, KeyWait, Timers, WaitEnd } from "../../ports.ts";

type EarlyLookOptions = {
  /** Fetches the document. */
  look: () => Promise<unknown> | undefined;
  /** The fetch of this document that is under way, for whatever reason it began. */
  underWay: () => Promise<unknown> | undefined;
  clock: Pick<Clock, "monotonicMs">;
  timers: Pick<Timers, "after">;
};

export type EarlyLooks = {
  /**
   * Yields after each fetch that may have brought what one request needs: the one under way, then the next look. Ends
   * at once if too many requests wait already, suspect ones apart from the others. Throws the reason of `until` where
   * that ends the wait.
   */
  fetches(until?: KeyWait): AsyncGenerator<void, void, void>;
};

/** The budget and the waiting requests of one document. */
export function makeEarlyLooks({ look, underWay, clock, timers }: EarlyLookOptions): EarlyLooks {
  let dueMs = -Infinity;
  let next: Promise<void> | undefined;
  /** How many requests wait, by whether they are suspect: a source that fails takes no place from the others. */
  const waiting = { suspect: 0, other: 0 };

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
    async *fetches(until) {
      const kind = until?.suspect === true ? "suspect" : "other";
      if (waiting[kind] >= EARLY_LOOK_WAITERS_MAX) return;
      waiting[kind]++;
      const wait = watch(until);
      try {
        const running = underWay();
        if (running !== undefined) {
          await Promise.race([running, wait.ended]);
          yield;
        }
        next ??= lookWhenDue();
        await Promise.race([next, wait.ended]);
        yield;
      } finally {
        wait.release();
        waiting[kind]--;
      }
    },
  };
}

/** `ended` rejects with the reason of the first signal that is aborted. */
function watch(until: WaitEnd | undefined): { ended: Promise<never>; release(): void } {
  const { promise: ended, reject } = Promise.withResolvers<never>();
  // The caller may be at work with what a fetch brought.
  ended.catch(() => undefined);
  const signals = [until?.deadline, until?.gone].filter((signal) => signal !== undefined);
  const cancels = signals.map((signal) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort);
    return () => signal.removeEventListener("abort", abort);
  });
  return {
    ended,
    release() {
      for (const cancel of cancels) cancel();
    },
  };
}

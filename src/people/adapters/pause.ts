/**
 * A pause for another server that does not answer. After some requests in a row that waited in vain it is not asked for
 * a while, so that callers are told at once; then one request tries it, and the others are refused until it has an
 * answer. A connection that breaks at once costs no caller time, and may be due to what an attacker put into the
 * request, so it does not count.
 */
import { PAUSE_FAILURES_MAX, PAUSE_MS, PAUSE_SLOW_MS } from "../../limits/people.ts";
import type { Clock } from "../../ports.ts";

export type Pause = {
  /** Whether nothing is asked now. */
  on(): boolean;
  /**
   * Asks the server, and `answers` judges what came; undefined, without asking, in the pause and beside the request
   * that tries.
   */
  ask<T>(work: () => Promise<T>, answers: (result: T) => boolean): Promise<T | undefined>;
  /** The server has answered with something else. */
  end(): void;
};

export function makePause(clock: Pick<Clock, "monotonicMs">): Pause {
  let failures = 0;
  let untilMs = Number.NEGATIVE_INFINITY;
  let trying = false;
  const end = (): void => {
    failures = 0;
  };
  const on = (): boolean => failures >= PAUSE_FAILURES_MAX && (trying || clock.monotonicMs() < untilMs);
  return {
    on,
    end,
    async ask(work, answers) {
      if (on()) return undefined;
      const tries = failures >= PAUSE_FAILURES_MAX;
      if (tries) trying = true;
      const startMs = clock.monotonicMs();
      let answered = false;
      try {
        const result = await work();
        answered = answers(result);
        return result;
      } finally {
        if (tries) trying = false;
        if (answered) end();
        else if (clock.monotonicMs() - startMs >= PAUSE_SLOW_MS) {
          failures += 1;
          untilMs = clock.monotonicMs() + PAUSE_MS;
        }
      }
    },
  };
}

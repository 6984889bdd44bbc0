/**
 * A pause for another server that does not answer: after some requests in a row that waited in vain it is not asked for a
 * while, so that callers are told at once; then one request tries it, and the others wait for nothing until that has its
 * answer. A connection that breaks at once costs no one time, and may be due to what an attacker put into the request.
 */
import { PAUSE_FAILURES_MAX, PAUSE_MS, PAUSE_SLOW_MS } from "../../limits/people.ts";
import type { Clock } from "../../ports.ts";

export type Pause = {
  /** Whether nothing is asked now. */
  on(): boolean;
  /** Undefined, and nothing is asked, in the pause and beside the request that tries; `answers` judges what came. */
  ask<T>(work: () => Promise<T>, answers: (result: T) => boolean): Promise<T | undefined>;
  /** It has answered something else. */
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

/** Measures how long a request to an endpoint took, and why it failed; the log gets one note for each. */
import type { Clock } from "../../ports.ts";
import { defined } from "../../result.ts";

/** The result of one request to an endpoint; `failure` is absent if it succeeded. */
export type FetchResult = { failure?: string; durationMs: number };

/** Begins the time of a request; the function that is returned is called once the request has ended. */
export function timeFetch(clock: Pick<Clock, "monotonicMs">, report: (result: FetchResult) => void) {
  const startMs = clock.monotonicMs();
  return (failure?: string): void => {
    const durationMs = Math.round(clock.monotonicMs() - startMs);
    report(defined<FetchResult>({ failure, durationMs }));
  };
}

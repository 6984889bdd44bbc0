/** How long a request to an endpoint took, and why it failed: one note for each, for the log. */
import type { Clock } from "../../ports.ts";
import { defined } from "../../result.ts";

/** The result of one request to an endpoint; `failure` is absent if it succeeded. */
export type FetchResult = { failure?: string; durationMs: number };

/** The request begins now; what is returned is called once it has ended. */
export function timeFetch(clock: Pick<Clock, "monotonicMs">, report: (result: FetchResult) => void) {
  const startMs = clock.monotonicMs();
  return (failure?: string): void => {
    const durationMs = Math.round(clock.monotonicMs() - startMs);
    report(defined<FetchResult>({ failure, durationMs }));
  };
}

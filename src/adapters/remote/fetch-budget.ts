/**
 * The budget for fetches that unauthenticated peers cause: a rate for each source and each host, and a number in
 * flight.
 * Failures are not cached (CIMD-5.2-3), so this budget is what limits repeated fetches of the same document.
 */

import {
  FETCHES_IN_FLIGHT_BY_HOST_MAX,
  FETCHES_IN_FLIGHT_BY_SOURCE_MAX,
  FETCHES_IN_FLIGHT_MAX,
} from "../../limits/fetching.ts";
import type { Clock } from "../../ports.ts";
import { err, ok, type Result } from "../../result.ts";
import type { Limits } from "../../settings/sections.ts";
import { networkOf } from "../../spec/rfc4291.ts";
import { hash } from "../crypto/hash.ts";
import { makeBuckets } from "../throttle.ts";

export type FetchBudget = {
  /**
   * Charges one fetch to the host or document `place` and to the source; without a source when a cached document is
   * renewed. Returns a function to be called when the fetch has ended, or the seconds to wait, in which case nothing is
   * charged.
   */
  begin(source: string | undefined, place: string): Result<() => void, number>;
};

/** The time to wait if too many fetches are in flight; when one of them ends is unknown. */
const FULL_SECONDS = 1;

/** One budget for all fetches of this process; rates are in fetches for each second, with a burst. */
export function makeFetchBudget(
  clock: Pick<Clock, "monotonicMs">,
  {
    fetchesPerMinuteBySource,
    fetchesPerMinuteByHost,
  }: Pick<Limits, "fetchesPerMinuteBySource" | "fetchesPerMinuteByHost">,
): FetchBudget {
  const sources = makeBuckets(clock, fetchesPerMinuteBySource);
  const places = makeBuckets(clock, fetchesPerMinuteByHost);
  const underWay = countUnderWay();
  return {
    begin(source, place) {
      // The key is a digest, because a peer chooses the length of the text.
      const here = `place ${hash.sha256(place)}`;
      const subscriber = source === undefined ? undefined : networkOf(source);
      const waitSeconds = Math.max(
        subscriber === undefined ? 0 : sources.waitSeconds(subscriber),
        places.waitSeconds(here),
      );
      if (waitSeconds > 0) return err(waitSeconds);
      const limits: [name: string, max: number][] = [[here, FETCHES_IN_FLIGHT_BY_HOST_MAX]];
      if (subscriber !== undefined) {
        limits.push(
          [`source ${subscriber}`, FETCHES_IN_FLIGHT_BY_SOURCE_MAX],
          ["all sources", FETCHES_IN_FLIGHT_MAX],
        );
      } else {
        limits.push(["renewals", FETCHES_IN_FLIGHT_MAX]);
      }
      const names = limits.map(([name]) => name);
      if (limits.some(([name, max]) => underWay.of(name) >= max)) return err(FULL_SECONDS);
      if (subscriber !== undefined) sources.take(subscriber);
      places.take(here);
      underWay.add(names, 1);
      return ok(() => underWay.add(names, -1));
    },
  };
}

function countUnderWay() {
  const counts = new Map<string, number>();
  const of = (name: string): number => counts.get(name) ?? 0;
  return {
    of,
    add(names: readonly string[], change: 1 | -1): void {
      for (const name of names) {
        if (of(name) + change === 0) counts.delete(name);
        else counts.set(name, of(name) + change);
      }
    },
  };
}

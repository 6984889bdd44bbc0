/** Times of a trial: their quantiles, and what an instance says of itself. */
import { quantile } from "../../bench/load.ts";
import type { Instance, Site } from "./site.ts";

export type Times = { p50: number; p99: number; max: number; count: number };

export function timesOf(ms: readonly number[]): Times {
  const sorted = Float64Array.from(ms).sort();
  const at = (part: number): number => Math.round(quantile(sorted, part));
  return { p50: at(0.5), p99: at(0.99), max: Math.round(sorted.at(-1) ?? Number.NaN), count: ms.length };
}

export const describeTimes = ({ p50, p99, max, count }: Times): string =>
  `p50 ${p50} ms, p99 ${p99} ms, longest ${max} ms of ${count}`;

export type State = { residentMiB: number; longestMs: number; ready: boolean };

/** The longest turn is that since the reading before. */
export async function readState(site: Site, at: Instance): Promise<State> {
  const [metrics, { status }] = [await site.metrics(at), await site.readiness(at)];
  const value = (name: string): number =>
    Number(
      metrics
        .split("\n")
        .find((line) => line.startsWith(`${name} `))
        ?.split(" ")[1],
    );
  return {
    residentMiB: Math.round(value("process_resident_memory_bytes") / 2 ** 20),
    longestMs: Math.round(1_000 * value('mandate_event_loop_delay_seconds{rank="max"}')),
    ready: status === 200,
  };
}

export const readStates = (site: Site): Promise<readonly State[]> =>
  Promise.all(site.instances.map((at) => readState(site, at)));

/**
 * The load process: sends a number of calls over a number of connections, one call at a time on each, and reports
 * times. It stops at the first response with another status than the expected one.
 */
import { setTimeout as sleep } from "node:timers/promises";
import * as v from "valibot";
import { type Call, type Endpoint, handshake, Line } from "./client.ts";

export type Order = {
  endpoint: Endpoint;
  /** Sent in order, and again from the first if `count` is more than they are; none: handshakes without a request. */
  calls: readonly Call[];
  count: number;
  connections: number;
  /** Whether each call has a connection of its own. */
  anew: boolean;
  /** The status of each answer; 200 if absent. */
  status?: number;
  /** Calls begin in such intervals, and a call that begins late is timed from when it was due; else one after another. */
  everyMs?: number;
};

export const Outcome = v.union([
  v.object({
    elapsedMs: v.number(),
    p50Ms: v.number(),
    p99Ms: v.number(),
    maxMs: v.number(),
    cpuMicros: v.number(),
  }),
  v.object({ problem: v.string() }),
]);
export type Outcome = v.InferOutput<typeof Outcome>;

if (import.meta.main) {
  /** The connections to each server, kept for the next order. */
  const kept = new Map<number, Line[]>();
  process.on("message", async (order: Order) => {
    const lines = kept.get(order.endpoint.port) ?? [];
    kept.set(order.endpoint.port, lines);
    for (const line of lines.splice(order.connections)) line.close();
    while (lines.length < order.connections) lines.push(new Line(order.endpoint));
    process.send?.(await drive(order, lines).catch(toProblem));
  });
  process.on("disconnect", () => process.exit());
}

async function drive(
  { endpoint, calls, count, anew, everyMs, status: expected = 200 }: Order,
  lines: readonly Line[],
): Promise<Outcome> {
  const timesMs: number[] = [];
  const cpuBefore = process.cpuUsage();
  const startMs = performance.now();
  let begun = 0;
  const lanes = lines.map(async (line) => {
    if (anew) line.close();
    while (begun < count) {
      const place = begun++;
      const call = calls[place % calls.length];
      const beforeMs = everyMs === undefined ? performance.now() : await dueAt(startMs + place * everyMs);
      if (call === undefined) (await handshake(endpoint)).destroy();
      else {
        const { status, body } = await line.send(call);
        if (status !== expected) throw new Error(`answered ${status}: ${body}`);
      }
      timesMs.push(performance.now() - beforeMs);
      if (anew) line.close();
    }
  });
  await Promise.all(lanes);
  const elapsedMs = performance.now() - startMs;
  const { user, system } = process.cpuUsage(cpuBefore);
  const sorted = Float64Array.from(timesMs).sort();
  const [p50Ms, p99Ms] = [quantile(sorted, 0.5), quantile(sorted, 0.99)];
  return { elapsedMs, p50Ms, p99Ms, maxMs: sorted.at(-1) ?? Number.NaN, cpuMicros: user + system };
}

/** Waits for a time; the time of its end, or the due one if that has passed already. */
async function dueAt(dueMs: number): Promise<number> {
  const waitMs = dueMs - performance.now();
  if (waitMs <= 0) return dueMs;
  await sleep(waitMs);
  return performance.now();
}

/** The nearest rank: always a measured time, never an interpolated one. */
export function quantile(sorted: ArrayLike<number>, part: number): number {
  return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? Number.NaN;
}

function toProblem(fault: unknown): Outcome {
  return { problem: fault instanceof Error ? fault.message : String(fault) };
}

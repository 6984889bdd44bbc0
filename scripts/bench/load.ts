/**
 * The load process: sends the calls of a scenario over a number of kept-alive connections, one call at a time on each,
 * and reports times. It stops at the first response that is not 200.
 * Arguments: token endpoint, file of the authority to trust, number of connections.
 */
import { readFileSync } from "node:fs";
import { Agent } from "node:https";
import * as v from "valibot";
import type { Call } from "./client.ts";
import { post } from "./client.ts";

export type Order = { calls: readonly Call[]; seconds: number };

export const Outcome = v.union([
  v.object({
    requests: v.number(),
    elapsedMs: v.number(),
    p50Ms: v.number(),
    p99Ms: v.number(),
    cpuMicros: v.number(),
  }),
  v.object({ problem: v.string() }),
]);
export type Outcome = v.InferOutput<typeof Outcome>;

if (import.meta.main) {
  const [endpoint = "", caFile = "", connections = ""] = process.argv.slice(2);
  const url = new URL(endpoint);
  const count = Number(connections);
  const agent = new Agent({ keepAlive: true, maxSockets: count, ca: readFileSync(caFile) });
  process.on("message", async (order: Order) => {
    process.send?.(await drive(order, agent, url, count).catch(toProblem));
  });
  process.on("disconnect", () => process.exit());
}

async function drive(
  { calls, seconds }: Order,
  agent: Agent,
  url: URL,
  connections: number,
): Promise<Outcome> {
  const timesMs: number[] = [];
  const cpuBefore = process.cpuUsage();
  const startMs = performance.now();
  const endMs = startMs + seconds * 1000;
  const lanes = Array.from({ length: connections }, async (_, lane) => {
    // Every connection sends at least one call, even in a very short run.
    for (let sent = lane; ; sent++) {
      const call = calls[sent % calls.length];
      if (call === undefined) throw new Error("a scenario without calls");
      const beforeMs = performance.now();
      const { status, body } = await post(agent, url, call);
      const nowMs = performance.now();
      if (status !== 200) throw new Error(`answered ${status}: ${body}`);
      timesMs.push(nowMs - beforeMs);
      if (nowMs >= endMs) return;
    }
  });
  await Promise.all(lanes);
  const elapsedMs = performance.now() - startMs;
  const { user, system } = process.cpuUsage(cpuBefore);
  const sorted = Float64Array.from(timesMs).sort();
  return {
    requests: sorted.length,
    elapsedMs,
    p50Ms: quantile(sorted, 0.5),
    p99Ms: quantile(sorted, 0.99),
    cpuMicros: user + system,
  };
}

/** The nearest rank: always a measured time, never an interpolated one. */
export function quantile(sorted: ArrayLike<number>, part: number): number {
  return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? Number.NaN;
}

function toProblem(fault: unknown): Outcome {
  return { problem: fault instanceof Error ? fault.message : String(fault) };
}

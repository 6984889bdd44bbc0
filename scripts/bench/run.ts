/**
 * `npm run bench -- [--seconds N] [--connections N] [--postgres URL] [--json]`: tokens per second over TLS with
 * kept-alive connections and durable audit, for each kind of request. The store is SQLite in the temporary folder
 * (TMPDIR), or the empty PostgreSQL database at URL.
 */
import { statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { parseArgs } from "node:util";
import { ACCESS_TOKEN_SECONDS, CONNECTIONS_PER_SOURCE_MAX } from "../../src/limits.ts";
import { defined } from "../../src/result.ts";
import { quantile } from "./load.ts";
import type { Prepared, Scenario } from "./scenarios.ts";
import { prepare, SCENARIOS } from "./scenarios.ts";
import type { Stage, StageOptions } from "./stage.ts";
import { openStage } from "./stage.ts";

const WARM_UP_SECONDS_MAX = 2;
const ROUNDS = 5;
// The subject tokens of a third hop are issued for each round and must not expire during it.
const SECONDS_MAX = ROUNDS * (ACCESS_TOKEN_SECONDS - 60);
// Half the limit, because a connection that was just closed may still be counted when the next one opens.
const CONNECTIONS_MAX = CONNECTIONS_PER_SOURCE_MAX / 2;

export type BenchOptions = StageOptions & { seconds: number; rounds?: number };

/** The median of the rounds; `requests` is their sum. */
export type Row = {
  scenario: Scenario;
  /** All were answered with 200; otherwise the run fails. */
  requests: number;
  requestsPerSecond: number;
  p50Ms: number;
  p99Ms: number;
  serverCpuMicros: number;
  clientCpuMicros: number;
  /** Relative to the first row. */
  rateRatio: number;
  cpuRatio: number;
};

type Sample = Omit<Row, "scenario" | "rateRatio" | "cpuRatio">;

export async function bench({ seconds, rounds = ROUNDS, ...options }: BenchOptions): Promise<Row[]> {
  const stage = await openStage(options);
  try {
    const prepared = await prepare(stage);
    const samples = new Map<Scenario, Sample[]>(SCENARIOS.map((scenario) => [scenario, []]));
    try {
      for (const scenario of SCENARIOS) {
        await measure(stage, prepared, scenario, Math.min(seconds, WARM_UP_SECONDS_MAX));
      }
      // Alternating, so that other load on the machine affects all scenarios equally.
      for (let round = 0; round < rounds; round++) {
        for (const [scenario, taken] of samples) {
          taken.push(await measure(stage, prepared, scenario, seconds / rounds));
        }
      }
    } finally {
      prepared.close();
    }
    return toRows(samples);
  } finally {
    await stage.close();
  }
}

async function measure(
  stage: Stage,
  prepared: Prepared,
  scenario: Scenario,
  seconds: number,
): Promise<Sample> {
  const calls = await prepared.calls(scenario);
  const before = await stage.serverCpuMicros();
  const { requests, elapsedMs, p50Ms, p99Ms, cpuMicros } = await stage.run({ calls, seconds });
  const serverCpuMicros = ((await stage.serverCpuMicros()) - before) / requests;
  const requestsPerSecond = requests / (elapsedMs / 1000);
  return {
    requests,
    requestsPerSecond,
    p50Ms,
    p99Ms,
    serverCpuMicros,
    clientCpuMicros: cpuMicros / requests,
  };
}

function toRows(samples: ReadonlyMap<Scenario, readonly Sample[]>): Row[] {
  const totals = [...samples].map(([scenario, taken]) => {
    const middle = (of: (sample: Sample) => number) => quantile(taken.map(of).sort(ascending), 0.5);
    return {
      scenario,
      requests: taken.reduce((sum, { requests }) => sum + requests, 0),
      requestsPerSecond: middle((one) => one.requestsPerSecond),
      p50Ms: middle((one) => one.p50Ms),
      p99Ms: middle((one) => one.p99Ms),
      serverCpuMicros: middle((one) => one.serverCpuMicros),
      clientCpuMicros: middle((one) => one.clientCpuMicros),
    };
  });
  const [first] = totals;
  return totals.map((total) => ({
    ...total,
    rateRatio: total.requestsPerSecond / (first ?? total).requestsPerSecond,
    cpuRatio: total.serverCpuMicros / (first ?? total).serverCpuMicros,
  }));
}

const ascending = (a: number, b: number): number => a - b;

export function formatRows(rows: readonly Row[]): string {
  const table = [
    ["scenario", "requests/s", "ratio", "p50 ms", "p99 ms", "server CPU µs", "ratio", "client CPU µs"],
    ...rows.map((row) => [
      row.scenario,
      row.requestsPerSecond.toFixed(0),
      row.rateRatio.toFixed(2),
      row.p50Ms.toFixed(2),
      row.p99Ms.toFixed(2),
      row.serverCpuMicros.toFixed(0),
      row.cpuRatio.toFixed(2),
      row.clientCpuMicros.toFixed(0),
    ]),
  ];
  const widths = table.reduce<number[]>(
    (widest, cells) => cells.map((cell, column) => Math.max(cell.length, widest[column] ?? 0)),
    [],
  );
  return table
    .map((cells) =>
      cells
        .map((cell, column) => {
          const width = widths[column] ?? 0;
          return column === 0 ? cell.padEnd(width) : cell.padStart(width);
        })
        .join("  "),
    )
    .join("\n");
}

function readOptions(): BenchOptions & { json: boolean } {
  const { values } = parseArgs({
    options: {
      seconds: { type: "string", default: "5" },
      connections: { type: "string", default: "16" },
      postgres: { type: "string" },
      json: { type: "boolean", default: false },
    },
  });
  const seconds = Number(values.seconds);
  if (!(seconds > 0 && seconds <= SECONDS_MAX)) {
    throw new RangeError(`--seconds must be a number above 0 and at most ${SECONDS_MAX}`);
  }
  const connections = Number(values.connections);
  if (!(Number.isInteger(connections) && connections >= 1 && connections <= CONNECTIONS_MAX)) {
    throw new RangeError(`--connections must be a whole number from 1 to ${CONNECTIONS_MAX}`);
  }
  const { json, postgres } = values;
  return defined<BenchOptions & { json: boolean }>({ seconds, connections, json, postgres });
}

const TMPFS = 0x01021994;

async function main(): Promise<void> {
  let options: ReturnType<typeof readOptions>;
  try {
    options = readOptions();
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exit(2);
  }
  // process.exit runs the handlers that remove the profile, and the child processes end when their channel closes.
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(130));
  const { json, ...benchOptions } = options;
  const { seconds, connections, postgres } = benchOptions;
  const store = postgres === undefined ? "SQLite" : "PostgreSQL";
  if (!json) {
    const set = `${store}, ${connections} connections, ${seconds} s each, durable audit`;
    console.log(`POST /token: ${set}. Every response was 200. CPU time is per request.\n`);
  }
  const rows = await bench(benchOptions);
  if (json) {
    console.log(JSON.stringify({ store: store.toLowerCase(), seconds, connections, rows }, null, 2));
    return;
  }
  console.log(formatRows(rows));
  console.log(
    "\nRatios are relative to the first row. Only they are comparable between machines, because client and server " +
      "share this machine's cores and disk.",
  );
  if (postgres === undefined && statfsSync(tmpdir()).type === TMPFS) {
    console.log(
      `${tmpdir()} is in memory: set TMPDIR to a folder on a disk to include the cost of durability.`,
    );
  }
}

if (import.meta.main) await main();

/** Measures rows in alternating rounds, so that other load on the machine affects all of them equally. */
import { type ChildProcess, fork, spawn } from "node:child_process";
import { join } from "node:path";
import { defined } from "../../src/result.ts";
import { ask } from "./children.ts";
import type { Call } from "./client.ts";
import { type Order, Outcome, quantile } from "./load.ts";
import type { Side } from "./stage.ts";

/** What is measured: one kind of request to one server. */
export type Job = {
  name: string;
  side: Side;
  connections: number;
  /** A new TLS connection for each request. */
  anew?: boolean;
  /** The status of each answer; 200 if absent. */
  status?: number;
  /** Another process uses a processor as much as it may. */
  busy?: boolean;
  /** At least `count` calls, if each may be sent once only; none for handshakes without a request. */
  calls(count: number): Promise<readonly Call[]>;
};

/** The median of the rounds; `requests` is their sum, all of them answered as expected. Times are for one request. */
export type Row = {
  name: string;
  requests: number;
  requestsPerSecond: number;
  p50Ms: number;
  p99Ms: number;
  serverCpuMicros: number;
  clientCpuMicros: number;
  /** What the server allocated on the heap of V8. */
  allocatedKilobytes: number;
  /** 99 of 100 delays of the server's event loop are shorter. */
  loopDelayMs: number;
  residentMegabytes: number;
  /** How many audit events the store took at a time; not a number for a server that does not tell. */
  eventsPerCommit: number;
  /** The server's CPU time of each round, in microseconds. */
  rounds: readonly number[];
};

type Sample = Omit<Row, "name" | "rounds">;
type Loaded = Omit<Extract<Outcome, { elapsedMs: number }>, "problem">;

/**
 * The platform compiles what is called often, in steps: a server's requests from 20,000 to 40,000 cost more than those
 * before, and those from 60,000 on a seventh less. So the first row of a server has a longer warm-up, or a server with few
 * rows would be measured while it compiles. A stretch of it takes about a second.
 */
const WARM_UP_CALLS = 1_000;
const WARM_UP_CALLS_MAX = 4_000;
const WARM_UPS = { ofServer: { min: 16, max: 16 }, ofRow: { min: 4, max: 7 } };
/** So short a measurement only shows that it works: it needs no warm-up, and makes one request for each connection. */
const BRIEF_SECONDS = 0.5;
/** Warm-up ends when a stretch of it, about a second long, costs at most this much less than the one before. */
const STABLE = 0.97;

export function startLoad(): ChildProcess {
  // The flags of this process do not apply to the child: they may be those of the test runner.
  return fork(join(import.meta.dirname, "load.ts"), [], { execArgv: [] });
}

export async function send(load: ChildProcess, order: Order): Promise<Loaded> {
  const outcome = await ask(load, order, Outcome);
  if ("problem" in outcome) throw new Error(outcome.problem);
  return outcome;
}

/** `secondsEach`: for each job in each round. */
export async function measureRounds(
  load: ChildProcess,
  jobs: readonly Job[],
  { rounds, secondsEach }: { rounds: number; secondsEach: number },
): Promise<Row[]> {
  const measured = new Map<Job, { count: number; samples: Sample[] }>();
  const warm = new Set<Side>();
  for (const job of jobs) {
    const perSecond = await warmUp(load, job, secondsEach, warm.has(job.side) ? "ofRow" : "ofServer");
    warm.add(job.side);
    measured.set(job, { count: Math.max(job.connections, Math.round(perSecond * secondsEach)), samples: [] });
  }
  for (let round = 0; round < rounds; round++) {
    // Every second round backwards, so that no job is always the one after another.
    const order = round % 2 === 0 ? [...measured] : [...measured].reverse();
    for (const [job, { count, samples }] of order) samples.push(await measure(load, job, count));
  }
  return [...measured].map(([{ name }, { samples }]) => toRow(name, samples));
}

/** Until the CPU time of a request falls no further; returns the rate, or 0 if none is needed. */
async function warmUp(
  load: ChildProcess,
  job: Job,
  secondsEach: number,
  kind: keyof typeof WARM_UPS,
): Promise<number> {
  if (secondsEach < BRIEF_SECONDS) return 0;
  const { min, max } = WARM_UPS[kind];
  let calls = WARM_UP_CALLS;
  for (let times = 1, before = Number.POSITIVE_INFINITY; ; times++) {
    const { serverCpuMicros, requestsPerSecond } = await measure(load, job, calls);
    const isStable = times >= min && serverCpuMicros > STABLE * before;
    if (isStable || times === max) return requestsPerSecond;
    before = serverCpuMicros;
    calls = Math.min(Math.max(WARM_UP_CALLS, Math.round(requestsPerSecond)), WARM_UP_CALLS_MAX);
  }
}

async function measure(load: ChildProcess, job: Job, count: number): Promise<Sample> {
  const { side, connections, anew = false, status } = job;
  const { endpoint } = side;
  const calls = await job.calls(count + connections);
  const order = defined<Omit<Order, "calls" | "count">>({ endpoint, connections, anew, status });
  // Opens the connections and leaves nothing of the preparation to the measured part.
  await send(load, { ...order, calls: calls.slice(0, connections), count: connections });
  const rest = calls.length >= count + connections ? calls.slice(connections) : calls;
  const busy = job.busy ? spawn(process.execPath, ["--eval", "for (;;);"], { stdio: "ignore" }) : undefined;
  const committedBefore = await side.committed?.();
  const before = await side.usage();
  const { elapsedMs, p50Ms, p99Ms, cpuMicros } = await send(load, { ...order, calls: rest, count });
  const after = await side.usage();
  const committed = await side.committed?.();
  busy?.kill("SIGKILL");
  return {
    requests: count,
    requestsPerSecond: count / (elapsedMs / 1000),
    p50Ms,
    p99Ms,
    serverCpuMicros: (after.cpuMicros - before.cpuMicros) / count,
    clientCpuMicros: cpuMicros / count,
    allocatedKilobytes: (after.allocatedBytes - before.allocatedBytes) / count / 1000,
    loopDelayMs: after.loopDelayMs,
    residentMegabytes: after.residentBytes / 1e6,
    eventsPerCommit:
      committed === undefined || committedBefore === undefined
        ? Number.NaN
        : (committed.events - committedBefore.events) / (committed.commits - committedBefore.commits),
  };
}

function toRow(name: string, samples: readonly Sample[]): Row {
  const middle = (of: (sample: Sample) => number) => median(samples.map(of));
  return {
    name,
    requests: samples.reduce((sum, { requests }) => sum + requests, 0),
    requestsPerSecond: middle((one) => one.requestsPerSecond),
    p50Ms: middle((one) => one.p50Ms),
    p99Ms: middle((one) => one.p99Ms),
    serverCpuMicros: middle((one) => one.serverCpuMicros),
    clientCpuMicros: middle((one) => one.clientCpuMicros),
    allocatedKilobytes: middle((one) => one.allocatedKilobytes),
    loopDelayMs: middle((one) => one.loopDelayMs),
    residentMegabytes: middle((one) => one.residentMegabytes),
    eventsPerCommit: middle((one) => one.eventsPerCommit),
    rounds: samples.map(({ serverCpuMicros }) => serverCpuMicros),
  };
}

export const median = (values: readonly number[]): number =>
  quantile(
    values.toSorted((a, b) => a - b),
    0.5,
  );

/**
 * `npm run bench`: token requests over TLS with durable audit, for each kind of request, beside a skeleton that does
 * only what none could leave out. README.md says what is measured and how to read it.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { CONNECTIONS_PER_SOURCE_MAX } from "../../src/limits.ts";
import { defined } from "../../src/result.ts";
import { end } from "./children.ts";
import { Line } from "./client.ts";
import type { Ratio, Start, Starts } from "./ratios.ts";
import { toRatios } from "./ratios.ts";
import { checkOut } from "./revision.ts";
import type { Job, Row } from "./rounds.ts";
import { measureRounds, median, startLoad } from "./rounds.ts";
import type { Scenario } from "./scenarios.ts";
import { prepare, SCENARIOS } from "./scenarios.ts";
import type { Side, Stage, StageOptions } from "./stage.ts";
import { makeFolder, openOther, openStage } from "./stage.ts";
import { formatTable } from "./table.ts";

const ROUNDS = 5;
const STARTS = 5;
const PEER = "oidc-provider@9.13.3";
// Subject tokens are issued for each round and must not expire during it.
const SECONDS_MAX = ROUNDS * 240;
// Half the limit, because a connection that was just closed may still be counted when the next one opens.
const CONNECTIONS_MAX = CONNECTIONS_PER_SOURCE_MAX / 2;

export type BenchOptions = {
  /** For each row. */
  seconds: number;
  connections: number;
  rounds?: number;
  /** Kinds of requests; all if absent. */
  only?: readonly Scenario[];
  /** The URL of an empty database, for rows on PostgreSQL beside those on SQLite. */
  postgres?: string;
  /** Another revision of the server, measured in alternation; nothing else is measured then. */
  against?: string;
  /** Whether oidc-provider is installed in a temporary folder and measured. */
  peers?: boolean;
};

export type Report = {
  rows: readonly Row[];
  ratios: readonly Ratio[];
  /** CPU time to that of the other revision: the median of the ratios of the rounds. */
  against?: readonly { name: Scenario; cpuRatio: number }[];
};

export async function bench(options: BenchOptions): Promise<Report> {
  const { seconds, rounds = ROUNDS } = options;
  const undo: (() => unknown)[] = [];
  try {
    const load = startLoad();
    undo.push(() => end(load));
    const starts = options.against === undefined ? await measureStarts(rounds) : undefined;
    const jobs = await (options.against === undefined ? allJobs : jobsAgainst)(options, undo);
    const rows = await measureRounds(load, jobs, { rounds, secondsEach: seconds / rounds });
    const against = options.against === undefined ? undefined : compare(rows);
    return defined<Report>({ rows, ratios: toRatios(rows, starts), against });
  } finally {
    for (const step of undo.reverse()) await step();
  }
}

type Undo = (() => unknown)[];

async function opened<S extends Side>(opening: Promise<S>, undo: Undo): Promise<S> {
  const side = await opening;
  undo.push(() => side.close());
  return side;
}

async function allJobs(
  { connections, only = SCENARIOS, postgres, peers = false }: BenchOptions,
  undo: Undo,
): Promise<readonly Job[]> {
  const stage = await opened(openStage(), undo);
  const { profile, folder } = stage;
  const { calls } = await prepare(stage);
  const jobs: Job[] = only.map((name) => ({
    name,
    side: stage,
    connections,
    calls: (count) => calls(name, count),
  }));
  const database = join(folder, "skeleton.sqlite");
  const skeleton = await opened(
    openOther(stage, "skeleton.ts", "/token", (port) => [profile, port, database]),
    undo,
  );
  const further = (name: string, side: Side, scenario: Scenario, rest: Partial<Job> = {}): void => {
    if (!only.includes(scenario)) return;
    jobs.push({ name, side, connections, calls: (count) => calls(scenario, count, side), ...rest });
  };
  further("secret, 1 connection", stage, "secret", { connections: 1 });
  further("secret, new connections", stage, "secret", { anew: true });
  further("skeleton secret", skeleton, "secret");
  further("skeleton secret, 1 connection", skeleton, "secret", { connections: 1 });
  further("skeleton secret, new connections", skeleton, "secret", { anew: true });
  further("skeleton delegation", skeleton, "delegation");
  further("skeleton handshake", skeleton, "secret", { anew: true, calls: async () => [] });
  if (peers) {
    const installed = installPeer(folder);
    const peer = await opened(
      openOther(stage, "peer.ts", "/token", (port) => [installed, profile, port]),
      undo,
    );
    further("oidc-provider secret", peer, "secret");
  }
  if (postgres !== undefined) {
    const second = await opened(openStage({ postgres }), undo);
    const prepared = await prepare(second);
    for (const scenario of ["secret", "delegation"] as const) {
      further(`PostgreSQL ${scenario}`, second, scenario, {
        calls: (count) => prepared.calls(scenario, count),
      });
    }
  }
  return jobs;
}

/** Both revisions of each kind of request, one after the other. */
async function jobsAgainst(
  { connections, only = SCENARIOS, against = "HEAD" }: BenchOptions,
  undo: Undo,
): Promise<readonly Job[]> {
  const { root, commit, remove } = checkOut(against);
  undo.push(remove);
  const stages: [name: string, stage: Stage][] = [
    ["", await opened(openStage(), undo)],
    [`${commit} `, await opened(openStage({ root }), undo)],
  ];
  const prepared = await Promise.all(
    stages.map(async ([prefix, side]) => ({ prefix, side, ...(await prepare(side)) })),
  );
  return only.flatMap((scenario) =>
    prepared.map(({ prefix, side, calls }) => ({
      name: `${prefix}${scenario}`,
      side,
      connections,
      calls: (count: number) => calls(scenario, count),
    })),
  );
}

/** Each kind of request is followed by the same of the other revision. */
function compare(rows: readonly Row[]): NonNullable<Report["against"]> {
  return SCENARIOS.flatMap((name) => {
    const at = rows.findIndex((row) => row.name === name);
    const [here, there] = rows.slice(at, at + 2);
    if (here === undefined || there === undefined) return [];
    const ratios = here.rounds.map((micros, round) => micros / (there.rounds[round] ?? Number.NaN));
    return [{ name, cpuRatio: median(ratios) }];
  });
}

/** In a folder that is removed with the stage, so that the project does not depend on it. */
function installPeer(folder: string): string {
  const place = join(folder, "peer");
  mkdirSync(place);
  writeFileSync(join(place, "package.json"), JSON.stringify({ private: true }));
  execFileSync("npm", ["install", "--silent", "--no-audit", "--no-fund", PEER], { cwd: place });
  return place;
}

async function measureStarts(rounds: number): Promise<Starts> {
  const { folder: compiled, remove } = makeFolder();
  const starts: Starts[] = [];
  try {
    await measureStart({ compiled });
    for (let times = 0; times < Math.min(rounds, STARTS); times++) {
      starts.push({ fresh: await measureStart(), compiled: await measureStart({ compiled }) });
    }
  } finally {
    remove();
  }
  const middle = (how: keyof Starts): Start => ({
    seconds: median(starts.map((one) => one[how].seconds)),
    residentMegabytes: median(starts.map((one) => one[how].residentMegabytes)),
  });
  return { fresh: middle("fresh"), compiled: middle("compiled") };
}

async function measureStart(options: StageOptions = {}): Promise<Start> {
  const stage = await openStage(options);
  try {
    const call = await (await prepare(stage)).first();
    const line = new Line(stage.endpoint);
    const beganMs = performance.now();
    await line.send(call);
    const seconds = (stage.startMs + performance.now() - beganMs) / 1000;
    line.close();
    return { seconds, residentMegabytes: (await stage.usage()).residentBytes / 1e6 };
  } finally {
    await stage.close();
  }
}

export function formatReport({ rows, ratios, against = [] }: Report): string {
  const tables = [
    [
      [
        "scenario",
        "requests/s",
        "p50 ms",
        "p99 ms",
        "server CPU µs",
        "client CPU µs",
        "loop delay ms",
        "resident MB",
      ],
      ...rows.map((row) => [
        row.name,
        row.requestsPerSecond.toFixed(0),
        row.p50Ms.toFixed(2),
        row.p99Ms.toFixed(2),
        row.serverCpuMicros.toFixed(0),
        row.clientCpuMicros.toFixed(0),
        row.loopDelayMs.toFixed(1),
        row.residentMegabytes.toFixed(0),
      ]),
    ],
    ratios.length > 0
      ? [
          ["ratio", "measured", "target", ""],
          ...ratios.map(({ name, value, target, met }) => [
            name,
            value.toFixed(2),
            target,
            met ? "met" : "not met",
          ]),
        ]
      : [],
    against.length > 0
      ? [
          ["CPU time to the other revision", "ratio"],
          ...against.map(({ name, cpuRatio }) => [name, cpuRatio.toFixed(3)]),
        ]
      : [],
  ];
  return tables
    .filter((table) => table.length > 0)
    .map(formatTable)
    .join("\n\n");
}

const isScenario = (name: string): name is Scenario => SCENARIOS.some((one) => one === name);

function readOptions(): BenchOptions & { json: boolean } {
  const { values } = parseArgs({
    options: {
      seconds: { type: "string", default: "5" },
      connections: { type: "string", default: "16" },
      rounds: { type: "string", default: String(ROUNDS) },
      only: { type: "string" },
      postgres: { type: "string" },
      against: { type: "string" },
      peers: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
    },
  });
  const whole = (name: "connections" | "rounds", max: number): number => {
    const number = Number(values[name]);
    if (Number.isInteger(number) && number >= 1 && number <= max) return number;
    throw new RangeError(`--${name} must be a whole number from 1 to ${max}`);
  };
  const seconds = Number(values.seconds);
  if (!(seconds > 0 && seconds <= SECONDS_MAX)) {
    throw new RangeError(`--seconds must be a number above 0 and at most ${SECONDS_MAX}`);
  }
  const only = values.only?.split(",");
  if (only?.every(isScenario) === false) throw new RangeError(`--only takes ${SCENARIOS.join(",")}`);
  const { json, postgres, against, peers } = values;
  const [connections, rounds] = [whole("connections", CONNECTIONS_MAX), whole("rounds", 100)];
  return defined<BenchOptions & { json: boolean }>({
    seconds,
    connections,
    rounds,
    json,
    postgres,
    against,
    peers,
    only: only?.filter(isScenario),
  });
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
  const { seconds, connections, rounds } = benchOptions;
  const report = await bench(benchOptions);
  if (json) {
    console.log(JSON.stringify({ seconds, connections, rounds, ...report }, null, 2));
    return;
  }
  const set = `${connections} connections, ${seconds} s each in ${rounds} rounds, durable audit`;
  console.log(
    `POST /token: ${set}. Every response was 200. CPU time is per request; all numbers are medians.\n`,
  );
  console.log(formatReport(report));
  console.log(
    "\nOnly ratios are comparable between machines, because client and servers share this machine's cores and disk.",
  );
  if (statfsSync(tmpdir()).type === TMPFS) {
    console.log(
      `${tmpdir()} is in memory: set TMPDIR to a folder on a disk to include the cost of durability.`,
    );
  }
}

if (import.meta.main) await main();

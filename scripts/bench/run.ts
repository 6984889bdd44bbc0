/**
 * `npm run bench`: token requests over TLS with durable audit, for each kind of request, beside a skeleton that does
 * only what none could leave out. README.md says what is measured and how to read it.
 */
import { statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { parseArgs } from "node:util";
import { CONNECTIONS_PER_SOURCE_MAX } from "../../src/limits/connections.ts";
import { defined } from "../../src/result.ts";
import { end } from "./children.ts";
import { type GrowOptions, type Growth, grow } from "./grow.ts";
import { allJobs, type JobOptions, jobsAgainst, type Undo } from "./jobs.ts";
import { type Ratio, toRatios } from "./ratios.ts";
import { type Beside, besideRelease, type ReleaseOptions } from "./release.ts";
import { checkOut } from "./revision.ts";
import { measureRounds, median, type Row, startLoad } from "./rounds.ts";
import { SCENARIOS, type Scenario } from "./scenarios.ts";
import { measureStarts } from "./starts.ts";
import { formatTable } from "./table.ts";

const ROUNDS = 5;
const ROUNDS_MAX = 100;
const PAIRS = 7;
const PAIRS_MAX = 50;
// Subject tokens are issued for each round and must not expire during it.
const ROUND_SECONDS_MAX = 240;
// Half the limit, because a connection that was just closed may still be counted when the next one opens.
const CONNECTIONS_MAX = CONNECTIONS_PER_SOURCE_MAX / 2;

export type BenchOptions = JobOptions & {
  /** For each row. */
  seconds: number;
  rounds?: number;
  /** Another revision of the server, measured in alternation; nothing else is measured then. */
  against?: string;
  /** With `against`: how often both servers are started anew and measured; `seconds` is for each time. */
  pairs?: number;
};

export type Report = {
  rows: readonly Row[];
  ratios: readonly Ratio[];
  against?: readonly Compared[];
};

/** CPU time to that of the other revision, of each pair of processes: the median of the ratios of its rounds. */
export type Compared = { name: Scenario; cpuRatios: readonly number[] };

export async function bench(options: BenchOptions): Promise<Report> {
  if (options.against !== undefined) return benchAgainst(options.against, options);
  const starts = await measureStarts(options.rounds ?? ROUNDS);
  const rows = await measureJobs(allJobs, options);
  return { rows, ratios: toRatios(rows, starts) };
}

/**
 * Two processes of one revision differ by up to a tenth for as long as they run, which no number of rounds evens out:
 * both are started anew for each pair. The rows are those of the last pair.
 */
async function benchAgainst(commitish: string, options: BenchOptions): Promise<Report> {
  let rows: readonly Row[] = [];
  const pairs: (readonly { name: Scenario; cpuRatio: number }[])[] = [];
  const revision = checkOut(commitish);
  try {
    for (let pair = 0; pair < (options.pairs ?? PAIRS); pair++) {
      rows = await measureJobs((job, undo) => jobsAgainst(revision, job, undo), options);
      pairs.push(compare(rows));
    }
  } finally {
    revision.remove();
  }
  const against = (options.only ?? SCENARIOS).map((name): Compared => {
    const found = pairs.flatMap((pair) => pair.filter((one) => one.name === name));
    return { name, cpuRatios: found.map(({ cpuRatio }) => cpuRatio).sort((a, b) => a - b) };
  });
  return { rows, ratios: toRatios(rows), against };
}

async function measureJobs(open: typeof allJobs, options: BenchOptions): Promise<readonly Row[]> {
  const { seconds, rounds = ROUNDS } = options;
  const undo: Undo = [];
  try {
    const load = startLoad();
    undo.push(() => end(load));
    const jobs = await open(options, undo);
    return await measureRounds(load, jobs, { rounds, secondsEach: seconds / rounds });
  } finally {
    for (const step of undo.reverse()) await step();
  }
}

/** Each kind of request is followed by the same of the other revision. */
function compare(rows: readonly Row[]): readonly { name: Scenario; cpuRatio: number }[] {
  return SCENARIOS.flatMap((name) => {
    const at = rows.findIndex((row) => row.name === name);
    const [here, there] = rows.slice(at, at + 2);
    if (here === undefined || there === undefined) return [];
    const ratios = here.rounds.map((micros, round) => micros / (there.rounds[round] ?? Number.NaN));
    return [{ name, cpuRatio: median(ratios) }];
  });
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
        "allocated KB",
        "loop delay ms",
        "resident MB",
        "events/commit",
      ],
      ...rows.map((row) => [
        row.name,
        row.requestsPerSecond.toFixed(0),
        row.p50Ms.toFixed(2),
        row.p99Ms.toFixed(2),
        row.serverCpuMicros.toFixed(0),
        row.clientCpuMicros.toFixed(0),
        row.allocatedKilobytes.toFixed(1),
        row.loopDelayMs.toFixed(1),
        row.residentMegabytes.toFixed(0),
        Number.isNaN(row.eventsPerCommit) ? "" : row.eventsPerCommit.toFixed(1),
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
          ["CPU time to the other revision", "median", "lowest", "highest"],
          ...against.map(({ name, cpuRatios }) => [
            name,
            ...[median(cpuRatios), Math.min(...cpuRatios), Math.max(...cpuRatios)].map((one) =>
              one.toFixed(2),
            ),
          ]),
        ]
      : [],
  ];
  return tables
    .filter((table) => table.length > 0)
    .map(formatTable)
    .join("\n\n");
}

export function formatGrowth(rows: readonly Growth[]): string {
  const figure = (value: number | undefined): string =>
    value === undefined ? "" : value.toFixed(value < 100 ? 2 : 0);
  return formatTable([
    ["measured", "empty store", "filled store", "target"],
    ...rows.map(({ name, fresh, full, target = "" }) => [name, figure(fresh), figure(full), target]),
  ]);
}

export const formatBeside = (rows: readonly Beside[]): string =>
  formatTable([
    ["measured", "sources", "release", "ratio", "target", ""],
    ...rows.map(({ name, sources, release, target = Number.NaN }) => {
      const ratio = release / sources;
      return [
        name,
        sources.toFixed(sources < 10 ? 2 : 0),
        release.toFixed(release < 10 ? 2 : 0),
        ratio.toFixed(2),
        Number.isNaN(target) ? "" : `≤ ${target}`,
        Number.isNaN(target) ? "" : ratio <= target ? "met" : "not met",
      ];
    }),
  ]);

const isScenario = (name: string): name is Scenario => SCENARIOS.some((one) => one === name);

/**
 * `grow`: the events of a filled store, beside which an empty one is measured; `release`: a release is measured beside the
 * sources. Nothing else is measured then.
 */
type Options = BenchOptions & { rounds: number; json: boolean; grow?: number; release: boolean };

function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      seconds: { type: "string", default: "5" },
      connections: { type: "string", default: "16" },
      rounds: { type: "string", default: String(ROUNDS) },
      only: { type: "string" },
      postgres: { type: "string" },
      against: { type: "string" },
      pairs: { type: "string", default: String(PAIRS) },
      peers: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
      grow: { type: "string" },
      release: { type: "boolean", default: false },
    },
  });
  const whole = (name: "connections" | "rounds" | "pairs", max: number): number => {
    const number = Number(values[name]);
    if (Number.isInteger(number) && number >= 1 && number <= max) return number;
    throw new RangeError(`--${name} must be a whole number from 1 to ${max}`);
  };
  const seconds = Number(values.seconds);
  const only = values.only?.split(",");
  if (only?.every(isScenario) === false) throw new RangeError(`--only takes ${SCENARIOS.join(",")}`);
  const { json, postgres, against, peers, release } = values;
  const [connections, rounds] = [whole("connections", CONNECTIONS_MAX), whole("rounds", ROUNDS_MAX)];
  const secondsMax = rounds * ROUND_SECONDS_MAX;
  if (!(seconds > 0 && seconds <= secondsMax)) {
    throw new RangeError(`--seconds must be a number above 0 and at most ${secondsMax} in ${rounds} rounds`);
  }
  const grow = values.grow === undefined ? undefined : Number(values.grow);
  if (grow !== undefined && !(Number.isInteger(grow) && grow >= 1 && grow <= GROW_MAX)) {
    throw new RangeError(`--grow must be a whole number from 1 to ${GROW_MAX}`);
  }
  if (grow !== undefined && (only ?? against) !== undefined) {
    throw new RangeError("--grow cannot be combined with --only or --against");
  }
  if (release && (grow ?? only ?? against ?? postgres) !== undefined) {
    throw new RangeError("--release cannot be combined with --grow, --only, --against or --postgres");
  }
  return defined<Options>({
    seconds,
    grow,
    connections,
    rounds,
    json,
    postgres,
    against,
    release,
    pairs: whole("pairs", PAIRS_MAX),
    peers,
    only: only?.filter(isScenario),
  });
}

const GROW_MAX = 10_000_000;
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
  const { json, grow: count, release, ...benchOptions } = options;
  const { seconds, connections, rounds } = benchOptions;
  if (count !== undefined) {
    const [fresh, full] = benchOptions.postgres?.split(",") ?? [];
    const postgres = fresh === undefined || full === undefined ? undefined : ([fresh, full] as const);
    const growth = await grow(defined<GrowOptions>({ count, connections, seconds, rounds, postgres }));
    console.log(json ? JSON.stringify(growth, null, 2) : formatGrowth(growth));
    return;
  }
  if (release) {
    const beside = await besideRelease(defined<ReleaseOptions>({ seconds, connections, rounds }));
    console.log(json ? JSON.stringify(beside, null, 2) : formatBeside(beside));
    return;
  }
  const report = await bench(benchOptions);
  if (json) {
    console.log(JSON.stringify({ seconds, connections, rounds, ...report }, null, 2));
    return;
  }
  const set = `${connections} connections, ${seconds} s each in ${rounds} rounds, durable audit`;
  console.log(
    `POST /token: ${set}. Every response was as expected. CPU time is per request; all numbers are medians.\n`,
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

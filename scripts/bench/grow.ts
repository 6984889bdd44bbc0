/**
 * A server on a filled store with a large configuration beside one on an empty store with the configuration of the
 * development profile. The last measurement has the filled one remove a part of what it has while it serves.
 */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { buildSegment } from "../../src/adapters/audit/indexing.ts";
import type { Store } from "../../src/adapters/store/store.ts";
import { AUDIT_SEGMENT_EVENTS } from "../../src/limits/audit.ts";
import type { AuditQuery } from "../../src/records.ts";
import { end } from "./children.ts";
import { fill } from "./fill.ts";
import type { Undo } from "./jobs.ts";
import {
  DAY_MS,
  fillOld,
  issuersOf,
  measureRemoval,
  RETENTION_DAYS,
  type Removal,
  withStore,
} from "./removal.ts";
import { measureRounds, median, send, startLoad } from "./rounds.ts";
import { prepare } from "./scenarios.ts";
import { makePlace, type Place, ROOT, type Stage, startAt } from "./stage.ts";
import { measureFirstToken, middleOf, type Start } from "./starts.ts";

export type GrowOptions = {
  /** Events that stay, each with a token and a spent `jti`; what is removed comes on top. */
  count: number;
  connections: number;
  seconds: number;
  rounds: number;
  /** The URLs of two empty databases; SQLite if absent. */
  postgres?: readonly [fresh: string, full: string];
  /** Of the filled one, beside those of the development profile. */
  rules?: number;
  trustDomains?: number;
};

export type Growth = { name: string; fresh?: number; full: number; target?: string };

const RULES = 10_000;
const TRUST_DOMAINS = 1_000;
/** What is removed: so many events, tokens and spent `jti`, or as many as stay if these are fewer. */
const OLD_MAX = 100_000;
const KEPT_LOG = "bench-kept";
const BATCH_OF = 8;
const STARTS_MAX = 3;
const BYTES_CALLS = 1_000;

// biome-ignore lint/suspicious/noExplicitAny: the configuration as JSON, which the server checks when it starts.
export function enlarge(config: any, rules = RULES, trustDomains = TRUST_DOMAINS): void {
  config.audit = { ...config.audit, retentionDays: RETENTION_DAYS };
  const [domain] = Object.values(config.trustDomains);
  for (let index = 0; index < trustDomains; index++) config.trustDomains[`td${index}.example`] = domain;
  const like = config.policies.find(({ id }: { id: string }) => id === "crew-for-travellers");
  for (let index = 0; index < rules; index++) {
    const actors = [`spiffe://td${index % trustDomains}.example/agents/a${index}`];
    config.policies.push({ ...like, id: `rule-${index}`, actors });
  }
}

/** A filled store, and the `jti` of a token in it. */
async function fillPlace(place: Place, count: number): Promise<string> {
  await fillOld(place, Math.min(count, OLD_MAX));
  const nowMs = Date.now();
  return withStore(place, async (store) => {
    const jti = await fill(store.log, {
      ...issuersOf(place),
      log: KEPT_LOG,
      count,
      fromMs: nowMs - DAY_MS,
      everyMs: 1,
      expiresAtSeconds: Math.floor(nowMs / 1000) + 30 * 86_400,
    });
    await buildIndex(store);
    return jti;
  });
}

/** As the server does it behind the journal, so that none of it is left to the measurement. */
async function buildIndex(store: Store): Promise<void> {
  for (const { log, seq: toSeq } of await store.audit.heads()) {
    for (
      let fromSeq = (await store.audit.indexedTo(log)) + 1;
      fromSeq <= toSeq;
      fromSeq += AUDIT_SEGMENT_EVENTS
    )
      await buildSegment(store, { log, fromSeq, toSeq: Math.min(toSeq, fromSeq + AUDIT_SEGMENT_EVENTS - 1) });
  }
}

export async function grow(options: GrowOptions): Promise<readonly Growth[]> {
  const {
    count,
    connections,
    seconds,
    rounds,
    postgres,
    rules = RULES,
    trustDomains = TRUST_DOMAINS,
  } = options;
  const undo: Undo = [];
  try {
    const [freshUrl, fullUrl] = postgres ?? [];
    const fresh = await makePlace(freshUrl === undefined ? {} : { postgres: freshUrl });
    undo.push(() => fresh.remove());
    const full = await makePlace({
      ...(fullUrl === undefined ? {} : { postgres: fullUrl }),
      alter: (config) => enlarge(config, rules, trustDomains),
    });
    undo.push(() => full.remove());
    const jti = await fillPlace(full, count);
    const load = startLoad();
    undo.push(() => end(load));

    const startsFresh = await measureStarts(fresh, rounds);
    const startsFull = await measureStarts(full, rounds);
    const { perSecond, rows } = await measureServing([fresh, full], {
      load,
      connections,
      seconds,
      rounds,
      count,
    });
    return [
      {
        name: "start to the first token, s",
        fresh: startsFresh.seconds,
        full: startsFull.seconds,
        target: "1.2",
      },
      {
        name: "resident after it, MB",
        fresh: startsFresh.residentMegabytes,
        full: startsFull.residentMegabytes,
        target: "160",
      },
      ...rows,
      { name: "longest turn of an audit query, ms", full: await measureQueries(full) },
      { name: "mandate audit --jti, s", full: measureLineage(full, jti) },
      ...describeRemoval(
        await measureRemoval(full, { load, connections, seconds, everyMs: 2_000 / perSecond }),
      ),
    ];
  } finally {
    for (const step of undo.reverse()) await step();
  }
}

async function measureStarts(place: Place, rounds: number): Promise<Start> {
  const starts: Start[] = [];
  for (let times = 0; times < Math.min(rounds, STARTS_MAX); times++)
    starts.push(await measureFirstToken(await startAt(place)));
  return middleOf(starts);
}

type Measuring = Pick<GrowOptions, "connections"> & { load: ReturnType<typeof startLoad> };

/** CPU, rate and bytes of both in alternation; `perSecond`: secrets of the filled one. */
async function measureServing(
  places: readonly [Place, Place],
  {
    load,
    connections,
    seconds,
    rounds,
    count,
  }: Measuring & Pick<GrowOptions, "seconds" | "rounds" | "count">,
): Promise<{ perSecond: number; rows: readonly Growth[] }> {
  const stages: Stage[] = [];
  try {
    for (const place of places) stages.push(await startAt(place));
    const jobs = [];
    for (const scenario of ["secret", "delegation"] as const) {
      for (const side of stages) {
        const { calls } = await prepare(side);
        jobs.push({ name: scenario, side, connections, calls: (count: number) => calls(scenario, count) });
      }
    }
    const measured = await measureRounds(load, jobs, { rounds, secondsEach: seconds / rounds });
    const rows: Growth[] = [];
    for (const scenario of ["secret", "delegation"] as const) {
      const [fresh, full] = measured.filter(({ name }) => name === scenario);
      if (fresh === undefined || full === undefined) continue;
      rows.push(
        {
          name: `${scenario}: CPU µs`,
          fresh: fresh.serverCpuMicros,
          full: full.serverCpuMicros,
          target: `${(1.1 * fresh.serverCpuMicros).toFixed(0)}`,
        },
        {
          name: `${scenario}: requests/s`,
          fresh: fresh.requestsPerSecond,
          full: full.requestsPerSecond,
          target: `${(0.9 * fresh.requestsPerSecond).toFixed(0)}`,
        },
      );
    }
    const bytes = [];
    for (const stage of stages) bytes.push(await measureBytes(stage, load, Math.min(count, BYTES_CALLS)));
    rows.push({
      name: `bytes written for a delegation, ${BATCH_OF} connections`,
      fresh: bytes[0] ?? Number.NaN,
      full: bytes[1] ?? Number.NaN,
    });
    const perSecond = measured.filter(({ name }) => name === "secret")[1]?.requestsPerSecond ?? 1;
    return { perSecond, rows };
  } finally {
    for (const stage of stages) await stage.close();
  }
}

async function measureBytes(stage: Stage, load: Measuring["load"], count: number): Promise<number> {
  const calls = await (await prepare(stage)).calls("delegation", count);
  const before = stage.writtenBytes();
  await send(load, { endpoint: stage.endpoint, calls, count, connections: BATCH_OF, anew: false });
  return (stage.writtenBytes() - before) / count;
}

/** The longest time for which a query held the event loop: one that finds little, and ones that look at much. */
async function measureQueries(place: Place): Promise<number> {
  return withStore(place, async (store) => {
    const heads = await store.audit.heads();
    const spans = heads.map(({ log, seq }) => ({ log, afterSeq: -1, toSeq: seq }));
    const delegations = [{ name: "type", value: "token_exchange.delegation" }] as const;
    const queries: AuditQuery["terms"][] = [
      [[{ name: "request", value: "none" }]],
      [delegations],
      [delegations, [{ name: "type", value: "client.registered" }]],
    ];
    let longestMs = 0;
    for (const terms of queries) {
      let done = false;
      let beforeMs = performance.now();
      const turn = (): void => {
        const nowMs = performance.now();
        longestMs = Math.max(longestMs, nowMs - beforeMs);
        beforeMs = nowMs;
        if (!done) setImmediate(turn);
      };
      setImmediate(turn);
      await store.audit.find({ terms, spans, limit: 100, newestFirst: true });
      done = true;
      turn();
    }
    return longestMs;
  });
}

function measureLineage({ configFile }: Place, jti: string): number {
  const beganMs = performance.now();
  const flags = ["--disable-warning=ExperimentalWarning", join(ROOT, "src/main.ts")];
  execFileSync(process.execPath, [...flags, "audit", "--jti", jti, "--config", configFile], {
    stdio: "pipe",
  });
  return (performance.now() - beganMs) / 1000;
}

/** After the first second, in which the jump of the clock has every trust bundle read again at once. */
const settled = <T>(stretches: readonly T[]): readonly T[] =>
  stretches.length > 1 ? stretches.slice(1) : stretches;

const describeRemoval = ({ calm, stretches, seconds }: Removal): readonly Growth[] => [
  {
    name: "longest stall, ms: calm, and while rows are removed",
    fresh: calm.stallMs,
    full: Math.max(...stretches.map(({ stallMs }) => stallMs)),
  },
  {
    name: "of it processor time of the server, without the disk",
    fresh: calm.stallCpuMs,
    full: Math.max(...settled(stretches).map(({ stallCpuMs }) => stallCpuMs)),
    target: "10",
  },
  {
    name: "p99 to p50: calm, and the worst second of removal",
    fresh: calm.p99Ms / calm.p50Ms,
    full: Math.max(...stretches.map(({ p50Ms, p99Ms }) => p99Ms / p50Ms)),
    target: "5",
  },
  {
    name: "p99 to p50: calm, and the median second of removal",
    fresh: calm.p99Ms / calm.p50Ms,
    full: median(stretches.map(({ p50Ms, p99Ms }) => p99Ms / p50Ms)),
    target: "5",
  },
  {
    name: "longest answer, ms: calm, and while rows are removed",
    fresh: calm.maxMs,
    full: Math.max(...stretches.map(({ maxMs }) => maxMs)),
  },
  { name: "s until they were removed", full: seconds },
];

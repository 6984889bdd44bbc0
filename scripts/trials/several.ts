/**
 * What an exchange of an own token costs on one PostgreSQL at the same load, with one, two and four instances that share
 * a port: processor time, commits, and entries in a commit. A round measures each number of instances once.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freshDatabase, startPostgres } from "../../test/support/postgres.ts";
import { end } from "../bench/children.ts";
import type { Endpoint } from "../bench/client.ts";
import { median, send, startLoad } from "../bench/rounds.ts";
import { prepare } from "../bench/scenarios.ts";
import { makePlace, type Stage, startAt } from "../bench/stage.ts";
import { freePorts } from "../server-process.ts";

const COUNTS = [1, 2, 4];
const PER_SECOND = 200;
const CONNECTIONS = 32;
const SECONDS = 8;
/** As the benchmark does: the platform compiles what is called often. */
const WARM_UP = { calls: 1_000, times: 8 };

/** Instances that share a port and a database of their own. */
type Site = { endpoint: Endpoint; stages: readonly Stage[]; calls: () => Promise<readonly string[]> };

async function openSite(count: number, postgres: string, undo: (() => unknown)[]): Promise<Site> {
  const alter = (config: { listen: object }) => Object.assign(config.listen, { reusePort: true });
  const place = await makePlace({ postgres, alter });
  undo.push(place.remove);
  const config = JSON.parse(readFileSync(place.configFile, "utf8"));
  const stages: Stage[] = [];
  for (const [index, operationsPort] of (await freePorts(count)).entries()) {
    const configFile = join(place.profile, `config-${index}.json`);
    const own = { operations: { port: operationsPort }, audit: { instance: `of-${count}-${index}` } };
    writeFileSync(configFile, JSON.stringify({ ...config, ...own }));
    const stage = await startAt({ ...place, configFile, operationsPort });
    undo.push(() => stage.close());
    stages.push(stage);
  }
  const [first] = stages;
  if (first === undefined) throw new Error("no instance");
  const prepared = await prepare(first);
  return { endpoint: first.endpoint, stages, calls: () => prepared.calls("three-hop", 0) };
}

type Cost = Record<"cpuMs" | "commits" | "entries" | "p50Ms", number>;

const sum = (values: readonly number[]): number => values.reduce((all, one) => all + one, 0);

export async function* runSeveral(rounds: number): AsyncIterable<string> {
  const undo: (() => unknown)[] = [];
  try {
    const server = await startPostgres({ durable: true });
    undo.push(() => server.stop());
    const load = startLoad();
    undo.push(() => end(load));
    const sites = new Map<number, Site>();
    for (const count of COUNTS) sites.set(count, await openSite(count, await freshDatabase(server), undo));
    const costs = new Map(COUNTS.map((count) => [count, [] as Cost[]]));
    const drive = async (site: Site, count: number, everyMs?: number) => {
      const paced = everyMs === undefined ? {} : { everyMs };
      const calls = await site.calls();
      return send(load, {
        endpoint: site.endpoint,
        calls,
        count,
        connections: CONNECTIONS,
        anew: false,
        ...paced,
      });
    };
    // In parts, because the tokens that a part brings expire.
    for (const site of sites.values())
      for (let part = 0; part < WARM_UP.times * site.stages.length; part++) await drive(site, WARM_UP.calls);
    for (let round = 0; round < rounds; round++) {
      for (const [count, site] of round % 2 === 0 ? sites : [...sites].reverse()) {
        const look = () =>
          Promise.all(
            site.stages.map(async (one) => ({ ...(await one.usage()), ...(await one.committed?.()) })),
          );
        const requests = PER_SECOND * SECONDS;
        const before = await look();
        const { p50Ms } = await drive(site, requests, 1000 / PER_SECOND);
        const after = await look();
        const grown = (of: (one: (typeof after)[number]) => number): number =>
          sum(after.map(of)) - sum(before.map(of));
        const commits = grown((one) => one.commits ?? Number.NaN);
        costs.get(count)?.push({
          cpuMs: grown((one) => one.cpuMicros) / 1000 / requests,
          commits: commits / requests,
          entries: grown((one) => one.events ?? Number.NaN) / commits,
          p50Ms,
        });
      }
    }
    const middle = (count: number, name: keyof Cost): number =>
      median((costs.get(count) ?? []).map((cost) => cost[name]));
    const alone = middle(1, "cpuMs");
    for (const count of COUNTS) {
      const cpuMs = middle(count, "cpuMs");
      yield `${count} instances, ${PER_SECOND} exchanges/s: ${cpuMs.toFixed(2)} ms of processor time each (${(cpuMs / alone).toFixed(2)} times that of one), ${middle(count, "commits").toFixed(2)} commits each, ${middle(count, "entries").toFixed(1)} entries in a commit, p50 ${middle(count, "p50Ms").toFixed(1)} ms`;
    }
  } finally {
    for (const step of undo.reverse()) await step();
  }
}

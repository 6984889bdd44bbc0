/** What an exchange costs in a job, against one in none: time of the processor of the server that is asked. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import type { Line } from "../../bench/client.ts";
import type { ServerProcess } from "../../server-process.ts";
import { ENDS, type Site } from "./site.ts";
import { makeJob, openLines, sendAll } from "./work.ts";

/** Short and many, because what else the machine does weighs on single ones. */
const EXCHANGES = 200;
const PAIRS = 30;
const RATIO_MAX = 1.1;

export async function cost(site: Site, at: ServerProcess, store: string): Promise<string> {
  const lines = openLines(site, [at], 8);
  const job = await makeJob(site, "paying", {}, [at]);
  const user = { users: await site.userToken("paying") };
  const tokens = { none: "", job: "" };
  for (const [name, more] of [
    ["none", {}],
    ["job", { mandate_job: job }],
  ] as const) {
    const { body } = (await lines[0]?.send(site.exchange("planner", user, "booking", more))) ?? assert.fail();
    tokens[name] = String(JSON.parse(body).access_token);
  }
  const measure = (name: keyof typeof tokens) => measureOne(site, at, lines, tokens[name]);
  for (let warming = 0; warming < 4; warming++) await measure(warming % 2 === 0 ? "none" : "job");
  const micros = { none: [] as number[], job: [] as number[] };
  for (let pair = 0; pair < PAIRS; pair++) {
    // In turns, so that neither is always the one that finds the machine busy.
    const order = pair % 2 === 0 ? (["none", "job"] as const) : (["job", "none"] as const);
    for (const name of order) micros[name].push(await measure(name));
  }
  const ratios = micros.job.map((inJob, pair) => inJob / (micros.none[pair] ?? Number.NaN));
  const [low, ratio, high] = [0.25, 0.5, 0.75].map((part) => quantile(ratios, part));
  const [none, inJob] = [micros.none, micros.job].map((all) => quantile(all, 0.5).toFixed(0));
  const figures = `on ${store} an exchange takes ${none} µs of the processor without a job, ${inJob} µs in one: ${ratio?.toFixed(3)} times (half of ${PAIRS} pairs within ${low?.toFixed(2)} and ${high?.toFixed(2)})`;
  assert.ok(ratio !== undefined && ratio <= RATIO_MAX, figures);
  return figures;
}

async function measureOne(
  site: Site,
  at: ServerProcess,
  lines: readonly Line[],
  own: string,
): Promise<number> {
  const call = site.exchange("booking", { own }, ENDS[0]);
  const before = processorMicros(at);
  await sendAll(
    lines,
    Array(EXCHANGES).keys(),
    () => call,
    ({ status, body }) => assert.equal(status, 200, JSON.stringify(body)),
  );
  return (processorMicros(at) - before) / EXCHANGES;
}

/** Of all threads of the process, as Linux counts them, to the nanosecond. */
const processorMicros = ({ child }: ServerProcess): number =>
  readdirSync(`/proc/${child.pid}/task`)
    .map((thread) =>
      Number(readFileSync(`/proc/${child.pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]),
    )
    .reduce((sum, nanos) => sum + nanos / 1000, 0);

const quantile = (all: readonly number[], part: number): number =>
  all.toSorted((a, b) => a - b)[Math.floor(all.length * part)] ?? Number.NaN;

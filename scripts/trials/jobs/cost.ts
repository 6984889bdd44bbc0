/** What an exchange costs in a job, against one in none: time of the processor of the server that is asked. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import type { Line } from "../../bench/client.ts";
import type { ServerProcess } from "../../server-process.ts";
import type { Site } from "./site.ts";
import { ENDS } from "./site.ts";
import { makeJob, openLines, sendAll } from "./work.ts";

const EXCHANGES = 600;
const PAIRS = 10;
const RATIO_MAX = 1.1;

export async function cost(site: Site): Promise<string> {
  const [at = assert.fail()] = site.instances;
  const lines = openLines(site, [at], 8);
  const job = await makeJob(site, "paying");
  const user = { users: await site.userToken("paying") };
  const tokens = { none: "", job: "" };
  for (const [name, more] of [
    ["none", {}],
    ["job", { job }],
  ] as const) {
    const { body } = (await lines[0]?.send(site.exchange("planner", user, "booking", more))) ?? assert.fail();
    tokens[name] = String(JSON.parse(body).access_token);
  }
  const measure = (own: string) => measureOne(site, at, lines, own);
  await measure(tokens.none);
  await measure(tokens.job);
  const micros = { none: [] as number[], job: [] as number[] };
  const ratios: number[] = [];
  for (let pair = 0; pair < PAIRS; pair++) {
    // In turns, so that what else the machine does weighs on both.
    const first = pair % 2 === 0 ? "none" : "job";
    const second = first === "none" ? "job" : "none";
    for (const name of [first, second] as const) micros[name].push(await measure(tokens[name]));
    ratios.push((micros.job.at(-1) ?? 0) / (micros.none.at(-1) ?? 1));
  }
  const ratio = median(ratios);
  const figures = `an exchange takes ${median(micros.none).toFixed(0)} µs of the processor without a job, ${median(micros.job).toFixed(0)} µs in one; ${ratio.toFixed(3)} times (${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)} in ${PAIRS} pairs)`;
  assert.ok(ratio <= RATIO_MAX, figures);
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

/** Of all threads of the process, in user and system mode, as Linux counts them. */
function processorMicros({ child }: ServerProcess): number {
  const fields = readFileSync(`/proc/${child.pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return ((Number(fields[11]) + Number(fields[12])) * 1_000_000) / TICKS;
}

const TICKS = Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8" }));

const median = (all: readonly number[]): number =>
  all.toSorted((a, b) => a - b)[all.length >> 1] ?? Number.NaN;

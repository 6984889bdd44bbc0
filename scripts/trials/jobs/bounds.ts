/** Races for the last tokens of a job, over all instances at once. */
import assert from "node:assert/strict";
import type { Call, Line } from "../../bench/client.ts";
import { readReport } from "./report.ts";
import { ENDS, type Site } from "./site.ts";
import { makeJob, openLines, sendAll } from "./work.ts";

/** Of one source, a server takes little more. */
const LINES_MAX = 200;
/** Tokens of a race at which an instance is killed. */
const KILLED_AT = 15;

export async function race(site: Site, name: string, maxTokens: number, requests: number): Promise<string> {
  const job = await makeJob(site, `racing-${name}`, { maxTokens });
  const user = { users: await site.userToken(`racing-${name}`) };
  const lines = openLines(
    site,
    site.instances,
    Math.min(LINES_MAX, Math.ceil(requests / site.instances.length)),
  );
  const outcomes = await sendMany(
    lines,
    requests,
    site.exchange("planner", user, ENDS[0], { mandate_job: job }),
  );
  const recorded = (await site.recorded(job)).length;
  const { issued } = await readReport(site, 0, job);
  const figures = `at most ${maxTokens} by ${requests} requests at once: ${shown(outcomes)}; ${recorded} on record, ${issued} counted`;
  const all = [outcomes.get("token"), recorded, issued];
  assert.deepEqual(all, [maxTokens, maxTokens, maxTokens], figures);
  return figures;
}

/** One of the instances is killed while the count goes up: what it had not answered may count, and nothing more. */
export async function raceKilled(site: Site, maxTokens: number, requests: number): Promise<string> {
  const job = await makeJob(site, "racing-killed", { maxTokens });
  const user = { users: await site.userToken("racing-killed") };
  const call = site.exchange("planner", user, ENDS[0], { mandate_job: job });
  const lines = openLines(site, site.instances, Math.ceil(requests / site.instances.length));
  // The connections are there before the race.
  await sendMany(lines, lines.length, site.as("gate", "/introspect", { token: "none" }));
  let killing: Promise<void> | undefined;
  const outcomes = await sendMany(lines, requests, call, (tokens) => {
    if (tokens === KILLED_AT) killing ??= site.kill(site.instances.length - 1);
  });
  await killing;
  const [tokens = 0, lost = 0] = [outcomes.get("token"), outcomes.get("lost")];
  const recorded = (await site.recorded(job)).length;
  const { issued } = await readReport(site, 0, job);
  const figures = `at most ${maxTokens} by ${requests} requests at once, one instance killed after ${KILLED_AT}: ${shown(outcomes)}; ${recorded} on record, ${issued} counted`;
  assert.ok(recorded === maxTokens && issued === recorded, figures);
  assert.ok(tokens <= maxTokens && tokens >= maxTokens - lost && lost > 0, figures);
  return figures;
}

async function sendMany(
  lines: readonly Line[],
  requests: number,
  call: Call,
  onToken: (tokens: number) => void = () => undefined,
): Promise<ReadonlyMap<string, number>> {
  const outcomes = new Map<string, number>();
  const add = (outcome: string): void => void outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  await sendAll(
    lines,
    Array(requests).keys(),
    () => call,
    ({ status, body }) => {
      add(status === 200 ? "token" : `${status} ${body.error}`);
      if (status === 200) onToken(outcomes.get("token") ?? 0);
    },
    () => add("lost"),
  );
  return outcomes;
}

const shown = (outcomes: ReadonlyMap<string, number>): string =>
  [...outcomes].map(([outcome, count]) => `${count} ${outcome}`).join(", ");

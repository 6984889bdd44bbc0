/** The table of `npm run trials`, and one short round of trials that no other file has. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { measureIntrospection } from "../../scripts/trials/equal-introspection.ts";
import { expireDay } from "../../scripts/trials/expiry.ts";
import { closePipe, fillDisk } from "../../scripts/trials/log-pipe.ts";
import { serveAgents } from "../../scripts/trials/platform-agents.ts";
import { rotateKeys } from "../../scripts/trials/rotation.ts";
import { printTable } from "../../scripts/trials/table.ts";
import { freshDatabase, sharePostgres } from "../support/postgres.ts";

const GOOD = { exits: 0, unanswered: 0, codes: [0] };

test("a server whose log pipe is closed answers on, and ends with 0", async () => {
  assert.deepEqual(await closePipe(1), GOOD);
});

test("a server whose log is on a full disk starts, answers, and ends with 0", async () => {
  assert.deepEqual(await fillDisk(1), GOOD);
});

test("RFC8725-3.10-v1 keys that change at once after they were fetched are found: no request is refused", async () => {
  const outcomes = await rotateKeys(1, 0.5, false);
  assert.equal(outcomes.length, 4);
  for (const { kind, refused, requests, fetches } of outcomes) {
    assert.ok(requests > 0);
    assert.deepEqual([refused, fetches], [0, 1], kind);
  }
});

test("RFC7662-2.2-7 each kind of question to /introspect is answered as it should be while its cost is measured", async () => {
  const costs = await measureIntrospection(2, 1);
  assert.equal(Object.keys(costs).length, 6);
  for (const [kind, { ms }] of Object.entries(costs)) assert.ok(ms > 0, kind);
});

test("PLAT-D-16, WAG-5-1 agents that are seen for the first time have no row but those of their tokens and of the trail", async () => {
  const count = 80;
  const { grown } = await serveAgents(count);
  const { token, spent_jti, ...trail } = grown;
  assert.deepEqual([token, spent_jti], [count, count]);
  for (const table of Object.keys(trail)) assert.match(table, /^(event|checkpoint|segment|indexed)/);
});

test("what is old is removed from PostgreSQL while requests are answered", async () => {
  const server = await sharePostgres();
  try {
    const url = await freshDatabase(server);
    const { bytesEach, removal } = await expireDay(url, { count: 200, seconds: 0.1, probe: 20 });
    assert.ok(bytesEach > 1_000, `${bytesEach}`);
    assert.ok(removal.stretches.length > 0);
  } finally {
    await server.stop();
  }
});

async function tableOf(asked: number | undefined, ...runs: ((rounds: number) => Promise<string[]>)[]) {
  const lines: string[] = [];
  const trials = runs.map((run, index) => [`trial-${index}`, { rounds: 7, run }] as const);
  const good = await printTable(trials, asked, (line) => lines.push(line.replace(/\s+/g, " ").trim()));
  return { good, lines };
}

const figures = async (rounds: number): Promise<string[]> => [`${rounds} done`, "none lost"];

test("the table of trials has a row for each result, with its rounds and seconds", async () => {
  const { good, lines } = await tableOf(undefined, figures);
  assert.equal(good, true);
  assert.deepEqual(lines, ["what rounds seconds result", "trial-0 7 0.0 7 done", "trial-0 7 0.0 none lost"]);
});

test("a trial that has its results one after the other has a row for each, also for those before it fails", async () => {
  const lines: string[] = [];
  async function* run(): AsyncGenerator<string, void> {
    yield "one step done";
    throw new Error("the second is lost");
  }
  const good = await printTable([["steps", { rounds: 1, run }]], undefined, (line) => lines.push(line));
  assert.equal(good, false);
  assert.match(lines[1] ?? "", /one step done/);
  assert.match(lines[2] ?? "", /FAILED: the second is lost/);
});

test("a trial that fails makes the table fail, and the others run all the same", async () => {
  const { good, lines } = await tableOf(2, () => Promise.reject(new Error("one is lost")), figures);
  assert.equal(good, false);
  assert.deepEqual(lines.slice(1, 3), ["trial-0 2 0.0 FAILED: one is lost", "trial-1 2 0.0 2 done"]);
});

test("npm run trials prints the names of the trials when it is asked for an unknown one", () => {
  const command = join(import.meta.dirname, "../../scripts/trials.ts");
  const { status, stderr } = spawnSync(process.execPath, [command, "nothing"], { encoding: "utf8" });
  assert.equal(status, 2);
  assert.match(stderr, /\bkills-sqlite\b/);
});

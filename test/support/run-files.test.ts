/** What becomes of a process of test files when one of them fails outside its tests. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { test } from "node:test";
import { stop } from "./stop.ts";

const HEAD = 'import { after, before, test } from "node:test"; import { createServer } from "node:http";';
const OPEN = "const open = createServer().listen(0, '127.0.0.1');";
const GOOD = `${HEAD} test("of a file that is good", () => {});`;

/** The exit code and the report of a run of these files. */
function run(files: readonly string[], quietMs = 60_000): { status: number | null; report: string } {
  const folder = mkdtempSync(join(tmpdir(), "mandate-run-files-"));
  try {
    for (const [n, text] of files.entries()) writeFileSync(join(folder, `${n}.test.ts`), text);
    const pattern = JSON.stringify(join(relative(join(import.meta.dirname, ".."), folder), "*"));
    const entry = join(folder, "entry.ts");
    const source = JSON.stringify(join(import.meta.dirname, "run-files.ts"));
    writeFileSync(
      entry,
      `import { runWithin } from ${source}; await runWithin({ quietMs: ${quietMs}, lingerMs: 500 }, ${pattern});`,
    );
    const args = ["--disable-warning=ExperimentalWarning", "--test", "--test-reporter=tap", entry];
    const env = { ...process.env, NODE_TEST_CONTEXT: undefined };
    const { status, stdout } = spawnSync(process.execPath, args, { env, encoding: "utf8", timeout: 60_000 });
    return { status, report: stdout };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const cases: [name: string, text: string, reported: RegExp][] = [
  [
    "an `after` hook that fails",
    `${HEAD} ${OPEN} after(() => { throw new Error("lost"); });`,
    /error: .*lost/,
  ],
  [
    "a `before` hook that fails",
    `${HEAD} ${OPEN} before(() => { throw new Error("lost"); });`,
    /error: .*lost/,
  ],
  ["a file that cannot be loaded", `${HEAD} ${OPEN} throw new Error("lost");`, /error: .*lost/],
  ["an open server", `${HEAD} ${OPEN}`, /the tests have ended, but not the process/],
];
for (const [what, text, reported] of cases) {
  test(`${what} is reported, the files after it run, and the process ends`, () => {
    const { status, report } = run([`${text} test("its own", () => {});`, GOOD]);
    assert.equal(status, 1);
    assert.match(report, reported);
    assert.match(report, /^\s*ok \d+ - of a file that is good$/m);
  });
}

test("tests that wait for what keeps no process alive pass, and the files after them run", () => {
  const waits = "await new Promise((resolve) => setTimeout(resolve, 50).unref());";
  const { status, report } = run([`${HEAD} test("its own", async () => { ${waits} });`, GOOD]);
  assert.equal(status, 0, report);
  assert.match(report, /^\s*ok \d+ - its own$/m);
  assert.match(report, /^\s*ok \d+ - of a file that is good$/m);
});

test("a hook that never ends is reported, and the process ends", () => {
  const { status, report } = run(
    [`${HEAD} ${OPEN} after(() => new Promise(() => {})); test("its own", () => {});`],
    1_000,
  );
  assert.equal(status, 1);
  assert.match(report, /nothing has ended for too long in test\/.*0\.test\.ts/);
});

test("what was made is stopped although another one fails, and what was not made is left alone", async () => {
  const stopped: string[] = [];
  const make = (name: string) => ({ stop: async () => stopped.push(name) });
  const broken = { close: () => Promise.reject(new Error("broken")) };
  const ending = stop(make("first"), undefined, broken, () => stopped.push("second"), make("third"));
  await assert.rejects(ending, AggregateError);
  assert.deepEqual(stopped, ["first", "second", "third"]);
});

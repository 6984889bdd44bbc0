/**
 * Runs test files in one process, one after another: to load the server costs a process more than the tests of most files.
 * Each file is a suite, so that its hooks are its own, and a hook that fails keeps no other file from running.
 */
import { subscribe } from "node:diagnostics_channel";
import { globSync } from "node:fs";
import { join } from "node:path";
import { suite } from "node:test";

const TESTS = join(import.meta.dirname, "..");

const LIMITS = {
  /** A test has a quarter of an hour (`--test-timeout`), a hook as long as it likes: without this, one that waits would hold the run. */
  quietMs: 1_200_000,
  /** What a test left open has been closed by then, or never will be. */
  lingerMs: 10_000,
};

/** `patterns`: of files below `test/`, without `.test.ts`. */
export function runFiles(...patterns: string[]): Promise<void> {
  return runWithin(LIMITS, ...patterns);
}

export async function runWithin(limits: typeof LIMITS, ...patterns: string[]): Promise<void> {
  const globs = patterns.map((pattern) => `${pattern}.test.ts`);
  let running = "";
  // It keeps the process alive: what a test waits for may keep none, and then neither it nor a later file would run.
  const watch = failAfter(limits.quietMs, () => `nothing has ended for too long in test/${running}`);
  subscribe("tracing:node.test:end", () => watch.refresh());
  for (const file of globSync(globs, { cwd: TESTS }).sort()) {
    running = file;
    // It waits for the suite with its hooks: tests belong to the suite in which their module is evaluated.
    await suite(`test/${file}`, async () => void (await import(join(TESTS, file))));
  }
  watch.unref();
  // This one comes only where a test keeps the process alive: with one that failed, a run would never end.
  failAfter(limits.lingerMs, () => "the tests have ended, but not the process").unref();
}

function failAfter(ms: number, why: () => string): NodeJS.Timeout {
  const fail = (): never => {
    console.error(`${why()}: ${process.getActiveResourcesInfo()}`);
    process.exit(1);
  };
  return setTimeout(fail, ms);
}

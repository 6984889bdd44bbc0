/**
 * Runs test files in one process, one after another: to load the server costs a process more than the tests of most files.
 * Each file is a suite, so that its hooks are its own.
 */
import { globSync } from "node:fs";
import { join } from "node:path";
import { after, suite } from "node:test";

const TESTS = join(import.meta.dirname, "..");

/** What a test left open has been closed by then, or never will be. */
const LINGER_MS = 10_000;

/** `patterns`: of files below `test/`, without `.test.ts`. */
export async function runFiles(...patterns: string[]): Promise<void> {
  const globs = patterns.map((pattern) => `${pattern}.test.ts`);
  for (const file of globSync(globs, { cwd: TESTS }).sort()) await runFile(file);
  // It keeps no process alive, so it comes only where a test does: with one that failed, a run would never end.
  setTimeout(() => {
    console.error(`the tests have ended, but not the process: ${process.getActiveResourcesInfo()}`);
    process.exit(1);
  }, LINGER_MS).unref();
}

/** Loads a file only when the one before has ended: tests belong to the suite in which their module is evaluated. */
async function runFile(file: string): Promise<void> {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  suite(`test/${file}`, async () => {
    try {
      await import(join(TESTS, file));
    } finally {
      after(() => end());
    }
  });
  await ended;
}

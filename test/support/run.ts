/** What all files of a test run share (`--test-global-setup`); a file that runs alone makes its own. */
import { readFileSync } from "node:fs";
import { type Postgres, SHARED_POSTGRES, startPostgres } from "./postgres.ts";
import { globalSetup as makeFolder, globalTeardown as removeFolder } from "./run-folder.ts";

let server: Postgres | undefined;

export async function globalSetup(): Promise<void> {
  makeFolder();
  server = await startPostgres();
  process.env[SHARED_POSTGRES] = server.url;
}

export async function globalTeardown(): Promise<void> {
  await server?.stop();
  removeFolder();
  printProcessorTime();
}

/** Of this process and all that it waited for: what the run costs, however busy the machine is. Linux alone tells it. */
function printProcessorTime(): void {
  if (process.platform !== "linux") return;
  const [, fields = ""] = /\) (.*)$/s.exec(readFileSync("/proc/self/stat", "utf8")) ?? [];
  const ticks = fields.split(" ").slice(11, 15).map(Number);
  const seconds = ticks.reduce((sum, one) => sum + one, 0) / TICKS_PER_SECOND;
  console.log(`processor time of the run: ${Math.round(seconds)} s`);
}

/** Of what the kernel tells programs, on every architecture that Node has. */
const TICKS_PER_SECOND = 100;

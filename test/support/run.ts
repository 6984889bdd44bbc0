/** What all files of a test run share (`--test-global-setup`); a file that runs alone makes its own. */
import type { Postgres } from "./postgres.ts";
import { SHARED_POSTGRES, startPostgres } from "./postgres.ts";
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
}

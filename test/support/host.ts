/** Commands that an operator runs on the host. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { World } from "./world.ts";

const SCRIPT = join(import.meta.dirname, "../../scripts/client.ts");

type Host = Pick<World, "configFile">;

/** `npm run client`, and what it prints. */
export async function runClient({ configFile }: Host, ...words: string[]): Promise<string> {
  const run = promisify(execFile)(process.execPath, [SCRIPT, "--config", configFile, ...words]);
  return (await run).stdout;
}

/** An initial access token for clients of this class. */
export async function createInitialToken(
  host: Host,
  registrationClass: string,
  ...words: string[]
): Promise<string> {
  const command = ["initial-token", "create", "--class", registrationClass, "--json"];
  return JSON.parse(await runClient(host, ...command, ...words)).initial_access_token;
}

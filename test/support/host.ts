/** Commands that an operator runs on the host, within this process: a process for each costs more than the command. */
import assert from "node:assert/strict";
import { openStore } from "../../src/adapters/store/open.ts";
import { parseClients } from "../../src/cli/clients/command-line.ts";
import { loadConfig } from "../../src/config/config.ts";
import type { World } from "./world.ts";

type Host = Pick<World, "configFile">;

/** `npm run client`, and what it prints; a refusal is an error with its text. */
export async function runClient({ configFile }: Host, ...words: string[]): Promise<string> {
  const command = parseClients(words);
  const config = loadConfig(configFile);
  assert.ok(command.ok && config.ok, JSON.stringify([command, config]));
  const { settings, fixed } = config.value;
  const store = await openStore(fixed.store);
  const printed: string[] = [];
  const errors: string[] = [];
  try {
    const code = await command.value.run({
      settings,
      store,
      print: (line) => void printed.push(`${line}\n`),
      printError: (line) => void errors.push(line),
    });
    if (code !== 0) throw new Error(errors.join("\n"));
    return printed.join("");
  } finally {
    await store.close();
  }
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

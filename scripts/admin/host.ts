/** How a command of the operator runs: at the store itself, with the configuration and the rights of the server. */
import { openPostgres } from "../../src/adapters/store/postgres/store.ts";
import { openSqlite } from "../../src/adapters/store/sqlite/store.ts";
import { loadConfig } from "../../src/config/config.ts";
import { StoreUnavailable } from "../../src/ports.ts";
import type { Result } from "../../src/result.ts";
import type { Command } from "./options.ts";
import { escapeUnsafe } from "./text.ts";

const USAGE_EXIT = 2;

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const complain = (line: string): void => void process.stderr.write(`${escapeUnsafe(line)}\n`);

/** One module of commands: how its command line is read, and what it says of itself. */
export type Commands = { parse: (args: readonly string[]) => Result<Command, string>; usage: string };

async function run({ parse, usage }: Commands, args: readonly string[]): Promise<number> {
  const command = parse(args);
  if (!command.ok) {
    complain(command.error);
    process.stderr.write(`\n${usage}\n`);
    return USAGE_EXIT;
  }
  const { configFile } = command.value;
  const config = loadConfig(configFile);
  if (!config.ok) {
    complain(`${configFile} does not fit:`);
    for (const problem of config.error) complain(`  ${problem}`);
    return 1;
  }
  const { settings, fixed } = config.value;
  const opening =
    "sqlite" in fixed.store
      ? openSqlite({ file: fixed.store.sqlite })
      : openPostgres({ url: fixed.store.postgres });
  const store = await opening;
  try {
    return await command.value.run({ settings, store, say, complain });
  } finally {
    await store.close();
  }
}

/** Runs the command line of this process, and leaves its exit code. */
export async function runOnHost(commands: Commands): Promise<void> {
  // Whoever reads us has enough: `audit | head`.
  process.stdout.on("error", () => process.exit(1));
  try {
    process.exitCode = await run(commands, process.argv.slice(2));
  } catch (fault) {
    // A wrong path, a foreign file or a store that is down is no mistake of this program.
    const known = fault instanceof StoreUnavailable || (fault instanceof Error && "syscall" in fault);
    if (!known) throw fault;
    complain(fault.message);
    process.exitCode = 1;
  }
}

/** Runs a command of the operator: reads the server's configuration, opens its store, reports errors. */
import { openExistingStore } from "../adapters/store/open.ts";
import { loadConfig } from "../config/config.ts";
import { StoreUnavailable } from "../ports.ts";
import type { Result } from "../result.ts";
import type { Command } from "./options.ts";
import { escapeUnsafe } from "./text.ts";

const USAGE_EXIT = 2;

const print = (line: string): void => void process.stdout.write(`${line}\n`);
const printError = (line: string): void => void process.stderr.write(`${escapeUnsafe(line)}\n`);

/** The commands of one script: the parser of its command line, and its usage text. */
export type Commands = { parse: (args: readonly string[]) => Result<Command, string>; usage: string };

async function run({ parse, usage }: Commands, args: readonly string[]): Promise<number> {
  const command = parse(args);
  if (!command.ok) {
    printError(command.error);
    process.stderr.write(`\n${usage}\n`);
    return USAGE_EXIT;
  }
  const { configFile } = command.value;
  const config = loadConfig(configFile);
  if (!config.ok) {
    printError(`Invalid configuration in ${configFile}:`);
    for (const problem of config.error) printError(`  ${problem}`);
    return 1;
  }
  const { settings, fixed } = config.value;
  const store = await openExistingStore(fixed.store);
  try {
    return await command.value.run({ settings, store, print, printError });
  } finally {
    await store.close();
  }
}

/** Runs the command line of this process and sets its exit code. */
export async function runOnHost(commands: Commands): Promise<void> {
  // The reader of standard output has closed it (`audit | head`), which is not an error.
  process.stdout.on("error", () => process.exit(1));
  try {
    process.exitCode = await run(commands, process.argv.slice(2));
  } catch (fault) {
    // A wrong path, a file of another format and an unreachable store are the operator's to correct; the rest are bugs.
    const known = fault instanceof StoreUnavailable || (fault instanceof Error && "syscall" in fault);
    if (!known) throw fault;
    printError(fault.message);
    process.exitCode = 1;
  }
}

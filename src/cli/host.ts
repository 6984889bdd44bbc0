/** Runs what the command line says, on this host: opens the store for a command that works on it, and reports errors. */
import { styleText } from "node:util";
import { encryptionKeysOf } from "../adapters/crypto/system.ts";
import { readVersion } from "../adapters/process.ts";
import { openCustody } from "../adapters/remote/key-service.ts";
import { openExistingStore } from "../adapters/store/open.ts";
import { DatabaseTooNew } from "../adapters/store/store.ts";
import { loadConfig } from "../config/config.ts";
import { EXIT } from "../limits.ts";
import { StoreUnavailable } from "../ports.ts";
import type { Result } from "../result.ts";
import type { Command, CommandRow, Terminal } from "./command.ts";
import type { Invocation } from "./command-line.ts";
import type { Emphasis } from "./help.ts";
import { helpOf, overview, usageOf } from "./help.ts";
import type { CommandSpec } from "./options.ts";
import { readGiven } from "./options.ts";
import { describeFileFault, escapeUnsafe } from "./text.ts";

const print = (line: string): void => void process.stdout.write(`${line}\n`);
const printError = (line: string): void => void process.stderr.write(`${escapeUnsafe(line)}\n`);

/** Only where the stream is a terminal. */
const bold =
  (stream: NodeJS.WriteStream): Emphasis =>
  (heading) =>
    styleText("bold", heading, { stream });

/** Runs the command line of this process; resolves to the exit code. */
export async function runOnHost(invocation: Exclude<Invocation, { kind: "serve" }>): Promise<number> {
  // The reader of standard output has closed it (`audit | head`), which is not an error.
  process.stdout.on("error", () => process.exit(EXIT.refused));
  switch (invocation.kind) {
    case "help":
      print(
        invocation.spec === undefined
          ? overview(bold(process.stdout))
          : helpOf(invocation.spec, bold(process.stdout)),
      );
      return EXIT.done;
    case "version":
      print(`mandate ${readVersion()}`);
      return EXIT.done;
    case "wrong":
      return tellUsage(invocation.problem, invocation.spec);
    default: {
      const command = await readCommand(invocation.row, invocation.args);
      if (!command.ok) return tellUsage(command.error, invocation.row.spec);
      return run(command.value).catch(tellFault);
    }
  }
}

/** What the arguments of a command ask for; nothing is opened. */
export async function readCommand(
  { spec, load }: CommandRow,
  args: readonly string[],
): Promise<Result<Command, string>> {
  const given = readGiven(spec, args);
  return given.ok ? (await load())(given.value) : given;
}

async function run(command: Command): Promise<number> {
  const terminal: Terminal = { print, printError };
  if (command.on === "files") return command.run(terminal);
  const { configFile } = command;
  const config = loadConfig(configFile);
  if (!config.ok) {
    printError(`Invalid configuration in ${configFile}:`);
    for (const problem of config.error) printError(`  ${problem}`);
    return EXIT.unusable;
  }
  const { settings, fixed } = config.value;
  const store = await openExistingStore(fixed.store);
  try {
    const encryptionKeys = encryptionKeysOf(fixed);
    const custody = openCustody(encryptionKeys, fixed.keyService);
    return await command.run({ settings, store, encryptionKeys, custody, print, printError });
  } finally {
    await store.close();
  }
}

function tellUsage(problem: string, spec?: CommandSpec): number {
  printError(problem);
  const emphasis = bold(process.stderr);
  const usage = spec === undefined ? overview(emphasis) : usageOf(spec, emphasis);
  process.stderr.write(`\n${usage}\n`);
  return EXIT.unusable;
}

/** A wrong path, a file of another format and an unreachable store are the operator's to correct; the rest are bugs. */
function tellFault(fault: unknown): number {
  if (fault instanceof StoreUnavailable || fault instanceof DatabaseTooNew) {
    printError(fault.message);
    return EXIT.unavailable;
  }
  const told = describeFileFault(fault);
  if (told === undefined) throw fault;
  printError(told);
  return EXIT.unusable;
}

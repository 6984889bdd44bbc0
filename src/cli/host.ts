/** Runs what the command line says, on this host: opens the store for a command that works on it, and reports errors. */
import { styleText } from "node:util";
import { encryptionKeysOf } from "../adapters/crypto/encryption-keys.ts";
import { openCustody } from "../adapters/remote/key-service.ts";
import { DatabaseTooNew } from "../adapters/store/migrations.ts";
import { openExistingStore } from "../adapters/store/open.ts";
import type { Store } from "../adapters/store/store.ts";
import { escapeUnsafe } from "../audit/safe-text.ts";
import { loadConfig, loadTrail } from "../config/config.ts";
import { EXIT } from "../limits/process.ts";
import { StoreUnavailable } from "../ports.ts";
import { versionText } from "../program.ts";
import type { Result } from "../result.ts";
import type { StorePlace } from "../settings/settings.ts";
import type { Command, CommandRow, Terminal } from "./command.ts";
import type { Invocation } from "./command-line.ts";
import { type Emphasis, helpOf, overview, synopsesOf } from "./help.ts";
import { type CommandUsage, readGiven } from "./options.ts";
import { describeFileFault } from "./text.ts";

/** Where a command line writes: the streams of a process, or what stands for them. */
type Streams = { stdout: NodeJS.WritableStream; stderr: NodeJS.WritableStream };

/** Headings are bold where the stream is a terminal. */
const bold =
  (stream: NodeJS.WritableStream): Emphasis =>
  (heading) =>
    styleText("bold", heading, { stream });

/** Runs a command line; resolves to the exit code. */
export async function runOnHost(
  invocation: Exclude<Invocation, { kind: "serve" }>,
  { stdout, stderr }: Streams,
): Promise<number> {
  const terminal: Terminal = {
    print: (line) => void stdout.write(`${line}\n`),
    printError: (line) => void stderr.write(`${escapeUnsafe(line)}\n`),
  };
  switch (invocation.kind) {
    case "help": {
      const emphasis = bold(stdout);
      const { usage } = invocation;
      terminal.print(usage === undefined ? overview(emphasis) : helpOf(usage, emphasis));
      return EXIT.done;
    }
    case "version":
      terminal.print(`mandate ${versionText()}`);
      return EXIT.done;
    case "wrong":
      return tellUsage(stderr, invocation.problem, invocation.usage);
    default: {
      const { row, args } = invocation;
      const command = await readCommand(row, args);
      if (!command.ok) return tellUsage(stderr, command.error, row.usage);
      return run(command.value, terminal).catch((fault) => tellFault(fault, terminal));
    }
  }
}

/** What the arguments of a command ask for; nothing is opened. */
export async function readCommand(
  { usage, load }: CommandRow,
  args: readonly string[],
): Promise<Result<Command, string>> {
  const given = readGiven(usage, args);
  return given.ok ? (await load())(given.value) : given;
}

async function run(command: Command, terminal: Terminal): Promise<number> {
  if (command.on === "files") return command.run(terminal);
  if (command.on === "trail") {
    const trail = loadTrail(command.configFile);
    if (!trail.ok) return tellInvalid(command, trail.error, terminal);
    const { agents } = trail.value;
    return withStore(trail.value.store, command, terminal, (store) =>
      command.run({ agents, store, ...terminal }),
    );
  }
  const config = loadConfig(command.configFile);
  if (!config.ok) return tellInvalid(command, config.error, terminal);
  if (command.on === "config") return command.run({ config: config.value, ...terminal });
  const { settings, fixed } = config.value;
  return withStore(fixed.store, command, terminal, (store) => {
    const encryptionKeys = encryptionKeysOf(fixed.keys);
    const custody = openCustody(encryptionKeys, fixed.keys.service);
    return command.run({ settings, agents: settings.agents, store, encryptionKeys, custody, ...terminal });
  });
}

function tellInvalid(
  { configFile }: { configFile: string },
  problems: readonly string[],
  { printError }: Terminal,
): number {
  printError(`Invalid configuration in ${configFile}:`);
  for (const problem of problems) printError(`  ${problem}`);
  return EXIT.unusable;
}

async function withStore(
  place: StorePlace,
  { whenAway }: { whenAway?: string | undefined },
  { printError }: Terminal,
  run: (store: Store) => Promise<number>,
): Promise<number> {
  const store = await openExistingStore(place).catch((fault: unknown) => {
    if (whenAway !== undefined && fault instanceof StoreUnavailable) printError(whenAway);
    throw fault;
  });
  try {
    return await run(store);
  } finally {
    await store.close();
  }
}

function tellUsage(stderr: NodeJS.WritableStream, problem: string, usage?: CommandUsage): number {
  const emphasis = bold(stderr);
  const text = usage === undefined ? overview(emphasis) : synopsesOf(usage, emphasis);
  stderr.write(`${escapeUnsafe(problem)}\n\n${text}\n`);
  return EXIT.unusable;
}

/** A wrong path, a file of another format and an unreachable store are the operator's to correct; the rest are bugs. */
function tellFault(fault: unknown, { printError }: Terminal): number {
  if (fault instanceof StoreUnavailable || fault instanceof DatabaseTooNew) {
    printError(fault.message);
    return EXIT.unavailable;
  }
  const told = describeFileFault(fault);
  if (told === undefined) throw fault;
  printError(told);
  return EXIT.unusable;
}

/** The command line of the process: which command it names. Loads no command, because `serve` must answer signals soon. */
import type { CommandRow } from "./command.ts";
import { COMMANDS, SERVE } from "./commands.ts";
import { type CommandUsage, configOf, readGiven } from "./options.ts";

export type Invocation =
  | { kind: "serve"; configFile: string }
  | { kind: "command"; row: CommandRow; args: readonly string[] }
  | { kind: "version" }
  /** The help of one command, or of all of them. */
  | { kind: "help"; usage?: CommandUsage }
  | { kind: "wrong"; problem: string; usage?: CommandUsage };

/** With --config alone, the server is started; only --config may stand before a command. */
export function readCommandLine(args: readonly string[]): Invocation {
  if (args.length === 0) return { kind: "help" };
  const at = args[0] === "--config" ? 2 : Number(args[0]?.startsWith("--config="));
  const name = args[at];
  if (name === undefined || name.startsWith("-")) {
    if (args.includes("--help")) return { kind: "help" };
    if (args.includes("--version")) return { kind: "version" };
    return readServe(args);
  }
  const rest = [...args.slice(0, at), ...args.slice(at + 1)];
  const row = COMMANDS.find(({ usage }) => usage.name === name);
  const usage = name === SERVE.name ? SERVE : row?.usage;
  if (usage === undefined) return { kind: "wrong", problem: `unknown command "${name}"` };
  if (rest.includes("--help")) return { kind: "help", usage };
  return row === undefined ? readServe(rest, usage) : { kind: "command", row, args: rest };
}

function readServe(args: readonly string[], usage?: CommandUsage): Invocation {
  const given = readGiven(SERVE, args);
  if (given.ok) return { kind: "serve", configFile: configOf(given.value) };
  return usage === undefined
    ? { kind: "wrong", problem: given.error }
    : { kind: "wrong", problem: given.error, usage };
}

/** The command line of the process: which command it names. Loads no command, because `serve` must answer signals soon. */
import type { CommandRow } from "./command.ts";
import { COMMANDS, SERVE } from "./commands.ts";
import type { CommandSpec } from "./options.ts";
import { configOf, readGiven } from "./options.ts";

export type Invocation =
  | { kind: "serve"; configFile: string }
  | { kind: "command"; row: CommandRow; args: readonly string[] }
  | { kind: "version" }
  /** Of one command, or of all. */
  | { kind: "help"; spec?: CommandSpec }
  | { kind: "wrong"; problem: string; spec?: CommandSpec };

/** Without a command, the server is started; only --config may stand before one. */
export function readCommandLine(args: readonly string[]): Invocation {
  const at = args[0] === "--config" ? 2 : Number(args[0]?.startsWith("--config="));
  const name = args[at];
  if (name === undefined || name.startsWith("-")) {
    if (args.includes("--help")) return { kind: "help" };
    if (args.includes("--version")) return { kind: "version" };
    return readServe(args);
  }
  const rest = [...args.slice(0, at), ...args.slice(at + 1)];
  const row = COMMANDS.find(({ spec }) => spec.name === name);
  const spec = name === SERVE.name ? SERVE : row?.spec;
  if (spec === undefined) return { kind: "wrong", problem: `unknown command "${name}"` };
  if (rest.includes("--help")) return { kind: "help", spec };
  return row === undefined ? readServe(rest, spec) : { kind: "command", row, args: rest };
}

function readServe(args: readonly string[], spec?: CommandSpec): Invocation {
  const given = readGiven(SERVE, args);
  if (given.ok) return { kind: "serve", configFile: configOf(given.value) };
  return spec === undefined
    ? { kind: "wrong", problem: given.error }
    : { kind: "wrong", problem: given.error, spec };
}

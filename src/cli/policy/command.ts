/** `mandate policy`: checks a policy before it is in force. It opens no store, secret or key. */
import { loadSettings } from "../../config/config.ts";
import type { Result } from "../../result.ts";
import type { Settings } from "../../settings/settings.ts";
import type { Command, Terminal } from "../command.ts";
import { onFiles } from "../command.ts";
import type { CommandArguments } from "../options.ts";
import { configOf } from "../options.ts";
import { escapeUnsafe } from "../text.ts";
import { rulesOf } from "./answer.ts";
import { compare } from "./diff.ts";
import { formatDifferences } from "./format.ts";
import type { Vector } from "./vectors.ts";
import { formatVectors, readVectors, runVectors } from "./vectors.ts";

export function policyCommand(given: CommandArguments): Result<Command, string> {
  const config = configOf(given);
  const [first = "", second = ""] = given.args;
  switch (given.form) {
    case "check":
      return onFiles((terminal) => check(escaped(terminal), config));
    case "test":
      return onFiles((terminal) => testVectors(escaped(terminal), first, config));
    default:
      return onFiles((terminal) => diff(escaped(terminal), first, second, given.one("vectors")));
  }
}

/** AUDIT-D-7: names in a policy are untrusted text and must not control the terminal. */
const escaped = ({ print, printError }: Terminal): Terminal => ({
  print: (line) => print(escapeUnsafe(line)),
  printError: (line) => printError(escapeUnsafe(line)),
});

type Loaded = { settings: Settings; warnings: readonly string[] };

/** Undefined, with the errors printed, if the configuration is invalid. */
function load({ printError }: Terminal, file: string): Loaded | undefined {
  const loaded = loadSettings(file);
  if (loaded.ok) return loaded.value;
  printError(`Invalid configuration in ${file}:`);
  for (const problem of loaded.error) printError(`  ${problem}`);
  return undefined;
}

function loadVectors({ printError }: Terminal, file: string): readonly Vector[] | undefined {
  const vectors = readVectors(file);
  if (vectors.ok) return vectors.value;
  printError(`Invalid vectors in ${file}:`);
  for (const problem of vectors.error) printError(`  ${problem}`);
  return undefined;
}

async function check(terminal: Terminal, file: string): Promise<number> {
  const loaded = load(terminal, file);
  if (loaded === undefined) return 1;
  const { settings, warnings } = loaded;
  for (const warning of warnings) terminal.print(`warning: ${warning}`);
  const targets = new Set(settings.policy.targets.values()).size;
  const counts = `rules ${rulesOf(settings).length}, targets ${targets}, warnings ${warnings.length}`;
  terminal.print(`${file} is valid: ${counts}.`);
  return 0;
}

async function testVectors(terminal: Terminal, file: string, config: string): Promise<number> {
  const loaded = load(terminal, config);
  const vectors = loadVectors(terminal, file);
  if (loaded === undefined || vectors === undefined) return 1;
  const results = await runVectors(loaded.settings, vectors);
  for (const line of formatVectors(results)) terminal.print(line);
  return results.every(({ wrong }) => wrong === undefined) ? 0 : 1;
}

async function diff(terminal: Terminal, before: string, after: string, vectorFile?: string): Promise<number> {
  const [old, next] = [load(terminal, before), load(terminal, after)];
  const vectors = vectorFile === undefined ? [] : loadVectors(terminal, vectorFile);
  if (old === undefined || next === undefined || vectors === undefined) return 1;
  if (old.settings.issuer !== next.settings.issuer) {
    terminal.printError(
      `${before} and ${after} have different issuers: compare two configurations of one server.`,
    );
    return 1;
  }
  const found = await compare(old.settings, next.settings, vectors);
  for (const line of formatDifferences(found)) terminal.print(line);
  const fresh = next.warnings.filter((warning) => !old.warnings.includes(warning));
  for (const warning of fresh) terminal.print(`new warning: ${warning}`);
  return 0;
}

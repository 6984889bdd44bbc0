/** The command line of `npm run policy`. */
import { parseArgs } from "node:util";
import { loadSettings } from "../../config/config.ts";
import type { Result } from "../../result.ts";
import { err, ok } from "../../result.ts";
import type { Settings } from "../../settings/settings.ts";
import { attempt, DEVELOPMENT_CONFIG, findWrongOption, textOption } from "../options.ts";
import { escapeUnsafe } from "../text.ts";
import { rulesOf } from "./answer.ts";
import { compare } from "./diff.ts";
import { formatDifferences } from "./format.ts";
import type { Vector } from "./vectors.ts";
import { formatVectors, readVectors, runVectors } from "./vectors.ts";

export const POLICY_USAGE = `npm run policy -- COMMAND

  check [--config FILE]            prints the errors and warnings of the policy in FILE
  test VECTORS [--config FILE]     asks the policy in FILE the questions in VECTORS and compares the answers:
                                   [{ "name", "ask", "consents"?, "class"?, "expect": "allow" | "deny", "scope"?, "rule"? }]
  diff OLD NEW [--vectors VECTORS] prints what NEW newly allows and newly denies: for questions derived from the rules
                                   of both, and for those in VECTORS

FILE, OLD and NEW are configurations; FILE defaults to ${DEVELOPMENT_CONFIG}. The files that they name are not opened.
"ask" is a question as /policy/explain accepts it, in which exp and iat may be omitted; "consents" are the consents on
record, [{ "targets": [ … ], "scope": "…" }], none by default; "class" is the class of a client that registered itself.
The exit code is 1 if a file is invalid or a vector fails.`;

export type Terminal = { print: (line: string) => void; printError: (line: string) => void };

/** Resolves to the exit code. */
export type PolicyRun = (terminal: Terminal) => Promise<number>;

const FILE_COUNTS = ["options only", "one file", "two files"] as const;

const COMMANDS: ReadonlyMap<string, { files: 0 | 1 | 2; options: readonly string[] }> = new Map([
  ["check", { files: 0, options: ["config"] }],
  ["test", { files: 1, options: ["config"] }],
  ["diff", { files: 2, options: ["vectors"] }],
]);

export function parsePolicyCommand(args: readonly string[]): Result<PolicyRun, string> {
  const options = { config: textOption, vectors: textOption };
  const parsed = attempt(() => parseArgs({ args: [...args], options, allowPositionals: true }));
  if (!parsed.ok) return parsed;
  const { values, positionals } = parsed.value;
  const [name = "", ...files] = positionals;
  const command = COMMANDS.get(name);
  if (command === undefined) return err(name === "" ? "no command given" : `unknown command "${name}"`);
  if (files.length !== command.files) return err(`"${name}" takes ${FILE_COUNTS[command.files]}`);
  if (values.config !== undefined && !command.options.includes("config"))
    return err(`"${name}" has no option --config`);
  const wrong = findWrongOption(name, values, command.options, []);
  if (wrong !== undefined) return err(wrong);
  const config = values.config?.[0] ?? DEVELOPMENT_CONFIG;
  const [first = "", second = ""] = files;
  switch (name) {
    case "check":
      return ok((terminal) => check(escaped(terminal), config));
    case "test":
      return ok((terminal) => testVectors(escaped(terminal), first, config));
    default:
      return ok((terminal) => diff(escaped(terminal), first, second, values.vectors?.[0]));
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

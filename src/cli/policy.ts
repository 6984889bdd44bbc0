/** `mandate policy`: checks a policy before it is in force. Only `impact` and `replay` open a store, to read its trail. */

import { clock } from "../adapters/clock.ts";
import { escapeUnsafe } from "../audit/safe-text.ts";
import { loadSettings } from "../config/config.ts";
import { EXIT } from "../limits/process.ts";
import { schemaOf } from "../policy/detail-types.ts";
import { defined, err, type Result } from "../result.ts";
import type { Settings } from "../settings/settings.ts";
import { type Command, onFiles, type Terminal } from "./command.ts";
import { type CommandArguments, configOf } from "./options.ts";
import { rulesOf } from "./policy/answer.ts";
import { compare, directions } from "./policy/diff.ts";
import { formatDifferences, showComparison } from "./policy/format.ts";
import { impactCommand } from "./policy/impact-command.ts";
import { askReach, drawReach, formatReach, type ReachQuery, runNever, showReach } from "./policy/reach.ts";
import { replayCommand } from "./policy/replay-command.ts";
import {
  formatVectors,
  readVectors,
  runVectors,
  showNever,
  showVector,
  type Vectors,
} from "./policy/vectors.ts";
import { jsonLine } from "./text.ts";

const FAIL_ON = ["allow", "deny", "any"] as const;

export function policyCommand(given: CommandArguments): Result<Command, string> {
  const config = configOf(given);
  const json = given.has("json");
  const [first = "", second = ""] = given.args;
  switch (given.form) {
    case "check":
      return onFiles((terminal) => check(escaped(terminal), config, json));
    case "types":
      return onFiles((terminal) => types(escaped(terminal), config));
    case "reach":
      return reachOf(given, config);
    case "test":
      return onFiles((terminal) => testVectors(escaped(terminal), first, config, json));
    case "impact":
      return impactCommand(given, clock.nowMs());
    case "replay":
      return replayCommand(given, clock.nowMs());
    default: {
      const wanted = given.one("fail-on");
      const failOn = FAIL_ON.find((one) => one === wanted);
      if (wanted !== undefined && failOn === undefined) {
        return err(`--fail-on is not one of ${FAIL_ON.join(", ")}`);
      }
      const options = { before: first, after: second, vectorFile: given.one("vectors"), failOn, json };
      return onFiles((terminal) => diff(escaped(terminal), options));
    }
  }
}

/** AUDIT-D-7: names in a policy are untrusted text and must not control the terminal. */
const escaped = ({ print, printError }: Terminal): Terminal => ({
  print: (line) => print(escapeUnsafe(line)),
  printError: (line) => printError(escapeUnsafe(line)),
});

function tellErrors({ printError }: Terminal, title: string, errors: readonly string[]): void {
  printError(title);
  for (const problem of errors) printError(`  ${problem}`);
}

type Loaded = { settings: Settings; warnings: readonly string[] };

/** Returns undefined and prints the errors if the configuration is invalid. */
function load(terminal: Terminal, file: string): Loaded | undefined {
  const loaded = loadSettings(file);
  if (loaded.ok) return loaded.value;
  tellErrors(terminal, `Invalid configuration in ${file}:`, loaded.error);
  return undefined;
}

function loadVectors(terminal: Terminal, file: string): Vectors | undefined {
  const vectors = readVectors(file);
  if (vectors.ok) return vectors.value;
  tellErrors(terminal, `Invalid vectors in ${file}:`, vectors.error);
  return undefined;
}

async function check(terminal: Terminal, file: string, json: boolean): Promise<number> {
  const loaded = loadSettings(file);
  if (!loaded.ok) {
    if (json) terminal.print(jsonLine({ valid: false, errors: loaded.error }));
    else tellErrors(terminal, `Invalid configuration in ${file}:`, loaded.error);
    return EXIT.refused;
  }
  const { settings, warnings } = loaded.value;
  const rules = rulesOf(settings).length;
  const targets = new Set(settings.policy.targets.values()).size;
  if (json) terminal.print(jsonLine({ valid: true, rules, targets, warnings }));
  else {
    for (const warning of warnings) terminal.print(`warning: ${warning}`);
    terminal.print(`${file} is valid: rules ${rules}, targets ${targets}, warnings ${warnings.length}.`);
  }
  return EXIT.done;
}

/** RAR-D-1: the JSON Schema of the objects of each type of details, for editors. */
async function types(terminal: Terminal, file: string): Promise<number> {
  const loaded = load(terminal, file);
  if (loaded === undefined) return EXIT.unusable;
  const schemas = [...loaded.settings.policy.details].map(([name, type]) => schemaOf(name, type));
  for (const line of JSON.stringify(schemas, null, 2).split("\n")) terminal.print(line);
  return EXIT.done;
}

async function testVectors(terminal: Terminal, file: string, config: string, json: boolean): Promise<number> {
  const loaded = load(terminal, config);
  const vectors = loadVectors(terminal, file);
  if (loaded === undefined || vectors === undefined) return EXIT.unusable;
  const results = await runVectors(loaded.settings, vectors.asked);
  const never = await runNever(loaded.settings, vectors.never);
  if (!never.ok) {
    tellErrors(terminal, `Invalid vectors in ${file}:`, [never.error]);
    return EXIT.unusable;
  }
  const shown = [...results.map(showVector), ...never.value.map(showNever)];
  const lines = json ? shown.map(jsonLine) : formatVectors(results, never.value);
  for (const line of lines) terminal.print(line);
  return shown.every(({ passed }) => passed) ? EXIT.done : EXIT.refused;
}

const FORMATS = ["text", "json", "mermaid"] as const;

function reachOf(given: CommandArguments, config: string): Result<Command, string> {
  const wanted = given.one("format") ?? (given.has("json") ? "json" : "text");
  const format = FORMATS.find((one) => one === wanted);
  if (format === undefined) return err(`--format is not one of ${FORMATS.join(", ")}`);
  const [iss, sub] = [given.one("issuer"), given.one("subject")];
  if ((iss === undefined) !== (sub === undefined)) return err("--subject and --issuer require each other");
  const depth = given.one("depth");
  if (depth !== undefined && !/^[1-9][0-9]?$/.test(depth)) return err("--depth is not a number from 1 to 99");
  const query = defined<ReachQuery>({
    actor: given.one("actor"),
    subject: iss === undefined || sub === undefined ? undefined : { iss, sub },
    target: given.one("target"),
    depthMax: depth === undefined ? undefined : Number(depth),
  });
  return onFiles((terminal) => reached(escaped(terminal), config, query, format));
}

async function reached(
  terminal: Terminal,
  config: string,
  query: ReachQuery,
  format: (typeof FORMATS)[number],
): Promise<number> {
  const loaded = load(terminal, config);
  if (loaded === undefined) return EXIT.unusable;
  const answer = await askReach(loaded.settings, query);
  if (!answer.ok) {
    terminal.printError(answer.error);
    return EXIT.unusable;
  }
  const { value } = answer;
  const lines = {
    text: () => formatReach(value),
    json: () => [jsonLine(showReach(value))],
    mermaid: () => drawReach(value),
  };
  for (const line of lines[format]()) terminal.print(line);
  return value.grants.length > 0 ? EXIT.done : EXIT.refused;
}

type DiffOptions = {
  before: string;
  after: string;
  vectorFile: string | undefined;
  failOn: (typeof FAIL_ON)[number] | undefined;
  json: boolean;
};

async function diff(
  terminal: Terminal,
  { before, after, vectorFile, failOn, json }: DiffOptions,
): Promise<number> {
  const [old, next] = [load(terminal, before), load(terminal, after)];
  const vectors = vectorFile === undefined ? { asked: [] } : loadVectors(terminal, vectorFile);
  if (old === undefined || next === undefined || vectors === undefined) return EXIT.unusable;
  if (old.settings.issuer !== next.settings.issuer) {
    terminal.printError(
      `${before} and ${after} have different issuers: compare two configurations of one server.`,
    );
    return EXIT.unusable;
  }
  const found = await compare(old.settings, next.settings, vectors.asked);
  const known = new Set(old.warnings);
  const fresh = next.warnings.filter((warning) => !known.has(warning));
  if (json) terminal.print(jsonLine({ ...showComparison(found), new_warnings: fresh }));
  else {
    for (const line of formatDifferences(found)) terminal.print(line);
    for (const warning of fresh) terminal.print(`new warning: ${warning}`);
  }
  if (failOn === undefined) return EXIT.done;
  const { allows, denies } = directions(found);
  const fails = (failOn !== "deny" && allows) || (failOn !== "allow" && denies);
  // Questions that were not compared may have other answers, so the exit code says so.
  return fails || found.cut ? EXIT.refused : EXIT.done;
}

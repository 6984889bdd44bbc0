/** `mandate policy replay`: reads its options, opens the trail and prints the result. */

import { escapeUnsafe } from "../../audit/safe-text.ts";
import { loadSettings } from "../../config/config.ts";
import { EXIT } from "../../limits/process.ts";
import { defined, err, type Result } from "../../result.ts";
import type { Settings } from "../../settings/settings.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import { onTrail, recordLook, trailOf } from "../audit/copy.ts";
import { type Command, onFiles, onStoredTrail, type Terminal } from "../command.ts";
import type { CommandArguments } from "../options.ts";
import { jsonLine } from "../text.ts";
import { type Period, readPeriod } from "./over-trail.ts";
import { type ReplayOptions, replay } from "./replay.ts";
import { formatTally, isOtherwise, showTally } from "./show-replay.ts";
import { exportSource, storeSource, type TrailSource } from "./trail-source.ts";

const FORMATS = ["text", "json"];
/** What cannot be decided, as the words of the command say. */
const UNDECIDED = EXIT.unusable;

type Asked = Period & { file: string | undefined; json: boolean; unverified: boolean };

export function replayCommand(given: CommandArguments, nowMs: number): Result<Command, string> {
  const format = given.one("format") ?? "text";
  if (!FORMATS.includes(format)) return err(`--format is not one of ${FORMATS.join(", ")}`);
  const period = readPeriod(given, nowMs);
  if (!period.ok) return period;
  const asked: Asked = {
    ...period.value,
    file: given.one("with"),
    json: format === "json",
    unverified: given.has("unverified"),
  };
  const folder = given.one("export");
  const [witness, partial] = [given.one("witness"), given.has("partial")];
  if (folder === undefined) {
    if (witness !== undefined || partial) return err("--witness and --partial require --export");
    const detail = defined<JsonObject>({
      command: "policy replay",
      since: given.one("since"),
      with: asked.file,
    });
    return onTrail(given, onStoredTrail, async (auditor) => {
      const terminal = escaped(auditor);
      const next = readNext(terminal, asked.file);
      if (next === "invalid") return UNDECIDED;
      await recordLook(auditor, detail);
      return run(terminal, storeSource(trailOf(auditor)), asked, next);
    });
  }
  for (const option of ["config", "from"]) {
    if (given.has(option)) return err(`--export cannot be combined with --${option}`);
  }
  return onFiles(async (plain) => {
    const terminal = escaped(plain);
    const next = readNext(terminal, asked.file);
    return next === "invalid"
      ? UNDECIDED
      : run(terminal, exportSource(folder, partial, witness), asked, next);
  });
}

/** AUDIT-D-7: names in the trail are untrusted text and must not control the terminal. */
const escaped = ({ print, printError }: Terminal): Terminal => ({
  print: (line) => print(escapeUnsafe(line)),
  printError: (line) => printError(escapeUnsafe(line)),
});

function readNext(terminal: Terminal, file: string | undefined): Settings | undefined | "invalid" {
  if (file === undefined) return undefined;
  const loaded = loadSettings(file);
  if (loaded.ok) return loaded.value.settings;
  terminal.printError(`Invalid configuration in ${file}:`);
  for (const problem of loaded.error) terminal.printError(`  ${problem}`);
  return "invalid";
}

/** REPL-D-5: of a trail that is not as it was recorded, nothing is decided. */
async function run(
  { print, printError }: Terminal,
  source: TrailSource,
  { json, unverified, fromMs, toMs }: Asked,
  next: Settings | undefined,
): Promise<number> {
  const refuse = (lines: readonly string[]): number => {
    for (const line of lines) printError(line);
    printError("Nothing was decided again.");
    return UNDECIDED;
  };
  const verified = unverified ? undefined : await source.verify();
  if (verified?.ok === false) return refuse(verified.error);
  const options = defined<ReplayOptions>({ fromMs, toMs, next: next?.policy });
  const replayed = await replay(source, options);
  if (!replayed.ok) return refuse(replayed.error);
  for (const note of verified?.value.notes ?? []) printError(note);
  if (unverified) printError("Not verified: that the trail is as it was recorded (--unverified).");
  if (json) print(jsonLine(showTally(replayed.value, next)));
  else for (const line of formatTally(replayed.value, next)) print(line);
  return isOtherwise(replayed.value) ? EXIT.refused : EXIT.done;
}

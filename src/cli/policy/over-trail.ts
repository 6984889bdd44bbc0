/** Opens what an impact and a report read: the policy in force, and the trail in the store, in a copy of it or in an export. */
import { readUtcTime } from "../../audit/filters.ts";
import { loadSettings } from "../../config/config.ts";
import { EXIT } from "../../limits/process.ts";
import { defined, err, ok, type Result } from "../../result.ts";
import type { Settings } from "../../settings/settings.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import { onTrail, recordLook, trailOf } from "../audit/copy.ts";
import { type Admin, type Command, onFiles, onStore, type Terminal } from "../command.ts";
import { type CommandArguments, configOf } from "../options.ts";
import { exportSource, storeSource, type TrailSource } from "./trail-source.ts";

/** `admin` is absent where the trail is an export. */
export type OverTrail = Terminal & { settings: Settings; source: TrailSource; admin?: Admin };

export function overTrail(
  given: CommandArguments,
  look: JsonObject,
  run: (on: OverTrail) => Promise<number>,
): Result<Command, string> {
  const folder = given.one("export");
  if (folder === undefined)
    return onTrail(given, onStore, async (admin) => {
      await recordLook(admin, look);
      return run({ ...admin, admin, source: storeSource(trailOf(admin)) });
    });
  if (given.has("from")) return err("--export cannot be combined with --from");
  const file = configOf(given);
  return onFiles(async (terminal) => {
    const loaded = loadSettings(file);
    if (loaded.ok)
      return run({ ...terminal, settings: loaded.value.settings, source: exportSource(folder, true) });
    terminal.printError(`Invalid configuration in ${file}:`);
    for (const problem of loaded.error) terminal.printError(`  ${problem}`);
    return EXIT.unusable;
  });
}

/** `toMs` is exclusive. */
export type Period = { fromMs: number; toMs: number };

/** `--since` and `--until`; `otherwise` is since when without the first. */
export function readPeriod(
  given: CommandArguments,
  nowMs: number,
  otherwise?: string,
): Result<Period, string> {
  const [fromMs, toMs] = [given.one("since") ?? otherwise, given.one("until")].map((text) =>
    readSince(text, nowMs),
  );
  if (fromMs === undefined) return err(`--since ${HOW}`);
  if (toMs === undefined) return err(`--until ${HOW}`);
  return ok({ fromMs: fromMs ?? Number.NEGATIVE_INFINITY, toMs: toMs ?? Number.POSITIVE_INFINITY });
}

const HOW =
  "is neither a time in UTC, such as 2027-01-31T00:00:00Z, nor a number of days or hours, such as 30d or 12h";
const UNITS: Readonly<Record<string, number>> = { d: 86_400_000, h: 3_600_000 };

/** Milliseconds; null where nothing is given, undefined where it cannot be read. */
function readSince(text: string | undefined, nowMs: number): number | null | undefined {
  if (text === undefined) return null;
  const [, count = "", unit = ""] = /^(\d{1,5})([dh])$/.exec(text) ?? [];
  const ms = UNITS[unit];
  return ms === undefined ? readUtcTime(text) : nowMs - Number(count) * ms;
}

/** The options that were given, by name, as the look is recorded. */
export const recordedOptions = (given: CommandArguments, names: readonly string[]): JsonObject =>
  defined<JsonObject>(Object.fromEntries(names.map((name) => [name, given.one(name)])));

/** `mandate audit`: which of its forms was called, and with what. */
import { FILTERS } from "../audit/filters.ts";
import { readEventFilter } from "../audit/query.ts";
import { defined, err, type Result } from "../result.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import { onTrail } from "./audit/copy.ts";
import { type Files, verifyExport } from "./audit/export.ts";
import { exportTrail } from "./audit/make-export.ts";
import { showLogKeys, showReceipts } from "./audit/receipts.ts";
import { retireLog } from "./audit/retire.ts";
import { SUMMARY_FORMATS, summaryAs } from "./audit/summary.ts";
import { FORMATS, showEvents, showLineage, verifyLogs } from "./audit/trail.ts";
import { type Command, onFiles, onStore, onStoredTrail } from "./command.ts";
import { readFormat } from "./formats.ts";
import { type CommandArguments, readWhole } from "./options.ts";

export function auditCommand(given: CommandArguments): Result<Command, string> {
  const [name = ""] = given.args;
  switch (given.form) {
    case "retire":
      return onStore(given, (admin) => retireLog(admin, name));
    case "receipt": {
      const [ofJob, chain, rest] = [given.has("of-job"), given.has("chain"), given.has("rest")];
      return onStore(given, (admin) => showReceipts(admin, { id: name, ofJob, chain, rest }));
    }
    case "keys":
      return onStore(given, showLogKeys);
    case "export":
      return makeExport(given, name);
    case "verify":
      return verify(given);
    default:
      return print(given);
  }
}

const FILES = ["export", "checkpoints", "witness", "jwks", "policies"];

function verify(given: CommandArguments): Result<Command, string> {
  const [json, partial] = [given.has("json"), given.has("partial")];
  const [file, checkpoints, witness, jwks, policies] = FILES.map(given.one);
  if (file === undefined) {
    const alone = partial || (checkpoints ?? witness ?? jwks ?? policies) !== undefined;
    if (alone) return err("--checkpoints, --witness, --jwks, --policies and --partial require --export");
    return onTrail(given, onStoredTrail, (auditor) => verifyLogs(auditor, json));
  }
  for (const option of ["config", "from"]) {
    if (given.has(option)) return err(`--export cannot be combined with --${option}`);
  }
  const files = defined<Files>({
    export: file,
    checkpoints,
    witness,
    jwks,
    policies,
    partial: partial || undefined,
  });
  return onFiles((terminal) => verifyExport(terminal, files, json));
}

/** Each filter of `GET /audit/events` under the name of its option. */
const OPTIONS: ReadonlyMap<string, string> = new Map(
  Object.entries(FILTERS).flatMap(([name, { option }]) =>
    option === undefined ? [] : [[name, option.name]],
  ),
);

/** The filters that were given, by the names of the endpoint's parameters. */
function filtersOf(given: CommandArguments): ReadonlyMap<string, string> {
  const filters = new Map<string, string>();
  for (const [name, option] of OPTIONS) {
    const value = given.one(option);
    if (value !== undefined) filters.set(name, value);
  }
  return filters;
}

const readFilters = (filters: ReadonlyMap<string, string>) =>
  readEventFilter(filters, (name) => `--${OPTIONS.get(name)}`);

/** The same by the names of options, as they are recorded. */
const recorded = (filters: ReadonlyMap<string, string>): JsonObject =>
  Object.fromEntries([...filters].map(([name, value]) => [OPTIONS.get(name) ?? name, value]));

function makeExport(given: CommandArguments, folder: string): Result<Command, string> {
  const filters = filtersOf(given);
  const times = readFilters(filters);
  if (!times.ok) return times;
  // It needs the keys, too, whose public halves are part of it.
  return onTrail(given, onStore, (auditor) => exportTrail(auditor, folder, times.value, recorded(filters)));
}

function print(given: CommandArguments): Result<Command, string> {
  const [log, limit, jti] = ["log", "limit", "jti"].map(given.one);
  const format = readFormat(given, FORMATS);
  if (!format.ok) return format;
  const filters = filtersOf(given);
  const isSummary = given.has("summary");
  if (isSummary && limit !== undefined) return err("--summary counts all events, and takes no --limit");
  if (jti !== undefined) {
    if (filters.size > 0 || isSummary || (log ?? limit) !== undefined)
      return err("--jti can only be combined with --format");
    return onTrail(given, onStoredTrail, (auditor) => showLineage(auditor, jti, format.value));
  }
  const filter = readFilters(filters);
  if (!filter.ok) return filter;
  const last = readWhole(given, "limit");
  if (!last.ok) return last;
  const groups = readFormat(given, SUMMARY_FORMATS);
  const summary = isSummary && groups.ok ? summaryAs(groups.value) : undefined;
  const asked = defined<JsonObject>({
    ...recorded(filters),
    log,
    limit: last.value,
    summary: isSummary || undefined,
  });
  return onTrail(given, onStoredTrail, (auditor) =>
    showEvents(auditor, filter.value, { log, limit: last.value, format: format.value, summary, asked }),
  );
}

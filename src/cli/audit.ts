/** `mandate audit`: which of its forms was called, and with what. */
import { EVENT_TYPES } from "../audit/event.ts";
import type { Result } from "../result.ts";
import { defined, err } from "../result.ts";
import type { Files } from "./audit/export.ts";
import { verifyExport } from "./audit/export.ts";
import { retireLog } from "./audit/retire.ts";
import { showEvents, showLineage, verifyLogs } from "./audit/trail.ts";
import type { Command } from "./command.ts";
import { onFiles, onStore } from "./command.ts";
import type { CommandArguments } from "./options.ts";
import { wholeNumber } from "./options.ts";

export function auditCommand(given: CommandArguments): Result<Command, string> {
  const [name = ""] = given.args;
  switch (given.form) {
    case "retire":
      return onStore(given, (admin) => retireLog(admin, name));
    case "verify":
      return verify(given);
    default:
      return print(given);
  }
}

function verify(given: CommandArguments): Result<Command, string> {
  const json = given.has("json");
  const [file, checkpoints, witness, jwks] = ["export", "checkpoints", "witness", "jwks"].map(given.one);
  if (file === undefined) {
    const alone = (checkpoints ?? witness ?? jwks) !== undefined;
    if (alone) return err("--checkpoints, --witness and --jwks require --export");
    return onStore(given, (admin) => verifyLogs(admin, json));
  }
  if (given.has("config")) return err("--export cannot be combined with --config");
  const files = defined<Files>({ export: file, checkpoints, witness, jwks });
  return onFiles((terminal) => verifyExport(terminal, files, json));
}

const TYPES: readonly string[] = EVENT_TYPES;

function print(given: CommandArguments): Result<Command, string> {
  const [log, type, request, limit, jti] = ["log", "type", "request", "limit", "jti"].map(given.one);
  const json = given.has("json");
  if (jti !== undefined) {
    if (log ?? type ?? request ?? limit) return err("--jti can only be combined with --json");
    return onStore(given, (admin) => showLineage(admin, jti, json));
  }
  if (type !== undefined && !TYPES.includes(type)) {
    return err(`--type is not a type of event: ${TYPES.toSorted().join(", ")}`);
  }
  const last = limit === undefined ? undefined : wholeNumber(limit);
  if (limit !== undefined && last === undefined) return err("--limit is not a whole number from 1 on");
  return onStore(given, (admin) => showEvents(admin, { log, type, request, limit: last, json }));
}

/** Untrusted text for a terminal: no value can move the cursor, reverse the line or end it. */
import { EVENT_COLUMNS, readEvent, UNREADABLE } from "../audit/columns.ts";
import { escapeUnsafe } from "../audit/safe-text.ts";
import type { AuditRecord, StoredConsent } from "../records.ts";
import type { Json } from "../spec/rfc8259.ts";

/** AUDIT-D-7: text with a space, quote or special character is quoted, so that no value can look like another field. */
export function word(text: string): string {
  return /^[!#-[\]-~]+$/.test(text) ? text : escapeUnsafe(JSON.stringify(text));
}

/** Why a file cannot be used, with its name; undefined for a fault that is not of the file system. */
export function describeFileFault(fault: unknown): string | undefined {
  if (!(fault instanceof Error && "syscall" in fault)) return undefined;
  const { code = "", path = "" } = fault as NodeJS.ErrnoException;
  // The platform does not name the path of a folder that was opened as a file.
  const name = path === "" ? "a file that was named" : word(path);
  return `${name}: ${FILE_FAULTS[code] ?? fault.message}`;
}

const FILE_FAULTS: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file, or no such folder for it",
  EACCES: "the user of this command may not open it",
  EPERM: "the user of this command may not open it",
  EISDIR: "it is a folder, and not a file",
  ENOTDIR: "a part of its path is a file, and not a folder",
  EEXIST: "it exists already, and is not overwritten",
  ENOSPC: "there is no space left for it",
  EROFS: "its file system is read-only",
};

/** A record for programs: one line, whose untrusted text cannot control a terminal either. */
export const jsonLine = (value: object): string => escapeUnsafe(JSON.stringify(value));

/** `name=text` for each value that is neither undefined nor empty. */
export function fields(values: Record<string, string | undefined>): string {
  return Object.entries(values)
    .flatMap(([name, text]) => (text === undefined || text === "" ? [] : [`${name}=${text}`]))
    .join(" ");
}

export const words = (texts: readonly string[]): string => texts.map(word).join(",");

/** Accepts any number, because a tampered store may contain an invalid time. */
export const time = (ms: number): string => new Date(ms).toJSON() ?? "(no time)";

// --- consents ---------------------------------------------------------------------------------------------------

export function consentLine(consent: StoredConsent, nowSeconds: number): string {
  const { id, origin, actor, targets, scopes, expiresAtSeconds, withdrawnAtSeconds } = consent;
  let state = "in-force";
  if ((expiresAtSeconds ?? Number.POSITIVE_INFINITY) <= nowSeconds) state = "expired";
  if (withdrawnAtSeconds !== undefined) state = "withdrawn";
  const rest = fields({
    issuer: word(origin.iss),
    subject: word(origin.sub),
    actor: word(actor),
    target: words(targets),
    scope: word(scopes.join(" ")),
    expires: expiresAtSeconds === undefined ? undefined : time(expiresAtSeconds * 1000),
    withdrawn: withdrawnAtSeconds === undefined ? undefined : time(withdrawnAtSeconds * 1000),
  });
  return `${word(id)} ${state} ${rest}`;
}

// --- events -----------------------------------------------------------------------------------------------------

function detailText(value: Json): string {
  if (Array.isArray(value)) return value.map(detailText).join(",");
  return word(typeof value === "string" ? value : JSON.stringify(value));
}

export function eventLine(record: AuditRecord): string {
  const place = `${time(record.timeMs)} ${word(record.log)}/${record.seq}`;
  const event = readEvent(record.body);
  if (event === undefined) return `${place} ${UNREADABLE}`;
  const rest = EVENT_COLUMNS.map(({ name, valuesOf, between = "," }) => {
    const values = valuesOf(event);
    return values.length === 0 ? "" : `${name}=${values.map(word).join(between)}`;
  });
  const about = Object.entries(event.detail ?? {}).map(
    ([name, value]) => `${word(name)}=${detailText(value)}`,
  );
  return [place, word(event.type), word(event.outcome), word(event.reason), ...rest, ...about]
    .filter((part) => part !== "")
    .join(" ");
}

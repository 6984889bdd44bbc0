/** Untrusted text for a terminal: no value can move the cursor, reverse the line or end it. */
import { type Column, EVENT_COLUMNS, readEvent, type ShownValue, UNREADABLE } from "../audit/columns.ts";
import { REASONS } from "../audit/reasons.ts";
import { escapeUnsafe } from "../audit/safe-text.ts";
import { describeUnopened } from "../config/file-contents.ts";
import type { EndingSelector } from "../policy/endings.ts";
import type { AuditRecord, StoredConsent } from "../records.ts";
import { inWords, namingOf } from "../settings/agents.ts";
import type { Settings } from "../settings/settings.ts";
import { isJsonObject, type Json, type JsonObject } from "../spec/rfc8259.ts";

/** AUDIT-D-7: text with a space, quote or special character is quoted, so that no value can look like another field. */
export function word(text: string): string {
  return /^[!#-[\]-~]+$/.test(text) ? text : escapeUnsafe(JSON.stringify(text));
}

/** Why a file cannot be used, with its name; undefined for a fault that is not of the file system. */
export function describeFileFault(fault: unknown): string | undefined {
  const isDenied = fault instanceof Error && "code" in fault && fault.code === "ERR_ACCESS_DENIED";
  if (!(fault instanceof Error && ("syscall" in fault || isDenied))) return undefined;
  const { path = "resource" in fault ? String(fault.resource) : "" } = fault as NodeJS.ErrnoException;
  // The platform does not name the path of a folder that was opened as a file.
  const name = path === "" ? "a file that was named" : word(path);
  return `${name}: ${describeUnopened(fault)}`;
}

/** A record for programs: one line, whose untrusted text cannot control a terminal either. */
export const jsonLine = (value: object): string => escapeUnsafe(JSON.stringify(value));

/** `name=text` for each value that is neither undefined nor empty. */
export function fields(values: Record<string, string | undefined>): string {
  return Object.entries(values)
    .flatMap(([name, text]) => (text === undefined || text === "" ? [] : [`${name}=${text}`]))
    .join(" ");
}

/** `name=text` for each column that has a value in this row. */
export const columnFields = <Row>(
  columns: readonly Column<Row>[],
  row: Row,
  titles: Titles = NO_TITLES,
): readonly string[] => {
  const shown = (value: ShownValue): string =>
    typeof value === "string" ? word(value) : agentText(value.agent, titles);
  return columns.flatMap(({ name, valuesOf, between = "," }) => {
    const values = valuesOf(row);
    return values.length === 0 ? [] : [`${name}=${values.map(shown).join(between)}`];
  });
};

export const words = (texts: readonly string[]): string => texts.map(word).join(",");

/** Accepts any number, because a tampered store may contain an invalid time. */
export const time = (ms: number): string => new Date(ms).toJSON() ?? "(no time)";

// --- agents ---------------------------------------------------------------------------------------------------

/** The operator's title for an id. */
export type Titles = (id: string) => string | undefined;

const NO_TITLES: Titles = () => undefined;

/** The language of the commands. */
const LANGUAGE = ["en"];

export const titlesOf =
  ({ agents }: Pick<Settings, "agents">): Titles =>
  (id) => {
    const naming = namingOf(agents, id);
    return naming && inWords(naming, LANGUAGE).title;
  };

/** NAME-D-1: the title stands behind the id, in a form that no value has, since one with spaces is quoted as a whole. */
export function agentText(id: string, titles: Titles): string {
  const title = titles(id);
  return title === undefined ? word(id) : `${word(id)} (${escapeUnsafe(JSON.stringify(title))})`;
}

// --- consents ---------------------------------------------------------------------------------------------------

export function consentLine(consent: StoredConsent, state: string, titles: Titles): string {
  const { id, origin, actor, targets, scopes, expiresAtSeconds, withdrawnAtSeconds } = consent;
  const rest = fields({
    issuer: word(origin.iss),
    subject: word(origin.sub),
    actor: agentText(actor, titles),
    target: words(targets),
    scope: word(scopes.join(" ")),
    expires: expiresAtSeconds === undefined ? undefined : time(expiresAtSeconds * 1000),
    withdrawn: withdrawnAtSeconds === undefined ? undefined : time(withdrawnAtSeconds * 1000),
  });
  return `${word(id)} ${state} ${rest}`;
}

// --- events -----------------------------------------------------------------------------------------------------

/** By `by` of the selector; a member of it stands in braces. */
const ENDED = {
  token: "the token {jti} and its descendants",
  subject: "every token about the subject {sub} of {iss}",
  foreign_token: "what came of the token {jti} of {iss}",
  claims: "what rests on claims of the subject {sub} of {iss} that no longer meet its rule",
  sign_in: "the user's sign-in {sid} at {iss}, and what was issued for it",
  actor: "every token with {spiffeId} among its actors",
  client: "every token of the client {clientId}",
  trust_domain: "every token of the workloads of {name}",
  issuer: "every token about a subject of {issuer}",
  rule: "every token that the rule {id} allowed",
  consent: "every token that the consent {id} allowed",
  grant: "the refresh tokens of the user's grant {id}, and what was issued for them",
  every_grant: "the refresh tokens of every user, and what was issued for them",
  job: "the job {id} of {iss}, and what was issued for it",
  key: "every token that the key {kid} signed",
  everything: "every token",
} as const satisfies Record<EndingSelector["by"], string>;
const SENTENCES: ReadonlyMap<string, string> = new Map(Object.entries(REASONS));
const ENDED_BY: ReadonlyMap<string, string> = new Map(Object.entries(ENDED));

/** What an ending names, in words; undefined where a member is missing that its sentence has. */
export function endedText(ends: JsonObject): string | undefined {
  const sentence = typeof ends.by === "string" ? ENDED_BY.get(ends.by) : undefined;
  let isWhole = sentence !== undefined;
  const text = sentence?.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = ends[name];
    isWhole &&= typeof value === "string";
    return word(String(value));
  });
  return isWhole ? text : undefined;
}

/** A member of `detail` as `name=text`: a time as a time, what was ended as a sentence, an agent with its title. */
function detailField([name, value]: [string, Json], titles: Titles): string {
  if (name === "actor" && typeof value === "string") return `actor=${agentText(value, titles)}`;
  if (typeof value === "number" && name.endsWith("_ms")) return `${word(name.slice(0, -3))}=${time(value)}`;
  if (typeof value === "number" && name.endsWith("_at")) return `${word(name)}=${time(value * 1000)}`;
  const sentence = name === "ends" && isJsonObject(value) ? endedText(value) : undefined;
  // In parentheses, because it has spaces.
  return `${word(name)}=${sentence === undefined ? detailText(value) : `(${sentence})`}`;
}

function detailText(value: Json): string {
  if (Array.isArray(value)) return value.map(detailText).join(",");
  return word(typeof value === "string" ? value : JSON.stringify(value));
}

/** The line of an event; `titles` are those of today, because an event has ids alone (NAME-D-6). */
export function eventLine(record: AuditRecord, titles: Titles = NO_TITLES): string {
  const place = `${time(record.timeMs)} ${word(record.log)}/${record.seq}`;
  const event = readEvent(record.body);
  if (event === undefined) return `${place} ${UNREADABLE}`;
  const rest = columnFields(EVENT_COLUMNS, event, titles);
  const about = Object.entries(event.detail ?? {}).map((member) => detailField(member, titles));
  const sentence = SENTENCES.get(event.reason);
  const why = sentence === undefined ? "" : `— ${sentence}`;
  return [place, word(event.type), word(event.outcome), word(event.reason), ...rest, ...about, why]
    .filter((part) => part !== "")
    .join(" ");
}

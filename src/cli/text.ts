/** Untrusted text for a terminal: no value can move the cursor, reverse the line or end it. */
import * as v from "valibot";
import { CLAIMS_DEPTH_MAX } from "../limits/input.ts";
import type { AuditRecord, StoredConsent } from "../records.ts";
import type { Json, JsonObject } from "../spec/rfc8259.ts";
import { parseJson } from "../spec/rfc8259.ts";

// Controls, bidi and other format marks, lone surrogates, every space except U+0020, and invisible characters.
const UNSAFE = /(?! )[\p{C}\p{Z}\p{DI}]/gu;

/**
 * AUDIT-D-7: unsafe characters are written as JSON escapes, so that a body stays the same JSON and its canonical form
 * (RFC 8785) keeps its hash.
 */
export function escapeUnsafe(text: string): string {
  return text.replace(UNSAFE, (character) =>
    Array.from({ length: character.length }, (_, index) => character.charCodeAt(index))
      .map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`)
      .join(""),
  );
}

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
const maybe = (text: string | undefined): string | undefined => (text === undefined ? undefined : word(text));

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

const Party = v.object({ iss: v.string(), sub: v.string() });
const list = v.array(v.string());

/** The members that a line shows; the stored body has more. */
const Body = v.object({
  type: v.string(),
  outcome: v.string(),
  request: v.optional(v.object({ id: v.string() })),
  reason: v.string(),
  client: v.optional(v.object({ client_id: v.string() })),
  subject: v.optional(
    v.object({ ...Party.entries, token: v.optional(v.object({ jti: v.optional(v.string()) })) }),
  ),
  actor: v.optional(Party),
  chain: v.optional(v.array(Party), []),
  requested: v.optional(v.object({ audience: list, resource: list, scope: v.optional(v.string()) })),
  policy: v.optional(v.object({ rule_id: v.optional(v.string()), consent: v.optional(v.string()) })),
  granted: v.optional(v.object({ jti: v.string(), aud: v.string(), scope: v.string(), parent_jti: list })),
  count: v.optional(v.number()),
  detail: v.optional(v.custom<JsonObject>((value) => typeof value === "object" && value !== null)),
});

/** Undefined if the text is not an event that our journal wrote. */
export function readEvent(body: string): v.InferOutput<typeof Body> | undefined {
  const json = parseJson(body, CLAIMS_DEPTH_MAX);
  const parsed = json.ok ? v.safeParse(Body, json.value) : undefined;
  return parsed?.success ? parsed.output : undefined;
}

function detailText(value: Json): string {
  if (Array.isArray(value)) return value.map(detailText).join(",");
  return word(typeof value === "string" ? value : JSON.stringify(value));
}

export function eventLine({ log, seq, timeMs, body }: AuditRecord): string {
  const place = `${time(timeMs)} ${word(log)}/${seq}`;
  const event = readEvent(body);
  if (event === undefined) return `${place} has an unreadable body: run "audit verify"`;
  const { type, client, subject, actor, chain, requested, policy, granted, count, detail = {} } = event;
  // The event lists the current actor first; the line lists actors in the order in which they acted.
  const actors = [...chain.toReversed(), ...(actor === undefined ? [] : [actor])];
  const rest = fields({
    client: maybe(client?.client_id),
    subject: maybe(subject?.sub),
    issuer: maybe(subject?.iss),
    chain: actors.map(({ sub }) => word(sub)).join(" → "),
    target: words(granted ? [granted.aud] : [...(requested?.audience ?? []), ...(requested?.resource ?? [])]),
    scope: maybe(granted?.scope ?? requested?.scope),
    // The jti that the issuing server gave to the grant.
    grant: type === "grant.redeemed" ? maybe(subject?.token?.jti) : undefined,
    jti: maybe(granted?.jti),
    rule: maybe(policy?.rule_id),
    consent: maybe(policy?.consent),
    count: count?.toString(),
  });
  const about = Object.entries(detail).map(([name, value]) => {
    return `${word(name)}=${detailText(value)}`;
  });
  return [place, word(type), word(event.outcome), word(event.reason), rest, ...about]
    .filter((part) => part !== "")
    .join(" ");
}

/**
 * Queries of the audit trail (PROD-6.3-3): our own design. Covers the parameters of `GET /audit/events` and
 * `GET /audit/checkpoints` and the cursors by which both continue a listing.
 */
import * as v from "valibot";
import { AUDIT_CURSOR_BYTES_MAX, AUDIT_PAGE, AUDIT_PAGE_MAX } from "../limits/audit.ts";
import { CLAIMS_DEPTH_MAX, STRING_BYTES_MAX } from "../limits/input.ts";
import { defined, err, ok, type Result } from "../result.ts";
import { decodeFormText } from "../spec/rfc6749.ts";
import { decodeBase64url, encodeBase64url } from "../spec/rfc7515.ts";
import { isJsonObject, type JsonObject, parseJson } from "../spec/rfc8259.ts";
import { FILTERS, readUtcTime } from "./filters.ts";
import type { Term } from "./terms.ts";

/** A range of one log: the records after `afterSeq` up to and including `toSeq`. */
export type Span = { log: string; afterSeq: number; toSeq: number };

/** The position of a record among those of all logs, which are ordered by time, then log, then number. */
export type AuditPosition = { timeMs: number; log: string; seq: number };

/** The ranges that are listed, and the position after which the listing continues. */
export type Listing = { spans: readonly Span[]; after?: AuditPosition };

// --- parameters -----------------------------------------------------------------------------------------------

export type Parameters = ReadonlyMap<string, string>;

/**
 * Reads the parameters of a query string by name; an error text for the caller otherwise. Unknown and repeated
 * parameters are refused, because ignoring a filter would list more than was asked for.
 */
export function readParameters(search: string, names: readonly string[]): Result<Parameters, string> {
  const values = new Map<string, string>();
  for (const part of search.replace(/^\?/, "").split("&")) {
    if (part === "") continue;
    const equals = part.indexOf("=");
    const name = decodeFormText(equals < 0 ? part : part.slice(0, equals));
    const value = decodeFormText(equals < 0 ? "" : part.slice(equals + 1));
    if (name === undefined || value === undefined) return err("the query is not form-encoded UTF-8");
    if (!names.includes(name)) return err("a parameter is unknown");
    if (values.has(name)) return err("a parameter is given twice");
    if (value === "" || value.length > AUDIT_CURSOR_BYTES_MAX) return err("a parameter is empty or too long");
    values.set(name, value);
  }
  return ok(values);
}

export const LIMIT_WRONG = "limit is not a whole number above zero";

/** The page size; undefined if `limit` is not a whole number above zero. */
export function readLimit(parameters: Parameters): number | undefined {
  const digits = parameters.get("limit") ?? String(AUDIT_PAGE);
  const limit = /^[1-9][0-9]{0,8}$/.test(digits) ? Number(digits) : 0;
  return limit > 0 ? Math.min(limit, AUDIT_PAGE_MAX) : undefined;
}

export const EVENT_PARAMETERS: readonly string[] = [...Object.keys(FILTERS), "limit", "cursor"];

export type EventFilter = {
  fromMs?: number;
  /** The time is exclusive. */
  toMs?: number;
  /** An event matches if it has at least one term of each of these alternatives. */
  terms: readonly (readonly Term[])[];
  /** Whether the stored text of an event has what is no term; absent where only terms are asked for. */
  holds?: (body: string) => boolean;
  /** The `jti` of a token whose ancestors and descendants are listed too. */
  lineageOf?: string;
};

/** Reads filters by the names of parameters; otherwise an error text, in which they are called as `nameOf` says. */
export function readEventFilter(
  parameters: Parameters,
  nameOf: (parameter: string) => string = (parameter) => parameter,
): Result<EventFilter, string> {
  const all = Object.fromEntries(parameters);
  const terms: (readonly Term[])[] = [];
  const others: ((body: string) => boolean)[] = [];
  for (const [name, { takes, requires, terms: termsFor, holds }] of Object.entries(FILTERS)) {
    const value = parameters.get(name);
    if (value === undefined) continue;
    if (takes?.fits(value) === false) return err(`${nameOf(name)} is not ${takes.text}`);
    if (requires !== undefined && !parameters.has(requires)) {
      return err(`${nameOf(name)} requires ${nameOf(requires)}`);
    }
    const alternatives = termsFor?.(value, all) ?? [];
    if (alternatives.length > 0) terms.push(alternatives);
    if (holds !== undefined) others.push((body) => isHeld(body, value, holds));
  }
  const [fromMs, toMs] = [all.from, all.to].map((text) =>
    text === undefined ? undefined : readUtcTime(text),
  );
  const held = (body: string): boolean => others.every((one) => one(body));
  const lineageOf = all.lineage === undefined ? undefined : all.jti;
  return ok(
    defined<EventFilter>({ fromMs, toMs, terms, lineageOf, holds: others.length > 0 ? held : undefined }),
  );
}

/** Most events do not have the value anywhere, and need not be parsed; none of these values has an escape in JSON. */
function isHeld(body: string, value: string, holds: (event: JsonObject, value: string) => boolean): boolean {
  const event = body.includes(value) ? parseJson(body, CLAIMS_DEPTH_MAX) : undefined;
  return event?.ok === true && isJsonObject(event.value) && holds(event.value, value);
}

// --- cursors --------------------------------------------------------------------------------------------------

const whole = v.pipe(v.number(), v.safeInteger(), v.minValue(-1));
const short = v.pipe(v.string(), v.maxLength(STRING_BYTES_MAX));

const EventCursor = v.object({
  spans: v.array(v.tuple([short, whole, whole])),
  after: v.optional(v.tuple([whole, short, whole])),
});
const CheckpointCursor = v.record(short, whole);

const encode = (value: object): string => encodeBase64url(new TextEncoder().encode(JSON.stringify(value)));

function decode<T>(schema: v.GenericSchema<unknown, T>, cursor: string): T | undefined {
  const bytes = decodeBase64url(cursor);
  const json = bytes && parseJson(new TextDecoder().decode(bytes), CLAIMS_DEPTH_MAX);
  const parsed = json?.ok ? v.safeParse(schema, json.value) : undefined;
  return parsed?.success ? parsed.output : undefined;
}

const CURSOR_INVALID = "the cursor is invalid";

/** The cursor by which a listing continues. */
export const encodeListing = ({ spans, after }: Listing): string =>
  encode(
    defined<v.InferOutput<typeof EventCursor>>({
      spans: spans.map(({ log, afterSeq, toSeq }) => [log, afterSeq, toSeq]),
      after: after && [after.timeMs, after.log, after.seq],
    }),
  );

/** The listing to continue; undefined without a cursor. */
export function readListing(parameters: Parameters): Result<Listing | undefined, string> {
  const cursor = parameters.get("cursor");
  if (cursor === undefined) return ok(undefined);
  const decoded = decode(EventCursor, cursor);
  if (decoded === undefined) return err(CURSOR_INVALID);
  const spans = decoded.spans.map(([log, afterSeq, toSeq]) => ({ log, afterSeq, toSeq }));
  if (decoded.after === undefined) return ok({ spans });
  const [timeMs, log, seq] = decoded.after;
  return ok({ spans, after: { timeMs, log, seq } });
}

/** The cursor of checkpoints has, for each log, the size of the last checkpoint that was listed. */
export const encodeSizes = (sizes: ReadonlyMap<string, number>): string => encode(Object.fromEntries(sizes));

/** The sizes in a cursor of checkpoints; empty without a cursor. */
export function readSizes(parameters: Parameters): Result<ReadonlyMap<string, number>, string> {
  const cursor = parameters.get("cursor");
  const decoded = cursor === undefined ? {} : decode(CheckpointCursor, cursor);
  return decoded === undefined ? err(CURSOR_INVALID) : ok(new Map(Object.entries(decoded)));
}

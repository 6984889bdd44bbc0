/**
 * The filters of audit events (PROD-6.3-3): our own design. Covers one row for each, which is a parameter of
 * `GET /audit/events` and an option of `mandate audit`.
 */
import { isJsonObject, type Json, type JsonObject } from "../spec/rfc8259.ts";
import { EVENT_TYPES } from "./event.ts";
import { REASONS } from "./reasons.ts";
import { requestTerm, subjectTerm, type Term, type TermName } from "./terms.ts";

/** The values of all filters, by the names of parameters. */
type Values = Readonly<Record<string, string | undefined>>;

type FilterRow = {
  /** The option of the command line; without one the filter is the endpoint's alone. */
  readonly option?: { readonly name: string; readonly value: string; readonly says: string };
  /** What values it takes; any by default. */
  readonly takes?: { readonly text: string; readonly fits: (value: string) => boolean };
  /** The filter that must be given too. */
  readonly requires?: string;
  /** The terms of which an event must have one; none where another row has them. */
  readonly terms?: (value: string, all: Values) => readonly Term[];
  /** For what is no term: such events are read, since the index does not list them. */
  readonly holds?: (event: JsonObject, value: string) => boolean;
};

const term = (name: TermName) => (value: string) => [{ name, value }];
const option = (name: string, value: string, says: string) => ({ name, value, says });

function among(text: string, values: readonly string[]): NonNullable<FilterRow["takes"]> {
  return { text, fits: (value) => values.includes(value) };
}

const TIME = {
  text: "a UTC time like 2027-01-31T00:00:00Z",
  fits: (value: string) => readUtcTime(value) !== undefined,
};
const OUTCOMES = ["allow", "deny", "error"] as const;
const TRACE_ID = /^[0-9a-f]{32}$/;

/** The most selective ones come first, because a search takes the terms in this order. */
export const FILTERS: Readonly<Record<string, FilterRow>> = {
  from: { option: option("since", "TIME", "events from this time on"), takes: TIME },
  to: { option: option("until", "TIME", "events before this time"), takes: TIME },
  request: {
    option: option(
      "request",
      "ID",
      "the events that one request caused, by its X-Request-Id or the number at the foot of its page",
    ),
    terms: (value) => term("request")(requestTerm(value)),
  },
  jti: {
    terms: (value, { lineage }) =>
      lineage === undefined ? [...term("granted")(value), ...term("presented")(value)] : [],
  },
  lineage: { takes: among("1", ["1"]), requires: "jti" },
  trace: {
    option: option("trace", "TRACE_ID", "the events of one trace (W3C Trace Context), as callers named it"),
    takes: { text: "a trace id: 32 lower-case hexadecimal digits", fits: (value) => TRACE_ID.test(value) },
    holds: (event, value) => at(event, "request", "trace", "trace_id") === value,
  },
  iss: { option: option("issuer", "ISS", "the issuer that the subject comes from"), requires: "sub" },
  sub: {
    option: option("subject", "SUB", "the events about one subject, by its name at the issuer"),
    requires: "iss",
    terms: (value, { iss = "" }) => [subjectTerm(iss, value)],
  },
  actor: {
    option: option("actor", "ID", "the events with this workload anywhere in the chain"),
    terms: term("actor"),
  },
  client: { option: option("client", "CLIENT_ID", "the events of one client"), terms: term("client") },
  target: {
    option: option("target", "NAME", "the events for a target, as it was requested or granted"),
    terms: term("target"),
  },
  job: { option: option("job", "ID", "the events of one job"), terms: term("job") },
  txn: {
    option: option("transaction", "TXN", "the events of one transaction, by its txn"),
    terms: term("transaction"),
  },
  rule: { option: option("rule", "ID", "the events that one rule decided"), terms: term("rule") },
  outcome: {
    option: option("outcome", "OUTCOME", "allow, deny or error"),
    takes: among("one of allow, deny, error", OUTCOMES),
    terms: term("outcome"),
  },
  type: {
    option: option("type", "TYPE", "events of one type, such as token_exchange.denied"),
    takes: among(`a type of event: ${EVENT_TYPES.toSorted().join(", ")}`, EVENT_TYPES),
    terms: term("type"),
  },
  reason: {
    option: option("reason", "CODE", "events with this reason, such as no_rule"),
    takes: among("the code of a reason, such as no_rule", Object.keys(REASONS)),
    holds: ({ reason }, value) => reason === value,
  },
  scope: {
    option: option("scope", "SCOPE", "the events in which one scope was requested or granted"),
    holds: (event, value) =>
      ["granted", "requested", "detail"].some((part) => scopesOf(at(event, part, "scope")).includes(value)),
  },
};

const scopesOf = (scope: Json | undefined): readonly string[] =>
  typeof scope === "string" ? scope.split(" ") : [];

/** The value at this path of members. */
function at(event: Json | undefined, ...path: readonly string[]): Json | undefined {
  return path.reduce<Json | undefined>(
    (value, name) => (isJsonObject(value) ? value[name] : undefined),
    event,
  );
}

/** Reads a time of RFC 3339 in UTC as milliseconds since 1970. */
export function readUtcTime(text: string): number | undefined {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$/.test(text)) return undefined;
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}

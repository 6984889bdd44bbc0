/**
 * What is shown of an audit event in one line: our own design. Covers the columns, in one table for the lines of
 * `mandate audit` and for CSV; the stored text has more.
 */
import * as v from "valibot";
import { CLAIMS_DEPTH_MAX } from "../limits/input.ts";
import { type JsonObject, parseJson } from "../spec/rfc8259.ts";

const Party = v.object({ iss: v.string(), sub: v.string(), claimed: v.optional(v.literal(true)) });
const list = v.array(v.string());

/** The members that a line shows; the stored body has more. */
const Body = v.object({
  type: v.string(),
  outcome: v.string(),
  request: v.optional(v.object({ id: v.string(), trace: v.optional(v.object({ trace_id: v.string() })) })),
  reason: v.string(),
  client: v.optional(
    v.object({
      client_id: v.string(),
      workload: v.optional(v.string()),
      source: v.optional(v.string()),
      aud: v.optional(v.string()),
    }),
  ),
  subject: v.optional(
    v.object({ ...Party.entries, token: v.optional(v.object({ jti: v.optional(v.string()) })) }),
  ),
  actor: v.optional(Party),
  chain: v.optional(v.array(Party), []),
  requested: v.optional(
    v.object({
      audience: list,
      resource: list,
      scope: v.optional(v.string()),
      reason: v.optional(v.string()),
    }),
  ),
  policy: v.optional(
    v.object({
      rule_id: v.optional(v.string()),
      consent: v.optional(v.string()),
      asked: v.optional(v.object({ count: v.optional(v.number()) })),
      meant: v.optional(v.array(v.object({ known: v.string() })), []),
      trace: v.optional(v.array(v.object({ failed: v.optional(v.string()), also: v.optional(list) })), []),
    }),
  ),
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

export const UNREADABLE = 'has an unreadable body: run "audit verify"';

export type ShownEvent = NonNullable<ReturnType<typeof readEvent>>;

/** An agent that this server authenticated is apart from a text, so that a line can say its title. */
export type ShownValue = string | { readonly agent: string };

/** A column of a list; in a line of text it is left out where it has no value. */
export type Column<Row> = {
  readonly name: string;
  readonly valuesOf: (row: Row) => readonly ShownValue[];
  /** Between the values in a line of text. */
  readonly between?: string;
};
type EventColumn = Column<ShownEvent>;

export const oneValue = (value: string | undefined): readonly string[] =>
  value === undefined || value === "" ? [] : [value];

/** NAME-D-2: another server may tell of an agent by any name. */
const agentOf = ({ sub, claimed }: v.InferOutput<typeof Party>): ShownValue =>
  claimed === true ? sub : { agent: sub };

type Lacking = { failed?: string | undefined; also?: readonly string[] | undefined };

/**
 * POLICY-D-21: all that the rule lacks which lacks the fewest conditions, where that is more than the reason says; a rule of
 * other actors tells this one nothing.
 */
export function lacksOf(trace: readonly Lacking[] = []): readonly string[] {
  const each = trace.flatMap(({ failed, also = [] }) => (failed === undefined ? [] : [[failed, ...also]]));
  const [nearest = []] = each.filter((one) => !one.includes("actor")).toSorted((a, b) => a.length - b.length);
  return nearest.length > 1 ? nearest : [];
}

/** What a line shows behind its place, type, outcome and reason. */
export const EVENT_COLUMNS: readonly EventColumn[] = [
  { name: "client", valuesOf: ({ client }) => oneValue(client?.client_id).map((agent) => ({ agent })) },
  { name: "subject", valuesOf: ({ subject }) => oneValue(subject?.sub) },
  { name: "issuer", valuesOf: ({ subject }) => oneValue(subject?.iss) },
  {
    // The event lists the current actor first; the line lists actors in the order in which they acted.
    name: "chain",
    valuesOf: ({ chain, actor }) =>
      [...chain.toReversed(), ...(actor === undefined ? [] : [actor])].map(agentOf),
    between: " → ",
  },
  {
    name: "target",
    valuesOf: ({ granted, requested }) =>
      granted ? [granted.aud] : [...(requested?.audience ?? []), ...(requested?.resource ?? [])],
  },
  { name: "scope", valuesOf: ({ granted, requested }) => oneValue(granted?.scope ?? requested?.scope) },
  {
    // The jti that the issuing server gave to the grant.
    name: "grant",
    valuesOf: ({ type, subject }) => oneValue(type === "grant.redeemed" ? subject?.token?.jti : undefined),
  },
  { name: "jti", valuesOf: ({ granted }) => oneValue(granted?.jti) },
  { name: "rule", valuesOf: ({ policy }) => oneValue(policy?.rule_id) },
  { name: "consent", valuesOf: ({ policy }) => oneValue(policy?.consent) },
  { name: "lacks", valuesOf: ({ policy }) => lacksOf(policy?.trace), between: "," },
  { name: "meant", valuesOf: ({ policy }) => policy?.meant.map(({ known }) => known) ?? [], between: "," },
  { name: "said", valuesOf: ({ requested }) => oneValue(requested?.reason) },
  { name: "count", valuesOf: ({ count, policy }) => oneValue((count ?? policy?.asked?.count)?.toString()) },
];

/** What a row of CSV has behind those. */
const ROW_COLUMNS: readonly EventColumn[] = [
  { name: "request", valuesOf: ({ request }) => oneValue(request?.id) },
  { name: "trace", valuesOf: ({ request }) => oneValue(request?.trace?.trace_id) },
  { name: "detail", valuesOf: ({ detail }) => oneValue(detail && JSON.stringify(detail)) },
];

/** NAME-D-6: programs read ids, which do not change with the settings. */
const idOf = (value: ShownValue): string => (typeof value === "string" ? value : value.agent);

const PLACE = ["time", "log", "seq", "type", "outcome", "reason"] as const;
const BEHIND: readonly EventColumn[] = [...EVENT_COLUMNS, ...ROW_COLUMNS];
export const eventColumns: readonly string[] = [...PLACE, ...BEHIND.map(({ name }) => name)];

/** The row of an event. */
export function eventCells(record: {
  timeMs: number;
  log: string;
  seq: number;
  body: string;
}): readonly string[] {
  const place = [new Date(record.timeMs).toJSON() ?? "", record.log, String(record.seq)];
  const event = readEvent(record.body);
  if (event === undefined) {
    return [...place, ...Array.from(eventColumns.slice(place.length + 1), () => ""), UNREADABLE];
  }
  const { type, outcome, reason } = event;
  return [...place, type, outcome, reason, ...cellsOf(BEHIND, event)];
}

/** A cell for each column, several values with spaces between them. */
export const cellsOf = <Row>(columns: readonly Column<Row>[], row: Row): readonly string[] =>
  columns.map(({ valuesOf }) => valuesOf(row).map(idOf).join(" "));

/** `mandate audit --summary`: the events by agent, reason, question and day, the most frequent of a day first (AUDIT-D-19). */
import { type Column, cellsOf, oneValue } from "../../audit/columns.ts";
import { readRecorded } from "../../audit/recorded.ts";
import { callerIn, subjectName, targetIn } from "../../audit/uses.ts";
import type { AuditRecord } from "../../records.ts";
import type { Json, JsonObject } from "../../spec/rfc8259.ts";
import { asCsv, type Format, type Formats } from "../formats.ts";
import { columnFields, jsonLine, type Titles, time, word } from "../text.ts";

/** Groups that are kept apart, and subjects that are told apart in each. */
const GROUPS_MAX = 20_000;
const SUBJECTS_MAX = 1000;

export type Counted = {
  day: string;
  outcome: string;
  reason: string;
  agent?: string | undefined;
  /** The mode of a request for a token, or else the type of the event. */
  question: string;
  target?: string | undefined;
  scope?: string | undefined;
  count: number;
  lastMs: number;
  subjects: Set<string>;
};

export type Summary = { take(record: AuditRecord): void; lines(titles: Titles): readonly string[] };

export function summaryAs(format: Format<Counted>): Summary {
  const groups = new Map<string, Counted>();
  let others = 0;
  return {
    take({ body, timeMs }) {
      const event = readRecorded(body);
      if (event === undefined) return;
      const { outcome, reason, mode, type, requested, granted, subject, count = 1 } = event;
      const key = {
        day: time(timeMs).slice(0, 10),
        outcome,
        reason,
        agent: callerIn(event),
        question: mode ?? type,
        target: targetIn(event),
        scope: requested?.scope ?? granted?.scope,
      };
      const name = JSON.stringify(Object.values(key));
      const known = groups.get(name);
      if (known === undefined && groups.size >= GROUPS_MAX) {
        others += count;
        return;
      }
      const group = known ?? { ...key, count: 0, lastMs: timeMs, subjects: new Set() };
      if (known === undefined) groups.set(name, group);
      group.count += count;
      group.lastMs = Math.max(group.lastMs, timeMs);
      if (subject !== undefined && group.subjects.size < SUBJECTS_MAX)
        group.subjects.add(subjectName(subject));
    },
    lines(titles) {
      const sorted = [...groups.values()].sort((a, b) =>
        a.day === b.day ? b.count - a.count : a.day < b.day ? 1 : -1,
      );
      const rest: Counted = { ...REST, count: others, lastMs: Number.NaN, subjects: new Set() };
      return [
        ...(format.header === undefined ? [] : [format.header]),
        ...[...sorted, ...(others > 0 ? [rest] : [])].map((group) => format.line(group, titles)),
      ];
    },
  };
}

const REST = { day: "others", outcome: "", reason: "", question: "" };

type GroupColumn = Column<Counted> & { json?: (group: Counted) => Json };
const COLUMNS: readonly GroupColumn[] = [
  { name: "agent", valuesOf: ({ agent }) => oneValue(agent).map((one) => ({ agent: one })) },
  { name: "question", valuesOf: ({ question }) => oneValue(question) },
  { name: "target", valuesOf: ({ target }) => oneValue(target) },
  { name: "scope", valuesOf: ({ scope }) => oneValue(scope) },
  {
    name: "subjects",
    valuesOf: ({ subjects }) => oneValue(subjects.size > 0 ? sizeOf(subjects) : undefined),
    json: ({ subjects }) => subjects.size,
  },
  { name: "last", valuesOf: ({ lastMs }) => oneValue(Number.isNaN(lastMs) ? undefined : time(lastMs)) },
];
const FIRST: readonly GroupColumn[] = [
  { name: "day", valuesOf: ({ day }) => [day] },
  { name: "count", valuesOf: ({ count }) => [String(count)], json: ({ count }) => count },
  { name: "outcome", valuesOf: ({ outcome }) => [outcome] },
  { name: "reason", valuesOf: ({ reason }) => [reason] },
];
const ALL = [...FIRST, ...COLUMNS];

const sizeOf = ({ size }: Set<string>): string => (size < SUBJECTS_MAX ? String(size) : `${size}+`);

export const SUMMARY_FORMATS: Formats<Counted> = {
  text: {
    line: (group, titles) =>
      [...cellsOf(FIRST, group).map(word), ...columnFields(COLUMNS, group, titles)].join(" "),
  },
  ndjson: {
    line: (group) => {
      const members = ALL.flatMap((column): [string, Json][] => {
        const [text = ""] = cellsOf([column], group);
        return text === "" ? [] : [[column.name, column.json?.(group) ?? text]];
      });
      return jsonLine(Object.fromEntries(members) satisfies JsonObject);
    },
  },
  csv: asCsv(
    ALL.map(({ name }) => name),
    (group) => cellsOf(ALL, group),
  ),
};

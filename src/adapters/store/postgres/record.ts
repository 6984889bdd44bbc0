/**
 * The one statement that writes the journal on PostgreSQL: guards and writes of a batch, all or nothing. It is composed of
 * the tables of columns, guards and writes, and printed whole in record.sql.
 */
import type { Columns } from "../columns.ts";
import { type JournalRows, LISTS, type ListName, type StatementPart } from "../journal-rows.ts";
import { GUARDS, type JournalGuard, type JournalWrite, WRITES } from "../journal-statements.ts";
import { byKey, POSTGRES } from "./engine.ts";

export const NAMES = Object.keys(LISTS) as ListName[];

/** The lists of these parts; the statement takes each as JSON, in this order. */
export const listsOf = (parts: readonly StatementPart[]): readonly ListName[] =>
  NAMES.filter((name) => parts.includes(LISTS[name].part));

export const PARTS: readonly StatementPart[] = [...new Set(NAMES.map((name) => LISTS[name].part))];

const ISSUED: readonly StatementPart[] = ["events", "tokens", "spent ids", "held consents"];

/**
 * The parts of the statements that are prepared: those of common batches, and all. Each costs the database by its parts,
 * and every connection keeps the plan of each, so that not every combination has one.
 */
export const COMBINATIONS: readonly (readonly StatementPart[])[] = [
  ["events"],
  ["events", "tokens"],
  ["events", "tokens", "spent ids"],
  ISSUED,
  [...ISSUED, "short-lived rows", "families"],
  [...ISSUED, "endings", "clients"],
  PARTS,
];

/** The first combination with all parts that are needed. */
export const combinationOf = (needed: readonly StatementPart[]): readonly StatementPart[] =>
  COMBINATIONS.find((parts) => needed.every((part) => parts.includes(part))) ?? PARTS;

export const partsOf = (rows: JournalRows): readonly StatementPart[] =>
  NAMES.flatMap((name) => (rows[name].length > 0 ? LISTS[name].part : []));

/**
 * Guards and writes see the same snapshot. Each guard is a scalar subquery, which PostgreSQL answers with a key look-up for
 * each row, and each change names its rows as `= any(array(…))`, which it answers in the same way. For a join it would
 * choose a scan while the tables are empty or not analysed, and keep that plan when they grow.
 */
export function recordStatement(parts: readonly StatementPart[]): string {
  const lists = listsOf(parts);
  const has = ({ list }: { list: ListName }): boolean => lists.includes(list);
  const asked = GUARDS.filter(has);
  const withs = [
    ...lists.map((list, index) => recordSet(list, index + 1)),
    ...asked.filter((guard) => "table" in guard).map(lockOf),
    `failed as (\n  ${asked.map(failureOf).join("\n  union\n  ")}\n)`,
    ...WRITES.filter(has).map(writeOf),
  ];
  return POSTGRES.inWords(`with
${withs.join(",\n")}
select entry, guard from failed order by entry, guard`);
}

const said = (why: string | undefined, indent = ""): string =>
  why === undefined ? "" : `-- ${why}\n${indent}`;

function recordSet(list: ListName, parameter: number): string {
  const columns = Object.entries(LISTS[list].columns).map(([name, { type }]) => `${name} ${type}`);
  return `${list}_in as (select * from json_to_recordset($${parameter}::text::json) as i
  (${listed(["entry int", ...columns], "   ")}))`;
}

/** With commas between, in lines that can be read. */
function listed(items: readonly string[], indent: string): string {
  let lineLength = indent.length;
  return items
    .map((item, index) => {
      const isFull = lineLength + item.length + 2 > LINE_LENGTH_MAX;
      lineLength = (isFull ? indent.length : lineLength) + item.length + 2;
      return index === 0 ? item : `,${isFull ? `\n${indent}` : " "}${item}`;
    })
    .join("");
}

/** A condition on the row `i` of the list. */
function about(list: ListName, condition: string): string {
  const { columns }: { columns: Columns } = LISTS[list];
  return condition.replace(/(?<!:):(\w+)/g, (_, name) => `i.${name}${columns[name]?.isJson ? "::json" : ""}`);
}

/** In one order in every statement, so that two instances cannot deadlock. */
function lockOf({ list, why, table, key, where }: Extract<JournalGuard, { table: string }>): string {
  return `${said(why)}${list}_locked as (
  select i.entry, i.${key} from (select * from ${list}_in order by ${key} collate "C") i
  cross join lateral (
    select ${key} from ${table}
    where ${key} = i.${key} and ${about(list, where)}
    for update
  ) r
)`;
}

function failureOf(guard: JournalGuard): string {
  const { list, why } = guard;
  const name = guard.guard === undefined ? "i.guard" : `'${guard.guard}'`;
  const begin = (reason?: string): string =>
    `${said(reason, "  ")}select i.entry, ${name} as guard from ${list}_in i`;
  if ("fails" in guard) return `${begin(why)}\n    where ${about(list, guard.fails)}`;
  if ("endedBy" in guard)
    return `${begin(why)}
    where (select true from json_each_text(${about(list, `:${guard.endedBy}`)}) k
      where (select true from ending where key = k.key and cut_off >= k.value::bigint limit 1) limit 1)`;
  const { key } = guard;
  return `${begin()}
    where (select true from ${list}_locked l where l.entry = i.entry and l.${key} = i.${key}) is null`;
}

const LINE_LENGTH_MAX = 110;
const IF_NONE_FAILED = "not exists (select from failed)";

const nameOf = ({ name, list }: JournalWrite): string => name ?? `${list}_out`;

function writeOf(write: JournalWrite): string {
  return `${said(write.why)}${nameOf(write)} as (\n  ${"into" in write ? insertOf(write) : changeOf(write)}\n)`;
}

function insertOf({
  list,
  into,
  made = {},
  order,
  where,
  conflict,
}: Extract<JournalWrite, { into: string }>): string {
  const { stored }: { stored: Columns } = LISTS[list];
  const names = Object.keys(stored);
  const conditions = [...(where === undefined ? [] : [about(list, where)]), IF_NONE_FAILED];
  const lines = [
    `insert into ${into}\n    (${listed([...names, ...Object.keys(made)], "     ")})`,
    `select ${valuesOf(list, [...names.map((name) => `:${name}`), ...Object.values(made)])}`,
    `from ${list}_in i`,
    `where ${conditions.join(" and ")}`,
    order &&
      `order by ${order.map((name) => name + (stored[name]?.type === "text" ? ' collate "C"' : "")).join(", ")}`,
    conflict,
  ];
  return lines.filter((line) => line !== undefined).join("\n  ");
}

const valuesOf = (list: ListName, values: readonly string[]): string =>
  listed(
    values.map((value) => about(list, value)),
    "    ",
  );

function changeOf(write: Extract<JournalWrite, { table: string }>): string {
  const { list, table, key, set } = write;
  const same = `from ${list}_in i where ${key.map((one) => `i.${one} = t.${one}`).join(" and ")}`;
  const { picked, those } = thoseOf(write, same);
  const lines = [
    set === undefined
      ? `delete from ${table} t${picked && `\n  using ${picked}`}`
      : `update ${table} t\n  set (${listed(Object.keys(set), "    ")}) = (
    select ${valuesOf(list, Object.values(set))}
    ${same}
  )${picked && `\n  from ${picked}`}`,
    `where ${[...those, IF_NONE_FAILED].join("\n    and ")}`,
    AWAITED.has(nameOf(write)) ? `returning t.${key[0]}` : undefined,
  ];
  return lines.filter((line) => line !== undefined).join("\n  ");
}

/** Which rows are changed. */
function thoseOf(write: Extract<JournalWrite, { table: string }>, same: string) {
  const { list, table, key } = write;
  if ("found" in write) {
    const rows = `(
    select r.* from ${list}_in i cross join lateral (
      select ${key} from ${table}
      where ${about(list, write.found)}
      for update skip locked
    ) r
  ) s`;
    const { picked, isPicked } = byKey(key, rows);
    return { picked, those: [isPicked] };
  }
  const { where, after = [] } = write;
  return {
    picked: "",
    those: [
      ...key.map((one) => `t.${one} = any(array(select ${one} from ${list}_in))`),
      ...(where === undefined ? [] : [`(select ${about(list, where)}\n      ${same})`]),
      ...after.map((other) => `(select count(*) from ${other}) >= 0`),
    ],
  };
}

/** Writes after which another one comes. */
const AWAITED = new Set(WRITES.flatMap((write) => ("after" in write ? (write.after ?? []) : [])));

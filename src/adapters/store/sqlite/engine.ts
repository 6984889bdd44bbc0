/** Statements on node:sqlite, prepared once. */
import type { DatabaseSync } from "node:sqlite";
import {
  canBeHeld,
  type Dialect,
  type Engine,
  KEYS_LOOKED_FOR_MAX,
  numbered,
  type Values,
} from "../engine.ts";
import type { Database } from "./database.ts";

export const SQLITE: Dialect = {
  inWords: (text) =>
    text
      .replaceAll("now_ms()", "cast(unixepoch('subsec') * 1000 as integer)")
      .replaceAll(/(?:texts|numbers)_of\(([^()]*)\)/g, "select value from json_each($1)")
      .replaceAll("pairs_of(", "json_each(")
      .replaceAll("no_limit", "-1"),
  json: (value) => value,
  selected: ({ columns }, alias = "") =>
    Object.keys(columns)
      .map((name) => alias + name)
      .join(", "),
  among: (column, found) => `${column} in (${found})`,
  some: (change, table, key, where, only = "true") =>
    `${change} where (${key}) in (select ${key} from (select ${key} from ${table} where ${where} limit :limit) s where ${only})`,
  object: (pairs) => `json_object(${pairs})`,
  list: (pairs, order) => `json_group_array(json_object(${pairs}) order by ${order})`,
  firstEnding: (keys) =>
    `from json_each(${keys}) k cross join ending e
     where e.key = k.key and e.cut_off >= k.value order by e.at_ms limit 1`,
  // Without a condition, an `on conflict` behind it would be read as that of a join.
  insertEach: ({ name, columns }) => {
    const names = Object.keys(columns);
    const values = names.map((one) => `value ->> '${one}'`).join(", ");
    return `insert into ${name} (${names.join(", ")}) select ${values} from json_each(:rows) where true`;
  },
  carries: (list) =>
    `case when json_array_length(${list}) > ${KEYS_LOOKED_FOR_MAX} then true
       else exists (select true from json_each(${list}) k where instr(ending_keys, k.value) > 0) end`,
};

export function sqliteEngine({ db, run, remove }: Database): Engine {
  const change: Engine["change"] = (text, values) => run(() => statement(text).run(values));
  const prepared = new Map<string, ReturnType<typeof prepareOn>>();
  const statement = (text: string) => {
    const known = prepared.get(text) ?? prepareOn(db, text);
    prepared.set(text, known);
    return known;
  };
  return {
    ...SQLITE,
    rows: <Row>(text: string, values: Values = {}) =>
      run(() => (canBeHeld(values) ? (statement(text).all(values) as Row[]) : [])),
    change,
    // One process writes at a time.
    changeInTurn: change,
    remove: (text, values) => remove(() => statement(text).run(values)),
  };
}

/** Values are passed by position, because the platform looks up the name of a parameter anew for each row. */
export function positioned(db: DatabaseSync, named: string) {
  const { text, names } = numbered(SQLITE.inWords(named), (number) => `?${number}`);
  return { statement: db.prepare(text), names };
}

export function prepareOn(db: DatabaseSync, named: string) {
  const { statement, names } = positioned(db, named);
  const inOrder = (values: Values) => names.map((name) => values[name] ?? null);
  return {
    get: (values: Values) => statement.get(...inOrder(values)),
    all: (values: Values) => statement.all(...inOrder(values)),
    /** Runs the statement; returns the number of rows that were changed. */
    run: (values: Values) => Number(statement.run(...inOrder(values)).changes),
  };
}

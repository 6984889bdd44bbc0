/** Statements on PostgreSQL, each a unit of work, prepared once on each connection. */
import {
  canBeHeld,
  type Dialect,
  type Engine,
  KEYS_LOOKED_FOR_MAX,
  numbered,
  type Values,
} from "../engine.ts";
import { untilFree } from "./faults.ts";
import { CHANGES, inTurns } from "./look-ups.ts";
import type { Call, Sql } from "./pool.ts";

/** What the index of tokens by their ending keys consists of, as in its migration. */
const INDEXED_KEYS = "jsonb_path_query_array(ending_keys::jsonb, '$.keyvalue().key')";

/**
 * STORE-D-10: the rows `t` that another select finds, by their primary key, each looked up by itself: of an array
 * PostgreSQL takes 10 elements, whatever it knows of the table. By `ctid` only PostgreSQL itself finds a row.
 */
export function byKey(key: readonly string[], rows: string, types: Readonly<Record<string, string>> = {}) {
  if (key.length === 1) return { picked: "", isPicked: `t.${key} = any(array(select ${key} from ${rows}))` };
  const columns = key.map((name) => `${name}_of ${types[name] ?? "text"}`);
  return {
    picked: `unnest(array(select row(${key}) from ${rows})) as p (${columns.join(", ")})`,
    isPicked: key.map((name) => `t.${name} = p.${name}_of`).join(" and "),
  };
}

/** `clock_timestamp`: read when the row is compared, not when the statement began to wait for its lock. */
export const POSTGRES: Dialect = {
  inWords: (text) =>
    text
      .replaceAll("now_ms()", "(extract(epoch from clock_timestamp()) * 1000)::bigint")
      .replaceAll(/texts_of\(([^()]*)\)/g, "select json_array_elements_text($1::text::json)")
      .replaceAll(/numbers_of\(([^()]*)\)/g, "select json_array_elements_text($1::text::json)::bigint")
      .replaceAll("pairs_of(", "json_each_text(")
      .replaceAll("no_limit", "all"),
  // The driver would turn a text that is JSON already into JSON.
  json: (value) => `${value}::text::json`,
  selected: ({ columns }, alias = "") =>
    Object.entries(columns)
      .map(([name, { isJson }]) => alias + name + (isJson ? `::text as ${name}` : ""))
      .join(", "),
  among: (column, found) => `${column} = any(array(${found}))`,
  some(change, table, key, where, only = "true") {
    const rows = `(select ${key} from ${table} where ${where} limit :limit for update skip locked) s where ${only}`;
    const { picked, isPicked } = byKey(key, rows);
    const joined = picked && `${change.startsWith("update") ? "from" : "using"} ${picked}`;
    return `${change} ${joined} where ${isPicked}`;
  },
  object: (pairs) => `json_build_object(${pairs})::text`,
  list: (pairs, order) => `coalesce(json_agg(json_build_object(${pairs}) order by ${order}), '[]')::text`,
  // Each key is looked up by itself, as in a guard.
  firstEnding: (keys) =>
    `from unnest(array(select (key, value) from json_each_text(${keys}))) as k (key text, value text)
     cross join lateral (
       select event_id, at_ms, reason from ending
       where ending.key = k.key and ending.cut_off >= k.value::bigint order by at_ms limit 1
     ) e
     order by e.at_ms limit 1`,
  insertEach: ({ name, columns }) => {
    const names = Object.keys(columns).join(", ");
    return `insert into ${name} (${names}) select ${names} from json_populate_recordset(null::${name}, :rows::text::json)`;
  },
  carries: (list) =>
    `case when cardinality(array(texts_of(${list}))) > ${KEYS_LOOKED_FOR_MAX} then true
       else exists (select true from unnest(array(texts_of(${list}))) k where strpos(ending_keys::text, k) > 0) end`,
  // Each key is looked up by itself: the index would compare each of several with every row that has one of them.
  carriers: (list) =>
    `select t.jti from unnest(array(texts_of(${list}))) k
     cross join lateral (select jti from token where ${INDEXED_KEYS} ? k limit :limit) t limit :limit`,
};

/**
 * STORE-D-8: a condition that a server which only reads cannot compute: the division by zero ends the statement, also where
 * it finds no rows. A server that writes computes it once for a statement. The function is volatile, so that a proxy
 * that splits reads takes the statement to the writer, and no cache answers it.
 */
export const BY_WRITER = "(select 1 / (not pg_is_in_recovery())::int) = 1";

/** A statement that changes rows is refused by a server that only reads. */
const proven = (text: string, proof: string): string =>
  CHANGES.test(text) ? text : `select s.* from (${text}) s where ${proof}`;

/** Without values the driver would not prepare a statement. */
const PREPARED = { prepare: true, simple: false };

/**
 * Runs a statement, and takes values and rows from the driver's query, which V8 keeps until its next full collection: two
 * functions of the query are written where they are assigned to it, and such a function is made among the old objects.
 */
export async function runPrepared<Row extends object>(
  sql: Sql,
  text: string,
  values: readonly (string | number | null)[],
): Promise<{ rows: readonly Row[]; count: number }> {
  const query = sql.unsafe<Row[]>(text, [...values], PREPARED);
  try {
    const found = await query;
    return { rows: found.splice(0), count: found.count };
  } finally {
    Object.assign(query, { args: [], parameters: [] });
  }
}

const once = <T>(work: () => Promise<T>): Promise<T> => work();

export function postgresEngine(call: Call, proof = BY_WRITER): Engine {
  const known = new Map<string, ReturnType<typeof numbered>>();
  const run = <Row extends object>(named: string, values: Values = {}, how = once) => {
    const statement = known.get(named) ?? numbered(POSTGRES.inWords(named), (number) => `$${number}`);
    known.set(named, statement);
    const { text, names } = statement;
    const inOrder = names.map((name) => values[name] ?? null);
    return call((sql) => how(() => runPrepared<Row>(sql, text, inOrder)));
  };
  const read = inTurns(async (text, values) => (await run(proven(text, proof), values)).rows);
  const change = async (text: string, values: Values) => (await run(text, values)).count;
  return {
    ...POSTGRES,
    rows: async <Row>(text: string, values: Values = {}) =>
      canBeHeld(values) ? ((await read(text, values)) as readonly Row[]) : [],
    change,
    changeInTurn: async (text, values) => (await run(text, values, untilFree)).count,
    remove: change,
  };
}

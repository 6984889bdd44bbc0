/** The interface of a database for statements that are the same for both databases. */
import { type Awaitable, whenReady } from "../../result.ts";
import { type Columns, fromRow, isEncodable, type RowOf, type Table } from "./columns.ts";

/** The parts of statements that differ between the two databases. */
export type Dialect = {
  /**
   * Translates a statement for this database. In the common form, `now_ms()` is the time in milliseconds since 1970, by
   * the clock of the database, which is one for all instances; `texts_of(list)` and `numbers_of(list)` are subqueries
   * for the elements of a JSON array, `pairs_of(object)` is the table of the members of a JSON object; `no_limit` stands
   * for no limit.
   */
  inWords(text: string): string;
  /** Marks a value as JSON. */
  json(value: string): string;
  /** The list of columns for a select, with JSON as text; `alias` is that of the table, with a period. */
  selected(table: Table<unknown, Columns>, alias?: string): string;
  /** A condition: the column has one of the values that `found` selects; each is looked up by the key. */
  among(column: string, found: string): string;
  /**
   * The statement for at most `:limit` rows of the table, those that `where` finds and no other transaction has locked;
   * of these, which are `s`, the ones that `only` leaves. It begins with `change`, in which the table is `t`; the columns
   * of its primary key are texts.
   */
  some(change: string, table: string, key: readonly string[], where: string, only?: string): string;
  /** An expression for a JSON object of these names and values, as text. */
  object(pairs: string): string;
  /** An expression for a JSON array of such objects in this order, as text. */
  list(pairs: string, order: string): string;
  /** The rest of a select, from its `from` on, for the first ending `e` that reaches one of these keys. */
  firstEnding(keys: string): string;
  /** The statement that inserts each object of the JSON array `:rows`, whose members have the names of the columns. */
  insertEach(table: Table<unknown>): string;
  /** A condition that meets every token with one of the ending keys in this JSON array, and maybe others. */
  carries(list: string): string;
  /**
   * Selects the `jti` of those tokens, and of those without keys, at most `:limit` and some of them twice, by an index.
   * A database that has none leaves it out.
   */
  carriers?(list: string): string;
};

/** So many keys are looked for in the text of each token; with more of them, every token is returned sooner. */
export const KEYS_LOOKED_FOR_MAX = 8;

export type Values = Readonly<Record<string, string | number | null>>;

/** Runs one statement, which names its values by colons (`:jti`): a unit of work. */
export interface Engine extends Dialect {
  /** None, where a value is a text that no row can hold. */
  rows<Row>(text: string, values?: Values): Awaitable<readonly Row[]>;
  /** Returns the number of rows that were changed. */
  change(text: string, values: Values): Awaitable<number>;
  /** The same for one that takes a turn: where another has just taken it, the statement runs again. */
  changeInTurn(text: string, values: Values): Awaitable<number>;
  /** Removes expired rows. It need not be durable, because a removal that a power failure undoes is done again. */
  remove(text: string, values: Values): Awaitable<number>;
}

export const canBeHeld = (values: Values): boolean =>
  Object.values(values).every((value) => typeof value !== "string" || isEncodable(value));

/** Reads records of a table; `rest` is the statement behind its list of columns, and `start` what stands before it. */
export const readRecords =
  ({ rows, selected }: Engine) =>
  <R, C extends Columns>(table: Table<R, C>, rest: string, values: Values = {}, start = "") =>
    whenReady(rows<RowOf<C>>(`${start} select ${selected(table)} ${rest}`, values), (found): readonly R[] =>
      found.map((row) => fromRow(table, row)),
    );

/** Writes these columns of the row with this key, which has to be the version before; tells whether it was. */
export function putAtVersion(
  { change }: Engine,
  table: string,
  key: readonly string[],
  columns: readonly string[],
) {
  const set = ["version", ...columns].map((name) => `${name} = :${name}`).join(", ");
  const same = key.map((name) => `${name} = :${name}`).join(" and ");
  const put = `update ${table} set ${set} where ${same} and version = :version - 1`;
  return async (row: Values): Promise<boolean> => (await change(put, row)) === 1;
}

/** Removes at most `limit` rows of the table, those that `where` finds; of these, the ones that `only` leaves. */
export const sweepOf =
  (
    { remove, some }: Engine,
    table: string,
    key: readonly string[],
    where = "expires_at < :before",
    only?: string,
  ) =>
  async (before: number, limit: number): Promise<number> =>
    remove(some(`delete from ${table} as t`, table, key, where, only), { before, limit });

/** Replaces each name by a numbered mark; returns the statement, and the names in that order. */
export function numbered(
  text: string,
  mark: (number: number) => string,
): { text: string; names: readonly string[] } {
  const names: string[] = [];
  const marked = text.replace(/(?<!:):(\w+)/g, (_, name) => {
    if (!names.includes(name)) names.push(name);
    return mark(names.indexOf(name) + 1);
  });
  return { text: marked, names };
}

/** A database, as the tables need it that both databases read and write in the same words. */
import type { Awaitable } from "../../result.ts";
import type { Columns, Table } from "./columns.ts";

/** What the two databases say in different words. */
export type Dialect = {
  /**
   * A statement in the words of this database. In those of both, `now_ms()` is the time in milliseconds since 1970, by the
   * clock of the database, which is one for all instances; `texts_of(list)` and `numbers_of(list)` are subqueries for the
   * elements of a JSON array; `no_limit` is the limit that is none.
   */
  inWords(text: string): string;
  /** A value that is JSON. */
  json(value: string): string;
  /** The columns of a table in the list of a select, JSON as text; `alias`: of the table, with a period. */
  selected(table: Table<unknown, Columns>, alias?: string): string;
  /** Whether the column has a value that this finds; each is looked up by the key. */
  among(column: string, found: string): string;
  /**
   * A condition for at most `:limit` rows of the table, those that `where` finds and no other transaction has locked; of
   * these, which are `s`, the ones that `only` leaves.
   */
  some(table: string, key: string, where: string, only?: string): string;
  /** A JSON object, as text, of names and values. */
  object(pairs: string): string;
  /** A JSON array of such objects in this order, as text. */
  list(pairs: string, order: string): string;
  /** The first ending `e` that reaches one of these keys, from `from` on. */
  firstEnding(keys: string): string;
};

export type Values = Readonly<Record<string, string | number | null>>;

/** Runs one statement, which names its values by colons (`:jti`): a unit of work. */
export interface Engine extends Dialect {
  rows<Row>(text: string, values?: Values): Awaitable<readonly Row[]>;
  /** The number of rows that it changed. */
  change(text: string, values: Values): Awaitable<number>;
  /** The same for a removal of what has expired, which is simply done again where a power failure undoes it. */
  remove(text: string, values: Values): Awaitable<number>;
}

/** The statement with a mark in place of each name, and the names in the order of their numbers. */
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

/**
 * The columns of the store's tables, in both databases. A column says once which member of a record it holds and how it
 * is written; the types of rows, what converts them, and the lists of columns in statements come from it.
 */
import type { EndingKey } from "../../policy/endings.ts";

/** Whether both stores can hold the text: PostgreSQL refuses U+0000, and UTF-8 cannot encode a lone surrogate. */
export function isEncodable(text: string): boolean {
  return text.isWellFormed() && !text.includes("\0");
}

type Held = string | number;

/**
 * How a value is held in a row. `write` throws for a value that a store would not return unchanged, since callers
 * refuse such values before.
 */
type Form<T = unknown, H extends Held = Held> = {
  /** The type of its column in a record set of PostgreSQL. */
  type: "text" | "bigint";
  /** Whether the column has the type json in PostgreSQL; it is read and written as text. */
  isJson: boolean;
  write(value: T): H;
  read(held: H): T;
};

/**
 * One column. `member` is its name in the record; a question mark says that it may be absent, which is null in the row.
 * `origin.iss` is a member of a member, and `*` the whole record.
 */
type Column<M extends string = string, T = unknown, H extends Held = Held> = Form<T, H> & {
  member: M;
  /** The parts of `member`: before the period, and behind it without the question mark. */
  outer: string;
  inner: string | undefined;
  isOptional: boolean;
};

export type Columns = Readonly<Record<string, Column>>;

const columnOf =
  <T, H extends Held>(form: Form<T, H>) =>
  <const M extends string>(member: M): Column<M, T, H> => {
    const [outer = "", inner] = member.replace("?", "").split(".");
    return { ...form, member, outer, inner, isOptional: member.endsWith("?") };
  };

function encodable(value: string): string {
  if (!isEncodable(value)) throw new Error("a text cannot be stored");
  return value;
}

function safe(value: number): number {
  if (!Number.isSafeInteger(value)) throw new Error("a time or a count is not a whole number");
  return value;
}

/** Returns the digest, which needs no escape in JSON because it is base64url; throws for another text. */
function plain(key: string): string {
  if (!/^[\w-]+$/.test(key)) throw new Error("a key is not in base64url");
  return key;
}

const itself = <T>(held: T): T => held;

export const asText = columnOf<string, string>({
  type: "text",
  isJson: false,
  write: encodable,
  read: itself,
});
/** A digest by which a row is looked up. */
export const asKey = columnOf<string, string>({ type: "text", isJson: false, write: plain, read: itself });
export const asInteger = columnOf<number, number>({
  type: "bigint",
  isJson: false,
  write: safe,
  read: itself,
});
export const asFlag = columnOf<boolean, number>({
  type: "bigint",
  isJson: false,
  write: Number,
  read: Boolean,
});
/** A value as JSON, which can escape every character that a column of text refuses. */
export const asJson = columnOf<unknown, string>({
  type: "text",
  isJson: true,
  write: JSON.stringify,
  read: JSON.parse,
});
/** JSON in a column of type text, for values into which no statement looks. */
export const asJsonText = columnOf<unknown, string>({
  type: "text",
  isJson: false,
  write: JSON.stringify,
  read: JSON.parse,
});
/** A list of texts as JSON, out of which statements take the texts. */
export const asTexts = columnOf<readonly string[], string>({
  type: "text",
  isJson: true,
  write: (list) => JSON.stringify(list.map(encodable)),
  read: JSON.parse,
});
/** Ending keys as one object, each with its time. Rows of a version that knew no keys have none. */
export const asEndingKeys = columnOf<readonly EndingKey[], string>({
  type: "text",
  isJson: true,
  write(keys) {
    // The list of a token is written twice: in its row, and in the guard that none of them is ended.
    if (keys !== written.keys) written = { keys, text: keysText(keys) };
    return written.text;
  },
  read(held) {
    const members: readonly unknown[] = JSON.parse(`[${held.slice(1, -1).replaceAll(":", ",")}]`);
    const keys: EndingKey[] = [];
    for (let at = 0; at < members.length; at += 2)
      keys.push({ key: String(members[at]), sinceMs: Number(members[at + 1]) });
    return keys;
  },
});

let written: { keys: readonly EndingKey[]; text: string } = { keys: [], text: "{}" };

/** Neither way makes an object, because one with digests as names would have a new shape for each token. */
const keysText = (keys: readonly EndingKey[]): string =>
  `{${keys.map(({ key, sinceMs }) => `"${plain(key)}":${safe(sinceMs)}`).join()}}`;

/** The record as JSON, without these members. It comes first in a table, because the other columns are newer. */
export const asRecordWithout = (...members: readonly string[]): Column<"*", object, string> =>
  columnOf<object, string>({
    type: "text",
    isJson: false,
    write: (record) =>
      JSON.stringify(Object.fromEntries(Object.entries(record).filter(([name]) => !members.includes(name)))),
    read: JSON.parse,
  })("*");

// --- types ------------------------------------------------------------------------------------------------------

type Union<T> = T extends unknown ? (one: T) => void : never;
/** An object with the members of each of these. */
type All<T> = Union<T> extends (all: infer A) => void ? A : never;

type MemberOf<M, T> = M extends "*"
  ? object
  : M extends `${infer A}.${infer B}`
    ? { [K in A]: { [K in B]: T } }
    : M extends `${infer A}?`
      ? { [K in A]?: T | undefined }
      : { [K in M & string]: T };

/** The record that these columns hold. */
export type RecordOf<C extends Columns> = All<
  { [N in keyof C]: C[N] extends Column<infer M, infer T, infer _> ? MemberOf<M, T> : never }[keyof C]
>;

export type RowOf<C extends Columns> = {
  -readonly [N in keyof C]: C[N] extends Column<infer M, infer _, infer H>
    ? H | (M extends `${string}?` ? null : never)
    : never;
};

type NameOf<M> = M extends `${infer A}.${string}` ? A : M extends `${infer A}?` ? A : M;
type NamesIn<C extends Columns> = { [N in keyof C]: NameOf<C[N]["member"]> }[keyof C];

/** Demands nothing if the columns hold every member of the record; else the type names those that they lack. */
type Complete<R, C extends Columns> =
  "*" extends NamesIn<C>
    ? unknown
    : [Exclude<keyof R, NamesIn<C>>] extends [never]
      ? unknown
      : { "members without a column": Exclude<keyof R, NamesIn<C>> };

/** A table with its columns, or some of them, and the record that they hold. */
export type Table<R, C extends Columns = Columns> = {
  readonly name: string;
  readonly columns: C;
  readonly holds?: R;
};

/** Makes a table; it compiles only if the columns hold every member of the record. */
export const tableOf =
  <R>() =>
  <const C extends Columns>(
    name: string,
    columns: C & Complete<R, C> & (R extends RecordOf<C> ? unknown : { "not as in": R }),
  ): Table<R, C> => ({ name, columns });

// --- conversion -------------------------------------------------------------------------------------------------

type Loose = Record<string, unknown>;

/** The values of a row, in the order of its columns. */
export type RowValues = readonly (Held | null)[];

/** Writes the members of the record into the values of a row. */
export function toValues(columns: readonly Column[], record: unknown): RowValues {
  const from = record as Loose;
  return columns.map(({ member, outer, inner, isOptional, write }) => {
    const value = member === "*" ? from : inner === undefined ? from[outer] : (from[outer] as Loose)[inner];
    if (value !== undefined) return write(value);
    // A guard would compare nothing, and hold.
    if (!isOptional) throw new Error(`a record has no ${member}`);
    return null;
  });
}

/** The same values by the names of the columns, added to what the row has already. */
export function named<R extends object>(row: R, names: readonly string[], values: RowValues): R {
  let place = 0;
  for (const name of names) (row as Loose)[name] = values[place++] ?? null;
  return row;
}

/** Writes the members of the record into a row. */
export function toRow<C extends Columns>(columns: C, record: RecordOf<C>): RowOf<C> {
  return named({}, Object.keys(columns), toValues(Object.values(columns), record)) as RowOf<C>;
}

const known = new WeakMap<Columns, readonly [name: string, column: Column][]>();

function listed(columns: Columns): readonly [name: string, column: Column][] {
  const list = known.get(columns) ?? Object.entries(columns);
  known.set(columns, list);
  return list;
}

/** Reads a record from a row; a member is absent if its column is null or was not selected. */
export function fromRow<R, C extends Columns>({ columns }: Table<R, C>, row: RowOf<C>): R {
  const record: Loose = {};
  for (const [name, { member, outer, inner, read }] of listed(columns)) {
    const held: Held | null | undefined = row[name];
    if (held === null || held === undefined) continue;
    const value = read(held);
    if (member === "*") Object.assign(record, value);
    else if (inner === undefined) record[outer] = value;
    else {
      record[outer] ??= {};
      (record[outer] as Loose)[inner] = value;
    }
  }
  return record as R;
}

/** Selects some columns of a table. */
export function pick<C extends Columns, N extends keyof C>(
  { columns }: Table<unknown, C>,
  ...names: readonly N[]
): Pick<C, N> {
  return Object.fromEntries(names.map((name) => [name, columns[name]])) as Pick<C, N>;
}

/** The statement that inserts one row, whose values have the names of the columns. */
export function insertInto({ name, columns }: Table<unknown>): string {
  const names = Object.keys(columns);
  return `insert into ${name} (${names.join(", ")}) values (${names.map((one) => `:${one}`).join(", ")})`;
}

/** The names and values of a JSON object with all columns; `cast` turns a column of type json into text. */
export const pairsOf = ({ columns }: Table<unknown>, alias: string, cast = ""): string =>
  Object.entries(columns)
    .map(([name, { isJson }]) => `'${name}', ${alias}${name}${isJson ? cast : ""}`)
    .join(", ");

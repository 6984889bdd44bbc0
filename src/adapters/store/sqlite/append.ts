/** Writes the journal on node:sqlite: the guards and writes of a batch in one transaction, all or nothing. */
import type { DatabaseSync } from "node:sqlite";
import type { RowValues } from "../columns.ts";
import { type JournalRow, LISTS, type ListName, rowsOf } from "../journal-rows.ts";
import { GUARDS, type JournalGuard, type JournalWrite, WRITES } from "../journal-statements.ts";
import { type GuardFailure, LogConflict, type StoreEntry } from "../store.ts";
import { isKeyTaken } from "./database.ts";
import { positioned } from "./engine.ts";

type Append = (batch: readonly StoreEntry[]) => readonly GuardFailure[];

/** The returned function writes one batch and has to run inside a transaction, under the write lock of the file. */
export function appendOn(db: DatabaseSync): Append {
  const asked = GUARDS.map((guard) => ({
    ...guard,
    ...failingOn(db, guard),
    nameAt: placeOf(guard.list, "guard"),
  }));
  const written = WRITES.map((write) => ({ ...write, ...prepareFor(db, write.list, textOf(write)) }));
  return (batch) => {
    const rows = rowsOf(batch);
    const failures = new Map<string, GuardFailure>();
    for (const { list, guard, failing, nameAt } of asked) {
      if (rows[list].length === 0) continue;
      for (const { entry, values } of failing(rows[list])) {
        const name = guard ?? (values[nameAt] as GuardFailure["guard"]);
        if (name === "gap") throw new LogConflict("the record before is missing");
        failures.set(`${entry} ${name}`, { entry, guard: name });
      }
    }
    if (failures.size > 0) return [...failures.values()].sort((a, b) => a.entry - b.entry);
    for (const { list, run } of written) {
      for (const { values } of rows[list]) {
        try {
          run(values);
        } catch (error) {
          if (list !== "event" || !isKeyTaken(error)) throw error;
          const [log, seq] = ["log", "seq"].map((name) => values[placeOf(list, name)]);
          throw new LogConflict(`the log ${log} already has a record ${seq}`);
        }
      }
    }
    return [];
  };
}

const placeOf = (list: ListName, column: string): number => Object.keys(LISTS[list].columns).indexOf(column);

/** Takes the values of a row as they are in the list. */
function prepareFor(db: DatabaseSync, list: ListName, named: string) {
  const { statement, names } = positioned(db, named);
  const places = names.map((name) => placeOf(list, name));
  if (places.includes(-1)) throw new Error(`${list} has not all of ${names}`);
  const isWhole = places.length === LISTS[list].inOrder.length && places.every((place, at) => place === at);
  const inOrder = isWhole
    ? (values: RowValues) => values
    : (values: RowValues) => places.map((place) => values[place] ?? null);
  return {
    isFound: (values: RowValues): boolean => statement.get(...inOrder(values)) !== undefined,
    run: (values: RowValues): void => void statement.run(...inOrder(values)),
  };
}

/** Makes what finds the rows of a list for which the guard fails. */
function failingOn(
  db: DatabaseSync,
  guard: JournalGuard,
): { failing: (rows: readonly JournalRow[]) => readonly JournalRow[] } {
  if ("endedBy" in guard) return { failing: endedOn(db, placeOf(guard.list, guard.endedBy)) };
  const { isFound } = prepareFor(db, guard.list, `select 1 where ${conditionOf(guard)}`);
  return { failing: (rows) => rows.filter(({ values }) => isFound(values)) };
}

/** Looks for the keys of all rows at once, and for those of each only if one is ended; they are in this place. */
function endedOn(db: DatabaseSync, place: number) {
  const ended = db.prepare(`select 1 from json_each(?) k
    where (select true from ending where key = k.key and cut_off >= k.value limit 1)`);
  const keysOf = ({ values }: JournalRow): string => String(values[place]);
  return (rows: readonly JournalRow[]): readonly JournalRow[] => {
    const members = rows.map((row) => keysOf(row).slice(1, -1)).filter((list) => list !== "");
    if (ended.get(`{${members.join()}}`) === undefined) return [];
    return rows.filter((row) => ended.get(keysOf(row)) !== undefined);
  };
}

function conditionOf(guard: Exclude<JournalGuard, { endedBy: string }>): string {
  if ("fails" in guard) return guard.fails;
  const { table, key, where } = guard;
  return `(select true from ${table} where ${key} = :${key} and ${where}) is null`;
}

function textOf(write: JournalWrite): string {
  if ("into" in write) {
    const { list, into, made = {}, where = "true", conflict = "" } = write;
    const stored = Object.keys(LISTS[list].stored);
    const names = [...stored, ...Object.keys(made)];
    const values = [...stored.map((name) => `:${name}`), ...Object.values(made)];
    return `insert into ${into} (${names.join()}) select ${values.join()} where ${where} ${conflict}`;
  }
  const { table, key, set } = write;
  const values = Object.entries(set ?? {}).map(([name, value]) => `${name} = ${value}`);
  const begin = set === undefined ? `delete from ${table} as t` : `update ${table} as t set ${values.join()}`;
  const those =
    "found" in write
      ? `(${key.join()}) in (select ${key.join()} from ${table} where ${write.found})`
      : `${key.map((name) => `t.${name} = :${name}`).join(" and ")} and (${write.where ?? "true"})`;
  return `${begin} where ${those}`;
}

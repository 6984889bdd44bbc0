/** Writes the journal on node:sqlite: the guards and writes of a batch in one transaction, all or nothing. */
import type { DatabaseSync } from "node:sqlite";
import type { JournalRow } from "../journal-rows.ts";
import { LISTS, rowsOf } from "../journal-rows.ts";
import type { JournalGuard, JournalWrite } from "../journal-statements.ts";
import { GUARDS, WRITES } from "../journal-statements.ts";
import type { GuardFailure, StoreEntry } from "../store.ts";
import { LogConflict } from "../store.ts";
import { isKeyTaken } from "./database.ts";
import { prepareOn } from "./engine.ts";

type Append = (batch: readonly StoreEntry[]) => readonly GuardFailure[];

/** The returned function writes one batch and has to run inside a transaction, under the write lock of the file. */
export function appendOn(db: DatabaseSync): Append {
  const asked = GUARDS.map((guard) => ({ ...guard, failing: failingOn(db, guard) }));
  const written = WRITES.map((write) => ({ ...write, ...prepareOn(db, textOf(write)) }));
  return (batch) => {
    const rows = rowsOf(batch);
    const failures = new Map<string, GuardFailure>();
    for (const { list, guard, failing } of asked) {
      if (rows[list].length === 0) continue;
      for (const row of failing(rows[list])) {
        const { entry } = row;
        const name = guard ?? (row.guard as GuardFailure["guard"]);
        if (name === "gap") throw new LogConflict("the record before is missing");
        failures.set(`${entry} ${name}`, { entry, guard: name });
      }
    }
    if (failures.size > 0) return [...failures.values()].sort((a, b) => a.entry - b.entry);
    for (const { list, run } of written) {
      for (const row of rows[list]) {
        try {
          run(row);
        } catch (error) {
          if (list !== "event" || !isKeyTaken(error)) throw error;
          throw new LogConflict(`the log ${row.log} already has a record ${row.seq}`);
        }
      }
    }
    return [];
  };
}

/** Makes what finds the rows of a list for which the guard fails. */
function failingOn(
  db: DatabaseSync,
  guard: JournalGuard,
): (rows: readonly JournalRow[]) => readonly JournalRow[] {
  if ("fails" in guard && guard.by !== undefined) return failingPairsOn(db, guard.fails, guard.by);
  const { get } = prepareOn(db, `select 1 where ${conditionOf(guard)}`);
  return (rows) => rows.filter((row) => get(row) !== undefined);
}

/** Makes the same as one statement, which gets an object with a member for each row. */
function failingPairsOn(db: DatabaseSync, fails: string, [key, number]: readonly [string, string]) {
  const condition = fails.replaceAll(`:${key}`, "i.key").replaceAll(`:${number}`, "i.value");
  const { all } = prepareOn(db, `select i.key, i.value from json_each(:pairs) i where ${condition}`);
  return (rows: readonly JournalRow[]): readonly JournalRow[] => {
    const pairOf = (row: JournalRow): string => `"${row[key]}":${row[number]}`;
    const failed = all({ pairs: `{${rows.map(pairOf).join()}}` });
    if (failed.length === 0) return [];
    const pairs = new Set(failed.map((one) => `"${one.key}":${one.value}`));
    return rows.filter((row) => pairs.has(pairOf(row)));
  };
}

function conditionOf(guard: JournalGuard): string {
  if ("fails" in guard) return guard.fails;
  const { table, key, where } = guard;
  return `(select true from ${table} where ${key} = :${key} and ${where}) is null`;
}

function textOf(write: JournalWrite): string {
  if ("into" in write) {
    const { list, into, where = "true", conflict = "" } = write;
    const names = Object.keys(LISTS[list].stored);
    return `insert into ${into} (${names.join()}) select ${names.map((name) => `:${name}`).join()} where ${where} ${conflict}`;
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

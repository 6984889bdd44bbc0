/** Writes the journal on PostgreSQL by the one statement of record.ts. */
import { named } from "../columns.ts";
import { type JournalRow, LISTS, type ListName, rowsOf, type StatementPart } from "../journal-rows.ts";
import { type GuardFailure, LogConflict, type StoreEntry } from "../store.ts";
import { runPrepared } from "./engine.ts";
import { untilFree } from "./faults.ts";
import type { Call } from "./pool.ts";
import { combinationOf, listsOf, partsOf, recordStatement } from "./record.ts";

/**
 * Guards and writes see the same snapshot. A conflict with what another instance commits after it violates a unique
 * key; then the statement runs again, and its guards name the conflict.
 */
export async function appendBatch(
  call: Call,
  batch: readonly StoreEntry[],
): Promise<readonly GuardFailure[]> {
  const rows = rowsOf(batch);
  const parts = combinationOf(partsOf(rows));
  const lists = listsOf(parts).map((name) => toJson(name, rows[name]));
  return call((sql) =>
    untilFree(async () => failuresOf((await runPrepared<Found>(sql, statementOf(parts), lists)).rows)),
  );
}

export function toJson(list: ListName, rows: readonly JournalRow[]): string {
  const names = Object.keys(LISTS[list].columns);
  return JSON.stringify(rows.map(({ entry, values }) => named({ entry }, names, values)));
}

type Found = GuardFailure | { entry: number; guard: "gap" };

const failuresOf = (found: readonly Found[]): readonly GuardFailure[] =>
  found.map(({ entry, guard }) => {
    if (guard === "gap") throw new LogConflict("the record before is missing");
    return { entry, guard };
  });

const composed = new Map<readonly StatementPart[], string>();

function statementOf(parts: readonly StatementPart[]): string {
  const known = composed.get(parts) ?? recordStatement(parts);
  composed.set(parts, known);
  return known;
}

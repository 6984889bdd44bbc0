/** Changes of signing keys on node:sqlite, in the transaction of their batch. */
import type { DatabaseSync } from "node:sqlite";
import type { KeyChangeRow } from "../rows.ts";
import { toKeyChangeRow } from "../rows.ts";
import type { KeyChange } from "../store.ts";

export type KeyChanges = {
  /** Whether every key is as the change expects it. */
  arePossible(changes: readonly KeyChange[]): boolean;
  write(changes: readonly KeyChange[]): void;
};

export function keyChangesOn(db: DatabaseSync): KeyChanges {
  const current = db.prepare(
    "select 1 from signing_key where kid = :kid and state = :from_state and (:was is null or private_jwe = :was)",
  );
  const remove = db.prepare("delete from signing_key where kid = ?");
  const change = db.prepare(
    `update signing_key set state = :to_state, since = coalesce(:since, since),
       replace_at = coalesce(:replace_at, replace_at), private_jwe = coalesce(:private_jwe, private_jwe)
     where kid = :kid`,
  );
  const isCurrent = ({ kid, from_state, was }: KeyChangeRow): boolean =>
    current.get({ kid, from_state, was }) !== undefined;
  return {
    arePossible: (changes) => changes.map(toKeyChangeRow).every(isCurrent),
    write(changes) {
      // The one that becomes active comes last, because at most one key of its kind is.
      const rows = changes.map(toKeyChangeRow);
      for (const row of rows.toSorted(
        (a, b) => Number(a.to_state === "active") - Number(b.to_state === "active"),
      )) {
        const { from_state: _from, was: _was, ...values } = row;
        if (values.to_state === null) remove.run(row.kid);
        else change.run(values);
      }
    },
  };
}

/** The rows of sign-in and authorization on node:sqlite. */
import type { DatabaseSync } from "node:sqlite";
import { isEncodable } from "../encoding.ts";
import type { ShortLivedRow } from "../short-lived-rows.ts";
import { addedBy, fromShortLivedRow, removedBy, toShortLivedRow } from "../short-lived-rows.ts";
import type { ShortLivedStore, StoreEntry } from "../store.ts";
import type { Database } from "./database.ts";

const INSERT = `insert into short_lived (kind, key, version, browser, body, expires_at)
  values (:kind, :key, :version, :browser, :body, :expires_at)`;

/** The rows of an entry of the journal, to be written inside its transaction. */
export function rowChangesOn(db: DatabaseSync) {
  const known = db.prepare("select 1 from short_lived where kind = ? and key = ?");
  const insert = db.prepare(INSERT);
  const drop = db.prepare(
    `delete from short_lived where kind = :kind and key in (
       select key from short_lived where kind = :kind and browser = :holder
       order by expires_at desc, key limit -1 offset :most
     )`,
  );
  const remove = db.prepare("delete from short_lived where kind = ? and key = ?");
  return {
    fails: ({ rows }: Pick<StoreEntry, "rows">): boolean =>
      addedBy(rows).some(({ add }) => known.get(add.kind, add.key) !== undefined),
    write({ rows }: Pick<StoreEntry, "rows">): void {
      for (const { remove: kind, key } of removedBy(rows)) remove.run(kind, key);
      for (const { add, most } of addedBy(rows)) {
        const { kind, holder } = add;
        if (holder !== undefined && most !== undefined) drop.run({ kind, holder, most: most - 1 });
        insert.run(toShortLivedRow(add));
      }
    },
  };
}

export function sqliteShortLived({ db, run, write, remove }: Database): ShortLivedStore {
  const insert = db.prepare(INSERT);
  const select = db.prepare("select * from short_lived where kind = ? and key = ? and expires_at > ?");
  const replace = db.prepare(
    `update short_lived
     set version = :version, browser = :browser, body = :body, expires_at = :expires_at
     where kind = :kind and key = :key and version = :version - 1`,
  );
  // Skips from kind to kind along the index, which begins with the kind, because rows that live are many.
  const sweep = db.prepare(
    `with recursive name (kind) as (
       select min(kind) from short_lived
       union all
       select (select min(s.kind) from short_lived s where s.kind > n.kind) from name n where n.kind is not null
     )
     delete from short_lived where (kind, key) in (
       select s.kind, s.key from name n cross join short_lived s indexed by short_lived_by_expiry
       where s.kind = n.kind and s.expires_at < ? limit ?
     )`,
  );
  return {
    add: (row) => write(() => void insert.run(toShortLivedRow(row))),
    find: async (kind, key, nowSeconds) => {
      if (!isEncodable(key)) return undefined;
      const row = await run(() => select.get(kind, key, nowSeconds));
      return row && fromShortLivedRow(kind, row as ShortLivedRow);
    },
    replace: (row) => run(() => replace.run(toShortLivedRow(row)).changes === 1),
    sweep: (beforeSeconds, limit) => remove(() => Number(sweep.run(beforeSeconds, limit).changes)),
  };
}

/** The rows of sign-in and authorization on node:sqlite. */
import { isEncodable } from "../columns.ts";
import type { ShortLivedRow } from "../short-lived-rows.ts";
import { fromShortLivedRow, toShortLivedRow } from "../short-lived-rows.ts";
import type { ShortLivedStore } from "../store.ts";
import type { Database } from "./database.ts";

const INSERT = `insert into short_lived (kind, key, version, browser, body, expires_at)
  values (:kind, :key, :version, :browser, :body, :expires_at)`;

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

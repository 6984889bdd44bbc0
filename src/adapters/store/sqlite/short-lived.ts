/** The rows of sign-in and authorization on node:sqlite. */

import { isEncodable } from "../encoding.ts";
import type { ShortLivedRow } from "../short-lived-rows.ts";
import { fromShortLivedRow, toShortLivedRow } from "../short-lived-rows.ts";
import type { ShortLivedStore } from "../store.ts";
import type { Database } from "./database.ts";

export function sqliteShortLived({ db, run, write, remove }: Database): ShortLivedStore {
  const count = db.prepare(
    "select count(*) as rows from (select 1 from short_lived where kind = ? and expires_at > ? limit ?)",
  );
  const drop = db.prepare(
    `delete from short_lived where kind = :kind and key in (
       select key from short_lived where kind = :kind and browser = :browser
       order by expires_at desc, key limit -1 offset :kept
     )`,
  );
  const insert = db.prepare(
    `insert into short_lived (kind, key, version, browser, body, expires_at)
     values (:kind, :key, :version, :browser, :body, :expires_at)`,
  );
  const select = db.prepare("select * from short_lived where kind = ? and key = ? and expires_at > ?");
  const replace = db.prepare(
    `update short_lived
     set version = :version, browser = :browser, body = :body, expires_at = :expires_at
     where kind = :kind and key = :key and version = :version - 1`,
  );
  const removeOne = db.prepare("delete from short_lived where kind = ? and key = ?");
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
    add: (row, { perBrowser, inAll, nowSeconds }) =>
      write(() => {
        const found = Number(count.get(row.kind, nowSeconds, inAll)?.rows);
        if (found >= inAll) return false;
        const { browser } = row;
        if (browser !== undefined) drop.run({ kind: row.kind, browser, kept: perBrowser - 1 });
        insert.run(toShortLivedRow(row));
        return true;
      }),
    find: async (kind, key, nowSeconds) => {
      if (!isEncodable(key)) return undefined;
      const row = await run(() => select.get(kind, key, nowSeconds));
      return row && fromShortLivedRow(kind, row as ShortLivedRow);
    },
    replace: (row) => run(() => replace.run(toShortLivedRow(row)).changes === 1),
    remove: async (kind, key) => void (await run(() => removeOne.run(kind, key))),
    sweep: (beforeSeconds, limit) => remove(() => Number(sweep.run(beforeSeconds, limit).changes)),
  };
}

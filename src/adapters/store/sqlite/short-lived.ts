/** The rows of sign-in and authorization on node:sqlite. */

import { isEncodable } from "../encoding.ts";
import type { ShortLivedRow } from "../short-lived-rows.ts";
import { fromShortLivedRow, toShortLivedRow } from "../short-lived-rows.ts";
import type { ShortLivedStore } from "../store.ts";
import type { Database } from "./database.ts";

export function sqliteShortLived({ db, run, write }: Database): ShortLivedStore {
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
  const remove = db.prepare("delete from short_lived where kind = ? and key = ?");
  const sweep = db.prepare(
    `delete from short_lived where (kind, key) in (
       select kind, key from short_lived where expires_at < ? limit ?
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
    remove: async (kind, key) => void (await run(() => remove.run(kind, key))),
    sweep: (beforeSeconds, limit) => run(() => Number(sweep.run(beforeSeconds, limit).changes)),
  };
}

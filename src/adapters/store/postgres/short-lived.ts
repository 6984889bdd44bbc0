/** The rows of sign-in and authorization on PostgreSQL, each unit of work one statement. */
import { isEncodable } from "../columns.ts";
import type { ShortLivedRow } from "../short-lived-rows.ts";
import { fromShortLivedRow, toShortLivedRow } from "../short-lived-rows.ts";
import type { ShortLivedStore } from "../store.ts";
import type { Call } from "./pool.ts";

export function postgresShortLived(call: Call): ShortLivedStore {
  return {
    add: async (record) => {
      const { kind, key, version, browser, body, expires_at } = toShortLivedRow(record);
      await call(
        (sql) => sql`
          insert into short_lived (kind, key, version, browser, body, expires_at)
          values (${kind}, ${key}, ${version}, ${browser}, ${body}, ${expires_at})`,
      );
    },
    find: async (kind, key, nowSeconds) => {
      if (!isEncodable(key)) return undefined;
      const [row] = await call(
        (sql) => sql<ShortLivedRow[]>`
          select kind, key, version, browser, body, expires_at from short_lived
          where kind = ${kind} and key = ${key} and expires_at > ${nowSeconds}`,
      );
      return row && fromShortLivedRow(kind, row);
    },
    replace: async (record) => {
      const { kind, key, version, browser, body, expires_at } = toShortLivedRow(record);
      const replaced = await call(
        (sql) => sql`
          update short_lived
          set version = ${version}, browser = ${browser}, body = ${body}, expires_at = ${expires_at}
          where kind = ${kind} and key = ${key} and version = ${version - 1}`,
      );
      return replaced.count === 1;
    },
    sweep: async (beforeSeconds, limit) => {
      const removed = await call(
        (sql) => sql`
          delete from short_lived where ctid = any(array(
            select ctid from short_lived where expires_at < ${beforeSeconds} limit ${limit} for update skip locked))`,
      );
      return removed.count;
    },
  };
}

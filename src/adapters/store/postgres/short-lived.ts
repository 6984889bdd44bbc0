/** The rows of sign-in and authorization on PostgreSQL, each unit of work one statement. */
import { isEncodable } from "../encoding.ts";
import type { ShortLivedRow } from "../short-lived-rows.ts";
import { fromShortLivedRow, toShortLivedRow } from "../short-lived-rows.ts";
import type { ShortLivedStore } from "../store.ts";
import type { Call } from "./pool.ts";

export function postgresShortLived(call: Call): ShortLivedStore {
  return {
    add: async (record, { perBrowser, inAll, nowSeconds }) => {
      const { kind, key, version, browser, body, expires_at } = toShortLivedRow(record);
      // Instances that add at the same time may together exceed the caps by a few.
      const added = await call(
        (sql) => sql`
          with
            room as (
              select count(*) < ${inAll} as is_left from (
                select from short_lived where kind = ${kind} and expires_at > ${nowSeconds} limit ${inAll}
              ) rows
            ),
            dropped as (
              delete from short_lived where kind = ${kind} and (select is_left from room) and key = any(array(
                select key from short_lived where kind = ${kind} and browser = ${browser}
                order by expires_at desc, key offset ${perBrowser - 1}
              ))
            )
          insert into short_lived (kind, key, version, browser, body, expires_at)
          select ${kind}, ${key}, ${version}::bigint, ${browser}, ${body}, ${expires_at}::bigint
          from room where is_left`,
      );
      return added.count === 1;
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
    remove: async (kind, key) => {
      await call((sql) => sql`delete from short_lived where kind = ${kind} and key = ${key}`);
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

/** The rows of sign-in and authorization on PostgreSQL, each unit of work one statement. */
import { isEncodable } from "../encoding.ts";
import type { ShortLivedRow } from "../short-lived-rows.ts";
import { addedBy, fromShortLivedRow, removedBy, toShortLivedRow } from "../short-lived-rows.ts";
import type { ShortLivedStore, StoreEntry } from "../store.ts";
import type { Call, Sql } from "./pool.ts";

/** Rows of the entries of a batch, as JSON. */
export type RowChangeRows = Record<"added" | "removed", string>;

export function toRowChangeRows(batch: readonly StoreEntry[]): RowChangeRows | undefined {
  const added = batch.flatMap(({ rows }, entry) =>
    addedBy(rows).map(({ add, most = null }) => ({ entry, most, ...toShortLivedRow(add) })),
  );
  const removed = batch.flatMap(({ rows }) =>
    removedBy(rows).map(({ remove: kind, key }) => ({ kind, key })),
  );
  if (added.length + removed.length === 0) return undefined;
  return { added: JSON.stringify(added), removed: JSON.stringify(removed) };
}

export const rowsIn = (sql: Sql, { added, removed }: RowChangeRows) => sql`
  row_in as (
    select * from json_to_recordset(${added}::text::json) as r
      (entry int, most int, kind text, key text, version bigint, browser text, body text, expires_at bigint)
  ),
  row_gone as (select * from json_to_recordset(${removed}::text::json) as g (kind text, key text)),`;

export const rowsFailed = (sql: Sql) => sql`
  union
  select r.entry, 'row_new' from row_in r
    where (select true from short_lived s where s.kind = r.kind and s.key = r.key)`;

export const rowsOut = (sql: Sql) => sql`
  row_out as (
    insert into short_lived (kind, key, version, browser, body, expires_at)
    select kind, key, version, browser, body, expires_at from row_in where not exists (select from failed)
  ),
  -- By the key, under which a row is found that another instance renews at the same time; no two kinds share one.
  row_removed as (
    delete from short_lived
    where kind = any(array(select kind from row_gone)) and key = any(array(select key from row_gone))
      and not exists (select from failed)
  ),
  -- Skips locked rows, which another instance renews, or removes for the same reason.
  row_dropped as (
    delete from short_lived where ctid = any(array(
      select o.ctid from row_in r
      cross join lateral (
        select ctid from short_lived where kind = r.kind and browser = r.browser and r.most is not null
        order by expires_at desc, key offset r.most - 1 for update skip locked
      ) o
    )) and not exists (select from failed)
  ),`;

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

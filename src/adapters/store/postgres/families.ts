/** Families of refresh tokens on PostgreSQL: reading, and their part of the statement that writes the journal. */
import { isEncodable } from "../columns.ts";
import type { FoundByToken, FoundFamily } from "../family-rows.ts";
import { fromFamilyRow, fromFoundByToken } from "../family-rows.ts";
import type { FamilyRows } from "../store.ts";
import type { Call, Sql } from "./pool.ts";
import { firstEnding } from "./tokens.ts";

export function postgresFamilies(call: Call): FamilyRows {
  return {
    find: async (digest) => {
      if (!isEncodable(digest)) return undefined;
      const [row] = await call(
        (sql) => sql<FoundByToken[]>`
          select ${columns(sql)}, t.generation as presented, ${nowMs(sql)} - f.rotated_ms as ago_ms, f.retries, f.sealed,
            f.rotated_by
          from refresh_token t cross join lateral (select * from refresh_family where id = t.family_id limit 1) f
          where t.digest = ${digest}`,
      );
      return row && fromFoundByToken(row);
    },
    list: async ({ iss, sub }) => {
      if (!isEncodable(iss) || !isEncodable(sub)) return [];
      const rows = await call(
        (sql) => sql<FoundFamily[]>`
          select ${columns(sql)} from refresh_family f
          where f.origin_iss = ${iss} and f.origin_sub = ${sub} order by f.used_at desc, f.id`,
      );
      return rows.map(fromFamilyRow);
    },
    sweep: async (beforeSeconds, limit) => {
      const tokens = await call(
        (sql) => sql`
          delete from refresh_token where ctid = any(array(
            select t.ctid from refresh_family f
            cross join lateral (select ctid from refresh_token where family_id = f.id for update skip locked) t
            where f.ends_at < ${beforeSeconds} limit ${limit}))`,
      );
      const families = await call(
        (sql) => sql`
          delete from refresh_family where ctid = any(array(
            select f.ctid from (
              select ctid, id from refresh_family where ends_at < ${beforeSeconds} limit ${limit}
              for update skip locked
            ) f where (select true from refresh_token t where t.family_id = f.id limit 1) is null))`,
      );
      return tokens.count + families.count;
    },
    forgetSuccessors: async (windowMs, limit) => {
      const forgotten = await call(
        (sql) => sql`
          update refresh_family set sealed = null, rotated_by = null where ctid = any(array(
            select ctid from refresh_family where sealed is not null
              and rotated_ms < (select ${nowMs(sql)} - ${windowMs}::bigint)
            limit ${limit} for update skip locked))`,
      );
      return forgotten.count;
    },
  };
}

/** Milliseconds since 1970, by the clock of the database, which is one for all instances. */
const nowMs = (sql: Sql) => sql`(extract(epoch from clock_timestamp()) * 1000)::bigint`;

const columns = (sql: Sql) => sql`
  f.id, f.client_id, f.origin_iss, f.origin_sub, f.generation, f.used_at, f.idle_ends_at, f.ends_at,
  f.ending_keys::text as ending_keys, f.body, f.elsewhere, (
    select json_build_object('event_id', e.event_id, 'at_ms', e.at_ms, 'reason', e.reason)::text
    ${firstEnding(sql, sql`f.ending_keys`)}
  ) as ended`;

/** Families of refresh tokens on PostgreSQL: reading, and their part of the statement that writes the journal. */
import type { FamilyChange } from "../../../records.ts";
import { isEncodable } from "../encoding.ts";
import type { FoundByToken, FoundFamily } from "../family-rows.ts";
import { fromFamilyRow, fromFoundByToken, toFamilyRow, toFamilyUseRow } from "../family-rows.ts";
import type { FamilyRows, StoreEntry } from "../store.ts";
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

// --- changes ----------------------------------------------------------------------------------------------------

export type FamilyChangeRows = Record<"started" | "first" | "used", string>;

type Use = Extract<FamilyChange, { use: string }>;

export function toFamilyChangeRows(batch: readonly StoreEntry[]): FamilyChangeRows | undefined {
  const changes = batch.map(({ family }, entry) => ({ entry, family }));
  if (changes.every(({ family }) => family === undefined)) return undefined;
  const started = changes.flatMap(({ family }) => (family && "start" in family ? [family] : []));
  const used = changes.flatMap(({ entry, family }) =>
    family && "use" in family ? [{ entry, ...toFamilyUseRow(family satisfies Use) }] : [],
  );
  const first = started.map(({ start, digest }) => ({
    digest,
    family_id: start.id,
    generation: start.generation,
  }));
  return {
    started: JSON.stringify(started.map(({ start }) => toFamilyRow(start))),
    first: JSON.stringify(first),
    used: JSON.stringify(used),
  };
}

export const familiesIn = (sql: Sql, { started, first, used }: FamilyChangeRows) => sql`
  family_in as (
    select * from json_to_recordset(${started}::text::json) as f
      (id text, client_id text, origin_iss text, origin_sub text, generation bigint, used_at bigint,
       idle_ends_at bigint, ends_at bigint, ending_keys text, body text)
  ),
  first_in as (
    select * from json_to_recordset(${first}::text::json) as t (digest text, family_id text, generation bigint)
  ),
  use_in as (
    select * from json_to_recordset(${used}::text::json) as u
      (entry int, id text, current bigint, used_at bigint, idle_ends_at bigint, digest text, sealed text,
       rotated_by text, window_ms bigint, retries_max bigint, elsewhere bigint)
  ),
  -- REFRESH-D-4: locked, so that of two concurrent refreshes the second finds another generation; in the same order in every
  -- statement, so that two instances cannot deadlock.
  standing_family as (
    select u.entry from (select * from use_in order by id collate "C") u
    cross join lateral (
      select id from refresh_family f
      where f.id = u.id and f.generation = u.current
        and (u.window_ms is null or (f.retries < u.retries_max and ${nowMs(sql)} - f.rotated_ms <= u.window_ms))
        and f.elsewhere + u.elsewhere <= 1
      for update
    ) f
  ),`;

export const familiesFailed = (sql: Sql) => sql`
  union
  select u.entry, 'family_current' from use_in u
    where (select true from standing_family s where s.entry = u.entry) is null`;

export const familiesOut = (sql: Sql) => sql`
  family_out as (
    insert into refresh_family (id, client_id, origin_iss, origin_sub, generation, used_at, idle_ends_at, ends_at,
      ending_keys, body)
    select id, client_id, origin_iss, origin_sub, generation, used_at, idle_ends_at, ends_at, ending_keys::json, body
    from family_in where not exists (select from failed)
  ),
  refresh_token_out as (
    insert into refresh_token (digest, family_id, generation)
    select digest, family_id, generation from first_in where not exists (select from failed)
    union all
    select digest, id, current + 1 from use_in where digest is not null and not exists (select from failed)
  ),
  use_out as (
    update refresh_family f set (used_at, idle_ends_at, generation, rotated_ms, retries, elsewhere, sealed, rotated_by) = (
      select greatest(f.used_at, u.used_at),
        case when f.idle_ends_at is not null then greatest(f.idle_ends_at, u.idle_ends_at) end,
        case when u.digest is null then f.generation else f.generation + 1 end,
        case when u.digest is null then f.rotated_ms else ${nowMs(sql)} end,
        case when u.digest is not null then 0 when u.window_ms is null then f.retries else f.retries + 1 end,
        f.elsewhere + u.elsewhere,
        case when u.digest is null then f.sealed else u.sealed end,
        case when u.digest is null then f.rotated_by else u.rotated_by end
      from use_in u where u.id = f.id
    )
    where id = any(array(select id from use_in)) and not exists (select from failed)
  ),`;

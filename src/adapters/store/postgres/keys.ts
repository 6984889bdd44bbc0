/** Signing keys on PostgreSQL, and their parts of the one statement that writes the journal (append.ts). */
import type { SigningKeyRow } from "../rows.ts";
import { fromSigningKeyRow, toKeyChangeRow, toSigningKeyRow } from "../rows.ts";
import type { KeyRows, StoreEntry } from "../store.ts";
import type { Call, Sql } from "./pool.ts";

export function postgresKeys(call: Call): KeyRows {
  return {
    list: async () => {
      const rows = await call(
        (sql) => sql<SigningKeyRow[]>`select * from signing_key order by created_at, kid`,
      );
      return rows.map(fromSigningKeyRow);
    },
    insertIfNone: async (key) => {
      const row = toSigningKeyRow(key);
      const done = await call(
        (sql) => sql`
          insert into signing_key (kid, alg, purpose, state, public_jwk, private_jwe, created_at, since, replace_at,
            used_at)
          values (${row.kid}, ${row.alg}, ${row.purpose}, ${row.state}, ${row.public_jwk}, ${row.private_jwe},
            ${row.created_at}, ${row.since}, ${row.replace_at}, ${row.used_at})
          on conflict do nothing`,
      );
      return done.count === 1;
    },
    markUsed: async (kids, atSeconds) => {
      await call(
        (sql) => sql`
          update signing_key set used_at = ${atSeconds}
          where kid = any(array(select json_array_elements_text(${JSON.stringify(kids)}::text::json)))`,
      );
    },
  };
}

/** Undefined without any change of a key: then the statement leaves these parts out. */
export function toKeyRows(batch: readonly StoreEntry[]): string | undefined {
  const rows = batch.flatMap(({ keys = [] }, entry) =>
    keys.map((change) => ({ entry, ...toKeyChangeRow(change) })),
  );
  return rows.length === 0 ? undefined : JSON.stringify(rows);
}

/** Locked in one order, so that of two concurrent changes the second finds the key in another state. */
export const keysIn = (sql: Sql, rows: string) => sql`
      key_in as (
        select * from json_to_recordset(${rows}::text::json) as k
          (entry int, kid text, from_state text, was text, to_state text, since bigint, replace_at bigint,
           private_jwe text)
      ),
      standing_key as (
        select s.kid from (select * from key_in order by kid collate "C") k
        cross join lateral (
          select kid from signing_key
          where signing_key.kid = k.kid and state = k.from_state and (k.was is null or private_jwe = k.was)
          for update
        ) s
      ),`;

export const keysFailed = (sql: Sql) => sql`
        union
        select k.entry, 'key_current' from key_in k
          where (select true from standing_key s where s.kid = k.kid) is null`;

/** The one that becomes active is written when the others are, because at most one key of its kind is. */
export const keysOut = (sql: Sql) => sql`
      key_removed as (
        delete from signing_key
        where kid = any(array(select kid from key_in where to_state is null)) and not exists (select from failed)
        returning kid
      ),
      key_changed as (
        update signing_key s set ${values(sql)}
        from key_in k where s.kid = k.kid and k.to_state <> 'active' and not exists (select from failed)
        returning s.kid
      ),
      key_activated as (
        update signing_key s set ${values(sql)}
        from key_in k where s.kid = k.kid and k.to_state = 'active' and not exists (select from failed)
          and (select count(*) from key_removed) + (select count(*) from key_changed) >= 0
        returning s.kid
      ),`;

const values = (sql: Sql) => sql`
  state = k.to_state, since = coalesce(k.since, s.since), replace_at = coalesce(k.replace_at, s.replace_at),
  private_jwe = coalesce(k.private_jwe, s.private_jwe)`;

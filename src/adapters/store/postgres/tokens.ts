/** Tokens on PostgreSQL: the facts of one, and the tokens that an ending reaches. */
import { ENDING_STRETCH_MAX } from "../../../limits.ts";
import type { EndingReach, Facts } from "../../../ports.ts";
import type { EndedRow, TokenQueries } from "../token-facts.ts";
import { endingReach, tokenFacts } from "../token-facts.ts";
import type { Call, Sql } from "./pool.ts";

export function postgresTokenRows(call: Call): { token: Facts["token"]; endings: EndingReach } {
  const queries: TokenQueries = {
    rows: async (jtis) => {
      const rows = await call((sql) => findRows(sql, jtis));
      return rows.map(({ row }) => JSON.parse(row));
    },
    firstEnding: async (keys) => {
      const pairs = JSON.stringify(Object.fromEntries(keys.map(({ key, sinceMs }) => [key, sinceMs])));
      const [row] = await call(
        (sql) => sql<EndedRow[]>`select e.event_id, e.at_ms ${firstEnding(sql, sql`${pairs}::text::json`)}`,
      );
      return row;
    },
    stretch: ({ key, nowSeconds, afterJti = "" }) =>
      call(
        (sql) => sql<{ jti: string; may: boolean }[]>`
          select jti, expires_at > ${nowSeconds}
            and (ending_keys is null or position(${key} in ending_keys::text) > 0) as may
          from token where jti > ${afterJti} order by jti limit ${ENDING_STRETCH_MAX}`,
      ),
  };
  return { token: tokenFacts(queries), endings: endingReach(queries) };
}

/** Each key is looked up by itself, as in a guard. */
export const firstEnding = (sql: Sql, pairs: ReturnType<Sql>) => sql`
  from json_each_text(${pairs}) k
  cross join lateral (
    select event_id, at_ms, reason from ending
    where ending.key = k.key and ending.cut_off >= k.value::bigint order by at_ms limit 1
  ) e
  order by e.at_ms limit 1`;

/** Each row is a scalar subquery, which is a key look-up whatever the planner knows of the tables. */
const findRows = (sql: Sql, jtis: readonly string[]) => sql<{ row: string }[]>`
  with asked as (select json_array_elements_text(${JSON.stringify(jtis)}::text::json) as jti),
    wanted as (
      select jti, true as asked from asked
      union all
      select distinct a.value, false from asked q
      cross join lateral json_array_elements_text((select ancestors from token t where t.jti = q.jti)) a
    ),
    found as (
      select (
        select json_build_object('jti', t.jti, 'client_id', t.client_id, 'workload', t.workload,
          'subject', t.subject, 'origin_iss', t.origin_iss, 'origin_sub', t.origin_sub, 'audience', t.audience,
          'scope', t.scope, 'chain', t.chain::text, 'may_act', t.may_act::text, 'ancestors', t.ancestors::text,
          'rule_id', t.rule_id, 'consent_id', t.consent_id, 'confirmation', t.confirmation, 'issued_at', t.issued_at,
          'expires_at', t.expires_at, 'ending_keys', t.ending_keys::text,
          'consent', (
            select json_build_object('id', c.id, 'version', c.version, 'origin_iss', c.origin_iss,
              'origin_sub', c.origin_sub, 'actor', c.actor, 'targets', c.targets::text,
              'scopes', c.scopes::text, 'expires_at', c.expires_at, 'withdrawn_at', c.withdrawn_at)::text
            from consent c where c.id = t.consent_id),
          'ended', case when w.asked then (
            select json_build_object('event_id', e.event_id, 'at_ms', e.at_ms)::text
            ${firstEnding(sql, sql`t.ending_keys`)}) end)::text
        from token t where t.jti = w.jti
      ) as row
      from wanted w
    )
  select row from found where row is not null`;

/** Tokens on PostgreSQL: the facts of one, and the tokens that an ending reaches. */
import { ENDING_STRETCH_MAX } from "../../../limits/store.ts";
import type { EndingReach, Facts } from "../../../ports.ts";
import type { EndedRow, FoundToken, TokenQueries } from "../token-facts.ts";
import { endingReach, tokenFacts } from "../token-facts.ts";
import type { Call, Sql } from "./pool.ts";

export function postgresTokenRows(call: Call): { token: Facts["token"]; endings: EndingReach } {
  const queries: TokenQueries = {
    rows: (jtis) => call((sql) => findRows(sql, jtis)),
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
          from token where jti > ${afterJti} order by jti limit ${sql.unsafe(String(ENDING_STRETCH_MAX))}`,
      ),
  };
  return { token: tokenFacts(queries), endings: endingReach(queries) };
}

/**
 * The elements of a JSON array, by way of an array of PostgreSQL: it plans for 10 of these, which is about right, and for
 * 100 rows of a function on JSON. Three such functions, each within the other, made one token look like a million rows.
 */
export const elements = (sql: Sql, list: ReturnType<Sql>) =>
  sql`unnest(array(select json_array_elements_text(${list})))`;

/** Each key is looked up by itself, as in a guard. */
export const firstEnding = (sql: Sql, pairs: ReturnType<Sql>) => sql`
  from unnest(array(select (key, value) from json_each_text(${pairs}))) as k (key text, value text)
  cross join lateral (
    select event_id, at_ms, reason from ending
    where ending.key = k.key and ending.cut_off >= k.value::bigint order by at_ms limit 1
  ) e
  order by e.at_ms limit 1`;

/** Each token is looked up in a lateral subquery with a limit, which is a look-up by the key whatever the planner knows. */
function findRows(sql: Sql, jtis: readonly string[]) {
  const [first = ""] = jtis;
  // Nearly always it is one, and the planner is to know.
  const asked =
    jtis.length === 1 ? sql`${first}::text` : elements(sql, sql`${JSON.stringify(jtis)}::text::json`);
  return sql<FoundToken[]>`
    with own as (
      select t.*, (
        select json_build_object('event_id', e.event_id, 'at_ms', e.at_ms)::text
        ${firstEnding(sql, sql`t.ending_keys`)}
      ) as ended
      from (select ${asked} as jti) q
      cross join lateral (select * from token where token.jti = q.jti limit 1) t
    ),
    found as (
      select * from own
      union all
      select t.*, null from (
        select distinct a.jti from own cross join ${elements(sql, sql`own.ancestors`)} as a (jti)
      ) behind
      cross join lateral (select * from token where token.jti = behind.jti limit 1) t
    )
    select f.jti, f.client_id, f.workload, f.subject, f.origin_iss, f.origin_sub, f.audience, f.scope,
      f.chain::text as chain, f.may_act::text as may_act, f.ancestors::text as ancestors, f.rule_id, f.consent_id,
      f.confirmation, f.issued_at, f.expires_at, f.ending_keys::text as ending_keys, f.ended, (
        select json_build_object('id', c.id, 'version', c.version, 'origin_iss', c.origin_iss,
          'origin_sub', c.origin_sub, 'actor', c.actor, 'targets', c.targets::text,
          'scopes', c.scopes::text, 'expires_at', c.expires_at, 'withdrawn_at', c.withdrawn_at)::text
        from consent c where c.id = f.consent_id
      ) as consent
    from found f`;
}

/** How PostgreSQL finds tokens with those behind them, their consents and what ended them. */
import { pairsOf } from "../columns.ts";
import { STORED_CONSENT, TOKEN } from "../tables.ts";
import type { FindTokens } from "../token-facts.ts";
import { POSTGRES } from "./engine.ts";

/**
 * The elements of a JSON array, by way of an array of PostgreSQL: it plans for 10 of these, which is about right, and for
 * 100 rows of a function on JSON. Three such functions, each within the other, made one token look like a million rows.
 */
const elements = (list: string): string => `unnest(array(texts_of(${list})))`;

/**
 * Each token is looked up in a lateral subquery with a limit, which is a look-up by the key whatever the planner knows.
 * Nearly always it is one, and the planner is to know.
 */
const found = (jtis: string): string => `
  with own as (
    select t.*, (
      select json_build_object('event_id', e.event_id, 'at_ms', e.at_ms)::text
      ${POSTGRES.firstEnding("t.ending_keys")}
    ) as ended, (select j.body from job j where j.id = t.job_id and t.job_iss is null) as job
    from (select ${jtis} as jti) q
    cross join lateral (select * from token where token.jti = q.jti limit 1) t
  ),
  found as (
    select * from own
    union all
    select t.*, null, null from (
      select distinct a.jti from own cross join ${elements("own.ancestors")} as a (jti)
    ) behind
    cross join lateral (select * from token where token.jti = behind.jti limit 1) t
  )
  select ${POSTGRES.selected(TOKEN, "f.")}, f.ended, f.job, (
      select json_build_object(${pairsOf(STORED_CONSENT, "c.", "::text")})::text
      from consent c where c.id = f.consent_id
    ) as consent
  from found f`;

export const findPostgresTokens: FindTokens = { one: found(":jti::text"), several: found(elements(":jtis")) };

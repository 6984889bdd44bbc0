/** Tokens on node:sqlite: the facts of one, and the tokens that an ending reaches. */
import type { DatabaseSync } from "node:sqlite";
import { ENDING_STRETCH_MAX } from "../../../limits/store.ts";
import type { EndingReach, Facts } from "../../../ports.ts";
import type { EndedRow, FoundToken, TokenQueries } from "../token-facts.ts";
import { endingReach, tokenFacts } from "../token-facts.ts";
import type { Database } from "./database.ts";

export function sqliteTokenRows({ db, run }: Database): { token: Facts["token"]; endings: EndingReach } {
  const statements = prepareAll(db);
  const queries: TokenQueries = {
    rows: async (jtis) => {
      const rows = await run(() => statements.found.all({ jtis: JSON.stringify(jtis) }));
      return rows as FoundToken[];
    },
    firstEnding: async (keys) => {
      const pairs = JSON.stringify(Object.fromEntries(keys.map(({ key, sinceMs }) => [key, sinceMs])));
      return (await run(() => statements.firstEnding.get(pairs))) as EndedRow | undefined;
    },
    stretch: async ({ key, nowSeconds, afterJti = "" }) => {
      const asked = { key, now: nowSeconds, after: afterJti };
      const rows = await run(() => statements.stretch.all(asked));
      return rows.map(({ jti, may }) => ({ jti: String(jti), may: may === 1 }));
    },
  };
  return { token: tokenFacts(queries), endings: endingReach(queries) };
}

function prepareAll(db: DatabaseSync) {
  const firstEnding = (pairs: string): string =>
    `from json_each(${pairs}) k cross join ending e
     where e.key = k.key and e.cut_off >= k.value order by e.at_ms limit 1`;
  return {
    found: db.prepare(
      `with asked as (select value as jti from json_each(:jtis)),
         wanted as (
           select jti, true as asked from asked
           union all
           select distinct a.value, false from asked q cross join token t cross join json_each(t.ancestors) a
             where t.jti = q.jti
         )
       select t.*,
         (select json_object('id', c.id, 'version', c.version, 'origin_iss', c.origin_iss,
            'origin_sub', c.origin_sub, 'actor', c.actor, 'targets', c.targets, 'scopes', c.scopes,
            'expires_at', c.expires_at, 'withdrawn_at', c.withdrawn_at)
          from consent c where c.id = t.consent_id) as consent,
         case when w.asked then
           (select json_object('event_id', e.event_id, 'at_ms', e.at_ms) ${firstEnding("t.ending_keys")})
         end as ended
       from wanted w cross join token t where t.jti = w.jti`,
    ),
    firstEnding: db.prepare(`select e.event_id, e.at_ms ${firstEnding("?")}`),
    stretch: db.prepare(
      `select jti, expires_at > :now and (ending_keys is null or instr(ending_keys, :key) > 0) as may
       from token where jti > :after order by jti limit ${ENDING_STRETCH_MAX}`,
    ),
  };
}

/** How node:sqlite finds tokens with those behind them, their consents and what ended them. */
import { pairsOf } from "../columns.ts";
import { STORED_CONSENT } from "../tables.ts";
import type { FindTokens } from "../token-facts.ts";
import { SQLITE } from "./engine.ts";

export const findSqliteTokens: FindTokens = (isOne) => `
  with asked as (select ${isOne ? ":jti as jti" : "value as jti from json_each(:jtis)"}),
    wanted as (
      select jti, true as asked from asked
      union all
      select distinct a.value, false from asked q cross join token t cross join json_each(t.ancestors) a
        where t.jti = q.jti
    )
  select t.*,
    (select json_object(${pairsOf(STORED_CONSENT, "c.")}) from consent c where c.id = t.consent_id) as consent,
    case when w.asked then
      (select json_object('event_id', e.event_id, 'at_ms', e.at_ms) ${SQLITE.firstEnding("t.ending_keys")})
    end as ended
  from wanted w cross join token t where t.jti = w.jti`;

/** How node:sqlite finds tokens with those behind them, their consents and what ended them. */
import { pairsOf } from "../columns.ts";
import { STORED_CONSENT } from "../tables.ts";
import type { FindTokens } from "../token-facts.ts";
import { SQLITE } from "./engine.ts";

/** One query for those that were asked for and one for those behind them, of which nothing is sorted or kept. */
export const findSqliteTokens: FindTokens = (isOne) => {
  const asked = isOne ? "(select :jti as jti)" : "(select value as jti from json_each(:jtis))";
  const behind = `(select distinct a.value as jti
    from ${asked} q cross join token o cross join json_each(o.ancestors) a where o.jti = q.jti)`;
  const firstEnding = `(select json_object('event_id', e.event_id, 'at_ms', e.at_ms)
    ${SQLITE.firstEnding("t.ending_keys")})`;
  const job = "(select j.body from job j where j.id = t.job_id and t.job_iss is null)";
  const found = (jtis: string, ofAsked: readonly [ended: string, job: string]): string => `
    select t.*, ${ofAsked[0]} as ended, ${ofAsked[1]} as job,
      (select json_object(${pairsOf(STORED_CONSENT, "c.")}) from consent c where c.id = t.consent_id) as consent
    from ${jtis} q cross join token t where t.jti = q.jti`;
  return `${found(asked, [firstEnding, job])} union all ${found(behind, ["null", "null"])}`;
};

/** How node:sqlite finds tokens with those behind them, their consents and what ended them. */
import { pairsOf } from "../columns.ts";
import { STORED_CONSENT } from "../tables.ts";
import type { FindTokens } from "../token-facts.ts";
import { SQLITE } from "./engine.ts";

const firstEnding = `(select json_object('event_id', e.event_id, 'at_ms', e.at_ms)
  ${SQLITE.firstEnding("t.ending_keys")})`;
const job = "(select j.body from job j where j.id = t.job_id and t.job_iss is null)";

const found = (jtis: string, ended: string, job: string): string => `
  select t.*, ${ended} as ended, ${job} as job,
    (select json_object(${pairsOf(STORED_CONSENT, "c.")}) from consent c where c.id = t.consent_id) as consent
  from (${jtis}) q cross join token t where t.jti = q.jti`;

const several = "select value as jti from json_each(:jtis)";

/** Most tokens have none behind them, and a statement costs no round trip here. */
export const findSqliteTokens: FindTokens = {
  one: found("select :jti as jti", firstEnding, job),
  several: found(several, firstEnding, job),
  behind: found(several, "null", "null"),
};

/** Finds the tokens that carry an ending key, in the order in which they expire. */
import { ENDING_STRETCH_MAX } from "../../limits/store.ts";
import type { TokenPlace } from "../../ports-store.ts";
import type { Engine, Values } from "./engine.ts";

type Search = {
  /** Of each token that is found, with `jti` and `expires_at` among them. */
  columns: string;
  keys: readonly string[];
  /** Tokens are found that come after this place. */
  after: TokenPlace;
  /** Whether the place is the end of a stretch, behind which the search goes on. */
  goesOn: boolean;
  /** What else is asked of them. */
  where: string;
  values: Values;
  /** What a stretch consists of. */
  ofWhich?: string;
};

/** Before all tokens that expire later than this. */
export const beginAfter = (seconds: number): TokenPlace => ({ expiresAtSeconds: seconds + 1, jti: "" });

/**
 * All tokens that may carry one of the keys, where an index tells that they are few; else those of the next stretch of
 * living tokens, whose end is `place`. On PostgreSQL the index costs an exchange a fiftieth of its time. On SQLite it would
 * be a fifth, so that every ending looks through all living tokens there.
 */
export async function findCarriers<Row extends { jti: string }>(
  { rows, carriers, among }: Engine,
  { columns, keys, after, goesOn, where, values, ofWhich = "true" }: Search,
): Promise<{ found: readonly Row[]; place?: TokenPlace }> {
  const given = { keys: JSON.stringify(keys), end: after.expiresAtSeconds, after: after.jti, ...values };
  const later = "(expires_at, jti) > (:end, :after)";
  if (carriers !== undefined && !goesOn) {
    const few = await rows<{ jti: string }>(carriers(":keys"), { ...given, limit: ENDING_STRETCH_MAX + 1 });
    if (few.length <= ENDING_STRETCH_MAX) {
      const jtis = JSON.stringify(few.map(({ jti }) => jti));
      const isOne = `${among("jti", "texts_of(:jtis)")} and ${later} and ${where}`;
      const found = `select ${columns} from token where ${isOne} order by expires_at, jti`;
      return { found: few.length === 0 ? [] : await rows<Row>(found, { ...given, jtis }) };
    }
  }
  const all = await rows<{ last_end: number | null; last: string | null; jti: string | null } & Row>(
    `with stretch as (
       select * from token where ${later} and ${ofWhich} order by expires_at, jti limit ${ENDING_STRETCH_MAX}
     )
     select e.*, t.* from (select 1 as one) o
     left join (
       select expires_at as last_end, jti as last from stretch
       order by expires_at, jti limit 1 offset ${ENDING_STRETCH_MAX - 1}
     ) e on true
     left join (select ${columns} from stretch where ${where}) t on true order by t.expires_at, t.jti`,
    given,
  );
  const [{ last_end: end = null, last = null } = {}] = all;
  const found = all.filter(({ jti }) => jti !== null);
  return end === null || last === null ? { found } : { found, place: { expiresAtSeconds: end, jti: last } };
}

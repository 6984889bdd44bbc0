/** Families of refresh tokens on node:sqlite. */
import { isEncodable } from "../columns.ts";
import type { FoundByToken, FoundFamily } from "../family-rows.ts";
import { fromFamilyRow, fromFoundByToken } from "../family-rows.ts";
import type { FamilyRows } from "../store.ts";
import type { Database } from "./database.ts";

/** Milliseconds since 1970, by the clock of SQLite. */
const NOW_MS = "cast(unixepoch('subsec') * 1000 as integer)";

const ENDED = `(
  select json_object('event_id', e.event_id, 'at_ms', e.at_ms, 'reason', e.reason)
  from json_each(f.ending_keys) k cross join ending e
  where e.key = k.key and e.cut_off >= k.value order by e.at_ms limit 1
) as ended`;

export function sqliteFamilies({ db, run, remove }: Database): FamilyRows {
  const find = db.prepare(
    `select f.*, t.generation as presented, ${NOW_MS} - f.rotated_ms as ago_ms, ${ENDED}
     from refresh_token t join refresh_family f on f.id = t.family_id where t.digest = ?`,
  );
  const list = db.prepare(
    `select f.*, ${ENDED} from refresh_family f
     where f.origin_iss = ? and f.origin_sub = ? order by f.used_at desc, f.id`,
  );
  const forget = db.prepare(
    `update refresh_family set sealed = null, rotated_by = null where id in (
       select id from refresh_family where sealed is not null and rotated_ms < ${NOW_MS} - ? limit ?)`,
  );
  const sweepTokens = db.prepare(
    `delete from refresh_token where digest in (
       select t.digest from refresh_family f cross join refresh_token t
       where f.ends_at < ? and t.family_id = f.id limit ?)`,
  );
  const sweepFamilies = db.prepare(
    `delete from refresh_family where id in (
       select id from refresh_family f where f.ends_at < ?
         and not exists (select 1 from refresh_token t where t.family_id = f.id) limit ?)`,
  );
  return {
    find: async (digest) => {
      if (!isEncodable(digest)) return undefined;
      const row = await run(() => find.get(digest));
      return row && fromFoundByToken(row as FoundByToken);
    },
    list: async ({ iss, sub }) => {
      if (!isEncodable(iss) || !isEncodable(sub)) return [];
      return (await run(() => list.all(iss, sub) as FoundFamily[])).map(fromFamilyRow);
    },
    sweep: (beforeSeconds, limit) =>
      remove(() => {
        const gone = [sweepTokens, sweepFamilies].map((one) => one.run(beforeSeconds, limit).changes);
        return gone.reduce<number>((sum, count) => sum + Number(count), 0);
      }),
    forgetSuccessors: (windowMs, limit) => run(() => Number(forget.run(windowMs, limit).changes)),
  };
}

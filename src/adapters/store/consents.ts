/** Consents, in both stores. */
import type { Consents, Facts } from "../../ports-store.ts";
import type { Engine } from "./engine.ts";
import { readRecords } from "./engine.ts";
import { CONSENT, STANDING_CONSENT, STORED_CONSENT } from "./tables.ts";

/** Gathers the consents of one subject before they are sorted; sorted by the key, all consents would be read. */
const theirs = (actor = "") =>
  `with theirs as materialized (select * from consent where origin_iss = :iss and origin_sub = :sub ${actor})`;
const STANDING = "withdrawn_at is null and (expires_at is null or expires_at > :now)";

export function consentRows(engine: Engine): { port: Consents; standing: Facts["consents"] } {
  const read = readRecords(engine);
  return {
    standing: ({ iss, sub }, actor, nowSeconds) =>
      read(
        CONSENT,
        `from theirs where ${STANDING} order by id`,
        { iss, sub, actor, now: Math.floor(nowSeconds) },
        theirs("and actor = :actor"),
      ),
    port: {
      find: async (id) => (await read(STORED_CONSENT, "from consent where id = :id", { id }))[0],
      list: async (origin, page) =>
        read(
          STORED_CONSENT,
          `from ${origin ? "theirs" : "consent"} where id > :after order by id limit ${page ? ":limit" : "no_limit"}`,
          { ...origin, after: page?.afterId ?? "", limit: page?.limit ?? null },
          origin && theirs(),
        ),
      standing: async ({ iss, sub }, { nowSeconds, afterId: after = "", limit }) =>
        read(
          STANDING_CONSENT,
          `from theirs where ${STANDING} and id > :after order by id limit :limit`,
          { iss, sub, after, limit, now: Math.floor(nowSeconds) },
          theirs(),
        ),
    },
  };
}

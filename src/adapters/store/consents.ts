/** Consents, in both stores. */
import type { Consents, Facts } from "../../ports-store.ts";
import { whenReady } from "../../result.ts";
import { type Engine, readRecords } from "./engine.ts";
import { CONSENT, STANDING_CONSENT, STORED_CONSENT } from "./tables.ts";

/** Gathers the consents of one subject before they are sorted; sorted by the key, all consents would be read. */
const THEIRS =
  "with theirs as materialized (select * from consent where origin_iss = :iss and origin_sub = :sub)";
const STANDING = "withdrawn_at is null and (expires_at is null or expires_at > :now)";

export function consentRows(engine: Engine): { port: Consents; standing: Facts["consents"] } {
  const read = readRecords(engine);
  return {
    standing: ({ iss, sub }, actor, nowSeconds) => {
      const found = read(
        CONSENT,
        `from consent where origin_iss = :iss and origin_sub = :sub and actor = :actor and ${STANDING}`,
        { iss, sub, actor, now: Math.floor(nowSeconds) },
      );
      // Mostly one, for which a database would still prepare to sort.
      return whenReady(found, (consents) => consents.toSorted((a, b) => (a.id < b.id ? -1 : 1)));
    },
    port: {
      find: async (id) => (await read(STORED_CONSENT, "from consent where id = :id", { id }))[0],
      list: async (origin, page) =>
        read(
          STORED_CONSENT,
          `from ${origin ? "theirs" : "consent"} where id > :after order by id limit ${page ? ":limit" : "no_limit"}`,
          { ...origin, after: page?.afterId ?? "", limit: page?.limit ?? null },
          origin && THEIRS,
        ),
      standing: async ({ iss, sub }, { nowSeconds, afterId: after = "", limit }) =>
        read(
          STANDING_CONSENT,
          `from theirs where ${STANDING} and id > :after order by id limit :limit`,
          { iss, sub, after, limit, now: Math.floor(nowSeconds) },
          THEIRS,
        ),
    },
  };
}

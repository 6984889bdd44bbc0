/** Consents, in both stores. */
import type { Consents, Facts } from "../../ports.ts";
import { whenReady } from "../../result.ts";
import type { RowOf } from "./columns.ts";
import { fromRow, isEncodable } from "./columns.ts";
import type { Engine } from "./engine.ts";
import { CONSENT, STANDING_CONSENT, STORED_CONSENT } from "./tables.ts";

/** Gathers the consents of one subject before they are sorted; sorted by the key, all consents would be read. */
const theirs = (actor = "") =>
  `with theirs as materialized (select * from consent where origin_iss = :iss and origin_sub = :sub ${actor})`;
const STANDING = "withdrawn_at is null and (expires_at is null or expires_at > :now)";

export function consentRows({ rows, selected }: Engine): {
  port: Consents;
  standing: Facts["consents"];
} {
  return {
    standing: ({ iss, sub }, actor, nowSeconds) => {
      if (![iss, sub, actor].every(isEncodable)) return [];
      const found = rows<RowOf<typeof CONSENT.columns>>(
        `${theirs("and actor = :actor")} select ${selected(CONSENT)} from theirs where ${STANDING} order by id`,
        { iss, sub, actor, now: Math.floor(nowSeconds) },
      );
      return whenReady(found, (those) => those.map((row) => fromRow(CONSENT, row)));
    },
    port: {
      find: async (id) => {
        if (!isEncodable(id)) return undefined;
        const [row] = await rows<RowOf<typeof STORED_CONSENT.columns>>(
          `select ${selected(STORED_CONSENT)} from consent where id = :id`,
          { id },
        );
        return row && fromRow(STORED_CONSENT, row);
      },
      list: async (origin, page) => {
        if (origin && !(isEncodable(origin.iss) && isEncodable(origin.sub))) return [];
        const limit = page ? ":limit" : "no_limit";
        const found = await rows<RowOf<typeof STORED_CONSENT.columns>>(
          `${origin ? theirs() : ""} select ${selected(STORED_CONSENT)} from ${origin ? "theirs" : "consent"}
           where id > :after order by id limit ${limit}`,
          { ...origin, after: page?.afterId ?? "", limit: page?.limit ?? null },
        );
        return found.map((row) => fromRow(STORED_CONSENT, row));
      },
      standing: async ({ iss, sub }, { nowSeconds, afterId: after = "", limit }) => {
        if (![iss, sub, after].every(isEncodable)) return [];
        const found = await rows<RowOf<typeof STANDING_CONSENT.columns>>(
          `${theirs()} select ${selected(STANDING_CONSENT)} from theirs
           where ${STANDING} and id > :after order by id limit :limit`,
          { iss, sub, after, limit, now: Math.floor(nowSeconds) },
        );
        return found.map((row) => fromRow(STANDING_CONSENT, row));
      },
    },
  };
}

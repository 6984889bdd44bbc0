/** The rows of sign-in and authorization, in both stores. */
import type { SessionFacts, ShortLived, ShortLivedKind } from "../../records.ts";
import { insertInto, toRow } from "./columns.ts";
import { type Engine, putAtVersion, readRecords, sweepOf } from "./engine.ts";
import type { ShortLivedStore } from "./store.ts";
import { SHORT_LIVED } from "./tables.ts";

const KEY = ["kind", "key"];

/** `expired` is the condition for rows that expired before `:before`, where the database needs another one. */
export function shortLivedRows(engine: Engine, expired?: string): ShortLivedStore {
  const { change, remove } = engine;
  const over = `delete from short_lived where ${expired}`;
  const put = putAtVersion(engine, "short_lived", KEY, ["browser", "body", "expires_at"]);
  const read = readRecords(engine);
  return {
    add: async (row) => void (await change(insertInto(SHORT_LIVED), toRow(SHORT_LIVED.columns, row))),
    find: async <K extends ShortLivedKind>(kind: K, key: string, now: number) => {
      const [row] = await read(
        SHORT_LIVED,
        "from short_lived where kind = :kind and key = :key and expires_at > :now",
        { kind, key, now },
      );
      return row as ShortLived<K> | undefined;
    },
    ofUser: async (holder, now) => {
      const found = await read(
        SHORT_LIVED,
        "from short_lived where kind = 'session' and browser = :holder and expires_at > :now",
        { holder, now },
      );
      return found.map(({ body }) => body as SessionFacts);
    },
    replace: async (row) => put(toRow(SHORT_LIVED.columns, row)),
    sweep:
      expired === undefined
        ? sweepOf(engine, "short_lived", KEY)
        : async (before, limit) => remove(over, { before, limit }),
  };
}

/** The rows of sign-in and authorization, in both stores. */
import type { SessionFacts, ShortLived, ShortLivedKind } from "../../records.ts";
import { insertInto, toRow } from "./columns.ts";
import { type Engine, readRecords, sweepOf } from "./engine.ts";
import type { ShortLivedStore } from "./store.ts";
import { SHORT_LIVED } from "./tables.ts";

/** `expired` is the condition for rows that expired before `:before`, where the database needs another one. */
export function shortLivedRows(engine: Engine, expired?: string): ShortLivedStore {
  const { change, remove } = engine;
  const over = `delete from short_lived where ${expired}`;
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
    replace: async (row) => {
      const changed = await change(
        `update short_lived set version = :version, browser = :browser, body = :body, expires_at = :expires_at
         where kind = :kind and key = :key and version = :version - 1`,
        toRow(SHORT_LIVED.columns, row),
      );
      return changed === 1;
    },
    sweep:
      expired === undefined
        ? sweepOf(engine, "short_lived", ["kind", "key"])
        : async (before, limit) => remove(over, { before, limit }),
  };
}

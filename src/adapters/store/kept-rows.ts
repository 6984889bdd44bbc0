/** Polled documents, archived policies, signing keys and the mark of a restored copy, in both stores. */
import { insertInto, toRow } from "./columns.ts";
import { type Engine, readRecords, sweepOf } from "./engine.ts";
import type { KeyRows, PolicyRows, PolledRows, RestoredMark } from "./store.ts";
import { POLICY, POLLED, SIGNING_KEY } from "./tables.ts";

export function polledRows(engine: Engine): PolledRows {
  const { change } = engine;
  const read = readRecords(engine);
  return {
    find: async (kind, name) =>
      (await read(POLLED, "from kept_document where kind = :kind and name = :name", { kind, name }))[0],
    save: async (document) => {
      await change(
        `insert into kept_document as k (kind, name, location, body, sequence, loaded_at)
         values (:kind, :name, :location, :body, :sequence, :loaded_at)
         on conflict (kind, name) do update
         set location = excluded.location, body = excluded.body, sequence = excluded.sequence,
           loaded_at = excluded.loaded_at
         where k.location <> excluded.location or coalesce(excluded.sequence >= k.sequence, true)`,
        toRow(POLLED.columns, document),
      );
    },
    redate: async (kind, name, from, to) => {
      await change(
        "update kept_document set loaded_at = :to where kind = :kind and name = :name and loaded_at = :from",
        { kind, name, from, to },
      );
    },
    retain: async (kind, names) => {
      await change(`delete from kept_document where kind = :kind and name not in (texts_of(:names))`, {
        kind,
        names: JSON.stringify(names),
      });
    },
  };
}

export function policyRows(engine: Engine): PolicyRows {
  const { change, rows } = engine;
  const read = readRecords(engine);
  return {
    use: async (digest, at) => {
      const later = "update policy_archive set used_at = :at where digest = :digest";
      return (await change(later, { at, digest })) === 1;
    },
    add: async (policy) => {
      const row = toRow(POLICY.columns, policy);
      await change(`${insertInto(POLICY)} on conflict do nothing`, row);
    },
    find: async (digest) => (await read(POLICY, "from policy_archive where digest = :digest", { digest }))[0],
    digests: async () => {
      const found = await rows<{ digest: string }>("select digest from policy_archive order by digest");
      return found.map(({ digest }) => digest);
    },
    sweep: sweepOf(engine, "policy_archive", ["digest"], "used_at < :before"),
  };
}

export function keyRows(engine: Engine): KeyRows {
  const { change } = engine;
  const read = readRecords(engine);
  return {
    list: async () => read(SIGNING_KEY, "from signing_key order by created_at, kid"),
    insertIfNone: async (key) => {
      const row = toRow(SIGNING_KEY.columns, key);
      return (await change(`${insertInto(SIGNING_KEY)} on conflict do nothing`, row)) === 1;
    },
    markUsed: async (kids, at) => {
      const listed = JSON.stringify(kids);
      await change(`update signing_key set used_at = :at where kid in (texts_of(:listed))`, {
        at,
        listed,
      });
    },
  };
}

export function restoredMark({ rows, change }: Engine): RestoredMark {
  return {
    async find() {
      const [row] = await rows<{ at: number }>("select marked_at_ms as at from restored");
      return row?.at;
    },
    async set(at) {
      await change(
        `insert into restored (id, marked_at_ms) values (1, :at)
         on conflict (id) do update set marked_at_ms = excluded.marked_at_ms`,
        { at },
      );
    },
    async clear() {
      await change("delete from restored", {});
    },
  };
}

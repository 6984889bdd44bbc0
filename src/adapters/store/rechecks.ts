/** What providers said last of their users, in both stores; the journal writes what a sign-in shows, and a refresh reads it with its family. */
import { toRow } from "./columns.ts";
import type { Engine } from "./engine.ts";
import { readRecords, sweepOf } from "./engine.ts";
import type { RecheckRows } from "./store.ts";
import { RECHECK } from "./tables.ts";

export function recheckRows(engine: Engine): RecheckRows {
  const { change } = engine;
  const read = readRecords(engine);
  return {
    find: async ({ iss, sub }) =>
      (await read(RECHECK, "from recheck where origin_iss = :iss and origin_sub = :sub", { iss, sub }))[0],
    replace: async (recheck) => {
      const changed = await change(
        `update recheck set version = :version, confirmed_at = :confirmed_at, asked_at = :asked_at, sealed = :sealed
         where origin_iss = :origin_iss and origin_sub = :origin_sub and version = :version - 1`,
        toRow(RECHECK.columns, recheck),
      );
      return changed === 1;
    },
    sweep: sweepOf(engine, "recheck", ["origin_iss", "origin_sub"]),
  };
}

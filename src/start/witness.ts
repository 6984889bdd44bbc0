/** The witness of the audit trail, as the process starts it: opened, compared with the store, its changes of state told. */
import type { LogBehind, WitnessComparison } from "../adapters/audit/compare-witness.ts";
import { compareWithWitness } from "../adapters/audit/compare-witness.ts";
import type { OpenJournal } from "../adapters/audit/journal.ts";
import type { Witness } from "../adapters/audit/witness.ts";
import { openWitness, printingWitness } from "../adapters/audit/witness.ts";
import type { WitnessPlace } from "../settings/settings.ts";
import type { Log } from "./log.ts";
import { StartRefused } from "./refused.ts";

export async function openWitnessAt(place: WitnessPlace, log: Log): Promise<Witness> {
  if (place === "stdout") {
    return printingWitness((checkpoint) =>
      log.entry({ time: new Date().toISOString(), level: "info", event: "checkpoint", checkpoint }),
    );
  }
  return openWitness(place).catch(({ message }) => {
    throw new StartRefused(`audit.witness: ${message}`);
  });
}

/** AUDIT-D-10: told as an error, recorded, and counted; the server starts, because only people know what is right. */
export async function tellLogsBehind(
  comparison: WitnessComparison & { journal: OpenJournal },
  log: Log,
): Promise<number> {
  const behind = await compareWithWitness(comparison);
  for (const one of behind) {
    log.tell({ level: "error", event: "witness_ahead", message: describe(one) });
    const event = { type: "log.verification_failed", outcome: "error", reason: "witness_ahead" } as const;
    await comparison.journal.record({ event: { ...event, detail: one } });
  }
  return behind.length;
}

const describe = ({ log, witnessed, stored, forked }: LogBehind): string =>
  `the store is older than its witness: log ${JSON.stringify(log)} has ` +
  `${forked ? "other records" : `${stored} records`}, and the witness has a checkpoint of ${witnessed}. ` +
  "The store was restored from a backup, or its file was lost: what was recorded since is forgotten (used " +
  "assertions, withdrawn consents, removed and disabled clients, issued tokens, endings of tokens). For a copy that is " +
  "not marked as one: npm run mandate -- backup mark-restored, and a restart, which ends every token that was issued";

export const tellWitness =
  (log: Log) =>
  (works: boolean, message: string): void =>
    log.tell(
      works
        ? { level: "info", event: "witness_works", message }
        : { level: "error", event: "witness_failed", message },
    );

/** The witness of the audit trail, as the process starts it: opened, its changes of state told. */
import { type LastWritten, openLastWritten } from "../adapters/audit/last-written.ts";
import { openWitness, printingWitness, type Witness } from "../adapters/audit/witness.ts";
import { describeFileCode } from "../adapters/store/fault-codes.ts";
import type { WitnessPlace } from "../settings/settings.ts";
import type { Log } from "./log.ts";
import { StartRefused } from "./refused.ts";

export async function openWitnessAt(place: WitnessPlace, log: Log): Promise<Witness> {
  if (place === "stdout") {
    return printingWitness((checkpoint) =>
      log.entry({ time: new Date().toISOString(), level: "info", event: "checkpoint", checkpoint }),
    );
  }
  return openWitness(place).catch((fault) => {
    // Only a file is opened before it is written.
    if (!("file" in place && "code" in fault)) throw fault;
    throw new StartRefused(`audit.witness: ${describeUnwritable(place.file, fault)}`);
  });
}

/** Opens what this instance wrote last, beside a witness that is a file; checkpoints are kept without it, too. */
export async function openLastWrittenAt(
  place: WitnessPlace,
  { instance, issuer }: { instance: string; issuer: string },
  log: Log,
): Promise<LastWritten | undefined> {
  if (place === "stdout" || !("file" in place)) return undefined;
  const path = `${place.file}.${instance}`;
  return openLastWritten(path, issuer).catch((fault) => {
    const message = `audit.witness: ${describeUnwritable(path, fault)}: a restart does not notice that the store lost the last records`;
    log.tell({ level: "error", event: "witness_failed", message });
    return undefined;
  });
}

const describeUnwritable = (path: string, { code }: { code: string }): string =>
  `${path} cannot be written: ${describeFileCode(code)}`;

export const tellWitness =
  (log: Log) =>
  (works: boolean, message: string): void =>
    log.tell(
      works
        ? { level: "info", event: "witness_works", message }
        : { level: "error", event: "witness_failed", message },
    );

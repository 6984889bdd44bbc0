/** The `audit` section: when checkpoints are signed, where they are sent, and how long events are kept. */
import { resolve } from "node:path";
import { defined } from "../result.ts";
import type { WitnessPlace } from "../settings/settings.ts";
import type { Reader } from "./reader.ts";
import type { ConfigFile } from "./schema.ts";

export type AuditSettings = {
  checkpoint: { events: number; seconds: number };
  witness?: WitnessPlace;
  retentionDays: number;
};

/** Reads the section; `folder` is where file names are relative to. */
export function readAudit({ audit }: ConfigFile, folder: string, reader: Reader): AuditSettings {
  const { checkpoint, witness, retentionDays } = audit;
  return defined<AuditSettings>({
    checkpoint,
    witness: witness && readWitness(witness, folder, reader),
    retentionDays,
  });
}

function readWitness(
  witness: NonNullable<ConfigFile["audit"]["witness"]>,
  folder: string,
  { readRemote, readSecret }: Reader,
): WitnessPlace {
  if (witness === "stdout") return witness;
  if ("file" in witness) return { file: resolve(folder, witness.file) };
  const { authorization: from } = witness;
  const authorization = from && readSecret("audit.witness.authorization", from);
  return defined<Extract<WitnessPlace, { sink: unknown }>>({
    sink: readRemote("audit.witness", witness),
    authorization,
  });
}

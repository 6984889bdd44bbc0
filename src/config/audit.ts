/** The `audit` section: when checkpoints are signed, where they are sent, and how long events are kept. */
import { resolve } from "node:path";
import { LEASE_SECONDS } from "../limits/store.ts";
import { defined } from "../result.ts";
import type { WitnessPlace } from "../settings/settings.ts";
import type { Reader } from "./reader.ts";
import type { ConfigFile } from "./schema.ts";

type AuditFile = ConfigFile["audit"];
export type AuditSettings = Omit<AuditFile, "instance" | "leaseSeconds" | "witness"> & {
  /** The name of this instance, and of its log. */
  instance: string;
  leaseSeconds: number;
  witness?: WitnessPlace;
};

/** Reads the section; `folder` is where file names are relative to. */
export function readAudit(
  { audit, store }: Pick<ConfigFile, "audit" | "store">,
  folder: string,
  reader: Reader,
): AuditSettings {
  const { leaseSeconds = LEASE_SECONDS, witness } = audit;
  if (audit.leaseSeconds !== undefined && "sqlite" in store) {
    reader.warnings.push(
      "audit.leaseSeconds: is without effect on SQLite, where the name of an instance is a locked file: remove it",
    );
  }
  return defined<AuditSettings>({
    ...audit,
    instance: readInstance(audit.instance, reader),
    leaseSeconds,
    witness: witness && readWitness(witness, folder, reader),
  });
}

const INSTANCE = /^[a-z0-9][a-z0-9-]{0,62}$/;
const RESERVED = "admin";

/** The name is in the file, or in the environment, where the instances share one file. */
function readInstance(from: AuditFile["instance"], { problem, readEnv }: Reader): string {
  const path = typeof from === "string" ? "audit.instance" : "audit.instance.env";
  const name = typeof from === "string" ? from : readEnv("audit.instance", from);
  if (name === undefined) return "";
  if (!INSTANCE.test(name)) {
    problem(path, "is not an instance name: 1 to 63 characters of a-z, 0-9 and -, the first not -");
  }
  if (name === RESERVED) problem(path, "is reserved for the log of the administration commands");
  return name;
}

function readWitness(
  witness: NonNullable<AuditFile["witness"]>,
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

/** Rounds of each kind of fault of a PostgreSQL: at most 5 connections a second, and service within 5 s after it. */
import { meetPgFault, PG_FAULTS, type PgFaultOutcome } from "../../test/support/pg-faults.ts";
import {
  POOLER_MISSING,
  startDatabaseServer,
  TRANSPORTS,
  type Transport,
} from "../../test/support/pg-transports.ts";

const FAULT_MS = 3_000;

/** A line for each kind and transport: the worst of all rounds. */
export async function runPgFaults(rounds: number): Promise<readonly string[]> {
  const lines: string[] = [];
  const transports: Transport[] = [...TRANSPORTS];
  if (POOLER_MISSING === undefined) transports.push("pooler");
  else lines.push(`pooler: ${POOLER_MISSING}`);
  const server = await startDatabaseServer();
  try {
    for (const fault of PG_FAULTS) {
      const met = new Map<string, PgFaultOutcome[]>();
      for (let round = 0; round < rounds; round++) {
        for (const outcome of await meetPgFault(server, fault, FAULT_MS, transports))
          met.set(outcome.name, [...(met.get(outcome.name) ?? []), outcome]);
      }
      for (const [name, outcomes] of met) {
        const worst = (of: "connectsPerSecond" | "connections" | "backMs" | "idleMs"): number =>
          Math.max(...outcomes.map((outcome) => outcome[of]));
        const connects = `${worst("connectsPerSecond")} connects/s, ${worst("connections")} connections`;
        const back = `served again after ${worst("backMs")} ms`;
        lines.push(`${name}: ${connects}, ${back}, without attempt for ${worst("idleMs")} ms`);
      }
    }
  } finally {
    await server.stop();
  }
  return lines;
}

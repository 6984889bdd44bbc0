/** Rounds of each kind of fault of a PostgreSQL: at most 5 connections a second, and service within 5 s after it. */
import type { PgFaultOutcome } from "../../test/support/pg-faults.ts";
import { meetPgFault, PG_FAULTS } from "../../test/support/pg-faults.ts";
import { startPostgres } from "../../test/support/postgres.ts";

const FAULT_MS = 3_000;

/** A line for each kind: the worst of all rounds. */
export async function runPgFaults(rounds: number): Promise<readonly string[]> {
  const lines: string[] = [];
  const server = await startPostgres();
  try {
    for (const fault of PG_FAULTS) {
      const outcomes: PgFaultOutcome[] = [];
      for (let round = 0; round < rounds; round++) outcomes.push(await meetPgFault(server, fault, FAULT_MS));
      const worst = (of: "connectsPerSecond" | "connections" | "backMs"): number =>
        Math.max(...outcomes.map((outcome) => outcome[of]));
      const connects = `${worst("connectsPerSecond")} connects/s, ${worst("connections")} connections`;
      lines.push(`${fault.name}: ${connects}, served again after ${worst("backMs")} ms`);
    }
  } finally {
    await server.stop();
  }
  return lines;
}

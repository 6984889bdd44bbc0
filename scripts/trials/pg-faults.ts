/** Ten rounds of each kind of fault of a PostgreSQL: at most 5 connections a second, and service within 5 s after it. */
import type { PgFaultOutcome } from "../../test/support/pg-faults.ts";
import { meetPgFault, PG_FAULTS } from "../../test/support/pg-faults.ts";
import { startPostgres } from "../../test/support/postgres.ts";

export const name = "pg-faults";

const ROUNDS = 10;
const FAULT_MS = 3_000;

/** Prints a line for each kind: the worst of all rounds. */
export async function run(): Promise<void> {
  const server = await startPostgres();
  try {
    for (const fault of PG_FAULTS) {
      const outcomes: PgFaultOutcome[] = [];
      for (let round = 0; round < ROUNDS; round++) outcomes.push(await meetPgFault(server, fault, FAULT_MS));
      const worst = (of: "connectsPerSecond" | "connections" | "backMs"): number =>
        Math.max(...outcomes.map((outcome) => outcome[of]));
      process.stdout.write(
        `${fault.name}: ${worst("connectsPerSecond")} connects/s, ${worst("connections")} connections, ` +
          `served again after ${worst("backMs")} ms\n`,
      );
    }
  } finally {
    await server.stop();
  }
}

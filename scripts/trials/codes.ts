/** One authorization code at three instances on one PostgreSQL, each asked twice at the same moment. */
import { openCodeRaces } from "../../test/support/code-races.ts";
import { freshDatabase, startPostgres } from "../../test/support/postgres.ts";

const INSTANCES = 3;

export async function raceCodes(rounds: number): Promise<readonly string[]> {
  const postgres = await startPostgres({ durable: true });
  const races = await openCodeRaces(await freshDatabase(postgres), INSTANCES);
  try {
    for (let round = 0; round < rounds; round++) {
      const { given, living } = await races.race();
      if (given !== 1 || living !== 0) {
        throw new Error(`round ${round}: ${given} tokens of one code, ${living} of them active afterwards`);
      }
    }
    return [`exactly one token of each of ${rounds} codes, and none of them active afterwards`];
  } finally {
    await races.stop();
    await postgres.stop();
  }
}

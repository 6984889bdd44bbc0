/** Refresh tokens that several processes use at once while their family ends, at three instances on one PostgreSQL. */
import { freshDatabase, startPostgres } from "../../test/support/postgres.ts";
import { openRefreshRaces, REFRESH_RACES, wrongIn } from "../../test/support/refresh-races.ts";

const INSTANCES = 3;

/** A round is one race of each kind: five uses of one token beside a withdrawal, a revocation, an ending, a reuse. */
export async function raceRefresh(rounds: number): Promise<readonly string[]> {
  const postgres = await startPostgres({ durable: true });
  const races = await openRefreshRaces(await freshDatabase(postgres), INSTANCES);
  const sums = new Map(REFRESH_RACES.map((kind) => [kind, { races: 0, uses: 0, given: 0, living: 0 }]));
  try {
    for (let round = 0; round < rounds; round++) {
      for (const [kind, sum] of sums) {
        const outcome = await races.race(kind);
        const wrong = wrongIn(kind, outcome);
        if (wrong !== undefined) throw new Error(`${kind}, round ${round}: ${wrong}`);
        sum.races++;
        sum.uses += outcome.uses;
        sum.given += outcome.given;
        sum.living += kind === "nothing" ? 0 : outcome.living;
      }
    }
  } finally {
    await races.stop();
    await postgres.stop();
  }
  return [...sums].map(
    ([kind, { races: count, uses, given, living }]) =>
      `${kind}: ${count} families, ${given} of ${uses} uses got tokens, one successor each, ${living} living of dead ones`,
  );
}

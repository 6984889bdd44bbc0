/** Endings of every kind beside exchanges, at three instances on one PostgreSQL. */
import { openEndingRaces, RACE_KINDS } from "../../test/support/ending-races.ts";
import { freshDatabase, startPostgres } from "../../test/support/postgres.ts";

const INSTANCES = 3;
const WIDTH = 10;

/** A round is a volley of each kind: thirty exchanges and more beside an ending; 34 rounds are a thousand of each. */
export async function raceEndings(rounds: number): Promise<readonly string[]> {
  const postgres = await startPostgres({ durable: true });
  const races = await openEndingRaces(await freshDatabase(postgres), INSTANCES);
  const results = new Map(RACE_KINDS.map((kind) => [kind, { races: 0, written: 0, living: 0 }]));
  try {
    for (let round = 0; round < rounds; round++) {
      for (const [kind, sum] of results) {
        const one = await races.volley(kind, WIDTH);
        sum.races += one.races;
        sum.written += one.written;
        sum.living += one.living;
      }
      await races.settle();
    }
  } finally {
    await races.stop();
    await postgres.stop();
  }
  for (const [kind, { living }] of results) {
    if (living > 0) throw new Error(`${living} tokens live on after an ending by ${kind}`);
  }
  return [...results].map(
    ([kind, one]) =>
      `${kind}: ${one.races} exchanges beside an ending, ${one.written} written, ${one.living} living`,
  );
}

/** Servers that are killed under load, on each store. */
import { killUnderLoad } from "../../test/support/kills.ts";
import { freshDatabase, startPostgres } from "../../test/support/postgres.ts";

const tell = (tokens: number): string[] => [
  `${tokens} tokens answered, each has its event and its row, and the trail verifies`,
];

export const killOnSqlite = async (rounds: number): Promise<readonly string[]> =>
  tell(await killUnderLoad(rounds));

export async function killOnPostgres(rounds: number): Promise<readonly string[]> {
  const postgres = await startPostgres({ durable: true });
  try {
    return tell(await killUnderLoad(rounds, await freshDatabase(postgres)));
  } finally {
    await postgres.stop();
  }
}

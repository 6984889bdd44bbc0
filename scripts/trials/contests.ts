/** Grants and assertions that several instances on one PostgreSQL are shown at the same time. */
import {
  contestAssertion,
  contestGrant,
  type Instances,
  openInstances,
} from "../../test/support/contests.ts";
import { KINDS, openToGuests } from "../../test/support/guests.ts";
import { freshDatabase, startPostgres } from "../../test/support/postgres.ts";

const INSTANCES = 3;

export const contestGrants = (rounds: number): Promise<readonly string[]> =>
  repeat(rounds, async (instances) => {
    for (const kind of KINDS) await contestGrant(instances, kind);
  });

export const contestAssertions = (rounds: number): Promise<readonly string[]> =>
  repeat(rounds, contestAssertion);

async function repeat(
  rounds: number,
  contest: (instances: Instances) => Promise<void>,
): Promise<readonly string[]> {
  const postgres = await startPostgres({ durable: true });
  const guests = await openToGuests();
  const instances = await openInstances(guests, await freshDatabase(postgres), INSTANCES);
  try {
    for (let round = 0; round < rounds; round++) await contest(instances);
    return [`exactly one token for each, of ${INSTANCES} instances that were asked twice`];
  } finally {
    await instances.stop();
    await guests.stop();
    await postgres.stop();
  }
}

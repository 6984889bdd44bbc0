/**
 * The contracts of what several write, in sessions that are serializable, where PostgreSQL rolls back what does not fit
 * the order of others, as engines without `read committed` do.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type SharedPostgres, sharePostgres } from "../../../support/postgres.ts";
import { stop } from "../../../support/stop.ts";
import { makeFamily, rotation } from "../families.contract.ts";
import { makeEvent, makeToken, notEnded } from "../store.contract.ts";
import { harnessOf, testContested } from "./contracts.ts";
import { keepSchema } from "./schema.ts";

let server: SharedPostgres;
before(async () => {
  server = await sharePostgres();
});
after(() => stop(server));

const conflicts = { count: 0 };
const harness = harnessOf(() => server, keepSchema(new Set(), conflicts), "PostgreSQL, serializable");
testContested(harness);

test("STORE-D-10 what the database rolled back for the order of others is done again: nothing is lost, and nothing is there twice", async (t) => {
  const { open, select = assert.fail } = await harness.create(t);
  const stores = await Promise.all(Array.from({ length: 4 }, () => open()));
  const [first] = stores;
  await first?.log.append([
    { event: makeEvent("as-0", 0), family: { start: makeFamily(), digest: "digest-1" }, guards: [] },
  ]);
  const before = conflicts.count;
  const written = [1, 0, 0, 0];
  const rounds = 10;
  // In each round every instance uses the same refresh token, and one of them rotates it.
  for (let round = 1; round <= rounds; round++) {
    const failures = await Promise.all(
      stores.map(({ log }, at) => {
        const token = makeToken();
        const event = makeEvent(`as-${at}`, written[at] ?? 0);
        return log.append([{ event, token, family: rotation(round), guards: [notEnded(token)] }]);
      }),
    );
    for (const [at, failed] of failures.entries()) {
      if (failed.length === 0) written[at] = (written[at] ?? 0) + 1;
      else assert.deepEqual(failed, [{ entry: 0, guard: "family_current" }]);
    }
    assert.equal(failures.filter(({ length }) => length === 0).length, 1, `round ${round}`);
  }
  const [count] = await select(`select (select generation::int from refresh_family) as generation,
    (select count(*)::int from token) as tokens, (select count(*)::int from event) as events`);
  assert.deepEqual({ ...count }, { generation: rounds + 1, tokens: rounds, events: rounds + 1 });
  assert.ok(conflicts.count > before, "the database rolled something back");
});

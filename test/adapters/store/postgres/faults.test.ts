import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { STORE_CONNECTIONS_MAX, STORE_CONNECTS_MAX } from "../../../../src/limits.ts";
import type { PgFault } from "../../../support/pg-faults.ts";
import { meetPgFault, PG_FAULTS } from "../../../support/pg-faults.ts";
import type { Postgres } from "../../../support/postgres.ts";
import { startPostgres } from "../../../support/postgres.ts";
import { stop } from "../../../support/stop.ts";

const FAULT_MS = 1_200;
const BACK_MS_MAX = 5_000;

let server: Postgres;
before(async () => {
  server = await startPostgres();
});
after(() => stop(server));

async function assertCalm(fault: PgFault): Promise<void> {
  const outcome = await meetPgFault(server, fault, FAULT_MS);
  const report = JSON.stringify(outcome);
  assert.ok(outcome.connectsPerSecond > 0 && outcome.connectsPerSecond <= STORE_CONNECTS_MAX, report);
  assert.ok(outcome.connections <= STORE_CONNECTIONS_MAX, report);
  assert.ok(outcome.backMs <= BACK_MS_MAX, report);
}

for (const fault of PG_FAULTS.filter(({ alone }) => alone)) {
  test(`a PostgreSQL that is ${fault.name} gets few connections and is used soon after`, () =>
    assertCalm(fault));
}

test("faults of one database or network cause few connections, and it is used soon after them", {
  concurrency: true,
}, async (t) => {
  const others = PG_FAULTS.filter(({ alone }) => !alone);
  await Promise.all(others.map((fault) => t.test(fault.name, () => assertCalm(fault))));
});

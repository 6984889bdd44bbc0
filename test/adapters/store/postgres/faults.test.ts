import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  STORE_CONNECT_TIMEOUT_MS,
  STORE_CONNECTIONS_MAX,
  STORE_CONNECTS_MAX,
  STORE_GRACE_MS,
  STORE_RETRY_MS,
  STORE_TIMEOUT_MS,
} from "../../../../src/limits/store.ts";
import type { PgFault } from "../../../support/pg-faults.ts";
import { meetPgFault, PG_FAULTS } from "../../../support/pg-faults.ts";
import type { DatabaseServer, Transport } from "../../../support/pg-transports.ts";
import { startDatabaseServer, TRANSPORTS } from "../../../support/pg-transports.ts";
import { stop } from "../../../support/stop.ts";

const FAULT_MS = 1_200;
const BACK_MS_MAX = 5_000;
/** A call that is not answered, the pause after it, and an attempt that is not answered. */
const IDLE_MS_MAX = STORE_TIMEOUT_MS + STORE_GRACE_MS + STORE_RETRY_MS + STORE_CONNECT_TIMEOUT_MS;

let server: DatabaseServer;
before(async () => {
  server = await startDatabaseServer();
});
after(() => stop(server));

async function assertCalm(fault: PgFault, transports: readonly Transport[]): Promise<void> {
  for (const outcome of await meetPgFault(server, fault, FAULT_MS, transports)) {
    const report = JSON.stringify(outcome);
    assert.ok(outcome.connectsPerSecond > 0 && outcome.connectsPerSecond <= STORE_CONNECTS_MAX, report);
    assert.ok(outcome.connections <= STORE_CONNECTIONS_MAX, report);
    assert.ok(outcome.backMs <= BACK_MS_MAX, report);
    assert.ok(outcome.idleMs <= IDLE_MS_MAX, report);
  }
}

for (const fault of PG_FAULTS.filter(({ alone }) => alone)) {
  test(`a PostgreSQL that is ${fault.name} gets few connections and is used soon after, by every transport`, () =>
    assertCalm(fault, TRANSPORTS));
}

for (const transport of ["none", "verify-full"] as const) {
  test(`faults of one database or network cause few connections, and it is used soon after them (${transport})`, {
    concurrency: true,
  }, async (t) => {
    const others = PG_FAULTS.filter(({ alone }) => !alone);
    await Promise.all(others.map((fault) => t.test(fault.name, () => assertCalm(fault, [transport]))));
  });
}

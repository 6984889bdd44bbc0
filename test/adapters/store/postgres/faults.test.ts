import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import {
  STORE_CONNECT_TIMEOUT_MS,
  STORE_CONNECTIONS_MAX,
  STORE_CONNECTS_MAX,
  STORE_GRACE_MS,
  STORE_RETRY_MS,
  STORE_TIMEOUT_MS,
} from "../../../../src/limits/store.ts";
import { meetPgFault, PG_FAULTS, type PgFault } from "../../../support/pg-faults.ts";
import {
  type DatabaseServer,
  startDatabaseServer,
  TRANSPORTS,
  type Transport,
} from "../../../support/pg-transports.ts";
import { stop } from "../../../support/stop.ts";
import { stretch } from "../../../support/yardstick.ts";

const FAULT_MS = 1_200;
const BACK_MS_MAX = 5_000;
/** A call that is not answered, the pause after it, and an attempt that is not answered. */
const IDLE_MS_MAX = STORE_TIMEOUT_MS + STORE_GRACE_MS + STORE_RETRY_MS + STORE_CONNECT_TIMEOUT_MS;

let server: DatabaseServer;
before(async () => {
  server = await startDatabaseServer();
});
after(() => stop(server));

async function assertCalm(fault: PgFault, transports: readonly Transport[], t: TestContext): Promise<void> {
  const during = stretch();
  for (const outcome of await meetPgFault(server, fault, FAULT_MS, transports)) {
    const report = JSON.stringify(outcome);
    const { connectsPerSecond, connections, backMs, idleMs } = outcome;
    assert.ok(connectsPerSecond > 0 && connections <= STORE_CONNECTIONS_MAX, report);
    // Where work waits for a processor, attempts of several seconds come together.
    const isCalm = connectsPerSecond <= STORE_CONNECTS_MAX && backMs <= BACK_MS_MAX && idleMs <= IDLE_MS_MAX;
    if (isCalm) continue;
    assert.ok(during.wasBusy(), report);
    t.diagnostic(`not measured: this machine was too busy (${report})`);
  }
}

for (const fault of PG_FAULTS.filter(({ alone }) => alone)) {
  test(`a PostgreSQL that is ${fault.name} gets few connections and is used soon after, by every transport`, (t) =>
    assertCalm(fault, TRANSPORTS, t));
}

test("faults of one database or network cause few connections, and it is used soon after them (verify-full)", {
  concurrency: true,
}, async (t) => {
  const others = PG_FAULTS.filter(({ alone }) => !alone);
  await Promise.all(
    others.map((fault) => t.test(fault.name, (one) => assertCalm(fault, ["verify-full"], one))),
  );
});

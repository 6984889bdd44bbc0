/** What the store and the journal on it do when their PostgreSQL is frozen or killed: a server of this file alone. */
import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import postgres from "postgres";
import type { OpenJournal } from "../../../../src/adapters/audit/journal.ts";
import { openStore } from "../../../../src/adapters/store/open.ts";
import type { Store } from "../../../../src/adapters/store/store.ts";
import { JOURNAL_BATCH_MAX } from "../../../../src/limits/store.ts";
import { StoreUnavailable } from "../../../../src/ports.ts";
import { assertChain, open as openJournal, untilRecorded } from "../../../support/journal.ts";
import { type Postgres, startPostgres } from "../../../support/postgres.ts";
import { stop } from "../../../support/stop.ts";
import { EVENT } from "../../../support/trail.ts";
import { assertShort, stretch } from "../../../support/yardstick.ts";
import { isLive, makeEvent, makeToken } from "../store.contract.ts";
import { assertUnavailable, GRACE_MS, TIMEOUT_MS, untilAvailable } from "./deadlines.ts";
import { freshSchema } from "./schema.ts";

let server: Postgres;
before(async () => {
  server = await startPostgres();
});
after(() => stop(server));

async function open(t: TestContext, url?: string): Promise<Store> {
  const store = await openStore({ postgres: url ?? (await freshSchema(server)) }, TIMEOUT_MS);
  t.after(() => store.close());
  return store;
}

test("AUDIT-D-1 if the server stops answering, every call ends at the deadline, and calls succeed afterwards", async (t) => {
  const store = await open(t);
  const token = makeToken();
  await store.log.append([{ event: makeEvent("as-1", 0), token }]);
  server.suspend();
  try {
    const calls = [
      () => store.log.append([{ event: makeEvent("as-1", 1) }]),
      () => store.log.head("as-1"),
      () => store.log.read({ log: "as-1", limit: 1 }),
      () => store.consents.list(),
      () => store.keys.list(),
      ...Array.from({ length: 50 }, () => () => store.facts.token(token.jti)),
    ];
    await Promise.all(calls.map(assertUnavailable));
    // The second round has a new pool, which cannot connect.
    await Promise.all(calls.map(assertUnavailable));
  } finally {
    server.resume();
  }
  assert.ok(isLive(await untilAvailable(() => store.facts.token(token.jti))));
  // The write may have been stored or not; the next place is free in both cases.
  const head = await untilAvailable(() => store.log.head("as-1"));
  const event = makeEvent("as-1", (head?.seq ?? 0) + 1);
  assert.deepEqual(await untilAvailable(() => store.log.append([{ event }])), []);
});

test("AUDIT-D-1 if the server is killed, running calls fail and later calls succeed", async (t) => {
  const url = await freshSchema(server);
  const store = await open(t, url);
  const sql = postgres(url, { max: 1 });
  await sql`begin`;
  await sql`lock table event`;
  const calls = Array.from({ length: 20 }, () => assertUnavailable(() => store.audit.heads()));
  await sleep(100);
  await server.kill();
  await Promise.all(calls);
  await assertUnavailable(() => store.log.append([{ event: makeEvent("as-1", 0) }]));
  await sql.end({ timeout: 0 });
  await server.restart();
  assert.deepEqual(await untilAvailable(() => store.log.append([{ event: makeEvent("as-1", 0) }])), []);
});

test("a store that is closed while the server does not answer closes its connections", async (t) => {
  const countSockets = () =>
    process.getActiveResourcesInfo().filter((resource) => resource === "TCPSocketWrap").length;
  const before = countSockets();
  const store = await open(t);
  await store.log.head("as-1");
  assert.ok(countSockets() > before);
  server.suspend();
  try {
    await assertUnavailable(() => store.log.head("as-1"));
    await store.close();
    await sleep(10);
    assert.ok(countSockets() <= before);
  } finally {
    server.resume();
  }
});

// --- the journal --------------------------------------------------------------------------------------------------

async function assertRefused(journal: OpenJournal, count: number): Promise<void> {
  const waited = stretch();
  const attempts = Array.from({ length: count }, () => journal.record({ event: EVENT }));
  for (const attempt of await Promise.allSettled(attempts)) {
    assert.equal(attempt.status === "rejected" && attempt.reason.name, "StoreUnavailable");
  }
  assertShort(waited, TIMEOUT_MS + GRACE_MS, "writes to a PostgreSQL that is away");
}

/** Every answered write is in the log; the log may also have writes whose answer was lost. */
async function assertHolds(store: Store, ids: readonly string[]): Promise<void> {
  const stored = new Set((await assertChain(store)).map(({ id }) => id));
  for (const id of ids) assert.ok(stored.has(id));
}

test("AUDIT-D-1 if the database stops answering, no write waits past the deadline, and the chain continues afterwards", async (t) => {
  const store = await open(t);
  const journal = await openJournal(store.log, { timeoutMs: TIMEOUT_MS });
  const ids = [await untilRecorded(journal, { event: EVENT })];
  for (let round = 0; round < 2; round++) {
    server.suspend();
    try {
      await assertRefused(journal, 2 * JOURNAL_BATCH_MAX);
      await assertRefused(journal, 1);
    } finally {
      server.resume();
    }
    const after = Array.from({ length: 10 }, () => untilRecorded(journal, { event: EVENT }));
    ids.push(...(await Promise.all(after)));
  }
  await assertHolds(store, ids);
});

test("AUDIT-D-1 a database that is killed under load loses no answered write", async (t) => {
  const store = await open(t);
  const journal = await openJournal(store.log, { timeoutMs: TIMEOUT_MS });
  const ids: string[] = [];
  let refused = 0;
  let loading = true;
  const load = Array.from({ length: 20 }, async () => {
    while (loading) {
      try {
        const recorded = await journal.record({ event: EVENT });
        assert.ok(recorded.ok);
        ids.push(recorded.value.eventId);
      } catch (error) {
        assert.ok(error instanceof StoreUnavailable);
        refused++;
        await sleep(10);
      }
    }
  });
  await sleep(200);
  await server.kill();
  await assertRefused(journal, 1);
  await server.restart();
  ids.push(await untilRecorded(journal, { event: EVENT }));
  loading = false;
  await Promise.all(load);
  assert.ok(refused > 0 && ids.length > 1);
  await assertHolds(store, ids);
});

/** Entries of held requests, of whose write no answer came. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { OutageWatch } from "../../../src/adapters/audit/outage.ts";
import { openStore } from "../../../src/adapters/store/open.ts";
import type { EventLog, Store } from "../../../src/adapters/store/store.ts";
import { HELD_BYTES_MAX, HELD_REQUESTS_MAX } from "../../../src/limits/connections.ts";
import { StoreUnavailable } from "../../../src/ports.ts";
import { assertChain, open } from "../../support/journal.ts";
import { migratedFile } from "../../support/migrated.ts";
import { EVENT } from "../../support/trail.ts";
import { until } from "../../support/until.ts";

const LATER_MS = 60_000;
const away = () => Object.assign(new StoreUnavailable("away"), { noWriter: true } as const);
const never = () => new AbortController().signal;

/** A store that loses the answer to its next write: the write arrives at once, before the next one, or never. */
async function losing(t: TestContext, how: "at once" | "late" | "never") {
  const store: Store = await openStore({ sqlite: await migratedFile() });
  t.after(() => store.close());
  let lost: Parameters<EventLog["append"]>[0] | undefined;
  let next = false;
  const log: EventLog = {
    ...store.log,
    async append(batch) {
      if (next) {
        next = false;
        if (how === "at once") await store.log.append(batch);
        if (how === "late") lost = batch;
        throw away();
      }
      const late = lost;
      lost = undefined;
      if (late !== undefined) await store.log.append(late);
      return store.log.append(batch);
    },
  };
  const journal = await open(log);
  await journal.record({ event: EVENT });
  next = true;
  return { store, journal };
}

for (const how of ["at once", "late"] as const) {
  test(`STORE-D-21 an entry whose write arrived ${how} is answered as written, once it is known`, async (t) => {
    const { store, journal } = await losing(t, how);
    const recorded = await journal.record({ event: EVENT }, never(), true);
    assert.ok(recorded.ok);
    const events = await assertChain(store);
    assert.equal(events.filter(({ id }) => id === recorded.value.eventId).length, 1);
    assert.equal(events.filter(({ type }) => type === EVENT.type).length, 2);
  });
}

test("STORE-D-21 an entry whose write did not arrive is told so only when its place in the log is taken", async (t) => {
  const { store, journal } = await losing(t, "never");
  await assert.rejects(journal.record({ event: EVENT }, never(), true), { noWriter: true });
  const types = (await assertChain(store)).map(({ type }) => type);
  assert.deepEqual(types, ["log.genesis", EVENT.type, "log.resumed"]);
});

test("STORE-D-21 an entry that is seen in the store is answered only when a write behind it is durable, and begins anew where a promoted server lacks it", async (t) => {
  const [first, promoted] = [
    await openStore({ sqlite: await migratedFile() }),
    await openStore({ sqlite: await migratedFile() }),
  ];
  t.after(() => Promise.all([first.close(), promoted.close()]));
  let now: Store = first;
  let writes = true;
  const log: EventLog = {
    ...first.log,
    head: (name) => now.log.head(name),
    read: (filter) => now.log.read(filter),
    async append(batch) {
      // The commit is in the primary, and waits for a standby that is gone.
      if (!writes) {
        if (batch.every(({ event }) => event.type === EVENT.type)) await now.log.append(batch);
        throw away();
      }
      return now.log.append(batch);
    },
  };
  const journal = await open(log);
  for (const event of await first.log.read({ log: "as-1", limit: 9 })) await promoted.log.append([{ event }]);
  writes = false;
  let isAnswered = false;
  const held = journal.record({ event: EVENT }, never(), true).finally(() => {
    isAnswered = true;
  });
  const ended = assert.rejects(held, { noWriter: true });
  await until(async () => (await first.log.head("as-1"))?.seq === 1, "the entry is in the primary");
  await assert.rejects(journal.record({ event: { ...EVENT, type: "token.denied" } }), { message: "away" });
  assert.equal(isAnswered, false);
  [now, writes] = [promoted, true];
  assert.ok((await journal.record({ event: EVENT })).ok);
  await ended;
  assert.equal((await assertChain(promoted)).length, 2);
});

test("STORE-D-21 an entry of a request that is not held is told at once that its outcome is unknown", async (t) => {
  const { journal } = await losing(t, "at once");
  await assert.rejects(journal.record({ event: EVENT }), { message: "away" });
});

test("STORE-D-21 an entry in doubt waits no longer than its request", async (t) => {
  const { journal } = await losing(t, "never");
  const request = new AbortController();
  const recorded = journal.record({ event: EVENT }, request.signal, true);
  request.abort(new Error("the deadline"));
  await assert.rejects(recorded, { message: "the deadline" });
});

test("STORE-D-21 a journal that is closed keeps no entry in doubt waiting", async (t) => {
  const store = await openStore({ sqlite: await migratedFile() });
  t.after(() => store.close());
  let isAway = false;
  const head: EventLog["head"] = async (log) => (isAway ? Promise.reject(away()) : store.log.head(log));
  const append: EventLog["append"] = async (batch) =>
    isAway ? Promise.reject(away()) : store.log.append(batch);
  const journal = await open({ ...store.log, head, append });
  isAway = true;
  const recorded = assert.rejects(journal.record({ event: EVENT }, never(), true), StoreUnavailable);
  await journal.close();
  await recorded;
});

// --- the bounds -------------------------------------------------------------------------------------------------------

const hold = (watch: OutageWatch, bytes = 1, deadline = never()) =>
  watch.wait(bytes, performance.now() + LATER_MS, { deadline });

test("STORE-D-21 requests are held until the store answers, and no more of them than have a place", async () => {
  let answers = false;
  const watch = new OutageWatch(
    async () => answers,
    () => false,
  );
  const held = Array.from({ length: HELD_REQUESTS_MAX }, () => hold(watch));
  assert.equal(await hold(watch), false);
  answers = true;
  assert.deepEqual(new Set(await Promise.all(held)), new Set([true]));
  answers = false;
  const next = hold(watch);
  watch.over();
  assert.equal(await next, true);
  let looks = 0;
  const later = new OutageWatch(
    async () => ++looks > 1,
    () => false,
  );
  assert.equal(await hold(later), true, "also one alone, which the first look does not find");
});

test("STORE-D-21 forms that are held have a limited size together", async () => {
  const watch = new OutageWatch(
    async () => true,
    () => false,
  );
  const large = hold(watch, HELD_BYTES_MAX);
  assert.equal(await hold(watch), false);
  assert.equal(await large, true);
  assert.equal(await hold(watch), true);
});

test("STORE-D-21 a request at its deadline, and one whose time has passed, leave their places", async () => {
  const watch = new OutageWatch(
    async () => false,
    () => false,
  );
  const request = new AbortController();
  const held = hold(watch, HELD_BYTES_MAX, request.signal);
  request.abort();
  assert.equal(await held, false);
  assert.equal(await watch.wait(1, performance.now() - 1, { deadline: never() }), false);
  assert.equal(await watch.wait(HELD_BYTES_MAX, performance.now() + 1, { deadline: never() }), false);
});

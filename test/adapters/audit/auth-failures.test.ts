import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { type TestContext, test } from "node:test";
import { type AuthFailureCounter, countAuthFailures } from "../../../src/adapters/audit/auth-failures.ts";
import { openJournal } from "../../../src/adapters/audit/journal.ts";
import { makeClock } from "../../../src/adapters/clock.ts";
import { openStore } from "../../../src/adapters/store/open.ts";
import type { Store } from "../../../src/adapters/store/store.ts";
import type { Reason } from "../../../src/audit/reasons.ts";
import { FAILED_REQUESTS_MAX } from "../../../src/limits/audit.ts";
import { type Journal, StoreUnavailable } from "../../../src/ports.ts";
import { migratedFile } from "../../support/migrated.ts";
import { makeTimers } from "../../support/timers.ts";
import { until } from "../../support/until.ts";

const NOW_MS = Date.UTC(2026, 10, 21);
const PERIOD_MS = 60_000;
const ENDPOINT = "/token";

type Counted = { reason: string; count: number; detail: Record<string, unknown>; outcome: string };

async function open(t: TestContext) {
  const store = await openStore({ sqlite: await migratedFile() });
  t.after(() => store.close());
  const time = { nowMs: NOW_MS };
  const clock = makeClock(() => time.nowMs);
  const timers = makeTimers();
  const random = { id: () => randomUUID() };
  const journal = await openJournal({ log: "as-1", store: store.log, clock, random, onFatal: assert.fail });
  const failures = countAuthFailures(journal, clock, timers);
  t.after(() => failures.close());
  return { store, journal, failures, clock, time, timers };
}

async function counted({ log }: Store): Promise<Counted[]> {
  const events = await log.read({ log: "as-1", limit: 100_000 });
  return events.filter(({ type }) => type === "client.auth_failed").map(({ body }) => JSON.parse(body));
}

const brief = ({ reason, count, detail }: Counted): string => `${detail.source_ip} ${reason} ${count}`;

function note(failures: AuthFailureCounter, source: string, reason: Reason, times: number): void {
  for (let time = 0; time < times; time++)
    failures.note({ id: `r${time}`, endpoint: ENDPOINT, source_ip: source }, reason);
}

test("HTTP-D-13, AUDIT-D-2 failures of one source for one reason become one event with their count, also on closing", async (t) => {
  const { store, failures, time } = await open(t);
  note(failures, "192.0.2.1", "secret_wrong", 3);
  note(failures, "192.0.2.1", "client_unknown", 1);
  note(failures, "192.0.2.2", "secret_wrong", 2);
  failures.note({ id: "other", endpoint: "/introspect", source_ip: "192.0.2.2" }, "secret_wrong");
  time.nowMs += 5_000;
  assert.deepEqual(await counted(store), [], "no event before the period is over");
  await failures.close();
  const events = await counted(store);
  assert.deepEqual(events.map(brief), [
    "192.0.2.1 secret_wrong 3",
    "192.0.2.1 client_unknown 1",
    "192.0.2.2 secret_wrong 2",
    "192.0.2.2 secret_wrong 1",
  ]);
  const [first] = events;
  assert.equal(first?.outcome, "deny");
  assert.deepEqual(first?.detail, {
    source_ip: "192.0.2.1",
    endpoint: ENDPOINT,
    since: new Date(NOW_MS).toISOString(),
    requests: ["r0", "r1", "r2"],
  });
});

test("HTTP-D-13, AUDIT-D-9 a count names the first of its requests, and each is a search term", async (t) => {
  const { store, failures } = await open(t);
  note(failures, "192.0.2.1", "secret_wrong", FAILED_REQUESTS_MAX + 1);
  await failures.close();
  const [event] = await counted(store);
  assert.equal(event?.count, FAILED_REQUESTS_MAX + 1);
  const spans = (await store.audit.heads()).map(({ log, seq }) => ({ log, afterSeq: -1, toSeq: seq }));
  const findBy = (value: string) =>
    store.audit.find({ terms: [[{ name: "request", value }]], spans, limit: 10 });
  assert.equal((await findBy(`r${FAILED_REQUESTS_MAX - 1}`)).length, 1);
  assert.equal((await findBy(`r${FAILED_REQUESTS_MAX}`)).length, 0);
});

test("each period has its own events, and a period without failures has none", async (t) => {
  const { store, failures, time, timers } = await open(t);
  const recorded = (events: number) => async () => (await counted(store)).length >= events;
  note(failures, "192.0.2.1", "secret_wrong", 2);
  time.nowMs += 1_000;
  timers.pass(PERIOD_MS - 1);
  assert.deepEqual(await counted(store), []);
  timers.pass(1);
  await until(recorded(1), "the expected state is reached");
  note(failures, "192.0.2.1", "secret_wrong", 1);
  timers.pass(3 * PERIOD_MS);
  await failures.close();
  const events = await counted(store);
  assert.deepEqual(events.map(brief), ["192.0.2.1 secret_wrong 2", "192.0.2.1 secret_wrong 1"]);
  assert.deepEqual(
    events.map(({ detail }) => detail.since),
    [NOW_MS, NOW_MS + 1_000].map((ms) => new Date(ms).toISOString()),
  );
});

test("beyond a thousand sources, failures are counted in one event for each reason, and none is lost", async (t) => {
  const { store, failures } = await open(t);
  for (let source = 0; source < 5_000; source++) {
    note(failures, `2001:db8::${source.toString(16)}`, "client_unknown", 1);
  }
  note(failures, "2001:db8::1", "client_unknown", 1);
  note(failures, "192.0.2.1", "secret_wrong", 2);
  await failures.close();
  const events = await counted(store);
  assert.equal(events.length, 1_002);
  assert.deepEqual(events.slice(-2).map(brief), [
    "many sources client_unknown 4000",
    "many sources secret_wrong 2",
  ]);
  assert.equal(events.find(({ detail }) => detail.source_ip === "2001:db8::1")?.count, 2);
  assert.equal(
    events.reduce((sum, { count }) => sum + count, 0),
    5_003,
  );
});

test("closing waits for events that are being written and writes the counted ones", async (t) => {
  const { store, journal, clock, timers } = await open(t);
  const gate = Promise.withResolvers<void>();
  let tries = 0;
  const slow: Journal = {
    async record(entry) {
      if (tries++ === 0) await gate.promise;
      return journal.record(entry);
    },
  };
  const failures = countAuthFailures(slow, clock, timers);
  note(failures, "192.0.2.1", "secret_wrong", 1);
  timers.pass(PERIOD_MS);
  await until(() => tries === 1, "the expected state is reached");
  note(failures, "192.0.2.1", "client_unknown", 1);
  const closed = failures.close();
  gate.resolve();
  await closed;
  assert.deepEqual((await counted(store)).map(brief), [
    "192.0.2.1 secret_wrong 1",
    "192.0.2.1 client_unknown 1",
  ]);
});

test("without a store nothing is thrown, the rest of the period is dropped, and the next period is written again", async (t) => {
  const { store, journal, clock, timers } = await open(t);
  let tries = 0;
  let down = true;
  const unreliable: Journal = {
    async record(entry) {
      tries++;
      if (down) throw new StoreUnavailable("the disk is full");
      return journal.record(entry);
    },
  };
  const failures = countAuthFailures(unreliable, clock, timers);
  for (let source = 0; source < 100; source++) note(failures, `192.0.2.${source}`, "secret_wrong", 1);
  timers.pass(PERIOD_MS);
  await until(() => tries > 0, "the expected state is reached");
  timers.pass(2 * PERIOD_MS);
  assert.equal(tries, 1);
  down = false;
  note(failures, "192.0.2.1", "client_unknown", 1);
  await failures.close();
  assert.deepEqual((await counted(store)).map(brief), ["192.0.2.1 client_unknown 1"]);
});

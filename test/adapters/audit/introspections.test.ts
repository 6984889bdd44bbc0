import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { type TestContext, test } from "node:test";
import { countIntrospections } from "../../../src/adapters/audit/introspections.ts";
import { openJournal } from "../../../src/adapters/audit/journal.ts";
import { makeClock } from "../../../src/adapters/clock.ts";
import { openStore } from "../../../src/adapters/store/open.ts";
import type { AuditEvent } from "../../../src/audit/event.ts";
import { type Introspections, type Journal, StoreUnavailable } from "../../../src/ports.ts";
import { migratedFile } from "../../support/migrated.ts";
import { makeTimers } from "../../support/timers.ts";
import { until } from "../../support/until.ts";

const NOW_MS = Date.UTC(2026, 10, 21);
const PERIOD_MS = 60_000;
const API = "https://api.example";

/** A counter over a store that can be down. */
async function open(t: TestContext) {
  const store = await openStore({ sqlite: await migratedFile() });
  t.after(() => store.close());
  const time = { nowMs: NOW_MS };
  const clock = makeClock(() => time.nowMs);
  const timers = makeTimers();
  const random = { id: () => randomUUID() };
  const journal = await openJournal({ log: "as-1", store: store.log, clock, random, onFatal: assert.fail });
  const state = { down: false, tries: 0, lost: [] as number[] };
  const unreliable: Journal = {
    async record(entry) {
      state.tries++;
      if (state.down) throw new StoreUnavailable("the disk is full");
      return journal.record(entry);
    },
  };
  const counter = countIntrospections(unreliable, clock, timers, (questions) => state.lost.push(questions));
  const counted = async (): Promise<(AuditEvent & { detail: { since: string; requests: string[] } })[]> => {
    const events = await store.log.read({ log: "as-1", limit: 100_000 });
    return events.filter(({ type }) => type === "token.introspected").map(({ body }) => JSON.parse(body));
  };
  return { counter, counted, state, time, timers };
}

let requests = 0;
function ask(counter: Introspections, client: string, times = 1): void {
  for (let time = 0; time < times; time++) {
    const request = { id: `r${requests++}`, endpoint: "/introspect", source_ip: "192.0.2.1" };
    // What differs in each request is no part of what is counted.
    const described = {
      client_id: client,
      auth_method: "spiffe_jwt",
      kid: "k",
      jti: randomUUID(),
      aud: "as",
    };
    counter.note(request, described, { reason: "token_active", target: API });
  }
}

const sum = (events: readonly AuditEvent[]): number => events.reduce((all, { count = 0 }) => all + count, 0);

test("AUDIT-D-2 questions of one client about one target are one event, whatever assertion it sends", async (t) => {
  const { counter, counted } = await open(t);
  ask(counter, "gate", 3);
  ask(counter, "desk");
  await counter.close();
  assert.deepEqual(
    (await counted()).map(({ client, count, requested, outcome }) => [
      client,
      count,
      requested?.audience,
      outcome,
    ]),
    [
      [{ client_id: "gate", auth_method: "spiffe_jwt" }, 3, [API], "allow"],
      [{ client_id: "desk", auth_method: "spiffe_jwt" }, 1, [API], "allow"],
    ],
  );
});

test("HTTP-D-16, AUDIT-D-2 counts that the store does not take are counted on, from the time at which they began", async (t) => {
  const { counter, counted, state, time, timers } = await open(t);
  state.down = true;
  ask(counter, "gate", 5);
  ask(counter, "desk", 2);
  time.nowMs += PERIOD_MS;
  timers.pass(PERIOD_MS);
  await until(() => state.tries > 0, "an attempt to write");
  ask(counter, "gate", 4);
  state.down = false;
  await counter.close();
  const events = await counted();
  assert.deepEqual(
    events.map(({ client, count, detail }) => [client?.client_id, count, detail.since]).toSorted(),
    [
      ["desk", 2, new Date(NOW_MS).toISOString()],
      ["gate", 9, new Date(NOW_MS).toISOString()],
    ],
  );
  assert.deepEqual(state.lost, []);
});

test("HTTP-D-16, AUDIT-D-2 what cannot be recorded until the end is told, with its number", async (t) => {
  const { counter, counted, state } = await open(t);
  state.down = true;
  ask(counter, "gate", 5);
  ask(counter, "desk", 2);
  await counter.close();
  assert.deepEqual([await counted(), state.lost], [[], [7]]);
});

test("AUDIT-D-2 beyond a thousand kinds questions are counted together, also while the store is down, and none is lost", async (t) => {
  const { counter, counted, state, timers } = await open(t);
  state.down = true;
  for (let client = 0; client < 1_500; client++) ask(counter, `c${client}`);
  timers.pass(PERIOD_MS);
  await until(() => state.tries > 0, "an attempt to write");
  for (let client = 1_500; client < 3_000; client++) ask(counter, `c${client}`);
  state.down = false;
  await counter.close();
  const events = await counted();
  assert.equal(events.length, 1_001);
  assert.equal(sum(events), 3_000);
  assert.equal(events.find(({ client }) => client?.client_id === "many clients")?.count, 2_000);
});

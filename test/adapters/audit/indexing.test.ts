import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { buildSegment, startIndexing } from "../../../src/adapters/audit/indexing.ts";
import type { Written } from "../../../src/adapters/audit/journal.ts";
import { openStore } from "../../../src/adapters/store/open.ts";
import type { Store } from "../../../src/adapters/store/store.ts";
import type { AuditEvent } from "../../../src/audit/event.ts";
import {
  AUDIT_EVENTS_KEPT_MAX,
  AUDIT_SEGMENT_EVENTS,
  AUDIT_SEGMENT_WAIT_SECONDS,
  AUDIT_SEGMENTS_PER_ROUND,
} from "../../../src/limits/audit.ts";
import { migratedFile } from "../../support/migrated.ts";
import { type Prng, prng } from "../../support/prng.ts";
import { makeTime, makeTimers } from "../../support/timers.ts";
import { EVENT, makeTrail } from "../../support/trail.ts";

const START_MS = 1_790_000_000_000;

async function openIndexed(t: TestContext) {
  const store = await openStore({ sqlite: await migratedFile() });
  const time = makeTime(START_MS);
  const faults: string[] = [];
  const { clock } = time;
  const onFault = (text: string) => void faults.push(text);
  // These events are as if another process had written them.
  const journal = { follow: () => {} };
  const indexing = startIndexing({ log: "own", store, journal, clock, timers: makeTimers(), onFault });
  t.after(async () => {
    await indexing.close();
    await store.close();
    assert.deepEqual(faults, []);
  });
  return { store, time, indexing };
}

async function write(store: Store, log: string, fromSeq: number, count: number): Promise<void> {
  const batch = Array.from({ length: count }, (_, index) => {
    const seq = fromSeq + index;
    const body = JSON.stringify({ type: "t", client: { client_id: `c${seq}` } });
    return {
      event: {
        log,
        seq,
        id: `${log} ${seq}`,
        timeMs: START_MS,
        type: "t",
        body,
        prev: `${seq - 1}`,
        hash: `${seq}`,
      },
    };
  });
  assert.deepEqual(await store.log.append(batch), []);
}

test("a segment is built when there are enough events for it, and not before", async (t) => {
  const { store, indexing } = await openIndexed(t);
  await write(store, "own", 0, AUDIT_SEGMENT_EVENTS - 1);
  await indexing.run();
  assert.equal(await store.audit.indexedTo("own"), -1);
  await write(store, "own", AUDIT_SEGMENT_EVENTS - 1, 2);
  await indexing.run();
  assert.equal(await store.audit.indexedTo("own"), AUDIT_SEGMENT_EVENTS - 1);
});

test("the log of another instance gets a segment when that instance falls behind", async (t) => {
  const { store, indexing } = await openIndexed(t);
  await write(store, "other", 0, 2 * AUDIT_SEGMENT_EVENTS - 1);
  await indexing.run();
  assert.equal(await store.audit.indexedTo("other"), -1);
  await write(store, "other", 2 * AUDIT_SEGMENT_EVENTS - 1, 1);
  await indexing.run();
  assert.equal(await store.audit.indexedTo("other"), AUDIT_SEGMENT_EVENTS - 1);
});

test("few events get a segment when they have waited long, so that the end of an unused log is indexed", async (t) => {
  const { store, time, indexing } = await openIndexed(t);
  await write(store, "other", 0, 3);
  time.nowMs += AUDIT_SEGMENT_WAIT_SECONDS * 1_000 - 1;
  await indexing.run();
  assert.equal(await store.audit.indexedTo("other"), -1);
  time.nowMs += 1;
  await indexing.run();
  assert.equal(await store.audit.indexedTo("other"), 2);
});

test("PROD-6.3-3 events before a segment that have none themselves are found", async (t) => {
  const { store } = await openIndexed(t);
  await write(store, "own", 0, 30);
  const span = { log: "own", fromSeq: 10, toSeq: 19, fromMs: START_MS, toMs: START_MS };
  await store.audit.addSegment(span, [], []);
  await store.audit.addSegment({ ...span, fromSeq: 25, toSeq: 29 }, [], []);
  for (const [seq, isFound] of [
    [9, true],
    [15, false],
    [22, true],
  ] as const) {
    const terms = [[{ name: "client" as const, value: `c${seq}` }]];
    const found = await store.audit.find({
      terms,
      spans: [{ log: "own", afterSeq: -1, toSeq: 29 }],
      limit: 9,
    });
    assert.deepEqual(
      found.map((one) => one.seq),
      isFound ? [seq] : [],
    );
  }
});

test("PROD-6.3-3 events are found before they have segments, which are built a few at a time", async (t) => {
  const { store, indexing } = await openIndexed(t);
  const count = (AUDIT_SEGMENTS_PER_ROUND + 2) * AUDIT_SEGMENT_EVENTS;
  await write(store, "own", 0, count);
  const spans = [{ log: "own", afterSeq: -1, toSeq: count }];
  const seqsOf = async (clientId: string) => {
    const terms = [[{ name: "client" as const, value: clientId }]];
    return (await store.audit.find({ terms, spans, limit: 9 })).map(({ seq }) => seq);
  };
  for (const covered of [0, AUDIT_SEGMENTS_PER_ROUND, AUDIT_SEGMENTS_PER_ROUND + 2]) {
    assert.equal(await store.audit.indexedTo("own"), covered * AUDIT_SEGMENT_EVENTS - 1);
    for (const seq of [0, 5_000, count - 1]) assert.deepEqual(await seqsOf(`c${seq}`), [seq]);
    await indexing.run();
  }
});

/** An event with terms of every name, from texts of all kinds, some of which come again and again. */
function anyEvent(random: Prng): AuditEvent {
  const text = () => random.pick(["a", "b", "\0", 'q"\\', "\u2028é😀", String(random.below(9_999))]);
  const token = { type: "t", jti: text(), exp: -0, aud: [text()], fingerprint: text() };
  const detail = random.pick<AuditEvent["detail"]>([
    { client_id: text(), actor: text(), iss: text(), sub: text(), jti: text() },
    { requests: [text(), text(), 1], ends: { by: "grant", id: text() } },
    { jti: 5, actor: null, requests: text(), ends: { by: "subject", iss: text(), sub: text() } },
  ]);
  const whole: AuditEvent = {
    ...{ type: "token.issued", outcome: "allow", reason: "rule_match", detail: detail ?? {} },
    request: { id: String(random.below(1e9)), endpoint: "/token", source_ip: text() },
    client: { client_id: text(), auth_method: "none", workload: text() },
    subject: { iss: text(), sub: text(), kind: "user", token },
    actor: { iss: text(), sub: text(), token },
    chain: [{ iss: text(), sub: text() }],
    requested: { audience: [text(), text(), text()], resource: [text(), text(), text()] },
    policy: { digest: text(), rule_id: text() },
  };
  // Some members are absent.
  return Object.fromEntries(
    Object.entries(whole).filter(([name]) => /^(type|outcome|reason)$/.test(name) || random.pick([0, 1, 1])),
  ) as AuditEvent;
}

test("PROD-6.3-3 the index of events that this process wrote is, byte for byte, that of the stored texts, and no text is read", async (t) => {
  const { store, clock, timers, journal: openLog } = await makeTrail(t);
  const journal = await openLog("own");
  const random = prng(35);
  const write = (count: number) =>
    Promise.all(Array.from({ length: count }, () => journal.record({ event: anyEvent(random) })));
  // As by the process before.
  await write(150);
  const built: string[] = [];
  const read: number[] = [];
  const watched: Pick<Store, "log" | "audit"> = {
    log: {
      ...store.log,
      read: (filter) => {
        if (filter.limit > 1) read.push((filter.afterSeq ?? -1) + 1);
        return store.log.read(filter);
      },
    },
    audit: {
      ...store.audit,
      addSegment: (...given) => {
        built.push(JSON.stringify(given));
        return store.audit.addSegment(...given);
      },
    },
  };
  const indexing = startIndexing({
    log: "own",
    store: watched,
    journal,
    clock,
    timers,
    onFault: assert.fail,
  });
  t.after(() => indexing.close());
  await write(AUDIT_SEGMENT_EVENTS + 50);
  await indexing.run();
  // The genesis is one more, and what was written before is read in two steps.
  assert.deepEqual(read, [0, 128]);
  await write(AUDIT_SEGMENT_EVENTS);
  await indexing.run();
  assert.deepEqual([read.length, built.length], [2, 2]);
  for (const fromSeq of [0, AUDIT_SEGMENT_EVENTS]) {
    await buildSegment(watched, { log: "own", fromSeq, toSeq: fromSeq + AUDIT_SEGMENT_EVENTS - 1 });
  }
  assert.deepEqual(built.slice(2), built.slice(0, 2));
  assert.ok(read.length > 10);
});

test("what is kept of events for the index has a limit, and the events beyond it are read", async (t) => {
  const { store, clock, timers } = await makeTrail(t);
  const listeners: ((written: readonly Written[]) => void)[] = [];
  const journal = { follow: (listener: (typeof listeners)[0]) => void listeners.push(listener) };
  const indexing = startIndexing({ log: "own", store, journal, clock, timers, onFault: assert.fail });
  t.after(() => indexing.close());
  const count = AUDIT_EVENTS_KEPT_MAX + AUDIT_SEGMENT_EVENTS;
  for (let seq = 0; seq < count; seq += AUDIT_SEGMENT_EVENTS) {
    await write(store, "own", seq, AUDIT_SEGMENT_EVENTS);
    // What is told differs from what is stored, which shows where the index took it from.
    const event: AuditEvent = { ...EVENT, client: { client_id: "told", auth_method: "none" } };
    const one = { id: "", hash: "", timeMs: START_MS, event };
    const written = Array.from({ length: AUDIT_SEGMENT_EVENTS }, (_, index) => ({
      ...one,
      seq: seq + index,
    }));
    for (const tell of listeners) tell(written);
  }
  for (let rounds = 0; rounds < 2; rounds++) await indexing.run();
  assert.equal(await store.audit.indexedTo("own"), count - 1);
  for (const [seq, isRead] of [
    [0, false],
    [AUDIT_EVENTS_KEPT_MAX - 1, false],
    [AUDIT_EVENTS_KEPT_MAX, true],
    [count - 1, true],
  ] as const) {
    const terms = [[{ name: "client" as const, value: `c${seq}` }]];
    const found = await store.audit.find({
      terms,
      spans: [{ log: "own", afterSeq: -1, toSeq: count }],
      limit: 9,
    });
    assert.equal(found.length, isRead ? 1 : 0, `the event ${seq}`);
  }
});

test("events, the lists of their segment and the segment are removed one after another, with other work between", async (t) => {
  const { store, indexing } = await openIndexed(t);
  await write(store, "own", 0, AUDIT_SEGMENT_EVENTS + 1);
  await indexing.run();
  let turns = 0;
  const again = (): void => {
    turns++;
    next = setImmediate(again);
  };
  let next = setImmediate(again);
  t.after(() => clearImmediate(next));
  assert.equal(
    await store.audit.prune("own", AUDIT_SEGMENT_EVENTS, AUDIT_SEGMENT_EVENTS),
    AUDIT_SEGMENT_EVENTS,
  );
  assert.ok(turns >= 3, `${turns} turns`);
});

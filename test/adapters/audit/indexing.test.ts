import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { test } from "node:test";
import { startIndexing } from "../../../src/adapters/audit/indexing.ts";
import { openStore } from "../../../src/adapters/store/open.ts";
import type { Store } from "../../../src/adapters/store/store.ts";
import {
  AUDIT_SEGMENT_EVENTS,
  AUDIT_SEGMENT_WAIT_SECONDS,
  AUDIT_SEGMENTS_PER_ROUND,
} from "../../../src/limits/audit.ts";
import { migratedFile } from "../../support/migrated.ts";
import { makeTime, makeTimers } from "../../support/timers.ts";

const START_MS = 1_790_000_000_000;

async function openIndexed(t: TestContext) {
  const store = await openStore({ sqlite: await migratedFile() });
  const time = makeTime(START_MS);
  const faults: string[] = [];
  const { clock } = time;
  const onFault = (text: string) => void faults.push(text);
  const indexing = startIndexing({ log: "own", store, clock, timers: makeTimers(), onFault });
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
  await store.audit.addSegment(span, []);
  await store.audit.addSegment({ ...span, fromSeq: 25, toSeq: 29 }, []);
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

test("PROD-6.3-3 the events of an older version are found before they have segments, which are built a few at a time", async (t) => {
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

/** A journal for tests, at a time that stands still, and its chain as the stored texts tell it. */
import assert from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type JournalEntry,
  type JournalOptions,
  type OpenJournal,
  openJournal,
} from "../../src/adapters/audit/journal.ts";
import { makeClock } from "../../src/adapters/clock.ts";
import type { EventLog, Store, StoredEvent } from "../../src/adapters/store/store.ts";
import { STORE_RETRY_MS } from "../../src/limits/store.ts";
import { StoreUnavailable } from "../../src/ports.ts";

const NOW_MS = 1_790_000_000_000;

export async function open(store: EventLog, options: Partial<JournalOptions> = {}): Promise<OpenJournal> {
  const random = { id: () => randomUUID() };
  const clock = makeClock(() => NOW_MS);
  // The deadline has tests of its own; the others write hundreds of events at once, on whatever machine.
  const timeoutMs = 60_000;
  return openJournal({ log: "as-1", store, clock, random, onFatal: assert.fail, timeoutMs, ...options });
}

async function readAll(store: Store, log = "as-1"): Promise<readonly StoredEvent[]> {
  return store.log.read({ log, limit: 100_000 });
}

/** Verifies the chain from its beginning, from the stored texts alone. */
export async function assertChain(store: Store, log = "as-1"): Promise<readonly StoredEvent[]> {
  const events = await readAll(store, log);
  let prev = "0".repeat(64);
  for (const [seq, event] of events.entries()) {
    const bytes = Buffer.concat([Buffer.of(0), Buffer.from(event.body)]);
    assert.equal(event.hash, createHash("sha256").update(bytes).digest("hex"));
    const { id, type } = event;
    const time = new Date(event.timeMs).toISOString();
    const parsed = JSON.parse(event.body);
    for (const [name, value] of Object.entries({ v: 2, log, seq, id, time, type, prev })) {
      assert.equal(parsed[name], value, `${name} of event ${seq}`);
    }
    assert.deepEqual([event.seq, event.prev], [seq, prev]);
    prev = event.hash;
  }
  assert.equal(events[0]?.type, "log.genesis");
  return events;
}

export async function untilRecorded(journal: OpenJournal, entry: JournalEntry): Promise<string> {
  const deadlineMs = performance.now() + 10 * STORE_RETRY_MS;
  for (;;) {
    try {
      const recorded = await journal.record(entry);
      assert.ok(recorded.ok);
      return recorded.value.eventId;
    } catch (error) {
      if (!(error instanceof StoreUnavailable) || performance.now() > deadlineMs) throw error;
      await sleep(STORE_RETRY_MS / 10);
    }
  }
}

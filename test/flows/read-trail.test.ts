/** Pages of the audit trail for filters that are no terms of its index. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { readEventFilter } from "../../src/audit/query.ts";
import { readTrailPage } from "../../src/flows/read-trail.ts";
import { AUDIT_EVENTS_READ, AUDIT_PAGE_READ_MAX } from "../../src/limits/audit.ts";
import { EVENT, makeTrail } from "../support/trail.ts";

test("PROD-6.3-3 a filter that is no term reads so many events a page, and the next page goes on behind them", async (t) => {
  const { store, journal } = await makeTrail(t);
  const log = await journal("as-1");
  const wanted = { ...EVENT, reason: "no_rule" } as const;
  await log.record({ event: wanted });
  // In batches, because the journal writes what waits at once.
  const batch = Array.from({ length: 500 }, () => EVENT);
  for (let written = 0; written < AUDIT_PAGE_READ_MAX; written += batch.length) {
    await Promise.all(batch.map((event) => log.record({ event })));
  }
  await log.record({ event: wanted });
  await log.record({ event: EVENT });

  const filter = readEventFilter(new Map([["reason", "no_rule"]]));
  assert.ok(filter.ok);
  const { terms, holds } = filter.value;
  const spans = [{ log: "as-1", afterSeq: -1, toSeq: AUDIT_PAGE_READ_MAX + 3 }];
  const page = { terms, spans, limit: 5 };
  let turns = 0;
  let counting = setImmediate(function count() {
    turns++;
    counting = setImmediate(count);
  });
  const first = await readTrailPage({ audit: store.audit, turn }, page, holds);
  clearImmediate(counting);
  assert.ok(turns >= AUDIT_PAGE_READ_MAX / AUDIT_EVENTS_READ - 1, `other requests had ${turns} turns`);
  assert.deepEqual([first.shown.map(({ seq }) => seq), first.next?.seq], [[1], AUDIT_PAGE_READ_MAX - 1]);
  assert.ok(first.next !== undefined);
  const second = await readTrailPage({ audit: store.audit, turn }, { ...page, after: first.next }, holds);
  assert.deepEqual([second.shown.map(({ seq }) => seq), second.next], [[AUDIT_PAGE_READ_MAX + 2], undefined]);
  // A page that is full goes on behind its last event.
  const full = await readTrailPage({ audit: store.audit, turn }, { ...page, limit: 1 }, holds);
  assert.deepEqual([full.shown.map(({ seq }) => seq), full.next?.seq], [[1], 1]);
});

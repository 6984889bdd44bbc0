/** The index of the audit trail on node:sqlite: its segments, and the events that a search reads. */
import type { DatabaseSync } from "node:sqlite";
import type { Span } from "../../../audit/query.ts";
import { AUDIT_SEGMENT_EVENTS } from "../../../limits/audit.ts";
import type { AuditRow, ListRow, SegmentRow } from "../rows.ts";
import { fromAuditRow, fromListRow, fromSegmentRow, toListRow, toSegmentRow } from "../rows.ts";
import type { TrailRows } from "../search.ts";
import type { TrailIndex } from "../store.ts";
import { BLOCK_PARTS } from "../store.ts";
import type { Database } from "./database.ts";

export function sqliteTrailRows({ db, run }: Database): TrailRows {
  const { bounds, segments, lists, times, events, eventsAt } = prepareReading(db);
  return {
    bounds: async (log) => {
      const row = await run(() => bounds.get(log, log));
      return row?.first == null ? undefined : { firstSeq: Number(row.first), lastSeq: Number(row.last) };
    },
    segments: async ({ log, afterSeq, toSeq }, limit) => {
      const rows = await run(() =>
        segments.all(log, afterSeq - AUDIT_SEGMENT_EVENTS, toSeq, afterSeq, limit),
      );
      return (rows as SegmentRow[]).map(fromSegmentRow);
    },
    lists: async (ids, terms) => {
      const rows = await run(() => lists.all(JSON.stringify(ids), JSON.stringify(terms)));
      return (rows as ListRow[]).map(fromListRow);
    },
    times: async ({ log, afterSeq, toSeq }: Span) => {
      const row = await run(() => times.get(log, afterSeq, toSeq));
      return row?.from_ms == null ? undefined : { fromMs: Number(row.from_ms), toMs: Number(row.to_ms) };
    },
    events: async ({ log, afterSeq, toSeq }, limit) => {
      const rows = await run(() => events.all(log, afterSeq, toSeq, limit));
      return (rows as AuditRow[]).map(fromAuditRow);
    },
    eventsAt: async (places) => {
      const keys = JSON.stringify(places.map(({ log, seq }) => [log, seq]));
      return ((await run(() => eventsAt.all(keys))) as AuditRow[]).map(fromAuditRow);
    },
  };
}

function prepareReading(db: DatabaseSync) {
  return {
    bounds: db.prepare(
      `select (select min(seq) from event where log = ?) as first,
         (select max(seq) from event where log = ?) as last`,
    ),
    segments: db.prepare(
      `select id, log, from_seq, to_seq, from_ms, to_ms from event_segment
       where log = ? and from_seq > ? and from_seq <= ? and to_seq > ? order by from_seq limit ?`,
    ),
    lists: db.prepare(
      `select l.segment, l.numbers
       from json_each(?) s cross join json_each(?) t cross join event_segment_term l
       where l.segment = s.value and l.term = t.value`,
    ),
    times: db.prepare(
      "select min(time_ms) as from_ms, max(time_ms) as to_ms from event where log = ? and seq > ? and seq <= ?",
    ),
    events: db.prepare(
      "select log, seq, time_ms, body from event where log = ? and seq > ? and seq <= ? order by seq limit ?",
    ),
    eventsAt: db.prepare(
      `select e.log, e.seq, e.time_ms, e.body from json_each(?) p cross join event e
       where e.log = p.value ->> 0 and e.seq = p.value ->> 1`,
    ),
  };
}

export function sqliteTrailIndex({ db, run, write, remove }: Database): TrailIndex {
  const last = db.prepare("select max(from_seq) as from_seq, to_seq from event_segment where log = ?");
  const insertSegment = db.prepare(
    `insert into event_segment (log, from_seq, to_seq, from_ms, to_ms)
     values (:log, :from_seq, :to_seq, :from_ms, :to_ms) on conflict do nothing`,
  );
  // In order, so that pages are filled.
  const insertLists = db.prepare(
    `insert into event_segment_term (segment, term, numbers)
     select ?, value ->> 'term', value ->> 'numbers' from json_each(?) order by 2`,
  );
  const newer = db.prepare(
    "select 1 from event_block where to_ms >= ? order by log desc, from_seq desc limit 1",
  );
  const deleteTerms = db.prepare(
    `delete from event_term where (term, time_ms, log, seq) in
       (select term, time_ms, log, seq from event_term limit ?)`,
  );
  const deleteBlock = db.prepare(
    `delete from event_block where (log, from_seq) in (select log, from_seq from event_block limit 1)
     returning log, from_seq`,
  );
  const deletePart = db.prepare("delete from event_block_part where part = ? and log = ? and from_seq = ?");
  return {
    indexedTo: async (log) => {
      const row = await run(() => last.get(log));
      return row?.to_seq == null ? -1 : Number(row.to_seq);
    },
    addSegment: (segment, lists) =>
      write(() => {
        const { changes, lastInsertRowid } = insertSegment.run(toSegmentRow(segment));
        if (changes > 0) insertLists.run(lastInsertRowid, JSON.stringify(lists.map(toListRow)));
      }),
    forgetOlderIndex: (sinceMs, limit) =>
      remove(() => {
        if (newer.get(sinceMs) !== undefined) return false;
        if (deleteTerms.run(limit).changes > 0) return true;
        const block = deleteBlock.get();
        for (let part = 0; block !== undefined && part < BLOCK_PARTS; part++) {
          deletePart.run(part, block.log ?? null, block.from_seq ?? null);
        }
        return block !== undefined;
      }),
  };
}

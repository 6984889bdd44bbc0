/** The index of the audit trail on node:sqlite: its blocks, and the events that a search reads. */
import type { DatabaseSync } from "node:sqlite";
import type { Span } from "../../../audit/query.ts";
import { AUDIT_BLOCK_EVENTS } from "../../../limits/audit.ts";
import type { AuditRow, BlockRow, PartRow } from "../rows.ts";
import { fromAuditRow, fromBlockRow, fromPartRow, toBlockRow } from "../rows.ts";
import type { TrailRows } from "../search.ts";
import type { TrailIndex } from "../store.ts";
import type { Database } from "./database.ts";

export function sqliteTrailRows({ db, run }: Database): TrailRows {
  const { bounds, blocks, parts, times, events, eventsAt } = prepareReading(db);
  return {
    bounds: async (log) => {
      const row = await run(() => bounds.get(log, log));
      return row?.first == null ? undefined : { firstSeq: Number(row.first), lastSeq: Number(row.last) };
    },
    blocks: async ({ log, afterSeq, toSeq }, limit) => {
      const rows = await run(() => blocks.all(log, afterSeq - AUDIT_BLOCK_EVENTS, toSeq, afterSeq, limit));
      return (rows as BlockRow[]).map(fromBlockRow);
    },
    parts: async (heads, numbers) => {
      const places = JSON.stringify(heads.map(({ log, fromSeq }) => [log, fromSeq]));
      const rows = await run(() => parts.all(JSON.stringify(numbers), places));
      return (rows as PartRow[]).map(fromPartRow);
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
    blocks: db.prepare(
      `select log, from_seq, to_seq, from_ms, to_ms from event_block
       where log = ? and from_seq > ? and from_seq <= ? and to_seq > ? order by from_seq limit ?`,
    ),
    parts: db.prepare(
      `select p.log, p.from_seq, p.part, p.entries
       from json_each(?) n cross join json_each(?) b cross join event_block_part p
       where p.part = n.value and p.log = b.value ->> 0 and p.from_seq = b.value ->> 1`,
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
  const last = db.prepare("select max(from_seq) as from_seq, to_seq from event_block where log = ?");
  const insertBlock = db.prepare(
    `insert into event_block (log, from_seq, to_seq, from_ms, to_ms)
     values (:log, :from_seq, :to_seq, :from_ms, :to_ms) on conflict do nothing`,
  );
  const insertPart = db.prepare(
    "insert into event_block_part (part, log, from_seq, entries) values (?, ?, ?, ?)",
  );
  const deleteTerms = db.prepare(
    `delete from event_term where (term, time_ms, log, seq) in
       (select term, time_ms, log, seq from event_term limit ?)`,
  );
  return {
    indexedTo: async (log) => {
      const row = await run(() => last.get(log));
      return row?.to_seq == null ? -1 : Number(row.to_seq);
    },
    addBlock: (head, parts) =>
      write(() => {
        if (insertBlock.run(toBlockRow(head)).changes === 0) return;
        for (const { part, entries } of parts) insertPart.run(part, head.log, head.fromSeq, entries);
      }),
    forgetTerms: async (limit) => (await remove(() => deleteTerms.run(limit).changes)) > 0,
  };
}

/** The index of the audit trail on PostgreSQL: its segments, and the events that a search reads. */
import { AUDIT_SEGMENT_EVENTS } from "../../../limits/audit.ts";
import type { AuditRow, ListRow, SegmentRow } from "../rows.ts";
import { fromAuditRow, fromListRow, fromSegmentRow, toListRow, toSegmentRow } from "../rows.ts";
import type { TrailRows } from "../search.ts";
import type { TrailIndex } from "../store.ts";
import { BLOCK_PARTS } from "../store.ts";
import type { Call, Sql } from "./pool.ts";

/** Rows are looked up in lateral subqueries with a limit, which PostgreSQL always answers by the key. */
export function postgresTrailRows(call: Call): TrailRows {
  return {
    bounds: async (log) => {
      const [row] = await call(
        (sql) => sql<{ first: number | null; last: number | null }[]>`
          select (${firstSeq(sql, log)}) as first,
            (select seq from event where log = ${log} order by seq desc limit 1) as last`,
      );
      return row?.first == null || row.last == null ? undefined : { firstSeq: row.first, lastSeq: row.last };
    },
    segments: async ({ log, afterSeq, toSeq }, limit) => {
      const rows = await call(
        (sql) => sql<SegmentRow[]>`
          select id, log, from_seq, to_seq, from_ms, to_ms from event_segment
          where log = ${log} and from_seq > ${afterSeq - AUDIT_SEGMENT_EVENTS} and from_seq <= ${toSeq}
            and to_seq > ${afterSeq}
          order by from_seq limit ${limit}`,
      );
      return rows.map(fromSegmentRow);
    },
    lists: async (segments, terms) => {
      const asked = JSON.stringify(segments.flatMap((segment) => terms.map((term) => ({ segment, term }))));
      const rows = await call(
        (sql) => sql<ListRow[]>`
          select l.segment, l.numbers
          from json_to_recordset(${asked}::text::json) as a (segment integer, term integer)
          cross join lateral (
            select * from event_segment_term l where l.segment = a.segment and l.term = a.term limit 1
          ) l`,
      );
      return rows.map(fromListRow);
    },
    times: async ({ log, afterSeq, toSeq }) => {
      // Sums, because PostgreSQL would look for the extreme time itself along the index of all times.
      const [row] = await call(
        (sql) => sql<{ from_ms: number | null; to_ms: number | null }[]>`
          select min(time_ms + 0) as from_ms, max(time_ms + 0) as to_ms from event
          where log = ${log} and seq > ${afterSeq} and seq <= ${toSeq}`,
      );
      return row?.from_ms == null || row.to_ms == null ? undefined : { fromMs: row.from_ms, toMs: row.to_ms };
    },
    events: async ({ log, afterSeq, toSeq }, limit) => {
      const rows = await call(
        (sql) => sql<AuditRow[]>`
          select log, seq, time_ms, body from event
          where log = ${log} and seq > ${afterSeq} and seq <= ${toSeq} order by seq limit ${limit}`,
      );
      return rows.map(fromAuditRow);
    },
    eventsAt: async (places) => {
      const asked = JSON.stringify(places.map(({ log, seq }) => ({ log, seq })));
      const rows = await call(
        (sql) => sql<AuditRow[]>`
          select e.log, e.seq, e.time_ms, e.body
          from json_to_recordset(${asked}::text::json) as a (log text, seq bigint)
          cross join lateral (select * from event e where e.log = a.log and e.seq = a.seq limit 1) e`,
      );
      return rows.map(fromAuditRow);
    },
  };
}

/**
 * Where a log begins: from its first segment on, because the entries of removed events stay in the index until a vacuum
 * has passed, and each of them would be looked at.
 */
export const firstSeq = (sql: Sql, log: string) => sql`
  select seq from event where log = ${log} and seq >= coalesce((
    select from_seq from event_segment where log = ${log} order by from_seq limit 1), 0)
  order by seq limit 1`;

export function postgresTrailIndex(call: Call): TrailIndex {
  return {
    indexedTo: async (log) => {
      const [row] = await call(
        (sql) => sql<{ to_seq: number }[]>`
          select to_seq from event_segment where log = ${log} order by from_seq desc limit 1`,
      );
      return row?.to_seq ?? -1;
    },
    addSegment: async (segment, lists) => {
      const { log, from_seq, to_seq, from_ms, to_ms } = toSegmentRow(segment);
      // In order, so that pages are filled.
      await call(
        (sql) => sql`
          with added as (
            insert into event_segment (log, from_seq, to_seq, from_ms, to_ms)
            values (${log}, ${from_seq}, ${to_seq}, ${from_ms}, ${to_ms})
            on conflict do nothing returning id
          )
          insert into event_segment_term (segment, term, numbers)
          select a.id, l.term, l.numbers from added a
          cross join json_to_recordset(${JSON.stringify(lists.map(toListRow))}::text::json)
            as l (term integer, numbers text)
          order by l.term`,
      );
    },
    forgetOlderIndex: async (sinceMs) => {
      const newer = await call(
        (sql) => sql`
          select from event_block where to_ms >= ${sinceMs} order by log desc, from_seq desc limit 1`,
      );
      if (newer.length > 0) return false;
      const terms = await call((sql) => sql`select from event_term limit 1`);
      if (terms.length > 0) await call((sql) => sql`truncate event_term`);
      const blocks = await call(
        (sql) => sql`
          with gone as (
            delete from event_block where ctid = any(array(
              select ctid from event_block order by log, from_seq limit 1))
            returning log, from_seq
          ),
          parts as (
            delete from event_block_part
            where part = any(array(select generate_series(0, ${BLOCK_PARTS - 1}::int)))
              and log = (select log from gone) and from_seq = (select from_seq from gone)
          )
          select from gone`,
      );
      return blocks.length > 0;
    },
  };
}

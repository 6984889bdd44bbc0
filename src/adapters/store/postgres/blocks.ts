/** The index of the audit trail on PostgreSQL: its blocks, and the events that a search reads. */
import { AUDIT_BLOCK_EVENTS } from "../../../limits/audit.ts";
import type { AuditRow, BlockRow, PartRow } from "../rows.ts";
import { fromAuditRow, fromBlockRow, fromPartRow, toBlockRow } from "../rows.ts";
import type { TrailRows } from "../search.ts";
import type { TrailIndex } from "../store.ts";
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
    blocks: async ({ log, afterSeq, toSeq }, limit) => {
      const rows = await call(
        (sql) => sql<BlockRow[]>`
          select log, from_seq, to_seq, from_ms, to_ms from event_block
          where log = ${log} and from_seq > ${afterSeq - AUDIT_BLOCK_EVENTS} and from_seq <= ${toSeq}
            and to_seq > ${afterSeq}
          order by from_seq limit ${limit}`,
      );
      return rows.map(fromBlockRow);
    },
    parts: async (heads, numbers) => {
      const asked = heads.flatMap(({ log, fromSeq }) =>
        numbers.map((part) => ({ part, log, from_seq: fromSeq })),
      );
      const rows = await call(
        (sql) => sql<PartRow[]>`
          select p.log, p.from_seq, p.part, p.entries
          from json_to_recordset(${JSON.stringify(asked)}::text::json) as a (part smallint, log text, from_seq bigint)
          cross join lateral (
            select * from event_block_part p
            where p.part = a.part and p.log = a.log and p.from_seq = a.from_seq limit 1
          ) p`,
      );
      return rows.map(fromPartRow);
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
 * Where a log begins: from its first block on, because the entries of removed events stay in the index until a vacuum
 * has passed, and each of them would be looked at.
 */
export const firstSeq = (sql: Sql, log: string) => sql`
  select seq from event where log = ${log} and seq >= coalesce((
    select from_seq from event_block where log = ${log} order by from_seq limit 1), 0)
  order by seq limit 1`;

export function postgresTrailIndex(call: Call): TrailIndex {
  return {
    indexedTo: async (log) => {
      const [row] = await call(
        (sql) => sql<{ to_seq: number }[]>`
          select to_seq from event_block where log = ${log} order by from_seq desc limit 1`,
      );
      return row?.to_seq ?? -1;
    },
    addBlock: async (head, parts) => {
      const { log, from_seq, to_seq, from_ms, to_ms } = toBlockRow(head);
      const texts = parts.map(({ part, entries }) => ({ part, entries: entries.toBase64() }));
      await call(
        (sql) => sql`
          with added as (
            insert into event_block (log, from_seq, to_seq, from_ms, to_ms)
            values (${log}, ${from_seq}, ${to_seq}, ${from_ms}, ${to_ms})
            on conflict do nothing returning log, from_seq
          )
          insert into event_block_part (part, log, from_seq, entries)
          select p.part, a.log, a.from_seq, decode(p.entries, 'base64')
          from added a
          cross join json_to_recordset(${JSON.stringify(texts)}::text::json) as p (part smallint, entries text)`,
      );
    },
    forgetTerms: async () => {
      const rows = await call((sql) => sql`select from event_term limit 1`);
      if (rows.length === 0) return false;
      await call((sql) => sql`truncate event_term`);
      return true;
    },
  };
}

/** The audit trail on PostgreSQL: search by terms and time, retention, and removal of expired rows. */
import { TIMES } from "../../../audit/blocks.ts";
import type { Span } from "../../../audit/query.ts";
import type { AuditQuery } from "../../../records.ts";
import type { AuditRow, HeadRow, StoredCheckpointRow } from "../rows.ts";
import { boundsOf, fromAuditRow, fromCheckpointRow, fromHeadRow } from "../rows.ts";
import { earliestOf, searchTrail } from "../search.ts";
import type { AuditRows } from "../store.ts";
import { postgresTrailIndex, postgresTrailRows } from "./blocks.ts";
import type { Call, Sql } from "./pool.ts";

export function postgresAuditRows(call: Call): AuditRows {
  const trail = postgresTrailRows(call);
  return {
    ...postgresTrailIndex(call),
    heads: async () => {
      // Skips from name to name along the key, because there are few logs and many events.
      const rows = await call(
        (sql) => sql<HeadRow[]>`
          with recursive name (log) as (
            select min(log) from event
            union all
            select (select min(e.log) from event e where e.log > n.log) from name n where n.log is not null
          )
          select e.log, e.seq, e.hash, e.type from name n
          cross join lateral (
            select log, seq, hash, type from event where event.log = n.log order by seq desc limit 1
          ) e order by e.log`,
      );
      return rows.map(fromHeadRow);
    },
    find: async (query) => {
      if (query.terms.length > 0) return searchTrail(trail, query);
      const rows = await call((sql) => list(sql, query));
      return rows.map(fromAuditRow);
    },
    earliestMs: (spans) => earliestOf(trail, spans),
    checkpoints: async (after, limit) => {
      const known = JSON.stringify([...after].map(([log, size]) => ({ log, size })));
      const rows = await call(
        (sql) => sql<StoredCheckpointRow[]>`
          select c.log, c.tree_size, c.time_ms, c.jws from checkpoint c
          where c.tree_size > coalesce((
            select w.size from json_to_recordset(${known}::text::json) as w (log text, size bigint)
            where w.log = c.log), -1)
          order by c.log, c.tree_size limit ${limit}`,
      );
      return rows.map(fromCheckpointRow);
    },
    checkpoint: async (log, atMostMs) => {
      const [row] = await call(
        (sql) => sql<StoredCheckpointRow[]>`
          select log, tree_size, time_ms, jws from checkpoint
          where log = ${log} and time_ms <= ${atMostMs} order by tree_size desc limit 1`,
      );
      return row && fromCheckpointRow(row);
    },
    prune: async (log, belowSeq, limit) => {
      const events = await call(
        (sql) => sql`
          delete from event where log = ${log} and seq <= (
            select max(seq) from (
              select seq from event where log = ${log} and seq < ${belowSeq} order by seq limit ${limit}
            ) oldest)`,
      );
      // Whole blocks: the one in which the log now begins stays.
      await call(
        (sql) => sql`
          with gone as (
            delete from event_block
            where log = ${log} and from_seq < (select min(seq) from event where event.log = ${log})
              and to_seq < (select min(seq) from event where event.log = ${log})
            returning from_seq
          )
          delete from event_block_part p using gone g, generate_series(0, ${TIMES}::int) as n (part)
          where p.part = n.part and p.log = ${log} and p.from_seq = g.from_seq`,
      );
      return events.count;
    },
    sweep: async (beforeSeconds, limit) => {
      // Skips locked rows, so that several instances can remove rows at the same time.
      const tokens = await call(
        (sql) => sql`
          delete from token where jti in (
            select jti from token where expires_at < ${beforeSeconds} limit ${limit} for update skip locked)`,
      );
      const spent = await call(
        (sql) => sql`
          delete from spent_jti where (issuer, jti) in (
            select issuer, jti from spent_jti where expires_at < ${beforeSeconds} limit ${limit}
            for update skip locked)`,
      );
      const endings = await call(
        (sql) => sql`
          delete from ending where (key, cut_off, event_id) in (
            select key, cut_off, event_id from ending where expires_at < ${beforeSeconds} limit ${limit}
            for update skip locked)`,
      );
      return tokens.count + spent.count + endings.count;
    },
  };
}

const spansText = (spans: readonly Span[]): string =>
  JSON.stringify(spans.map(({ log, afterSeq, toSeq }) => ({ log, after_seq: afterSeq, to_seq: toSeq })));

/** All events, in order of time. */
function list(sql: Sql, query: AuditQuery) {
  const { spans, limit, newestFirst } = query;
  const { fromMs, toMs, after } = boundsOf(query);
  const position = sql`(${after.timeMs}::bigint, ${after.log}, ${after.seq}::bigint)`;
  const follows = newestFirst ? sql`< ${position}` : sql`> ${position}`;
  const order = newestFirst ? sql`e.time_ms desc, e.log desc, e.seq desc` : sql`e.time_ms, e.log, e.seq`;
  return sql<AuditRow[]>`
    with span as materialized (
      select * from json_to_recordset(${spansText(spans)}::text::json)
        as w (log text, after_seq bigint, to_seq bigint)
    )
    select e.log, e.seq, e.time_ms, e.body from event e
    where e.time_ms >= ${fromMs} and e.time_ms < ${toMs}
      and (e.time_ms, e.log, e.seq) ${follows}
      and exists (select from span w where w.log = e.log and e.seq > w.after_seq and e.seq <= w.to_seq)
    order by ${order} limit ${limit}`;
}

/** The audit trail on PostgreSQL: search by terms and time, retention, and removal of expired rows. */

import type { Span } from "../../../audit/query.ts";
import type { AuditQuery } from "../../../records.ts";
import { termKey, termsOfBody } from "../encoding.ts";
import type { AuditRow, HeadRow, StoredCheckpointRow } from "../rows.ts";
import { boundsOf, fromAuditRow, fromCheckpointRow, fromHeadRow } from "../rows.ts";
import type { AuditRows } from "../store.ts";
import type { Call, Sql } from "./pool.ts";

export function postgresAuditRows(call: Call): AuditRows {
  return {
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
      const rows = await call((sql) => find(sql, query));
      return rows.map(fromAuditRow);
    },
    earliestMs: async (spans) => {
      const [row] = await call(
        (sql) => sql<{ time: number | null }[]>`
          select min(e.time_ms) as time
          from json_to_recordset(${spansText(spans)}::text::json) as w (log text, after_seq bigint, to_seq bigint)
          join event e on e.log = w.log and e.seq > w.after_seq and e.seq <= w.to_seq`,
      );
      return row?.time ?? undefined;
    },
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
      const rows = await call(
        (sql) => sql<AuditRow[]>`
          select log, seq, time_ms, body from event
          where log = ${log} and seq < ${belowSeq} order by seq limit ${limit}`,
      );
      const terms = rows.flatMap(({ seq, time_ms, body }) =>
        termsOfBody(body).map((term) => ({ term: termKey(term), time_ms, seq })),
      );
      const last = rows.at(-1);
      if (last === undefined) return 0;
      await call(
        (sql) => sql`
          with term_gone as (
            delete from event_term t
            using json_to_recordset(${JSON.stringify(terms)}::text::json) as g (term text, time_ms bigint, seq bigint)
            where t.term = g.term and t.time_ms = g.time_ms and t.log = ${log} and t.seq = g.seq
          )
          delete from event where log = ${log} and seq <= ${last.seq}`,
      );
      return rows.length;
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

/** Walks the index of the first alternatives in order, and looks up the others for each position found. */
function find(sql: Sql, query: AuditQuery) {
  const { terms, spans, limit, newestFirst } = query;
  const keys = terms.map((choice) => choice.map(termKey));
  const [first, ...others] = keys;
  const any = (choice: readonly string[]) =>
    sql`(select json_array_elements_text(${JSON.stringify(choice)}::text::json))`;
  const places =
    first === undefined
      ? sql`event`
      : first.length === 1
        ? sql`(select * from event_term where term = ${first[0] ?? ""})`
        : sql`(select distinct time_ms, log, seq from event_term where term in ${any(first)})`;
  const asked = others.map(
    (choice) => sql`and exists (
      select from event_term x
      where x.term in ${any(choice)} and x.time_ms = p.time_ms and x.log = p.log and x.seq = p.seq)`,
  );
  const { fromMs, toMs, after } = boundsOf(query);
  const position = sql`(${after.timeMs}::bigint, ${after.log}, ${after.seq}::bigint)`;
  const follows = newestFirst ? sql`< ${position}` : sql`> ${position}`;
  const order = newestFirst ? sql`p.time_ms desc, p.log desc, p.seq desc` : sql`p.time_ms, p.log, p.seq`;
  return sql<AuditRow[]>`
    with span as materialized (
      select * from json_to_recordset(${spansText(spans)}::text::json)
        as w (log text, after_seq bigint, to_seq bigint)
    )
    select e.log, e.seq, e.time_ms, e.body from ${places} p join event e on e.log = p.log and e.seq = p.seq
    where p.time_ms >= ${fromMs} and p.time_ms < ${toMs}
      and (p.time_ms, p.log, p.seq) ${follows}
      and exists (select from span w where w.log = p.log and p.seq > w.after_seq and p.seq <= w.to_seq)
      ${[sql``, ...asked]}
    order by ${order} limit ${limit}`;
}

/** The audit trail on PostgreSQL: search by terms and time, retention, and removal of expired rows. */
import type { Span } from "../../../audit/query.ts";
import type { AuditQuery } from "../../../records.ts";
import { insertInto } from "../columns.ts";
import {
  type AuditRow,
  boundsOf,
  fromAuditRow,
  fromCheckpointRow,
  fromHeadRow,
  type HeadRow,
  logNames,
  type StoredCheckpointRow,
} from "../rows.ts";
import { earliestOf, searchTrail } from "../search.ts";
import { SEGMENT } from "../tables.ts";
import type { AuditRows } from "../trail.ts";
import { NOTE_RANGE, type TrailDialect, trailIndex, trailRows } from "../trail-index.ts";
import { BY_WRITER, byKey, postgresEngine, runPrepared } from "./engine.ts";
import type { Call, Sql } from "./pool.ts";

/**
 * From the first segment on, because the entries of removed events stay in the index until a vacuum has passed; unless
 * there is an event before it, because a segment may be lost.
 */
const FIRST = `
  select seq from event where log = :log and seq >= coalesce((
    select s.from_seq from (select from_seq from event_segment where log = :log order by from_seq limit 1) s
    where (select true from event where log = :log and seq = s.from_seq - 1) is null), 0)
  order by seq limit 1`;

/** In the order of each key, so that pages are filled. A segment that was just added is in `added` alone. */
const ADD_SEGMENT = `
  with added as (${insertInto(SEGMENT)} on conflict do nothing returning id), lists as (
    insert into event_segment_term (segment, term, numbers)
    select a.id, l.term::integer, l.numbers from added a
    cross join json_each_text(:lists::text::json) as l (term, numbers)
    order by 2
  ), subjects as (
    insert into event_segment_subject (subject, segment)
    select s.subject::integer, a.id from added a
    cross join json_array_elements_text(:subjects::text::json) as s (subject)
    order by 1
  )
  insert into event_subject_range (log, from_seq, to_seq) select :log, :from_seq, :to_seq from added ${NOTE_RANGE}`;

export function postgresAuditRows(call: Call, proof = BY_WRITER): AuditRows {
  const engine = postgresEngine(call, proof);
  const dialect: TrailDialect = {
    first: FIRST,
    add: async (values) => void (await engine.change(ADD_SEGMENT, values)),
  };
  const trail = trailRows(engine, dialect);
  const expired = (["token", "spent_jti", "ending"] as const).map((table) => removeExpired(call, table));
  return {
    ...trailIndex(engine, dialect),
    heads: async () => {
      const rows = await call(
        (sql) => sql<HeadRow[]>`
          ${sql.unsafe(logNames("event"))}
          select e.log, e.seq, e.hash, e.type from name n
          cross join lateral (
            select log, seq, hash, type from event where event.log = n.log order by seq desc limit 1
          ) e where ${sql.unsafe(proof)} order by e.log`,
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
          ${sql.unsafe(logNames("checkpoint"))}
          select c.log, c.tree_size, c.time_ms, c.jws from name n
          cross join lateral (
            select * from checkpoint where checkpoint.log = n.log and tree_size > coalesce((
              select w.size from json_to_recordset(${known}::text::json) as w (log text, size bigint)
              where w.log = n.log), -1)
            order by tree_size limit ${limit}
          ) c
          order by c.log, c.tree_size limit ${limit}`,
      );
      return rows.map(fromCheckpointRow);
    },
    sweep: async (beforeSeconds, limit) => {
      const counts = [];
      for (const remove of expired) counts.push(await remove(beforeSeconds, limit));
      return counts.reduce((sum, count) => sum + count);
    },
  };
}

/** What is removed by when it expires, with its primary key. */
const EXPIRING = { token: ["jti"], spent_jti: ["issuer", "jti"], ending: ["key", "cut_off", "event_id"] };

/**
 * Removes expired rows in order of their expiry. A slice begins where the last one ended, because the entries of removed
 * rows stay in the index until a vacuum has passed; a pass begins where the last one did, because rows that another
 * instance had locked were left out. Expiries lie in the future when they are written, so that none comes before that.
 */
function removeExpired(call: Call, table: keyof typeof EXPIRING) {
  let [from, ended] = [0, 0];
  const { picked, isPicked } = byKey(
    EXPIRING[table],
    `(select ${EXPIRING[table]} from ${table} where expires_at >= $1 and expires_at < $2
      order by expires_at limit $3 for update skip locked) s`,
    { cut_off: "bigint" },
  );
  const text = `with gone as (delete from ${table} t ${picked && `using ${picked}`} where ${isPicked} returning expires_at)
    select count(*)::int as count, max(expires_at) as last from gone`;
  return async (beforeSeconds: number, limit: number): Promise<number> => {
    if (beforeSeconds < ended) from = 0;
    const removed = await call((sql) =>
      runPrepared<{ count: number; last: number | null }>(sql, text, [from, beforeSeconds, limit]),
    );
    const [row] = removed.rows;
    const last = row?.last ?? undefined;
    if (last !== undefined) from = last;
    else if (beforeSeconds > ended) [from, ended] = [ended, beforeSeconds];
    return row?.count ?? 0;
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

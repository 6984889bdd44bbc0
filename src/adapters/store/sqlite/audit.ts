/** The audit trail on node:sqlite: search by terms and time, retention, and removal of expired rows. */
import type { DatabaseSync } from "node:sqlite";
import type { Span } from "../../../audit/query.ts";
import type { AuditQuery } from "../../../records.ts";
import { termKey, termsOfBody } from "../encoding.ts";
import type { AuditRow, HeadRow, StoredCheckpointRow } from "../rows.ts";
import { boundsOf, fromAuditRow, fromCheckpointRow, fromHeadRow } from "../rows.ts";
import type { AuditRows } from "../store.ts";
import type { Database } from "./database.ts";

export function sqliteAuditRows({ db, run, remove }: Database): AuditRows {
  const statements = prepareAll(db);
  return {
    heads: async () => {
      const rows = (await run(() => statements.heads.all())) as HeadRow[];
      return rows.map(fromHeadRow);
    },
    find: async (query) => {
      const rows = (await run(() => db.prepare(findText(query)).all(findValues(query)))) as AuditRow[];
      return rows.map(fromAuditRow);
    },
    earliestMs: async (spans) => {
      const row = (await run(() => statements.earliest.get(spansText(spans)))) as
        | { time: number | null }
        | undefined;
      return row?.time ?? undefined;
    },
    checkpoints: async (after, limit) => {
      const rows = await run(() =>
        statements.checkpoints.all(JSON.stringify(Object.fromEntries(after)), limit),
      );
      return (rows as StoredCheckpointRow[]).map(fromCheckpointRow);
    },
    checkpoint: async (log, atMostMs) => {
      const row = (await run(() => statements.checkpoint.get(log, atMostMs))) as
        | StoredCheckpointRow
        | undefined;
      return row && fromCheckpointRow(row);
    },
    prune: (log, belowSeq, limit) =>
      remove(() => {
        const rows = statements.oldest.all(log, belowSeq, limit) as AuditRow[];
        for (const { time_ms, seq, body } of rows) {
          for (const term of termsOfBody(body)) statements.deleteTerm.run(termKey(term), time_ms, log, seq);
          statements.deleteEvent.run(log, seq);
        }
        return rows.length;
      }),
    sweep: (beforeSeconds, limit) =>
      remove(() => {
        const { sweepTokens, sweepSpent, sweepEndings } = statements;
        const gone = [sweepTokens, sweepSpent, sweepEndings].map(
          (one) => one.run(beforeSeconds, limit).changes,
        );
        return gone.reduce<number>((sum, count) => sum + Number(count), 0);
      }),
  };
}

function prepareAll(db: DatabaseSync) {
  return {
    // Skips from name to name along the key, because there are few logs and many events.
    heads: db.prepare(
      `with recursive name (log) as (
         select min(log) from event
         union all select (select min(e.log) from event e where e.log > n.log) from name n where n.log is not null
       )
       select e.log, e.seq, e.hash, e.type from name n
       join event e on e.log = n.log and e.seq = (select max(m.seq) from event m where m.log = n.log)
       order by e.log`,
    ),
    earliest: db.prepare(
      `select min(e.time_ms) as time from json_each(?) w cross join event e
       where e.log = w.value ->> 0 and e.seq > w.value ->> 1 and e.seq <= w.value ->> 2`,
    ),
    checkpoints: db.prepare(
      `select c.log, c.tree_size, c.time_ms, c.jws from checkpoint c
       where c.tree_size > coalesce((select w.value from json_each(?) w where w.key = c.log), -1)
       order by c.log, c.tree_size limit ?`,
    ),
    checkpoint: db.prepare(
      `select log, tree_size, time_ms, jws from checkpoint
       where log = ? and time_ms <= ? order by tree_size desc limit 1`,
    ),
    oldest: db.prepare("select seq, time_ms, body from event where log = ? and seq < ? order by seq limit ?"),
    deleteEvent: db.prepare("delete from event where log = ? and seq = ?"),
    deleteTerm: db.prepare("delete from event_term where term = ? and time_ms = ? and log = ? and seq = ?"),
    sweepTokens: db.prepare(
      "delete from token where jti in (select jti from token where expires_at < ? limit ?)",
    ),
    sweepSpent: db.prepare(
      `delete from spent_jti where (issuer, jti) in
         (select issuer, jti from spent_jti where expires_at < ? limit ?)`,
    ),
    sweepEndings: db.prepare(
      `delete from ending where (key, cut_off, event_id) in
         (select key, cut_off, event_id from ending where expires_at < ? limit ?)`,
    ),
  };
}

const spansText = (spans: readonly Span[]): string =>
  JSON.stringify(spans.map(({ log, afterSeq, toSeq }) => [log, afterSeq, toSeq]));

/** Walks the index of the first alternatives in order, and looks up the others for each position found. */
function findText({ terms: [first, ...others], newestFirst }: AuditQuery): string {
  const [follows, order] = newestFirst ? ["<", "desc"] : [">", "asc"];
  const places =
    first === undefined
      ? "event"
      : first.length === 1
        ? "(select * from event_term where term = :term0)"
        : "(select distinct time_ms, log, seq from event_term where term in (select value from json_each(:term0)))";
  const asked = others.map(
    (_, index) => `and exists (
      select 1 from json_each(:term${index + 1}) a cross join event_term x
      where x.term = a.value and x.time_ms = p.time_ms and x.log = p.log and x.seq = p.seq)`,
  );
  return `
    select e.log, e.seq, e.time_ms, e.body from ${places} p cross join event e
    where e.log = p.log and e.seq = p.seq
      and p.time_ms >= :from_ms and p.time_ms < :to_ms
      and (p.time_ms, p.log, p.seq) ${follows} (:time_ms, :log, :seq)
      and exists (
        select 1 from json_each(:spans) w
        where w.value ->> 0 = p.log and p.seq > w.value ->> 1 and p.seq <= w.value ->> 2)
      ${asked.join(" ")}
    order by p.time_ms ${order}, p.log ${order}, p.seq ${order} limit :limit`;
}

function findValues(query: AuditQuery) {
  const { terms, spans, limit } = query;
  const keys = terms.map((choice, index) => {
    const values = choice.map(termKey);
    return [`term${index}`, index === 0 && values.length === 1 ? (values[0] ?? "") : JSON.stringify(values)];
  });
  const { fromMs, toMs, after } = boundsOf(query);
  return {
    ...(Object.fromEntries(keys) as Record<string, string>),
    from_ms: fromMs,
    to_ms: toMs,
    time_ms: after.timeMs,
    log: after.log,
    seq: after.seq,
    spans: spansText(spans),
    limit,
  };
}

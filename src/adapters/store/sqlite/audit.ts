/** The audit trail on node:sqlite: search by terms and time, retention, and removal of expired rows. */
import type { DatabaseSync } from "node:sqlite";
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
import type { Database } from "./database.ts";
import { prepareOn, sqliteEngine } from "./engine.ts";

export function sqliteAuditRows(database: Database): AuditRows {
  const { db, run, write, remove } = database;
  const statements = prepareAll(db);
  const engine = sqliteEngine(database);
  const dialect: TrailDialect = {
    first: "select min(seq) from event where log = :log",
    add: async (values) =>
      write(() => {
        const added = statements.insertSegment.get(values);
        if (added === undefined) return;
        const segment = Number(added.id);
        statements.insertLists.run({ ...values, segment });
        statements.insertSubjects.run({ ...values, segment });
        statements.noteRange.run(values);
      }),
  };
  const trail = trailRows(engine, dialect);
  return {
    ...trailIndex(engine, dialect),
    heads: async () => {
      const rows = (await run(() => statements.heads.all())) as HeadRow[];
      return rows.map(fromHeadRow);
    },
    find: async (query) => {
      if (query.terms.length > 0) return searchTrail(trail, query);
      const list = query.newestFirst ? statements.listNewest : statements.list;
      const rows = (await run(() => list.all(listValues(query)))) as AuditRow[];
      return rows.map(fromAuditRow);
    },
    earliestMs: (spans) => earliestOf(trail, spans),
    checkpoints: async (after, limit) => {
      const rows = await run(() =>
        statements.checkpoints.all(JSON.stringify(Object.fromEntries(after)), limit),
      );
      return (rows as StoredCheckpointRow[]).map(fromCheckpointRow);
    },
    sweep: async (beforeSeconds, limit) =>
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
    // Without `cross`, SQLite reads each event, to have them in order of the log.
    heads: db.prepare(
      `${logNames("event")}
       select e.log, e.seq, e.hash, e.type from name n
       cross join event e on e.log = n.log and e.seq = (select max(m.seq) from event m where m.log = n.log)
       order by e.log`,
    ),
    checkpoints: db.prepare(
      `select c.log, c.tree_size, c.time_ms, c.jws from checkpoint c
       where c.tree_size > coalesce((select w.value from json_each(?) w where w.key = c.log), -1)
       order by c.log, c.tree_size limit ?`,
    ),
    insertSegment: prepareOn(db, `${insertInto(SEGMENT)} on conflict do nothing returning id`),
    // The order is that of the key, so that each page is filled without a sort.
    insertLists: prepareOn(
      db,
      `insert into event_segment_term (segment, term, numbers)
       select :segment, cast(key as integer), value from json_each(:lists) order by 2`,
    ),
    insertSubjects: prepareOn(
      db,
      `insert into event_segment_subject (subject, segment)
       select value, :segment from json_each(:subjects) order by 1`,
    ),
    noteRange: prepareOn(
      db,
      `insert into event_subject_range (log, from_seq, to_seq) values (:log, :from_seq, :to_seq) ${NOTE_RANGE}`,
    ),
    list: db.prepare(listText(false)),
    listNewest: db.prepare(listText(true)),
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

/** Reads events of all logs, in order of time. */
function listText(newestFirst: boolean): string {
  const [follows, order] = newestFirst ? ["<", "desc"] : [">", "asc"];
  return `
    select e.log, e.seq, e.time_ms, e.body from event e
    where e.time_ms >= :from_ms and e.time_ms < :to_ms
      and (e.time_ms, e.log, e.seq) ${follows} (:time_ms, :log, :seq)
      and exists (
        select 1 from json_each(:spans) w
        where w.value ->> 0 = e.log and e.seq > w.value ->> 1 and e.seq <= w.value ->> 2)
    order by e.time_ms ${order}, e.log ${order}, e.seq ${order} limit :limit`;
}

function listValues(query: AuditQuery) {
  const { spans, limit } = query;
  const { fromMs, toMs, after } = boundsOf(query);
  return {
    from_ms: fromMs,
    to_ms: toMs,
    time_ms: after.timeMs,
    log: after.log,
    seq: after.seq,
    spans: spansText(spans),
    limit,
  };
}

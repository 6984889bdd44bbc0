/** The events of the audit trail that a search reads, their index, and the removal of both, in both stores. */
import { setImmediate as turn } from "node:timers/promises";
import { AUDIT_SEGMENT_EVENTS } from "../../limits/audit.ts";
import { defined } from "../../result.ts";
import { fromRow, type RowOf, toRow } from "./columns.ts";
import { type Engine, readRecords, type Values } from "./engine.ts";
import { type AuditRow, fromAuditRow } from "./rows.ts";
import type { TrailRows } from "./search.ts";
import { CHECKPOINT, SEGMENT, STORED_SEGMENT, TREE_HASH } from "./tables.ts";
import type { AuditRows, TrailIndex } from "./trail.ts";

/** The statements that differ between the two databases. */
export type TrailDialect = {
  /** Selects the first number of the log `:log`. */
  first: string;
  /**
   * Writes a row of `event_segment`, one for each member of `lists` and of `subjects`, and `NOTE_RANGE`, unless there is
   * a segment with this beginning.
   */
  add(values: Values): Promise<void>;
};

/** AUDIT-D-16: behind an insert into `event_subject_range`, so that the row says only what is noted without a gap. */
export const NOTE_RANGE = `
  on conflict (log) do update set
    from_seq = case when excluded.from_seq between event_subject_range.from_seq and event_subject_range.to_seq + 1
      then event_subject_range.from_seq else excluded.from_seq end,
    to_seq = case when excluded.to_seq > event_subject_range.to_seq
      then excluded.to_seq else event_subject_range.to_seq end
  where excluded.to_seq >= event_subject_range.from_seq - 1`;

type ListedColumns = { listed: boolean | number; number: number; before_seq: number };

export function trailRows(engine: Engine, { first }: Pick<TrailDialect, "first">): TrailRows {
  const { rows, among } = engine;
  const events = async (where: string, values: Values) =>
    (
      await rows<AuditRow>(`select log, seq, time_ms, body from event where log = :log and ${where}`, values)
    ).map(fromAuditRow);
  return {
    bounds: async (log) => {
      const [row] = await rows<Record<"first" | "last" | "noted_from" | "noted_to", number | null>>(
        `select (${first}) as first, (select seq from event where log = :log order by seq desc limit 1) as last,
           (select from_seq from event_subject_range where log = :log) as noted_from,
           (select to_seq from event_subject_range where log = :log) as noted_to`,
        { log },
      );
      if (row?.first == null || row.last == null) return undefined;
      const { first: firstSeq, last: lastSeq, noted_from: fromSeq, noted_to: toSeq } = row;
      const noted = fromSeq === null || toSeq === null ? undefined : { fromSeq, toSeq };
      return defined({ firstSeq, lastSeq, noted });
    },
    segmentsOf: segmentsOfSubjects(engine),
    segments: segmentsOn(engine),
    lists: async (segments, terms) => {
      const found = await rows<{ segment: number; numbers: string }>(
        `select segment, numbers from event_segment_term
         where ${among("segment", "numbers_of(:segments)")} and ${among("term", "numbers_of(:terms)")}`,
        { segments: JSON.stringify(segments), terms: JSON.stringify(terms) },
      );
      return found.map(({ segment, numbers }) => ({ segment, numbers: JSON.parse(`[${numbers}]`) }));
    },
    times: async ({ log, afterSeq: after, toSeq: to }) => {
      // The times are made sums, because PostgreSQL would otherwise search the extremes along the index of all times.
      const [row] = await rows<{ from_ms: number | null; to_ms: number | null }>(
        `select min(time_ms + 0) as from_ms, max(time_ms + 0) as to_ms from event
         where log = :log and seq > :after and seq <= :to`,
        { log, after, to },
      );
      return row?.from_ms == null || row.to_ms == null ? undefined : { fromMs: row.from_ms, toMs: row.to_ms };
    },
    events: ({ log, afterSeq: after, toSeq: to }, limit) =>
      events("seq > :after and seq <= :to order by seq limit :limit", { log, after, to, limit }),
    eventsAt: async (places) => {
      const found = [];
      for (const [log, those] of Map.groupBy(places, (place) => place.log)) {
        const seqs = JSON.stringify(those.map(({ seq }) => seq));
        found.push(...(await events(among("seq", "numbers_of(:seqs)"), { log, seqs })));
      }
      return found;
    },
  };
}

function segmentsOfSubjects(engine: Engine): TrailRows["segmentsOf"] {
  const { rows, among } = engine;
  return async (subjects, after, limit) => {
    const found = await rows<{ segment: number }>(
      `select distinct segment from event_segment_subject
       where ${among("subject", "numbers_of(:subjects)")} and segment > :after order by segment limit :limit`,
      { subjects: JSON.stringify(subjects), after, limit },
    );
    if (found.length === 0) return { segments: [], last: after, areAll: true };
    // Apart, because PostgreSQL would join so few rows with all segments.
    const segments = await readRecords(engine)(
      STORED_SEGMENT,
      `from event_segment where ${among("id", "numbers_of(:ids)")}`,
      { ids: JSON.stringify(found.map(({ segment }) => segment)) },
    );
    return { segments, last: found.at(-1)?.segment ?? after, areAll: segments.length === found.length };
  };
}

function segmentsOn({ rows, among }: Engine): TrailRows["segments"] {
  return async ({ log, afterSeq: after, toSeq: to }, choices, limit) => {
    // AUDIT-D-16: by the key of each segment in one statement, so that one without these terms costs no row.
    const listed = choices.map(
      (_, index) => `coalesce((select true from event_segment_term t
        where t.segment = page.id and ${among("t.term", `numbers_of(:terms${index})`)} limit 1), false)`,
    );
    const found = await rows<RowOf<typeof STORED_SEGMENT.columns> & ListedColumns>(
      `with page as (
         select * from event_segment where log = :log and from_seq > :before and from_seq <= :to and to_seq > :after
         order by from_seq limit :limit
       ), placed as (
         select page.*, ${["true", ...listed].join(" and ")} as listed, row_number() over own as number,
           lag(to_seq, 1, :after) over own as before_seq, count(*) over () as size
         from page window own as (order by from_seq)
       )
       select * from placed where listed or from_seq > before_seq + 1 or number = size order by from_seq`,
      {
        log,
        before: after - AUDIT_SEGMENT_EVENTS,
        after,
        to,
        limit,
        ...Object.fromEntries(choices.map((terms, index) => [`terms${index}`, JSON.stringify(terms)])),
      },
    );
    return found.map((row) => ({
      ...fromRow(STORED_SEGMENT, row),
      number: row.number,
      beforeSeq: row.before_seq,
      isListed: Boolean(row.listed),
    }));
  };
}

export function trailIndex(
  engine: Engine,
  { first, add }: TrailDialect,
): TrailIndex & Pick<AuditRows, "prune" | "checkpoint" | "hashes" | "treeRow" | "keepTreeRow"> {
  const { rows, remove: removeNow, among } = engine;
  /**
   * Other work comes after each, because SQLite holds the event loop for each of them, and may synchronise the disk.
   */
  const remove: typeof removeNow = async (text, values) => {
    const gone = await removeNow(text, values);
    await turn();
    return gone;
  };
  const removeSegments = async (ids: readonly number[]): Promise<void> => {
    const values = { ids: JSON.stringify(ids) };
    const theirs = among("segment", "numbers_of(:ids)");
    // What is noted of a segment goes first, so that it never names one that is not there.
    await remove(
      `delete from event_segment_subject where (subject, segment) in (
         select term, segment from event_segment_term where ${theirs})`,
      values,
    );
    await remove(`delete from event_segment_term where ${theirs}`, values);
    await remove(`delete from event_segment where ${among("id", "numbers_of(:ids)")}`, values);
  };
  const firstOf = async (log: string): Promise<number | undefined> => {
    const [row] = await rows<{ first: number | null }>(`select (${first}) as first`, { log });
    return row?.first ?? undefined;
  };
  return {
    addSegment: (segment, lists, subjects) => {
      // The lists are one object, which the database takes apart in half of the time that it needs for one object each.
      const members = lists.map(({ term, numbers }) => `"${term}":"${numbers.join()}"`);
      return add({
        ...toRow(SEGMENT.columns, segment),
        lists: `{${members.join()}}`,
        subjects: JSON.stringify(subjects),
      });
    },
    indexedTo: async (log) => {
      const [row] = await rows<{ to_seq: number }>(
        "select to_seq from event_segment where log = :log order by from_seq desc limit 1",
        { log },
      );
      return row?.to_seq ?? -1;
    },
    ...treeRows(engine),
    checkpoint: async (log, at) => {
      const last = "from checkpoint where log = :log and time_ms <= :at order by tree_size desc limit 1";
      return (await readRecords(engine)(CHECKPOINT, last, { log, at }))[0];
    },
    prune: async (log, below, limit) => {
      const from = await firstOf(log);
      if (from === undefined) return 0;
      // Numbers follow each other without gaps.
      const to = Math.min(below, from + limit);
      const some = "delete from event where log = :log and seq >= :from and seq < :to";
      const gone = await remove(some, { log, from, to });
      // The segment in which the log now begins stays. Both bounds are compared, because the key has the first number
      // alone.
      const segments = await rows<{ id: number }>(
        "select id from event_segment where log = :log and from_seq < :kept and to_seq < :kept",
        { log, kept: (await firstOf(log)) ?? null },
      );
      if (segments.length > 0) await removeSegments(segments.map(({ id }) => id));
      return gone;
    },
  };
}

/** The hashes of the trees, in both stores. */
function treeRows(engine: Engine): Pick<AuditRows, "hashes" | "treeRow" | "keepTreeRow"> {
  const { rows, change } = engine;
  const read = readRecords(engine);
  return {
    hashes: async (log, from, to) => {
      const found = await rows<{ hash: string }>(
        "select hash from event where log = :log and seq >= :from and seq < :to order by seq",
        { log, from, to },
      );
      return found.map(({ hash }) => hash);
    },
    treeRow: async (log, level, number) => {
      const which = number === undefined ? "order by number desc limit 1" : "and number = :number";
      const values = number === undefined ? { log, level } : { log, level, number };
      return (
        await read(TREE_HASH, `from tree_hash where log = :log and level = :level ${which}`, values)
      )[0];
    },
    keepTreeRow: async (row) => {
      await change(
        `insert into tree_hash as t (log, level, number, hashes) values (:log, :level, :number, :hashes)
         on conflict (log, level, number) do update set hashes = excluded.hashes
         where length(t.hashes) < length(excluded.hashes)`,
        toRow(TREE_HASH.columns, row),
      );
    },
  };
}

/** Rows that are read in parts, as in both stores: rows have the names of columns, records our own. */

import { LOG_END } from "../../audit/event.ts";
import { JOB_SECONDS_MAX } from "../../limits/jobs.ts";
import type { AuditQuery, AuditRecord, CheckpointRow, JobFacts } from "../../records.ts";
import { defined } from "../../result.ts";
import { fromRow, pick, type RowOf } from "./columns.ts";
import { type Dialect, type Engine, readRecords } from "./engine.ts";
import type { EventLog } from "./store.ts";
import { CHECKPOINT, EVENT } from "./tables.ts";

/** A row with the first ending that reaches it, as JSON. */
export type EndedRow = { ended: string | null };

export const firstEnded = (
  { object, firstEnding }: Pick<Dialect, "object" | "firstEnding">,
  keys: string,
): string =>
  `select ${object("'event_id', e.event_id, 'at_ms', e.at_ms, 'reason', e.reason")} ${firstEnding(keys)}`;

type Ended = NonNullable<JobFacts["ended"]>;

export function endedOf({ ended }: EndedRow): Ended | undefined {
  if (ended === null) return undefined;
  const row: { event_id: string; at_ms: number; reason: string | null } = JSON.parse(ended);
  return defined<Ended>({ eventId: row.event_id, atMs: row.at_ms, reason: row.reason ?? undefined });
}

/** The names of all logs: skips from one to the next along the key, because there are few logs and many rows. */
export const logNames = (table: "event" | "checkpoint"): string => `with recursive name (log) as (
    select (select log from ${table} order by log limit 1)
    union all
    select (select e.log from ${table} e where e.log > n.log order by e.log limit 1) from name n
    where n.log is not null
  )`;

const HEAD = { ...EVENT, columns: pick(EVENT, "seq", "hash") };

export function logRows(engine: Engine): Omit<EventLog, "append"> {
  const read = readRecords(engine);
  return {
    head: async (log) =>
      (await read(HEAD, "from event where log = :log order by seq desc limit 1", { log }))[0],
    read: async ({ log, afterSeq: after = -1, limit }) =>
      read(EVENT, "from event where log = :log and seq > :after order by seq limit :limit", {
        log,
        after,
        limit,
      }),
    logs: async () => {
      const names = await engine.rows<{ log: string }>(
        `${logNames("event")} select log from name where log is not null`,
      );
      return names.map(({ log }) => log);
    },
  };
}

type EventRow = RowOf<typeof EVENT.columns>;

export type HeadRow = Pick<EventRow, "log" | "seq" | "hash" | "type">;

export const fromHeadRow = ({ log, seq, hash, type }: HeadRow) => ({
  log,
  seq,
  hash,
  ended: type === LOG_END,
});

export type AuditRow = Pick<EventRow, "log" | "seq" | "time_ms" | "body">;

export function fromAuditRow({ time_ms, log, seq, body }: AuditRow): AuditRecord {
  return { timeMs: time_ms, log, seq, body };
}

/** The times between which a query of the trail looks, and the position that it follows: without one, all do. */
export function boundsOf({
  fromMs = 0,
  toMs = Number.MAX_SAFE_INTEGER,
  after,
  newestFirst,
}: Pick<AuditQuery, "fromMs" | "toMs" | "after" | "newestFirst">) {
  // The times of the position as well, because the index is searched by them.
  if (newestFirst) {
    const start = after ?? { timeMs: Number.MAX_SAFE_INTEGER, log: "", seq: -1 };
    return { fromMs, toMs: Math.min(toMs, start.timeMs + 1), after: start };
  }
  const start = after ?? { timeMs: -1, log: "", seq: -1 };
  return { fromMs: Math.max(fromMs, start.timeMs), toMs, after: start };
}

export type StoredCheckpointRow = RowOf<typeof CHECKPOINT.columns>;

export const fromCheckpointRow = (row: StoredCheckpointRow): CheckpointRow => fromRow(CHECKPOINT, row);

/** Counts living jobs of the agent, at most `most`; of one that ended, an ending reaches one of its keys. */
export const countOfLiving = (whose: string, now: string, most: string): string =>
  `(select count(*) from (select 1 from job j
      where ${whose} j.actor = :actor and j.created_at >= cast(${now} as bigint) - ${JOB_SECONDS_MAX} and j.not_after > ${now}
        and (select true from pairs_of(j.ending_keys) k
          where (select true from ending where key = k.key and cut_off >= cast(k.value as bigint) limit 1) limit 1) is null
      limit ${most}) c)`;

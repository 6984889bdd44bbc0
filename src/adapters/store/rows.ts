/** Rows of the audit trail that are read in parts, as in both stores: rows have the names of columns, records our own. */
import { LOG_END } from "../../audit/event.ts";
import type { AuditQuery, AuditRecord, CheckpointRow } from "../../records.ts";
import type { RowOf } from "./columns.ts";
import { fromRow } from "./columns.ts";
import type { EVENT } from "./tables.ts";
import { CHECKPOINT } from "./tables.ts";

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

/** What the stores keep of the audit trail beside its events: the index by which they are found, and what removes them. */
import type { AuditTrail } from "../../ports-store.ts";
import type { CheckpointRow } from "../../records.ts";

/** Successive events of one log that the index covers, with the smallest and the largest of their times. */
export type Segment = { log: string; fromSeq: number; toSeq: number; fromMs: number; toMs: number };

/** A segment by the number that the store gave it. */
export type StoredSegment = Segment & { id: number };

/** What a segment lists under a term (adapters/audit/indexing.ts). */
type TermList = { term: number; numbers: readonly number[] };
export type StoredList = Pick<TermList, "numbers"> & { segment: number };

/** The index of the trail, which is built after the events. */
export interface TrailIndex {
  /** Finds the last event of a log that a segment covers; -1 if there is none. */
  indexedTo(log: string): Promise<number>;
  /**
   * Adds a segment with all of its lists, unless there is a segment with this beginning; notes for each of these terms,
   * which are those of subjects, that it is listed there.
   */
  addSegment(segment: Segment, lists: readonly TermList[], subjects: readonly number[]): Promise<void>;
}

/** Hashes of one level of the tree of a log, at most 256, as base64. */
export type TreeRow = { log: string; level: number; number: number; hashes: string };

/** The audit trail and its retention. Rows are removed in small batches, which any instance may do at any time. */
export interface AuditRows extends AuditTrail, TrailIndex {
  /** Finds the largest checkpoint of a log that was signed at `atMostMs` or earlier. */
  checkpoint(log: string, atMostMs: number): Promise<CheckpointRow | undefined>;
  /** The hashes (hex) of the events of a log from one number to before another, of those that are there. */
  hashes(log: string, fromSeq: number, toSeq: number): Promise<readonly string[]>;
  /** RCPT-D-4: the row of the tree's hashes with the largest number of this level, or with this number. */
  treeRow(log: string, level: number, number?: number): Promise<TreeRow | undefined>;
  /** Adds a row, or brings a shorter one up to it. */
  keepTreeRow(row: TreeRow): Promise<void>;
  /**
   * Removes at most `limit` of the oldest events below `belowSeq`, with their segments; returns the number of events.
   */
  prune(log: string, belowSeq: number, limit: number): Promise<number>;
  /** Removes tokens, used `jti` and endings that expired before, at most `limit` of each; returns their number. */
  sweep(beforeSeconds: number, limit: number): Promise<number>;
}

/**
 * Counts what happens too often for an event each, and records one event for each kind and minute, so that a flood of
 * requests cannot fill the disk. Counts are in memory until their minute ends.
 */

import type { AuditEvent } from "../../audit/event.ts";
import { FAILED_REQUESTS_MAX } from "../../limits/audit.ts";
import type { Clock, Journal, Timers } from "../../ports.ts";

const MINUTE_MS = 60_000;
/** The kinds that are counted separately in one minute; further ones are counted together. */
const KINDS_MAX = 1_000;

/** `since` is when counting began, in ISO 8601; `requests` are the ids of the first requests (AUDIT-D-9). */
type Count<Kind> = { kind: Kind; count: number; since: string; requests: string[] };

type MinuteCountOptions<Kind> = {
  toEvent(count: Count<Kind>): AuditEvent;
  /** The kind under which further kinds are counted together. */
  restOf(kind: Kind): Kind;
  /** Called with the counts that a failed write left over; what it returns is counted on. */
  onUnwritten(counts: readonly Count<Kind>[]): readonly Count<Kind>[];
};

type MinuteCounts<Kind> = {
  note(kind: Kind, requestId: string): void;
  /** Records the remaining counts; those that could not be written are returned. */
  close(): Promise<readonly Count<Kind>[]>;
};

/** Equal kinds are those with the same JSON. */
export function countByMinute<Kind>(
  journal: Journal,
  clock: Clock,
  timers: Timers,
  { toEvent, restOf, onUnwritten }: MinuteCountOptions<Kind>,
): MinuteCounts<Kind> {
  let counts = new Map<string, Count<Kind>>();
  let since = isoTime(clock);
  let writing = Promise.resolve();

  const add = (added: Count<Kind>): void => {
    const own = JSON.stringify(added.kind);
    const isRest = !counts.has(own) && counts.size >= KINDS_MAX;
    const kind = isRest ? restOf(added.kind) : added.kind;
    const key = isRest ? JSON.stringify(kind) : own;
    const entry = counts.get(key);
    if (entry === undefined) {
      counts.set(key, { ...added, kind });
      return;
    }
    entry.count += added.count;
    if (added.since < entry.since) entry.since = added.since;
    const room = FAILED_REQUESTS_MAX - entry.requests.length;
    if (room > 0) entry.requests.push(...added.requests.slice(0, room));
  };
  /** Records one event after the other, so that they never take more than one entry of the journal's queue. */
  const write = async (due: readonly Count<Kind>[]): Promise<void> => {
    for (const [index, count] of due.entries()) {
      if (await journal.record({ event: toEvent(count) }).catch(() => undefined)) continue;
      for (const left of onUnwritten(due.slice(index))) add(left);
      return;
    }
  };
  const flush = (): Promise<void> => {
    const due = [...counts.values()];
    counts = new Map();
    since = isoTime(clock);
    writing = writing.then(() => write(due));
    return writing;
  };
  const cancel = timers.every(MINUTE_MS, flush);

  return {
    note: (kind, requestId) => add({ kind, count: 1, since, requests: [requestId] }),
    async close() {
      cancel();
      await flush();
      return [...counts.values()];
    },
  };
}

const isoTime = (clock: Clock): string => new Date(clock.nowMs()).toISOString();

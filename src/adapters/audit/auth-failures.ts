/**
 * Counts failures before authentication by source, endpoint and reason, and records one event for each count and
 * minute, so that a flood of failures cannot fill the disk. Counts are in memory until their minute ends.
 */

import type { AuditEvent } from "../../audit/event.ts";
import type { Reason } from "../../audit/reasons.ts";
import { FAILED_REQUESTS_MAX } from "../../limits.ts";
import type { AuthFailures, Clock, Journal, Timers } from "../../ports.ts";

const MINUTE_MS = 60_000;
/** Different failures that are counted separately in one minute; further ones are counted together, by reason. */
const KINDS_MAX = 1_000;
const REST = { source: "many sources", endpoint: "many endpoints" };

type Count = { source: string; endpoint: string; reason: Reason; count: number; requests: string[] };
type Counts = Map<string, Count>;

export type AuthFailureCounter = AuthFailures & { close(): Promise<void> };

/** Starts counting; every minute the counts are recorded as events. `close` records the remaining ones. */
export function countAuthFailures(journal: Journal, clock: Clock, timers: Timers): AuthFailureCounter {
  let counts: Counts = new Map();
  let sinceMs = clock.nowMs();
  let writing = Promise.resolve();

  /** Records one event after the other, so that they never take more than one entry of the journal's queue. */
  const write = async (due: Counts, since: string): Promise<void> => {
    for (const { source, endpoint, reason, count, requests } of due.values()) {
      const event: AuditEvent = {
        type: "client.auth_failed",
        outcome: "deny",
        reason,
        count,
        // AUDIT-D-9: the first of them; the log has a line for each.
        detail: { source_ip: source, endpoint, since, requests },
      };
      // If the store is unavailable only these counts are lost; no token depends on them.
      if (!(await journal.record({ event }).catch(() => undefined))) return;
    }
  };
  const flush = (): Promise<void> => {
    const [due, since] = [counts, new Date(sinceMs).toISOString()];
    counts = new Map();
    sinceMs = clock.nowMs();
    writing = writing.then(() => write(due, since));
    return writing;
  };
  const cancel = timers.every(MINUTE_MS, flush);

  return {
    note({ id, endpoint, source_ip: source }, reason) {
      const known = counts.has(`${source} ${endpoint} ${reason}`) || counts.size < KINDS_MAX;
      // An unauthenticated peer can vary the endpoint's path, so the number of different failures is limited.
      const kind = known ? { source, endpoint } : REST;
      const key = `${kind.source} ${kind.endpoint} ${reason}`;
      const entry = counts.get(key);
      if (entry === undefined) {
        counts.set(key, { ...kind, reason, count: 1, requests: [id] });
        return;
      }
      entry.count++;
      if (entry.requests.length < FAILED_REQUESTS_MAX) entry.requests.push(id);
    },
    async close() {
      cancel();
      await flush();
    },
  };
}

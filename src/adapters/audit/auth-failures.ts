/**
 * Failures before authentication, counted by source, reason and minute: one event for many, so that a flood
 * cannot fill the disk. They wait in memory for their minute to end and are the first to be shed.
 */

import type { AuditEvent } from "../../audit/event.ts";
import type { AuthFailures, Clock, Journal } from "../../ports.ts";

const MINUTE_MS = 60_000;
/** Kinds of failure that one minute remembers; beyond it they are counted together. */
const KINDS_MAX = 1_000;
const REST = { source: "many sources", endpoint: "many endpoints" };

type Counts = Map<string, { source: string; endpoint: string; reason: string; count: number }>;

export type AuthFailureCounter = AuthFailures & { close(): Promise<void> };

export function countAuthFailures(journal: Journal, clock: Clock, periodMs = MINUTE_MS): AuthFailureCounter {
  let counts: Counts = new Map();
  let sinceMs = clock.nowMs();
  let writing = Promise.resolve();

  /** One after the other, so that they take no more than one place in the journal that others wait for. */
  const write = async (due: Counts, since: string): Promise<void> => {
    for (const { source, endpoint, reason, count } of due.values()) {
      const event: AuditEvent = {
        type: "client.auth_failed",
        outcome: "deny",
        reason,
        count,
        detail: { source_ip: source, endpoint, since },
      };
      // Without a store these counts are lost, and nothing else: nobody got a token by them.
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
  const timer = setInterval(flush, periodMs).unref();

  return {
    note(source, endpoint, reason) {
      const known = counts.has(`${source} ${endpoint} ${reason}`) || counts.size < KINDS_MAX;
      // Paths that end in an id are as many as strangers like.
      const kind = known ? { source, endpoint } : REST;
      const key = `${kind.source} ${kind.endpoint} ${reason}`;
      const entry = counts.get(key);
      if (entry === undefined) counts.set(key, { ...kind, reason, count: 1 });
      else entry.count++;
    },
    async close() {
      clearInterval(timer);
      await flush();
    },
  };
}

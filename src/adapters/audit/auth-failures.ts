/** Counts failures before authentication by source, endpoint and reason (AUDIT-D-2). */

import type { Reason } from "../../audit/reasons.ts";
import type { AuthFailures, Clock, Journal, Timers } from "../../ports.ts";
import { defined } from "../../result.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import { countByMinute } from "./minute-counts.ts";

/** An unauthenticated peer can vary the endpoint's path, so further paths are counted together. */
const REST = { source: "many sources", endpoint: "many endpoints" };

type Kind = { source: string; endpoint: string; reason: Reason; registrations?: readonly string[] };

export type AuthFailureCounter = AuthFailures & { close(): Promise<void> };

/** Starts counting; every minute the counts are recorded as events. `close` records the remaining ones. */
export function countAuthFailures(journal: Journal, clock: Clock, timers: Timers): AuthFailureCounter {
  const counts = countByMinute<Kind>(journal, clock, timers, {
    toEvent: ({ kind: { source, endpoint, reason, registrations }, count, since, requests }) => ({
      type: "client.auth_failed",
      outcome: "deny",
      reason,
      count,
      // AUDIT-D-9: the event names the first of them; the log has a line for each.
      detail: defined<JsonObject>({
        source_ip: source,
        endpoint,
        since,
        requests,
        registrations: registrations && [...registrations],
      }),
    }),
    restOf: ({ reason, registrations }) => defined<Kind>({ ...REST, reason, registrations }),
    // If the store is unavailable only these counts are lost; no token depends on them.
    onUnwritten: () => [],
  });
  return {
    note: ({ id, endpoint, source_ip: source }, reason, registrations) =>
      counts.note(defined<Kind>({ source, endpoint, reason, registrations }), id),
    close: async () => void (await counts.close()),
  };
}

/**
 * Counts introspection by client, target and outcome. Counts that the store did not take are added to the next minute's
 * (twice, where a write failed after it took effect), and what cannot be recorded at the end is told.
 */

import type { AuditEvent } from "../../audit/event.ts";
import type { Reason } from "../../audit/reasons.ts";
import type { Clock, Introspections, Journal, Timers } from "../../ports.ts";
import { defined } from "../../result.ts";
import { countByMinute } from "./minute-counts.ts";

type Kind = { client: NonNullable<AuditEvent["client"]>; target?: string; reason: Reason };

const MANY_CLIENTS = { client_id: "many clients", auth_method: "many methods" };

type IntrospectionCounter = Introspections & { close(): Promise<void> };

/** Starts counting; every minute the counts are recorded as events. `onLost` is told what `close` could not record. */
export function countIntrospections(
  journal: Journal,
  clock: Clock,
  timers: Timers,
  onLost: (questions: number) => void,
): IntrospectionCounter {
  const counts = countByMinute<Kind>(journal, clock, timers, {
    toEvent: ({ kind: { client, target, reason }, count, since, requests }) =>
      defined<AuditEvent>({
        type: "token.introspected",
        outcome: reason === "token_active" ? "allow" : "deny",
        reason,
        client,
        requested: target === undefined ? undefined : { audience: [target], resource: [] },
        count,
        detail: { since, requests },
      }),
    restOf: ({ reason }) => ({ client: MANY_CLIENTS, reason }),
    onUnwritten: (unwritten) => unwritten,
  });
  return {
    note({ id }, { client_id, auth_method, source, workload }, { reason, target }) {
      // The key leaves out what differs in each request: the client's key, and the `jti` of its assertion.
      const client = defined<Kind["client"]>({ client_id, auth_method, source, workload });
      counts.note(defined<Kind>({ client, target, reason }), id);
    },
    async close() {
      const lost = (await counts.close()).reduce((sum, { count }) => sum + count, 0);
      if (lost > 0) onLost(lost);
    },
  };
}

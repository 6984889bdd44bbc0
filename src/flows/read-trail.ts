/**
 * One page of the audit trail (PROD-6.3-3). The index finds what is a term of an event; for the other filters events are
 * read, so many in a page at most that no request reads the whole trail.
 */
import type { AuditPosition, EventFilter } from "../audit/query.ts";
import { AUDIT_EVENTS_READ, AUDIT_PAGE_MAX, AUDIT_PAGE_READ_MAX } from "../limits/audit.ts";
import type { AuditTrail } from "../ports-store.ts";
import type { AuditQuery, AuditRecord } from "../records.ts";
import { defined } from "../result.ts";

/** `next`: the position after which the listing continues; absent at its end. It may come with few events, or none. */
type TrailPage = { shown: readonly AuditRecord[]; next?: AuditPosition };

/** `turn` lets other work of the process go first. */
type TrailPorts = { audit: Pick<AuditTrail, "find">; turn: () => Promise<unknown> };

export async function readTrailPage(
  { audit, turn }: TrailPorts,
  query: AuditQuery,
  holds: EventFilter["holds"],
): Promise<TrailPage> {
  const { limit } = query;
  const size = holds === undefined ? limit + 1 : AUDIT_PAGE_MAX;
  const shown: AuditRecord[] = [];
  let { after } = query;
  for (let read = 0; read < AUDIT_PAGE_READ_MAX; read += size) {
    const found = await audit.find(defined<AuditQuery>({ ...query, after, limit: size }));
    for (const [index, record] of found.entries()) {
      if (shown.length === limit) return defined<TrailPage>({ shown, next: after });
      // The events are parsed here, and other requests wait meanwhile.
      if (holds !== undefined && index % AUDIT_EVENTS_READ === 0) await turn();
      if (holds?.(record.body) ?? true) shown.push(record);
      after = record;
    }
    if (found.length < size) return { shown };
  }
  return defined<TrailPage>({ shown, next: after });
}

/**
 * One page of the audit trail (PROD-6.3-3). The index finds what is a term of an event; for the other filters events are
 * read, so many in a page at most that no request reads the whole trail.
 */
import type { AuditPosition, EventFilter } from "../audit/query.ts";
import { AUDIT_PAGE_MAX, AUDIT_PAGE_READ_MAX } from "../limits/audit.ts";
import type { AuditTrail } from "../ports.ts";
import type { AuditQuery, AuditRecord } from "../records.ts";
import { defined } from "../result.ts";

/** `next`: the position after which the listing continues; absent at its end. It may come with few events, or none. */
export type TrailPage = { shown: readonly AuditRecord[]; next?: AuditPosition };

export async function readTrailPage(
  audit: Pick<AuditTrail, "find">,
  query: AuditQuery,
  holds: EventFilter["holds"],
): Promise<TrailPage> {
  const { limit } = query;
  const size = holds === undefined ? limit + 1 : AUDIT_PAGE_MAX;
  const shown: AuditRecord[] = [];
  let { after } = query;
  for (let read = 0; read < AUDIT_PAGE_READ_MAX; read += size) {
    const found = await audit.find(defined<AuditQuery>({ ...query, after, limit: size }));
    for (const record of found) {
      if (shown.length === limit) return defined<TrailPage>({ shown, next: after });
      if (holds?.(record.body) ?? true) shown.push(record);
      after = record;
    }
    if (found.length < size) return { shown };
  }
  return defined<TrailPage>({ shown, next: after });
}

/** The audit trail of one user: a page of the events that they read, and when each consent last gave a token. */
import type { AuditPosition, Span } from "../../audit/query.ts";
import { subjectTerm } from "../../audit/terms.ts";
import {
  ACCOUNT_EVENTS,
  ACCOUNT_EVENTS_READ,
  ACCOUNT_STRETCH,
  ACCOUNT_USES_READ,
} from "../../limits/people.ts";
import type { Origin } from "../../policy/access.ts";
import type { AuditQuery, AuditRecord } from "../../records.ts";
import { defined } from "../../result.ts";
import { type OwnEvent, readOwnEvent, readUse } from "../audit/own-events.ts";
import type { PeoplePorts } from "../ports.ts";

/** The last use of a consent, if the events that were read have one, or else the time since which they have none. */
export type LastUse = { atMs: number } | { noneSinceMs: number } | "none";

export type TrailQuery = Pick<AuditQuery, "fromMs" | "toMs" | "spans" | "after">;

/**
 * Finds records about exactly this origin, the newest first; that it acted for others is another term. The number read
 * in one stretch and in all is limited, whatever they hold, so that no trail makes a page expensive.
 */
async function* readNewest(
  ports: Pick<PeoplePorts, "audit">,
  { iss, sub }: Origin,
  query: TrailQuery,
  readMax: number,
): AsyncGenerator<AuditRecord> {
  const terms = [[subjectTerm(iss, sub)]];
  const limit = ACCOUNT_STRETCH;
  let from = query;
  for (let read = 0; read < readMax; read += limit) {
    const records = await ports.audit.find({ ...from, terms, newestFirst: true, limit });
    yield* records;
    const after = records.at(-1);
    if (after === undefined || records.length < limit) return;
    from = { ...query, after };
  }
}

/** Reads one page of events that a user reads; `last` is the record after which older ones may follow. */
export async function readTrail(
  ports: Pick<PeoplePorts, "audit">,
  origin: Origin,
  query: TrailQuery,
): Promise<{ events: readonly OwnEvent[]; last?: AuditPosition }> {
  const events: OwnEvent[] = [];
  let read = 0;
  let last: AuditPosition | undefined;
  for await (const record of readNewest(ports, origin, query, ACCOUNT_EVENTS_READ)) {
    const event = readOwnEvent(record.body);
    if (event !== undefined && events.length === ACCOUNT_EVENTS) return { events, last: last ?? record };
    if (event !== undefined) events.push(event);
    read++;
    last = record;
  }
  return defined({ events, last: read < ACCOUNT_EVENTS_READ ? undefined : last });
}

/** What the newest events tell: when a consent gave a token last, and what was done since a time. */
export type Lately = { lastUse: (consent: string) => LastUse; events: readonly OwnEvent[]; isCut: boolean };

/**
 * Finds when each consent last gave a token, and the events since `sinceMs`, in one reading of the newest events of the
 * user: the trail knows it already, so that no token costs more for it.
 */
export async function readLately(
  ports: Pick<PeoplePorts, "audit">,
  origin: Origin,
  spans: readonly Span[],
  consents: ReadonlySet<string>,
  sinceMs: number,
): Promise<Lately> {
  const found = new Map<string, number>();
  const events: OwnEvent[] = [];
  let read = 0;
  let oldestMs = 0;
  for await (const { body, timeMs } of readNewest(ports, origin, { spans }, ACCOUNT_USES_READ)) {
    if (timeMs < sinceMs && found.size === consents.size) break;
    const consent = readUse(body);
    if (consent !== undefined && consents.has(consent) && !found.has(consent)) found.set(consent, timeMs);
    const event = timeMs < sinceMs ? undefined : readOwnEvent(body);
    if (event !== undefined) events.push(event);
    read++;
    oldestMs = timeMs;
  }
  const lastUse = (id: string): LastUse => {
    const atMs = found.get(id);
    if (atMs !== undefined) return { atMs };
    return read < ACCOUNT_USES_READ ? "none" : { noneSinceMs: oldestMs };
  };
  return { lastUse, events, isCut: read >= ACCOUNT_USES_READ && oldestMs >= sinceMs };
}

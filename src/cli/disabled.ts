/** `mandate tokens disabled`: which subjects are kept out now, each by the event that disabled it. */
import { hash } from "../adapters/crypto/hash.ts";
import type { Store } from "../adapters/store/store.ts";
import { readEvent } from "../audit/columns.ts";
import type { AuditPosition, Span } from "../audit/query.ts";
import type { Term } from "../audit/terms.ts";
import { isDisabled } from "../flows/endings.ts";
import { AUDIT_PAGE_MAX, DISABLED_EVENTS_MAX } from "../limits/audit.ts";
import { EXIT } from "../limits/process.ts";
import type { Origin } from "../policy/access.ts";
import type { AuditQuery, AuditRecord } from "../records.ts";
import { defined } from "../result.ts";
import { isJsonObject, type Json, type JsonObject } from "../spec/rfc8259.ts";
import { recordAccess } from "./admin-log.ts";
import { openLogs, spansOf } from "./audit/trail.ts";
import type { Admin } from "./command.ts";
import type { Format } from "./formats.ts";
import { time, titlesOf } from "./text.ts";

/** `isSettled`: the subject was enabled before this event, so that older ones do not say since when it is disabled. */
type Candidate = { subject: Origin; record: AuditRecord; isSettled: boolean };

export async function showDisabled(admin: Admin, format: Format<AuditRecord>): Promise<number> {
  const { store, settings, print, printError } = admin;
  const spans = spansOf(await openLogs(store));
  await recordAccess(admin, { command: "tokens disabled" });
  const { candidates, fromMs } = await readCandidates(store, spans, DISABLED_EVENTS_MAX);
  const titles = titlesOf(settings);
  if (format.header !== undefined) print(format.header);
  for (const { subject, record } of candidates) {
    // The trail only proposes: an enabling that came too late, or a restored store, leaves another state than it tells.
    if (await isDisabled({ hash, endings: store.endings }, subject)) print(format.line(record, titles));
  }
  const since =
    fromMs === undefined ? "the trail has no events" : `the trail was read back to ${time(fromMs)}`;
  printError(
    `By command, API or issuer; ${since}, and names no subject that was disabled before. What the configuration disables (disabledSubjects) stands there.`,
  );
  return EXIT.done;
}

type Found = { candidates: readonly Candidate[]; fromMs: number | undefined };

const TYPES: readonly Term[] = ["subject.disabled", "subject.enabled", "signal.received"].map((value) => ({
  name: "type",
  value,
}));

/** The newest `eventsMax` events that can say it; the subjects that were disabled first come first. */
export async function readCandidates(
  { audit }: Pick<Store, "audit">,
  spans: readonly Span[],
  eventsMax: number,
): Promise<Found> {
  const found = new Map<string, Candidate>();
  let after: AuditPosition | undefined;
  for (let events = 0; events < eventsMax; ) {
    const limit = Math.min(AUDIT_PAGE_MAX, eventsMax - events);
    const query = { terms: [TYPES], spans, newestFirst: true, after, limit };
    const page = await audit.find(defined<AuditQuery>(query));
    for (const record of page) note(found, record);
    events += page.length;
    after = page.at(-1) ?? after;
    if (page.length < limit) {
      const [oldest] = await audit.find({ terms: [], spans, limit: 1 });
      after = oldest;
      break;
    }
  }
  const candidates = [...found.values()].toSorted((a, b) => a.record.timeMs - b.record.timeMs);
  return { candidates, fromMs: after?.timeMs };
}

function note(found: Map<string, Candidate>, record: AuditRecord): void {
  const event = readEvent(record.body);
  const { ends, ...detail } = event?.detail ?? {};
  const disables = isJsonObject(ends) && ends.disabled === true;
  const subject = subjectIn(disables ? ends : detail);
  if (event === undefined || subject === undefined) return;
  const key = JSON.stringify([subject.iss, subject.sub]);
  const known = found.get(key);
  if (disables && known?.isSettled !== true) found.set(key, { subject, record, isSettled: false });
  if (event.type === "subject.enabled" && known !== undefined) known.isSettled = true;
}

const subjectIn = ({ iss, sub }: { [name: string]: Json | undefined } | JsonObject): Origin | undefined =>
  typeof iss === "string" && typeof sub === "string" ? { iss, sub } : undefined;

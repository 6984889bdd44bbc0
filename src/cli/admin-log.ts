/** Operator commands write to a log of their own, because the log of an instance has one writer: its server. */
import { type JournalEntry, type OpenJournal, openJournal } from "../adapters/audit/journal.ts";
import { clock } from "../adapters/clock.ts";
import { random } from "../adapters/crypto/random.ts";
import { LogConflict, type Store } from "../adapters/store/store.ts";
import type { AuditEvent } from "../audit/event.ts";
import { type Journal, StoreUnavailable } from "../ports.ts";
import type { Entry } from "../records.ts";
import type { Settings } from "../settings/settings.ts";
import type { JsonObject } from "../spec/rfc8259.ts";

export const ADMIN_LOG = "admin";

const ATTEMPTS_MAX = 3;

/** The operating-system user that runs the command: the only identity that the host knows. */
function describeOperator(): JsonObject {
  return process.getuid === undefined ? {} : { uid: process.getuid() };
}

/** What every event of an operator says. */
const ofOperator = (detail: JsonObject) => ({
  reason: "by_operator" as const,
  detail: { ...detail, ...describeOperator() },
});

/** AUDIT-D-4: it names the policy in force, by its digest. */
export const byOperator = ({ policy }: Settings, detail: JsonObject = {}) => ({
  ...ofOperator(detail),
  policy: { digest: policy.digest },
});

/** An event of what an operator did. */
export const operatorEvent = (settings: Settings, type: AuditEvent["type"], detail?: JsonObject) => ({
  type,
  outcome: "allow" as const,
  ...byOperator(settings, detail),
});

/**
 * AUDIT-D-1: event and change are written in one step and durable when this returns; it returns false if the change was
 * not possible.
 */
export async function recordAsAdmin(store: Pick<Store, "log">, entry: JournalEntry): Promise<boolean> {
  return (await write(store, (journal) => journal.record(entry))).ok;
}

/** AUDIT-D-18: no policy decided over a look at the trail, so that its event names none. */
export async function recordTrailAccess(store: Pick<Store, "log">, detail: JsonObject): Promise<void> {
  await recordAsAdmin(store, {
    event: { type: "admin.access", outcome: "allow", ...ofOperator(detail) },
  });
}

/** AUDIT-D-6: a look at tokens, jobs or callers is recorded before anything is printed. */
export async function recordAccess(
  { settings, store }: { settings: Settings; store: Pick<Store, "log"> },
  detail: JsonObject,
): Promise<void> {
  await recordAsAdmin(store, { event: operatorEvent(settings, "admin.access", detail) });
}

/**
 * Does what `recordAsAdmin` does, for what a server may write too; returns the id of the event, or the conditions that
 * failed.
 */
export const recordEntry = (store: Pick<Store, "log">, entry: Entry): ReturnType<Journal["record"]> =>
  write(store, (journal) => journal.record(entry));

/** If a concurrent command takes the next sequence number of the log, nothing is written and we try again. */
async function write<T>(
  { log }: Pick<Store, "log">,
  record: (journal: OpenJournal) => Promise<T>,
): Promise<T> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const taken = new AbortController();
    try {
      const onFatal = (): void => taken.abort();
      const journal = await openJournal({ log: ADMIN_LOG, store: log, clock, random, onFatal });
      const recorded = await record(journal);
      await journal.close();
      return recorded;
    } catch (fault) {
      if (taken.signal.aborted || fault instanceof LogConflict) continue;
      if (!(fault instanceof StoreUnavailable)) throw fault;
      throw new StoreUnavailable(`${fault.message}: check the audit log before retrying`);
    }
  }
  throw new StoreUnavailable("other admin commands were running, and nothing was written: try again");
}

/**
 * A store that went back (AUDIT-D-10): an older copy took its place, or a replica that lagged was promoted. It has
 * forgotten what was recorded since, and is treated as a restored copy (restored.ts).
 */

import type { Closing, KeptClosing } from "../adapters/audit/closings.ts";
import {
  compareLog,
  compareWithWitness,
  type KnownHead,
  type LogBehind,
  type WitnessComparison,
} from "../adapters/audit/compare-witness.ts";
import type { Loss, OpenJournal } from "../adapters/audit/journal.ts";
import type { RestoredMark, Store } from "../adapters/store/store.ts";
import type { AuditEvent } from "../audit/event.ts";
import { STORE_LOOK_MS, STORE_RETRY_MS, WRITE_AGAIN_TRIES_MAX } from "../limits/store.ts";
import { buildEnding } from "../policy/endings.ts";
import { type Clock, type Hash, StoreUnavailable, type Timers } from "../ports.ts";
import type { Guard } from "../records.ts";
import { defined } from "../result.ts";
import type { Log } from "./log.ts";

const toEvent = ({ log, known, stored, forked }: LogBehind): AuditEvent => ({
  type: "log.verification_failed",
  outcome: "error",
  reason: "witness_ahead",
  detail: { log, known, stored, forked },
});

function describe({ log, known, stored, forked, storedMs }: LogBehind): string {
  const last = storedMs === undefined ? "" : `, the last one of ${new Date(storedMs).toISOString()}`;
  const lost = forked ? "other records took their place" : `records ${stored} to ${known - 1} are lost`;
  return (
    `The store went back: log ${JSON.stringify(log)} has ${stored} records${last}, and there were ${known}: ${lost}. ` +
    "A backup was restored, a replica that lagged was promoted, or the file was lost. Assertions, codes and refresh " +
    "tokens that were used since might be accepted again, and consents, clients and tokens that were ended since are not."
  );
}

type Start = WitnessComparison & {
  journal: OpenJournal;
  restored: RestoredMark;
  clock: Pick<Clock, "nowMs">;
  hash: Hash;
};

/** At the start, told, recorded and counted; marks the store unless all was ended since there was more of it. */
export async function markIfBehind(start: Start, log: Log): Promise<number> {
  const { journal, restored, clock, hash } = start;
  const behind = await compareWithWitness(start);
  const { key } = buildEnding(hash.sha256, { by: "everything" }, clock.nowMs());
  for (const one of behind) {
    const event = toEvent(one);
    const guard: Guard = { kind: "not_ended", keys: [{ key, sinceMs: one.knownMs }] };
    const isNew = (await journal.record({ event, guards: [guard] })).ok;
    if (isNew) await restored.set(clock.nowMs());
    else await journal.record({ event });
    const treated = isNew ? "It is treated as a restored copy." : "All that was issued was ended since.";
    log.tell({ level: "error", event: "witness_ahead", message: `${describe(one)} ${treated}` });
  }
  return behind.length;
}

type Serving = {
  store: Pick<Store, "restored" | "endings">;
  clock: Pick<Clock, "nowMs">;
  hash: Hash;
  timers: Timers;
  log: Pick<Log, "tell">;
  /** Opens the log anew, where it now ends. */
  reopen: () => Promise<OpenJournal>;
  /** What this instance took away by the lost records, if they are its own. */
  closings: (behind: LogBehind) => readonly KeptClosing[];
};

/**
 * While it serves: marks the store, so that every instance ends and starts anew, and records the loss behind what is left.
 * An instance that was away while the others did that marks it no second time.
 */
export async function markWentBack(
  { store: { restored, endings }, clock, hash, timers, log, reopen, closings }: Serving,
  behind: LogBehind,
): Promise<void> {
  const { key } = buildEnding(hash.sha256, { by: "everything" }, clock.nowMs());
  const isTreated = await endings.isEnded([{ key, sinceMs: behind.knownMs }]).catch(() => false);
  const next = isTreated
    ? "All that was issued was ended since. This process ends."
    : "This process ends, and the next start treats the store as a restored copy.";
  log.tell({ level: "error", event: "store_went_back", message: `${describe(behind)} ${next}` });
  // This is tried for as long as it takes, because without the mark only this process knows of the loss.
  for (let marked = isTreated; !marked; ) {
    marked = await restored.set(clock.nowMs()).then(
      () => true,
      (fault) => !(fault instanceof StoreUnavailable),
    );
    if (!marked) await new Promise<void>((resolve) => void timers.after(STORE_RETRY_MS, resolve));
  }
  // The instance that took something away is the only one that knows of it: each writes its own again.
  const lost = closings(behind).map(asWrittenAgain);
  const left = await writeBehind({ timers, reopen }, [{ event: toEvent(behind) }, ...lost]);
  if (lost.length === 0) return;
  const message =
    `Of the ${lost.length} endings, withdrawals and removals by this instance among the lost records, ` +
    `${Math.max(0, lost.length - left)} were written again. Repeat those of commands since.`;
  log.tell({ level: "error", event: "store_went_back", message });
}

const asWrittenAgain = ({ id, closing }: KeptClosing): Closing => ({
  ...closing,
  event: { ...closing.event, detail: { ...closing.event.detail, written_again: id } },
});

/** STORE-D-25: behind what is left of the log, in order; returns how many could not be written. */
async function writeBehind(
  { timers, reopen }: Pick<Serving, "timers" | "reopen">,
  entries: readonly Closing[],
): Promise<number> {
  const left = [...entries];
  for (let tries = 0; left.length > 0 && tries < WRITE_AGAIN_TRIES_MAX; tries++) {
    if (tries > 0) await new Promise<void>((resolve) => void timers.after(STORE_RETRY_MS, resolve));
    try {
      const journal = await reopen();
      for (let next = left[0]; next !== undefined; next = left[0]) {
        await writeOne(journal, next);
        left.shift();
      }
      await journal.close();
    } catch (fault) {
      if (!(fault instanceof StoreUnavailable)) break;
    }
  }
  return left.length;
}

/** A consent or client that is not on record as it was, or not any more, has nothing to take away; the ending stands alone. */
async function writeOne(journal: OpenJournal, { event, ending, also, ...record }: Closing): Promise<void> {
  const ends = defined<Closing>({ event, ending, also });
  const { ok } = await journal.record({ ...ends, ...record });
  if (!ok && ending !== undefined) await journal.record(ends);
}

type StoreLook = {
  store: Pick<Store, "log" | "audit" | "restored">;
  journal: Pick<OpenJournal, "head">;
  clock: Pick<Clock, "nowMs">;
  timers: Timers;
  /** The failure is told once. */
  onLoss: (loss: Loss) => void;
};

/**
 * Looks at the logs of all instances at regular intervals: an instance that wrote nothing since notices by the logs of
 * the others that the store went back, or by their mark.
 */
export function watchStore({ store, journal, clock, timers, onLoss }: StoreLook): () => void {
  let known: readonly KnownHead[] = [];
  let looking = false;
  const look = async (): Promise<Loss | undefined> => {
    // The heads are taken before the store is asked, because the journal writes on. The own one is first: what this
    // instance wrote is written again by it alone, also where another one has marked the store.
    const heads = [journal.head(), ...known];
    const timeMs = clock.nowMs();
    const found = (await store.audit.heads()).map(({ log, seq, hash }) => ({ log, seq, hash, timeMs }));
    for (const head of heads) {
      const now = found.find(({ log }) => log === head.log);
      if (now !== undefined && (now.seq > head.seq || now.hash === head.hash)) continue;
      const behind = await compareLog(store.log, head);
      if (behind !== undefined)
        return { reason: `the store has lost records of the audit log ${JSON.stringify(head.log)}`, behind };
    }
    if ((await store.restored.find()) !== undefined)
      return { reason: "the store was marked as a restored copy while this process ran" };
    known = found;
    return undefined;
  };
  const stop = timers.every(STORE_LOOK_MS, async () => {
    if (looking) return;
    looking = true;
    // While the store does not answer, what is known stays.
    const loss = await look().catch(() => undefined);
    looking = false;
    if (loss === undefined) return;
    stop();
    onLoss(loss);
  });
  return stop;
}

/**
 * The store, and in it the name and the log of this instance, as the process starts: waited for where the hold of another
 * process lapses, refused where the name is in use or was retired.
 */

import type { Checkpoints } from "../adapters/audit/checkpoints.ts";
import { keepClosings } from "../adapters/audit/closings.ts";
import type { KnownHead, LogBehind } from "../adapters/audit/compare-witness.ts";
import {
  type InstanceName,
  NameInUse,
  type NameOptions,
  readWhileHeld,
  takeName,
} from "../adapters/audit/instance-name.ts";
import { type JournalOptions, LogEnded, type OpenJournal, openJournal } from "../adapters/audit/journal.ts";
import type { Witness } from "../adapters/audit/witness.ts";
import { hash } from "../adapters/crypto/hash.ts";
import { random } from "../adapters/crypto/random.ts";
import { type AtStart, openStore } from "../adapters/store/open.ts";
import { describeReplication } from "../adapters/store/replication.ts";
import type { EventLog, Store } from "../adapters/store/store.ts";
import type { Config } from "../config/config.ts";
import type { Counters } from "../http/counters.ts";
import type { Clock, Timers } from "../ports.ts";
import { defined, whenDone } from "../result.ts";
import type { Log } from "./log.ts";
import { StartRefused } from "./refused.ts";
import { markWentBack } from "./went-back.ts";
import { openLastWrittenAt, openWitnessAt } from "./witness.ts";

type InstanceOptions = {
  clock: Clock;
  timers: Timers;
  counters: Counters;
  log: Log;
  atStart: AtStart;
  stopped: AbortSignal | undefined;
  /** Told once that nothing can be recorded any more. */
  onFatal: (reason: string) => void;
  /** What is opened is closed with it. */
  opened: AsyncDisposableStack;
};

export type OpenInstance = {
  store: Store;
  name: InstanceName;
  journal: OpenJournal;
  witness: Witness | undefined;
  /** What this instance wrote last before this start. */
  wroteLast: KnownHead | undefined;
  /** From now on, what is written is noted as the last. */
  noteLast(): void;
  /** Closed before the log, after all other parts: the last checkpoint covers what they record while they close. */
  closeLast(checkpoints: Pick<Checkpoints, "close">): void;
};

export async function openInstance(
  { fixed, settings: { issuer } }: Config,
  { clock, timers, counters, log, atStart, stopped, onFatal, opened }: InstanceOptions,
): Promise<OpenInstance> {
  const { instance, witness: place } = fixed.audit;
  const whole = await atStart(() => openStore(fixed.store));
  opened.defer(() => whole.close());
  await atStart(() => tellReplication(whole, log));
  const name = await atStart(() => takeNameAtStart(whole, fixed.audit, log, stopped));
  opened.defer(() => name.close());
  const store = readWhileHeld(whole, name);
  const lastWritten = place && (await openLastWrittenAt(place, { instance, issuer }, log));
  opened.defer(() => lastWritten?.close());
  const wroteLast = await lastWritten?.read();
  const eventLog = timed(store.log, counters);
  const writing = { log: instance, store: eventLog, clock, random, mayWrite: name.ensure };
  const keep = (journal: OpenJournal): OpenJournal => {
    journal.follow(() => lastWritten?.note(journal.head()));
    return journal;
  };
  const reopen = async () => keep(await openJournal({ ...writing, onFatal: () => {} }));
  const closings = ({ log: of, forked, stored }: LogBehind) =>
    of === instance ? kept.since(forked ? 0 : stored) : [];
  const back = { store, clock, hash, timers, log, reopen, closings };
  const onLost = async (reason: string, behind?: LogBehind): Promise<void> => {
    if (behind !== undefined) await markWentBack(back, behind);
    onFatal(reason);
  };
  const journal = await atStart(() => openJournalAtStart({ ...writing, onFatal: onLost }));
  opened.defer(() => journal.close());
  const kept = keepClosings(journal);
  const witness = place && (await openWitnessAt(place, log));
  let last: Pick<Checkpoints, "close"> | undefined = witness;
  opened.defer(() => last?.close());
  name.onLost(() => journal.giveUp());
  journal.follow(counters.recorded);
  return {
    store,
    name,
    journal,
    witness,
    wroteLast,
    noteLast: () => void keep(journal),
    closeLast(checkpoints) {
      last = checkpoints;
    },
  };
}

/** STORE-D-22: without `check`, the loss itself would tell it first. */
async function tellReplication(store: Store, log: Log): Promise<void> {
  const found = await store.replication?.();
  if (found === undefined) return;
  const { isWarning, says } = describeReplication(found);
  const level = isWarning ? "warning" : "info";
  log.tell({ level, event: "store_replication", message: `PostgreSQL: ${says}.` });
}

/** The same log; how long each batch takes is counted. */
function timed(log: EventLog, counters: Counters): EventLog {
  return {
    ...log,
    append(batch) {
      const startMs = performance.now();
      const count = (): void => counters.committed(batch.length, (performance.now() - startMs) / 1000);
      return whenDone(
        () => log.append(batch),
        (failures) => {
          count();
          return failures;
        },
        (fault) => {
          count();
          throw fault;
        },
      );
    },
  };
}

async function takeNameAtStart(
  { names }: Store,
  { instance: name, leaseSeconds }: Config["fixed"]["audit"],
  log: Log,
  stopped: AbortSignal | undefined,
): Promise<InstanceName> {
  const onWait = (message: string): void => log.tell({ level: "warning", event: "name_awaited", message });
  try {
    return await takeName(defined<NameOptions>({ names, name, leaseSeconds, onWait, stopped }));
  } catch (fault) {
    if (!(fault instanceof NameInUse)) throw fault;
    throw new StartRefused(`audit.instance: ${fault.message}. Give each instance a name of its own.`);
  }
}

async function openJournalAtStart(options: JournalOptions): Promise<OpenJournal> {
  return openJournal(options).catch((fault) => {
    if (!(fault instanceof LogEnded)) throw fault;
    throw new StartRefused(`audit.instance: ${fault.message}. Give this instance another name.`);
  });
}

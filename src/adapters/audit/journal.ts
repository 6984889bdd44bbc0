/**
 * The audit journal (clauses AUDIT-D): one hash chain for each log, after RFC 9162 2.1.1 (the leaf hash), with group
 * commit: waiting entries are written as one batch, and their callers are answered when the batch is durable.
 */
import { type AuditEvent, LOG_END } from "../../audit/event.ts";
import { JOURNAL_BATCH_MAX, JOURNAL_PENDING_MAX, STORE_TIMEOUT_MS } from "../../limits/store.ts";
import { type Clock, type Journal, type Outage, type Random, StoreUnavailable } from "../../ports.ts";
import type { Entry, Precondition } from "../../records.ts";
import { type Awaitable, defined, err, ok, type Result } from "../../result.ts";
import {
  type Changes,
  type EventLog,
  type GuardFailure,
  type Head,
  LogConflict,
  NotStorable,
  type StoredEvent,
  type StoreEntry,
  type StorePrecondition,
} from "../store/store.ts";
import { Company, changes, spentBy, takenBy } from "./batch.ts";
import { chainEvent } from "./chain.ts";
import { type Closing, closingOf } from "./closings.ts";
import { compareLog, type KnownHead, type LogBehind } from "./compare-witness.ts";
import { Doubts } from "./doubts.ts";
import { OutageWatch } from "./outage.ts";

export type JournalOptions = {
  /** The name of this instance's log, which only this process writes. */
  log: string;
  store: EventLog;
  clock: Clock;
  random: Pick<Random, "id">;
  /** Called once, when the log cannot be continued by this process; from then on every call fails. */
  onFatal: (reason: string, behind?: LogBehind) => void;
  /** Asked before each write: false if another process has the name of this instance. */
  mayWrite?: () => Awaitable<boolean>;
  timeoutMs?: number;
};

export type JournalEntry = Entry & Changes;

/** An event that is durable, in its place; `closing` is what it took away. */
export type Written = Head & { id: string; timeMs: number; event: AuditEvent; closing?: Closing };

/** The journal of this process, with the changes that only the host makes. */
export interface OpenJournal extends Journal {
  record(entry: JournalEntry, deadline?: AbortSignal, held?: boolean): Promise<Recorded>;
  /** Its callers make none of the changes that only the host makes, so the conditions of those cannot fail. */
  record(entry: Entry, deadline?: AbortSignal, held?: boolean): Promise<RecordedEntry>;
  readonly outage: Outage;
  /** Whether it accepts entries, and how many wait to be written. */
  status(): { open: boolean; pending: number };
  /**
   * Whether the store answers. After a failed write it has to write, because reading proves nothing then; that event
   * (`log.resumed`) also ends the time in which a balancer sends nothing that could be written.
   */
  storeAnswers(): Promise<boolean>;
  /**
   * Reports every batch, in order, once it is known to be durable; a batch written after a timeout is never reported.
   */
  follow(listener: (written: readonly Written[]) => void): void;
  /** The last record that is known to be durable. */
  head(): KnownHead;
  /**
   * Accepts no more, and writes nothing that waits. Without a reason, the log shows it: the store went back, or another
   * process has the name of this instance.
   */
  giveUp(loss?: Loss): void;
  /** Writes the waiting entries and accepts no more. */
  close(): Promise<void>;
}

/** Why the log is not continued; `behind` says that the store went back. */
export type Loss = { reason: string; behind?: LogBehind };

type RecordedEntry = Result<{ eventId: string }, readonly Precondition[]>;
type Recorded = Result<{ eventId: string }, readonly StorePrecondition[]>;

type Waiting = {
  entry: JournalEntry;
  id: string;
  timeMs: number;
  answered: boolean;
  held: boolean;
  /** Its write had no answer, and it waits until the outcome is known. */
  doubted: boolean;
  resolve(outcome: Recorded): void;
  reject(fault: unknown): void;
};

const RESUMED: AuditEvent = { type: "log.resumed", outcome: "allow", reason: "store_writes_again" };

/** The log was retired, and its name is not used again. */
export class LogEnded extends Error {
  override name = "LogEnded";
}

/** Continues the log after its last event, or begins it with `log.genesis`; throws LogEnded. */
export async function openJournal(options: JournalOptions): Promise<OpenJournal> {
  const { log, store, clock, random } = options;
  const head = await store.head(log);
  const [last] = head === undefined ? [] : await store.read({ log, afterSeq: head.seq - 1, limit: 1 });
  if (last?.type === LOG_END) {
    throw new LogEnded(
      `the log ${JSON.stringify(log)} was retired on ${new Date(last.timeMs).toISOString()}`,
    );
  }
  if (last !== undefined) return new ChainedJournal(options, last);
  const event: AuditEvent = { type: "log.genesis", outcome: "allow", reason: "log_opened" };
  const place = { log, id: random.id(), timeMs: clock.nowMs(), salt: random.id() };
  const genesis = chainEvent(undefined, event, place);
  await store.append([{ event: genesis }]);
  return new ChainedJournal(options, genesis);
}

/**
 * Answers the entries whose guards failed, and returns the others. JOB-D-11: what only stood too far back in the count of
 * its job is tried again where an entry before it leaves the batch for another reason.
 */
function refuse(members: readonly Waiting[], failures: readonly GuardFailure[]): Waiting[] {
  const all = Map.groupBy(failures, ({ entry }) => entry);
  const others = [...all].filter(([, found]) => found.some(({ guard }) => guard !== "job_below"));
  const failed = others.length > 0 ? new Map(others) : all;
  for (const [index, found] of failed) members[index]?.resolve(err(found.map(({ guard }) => guard)));
  return members.filter((_, index) => !failed.has(index));
}

class ChainedJournal implements OpenJournal {
  readonly #options: JournalOptions;
  #pending: Waiting[] = [];
  readonly #company = new Company(() => this.#pending.length);
  /** The last record that is known to be durable. */
  #head: StoredEvent;
  /** The last one that was seen in the log, which is that or one of a write in doubt. */
  #seen: StoredEvent;
  readonly #doubts = new Doubts();
  readonly outage = new OutageWatch(
    () => this.storeAnswers(),
    () => this.#closed === undefined && this.#doubts.size > 0,
  );
  /** Whether the last write failed, so that the head has to be read again. */
  #inDoubt = false;
  /** One read of the head is shared by all that ask at the same time. */
  #asked: Promise<boolean> | undefined;
  #closed: string | undefined;
  #fatal = false;
  #running: Promise<void> | undefined;
  readonly #listeners: ((written: readonly Written[]) => void)[] = [];

  constructor(options: JournalOptions, head: StoredEvent) {
    this.#options = options;
    this.#head = head;
    this.#seen = head;
  }

  record(entry: JournalEntry, deadline?: AbortSignal, held?: boolean): Promise<Recorded>;
  record(entry: Entry, deadline?: AbortSignal, held?: boolean): Promise<RecordedEntry>;
  record(entry: JournalEntry, deadline?: AbortSignal, held = false): Promise<Recorded> {
    return new Promise((resolve, reject) => {
      deadline?.throwIfAborted();
      if (this.#closed !== undefined) throw new StoreUnavailable(this.#closed);
      if (this.#pending.length >= JOURNAL_PENDING_MAX)
        throw new StoreUnavailable("the audit journal is full");
      // RFC7523-3-14, IDC-5.5-2: a `jti` may not be used twice within one request either.
      const spent = spentBy(entry);
      const again = spent.filter(({ key }, index) => spent.findIndex((one) => one.key === key) < index);
      if (again.length > 0) {
        resolve(err([...new Set(again.map(({ kind }) => kind))]));
        return;
      }
      const { clock, random, timeoutMs = STORE_TIMEOUT_MS } = this.#options;
      const late = (): void =>
        waiting.reject(new StoreUnavailable("the audit journal did not write in time"));
      const timer = held ? undefined : setTimeout(late, timeoutMs);
      const abandon = () => waiting.reject(deadline?.reason);
      deadline?.addEventListener("abort", abandon);
      const settle = (answer: () => void) => {
        clearTimeout(timer);
        deadline?.removeEventListener("abort", abandon);
        waiting.answered = true;
        answer();
      };
      const waiting: Waiting = {
        entry,
        id: random.id(),
        timeMs: clock.nowMs(),
        answered: false,
        held,
        doubted: false,
        resolve: (outcome) => settle(() => resolve(outcome)),
        reject: (fault) => settle(() => reject(fault)),
      };
      this.#pending.push(waiting);
      this.#company.join();
      this.#running ??= this.#run();
    });
  }

  storeAnswers(): Promise<boolean> {
    this.#asked ??= this.#askStore().finally(() => {
      this.#asked = undefined;
    });
    return this.#asked;
  }

  #askStore(): Promise<boolean> {
    const { store, log } = this.#options;
    const asked: Promise<unknown> = this.#inDoubt ? this.record({ event: RESUMED }) : store.head(log);
    return asked.then(
      () => true,
      () => false,
    );
  }

  head(): KnownHead {
    const { log, seq, hash, timeMs } = this.#head;
    return { log, seq, hash, timeMs };
  }

  giveUp(loss?: Loss): void {
    void this.#fail([], loss);
  }

  status(): { open: boolean; pending: number } {
    return { open: this.#closed === undefined, pending: this.#pending.length };
  }

  follow(listener: (written: readonly Written[]) => void): void {
    this.#listeners.push(listener);
  }

  async close(): Promise<void> {
    this.#closed ??= "the audit journal is closed";
    await this.#running;
    this.#doubts.fail(new StoreUnavailable(this.#closed));
  }

  async #run(): Promise<void> {
    while (this.#pending.length > 0) {
      await this.#company.gather();
      await this.#write(this.#take());
    }
    this.#running = undefined;
  }

  /**
   * Takes the next batch. It uses a `jti` or a family once, has at most one registration, and ends with the first
   * change of a record, so that entries before it still see the earlier state.
   */
  #take(): Waiting[] {
    const batch: Waiting[] = [];
    const later: Waiting[] = [];
    const taken = new Set<string>();
    let full = false;
    for (const waiting of this.#pending) {
      if (waiting.answered) continue;
      const keys = takenBy(waiting.entry);
      if (full || keys.some((key) => taken.has(key))) {
        later.push(waiting);
        continue;
      }
      for (const key of keys) taken.add(key);
      batch.push(waiting);
      full = batch.length === JOURNAL_BATCH_MAX || changes(waiting.entry);
    }
    this.#pending = later;
    return batch;
  }

  /** Writes what is left of the batch until each entry of it has its answer. */
  async #write(batch: Waiting[]): Promise<void> {
    let left = batch;
    let arrived = false;
    while (left.length > 0) {
      try {
        if (!(await this.#isOurs())) return this.#fail(left, await this.#findLoss());
        left = await this.#writeOnce(left);
      } catch (fault) {
        this.#inDoubt = true;
        if (!(fault instanceof LogConflict)) {
          for (const waiting of left) if (!waiting.doubted) waiting.reject(fault);
          return;
        }
        // An earlier write of ours, which had no answer, may have arrived after all: the head is read again, once.
        if (arrived) return this.#fail(left);
        arrived = true;
      }
    }
  }

  /** AUDIT-D-11: a record in the log that is not ours was written by another process, or the store went back. */
  async #isOurs(): Promise<boolean> {
    const { mayWrite = () => true } = this.#options;
    return (await mayWrite()) && (!this.#inDoubt || this.#readHead());
  }

  /**
   * Reads the head again after a write of unknown outcome, and tells whether it is ours. That it is seen does not make it
   * durable: a primary that was restarted shows what no standby has, and a promoted one does not. A write behind it does.
   */
  async #readHead(): Promise<boolean> {
    const head = await this.#options.store.head(this.#options.log);
    const seen = head?.hash === this.#head.hash ? this.#head : this.#doubts.find(head?.hash);
    this.#seen = seen ?? this.#seen;
    return seen !== undefined;
  }

  /** Chains and writes a batch. Answers entries that cannot be written, and returns the others, to be tried again. */
  async #writeOnce(batch: Waiting[]): Promise<Waiting[]> {
    const { log, store, random } = this.#options;
    const members: Waiting[] = [];
    const entries: StoreEntry[] = [];
    const written: Written[] = [];
    let last = this.#seen;
    for (const waiting of batch) {
      const { entry, id, timeMs, answered } = waiting;
      // A caller that was already told "unknown" must not be recorded later.
      if (answered) continue;
      try {
        const event = chainEvent(last, entry.event, { log, id, timeMs, salt: random.id() });
        entries.push({ ...entry, event });
        members.push(waiting);
        const { seq, hash } = event;
        written.push(
          defined<Written>({ seq, hash, id, timeMs, event: entry.event, closing: closingOf(entry) }),
        );
        last = event;
      } catch (fault) {
        waiting.reject(fault);
      }
    }
    if (entries.length === 0) return [];
    const beganMs = performance.now();
    let tookMs = 0;
    try {
      const appending = store.append(entries);
      const failures = await appending;
      if (failures.length > 0) return refuse(members, failures);
      if (appending instanceof Promise) tookMs = performance.now() - beganMs;
    } catch (fault) {
      if (fault instanceof NotStorable) {
        members[fault.entry]?.reject(fault.cause);
        return members.filter((_, index) => index !== fault.entry);
      }
      if (!(fault instanceof LogConflict)) this.#doubt(last, members, fault);
      throw fault;
    }
    this.#doubts.settle(this.#seen.hash);
    this.#seen = last;
    this.#head = last;
    this.#inDoubt = false;
    this.outage.over();
    this.#company.expect(written.length, tookMs);
    for (const tell of this.#listeners) tell(written);
    // AUDIT-D-1: the callers are answered only now, when the events are durable.
    for (const { id, resolve } of members) resolve(ok({ eventId: id }));
    return [];
  }

  /** STORE-D-21: members that are held wait until the outcome is known, which a look at the store or a later write tells. */
  #doubt(last: StoredEvent, members: readonly Waiting[], fault: unknown): void {
    const isHeld = fault instanceof StoreUnavailable && fault.noWriter === true;
    const kept = members.filter((waiting) => isHeld && waiting.held && !waiting.answered);
    for (const waiting of kept) waiting.doubted = true;
    this.#doubts.add(last, this.#seen.hash, kept);
    if (kept.length > 0) this.outage.watch();
  }

  /** Two processes cannot write one chain, nor can a chain go back; this process can mend neither, so it stops. */
  async #fail(batch: Waiting[], given?: Loss): Promise<void> {
    const known = this.#fatal;
    this.#fatal = true;
    this.#closed ??= "the audit log is not continued";
    const refused = [...batch, ...this.#pending];
    this.#pending = [];
    const { reason, behind } = given ?? (await this.#findLoss().catch(() => this.#replaced()));
    if (!known) this.#closed = reason;
    for (const waiting of refused) waiting.reject(new StoreUnavailable(reason));
    this.#doubts.fail(new StoreUnavailable(reason));
    if (!known) this.#options.onFatal(reason, behind);
  }

  /** While the store does not answer, it is not known why a record is not ours: the next write asks again. */
  async #findLoss(): Promise<Loss> {
    const name = JSON.stringify(this.#options.log);
    const behind = await compareLog(this.#options.store, this.head());
    if (behind === undefined) return this.#replaced();
    return { reason: `the store has lost records of the audit log ${name}`, behind };
  }

  #replaced(): Loss {
    const name = JSON.stringify(this.#options.log);
    const reason = `another process writes the audit log ${name}: give each instance its own audit.instance`;
    return { reason };
  }
}

/**
 * The audit journal (clauses AUDIT-D): one hash chain for each log, after RFC 9162 2.1.1 (the leaf hash), with group
 * commit: waiting entries are written as one batch, and their callers are answered when the batch is durable.
 */
import { hash } from "node:crypto";
import type { AuditEvent } from "../../audit/event.ts";
import { GENESIS_PREV, LOG_END, sealEvent } from "../../audit/event.ts";
import {
  EMPTY_TURN_MS,
  JOURNAL_BATCH_MAX,
  JOURNAL_COMPANY_MS,
  JOURNAL_DOUBTED_MAX,
  JOURNAL_PENDING_MAX,
  STORE_TIMEOUT_MS,
} from "../../limits.ts";
import type { Clock, Journal, Random } from "../../ports.ts";
import { StoreUnavailable } from "../../ports.ts";
import type { Entry, Precondition } from "../../records.ts";
import type { Result } from "../../result.ts";
import { err, ok } from "../../result.ts";
import { assertEncodable, isFreshGuard } from "../store/encoding.ts";
import type { Changes, EventLog, Head, StoredEvent, StorePrecondition } from "../store/store.ts";
import { LogConflict } from "../store/store.ts";

export type JournalOptions = {
  /** The name of this instance's log, which only this process writes. */
  log: string;
  store: EventLog;
  clock: Clock;
  random: Pick<Random, "id">;
  /** Called once, when another process writes the same log; from then on every call fails. */
  onFatal: (reason: string) => void;
  /** Asked before each write: false if another process has the name of this instance. */
  mayWrite?: () => Promise<boolean>;
  timeoutMs?: number;
};

export type JournalEntry = Entry & Changes;

/** The journal of this process, with the changes that only the host makes. */
export interface OpenJournal extends Journal {
  record(entry: JournalEntry, deadline?: AbortSignal): Promise<Recorded>;
  /** Without the changes that only the host makes, their conditions cannot fail. */
  record(entry: Entry, deadline?: AbortSignal): Promise<RecordedEntry>;
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
  follow(listener: (written: readonly Head[]) => void): void;
  /** Accepts no more, and writes nothing that waits, because another process has the name of this instance. */
  giveUp(): void;
  /** Writes the waiting entries and accepts no more. */
  close(): Promise<void>;
}

type RecordedEntry = Result<{ eventId: string }, readonly Precondition[]>;
type Recorded = Result<{ eventId: string }, readonly StorePrecondition[]>;

type Waiting = {
  entry: JournalEntry;
  id: string;
  timeMs: number;
  answered: boolean;
  resolve(outcome: Recorded): void;
  reject(fault: unknown): void;
};

/** RFC9162-2.1.1-1: with the prefix of leaves, so that an event cannot be taken for an inner node of the tree; hex. */
export function eventHash(body: string): string {
  return hash("sha256", `\0${body}`, "hex");
}

const RESUMED: AuditEvent = { type: "log.resumed", outcome: "allow", reason: "store_writes_again" };

/** The log was retired, and its name is not used again. */
export class LogEnded extends Error {
  override name = "LogEnded";
}

/** Continues the log after its last event, or begins it with `log.genesis`; throws LogEnded. */
export async function openJournal(options: JournalOptions): Promise<OpenJournal> {
  const { log, store, clock, random } = options;
  const found = await store.head(log);
  if (found !== undefined) {
    const [last] = await store.read({ log, afterSeq: found.seq - 1, limit: 1 });
    if (last?.type !== LOG_END) return new ChainedJournal(options, found);
    throw new LogEnded(
      `the log ${JSON.stringify(log)} was retired on ${new Date(last.timeMs).toISOString()}`,
    );
  }
  const event: AuditEvent = { type: "log.genesis", outcome: "allow", reason: "log_opened" };
  const genesis = seal(log, undefined, event, random.id(), clock.nowMs());
  await store.append([{ event: genesis }]);
  return new ChainedJournal(options, genesis);
}

function seal(
  log: string,
  head: Head | undefined,
  event: AuditEvent,
  id: string,
  timeMs: number,
): StoredEvent {
  const seq = head === undefined ? 0 : head.seq + 1;
  const prev = head === undefined ? GENESIS_PREV : head.hash;
  const body = sealEvent(event, { log, seq, id, timeMs, prev });
  return { log, seq, id, timeMs, type: event.type, body, prev, hash: eventHash(body) };
}

class ChainedJournal implements OpenJournal {
  readonly #options: JournalOptions;
  #pending: Waiting[] = [];
  /** The last one that is known to be ours. */
  #head: Head;
  /** The ends of batches that may have reached the store, or still will: hashes, the oldest first. */
  readonly #doubted = new Set<string>();
  /** Whether the last write failed, so that the head has to be read again. */
  #inDoubt = false;
  /** Shared by all that ask at the same time. */
  #asked: Promise<boolean> | undefined;
  #closed: string | undefined;
  #fatal = false;
  #running: Promise<void> | undefined;
  #tell: (written: readonly Head[]) => void = () => {};

  constructor(options: JournalOptions, head: Head) {
    this.#options = options;
    this.#head = head;
  }

  record(entry: JournalEntry, deadline?: AbortSignal): Promise<Recorded>;
  record(entry: Entry, deadline?: AbortSignal): Promise<RecordedEntry>;
  async record(entry: JournalEntry, deadline?: AbortSignal): Promise<Recorded> {
    deadline?.throwIfAborted();
    if (this.#closed !== undefined) throw new StoreUnavailable(this.#closed);
    if (this.#pending.length >= JOURNAL_PENDING_MAX) throw new StoreUnavailable("the audit journal is full");
    // RFC7523-3-14, IDC-5.5-2: a `jti` may not be used twice within one request either.
    const spent = spentBy(entry);
    const again = spent.filter(({ key }, index) => spent.findIndex((one) => one.key === key) < index);
    if (again.length > 0) return err([...new Set(again.map(({ kind }) => kind))]);
    const { clock, random, timeoutMs = STORE_TIMEOUT_MS } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<Recorded>();
    const timer = setTimeout(() => {
      waiting.reject(new StoreUnavailable("the audit journal did not write in time"));
    }, timeoutMs);
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
      resolve: (outcome) => settle(() => resolve(outcome)),
      reject: (fault) => settle(() => reject(fault)),
    };
    this.#pending.push(waiting);
    this.#running ??= this.#run();
    return promise;
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

  giveUp(): void {
    this.#fail([]);
  }

  status(): { open: boolean; pending: number } {
    return { open: this.#closed === undefined, pending: this.#pending.length };
  }

  follow(listener: (written: readonly Head[]) => void): void {
    this.#tell = listener;
  }

  async close(): Promise<void> {
    this.#closed ??= "the audit journal is closed";
    await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#pending.length > 0) {
      await untilNothingIsReady();
      const batch = this.#take();
      await this.#write(batch);
    }
    this.#running = undefined;
  }

  /**
   * The next batch. It uses a `jti` or a family once, has at most one registration, and ends with the first change of a record, so
   * that entries before it still see the earlier state.
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

  async #write(batch: Waiting[]): Promise<void> {
    const { mayWrite = async () => true } = this.#options;
    let left = batch;
    let arrived = false;
    while (left.length > 0) {
      try {
        // AUDIT-D-11: what stands in the log and is not ours was written by another process.
        if (!(await mayWrite()) || (this.#inDoubt && !(await this.#readHead()))) {
          this.#fail(left);
          return;
        }
        left = await this.#writeOnce(left);
      } catch (fault) {
        this.#inDoubt = true;
        if (fault instanceof LogConflict && !arrived && this.#doubted.size > 0) {
          // An earlier write of ours may have arrived after all; the log continues after it.
          arrived = true;
        } else if (fault instanceof LogConflict) {
          this.#fail(left);
          return;
        } else {
          for (const waiting of left) waiting.reject(fault);
          return;
        }
      }
    }
  }

  /** Reads the head again after a write of unknown outcome; whether it is ours. */
  async #readHead(): Promise<boolean> {
    const head = await this.#options.store.head(this.#options.log);
    if (head === undefined) throw new StoreUnavailable("the audit log has disappeared from the store");
    if (head.hash === this.#head.hash) return true;
    if (!this.#doubted.has(head.hash)) return false;
    this.#head = head;
    this.#doubted.clear();
    return true;
  }

  /** Chains and writes a batch. If guards fail, answers those entries and returns the others, to be tried again. */
  async #writeOnce(batch: Waiting[]): Promise<Waiting[]> {
    const { log, store } = this.#options;
    const members: Waiting[] = [];
    const entries = [];
    let last = this.#head;
    for (const waiting of batch) {
      const { entry, id, timeMs, answered } = waiting;
      // A caller that was already told "unknown" must not be recorded later.
      if (answered) continue;
      try {
        assertEncodable(entry);
        const event = seal(log, last, entry.event, id, timeMs);
        entries.push({ ...entry, event });
        members.push(waiting);
        last = event;
      } catch (fault) {
        waiting.reject(fault);
      }
    }
    if (entries.length === 0) return [];
    const failures = await store.append(entries).catch((fault) => {
      if (!(fault instanceof LogConflict)) this.#doubt(last);
      throw fault;
    });
    if (failures.length === 0) {
      this.#head = { seq: last.seq, hash: last.hash };
      this.#inDoubt = false;
      this.#doubted.clear();
      this.#tell(entries.map(({ event }) => event));
      // AUDIT-D-1: the callers are answered only now, when the events are durable.
      for (const { id, resolve } of members) resolve(ok({ eventId: id }));
      return [];
    }
    const failed = Map.groupBy(failures, ({ entry }) => entry);
    for (const [index, found] of failed) members[index]?.resolve(err(found.map(({ guard }) => guard)));
    return members.filter((_, index) => !failed.has(index));
  }

  #doubt({ hash }: Head): void {
    const [oldest] = this.#doubted;
    if (oldest !== undefined && this.#doubted.size === JOURNAL_DOUBTED_MAX) this.#doubted.delete(oldest);
    this.#doubted.add(hash);
  }

  /** Two processes cannot write one chain, and neither knows which one should continue, so this one stops. */
  #fail(batch: Waiting[]): void {
    const log = JSON.stringify(this.#options.log);
    const reason = `another process writes the audit log ${log}: give each instance its own audit.instance`;
    const known = this.#fatal;
    this.#fatal = true;
    this.#closed = reason;
    for (const waiting of [...batch, ...this.#pending]) waiting.reject(new StoreUnavailable(reason));
    this.#pending = [];
    if (!known) this.#options.onFatal(reason);
  }
}

/** Whether the entry changes a record that guards of other entries may check; a new client is not such a record. */
function changes({ consent, client, registration, ending, keys }: JournalEntry): boolean {
  const alters = registration !== undefined && !("register" in registration);
  return alters || [consent, client, ending, keys].some((change) => change !== undefined);
}

/**
 * What only one entry of a batch may use: a `jti`, a family, and registrations, which count clients and uses of initial
 * tokens.
 */
function takenBy(entry: JournalEntry): readonly string[] {
  const { registration, initialToken, family } = entry;
  const taken = spentBy(entry).map(({ key }) => key);
  if (registration !== undefined || initialToken !== undefined) taken.push("registration");
  if (family !== undefined) taken.push(`family ${"start" in family ? family.start.id : family.use}`);
  return taken;
}

function spentBy({ guards = [] }: JournalEntry) {
  return guards.flatMap((guard) =>
    isFreshGuard(guard) ? [{ kind: guard.kind, key: JSON.stringify([guard.issuer, guard.jti]) }] : [],
  );
}

/**
 * A commit costs more than all else of a request, so what can still be done for other requests is done first, and they
 * join the batch: until a turn of the event loop brings no work.
 */
async function untilNothingIsReady(): Promise<void> {
  let turnMs = performance.now();
  const latestMs = turnMs + JOURNAL_COMPANY_MS;
  for (;;) {
    await new Promise((resolve) => setImmediate(resolve));
    const nowMs = performance.now();
    if (nowMs - turnMs < EMPTY_TURN_MS || nowMs > latestMs) return;
    turnMs = nowMs;
  }
}

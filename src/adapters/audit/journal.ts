/**
 * The audit journal (AUDIT-D): one hash chain for each log, after RFC 9162 2.1.1 (the leaf hash), written in
 * groups. What is pending goes out as one batch, and everyone in it is answered when that is durable.
 */
import { createHash } from "node:crypto";
import type { AuditEvent } from "../../audit/event.ts";
import { GENESIS_PREV, sealEvent } from "../../audit/event.ts";
import { termsOf } from "../../audit/terms.ts";
import { JOURNAL_BATCH_MAX, JOURNAL_PENDING_MAX, STORE_TIMEOUT_MS } from "../../limits.ts";
import type { Clock, Journal, Random } from "../../ports.ts";
import { StoreUnavailable } from "../../ports.ts";
import type { Entry, Unmet as UnmetByFlow } from "../../records.ts";
import type { Result } from "../../result.ts";
import { err, ok } from "../../result.ts";
import { assertStorable } from "../store/encoding.ts";
import type { Changes, EventLog, Head, StoredEvent, Unmet } from "../store/store.ts";
import { LogConflict } from "../store/store.ts";

export type JournalOptions = {
  /** The name of this instance's log; one process writes it. */
  log: string;
  store: EventLog;
  clock: Clock;
  random: Pick<Random, "id">;
  /** Told once, when a second writer was met: from then on nothing is recorded. */
  onFatal: (reason: string) => void;
  timeoutMs?: number;
};

export type JournalEntry = Entry & Changes;

export interface OpenJournal extends Journal {
  record(entry: JournalEntry): Promise<Recorded>;
  /** What the host alone may change does not fail what a flow asks for. */
  record(entry: Entry): Promise<RecordedEntry>;
  /** Whether it takes entries, and how many wait to be written. */
  status(): { open: boolean; pending: number };
  /** Tells of every batch, in order, once it is known to be durable; of what landed in doubt it never tells. */
  follow(listener: (written: readonly Head[]) => void): void;
  /** Writes what is pending and takes nothing more. */
  close(): Promise<void>;
}

type RecordedEntry = Result<{ eventId: string }, readonly UnmetByFlow[]>;
type Recorded = Result<{ eventId: string }, readonly Unmet[]>;

type Waiting = {
  entry: JournalEntry;
  id: string;
  timeMs: number;
  answered: boolean;
  resolve(outcome: Recorded): void;
  reject(fault: unknown): void;
};

/** RFC9162-2.1.1-1: the leaf prefix, so that no event can pass for an inner node of a tree. */
export function eventHash(body: string): string {
  return createHash("sha256").update("\0").update(body, "utf8").digest("hex");
}

/** Continues the log from its last event, or begins it. */
export async function openJournal(options: JournalOptions): Promise<OpenJournal> {
  const { log, store, clock, random } = options;
  const found = await store.head(log);
  if (found !== undefined) return new ChainedJournal(options, found);
  const event: AuditEvent = { type: "log.genesis", outcome: "allow", reason: "log_opened" };
  const genesis = seal(log, undefined, event, random.id(), clock.nowMs());
  await store.append([{ event: genesis, terms: termsOf(event) }]);
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
  /** Undefined when it must be read again. */
  #head: Head | undefined;
  /** A write of ours may still land. */
  #inDoubt = false;
  #closed: string | undefined;
  #running: Promise<void> | undefined;
  #tell: (written: readonly Head[]) => void = () => {};

  constructor(options: JournalOptions, head: Head) {
    this.#options = options;
    this.#head = head;
  }

  record(entry: JournalEntry): Promise<Recorded>;
  record(entry: Entry): Promise<RecordedEntry>;
  async record(entry: JournalEntry): Promise<Recorded> {
    if (this.#closed !== undefined) throw new StoreUnavailable(this.#closed);
    if (this.#pending.length >= JOURNAL_PENDING_MAX) throw new StoreUnavailable("the audit journal is full");
    // RFC7523-3-14, IDC-5.5-2: one use is one use, in one request too.
    const spent = spentBy(entry);
    const again = spent.filter(({ key }, index) => spent.findIndex((one) => one.key === key) < index);
    if (again.length > 0) return err([...new Set(again.map(({ kind }) => kind))]);
    const { clock, random, timeoutMs = STORE_TIMEOUT_MS } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<Recorded>();
    const timer = setTimeout(() => {
      waiting.reject(new StoreUnavailable("the audit journal did not write in time"));
    }, timeoutMs);
    const settle = (answer: () => void) => {
      clearTimeout(timer);
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
      // Everyone who is ready in this turn of the event loop comes along.
      await new Promise((resolve) => setImmediate(resolve));
      await this.#write(this.#take());
    }
    this.#running = undefined;
  }

  /**
   * The next batch. A `jti` is spent once in it, it has one registration, and a change comes only after all who still
   * rely on what was.
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
    let left = batch;
    while (left.length > 0) {
      try {
        this.#head ??= await this.#readHead();
        left = await this.#writeOnce(left, this.#head);
      } catch (fault) {
        if (fault instanceof LogConflict && this.#inDoubt) {
          // An older write of ours has landed after all; behind it there is room.
          this.#inDoubt = false;
          this.#head = undefined;
        } else if (fault instanceof LogConflict) {
          this.#fail(left);
          return;
        } else {
          this.#inDoubt = true;
          this.#head = undefined;
          for (const waiting of left) waiting.reject(fault);
          return;
        }
      }
    }
  }

  async #readHead(): Promise<Head> {
    const head = await this.#options.store.head(this.#options.log);
    if (head === undefined) throw new StoreUnavailable("the log that we began is gone");
    return head;
  }

  /** Chains and writes them; answers those it can and returns those to be tried again without the failed ones. */
  async #writeOnce(batch: Waiting[], head: Head): Promise<Waiting[]> {
    const { log, store } = this.#options;
    const members: Waiting[] = [];
    const entries = [];
    let last = head;
    for (const waiting of batch) {
      const { entry, id, timeMs, answered } = waiting;
      // Who has been told that the outcome is unknown gets no event that says otherwise.
      if (answered) continue;
      try {
        assertStorable(entry);
        const event = seal(log, last, entry.event, id, timeMs);
        entries.push({ ...entry, event, terms: termsOf(entry.event) });
        members.push(waiting);
        last = event;
      } catch (fault) {
        waiting.reject(fault);
      }
    }
    if (entries.length === 0) return [];
    const failures = await store.append(entries);
    if (failures.length === 0) {
      this.#head = { seq: last.seq, hash: last.hash };
      this.#inDoubt = false;
      this.#tell(entries.map(({ event }) => event));
      // AUDIT-D-1: durable, so now they may go on.
      for (const { id, resolve } of members) resolve(ok({ eventId: id }));
      return [];
    }
    const failed = Map.groupBy(failures, ({ entry }) => entry);
    for (const [index, found] of failed) members[index]?.resolve(err(found.map(({ guard }) => guard)));
    return members.filter((_, index) => !failed.has(index));
  }

  /** Two writers cannot share one chain, and nobody knows which of them should go on. */
  #fail(batch: Waiting[]): void {
    const reason = `another process writes the audit log ${JSON.stringify(this.#options.log)}`;
    this.#closed = reason;
    for (const waiting of [...batch, ...this.#pending]) waiting.reject(new StoreUnavailable(reason));
    this.#pending = [];
    this.#options.onFatal(reason);
  }
}

/** Whether it changes what others rely on: nobody relies on a client that is new. */
function changes({ consent, client, registration }: JournalEntry): boolean {
  const alters = registration !== undefined && !("register" in registration);
  return alters || consent !== undefined || client !== undefined;
}

/** What only one of a batch may have. A registration relies on how many there are and on its initial token. */
function takenBy(entry: JournalEntry): readonly string[] {
  const { registration, initialToken } = entry;
  const registers = registration !== undefined || initialToken !== undefined;
  return [...spentBy(entry).map(({ key }) => key), ...(registers ? ["registration"] : [])];
}

function spentBy({ guards = [] }: JournalEntry) {
  return guards.flatMap((guard) =>
    guard.kind === "jti_fresh" || guard.kind === "grant_fresh"
      ? [{ kind: guard.kind, key: JSON.stringify([guard.issuer, guard.jti]) }]
      : [],
  );
}

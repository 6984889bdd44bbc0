/** What a batch of the journal waits for, and what its entries may not share. */
import {
  EMPTY_TURN_MS,
  JOURNAL_BATCH_MAX,
  JOURNAL_COMPANY_MS,
  JOURNAL_COMPANY_PART,
} from "../../limits/store.ts";
import type { Entry } from "../../records.ts";
import { isFreshGuard } from "../store/encoding.ts";
import type { Changes } from "../store/store.ts";

type WholeEntry = Entry & Changes;

/** Whether the entry changes a record that guards of other entries may check; a new client is not such a record. */
export function changes({ consent, client, registration, ending, lift, also, keys }: WholeEntry): boolean {
  const alters = registration !== undefined && !("register" in registration);
  return alters || [consent, client, ending, lift, also, keys].some((change) => change !== undefined);
}

/**
 * What only one entry of a batch may use: a `jti`, a family, a row that it adds, a question, the holder whose rows it
 * counts (PAGE-D-18), the user who signed in, the agent whose jobs it counts, and registrations, which count clients and
 * uses of initial tokens.
 */
export function takenBy(entry: WholeEntry): readonly string[] {
  const { registration, initialToken, family, rows, recheck, job, question } = entry;
  const taken = spentBy(entry).map(({ key }) => key);
  if (registration !== undefined || initialToken !== undefined) taken.push("registration");
  for (const change of rows ?? []) {
    if (!("add" in change)) continue;
    const { kind, key, holder } = change.add;
    taken.push(`row ${kind} ${key}`);
    if (change.most !== undefined) taken.push(`rows ${kind} ${holder}`);
  }
  if (job !== undefined) taken.push(`jobs ${job.add.actor}`);
  if (recheck !== undefined) taken.push(`recheck ${JSON.stringify(recheck.origin)}`);
  if (question !== undefined) taken.push(`question ${question.id}`);
  if (family !== undefined) taken.push(`family ${"start" in family ? family.start.id : family.use}`);
  return taken;
}

/** Lists what the guards of the entry use up, each by its kind. */
export function spentBy({ guards = [] }: WholeEntry) {
  return guards.flatMap((guard) =>
    isFreshGuard(guard) ? [{ kind: guard.kind, key: JSON.stringify([guard.issuer, guard.jti]) }] : [],
  );
}

/**
 * What a batch waits for before it is written. A commit costs more than everything else of a request, so the work of other
 * requests is done first and their entries join the batch. `waiting`: how many entries it has so far.
 */
export class Company {
  readonly #waiting: () => number;
  #expected = 0;
  #lateMs = 0;
  #joined = (): void => {};

  constructor(waiting: () => number) {
    this.#waiting = waiting;
  }

  /** Until a turn of the event loop brings no work, and as many wait as are expected. */
  async gather(): Promise<void> {
    let turnMs = performance.now();
    const latestMs = turnMs + JOURNAL_COMPANY_MS;
    for (let isEmpty = false; !isEmpty && turnMs <= latestMs; ) {
      await new Promise(setImmediate);
      const nowMs = performance.now();
      isEmpty = nowMs - turnMs < EMPTY_TURN_MS;
      turnMs = nowMs;
    }
    if (!this.#isMet()) await this.#untilMet();
  }

  /** An entry waits. */
  join(): void {
    this.#joined();
  }

  /**
   * So many were written, whose callers may come again, beside those that wait already. The next commit waits for as many,
   * because one of PostgreSQL takes hardly longer for many than for one; not where one caller is alone. `tookMs` is 0 for a
   * commit that held the event loop, during which no caller could come.
   */
  expect(written: number, tookMs: number): void {
    this.#expected = Math.min(written + this.#waiting(), JOURNAL_BATCH_MAX);
    this.#lateMs = Math.min(JOURNAL_COMPANY_PART * tookMs, JOURNAL_COMPANY_MS);
  }

  #isMet(): boolean {
    return this.#lateMs === 0 || this.#waiting() >= this.#expected;
  }

  /** At most for a part of the time of the commit before. */
  #untilMet(): Promise<void> {
    return new Promise((resolve) => {
      const late = setTimeout(resolve, this.#lateMs);
      const joined = (): void => {
        if (!this.#isMet()) return;
        clearTimeout(late);
        resolve();
      };
      this.#joined = joined;
    });
  }
}

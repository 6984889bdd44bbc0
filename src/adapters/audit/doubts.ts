/** Writes of the journal of which no answer came: they may have reached the store, or still will. */
import { JOURNAL_DOUBTED_MAX } from "../../limits/store.ts";
import { StoreUnavailable } from "../../ports.ts";
import { ok, type Result } from "../../result.ts";
import type { StoredEvent } from "../store/store.ts";

/** A caller that still waits for its entry. */
type Member = {
  readonly id: string;
  resolve(outcome: Result<{ eventId: string }, never>): void;
  reject(fault: unknown): void;
};

export class Doubts {
  /** Each by the hash of its last event, the oldest first; behind `before` it takes the same place as others there. */
  readonly #writes = new Map<string, { end: StoredEvent; before: string; members: readonly Member[] }>();

  get size(): number {
    return this.#writes.size;
  }

  add(end: StoredEvent, before: string, members: readonly Member[]): void {
    const [oldest] = this.#writes;
    if (oldest !== undefined && this.#writes.size === JOURNAL_DOUBTED_MAX) {
      this.#writes.delete(oldest[0]);
      for (const { reject } of oldest[1].members)
        reject(new StoreUnavailable("too many writes are in doubt"));
    }
    this.#writes.set(end.hash, { end, before, members });
  }

  /** The end of the write that has arrived, if this is one. */
  find(hash: string | undefined): StoredEvent | undefined {
    return this.#writes.get(hash ?? "")?.end;
  }

  /**
   * STORE-D-21: a write behind the record with this hash is durable, and so is all before it. It is certain that none of the
   * others is in the store or will ever be, so that their callers may begin anew.
   */
  settle(behind: string): void {
    const arrived = new Set<string>();
    for (let hash = behind, one = this.#writes.get(hash); one !== undefined; one = this.#writes.get(hash)) {
      arrived.add(hash);
      hash = one.before;
    }
    for (const [hash, { members }] of this.#writes)
      for (const { id, resolve, reject } of members) {
        if (arrived.has(hash)) resolve(ok({ eventId: id }));
        else reject(Object.assign(new StoreUnavailable("the write did not arrive"), { noWriter: true }));
      }
    this.#writes.clear();
  }

  fail(fault: StoreUnavailable): void {
    for (const { members } of this.#writes.values()) for (const { reject } of members) reject(fault);
    this.#writes.clear();
  }
}

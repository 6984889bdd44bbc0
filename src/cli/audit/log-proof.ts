/** The proof of one log of an export: its chain and its tree, compared with the checkpoints that cover it (RFC 9162 2.1). */
import { sha256 } from "../../adapters/audit/tree-hashes.ts";
import type { Checkpoint, LogHead } from "../../audit/checkpoint.ts";
import { GENESIS_PREV } from "../../audit/event.ts";
import { appendLeaf, EMPTY_TREE, rootOf, type Tree } from "../../audit/tree.ts";

export type Source = "checkpoint" | "witness";
/** What a checkpoint asserts of a log: its size and the hash of its last record. `by` names the checkpoint in messages. */
export type Assertion = {
  source: Source;
  by: string;
  head: LogHead;
  /** When the checkpoint was made. */
  timeMs: number;
  checkpoint?: Checkpoint;
};
export type Assertions = ReadonlyMap<string, readonly Assertion[]>;

export type LogRecord = {
  seq: number;
  prev: string;
  hash: string;
  genesis: boolean;
  ended: boolean;
  timeMs: number;
  /** The first sequence number that retention kept of each log, if the record is of type log.pruned. */
  below: readonly (readonly [log: string, seq: number])[];
  /** The digest of the policy that decided, if one did. */
  policy?: string;
  /** The number of records of each log, if the record is that of an export. */
  exported?: ReadonlyMap<string, number>;
};

/** When an export was made, and how many records of the log were there. */
export type Moment = { timeMs: number; size: number };

/** Verifies one log. Records are taken in any order and checked in the order of their sequence numbers. */
export class LogProof {
  readonly #assertions: readonly Assertion[];
  readonly #bySize: ReadonlyMap<number, readonly Assertion[]>;
  readonly #waiting = new Map<number, LogRecord>();
  #tree: Tree = EMPTY_TREE;
  #last: LogRecord | undefined;
  /** The record whose hash the next one does not contain; one of the two was changed. */
  #suspect: LogRecord | undefined;
  #rooted = true;
  /** The first sequence number: above 0 after retention. */
  start = 0;
  /** The number of records that a checkpoint covers. */
  proven = 0;
  /** The number of records that a checkpoint in the witness covers. */
  witnessed = 0;
  failure: string | undefined;
  /** Why nothing can be said, where what is missing may have been written after the export. */
  undecided: string | undefined;

  constructor(assertions: readonly Assertion[]) {
    this.#assertions = assertions;
    this.#bySize = Map.groupBy(assertions, ({ head }) => head.size);
  }

  /** Whether the log was retired, so that nothing may follow its last record. */
  get ended(): boolean {
    return this.#last?.ended ?? false;
  }

  get size(): number {
    return this.#tree.size;
  }

  take(record: LogRecord): void {
    if (this.failure !== undefined) return;
    const { seq } = record;
    if (this.#waiting.has(seq) || seq < this.size) {
      this.#fail(`record ${seq} occurs twice: the log is forked`);
      return;
    }
    this.#waiting.set(seq, record);
    this.#drain();
  }

  /** Without spreading the keys, of which there may be more than a call takes arguments. */
  get #firstWaiting(): number {
    return this.#waiting.keys().reduce((least, seq) => Math.min(least, seq), Number.MAX_SAFE_INTEGER);
  }

  /** Appends waiting records for as long as the next sequence number is among them. */
  #drain(): void {
    for (let next = this.#waiting.get(this.size); next !== undefined; next = this.#waiting.get(this.size)) {
      this.#waiting.delete(this.size);
      this.#append(next);
    }
  }

  /** Begins at record `seq`, which must be the last record of a checkpoint: retention removes only what is before it. */
  #restart(seq: number): undefined {
    for (const older of this.#waiting.keys()) if (older < seq) this.#waiting.delete(older);
    const record = this.#waiting.get(seq);
    const anchors = (this.#bySize.get(seq + 1) ?? []).filter(({ head }) => head.hash === record?.hash);
    if (record === undefined || anchors.length === 0) {
      return this.#fail(`no checkpoint ends at record ${seq}, where the log begins`);
    }
    this.#waiting.delete(seq);
    this.start = seq;
    this.#last = record;
    // A log without checkpoints of its own has no peaks to continue the tree from, so only hashes are compared.
    const peaks = anchors.find(({ checkpoint }) => checkpoint !== undefined)?.checkpoint?.tree.peaks;
    this.#rooted = peaks !== undefined;
    this.#tree = { size: seq + 1, peaks: peaks ?? [] };
    this.#compare();
    this.#drain();
  }

  #append(record: LogRecord): undefined {
    const { seq, prev, hash, genesis } = record;
    if (genesis !== (seq === 0))
      return this.#fail(`record ${seq} ${genesis ? "is a second log.genesis" : "is not log.genesis"}`);
    // AUDIT-D-12: nothing may follow the last record of a retired log.
    if (this.ended) return this.#fail(`record ${seq} follows the end of the log, which was retired`);
    const wrong = prev !== (this.#last?.hash ?? GENESIS_PREV);
    if (this.#suspect !== undefined) {
      // If this record contains the hash of the one before it, that one is intact and the suspect was changed.
      const bad = wrong ? this.#last : this.#suspect;
      return this.#fail(`record ${bad?.seq} was changed`);
    }
    if (wrong && this.#last === undefined) {
      return this.#fail(`record ${seq} contains the hash of a record before it`);
    }
    if (wrong) this.#suspect = this.#last;
    this.#last = record;
    this.#tree = this.#rooted
      ? appendLeaf(this.#tree, Uint8Array.fromHex(hash), sha256)
      : { size: seq + 1, peaks: [] };
    if (this.#suspect === undefined) this.#compare();
  }

  /** Compares hash and root with every checkpoint that covers exactly the records so far. */
  #compare(): undefined {
    for (const { source, by, head, checkpoint } of this.#bySize.get(this.size) ?? []) {
      const root = checkpoint && this.#rooted ? rootOf(this.#tree, sha256).toHex() : undefined;
      if (
        head.hash !== this.#last?.hash ||
        (checkpoint !== undefined && root !== undefined && root !== checkpoint.root)
      ) {
        const from = Math.max(this.proven, this.start);
        const where =
          from === this.size - 1
            ? `record ${from} was changed`
            : `a record from ${from} to ${this.size - 1} was changed`;
        return this.#fail(`${where} and the chain recomputed or forked: ${by} differs`);
      }
      this.proven = Math.max(this.proven, this.size);
      if (source === "witness") this.witnessed = Math.max(this.witnessed, this.size);
    }
  }

  #fail(message: string): undefined {
    this.failure ??= message;
  }

  /**
   * Called after the last record; `below` is the first sequence number that retention kept, by the log's own events. A
   * part of a log begins at a checkpoint, and what is behind it is not looked for. What a checkpoint covers that is younger
   * than the `moment` of the export is no sign of a change (AUDIT-D-15).
   */
  end(below: number, isPart = false, moment?: Moment): undefined {
    const begin = isPart && this.size === 0 ? this.#firstWaiting : below;
    if (this.failure === undefined && this.#waiting.size > 0 && this.size < begin) this.#restart(begin);
    if (this.failure !== undefined) return;
    if (this.#suspect !== undefined) return this.#fail(`record ${this.#suspect.seq} was changed`);
    if (this.#waiting.size > 0) {
      const [missing, last] = [this.size, this.#firstWaiting - 1];
      const what = missing === last ? `record ${missing} is` : `records ${missing} to ${last} are`;
      return this.#fail(`${what} missing`);
    }
    if (isPart) return;
    if (moment !== undefined && moment.size > this.size) {
      return this.#fail(`record ${this.size} is missing: the export was made of ${moment.size} records`);
    }
    const further = this.#assertions.filter(({ head }) => head.size > this.size);
    const older = moment === undefined ? further : further.filter(({ timeMs }) => timeMs <= moment.timeMs);
    const longest = older.toSorted((a, b) => b.head.size - a.head.size)[0];
    if (longest !== undefined) {
      const { by, head } = longest;
      this.#fail(
        this.size === 0
          ? `the whole log is missing: ${by} covers ${head.size} records`
          : `record ${this.size} is missing: the log was truncated, or the export is older than ${by}, which covers ${head.size} records`,
      );
    } else if (further[0] !== undefined) {
      this.undecided = `${further[0].by} is younger than the export, which ends before it`;
    }
  }
}

/**
 * Signed checkpoints of one log (clauses AUDIT-D), after RFC 9162 2.1: the Merkle tree grows with every record; after a
 * number of records or seconds its root is signed, recorded, stored and sent to the witness. A log that does not match
 * its last checkpoint gets no further one.
 */
import { setImmediate as turn } from "node:timers/promises";
import {
  buildCheckpoint,
  CHECKPOINT_ALGORITHM,
  CHECKPOINT_JWT,
  type Checkpoint,
  type LogHead,
  readCheckpoint,
} from "../../audit/checkpoint.ts";
import type { AuditEvent } from "../../audit/event.ts";
import { KEY_ID_BYTES, keyIdInput, noteText, originOf, signatureOf } from "../../audit/note.ts";
import { appendLeaf, EMPTY_TREE, rootOf, type Tree } from "../../audit/tree.ts";
import { CHECKPOINT_HEADS_MAX } from "../../limits/audit.ts";
import type { Clock, Signer, SigningKey, Timers, Verifier } from "../../ports.ts";
import type { CheckpointRow } from "../../records.ts";
import { defined } from "../../result.ts";
import { parseJws } from "../../spec/rfc7515.ts";
import type { Jwk } from "../../spec/rfc7517.ts";
import type { Head, Store } from "../store/store.ts";
import { checkRecord } from "./chain.ts";
import type { OpenJournal } from "./journal.ts";
import { sha256, TreeHashes } from "./tree-hashes.ts";
import type { Witness } from "./witness.ts";

/** NOTE-sig-2: the id by which a verifier knows a key of ours under the name of a log. */
export const keyIdOf = (origin: string, key: Jwk | undefined): Uint8Array =>
  sha256(keyIdInput(origin, rawKeyOf(key))).subarray(0, KEY_ID_BYTES);

export function rawKeyOf(key: Jwk | undefined): Uint8Array {
  if (key?.kty !== "OKP") throw new Error("a checkpoint is signed with a key of Ed25519");
  return Uint8Array.fromBase64(key.x, { alphabet: "base64url" });
}

export type CheckpointOptions = {
  log: string;
  issuer: string;
  store: Pick<Store, "log" | "audit">;
  journal: OpenJournal;
  /** The keys of this server, among them those for checkpoints. */
  signer: Signer;
  verifier: Verifier;
  clock: Clock;
  timers: Timers;
  every: { events: number; seconds: number };
  witness?: Witness;
  /** Called with a text that the operator should read at once. */
  onFault: (text: string) => void;
  /** Called when the witness accepts checkpoints for the first time, and whenever it fails or works again. */
  onWitness: (works: boolean, text: string) => void;
};

/**
 * `ageSeconds` is the time since the witness accepted a checkpoint; absent if it has accepted none from this process.
 */
type WitnessState = { works: boolean; ageSeconds?: number };

/** Reads a stored checkpoint, if its signature is ours; write access to the store is not enough to forge one. */
export async function readOwnCheckpoint(
  row: CheckpointRow,
  signer: Pick<Signer, "own">,
  verifier: Verifier,
): Promise<Checkpoint | undefined> {
  const jws = parseJws(row.jws);
  const key = jws.ok ? signer.own(jws.value.header) : undefined;
  if (!jws.ok || key === undefined || !(await verifier.verify(jws.value, key))) return undefined;
  const checkpoint = readCheckpoint(jws.value);
  const fits = checkpoint.ok && checkpoint.value.log === row.log;
  return fits && checkpoint.value.tree.size === row.treeSize ? checkpoint.value : undefined;
}

/** The records that are read and hashed at once; other work comes between two pages. */
const PAGE = 100;
/** The records of another log that are read to find out whether there is anything but checkpoints. */
const LOOK = 10;

/** The log does not match its last checkpoint, so no further one is signed. */
class LogBroken extends Error {
  override name = "LogBroken";
  readonly seq: number;
  readonly reason: string;

  constructor(seq: number, reason: string) {
    super(`record ${seq}: ${reason}`);
    this.seq = seq;
    this.reason = reason;
  }
}

/** The last checkpoint, until the witness has accepted it. */
class Delivery {
  readonly #options: CheckpointOptions;
  #undelivered: string | undefined;
  /** Whether the last delivery was accepted; undefined before the first one. */
  #works: boolean | undefined;
  #acceptedAtMs: number | undefined;

  constructor(options: CheckpointOptions) {
    this.#options = options;
  }

  /** The checkpoint replaces an earlier one that waits, because the last checkpoint covers all of them. */
  offer(jws: string): void {
    this.#undelivered = jws;
  }

  state(): WitnessState | undefined {
    const { witness, clock } = this.#options;
    if (witness === undefined) return undefined;
    const acceptedAtMs = this.#acceptedAtMs;
    const ageSeconds =
      acceptedAtMs === undefined ? undefined : Math.floor((clock.monotonicMs() - acceptedAtMs) / 1000);
    return defined<WitnessState>({ works: this.#works !== false, ageSeconds });
  }

  /** The answer is false where this attempt is the first that failed at the witness. */
  async attempt(): Promise<boolean> {
    const { witness, clock, onWitness } = this.#options;
    const jws = this.#undelivered;
    if (witness === undefined || jws === undefined) return true;
    try {
      await witness.deliver(jws);
      this.#undelivered = undefined;
      this.#acceptedAtMs = clock.monotonicMs();
      if (this.#works !== true) onWitness(true, "the witness accepts checkpoints");
      this.#works = true;
      return true;
    } catch (fault) {
      if (this.#works === false) return true;
      this.#works = false;
      const reason = fault instanceof Error ? fault.message : "no reason given";
      onWitness(false, `the witness does not accept checkpoints: ${reason}`);
      return false;
    }
  }
}

/** Compares the log with its last checkpoint, then signs further ones as `every` says, until it is closed. */
export function startCheckpoints(options: CheckpointOptions): Checkpoints {
  return new Checkpoints(options);
}

export type { Checkpoints };

class Checkpoints {
  readonly #options: CheckpointOptions;
  readonly #delivery: Delivery;
  #tree: Tree = EMPTY_TREE;
  #head: Head | undefined;
  /** The size of the last stored checkpoint, and the state of the other logs in it (`#seen`). */
  #covered = 0;
  /** The size of the last checkpoint that this process signed, whether or not it is stored yet. */
  #signed = 0;
  #seen: ReadonlyMap<string, LogHead> = new Map();
  #broken = false;
  #recovered = false;
  #closing = false;
  #queue: Promise<void>;
  #queued = false;
  readonly #cancel: () => void;

  constructor(options: CheckpointOptions) {
    this.#options = options;
    this.#delivery = new Delivery(options);
    options.journal.follow((written) => this.#follow(written));
    // The log is compared at the start, not only when the first checkpoint is due.
    this.#queue = this.#attempt(() => this.#look());
    this.#cancel = options.timers.every(options.every.seconds * 1000, () => this.write());
  }

  /** Undefined if there is no witness. */
  witness(): WitnessState | undefined {
    return this.#delivery.state();
  }

  /**
   * Writes a checkpoint now, if there are new records. One is written at a time; calls while another one waits share
   * it.
   */
  write(): Promise<void> {
    if (!this.#queued) {
      this.#queued = true;
      this.#queue = this.#queue.then(() => {
        this.#queued = false;
        return this.#attempt(() => this.#write());
      });
    }
    return this.#queue;
  }

  /** Writes the last checkpoint of this process. */
  async close(): Promise<void> {
    this.#cancel();
    this.#closing = true;
    await this.write();
    await this.#options.witness?.close();
  }

  #follow(written: readonly Head[]): void {
    for (const one of written) if (one.seq === this.#tree.size && this.#recovered) this.#grow(one);
    // Events that are recorded beside the last checkpoint ask for no other one, which would be written after the
    // witness is closed.
    if (!this.#recovered || this.#broken || this.#closing) return;
    const { events } = this.#options.every;
    if (this.#tree.size - Math.max(this.#covered, this.#signed) >= events) void this.write();
  }

  #grow({ seq, hash }: Head): void {
    this.#tree = appendLeaf(this.#tree, Uint8Array.fromHex(hash), sha256);
    this.#head = { seq, hash };
  }

  async #attempt(work: () => Promise<void>): Promise<void> {
    const { log, onFault } = this.#options;
    try {
      if (!this.#broken) await work();
    } catch (fault) {
      if (fault instanceof LogBroken) {
        this.#broken = true;
        onFault(
          `the audit log ${JSON.stringify(log)} was altered and gets no more checkpoints: ${fault.message}`,
        );
        const detail = { seq: fault.seq, problem: fault.reason };
        await this.#record({
          type: "log.verification_failed",
          outcome: "error",
          reason: "chain_broken",
          detail,
        });
      } else {
        onFault(`no checkpoint was signed: ${fault instanceof Error ? fault.message : "no reason given"}`);
      }
    }
    if (await this.#delivery.attempt()) return;
    await this.#record({ type: "log.checkpoint", outcome: "error", reason: "witness_failed" });
  }

  async #record(event: AuditEvent): Promise<void> {
    await this.#options.journal.record({ event }).catch(() => undefined);
  }

  /** Brings the tree up to date, after comparing the log with its last checkpoint. */
  async #look(): Promise<void> {
    if (!this.#recovered) await this.#recover();
    await this.#catchUp();
  }

  /** Restores the tree from the last checkpoint, or starts with an empty one. */
  async #recover(): Promise<void> {
    const { log, store, signer, verifier } = this.#options;
    const row = await store.audit.checkpoint(log, Number.MAX_SAFE_INTEGER);
    if (row === undefined) {
      this.#recovered = true;
      return;
    }
    const last = await readOwnCheckpoint(row, signer, verifier);
    if (last === undefined)
      throw new LogBroken(row.treeSize - 1, "its checkpoint was not signed by this server");
    const at = await store.log.head(log);
    if (at === undefined || at.seq < last.tree.size - 1) {
      throw new LogBroken((at?.seq ?? -1) + 1, "it is missing, although a checkpoint covers it");
    }
    this.#tree = last.tree;
    this.#head = { seq: last.tree.size - 1, hash: last.hash };
    this.#covered = last.tree.size;
    this.#seen = last.heads;
    // The process may have ended before the witness had this checkpoint; sending it twice does no harm.
    this.#delivery.offer(row.jws);
    this.#recovered = true;
  }

  /** Reads records that the journal did not report: those of an earlier process, and those written after a timeout. */
  async #catchUp(): Promise<void> {
    const { log, store } = this.#options;
    for (;;) {
      const page = await store.log.read({ log, afterSeq: this.#tree.size - 1, limit: PAGE });
      if (page.length === 0) return;
      for (const event of page) {
        // The journal reported this record while the page was being read.
        if (event.seq < this.#tree.size) continue;
        const checked = checkRecord(this.#head, event);
        if (!checked.ok) throw new LogBroken(checked.error.seq, checked.error.kind);
        this.#grow(checked.value);
      }
      await turn();
    }
  }

  /**
   * Whether any log has new records besides checkpoints; checkpoints alone would make two idle instances sign forever.
   */
  async #hasMoved(heads: readonly (Head & { log: string })[]): Promise<boolean> {
    const { log, store } = this.#options;
    // If there is one record after the last checkpoint, it is the event of that checkpoint.
    if (this.#tree.size > this.#covered + 1 || this.#covered === 0) return true;
    for (const other of heads) {
      const known = (this.#seen.get(other.log)?.size ?? 0) - 1;
      if (other.log === log || other.seq <= known) continue;
      const since = await store.log.read({ log: other.log, afterSeq: known, limit: LOOK });
      if (since.length === LOOK || since.some(({ type }) => type !== "log.checkpoint")) return true;
    }
    return false;
  }

  async #write(): Promise<void> {
    const { log, issuer, store, journal, signer, clock } = this.#options;
    await this.#look();
    const heads = await store.audit.heads();
    if (this.#head === undefined || !(await this.#hasMoved(heads))) return;
    const seen = this.#seen;
    const others = heads
      // AUDIT-D-12: a log that has ended is named once more, and then takes no place from others.
      .filter((one) => one.log !== log && !(one.ended && isKnown(seen, one)))
      // Changed logs come first, because a checkpoint names a limited number.
      .sort((a, b) => Number(isKnown(seen, a)) - Number(isKnown(seen, b)))
      .slice(0, CHECKPOINT_HEADS_MAX);
    const timeMs = clock.nowMs();
    const checkpoint: Checkpoint = {
      issuer,
      log,
      root: rootOf(this.#tree, sha256).toHex(),
      tree: this.#tree,
      hash: this.#head.hash,
      timeMs,
      heads: new Map(others.map(({ log: name, seq, hash }) => [name, { size: seq + 1, hash }])),
    };
    const key = await signer.current(CHECKPOINT_ALGORITHM);
    const note = await this.#signNote(key, checkpoint);
    const claims = buildCheckpoint({ ...checkpoint, note });
    const jws = await signer.sign(key, CHECKPOINT_JWT, JSON.stringify(claims));
    const treeSize = checkpoint.tree.size;
    this.#signed = treeSize;
    await journal.record({
      event: {
        type: "log.checkpoint",
        outcome: "allow",
        reason: "signed",
        detail: { tree_size: treeSize, root: checkpoint.root, kid: key.kid },
      },
      checkpoint: { log, treeSize, timeMs, jws },
    });
    this.#covered = treeSize;
    this.#seen = new Map([...seen, ...checkpoint.heads]);
    this.#delivery.offer(jws);
    await new TreeHashes(store.audit, log).keep(treeSize);
  }

  /** RCPT-D-2, RCPT-D-9: both forms are of one tree, and are written as one; a JWS is one line, and a note is not. */
  async #signNote(key: SigningKey, { issuer, log, tree, root }: Checkpoint): Promise<string> {
    const { signer } = this.#options;
    const origin = originOf(issuer, log);
    const text = noteText(origin, tree.size, Uint8Array.fromHex(root));
    return signatureOf(
      keyIdOf(origin, signer.own({ ...key, members: {} })),
      await signer.signText(key, text),
    );
  }
}

const isKnown = (seen: ReadonlyMap<string, LogHead>, { log, seq }: Head & { log: string }): boolean =>
  seen.get(log)?.size === seq + 1;

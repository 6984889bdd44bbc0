/**
 * Signed checkpoints of one log (clauses AUDIT-D), after RFC 9162 2.1: the Merkle tree grows with every record; after a
 * number of records or seconds its root is signed, recorded, stored and sent to the witness. A log that does not match
 * its last checkpoint gets no further one.
 */
import { createHash } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import type { Checkpoint, LogHead } from "../../audit/checkpoint.ts";
import {
  buildCheckpoint,
  CHECKPOINT_ALGORITHM,
  CHECKPOINT_JWT,
  readCheckpoint,
} from "../../audit/checkpoint.ts";
import type { AuditEvent } from "../../audit/event.ts";
import type { Sha256, Tree } from "../../audit/tree.ts";
import { appendLeaf, EMPTY_TREE, rootOf } from "../../audit/tree.ts";
import { CHECKPOINT_HEADS_MAX } from "../../limits.ts";
import type { Clock, Signer, Timers, Verifier } from "../../ports.ts";
import type { CheckpointRow } from "../../records.ts";
import { defined } from "../../result.ts";
import { parseJws } from "../../spec/rfc7515.ts";
import type { Head, Store } from "../store/store.ts";
import { checkRecord } from "./chain.ts";
import type { OpenJournal } from "./journal.ts";
import type { Witness } from "./witness.ts";

export const sha256: Sha256 = (data) => createHash("sha256").update(data).digest();

export type CheckpointOptions = {
  log: string;
  issuer: string;
  store: Pick<Store, "log" | "audit">;
  journal: OpenJournal;
  /** With the keys for checkpoints. */
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

/** `ageSeconds`: since the witness accepted a checkpoint; absent if it has accepted none from this process. */
export type WitnessState = { works: boolean; ageSeconds?: number };

export type Checkpoints = {
  /** Undefined without a witness. */
  witness(): WitnessState | undefined;
  /** Writes a checkpoint now, if there are new records. */
  write(): Promise<void>;
  /** Writes the last checkpoint of this process. */
  close(): Promise<void>;
};

/**
 * A stored checkpoint with a valid signature of ours, else undefined: write access to the store is not enough to forge
 * one.
 */
export async function readOwnCheckpoint(
  row: CheckpointRow,
  signer: Signer,
  verifier: Verifier,
): Promise<Checkpoint | undefined> {
  const jws = parseJws(row.jws);
  const key = jws.ok ? signer.own(jws.value.header) : undefined;
  if (!jws.ok || key === undefined || !(await verifier.verify(jws.value, key))) return undefined;
  const checkpoint = readCheckpoint(jws.value);
  const fits = checkpoint.ok && checkpoint.value.log === row.log;
  return fits && checkpoint.value.tree.size === row.treeSize ? checkpoint.value : undefined;
}

/** Records that are read and hashed at once: other work comes between two pages. */
const PAGE = 100;
/** Records of another log that are read to find out whether there is anything but checkpoints. */
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

/** Compares the log with its last checkpoint, then signs further ones as `every` says, until it is closed. */
export function startCheckpoints(options: CheckpointOptions): Checkpoints {
  const { log, issuer, store, journal, signer, verifier, clock, timers, every, witness, onFault, onWitness } =
    options;
  let tree: Tree = EMPTY_TREE;
  let head: Head | undefined;
  /** The size of the last stored checkpoint, and the state of the other logs in it (`seen`). */
  let covered = 0;
  /** The size of the last checkpoint that this process signed, whether or not it is stored yet. */
  let signed = 0;
  let seen: ReadonlyMap<string, LogHead> = new Map();
  /** The last checkpoint, until the witness has accepted it. */
  let undelivered: string | undefined;
  /** Whether the last delivery was accepted; undefined before the first one. */
  let witnessWorks: boolean | undefined;
  let acceptedAtMs: number | undefined;
  let broken = false;
  let recovered = false;
  let closing = false;
  let queue: Promise<void>;
  let queued = false;

  const grow = ({ seq, hash }: Head): void => {
    tree = appendLeaf(tree, Uint8Array.fromHex(hash), sha256);
    head = { seq, hash };
  };

  /** Restores the tree from the last checkpoint, or starts with an empty one. */
  const recover = async (): Promise<void> => {
    const row = await store.audit.checkpoint(log, Number.MAX_SAFE_INTEGER);
    if (row === undefined) {
      recovered = true;
      return;
    }
    const last = await readOwnCheckpoint(row, signer, verifier);
    if (last === undefined)
      throw new LogBroken(row.treeSize - 1, "its checkpoint was not signed by this server");
    const at = await store.log.head(log);
    if (at === undefined || at.seq < last.tree.size - 1) {
      throw new LogBroken((at?.seq ?? -1) + 1, "it is missing, although a checkpoint covers it");
    }
    tree = last.tree;
    head = { seq: last.tree.size - 1, hash: last.hash };
    covered = last.tree.size;
    seen = last.heads;
    // The process may have ended before the witness had it; sending it twice does no harm.
    undelivered = row.jws;
    recovered = true;
  };

  /** Reads records that the journal did not report: those of an earlier process, and those written after a timeout. */
  const catchUp = async (): Promise<void> => {
    for (;;) {
      const page = await store.log.read({ log, afterSeq: tree.size - 1, limit: PAGE });
      if (page.length === 0) return;
      for (const event of page) {
        // The journal reported it while the page was being read.
        if (event.seq < tree.size) continue;
        const checked = checkRecord(head, event);
        if (!checked.ok) throw new LogBroken(checked.error.seq, checked.error.kind);
        grow(checked.value);
      }
      await turn();
    }
  };

  /** Whether any log has new records besides checkpoints, which alone would make two idle instances sign forever. */
  const hasMoved = async (heads: readonly (Head & { log: string })[]): Promise<boolean> => {
    // The one record after the last checkpoint is the event of that checkpoint.
    if (tree.size > covered + 1 || covered === 0) return true;
    for (const other of heads) {
      const known = (seen.get(other.log)?.size ?? 0) - 1;
      if (other.log === log || other.seq <= known) continue;
      const since = await store.log.read({ log: other.log, afterSeq: known, limit: LOOK });
      if (since.length === LOOK || since.some(({ type }) => type !== "log.checkpoint")) return true;
    }
    return false;
  };

  const recordEvent = async (event: Omit<AuditEvent, "type">, type: AuditEvent["type"]): Promise<void> => {
    await journal.record({ event: { ...event, type } }).catch(() => undefined);
  };

  /** Brings the tree up to date, after comparing the log with its last checkpoint. */
  const look = async (): Promise<void> => {
    if (!recovered) await recover();
    await catchUp();
  };

  const write = async (): Promise<void> => {
    await look();
    const heads = await store.audit.heads();
    if (head === undefined || !(await hasMoved(heads))) return;
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
      root: rootOf(tree, sha256).toHex(),
      tree,
      hash: head.hash,
      timeMs,
      heads: new Map(others.map(({ log: name, seq, hash }) => [name, { size: seq + 1, hash }])),
    };
    const key = await signer.current(CHECKPOINT_ALGORITHM);
    const jws = await signer.sign(key, CHECKPOINT_JWT, buildCheckpoint(checkpoint));
    const treeSize = checkpoint.tree.size;
    signed = treeSize;
    await journal.record({
      event: {
        type: "log.checkpoint",
        outcome: "allow",
        reason: "signed",
        detail: { tree_size: treeSize, root: checkpoint.root, kid: key.kid },
      },
      checkpoint: { log, treeSize, timeMs, jws },
    });
    covered = treeSize;
    seen = new Map([...seen, ...checkpoint.heads]);
    undelivered = jws;
  };

  /** Sends the last checkpoint only, because it covers all earlier ones. */
  const deliver = async (): Promise<void> => {
    const jws = undelivered;
    if (witness === undefined || jws === undefined) return;
    try {
      await witness.deliver(jws);
      undelivered = undefined;
      acceptedAtMs = clock.monotonicMs();
      if (witnessWorks !== true) onWitness(true, "the witness accepts checkpoints");
      witnessWorks = true;
    } catch (fault) {
      if (witnessWorks === false) return;
      witnessWorks = false;
      const reason = fault instanceof Error ? fault.message : "no reason given";
      onWitness(false, `the witness does not accept checkpoints: ${reason}`);
      await recordEvent({ outcome: "error", reason: "witness_failed" }, "log.checkpoint");
    }
  };

  const attempt = async (work: () => Promise<void>): Promise<void> => {
    try {
      if (!broken) await work();
    } catch (fault) {
      if (fault instanceof LogBroken) {
        broken = true;
        onFault(
          `the audit log ${JSON.stringify(log)} was altered and gets no more checkpoints: ${fault.message}`,
        );
        const detail = { seq: fault.seq, problem: fault.reason };
        await recordEvent({ outcome: "error", reason: "chain_broken", detail }, "log.verification_failed");
      } else {
        onFault(`no checkpoint was signed: ${fault instanceof Error ? fault.message : "no reason given"}`);
      }
    }
    await deliver();
  };

  /** Runs one attempt at a time; a call while another one is waiting shares it. */
  const enqueue = (): Promise<void> => {
    if (!queued) {
      queued = true;
      queue = queue.then(() => {
        queued = false;
        return attempt(write);
      });
    }
    return queue;
  };

  journal.follow((written) => {
    for (const one of written) if (one.seq === tree.size && recovered) grow(one);
    // What is recorded beside the last checkpoint asks for no other: it would be written after the witness is closed.
    if (recovered && !broken && !closing && tree.size - Math.max(covered, signed) >= every.events)
      void enqueue();
  });
  // The log is compared at the start, not only when the first checkpoint is due.
  queue = attempt(look);
  const cancel = timers.every(every.seconds * 1000, enqueue);

  return {
    witness() {
      if (witness === undefined) return undefined;
      const ageSeconds =
        acceptedAtMs === undefined ? undefined : Math.floor((clock.monotonicMs() - acceptedAtMs) / 1000);
      return defined<WitnessState>({ works: witnessWorks !== false, ageSeconds });
    },
    write: enqueue,
    async close() {
      cancel();
      closing = true;
      await enqueue();
      await witness?.close();
    },
  };
}

const isKnown = (seen: ReadonlyMap<string, LogHead>, { log, seq }: Head & { log: string }): boolean =>
  seen.get(log)?.size === seq + 1;

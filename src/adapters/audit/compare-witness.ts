/**
 * Compares the store with what is known of its logs (AUDIT-D-10): a store that was restored from a backup, that was lost
 * and made anew, or whose lagging replica was promoted, has forgotten spent assertions, withdrawn consents, removed
 * clients and endings of tokens.
 */
import { type Checkpoint, type LogHead, readCheckpoint } from "../../audit/checkpoint.ts";
import { LOG_END } from "../../audit/event.ts";
import type { Signer, Verifier } from "../../ports.ts";
import { defined } from "../../result.ts";
import { parseJws } from "../../spec/rfc7515.ts";
import type { EventLog, Head, Store } from "../store/store.ts";
import type { Witness } from "./witness.ts";

export type WitnessComparison = {
  witness: Pick<Witness, "latest">;
  /** What this instance wrote last, if that is kept. */
  lastWritten: KnownHead | undefined;
  issuer: string;
  store: Pick<Store, "log">;
  /** The keys of this server, among them those for checkpoints. */
  signer: Signer;
  verifier: Verifier;
};

/**
 * A log of which the store has fewer records than are known, or (`forked`) other ones. `knownMs` is when the log had as
 * many as are known; `storedMs` is when the last record was made that the store still has.
 */
export type LogBehind = {
  log: string;
  known: number;
  stored: number;
  forked: boolean;
  knownMs: number;
  storedMs?: number;
};

/** The last record of a log that is known from outside of the store. */
export type KnownHead = Head & { log: string; timeMs: number };

/** The logs that are behind, in the order in which the witness names them. */
export async function compareWithWitness(options: WitnessComparison): Promise<readonly LogBehind[]> {
  const { witness, lastWritten, store } = options;
  const known = new Map<string, KnownHead>();
  const note = (log: string, { size, hash }: LogHead, timeMs: number): void => {
    known.set(log, { log, seq: size - 1, hash, timeMs });
  };
  // Later checkpoints come later, so the last word about each log counts.
  for (const jws of (await witness.latest?.()) ?? []) {
    const checkpoint = await readWitnessed(options, jws);
    if (checkpoint === undefined) continue;
    const { log, tree, hash, timeMs } = checkpoint;
    for (const [other, head] of checkpoint.heads) note(other, head, timeMs);
    note(log, { size: tree.size, hash }, timeMs);
  }
  // The last written record is newer than any checkpoint of its log.
  const checked = lastWritten && known.get(lastWritten.log);
  if (lastWritten !== undefined && lastWritten.timeMs >= (checked?.timeMs ?? 0)) {
    known.set(lastWritten.log, lastWritten);
  }
  const found = await Promise.all([...known.values()].map((head) => compareLog(store.log, head)));
  return found.filter((one) => one !== undefined);
}

/** A checkpoint by a key that the store does not have counts too, because a lost store has lost its keys. */
async function readWitnessed(
  { issuer, signer, verifier }: WitnessComparison,
  compact: string,
): Promise<Checkpoint | undefined> {
  const jws = parseJws(compact);
  if (!jws.ok) return undefined;
  const checkpoint = readCheckpoint(jws.value);
  if (!checkpoint.ok || checkpoint.value.issuer !== issuer) return undefined;
  const key = signer.own(jws.value.header);
  const valid = key === undefined || (await verifier.verify(jws.value, key));
  return valid ? checkpoint.value : undefined;
}

/** Undefined for a log that has everything that is known of it. */
export async function compareLog(
  store: Pick<EventLog, "head" | "read">,
  { log, seq, hash, timeMs }: KnownHead,
): Promise<LogBehind | undefined> {
  const head = await store.head(log);
  const stored = head === undefined ? 0 : head.seq + 1;
  const [end] = await store.read({ log, afterSeq: stored - 2, limit: 1 });
  // AUDIT-D-12: the operator has closed a log that was retired; an export is still compared with the witness.
  if (end?.type === LOG_END) return undefined;
  const behind = defined<LogBehind>({
    log,
    known: seq + 1,
    stored,
    forked: false,
    knownMs: timeMs,
    storedMs: end?.timeMs,
  });
  if (stored <= seq) return behind;
  const [last] = await store.read({ log, afterSeq: seq - 1, limit: 1 });
  // Retention may have removed the record, with everything before it.
  const forked = last?.seq === seq && last.hash !== hash;
  return forked ? { ...behind, forked } : undefined;
}

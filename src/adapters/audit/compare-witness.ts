/**
 * Compares the store with what the witness has (AUDIT-D-10): a store that was restored from a backup, or lost and made
 * anew, has forgotten spent assertions, withdrawn consents, removed clients and endings of tokens.
 */
import type { Checkpoint, LogHead } from "../../audit/checkpoint.ts";
import { readCheckpoint } from "../../audit/checkpoint.ts";
import { LOG_END } from "../../audit/event.ts";
import type { Signer, Verifier } from "../../ports.ts";
import { parseJws } from "../../spec/rfc7515.ts";
import type { Store } from "../store/store.ts";
import type { Witness } from "./witness.ts";

export type WitnessComparison = {
  witness: Witness;
  issuer: string;
  store: Pick<Store, "log">;
  /** With the keys for checkpoints. */
  signer: Signer;
  verifier: Verifier;
};

/** A log of which the store has fewer records than were witnessed, or (`forked`) other ones. */
export type LogBehind = { log: string; witnessed: number; stored: number; forked: boolean };

/** The logs that are behind, in the order in which the witness names them. */
export async function compareWithWitness(options: WitnessComparison): Promise<readonly LogBehind[]> {
  const witnessed = new Map<string, LogHead>();
  // Later checkpoints come later, so the last word about each log counts.
  for (const jws of (await options.witness.latest?.()) ?? []) {
    const checkpoint = await readWitnessed(options, jws);
    if (checkpoint === undefined) continue;
    for (const [log, head] of checkpoint.heads) witnessed.set(log, head);
    witnessed.set(checkpoint.log, { size: checkpoint.tree.size, hash: checkpoint.hash });
  }
  const found = await Promise.all([...witnessed].map(([log, head]) => compareLog(options, log, head)));
  return found.filter((one) => one !== undefined);
}

/** A checkpoint by a key that the store does not have counts: a lost store has lost its keys too. */
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

async function compareLog(
  { store }: WitnessComparison,
  log: string,
  { size, hash }: LogHead,
): Promise<LogBehind | undefined> {
  const head = await store.log.head(log);
  const stored = head === undefined ? 0 : head.seq + 1;
  // AUDIT-D-12: the operator has closed a log that was retired; an export is still compared with the witness.
  const [end] = await store.log.read({ log, afterSeq: stored - 2, limit: 1 });
  if (end?.type === LOG_END) return undefined;
  if (stored < size) return { log, witnessed: size, stored, forked: false };
  const [last] = await store.log.read({ log, afterSeq: size - 2, limit: 1 });
  // Retention may have removed it, with everything before.
  const forked = last?.seq === size - 1 && last.hash !== hash;
  return forked ? { log, witnessed: size, stored, forked } : undefined;
}

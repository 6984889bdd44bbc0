/**
 * Retention: removes events that are older than a number of days, from the beginning of each log up to the last record
 * of a signed checkpoint, which becomes the new beginning; and removes expired rows. Every instance does it, also at
 * the same time.
 */
import type { LogHead } from "../../audit/checkpoint.ts";
import { RETENTION_INTERVAL_MS } from "../../limits/audit.ts";
import { EXPIRED_GRACE_SECONDS } from "../../limits/store.ts";
import type { Clock, Signer, Timers, Verifier } from "../../ports.ts";
import { type PeriodicWork, runPeriodically } from "../periodic.ts";
import { removePaced } from "../store/paced-removal.ts";
import type { Store } from "../store/store.ts";
import { eventHash } from "./chain.ts";
import { readOwnCheckpoint } from "./checkpoints.ts";
import type { OpenJournal } from "./journal.ts";
import { type EndOptions, endPendingConsents } from "./pending-ends.ts";
import { removePolicies } from "./policy-archive.ts";
import { TreeHashes } from "./tree-hashes.ts";

export type RetentionOptions = EndOptions & {
  store: Pick<
    Store,
    | "log"
    | "audit"
    | "shortLived"
    | "families"
    | "jobs"
    | "rechecks"
    | "subjectEmails"
    | "subjectClaims"
    | "policies"
    | "sliceMs"
  >;
  journal: OpenJournal;
  /** The keys of this server, among them those for checkpoints. */
  signer: Signer;
  verifier: Verifier;
  clock: Clock;
  timers: Timers;
  days: number;
  onFault: (text: string) => void;
};

/** A position that a signed checkpoint covers. */
type Anchor = LogHead;

type Beginning = { log: string; from: number; below: number };

/** Removes old events and expired rows at regular intervals, until it is closed. */
export function startRetention(options: RetentionOptions): PeriodicWork {
  const { store, journal, signer, verifier, clock, timers, days, onFault } = options;

  const sweep = async (closing: () => boolean): Promise<void> => {
    const before = clock.nowSeconds() - EXPIRED_GRACE_SECONDS;
    const { audit, shortLived, families, jobs, rechecks, subjectEmails, subjectClaims } = store;
    const pending = { sweep: endPendingConsents(options) };
    for (const rows of [audit, shortLived, families, jobs, pending, rechecks, subjectEmails, subjectClaims]) {
      await removePaced(store, closing, (limit) => rows.sweep(before, limit));
    }
  };

  /**
   * For each log its own last checkpoint; for a log without one, the largest size that a checkpoint of another log
   * names.
   */
  const findAnchors = async (logs: readonly string[]): Promise<ReadonlyMap<string, Anchor>> => {
    const cutoffMs = clock.nowMs() - days * 86_400_000;
    const own = new Map<string, Anchor>();
    const named = new Map<string, Anchor>();
    for (const log of logs) {
      const by = await store.audit.checkpoint(log, cutoffMs);
      const checkpoint = by && (await readOwnCheckpoint(by, signer, verifier));
      if (by === undefined || checkpoint === undefined) continue;
      own.set(log, { size: checkpoint.tree.size, hash: checkpoint.hash });
      for (const [name, head] of checkpoint.heads) {
        if (head.size > (named.get(name)?.size ?? 0)) named.set(name, head);
      }
    }
    return new Map([...named, ...own]);
  };

  /** The number at which the log begins, and the one at which it will begin. */
  const beginningOf = async (log: string, anchor: Anchor | undefined): Promise<Beginning | undefined> => {
    const [first] = await store.log.read({ log, limit: 1 });
    if (first === undefined) return undefined;
    const stays = { log, from: first.seq, below: first.seq };
    // The record that the checkpoint names stays, because the next one is chained to it and a log is never empty.
    const below = (anchor?.size ?? 0) - 1;
    if (first.seq >= below) return stays;
    const [start] = await store.log.read({ log, afterSeq: below - 1, limit: 1 });
    if (start?.seq === below && eventHash(start.body) === anchor?.hash) return { ...stays, below };
    onFault(
      `the audit log ${JSON.stringify(log)} does not match its checkpoint, so nothing is removed from it`,
    );
    return stays;
  };

  const prune = async (closing: () => boolean): Promise<void> => {
    const logs = (await store.audit.heads()).map(({ log }) => log);
    const anchors = await findAnchors(logs);
    const found = await Promise.all(logs.map((log) => beginningOf(log, anchors.get(log))));
    const beginnings = found.filter((one) => one !== undefined);
    if (!beginnings.some(({ from, below }) => from < below)) return;
    // Names the beginning of every log, so that the newest such event explains all of them.
    const below = Object.fromEntries(beginnings.map((one) => [one.log, one.below]));
    await journal.record({
      event: { type: "log.pruned", outcome: "allow", reason: "retention", detail: { below } },
    });
    for (const one of beginnings) {
      // RCPT-D-4: the hashes of what is removed stay.
      if (one.from < one.below) await new TreeHashes(store.audit, one.log).keep(one.below, true);
      await removePaced(store, closing, (limit) => store.audit.prune(one.log, one.below, limit));
    }
    await removePolicies(store, closing);
  };

  const work = async (closing: () => boolean): Promise<void> => {
    await sweep(closing);
    await prune(closing);
  };
  return runPeriodically(work, { name: "retention", everyMs: RETENTION_INTERVAL_MS, timers, onFault });
}

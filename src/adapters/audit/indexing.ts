/**
 * Builds the blocks of the trail's index (audit/blocks.ts) behind the journal. Every instance does it for every log; the
 * first block with a beginning stays, so that instances that build the same one do no harm.
 */
import { setImmediate as turn } from "node:timers/promises";
import type { BlockEvent } from "../../audit/blocks.ts";
import { buildParts } from "../../audit/blocks.ts";
import {
  AUDIT_BLOCK_EVENTS,
  AUDIT_BLOCK_WAIT_SECONDS,
  AUDIT_BLOCKS_PER_ROUND,
  AUDIT_EVENTS_READ,
  AUDIT_INDEX_INTERVAL_MS,
} from "../../limits/audit.ts";
import { STORE_SWEEP_MAX } from "../../limits/store.ts";
import type { Clock, Timers } from "../../ports.ts";
import type { PeriodicWork } from "../periodic.ts";
import { runPeriodically } from "../periodic.ts";
import { keysOfBodies } from "../store/encoding.ts";
import type { BlockHead, Store } from "../store/store.ts";

export type IndexingOptions = {
  /** The log that this process writes. */
  log: string;
  store: Pick<Store, "log" | "audit">;
  clock: Clock;
  timers: Timers;
  onFault: (text: string) => void;
};

/** Builds blocks at regular intervals, until it is closed. */
export function startIndexing({ log: own, store, clock, timers, onFault }: IndexingOptions): PeriodicWork {
  const { audit } = store;

  /** Builds the next block of a log, if there are enough events for it, or they have waited long; whether it did. */
  const buildNext = async (log: string, head: number): Promise<boolean> => {
    const [first] = await store.log.read({ log, afterSeq: await audit.indexedTo(log), limit: 1 });
    if (first === undefined) return false;
    // What another instance writes is left to it, unless it does not build.
    const enough = log === own ? AUDIT_BLOCK_EVENTS : 2 * AUDIT_BLOCK_EVENTS;
    const waited = clock.nowMs() - first.timeMs >= AUDIT_BLOCK_WAIT_SECONDS * 1_000;
    if (head - first.seq + 1 < enough && !waited) return false;
    const toSeq = Math.min(head, first.seq + AUDIT_BLOCK_EVENTS - 1);
    await buildBlock(store, { log, fromSeq: first.seq, toSeq });
    return true;
  };

  const work = async (closing: () => boolean): Promise<void> => {
    let built = 0;
    for (const { log, seq } of await audit.heads()) {
      // A few in a round, so that a trail that an older version wrote does not take the whole processor.
      for (let blocks = 0; blocks < AUDIT_BLOCKS_PER_ROUND && !closing(); blocks++) {
        if (!(await buildNext(log, seq))) break;
        built++;
      }
    }
    // Once every event has its block, the terms of older versions are not needed any more.
    for (let slices = 0; built === 0 && slices < AUDIT_BLOCKS_PER_ROUND && !closing(); slices++) {
      if (!(await audit.forgetTerms(STORE_SWEEP_MAX))) break;
      await turn();
    }
  };
  return runPeriodically(work, { name: "audit index", everyMs: AUDIT_INDEX_INTERVAL_MS, timers, onFault });
}

/** Builds the block of these events. */
export async function buildBlock(
  { log: rows, audit }: IndexingOptions["store"],
  { log, fromSeq, toSeq }: Pick<BlockHead, "log" | "fromSeq" | "toSeq">,
): Promise<void> {
  const events: BlockEvent[] = [];
  const keysOf = keysOfBodies();
  for (let after = fromSeq - 1; after < toSeq; ) {
    const read = await rows.read({ log, afterSeq: after, limit: Math.min(AUDIT_EVENTS_READ, toSeq - after) });
    for (const { seq, timeMs, body } of read) {
      if (seq <= toSeq) events.push({ number: seq - fromSeq, timeMs, keys: keysOf(body) });
    }
    after = read.at(-1)?.seq ?? toSeq;
    await turn();
  }
  const times = events.map(({ timeMs }) => timeMs);
  const head = { log, fromSeq, toSeq, fromMs: Math.min(...times), toMs: Math.max(...times) };
  await audit.addBlock(head, buildParts(events, head.fromMs));
  await turn();
}

/**
 * The index of the audit trail (PROD-6.3-3): our own design, built behind the journal, so that no event pays for its
 * search terms. A segment covers up to AUDIT_SEGMENT_EVENTS successive events of one log, and is written once. For each
 * term that one of its events has, it has a row: the segment, a digest of the term, and the numbers of the events,
 * counted from the first one. Under TIMES it lists the time of each event, counted from the earliest one, so that a
 * search puts matches in order before it reads any event. For each subject it notes which segments list it, so that a
 * user finds their events without a look at the segments of others.
 *
 * Two terms may have the same digest, so each event found is compared with the query (store/search.ts). The index is
 * derived from the events alone: it is no evidence, and a segment that is lost is only slow. Every instance builds it for
 * every log; the first segment with a beginning stays, so that instances that build the same one do no harm. The terms of
 * what this process wrote come from the journal, those of other events from their texts.
 */
import { setImmediate as turn } from "node:timers/promises";
import { type Term, termsOf } from "../../audit/terms.ts";
import {
  AUDIT_EVENTS_KEPT_MAX,
  AUDIT_EVENTS_READ,
  AUDIT_INDEX_INTERVAL_MS,
  AUDIT_SEGMENT_EVENTS,
  AUDIT_SEGMENT_WAIT_SECONDS,
  AUDIT_SEGMENTS_PER_ROUND,
} from "../../limits/audit.ts";
import type { Clock, Timers } from "../../ports.ts";
import { type PeriodicWork, runPeriodically } from "../periodic.ts";
import { isSubject, TIMES, termKeys, termsOfBody } from "../store/encoding.ts";
import type { Store } from "../store/store.ts";
import type { Segment } from "../store/trail.ts";
import type { OpenJournal, Written } from "./journal.ts";

type IndexingOptions = {
  /** The log that this process writes. */
  log: string;
  store: Pick<Store, "log" | "audit">;
  /** Of this log: what it writes is not read again. */
  journal: Pick<OpenJournal, "follow">;
  clock: Clock;
  timers: Timers;
  onFault: (text: string) => void;
};

/** What the index lists of events, by their numbers. */
type Listed = ReadonlyMap<number, ListedEvent>;
type ListedEvent = { timeMs: number; keys: readonly number[]; subjects: readonly number[] };

/** Makes a function that lists an event by its terms. */
function lister(): (timeMs: number, terms: readonly Term[]) => ListedEvent {
  const keysOf = termKeys();
  return (timeMs, terms) => {
    const keys = keysOf(terms);
    return { timeMs, keys, subjects: keys.filter((_, index) => isSubject(terms[index])) };
  };
}

/** What is listed of events that this process wrote, until they have their segment. */
function keepWritten(journal: IndexingOptions["journal"]) {
  const list = lister();
  const listed = new Map<number, ListedEvent>();
  // Many at once, because one event at a time would find the caches of the processor cold.
  let waiting: Written[] = [];
  const listWaiting = (): Listed => {
    for (const { seq, timeMs, event } of waiting) listed.set(seq, list(timeMs, termsOf(event)));
    waiting = [];
    return listed;
  };
  journal.follow((written) => {
    if (listed.size + waiting.length >= AUDIT_EVENTS_KEPT_MAX) return;
    waiting.push(...written);
    if (waiting.length >= AUDIT_EVENTS_READ) listWaiting();
  });
  const forget = (toSeq: number): void => {
    for (const seq of listWaiting().keys()) if (seq <= toSeq) listed.delete(seq);
  };
  return { list: listWaiting, forget };
}

/** Builds segments at regular intervals, until it is closed. */
export function startIndexing(options: IndexingOptions): PeriodicWork {
  const { log: own, store, journal, clock, timers, onFault } = options;
  const { audit } = store;
  const written = keepWritten(journal);

  /** Builds the next segment of a log, if there are enough events for it, or they have waited long; whether it did. */
  const buildNext = async (log: string, head: number): Promise<boolean> => {
    const indexed = await audit.indexedTo(log);
    if (log === own) written.forget(indexed);
    const [first] = await store.log.read({ log, afterSeq: indexed, limit: 1 });
    if (first === undefined) return false;
    // What another instance writes is left to it, unless it does not build.
    const enough = log === own ? AUDIT_SEGMENT_EVENTS : 2 * AUDIT_SEGMENT_EVENTS;
    const waited = clock.nowMs() - first.timeMs >= AUDIT_SEGMENT_WAIT_SECONDS * 1_000;
    if (head - first.seq + 1 < enough && !waited) return false;
    const toSeq = Math.min(head, first.seq + AUDIT_SEGMENT_EVENTS - 1);
    await buildSegment(store, { log, fromSeq: first.seq, toSeq }, log === own ? written.list() : new Map());
    return true;
  };

  const work = async (closing: () => boolean): Promise<void> => {
    for (const { log, seq } of await audit.heads()) {
      // A few in a round, so that a long trail without segments does not take the whole processor.
      for (let segments = 0; segments < AUDIT_SEGMENTS_PER_ROUND && !closing(); segments++) {
        if (!(await buildNext(log, seq))) break;
      }
    }
  };
  return runPeriodically(work, { name: "audit index", everyMs: AUDIT_INDEX_INTERVAL_MS, timers, onFault });
}

/** Builds the segment of these events; those that are not listed yet are read. */
export async function buildSegment(
  { log: rows, audit }: IndexingOptions["store"],
  { log, fromSeq, toSeq }: Pick<Segment, "log" | "fromSeq" | "toSeq">,
  listed: Listed = new Map(),
): Promise<void> {
  const lists = new Map<number, number[]>();
  const listedSubjects = new Set<number>();
  const times = new Map<number, number>();
  const add = (seq: number, { timeMs, keys, subjects }: ListedEvent): void => {
    const number = seq - fromSeq;
    times.set(number, timeMs);
    for (const subject of subjects) listedSubjects.add(subject);
    for (const key of keys) {
      const list = lists.get(key);
      // Most lists are of one number, for which a list that grows would keep much more room.
      if (list === undefined) lists.set(key, [number]);
      else list.push(number);
    }
  };
  const list = lister();
  for (let seq = fromSeq; seq <= toSeq; ) {
    const known = listed.get(seq);
    if (known !== undefined) {
      add(seq++, known);
      continue;
    }
    const limit = Math.min(AUDIT_EVENTS_READ, toSeq - seq + 1);
    const read = (await rows.read({ log, afterSeq: seq - 1, limit })).filter((one) => one.seq <= toSeq);
    for (const one of read) add(one.seq, list(one.timeMs, termsOfBody(one.body)));
    seq = (read.at(-1)?.seq ?? toSeq) + 1;
    await turn();
  }
  // All of its events may have been removed meanwhile.
  const [fromMs, toMs] =
    times.size === 0 ? [0, 0] : [Math.min(...times.values()), Math.max(...times.values())];
  // A record that was removed by force has no time.
  const sinceFirst = (_: unknown, number: number) => (times.get(number) ?? fromMs) - fromMs;
  lists.set(TIMES, Array.from({ length: toSeq - fromSeq + 1 }, sinceFirst));
  await turn();
  await audit.addSegment(
    { log, fromSeq, toSeq, fromMs, toMs },
    [...lists].map(([term, numbers]) => ({ term, numbers })),
    [...listedSubjects],
  );
  await turn();
}

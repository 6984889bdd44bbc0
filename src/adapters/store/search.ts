/**
 * Search in the audit trail, the same on both stores: finds the events that have one term of each alternative, by the
 * blocks of the index (audit/blocks.ts) and, where no block covers them yet, by reading them. Each step is a turn of its own, so that
 * no query holds up the server.
 */
import { setImmediate as turn } from "node:timers/promises";
import { readNumbers, readTimes, TIMES } from "../../audit/blocks.ts";
import type { AuditPosition, Span } from "../../audit/query.ts";
import type { Term } from "../../audit/terms.ts";
import {
  AUDIT_BLOCK_EVENTS,
  AUDIT_BLOCKS_LISTED,
  AUDIT_BLOCKS_READ_MAX,
  AUDIT_BLOCKS_READ_MIN,
  AUDIT_EVENTS_READ,
} from "../../limits/audit.ts";
import type { AuditQuery, AuditRecord } from "../../records.ts";
import { termKey, termsOfBody } from "./encoding.ts";
import { boundsOf } from "./rows.ts";
import type { BlockHead, StoredPart } from "./store.ts";

/** What a search reads; every call is one short step. */
export interface TrailRows {
  /** The first and the last sequence number of a log; undefined for a log without events. */
  bounds(log: string): Promise<{ firstSeq: number; lastSeq: number } | undefined>;
  /** Blocks with events after `afterSeq` up to `toSeq`, in order. */
  blocks(span: Span, limit: number): Promise<readonly BlockHead[]>;
  /** Those of these parts that the blocks have. */
  parts(blocks: readonly BlockHead[], parts: readonly number[]): Promise<readonly StoredPart[]>;
  /** The smallest and the largest time of the events in a span; undefined if there are none. */
  times(span: Span): Promise<{ fromMs: number; toMs: number } | undefined>;
  /** Events of one log in order, after `afterSeq` up to `toSeq`. */
  events(span: Span, limit: number): Promise<readonly AuditRecord[]>;
  /** The events at these places, in any order. */
  eventsAt(places: readonly AuditPosition[]): Promise<readonly AuditRecord[]>;
}

/** Successive events of one log: a block, or events that no block covers. `span`: what of it the query asks for. */
type Stretch = BlockHead & { span: Span; isBlock: boolean };

/** An event that may match; with its text if that was read already, and it does. */
type Found = AuditPosition & { body?: string };

/** The events that match, in the order of the query, at most `limit`. */
export async function searchTrail(rows: TrailRows, query: AuditQuery): Promise<readonly AuditRecord[]> {
  const { spans, limit, newestFirst = false } = query;
  const { fromMs, toMs } = boundsOf(query);
  const stretches = (await stretchesOf(rows, spans))
    .filter((one) => one.toMs >= fromMs && one.fromMs < toMs)
    .sort((a, b) => (newestFirst ? b.toMs - a.toMs : a.fromMs - b.fromMs));
  const records: AuditRecord[] = [];
  let found: Found[] = [];
  let opened = 0;
  let page = AUDIT_BLOCKS_READ_MIN;
  while (records.length < limit && (opened < stretches.length || found.length > 0)) {
    // What is found comes before all of the next stretch, or that is opened first.
    const next = stretches[opened];
    const ready = next === undefined ? found.length : countBefore(found, next, newestFirst);
    if (ready === 0) {
      const some = stretches.slice(opened, opened + page);
      opened += some.length;
      page = Math.min(page * 2, AUDIT_BLOCKS_READ_MAX);
      found = [...found, ...(await openStretches(rows, some, query))].sort(
        newestFirst ? (a, b) => compare(b, a) : compare,
      );
    } else {
      const some = found.slice(0, Math.min(ready, AUDIT_EVENTS_READ, limit - records.length));
      found = found.slice(some.length);
      records.push(...(await readFound(rows, some, query)));
    }
    await turn();
  }
  return records;
}

/** A time that is not later than that of any event in the spans; undefined if there are none. */
export async function earliestOf(rows: TrailRows, spans: readonly Span[]): Promise<number | undefined> {
  const stretches = await stretchesOf(rows, spans);
  return stretches.length === 0 ? undefined : Math.min(...stretches.map(({ fromMs }) => fromMs));
}

/** All events of the spans, in stretches. */
async function stretchesOf(rows: TrailRows, spans: readonly Span[]): Promise<Stretch[]> {
  const stretches: Stretch[] = [];
  for (const asked of spans) {
    const { log } = asked;
    const bounds = await rows.bounds(log);
    if (bounds === undefined) continue;
    const span = {
      log,
      afterSeq: Math.max(asked.afterSeq, bounds.firstSeq - 1),
      toSeq: Math.min(asked.toSeq, bounds.lastSeq),
    };
    let covered = span.afterSeq;
    for (;;) {
      const blocks = await rows.blocks({ ...span, afterSeq: covered }, AUDIT_BLOCKS_LISTED);
      for (const block of blocks) {
        stretches.push(...(await unindexed(rows, { log, afterSeq: covered, toSeq: block.fromSeq - 1 })));
        stretches.push({ ...block, span, isBlock: true });
        covered = block.toSeq;
      }
      if (blocks.length < AUDIT_BLOCKS_LISTED) break;
      await turn();
    }
    stretches.push(...(await unindexed(rows, { log, afterSeq: covered, toSeq: span.toSeq })));
  }
  return stretches;
}

/** Events without a block, in stretches as long as one. */
async function unindexed(rows: TrailRows, { log, afterSeq, toSeq }: Span): Promise<readonly Stretch[]> {
  const stretches: Stretch[] = [];
  for (let after = afterSeq; after < toSeq; after += AUDIT_BLOCK_EVENTS) {
    const span = { log, afterSeq: after, toSeq: Math.min(toSeq, after + AUDIT_BLOCK_EVENTS) };
    const times = await rows.times(span);
    const place = { log, fromSeq: span.afterSeq + 1, toSeq: span.toSeq };
    if (times !== undefined) stretches.push({ ...place, ...times, span, isBlock: false });
    await turn();
  }
  return stretches;
}

/** By time, then log, then number. */
function compare(a: AuditPosition, b: AuditPosition): number {
  if (a.timeMs !== b.timeMs) return a.timeMs - b.timeMs;
  if (a.log !== b.log) return a.log < b.log ? -1 : 1;
  return a.seq - b.seq;
}

function countBefore(found: readonly Found[], next: Stretch, newestFirst: boolean): number {
  const index = found.findIndex(({ timeMs }) => (newestFirst ? timeMs <= next.toMs : timeMs >= next.fromMs));
  return index < 0 ? found.length : index;
}

async function openStretches(
  rows: TrailRows,
  stretches: readonly Stretch[],
  query: AuditQuery,
): Promise<readonly Found[]> {
  const found: Found[] = await readBlocks(
    rows,
    stretches.filter(({ isBlock }) => isBlock),
    query.terms,
  );
  for (const { log, fromSeq, toSeq, isBlock } of stretches) {
    for (let after = fromSeq - 1; !isBlock && after < toSeq; ) {
      const events = await rows.events({ log, afterSeq: after, toSeq }, AUDIT_EVENTS_READ);
      found.push(...events.filter(({ body }) => matches(body, query.terms)));
      after = events.at(-1)?.seq ?? toSeq;
      await turn();
    }
  }
  return found.filter((place) => isAsked(place, query));
}

/** In the times that are asked for, and after the position at which the listing continues. */
function isAsked(place: AuditPosition, query: AuditQuery): boolean {
  const { fromMs, toMs, after } = boundsOf(query);
  const follows = query.newestFirst ? compare(place, after) < 0 : compare(place, after) > 0;
  return follows && place.timeMs >= fromMs && place.timeMs < toMs;
}

/** The events of blocks that the index lists under one term of each choice. */
async function readBlocks(
  rows: TrailRows,
  blocks: readonly Stretch[],
  terms: readonly (readonly Term[])[],
): Promise<Found[]> {
  let left = blocks.map((block) => ({ block, numbers: undefined as ReadonlySet<number> | undefined }));
  for (const choice of terms) {
    const keys = choice.map(termKey);
    const partOf = await readParts(
      rows,
      left.map(({ block }) => block),
      [...new Set(keys.map(({ part }) => part))],
    );
    left = left
      .map(({ block, numbers }) => {
        const listed = new Set(
          keys.flatMap(({ part, tag }) => {
            const entries = partOf(block, part);
            return entries === undefined ? [] : readNumbers(entries, tag);
          }),
        );
        return { block, numbers: numbers === undefined ? listed : numbers.intersection(listed) };
      })
      .filter(({ numbers }) => numbers.size > 0);
  }
  const timesOf = await readParts(
    rows,
    left.map(({ block }) => block),
    [TIMES],
  );
  return left.flatMap(({ block, numbers }) => {
    const { log, fromSeq, fromMs, span } = block;
    const times = readTimes(timesOf(block, TIMES) ?? new Uint8Array(), fromMs);
    return [...(numbers ?? [])].flatMap((number) => {
      const place = { timeMs: times[number] ?? fromMs, log, seq: fromSeq + number };
      return place.seq > span.afterSeq && place.seq <= span.toSeq ? [place] : [];
    });
  });
}

async function readParts(rows: TrailRows, blocks: readonly Stretch[], parts: readonly number[]) {
  const found = blocks.length === 0 ? [] : await rows.parts(blocks, parts);
  await turn();
  const byPlace = new Map(
    found.map(({ log, fromSeq, part, entries }) => [`${part} ${fromSeq} ${log}`, entries]),
  );
  return ({ log, fromSeq }: BlockHead, part: number) => byPlace.get(`${part} ${fromSeq} ${log}`);
}

/** The events at these places that match, in the same order. */
async function readFound(
  rows: TrailRows,
  found: readonly Found[],
  { terms }: AuditQuery,
): Promise<readonly AuditRecord[]> {
  const unread = found.filter(({ body }) => body === undefined);
  const read = unread.length === 0 ? [] : await rows.eventsAt(unread);
  const bodies = new Map(read.map(({ log, seq, body }) => [`${seq} ${log}`, body]));
  return found.flatMap(({ timeMs, log, seq, body = bodies.get(`${seq} ${log}`) }) =>
    body !== undefined && matches(body, terms) ? [{ timeMs, log, seq, body }] : [],
  );
}

function matches(body: string, terms: readonly (readonly Term[])[]): boolean {
  const has = termsOfBody(body);
  return terms.every((choice) =>
    choice.some(({ name, value }) => has.some((term) => term.name === name && term.value === value)),
  );
}

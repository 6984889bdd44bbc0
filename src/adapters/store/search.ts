/**
 * Search in the audit trail, the same on both stores: finds the events that have one term of each alternative, by the
 * index (audit/indexing.ts) and, where no segment covers them yet, by reading them. Each step is a turn of its own, so
 * that no query holds up the server.
 */
import { setImmediate as turn } from "node:timers/promises";
import type { AuditPosition, Span } from "../../audit/query.ts";
import type { Term } from "../../audit/terms.ts";
import {
  AUDIT_EVENTS_READ,
  AUDIT_SEGMENT_EVENTS,
  AUDIT_SEGMENTS_LISTED,
  AUDIT_SEGMENTS_READ_MAX,
  AUDIT_SEGMENTS_READ_MIN,
} from "../../limits/audit.ts";
import type { AuditQuery, AuditRecord } from "../../records.ts";
import { isSubject, TIMES, termKey, termsOfBody } from "./encoding.ts";
import { boundsOf } from "./rows.ts";
import type { Segment, StoredList, StoredSegment } from "./trail.ts";

/** The reads of a search; every call is one short step. */
export interface TrailRows {
  /**
   * Finds the first and the last sequence number of a log, and of which events it is noted where each subject is
   * listed; undefined for a log without events.
   */
  bounds(log: string): Promise<{ firstSeq: number; lastSeq: number; noted?: Noted } | undefined>;
  /**
   * Finds at most `limit` segments that list one of these subjects, of those behind `after`. They are not all of them if
   * one is lost.
   */
  segmentsOf(
    subjects: readonly number[],
    after: number,
    limit: number,
  ): Promise<{ segments: readonly StoredSegment[]; last: number; areAll: boolean }>;
  /**
   * Looks through at most `limit` segments with events after `afterSeq` up to `toSeq`, in order. Returns those that list
   * one term of each choice, those before which events have no segment, and the last one.
   */
  segments(
    span: Span,
    choices: readonly (readonly number[])[],
    limit: number,
  ): Promise<readonly ListedSegment[]>;
  /** Reads what the segments list under these terms. */
  lists(segments: readonly number[], terms: readonly number[]): Promise<readonly StoredList[]>;
  /** Finds the smallest and the largest time of the events in a span; undefined if there are none. */
  times(span: Span): Promise<{ fromMs: number; toMs: number } | undefined>;
  /** Reads events of one log in order, after `afterSeq` up to `toSeq`. */
  events(span: Span, limit: number): Promise<readonly AuditRecord[]>;
  /** Reads the events at these places, in any order. */
  eventsAt(places: readonly AuditPosition[]): Promise<readonly AuditRecord[]>;
}

/** The events of a log for whose segments each subject is noted. */
type Noted = { fromSeq: number; toSeq: number };

/** A segment by its place among those looked through; no segment covers what is between `beforeSeq` and its events. */
type ListedSegment = StoredSegment & { isListed: boolean; number: number; beforeSeq: number };

/** Events of one log: a segment, or events that no segment covers, without `id`. `span` is what the query asks for. */
type Stretch = Segment & { id?: number; span: Span };

/** An event that may match; one whose text was read already has it, and does match. */
type Found = AuditPosition & { body?: string };

/** Finds at most `limit` events that match, in the order of the query. */
export async function searchTrail(rows: TrailRows, query: AuditQuery): Promise<readonly AuditRecord[]> {
  const { spans, terms, limit, newestFirst = false } = query;
  const { fromMs, toMs } = boundsOf(query);
  const stretches = (await stretchesOf(rows, spans, terms))
    .filter((one) => one.toMs >= fromMs && one.fromMs < toMs)
    .sort((a, b) => (newestFirst ? b.toMs - a.toMs : a.fromMs - b.fromMs));
  const records: AuditRecord[] = [];
  let found: Found[] = [];
  let opened = 0;
  let page = AUDIT_SEGMENTS_READ_MIN;
  while (records.length < limit && (opened < stretches.length || found.length > 0)) {
    // An event is returned only once it comes before all of the next stretch; until then that stretch is opened first.
    const next = stretches[opened];
    const ready = next === undefined ? found.length : countBefore(found, next, newestFirst);
    if (ready === 0) {
      const some = stretches.slice(opened, opened + page);
      opened += some.length;
      page = Math.min(page * 2, AUDIT_SEGMENTS_READ_MAX);
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

/** The events of the spans, in stretches, without segments that list no term of one of the choices. */
async function stretchesOf(
  rows: TrailRows,
  spans: readonly Span[],
  terms: AuditQuery["terms"] = [],
): Promise<Stretch[]> {
  const choices = terms.map((choice) => choice.map(termKey));
  const places: { span: Span; noted: Noted | undefined }[] = [];
  for (const { log, afterSeq, toSeq } of spans) {
    const bounds = await rows.bounds(log);
    if (bounds === undefined) continue;
    const { firstSeq, lastSeq, noted } = bounds;
    const span = { log, afterSeq: Math.max(afterSeq, firstSeq - 1), toSeq: Math.min(toSeq, lastSeq) };
    places.push({ span, noted });
  }
  // AUDIT-D-16: a search for a subject opens what is noted for it, so that it costs the same among any number of events
  // of others. It is read after the bounds, and so has all that they say.
  const subjects = terms.find((choice) => choice.every(isSubject));
  const own = subjects && (await segmentsOf(rows, subjects.map(termKey)));
  const stretches: Stretch[] = [];
  for (const { span, noted } of places) {
    if (own === undefined || noted === undefined) {
      stretches.push(...(await lookThrough(rows, span, choices)));
      continue;
    }
    const { log, afterSeq, toSeq } = span;
    const { fromSeq: notedFrom, toSeq: notedTo } = noted;
    stretches.push(...(await lookThrough(rows, { ...span, toSeq: Math.min(toSeq, notedFrom - 1) }, choices)));
    for (const one of own) {
      const isNoted = one.log === log && one.fromSeq >= notedFrom && one.toSeq <= notedTo;
      if (isNoted && one.fromSeq <= toSeq && one.toSeq > afterSeq) stretches.push({ ...one, span });
    }
    stretches.push(...(await lookThrough(rows, { ...span, afterSeq: Math.max(afterSeq, notedTo) }, choices)));
  }
  return stretches;
}

/** The segments that are noted for these subjects; undefined if one is lost, since then its events have to be read. */
async function segmentsOf(
  rows: TrailRows,
  subjects: readonly number[],
): Promise<readonly StoredSegment[] | undefined> {
  const found: StoredSegment[] = [];
  for (let after = -1; ; ) {
    const { segments, last, areAll } = await rows.segmentsOf(subjects, after, AUDIT_SEGMENTS_LISTED);
    await turn();
    if (!areAll) return undefined;
    found.push(...segments);
    if (segments.length < AUDIT_SEGMENTS_LISTED) return found;
    after = last;
  }
}

/** The events of a span, by a look at each of its segments. */
async function lookThrough(
  rows: TrailRows,
  span: Span,
  choices: readonly (readonly number[])[],
): Promise<Stretch[]> {
  const { log, toSeq } = span;
  const stretches: Stretch[] = [];
  for (let covered = span.afterSeq; covered < toSeq; ) {
    const segments = await rows.segments({ ...span, afterSeq: covered }, choices, AUDIT_SEGMENTS_LISTED);
    for (const { number: _, isListed, beforeSeq, ...segment } of segments) {
      stretches.push(...(await unindexed(rows, { log, afterSeq: beforeSeq, toSeq: segment.fromSeq - 1 })));
      if (isListed) stretches.push({ ...segment, span });
      covered = segment.toSeq;
    }
    if ((segments.at(-1)?.number ?? 0) < AUDIT_SEGMENTS_LISTED) {
      stretches.push(...(await unindexed(rows, { log, afterSeq: covered, toSeq })));
      break;
    }
    await turn();
  }
  return stretches;
}

/** Events that no segment covers, in stretches as long as one. */
async function unindexed(rows: TrailRows, { log, afterSeq, toSeq }: Span): Promise<readonly Stretch[]> {
  const stretches: Stretch[] = [];
  for (let after = afterSeq; after < toSeq; after += AUDIT_SEGMENT_EVENTS) {
    const span = { log, afterSeq: after, toSeq: Math.min(toSeq, after + AUDIT_SEGMENT_EVENTS) };
    const times = await rows.times(span);
    const place = { log, fromSeq: span.afterSeq + 1, toSeq: span.toSeq };
    if (times !== undefined) stretches.push({ ...place, ...times, span });
    await turn();
  }
  return stretches;
}

/** Compares by time, then log, then number. */
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
  const found: Found[] = await readSegments(rows, stretches, query.terms);
  const words = query.terms.map((choice) => choice.map(wordOf));
  const mayMatch = (body: string) => words.every((some) => some.some((word) => body.includes(word)));
  for (const { log, fromSeq, toSeq, id } of stretches) {
    for (let after = fromSeq - 1; id === undefined && after < toSeq; ) {
      const events = await rows.events({ log, afterSeq: after, toSeq }, AUDIT_EVENTS_READ);
      found.push(...events.filter(({ body }) => mayMatch(body) && matches(body, query.terms)));
      after = events.at(-1)?.seq ?? toSeq;
      await turn();
    }
  }
  return found.filter((place) => isAsked(place, query));
}

/** Whether the event is within the times that are asked for, and after the position at which the listing continues. */
function isAsked(place: AuditPosition, query: AuditQuery): boolean {
  const { fromMs, toMs, after } = boundsOf(query);
  const follows = query.newestFirst ? compare(place, after) < 0 : compare(place, after) > 0;
  return follows && place.timeMs >= fromMs && place.timeMs < toMs;
}

/** The events of segments that the index lists under one term of each choice. */
async function readSegments(
  rows: TrailRows,
  stretches: readonly Stretch[],
  terms: readonly (readonly Term[])[],
): Promise<Found[]> {
  let ids = stretches.flatMap(({ id }) => id ?? []);
  const numbersOf = new Map<number, ReadonlySet<number>>();
  for (const choice of terms) {
    const lists = await readLists(rows, ids, choice.map(termKey));
    ids = ids.filter((id) => {
      const listed = new Set(lists.get(id));
      const numbers = numbersOf.get(id)?.intersection(listed) ?? listed;
      numbersOf.set(id, numbers);
      return numbers.size > 0;
    });
  }
  const times = await readLists(rows, ids, [TIMES]);
  return stretches.flatMap(({ id, log, fromSeq, fromMs, span }) => {
    if (id === undefined) return [];
    return [...(numbersOf.get(id) ?? [])]
      .map((number) => ({ timeMs: fromMs + (times.get(id)?.[number] ?? 0), log, seq: fromSeq + number }))
      .filter(({ seq }) => seq > span.afterSeq && seq <= span.toSeq);
  });
}

/** Reads what these segments list under one of the terms, by segment. */
async function readLists(rows: TrailRows, segments: readonly number[], terms: readonly number[]) {
  const lists = segments.length === 0 ? [] : await rows.lists(segments, terms);
  await turn();
  const bySegment = new Map<number, readonly number[]>();
  for (const { segment, numbers } of lists) {
    bySegment.set(segment, [...(bySegment.get(segment) ?? []), ...numbers]);
  }
  return bySegment;
}

/** Reads the events at these places that match, in the same order. */
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

/**
 * What the text of an event with this term has in it: most events are left out by that, and their terms are not made. A
 * request is found by parts of its id, and a subject is put together of two members, of which this is the end of one.
 */
function wordOf({ name, value }: Term): string {
  if (name === "request") return "";
  const word = name === "subject" ? value.slice(value.lastIndexOf(" ") + 1) : value;
  return JSON.stringify(word).slice(1, -1);
}

function matches(body: string, terms: readonly (readonly Term[])[]): boolean {
  const has = termsOfBody(body);
  return terms.every((choice) =>
    choice.some(({ name, value }) => has.some((term) => term.name === name && term.value === value)),
  );
}

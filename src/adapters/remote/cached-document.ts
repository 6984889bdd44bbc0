/**
 * Documents at URLs that clients supply, fetched when a request needs them. A copy is cached while it is fresh by
 * RFC 9111 within our bounds, and revalidated afterwards; failures are not cached (CIMD-5.2-3). Concurrent requests for
 * one document share one fetch, which is charged to the source that started it.
 */

import type { Reason } from "../../audit/reasons.ts";
import {
  FETCHED_CACHE_BYTES_MAX,
  FETCHED_CACHE_MAX,
  FETCHED_SECONDS,
  FETCHED_SECONDS_MAX,
  FETCHED_SECONDS_MIN,
  REFETCH_SECONDS,
} from "../../limits.ts";
import type { Clock, FetchRefused } from "../../ports.ts";
import type { Result } from "../../result.ts";
import { defined, err, ok } from "../../result.ts";
import type { SuppliedDocument } from "../../settings/settings.ts";
import { freshSeconds } from "../../spec/rfc9111.ts";
import { makeLruCache } from "../lru-cache.ts";
import { queryNames } from "./dns.ts";
import type { Fetched, FetchOptions, Resolver } from "./fetch.ts";
import { FetchFailed, fetchParsed } from "./fetch.ts";
import type { FetchBudget } from "./fetch-budget.ts";
import type { FetchResult } from "./key-sources.ts";

/** What the caches of all kinds of documents share. */
export type FetchContext = {
  clock: Clock;
  budget: FetchBudget;
  resolver?: Resolver;
  timeoutMs?: number;
  /** Called at the end of each fetch, with its URL and its result. */
  onFetch?: (url: string, note: FetchResult) => void;
};

export type DocumentKind<T> = {
  /** The prefix of the reasons of failed fetches. */
  name: "document" | "key_set";
  bytesMax: number;
  contentType: RegExp;
  parse: (url: string, text: string) => Result<T, { kind: Reason }>;
  /** How long a stale copy is used while the document cannot be fetched; 0: not at all. */
  lastGoodSeconds: number;
};

export type DocumentCache<T> = {
  get(where: SuppliedDocument, source: string): Promise<Result<T, FetchRefused>>;
  /** Fetches before the copy is stale, because it lacks what a request named; limited for all requests together. */
  lookAgain(where: SuppliedDocument, source: string): Promise<Result<T, FetchRefused>>;
};

type Content<T> = { value: T; bytes: number; etag?: string; freshSeconds: number };
type Entry<T> = Content<T> & { loadedAtMs: number; lookedAtMs: number };

const BOUNDS = { min: FETCHED_SECONDS_MIN, max: FETCHED_SECONDS_MAX, otherwise: FETCHED_SECONDS };

export function makeDocumentCache<T>(kind: DocumentKind<T>, context: FetchContext): DocumentCache<T> {
  const { clock, budget } = context;
  const kept = makeLruCache<Entry<T>>(FETCHED_CACHE_MAX, FETCHED_CACHE_BYTES_MAX);
  const flights = new Map<string, Promise<Result<Entry<T>, FetchRefused>>>();
  const { isUsable, isDue } = ages(clock, kind.lastGoodSeconds);

  const load = async (
    key: string,
    where: SuppliedDocument,
    known: Entry<T> | undefined,
  ): Promise<Result<Entry<T>, FetchRefused>> => {
    // The time before the fetch, so that a slow answer does not count as younger than it is.
    const nowMs = clock.nowMs();
    if (known !== undefined) known.lookedAtMs = nowMs;
    const content = await fetchContent(kind, context, where, known);
    // CIMD-5.2-3, CIMD-5.2-4: failed fetches and invalid documents are not cached.
    if (!content.ok) return content;
    const entry = { ...content.value, loadedAtMs: nowMs, lookedAtMs: nowMs };
    kept.keep(key, entry);
    return ok(entry);
  };

  const begin = (key: string, where: SuppliedDocument, source: string, known: Entry<T> | undefined) => {
    // A new document is charged to the source and the host, on whatever port. A renewal has a budget of its own, by URL,
    // so that requests for invented URLs cannot use it up and no source pays for coming at that moment.
    const begun =
      known === undefined ? budget.begin(source, where.parsed.hostname) : budget.begin(undefined, where.url);
    if (!begun.ok) return err({ reason: "fetches_too_many", waitSeconds: begun.error } as const);
    const flight = load(key, where, known).finally(() => {
      flights.delete(key);
      begun.value();
    });
    flights.set(key, flight);
    return flight;
  };

  const look = async (
    where: SuppliedDocument,
    source: string,
    early: boolean,
  ): Promise<Result<T, FetchRefused>> => {
    // A copy is used only under the permissions that it was fetched under.
    const key = JSON.stringify([where.url, where.privateNetworks, where.ca]);
    const entry = kept.find(key);
    const flight = flights.get(key);
    const waits = entry === undefined || isDue(entry, early) || (early && flight !== undefined);
    if (!waits) return ok(entry.value);
    const loaded = await (flight ?? begin(key, where, source, entry));
    if (loaded.ok) return ok(loaded.value.value);
    return entry !== undefined && isUsable(entry) ? ok(entry.value) : loaded;
  };

  return {
    get: (where, source) => look(where, source, false),
    lookAgain: (where, source) => look(where, source, true),
  };
}

type Ages = Pick<Entry<unknown>, "freshSeconds" | "loadedAtMs" | "lookedAtMs">;

/** What the age of a copy allows. */
function ages(clock: Clock, lastGoodSeconds: number) {
  const isYounger = ({ loadedAtMs }: Ages, seconds: number): boolean => {
    const ageMs = clock.nowMs() - loadedAtMs;
    return ageMs >= 0 && ageMs < seconds * 1000;
  };
  const isFresh = (entry: Ages): boolean => isYounger(entry, entry.freshSeconds);
  const isUsable = (entry: Ages): boolean => isFresh(entry) || isYounger(entry, lastGoodSeconds);
  return {
    isUsable,
    /** A usable copy is revalidated at most once in `REFETCH_SECONDS`, whether that succeeds or not. */
    isDue(entry: Ages, early: boolean): boolean {
      if (!isUsable(entry)) return true;
      return (early || !isFresh(entry)) && clock.nowMs() - entry.lookedAtMs >= REFETCH_SECONDS * 1000;
    },
  };
}

async function fetchContent<T>(
  kind: DocumentKind<T>,
  { clock, resolver, timeoutMs, onFetch }: FetchContext,
  where: SuppliedDocument,
  known: Content<T> | undefined,
): Promise<Result<Content<T>, FetchRefused>> {
  const startMs = clock.monotonicMs();
  const end = (failure: { failure?: string }): void =>
    onFetch?.(where.url, { ...failure, durationMs: Math.round(clock.monotonicMs() - startMs) });
  // Names in a private network may be known to the system resolver alone.
  const permitted = where.privateNetworks.length > 0;
  try {
    const options = defined<FetchOptions>({
      resolver: resolver ?? (permitted ? undefined : queryNames()),
      timeoutMs,
      ifNoneMatch: known?.etag,
    });
    const fetched = await fetchParsed(where.parsed, where, kind.bytesMax, options);
    const content = readContent(kind, where.url, fetched, known);
    end(content.ok ? {} : { failure: content.error.reason });
    return content;
  } catch (fault) {
    if (!(fault instanceof FetchFailed)) throw fault;
    end({ failure: fault.message });
    return err({ reason: `${kind.name}_${fault.reason}` });
  }
}

function readContent<T>(
  kind: DocumentKind<T>,
  url: string,
  fetched: Fetched,
  known: Content<T> | undefined,
): Result<Content<T>, FetchRefused> {
  // CIMD-5.2-2, RFC 9111 4.3.4: where a 304 says nothing about freshness, the earlier answer applies.
  const before = fetched.notModified ? known?.freshSeconds : undefined;
  const seconds = freshSeconds(fetched, { ...BOUNDS, otherwise: before ?? BOUNDS.otherwise });
  if (fetched.notModified && known !== undefined) return ok({ ...known, freshSeconds: seconds });
  const { text, contentType, etag } = fetched;
  // CIMD-4-4, PROD-4.3-4: only the media types of this kind.
  if (!kind.contentType.test(contentType)) return err({ reason: `${kind.name}_type_refused` });
  const value = kind.parse(url, text);
  if (!value.ok) return err({ reason: value.error.kind });
  return ok(defined<Content<T>>({ value: value.value, bytes: text.length, freshSeconds: seconds, etag }));
}

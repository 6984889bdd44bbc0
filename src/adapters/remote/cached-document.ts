/**
 * Documents at URLs that clients bring, fetched when somebody needs them: kept while they are fresh by HTTP's rules
 * within our bounds, revalidated afterwards, never remembered as failures (cimd.md, jwks.md). What is asked for by
 * many at once is fetched once, and only who starts a fetch pays for it.
 */

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
import type { BroughtDocument } from "../../settings/settings.ts";
import { freshSeconds } from "../../spec/rfc9111.ts";
import { makeLruCache } from "../lru-cache.ts";
import { queryNames } from "./dns.ts";
import type { Fetched, FetchOptions, Resolver } from "./fetch.ts";
import { FetchFailed, fetchParsed } from "./fetch.ts";
import type { FetchBudget } from "./fetch-budget.ts";
import type { FetchResult } from "./key-sources.ts";

/** What all kinds of documents have in common. */
export type Fetching = {
  clock: Clock;
  budget: FetchBudget;
  resolver?: Resolver;
  timeoutMs?: number;
  /** Told how each request ended, by the URL that it went to. */
  onFetch?: (url: string, note: FetchResult) => void;
};

export type DocumentKind<T> = {
  /** What the reasons of failed fetches begin with. */
  name: string;
  bytesMax: number;
  contentType: RegExp;
  parse: (url: string, text: string) => Result<T, { kind: string }>;
  /** How long a copy serves while it cannot be fetched anew; 0: no longer than it is fresh. */
  lastGoodSeconds: number;
};

export type OnDemand<T> = {
  get(where: BroughtDocument, source: string): Promise<Result<T, FetchRefused>>;
  /** An early look, because somebody named what the copy does not have: one in a while, for all who ask. */
  lookAgain(where: BroughtDocument, source: string): Promise<Result<T, FetchRefused>>;
};

type Content<T> = { value: T; bytes: number; etag?: string; freshSeconds: number };
type Entry<T> = Content<T> & { loadedAtMs: number; lookedAtMs: number };

const BOUNDS = { min: FETCHED_SECONDS_MIN, max: FETCHED_SECONDS_MAX, otherwise: FETCHED_SECONDS };

export function fetchOnDemand<T>(kind: DocumentKind<T>, fetching: Fetching): OnDemand<T> {
  const { clock, budget } = fetching;
  const kept = makeLruCache<Entry<T>>(FETCHED_CACHE_MAX, FETCHED_CACHE_BYTES_MAX);
  const flights = new Map<string, Promise<Result<Entry<T>, FetchRefused>>>();

  const isYounger = ({ loadedAtMs }: Entry<T>, seconds: number): boolean => {
    const ageMs = clock.nowMs() - loadedAtMs;
    return ageMs >= 0 && ageMs < seconds * 1000;
  };
  const isFresh = (entry: Entry<T>): boolean => isYounger(entry, entry.freshSeconds);
  const serves = (entry: Entry<T>): boolean => isFresh(entry) || isYounger(entry, kind.lastGoodSeconds);
  /** A copy that serves is looked at no more than once in a while, whatever comes of it. */
  const isDue = (entry: Entry<T>, early: boolean): boolean => {
    if (!serves(entry)) return true;
    return (early || !isFresh(entry)) && clock.nowMs() - entry.lookedAtMs >= REFETCH_SECONDS * 1000;
  };

  const load = async (
    key: string,
    where: BroughtDocument,
    known: Entry<T> | undefined,
  ): Promise<Result<Entry<T>, FetchRefused>> => {
    // The time before, so that a slow answer makes nothing younger.
    const nowMs = clock.nowMs();
    if (known !== undefined) known.lookedAtMs = nowMs;
    const content = await fetchContent(kind, fetching, where, known);
    // CIMD-5.2-3, CIMD-5.2-4: what went wrong or is wrong is not kept.
    if (!content.ok) return content;
    const entry = { ...content.value, loadedAtMs: nowMs, lookedAtMs: nowMs };
    kept.keep(key, entry);
    return ok(entry);
  };

  const begin = (key: string, where: BroughtDocument, source: string, known: Entry<T> | undefined) => {
    // By host, which has many ports. What is known has a budget of its own, out of reach for who makes up others, and
    // nobody pays for it who happens to come when it has to be renewed.
    const begun =
      known === undefined ? budget.begin(source, where.parsed.hostname) : budget.begin(undefined, where.url);
    if (!begun.ok) return err({ reason: "fetches_too_many", waitSeconds: begun.error });
    const flight = load(key, where, known).finally(() => {
      flights.delete(key);
      begun.value();
    });
    flights.set(key, flight);
    return flight;
  };

  const look = async (
    where: BroughtDocument,
    source: string,
    early: boolean,
  ): Promise<Result<T, FetchRefused>> => {
    // What was fetched where the operator let us go is not there for whom he lets go elsewhere.
    const key = JSON.stringify([where.url, where.privateNetworks, where.ca]);
    const entry = kept.find(key);
    const flight = flights.get(key);
    const waits = entry === undefined || isDue(entry, early) || (early && flight !== undefined);
    if (!waits) return ok(entry.value);
    const loaded = await (flight ?? begin(key, where, source, entry));
    if (loaded.ok) return ok(loaded.value.value);
    return entry !== undefined && serves(entry) ? ok(entry.value) : loaded;
  };

  return {
    get: (where, source) => look(where, source, false),
    lookAgain: (where, source) => look(where, source, true),
  };
}

async function fetchContent<T>(
  kind: DocumentKind<T>,
  { resolver, timeoutMs, onFetch }: Fetching,
  where: BroughtDocument,
  known: Content<T> | undefined,
): Promise<Result<Content<T>, FetchRefused>> {
  const startMs = performance.now();
  const end = (failure: { failure?: string }): void =>
    onFetch?.(where.url, { ...failure, durationMs: Math.round(performance.now() - startMs) });
  // Names in a private network are known to the system, and not always to the Domain Name System.
  const opened = where.privateNetworks.length > 0;
  try {
    const options = defined<FetchOptions>({
      resolver: resolver ?? (opened ? undefined : queryNames()),
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
  // CIMD-5.2-2; RFC 9111 4.3.4: what an answer without content does not say stays as it was.
  const before = fetched.notModified ? known?.freshSeconds : undefined;
  const seconds = freshSeconds(fetched, { ...BOUNDS, otherwise: before ?? BOUNDS.otherwise });
  if (fetched.notModified && known !== undefined) return ok({ ...known, freshSeconds: seconds });
  const { text, contentType, etag } = fetched;
  // CIMD-4-4, PROD-4.3-4
  if (!kind.contentType.test(contentType)) return err({ reason: `${kind.name}_type_refused` });
  const value = kind.parse(url, text);
  if (!value.ok) return err({ reason: value.error.kind });
  return ok(defined<Content<T>>({ value: value.value, bytes: text.length, freshSeconds: seconds, etag }));
}

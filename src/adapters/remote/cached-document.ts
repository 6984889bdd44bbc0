/**
 * Documents at URLs that clients supply, fetched when a request needs them. A copy is cached while it is fresh by
 * RFC 9111 within our bounds, and revalidated afterwards; failures are not cached (CIMD-5.2-3). Concurrent requests for
 * one document share one fetch, which is charged to the source that started it
 * (fetch-budget.ts); fetch.ts and checked-agent.ts bound its time, its bytes and where it leads.
 */

import type { Reason } from "../../audit/reasons.ts";
import {
  FETCHED_CACHE_BYTES_MAX,
  FETCHED_CACHE_MAX,
  REFETCH_SECONDS,
  UNKNOWN_AGE_SECONDS,
} from "../../limits/fetching.ts";
import type { Clock, FetchRefused, KeyWait, Timers } from "../../ports.ts";
import { defined, err, ok, type Result } from "../../result.ts";
import type { SuppliedDocument } from "../../settings/settings.ts";
import { freshSeconds } from "../../spec/rfc9111.ts";
import { makeLruCache } from "../lru-cache.ts";
import type { Resolver } from "./checked-agent.ts";
import { type ClockReading, clocksDisagree, msSince, readClocks } from "./clock-reading.ts";
import { queryNames } from "./dns.ts";
import { type EarlyLooks, makeEarlyLooks } from "./early-looks.ts";
import { type Fetched, type FetchOptions, FRESH_BOUNDS, fetchParsed } from "./fetch.ts";
import type { FetchBudget } from "./fetch-budget.ts";
import { FetchFailed, maySucceedLater } from "./fetch-failed.ts";
import { type FetchResult, timeFetch } from "./fetch-timer.ts";

/** The parts that the caches of all kinds of documents share. */
export type FetchContext = {
  clock: Clock;
  timers: Timers;
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
  /** How long a stale copy is used while the document cannot be fetched; 0 if it is not used. */
  lastGoodSeconds: number;
};

type DocumentCache<T> = {
  get(where: SuppliedDocument, source: string | undefined, until?: KeyWait): Promise<Result<T, FetchRefused>>;
  /** Yields the copy, then the copy after each early look, for a request that needs what the copy lacks. */
  copies(
    where: SuppliedDocument,
    source: string,
    until?: KeyWait,
  ): AsyncGenerator<Result<T, FetchRefused>, void, void>;
};

type Content<T> = { value: T; bytes: number; etag?: string; freshSeconds: number };
type LoadedContent<T> = Content<T> & { loadedAt: ClockReading; lookedAt: ClockReading };
type Entry<T> = LoadedContent<T> & { looks: EarlyLooks };

export function makeDocumentCache<T>(kind: DocumentKind<T>, context: FetchContext): DocumentCache<T> {
  const { clock, timers, budget } = context;
  const kept = makeLruCache<Entry<T>>(FETCHED_CACHE_MAX, FETCHED_CACHE_BYTES_MAX);
  const flights = new Map<string, ReturnType<typeof load<T>>>();
  const { isUsable, isDue } = ages(clock, kind.lastGoodSeconds);

  const begin = (
    key: string,
    where: SuppliedDocument,
    source: string | undefined,
    known: Entry<T> | undefined,
  ) => {
    // A new document is charged to the source and the host, on whatever port. A renewal has a budget of its own, by URL,
    // so that requests for invented URLs cannot use it up and no source pays for coming at that moment.
    const begun =
      known === undefined ? budget.begin(source, where.parsed.hostname) : budget.begin(undefined, where.url);
    if (!begun.ok) return err({ reason: "fetches_too_many", waitSeconds: begun.error } as const);
    const flight = load(kind, context, where, known)
      .then((loaded) => {
        if (loaded.ok) kept.keep(key, { looks: known?.looks ?? earlyLooks(key, where), ...loaded.value });
        return loaded;
      })
      .finally(() => {
        flights.delete(key);
        begun.value();
      });
    flights.set(key, flight);
    return flight;
  };

  const earlyLooks = (key: string, where: SuppliedDocument): EarlyLooks => {
    const look = async (): Promise<void> => {
      const known = kept.find(key);
      if (known !== undefined) await begin(key, where, undefined, known);
    };
    return makeEarlyLooks({ look, underWay: () => flights.get(key), clock, timers });
  };

  const get = async (
    where: SuppliedDocument,
    source: string | undefined,
    until: KeyWait | undefined,
  ): Promise<Result<T, FetchRefused>> => {
    const key = keyOf(where);
    const entry = kept.find(key);
    if (entry !== undefined && !isDue(entry)) return ok(entry.value);
    const flight = flights.get(key) ?? begin(key, where, source, entry);
    // The fetch goes on for others that wait for it and for the next request.
    const late = err(unfetched(`${kind.name}_timeout`, entry, isPermitted(where) ? "always" : "now"));
    const loaded = await Promise.race([flight, whenAborted(until?.fetched, late)]);
    if (loaded.ok) return ok(loaded.value.value);
    return entry !== undefined && isUsable(entry) ? ok(entry.value) : loaded;
  };

  return {
    get,
    async *copies(where, source, until) {
      const key = keyOf(where);
      const entry = kept.find(key);
      const fetchesItself = !flights.has(key) && (entry === undefined || isDue(entry));
      yield await get(where, source, until);
      // A fetch that this request began has brought what an early look could bring.
      if (fetchesItself) return;
      for await (const _ of kept.find(key)?.looks.fetches(until) ?? []) yield await get(where, source, until);
    },
  };
}

/** MCPC-D-24: of networks that the operator opened for clients, no answer tells whether anything is there. */
const isPermitted = ({ privateNetworks }: SuppliedDocument): boolean => privateNetworks.length > 0;

/** MCPC-D-17: a document that was good before has its own reason; of one that never was, nothing is told. */
const unfetched = (reason: Reason, before: object | undefined, failed: "now" | "always"): FetchRefused =>
  before === undefined ? { reason, failed } : { reason, failed, unreachable: true };

function whenAborted<R>(signal: AbortSignal | undefined, result: R): Promise<R> {
  return new Promise((resolve) => {
    if (signal?.aborted) resolve(result);
    signal?.addEventListener("abort", () => resolve(result), { once: true });
  });
}

/** A copy is used only under the permissions that it was fetched under. */
const keyOf = ({ url, privateNetworks, ca }: SuppliedDocument): string =>
  JSON.stringify([url, privateNetworks, ca]);

type Ages = Pick<Entry<unknown>, "freshSeconds" | "loadedAt" | "lookedAt">;

/** Decides what the age of a copy allows. */
function ages(clock: Clock, lastGoodSeconds: number) {
  const isYounger = ({ loadedAt }: Ages, seconds: number): boolean => {
    const max = clocksDisagree(clock, loadedAt) ? Math.min(seconds, UNKNOWN_AGE_SECONDS) : seconds;
    return msSince(clock, loadedAt) < max * 1000;
  };
  const isFresh = (entry: Ages): boolean =>
    !clocksDisagree(clock, entry.loadedAt) && isYounger(entry, entry.freshSeconds);
  const isUsable = (entry: Ages): boolean => isFresh(entry) || isYounger(entry, lastGoodSeconds);
  return {
    isUsable,
    /** A usable copy is revalidated at most once in `REFETCH_SECONDS`, whether that succeeds or not. */
    isDue(entry: Ages): boolean {
      if (!isUsable(entry)) return true;
      return !isFresh(entry) && msSince(clock, entry.lookedAt) >= REFETCH_SECONDS * 1000;
    },
  };
}

async function load<T>(
  kind: DocumentKind<T>,
  context: FetchContext,
  where: SuppliedDocument,
  known: Entry<T> | undefined,
): Promise<Result<LoadedContent<T>, FetchRefused>> {
  // The time is taken before the fetch, so that a slow answer does not count as younger than it is.
  const now = readClocks(context.clock);
  if (known !== undefined) known.lookedAt = now;
  const content = await fetchContent(kind, context, where, known);
  // CIMD-5.2-3, CIMD-5.2-4: failed fetches and invalid documents are not cached.
  return content.ok ? ok({ ...content.value, loadedAt: now, lookedAt: now }) : content;
}

async function fetchContent<T>(
  kind: DocumentKind<T>,
  { clock, resolver, timeoutMs, onFetch }: FetchContext,
  where: SuppliedDocument,
  known: Content<T> | undefined,
): Promise<Result<Content<T>, FetchRefused>> {
  const end = timeFetch(clock, (note) => onFetch?.(where.url, note));
  // Names in a private network may be known to the system resolver alone.
  const permitted = isPermitted(where);
  try {
    const options = defined<FetchOptions>({
      resolver: resolver ?? (permitted ? undefined : queryNames()),
      timeoutMs,
      ifNoneMatch: known?.etag,
    });
    const fetched = await fetchParsed(where.parsed, where, kind.bytesMax, options);
    const content = readContent(kind, where.url, fetched, known);
    end(content.ok ? undefined : content.error.reason);
    return content;
  } catch (fault) {
    if (!(fault instanceof FetchFailed)) throw fault;
    end(fault.message);
    // MCPC-D-24: nor is it told which names this network knows.
    const tells = permitted || (fault.reason === "name_unresolved" && known === undefined);
    const failed = maySucceedLater(fault) && !tells ? "now" : "always";
    return err(unfetched(`${kind.name}_${fault.reason}`, known, failed));
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
  const seconds = freshSeconds(fetched, { ...FRESH_BOUNDS, otherwise: before ?? FRESH_BOUNDS.otherwise });
  if (fetched.notModified && known !== undefined) return ok({ ...known, freshSeconds: seconds });
  const { text, contentType, etag } = fetched;
  // CIMD-4-4, PROD-4.3-4: only the media types of this kind are accepted.
  if (!kind.contentType.test(contentType)) return err({ reason: `${kind.name}_type_refused` });
  const value = kind.parse(url, text);
  if (!value.ok) return err({ reason: value.error.kind });
  return ok(defined<Content<T>>({ value: value.value, bytes: text.length, freshSeconds: seconds, etag }));
}

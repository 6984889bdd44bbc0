/**
 * Token buckets in this process: failed authentication by source and by (source, client), requests by client, security
 * events by issuer, registrations by source. What failed is told to wait; a valid proof is not, because the failures of
 * others at its address are not its own (RFC6749-2.3.1-8, PROD-8.3-1). Buckets run on the monotonic clock.
 */
import { hash } from "node:crypto";
import { SIGNALS_AT_ONCE, SIGNALS_PER_SECOND } from "../limits/signals.ts";
import type { Clock, Throttle } from "../ports.ts";
import type { Limits, Rate } from "../settings/sections.ts";
import { networkOf } from "../spec/rfc4291.ts";

/** The most buckets of each kind; beyond it, the bucket that was unused for longest is dropped. */
const BUCKETS_MAX = 10_000;

type Bucket = { tokens: number; atMs: number };

type Buckets = {
  /** Whole seconds until there is a token again; 0 where there is one. */
  waitSeconds(key: string): number;
  take(key: string): void;
  isFull(key: string): boolean;
};

export function makeThrottle(clock: Clock, rates: Limits): Throttle {
  const sources = makeBuckets(clock, rates.failuresPerMinuteBySource);
  const pairs = makeBuckets(clock, rates.failuresPerMinuteByClient);
  const clients = makeBuckets(clock, rates.requestsPerSecondByClient);
  const registrations = makeBuckets(clock, rates.registrationsPerHourBySource);
  const visitors = makeBuckets(clock, rates.pagesPerMinuteBySource);
  const events = makeBuckets(clock, { perSecond: SIGNALS_PER_SECOND, burst: SIGNALS_AT_ONCE });
  const managers = makeBuckets(clock, rates.registrationRequestsPerMinuteByClient);
  return {
    failed(source, clientId) {
      const subscriber = networkOf(source);
      const pair = clientId === undefined ? undefined : pairOf(subscriber, clientId);
      const byPair = pair === undefined ? 0 : pairs.waitSeconds(pair);
      const wait = Math.max(sources.waitSeconds(subscriber), byPair);
      if (wait > 0) return wait;
      sources.take(subscriber);
      if (pair !== undefined) pairs.take(pair);
      return 0;
    },
    failedLately: (source) => !sources.isFull(networkOf(source)),
    spend: (clientId) => spend(clients, clientId),
    takeEvent: (issuer) => spend(events, issuer),
    eventWait: (issuer) => events.waitSeconds(issuer),
    manage: (id) => spend(managers, id),
    visit: (source) => spend(visitors, networkOf(source)),
    register: (source) => spend(registrations, networkOf(source)),
  };
}

function spend(buckets: Buckets, key: string): number {
  const wait = buckets.waitSeconds(key);
  if (wait === 0) buckets.take(key);
  return wait;
}

/** The key is a digest, so that a long `client_id` in a request does not grow the memory used. */
function pairOf(subscriber: string, clientId: string): string {
  return hash("sha256", JSON.stringify([subscriber, clientId]), "base64url");
}

export function makeBuckets(clock: Pick<Clock, "monotonicMs">, { perSecond, burst }: Rate): Buckets {
  const buckets = new Map<string, Bucket>();
  const current = (key: string): Bucket => {
    const nowMs = clock.monotonicMs();
    const { tokens, atMs } = buckets.get(key) ?? { tokens: burst, atMs: nowMs };
    return { tokens: Math.min(burst, tokens + ((nowMs - atMs) / 1000) * perSecond), atMs: nowMs };
  };
  return {
    waitSeconds(key) {
      const { tokens } = current(key);
      return tokens >= 1 ? 0 : Math.ceil((1 - tokens) / perSecond);
    },
    isFull: (key) => current(key).tokens >= burst,
    take(key) {
      const { tokens, atMs } = current(key);
      buckets.delete(key);
      buckets.set(key, { tokens: Math.max(0, tokens - 1), atMs });
      if (buckets.size <= BUCKETS_MAX) return;
      const [oldest] = buckets.keys();
      if (oldest !== undefined) buckets.delete(oldest);
    },
  };
}

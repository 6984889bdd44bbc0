/**
 * Token buckets, in this process: guessing by source and by source and client, requests by client. Nobody is locked
 * out for good, and no stranger can spend a client's own bucket (RFC6749-2.3.1-8, PROD-8.3-1).
 */
import type { Clock, Rate, Rates, Throttle } from "../ports.ts";

/** As many as are remembered of each kind; beyond it the one that was not seen for longest is forgotten. */
const BUCKETS_MAX = 10_000;

type Bucket = { tokens: number; atMs: number };

export function makeThrottle(clock: Clock, rates: Rates): Throttle {
  const sources = makeBuckets(clock, rates.failuresBySource);
  const guesses = makeBuckets(clock, rates.failuresByClient);
  const clients = makeBuckets(clock, rates.requestsByClient);
  const guess = (source: string, clientId: string): string => JSON.stringify([source, clientId]);
  return {
    waitSeconds(source, clientId) {
      const bySource = sources.waitSeconds(source);
      const byClient = clientId === undefined ? 0 : guesses.waitSeconds(guess(source, clientId));
      return Math.max(bySource, byClient);
    },
    failed(source, clientId) {
      sources.take(source);
      if (clientId !== undefined) guesses.take(guess(source, clientId));
    },
    spend(clientId) {
      const wait = clients.waitSeconds(clientId);
      if (wait === 0) clients.take(clientId);
      return wait;
    },
  };
}

function makeBuckets(clock: Clock, { perSecond, burst }: Rate) {
  const buckets = new Map<string, Bucket>();
  const current = (key: string): Bucket => {
    const nowMs = clock.nowMs();
    const { tokens, atMs } = buckets.get(key) ?? { tokens: burst, atMs: nowMs };
    return { tokens: Math.min(burst, tokens + (Math.max(0, nowMs - atMs) / 1000) * perSecond), atMs: nowMs };
  };
  return {
    /** Whole seconds until there is a token again; 0 where there is one. */
    waitSeconds(key: string): number {
      const { tokens } = current(key);
      return tokens >= 1 ? 0 : Math.ceil((1 - tokens) / perSecond);
    },
    take(key: string): void {
      const { tokens, atMs } = current(key);
      buckets.delete(key);
      buckets.set(key, { tokens: Math.max(0, tokens - 1), atMs });
      const [oldest] = buckets.keys();
      if (buckets.size > BUCKETS_MAX && oldest !== undefined) buckets.delete(oldest);
    },
  };
}

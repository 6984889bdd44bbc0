/**
 * Token buckets, in this process: guessing by source and by source and client, requests by client, registrations by
 * source. Nobody is locked out for good, and no stranger can spend a client's own bucket (RFC6749-2.3.1-8, PROD-8.3-1).
 */
import { createHash } from "node:crypto";
import ipaddr from "ipaddr.js";
import type { Clock, Throttle } from "../ports.ts";
import type { Rate, Rates } from "../settings/settings.ts";

/** As many as are remembered of each kind; beyond it the one that was not seen for longest is forgotten. */
const BUCKETS_MAX = 10_000;
/** Guesses that were let in together, before the first of them had failed, are paid for afterwards: with at most this. */
const DEBT_SECONDS_MAX = 900;

type Bucket = { tokens: number; atMs: number };

export type Buckets = {
  /** Whole seconds until there is a token again; 0 where there is one. */
  waitSeconds(key: string): number;
  take(key: string): void;
};

export function makeThrottle(clock: Clock, rates: Rates): Throttle {
  // Without debt: a source may be many clients, and all of them would pay for one.
  const sources = makeBuckets(clock, rates.failuresBySource, 0);
  const guesses = makeBuckets(clock, rates.failuresByClient, DEBT_SECONDS_MAX);
  const clients = makeBuckets(clock, rates.requestsByClient, 0);
  const registrations = makeBuckets(clock, rates.registrationsBySource, 0);
  const managers = makeBuckets(clock, rates.registrationRequestsByClient, 0);
  return {
    waitSeconds(source, clientId) {
      const subscriber = subscriberOf(source);
      const bySource = sources.waitSeconds(subscriber);
      const byClient = clientId === undefined ? 0 : guesses.waitSeconds(pairOf(subscriber, clientId));
      return Math.max(bySource, byClient);
    },
    failed(source, clientId) {
      const subscriber = subscriberOf(source);
      sources.take(subscriber);
      if (clientId !== undefined) guesses.take(pairOf(subscriber, clientId));
    },
    spend: (clientId) => spend(clients, clientId),
    manage: (id) => spend(managers, id),
    register: (source) => spend(registrations, subscriberOf(source)),
  };
}

function spend(buckets: Buckets, key: string): number {
  const wait = buckets.waitSeconds(key);
  if (wait === 0) buckets.take(key);
  return wait;
}

/** One subscriber holds at least a /64 of IPv6: with an address for each guess there would be no limit. */
export function subscriberOf(source: string): string {
  return ipaddr.IPv6.isValid(source) ? ipaddr.IPv6.parse(source).parts.slice(0, 4).join(":") : source;
}

/** Of one length, whatever a stranger writes into `client_id`. */
function pairOf(subscriber: string, clientId: string): string {
  const pair = JSON.stringify([subscriber, clientId]);
  return createHash("sha256").update(pair).digest("base64url");
}

export function makeBuckets(clock: Clock, { perSecond, burst }: Rate, debtSecondsMax: number): Buckets {
  const buckets = new Map<string, Bucket>();
  const current = (key: string): Bucket => {
    const nowMs = clock.nowMs();
    const { tokens, atMs } = buckets.get(key) ?? { tokens: burst, atMs: nowMs };
    return { tokens: Math.min(burst, tokens + (Math.max(0, nowMs - atMs) / 1000) * perSecond), atMs: nowMs };
  };
  return {
    waitSeconds(key) {
      const { tokens } = current(key);
      return tokens >= 1 ? 0 : Math.ceil((1 - tokens) / perSecond);
    },
    take(key) {
      const { tokens, atMs } = current(key);
      buckets.delete(key);
      buckets.set(key, { tokens: Math.max(-perSecond * debtSecondsMax, tokens - 1), atMs });
      const [oldest] = buckets.keys();
      if (buckets.size > BUCKETS_MAX && oldest !== undefined) buckets.delete(oldest);
    },
  };
}

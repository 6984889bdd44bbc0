/** What the service counts for its metrics: requests by endpoint, recorded events, and what was told to wait. */
import type { AuditEvent } from "../audit/event.ts";
import type { Throttle } from "../ports.ts";
import type { LogEntry } from "./log.ts";
import { type Distribution, type Sample, type Samples, SECONDS, single } from "./metrics.ts";

export type Counters = {
  request(entry: LogEntry): void;
  /** Counts events by type and outcome, and those of clients with an assertion by what it named. */
  recorded(written: readonly { event: Pick<AuditEvent, "type" | "outcome" | "client"> }[]): void;
  /** Returns the same throttle; what it tells to wait is counted by kind. */
  throttling(throttle: Throttle): Throttle;
  /** Counts a connection that a listener did not take up. */
  refused(listener: string, why: string): void;
  /** PXC-D-14: counts a field that the proxy should have removed. */
  proxyField(field: string): void;
  /** Counts one batch of the journal, when the store has taken or refused it. */
  committed(entries: number, seconds: number): void;
  samples(): Pick<
    Samples,
    | "mandate_requests_total"
    | "mandate_request_duration_seconds"
    | "mandate_events_total"
    | "mandate_connections_refused_total"
    | "mandate_throttled_total"
    | "mandate_proxy_other_fields_total"
    | "mandate_assertions_total"
    | "mandate_journal_entries_total"
    | "mandate_journal_commit_seconds"
  >;
};

/**
 * The values of the label `path`. Any other path counts as "other"; of a path below one of these, the rest is left out.
 */
const ENDPOINTS = [
  "/token",
  "/jwks",
  "/register",
  "/introspect",
  "/revoke",
  "/revocations",
  "/jobs",
  "/signals",
  "/policy/explain",
  "/consents",
  "/audit/events",
  "/audit/checkpoints",
  "/audit/receipts",
  "/audit/logs",
  "/audit/consistency",
  "/authorize",
  "/ask",
  "/par",
  "/signin",
  "/callback",
  "/signout",
  "/signed-out",
  "/account",
  "/logo",
  "/backchannel-logout",
  "/rp/jwks",
  "/.well-known/oauth-authorization-server",
  "/.well-known/openid-configuration",
  "/.well-known/oauth-protected-resource",
  "/.well-known/ssf-configuration",
];

export function makeCounters(issuer: string): Counters {
  const requests = countRequests(issuer);
  const events = new Map<string, Sample<"mandate_events_total">>();
  const refusals = new Map<string, Sample<"mandate_connections_refused_total">>();
  const throttled = new Map<string, Sample<"mandate_throttled_total">>();
  const proxyFields = new Map<string, Sample<"mandate_proxy_other_fields_total">>();
  const assertions = new Map<string, Sample<"mandate_assertions_total">>();
  const commits = noDurations();
  let entriesCommitted = 0;
  return {
    recorded(written) {
      for (const { event } of written) {
        const { type, outcome, client } = event;
        // B7523-D-5
        if (client?.aud !== undefined) {
          const audience = client.aud === issuer ? "issuer" : "token-endpoint";
          count(assertions, audience, () => ({ audience }));
        }
        count(events, `${type} ${outcome}`, () => ({ type, outcome }));
      }
    },
    request: requests.request,
    refused(listener, why) {
      count(refusals, `${listener} ${why}`, () => ({ listener, why }));
    },
    proxyField(field) {
      count(proxyFields, field, () => ({ field }));
    },
    committed(entries, seconds) {
      entriesCommitted += entries;
      observe(commits, seconds);
    },
    throttling: (throttle) => countWaits(throttle, (kind) => count(throttled, kind, () => ({ kind }))),
    samples: () => ({
      ...requests.samples(),
      mandate_events_total: sorted(events),
      mandate_connections_refused_total: sorted(refusals),
      mandate_throttled_total: sorted(throttled),
      mandate_proxy_other_fields_total: sorted(proxyFields),
      mandate_assertions_total: sorted(assertions),
      mandate_journal_entries_total: single(entriesCommitted),
      mandate_journal_commit_seconds: [{ labels: {}, value: commits }],
    }),
  };
}

/** Requests by endpoint and status, and how long each kind of them lasted. */
function countRequests(issuer: string) {
  const base = new URL(issuer).pathname.replace(/\/$/, "");
  const requests = new Map<string, Sample<"mandate_requests_total">>();
  const durations = new Map<string, Sample<"mandate_request_duration_seconds">>();
  const endpointOf = (path: string): string => {
    const own = path.startsWith(`${base}/`) ? path.slice(base.length) : path;
    return ENDPOINTS.find((one) => own === one || own.startsWith(`${one}/`)) ?? "other";
  };
  return {
    request({ path: requestPath, status, grant = "", durationMs }: LogEntry): void {
      const path = endpointOf(requestPath);
      count(requests, `${path} ${status}`, () => ({ path, status: String(status) }));
      const outcome = outcomeOf(status);
      const key = `${path} ${grant} ${outcome}`;
      let lasted = durations.get(key);
      if (lasted === undefined) {
        lasted = { labels: { path, grant, outcome }, value: noDurations() };
        durations.set(key, lasted);
      }
      observe(lasted.value, durationMs / 1000);
    },
    samples: () => ({
      mandate_requests_total: sorted(requests),
      mandate_request_duration_seconds: sorted(durations),
    }),
  };
}

/** The same throttle; `counts` is told of each kind that waits. */
function countWaits(throttle: Throttle, counts: (kind: string) => void): Throttle {
  const counted =
    <A extends unknown[]>(kind: string, ask: (...of: A) => number) =>
    (...of: A): number => {
      const waitSeconds = ask(...of);
      if (waitSeconds > 0) counts(kind);
      return waitSeconds;
    };
  return {
    ...throttle,
    failed: counted("failures", throttle.failed),
    spend: counted("requests", throttle.spend),
    takeEvent: counted("events", throttle.takeEvent),
    eventWait: counted("events", throttle.eventWait),
    manage: counted("registration_requests", throttle.manage),
    visit: counted("pages", throttle.visit),
    register: counted("registrations", throttle.register),
  };
}

/** `key` tells what is counted; its labels are made once. */
function count<L>(counts: Map<string, { labels: L; value: number }>, key: string, labels: () => L): void {
  const counted = counts.get(key);
  if (counted === undefined) counts.set(key, { labels: labels(), value: 1 });
  else counted.value += 1;
}

const sorted = <S>(counts: ReadonlyMap<string, S>): readonly S[] =>
  [...counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one);

const outcomeOf = (status: number): string => {
  if (status === 0) return "gone";
  if (status < 400) return "answered";
  return status < 500 ? "refused" : "failed";
};

const noDurations = (): Distribution => ({ counts: SECONDS.map(() => 0), above: 0, sum: 0 });

function observe(distribution: Distribution, value: number): void {
  const index = SECONDS.findIndex((bound) => value <= bound);
  if (index < 0) distribution.above += 1;
  else distribution.counts[index] = (distribution.counts[index] ?? 0) + 1;
  distribution.sum += value;
}

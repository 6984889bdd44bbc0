/** The settings that a reload leaves as they are, by their paths in the configuration. */
import type { Config } from "../config/config.ts";

type Fixed = Config["fixed"];

/** The path of a setting, the rows of its members, or `null` if a reload takes it or nothing can change it. */
type Row<T> = string | null | ([T] extends [object] ? Rows<T> : never);
type Rows<T> = { readonly [K in Names<T>]: Row<Member<T, K>> };
type Names<T> = T extends unknown ? keyof T : never;
type Member<T, K> = T extends unknown ? (K extends keyof T ? NonNullable<T[K]> : never) : never;

const listener = (section: string) => ({
  host: `${section}.host`,
  port: `${section}.port`,
  key: null,
  cert: null,
  // It is set for all listeners at once.
  reusePort: section === "listen" ? "listen.reusePort" : null,
});

/** A setting without a row does not compile. */
const RESTART: Rows<Fixed> = {
  profile: null,
  listen: listener("listen"),
  drainSeconds: "listen.drainSeconds",
  mtls: { ...listener("mtls"), origin: "mtls.origin" },
  // Sign-in itself comes and goes with a reload, which says what of it does not.
  signsIn: null,
  proxy: {
    ...listener("proxy"),
    anchors: "proxy.ca",
    subject: "proxy.name",
    clientAddress: "proxy.clientAddress",
  },
  operations: { host: "operations.host", port: "operations.port" },
  store: {
    sqlite: "store.sqlite",
    postgres: "store.postgres",
    connections: "store.connections",
    socketFolder: "store.postgres",
    tls: "store.postgres",
  },
  storeStartSeconds: "store.startSeconds",
  encryptionKey: "keys.encryptionKey",
  otherEncryptionKey: "keys.otherEncryptionKey",
  keyService: "keys.service",
  audit: {
    instance: "audit.instance",
    leaseSeconds: "audit.leaseSeconds",
    checkpoint: "audit.checkpoint",
    witness: "audit.witness",
    retentionDays: "audit.retentionDays",
  },
  rates: {
    failuresBySource: "limits.failuresPerMinuteBySource",
    failuresByClient: "limits.failuresPerMinuteByClient",
    proofs: "limits.proofMillisecondsPerSecond",
    requestsByClient: "limits.requestsPerSecondByClient",
    pagesBySource: "limits.pagesPerMinuteBySource",
    registrationsBySource: "limits.registrationsPerHourBySource",
    registrationRequestsByClient: "limits.registrationRequestsPerMinuteByClient",
    fetchesBySource: "limits.fetchesPerMinuteBySource",
    fetchesByHost: "limits.fetchesPerMinuteByHost",
  },
  clockFile: null,
};

/** Compared by value; a section that came or went is named by each of its members. */
export const changedSettings = (inForce: Fixed, next: Fixed): readonly string[] =>
  differing(RESTART, inForce, next);

type AnyRow = string | null | { readonly [name: string]: AnyRow };

/** All paths of the table, for the reference of the configuration. */
export const RESTART_PATHS: readonly string[] = pathsIn(RESTART);

function pathsIn(row: AnyRow): readonly string[] {
  if (row === null) return [];
  return typeof row === "string" ? [row] : Object.values(row).flatMap(pathsIn);
}

function differing(row: AnyRow, old: unknown, next: unknown): readonly string[] {
  if (row === null) return [];
  if (typeof row === "string") return JSON.stringify(old) === JSON.stringify(next) ? [] : [row];
  return Object.entries(row).flatMap(([name, one]) => differing(one, Object(old)[name], Object(next)[name]));
}

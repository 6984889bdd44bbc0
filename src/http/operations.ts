/**
 * Health and metrics for the operator's tools, by plain HTTP on a listener of its own. Requests are not authenticated,
 * so no answer names a client or user: there are only numbers, and the names of trust domains and issuers.
 */
import * as limits from "../limits/connections.ts";
import type { SourceState } from "../ports.ts";
import { defined } from "../result.ts";
import type { Counters } from "./counters.ts";
import { listen } from "./listen.ts";
import { type Sample, single, writeMetrics } from "./metrics.ts";
import { createServer } from "./plain.ts";

export type ConfigurationState = {
  /** The digest of the policy set, as in the audit trail. */
  policy: string;
  /** When this configuration was taken. */
  sinceSeconds: number;
  /** Whether a later configuration, or a file that it names, was refused. */
  refused: boolean;
  /** The connections of the listeners, by their path. */
  certificates: readonly { where: string; endSeconds: number; state: "valid" | "ends_soon" | "ended" }[];
  /** Authorities and secrets of clients that are about to end, or have ended. */
  othersEnding: number;
};

/** The state of the service now. */
export type Watch = {
  /** What runs here; without commit and digest it runs from its sources. */
  build: { version: string; commit?: string; sha256?: string };
  /** Whether the store reads, and writes if its last write failed. */
  storeAnswers(): Promise<boolean>;
  /** Whether no other process can have the name of this instance. */
  hasName(): boolean;
  /**
   * The clock of this machine beside that of the database, which `database_differs` says to be the wrong one;
   * `aheadSeconds` is undefined where there is only one clock.
   */
  clock(): { state: "agrees" | "database_differs" | "differs"; aheadSeconds: number | undefined };
  /** Whether the server was told to stop. */
  stopping(): boolean;
  journal(): { open: boolean; pending: number };
  /** The connections to PostgreSQL in use and idle, and the calls that wait for one; undefined without PostgreSQL. */
  connections(): Readonly<Record<"in_use" | "idle" | "waiting", number>> | undefined;
  /** The state of this process; each reading begins the period of `loopDelaySeconds` again. */
  process(): {
    cpuSeconds: number;
    residentBytes: number;
    startSeconds: number;
    loopDelaySeconds: readonly { rank: string; seconds: number }[];
  };
  /** The bytes of our log that wait because they cannot be written, and how many lines were lost to that. */
  log(): { waitingBytes: number; lostLines: number };
  /**
   * Our signing keys that are active or announced; `changeSeconds` is the time until the next change, if one is known.
   */
  signingKeys(): readonly {
    labels: Sample<"mandate_signing_key_age_seconds">["labels"];
    ageSeconds: number;
    changeSeconds?: number;
  }[];
  /** The active keys at the key service; undefined without one. `signsTokens` tells whether any key of tokens signs. */
  keyService():
    | {
        signsTokens: boolean;
        keys: readonly (Pick<Sample<"mandate_key_service_works">, "labels"> & { works: boolean })[];
      }
    | undefined;
  /**
   * The state of the witness; undefined without one. `logsAhead` are the logs of which the store had fewer, or other,
   * records at the start than the witness.
   */
  witness(): { works: boolean; ageSeconds?: number; logsAhead: number } | undefined;
  /** The trust bundles, by trust domain. */
  trustDomains(): ReadonlyMap<string, SourceState>;
  /** The key sets, by issuer. */
  issuers(): ReadonlyMap<string, SourceState>;
  /** The receivers of security events, by the names of their streams. */
  streams(): ReadonlyMap<string, { waiting: number; oldestSeconds: number; reachable: boolean }>;
  configuration(): ConfigurationState;
};

export type Operations = { readonly address: string; readonly port: number; close(): Promise<void> };

type Page = { status: number; type: string; text: string; allow?: string };

const JSON_TYPE = "application/json";
const PLAIN = "text/plain; charset=utf-8";
const METRICS = "text/plain; version=0.0.4; charset=utf-8";

const READS = ["GET", "HEAD"];
const NOT_FOUND: Page = { status: 404, type: PLAIN, text: "there is nothing at this path\n" };
const METHOD_REFUSED: Page = {
  status: 405,
  type: PLAIN,
  text: "the method is not supported at this path\n",
  allow: "GET, HEAD",
};

export async function serveOperations(
  at: { host: string; port: number },
  watch: Watch,
  counters: Counters,
): Promise<Operations> {
  const pages = new Map<string, () => Promise<Page>>([
    ["/livez", async () => ({ status: 200, type: PLAIN, text: "ok\n" })],
    ["/readyz", () => readiness(watch)],
    ["/metrics", async () => ({ status: 200, type: METRICS, text: metrics(watch, counters) })],
  ]);
  const server = createServer(
    {
      headersTimeout: limits.HEADERS_TIMEOUT_MS,
      requestTimeout: limits.REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: limits.CHECK_INTERVAL_MS,
      maxHeaderSize: limits.HEADER_BYTES_MAX,
    },
    async ({ method = "", url }, response) => {
      const page = pages.get(url ?? "");
      const { status, type, text, allow } =
        page === undefined ? NOT_FOUND : READS.includes(method) ? await page() : METHOD_REFUSED;
      const headers = { "Content-Type": type, "Cache-Control": "no-store", Allow: allow };
      response.writeHead(status, defined<Record<string, string>>(headers));
      response.end(text);
    },
  );
  server.timeout = limits.IDLE_TIMEOUT_MS;
  server.maxConnections = limits.OPERATIONS_CONNECTIONS_MAX;
  const { address, port } = await listen(server, at);
  server.on("drop", () => counters.refused("operations", "limit"));
  server.on("error", () => counters.refused("operations", "files"));
  return {
    address,
    port,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

/**
 * Trust material that is too old is shown, but the server stays ready, because other clients are still served. With a
 * certificate that has ended it is not ready: every client that verifies it is refused here, and another instance may
 * have the next one. It is not ready either where the key service signs no token.
 */
async function readiness(watch: Watch): Promise<Page> {
  const store = await watch.storeAnswers();
  const journal = watch.journal().open;
  const name = watch.hasName();
  const { certificates } = watch.configuration();
  const clock = watch.clock();
  const keys = watch.keyService();
  const inDate = certificates.every(({ state }) => state !== "ended");
  const body = {
    ...watch.build, // HTTP-D-67
    ready:
      store &&
      journal &&
      name &&
      inDate &&
      clock.state !== "differs" &&
      keys?.signsTokens !== false &&
      !watch.stopping(),
    store: store ? "up" : "down",
    journal: journal ? "open" : "closed",
    name: name ? "held" : "lapsed",
    clock: clock.state,
    keyService: keys && shownKeys(keys),
    certificates: Object.fromEntries(
      certificates.map(({ where, endSeconds, state }) => {
        return [where, { ends: new Date(1000 * endSeconds).toISOString(), state }];
      }),
    ),
    trustDomains: Object.fromEntries(watch.trustDomains()),
    issuers: Object.fromEntries(watch.issuers()),
    // A receiver that fails keeps no instance from serving.
    streams: Object.fromEntries(watch.streams()),
    // No token and no workload of these is accepted: there is no copy, it is too old, or it has no key.
    withoutTrust: [...watch.trustDomains(), ...watch.issuers()].flatMap(([name, { state, keys }]) =>
      state === "none" || keys === 0 ? [name] : [],
    ),
  };
  return { status: body.ready ? 200 : 503, type: JSON_TYPE, text: `${JSON.stringify(body)}\n` };
}

const shownKeys = ({ keys, signsTokens }: NonNullable<ReturnType<Watch["keyService"]>>): string => {
  if (!signsTokens) return "fails";
  return keys.every(({ works }) => works) ? "signs" : "signs_in_part";
};

function metrics(watch: Watch, counters: Counters): string {
  const { policy, sinceSeconds, refused, certificates, othersEnding } = watch.configuration();
  const { waitingBytes, lostLines } = watch.log();
  const witness = watch.witness();
  const { state: clock, aheadSeconds } = watch.clock();
  const ours = watch.process();
  return writeMetrics({
    ...counters.samples(),
    ...keyMetrics(watch),
    ...sourceMetrics(watch),
    ...streamMetrics(watch),
    mandate_journal_pending: single(watch.journal().pending),
    mandate_store_connections: Object.entries(watch.connections() ?? {}).map(([state, value]) => ({
      labels: { state },
      value,
    })),
    mandate_log_waiting_bytes: single(waitingBytes),
    mandate_log_lost_lines_total: single(lostLines),
    mandate_witness_works: single(witness && Number(witness.works)),
    mandate_witness_logs_ahead: single(witness?.logsAhead),
    mandate_witness_age_seconds: single(witness?.ageSeconds),
    mandate_configuration_since_seconds: [{ labels: { policy }, value: sinceSeconds }],
    mandate_configuration_refused: single(Number(refused)),
    mandate_certificate_ends_seconds: certificates.map(({ where, endSeconds }) => ({
      labels: { where },
      value: endSeconds,
    })),
    mandate_authorities_and_secrets_ending: single(othersEnding),
    mandate_clock_ahead_seconds: single(aheadSeconds),
    mandate_database_clock_differs: single(
      aheadSeconds === undefined ? undefined : Number(clock === "database_differs"),
    ),
    mandate_event_loop_delay_seconds: ours.loopDelaySeconds.map(({ rank, seconds }) => ({
      labels: { rank },
      value: seconds,
    })),
    mandate_build_info: [
      { labels: { commit: "", sha256: "", ...watch.build, node: process.version }, value: 1 },
    ],
    process_cpu_seconds_total: single(ours.cpuSeconds),
    process_resident_memory_bytes: single(ours.residentBytes),
    process_start_time_seconds: single(ours.startSeconds),
  });
}

function keyMetrics(watch: Watch) {
  const keys = watch.signingKeys();
  return {
    mandate_signing_key_age_seconds: keys.map(({ labels, ageSeconds }) => ({ labels, value: ageSeconds })),
    mandate_signing_key_change_seconds: keys.flatMap(({ labels, changeSeconds }) =>
      sampleOf(labels, changeSeconds),
    ),
    mandate_key_service_works: (watch.keyService()?.keys ?? []).map(({ labels, works }) => ({
      labels,
      value: Number(works),
    })),
  };
}

/** Where keys come from that others publish. */
function sourceMetrics(watch: Watch) {
  const sources = [
    ...[...watch.trustDomains()].map(([name, state]) => ({ labels: { kind: "trust_domain", name }, state })),
    ...[...watch.issuers()].map(([name, state]) => ({ labels: { kind: "issuer", name }, state })),
  ];
  return {
    mandate_source_state: sources.flatMap(({ labels, state: { state: now } }) =>
      (["fresh", "last_good", "none"] as const).map((state) => ({
        labels: { ...labels, state },
        value: Number(state === now),
      })),
    ),
    mandate_source_age_seconds: sources.flatMap(({ labels, state }) => sampleOf(labels, state.ageSeconds)),
    mandate_source_keys: sources.flatMap(({ labels, state }) => sampleOf(labels, state.keys)),
  };
}

function streamMetrics(watch: Watch) {
  const streams = [...watch.streams()].map(([stream, state]) => ({ labels: { stream }, state }));
  return {
    mandate_signals_waiting: streams.map(({ labels, state }) => ({ labels, value: state.waiting })),
    mandate_signal_oldest_age_seconds: streams.map(({ labels, state }) => ({
      labels,
      value: state.oldestSeconds,
    })),
    mandate_stream_reachable: streams.map(({ labels, state }) => ({
      labels,
      value: Number(state.reachable),
    })),
  };
}

const sampleOf = <L>(labels: L, value: number | undefined) =>
  value === undefined ? [] : [{ labels, value }];

/**
 * Health and metrics for the operator's tools, by plain HTTP on a listener of its own. Requests are not authenticated,
 * so no answer names a client or user: there are only numbers, and the names of trust domains and issuers.
 * Metrics are in the Prometheus text format, version 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/
 */
import { createServer } from "node:http";
import type { AuditEvent } from "../audit/event.ts";
import * as limits from "../limits.ts";
import type { Journal, SourceState } from "../ports.ts";
import type { Entry } from "../records.ts";
import { defined } from "../result.ts";
import { listen } from "./listen.ts";
import type { LogEntry } from "./log.ts";

export type ConfigurationState = {
  /** The digest of the policy set, as in the audit trail. */
  policy: string;
  /** When this configuration was taken. */
  sinceSeconds: number;
  /** Whether a later one, or a file that it names, was refused. */
  refused: boolean;
  /** Of the listeners, by their path. */
  certificates: readonly { where: string; endSeconds: number; state: "valid" | "ends_soon" | "ended" }[];
  /** Authorities and secrets of clients that are about to end, or have ended. */
  othersEnding: number;
};

/** The state of the service now. */
export type Watch = {
  /** Whether the store reads, and writes if its last write failed. */
  storeAnswers(): Promise<boolean>;
  /** Whether no other process can have the name of this instance. */
  hasName(): boolean;
  /** The clock of this machine beside that of the database; `aheadSeconds` is undefined where there is only one. */
  clock(): { agrees: boolean; aheadSeconds: number | undefined };
  /** Whether the server was told to stop. */
  stopping(): boolean;
  journal(): { open: boolean; pending: number };
  /** Of our log: what waits because it cannot be written, and how many lines were lost to that. */
  log(): { waitingBytes: number; lostLines: number };
  /** Our signing keys that are active or announced; `changeSeconds`: until the next change, if one is known. */
  signingKeys(): readonly { labels: Labels; ageSeconds: number; changeSeconds?: number }[];
  /** Undefined without a witness. `logsAhead`: logs of which it had more, or other, records than the store at the start. */
  witness(): { works: boolean; ageSeconds?: number; logsAhead: number } | undefined;
  /** Trust bundles by trust domain. */
  trustDomains(): ReadonlyMap<string, SourceState>;
  /** Key sets by issuer. */
  issuers(): ReadonlyMap<string, SourceState>;
  configuration(): ConfigurationState;
};

export type Counters = {
  request(entry: LogEntry): void;
  /** The same journal; what it records is counted by type and outcome. */
  counting<J extends Journal>(journal: J): Journal;
  recorded(event: Pick<AuditEvent, "type" | "outcome">): void;
  lines(): readonly string[];
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

/** The values of the label `path`: any other path counts as "other", and what follows one of these is left out. */
const ENDPOINTS = [
  "/token",
  "/jwks",
  "/register",
  "/introspect",
  "/revoke",
  "/revocations",
  "/policy/explain",
  "/consents",
  "/audit/events",
  "/audit/checkpoints",
  "/.well-known/oauth-authorization-server",
  "/.well-known/openid-configuration",
];

export function makeCounters(issuer: string): Counters {
  const base = new URL(issuer).pathname.replace(/\/$/, "");
  const counts = new Map<string, { name: string; value: number }>();
  /** `key` tells what is counted; its name for the operator is made once. */
  const count = (key: string, name: () => string): void => {
    const counted = counts.get(key);
    if (counted === undefined) counts.set(key, { name: name(), value: 1 });
    else counted.value += 1;
  };
  const endpointOf = (path: string): string => {
    const own = path.startsWith(`${base}/`) ? path.slice(base.length) : path;
    return ENDPOINTS.find((one) => own === one || own.startsWith(`${one}/`)) ?? "other";
  };
  const recorded: Counters["recorded"] = ({ type, outcome }) =>
    count(`${type} ${outcome}`, () => sample("mandate_events_total", { type, outcome }));
  return {
    recorded,
    request({ path, status }) {
      const endpoint = endpointOf(path);
      count(`${endpoint} ${status}`, () =>
        sample("mandate_requests_total", { path: endpoint, status: String(status) }),
      );
    },
    counting: (journal) => ({
      async record(entry: Entry, deadline?: AbortSignal) {
        const outcome = await journal.record(entry, deadline);
        if (outcome.ok) recorded(entry.event);
        return outcome;
      },
    }),
    lines: () => [
      "# TYPE mandate_requests_total counter",
      "# TYPE mandate_events_total counter",
      ...[...counts.values()].map(({ name, value }) => `${name} ${value}`).sort(),
    ],
  };
}

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
 * Trust material that is too old is shown, but the server stays ready: other clients are still served. With a certificate
 * that has ended it is not: every client that verifies it is refused here, and another instance may have the next one.
 */
async function readiness(watch: Watch): Promise<Page> {
  const store = await watch.storeAnswers();
  const journal = watch.journal().open;
  const name = watch.hasName();
  const { certificates } = watch.configuration();
  const clock = watch.clock();
  const inDate = certificates.every(({ state }) => state !== "ended");
  const body = {
    ready: store && journal && name && inDate && clock.agrees && !watch.stopping(),
    store: store ? "up" : "down",
    journal: journal ? "open" : "closed",
    name: name ? "held" : "lapsed",
    clock: clock.agrees ? "agrees" : "differs",
    certificates: Object.fromEntries(
      certificates.map(({ where, endSeconds, state }) => {
        return [where, { ends: new Date(1000 * endSeconds).toISOString(), state }];
      }),
    ),
    trustDomains: Object.fromEntries(watch.trustDomains()),
    issuers: Object.fromEntries(watch.issuers()),
  };
  return { status: body.ready ? 200 : 503, type: JSON_TYPE, text: `${JSON.stringify(body)}\n` };
}

function metrics(watch: Watch, counters: Counters): string {
  const sources = [
    ...[...watch.trustDomains()].map(([name, state]) => ({ labels: { kind: "trust_domain", name }, state })),
    ...[...watch.issuers()].map(([name, state]) => ({ labels: { kind: "issuer", name }, state })),
  ];
  const lines = [
    ...counters.lines(),
    "# TYPE mandate_journal_pending gauge",
    `mandate_journal_pending ${watch.journal().pending}`,
    "# TYPE mandate_log_waiting_bytes gauge",
    `mandate_log_waiting_bytes ${watch.log().waitingBytes}`,
    "# TYPE mandate_log_lost_lines_total counter",
    `mandate_log_lost_lines_total ${watch.log().lostLines}`,
    ...witnessLines(watch.witness()),
    ...configurationLines(watch.configuration()),
    ...clockLines(watch.clock()),
    ...signingKeyLines(watch.signingKeys()),
    "# TYPE mandate_source_state gauge",
    ...sources.flatMap(({ labels, state }) =>
      (["fresh", "last_good", "none"] as const).map(
        (one) =>
          `${sample("mandate_source_state", { ...labels, state: one })} ${one === state.state ? 1 : 0}`,
      ),
    ),
    "# TYPE mandate_source_age_seconds gauge",
    ...sources.flatMap(({ labels, state: { ageSeconds } }) =>
      ageSeconds === undefined ? [] : [`${sample("mandate_source_age_seconds", labels)} ${ageSeconds}`],
    ),
  ];
  return `${lines.join("\n")}\n`;
}

const clockLines = ({ aheadSeconds }: ReturnType<Watch["clock"]>): readonly string[] =>
  aheadSeconds === undefined
    ? []
    : ["# TYPE mandate_clock_ahead_seconds gauge", `mandate_clock_ahead_seconds ${aheadSeconds}`];

function configurationLines(state: ConfigurationState): readonly string[] {
  const { policy, sinceSeconds, refused, certificates, othersEnding } = state;
  return [
    "# TYPE mandate_configuration_since_seconds gauge",
    `${sample("mandate_configuration_since_seconds", { policy })} ${sinceSeconds}`,
    "# TYPE mandate_configuration_refused gauge",
    `mandate_configuration_refused ${refused ? 1 : 0}`,
    "# TYPE mandate_certificate_ends_seconds gauge",
    ...certificates.map(
      ({ where, endSeconds }) => `${sample("mandate_certificate_ends_seconds", { where })} ${endSeconds}`,
    ),
    "# TYPE mandate_authorities_and_secrets_ending gauge",
    `mandate_authorities_and_secrets_ending ${othersEnding}`,
  ];
}

function signingKeyLines(keys: ReturnType<Watch["signingKeys"]>): readonly string[] {
  return [
    "# TYPE mandate_signing_key_age_seconds gauge",
    ...keys.map(
      ({ labels, ageSeconds }) => `${sample("mandate_signing_key_age_seconds", labels)} ${ageSeconds}`,
    ),
    "# TYPE mandate_signing_key_change_seconds gauge",
    ...keys.flatMap(({ labels, changeSeconds }) =>
      changeSeconds === undefined
        ? []
        : [`${sample("mandate_signing_key_change_seconds", labels)} ${changeSeconds}`],
    ),
  ];
}

function witnessLines(state: ReturnType<Watch["witness"]>): readonly string[] {
  if (state === undefined) return [];
  const { works, ageSeconds, logsAhead } = state;
  const age =
    ageSeconds === undefined
      ? []
      : ["# TYPE mandate_witness_age_seconds gauge", `mandate_witness_age_seconds ${ageSeconds}`];
  return [
    "# TYPE mandate_witness_works gauge",
    `mandate_witness_works ${works ? 1 : 0}`,
    "# TYPE mandate_witness_logs_ahead gauge",
    `mandate_witness_logs_ahead ${logsAhead}`,
    ...age,
  ];
}

type Labels = Readonly<Record<string, string>>;

function sample(name: string, labels: Labels): string {
  const pairs = Object.entries(labels).map(
    ([label, value]) => `${label}="${value.replace(/[\\"]/g, "\\$&").replaceAll("\n", "\\n")}"`,
  );
  return `${name}{${pairs.join(",")}}`;
}

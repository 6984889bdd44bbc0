/**
 * The metrics of this service, and how they are written: Prometheus text format, version 0.0.4,
 * https://prometheus.io/docs/instrumenting/exposition_formats/
 */

type Family = { type: "counter" | "gauge" | "histogram"; labels: readonly string[]; help: string };

const family =
  <const T extends Family["type"]>(type: T) =>
  <const L extends readonly string[]>(labels: L, help: string) => ({ type, labels, help });
const [counter, gauge, histogram] = [family("counter"), family("gauge"), family("histogram")];

/** The upper bounds of the buckets of a histogram, in seconds. */
export const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;

/** The number of values in each bucket, and above the last one; the numbers are not cumulative. */
export type Distribution = { counts: number[]; above: number; sum: number };

/** Every family, in the order in which they are written. The page of the metrics is generated from it. */
export const FAMILIES = {
  mandate_requests_total: counter(["path", "status"], "Requests answered, by endpoint and status."),
  mandate_request_duration_seconds: histogram(
    ["path", "grant", "outcome"],
    "Seconds from the head of a request to its answer; grant is that of a token request.",
  ),
  mandate_events_total: counter(
    ["type", "outcome"],
    "Events written to the audit trail, by type and outcome.",
  ),
  mandate_throttled_total: counter(["kind"], "Callers that were told to wait, by what they had too many of."),
  mandate_assertions_total: counter(
    ["audience"],
    "Audited requests of clients that proved themselves by an assertion, by its audience: the issuer, or a token endpoint, which RFC 10070 forbids; agents list tells which clients name that one.",
  ),
  mandate_proxy_other_fields_total: counter(
    ["field"],
    "Requests behind the proxy with a field for certificates of another form than the configured one: the proxy does not remove what clients send.",
  ),
  mandate_connections_refused_total: counter(
    ["listener", "why"],
    "Connections that were not taken up: the listener had as many as it may have, or no file could be opened.",
  ),
  mandate_journal_entries_total: counter(
    [],
    "Events that batches of the audit journal held, whether the store took them or not.",
  ),
  mandate_journal_commit_seconds: histogram(
    [],
    "Seconds until the store had taken or refused a batch of the audit journal.",
  ),
  mandate_journal_pending: gauge([], "Entries of the audit journal that wait to be written."),
  mandate_store_connections: gauge(
    ["state"],
    "Connections to PostgreSQL that are in use or idle, and calls that wait for one.",
  ),
  mandate_log_waiting_bytes: gauge([], "Bytes of log lines that wait because they cannot be written."),
  mandate_log_lost_lines_total: counter([], "Log lines that were lost because they could not be written."),
  mandate_witness_works: gauge([], "1 if the last checkpoint reached the witness, else 0."),
  mandate_witness_logs_ahead: gauge(
    [],
    "Logs of which the store had fewer, or other, records at the start than the witness knows.",
  ),
  mandate_witness_age_seconds: gauge([], "Seconds since a checkpoint reached the witness."),
  mandate_configuration_since_seconds: gauge(
    ["policy"],
    "When the configuration in force was taken, as a Unix time; policy is the digest in the audit trail.",
  ),
  mandate_configuration_refused: gauge([], "1 while a later configuration, or a file of it, is refused."),
  mandate_certificate_ends_seconds: gauge(["where"], "When a listener's certificate ends, as a Unix time."),
  mandate_authorities_and_secrets_ending: gauge(
    [],
    "Authorities and client secrets that end within 14 days or have ended.",
  ),
  mandate_clock_ahead_seconds: gauge([], "By how much this machine's clock is ahead of the database's."),
  mandate_database_clock_differs: gauge(
    [],
    "1 while the database's clock differs from those of all instances, which agree and serve.",
  ),
  mandate_signing_key_age_seconds: gauge(
    ["purpose", "alg", "state"],
    "Seconds since a signing key was created.",
  ),
  mandate_signing_key_change_seconds: gauge(
    ["purpose", "alg", "state"],
    "Seconds until the next change of a signing key.",
  ),
  mandate_key_service_works: gauge(
    ["purpose", "alg"],
    "1 if the key service signs with an active key, else 0.",
  ),
  mandate_signals_waiting: gauge(["stream"], "Security events that wait for the receiver of a stream."),
  mandate_signal_oldest_age_seconds: gauge(
    ["stream"],
    "Seconds since what the oldest of these tells of; 0 if none waits.",
  ),
  mandate_stream_reachable: gauge(
    ["stream"],
    "0 while the receiver of a stream has taken no security event for three tests, 1 otherwise.",
  ),
  mandate_source_state: gauge(
    ["kind", "name", "state"],
    "1 for the state of a trust bundle or key set, 0 for the other states.",
  ),
  mandate_source_age_seconds: gauge(["kind", "name"], "Seconds since a trust bundle or key set was fetched."),
  mandate_source_keys: gauge(
    ["kind", "name"],
    "Keys and authorities of a trust bundle or key set; with none, nothing of it is trusted.",
  ),
  mandate_event_loop_delay_seconds: gauge(
    ["rank"],
    "By how much timers of the process were late since the metrics were last read: half of them, 99 of 100, and all of them by no more.",
  ),
  mandate_build_info: gauge(
    ["commit", "sha256", "version", "node"],
    "Always 1; the version of this server and of the platform, and the commit and SHA-256 of a release; both are empty where it runs from its sources.",
  ),
  process_cpu_seconds_total: counter([], "CPU time of the process, in all its threads."),
  process_resident_memory_bytes: gauge([], "Resident memory of the process."),
  process_start_time_seconds: gauge([], "When the process started, as a Unix time."),
} satisfies Record<string, Family>;

type MetricName = keyof typeof FAMILIES;

export type Sample<N extends MetricName> = {
  labels: Readonly<Record<(typeof FAMILIES)[N]["labels"][number], string>>;
  value: (typeof FAMILIES)[N]["type"] extends "histogram" ? Distribution : number;
};

/** Every family has to be there, so that none is forgotten; one without samples is not written. */
export type Samples = { readonly [N in MetricName]: readonly Sample<N>[] };

/** One sample without labels; there is none for an undefined value. */
export const single = (value: number | undefined) => (value === undefined ? [] : [{ labels: {}, value }]);

/** The samples of a family stand together, after its HELP and TYPE. */
export function writeMetrics(samples: Samples): string {
  return Object.entries<Family>(FAMILIES)
    .map(([name, { type, help }]) => {
      const lines = samples[name as MetricName].map(({ labels, value }) =>
        typeof value === "number"
          ? `${name}${inBraces(labels)} ${value}\n`
          : writeHistogram(name, labels, value),
      );
      return lines.length === 0 ? "" : `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join("")}`;
    })
    .join("");
}

/** Writes the buckets, each with all that are below it, then the sum and the number. */
function writeHistogram(name: string, labels: Labels, { counts, above, sum }: Distribution): string {
  let below = 0;
  const buckets = SECONDS.map((bound, index) => {
    below += counts[index] ?? 0;
    return `${name}_bucket${inBraces({ ...labels, le: String(bound) })} ${below}\n`;
  });
  const all = below + above;
  buckets.push(`${name}_bucket${inBraces({ ...labels, le: "+Inf" })} ${all}\n`);
  return `${buckets.join("")}${name}_sum${inBraces(labels)} ${sum}\n${name}_count${inBraces(labels)} ${all}\n`;
}

type Labels = Readonly<Record<string, string>>;

function inBraces(labels: Labels): string {
  const pairs = Object.entries(labels).map(
    ([label, value]) => `${label}="${value.replace(/[\\"]/g, "\\$&").replaceAll("\n", "\\n")}"`,
  );
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

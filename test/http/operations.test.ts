import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { openJournal } from "../../src/adapters/audit/journal.ts";
import { clock } from "../../src/adapters/clock.ts";
import { random } from "../../src/adapters/crypto/random.ts";
import { openStore } from "../../src/adapters/store/open.ts";
import { type Counters, makeCounters } from "../../src/http/counters.ts";
import type { LogEntry } from "../../src/http/log.ts";
import { FAMILIES } from "../../src/http/metrics.ts";
import { type ConfigurationState, serveOperations, type Watch } from "../../src/http/operations.ts";
import type { SourceState, Throttle } from "../../src/ports.ts";
import { parseExposition } from "../support/exposition.ts";
import { inTime } from "../support/in-time.ts";
import { migratedFile } from "../support/migrated.ts";

const NOW = {
  time: "2026-11-21T00:00:00.000Z",
  level: "info",
  event: "request",
  requestId: "r",
  method: "POST",
} as const;

const request = (path: string, status = 200): LogEntry => ({
  ...NOW,
  path,
  status,
  durationMs: 1,
  address: "192.0.2.1",
});

const CERTIFICATE = { where: "listen.tls.cert", endSeconds: 1_790_000_000, state: "valid" } as const;
const IN_FORCE: ConfigurationState = {
  policy: "sha256:ab",
  sinceSeconds: 1_780_000_000,
  refused: false,
  certificates: [CERTIFICATE],
  othersEnding: 0,
};
const CERTIFICATES = { "listen.tls.cert": { ends: "2026-09-21T14:13:20.000Z", state: "valid" } };

const NO_THROTTLE: Throttle = {
  visit: () => 0,
  failed: () => 0,
  failedLately: () => false,
  spend: () => 0,
  takeEvent: () => 0,
  eventWait: () => 0,
  manage: () => 0,
  register: () => 0,
};

const PROCESS = {
  ...{ cpuSeconds: 1.5, residentBytes: 1024, startSeconds: 1_780_000_000 },
  loopDelaySeconds: [{ rank: "p99", seconds: 0.001 }],
};

const RSA = { purpose: "token", alg: "RS256" };

const HEALTHY: Watch = {
  storeAnswers: async () => true,
  hasName: () => true,
  clock: () => ({ state: "agrees", aheadSeconds: undefined }),
  stopping: () => false,
  journal: () => ({ open: true, pending: 0 }),
  log: () => ({ waitingBytes: 0, lostLines: 0 }),
  witness: () => undefined,
  trustDomains: () => new Map(),
  issuers: () => new Map(),
  configuration: () => IN_FORCE,
  signingKeys: () => [],
  keyService: () => undefined,
  streams: () => new Map(),
  connections: () => undefined,
  process: () => PROCESS,
  build: { version: "0.9.0" },
};

async function open(
  t: TestContext,
  watch: Partial<Watch> = {},
  counters: Counters = makeCounters("https://as.example"),
) {
  const operations = await serveOperations(
    { host: "127.0.0.1", port: 0 },
    { ...HEALTHY, ...watch },
    counters,
  );
  t.after(() => operations.close());
  const origin = `http://${operations.address}:${operations.port}`;
  const get = async (path: string, method = "GET") => {
    const response = await fetch(origin + path, { method });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  return { ...operations, get };
}

test("/livez answers 200 even if store and journal are down", async (t) => {
  const { get } = await open(t, {
    storeAnswers: async () => false,
    journal: () => ({ open: false, pending: 0 }),
  });
  const { status, text } = await get("/livez");
  assert.deepEqual([status, text], [200, "ok\n"]);
});

const states: [what: string, watch: Partial<Watch>, status: number, body: object][] = [
  ["ready with store and journal", {}, 200, { ready: true, store: "up", journal: "open", name: "held" }],
  [
    "not ready without its store",
    { storeAnswers: async () => false },
    503,
    { ready: false, store: "down", journal: "open", name: "held" },
  ],
  [
    "not ready when it was told to stop",
    { stopping: () => true },
    503,
    { ready: false, store: "up", journal: "open", name: "held" },
  ],
  [
    "not ready when its journal is closed",
    { journal: () => ({ open: false, pending: 0 }) },
    503,
    { ready: false, store: "up", journal: "closed", name: "held" },
  ],
  [
    "ready, and warns, when a certificate is about to end",
    { configuration: () => ({ ...IN_FORCE, certificates: [{ ...CERTIFICATE, state: "ends_soon" }] }) },
    200,
    {
      ...{ ready: true, store: "up", journal: "open", name: "held" },
      certificates: { "listen.tls.cert": { ...CERTIFICATES["listen.tls.cert"], state: "ends_soon" } },
    },
  ],
  [
    "not ready when its key service signs no token",
    { keyService: () => ({ signsTokens: false, keys: [{ labels: RSA, works: false }] }) },
    503,
    { ready: false, store: "up", journal: "open", name: "held", keyService: "fails" },
  ],
  [
    "ready, and says so, when its key service signs with some keys",
    { keyService: () => ({ signsTokens: true, keys: [{ labels: RSA, works: false }] }) },
    200,
    { ready: true, store: "up", journal: "open", name: "held", keyService: "signs_in_part" },
  ],
  [
    "not ready when its clock differs from that of the database",
    { clock: () => ({ state: "differs", aheadSeconds: 3.5 }) },
    503,
    { ready: false, store: "up", journal: "open", name: "held", clock: "differs" },
  ],
  [
    "ready, and says so, when the clock of the database alone differs (STORE-D-9)",
    { clock: () => ({ state: "database_differs", aheadSeconds: 3.5 }) },
    200,
    { ready: true, store: "up", journal: "open", name: "held", clock: "database_differs" },
  ],
  [
    "not ready when a certificate has ended",
    { configuration: () => ({ ...IN_FORCE, certificates: [{ ...CERTIFICATE, state: "ended" }] }) },
    503,
    {
      ...{ ready: false, store: "up", journal: "open", name: "held" },
      certificates: { "listen.tls.cert": { ...CERTIFICATES["listen.tls.cert"], state: "ended" } },
    },
  ],
  [
    "not ready when another process may have taken its name",
    { hasName: () => false },
    503,
    { ready: false, store: "up", journal: "open", name: "lapsed" },
  ],
];
for (const [what, watch, status, body] of states) {
  test(`/readyz is ${what}`, async (t) => {
    const { get } = await open(t, watch);
    const answer = await get("/readyz");
    assert.equal(answer.status, status);
    assert.equal(answer.headers.get("cache-control"), "no-store");
    assert.deepEqual(JSON.parse(answer.text), {
      version: "0.9.0",
      certificates: CERTIFICATES,
      clock: "agrees",
      ...body,
      trustDomains: {},
      issuers: {},
      streams: {},
      withoutTrust: [],
    });
  });
}

test("HTTP-D-67 /readyz and /metrics name commit and digest of a release", async (t) => {
  const build = { version: "0.9.0", commit: "c0ffee", sha256: "ab12" };
  const { get } = await open(t, { build });
  const { version, commit, sha256 } = JSON.parse((await get("/readyz")).text);
  assert.deepEqual({ version, commit, sha256 }, build);
  const info = `mandate_build_info{commit="c0ffee",sha256="ab12",version="0.9.0",node="${process.version}"} 1`;
  assert.ok((await get("/metrics")).text.includes(`\n${info}\n`));
});

test("/metrics names the configuration in force, whether a later one was refused, and what ends", async (t) => {
  const { get } = await open(t, {
    configuration: () => ({ ...IN_FORCE, refused: true, othersEnding: 2 }),
    clock: () => ({ state: "database_differs", aheadSeconds: -2.25 }),
  });
  const { text } = await get("/metrics");
  for (const line of [
    'mandate_configuration_since_seconds{policy="sha256:ab"} 1780000000',
    "mandate_configuration_refused 1",
    'mandate_certificate_ends_seconds{where="listen.tls.cert"} 1790000000',
    "mandate_authorities_and_secrets_ending 2",
    "mandate_clock_ahead_seconds -2.25",
    "mandate_database_clock_differs 1",
  ]) {
    assert.ok(text.includes(`\n${line}\n`), text);
  }
});

const AGED = new Map<string, SourceState>([
  ["one.example", { state: "fresh", ageSeconds: 5, keys: 2 }],
  ["empty.example", { state: "fresh", ageSeconds: 5, keys: 0 }],
  ["two.example", { state: "last_good", ageSeconds: 4000 }],
  ["three.example", { state: "none" }],
]);
const ISSUERS = new Map<string, SourceState>([
  ["https://idp.example", { state: "none", ageSeconds: 90_000 }],
]);

test("/readyz shows the age of trust bundles and issuer keys, names those without any trust, and stays ready without them", async (t) => {
  const { get } = await open(t, { trustDomains: () => AGED, issuers: () => ISSUERS });
  const { status, text } = await get("/readyz");
  assert.equal(status, 200);
  const { trustDomains, issuers, withoutTrust } = JSON.parse(text);
  assert.deepEqual(trustDomains, Object.fromEntries(AGED));
  assert.deepEqual(issuers, Object.fromEntries(ISSUERS));
  assert.deepEqual(withoutTrust, ["empty.example", "three.example", "https://idp.example"]);
});

test("/metrics has the state of each source and of the witness, and the number of pending events and lost lines", async (t) => {
  const { get } = await open(t, {
    trustDomains: () => AGED,
    issuers: () => ISSUERS,
    journal: () => ({ open: true, pending: 7 }),
    log: () => ({ waitingBytes: 12, lostLines: 3 }),
    witness: () => ({ works: false, ageSeconds: 90, logsAhead: 2 }),
  });
  const { headers, text } = await get("/metrics");
  assert.equal(headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  assert.ok(text.endsWith("\n"));
  const lines = text.split("\n");
  for (const line of [
    "mandate_journal_pending 7",
    "mandate_log_waiting_bytes 12",
    "mandate_log_lost_lines_total 3",
    "mandate_witness_works 0",
    "mandate_witness_age_seconds 90",
    "mandate_witness_logs_ahead 2",
    'mandate_source_age_seconds{kind="trust_domain",name="two.example"} 4000',
    'mandate_source_age_seconds{kind="issuer",name="https://idp.example"} 90000',
    'mandate_source_keys{kind="trust_domain",name="empty.example"} 0',
    'mandate_source_state{kind="trust_domain",name="one.example",state="fresh"} 1',
    'mandate_source_state{kind="trust_domain",name="one.example",state="last_good"} 0',
    'mandate_source_state{kind="trust_domain",name="two.example",state="last_good"} 1',
    'mandate_source_state{kind="trust_domain",name="three.example",state="none"} 1',
  ]) {
    assert.ok(lines.includes(line), line);
  }
  assert.doesNotMatch(text, /age_seconds\{[^}]*three\.example/, "a source without a copy has no age");
});

test("a strict reader takes the metrics, whatever is to be told: families together, HELP and TYPE first", async (t) => {
  const counters = makeCounters("https://as.example");
  const { get } = await open(
    t,
    {
      trustDomains: () => new Map([["one.example", { state: "fresh", ageSeconds: 1, keys: 1 }]]),
      issuers: () => new Map([["https://idp.example", { state: "last_good", ageSeconds: 2 }]]),
      witness: () => ({ works: true, ageSeconds: 3, logsAhead: 0 }),
      clock: () => ({ state: "agrees", aheadSeconds: -0.25 }),
      connections: () => ({ in_use: 1, idle: 2, waiting: 0 }),
      signingKeys: () => [
        { labels: { purpose: "token", alg: "ES256", state: "active" }, ageSeconds: 4, changeSeconds: 5 },
      ],
      keyService: () => ({ signsTokens: true, keys: [{ labels: RSA, works: true }] }),
      streams: () => new Map([["api", { waiting: 1, oldestSeconds: 2, reachable: true }]]),
    },
    counters,
  );
  counters.request(request("/token"));
  counters.request(request("/jwks"));
  const client = { client_id: "a", auth_method: "any", aud: "https://as.example" };
  counters.recorded([{ event: { type: "token.issued", outcome: "allow", client } }]);
  counters.refused("listen", "limit");
  counters.proxyField("SSL-Client-Cert");
  const throttle = { ...NO_THROTTLE, visit: () => 3 };
  assert.equal(counters.throttling(throttle).visit("192.0.2.1"), 3);
  const answer = await get("/metrics");
  const families = parseExposition(answer.text);
  assert.deepEqual([...families.keys()], Object.keys(FAMILIES));
  for (const [name, { type, help, labels }] of Object.entries(FAMILIES)) {
    const found = families.get(name) ?? assert.fail(name);
    assert.deepEqual([found.type, found.help], [type, help]);
    for (const one of found.samples.keys()) {
      assert.deepEqual(
        [...one.matchAll(/([a-z_][a-z0-9_]*)="/g)].flatMap(([, label]) => (label === "le" ? [] : [label])),
        labels,
        name,
      );
    }
  }
});

test("durations are told by endpoint, grant and outcome, in buckets that the largest belongs to as well", async (t) => {
  const counters = makeCounters("https://as.example");
  const { get } = await open(t, {}, counters);
  const grant = "client_credentials";
  for (const durationMs of [1, 1.5, 20_000]) counters.request({ ...request("/token"), grant, durationMs });
  counters.request({ ...request("/token", 400), grant: "other", durationMs: 4 });
  for (const status of [503, 0]) counters.request(request("/jwks", status));
  const lines = (await get("/metrics")).text.split("\n");
  const name = "mandate_request_duration_seconds";
  const ours = `path="/token",grant="${grant}",outcome="answered"`;
  for (const line of [
    `${name}_bucket{${ours},le="0.001"} 1`,
    `${name}_bucket{${ours},le="0.0025"} 2`,
    `${name}_bucket{${ours},le="10"} 2`,
    `${name}_bucket{${ours},le="+Inf"} 3`,
    `${name}_sum{${ours}} 20.0025`,
    `${name}_count{${ours}} 3`,
    `${name}_count{path="/token",grant="other",outcome="refused"} 1`,
    `${name}_count{path="/jwks",grant="",outcome="failed"} 1`,
    `${name}_count{path="/jwks",grant="",outcome="gone"} 1`,
  ]) {
    assert.ok(lines.includes(line), line);
  }
  const bounds = lines.flatMap((line) => line.split(`${name}_bucket{${ours},le="`)[1]?.split('"')[0] ?? []);
  assert.equal(bounds.join(" "), "0.001 0.0025 0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10 +Inf");
});

test("what the throttle tells to wait is counted by kind, and what it lets through is not", async (t) => {
  const counters = makeCounters("https://as.example");
  const { get } = await open(t, {}, counters);
  const counted = counters.throttling({
    ...NO_THROTTLE,
    failed: () => 2,
    spend: (id) => (id === "busy" ? 1 : 0),
  });
  assert.deepEqual(
    [
      counted.failed("192.0.2.1", "c"),
      counted.spend("busy"),
      counted.spend("idle"),
      counted.visit("192.0.2.1"),
    ],
    [2, 1, 0, 0],
  );
  const lines = (await get("/metrics")).text
    .split("\n")
    .filter((line) => line.startsWith("mandate_throttled"));
  assert.deepEqual(lines, [
    'mandate_throttled_total{kind="failures"} 1',
    'mandate_throttled_total{kind="requests"} 1',
  ]);
});

test("/metrics has the batches of the journal, the connections of the store, and this process", async (t) => {
  const counters = makeCounters("https://as.example");
  const { get } = await open(t, { connections: () => ({ in_use: 3, idle: 1, waiting: 9 }) }, counters);
  counters.committed(8, 0.004);
  counters.committed(1, 0.002);
  const lines = (await get("/metrics")).text.split("\n");
  for (const line of [
    "mandate_journal_entries_total 9",
    'mandate_journal_commit_seconds_bucket{le="0.0025"} 1',
    'mandate_journal_commit_seconds_bucket{le="+Inf"} 2',
    "mandate_journal_commit_seconds_count 2",
    'mandate_store_connections{state="in_use"} 3',
    'mandate_store_connections{state="waiting"} 9',
    'mandate_event_loop_delay_seconds{rank="p99"} 0.001',
    `mandate_build_info{commit="",sha256="",version="0.9.0",node="${process.version}"} 1`,
    "process_cpu_seconds_total 1.5",
    "process_resident_memory_bytes 1024",
    "process_start_time_seconds 1780000000",
  ]) {
    assert.ok(lines.includes(line), line);
  }
});

test("every route has a label of its own", () => {
  const source = readFileSync(join(import.meta.dirname, "../../src/app.ts"), "utf8");
  const routes = [...source.matchAll(/\[`\$\{base\}(\/[^`]+)`\]/g)].map(([, path = ""]) => path);
  assert.ok(routes.length > 20, "the route table is not found");
  const counters = makeCounters("https://as.example");
  for (const path of routes) counters.request(request(path.replace("*", "x")));
  const labels = counters.samples().mandate_requests_total.map(({ labels }) => labels.path);
  assert.ok(!labels.includes("other"), labels.join(" "));
});

test("quotes and line breaks in a name are escaped in its label", async (t) => {
  const name = 'https://idp.example/"} 1\n\\';
  const { get } = await open(t, { issuers: () => new Map([[name, { state: "fresh", ageSeconds: 1 }]]) });
  const { text } = await get("/metrics");
  const escaped = 'https://idp.example/\\"} 1\\n\\\\';
  assert.ok(text.includes(`mandate_source_age_seconds{kind="issuer",name="${escaped}"} 1\n`), text);
});

const paths: [path: string, label: string][] = [
  ["/token", "/token"],
  ["/t/token", "/token"],
  ["/t/register/c_1234", "/register"],
  ["/t/consents/abcd", "/consents"],
  ["/.well-known/oauth-authorization-server/t", "/.well-known/oauth-authorization-server"],
  ["/t/authorize/review", "/authorize"],
  ["/t/callback/company", "/callback"],
  ["/.well-known/oauth-protected-resource/t/api", "/.well-known/oauth-protected-resource"],
  ["/t/tokens", "other"],
  ["/t/", "other"],
  ["", "other"],
  ["/user@example.org", "other"],
];
test("requests are counted by endpoint and status, and unknown paths share one label", async (t) => {
  const counters = makeCounters("https://as.example/t");
  const { get } = await open(t, {}, counters);
  for (const [path] of paths) counters.request(request(path));
  counters.request(request("/t/token", 400));
  const { text } = await get("/metrics");
  const want = Map.groupBy(paths, ([, label]) => label);
  for (const [label, found] of want) {
    assert.ok(text.includes(`mandate_requests_total{path="${label}",status="200"} ${found.length}\n`), label);
  }
  assert.ok(text.includes('mandate_requests_total{path="/token",status="400"} 1\n'));
  const labels = [...text.matchAll(/requests_total\{path="([^"]*)"/g)].map(([, label]) => label);
  assert.deepEqual(new Set(labels), new Set(want.keys()));
});

test("recorded events are counted by type and outcome, and refused ones are not", async (t) => {
  const store = await openStore({ sqlite: await migratedFile() });
  const journal = await openJournal({ log: "as-1", store: store.log, clock, random, onFatal: assert.fail });
  const counters = makeCounters("https://as.example");
  journal.follow(counters.recorded);
  const event = { type: "token.issued", outcome: "allow", reason: "rule_match" } as const;
  const spend = {
    kind: "jti_fresh",
    issuer: "https://idp.example",
    jti: "1",
    expiresAtSeconds: 2e9,
  } as const;
  assert.ok((await journal.record({ event })).ok);
  assert.ok((await journal.record({ event, guards: [spend] })).ok);
  assert.ok(!(await journal.record({ event, guards: [spend] })).ok);
  await journal.record({ event: { ...event, type: "token.denied", outcome: "deny" } });
  assert.deepEqual(journal.status(), { open: true, pending: 0 });
  await journal.close();
  assert.deepEqual(journal.status(), { open: false, pending: 0 });
  await assert.rejects(journal.record({ event }));
  await store.close();
  const { get } = await open(t, { journal: () => journal.status() }, counters);
  const lines = (await get("/metrics")).text.split("\n").filter((line) => line.startsWith("mandate_events"));
  assert.deepEqual(lines, [
    'mandate_events_total{type="token.denied",outcome="deny"} 1',
    'mandate_events_total{type="token.issued",outcome="allow"} 2',
  ]);
  assert.equal((await get("/readyz")).status, 503);
});

test("B7523-D-5 events of clients with an assertion are counted by what it named, and those of others are not", async (t) => {
  const counters = makeCounters("https://as.example");
  const by = (aud?: string) => ({
    event: {
      type: "token.issued",
      outcome: "allow",
      client: { client_id: "a", auth_method: "any", ...(aud && { aud }) },
    } as const,
  });
  counters.recorded([
    by("https://as.example"),
    by("https://as.example/token"),
    by("https://as.example"),
    by(),
  ]);
  const { get } = await open(t, {}, counters);
  const lines = (await get("/metrics")).text
    .split("\n")
    .filter((line) => line.startsWith("mandate_assertions"));
  assert.deepEqual(lines, [
    'mandate_assertions_total{audience="issuer"} 2',
    'mandate_assertions_total{audience="token-endpoint"} 1',
  ]);
});

test("other paths answer 404, and other methods 405", async (t) => {
  const { get } = await open(t);
  for (const path of ["/", "/token", "/readyz/", "/readyz?verbose", "/METRICS"]) {
    assert.equal((await get(path)).status, 404, path);
  }
  for (const method of ["POST", "PUT", "DELETE", "OPTIONS"]) {
    const { status, headers } = await get("/readyz", method);
    assert.deepEqual([status, headers.get("allow")], [405, "GET, HEAD"], method);
  }
  const head = await get("/readyz", "HEAD");
  assert.deepEqual([head.status, head.text], [200, ""]);
});

test("closing the listener ends connections that a tool keeps open", async (t) => {
  const { port, close, get } = await open(t);
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  await get("/livez");
  const closed = once(socket, "close");
  await inTime(Promise.all([close(), closed]), "listener and connection close");
  await assert.rejects(get("/livez"));
});

test("/metrics tells the age of each signing key, and when it changes where that is known", async (t) => {
  const age = { ageSeconds: 100 };
  const { get } = await open(t, {
    signingKeys: () => [
      { labels: { purpose: "token", alg: "ES256", state: "active" }, ...age, changeSeconds: 900 },
      { labels: { purpose: "checkpoint", alg: "ES256", state: "active" }, ...age },
    ],
  });
  const { text } = await get("/metrics");
  assert.deepEqual(
    text.split("\n").filter((line) => line.includes("signing_key")),
    [
      "# HELP mandate_signing_key_age_seconds Seconds since a signing key was created.",
      "# TYPE mandate_signing_key_age_seconds gauge",
      'mandate_signing_key_age_seconds{purpose="token",alg="ES256",state="active"} 100',
      'mandate_signing_key_age_seconds{purpose="checkpoint",alg="ES256",state="active"} 100',
      "# HELP mandate_signing_key_change_seconds Seconds until the next change of a signing key.",
      "# TYPE mandate_signing_key_change_seconds gauge",
      'mandate_signing_key_change_seconds{purpose="token",alg="ES256",state="active"} 900',
    ],
  );
});

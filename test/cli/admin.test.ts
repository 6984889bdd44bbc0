import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, type TestContext, test } from "node:test";
import { type HostRun, runCommandLine } from "../../scripts/command-line.ts";
import { issueServerCertificate, makeAuthority } from "../../scripts/dev-pki.ts";
import { type ChainHead, checkRecord, eventHash } from "../../src/adapters/audit/chain.ts";
import { openJournal } from "../../src/adapters/audit/journal.ts";
import { clock, makeClock } from "../../src/adapters/clock.ts";
import { hash } from "../../src/adapters/crypto/hash.ts";
import { random } from "../../src/adapters/crypto/random.ts";
import { openStore } from "../../src/adapters/store/open.ts";
import type { EventLog, Head, Store, StoredEvent } from "../../src/adapters/store/store.ts";
import type { AuditEvent, LogPosition } from "../../src/audit/event.ts";
import { GENESIS_PREV, placeEvent, sealRecord } from "../../src/audit/event.ts";
import { FILTERS } from "../../src/audit/filters.ts";
import { escapeUnsafe } from "../../src/audit/safe-text.ts";
import { recordAsAdmin } from "../../src/cli/admin-log.ts";
import { eventLine, word } from "../../src/cli/text.ts";
import { loadConfig } from "../../src/config/config.ts";
import { buildEnding } from "../../src/policy/endings.ts";
import { type Clock, StoreUnavailable } from "../../src/ports.ts";
import type { Json, JsonObject } from "../../src/spec/rfc8259.ts";
import { canonicalize } from "../../src/spec/rfc8785.ts";
import { adding, makeJob } from "../adapters/store/jobs.contract.ts";
import { parseCommand, runCommand, spawnCommandLine } from "../support/host.ts";
import { migratedFile } from "../support/migrated.ts";
import { freshDatabase, type SharedPostgres, sharePostgres } from "../support/postgres.ts";
import { stop } from "../support/stop.ts";

const ISSUER = "https://as.example";
const IDP = "https://idp.example";
const PLANNER = "spiffe://td.example/agents/planner";
const BOOKING = "spiffe://td.example/agents/booking";
const API = "https://api.example";
const ALICE = { iss: IDP, sub: "alice" };

let folder: string;
let server: SharedPostgres;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "mandate-admin-"));
  const { keyPem, certPem } = await issueServerCertificate(await makeAuthority("Test authority"), [
    "localhost",
  ]);
  writeFileSync(join(folder, "key.pem"), keyPem);
  writeFileSync(join(folder, "cert.pem"), certPem);
  server = await sharePostgres();
});
after(() => stop(server, () => rmSync(folder, { recursive: true })));

type Where = { sqlite: string } | { postgres: string };
/** An empty store, a configuration that names it, and a connection to it that stays open. */
type Site = { config: string; store: Store; where: Where };

async function makeSite(t: TestContext, where: Where, instance = "as-1"): Promise<Site> {
  const config = configure(where, instance);
  const store = await openStore(where);
  t.after(() => store.close());
  return { config, store, where };
}

function configure(store: Where, instance = "as-1"): string {
  const file = join(folder, `${randomUUID()}.json`);
  const config = {
    version: 1,
    profile: "development",
    issuer: ISSUER,
    listen: { host: "127.0.0.1", port: 0, tls: { key: { file: "key.pem" }, cert: { file: "cert.pem" } } },
    store,
    keys: { encryptionKey: randomBytes(32).toString("base64url") },
    audit: { instance },
    trustedIssuers: { [IDP]: { keys: { url: `${IDP}/jwks` }, subjects: "keep" } },
    targets: [{ names: [API, "api"], scopes: ["trips.read", "trips.book"] }],
  };
  writeFileSync(file, JSON.stringify(config));
  return file;
}

const newFile = (): string => join(folder, `${randomUUID()}.sqlite`);
const sqliteSite = async (t: TestContext): Promise<Site> => makeSite(t, { sqlite: await migratedFile() });
const sites: Record<string, (t: TestContext) => Promise<Site>> = {
  SQLite: sqliteSite,
  PostgreSQL: async (t) => makeSite(t, { postgres: await freshDatabase(server) }),
};

type Run = HostRun;

const admin = (config: string, ...words: string[]): Promise<Run> =>
  runCommandLine(["--config", config, ...words]);
const adminProcess = (config: string, ...words: string[]): Promise<Run> =>
  spawnCommandLine(["--config", config, ...words]);

/** The same within this process. */
async function inside({ config, store }: Site, ...words: string[]): Promise<Run> {
  const loaded = loadConfig(config);
  assert.ok(loaded.ok);
  return runCommand(words, { settings: loaded.value.settings, store });
}

const lines = (run: Run): string[] => run.out.split("\n").slice(0, -1);

const WISH = {
  issuer: IDP,
  subject: "alice",
  actor: PLANNER,
  target: API,
  scope: "trips.read trips.book",
};

/** The arguments of `consent add`, with some changed and those that are undefined left out. */
function add(changes: Partial<Record<keyof typeof WISH | "expires", string | undefined>> = {}): string[] {
  const options = Object.entries({ ...WISH, ...changes }).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}`, value],
  );
  return ["consents", "add", ...options];
}

async function consent(site: Site, changes: Parameters<typeof add>[0] = {}): Promise<string> {
  const run = await inside(site, ...add(changes));
  assert.equal(run.code, 0, run.err);
  return run.out.trimEnd();
}

const nowSeconds = (): number => Math.floor(Date.now() / 1000);
const inForce = async ({ store }: Site) =>
  (await store.facts.consents(ALICE, PLANNER, nowSeconds())).map(({ id }) => id);
const bodies = async ({ store }: Site, log = "admin") =>
  (await store.log.read({ log, limit: 1000 })).map(({ body }) => JSON.parse(body));

/** Records events in the log of a running server. */
const serve = (site: Site, ...events: AuditEvent[]) => serveBy(clock, site, ...events);

async function serveBy(time: Clock, { store }: Site, ...events: AuditEvent[]): Promise<void> {
  const onFatal = (reason: string): void => assert.fail(reason);
  const journal = await openJournal({ log: "as-1", store: store.log, clock: time, random, onFatal });
  for (const event of events) assert.ok((await journal.record({ event })).ok);
  await journal.close();
}

const others: Store[] = [];
after(() => stop(...others));

/** Another connection to the same store, as another process has. */
async function openBeside({ where }: Site): Promise<Store> {
  const store = await openStore(where);
  others.push(store);
  return store;
}

const DENIED: AuditEvent = { type: "token_exchange.denied", outcome: "deny", reason: "no_rule" };

function issued(jti: string, parents: string[], more: Partial<AuditEvent> = {}): AuditEvent {
  return {
    type: "token_exchange.delegation",
    outcome: "allow",
    reason: "rule_match",
    granted: {
      jti,
      token_type: "Bearer",
      sub: "alice",
      aud: API,
      scope: "trips.read",
      exp: 1,
      fingerprint: "f",
      act_depth: 1,
      kid: "k",
      parent_jti: parents,
    },
    ...more,
  };
}

// --- consents, on both stores -----------------------------------------------------------------------------------

for (const [name, create] of Object.entries(sites)) {
  const check = (title: string, body: (site: Site) => Promise<void>) =>
    test(`${title} (${name})`, async (t) => body(await create(t)));

  check(
    "AUDIT-D-12 a retired log ends, and what the command did is in the log of the commands",
    async (site) => {
      await serve(site, DENIED);
      const head = await site.store.log.head("as-1");
      const run = await admin(site.config, "audit", "retire", "as-1");
      assert.equal(run.code, 0, run.err);
      const ended = await bodies(site, "as-1");
      assert.deepEqual(
        ended.map(({ type }) => type),
        ["log.genesis", DENIED.type, "log.ended"],
      );
      const { type, detail } = (await bodies(site)).at(-1);
      assert.deepEqual(
        [type, detail.log, detail.tree_size, detail.head],
        ["log.retired", "as-1", 2, head?.hash],
      );
      assert.equal((await inside(site, "audit", "verify")).code, 0);
      // The name is free again, and its log is not.
      await assert.rejects(serve(site, DENIED), /^LogEnded: the log "as-1" was retired on \d{4}-/);
      const again = await inside(site, "audit", "retire", "as-1");
      assert.deepEqual([again.code, /^Not retired: .* was retired on/.test(again.err)], [1, true]);
      assert.equal((await bodies(site, "as-1")).length, 3);
    },
  );

  check("AUDIT-D-12 the log of a running instance is not retired", async (site) => {
    await serve(site, DENIED);
    const { names } = await openBeside(site);
    const held = await names.take("as-1", { host: "node-1", pid: 4711 }, 60_000);
    assert.ok(held.ok);
    const renewing = setInterval(() => held.value.renew?.(), 50);
    const { code, err } = await inside(site, "audit", "retire", "as-1");
    clearInterval(renewing);
    assert.match(err, /^Not retired: the name "as-1" is in use: process 4711 on node-1 .* Stop it first/);
    assert.deepEqual([code, (await bodies(site, "as-1")).length], [1, 2]);
    await held.value.release();
  });

  check("PROD-2.6-4 a consent is in force from when it is added until it is withdrawn", async (site) => {
    const onFatal = (reason: string): void => assert.fail(reason);
    const running = await openJournal({ log: "as-1", store: site.store.log, clock, random, onFatal });
    const added = await adminProcess(site.config, ...add());
    assert.equal(added.code, 0, added.err);
    const [id = ""] = lines(added);
    assert.deepEqual(await inForce(site), [id]);
    const [found] = await site.store.facts.consents(ALICE, PLANNER, nowSeconds());
    assert.deepEqual(found, {
      id,
      version: 1,
      origin: ALICE,
      actor: PLANNER,
      targets: [API],
      scopes: ["trips.read", "trips.book"],
    });
    const withdrawn = await admin(site.config, "consents", "withdraw", id);
    assert.equal(withdrawn.code, 0, withdrawn.err);
    assert.deepEqual(await inForce(site), []);
    // The log of the running server was not written to.
    assert.ok((await running.record({ event: DENIED })).ok);
  });

  check("AUDIT-D-1 each change of a consent is an event, in one unbroken log", async (site) => {
    const id = await consent(site, { expires: "60" });
    await inside(site, "consents", "withdraw", id);
    const events = await bodies(site);
    assert.deepEqual(
      events.map(({ type, policy }) => [type, policy?.consent]),
      [
        ["log.genesis", undefined],
        ["consent.recorded", id],
        ["consent.withdrawn", id],
      ],
    );
    const { iss, sub, actor, targets, scope, expires_at: expiresAt } = events[1].detail;
    assert.deepEqual([iss, sub, actor, targets, scope], [IDP, "alice", PLANNER, [API], WISH.scope]);
    assert.ok(Math.abs(expiresAt - nowSeconds() - 60) < 30);
    assert.match(events[1].policy.digest, /^sha256:[0-9a-f]{64}$/);
    const verified = await inside(site, "audit", "verify");
    assert.equal(verified.code, 0, verified.err);
    const head = await site.store.log.read({ log: "admin", afterSeq: 1, limit: 1 });
    assert.match(verified.out, new RegExp(`^admin: 3 events, .* head ${head[0]?.hash}$`, "m"));
    assert.match(verified.out, /hash chain alone does not show a truncated tail/);
  });

  check("withdrawing a withdrawn or an unknown consent is refused", async (site) => {
    const id = await consent(site);
    const codes = [];
    for (const one of [id, id, "unknown"]) {
      codes.push((await inside(site, "consents", "withdraw", one)).code);
    }
    assert.deepEqual(codes, [0, 1, 1]);
    assert.equal((await bodies(site)).length, 3);
  });

  check("RFC9162-2.1.1-1 concurrent commands write one unbroken log", async (site) => {
    const runs = await Promise.all(Array.from({ length: 4 }, () => admin(site.config, ...add())));
    const made = runs.filter(({ code }) => code === 0).map(({ out }) => out.trimEnd());
    assert.ok(made.length > 0);
    for (const { code, err } of runs) assert.ok(code === 0 || /try again/.test(err), err);
    assert.deepEqual((await inForce(site)).toSorted(), made.toSorted());
    assert.equal((await bodies(site)).length, 1 + made.length);
    assert.equal((await inside(site, "audit", "verify")).code, 0);
  });

  check("RFC9162-2.1.1-1 a changed body is detected and its record named", async (site) => {
    await serve(site, DENIED, DENIED, DENIED);
    const change =
      "update event set body = replace(body, 'no_rule', 'rule_ok') where log = 'as-1' and seq = 2";
    if ("sqlite" in site.where) tamper(site.where.sqlite, change);
    else {
      const { default: postgres } = await import("postgres");
      const sql = postgres(site.where.postgres, { max: 1 });
      await sql.unsafe(change);
      await sql.end();
    }
    const verified = await admin(site.config, "audit", "verify");
    assert.equal(verified.code, 1);
    assert.match(
      verified.err,
      /^as-1: record 2 does not match its hash\nThe audit trail was changed\. .*\n$/,
    );
  });
}

/** A log in which another command writes first, for the given number of attempts. */
function crowded(log: EventLog, times: number): EventLog {
  let left = times;
  return {
    ...log,
    async append(batch) {
      if (left-- > 0) await recordAsAdmin({ log }, { event: DENIED });
      return log.append(batch);
    },
  };
}

test("AUDIT-D-12 only a log of an instance can be retired", async (t) => {
  const site = await sqliteSite(t);
  await serve(site, DENIED);
  const unknown = await inside(site, "audit", "retire", "as-2");
  assert.deepEqual([unknown.code, unknown.err], [1, "There is no log as-2. Existing logs: as-1\n"]);
  const own = await inside(site, "audit", "retire", "admin");
  assert.deepEqual([own.code, /cannot be retired/.test(own.err)], [1, true]);
  assert.equal((await parseCommand(["audit", "retire"])).ok, false);
});

test("AUDIT-D-1 a command retries when another command took its sequence number", async (t) => {
  const site = await sqliteSite(t);
  assert.equal(await recordAsAdmin({ log: crowded(site.store.log, 2) }, { event: issued("a", []) }), true);
  const reasons = (await bodies(site)).map(({ reason }) => reason);
  assert.deepEqual(reasons, ["log_opened", "no_rule", "no_rule", "rule_match"]);
});

test("AUDIT-D-1 a command that loses every attempt writes nothing and reports it", async (t) => {
  const site = await sqliteSite(t);
  const attempt = recordAsAdmin({ log: crowded(site.store.log, 100) }, { event: issued("a", []) });
  await assert.rejects(
    attempt,
    (fault) => fault instanceof StoreUnavailable && /try again/.test(fault.message),
  );
  assert.ok((await bodies(site)).every(({ reason }) => reason !== "rule_match"));
});

test("an id that begins with a hyphen is not read as an option", async (t) => {
  const site = await sqliteSite(t);
  const id = `-${randomBytes(16).toString("base64url").slice(1)}`;
  const jti = `-${randomBytes(16).toString("base64url").slice(1)}`;
  const kept = { id, version: 1, origin: ALICE, actor: PLANNER, targets: [API], scopes: ["trips.read"] };
  await recordAsAdmin(site.store, { event: issued(jti, []), consent: { add: kept } });
  assert.equal((await inside(site, "consents", "withdraw", id)).code, 0);
  assert.match((await inside(site, "audit", "--jti", jti)).out, new RegExp(`jti=${jti}`));
  assert.match((await inside(site, "audit", `--jti=${jti}`)).out, new RegExp(`jti=${jti}`));
});

const refusedConsents = [
  ["PROD-2.6-4 an issuer that is not trusted", { issuer: "https://idp.example/" }, "--issuer"],
  ["PROD-2.6-4 an unknown target", { target: "API" }, "--target"],
  ["PROD-2.6-4 a scope that no target has", { scope: "trips.read no.such.scope" }, "--scope"],
  [
    "RFC6749-10.14-1, NAME-D-8 a subject with a character that reverses",
    { subject: "a\u202ebc" },
    "the consent",
  ],
  ["RFC6749-3.3-1 scopes with two spaces", { scope: "trips.read  trips.book" }, "--scope"],
  ["RFC6749-3.3-1 a scope with a character that is not allowed", { scope: 'trips."read' }, "--scope"],
] as const;

for (const [name, changes, want] of refusedConsents) {
  test(`${name} is refused, and no consent is written`, async (t) => {
    const site = await sqliteSite(t);
    const run = await inside(site, ...add(changes));
    assert.equal(run.code, 1);
    assert.ok(run.err.startsWith(want), run.err);
    assert.equal(run.err.split("\n").length, 2);
    const told = (await bodies(site)).map(({ type, outcome }) => [type, outcome]);
    assert.deepEqual(told, [
      ["log.genesis", "allow"],
      ["admin.access", "deny"],
    ]);
    assert.deepEqual(await site.store.consents.list(), []);
  });
}

for (const [name, actor] of [
  ["a trust domain", "spiffe://td.example"],
  ["a pattern", "spiffe://td.example/*"],
  ["an OAuth client", "nightly-report"],
] as const) {
  test(`PROD-2.6-3 an actor that is ${name} is refused before the store is opened`, async () => {
    const command = await parseCommand(add({ actor }));
    assert.ok(!command.ok);
    assert.match(
      command.error,
      /^--actor .* is neither the SPIFFE ID of a workload nor the name of a platform's$/,
    );
  });
}

test("PROD-2.6-4 a consent may name several targets by any of their names, and a subject of this server", async (t) => {
  const site = await sqliteSite(t);
  const id = await consent(site, { issuer: ISSUER, subject: BOOKING, scope: "trips.read trips.read" });
  const run = await inside(site, ...add({ subject: "bob" }), "--target", "api", "--target", API);
  assert.equal(run.code, 0, run.err);
  const all = await site.store.consents.list();
  const [own] = all.filter((one) => one.id === id);
  const [other] = all.filter((one) => one.id !== id);
  assert.deepEqual([own?.origin, own?.scopes], [{ iss: ISSUER, sub: BOOKING }, ["trips.read"]]);
  assert.deepEqual(other?.targets, [API, "api"]);
});

test("POLICY-D-23 for a disabled subject neither command makes a consent or a job, and both say why", async (t) => {
  const site = await sqliteSite(t);
  const subject = ["--issuer", IDP, "--subject", "alice"];
  assert.equal((await inside(site, "tokens", "end", ...subject, "--disable")).code, 0);
  const job = ["jobs", "create", "--client", PLANNER, ...subject, "--title", "x"];
  for (const words of [add(), job]) {
    const { code, out, err } = await inside(site, ...words);
    assert.deepEqual([code, out], [1, ""]);
    assert.match(err, /the operator or its issuer disabled the subject/);
  }
  assert.deepEqual(await site.store.consents.list(), []);
  const denied = (await bodies(site)).filter(({ outcome }) => outcome === "deny");
  assert.deepEqual(
    denied.map(({ type, reason }) => [type, reason]),
    Array(2).fill(["admin.access", "subject_disabled"]),
  );
});

test("consents list prints every consent with its state, or only those of one issuer or subject", async (t) => {
  const site = await sqliteSite(t);
  const kept = { version: 1, actor: PLANNER, targets: [API], scopes: ["trips.read"], origin: ALICE };
  const adds = [
    { ...kept, id: "a" },
    { ...kept, id: "b", expiresAtSeconds: nowSeconds() - 1 },
    { ...kept, id: "c", expiresAtSeconds: nowSeconds() + 1000, origin: { iss: ISSUER, sub: "alice" } },
    { ...kept, id: "d", origin: { iss: IDP, sub: "bob" } },
  ];
  for (const one of adds) await recordAsAdmin(site.store, { event: DENIED, consent: { add: one } });
  await recordAsAdmin(site.store, { event: DENIED, consent: { withdraw: "d", atSeconds: 1_790_000_000 } });
  const listed = async (...words: string[]) =>
    lines(await inside(site, "consents", "list", ...words)).map((line) => line.split(" ").slice(0, 2));
  assert.deepEqual(await listed(), [
    ["a", "in-force"],
    ["b", "expired"],
    ["c", "in-force"],
    ["d", "withdrawn"],
  ]);
  assert.deepEqual(
    (await listed("--subject", "alice")).map(([id]) => id),
    ["a", "b", "c"],
  );
  assert.deepEqual(
    (await listed("--issuer", IDP)).map(([id]) => id),
    ["a", "b", "d"],
  );
  assert.deepEqual(
    (await listed("--issuer", IDP, "--subject", "alice")).map(([id]) => id),
    ["a", "b"],
  );
  const records = lines(await inside(site, "consents", "list", "--json")).map((one) => JSON.parse(one));
  assert.deepEqual(
    records.map(({ id }) => id),
    ["a", "b", "c", "d"],
  );
  assert.deepEqual(records[3], {
    id: "d",
    version: records[3].version,
    subject: { iss: IDP, sub: "bob" },
    actor: PLANNER,
    targets: [API],
    scope: "trips.read",
    withdrawn_at: 1_790_000_000,
    state: "withdrawn",
  });
  assert.deepEqual(
    records.map(({ state }) => state),
    ["in-force", "expired", "in-force", "withdrawn"],
  );
  const [line] = lines(await inside(site, "consents", "list", "--subject", "bob"));
  assert.equal(
    line,
    `d withdrawn issuer=${IDP} subject=bob actor=${PLANNER} target=${API} scope=trips.read ` +
      "withdrawn=2026-09-21T14:13:20.000Z",
  );
});

test("PAGE-D-34, JOB-D-6 consents list says of a consent whose job gives nothing any more why, and does not call it in force", async (t) => {
  const site = await sqliteSite(t);
  const kept = { version: 1, actor: PLANNER, targets: [API], scopes: ["trips.read"], origin: ALICE };
  const stateOf = async (id: string) =>
    lines(await inside(site, "consents", "list"))
      .map((line) => line.split(" "))
      .find(([one]) => one === id)?.[1];
  const bounds = { notAfterSeconds: nowSeconds() + 3600 };
  const job = makeJob({ id: "job_1", origin: ALICE, createdAtSeconds: nowSeconds(), bounds });
  const consent = { ...kept, id: "j", jobId: "job_1" };
  assert.ok(
    await recordAsAdmin(site.store, { event: DENIED, job: { ...adding(job).job, consents: [consent] } }),
  );
  await recordAsAdmin(site.store, {
    event: DENIED,
    consent: { add: { ...kept, id: "k", jobId: "job_gone" } },
  });
  assert.deepEqual([await stateOf("j"), await stateOf("k")], ["in-force", "job-unknown"]);
  assert.equal((await inside(site, "jobs", "end", "job_1")).code, 0);
  assert.equal(await stateOf("j"), "job-ended");
  const others = [
    { ...kept, id: "gone", targets: ["https://gone.example"] },
    { ...kept, id: "less", scopes: ["no.such.scope"] },
    { ...kept, id: "there", jobId: "job_2", jobIssuer: IDP },
  ];
  for (const one of others) await recordAsAdmin(site.store, { event: DENIED, consent: { add: one } });
  assert.deepEqual(
    [await stateOf("gone"), await stateOf("less"), await stateOf("there")],
    ["target-gone", "target-gone", "in-force"],
  );
  const ending = buildEnding(hash.sha256, { by: "job", iss: IDP, id: "job_2" }, Date.now());
  await recordAsAdmin(site.store, { event: DENIED, ending });
  assert.equal(await stateOf("there"), "job-ended");
});

// --- reading ----------------------------------------------------------------------------------------------------

test("AUDIT-D-6 reading the trail is recorded before anything is printed", async (t) => {
  const site = await sqliteSite(t);
  await serve(site, DENIED);
  const read = await inside(site, "audit", "--log", "as-1", "--type", DENIED.type, "--limit", "5");
  assert.equal(lines(read).length, 1);
  await inside(site, "audit", "--jti", "unknown");
  await inside(site, "audit", "verify");
  const [, ...events] = await bodies(site);
  assert.deepEqual(
    events.map(({ type, detail: { uid, ...rest } }) => [type, rest]),
    [
      ["admin.access", { command: "audit", log: "as-1", type: DENIED.type, limit: 5 }],
      ["admin.access", { command: "audit", jti: "unknown" }],
      ["admin.access", { command: "audit verify" }],
    ],
  );
});

test("AUDIT-D-18 a look at the trail needs of the configuration where it is and how agents are named, and names no policy", async (t) => {
  const site = await sqliteSite(t);
  await serve(site, { ...DENIED, policy: { digest: "sha256:0" }, detail: { actor: PLANNER } });
  const config = JSON.parse(readFileSync(site.config, "utf8"));
  const agents = { [PLANNER]: { title: "Trip planner" } };
  writeFileSync(site.config, JSON.stringify({ ...config, agents, policies: [{ id: "half" }], unknown: 1 }));
  const read = await adminProcess(site.config, "audit", "--type", DENIED.type);
  assert.equal(read.code, 0, read.err);
  assert.match(read.out, /actor=\S+\/planner \("Trip planner"\)/);
  assert.equal((await adminProcess(site.config, "audit", "verify")).code, 0);
  // An export has the public keys of the checkpoints, for which the key-encryption key is needed.
  const made = await adminProcess(site.config, "audit", "export", join(folder, randomUUID()));
  assert.deepEqual([made.code, made.out], [2, ""]);
  assert.match(made.err, /^Invalid configuration in /);
  const looks = (await bodies(site)).filter(({ type }) => type === "admin.access");
  assert.deepEqual(
    looks.map(({ policy, outcome, reason }) => [policy, outcome, reason]),
    Array(2).fill([undefined, "allow", "by_operator"]),
  );
  for (const wrong of [[], { ...config, store: { sqlite: 1 } }, { ...config, agents: { a: 1 } }]) {
    writeFileSync(site.config, JSON.stringify(wrong));
    const refused = await adminProcess(site.config, "audit");
    assert.deepEqual([refused.code, refused.out], [2, ""]);
    assert.match(refused.err, /^Invalid configuration in \S+:\n {2}\S/);
  }
});

test("AUDIT-D-6 nothing is printed if the access cannot be recorded", async (t) => {
  const site = await sqliteSite(t);
  await serve(site, DENIED);
  if (!("sqlite" in site.where)) assert.fail();
  tamper(
    site.where.sqlite,
    "create trigger stop before insert on event begin select raise(rollback, 'no'); end",
  );
  const read = await adminProcess(site.config, "audit");
  assert.notEqual(read.code, 0);
  assert.equal(read.out, "");
});

test("AUDIT-D-9 audit --request prints the events of one request, and the counts that name it", async (t) => {
  const site = await sqliteSite(t);
  const request = { id: "r-1", endpoint: "/token", source_ip: "192.0.2.1" };
  const detail = { source_ip: "192.0.2.1", endpoint: "/token", requests: ["r-0", "r-1"] };
  await serve(
    site,
    { ...DENIED, request },
    { ...DENIED, request: { ...request, id: "r-11" } },
    { type: "client.auth_failed", outcome: "deny", reason: "secret_wrong", count: 2, detail },
    DENIED,
  );
  const read = await inside(site, "audit", "--request", "r-1", "--log", "as-1");
  const shown = lines(read).map((line) => line.split(" ").slice(1, 3).join(" "));
  assert.deepEqual(shown, ["as-1/1 token_exchange.denied", "as-1/3 client.auth_failed"]);
  const last = await inside(site, "audit", "--request", "r-1", "--limit", "1");
  assert.match(last.out, /^\S+ as-1\/3 client\.auth_failed[^\n]*\n$/);
});

test("audit prints all logs by time, one log, one type, or the last N events", async (t) => {
  const site = await sqliteSite(t);
  // A second apart: events of one millisecond are ordered by log.
  await serveBy(
    makeClock(() => clock.nowMs() - 1000),
    site,
    DENIED,
    issued("a", []),
  );
  await consent(site);
  await serveBy(
    makeClock(() => clock.nowMs() + 1000),
    site,
    DENIED,
  );
  const shown = async (...words: string[]) =>
    lines(await inside(site, "audit", ...words)).map((line) => line.split(" ").slice(1, 3).join(" "));
  const first = ["as-1/0 log.genesis", "as-1/1 token_exchange.denied", "as-1/2 token_exchange.delegation"];
  const second = ["admin/0 log.genesis", "admin/1 consent.recorded"];
  assert.deepEqual(await shown(), [...first, ...second, "as-1/3 token_exchange.denied"]);
  assert.deepEqual(await shown("--log", "as-1"), [...first, "as-1/3 token_exchange.denied"]);
  assert.deepEqual(await shown("--type", "log.genesis"), [first[0], second[0]]);
  const { code, out, err } = await inside(site, "audit", "--type", "log.retired");
  assert.deepEqual([code, out, err], [0, "", "No event matches.\n"]);
  // PAGE-D-39: the number of a page without an event leads to the log.
  const paged = await inside(site, "audit", "--request", "4KDM-QX7R");
  assert.deepEqual([paged.code, paged.out], [0, ""]);
  assert.match(
    paged.err,
    /^No event matches\. .* in the log of the server, by "supportNumber" or "requestId"\.\n$/,
  );
  assert.deepEqual(await shown("--log", "as-1", "--limit", "2"), [first[2], "as-1/3 token_exchange.denied"]);
  assert.deepEqual(await shown("--type", DENIED.type, "--limit", "1"), ["as-1/3 token_exchange.denied"]);
  const unknown = await inside(site, "audit", "--log", "as-2");
  assert.deepEqual([unknown.code, unknown.out], [1, ""]);
});

test("POLICY-D-21, POLICY-D-22 a line of the trail has all that the nearest rule lacks, and the known name that was meant", async (t) => {
  const site = await sqliteSite(t);
  const trace = [
    { rule: "others", failed: "actor" },
    { rule: "far", failed: "subject", also: ["consent", "scope"] },
    { rule: "near", failed: "consent", also: ["scope"] },
  ];
  const meant = [{ asked: "bookin-agent", known: "booking-agent" }];
  await serve(site, { ...DENIED, policy: { digest: "sha256:0", trace, meant } });
  await serve(site, {
    ...DENIED,
    policy: { digest: "sha256:0", trace: [{ rule: "near", failed: "consent" }] },
  });
  const [both = "", alone = ""] = lines(await inside(site, "audit", "--type", DENIED.type));
  assert.match(both, / lacks=consent,scope meant=booking-agent /);
  assert.doesNotMatch(alone, /lacks=|meant=/);
});

const TRACED = { trace_id: "4bf92f3577b34da6a3ce929d0e0e4736", parent_id: "00f067aa0ba902b7" };

/** Each filter of the endpoint, as an option that chooses the events with this number in the log. */
const filterLines: readonly (readonly [option: string, value: string, rest: string[], numbers: number[]])[] =
  [
    ["since", "2026-09-21T14:13:22Z", [], [2, 3]],
    ["until", "2026-09-21T14:13:22Z", [], [0, 1]],
    ["request", "r-1", [], [1]],
    ["trace", TRACED.trace_id, [], [1]],
    ["issuer", IDP, ["--subject", "alice"], [2]],
    ["subject", "alice", ["--issuer", ISSUER], []],
    ["actor", PLANNER, [], [2]],
    ["client", "crew", [], [2]],
    ["target", API, [], [2, 3]],
    ["job", "job_crew", [], [2]],
    ["transaction", "txn_crew", [], [2]],
    ["rule", "crew-rule", [], [2]],
    ["outcome", "deny", [], [1, 3]],
    ["type", "token_exchange.delegation", [], [2]],
    ["reason", "no_rule", [], [1]],
    ["scope", "trips.read", [], [2, 3]],
  ];

for (const [option, value, rest, numbers] of filterLines) {
  test(`audit --${option} prints the events that fit, and no others`, async (t) => {
    const site = await sqliteSite(t);
    const request = { id: "r-1", endpoint: "/token", source_ip: "192.0.2.1", trace: TRACED };
    const requested = { audience: [API], resource: [], scope: "trips.read trips.book" };
    let nowMs = Date.parse("2026-09-21T14:13:20Z");
    await serveBy(
      makeClock(() => nowMs),
      site,
    );
    for (const event of [
      { ...DENIED, request },
      issued("a", [], {
        client: { client_id: "crew", auth_method: "client_secret_basic" },
        subject: {
          iss: IDP,
          sub: "alice",
          token: { type: "jwt", fingerprint: "f", txn: "txn_crew" },
          kind: "user",
        },
        chain: [{ iss: ISSUER, sub: PLANNER }],
        policy: { digest: "sha256:0", rule_id: "crew-rule" },
        job: { id: "job_crew" },
      }),
      { ...DENIED, reason: "scope_empty", requested } as const,
    ]) {
      nowMs += 1000;
      await serveBy(
        makeClock(() => nowMs),
        site,
        event,
      );
    }
    const run = await inside(site, "audit", `--${option}`, value, ...rest);
    assert.equal(run.code, 0, run.err);
    const printed = lines(run).map((line) => Number(/ as-1\/(\d+) /.exec(line)?.[1]));
    assert.deepEqual(printed, numbers);
    const [, access] = await bodies(site);
    assert.equal(access.detail[option], value);
  });
}

test("each filter of audit has its test above, and a row of the page with its name at the endpoint", () => {
  const options = Object.values(FILTERS).flatMap(({ option: one }) => one?.name ?? []);
  assert.deepEqual(filterLines.map(([option]) => option).toSorted(), options.toSorted());
  const page = readFileSync(join(import.meta.dirname, "../../src/audit/README.md"), "utf8");
  const rows = page.split("\n").filter((line) => line.startsWith("|"));
  for (const [name, { option }] of Object.entries(FILTERS)) {
    const wanted = option === undefined ? [`\`${name}`] : [`\`${name}\``, `\`--${option.name}\``];
    assert.ok(
      rows.some((row) => wanted.every((one) => row.includes(one))),
      name,
    );
  }
});

test("a wrong filter of the command line is named as its option", async () => {
  const wrong = await parseCommand(["audit", "--subject", "alice"]);
  assert.deepEqual(wrong, { ok: false, error: "--subject requires --issuer" });
  const late = await parseCommand(["audit", "--until", "today"]);
  assert.deepEqual(late, { ok: false, error: "--until is not a UTC time like 2027-01-31T00:00:00Z" });
});

test("RFC8785-3.2.4-1 --json prints the hashed bytes, with unsafe characters as JSON escapes", async (t) => {
  const site = await sqliteSite(t);
  await serve(site, DENIED, { ...DENIED, detail: { text: "a\u202eb\u009bc\u2028d\u{e0001}ü" } });
  const printed = lines(await inside(site, "audit", "--log", "as-1", "--json"));
  const stored = await site.store.log.read({ log: "as-1", limit: 10 });
  assert.deepEqual(
    printed.slice(0, 2),
    stored.slice(0, 2).map(({ body }) => body),
  );
  assert.match(printed[2] ?? "", /a\\u202eb\\u009bc\\u2028d\\udb40\\udc01ü/);
  for (const [index, { hash }] of stored.entries()) {
    assert.equal(eventHash(canonicalize(JSON.parse(printed[index] ?? "") as Json)), hash);
  }
});

test("audit --format prints lines of text, JSON or CSV", async (t) => {
  const site = await sqliteSite(t);
  await serve(site, { ...DENIED, detail: { client_id: "=cmd|' /C calc'!A0" } });
  const printed = async (...words: string[]) => inside(site, "audit", "--log", "as-1", ...words);
  const [plain, text] = [await printed(), await printed("--format", "text")];
  assert.equal(plain.out, text.out);
  assert.equal((await printed("--format", "ndjson")).out, (await printed("--json")).out);
  const csv = (await printed("--format", "csv")).out.split("\r\n");
  assert.match(csv[0] ?? "", /^time,log,seq,type,outcome,reason,client,/);
  assert.match(csv[2] ?? "", /^[^,]*,as-1,1,token_exchange\.denied,deny,no_rule,/);
  assert.deepEqual([csv.length, csv[3]], [4, ""]);
  const lineage = await inside(site, "audit", "--jti", "unknown", "--format", "csv");
  assert.equal(lineage.code, 1);
});

test("AUDIT-D-5 the lineage of a token is its ancestors and itself, oldest first, from all logs", async (t) => {
  const site = await sqliteSite(t);
  await serve(site, issued("root", []), issued("other", ["root"]), issued("middle", ["root"]));
  await recordAsAdmin(site.store, { event: issued("leaf", ["middle", "root"]) });
  await serve(site, DENIED);
  const lineage = await inside(site, "audit", "--jti", "leaf");
  assert.equal(lineage.code, 0, lineage.err);
  const jtis = lines(lineage).map((line) => / jti=(\S+)/.exec(line)?.[1]);
  assert.deepEqual(jtis, ["root", "middle", "leaf"]);
  const unknown = await inside(site, "audit", "--jti", "lea");
  assert.deepEqual([unknown.code, unknown.out], [1, ""]);
});

test("AUDIT-D-5 an ancestor without an event is reported", async (t) => {
  const site = await sqliteSite(t);
  await serve(site, issued("leaf", ["gone"]));
  const lineage = await inside(site, "audit", "--jti", "leaf", "--json");
  assert.equal(JSON.parse(lineage.out).granted.jti, "leaf");
  assert.match(lineage.err, /ancestor gone/);
});

// --- the chain --------------------------------------------------------------------------------------------------

function tamper(file: string, sql: string): void {
  const db = new DatabaseSync(file);
  db.exec(sql);
  db.close();
}

const tamperings: readonly (readonly [string, readonly string[], string])[] = [
  ["a removed record", ["delete from event where log = 'as-1' and seq = 2"], "record 2 is missing"],
  ["a removed first record", ["delete from event where log = 'as-1' and seq = 0"], "record 0 is missing"],
  [
    "two swapped records",
    [
      "update event set seq = -1 where log = 'as-1' and seq = 2",
      "update event set seq = 2 where log = 'as-1' and seq = 3",
      "update event set seq = 3 where log = 'as-1' and seq = -1",
    ],
    "record 2 does not contain the hash of the record before it",
  ],
  [
    "a changed body",
    ["update event set body = replace(body, 'no_rule', 'rule_ok') where log = 'as-1' and seq = 2"],
    "record 2 does not match its hash",
  ],
  [
    "a changed hash",
    ["update event set hash = 'f' where log = 'as-1' and seq = 3"],
    "record 3 does not match its hash",
  ],
  [
    "a type that differs from the body",
    ["update event set type = 'token.issued' where log = 'as-1' and seq = 1"],
    'record 1 does not match its body: "type" differs',
  ],
  [
    "a record moved to another log",
    ["update event set log = 'as-2' where log = 'as-1' and seq = 0"],
    "record 0 is missing",
  ],
];

for (const [name, statements, want] of tamperings) {
  test(`RFC9162-2.1.1-1 ${name} is detected and named, and the other logs are still verified`, async (t) => {
    const clean = newFile();
    const store = await openStore({ sqlite: clean });
    await serve({ store, config: "", where: { sqlite: clean } }, DENIED, DENIED, issued("a", []), DENIED);
    await recordAsAdmin(store, { event: DENIED });
    await store.close();
    const file = newFile();
    copyFileSync(clean, file);
    const site = await makeSite(t, { sqlite: file });
    tamper(file, statements.join("; "));
    const verified = await inside(site, "audit", "verify");
    assert.equal(verified.code, 1);
    assert.equal(verified.err.split("\n")[0], `as-1: ${want}`);
    assert.match(verified.out, /^admin: 2 events, /m);
  });
}

function seal(place: Partial<LogPosition>, type: AuditEvent["type"] = "token.issued"): StoredEvent {
  const full = { log: "as-1", seq: 1, id: "id", timeMs: 1_790_000_000_000, prev: "p".repeat(64), ...place };
  const body = sealRecord(
    placeEvent({ type, outcome: "allow", reason: "rule_match" }, { salt: "c2FsdHNhbHRzYWx0c2FsdA", ...full }),
  );
  return { ...full, type, body, hash: eventHash(body) };
}

const rehash = (event: StoredEvent, body: string): StoredEvent => ({ ...event, body, hash: eventHash(body) });
const HEAD: Head = { seq: 0, hash: "p".repeat(64) };
const first = seal({ seq: 0, prev: GENESIS_PREV }, "log.genesis");
const records: readonly (readonly [string, ChainHead | undefined, StoredEvent, string])[] = [
  ["RFC9162-2.1.1-1 a record that follows its head is accepted", HEAD, seal({}), "ok"],
  ["RFC9162-2.1.1-1 log.genesis as the first is accepted", undefined, first, "ok"],
  ["RFC8417-5.3-1 a gap is refused", HEAD, seal({ seq: 2 }), "record_missing"],
  ["RFC8417-5.3-1 a log without its first record is refused", undefined, seal({}), "record_missing"],
  ["RFC9162-2.1.1-1 a changed body is refused", HEAD, { ...seal({}), body: "{}" }, "hash_differs"],
  ["RFC9162-2.1.1-1 a changed hash is refused", HEAD, { ...seal({}), hash: "0" }, "hash_differs"],
  [
    "RFC9162-2.1.1-1 the hash of another predecessor is refused",
    HEAD,
    seal({ prev: GENESIS_PREV }),
    "prev_differs",
  ],
  [
    "RFC9162-2.1.1-1 a first record that names a predecessor is refused",
    undefined,
    seal({ seq: 0 }, "log.genesis"),
    "prev_differs",
  ],
  [
    "RFC9162-2.1.1-1 a first record of another type is refused",
    undefined,
    seal({ seq: 0, prev: GENESIS_PREV }),
    "genesis_misplaced",
  ],
  ["RFC9162-2.1.1-1 a second log.genesis is refused", HEAD, seal({}, "log.genesis"), "genesis_misplaced"],
  ["AUDIT-D-12 log.ended as the last is accepted", HEAD, seal({}, "log.ended"), "ok"],
  ["AUDIT-D-12 a record after the end is refused", { ...HEAD, ended: true }, seal({}), "record_after_end"],
  ["RFC8785-3.1-1 a body that is not JSON is refused", HEAD, rehash(seal({}), "{"), "body_malformed"],
  ["RFC8785-3.1-1 a body that is not an object is refused", HEAD, rehash(seal({}), "[]"), "body_malformed"],
  [
    "RFC8785-3.1-1 a body with a duplicate member is refused",
    HEAD,
    rehash(seal({}), seal({}).body.replace("{", '{"seq":1,')),
    "body_malformed",
  ],
  ["AUDIT-D-7 a body with another log is refused", HEAD, { ...seal({}), log: "as-2" }, "body_differs log"],
  [
    "AUDIT-D-7 a body with another sequence number is refused",
    HEAD,
    { ...seal({ seq: 2 }), seq: 1 },
    "body_differs seq",
  ],
  ["AUDIT-D-7 a body with another id is refused", HEAD, { ...seal({}), id: "other" }, "body_differs id"],
  [
    "AUDIT-D-7 a body with another type is refused",
    HEAD,
    { ...seal({}), type: "token.denied" },
    "body_differs type",
  ],
  ["AUDIT-D-7 a body with another time is refused", HEAD, { ...seal({}), timeMs: 0 }, "body_differs time"],
  ["AUDIT-D-7 an invalid time is refused", HEAD, { ...seal({}), timeMs: 9e15 }, "body_differs time"],
  [
    "AUDIT-D-7 a body with another predecessor is refused",
    HEAD,
    { ...seal({ prev: GENESIS_PREV }), prev: HEAD.hash },
    "body_differs prev",
  ],
  [
    "AUDIT-D-7 a body with another version is refused",
    HEAD,
    rehash(seal({}), seal({}).body.replace('"v":2', '"v":3')),
    "body_differs v",
  ],
];

for (const [name, head, event, want] of records) {
  test(name, () => {
    const got = checkRecord(head, event);
    const ended = event.type === "log.ended";
    if (got.ok) assert.deepEqual(got.value, { seq: event.seq, hash: event.hash, ended });
    const field = !got.ok && got.error.kind === "body_differs" ? ` ${got.error.field}` : "";
    assert.equal(got.ok ? "ok" : `${got.error.kind}${field}`, want);
  });
}

// --- text for a terminal ----------------------------------------------------------------------------------------

const texts = [
  ["AUDIT-D-7 a single word is left unquoted", "spiffe://td.example/a=b,c", "spiffe://td.example/a=b,c"],
  ["AUDIT-D-7 text that looks like another field is quoted", "a jti=b", '"a jti=b"'],
  ["AUDIT-D-7 the empty text is quoted", "", '""'],
  ["AUDIT-D-7 a quote is quoted", 'a"b', '"a\\"b"'],
  ["AUDIT-D-7 a backslash is quoted", "a\\u202e", '"a\\\\u202e"'],
  ["AUDIT-D-7 letters of any language are left readable", "Łukasz 山", '"Łukasz 山"'],
  ["AUDIT-D-7 the arrow of a chain is quoted", "a → b", '"a → b"'],
  ["AUDIT-D-7 a line end is escaped", "a\nb\r", '"a\\nb\\r"'],
  ["AUDIT-D-7 the escape character is escaped", "\u001b[2J", '"\\u001b[2J"'],
  ["AUDIT-D-7 delete and C1 controls are escaped", "\u007f\u009b", '"\\u007f\\u009b"'],
  [
    "AUDIT-D-7 marks that reverse the direction of text are escaped",
    "a\u202eb\u2066c",
    '"a\\u202eb\\u2066c"',
  ],
  ["AUDIT-D-7 invisible characters are escaped", "a\u200bb\u3164c\ufe0f", '"a\\u200bb\\u3164c\\ufe0f"'],
  ["AUDIT-D-7 other spaces and line ends are escaped", "a\u00a0b\u2028c", '"a\\u00a0b\\u2028c"'],
  ["AUDIT-D-7 a lone surrogate is escaped", "a\ud800", '"a\\ud800"'],
  ["AUDIT-D-7 a tag character beyond the basic plane is escaped", "\u{e0041}", '"\\udb40\\udc41"'],
] as const;

for (const [name, given, want] of texts) test(name, () => assert.equal(word(given), want));

test("AUDIT-D-7 a message keeps its text, with control characters escaped", () => {
  assert.equal(escapeUnsafe("no file a\u001b[1mb"), "no file a\\u001b[1mb");
});

const stored = (event: AuditEvent): StoredEvent => {
  const place = {
    log: "as-1",
    seq: 7,
    id: "id",
    timeMs: 1_790_000_000_000,
    prev: GENESIS_PREV,
    salt: "c2FsdHNhbHRzYWx0c2FsdA",
  };
  const body = sealRecord(placeEvent(event, place));
  return { ...place, type: event.type, body, hash: eventHash(body) };
};
const BEFORE = "2026-09-21T14:13:20.000Z as-1/7";
const party = (sub: string, iss = ISSUER) => ({ iss, sub, token: { type: "jwt", fingerprint: "f" } });
const chain = [
  { iss: ISSUER, sub: BOOKING },
  { iss: ISSUER, sub: PLANNER },
];

/** What `ends` of an event may be, and how a line tells it; the rest stays as it is stored. */
const endings: readonly (readonly [ends: JsonObject, sentence: string])[] = [
  [{ by: "token", jti: "j" }, "(the token j and its descendants)"],
  [{ by: "subject", iss: IDP, sub: "a b" }, `(every token about the subject "a b" of ${IDP})`],
  [{ by: "sign_in", iss: IDP, sid: "s" }, `(the user's sign-in s at ${IDP}, and what was issued for it)`],
  [{ by: "actor", spiffeId: PLANNER }, `(every token with ${PLANNER} among its actors)`],
  [{ by: "client", clientId: "c) x" }, '(every token of the client "c) x")'],
  [{ by: "trust_domain", name: "td.example" }, "(every token of the workloads of td.example)"],
  [{ by: "issuer", issuer: IDP }, `(every token about a subject of ${IDP})`],
  [{ by: "rule", id: "r" }, "(every token that the rule r allowed)"],
  [{ by: "consent", id: "c" }, "(every token that the consent c allowed)"],
  [{ by: "grant", id: "g" }, "(the refresh tokens of the user's grant g, and what was issued for them)"],
  [{ by: "every_grant" }, "(the refresh tokens of every user, and what was issued for them)"],
  [{ by: "key", kid: "k" }, "(every token that the key k signed)"],
  [{ by: "everything", upToMs: 1 }, "(every token)"],
  [{ by: "toString" }, String.raw`"{\"by\":\"toString\"}"`],
  [{ by: "token", jti: 1 }, String.raw`"{\"by\":\"token\",\"jti\":1}"`],
];

const eventLines: readonly (readonly [string, StoredEvent, string])[] = [
  [
    "PROD-6.1-1 a delegation shows its actors in the order in which they acted, the caller last",
    stored(
      issued("t", ["s"], {
        client: { client_id: "spiffe://td.example/crew/ana", auth_method: "spiffe_jwt" },
        subject: { ...party("alice", IDP), kind: "user" },
        actor: party("spiffe://td.example/crew/ana"),
        chain,
        policy: { digest: "sha256:0", rule_id: "crew", consent: "c1" },
      }),
    ),
    `${BEFORE} token_exchange.delegation allow rule_match client=spiffe://td.example/crew/ana subject=alice ` +
      `issuer=${IDP} chain=${PLANNER} → ${BOOKING} → spiffe://td.example/crew/ana target=${API} ` +
      "scope=trips.read jti=t rule=crew consent=c1 — a rule of the policy allows it",
  ],
  [
    "PROD-6.1-2 an impersonation shows the whole incoming chain, and no actor of its own",
    stored(issued("t", ["s"], { type: "token_exchange.impersonation", chain })),
    `${BEFORE} token_exchange.impersonation allow rule_match chain=${PLANNER} → ${BOOKING} target=${API} ` +
      "scope=trips.read jti=t — a rule of the policy allows it",
  ],
  [
    "AUDIT-D-2 a refusal shows its reason and what was requested",
    stored({ ...DENIED, requested: { audience: ["a", "b"], resource: [API], scope: "x y" } }),
    `${BEFORE} token_exchange.denied deny no_rule target=a,b,${API} scope="x y" — no rule of the policy allows it`,
  ],
  [
    "AUDIT-D-7 members of detail cannot look like other fields",
    stored({ ...DENIED, count: 2, detail: { source_ip: "::1", "a b": "c jti=d", list: ["x", "y z"], n: 1 } }),
    `${BEFORE} token_exchange.denied deny no_rule count=2 "a b"="c jti=d" list=x,"y z" n=1 source_ip=::1 ` +
      "— no rule of the policy allows it",
  ],
  [
    "AUDIT-D-7 an unreadable body is reported as such",
    { ...stored(DENIED), body: '{"outcome":1}' },
    `${BEFORE} has an unreadable body: run "audit verify"`,
  ],
  [
    "AUDIT-D-7 a tampered time, and a type that there is not, are escaped like any other text",
    { ...stored({ ...DENIED, type: "a\nb" as "token.denied" }), timeMs: 9e15 },
    '(no time) as-1/7 "a\\nb" deny no_rule — no rule of the policy allows it',
  ],
  [
    "a reason that there is no sentence of stands alone",
    stored({ ...DENIED, reason: "toString" as "no_rule" }),
    `${BEFORE} token_exchange.denied deny toString`,
  ],
  [
    "times in detail are written as times, in milliseconds and in seconds",
    stored({ ...DENIED, detail: { cut_off_ms: 1_790_000_000_500, expires_at: 1_790_000_000, n_ms: "a" } }),
    `${BEFORE} token_exchange.denied deny no_rule cut_off=2026-09-21T14:13:20.500Z ` +
      "expires_at=2026-09-21T14:13:20.000Z n_ms=a — no rule of the policy allows it",
  ],
  ...endings.map(
    ([ends, sentence]) =>
      [
        `an ending by ${ends.by} is told as a sentence`,
        stored({ type: "token.revoked", outcome: "allow", reason: "by_operator", detail: { ends } }),
        `${BEFORE} token.revoked allow by_operator ends=${sentence} — the operator did it at the command line`,
      ] as const,
  ),
];

const titles = (id: string): string | undefined =>
  id === PLANNER ? "Trip planner" : id === BOOKING ? 'a"b\u202e" actor=x' : undefined;
for (const [name, event, want] of eventLines) test(name, () => assert.equal(eventLine(event), want));

const titledLines: readonly (readonly [string, StoredEvent, string])[] = [
  [
    "NAME-D-1, NAME-D-6 the line of an event says the title of each agent behind its id, quoted",
    stored({ ...DENIED, client: { client_id: PLANNER, auth_method: "spiffe_jwt" }, chain }),
    String.raw`client=${PLANNER} ("Trip planner") chain=${PLANNER} ("Trip planner") → ${BOOKING} ("a\"b\u202e\" actor=x")`,
  ],
  [
    "NAME-D-2 an agent of which another server tells has no title in the line",
    stored({ ...DENIED, chain: [{ sub: PLANNER, iss: IDP, claimed: true }] }),
    `chain=${PLANNER}`,
  ],
  [
    "NAME-D-1 the line of a consent says the title of its agent",
    stored({ type: "consent.recorded", outcome: "allow", reason: "by_subject", detail: { actor: PLANNER } }),
    `actor=${PLANNER} ("Trip planner")`,
  ],
];
for (const [name, event, part] of titledLines) {
  test(name, () => {
    const line = eventLine(event, titles);
    assert.ok(line.includes(` ${part} —`), line);
  });
}

// --- the command line -------------------------------------------------------------------------------------------

const wrongLines: readonly (readonly [string, readonly string[]])[] = [
  ["no command", []],
  ["an unknown command", ["audit", "forget"]],
  ["an unknown option", ["audit", "--everything"]],
  ["an option of another command", ["audit", "verify", "--log", "as-1"]],
  ["an option without its value", ["audit", "--log"]],
  ["a duplicate option", [...add(), "--actor", BOOKING]],
  ["an empty option", add({ subject: "" })],
  ["a consent without a target", add({ target: undefined })],
  ["a consent without its subject", add({ subject: undefined })],
  ["a lifetime of zero", add({ expires: "0" })],
  ["a limit that is not a number", ["audit", "--limit", "1e3"]],
  ["--jti with a filter", ["audit", "--jti", "a", "--log", "as-1"]],
  ["a type that no event has", ["audit", "--type", "token.stolen"]],
  ["an outcome that no event has", ["audit", "--outcome", "denied"]],
  ["a reason that no event has", ["audit", "--reason", "because"]],
  ["a date without a time", ["audit", "--since", "2026-01-01"]],
  ["a subject without an issuer", ["audit", "--subject", "alice"]],
  ["a format that there is not", ["audit", "--format", "xml"]],
  ["two formats", ["audit", "--format", "csv", "--json"]],
  ["--jti with a request", ["audit", "--jti", "a", "--request", "r"]],
  ["a withdrawal without an id", ["consents", "withdraw"]],
  ["a withdrawal of two ids", ["consents", "withdraw", "a", "b"]],
];

for (const [name, words] of wrongLines) {
  test(`a command line is refused with ${name}`, async () => assert.ok(!(await parseCommand(words)).ok));
}

test("a command accepts its options in any order", async () => {
  for (const words of [
    ["audit", "--limit", "3", "--json", "--config", "a.json"],
    ["--config", "a.json", "audit", "--json", "--limit", "3"],
    ["--config=a.json", "tokens", "--dry-run", "end", "--everything"],
  ]) {
    const command = await parseCommand(words);
    assert.ok(command.ok && command.value.on !== "files", words.join(" "));
    assert.equal(command.value.configFile, "a.json");
  }
});

test("a command exits with 2, prints the usage and opens nothing for a wrong command line", async () => {
  const sqlite = newFile();
  const run = await admin(configure({ sqlite }), "audit", "forg\u009bet");
  assert.deepEqual([run.code, run.out], [2, ""]);
  assert.match(run.err, /^unknown command "audit forg\\u009bet"\n\nUsage:\n {2}mandate audit /);
  assert.ok(!existsSync(sqlite));
});

const wrongPlaces = [
  [
    "a missing configuration",
    2,
    () => join(folder, "none.json"),
    /^Invalid configuration in .*none\.json:\n {2}.*cannot be read/,
  ],
  [
    "a missing folder",
    3,
    () => configure({ sqlite: "none/a.sqlite" }),
    /there is no database of this server/,
  ],
  ["a file that is not a database", 3, () => configure({ sqlite: "pem.sqlite" }), /^SQLite answered 26/],
  [
    "an instance with the name of the admin log",
    2,
    () => configure({ sqlite: newFile() }, "admin"),
    /^ {2}audit\.instance/m,
  ],
  [
    "an unreachable database",
    3,
    () => configure({ postgres: "postgres://u:p@127.0.0.1:1/d" }),
    /^the connection/,
  ],
] as const;

for (const [name, code, config, want] of wrongPlaces) {
  test(`a command exits with ${code} and a message without a stack for ${name}`, async () => {
    writeFileSync(join(folder, "pem.sqlite"), "nothing of the kind ".repeat(100));
    const run = await admin(config(), "tokens", "disabled");
    assert.deepEqual([run.code, run.out], [code, ""]);
    assert.match(run.err, want);
    assert.doesNotMatch(run.err, /\n {4}at /);
  });
}

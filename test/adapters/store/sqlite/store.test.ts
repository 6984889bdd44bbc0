import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmod, mkdtemp, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { holdSqlite } from "../../../../scripts/trials/sqlite-lock.ts";
import { clientRows } from "../../../../src/adapters/store/clients.ts";
import { familyRows } from "../../../../src/adapters/store/families.ts";
import {
  openExistingStore,
  openStore,
  openUnchangedStore,
  pendingScripts,
  waitAtStart,
} from "../../../../src/adapters/store/open.ts";
import { pendingConsents } from "../../../../src/adapters/store/pending-consents.ts";
import { shortLivedRows } from "../../../../src/adapters/store/short-lived.ts";
import { sqliteAuditRows } from "../../../../src/adapters/store/sqlite/audit.ts";
import { openDatabase } from "../../../../src/adapters/store/sqlite/database.ts";
import { sqliteEngine } from "../../../../src/adapters/store/sqlite/engine.ts";
import { EXPIRED } from "../../../../src/adapters/store/sqlite/store.ts";
import type { KeyRow, PolledRow } from "../../../../src/adapters/store/store.ts";
import { STORE_WAL_BYTES_MAX } from "../../../../src/limits/store.ts";
import { StoreUnavailable } from "../../../../src/ports.ts";
import { migratedFile } from "../../../support/migrated.ts";
import { assertShort, stretch } from "../../../support/yardstick.ts";
import { fillSearched, testAuditRows, testIndexRows, testSearchCosts } from "../audit.contract.ts";
import { testRestoredMark } from "../copies.contract.ts";
import { testEndings } from "../endings.contract.ts";
import { testFamilies } from "../families.contract.ts";
import { testJobs } from "../jobs.contract.ts";
import { testKeys } from "../keys.contract.ts";
import { testNames } from "../names.contract.ts";
import { pending, testPendingConsents } from "../pending-consents.contract.ts";
import { testPolicies } from "../policies.contract.ts";
import { testRechecks } from "../rechecks.contract.ts";
import { testRegistrations } from "../registrations.contract.ts";
import { testShortLived } from "../short-lived.contract.ts";
import { testSignals } from "../signals.contract.ts";
import { type Harness, makeEvent, makeToken, testStore } from "../store.contract.ts";
import { testSubjectEmails } from "../subject-emails.contract.ts";
import { watchStatements } from "./plans.ts";

const testPlans = watchStatements();

const KEY: KeyRow = {
  kid: "k",
  alg: "ES256",
  purpose: "token",
  state: "active",
  publicJwk: "{}",
  privateJwe: "",
  createdAtSeconds: 0,
};
const POLLED: PolledRow = { kind: "trust_bundle", name: "a", location: "b", body: "{}", loadedAtSeconds: 0 };

async function makeFile(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "mandate-sqlite-"));
  t.after(() => rm(folder, { recursive: true }));
  return join(folder, "mandate.db");
}

const inMemory: Harness = {
  name: "SQLite in memory",
  shared: false,
  sql: "sqlite",
  async create(t) {
    const store = await openStore({ sqlite: ":memory:" });
    t.after(() => store.close());
    // A database in memory cannot be opened twice, so every instance is this one.
    return { open: async () => store };
  },
};
testStore(inMemory);
testAuditRows(inMemory);

const inFile: Harness = {
  name: "SQLite in a file",
  shared: true,
  sql: "sqlite",
  async create(t, { bare } = { bare: false }) {
    const file = bare ? await makeFile(t) : await migratedFile();
    return {
      async open(how = openStore) {
        const store = await how({ sqlite: file });
        t.after(() => store.close());
        return store;
      },
      async execute(sql) {
        using db = new DatabaseSync(file);
        db.exec(sql);
      },
      async select(sql) {
        using db = new DatabaseSync(file);
        return db.prepare(sql).all();
      },
    };
  },
};
testKeys(inFile);
testNames(inFile);
testRestoredMark(inFile);
testShortLived(inFile);
testFamilies(inFile);
testPendingConsents(inFile);
testJobs(inFile);
testRechecks(inFile);
testPolicies(inFile);
testSubjectEmails(inFile);
testSignals(inFile);
testStore(inFile);
testIndexRows(inFile);
testRegistrations(inFile);
testEndings(inFile);

test("AUDIT-D-1 the file has a write-ahead log that holds every commit", async (t) => {
  const file = await makeFile(t);
  const store = await openStore({ sqlite: file });
  t.after(() => store.close());
  await store.log.append([{ event: makeEvent("as-1", 0) }]);
  using db = new DatabaseSync(file);
  assert.equal(db.prepare("pragma journal_mode").get()?.journal_mode, "wal");
  // The event is in the write-ahead log before the store is closed.
  assert.ok((await stat(`${file}-wal`)).size > 0);
});

test("a write-ahead log that grew while another process was reading is cut back afterwards", async (t) => {
  const file = await makeFile(t);
  const store = await openStore({ sqlite: file });
  t.after(() => store.close());
  let seq = 0;
  const write = () => store.log.append([{ event: makeEvent("as-1", seq++, "x".repeat(1_000_000)) }]);
  using reader = new DatabaseSync(file);
  reader.exec("begin; select * from event");
  while (seq < 20) await write();
  assert.ok((await stat(`${file}-wal`)).size > 2 * STORE_WAL_BYTES_MAX);
  reader.exec("commit");
  // The first write copies the log into the database, the next one starts the log again.
  await write();
  await write();
  assert.ok((await stat(`${file}-wal`)).size <= STORE_WAL_BYTES_MAX);
});

test("the database and its write-ahead log become accessible only to their owner", async (t) => {
  const file = await makeFile(t);
  await writeFile(file, "");
  await chmod(file, 0o644);
  const store = await openStore({ sqlite: file });
  t.after(() => store.close());
  await store.log.append([{ event: makeEvent("as-1", 0) }]);
  for (const name of [file, `${file}-wal`, `${file}-shm`]) {
    assert.equal((await stat(name)).mode & 0o777, 0o600, name);
  }
});

test("a file locked by another process is unavailable at the deadline and available after the lock", async (t) => {
  const file = await makeFile(t);
  const store = await openStore({ sqlite: file }, 100);
  t.after(() => store.close());
  using other = new DatabaseSync(file);
  other.exec("begin immediate");
  const token = makeToken();
  const waited = stretch();
  await assert.rejects(
    async () => store.log.append([{ event: makeEvent("as-1", 0), token }]),
    StoreUnavailable,
  );
  assert.ok(waited.tookMs() >= 90);
  assertShort(waited, 1_000, "a write to a locked file", t);
  // Reading does not wait for the lock.
  assert.equal(await store.facts.token(token.jti), undefined);
  other.exec("rollback");
  assert.deepEqual(await store.log.append([{ event: makeEvent("as-1", 0), token }]), []);
});

/** Fails if the event loop stood still while `work` was under way. */
async function assertNeverBlocks<T>(work: Promise<T>): Promise<T> {
  const delay = monitorEventLoopDelay({ resolution: 5 });
  delay.enable();
  try {
    return await work;
  } finally {
    delay.disable();
    assert.ok(delay.max < 150e6, `the event loop stood still for ${delay.max / 1e6} ms`);
  }
}

test("while another process holds the file, every write waits without blocking the event loop", async (t) => {
  const file = await makeFile(t);
  const store = await openStore({ sqlite: file }, 400);
  t.after(() => store.close());
  await store.log.append([{ event: makeEvent("as-1", 0) }]);
  using other = new DatabaseSync(file);
  other.exec("begin immediate");
  const refused = [
    store.log.append([{ event: makeEvent("as-1", 1), token: makeToken() }]),
    store.keys.insertIfNone(KEY),
    store.polled.save(POLLED),
    store.polled.retain("trust_bundle", []),
    store.audit.prune("as-1", 1, 1),
    store.audit.sweep(0, 1),
    store.registrations.sweep(0, 1),
  ].map((write) => assert.rejects(async () => write, StoreUnavailable));
  await assertNeverBlocks(Promise.all(refused));
  // What is asked while the file is held is written when it is released.
  const waiting = store.log.append([{ event: makeEvent("as-1", 1) }]);
  await setImmediate();
  other.exec("rollback");
  assert.deepEqual(await waiting, []);
});

test("while another process holds the file, /livez and /jwks answer and callers wait for it", async (t) => {
  const outcome = await holdSqlite(3_000);
  const report = JSON.stringify({ ...outcome, statuses: [...outcome.statuses] });
  // A server that waited inside SQLite would answer nothing from the first write on until the lock ends.
  if (outcome.answers < 5 && outcome.calmMs > 300) {
    return t.skip(`this machine was too busy: an answer took ${outcome.calmMs} ms before the lock`);
  }
  assert.ok(outcome.answers >= 5, report);
  assert.deepEqual([...outcome.statuses, outcome.after], [200, 200], report);
});

test("no removal of expired rows waits for the disk", async (t) => {
  const file = await makeFile(t);
  await (await openStore({ sqlite: file })).close();
  const database = openDatabase(file, { timeoutMs: 100, mustExist: true, mustBeCurrent: true });
  t.after(() => database.db.close());
  const waits = () => assert.fail("a removal that waits for the disk");
  const watched = { ...database, run: waits, write: waits };
  const engine = sqliteEngine(watched);
  const tables = [
    sqliteAuditRows(watched),
    clientRows(engine).registrations,
    familyRows(engine),
    shortLivedRows(engine, EXPIRED),
  ];
  for (const rows of tables) assert.equal(await rows.sweep(0, 1), 0);
  assert.equal(await pendingConsents(engine).remove(pending("gone"), 0), 0);
});

test("AUDIT-D-16 a search that finds nothing takes as many statements among many events as among few on SQLite", async (t) => {
  const file = await makeFile(t);
  const store = await openStore({ sqlite: file });
  await fillSearched(store);
  await store.close();
  const database = openDatabase(file, { timeoutMs: 1_000, mustExist: true, mustBeCurrent: true });
  t.after(() => database.db.close());
  let statements = 0;
  const run: typeof database.run = (work) => {
    statements++;
    return database.run(work);
  };
  const { find } = sqliteAuditRows({ ...database, run });
  const execute = async (text: string) => database.db.exec(text);
  await testSearchCosts({ find, statements: () => statements, execute });
});

async function fastestMs(work: () => unknown): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < 10; round++) {
    const beganMs = performance.now();
    await work();
    times.push(performance.now() - beganMs);
  }
  return Math.min(...times);
}

test("a removal of what people began does not look at the rows that live", async (t) => {
  const file = await makeFile(t);
  const { shortLived, close } = await openStore({ sqlite: file });
  t.after(close);
  using db = new DatabaseSync(file);
  db.exec(
    `with recursive n (i) as (select 1 union all select i + 1 from n where i < 50000)
     insert into short_lived (kind, key, version, body, expires_at)
       select iif(i % 2, 'session', 'request'), 'k' || i, 1, '{}', 1000 from n`,
  );
  const scan = db.prepare("select count(*) from short_lived where expires_at < 1000");
  const scanMs = await fastestMs(() => scan.get());
  const sweepMs = await fastestMs(() => shortLived.sweep(1000, 100));
  assert.ok(sweepMs < scanMs / 3, `${sweepMs} ms, and ${scanMs} ms for a look at every row`);
  assert.equal(await shortLived.sweep(1001, 100), 100);
});

test("a removal of events does not look at the segments that stay", async (t) => {
  const file = await makeFile(t);
  const { log, audit, close } = await openStore({ sqlite: file });
  t.after(close);
  for (let seq = 0; seq < 2; seq++) await log.append([{ event: makeEvent("as-1", seq) }]);
  using db = new DatabaseSync(file);
  db.exec(
    `with recursive n (i) as (select 0 union all select i + 1 from n where i < 30000)
     insert into event_segment (log, from_seq, to_seq, from_ms, to_ms)
       select 'as-1', i * 1024 + 1, i * 1024 + 1024, 0, 0 from n`,
  );
  db.exec("insert into event_segment (log, from_seq, to_seq, from_ms, to_ms) values ('as-1', 0, 0, 0, 0)");
  const scan = db.prepare("select count(*) from event_segment where log = 'as-1' and to_seq < 0");
  const segments = db.prepare("select count(*) as n from event_segment where log = 'as-1'");
  const before = Number(segments.get()?.n);
  const scanMs = await fastestMs(() => scan.get());
  const pruneMs = await fastestMs(() => audit.prune("as-1", 1, 16));
  assert.ok(pruneMs < scanMs / 3, `${pruneMs} ms, and ${scanMs} ms for a look at every segment`);
  assert.equal(Number(segments.get()?.n), before - 1, "the segment of the removed event goes, and no other");
});

test("an audit search does not wait for another process that writes", async (t) => {
  const file = await makeFile(t);
  const store = await openStore({ sqlite: file }, 100);
  t.after(() => store.close());
  await store.log.append([{ event: makeEvent("as-1", 0) }]);
  using other = new DatabaseSync(file);
  other.exec("begin immediate");
  assert.equal((await store.audit.heads()).length, 1);
});

test("a start waits for a file that another process holds, without blocking the event loop", async (t) => {
  const file = await makeFile(t);
  using other = new DatabaseSync(file);
  other.exec("begin exclusive");
  await assertNeverBlocks(assert.rejects(openStore({ sqlite: file }, 400), StoreUnavailable));
  const opening = openStore({ sqlite: file }, 5_000);
  await setImmediate();
  other.exec("rollback");
  await (await opening).close();
});

test("a command makes no database that is not there, and does not fill one of another program", async (t) => {
  const file = await makeFile(t);
  await assert.rejects(openExistingStore({ sqlite: file }), /mandate\.db: there is no database/);
  await assert.rejects(stat(file), { code: "ENOENT" });
  await writeFile(file, "");
  await assert.rejects(openExistingStore({ sqlite: file }), /there is no database/);
  assert.equal((await stat(file)).size, 0);
  await (await openStore({ sqlite: file })).close();
  await (await openExistingStore({ sqlite: file })).close();
});

test("a command brings the tables of an older version up to this one; what only looks refuses them", async (t) => {
  const file = await makeFile(t);
  const scripts = await pendingScripts({ sqlite: file });
  using older = new DatabaseSync(file);
  older.exec(
    "create table migration (number integer primary key, additive integer not null default 1) strict",
  );
  await assert.rejects(openUnchangedStore({ sqlite: file }), /of an older version/);
  assert.deepEqual(await pendingScripts({ sqlite: file }), scripts);
  await (await openExistingStore({ sqlite: file })).close();
  assert.deepEqual(await pendingScripts({ sqlite: file }), []);
});

test("a file that is not a database stops the start without waiting", async (t) => {
  const file = await makeFile(t);
  await writeFile(file, "x".repeat(8_192));
  const told: string[] = [];
  const place = { sqlite: file };
  await assert.rejects(
    waitAtStart(place, 60, told.push)(() => openStore(place)),
    StoreUnavailable,
  );
  assert.deepEqual(told, []);
});

test("a file that is not a database is unavailable", async (t) => {
  const file = await makeFile(t);
  await writeFile(file, "x".repeat(8_192));
  await assert.rejects(openStore({ sqlite: file }), StoreUnavailable);
});

test("a store that was closed is unavailable", async () => {
  const store = await openStore({ sqlite: ":memory:" });
  await store.close();
  await store.close();
  await assert.rejects(store.log.head("as-1"), StoreUnavailable);
  await assert.rejects(async () => store.log.append([{ event: makeEvent("as-1", 0) }]), StoreUnavailable);
});

test("AUDIT-D-1 a full disk makes the store unavailable and leaves no partial batch", async (t) => {
  const file = await makeFile(t);
  // A limit on the size of files acts as a full disk for one process.
  const script = `
    import { openStore } from ${JSON.stringify(import.meta.resolve("../../../../src/adapters/store/open.ts"))};
    import { makeEvent, makeToken } from ${JSON.stringify(import.meta.resolve("../store.contract.ts"))};
    const store = await openStore({ sqlite: process.argv[1] });
    let seq = 0;
    try {
      for (; seq < 1000; seq++) {
        const first = makeEvent("as-1", 2 * seq, "x".repeat(5000));
        const second = makeEvent("as-1", 2 * seq + 1, "x".repeat(5000));
        await store.log.append([{ event: first, token: makeToken() }, { event: second }]);
      }
    } catch (error) {
      console.log(JSON.stringify({ seq, name: error.name }));
    }
    process.exit();`;
  const command = 'ulimit -f 1024; exec "$0" --input-type=module-typescript -e "$1" "$2"';
  const done = spawnSync("/bin/sh", ["-c", command, process.execPath, script, file], { encoding: "utf8" });
  const { seq, name } = JSON.parse(done.stdout);
  assert.equal(name, "StoreUnavailable", done.stderr);
  const store = await openStore({ sqlite: file });
  t.after(() => store.close());
  assert.equal((await store.log.head("as-1"))?.seq, 2 * seq - 1);
  assert.deepEqual(await store.log.append([{ event: makeEvent("as-1", 2 * seq) }]), []);
});

test("HTTP-D-66 a full disk is told with the code of SQLite and what to do", async (t) => {
  const { db, write } = openDatabase(await makeFile(t), {
    ...{ timeoutMs: 100, mustExist: false, mustBeCurrent: false },
  });
  t.after(() => db.close());
  db.exec("create table filled (bytes blob); pragma max_page_count = 8");
  const fill = async () => write(() => db.exec("insert into filled values (zeroblob(100000))"));
  await assert.rejects(fill, { name: "StoreUnavailable", code: "13", message: /13: the disk is full/ });
});

test("AUDIT-D-11 a name is in use on every path that leads to the file", async (t) => {
  const file = await makeFile(t);
  await symlink(dirname(file), `${file}-folder`);
  await symlink(file, `${file}-link`);
  const places = [file, `${file}-link`, join(`${file}-folder`, basename(file))];
  const stores = await Promise.all(places.map((sqlite) => openStore({ sqlite })));
  t.after(() => Promise.all(stores.map((store) => store.close())));
  const self = { host: "node-1", pid: 4711 };
  const taken = [];
  for (const { names } of stores) taken.push(await names.take("as-1", self, 60_000));
  assert.deepEqual(
    taken.map(({ ok }) => ok),
    [true, false, false],
  );
  for (const one of taken) if (one.ok) await one.value.release();
});

testPlans();

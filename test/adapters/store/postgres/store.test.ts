import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";
import v8 from "node:v8";
import { runInNewContext } from "node:vm";
import { spentJti } from "../../../../src/adapters/store/encoding.ts";
import { openExistingStore, openStore, waitAtStart } from "../../../../src/adapters/store/open.ts";
import { makeAttempts } from "../../../../src/adapters/store/postgres/attempts.ts";
import { postgresAuditRows } from "../../../../src/adapters/store/postgres/audit.ts";
import { postgresEngine } from "../../../../src/adapters/store/postgres/engine.ts";
import { openConnections, type Sql } from "../../../../src/adapters/store/postgres/pool.ts";
import { LogConflict, NotStorable } from "../../../../src/adapters/store/store.ts";
import { MIGRATION_LOCK_MS, STORE_CONNECTIONS_MAX, STORE_RETRY_MS } from "../../../../src/limits/store.ts";
import { StoreUnavailable } from "../../../../src/ports.ts";
import { openDatabaseProxy } from "../../../support/database-proxy.ts";
import { nextVersion } from "../../../support/next-version.ts";
import { freshDatabase, type SharedPostgres, sharePostgres } from "../../../support/postgres.ts";
import { stop } from "../../../support/stop.ts";
import { until } from "../../../support/until.ts";
import { stretch } from "../../../support/yardstick.ts";
import { fillSearched, testSearchCosts } from "../audit.contract.ts";
import { makeFamily, retry, rotation, WINDOW } from "../families.contract.ts";
import { makeRegistered } from "../registrations.contract.ts";
import { ISSUER, makeEvent, makeToken, NOW_SECONDS, Writer } from "../store.contract.ts";
import { harnessOf, open, openSql, testContracts } from "./contracts.ts";
import { assertUnavailable, TIMEOUT_MS, untilAvailable } from "./deadlines.ts";
import { freshSchema, keepSchema } from "./schema.ts";
import { testStatements } from "./statements.ts";

let server: SharedPostgres;
before(async () => {
  server = await sharePostgres();
});
after(() => stop(server));

v8.setFlagsFromString("--expose-gc");
const collect: (options?: { type: "minor" }) => void = runInNewContext("gc");

const statements = new Set<string>();
const emptied = keepSchema(statements);

const harness = harnessOf(() => server, emptied);
testContracts(harness);

test("the time of the clock of the database is told", async (t) => {
  const { nowMs = assert.fail } = await (await harness.create(t)).open();
  // The database runs on this machine.
  const beforeMs = Date.now();
  const toldMs = await nowMs();
  assert.ok(toldMs >= beforeMs - 1 && toldMs <= Date.now() + 1, `${toldMs - beforeMs}`);
});

test("STORE-D-22 a database that no standby follows says so", async (t) => {
  const { replication = assert.fail } = await (await harness.create(t)).open();
  assert.deepEqual(await replication(), { waitsFor: "", standbys: 0 });
});

test("STORE-D-10 an engine that refuses the thresholds of autovacuum gets every table without them", async (t) => {
  const url = await freshDatabase(server);
  const sql = await openSql(t, url);
  await sql.unsafe(`
    create function refuse() returns event_trigger language plpgsql as $$ begin
      if current_query() like '%set (autovacuum%' then raise 'no vacuum here' using errcode = '0A000'; end if;
    end $$;
    create event trigger refuses on ddl_command_start when tag in ('ALTER TABLE') execute function refuse()`);
  await open(t, url);
  const [table] = await sql`select count(*)::int as tables, count(reloptions)::int as settings
    from pg_class where relkind = 'r' and relnamespace = current_schema()::regnamespace`;
  assert.ok(table?.tables > 20);
  assert.equal(table?.settings, 0);
});

test("STORE-D-6 while a migration waits for a table that others use, requests to it are answered", async (t) => {
  const url = await freshSchema(server);
  const sql = await openSql(t, url);
  await open(t, url);
  const next = await nextVersion(t, "alter table token add column later text");
  const held = await openSql(t, url);
  await held`begin`;
  await held`lock table token in access share mode`;
  const opening = next.openStore({ postgres: url });
  const waits = `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%add column later%'`;
  await until(async () => (await sql.unsafe(waits)).length > 0, "a migration that waits");
  await sql.unsafe(`set statement_timeout = ${10 * MIGRATION_LOCK_MS}`);
  await sql`select count(*) from token`;
  await held`rollback`;
  await (await opening).close();
  const done = await sql`select number::int from migration order by number`;
  assert.deepEqual([...done], [{ number: 1 }, { number: 2 }]);
});

test("a call is garbage once it is answered, however long its connection lives", async (t) => {
  const { url } = await emptied();
  const limits = { timeoutMs: TIMEOUT_MS, connectionsMax: 1, attempts: makeAttempts() };
  const database = openConnections({ url, tls: undefined, ...limits });
  t.after(() => database.close());
  const calls: WeakRef<(sql: Sql) => Promise<unknown>>[] = [];
  // In a function of its own, whose frame would keep the last one.
  const ask = async (number: number): Promise<void> => {
    const call = async (sql: Sql) => sql`select ${number}::int`;
    calls.push(new WeakRef(call));
    await database.call(call);
  };
  for (let number = 0; number < 100; number++) await ask(number);
  // A weak reference keeps its object until the end of the turn, and the stack of one turn may look like one.
  for (let turns = 0; turns < 3; turns++) {
    await sleep(1);
    collect();
  }
  const kept = calls.flatMap((one, number) => (one.deref() === undefined ? [] : number));
  // The driver keeps its first one; the last one would wait for the next.
  assert.deepEqual(
    kept.filter((number) => number > 0),
    [],
  );
});

for (const way of ["change", "rows"] as const) {
  test(`what the statement of ${way} was given and has found is garbage at the next small collection, and does not wait for a full one`, async (t) => {
    const { url } = await emptied();
    const limits = { timeoutMs: TIMEOUT_MS, connectionsMax: 1, attempts: makeAttempts() };
    const database = openConnections({ url, tls: undefined, ...limits });
    t.after(() => database.close());
    const engine = postgresEngine(database.call);
    // So few that no full collection begins meanwhile; all but one wait for the connection.
    const ask = async (): Promise<void> => {
      for (let round = 0; round < ROUNDS; round++) {
        const given = Array.from({ length: AT_ONCE }, (_, nth) => `${round} ${nth}`.padEnd(GIVEN_BYTES));
        await Promise.all(given.map((text) => engine[way]("select :text::text as text", { text })));
        collect({ type: "minor" });
      }
    };
    await ask();
    collect();
    const before = oldBytes();
    await ask();
    const keptBytes = (oldBytes() - before) / (ROUNDS * AT_ONCE);
    assert.ok(keptBytes < GIVEN_BYTES / 2, `${keptBytes} bytes of each are left in the old generation`);
  });
}

const [ROUNDS, AT_ONCE, GIVEN_BYTES] = [10, 8, 20_000];
const oldBytes = (): number =>
  v8.getHeapSpaceStatistics().find((one) => one.space_name === "old_space")?.space_used_size ?? Number.NaN;

testStatements(() => server, statements);

test("STORE-D-1, STORE-D-2, STORE-D-3 the tables are whole, have no fillfactor, and only those of the trail are vacuumed early", async () => {
  const { sql } = await emptied();
  const tables = await sql`
    select relname as name, relkind::text as kind, array_to_string(reloptions, ' ') as options
    from pg_class where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p')`;
  const early = "autovacuum_vacuum_scale_factor=0.01 autovacuum_vacuum_insert_scale_factor=0.01";
  assert.ok(tables.length > 15 && tables.every(({ kind }) => kind === "r"), JSON.stringify(tables));
  const set = tables.filter(({ options }) => options !== null);
  for (const { name, options } of set) assert.equal(options, early, name);
  const names = set.map(({ name }) => name).sort();
  assert.deepEqual(names, ["event", "event_segment_subject", "event_segment_term"]);
});

test("removed events that no vacuum has cleared make neither a search nor the next removal slower", async (t) => {
  const { url, store, sql } = await emptied();
  const held = await openSql(t, url);
  // Of other tests' segments the index keeps what the snapshot of any session of this database may still see.
  const log = randomUUID();
  await sql`
    insert into event (log, seq, id, time_ms, type, body, prev, hash)
    select ${log}, n, n, n, '', repeat('x', 1000), '', '' from generate_series(0, 9999) n`;
  await sql`
    insert into event_segment (log, from_seq, to_seq, from_ms, to_ms)
    select ${log}, n, n + 99, n, n + 99 from generate_series(0, 9900, 100) n`;
  // Statistics from before would take the log for a rare one, and sort its events.
  await sql`analyze event, event_segment`;
  // Its snapshot may still see them, as that of a backup for hours.
  await held`begin isolation level repeatable read`;
  await held`select count(*) from pg_class`;
  while ((await store.audit.prune(log, 9_000, 1_000)) > 0);
  await store.audit.find({ spans: [{ log, afterSeq: -1, toSeq: 0 }], terms: [[]], limit: 1 });
  // A search and a removal look where the log begins.
  const begins = [...statements].filter((text) => / as first\b/.test(text));
  assert.equal(begins.length, 2);
  for (const text of begins) {
    const [row] = await sql.unsafe(
      `explain (analyze, buffers, format json) ${text.replace(/\$\d+/g, `'${log}'`)}`,
    );
    const plan = row?.["QUERY PLAN"][0].Plan;
    const pages = plan["Shared Hit Blocks"];
    assert.ok(pages > 0 && pages < 100, `${pages} pages were looked at: ${JSON.stringify(plan)}`);
  }
  await held`rollback`;
});

test("AUDIT-D-16 a search that finds nothing takes as many statements among many events as among few on PostgreSQL", async (t) => {
  const { url, sql } = await emptied();
  await fillSearched(await open(t, url));
  const limits = { timeoutMs: 10_000, connectionsMax: 1, attempts: makeAttempts() };
  const database = openConnections({ url, tls: undefined, ...limits });
  t.after(() => database.close());
  let statements = 0;
  const call: typeof database.call = (work) => {
    statements++;
    return database.call(work);
  };
  const execute = (text: string) => sql.unsafe(text);
  await testSearchCosts({ find: postgresAuditRows(call).find, statements: () => statements, execute });
});

test("a removal of expired rows does not look again at those before, which no vacuum has cleared", async (t) => {
  const { url, sql } = await emptied();
  const limits = { timeoutMs: TIMEOUT_MS, connectionsMax: 1, attempts: makeAttempts() };
  const database = openConnections({ url, tls: undefined, ...limits });
  t.after(() => database.close());
  const { sweep } = postgresAuditRows(database.call);
  // The pages that it reads would be counted too.
  await sql`alter table spent_jti set (autovacuum_enabled = off)`;
  await sql`insert into spent_jti select ${ISSUER}, n::text, n, repeat('x', 1000) from generate_series(1, 6000) n`;
  const held = await openSql(t, url);
  await held`begin isolation level repeatable read`;
  await held`select count(*) from pg_class`;
  // In the sessions of the insertion and of the removal, because each keeps its counts for a while.
  await sql`select pg_stat_force_next_flush()`;
  const pagesRead = async () => {
    await database.call((own) => own`select pg_stat_force_next_flush()`);
    const [row] = await sql`
      select (heap_blks_hit + idx_blks_hit)::int as pages from pg_statio_user_tables
      where relid = 'spent_jti'::regclass`;
    return row?.pages;
  };
  const pages: number[] = [];
  for (let slice = 0; slice < 5; slice++) {
    const before = await pagesRead();
    assert.equal(await sweep(6_000, 1_000), 1_000);
    pages.push((await pagesRead()) - before);
  }
  assert.ok(Math.max(...pages) < 1.5 * Math.min(...pages), `pages in each removal: ${pages}`);
  await sweep(6_000, 1_000);
  // One that another instance had locked in this pass is removed in the next one.
  await sql`insert into spent_jti values (${ISSUER}, 'left', 5000, '')`;
  assert.equal(await sweep(6_000, 1_000), 0);
  assert.equal(await sweep(6_001, 1_000), 2);
  await held`rollback`;
});

// --- races --------------------------------------------------------------------------------------------------------

test("RFC7523-3-14 a jti in another open transaction is waited for and then refused by its guard", async (t) => {
  const url = await freshDatabase(server);
  const store = await open(t, url);
  const sql = await openSql(t, url);
  const guards = [{ kind: "jti_fresh", issuer: ISSUER, jti: "a", expiresAtSeconds: NOW_SECONDS } as const];
  const batch = [{ event: makeEvent("as-1", 0), guards }];
  const spend = () => sql`insert into spent_jti values (${ISSUER}, ${spentJti("a")}, 0, 'other')`;

  // It is not committed, so only the primary key can detect it.
  await sql`begin`;
  await spend();
  const first = store.log.append(batch);
  await sleep(50);
  await sql`commit`;
  assert.deepEqual(await first, [{ entry: 0, guard: "jti_fresh" }]);
  assert.equal(await store.log.head("as-1"), undefined);

  // After a rollback it was never spent.
  await sql`delete from spent_jti`;
  await sql`begin`;
  await spend();
  const second = store.log.append(batch);
  await sleep(50);
  await sql`rollback`;
  assert.deepEqual(await second, []);
});

test("RFC7591-5-5 noting a token of a client does not wait for a lock on its row", async (t) => {
  const url = await freshDatabase(server);
  const store = await open(t, url, TIMEOUT_MS);
  const sql = await openSql(t, url);
  const client = makeRegistered();
  const registration = { register: client, clientsMax: 1 };
  assert.deepEqual(await store.log.append([{ event: makeEvent("as-1", 0), registration }]), []);
  const noted = () => sql`select last_token_at::int as at from client where client_id = ${client.clientId}`;
  const issue = (seq: number) => {
    const token = makeToken({ clientId: client.clientId, issuedAtSeconds: NOW_SECONDS + seq });
    return store.log.append([{ event: makeEvent("as-1", seq), token, isUse: true }]);
  };
  await sql`begin`;
  await sql`select from client where client_id = ${client.clientId} for update`;
  assert.deepEqual(await issue(1), []);
  await sql`commit`;
  assert.equal((await noted())[0]?.at, null);
  // The next one is noted.
  assert.deepEqual(await issue(2), []);
  assert.equal((await noted())[0]?.at, NOW_SECONDS + 2);
});

test("RFC7591-3-3 the database refuses more uses of an initial token than it has", async (t) => {
  const url = await freshDatabase(server);
  await open(t, url);
  const sql = await openSql(t, url);
  await sql`insert into initial_token values ('a', 'd', 'crew', '{}', 1, 1, 0, 0)`;
  await assert.rejects(
    async () => sql`update initial_token set uses = uses + 1`,
    /uses_max|check constraint/,
  );
});

test("an entry that cannot be stored costs no connection", async (t) => {
  const url = await freshDatabase(server);
  const store = await open(t, url);
  const sql = await openSql(t, url);
  const sessions = () => sql`
    select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() order by pid`;
  await store.log.head("as-1");
  const before = await sessions();
  const token = makeToken({ subject: "\0" });
  await assert.rejects(async () => store.log.append([{ event: makeEvent("as-1", 0), token }]), NotStorable);
  await store.log.head("as-1");
  assert.deepEqual(await sessions(), before);
});

test("a duplicate key is not reported as an outage, and its error contains no data", async (t) => {
  const store = await open(t, await freshDatabase(server));
  const token = makeToken({ jti: "twice" });
  assert.deepEqual(await store.log.append([{ event: makeEvent("as-1", 0), token }]), []);
  await assert.rejects(
    async () => store.log.append([{ event: makeEvent("as-1", 1), token }]),
    (error) => {
      assert.ok(
        error instanceof Error && !(error instanceof StoreUnavailable) && !(error instanceof LogConflict),
      );
      assert.match(error.message, /23505 token_pkey/);
      assert.doesNotMatch(inspect(error, { showHidden: true }), /twice/);
      return true;
    },
  );
});

test("REFRESH-D-21 a retry from elsewhere that waits for another one finds its count", async (t) => {
  const url = await freshDatabase(server);
  const names = Array.from({ length: 3 }, (_, index) => `as-${index + 1}`);
  const writers = await Promise.all(names.map(async (log) => new Writer(await open(t, url), log)));
  await writers[0]?.write({ family: { start: makeFamily(), digest: "digest-1" } });
  await writers[0]?.write({ family: rotation(1) });
  const elsewhere = retry(1, { ...WINDOW, elsewhere: true });
  // Within a transaction PostgreSQL shows the activity as it was at the first look.
  const [sql, watch] = [await openSql(t, url), await openSql(t, url)];
  await sql`begin`;
  await sql`select from refresh_family for update`;
  const made = Promise.all(writers.map((writer) => writer.write({ family: elsewhere })));
  const waiting = () => watch`
    select count(*)::int from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  await until(
    async () => (await waiting())[0]?.count === writers.length,
    "every retry has looked for the family and waits for it",
  );
  await sql`commit`;
  assert.deepEqual((await made).toSorted(), [[], ["family_current"], ["family_current"]]);
});

// --- faults -------------------------------------------------------------------------------------------------------

// These wait for deadlines, so they run side by side.
describe("a connection that fails", { concurrency: true }, () => {
  test("connections terminated by an administrator fail no call", async (t) => {
    const url = await freshDatabase(server);
    const store = await open(t, url);
    const sql = await openSql(t, url);
    for (let round = 0; round <= STORE_CONNECTIONS_MAX; round++) {
      assert.equal(await store.log.head("as-1"), undefined);
      await sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`;
      await until(() => store.connections?.().idle === 0, "the ends of the connections are read");
    }
  });

  test("a statement that waits too long is cancelled on the client and on the server", async (t) => {
    const url = await freshDatabase(server);
    const store = await open(t, url, TIMEOUT_MS);
    const sql = await openSql(t, url);
    await sql`begin`;
    await sql`lock table event`;
    await assertUnavailable(() => store.log.append([{ event: makeEvent("as-1", 0) }]));
    const waiting = () => sql`
      select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
    await until(async () => (await waiting()).length === 0, "the statement is cancelled on the server");
    await sql`commit`;
    assert.equal(await untilAvailable(() => store.log.head("as-1")), undefined);
    assert.deepEqual(await store.log.append([{ event: makeEvent("as-1", 0) }]), []);
  });

  for (const manner of ["close", "close after data", "never answer"] as const) {
    test(`a server that accepts connections and would ${manner} is tried at intervals, not in a loop`, async (t) => {
      const proxy = await openDatabaseProxy(await freshDatabase(server));
      t.after(() => proxy.close());
      const store = await open(t, proxy.url, TIMEOUT_MS);
      await store.log.head("as-1");
      proxy.manner = manner;
      proxy.cut();
      proxy.attempts = 0;
      const asked = stretch();
      while (asked.tookMs() < 1.2 * STORE_RETRY_MS) {
        await Promise.all(Array.from({ length: 5 }, () => assertUnavailable(() => store.audit.heads())));
        await sleep(10);
      }
      // At most one attempt for each connection of the pool and interval, of which a busy machine makes more.
      const attemptsMax = (Math.ceil(asked.tookMs() / STORE_RETRY_MS) + 2) * STORE_CONNECTIONS_MAX;
      assert.ok(proxy.attempts > 0 && proxy.attempts <= attemptsMax, `${proxy.attempts} of ${attemptsMax}`);
      proxy.manner = "pass";
      assert.equal(await untilAvailable(() => store.log.head("as-1")), undefined);
      assert.deepEqual(await store.log.append([{ event: makeEvent("as-1", 0) }]), []);
    });

    if (manner === "never answer") continue;
    test(`a start with a server that would ${manner} fails at once`, async (t) => {
      const proxy = await openDatabaseProxy(server.url);
      t.after(() => proxy.close());
      proxy.manner = manner;
      await assertUnavailable(() => openStore({ postgres: proxy.url }));
    });
  }
});

const openAtStart = (place: { postgres: string }, onWait: (why: string) => void) =>
  waitAtStart(place, 60, onWait)(() => openStore(place));

test("the start waits for its database, and says once what it waits for", async (t) => {
  const proxy = await openDatabaseProxy(await freshDatabase(server));
  t.after(() => proxy.close());
  proxy.manner = "close";
  const told: string[] = [];
  const opening = openAtStart({ postgres: proxy.url }, (why) => void told.push(why));
  while (proxy.attempts < 2) await sleep(10);
  proxy.manner = "pass";
  await (await opening).close();
  assert.match(told.join("\n"), /^the connection to the database failed \(ECONNRESET\): the server hung up$/);
});

test("CONF-D-8 a start whose password is refused tells that, and waits until it is right", async (t) => {
  const url = new URL(await freshDatabase(server));
  const admin = await openSql(t, url.href);
  const role = `late_${randomUUID().replaceAll("-", "")}`;
  await admin.unsafe(`create role ${role} login superuser password 'another'`);
  Object.assign(url, { username: role, password: "ours" });
  const told = Promise.withResolvers<string>();
  const opening = openAtStart({ postgres: url.href }, told.resolve);
  assert.match(await Promise.race([told.promise, opening.then(() => "it opened")]), /28P01/);
  await admin.unsafe(`alter role ${role} password 'ours'`);
  await (await opening).close();
  await admin.unsafe(`drop owned by ${role}; drop role ${role}`);
});

test("store.connections is the number of connections at most", async (t) => {
  const proxy = await openDatabaseProxy(await freshDatabase(server));
  t.after(() => proxy.close());
  const store = await openStore({ postgres: proxy.url, connections: 2 });
  t.after(() => store.close());
  // The migrations had a connection of their own.
  proxy.attempts = 0;
  await Promise.all(Array.from({ length: 50 }, () => store.audit.heads()));
  assert.equal(proxy.attempts, 2);
});

test("CONF-D-11 a command makes no tables in a database that has none", async (t) => {
  const url = await freshDatabase(server);
  await assert.rejects(openExistingStore({ postgres: url }), /there is no database of this server/);
  const sql = await openSql(t, url);
  assert.equal((await sql`select to_regclass('migration') as found`)[0]?.found, null);
  await (await openStore({ postgres: url })).close();
  await (await openExistingStore({ postgres: url })).close();
});

test("a start without a server, a database or the right password fails at once without showing the password", async () => {
  const closedPort = new URL(server.url);
  closedPort.port = "1";
  const wrongDatabase = new URL(server.url);
  wrongDatabase.pathname = "/unknown";
  const wrongPassword = new URL(server.url);
  wrongPassword.password = "a-wrong-secret";
  const cases = [
    [closedPort.href, /ECONNREFUSED/],
    [wrongDatabase.href, /3D000/],
    [wrongPassword.href, /28P01/],
  ] as const;
  for (const [url, message] of cases) {
    await assert.rejects(openStore({ postgres: url }), (error) => {
      assert.ok(error instanceof StoreUnavailable);
      assert.match(error.message, message);
      assert.doesNotMatch(inspect(error, { showHidden: true }), /a-wrong-secret/);
      return true;
    });
  }
});

test("a closed store is unavailable and leaves no connection", async (t) => {
  const url = await freshDatabase(server);
  const store = await open(t, url);
  await Promise.all(Array.from({ length: 20 }, () => store.audit.heads()));
  await store.close();
  await store.close();
  await assert.rejects(store.log.head("as-1"), StoreUnavailable);
  const sql = await openSql(t, url);
  const count = async () => {
    const [row] = await sql`
      select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`;
    return row?.count;
  };
  await until(async () => (await count()) === "0", "no connection is left");
});

import assert from "node:assert/strict";
import { after, before, describe, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import postgres from "postgres";
import { freePorts } from "../../../../scripts/server-process.ts";
import { openStore } from "../../../../src/adapters/store/open.ts";
import { makeAttempts } from "../../../../src/adapters/store/postgres/attempts.ts";
import { openConnections } from "../../../../src/adapters/store/postgres/pool.ts";
import type { Store } from "../../../../src/adapters/store/store.ts";
import { StoreUnavailable } from "../../../../src/ports.ts";
import type { DatabaseHost } from "../../../../src/settings/settings.ts";
import { openDatabaseProxy } from "../../../support/database-proxy.ts";
import { type Postgres, startPostgres } from "../../../support/postgres.ts";
import { stop } from "../../../support/stop.ts";
import { until } from "../../../support/until.ts";
import { assertShort, stretch } from "../../../support/yardstick.ts";
import { makeEvent } from "../store.contract.ts";

const hostOf = (url: string): DatabaseHost => ({ name: "127.0.0.1", port: Number(new URL(url).port) });

async function writes(store: Store, seq: number): Promise<boolean> {
  try {
    await store.log.append([{ event: makeEvent("as-1", seq) }]);
    return true;
  } catch (fault) {
    if (fault instanceof StoreUnavailable) return false;
    throw fault;
  }
}

describe("STORE-D-7 a list of hosts", () => {
  let [leader, standby]: Postgres[] = [];
  before(async () => {
    leader = await startPostgres();
    standby = await startPostgres({ standbyOf: leader });
  });
  after(() => stop(standby, leader));

  async function open(t: TestContext, hosts: readonly DatabaseHost[]) {
    const url = leader?.url ?? "";
    const store = await openStore({ postgres: url, hosts, connections: 3 });
    t.after(() => store.close());
    return store;
  }

  test("of which the last one writes, and others are away, silent or standbys, is served by that one", async (t) => {
    const [closed = 0] = await freePorts(1);
    const silent = await openDatabaseProxy(leader?.url ?? "");
    t.after(silent.close);
    silent.manner = "never answer";
    const took = stretch();
    const store = await open(t, [
      { name: "127.0.0.1", port: closed },
      hostOf(silent.url),
      hostOf(standby?.url ?? ""),
      hostOf(leader?.url ?? ""),
    ]);
    await Promise.all(Array.from({ length: 20 }, () => store.log.head("as-1")));
    // Those that failed, and the one that is silent, hold nothing up.
    assertShort(took, 3_000, "a store of four hosts", t);
    assert.ok(silent.attempts <= 3, `${silent.attempts} attempts`);
  });

  test("leads to the standby once it was promoted, within a second", async (t) => {
    const way = await openDatabaseProxy(leader?.url ?? "");
    t.after(way.close);
    const store = await open(t, [hostOf(way.url), hostOf(standby?.url ?? "")]);
    assert.ok(await writes(store, 0));
    // The leader is away, and hangs up on each attempt.
    way.manner = "close";
    way.cut();
    assert.equal(await writes(store, 1), false);
    const sql = postgres(standby?.url ?? "", { max: 1 });
    // Where it waits for the end, its own snapshot may be what the last records of the leader wait for.
    await sql`select pg_promote(false)`;
    await sql.end();
    const took = stretch();
    while (!(await writes(store, 1))) await sleep(5);
    assertShort(took, 1_000, "after the promotion", t);
    assert.equal((await store.log.head("as-1"))?.seq, 1);
  });

  test("stays at the promoted one while a call waits there, although the leader before it commits too", async (t) => {
    const way = await openDatabaseProxy(leader?.url ?? "");
    way.manner = "close";
    const url = standby?.url ?? "";
    const { close, call } = openConnections({
      ...{ url, hosts: [hostOf(way.url), hostOf(url)], attempts: makeAttempts(2) },
      ...{ timeoutMs: 60_000, connectionsMax: 1 },
    });
    const locked = postgres(url, { max: 1 });
    t.after(() => stop(() => locked.end(), close, way.close));
    await locked`select pg_advisory_lock(1)`;
    const waiting = call((sql) => sql`select pg_advisory_lock(1)`);
    await until(async () => (await locked`select from pg_locks where not granted`).length > 0, "it waits");
    way.manner = "pass";
    // A further attempt begins after the one before it has ended.
    const from = way.attempts;
    await until(() => way.attempts > from + 1, "the other one was asked");
    await locked.end();
    await waiting;
  });

  /** From now on the leader commits nothing, as one whose standby has been promoted. Ends with the connection that watches it. */
  async function untilNoCommit(): Promise<postgres.Sql> {
    const sql = postgres(leader?.url ?? "", { max: 1 });
    await sql`alter system set synchronous_standby_names = 'promoted'`;
    await sql`select pg_reload_conf()`;
    // The server takes the setting a moment later: until then, it commits.
    const other = postgres(leader?.url ?? "", { max: 1 });
    const commit = async (): Promise<never> => {
      for (;;) await other`select pg_logical_emit_message(true, 'test', '')`;
    };
    const committing = commit().catch(() => undefined);
    const waiting = () => sql`select from pg_stat_activity where wait_event = 'SyncRep'`;
    await until(async () => (await waiting()).length > 0, "a commit waits for the standby");
    await other.end({ timeout: 0 });
    await committing;
    return sql;
  }
  const waitsIn = async (sql: postgres.Sql): Promise<boolean> => {
    const rows = await sql`
      select from pg_stat_activity where wait_event = 'SyncRep' and application_name = 'mandate'`;
    return rows.length > 0;
  };

  test("leads away from a leader that was replaced and commits nothing any more, while a call waits there", async (t) => {
    const way = await openDatabaseProxy(standby?.url ?? "");
    t.after(way.close);
    way.manner = "close";
    const store = await open(t, [hostOf(leader?.url ?? ""), hostOf(way.url)]);
    await store.log.append([{ event: makeEvent("as-2", 0) }]);
    const sql = await untilNoCommit();
    const unanswered = store.log.append([{ event: makeEvent("as-2", 1) }]);
    const failed = assert.rejects(async () => unanswered, { noWriter: true, message: /has replaced/ });
    await until(() => waitsIn(sql), "the call waits");
    await sql.end();
    way.manner = "pass";
    const took = stretch();
    await failed;
    // The log begins anew there.
    await store.log.append([{ event: makeEvent("as-2", 0) }]);
    assertShort(took, 1_000, "after the promoted one is reached", t);
  });

  test("leads past a leader that was replaced, takes writes all the same, and commits none without its standby", async (t) => {
    const sql = await untilNoCommit();
    // The promoted one is there once the other one was asked, or it would be found first at times.
    const way = await openDatabaseProxy(standby?.url ?? "");
    t.after(way.close);
    way.manner = "close";
    let isOpen = false;
    const opening = open(t, [hostOf(leader?.url ?? ""), hostOf(way.url)]).finally(() => {
      isOpen = true;
    });
    await until(async () => isOpen || (await waitsIn(sql)), "the replaced leader is asked to commit");
    way.manner = "pass";
    const store = await opening;
    await sql.end();
    // The record before it is in the promoted one alone.
    assert.ok(await writes(store, 2));
  });
});

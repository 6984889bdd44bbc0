/** Why a PostgreSQL refuses a statement: its code, in words, and what to do about it, as the log has them. */
import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import postgres from "postgres";
import { openStore } from "../../../../src/adapters/store/open.ts";
import type { Store } from "../../../../src/adapters/store/store.ts";
import { StoreUnavailable } from "../../../../src/ports.ts";
import { freshDatabase, type SharedPostgres, sharePostgres } from "../../../support/postgres.ts";
import { stop } from "../../../support/stop.ts";
import { until } from "../../../support/until.ts";
import { makeEvent } from "../store.contract.ts";

let server: SharedPostgres;
before(async () => {
  server = await sharePostgres();
});
after(() => stop(server));

type Place = { store: Store; sql: postgres.Sql; name: string };

/** A store whose statements end after `timeoutMs`, in a database of its own, and the way past it. */
async function open(t: TestContext, timeoutMs?: number, setting = ""): Promise<Place> {
  const url = await freshDatabase(server);
  const sql = postgres(url, { max: 2, onnotice: () => {} });
  t.after(() => sql.end({ timeout: 1 }));
  const name = new URL(url).pathname.slice(1);
  await (await openStore({ postgres: url })).close();
  if (setting !== "") await sql.unsafe(`alter database ${name} set ${setting}`);
  const store = await openStore({ postgres: url }, timeoutMs);
  t.after(store.close);
  // The time of a call has the one of its connection in it.
  await store.log.head("as-1");
  return { store, sql, name };
}

const write = async ({ store }: Place) => store.log.append([{ event: makeEvent("as-1", 0) }]);

const isTold =
  (code: string, words: RegExp) =>
  (fault: unknown): boolean => {
    assert.ok(fault instanceof StoreUnavailable, String(fault));
    assert.equal(fault.code, code);
    assert.match(fault.message, words);
    assert.match(fault.message, new RegExp(`(database answered ${code}|failed \\(${code}\\)): `));
    return true;
  };

/** Runs work while another session holds the table of events for itself. */
async function whileLocked({ sql }: Place, work: () => Promise<unknown>): Promise<void> {
  await sql.begin(async (holder) => {
    await holder`lock table event`;
    await work();
  });
}

test("HTTP-D-66 a statement that takes too long is told with 57014 and where to look", async (t) => {
  const place = await open(t, 2_000);
  await whileLocked(place, () =>
    assert.rejects(write(place), isTold("57014", /took too long.*pg_stat_activity/)),
  );
});

test("HTTP-D-66 a lock that is not free in time is told with 55P03 and where to look", async (t) => {
  const place = await open(t, undefined, "lock_timeout = 100");
  await whileLocked(place, () => assert.rejects(write(place), isTold("55P03", /holds a lock.*pg_locks/)));
});

test("HTTP-D-66 a session that an administrator ended is told with 57P01", async (t) => {
  const place = await open(t);
  await whileLocked(place, async () => {
    const refused = assert.rejects(write(place), isTold("57P01", /ended the session/));
    const end = async () => {
      const ended = await place.sql`select pg_terminate_backend(pid) from pg_stat_activity
        where datname = ${place.name} and application_name = 'mandate' and wait_event_type = 'Lock'`;
      return ended.length > 0;
    };
    await until(end, "the statement waits for the table");
    await refused;
  });
});

for (const [code, words] of [
  ["53100", /disk of the database is full: free or add space/],
  ["53200", /no memory left: give it more/],
  ["58030", /cannot read or write its files: see its log/],
] as const) {
  test(`HTTP-D-66 what the server answers with ${code} is told with it and what to do`, async (t) => {
    const place = await open(t);
    await place.sql.unsafe(`create function fails() returns trigger language plpgsql as
      $$ begin raise exception 'refused' using errcode = '${code}'; end $$;
      create trigger fails before insert on event execute function fails()`);
    await assert.rejects(write(place), isTold(code, words));
  });
}

test("HTTP-D-66 a statement that is refused because of a table that is gone has its code for the log", async (t) => {
  const place = await open(t);
  await place.sql`alter table event rename to gone`;
  await assert.rejects(write(place), { name: "Error", code: "42P01" });
});

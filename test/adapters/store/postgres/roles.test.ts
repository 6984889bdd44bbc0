/** The role that serves beside the owner of the tables: what it needs, and what it is told where that is missing. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import type { Sql } from "postgres";
import postgres from "postgres";
import { loadMigrations } from "../../../../src/adapters/store/migrations.ts";
import { openStore, openUnchangedStore, pendingScripts } from "../../../../src/adapters/store/open.ts";
import { StoreMisplaced } from "../../../../src/adapters/store/store.ts";
import { StoreUnavailable } from "../../../../src/ports.ts";
import { freshDatabase, type SharedPostgres, sharePostgres } from "../../../support/postgres.ts";
import { stop } from "../../../support/stop.ts";
import { makeEvent } from "../store.contract.ts";
import { TIMEOUT_MS } from "./deadlines.ts";
import { serveBy } from "./schema.ts";

let server: SharedPostgres;
before(async () => {
  server = await sharePostgres();
});
after(() => stop(server));

type Site = {
  /** Of the owner, who is no superuser, and of the role that serves. */
  owner: string;
  serving: string;
  role: string;
  /** As a superuser. */
  sql: Sql;
};

/** A database of its own; the tables are made in `schema`, which the owner has. */
async function withSite(schema: string, use: (site: Site) => Promise<void>): Promise<void> {
  const url = await freshDatabase(server);
  const owner = `Owner "${randomUUID()}"`;
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  await sql`create role ${sql(owner)} login password 'owns'`;
  await sql`create schema if not exists ${sql(schema)}`;
  await sql`alter schema ${sql(schema)} owner to ${sql(owner)}`;
  const owned = new URL(url);
  Object.assign(owned, { username: encodeURIComponent(owner), password: "owns" });
  owned.searchParams.set("search_path", `"${schema.replaceAll('"', '""')}", public`);
  const serving = await serveBy(owned.href, sql);
  try {
    await use({ owner: owned.href, serving: serving.url, role: serving.role, sql });
  } finally {
    await serving.end();
    await sql`drop owned by ${sql(owner)} cascade`;
    await sql`drop role ${sql(owner)}`;
    await sql.end();
  }
}

const refusal = (url: string, open = openStore): Promise<StoreUnavailable> =>
  open({ postgres: url }).then(
    async (store) => {
      await store.close();
      return assert.fail("it was opened");
    },
    (fault) => {
      assert.ok(fault instanceof StoreUnavailable, String(fault));
      return fault;
    },
  );

for (const schema of ["public", "mandate", 'Mandate "Prod"']) {
  test(`a role without rights to change tables serves when their owner has migrated (schema ${schema})`, async () => {
    await withSite(schema, async ({ serving, owner, sql }) => {
      for (const open of [openStore, openUnchangedStore]) {
        const store = await open({ postgres: serving });
        const seq = ((await store.log.head("as-1"))?.seq ?? -1) + 1;
        assert.deepEqual(await store.log.append([{ event: makeEvent("as-1", seq) }]), []);
        await store.close();
      }
      const found = await sql`select schemaname from pg_tables where tablename in ('event', 'migration')`;
      assert.deepEqual([...new Set(found.map(({ schemaname }) => schemaname))], [schema]);
      assert.deepEqual(await pendingScripts({ postgres: owner }), []);
    });
  });
}

test("tables of an older version are left as they are by a role that does not own them, which is told what to run", async () => {
  await withSite("mandate", async ({ serving, owner, role, sql }) => {
    const known = loadMigrations("postgres").length;
    await sql`delete from mandate.migration where number = ${known}`;
    const before = await sql`select * from mandate.migration`;
    const fault = await refusal(serving);
    assert.equal(
      fault.message,
      `the tables are those of an older version (${known - 1} of ${known} migrations), and "${role}" may not change the schema mandate: run "mandate migrate" as the owner, ${quote(decodeURIComponent(new URL(owner).username))}`,
    );
    // Another program may migrate meanwhile, so that the start waits for it.
    assert.ok(!(fault instanceof StoreMisplaced));
    assert.deepEqual(await sql`select * from mandate.migration`, before);
  });
});

const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`;

test("without any tables a role that may not create them is told what to run", async () => {
  await withSite("mandate", async ({ serving, role, sql }) => {
    await sql`create schema empty`;
    await sql`grant usage on schema empty to ${sql(role)}`;
    const url = new URL(serving);
    url.searchParams.set("search_path", "empty");
    for (const open of [openStore, openUnchangedStore]) {
      assert.equal(
        (await refusal(url.href, open)).message,
        `there are no tables of this server yet, and "${role}" may not change the schema empty: run "mandate migrate" as a role that may create tables in empty`,
      );
    }
  });
});

test("what a role may do beside what a server needs is known, with the statements that take it away", async () => {
  await withSite("mandate", async ({ serving, owner, role, sql }) => {
    const factsAt = async (postgres: string) => {
      const store = await openUnchangedStore({ postgres });
      const { role: name, ...facts } = (await store.role?.()) ?? assert.fail();
      await store.close();
      return { ...facts, name: name.replaceAll('"', "") };
    };
    const none = { isSuperuser: false, isOwner: false, name: role };
    assert.deepEqual(await factsAt(serving), { ...none, revokes: [] });
    await sql`grant update, truncate on mandate.event to ${sql(role)}`;
    await sql`grant delete on mandate.checkpoint to ${sql(role)}`;
    const revokes = [
      `revoke delete on checkpoint from "${role}"`,
      `revoke update, truncate on event from "${role}"`,
    ];
    assert.deepEqual(await factsAt(serving), { ...none, revokes });
    const { isOwner, isSuperuser } = await factsAt(owner);
    assert.deepEqual([isOwner, isSuperuser], [true, false]);
    await sql`alter role ${sql(role)} superuser`;
    assert.equal((await factsAt(serving)).isSuperuser, true);
    await sql`alter role ${sql(role)} nosuperuser`;
  });
});

const wrongs: [what: string, (site: Site) => Promise<unknown>, says: RegExp][] = [
  [
    "rights are missing: each is named, with the statement that gives it",
    async ({ sql, role }) => {
      await sql`revoke insert, select on mandate.event from ${sql(role)}`;
      await sql`revoke update on mandate.token from ${sql(role)}`;
    },
    /^"Serves \S+" lacks rights, which the owner gives: grant select, insert on event to "Serves \S+"; grant update on token to "Serves \S+"$/,
  ],
  [
    "every right is missing: each is named, with the statement that gives it",
    ({ sql, role }) => sql`revoke all on all tables in schema mandate from ${sql(role)}`,
    /^"Serves \S+" lacks rights, which the owner gives: grant .* on checkpoint to .*; grant select on migration to .*; grant .* on tree_hash to "Serves \S+"$/,
  ],
  [
    "the schema may not be used: told with the path",
    ({ sql, role }) => sql`revoke usage on schema mandate from ${sql(role)}`,
    /^no schema of search_path \("mandate"\) can be used: create it, or grant usage on it to "Serves \S+"$/,
  ],
  [
    "row security hides rows: refused, because a used assertion would look unused",
    ({ sql }) => sql`alter table mandate.spent_jti enable row level security`,
    /^row security hides rows of spent_jti from "Serves \S+": "alter table spent_jti disable row level security", or "alter role /,
  ],
];
for (const [what, spoil, says] of wrongs) {
  test(`${what} (a role beside the owner)`, async () => {
    await withSite("mandate", async (site) => {
      await spoil(site);
      const url = new URL(site.serving);
      url.searchParams.set("search_path", '"mandate"');
      const fault = await refusal(url.href);
      assert.match(fault.message, says);
      assert.ok(fault instanceof StoreMisplaced, "waiting does not help");
    });
  });
}

test("tables with the names of ours in a schema that comes later are not taken for ours", async () => {
  await withSite("mandate", async ({ owner, sql }) => {
    await sql`create table public.migration (version text)`;
    await sql`create table public.client (name text)`;
    await sql`create schema fresh`;
    await sql`alter schema fresh owner to ${sql(decodeURIComponent(new URL(owner).username))}`;
    const url = new URL(owner);
    url.searchParams.set("search_path", "fresh, public");
    const store = await openStore({ postgres: url.href });
    assert.deepEqual(await store.clients.list(), []);
    await store.close();
    const found = await sql`select schemaname from pg_tables where tablename = 'migration' order by 1`;
    assert.deepEqual(
      found.map(({ schemaname }) => schemaname),
      ["fresh", "mandate", "public"],
    );
  });
});

for (const table of ["event", "migration"]) {
  test(`a table ${table} of another program in our schema is named, and nothing is made beside it`, async () => {
    await withSite("mandate", async ({ owner, sql }) => {
      const name = decodeURIComponent(new URL(owner).username);
      await sql`create schema shared`;
      await sql`alter schema shared owner to ${sql(name)}`;
      await sql`create table shared.${sql(table)} (what text)`;
      const url = new URL(owner);
      url.searchParams.set("search_path", "shared");
      const fault = await refusal(url.href);
      assert.ok(fault instanceof StoreMisplaced);
      assert.ok(
        fault.message.startsWith(`the schema shared has a table ${table} that is not of this server: `),
        fault.message,
      );
      const [count] = await sql`select count(*)::int as tables from pg_tables where schemaname = 'shared'`;
      assert.equal(count?.tables, 1);
    });
  });
}

test("a schema that came to stand before ours in search_path is refused, not filled with empty tables", async () => {
  await withSite("mandate", async ({ owner, sql }) => {
    await sql`create schema before_ours`;
    await sql`alter schema before_ours owner to ${sql(decodeURIComponent(new URL(owner).username))}`;
    const url = new URL(owner);
    url.searchParams.set("search_path", "before_ours, mandate");
    const fault = await refusal(url.href);
    assert.ok(fault instanceof StoreMisplaced);
    assert.match(
      fault.message,
      /^the tables of this server are in the schema mandate, but before_ours comes before it in search_path \(before_ours, mandate\): set search_path to mandate for "Owner /,
    );
    const [count] = await sql`select count(*)::int as tables from pg_tables where schemaname = 'before_ours'`;
    assert.equal(count?.tables, 0);
  });
});

test("the statements that are to come can be run by hand, and printing them changes nothing", async () => {
  const url = await freshDatabase(server);
  const scripts = await pendingScripts({ postgres: url });
  assert.equal(scripts.length, loadMigrations("postgres").length);
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  const tables = () => sql`select tablename from pg_tables where schemaname = 'public'`;
  assert.equal((await tables()).length, 0);
  for (const script of scripts) await sql.unsafe(script);
  assert.deepEqual(await pendingScripts({ postgres: url }), []);
  await sql.end();
  const store = await openUnchangedStore({ postgres: url });
  assert.deepEqual(await store.log.append([{ event: makeEvent("as-1", 0) }]), []);
  await store.close();
});

test("a call that waits in vain for a further connection says why there is none", async () => {
  await withSite("public", async ({ serving, role, sql }) => {
    const store = await openStore({ postgres: serving }, TIMEOUT_MS);
    await store.log.head("as-1");
    await sql`alter role ${sql(role)} connection limit 1`;
    await sql`begin`;
    await sql`lock table event`;
    const [, waited] = await Promise.allSettled([store.audit.heads(), store.audit.heads()]);
    await sql`rollback`;
    await store.close();
    assert.match(waited?.status === "rejected" ? waited.reason.message : "", /53300.*store\.connections/);
  });
});

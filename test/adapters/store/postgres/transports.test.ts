/** The ways to a database that are accepted or refused before anything is read from it. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { after, before, type TestContext, test } from "node:test";
import postgres from "postgres";
import { openStore, waitAtStart } from "../../../../src/adapters/store/open.ts";
import { StoreMisplaced } from "../../../../src/adapters/store/store.ts";
import type { StorePlace } from "../../../../src/settings/settings.ts";
import {
  type DatabaseServer,
  POOLER_MISSING,
  startDatabaseServer,
  startPooler,
} from "../../../support/pg-transports.ts";
import { freshDatabase } from "../../../support/postgres.ts";
import { stop } from "../../../support/stop.ts";
import { makeEvent } from "../store.contract.ts";

let server: DatabaseServer;
before(async () => {
  server = await startDatabaseServer();
});
after(() => stop(server));

/** Whether it is written to, or why not. */
async function use(place: StorePlace): Promise<string> {
  try {
    const store = await openStore(place);
    await store.log.append([{ event: makeEvent("as-1", 0) }]);
    await store.close();
    return "used";
  } catch (fault) {
    return fault instanceof Error ? fault.message : "";
  }
}

test("a Unix socket of the server is used, whatever the URL says of TLS", async () => {
  const url = await freshDatabase(server);
  assert.equal(await use({ postgres: url, socketFolder: server.socketFolder }), "used");
  const tls = { mode: "verified" } as const;
  const again = await freshDatabase(server);
  assert.equal(await use({ postgres: again, socketFolder: server.socketFolder, tls }), "used");
});

test("STORE-D-4 settings of the role and of the URL do not reach the sessions of the store", async (t) => {
  const url = await freshDatabase(server);
  const admin = postgres(url, { max: 1 });
  t.after(() => admin.end());
  const name = new URL(url).pathname.slice(1);
  const given = { jit: "on", synchronous_commit: "off", bytea_output: "escape", statement_timeout: "0" };
  for (const [setting, value] of Object.entries(given))
    await admin.unsafe(`alter database ${name} set ${setting} = ${value}`);
  const store = await openStore({ postgres: `${url}?client_encoding=LATIN1` });
  t.after(() => store.close());
  await admin.unsafe(`
    create table seen (name text, setting text);
    create function see() returns trigger language plpgsql as $$ begin
      insert into seen select s.name, s.setting from pg_settings s; return new; end $$;
    create trigger see before insert on event execute function see()`);
  await store.log.append([{ event: makeEvent("as-1", 0) }]);
  const names = [...Object.keys(given), "client_encoding", "enable_seqscan"];
  const seen = await admin`select name, setting from seen where name in ${admin(names)} order by name`;
  assert.deepEqual(
    seen.map((row) => [row.name, row.setting]),
    [
      ["bytea_output", "hex"],
      ["client_encoding", "UTF8"],
      ["enable_seqscan", "off"],
      ["jit", "off"],
      ["statement_timeout", "4500"],
      ["synchronous_commit", "on"],
    ],
  );
});

/** A server that answers the request for TLS with these bytes, and counts what it gets after them. */
async function answering(t: TestContext, bytes: string): Promise<{ url: string; got(): number }> {
  let got = 0;
  const listener = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => {
      socket.on("data", ({ length }) => {
        got += length;
      });
      socket.write(bytes);
    });
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  t.after(() => listener.close());
  const { port } = listener.address() as AddressInfo;
  return { url: `postgres://u:secret@127.0.0.1:${port}/d`, got: () => got };
}

for (const mode of ["required", "verified"] as const) {
  test(`a server without TLS is refused where it is ${mode}, before it learns a name`, async (t) => {
    const { url, got } = await answering(t, "N");
    assert.match(await use({ postgres: url, tls: { mode } }), /\(NO_TLS\): the server offers no TLS/);
    assert.equal(got(), 0);
  });
}

for (const mode of ["offered", "required", "verified"] as const) {
  test(`bytes that follow the answer unencrypted are refused where TLS is ${mode}`, async (t) => {
    const { url, got } = await answering(t, "SR\0\0\0\x08\0\0\0\0");
    assert.match(await use({ postgres: url, tls: { mode } }), /\(NO_TLS\)/);
    assert.equal(got(), 0);
  });
}

test("attempts that the server ends at once leave no timer of the driver", async (t) => {
  const listener = createServer((socket) => socket.on("error", () => {}).destroy());
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  t.after(() => listener.close());
  const { port } = listener.address() as AddressInfo;
  const timers = () => process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length;
  const before = timers();
  const rounds = 20;
  for (let round = 0; round < rounds; round++)
    assert.match(await use({ postgres: `postgres://u:secret@127.0.0.1:${port}/d` }), /ECONNRESET|EPIPE/);
  assert.ok(timers() < before + rounds / 4, `${timers() - before} timers after ${rounds} attempts`);
});

test("TLS that is offered is taken, and a server without it is used where that is allowed", async () => {
  const tls = { mode: "offered" } as const;
  const url = await freshDatabase(server);
  const store = await openStore({ postgres: url, tls });
  await store.log.logs();
  const admin = postgres(url, { max: 1 });
  const encrypted = await admin`select ssl from pg_stat_ssl join pg_stat_activity using (pid)
    where application_name = 'mandate' and datname = current_database()`;
  assert.deepEqual(
    encrypted.map(({ ssl }) => ssl),
    [true],
  );
  await admin`alter system set ssl = off`;
  await admin`select pg_reload_conf()`;
  await admin.end();
  await store.close();
  assert.equal(await use({ postgres: url, tls }), "used");
});

test("a server that only reads is not used, since what it tells of endings may be old", async (t) => {
  const url = await freshDatabase(server);
  const admin = postgres(url, { max: 1 });
  t.after(() => admin.end());
  await admin.unsafe(
    `alter database ${new URL(url).pathname.slice(1)} set default_transaction_read_only = on`,
  );
  assert.match(await use({ postgres: url }), /25006: the server only reads: .* leads to a standby/);
});

test("a pooler that keeps a session for each client is used", { skip: POOLER_MISSING }, async (t) => {
  const pooler = await startPooler(await freshDatabase(server), "session");
  t.after(pooler.stop);
  assert.equal(await use({ postgres: pooler.url }), "used");
});

for (const mode of ["transaction", "statement"]) {
  test(`a pooler in ${mode} mode is refused at the start with what to set`, {
    skip: POOLER_MISSING,
  }, async (t) => {
    const pooler = await startPooler(await freshDatabase(server), mode);
    t.after(pooler.stop);
    const place = { postgres: pooler.url };
    const start = waitAtStart(place, 60, () => assert.fail("the start waits"))(() => openStore(place));
    await assert.rejects(start, (fault: Error) => {
      assert.ok(fault instanceof StoreMisplaced);
      assert.match(fault.message, /a pooler that shares sessions: set its mode to session/);
      return true;
    });
  });
}

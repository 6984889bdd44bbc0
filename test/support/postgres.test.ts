import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import postgres from "postgres";
import { freshDatabase, type Postgres, startPostgres } from "./postgres.ts";
import { stop } from "./stop.ts";

const GONE_TIMEOUT_MS = 15_000;

let server: Postgres;
let durable: Postgres;
before(async () => {
  [server, durable] = await Promise.all([startPostgres(), startPostgres({ durable: true })]);
});
after(() => stop(server, durable));

async function ask(url: string, query: string): Promise<unknown> {
  const sql = postgres(url, { max: 1 });
  try {
    const [row] = await sql.unsafe(query);
    return Object.values(row ?? {})[0];
  } finally {
    await sql.end({ timeout: 1 });
  }
}

async function accepts(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

test("postgres: answers with its version", async () => {
  const other = process.env.MANDATE_POSTGRES_BIN !== undefined;
  assert.match(
    String(await ask(server.url, "select version()")),
    other ? /^PostgreSQL \d/ : /^PostgreSQL 18\./,
  );
});

test("postgres: refuses a wrong password", async () => {
  const url = new URL(server.url);
  url.password = "wrong";
  await assert.rejects(ask(url.href, "select 1"), { code: "28P01" });
});

test("postgres: fresh databases do not see each other", async () => {
  const [one, two] = [await freshDatabase(server), await freshDatabase(server)];
  await ask(one, "create table only_here ()");
  assert.equal(await ask(one, "select to_regclass('only_here') is null"), false);
  assert.equal(await ask(two, "select to_regclass('only_here') is null"), true);
});

test("postgres: suspended it does not answer, resumed it does", async () => {
  const sql = postgres(server.url, { max: 1 });
  await sql`select 1`;
  server.suspend();
  let answered = false;
  const answer = sql`select 2 as two`.then((rows) => {
    answered = true;
    return rows[0]?.two;
  });
  await sleep(200);
  assert.equal(answered, false);
  server.resume();
  assert.equal(await answer, 2);
  await sql.end();
});

test("postgres: killed it drops its connections, restarted it has what was committed", async () => {
  const url = await freshDatabase(server);
  await ask(url, "create table kept as select 7 as n");
  const sleeping = assert.rejects(ask(url, "select pg_sleep(60)"), /CONNECTION_CLOSED|ECONNRESET/);
  await sleep(200);
  await server.kill();
  await sleeping;
  assert.equal(await accepts(url), false);
  await server.restart();
  assert.equal(await ask(url, "select n from kept"), 7);
});

test("postgres: fsync is off unless durability is asked for", async () => {
  assert.equal(await ask(durable.url, "show fsync"), "on");
  assert.equal(await ask(server.url, "show fsync"), "off");
});

test("postgres: stopped it leaves neither a listener nor a file, even when suspended", async () => {
  const folder = String(await ask(durable.url, "show data_directory"));
  assert.ok(existsSync(folder));
  durable.suspend();
  await durable.stop();
  assert.equal(await accepts(durable.url), false);
  assert.equal(existsSync(folder), false);
});

test("postgres: it ends with a test process that was killed", async () => {
  const script = `
    import { startPostgres } from ${JSON.stringify(import.meta.resolve("./postgres.ts"))};
    console.log((await startPostgres()).url);
    setInterval(() => {}, 1000);
  `;
  const owner = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = await once(owner.stdout, "data");
  const url = String(line).trim();
  const folder = String(await ask(url, "show data_directory"));
  owner.kill("SIGKILL");
  const deadline = Date.now() + GONE_TIMEOUT_MS;
  while (existsSync(folder) && Date.now() < deadline) await sleep(50);
  assert.equal(existsSync(folder), false);
  assert.equal(await accepts(url), false);
});

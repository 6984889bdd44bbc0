/** `mandate audit … --from FILE` on a logical copy and on a standby of a real PostgreSQL. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import postgres from "postgres";
import { type HostRun, runCommandLine } from "../../scripts/command-line.ts";
import { makeProfile } from "../../scripts/dev-profile.ts";
import { startServer } from "../../scripts/server-process.ts";
import { openCopy, openStore } from "../../src/adapters/store/open.ts";
import { hasLook } from "../../src/cli/audit/copy.ts";
import type { Admin } from "../../src/cli/command.ts";
import { freshDatabase, type Postgres, startPostgres } from "../support/postgres.ts";
import { stop } from "../support/stop.ts";
import { until } from "../support/until.ts";

const EVENT = /^\{.*\}$/gm;

describe("AUDIT-D-17 the trail of a copy", () => {
  const folder = mkdtempSync(join(tmpdir(), "mandate-copy-"));
  const file = (name: string): string => join(folder, name);
  let [leader, standby]: Postgres[] = [];
  let [store, copy]: postgres.Sql[] = [];
  let [storeUrl, copyUrl] = ["", ""];
  let config = "";

  before(async () => {
    leader = await startPostgres();
    const admin = postgres(leader.url, { max: 1 });
    await admin`alter system set wal_level = 'logical'`;
    await admin.end();
    await leader.restart();
    [storeUrl, copyUrl] = [await freshDatabase(leader), await freshDatabase(leader)];
    [store, copy] = [storeUrl, copyUrl].map((url) => postgres(url, { max: 1, onnotice: () => {} }));
    const { configFile } = await makeProfile(join(folder, "data"));
    config = configFile;
    const made = { ...JSON.parse(readFileSync(config, "utf8")), store: { postgres: storeUrl } };
    delete made.operations;
    Object.assign(made.listen, { port: 0 });
    writeFileSync(config, JSON.stringify(made));
    await (await startServer(config)).stop();
    await runCommandLine(["audit", "--config", config]);
    // The tables of a copy come without rows, as pg_dump --schema-only writes them.
    await (await openStore({ postgres: copyUrl })).close();
    assert.ok(store !== undefined && copy !== undefined);
    const tables = await copy<{ name: string }[]>`select relname as name from pg_class
      where relkind = 'r' and relnamespace = current_schema()::regnamespace`;
    await copy.unsafe(`truncate ${tables.map(({ name }) => name)}`);
    await store`create publication copy for all tables`;
    await store`select pg_create_logical_replication_slot('copy', 'pgoutput')`;
    const { hostname, port, password, pathname } = new URL(storeUrl);
    const from = `host=${hostname} port=${port} user=postgres password=${password} dbname=${pathname.slice(1)}`;
    await copy.unsafe(
      `create subscription copy connection '${from}' publication copy with (create_slot = false, slot_name = 'copy')`,
    );
    standby = await startPostgres({ standbyOf: leader });
    writeFileSync(file("copy.url"), `${copyUrl}\n`);
    const ofStandby = new URL(standby.url);
    ofStandby.pathname = pathname;
    writeFileSync(file("standby.url"), ofStandby.href);
  });
  after(async () => {
    // What the subscription holds would wait for a slot that is gone.
    await copy?.unsafe("alter subscription copy disable");
    await stop(
      () => store?.end(),
      () => copy?.end(),
      standby,
      leader,
      () => rmSync(folder, { recursive: true, force: true }),
    );
  });

  const audit = (...words: string[]): Promise<HostRun> =>
    runCommandLine(["audit", ...words, "--config", config]);
  const newest = async (sql: postgres.Sql | undefined): Promise<number> =>
    Number((await sql?.unsafe("select max(seq) as seq from event where log = 'admin'"))?.[0]?.seq ?? -1);
  const replicated = () =>
    until(async () => (await newest(copy)) === (await newest(store)), "the copy has the look");

  for (const at of ["copy", "standby"]) {
    test(`a ${at} is read, verified and exported as the store is; the look stands in the store`, async () => {
      const before = await newest(store);
      const verified = await audit("verify", "--from", file(`${at}.url`));
      assert.equal(verified.code, 0, verified.err);
      assert.match(
        verified.out,
        /^Read from 127\.0\.0\.1:\d+\/test_\w+, which is not written to\. Its newest/,
      );
      assert.match(verified.out, /^development: \d+ events, chain intact/m);
      const listed = await audit("--from", file(`${at}.url`), "--format", "ndjson", "--type", "admin.access");
      assert.equal(listed.code, 0, listed.err);
      assert.match(listed.err, /^Read from 127/);
      assert.doesNotMatch(listed.out + listed.err, /postgres:|password/);
      const to = file(`export-${at}`);
      const exported = await audit("export", to, "--from", file(`${at}.url`));
      assert.deepEqual([exported.code, exported.err], [0, ""]);
      const words = exported.out.split("\n").find((line) => line.includes("audit verify --export")) ?? "";
      const offline = await runCommandLine(words.trim().split(" ").slice(1));
      assert.equal(offline.code, 0, offline.err);
      // AUDIT-D-6, AUDIT-D-15: the export has the record of itself, which says from where it was made.
      const own = readFileSync(join(to, "events.ndjson"), "utf8")
        .match(EVENT)
        ?.map((line) => JSON.parse(line));
      assert.match(own?.findLast(({ detail }) => detail?.command === "audit export").detail.from, /\/test_/);
      assert.equal((await newest(store)) - before, 3);
    });
  }

  test("a role that may read is enough, and a session writes nothing where the role may", async (t) => {
    await copy?.unsafe("create role auditor login password 'a'");
    await copy?.unsafe("grant select on all tables in schema public to auditor");
    const url = new URL(copyUrl);
    Object.assign(url, { username: "auditor", password: "a" });
    writeFileSync(file("auditor.url"), url.href);
    const read = await audit("--limit", "1", "--from", file("auditor.url"));
    assert.equal(read.code, 0, read.err);
    const opened = await openCopy({ postgres: copyUrl });
    t.after(() => opened.close());
    await assert.rejects(async () => opened.names.take("as-1", { host: "h", pid: 1 }, 1_000), /25006/);
  });

  test("what a copy lacks is counted; what it has and the store has not is called a difference", async () => {
    await replicated();
    await copy?.unsafe("alter subscription copy disable");
    await audit("--limit", "1");
    const behind = await audit("verify", "--from", file("copy.url"));
    assert.equal(behind.code, 0, behind.err);
    assert.match(behind.out, /^Read .* and 1 of the store, the newest from 20\S+Z, are not there yet\.$/m);
    const opened = await openCopy({ postgres: copyUrl });
    const here = await openStore({ postgres: storeUrl });
    const auditor = { store: here, copy: { store: opened, at: "", says: "", differs: false } };
    assert.equal(await hasLook(auditor as unknown as Admin, 0), false);
    await Promise.all([opened.close(), here.close()]);
    await copy?.unsafe("alter subscription copy enable");
    await replicated();
    await copy?.unsafe("alter subscription copy disable");
    await store?.unsafe(
      "delete from event where log = 'development' and seq = (select max(seq) from event where log = 'development')",
    );
    const differs = await audit("verify", "--from", file("copy.url"));
    assert.equal(differs.code, 1, differs.out);
    assert.match(
      differs.err,
      /^Read .* It differs: the last record there of development is not in the store/m,
    );
    assert.match(differs.out, /^development: \d+ events, chain intact/m);
  });

  test("without the store nothing is read, because the look could not be recorded", async () => {
    const made = JSON.parse(readFileSync(config, "utf8"));
    made.store.postgres = new URL("postgres://127.0.0.1:1/none").href;
    const away = join(folder, "data", "away.json");
    writeFileSync(away, JSON.stringify(made));
    const refused = await runCommandLine(["audit", "--from", file("standby.url"), "--config", away]);
    assert.deepEqual([refused.code, refused.out], [3, ""]);
    assert.match(refused.err, /^A look at the copy is recorded in the store .* nothing was read\.$/m);
    writeFileSync(file("wrong.url"), "mysql://a/b");
    const wrong = await audit("--from", file("wrong.url"));
    assert.deepEqual([wrong.code, wrong.out], [2, ""]);
    assert.match(wrong.err, /^--from: .*wrong\.url: is not a connection URL/);
    writeFileSync(file("none.url"), "postgres://127.0.0.1:1/none");
    const none = await audit("--from", file("none.url"));
    assert.deepEqual([none.code, none.out], [3, ""]);
    assert.match(
      none.err,
      /^--from: 127\.0\.0\.1:1\/none: the connection to the database failed \(ECONNREFUSED\)/,
    );
  });
});

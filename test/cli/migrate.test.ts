/** `mandate migrate`: by the owner of the tables, for a server that may not change them; on both stores. */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test } from "node:test";
import postgres from "postgres";
import { runCommandLine } from "../../scripts/command-line.ts";
import { makeProfile } from "../../scripts/dev-profile.ts";
import { startServer } from "../../scripts/server-process.ts";
import { loadMigrations } from "../../src/adapters/store/migrations.ts";
import { serveBy } from "../adapters/store/postgres/schema.ts";
import { freshDatabase, sharePostgres } from "../support/postgres.ts";

let folder: string;
let config: object;

before(async () => {
  folder = join(mkdtempSync(join(tmpdir(), "mandate migrate ")), "data");
  const { configFile } = await makeProfile(folder);
  config = { ...JSON.parse(readFileSync(configFile, "utf8")), operations: undefined };
});
after(() => rmSync(join(folder, ".."), { recursive: true, force: true }));

function write(name: string, store: object): string {
  const file = join(folder, name);
  const listen = {
    host: "127.0.0.1",
    port: 0,
    tls: { key: { file: "tls/key.pem" }, cert: { file: "tls/cert.pem" } },
  };
  writeFileSync(file, JSON.stringify({ ...config, listen, store }));
  return file;
}

test("SQLite: a dry run prints the SQL and makes no file; then the tables are made once", async () => {
  const file = write("sqlite.json", { sqlite: "migrated.sqlite" });
  const migrate = (...words: string[]) => runCommandLine(["migrate", ...words, "--config", file]);
  const dry = await migrate("--dry-run");
  assert.deepEqual([dry.code, dry.err], [0, ""]);
  assert.ok(!existsSync(join(folder, "migrated.sqlite")));
  const count = loadMigrations("sqlite").length;
  assert.equal((await migrate()).out, `The tables are those of this version, after ${count} migration.\n`);
  assert.equal((await migrate()).out, "The tables are those of this version; nothing was changed.\n");
  assert.deepEqual(await migrate("--dry-run"), { code: 0, out: "", err: "" });
  using byHand = new DatabaseSync(":memory:");
  byHand.exec(dry.out);
  using migrated = new DatabaseSync(join(folder, "migrated.sqlite"), { readOnly: true });
  const schemaOf = (db: DatabaseSync) =>
    db.prepare("select name, sql from sqlite_schema where name not like 'sqlite_%' order by name").all();
  assert.deepEqual(schemaOf(byHand), schemaOf(migrated));
  using newer = new DatabaseSync(join(folder, "migrated.sqlite"));
  newer.exec(`insert into migration (number, additive) values (${count + 1}, 0)`);
  for (const words of [["--dry-run"], []]) {
    const refused = await migrate(...words);
    assert.deepEqual([refused.code, refused.out], [3, ""]);
    assert.match(refused.err, /use a newer version$/m);
  }
});

test("PostgreSQL: the owner migrates, and then a server starts whose role may not", async (t) => {
  const server = await sharePostgres();
  const url = await freshDatabase(server);
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  const { url: serving, role, end } = await serveBy(url, sql);
  t.after(async () => {
    await end();
    await sql.end();
    await server.stop();
  });
  const known = loadMigrations("postgres").length;
  await sql`delete from migration where number = ${known}`;
  const [owner, served] = [
    write("owner.json", { postgres: url }),
    write("serving.json", { postgres: serving }),
  ];
  const check = (...words: string[]) => runCommandLine(["check", ...words, "--config", served]);
  const older = `the tables are those of an older version (${known - 1} of ${known} migrations)`;
  const before = await check();
  assert.equal(before.code, 3, before.out);
  assert.ok(before.out.includes(older), before.out);
  const tried = await runCommandLine(["migrate", "--config", served]);
  assert.equal(tried.code, 3);
  assert.equal(
    tried.err,
    `${older}, and "${role}" may not change the schema public: run "mandate migrate" as the owner, postgres\n`,
  );
  const dry = await runCommandLine(["migrate", "--dry-run", "--config", owner]);
  assert.match(dry.out, /^set search_path to public;\nbegin;\nselect pg_advisory_xact_lock/);
  assert.ok(dry.out.includes(loadMigrations("postgres").at(-1)?.text ?? "none"), dry.out);
  // What is noted as done is not run.
  await sql`insert into migration (number) values (${known})`;
  const again = await runCommandLine(["migrate", "--config", owner]);
  assert.deepEqual([again.code, again.err], [0, ""]);
  assert.match(again.out, /nothing was changed/);
  const running = await startServer(served);
  assert.equal(await running.stop(), 0);
  await sql`revoke delete on token from ${sql(role)}`;
  const after = await check();
  assert.equal(after.code, 1, after.out);
  assert.ok(after.out.includes(`grant delete on token to "${role}"`), after.out);
});

/** Backup of a database in use, and its restore into an empty one. */
import { execFile } from "node:child_process";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import postgres from "postgres";
import { openStore } from "../../../src/adapters/store/open.ts";

const run = promisify(execFile);

/**
 * By `pg_dump` and `pg_restore` as scripts/deploy/README.md says, where those of this machine are not older than the server;
 * else as they do it, over our own connections. Says which, and how many events the copy has.
 */
export async function copyDatabase(from: string, to: string, file: string): Promise<string> {
  const sql = postgres(from, { max: 1 });
  const [server] = await sql<
    { major: number }[]
  >`select current_setting('server_version_num')::int / 10000 as major`;
  await sql.end();
  const hasTools = (await toolsMajor()) >= (server?.major ?? 0);
  if (hasTools) {
    await run("pg_dump", ["--format=custom", `--file=${file}`, from]);
    await run("pg_restore", [`--dbname=${to}`, file]);
  } else await copyRows(from, to);
  const copy = postgres(to, { max: 1 });
  const [counted] = await copy<{ events: number }[]>`select count(*)::int as events from event`;
  await copy.end();
  const how = hasTools
    ? "pg_dump, pg_restore"
    : `COPY in one snapshot (no pg_dump of version ${server?.major} here)`;
  return `${counted?.events} events by ${how}`;
}

/** The older one of the two; 0 without them. */
async function toolsMajor(): Promise<number> {
  const versions = ["pg_dump", "pg_restore"].map(async (tool) => {
    const { stdout } = await run(tool, ["--version"]).catch(() => ({ stdout: "" }));
    return Number(/ (\d+)/.exec(stdout)?.[1] ?? 0);
  });
  return Math.min(...(await Promise.all(versions)));
}

/** All rows as one snapshot has them, put into the tables of an empty database. */
async function copyRows(from: string, to: string): Promise<void> {
  // Makes the tables.
  await (await openStore({ postgres: to, connections: 1 })).close();
  const source = postgres(from, { max: 1 });
  const target = postgres(to, { max: 1, onnotice: () => undefined });
  try {
    await source.begin("isolation level repeatable read read only", async (snapshot) => {
      const tables = await snapshot<{ name: string }[]>`
        select tablename as name from pg_tables where schemaname = 'public'`;
      const names = tables.map(({ name }) => name);
      // A table may come before the one that it refers to.
      await target`set session_replication_role = replica`;
      // What the migrations and the first opening wrote.
      await target`truncate table ${target(names)}`;
      for (const name of names) {
        await pipeline(
          await snapshot`copy ${snapshot(name)} to stdout`.readable(),
          await target`copy ${target(name)} from stdin`.writable(),
        );
      }
    });
  } finally {
    await Promise.all([source.end(), target.end()]);
  }
}

/** A store on PostgreSQL for the tests of one file: one schema and one pool, emptied for each test. */
import { randomUUID } from "node:crypto";
import { after } from "node:test";
import type { Sql } from "postgres";
import postgres from "postgres";
import { openStore } from "../../../../src/adapters/store/open.ts";
import { RIGHTS } from "../../../../src/adapters/store/postgres/rights.ts";
import type { Store } from "../../../../src/adapters/store/store.ts";
import { type SharedPostgres, sharePostgres } from "../../../support/postgres.ts";
import { recordStatements } from "../../../support/prepared-statements.ts";

export type Schema = {
  url: string;
  /** Past the store. */
  sql: Sql;
  /** Closed after the last test of the file, and not by the test that got it. */
  store: Store;
};

/** As good as an empty database of its own, and there in a moment. */
export async function freshSchema(server: Pick<SharedPostgres, "url">): Promise<string> {
  const name = `test_${randomUUID()}`;
  const sql = postgres(server.url, { max: 1 });
  try {
    await sql`create schema ${sql(name)}`;
  } finally {
    await sql.end();
  }
  const ours = new URL(server.url);
  ours.searchParams.set("search_path", `"${name}"`);
  return ours.href;
}

/** Tables of their owner at `url`, and a role that has the rights of one that serves, and no others; `admin` makes it. */
export async function serveBy(
  url: string,
  admin: Sql,
): Promise<{ url: string; role: string; end(): Promise<void> }> {
  await (await openStore({ postgres: url })).close();
  const owner = postgres(url, { max: 1, onnotice: () => {} });
  const [place] = await owner<{ schema: string }[]>`select current_schema() as schema`;
  await owner.end();
  const schema = admin(place?.schema ?? "");
  const role = `Serves ${randomUUID()}`;
  await admin`create role ${admin(role)} login password 'serves'`;
  await admin`grant usage on schema ${schema} to ${admin(role)}`;
  for (const [table, rights] of Object.entries(RIGHTS)) {
    await admin`grant ${admin.unsafe(rights.join())} on ${schema}.${admin(table)} to ${admin(role)}`;
  }
  const serving = new URL(url);
  Object.assign(serving, { username: encodeURIComponent(role), password: "serves" });
  return {
    url: serving.href,
    role,
    async end() {
      await admin`drop owned by ${admin(role)}`;
      await admin`drop role ${admin(role)}`;
    },
  };
}

/**
 * For the top level of a file; what it returns gives the schema, without a row. What its stores prepare is noted in
 * `statements`.
 */
export function keepSchema(
  statements = new Set<string>(),
  conflicts?: { count: number },
): () => Promise<Schema> {
  let kept: Promise<Schema & { empty: string; end(): Promise<void> }> | undefined;
  const make = async () => {
    const server = await sharePostgres();
    const direct = await freshSchema(server);
    const sql = postgres(direct, { max: 1, onnotice: () => {} });
    const serving = await serveBy(direct, sql);
    const { url, close } = await recordStatements(serving.url, statements, conflicts);
    const store = await openStore({ postgres: url });
    const tables = await sql`
      select tablename from pg_tables where schemaname = current_schema() and tablename <> 'migration'
      order by tablename desc`;
    // For a few rows ten times as quick as truncate; a table that refers to another is named after it.
    const empty = tables.map(({ tablename }) => `delete from ${tablename}`).join("; ");
    const end = async (): Promise<void> => {
      await store.close();
      close();
      await serving.end();
      await sql.end();
      await server.stop();
    };
    return { url, sql, store: { ...store, close: async () => {} }, empty, end };
  };
  after(async () => (await kept)?.end());
  return async () => {
    kept ??= make();
    const { url, sql, store, empty } = await kept;
    await sql.unsafe(empty);
    return { url, sql, store };
  };
}

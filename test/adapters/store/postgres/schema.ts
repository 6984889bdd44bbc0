/** A store on PostgreSQL for the tests of one file: one schema and one pool, emptied for each test. */
import { randomUUID } from "node:crypto";
import { after } from "node:test";
import type { Sql } from "postgres";
import postgres from "postgres";
import { openStore } from "../../../../src/adapters/store/open.ts";
import type { Store } from "../../../../src/adapters/store/store.ts";
import type { SharedPostgres } from "../../../support/postgres.ts";
import { sharePostgres } from "../../../support/postgres.ts";
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

/**
 * For the top level of a file; what it returns gives the schema, without a row. What its stores prepare is noted in
 * `statements`.
 */
export function keepSchema(statements = new Set<string>()): () => Promise<Schema> {
  let kept: Promise<Schema & { empty: string; end(): Promise<void> }> | undefined;
  const make = async () => {
    const server = await sharePostgres();
    const direct = await freshSchema(server);
    const { url, close } = await recordStatements(direct, statements);
    const store = await openStore({ postgres: url });
    const sql = postgres(direct, { max: 1, onnotice: () => {} });
    const tables = await sql`
      select tablename from pg_tables where schemaname = current_schema() and tablename <> 'migration'
      order by tablename desc`;
    // For a few rows ten times as quick as truncate; a table that refers to another is named after it.
    const empty = tables.map(({ tablename }) => `delete from ${tablename}`).join("; ");
    const end = async (): Promise<void> => {
      await sql.end();
      await store.close();
      close();
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

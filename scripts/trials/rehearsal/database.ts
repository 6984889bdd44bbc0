/**
 * A copy of a database in use, as `pg_dump` and `pg_restore` make it (which the PostgreSQL of the tests lacks): all rows
 * as one snapshot has them, put into the tables of an empty database.
 */
import { pipeline } from "node:stream/promises";
import postgres from "postgres";
import { openStore } from "../../../src/adapters/store/open.ts";

/** How many rows were copied. */
export async function copyDatabase(from: string, to: string): Promise<number> {
  // Makes the tables.
  await (await openStore({ postgres: to, connections: 1 })).close();
  const [source, target] = [from, to].map((url) => postgres(url, { max: 1, onnotice: () => undefined }));
  if (source === undefined || target === undefined) return 0;
  try {
    return await source.begin("isolation level repeatable read read only", async (snapshot) => {
      const tables = await snapshot<{ name: string }[]>`
        select tablename as name from pg_tables where schemaname = 'public' order by 1`;
      // As pg_restore --disable-triggers: a table may come before the one that it refers to.
      await target`set session_replication_role = replica`;
      const names = tables.map(({ name }) => name);
      // What the migrations and the first opening wrote.
      await target`truncate table ${target(names)}`;
      for (const name of names) {
        await pipeline(
          await snapshot`copy ${snapshot(name)} to stdout`.readable(),
          await target`copy ${target(name)} from stdin`.writable(),
        );
      }
      let rows = 0;
      for (const name of names) {
        const [counted] = await target<{ rows: number }[]>`select count(*)::int as rows from ${target(name)}`;
        rows += counted?.rows ?? 0;
      }
      return rows;
    });
  } finally {
    await Promise.all([source.end(), target.end()]);
  }
}

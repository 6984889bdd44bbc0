/** The mark that tells a restored copy of the database from the original; copies are made by PostgreSQL's own tools. */
import type { RestoredMark } from "../store.ts";
import type { Call } from "./pool.ts";

export const postgresRestored = (call: Call): RestoredMark => ({
  async find() {
    const [row] = await call((sql) => sql<{ atMs: number }[]>`select marked_at_ms as "atMs" from restored`);
    return row?.atMs;
  },
  async set(atMs) {
    await call(
      (sql) => sql`
        insert into restored (id, marked_at_ms) values (1, ${atMs})
        on conflict (id) do update set marked_at_ms = excluded.marked_at_ms`,
    );
  },
  async clear() {
    await call((sql) => sql`delete from restored`);
  },
});

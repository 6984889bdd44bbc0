/** One round of what `npm run trials -- kills` does in many. */
import { test } from "node:test";
import { killUnderLoad } from "../support/kills.ts";
import { freshDatabase, sharePostgres } from "../support/postgres.ts";

test("AUDIT-D-1 no exchange is answered without its event when the server is killed (SQLite)", async () => {
  await killUnderLoad(1);
});

test("AUDIT-D-1 no exchange is answered without its event when the server is killed (PostgreSQL)", async (t) => {
  const database = await sharePostgres();
  t.after(() => database.stop());
  await killUnderLoad(1, await freshDatabase(database));
});

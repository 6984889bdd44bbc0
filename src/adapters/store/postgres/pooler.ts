/** Whether a pooler stands between this server and its database, and in which mode. */
import { StoreMisplaced } from "../store.ts";
import type { Call, Sql } from "./pool.ts";

const SHARED =
  "`store.postgres` leads to a pooler that shares sessions: set its mode to session (pool_mode=session of PgBouncer), or name the server of the database";

/**
 * Refuses a pooler that gives a session to another client after each transaction: settings and prepared statements of
 * one client would then be met by others. Such a pooler is noticed by what one connection finds of another.
 */
export async function refuseSharedSessions(call: Call): Promise<void> {
  await call(async (first) => {
    const answer = await first<{ pid: number }[]>`select pg_backend_pid() as pid`;
    // Only a pooler tells a number at the start that is not the one of the server's process.
    if (answer[0]?.pid === answer.state.pid) return;
    const mark = (sql: Sql, name: string) => sql`select set_config('mandate.session', ${name}, false)`;
    await mark(first, "first");
    await call((second) => mark(second, "second"));
    const [found] = await first<{ name: string }[]>`select current_setting('mandate.session', true) as name`;
    if (found?.name !== "first") throw new StoreMisplaced(SHARED);
  });
}

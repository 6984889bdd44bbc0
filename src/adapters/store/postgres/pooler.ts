/** What stands between this server and its database: a pooler in which mode, or a proxy that splits reads. */
import { STORE_LOOKS } from "../../../limits/store.ts";
import { StoreMisplaced } from "../store.ts";
import type { Call, Sql } from "./pool.ts";

const SHARED =
  "`store.postgres` leads to a pooler that shares sessions: set its mode to session (pool_mode=session of PgBouncer), or name the server of the database";
const SPLIT =
  "`store.postgres` leads to a proxy that sends reads to other servers than writes: switch that off (statement_level_load_balance of pgpool), or name the servers of the database";

type Look = { pid: number; readOnly: boolean };

/**
 * Refuses a proxy that spreads the statements of one session over several servers, and a pooler that gives a session to
 * another client after each transaction: settings and prepared statements of one client would then be met by others.
 */
export async function refuseSharedSessions(call: Call): Promise<void> {
  await call(async (first) => {
    const looks: Look[] = [];
    // STORE-D-8: one after another, and each another statement, because a proxy chooses for each that it has not seen. They
    // call no volatile function, so that one which splits reads takes them for reads.
    let told: number | undefined;
    for (let look = 0; look < STORE_LOOKS; look++) {
      const text = `select pg_backend_pid() as pid, current_setting('transaction_read_only')::boolean as "readOnly", $1::int as look_${look}`;
      const answer = await first.unsafe<Look[]>(text, [look], { prepare: true });
      told = answer.state.pid;
      looks.push(...answer);
    }
    const pids = new Set(looks.map(({ pid }) => pid));
    if (pids.size > 1) throw new StoreMisplaced(looks.some(({ readOnly }) => readOnly) ? SPLIT : SHARED);
    // Only a pooler tells a number at the start that is not the one of the server's process.
    if (told !== undefined && pids.has(told)) return;
    const mark = (sql: Sql, name: string) => sql`select set_config('mandate.session', ${name}, false)`;
    await mark(first, "first");
    await call((second) => mark(second, "second"));
    // Read where it was set, as in session.ts.
    const [found] = await first<{ name: string }[]>`
      select current_setting('mandate.session', true) as name, pg_is_in_recovery()`;
    if (found?.name !== "first") throw new StoreMisplaced(SHARED);
  });
}

/** What stands between this server and its database: a pooler in which mode, or a proxy that splits reads. */
import { STORE_LOOKS } from "../../../limits/store.ts";
import { StoreMisplaced } from "../store.ts";
import type { Call, Sql } from "./pool.ts";

const SHARED =
  "`store.postgres` leads to a pooler that shares sessions: set its mode to session (pool_mode=session of PgBouncer), or name the server of the database";
const SPLIT =
  "`store.postgres` leads to a proxy that sends reads to other servers than writes: switch that off (statement_level_load_balance and load_balance_mode of pgpool), or name the servers of the database";

type Look = { pid: number; readOnly: boolean };

/**
 * Refuses a proxy that spreads the statements of one session over several servers, of which some only read, and a pooler
 * that gives a session to another client after each transaction: settings and prepared statements of one client would
 * then be met by others.
 */
export async function refuseSharedSessions(call: Call, isCopy = false): Promise<void> {
  await call(async (first) => {
    const looks: Look[] = [];
    // STORE-D-8: one after another, because a proxy chooses for each. It calls no volatile function, so that one which
    // splits reads takes it for a read.
    let told: number | undefined;
    for (let look = 0; look < STORE_LOOKS; look++) {
      const answer = await first<Look[]>`
        select pg_backend_pid() as pid, current_setting('transaction_read_only')::boolean as "readOnly"`;
      told = answer.state.pid;
      looks.push(...answer);
    }
    if (!isCopy && looks.some(({ readOnly }) => readOnly)) throw new StoreMisplaced(SPLIT);
    const pids = new Set(looks.map(({ pid }) => pid));
    if (pids.size > 1) throw new StoreMisplaced(SHARED);
    // Only a pooler tells a number at the start that is not the one of the server's process.
    if (told !== undefined && pids.has(told)) return;
    const mark = (sql: Sql, name: string) => sql`select set_config('mandate.session', ${name}, false)`;
    await mark(first, "first");
    await call((second) => mark(second, "second"));
    const [found] = await first<{ name: string }[]>`select current_setting('mandate.session', true) as name`;
    if (found?.name !== "first") throw new StoreMisplaced(SHARED);
  });
}

/**
 * What each session of ours needs of the database, whatever its defaults and those of the role are. It is set by
 * statements, because poolers refuse it as parameters of the start.
 */
import { StoreUnavailable } from "../../../ports.ts";
import { meaningOf } from "../meanings.ts";
import { StoreMisplaced } from "../store.ts";
import { READ_ONLY } from "./faults.ts";
import type { Call, Sql } from "./pool.ts";

const settings = (timeoutMs: number): Readonly<Record<string, string | number>> => ({
  statement_timeout: timeoutMs,
  // Otherwise the server would end connections that wait for the next request.
  idle_session_timeout: 0,
  // AUDIT-D-1: durable before the answer.
  synchronous_commit: "on",
  default_transaction_isolation: "'read committed'",
  // Look-ups by a key take milliseconds, and compiling one takes a second.
  jit: "off",
  bytea_output: "hex",
});

/** Refuses a server that only reads: what it tells of endings and used assertions may be out of date. */
export async function beginSession(sql: Sql, timeoutMs: number): Promise<void> {
  const set = Object.entries(settings(timeoutMs)).map(([name, value]) => `set ${name} = ${value};`);
  await sql.unsafe(set.join(" "));
  const [state] = await sql<
    { readOnly: boolean }[]
  >`select current_setting('transaction_read_only')::boolean as "readOnly"`;
  if (state?.readOnly)
    throw new StoreUnavailable(`the database answered ${READ_ONLY}${meaningOf(READ_ONLY)}`);
}

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

const SHARED =
  "`store.postgres` leads to a pooler that shares sessions: set its mode to session (pool_mode=session of PgBouncer), or name the server of the database";

/**
 * What each session of ours needs of the database, whatever its defaults and those of the role are. It is set by
 * statements, because poolers refuse it as parameters of the start.
 */
import type { Sql } from "postgres";
import { onlyReads } from "./faults.ts";

/** Of the time of a call. */
const STATEMENT_PART = 0.9;

const settings = (timeoutMs: number): Readonly<Record<string, string | number>> => ({
  // HTTP-D-66: the server says why it ended a statement before the caller has given up.
  statement_timeout: Math.ceil(STATEMENT_PART * timeoutMs),
  // Otherwise the server would end connections that wait for the next request.
  idle_session_timeout: 0,
  // AUDIT-D-1: durable before the answer.
  synchronous_commit: "on",
  default_transaction_isolation: "'read committed'",
  bytea_output: "hex",
  // What the driver writes and reads, whatever the URL says.
  client_encoding: "'UTF8'",
  // A row that a policy hides is an error: a used assertion would look unused.
  row_security: "off",
});

/** STORE-D-10: set where the engine has them. */
const OF_PLANS = [
  // Look-ups by a key take milliseconds, and compiling one takes a second.
  "jit",
  // STORE-D-4: every statement looks rows up by keys, and its plan is kept: a table that was read as a whole while it was
  // small would be read as a whole when it has grown.
  "enable_seqscan",
].map(
  (name) => `select set_config('${name}', 'off', false) where current_setting('${name}', true) is not null;`,
);

/** The name of a file of the log begins with the timeline, which a promotion makes a later one. */
const COMMIT = `select pg_logical_emit_message(true, 'mandate', ''),
  left(pg_walfile_name(pg_current_wal_lsn()), 8) as timeline`;

type Kind = { isCopy?: boolean | undefined; isOneOfSeveral?: boolean };

/**
 * Refuses a server that only reads, because what it tells of endings and used assertions may be out of date; a copy is only
 * read, whatever it allows. One of several has to commit: where commits wait for a standby, a leader that was replaced and
 * does not know it yet takes writes, and never commits one. Returns the timeline of that, where there is one.
 */
export async function beginSession(
  sql: Sql<{ bigint: number }>,
  timeoutMs: number,
  { isCopy = false, isOneOfSeveral = false }: Kind = {},
): Promise<string> {
  const set = Object.entries(settings(timeoutMs)).map(([name, value]) => `set ${name} = ${value};`);
  // AUDIT-D-17: what is written to a logical copy would meet what the database sends later, and end the replication.
  if (isCopy) set.push("set default_transaction_read_only = on;");
  await sql.unsafe([...set, ...OF_PLANS].join(" "));
  if (isCopy) return "";
  // STORE-D-8: with a volatile function, as every read has one: pgpool sends both to the server that writes, also in a
  // session whose other reads it sends to a standby.
  const [state] = await sql<{ readOnly: boolean; canCommit: boolean }[]>`
    select pg_is_in_recovery() or current_setting('transaction_read_only')::boolean as "readOnly",
      exists (select from pg_proc where proname = 'pg_logical_emit_message') as "canCommit"`;
  if (state?.readOnly) throw onlyReads();
  // STORE-D-7: a message that is in no table, and that waits as each commit does. Other engines may not have it.
  if (!isOneOfSeveral || state?.canCommit !== true) return "";
  const [committed] = await sql.unsafe<{ timeline: string }[]>(COMMIT);
  return committed?.timeline ?? "";
}

/**
 * A pool of connections to PostgreSQL in which every call has our own deadline. A pool with a fault is replaced as a
 * whole, because the driver has been seen to hang, to reconnect without pause and to lose connections for good.
 */
import type { Socket } from "node:net";
import { connect } from "node:net";
import postgres from "postgres";
import { STORE_RETRY_MS } from "../../../limits.ts";
import { StoreUnavailable } from "../../../ports.ts";
import { LogConflict } from "../store.ts";

const UNIQUE_VIOLATION = "23505";

export type Sql = postgres.Sql<{ bigint: number }>;

type Pool = {
  sql: Sql;
  sockets: Socket[];
  retired: boolean;
  /** Whether it has answered a call. */
  works: boolean;
};

/** Runs one unit of work; throws StoreUnavailable at the deadline, even if the driver does not answer. */
export type Call = <T>(work: (sql: Sql) => PromiseLike<T>) => Promise<T>;

type Database = {
  call: Call;
  close(): Promise<void>;
};

type DatabaseOptions = { url: string; timeoutMs: number; connectionsMax: number };

/** Opens connections on demand, at most `connectionsMax`; each call has `timeoutMs`. */
export function openConnections({ url, timeoutMs, connectionsMax }: DatabaseOptions): Database {
  const pools = new Set<Pool>();
  let current: Pool | undefined;
  let notBeforeMs = 0;
  let closed = false;

  function pool(): Pool {
    if (closed) throw new StoreUnavailable("the database connection is closed");
    if (current !== undefined) return current;
    // After a failed connection no call tries again for a moment, however many callers there are.
    if (performance.now() < notBeforeMs)
      throw new StoreUnavailable("the database could not be reached a moment ago");
    current = openPool();
    pools.add(current);
    return current;
  }

  function openPool(): Pool {
    const options = {
      max: connectionsMax,
      // Connections are never closed for age, because a closed connection retires its pool.
      idle_timeout: 0,
      max_lifetime: 0,
      connect_timeout: Math.ceil(timeoutMs / 1000),
      fetch_types: false,
      onnotice: () => {},
      onclose: () => retire(opened),
      // Our own sockets can be cut, and their number is limited: if the server hangs up while a connection starts, the
      // driver would reconnect forever without a pause.
      socket: ({ host, port, path }: { host: string[]; port: number[]; path: string | false }) => {
        if (opened.retired || opened.sockets.length === connectionsMax) throw new Error("no more attempts");
        const name = host[0] ?? "";
        const socket = path ? connect(path) : connect({ host: name, port: port[0] ?? 0 });
        opened.sockets.push(socket);
        // The driver reads the host name for TLS from here.
        return Object.assign(socket, { host: name, port: port[0] });
      },
      connection: {
        application_name: "mandate",
        statement_timeout: timeoutMs,
        // AUDIT-D-1: durable before the answer, whatever the database's defaults are.
        synchronous_commit: "on",
        default_transaction_isolation: "read committed" as const,
      },
      types: {
        // All counters and times are safe integers.
        bigint: { to: 20, from: [20], serialize: (number: number) => String(number), parse: Number },
      },
    };
    const sql: Sql = postgres(url, options);
    if (sql.options.host.length > 1) throw new Error("the database URL names several hosts");
    const opened: Pool = { sql, sockets: [], retired: false, works: false };
    return opened;
  }

  /** Gives the pool no new work, and cuts its connections when the deadline of every call in flight has passed. */
  function retire(old: Pool): void {
    if (old.retired) return;
    old.retired = true;
    if (current === old) {
      current = undefined;
      if (!old.works) notBeforeMs = performance.now() + STORE_RETRY_MS;
    }
    setTimeout(cut, timeoutMs, old).unref();
  }

  function cut(old: Pool): void {
    for (const socket of old.sockets) socket.destroy();
    pools.delete(old);
  }

  return {
    async call(work) {
      const used = pool();
      const { promise: deadline, reject } = Promise.withResolvers<never>();
      const timer = setTimeout(
        reject,
        timeoutMs,
        new StoreUnavailable("the database did not answer in time"),
      );
      try {
        const value = await Promise.race([work(used.sql), deadline]);
        used.works = true;
        return value;
      } catch (error) {
        const fault = toFault(error);
        if (fault instanceof StoreUnavailable) retire(used);
        throw fault;
      } finally {
        clearTimeout(timer);
      }
    },
    async close() {
      closed = true;
      await current?.sql.end({ timeout: timeoutMs / 1000 });
      for (const open of pools) cut(open);
    },
  };
}

/** Keeps only the code of the driver's error, because the error holds the statement and its parameters. */
function toFault(error: unknown): unknown {
  if (error instanceof StoreUnavailable || error instanceof LogConflict) return error;
  if (!(error instanceof postgres.PostgresError)) {
    return new StoreUnavailable(`the connection to the database failed (${codeOf(error)})`);
  }
  const { code, constraint_name: constraint = "" } = error;
  // Data errors, constraint violations and invalid SQL are bugs of ours; a retry would fail in the same way.
  if (/^(22|23|42)/.test(code)) return new Error(`the database refused a statement (${code} ${constraint})`);
  return new StoreUnavailable(`the database answered ${code}`);
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "no code";
}

/** Whether a unique key was violated: the row exists already. */
export function isUniqueViolation(error: unknown): error is postgres.PostgresError {
  return error instanceof postgres.PostgresError && error.code === UNIQUE_VIOLATION;
}

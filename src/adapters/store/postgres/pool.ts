/**
 * A pool of connections to PostgreSQL. Each connection is a client of the driver with one socket, and serves one call at
 * a time: the driver has been seen to hang, to reconnect without pause and to lose connections for good, so that
 * connecting, waiting and giving up are decided here. An error that the server answers costs no connection.
 */
import type { Socket } from "node:net";
import { connect } from "node:net";
import postgres from "postgres";
import {
  STORE_CONNECT_TIMEOUT_MS,
  STORE_CONNECTS_MAX,
  STORE_CONNECTS_WINDOW_MS,
  STORE_GRACE_MS,
  STORE_RENEW_MS,
  STORE_RETRY_MS,
} from "../../../limits.ts";
import { StoreUnavailable } from "../../../ports.ts";
import { meaningOf } from "../meanings.ts";
import type { Store } from "../store.ts";
import { LogConflict } from "../store.ts";

const UNIQUE_VIOLATION = "23505";
const READ_ONLY = "25006";
const NO_PERMISSION = "42501";

export type Sql = postgres.Sql<{ bigint: number }>;

/** In the pool until its socket is closed, so that there are never more than allowed. */
type Connection = {
  sql: Sql;
  socket?: Socket;
  isOpen: boolean;
  /** Is closed when its call has ended. */
  isStale: boolean;
};

/** A call that waits for a connection. */
type Waiting = {
  /** Ends when the connection is free again; never rejects. */
  run(connection: Connection): Promise<void>;
  refuse(fault: unknown): void;
};

/** Runs one unit of work; throws StoreUnavailable at the deadline, even if the driver does not answer. */
export type Call = <T>(work: (sql: Sql) => PromiseLike<T>) => Promise<T>;

type Database = {
  call: Call;
  state: NonNullable<Store["connections"]>;
  close(): Promise<void>;
};

export type DatabaseOptions = {
  url: string;
  /** Verifies the server, by the authorities in `ca` (PEM) or those of the platform. */
  tls: { ca?: string } | undefined;
  timeoutMs: number;
  connectionsMax: number;
  /** Shared by all that connect to one server. */
  attempts: Attempts;
};

/** Connects with the first call. */
export function openConnections({
  url,
  tls,
  timeoutMs,
  connectionsMax,
  attempts,
}: DatabaseOptions): Database {
  const connections = new Set<Connection>();
  const idle: Connection[] = [];
  const waiting = new Set<Waiting>();
  let connecting = 0;
  let renewedMs = Number.NEGATIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  let verification = {};

  /** Gives idle connections to waiting calls, and opens more for the others. */
  function serveWaiting(): void {
    for (const each of waiting) {
      const connection = idle.pop();
      if (connection === undefined) break;
      waiting.delete(each);
      void serve(connection, each);
    }
    clearTimeout(timer);
    // After a failed attempt one at a time is enough to see when the server is back.
    const wanted = Math.min(waiting.size, attempts.failure === undefined ? connectionsMax : 1);
    while (!closed && connecting < wanted && connections.size < connectionsMax) {
      const waitMs = attempts.waitMs();
      if (waitMs > 0) {
        timer = setTimeout(serveWaiting, waitMs);
        return;
      }
      void open();
    }
  }

  async function serve(connection: Connection, call: Waiting): Promise<void> {
    // The server ends a statement at the deadline; one that does not even do that is not reached any more.
    const lost = setTimeout(() => {
      cut(connection);
      renew();
    }, timeoutMs + STORE_GRACE_MS);
    await call.run(connection);
    clearTimeout(lost);
    if (connection.isStale) void end(connection);
    else if (connection.isOpen) idle.push(connection);
    serveWaiting();
  }

  async function open(): Promise<void> {
    attempts.begin();
    connecting++;
    const connection = makeConnection();
    connections.add(connection);
    const { promise: deadline, reject } = Promise.withResolvers<never>();
    const limitMs = Math.min(timeoutMs, STORE_CONNECT_TIMEOUT_MS);
    const late = setTimeout(reject, limitMs, new StoreUnavailable("the database did not answer in time"));
    try {
      await Promise.race([connection.sql`select 1`, deadline]);
      attempts.end();
      connection.isOpen = true;
      idle.push(connection);
    } catch (error) {
      const fault = toConnectFault(error);
      attempts.end(fault);
      cut(connection);
      // With other connections, the server only has no place for more.
      if (![...connections].some(({ isOpen, isStale }) => isOpen && !isStale)) refuseWaiting(fault);
    } finally {
      clearTimeout(late);
      connecting--;
    }
    serveWaiting();
  }

  function refuseWaiting(fault: unknown): void {
    for (const { refuse } of waiting) refuse(fault);
    waiting.clear();
  }

  function makeConnection(): Connection {
    const options = {
      ...verification,
      max: 1,
      // Connections are never closed for age.
      idle_timeout: 0,
      max_lifetime: 0,
      connect_timeout: Math.ceil(STORE_CONNECT_TIMEOUT_MS / 1000),
      fetch_types: false,
      onnotice: () => {},
      onclose: () => cut(connection),
      // Our own sockets can be cut, and their number is limited: if the server hangs up while a connection starts, the
      // driver would reconnect forever without a pause.
      socket: ({ host, port, path }: { host: string[]; port: number[]; path: string | false }) => {
        if (connection.socket !== undefined)
          throw Object.assign(new Error("no more attempts"), { code: "CONNECTION_CLOSED" });
        const name = host[0] ?? "";
        const socket = path ? connect(path) : connect({ host: name, port: port[0] ?? 0 });
        connection.socket = socket;
        socket.once("close", () => forget(connection));
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
    const connection: Connection = { sql: postgres(url, options), isOpen: false, isStale: false };
    return connection;
  }

  function cut(connection: Connection): void {
    withdraw(connection);
    if (connection.socket === undefined) forget(connection);
    else connection.socket.destroy();
  }

  async function end(connection: Connection): Promise<void> {
    withdraw(connection);
    await connection.sql.end({ timeout: timeoutMs / 1000 });
    cut(connection);
  }

  function withdraw(connection: Connection): void {
    connection.isOpen = false;
    const index = idle.indexOf(connection);
    if (index >= 0) idle.splice(index, 1);
  }

  function forget(connection: Connection): void {
    withdraw(connection);
    if (connections.delete(connection)) serveWaiting();
  }

  /**
   * Replaces the connections, because the name of the database may lead to another server by now; not again for a
   * moment, because the new ones may lead to the same.
   */
  function renew(): void {
    const nowMs = performance.now();
    if (nowMs < renewedMs + STORE_RENEW_MS) return;
    renewedMs = nowMs;
    for (const connection of connections) if (connection.isOpen) connection.isStale = true;
    for (const connection of [...idle]) void end(connection);
  }

  // Throws for a URL that the driver cannot read.
  const { host: hosts } = makeConnection().sql.options;
  if (hosts.length > 1) throw new Error("the database URL names several hosts");
  if (tls !== undefined) {
    // The driver names a host to TLS only if it is no address, and an address is in the certificate, too.
    const host = hosts[0]?.replace(/^\[(.*)\]$/, "$1");
    verification = { ssl: { ...tls, host, rejectUnauthorized: true } };
  }

  return {
    async call<T>(work: (sql: Sql) => PromiseLike<T>) {
      if (closed) throw new StoreUnavailable("the database connection is closed");
      // While the server cannot be reached nothing waits for the next attempt, however many callers there are.
      if (connections.size === 0 && attempts.failure !== undefined && attempts.waitMs() > 0) {
        throw attempts.failure;
      }
      const { promise, resolve, reject } = Promise.withResolvers<T>();
      const call: Waiting = {
        refuse: reject,
        async run(connection) {
          try {
            resolve(await work(connection.sql));
          } catch (error) {
            if (isPostgresError(error) && error.code === READ_ONLY) renew();
            // The driver failed, so that what the connection does next is unknown.
            if (!isPostgresError(error) && !(error instanceof LogConflict)) cut(connection);
            reject(toFault(error));
          }
        },
      };
      const late = setTimeout(() => {
        waiting.delete(call);
        reject(new StoreUnavailable("the database did not answer in time"));
      }, timeoutMs);
      waiting.add(call);
      serveWaiting();
      try {
        return await promise;
      } finally {
        clearTimeout(late);
      }
    },
    state: () => ({
      in_use: connections.size - idle.length,
      idle: idle.length,
      waiting: waiting.size,
    }),
    async close() {
      closed = true;
      clearTimeout(timer);
      refuseWaiting(new StoreUnavailable("the database connection is closed"));
      await Promise.all([...connections].map(end));
    },
  };
}

export type Attempts = ReturnType<typeof makeAttempts>;

/** When the next connection may be tried: a limited number in any second, and none for a moment after a failure. */
export function makeAttempts() {
  const beganMs: number[] = [];
  let failedMs = Number.NEGATIVE_INFINITY;
  let failure: StoreUnavailable | undefined;
  return {
    /** Why the last attempt that ended failed. */
    get failure() {
      return failure;
    },
    waitMs(): number {
      const oldestMs = beganMs.at(-STORE_CONNECTS_MAX) ?? Number.NEGATIVE_INFINITY;
      const freeMs = Math.max(oldestMs + STORE_CONNECTS_WINDOW_MS, failedMs + STORE_RETRY_MS);
      return Math.max(0, Math.ceil(freeMs - performance.now()));
    },
    begin(): void {
      beganMs.push(performance.now());
      if (beganMs.length > STORE_CONNECTS_MAX) beganMs.shift();
    },
    end(fault?: StoreUnavailable): void {
      failure = fault;
      failedMs = fault === undefined ? Number.NEGATIVE_INFINITY : performance.now();
    },
  };
}

function toConnectFault(error: unknown): StoreUnavailable {
  if (error instanceof StoreUnavailable) return error;
  return new StoreUnavailable(
    `the connection to the database failed (${codeOf(error)})${meaningOf(codeOf(error))}`,
  );
}

/** Keeps only the code of the driver's error, because the error holds the statement and its parameters. */
function toFault(error: unknown): unknown {
  if (error instanceof StoreUnavailable || error instanceof LogConflict) return error;
  if (!isPostgresError(error)) return toConnectFault(error);
  const { code, constraint_name: constraint = "" } = error;
  // Data errors, constraint violations and invalid SQL are bugs of ours; a retry would fail in the same way.
  // A missing permission is not ours to correct.
  if (/^(22|23|42)/.test(code) && code !== NO_PERMISSION)
    return new Error(`the database refused a statement (${code} ${constraint})`);
  return new StoreUnavailable(`the database answered ${code}${meaningOf(code)}`);
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "no code";
}

/** Whether a unique key was violated: the row exists already. */
export function isUniqueViolation(error: unknown): error is postgres.PostgresError {
  return isPostgresError(error) && error.code === UNIQUE_VIOLATION;
}

const isPostgresError = (error: unknown): error is postgres.PostgresError =>
  error instanceof postgres.PostgresError;

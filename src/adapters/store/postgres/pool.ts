/**
 * A pool of connections to PostgreSQL. Each is a client of the driver on one socket of ours, and serves one call at a
 * time. Connecting, waiting and giving up are decided here, each with a deadline that needs nothing of the driver: what
 * has ended is out of the pool at once, so that no connection can keep a place. An error that the server answers costs
 * no connection.
 */
import type { Socket } from "node:net";
import postgres from "postgres";
import {
  STORE_CONNECT_TIMEOUT_MS,
  STORE_GRACE_MS,
  STORE_RENEW_MS,
  STORE_TURN_MS,
} from "../../../limits/store.ts";
import { StoreUnavailable } from "../../../ports.ts";
import type { DatabaseHost, DatabaseTls } from "../../../settings/settings.ts";
import { LogConflict, type Store } from "../store.ts";
import type { Attempts } from "./attempts.ts";
import { isOfReader, isPostgresError, noWriter, toConnectFault, toFault, untilInOrder } from "./faults.ts";
import { guardedSocket } from "./messages.ts";
import { beginSession } from "./session.ts";
import { failed, openSocket, type ServerAddress } from "./socket.ts";

const LATE = "the database did not answer in time";
const CLOSED = "the database connection is closed";
const REPLACED = "another server of the database has replaced this one";
const NOT_NEEDED = new StoreUnavailable("another server of the database writes");
/** The message by which a client leaves. */
const TERMINATE = Buffer.from([0x58, 0, 0, 0, 4]);

export type Sql = postgres.Sql<{ bigint: number }>;

/** A connection counts until its socket is closed, so that the database never sees more of them than are allowed. */
type Connection = {
  sql: Sql;
  server: Server;
  socket?: Socket;
  /** Aborted, it ends the socket; aborted by the socket when that ends first. */
  cut: AbortController;
  /** Resolves when it is cut. */
  ended: Promise<void>;
  /** Called when it is cut, for the call that it serves. */
  lose(): void;
  state: "connecting" | "idle" | "busy" | "leaving";
  /** Leaves when its call has ended. */
  isStale: boolean;
};

/** A call that waits for a connection. */
type Waiting = {
  /** Resolves, when the connection is free again, to what answers the caller; never rejects. */
  run(connection: Connection): Promise<() => void>;
  refuse(fault: unknown): void;
};

type Server = { address: ServerAddress; attempts: Attempts };

/** Runs one unit of work; throws StoreUnavailable at the deadline, even if the driver does not answer. */
export type Call = <T>(work: (sql: Sql) => PromiseLike<T>) => Promise<T>;

type Database = {
  call: Call;
  state: NonNullable<Store["connections"]>;
  close(): Promise<void>;
};

export type DatabaseOptions = {
  url: string;
  /** Of a Unix socket, in place of the host. */
  socketFolder?: string | undefined;
  /** In place of the host of the URL: of these servers, one that writes is used. */
  hosts?: readonly DatabaseHost[] | undefined;
  /** Absent: not encrypted. */
  tls?: DatabaseTls | undefined;
  timeoutMs: number;
  connectionsMax: number;
  /** Only read, and needs no server that writes. */
  isCopy?: boolean | undefined;
  /** For each server; shared by all that connect to it. */
  attempts: readonly Attempts[];
};

const NOTHING = (): void => {};

/** Connects with the first call. Throws for a URL that the driver cannot read. */
export function openConnections(options: DatabaseOptions): Database {
  const pool = new Pool(options);
  return { call: (work) => pool.call(work), state: () => pool.state(), close: () => pool.close() };
}

class Pool {
  readonly #options: DatabaseOptions;
  readonly #servers: readonly Server[];
  /** The server of all connections that serve. While it is not known every server is asked. */
  #writer: Server | undefined;
  #timeline = "";
  readonly #connections = new Set<Connection>();
  /** A list: of a set, V8 keeps each table that it grew out of, with all that was in it, until the next full collection. */
  #waiting: Waiting[] = [];
  #renewedMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: DatabaseOptions) {
    this.#options = options;
    this.#servers = options.attempts.map((attempts, nth) => ({
      attempts,
      address: readAddress(options, nth),
    }));
  }

  #inState(...states: Connection["state"][]): Connection[] {
    return [...this.#connections].filter(({ state }) => states.includes(state));
  }

  #isServing(): boolean {
    return this.#inState("idle", "busy").some(({ isStale }) => !isStale);
  }

  /** Why the servers that may be meant cannot be used. */
  #failure(): StoreUnavailable | undefined {
    const asked = this.#writer === undefined ? this.#servers : [this.#writer];
    const failures = asked.flatMap(({ attempts }) => attempts.failure ?? []);
    const told = new Set(failures.map(({ message }) => message));
    return told.size > 1 ? noWriter(new StoreUnavailable([...told].join("; "))) : failures[0];
  }

  /**
   * Gives idle connections to waiting calls, and opens more for the others. After it, a call that waits has an attempt
   * under way, a timer for the next one, or only connections with a deadline before it.
   */
  #serveWaiting(): void {
    clearTimeout(this.#timer);
    for (const connection of this.#inState("idle").reverse()) {
      const next = this.#waiting.shift();
      if (next === undefined) break;
      void this.#serve(connection, next);
    }
    const asked = this.#writer === undefined ? this.#servers : [this.#writer];
    const waitMs = Math.min(...asked.flatMap((server) => this.#openMore(server, asked.length > 1) ?? []));
    if (Number.isFinite(waitMs)) this.#timer = setTimeout(() => this.#serveWaiting(), waitMs);
  }

  /** Opens connections for the calls that wait; returns after what time it can open those that are missing. */
  #openMore(server: Server, isOneOfSeveral: boolean): number | undefined {
    const { attempts } = server;
    // After a failed attempt one at a time is enough to see when the server is back.
    const isOne = isOneOfSeveral || attempts.failure !== undefined;
    const wanted = Math.min(this.#waiting.length, isOne ? 1 : this.#options.connectionsMax);
    const countAt = (all: Iterable<Connection>): number =>
      [...all].filter((one) => one.server === server).length;
    while (
      countAt(this.#inState("connecting")) < wanted &&
      countAt(this.#connections) < this.#options.connectionsMax
    ) {
      const waitMs = attempts.waitMs();
      if (waitMs > 0) return waitMs;
      void this.#open(server);
    }
    return undefined;
  }

  async #serve(connection: Connection, call: Waiting): Promise<void> {
    connection.state = "busy";
    // The server ends a statement at the deadline; one that does not even do that is not reached any more.
    const lost = setTimeout(() => {
      connection.cut.abort(noWriter(new StoreUnavailable(LATE)));
      this.#renew();
    }, this.#options.timeoutMs + STORE_GRACE_MS);
    const askOthers = (): void => this.#askOthers(connection);
    const asking = this.#servers.length > 1 ? setInterval(askOthers, STORE_TURN_MS) : undefined;
    const { promise, resolve } = Promise.withResolvers<() => void>();
    // A race with `ended` would keep what each call got for as long as the connection lives.
    const lose = (): void => resolve(() => call.refuse(toConnectFault(connection.cut.signal.reason)));
    connection.lose = lose;
    void call.run(connection).then(resolve);
    const answer = await promise;
    clearTimeout(lost);
    clearInterval(asking);
    // An idle connection would keep the rows of its last batch.
    connection.lose = NOTHING;
    if (connection.isStale) this.#leave(connection);
    else connection.state = "idle";
    answer();
    this.#serveWaiting();
  }

  async #open(server: Server): Promise<void> {
    const { attempts } = server;
    attempts.begin();
    const connection = this.#connect(server);
    const { cut, ended, sql } = connection;
    const limitMs = Math.min(this.#options.timeoutMs, STORE_CONNECT_TIMEOUT_MS);
    const late = setTimeout(() => cut.abort(noWriter(new StoreUnavailable(LATE))), limitMs);
    try {
      const begun = beginSession(sql, this.#options.timeoutMs, this.#kind());
      const timeline = (await Promise.race([begun, ended])) ?? "";
      cut.signal.throwIfAborted();
      if (this.#writer !== server) this.#useInstead(server, timeline);
      connection.state = "idle";
      attempts.end();
    } catch (error) {
      // The driver tells what the server answers; for everything else it tells only that the connection ended.
      const fault = toConnectFault(cut.signal.aborted && !isPostgresError(error) ? cut.signal.reason : error);
      if (!this.#isClosed && fault !== NOT_NEEDED) attempts.end(fault);
      cut.abort(fault);
      // With other connections, the server only has no place for more.
      if (!this.#isServing() && !this.#isAnotherTried(server)) this.#refuseWaiting(this.#failure() ?? fault);
    } finally {
      clearTimeout(late);
    }
    this.#serveWaiting();
  }

  /** While a call has no answer: the server may have been replaced, and then never commits (STORE-D-7). */
  #askOthers(asking: Connection): void {
    for (const server of this.#servers) {
      const isAsked = this.#inState("connecting").some((one) => one.server === server);
      if (server !== asking.server && !isAsked && server.attempts.waitMs() === 0) void this.#open(server);
    }
  }

  /** STORE-D-7: two that both write are two databases, and calls go to one of them: where it is known, the later one. */
  #useInstead(server: Server, timeline: string): void {
    if (this.#writer !== undefined && timeline <= this.#timeline) throw NOT_NEEDED;
    this.#dismiss();
    for (const { server: other, state, cut } of this.#inState("connecting", "busy")) {
      if (other === server) continue;
      cut.abort(state === "busy" ? noWriter(new StoreUnavailable(REPLACED)) : NOT_NEEDED);
    }
    this.#writer = server;
    this.#timeline = timeline;
  }

  #kind() {
    return { isCopy: this.#options.isCopy, isOneOfSeveral: this.#servers.length > 1 };
  }

  /** Whether an attempt at another server is under way, or can begin now. */
  #isAnotherTried(server: Server): boolean {
    return this.#servers.some(
      (one) =>
        one !== server &&
        (this.#inState("connecting").some((each) => each.server === one) || one.attempts.waitMs() === 0),
    );
  }

  #refuseWaiting(fault: unknown): void {
    for (const { refuse } of this.#waiting) refuse(fault);
    this.#waiting = [];
  }

  #connect(server: Server): Connection {
    const cut = new AbortController();
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    // Begun here, so that attempts are as far apart as they are counted.
    let opening: Promise<Socket> | undefined = openSocket(server.address, this.#options.tls, cut);
    opening.then(
      (socket) => {
        connection.socket = socket;
      },
      () => {},
    );
    const driven = {
      max: 1,
      // Connections are never closed for age.
      idle_timeout: 0,
      max_lifetime: 0,
      connect_timeout: Math.ceil(STORE_CONNECT_TIMEOUT_MS / 1_000),
      fetch_types: false,
      onnotice: () => {},
      ssl: false,
      // The driver would connect again without a pause for as long as the server hangs up while a connection starts.
      socket: async () => {
        const socket = await opening;
        opening = undefined;
        // The driver would not notice the end of a socket that has ended, and wait.
        if (socket === undefined || cut.signal.aborted) throw failed("no more attempts", "CONNECTION_CLOSED");
        return guardedSocket(socket, cut);
      },
      connection: { application_name: "mandate" },
      types: {
        // All counters and times are safe integers.
        bigint: { to: 20, from: [20], serialize: (number: number) => String(number), parse: Number },
      },
    };
    const sql: Sql = postgres(this.#options.url, driven);
    const connection: Connection = {
      sql,
      server,
      cut,
      ended,
      lose: NOTHING,
      state: "connecting",
      isStale: false,
    };
    this.#connections.add(connection);
    cut.signal.addEventListener("abort", () => {
      this.#connections.delete(connection);
      if (!this.#isServing()) this.#writer = undefined;
      resolve();
      connection.lose();
      // An attempt that fails, and a call that ends, are followed by it anyway.
      if (connection.state === "idle" || connection.state === "leaving") this.#serveWaiting();
    });
    return connection;
  }

  /** Ends a connection that has no call, and lets the server know. */
  #leave(connection: Connection): void {
    connection.state = "leaving";
    connection.socket?.end(TERMINATE);
    setTimeout(() => connection.cut.abort(), STORE_GRACE_MS).unref();
  }

  /**
   * Replaces the connections, because the name of the database may lead to another server by now; not again for a
   * moment, because the new ones may lead to the same.
   */
  #renew(): void {
    const nowMs = performance.now();
    if (nowMs < this.#renewedMs + STORE_RENEW_MS) return;
    this.#renewedMs = nowMs;
    this.#writer = undefined;
    this.#dismiss();
  }

  /** Connections without a call leave now, the others after it. */
  #dismiss(): void {
    for (const connection of this.#inState("idle")) this.#leave(connection);
    for (const connection of this.#inState("busy")) connection.isStale = true;
  }

  async call<T>(work: (sql: Sql) => PromiseLike<T>): Promise<T> {
    if (this.#isClosed) throw new StoreUnavailable(CLOSED);
    // While the database cannot be reached its callers fail at once: none of them waits for the next attempt.
    const isAway = ({ attempts }: Server) => attempts.failure !== undefined && attempts.waitMs() > 0;
    if (this.#connections.size === 0 && this.#servers.every(isAway)) throw this.#failure();
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const call: Waiting = {
      refuse: reject,
      run: async (connection) => {
        try {
          const value = await untilInOrder(() => work(connection.sql));
          return () => resolve(value);
        } catch (error) {
          if (isOfReader(error)) this.#renew();
          // The driver failed, so that what the connection does next is unknown.
          if (!isPostgresError(error) && !(error instanceof LogConflict)) connection.cut.abort(error);
          return () => reject(toFault(error));
        }
      },
    };
    const late = setTimeout(() => {
      const isSent = !this.#waiting.includes(call);
      this.#waiting = this.#waiting.filter((one) => one !== call);
      // A server that works ends a statement before.
      reject(this.#failure() ?? (isSent ? noWriter(new StoreUnavailable(LATE)) : new StoreUnavailable(LATE)));
    }, this.#options.timeoutMs);
    this.#waiting.push(call);
    this.#serveWaiting();
    try {
      return await promise;
    } finally {
      clearTimeout(late);
    }
  }

  state(): ReturnType<NonNullable<Store["connections"]>> {
    return {
      in_use: this.#connections.size - this.#inState("idle").length,
      idle: this.#inState("idle").length,
      waiting: this.#waiting.length,
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#refuseWaiting(new StoreUnavailable(CLOSED));
    this.#dismiss();
    for (const { cut } of this.#inState("connecting")) cut.abort();
    await Promise.all([...this.#connections].map(({ ended }) => ended));
  }
}

function readAddress({ url, socketFolder, hosts }: DatabaseOptions, nth: number): ServerAddress {
  const { host, port } = postgres(url).options;
  const number = port[0] ?? 0;
  if (socketFolder !== undefined) return { path: `${socketFolder}/.s.PGSQL.${number}` };
  const { name, port: own } = hosts?.[nth] ?? { name: host[0] ?? "", port: number };
  return { host: name.replace(/^\[(.*)\]$/, "$1"), port: own };
}

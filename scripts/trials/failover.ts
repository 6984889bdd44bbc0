/**
 * The failover of a PostgreSQL with streaming replication under one server: the standby is promoted, and the name leads
 * to it. With a synchronous standby nothing that was acknowledged is lost; with one that lags the server notices.
 */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { randomUUID, webcrypto } from "node:crypto";
import { once } from "node:events";
import { chmodSync, chownSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { SignJWT } from "jose";
import postgres from "postgres";
import { until } from "../../test/support/until.ts";
import { ISSUER, makeWorld, type World } from "../../test/support/world.ts";
import { makeKeys } from "../dev-keys.ts";
import type { Form } from "../http-client.ts";
import { freePorts, launchServer } from "../server-process.ts";

/** Where the programs of PostgreSQL are; the package of the tests has none for a standby. */
const PROGRAMS = process.env.MANDATE_TRIAL_POSTGRES ?? "/usr/lib/postgresql/15/bin";
/** PostgreSQL refuses to run as root. */
const UNPRIVILEGED = 65_534;
/** For how long the standby lags. */
const LAG_MS = 1_500;
const API = "https://api.example";
const BY_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

export async function runFailover(rounds: number): Promise<readonly string[]> {
  if (!existsSync(join(PROGRAMS, "pg_basebackup"))) return [`not run here: no pg_basebackup in ${PROGRAMS}`];
  const version = execFileSync(join(PROGRAMS, "postgres"), ["--version"], { encoding: "utf8" }).trim();
  const lines: string[] = [];
  for (let round = 0; round < rounds; round++) {
    lines.push(
      `${version}, synchronous: ${await failOver(true)}`,
      `${version}, lagging: ${await failOver(false)}`,
    );
  }
  return lines;
}

/** An address of this machine that leads where it is told, or nowhere. */
async function openWay(to: number) {
  const open = new Set<Socket>();
  const way = {
    to: to as number | undefined,
    port: 0,
    cut(): void {
      for (const socket of open) socket.destroy();
    },
    close(): void {
      listener.close();
      way.cut();
    },
  };
  const listener = createServer((near) => {
    if (way.to === undefined) return void near.destroy();
    const far = connect({ host: "127.0.0.1", port: way.to });
    for (const socket of [near, far]) {
      open.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        open.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.pipe(far).pipe(near);
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  way.port = (listener.address() as AddressInfo).port;
  return way;
}

async function openPair(isSynchronous: boolean) {
  const folder = mkdtempSync(join(tmpdir(), "mandate-pair-"));
  const user = process.getuid?.() === 0 ? { uid: UNPRIVILEGED, gid: UNPRIVILEGED } : {};
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid);
  chmodSync(folder, 0o700);
  // Not synchronous, because the ways of this process lead between the two servers.
  const run = async (program: string, ...args: string[]): Promise<void> => {
    const child = spawn(join(PROGRAMS, program), args, { cwd: folder, stdio: "ignore", ...user });
    const [code] = await once(child, "exit");
    assert.equal(code, 0, `${program} ${args.join(" ")}`);
  };
  const [first = 0, second = 0] = await freePorts(2);
  const [primary, standby] = [join(folder, "primary"), join(folder, "standby")];
  const start = async (data: string, port: number, ...settings: string[]): Promise<void> => {
    const all = ["listen_addresses=127.0.0.1", `unix_socket_directories=${folder}`, ...settings];
    const options = [`-p ${port}`, ...all.map((one) => `-c ${one}`)].join(" ");
    await run("pg_ctl", "-D", data, "-w", "-l", `${data}.log`, "-o", options, "start");
  };
  await run("initdb", "-D", primary, "-U", "postgres", "--auth=trust", "--locale=C", "--encoding=UTF8");
  await start(primary, first);
  const replication = await openWay(first);
  const backup = ["-h", "127.0.0.1", "-p", String(replication.port), "-U", "postgres"];
  await run("pg_basebackup", "-D", standby, "-R", "-X", "stream", ...backup);
  await start(standby, second);
  const sql = postgres(`postgres://postgres@127.0.0.1:${first}/postgres`, { max: 1, onnotice: () => {} });
  if (isSynchronous) {
    await sql.unsafe("alter system set synchronous_standby_names = '*'");
    await sql`select pg_reload_conf()`;
  }
  const isCaughtUp = async (): Promise<boolean> => {
    const [row] = await sql<{ same: boolean }[]>`
      select replay_lsn = pg_current_wal_lsn() as same from pg_stat_replication`;
    return row?.same === true;
  };
  await until(isCaughtUp, "the standby has what the primary has");
  const way = await openWay(first);
  return {
    url: `postgres://postgres@127.0.0.1:${way.port}/postgres`,
    isCaughtUp,
    lag(): void {
      replication.to = undefined;
      replication.cut();
    },
    async failOver(): Promise<void> {
      way.to = undefined;
      way.cut();
      await run("pg_ctl", "-D", primary, "-m", "immediate", "stop");
      await run("pg_ctl", "-D", standby, "-w", "promote");
      way.to = second;
    },
    async close(): Promise<void> {
      await sql.end({ timeout: 1 }).catch(() => undefined);
      for (const data of [primary, standby]) {
        if (existsSync(join(data, "postmaster.pid")))
          await run("pg_ctl", "-D", data, "-m", "immediate", "stop");
      }
      way.close();
      replication.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function failOver(isSynchronous: boolean): Promise<string> {
  const pair = await openPair(isSynchronous);
  const { publicKey, privateKey } = await makeKeys();
  const jwk = { ...(await webcrypto.subtle.exportKey("jwk", publicKey)), kid: "k-1", alg: "ES256" };
  let world: World | undefined;
  try {
    const scopes = ["trips.read"];
    world = await makeWorld(
      {
        clients: { report: { method: "private_key_jwt", jwks: { keys: [jwk] } } },
        targets: [{ names: [API], scopes }],
        policies: [
          { id: "report", allow: "client_credentials", clients: ["report"], targets: [API], scopes },
        ],
        audit: { instance: "test", witness: { file: "witness" } },
      },
      { postgres: pair.url },
    );
    const { server, token } = world;
    const makeProof = async (): Promise<Form> => {
      const seconds = Math.floor(Date.now() / 1000);
      const claims = { iss: "report", sub: "report", aud: ISSUER, iat: seconds, exp: seconds + 240 };
      const assertion = await new SignJWT({ ...claims, jti: randomUUID() })
        .setProtectedHeader({ alg: "ES256", kid: "k-1" })
        .sign(privateKey);
      const form = { grant_type: "client_credentials", audience: API, client_assertion_type: BY_ASSERTION };
      return { ...form, client_assertion: assertion };
    };
    const statusOf = (proof: Form): Promise<number> =>
      token(proof).then(
        ({ status }) => status,
        () => 0,
      );
    const spent: Form[] = [];
    const spendFor = async (ms: number): Promise<void> => {
      for (const endMs = performance.now() + ms; performance.now() < endMs; ) {
        const proof = await makeProof();
        if ((await statusOf(proof)) === 200) spent.push(proof);
      }
    };
    await spendFor(LAG_MS);
    await until(pair.isCaughtUp, "the standby has what the primary has");
    if (!isSynchronous) pair.lag();
    const before = spent.length;
    await spendFor(LAG_MS);
    assert.ok(spent.length > before);
    await pair.failOver();
    const overMs = performance.now();
    let servedMs: number | undefined;
    while (server.child.exitCode === null && servedMs === undefined && performance.now() - overMs < 30_000) {
      if ((await statusOf(await makeProof())) === 200) servedMs = performance.now() - overMs;
      else await sleep(20);
    }
    let again = 0;
    for (const proof of spent) if ((await statusOf(proof)) === 200) again++;
    assert.equal(again, 0, `${again} of ${spent.length} assertions are accepted again`);
    if (isSynchronous) {
      assert.ok(servedMs !== undefined, "it serves again");
      return `${spent.length} assertions, 0 accepted again; served again ${Math.round(servedMs)} ms after the promotion`;
    }
    await until(() => server.child.exitCode !== null, "it ends");
    assert.equal(server.child.exitCode, 1);
    const endedMs = Math.round(performance.now() - overMs);
    const told =
      server.errors.find((line) => line.includes("The store went back")) ?? assert.fail("it says why");
    const next = launchServer(world.configFile);
    await until(
      () => next.lines.some((line) => line.includes("no request is answered")),
      "the next start waits",
    );
    next.child.kill("SIGTERM");
    await once(next.child, "exit");
    const lost = /records \d+ to \d+ are lost/.exec(told)?.[0] ?? assert.fail(told);
    return `${spent.length - before} assertions while it lagged, 0 accepted again; ended after ${endedMs} ms (${lost}), and the next start waits`;
  } finally {
    await world?.stop().catch(() => undefined);
    await pair.close();
  }
}

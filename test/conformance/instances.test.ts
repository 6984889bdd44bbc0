/** Several processes under one name of an instance, in production and under the permission model, on both stores. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Agent } from "node:https";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { issueServerCertificate, makeAuthority } from "../../scripts/dev-pki.ts";
import { send } from "../../scripts/http-client.ts";
import { freePorts, MAIN, type ServerProcess, startServer } from "../../scripts/server-process.ts";
import { makeProduction, type Production } from "../../scripts/trials/production.ts";
import { assertNoneLost, rollInstances } from "../../scripts/trials/rolling.ts";
import { openStore } from "../../src/adapters/store/open.ts";
import { INIT } from "../../src/cli/init/usage.ts";
import { init } from "../../src/cli/init.ts";
import { readGiven } from "../../src/cli/options.ts";
import type { StorePlace } from "../../src/settings/settings.ts";
import { assertChain } from "../support/journal.ts";
import { freshDatabase, type SharedPostgres, sharePostgres } from "../support/postgres.ts";
import { stop } from "../support/stop.ts";
import { until } from "../support/until.ts";

const DATABASE = "MANDATE_TEST_DATABASE";
const INSTANCE = "MANDATE_TEST_INSTANCE";
/** Short, because a lease is waited for after a crash. */
const LEASE_SECONDS = 1;
/** Between the requests of a client; a new connection is expensive for both sides, so it comes more seldom. */
const PAUSE_MS = 20;
const PAUSE_OF_NEW_CONNECTIONS_MS = 50;

let database: SharedPostgres;
before(async () => {
  database = await sharePostgres();
});

type Place = {
  production: Production;
  /** A process by the same configuration, beside others on a port of its own. */
  start(instance?: string, beside?: boolean): Promise<ServerProcess>;
  /** The process that the last test left, or a new one. */
  running(): Promise<ServerProcess>;
  store: StorePlace;
};

const processes: ServerProcess[] = [];
const productions: Production[] = [];
const killAll = (): void => {
  for (const { child } of processes) {
    child.kill("SIGCONT");
    child.kill("SIGKILL");
  }
};
after(() => stop(killAll, ...productions.map(({ remove }) => remove), database));

async function make(store: "SQLite" | "PostgreSQL"): Promise<Place> {
  const url = store === "SQLite" ? undefined : await freshDatabase(database);
  const audit = { instance: { env: INSTANCE } };
  const leased = { audit: { ...audit, leaseSeconds: LEASE_SECONDS }, store: { postgres: { env: DATABASE } } };
  const extra = url === undefined ? { audit } : leased;
  const production = await makeProduction(extra);
  productions.push(production);
  let count = 0;
  let last: ServerProcess | undefined;
  const start: Place["start"] = async (instance = "one", beside = false) => {
    const config = JSON.parse(readFileSync(production.configFile, "utf8"));
    if (beside) [config.listen.port] = await freePorts(1);
    const file = join(production.folder, `config-${count++}.json`);
    writeFileSync(file, JSON.stringify(config));
    last = await startServer(file, { environment: { [INSTANCE]: instance, [DATABASE]: url } });
    processes.push(last);
    return last;
  };
  return {
    ...{ production, start },
    running: async () => (last?.child.exitCode === null && last.child.signalCode === null ? last : start()),
    store: url === undefined ? { sqlite: join(production.folder, "mandate.sqlite") } : { postgres: url },
  };
}

/** Requests tokens one after the other, until it is told to stop; the statuses that are not 200. */
function load(t: TestContext, { token }: Production) {
  let going = true;
  t.after(() => {
    going = false;
  });
  const failed: unknown[] = [];
  const run = async (): Promise<void> => {
    while (going) {
      const status = await token().catch((fault: Error) => fault.message);
      if (status !== 200) failed.push(status);
      await sleep(PAUSE_MS);
    }
  };
  const done = run();
  return {
    async stop(): Promise<readonly unknown[]> {
      going = false;
      await done;
      return failed;
    },
  };
}

for (const store of ["SQLite", "PostgreSQL"] as const) {
  let made: Promise<Place> | undefined;
  const place = (): Promise<Place> => {
    made ??= make(store);
    return made;
  };

  test(`AUDIT-D-11 a replica with a name in use is refused again and again, and the healthy one loses no request (${store})`, async (t) => {
    const { production, start } = await place();
    const first = await start();
    const locks = readdirSync(production.folder).filter((name) => name.includes(".lock"));
    assert.deepEqual(locks, store === "SQLite" ? ["mandate.sqlite.one.lock"] : []);
    const requests = load(t, production);
    const holder = `process ${first.child.pid} on ${hostname()}`;
    for (let restart = 0; restart < 2; restart++) {
      await assert.rejects(start("one", true), ({ message }: Error) => {
        assert.match(message, /ended with 1:\naudit\.instance: the name "one" is in use: .* since \d{4}-/);
        assert.ok(message.includes(holder), message);
        return true;
      });
    }
    assert.deepEqual(await requests.stop(), []);
    assert.equal(await first.stop(), 0);
    // A clean stop gives the name up at once.
    const next = await start();
    assert.ok(!next.lines.some((line) => line.includes("name_awaited")));
  });

  test(`AUDIT-D-11 after a crash the name is free, after a lease at most (${store})`, async () => {
    const { running, start } = await place();
    await (await running()).stop("SIGKILL");
    const next = await start();
    // On PostgreSQL the lease may have lapsed while the process started.
    const waits = next.lines.some((line) => line.includes("name_awaited"));
    assert.ok(!waits || store === "PostgreSQL");
    if (store === "SQLite") assert.equal(await next.stop(), 0);
  });

  if (store === "SQLite") continue;
  test("AUDIT-D-11 a process that was stopped until another one took its name ends, and the log stays whole", async (t) => {
    const { production, running, start, store } = await place();
    const first = await running();
    assert.equal(await production.token(), 200);
    first.child.kill("SIGSTOP");
    const second = await start("one", true);
    first.child.kill("SIGCONT");
    await until(() => first.child.exitCode !== null, "the process that lost its name ends");
    assert.equal(first.child.exitCode, 1);
    assert.ok(first.lines.some((line) => /"event":"audit_fault".*another process/.test(line)));
    assert.equal(second.child.exitCode, null);
    await sleep(LEASE_SECONDS * 1000);
    assert.equal(await second.stop(), 0);
    const opened = await openStore(store);
    t.after(() => opened.close());
    await assertChain(opened, "one");
  });
}

test("no request is lost to the restart of one of three instances behind a balancer", async (t) => {
  const url = await freshDatabase(database);
  const pausesMs = { kept: PAUSE_MS, changing: 2 * PAUSE_OF_NEW_CONNECTIONS_MS };
  const drainSeconds = 3;
  const outcome = await rollInstances({
    postgres: url,
    restarts: 1,
    drainSeconds,
    balancerMs: 250,
    pausesMs,
  });
  // It drains for requests, and for a balancer, that are several times as fast.
  if (outcome.failed.length > 0 && outcome.slowestMs > (1_000 * drainSeconds) / 3) {
    return t.skip(`this machine was too busy: a look or a request took ${Math.round(outcome.slowestMs)} ms`);
  }
  assertNoneLost(outcome);
});

test("two processes share one port, both serve, and the restart of one loses no request", async (t) => {
  const production = await makeProduction({
    store: { postgres: { env: DATABASE } },
    audit: { instance: { env: INSTANCE }, leaseSeconds: LEASE_SECONDS },
    limits: { requestsPerSecondByClient: 100_000 },
  });
  productions.push(production);
  const config = JSON.parse(readFileSync(production.configFile, "utf8"));
  // Long enough for a client on a busy machine to send its next request, which is answered with the end of the connection.
  Object.assign(config.listen, { reusePort: true, drainSeconds: 4 });
  writeFileSync(production.configFile, JSON.stringify(config));
  const url = await freshDatabase(database);
  const start = async (name: string) => {
    const server = await startServer(production.configFile, {
      environment: { [INSTANCE]: name, [DATABASE]: url },
    });
    processes.push(server);
    return server;
  };
  const servedBy = ({ lines }: ServerProcess) => lines.filter((line) => line.includes('"/token"')).length;
  const [one, two] = [await start("one"), await start("two")];

  let [going, answered] = [true, 0];
  const failed: string[] = [];
  const send = async (agent?: Agent): Promise<void> => {
    while (going) {
      // A connection that is reset before its handshake carried no request, so a client connects again.
      const status = await production
        .token(undefined, agent)
        .catch(({ connected, code, message }) => (connected ? message : code));
      if (status === 200) answered += 1;
      else if (status !== "ECONNRESET") failed.push(String(status));
      await sleep(agent === undefined ? PAUSE_OF_NEW_CONNECTIONS_MS : PAUSE_MS);
    }
  };
  const kept = [1, 2, 3, 4].map(() => new Agent({ keepAlive: true, maxSockets: 1 }));
  const clients = [...kept.map(send), send(), send()];
  t.after(() => {
    going = false;
    for (const agent of kept) agent.destroy();
  });
  await until(async () => servedBy(one) > 20 && servedBy(two) > 20, "both processes serve");
  assert.equal(await one.stop(), 0);
  const again = await start("one");
  await until(async () => servedBy(again) > 20, "the process that was started again serves");
  going = false;
  await Promise.all(clients);
  assert.deepEqual(failed, []);
  const served = () => [one, two, again].reduce((sum, server) => sum + servedBy(server), 0);
  await until(async () => served() >= answered, "every answer is in the log of a process");

  await t.test("instances by one configuration take their names from the environment", async () => {
    assert.deepEqual(await Promise.all([two, again].map((server) => server.stop())), [0, 0]);
    const opened = await openStore({ postgres: url });
    t.after(() => opened.close());
    assert.deepEqual(await opened.log.logs(), ["one", "two"]);
  });
});

test("STORE-D-23 the instances that init writes start at once on an empty database, and each gets connections", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "mandate several "));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const [etc, url] = [join(folder, "etc"), join(folder, "url")];
  writeFileSync(url, await freshDatabase(database));
  const [port = 0] = await freePorts(1);
  const issuer = `https://localhost:${port}`;
  const given = readGiven(INIT, [etc, "--issuer", issuer, "--store", url, "--instances", "3"]);
  assert.ok(given.ok);
  const printed: string[] = [];
  const terminal = { print: (line: string) => void printed.push(line), printError: assert.fail };
  assert.equal(await init(given.value, terminal), 0);
  const authority = await makeAuthority("any");
  const { keyPem, certPem } = await issueServerCertificate(authority, ["localhost"]);
  writeFileSync(join(etc, "tls/key.pem"), keyPem);
  writeFileSync(join(etc, "tls/cert.pem"), certPem);
  const starts = printed.flatMap((line) => /^ +Without systemd: (.*)$/.exec(line)?.[1] ?? []);
  const lines = starts.map((start): string[] => {
    const child = spawn("sh", ["-c", `exec ${start}`], { stdio: ["ignore", "pipe", "inherit"] });
    const exited = once(child, "exit");
    t.after(async () => {
      child.kill("SIGKILL");
      await exited;
    });
    const said: string[] = [];
    createInterface({ input: child.stdout }).on("line", (line) => said.push(line));
    return said;
  });
  assert.equal(lines.length, 3);
  const count = (of: readonly string[], event: string) => of.filter((line) => line.includes(event)).length;
  await until(() => lines.every((of) => count(of, '"listener":"listen"') > 0), "all of them listen");
  await until(async () => {
    const { status } = await send(`${issuer}/jwks`, { ca: authority.certPem });
    assert.equal(status, 200);
    return lines.every((of) => count(of, '"/jwks"') > 0);
  }, "each of them answers");
});

test("AUDIT-D-12 a retired instance cannot start again, and the others do not miss it", async () => {
  const { production, start } = await make("SQLite");
  const first = await start("pod-0");
  const other = await start("pod-1", true);
  assert.equal(retire(production, "pod-0").code, 1);
  assert.equal(await first.stop(), 0);
  assert.equal(retire(production, "pod-0").code, 0);
  await assert.rejects(start("pod-0"), /audit\.instance: the log "pod-0" was retired on .* another name/);
  assert.equal(await other.stop(), 0);
  const again = await start("pod-1");
  assert.deepEqual(
    again.lines.filter((line) => !line.includes('"level":"info"')),
    [],
  );
  assert.equal(await again.stop(), 0);
});

function retire({ configFile }: Production, name: string): { code: number | null; said: string } {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [MAIN, "--config", configFile, "audit", "retire", name],
    { encoding: "utf8", env: { ...process.env, [INSTANCE]: "unused" } },
  );
  return { code: status, said: stdout + stderr };
}

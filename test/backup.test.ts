/** A copy of the store is made while the server runs, is restored, and its first start is conservative; on both stores. */
import assert from "node:assert/strict";
import { randomUUID, webcrypto } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { SignJWT } from "jose";
import postgres from "postgres";
import type { HostRun } from "../scripts/command-line.ts";
import { makeKeys } from "../scripts/dev-keys.ts";
import type { Form } from "../scripts/http-client.ts";
import { freePorts, launchServer } from "../scripts/server-process.ts";
import { openStore } from "../src/adapters/store/open.ts";
import { loadConfig } from "../src/config/config.ts";
import type { Ports, Timers } from "../src/ports.ts";
import type { StorePlace } from "../src/settings/settings.ts";
import type { Log } from "../src/start/log.ts";
import { settleRestored } from "../src/start/restored.ts";
import { openFlow } from "./support/flow.ts";
import { runCommand } from "./support/host.ts";
import { freshDatabase, type SharedPostgres, sharePostgres } from "./support/postgres.ts";
import { stop } from "./support/stop.ts";
import { until } from "./support/until.ts";
import { claimsOf, ISSUER, makeWorld, type World, workload } from "./support/world.ts";

const API = "https://api.example";
const planner = workload("agents/planner");
const scopes = ["trips.read"];

const BY_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const report = await makeKeys();
const jwk = { ...(await webcrypto.subtle.exportKey("jwk", report.publicKey)), kid: "k-1", alg: "ES256" };

const CONFIGURATION = {
  clients: { report: { method: "private_key_jwt", jwks: { keys: [jwk] } } },
  targets: [{ names: [API], scopes }],
  policies: [
    { id: "own", allow: "client_credentials", actors: [planner], targets: [API], scopes },
    { id: "report", allow: "client_credentials", clients: ["report"], targets: [API], scopes },
  ],
};

let database: SharedPostgres;
before(async () => {
  database = await sharePostgres();
});
after(() => stop(database));

async function command({ configFile }: World, ...words: string[]): Promise<HostRun> {
  const config = loadConfig(configFile);
  assert.ok(config.ok, JSON.stringify(config));
  const { settings, fixed } = config.value;
  const store = await openStore(fixed.store);
  try {
    return await runCommand(words, { settings, store });
  } finally {
    await store.close();
  }
}

/** The `jti` of a token that was just issued. */
async function issue(world: World): Promise<string> {
  const credentials = world.as(await world.svid("agents/planner"));
  const answer = await world.token({ grant_type: "client_credentials", audience: API, ...credentials });
  assert.equal(answer.status, 200, answer.text);
  return String(claimsOf(answer.body.access_token).jti);
}

const statusAt = (port: number, path: string): Promise<number> =>
  new Promise((resolve) => {
    get({ port, path, host: "127.0.0.1" }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    }).on("error", () => resolve(0));
  });

/** The first start on the restored copy: what it says, and what it does before and after its wait. */
async function startRestored(world: World, jti: string): Promise<void> {
  const [port = 0, health = 0] = await freePorts(2);
  const config = JSON.parse(readFileSync(world.configFile, "utf8"));
  const changed = { ...config, listen: { ...config.listen, port }, operations: { port: health } };
  writeFileSync(world.configFile, JSON.stringify(changed));
  const environment = { MANDATE_CLOCK_FILE: join(world.folder, "clock.json") };
  const { child, lines } = launchServer(world.configFile, { environment });
  const exited = once(child, "exit");
  try {
    const says = (text: string) => () => lines.some((line) => line.includes(text));
    await until(says("The store is a copy of 20"), "the start says that the store is a copy");
    assert.ok(says("For 360 s no request is answered")());
    assert.equal(await statusAt(health, "/livez"), 200, "a supervisor sees that it lives");
    assert.equal(await statusAt(health, "/readyz"), 503);
    assert.ok(!says(`listens on 127.0.0.1:${port}`)());
    assert.match((await command(world, "tokens", "show", jti)).out, /It was ended/);
    // In steps, because the wait begins a moment after it is told.
    const listens = says(`listens on 127.0.0.1:${port}`);
    await until(() => {
      world.pass(60);
      return listens();
    }, "the server listens");
    assert.equal(await statusAt(health, "/readyz"), 200);
  } finally {
    child.kill("SIGTERM");
    await exited;
  }
}

async function newest({ folder }: World, place: StorePlace): Promise<string> {
  const store = await openStore("sqlite" in place ? { sqlite: join(folder, place.sqlite) } : place);
  const heads = await store.log.read({ log: "test", limit: 100_000 });
  assert.equal(await store.restored.find(), undefined, "the mark is gone");
  await store.close();
  return heads.map(({ body }) => body).join("\n");
}

/** A server that runs on the store would not notice the mark. */
async function assertNotMarked(world: World): Promise<void> {
  const { code, err } = await command(world, "backup", "mark-restored");
  assert.equal(code, 1);
  assert.match(
    err,
    /Not marked: the name "test" is in use: process \d+ on .*\. Stop every server on this store first\./,
  );
  await issue(world);
}

test("SQLite: a copy that was made while the server ran is restored, and its first start ends all and waits", async () => {
  const world = await makeWorld(CONFIGURATION, { clock: true });
  try {
    const jti = await issue(world);
    const file = join(world.folder, "copy.sqlite");
    const made = await command(world, "backup", file);
    assert.equal(made.code, 0, made.err);
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.match((await command(world, "backup", file)).err, /exists, and is not overwritten/);
    await assertNotMarked(world);
    assert.match((await command(world, "tokens", "show", jti)).out, /It is valid/);
    await issue(world);
    await world.server.stop();
    for (const end of ["-wal", "-shm"]) rmSync(join(world.folder, `mandate.sqlite${end}`), { force: true });
    renameSync(file, join(world.folder, "mandate.sqlite"));
    await startRestored(world, jti);
    const trail = await newest(world, { sqlite: "mandate.sqlite" });
    assert.match(trail, /"reason":"store_restored"/);
    const verified = await command(world, "audit", "verify");
    assert.equal(verified.code, 0, verified.err);
  } finally {
    await world.stop().catch(() => undefined);
  }
});

test("PostgreSQL: a copy that its own tools made is marked by command, and its first start ends all and waits", async () => {
  const url = await freshDatabase(database);
  const world = await makeWorld(CONFIGURATION, { clock: true, postgres: url });
  try {
    const jti = await issue(world);
    const refused = await command(world, "backup", join(world.folder, "copy"));
    assert.equal(refused.code, 1);
    assert.match(refused.err, /pg_dump --format=custom/);
    await assertNotMarked(world);
    await world.server.stop();
    // Where pg_dump is missing, the database itself copies the whole of another one.
    const copy = new URL(url);
    copy.pathname = `${copy.pathname}_copy`;
    const sql = postgres(database.url, { max: 1 });
    await sql.unsafe(
      `create database "${copy.pathname.slice(1)}" template "${new URL(url).pathname.slice(1)}"`,
    );
    await sql.end();
    const config = JSON.parse(readFileSync(world.configFile, "utf8"));
    writeFileSync(world.configFile, JSON.stringify({ ...config, store: { postgres: copy.href } }));
    assert.equal((await command(world, "backup", "mark-restored")).code, 0);
    await startRestored(world, jti);
    assert.match(await newest(world, { postgres: copy.href, connections: 2 }), /"reason":"store_restored"/);
    assert.equal((await command(world, "audit", "verify")).code, 0);
  } finally {
    await world.stop().catch(() => undefined);
  }
});

/** What a lagging replica has when it is promoted: the database as it was, under the name of the one that went on. */
async function makeReplica(url: string): Promise<{ promote(): Promise<void> }> {
  const name = new URL(url).pathname.slice(1);
  const admin = async (...statements: string[]): Promise<void> => {
    const sql = postgres(database.url, { max: 1, onnotice: () => {} });
    for (const statement of statements) await sql.unsafe(statement);
    await sql.end();
  };
  // Neither copied nor renamed while a session is connected.
  const alone = [
    `alter database ${name} allow_connections false`,
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
  ];
  await admin(
    ...alone,
    `create database ${name}_replica template ${name}`,
    `alter database ${name} allow_connections true`,
  );
  return {
    promote: () =>
      admin(
        ...alone,
        `alter database ${name} rename to ${name}_lost`,
        `alter database ${name}_replica rename to ${name}`,
      ),
  };
}

/** Issues for an assertion that the replica does not know. */
async function spend(world: World): Promise<Form> {
  const seconds = Math.floor(Date.now() / 1000);
  const claims = { iss: "report", sub: "report", aud: ISSUER, iat: seconds, exp: seconds + 60 };
  const assertion = await new SignJWT({ ...claims, jti: randomUUID() })
    .setProtectedHeader({ alg: "ES256", kid: "k-1" })
    .sign(report.privateKey);
  const form = { grant_type: "client_credentials", audience: API, client_assertion_type: BY_ASSERTION };
  const proof = { ...form, client_assertion: assertion };
  await until(async () => (await world.token(proof)).status === 200, "the assertion is spent");
  assert.equal((await world.token(proof)).body.error, "invalid_client", "and is accepted once");
  return proof;
}

test("AUDIT-D-10 a store that goes back while it is served is told as that, and no spent assertion is accepted again", async () => {
  const url = await freshDatabase(database);
  const world = await makeWorld(CONFIGURATION, { clock: true, postgres: url });
  try {
    const jti = await issue(world);
    const replica = await makeReplica(url);
    const forms = [await spend(world), await spend(world), await spend(world)];
    const exited = once(world.server.child, "exit");
    await replica.promote();
    const answers: number[] = [];
    while (world.server.child.exitCode === null) {
      for (const form of forms)
        answers.push(
          await world.token(form).then(
            ({ status }) => status,
            () => 0,
          ),
        );
    }
    assert.equal((await exited)[0], 1);
    assert.deepEqual(
      answers.filter((status) => status !== 503 && status !== 0),
      [],
    );
    const told = world.server.errors.join("\n");
    assert.match(
      told,
      /The store went back: log "test" has \d+ records, the last one of 20\S+Z, and there were \d+: records \d+ to \d+ are lost\./,
    );
    assert.doesNotMatch(told, /another process/);
    await startRestored(world, jti);
    const trail = await newest(world, { postgres: url, connections: 2 });
    assert.equal(trail.match(/"reason":"witness_ahead"/g)?.length, 1);
    assert.match(trail, /"reason":"store_restored"/);
    assert.equal((await command(world, "audit", "verify")).code, 0);
  } finally {
    await world.stop().catch(() => undefined);
  }
});

test("AUDIT-D-10 a store that went back while its server was away is recognised at the start, by what was written last", async () => {
  const url = await freshDatabase(database);
  const witness = { audit: { instance: "test", witness: { file: "witness" } } };
  const world = await makeWorld({ ...CONFIGURATION, ...witness }, { clock: true, postgres: url });
  try {
    const jti = await issue(world);
    const replica = await makeReplica(url);
    await spend(world);
    await world.server.stop("SIGKILL");
    await replica.promote();
    await startRestored(world, jti);
    const trail = await newest(world, { postgres: url, connections: 2 });
    assert.equal(trail.match(/"reason":"witness_ahead"/g)?.length, 1);
    // The loss is settled: the next start is one as every other.
    const [port = 0] = await freePorts(1);
    const config = JSON.parse(readFileSync(world.configFile, "utf8"));
    writeFileSync(world.configFile, JSON.stringify({ ...config, listen: { ...config.listen, port } }));
    const again = await world.start(world.configFile);
    assert.ok(!again.errors.some((line) => line.includes("went back")), again.errors.join("\n"));
    assert.equal(await again.stop(), 0);
  } finally {
    await world.stop().catch(() => undefined);
  }
});

test("the start on a copy says that what was issued is ended when that is on record", async (t) => {
  const { ports } = await openFlow(t, {}, {});
  const order: string[] = [];
  const journal: Ports["journal"] = {
    async record(entry) {
      const recorded = await ports.journal.record(entry);
      order.push("recorded");
      return recorded;
    },
  };
  // The wait is over at once.
  const timers: Timers = {
    after(_, work) {
      work();
      return () => undefined;
    },
    every: () => () => undefined,
  };
  await settleRestored({
    mark: { find: async () => 0, set: async () => undefined, clear: async () => undefined },
    ports: { ...ports, journal },
    timers,
    log: { tell: ({ event }: { event: string }) => void order.push(event) } as unknown as Log,
    stopped: new AbortController().signal,
    atStart: (step) => step(),
  });
  assert.deepEqual(order, ["recorded", "recorded", "store_restored"]);
});

test("a copy that cannot be completed leaves no file", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "mandate copy "));
  t.after(() => rmSync(folder, { recursive: true }));
  const store = await openStore({ sqlite: join(folder, "a.sqlite") });
  await store.close();
  const file = join(folder, "copy.sqlite");
  await assert.rejects(async () => store.copyTo?.(file, 1));
  assert.ok(!existsSync(file));
});

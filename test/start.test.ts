/** The process: npm start and npm run demo, the errors of a start, reload and shutdown by signals. */
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  constants,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { Agent } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, type TestContext, test } from "node:test";
import { connect } from "node:tls";
import { loadTrustDomain } from "../scripts/dev-keys.ts";
import { mintX509Svid } from "../scripts/dev-pki.ts";
import { makeProfile } from "../scripts/dev-profile.ts";
import { basic, claimsOf, postForm, send } from "../scripts/http-client.ts";
import {
  freePorts,
  launchServer,
  PROGRAM,
  type ServerProcess,
  startServer,
} from "../scripts/server-process.ts";
import { makeProduction, type Production } from "../scripts/trials/production.ts";
import { hash } from "../src/adapters/crypto/hash.ts";
import { openStore } from "../src/adapters/store/open.ts";
import { defined } from "../src/result.ts";
import { parseExposition } from "./support/exposition.ts";
import { openFlags } from "./support/open-flags.ts";
import { stop } from "./support/stop.ts";
import { until } from "./support/until.ts";
import { makeWorld, type World } from "./support/world.ts";

const ROOT = join(import.meta.dirname, "..");
const RUNTIME = ["ipaddr.js", "jose", "postgres", "valibot"];

const folders: string[] = [];
const scratch = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "mandate start "));
  folders.push(folder);
  return folder;
};
after(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** A copy of the project in a folder of its own, because the server may read nothing outside of it. */
function clone(): string {
  const folder = scratch();
  for (const name of ["package.json", "src", "scripts", "sql"]) {
    cpSync(join(ROOT, name), join(folder, name), { recursive: true });
  }
  mkdirSync(join(folder, "node_modules"));
  for (const name of readdirSync(join(ROOT, "node_modules"))) {
    const [from, to] = [join(ROOT, "node_modules", name), join(folder, "node_modules", name)];
    if (RUNTIME.includes(name)) cpSync(from, to, { recursive: true });
    else symlinkSync(from, to);
  }
  return folder;
}

test("npm start creates a profile, tells no problem, and prints a command that works as printed", async (t) => {
  const folder = clone();
  const [port = 0, idpPort = 0, mtlsPort = 0] = await freePorts(3);
  await makeProfile(join(folder, "data"), { port, idpPort, people: { mtlsPort } });
  // The server may read nothing outside of its folder, where what a test run loads first is.
  const { NODE_OPTIONS: _, ...env } = process.env;
  const npm = spawn("npm", ["start"], { cwd: folder, env, stdio: ["ignore", "pipe", "inherit"] });
  const lines: string[] = [];
  const listening = Promise.withResolvers<void>();
  const output = createInterface({ input: npm.stdout });
  output.on("line", (line) => {
    lines.push(line);
    if (line.includes("listens on")) listening.resolve();
  });
  output.once("close", () => listening.reject(new Error(`npm start ended:\n${lines.join("\n")}`)));
  await listening.promise;
  try {
    await t.test(
      "PROD-4.1v4-1 the profile takes an X.509-SVID at its mtls listener, and asks no browser for one",
      async () => {
        const ca = readFileSync(join(folder, "data/tls/ca.pem"), "utf8");
        const planner = "spiffe://dev.example/agents/planner";
        const trustDomain = loadTrustDomain(join(folder, "data/trust-domain/authority.json"));
        const { keyPem: key, chainPem: cert } = await mintX509Svid(trustDomain, planner);
        const at = (from: number) =>
          postForm(
            `https://localhost:${from}/token`,
            { grant_type: "client_credentials" },
            { ca, key, cert },
          );
        const answer = await at(mtlsPort);
        assert.equal(answer.status, 200, answer.text);
        assert.equal(claimsOf(answer.body.access_token).sub, planner);
        assert.equal((await at(port)).body.error, "invalid_client");
        const metadata = await send(`https://localhost:${port}/.well-known/oauth-authorization-server`, {
          ca,
        });
        const { token_endpoint } = metadata.body.mtls_endpoint_aliases as Record<string, string>;
        assert.equal(token_endpoint, `https://localhost:${mtlsPort}/token`);
      },
    );
    await t.test("the stand-in provider of the profile lets one of its users sign in", async () => {
      const ca = readFileSync(join(folder, "data/tls/ca.pem"), "utf8");
      const provider = `https://localhost:${idpPort}`;
      const { body } = await send(`${provider}/.well-known/openid-configuration`, { ca });
      assert.equal(body.issuer, provider);
      const back = "https://localhost/callback";
      const asked = new URLSearchParams({
        client_id: "mandate",
        redirect_uri: back,
        nonce: "n",
        user: "alice",
      });
      asked.set("code_challenge", hash.sha256("verifier"));
      const { headers } = await send(`${provider}/login?${asked}`, { ca });
      const code = new URL(String(headers.location)).searchParams.get("code") ?? "";
      const redeem = {
        grant_type: "authorization_code",
        code,
        redirect_uri: back,
        code_verifier: "verifier",
      };
      const token = await postForm(`${provider}/token`, redeem, { ca });
      const { sub, nonce, aud } = claimsOf(token.body.id_token);
      assert.deepEqual([sub, nonce, aud], ["alice", "n", "mandate"]);
    });
    // golang.org/x/oauth2 sends a request that failed once more, with the secret in the body, and tells the second answer.
    await t.test("a client of the profile is told the same error by HTTP Basic and in the body", async () => {
      const ca = readFileSync(join(folder, "data/tls/ca.pem"), "utf8");
      const secret = readFileSync(join(folder, "data/clients/nightly-report"), "utf8").trim();
      const form = { grant_type: "client_credentials", scope: "no.such.scope" };
      const at = `https://localhost:${port}/token`;
      const headers = { authorization: basic("nightly-report", secret) };
      const byBasic = await postForm(at, form, { ca, headers });
      const credentials = { client_id: "nightly-report", client_secret: secret };
      const inBody = await postForm(at, { ...form, ...credentials }, { ca });
      assert.deepEqual([byBasic.body.error, inBody.body.error], ["invalid_scope", "invalid_scope"]);
    });
    const command = lines.find((line) => line.startsWith("  curl "));
    assert.ok(command !== undefined, lines.join("\n"));
    if (spawnSync("curl", ["--version"]).error !== undefined) {
      t.diagnostic("curl is not installed: the printed command was not run");
      return;
    }
    const answer = JSON.parse(
      execFileSync("sh", ["-c", `${command} --silent`], { cwd: folder, encoding: "utf8" }),
    );
    assert.equal(claimsOf(answer.access_token).sub, "nightly-report");
    const problems = lines.filter((line) => /ECONNREFUSED|"level":"(?:warning|error)"/.test(line));
    assert.deepEqual(problems, [], "the stand-in identity provider need not run");
  } finally {
    npm.kill("SIGTERM");
    await once(npm, "exit");
  }
});

test("the first start creates a development profile, the second keeps it", () => {
  const folder = scratch();
  const start = (): string =>
    execFileSync(process.execPath, [join(ROOT, "scripts/dev-profile.ts")], { cwd: folder, encoding: "utf8" });
  assert.match(start(), /^Created a development profile in \.\/data/);
  const key = readFileSync(join(folder, "data/keys/encryption-key"), "utf8");
  const file = join(folder, "data/config.json");
  const config = readFileSync(file, "utf8");
  writeFileSync(file, JSON.stringify({ ...JSON.parse(config), standIn: {} }));
  assert.doesNotMatch(start(), /Created/);
  assert.equal(
    readFileSync(file, "utf8"),
    config,
    "of an older profile the setting for the stand-in is left out",
  );
  assert.equal(readFileSync(join(folder, "data/keys/encryption-key"), "utf8"), key);
});

const MISTAKES: [what: string, config: object, told: RegExp][] = [
  [
    "a host that is not of this machine",
    { operations: { host: "192.0.2.1", port: 0 } },
    /^192\.0\.2\.1:0 cannot be listened on, because this machine does not have that address: change "operations\.host" or "operations\.port" in \S/,
  ],
  [
    "a folder for the database that is not there",
    { store: { sqlite: "nowhere/mandate.sqlite", startSeconds: 0 } },
    /^The store in .* is not available: .*nowhere\/mandate\.sqlite: cannot be opened: its folder does not exist: make it$/,
  ],
  [
    "a database outside of --allow-fs-write",
    { store: { sqlite: "/mandate.sqlite", startSeconds: 0 } },
    /^The store in .* is not available: \/mandate\.sqlite: cannot be opened: it is outside of the folders of --allow-fs-write: move it, or add the flag for it$/,
  ],
  [
    "a connection URL that cannot be read, which is not repeated",
    { store: { postgres: { file: "database" } } },
    /^Invalid configuration in .*\n {2}store\.postgres: is not a connection URL \(postgres:\/\/…\)$/,
  ],
];

for (const [what, config, told] of MISTAKES) {
  test(`${what} stops the start with one message`, async (t) => {
    const production = await makeProduction(config);
    t.after(production.remove);
    writeFileSync(join(production.folder, "database"), "postgres://mandate:s3cret@[db/mandate");
    await assert.rejects(startServer(production.configFile), ({ message }: Error) => {
      assert.match(message.replace(/^the server ended with [123]:\n/, ""), told);
      return true;
    });
  });
}

test("an invalid configuration stops the start and prints every problem with its path", async () => {
  const folder = scratch();
  const file = join(folder, "config.json");
  writeFileSync(file, JSON.stringify({ version: 2, colour: "red" }));
  await assert.rejects(startServer(file), (error: Error) => {
    for (const path of ["version", "colour", "issuer", "listen"])
      assert.match(error.message, new RegExp(`^ +${path}: `, "m"));
    return true;
  });
});

const API = "https://api.example";
const client = {
  clients: { a: { method: "client_secret_basic", secrets: ["secret-a"], defaultTarget: API } },
  targets: [{ names: [API], scopes: ["read", "write"] }],
};
const rule = (...scopes: string[]) => ({
  policies: [{ id: "one", allow: "client_credentials", clients: ["a"], targets: [API], scopes }],
});
const CREDENTIALS = { authorization: basic("a", "secret-a") };

/** One server for these tests; the last one stops it. */
describe("a server that runs", () => {
  let world: World;
  before(async () => {
    world = await makeWorld({ ...client, ...rule("read") });
  });
  after(() => stop(world));

  test("PROD-1-4 a token can be verified with the published metadata and key set alone", async () => {
    const { body: metadata } = await world.get("/.well-known/oauth-authorization-server");
    assert.equal(metadata.jwks_uri, "https://as.example/jwks");
    const { body: keys } = await world.get("/jwks");
    const answer = await world.token({ grant_type: "client_credentials" }, CREDENTIALS);
    const { createLocalJWKSet, jwtVerify } = await import("jose");
    const verified = await jwtVerify(String(answer.body.access_token), createLocalJWKSet(keys as never), {
      issuer: String(metadata.issuer),
      audience: API,
      typ: "at+jwt",
    });
    assert.equal(verified.payload.client_id, "a");
  });

  test("a port in use is reported with the setting to change", async () => {
    const config = JSON.parse(readFileSync(world.configFile, "utf8"));
    config.listen.port = world.server.port;
    config.store = { sqlite: "other.sqlite" };
    const configFile = join(world.folder, "other.json");
    writeFileSync(configFile, JSON.stringify(config));
    await assert.rejects(startServer(configFile), (error: Error) => {
      assert.match(
        error.message,
        new RegExp(`ended with 1:\\n127\\.0\\.0\\.1:${world.server.port} is in use: .*listen\\.port`),
      );
      return true;
    });
  });

  test("SIGHUP reloads the policy; an invalid file is reported and leaves the old policy in force", async () => {
    const scopeNow = async (): Promise<unknown> =>
      (await world.token({ grant_type: "client_credentials" }, CREDENTIALS)).body.scope;
    const reload = async (change: object): Promise<string[]> => {
      const config = JSON.parse(readFileSync(world.configFile, "utf8"));
      writeFileSync(world.configFile, JSON.stringify({ ...config, ...change }));
      return world.server.reload();
    };
    assert.equal(await scopeNow(), "read");
    assert.deepEqual(await reload(rule("read", "write")), []);
    assert.equal(await scopeNow(), "read write");
    const [broken] = await reload({ policies: [{ id: "broken" }] });
    assert.match(broken ?? "", /^not reloaded: policies\.0/);
    assert.equal(await scopeNow(), "read write");
    const [moved] = await reload({ ...rule("read"), issuer: "https://other.example" });
    assert.match(moved ?? "", /^not reloaded: issuer/);
    assert.equal(await scopeNow(), "read write");
    const digests = (await world.events()).filter(({ type }) => type === "config.changed");
    assert.equal(digests.length, 2);
  });

  test("AUDIT-D-2 failures before authentication are counted, and written when the process ends at the latest", async () => {
    const wrong = { authorization: basic("a", "wrong") };
    for (let i = 0; i < 3; i++) await world.token({ grant_type: "client_credentials" }, wrong);
    await world.server.stop();
    const counted = (await world.events()).filter(({ type }) => type === "client.auth_failed");
    assert.deepEqual(
      counted.map(({ reason, count }) => [reason, count]),
      [["secret_wrong", 3]],
    );
  });
});

test("in production every line of standard output is one JSON object with time, level and event", async () => {
  const production = await makeProduction({
    operations: { host: "127.0.0.1", port: 0 },
    audit: { instance: "one", witness: "stdout", checkpoint: { events: 1, seconds: 1 } },
  });
  try {
    const server = await startServer(production.configFile);
    assert.equal(await production.token(), 200);
    const config = JSON.parse(readFileSync(production.configFile, "utf8"));
    writeFileSync(production.configFile, JSON.stringify({ ...config, policies: [{ id: "broken" }] }));
    server.child.kill("SIGHUP");
    await until(() => server.lines.some((line) => line.includes("reload_refused")), "the reload is refused");
    await server.stop();
    const entries = server.lines.map((line) => JSON.parse(line));
    for (const { time, level, event } of entries) {
      assert.equal(new Date(time).toISOString(), time);
      assert.match(level, /^(info|warning|error)$/);
      assert.match(event, /^[a-z_]+$/);
    }
    const events = new Set(entries.map(({ event }) => event));
    for (const event of ["listening", "request", "reload_refused", "checkpoint"]) {
      assert.ok(events.has(event), event);
    }
    assert.deepEqual(server.errors, []);
  } finally {
    production.remove();
  }
});

/** A server in production whose witness is a file; `use` runs while it does. */
async function withWitness(
  production: Production,
  use: (server: ServerProcess, metrics: () => Promise<string>) => Promise<void>,
): Promise<readonly string[]> {
  const server = await startServer(production.configFile);
  try {
    const listening = server.lines.map((line) => JSON.parse(line));
    const port = listening.find(({ listener }) => listener === "operations")?.port;
    await use(server, async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text());
  } finally {
    await server.stop();
  }
  return server.lines.flatMap((line) => /"event":"(witness_\w+)"/.exec(line)?.[1] ?? []);
}

const WITNESSED = {
  operations: { host: "127.0.0.1", port: 0 },
  audit: { instance: "one", witness: { file: "witness" }, checkpoint: { events: 1, seconds: 1 } },
};

test("the file witness has every checkpoint, each written through, under the permission model", async (t) => {
  const production = await makeProduction(WITNESSED);
  const file = join(production.folder, "witness");
  try {
    const told = await withWitness(production, async (server, metrics) => {
      for (let one = 0; one < 3; one++) assert.equal(await production.token(), 200);
      const flags = openFlags(server.child.pid ?? 0, file);
      if (flags !== undefined) assert.equal(flags & constants.O_DSYNC, constants.O_DSYNC);
      assert.match(await metrics(), /^mandate_witness_works 1$/m);
      parseExposition(await metrics());
      assert.match(await metrics(), /^mandate_witness_age_seconds \d+$/m);
      const grant = 'path="/token",grant="client_credentials",outcome="answered"';
      assert.ok((await metrics()).includes(`\nmandate_request_duration_seconds_count{${grant}} 3\n`));
      assert.match(await metrics(), /^mandate_journal_commit_seconds_count [1-9]/m);
    });
    assert.deepEqual(told, ["witness_works"]);
    const store = await openStore({ sqlite: join(production.folder, "mandate.sqlite") });
    const stored = (await store.audit.checkpoints(new Map(), 1000)).map(({ jws }) => jws);
    await store.close();
    const lines = readFileSync(file, "utf8").trimEnd().split("\n");
    const witnessed = new Set(lines.map((line) => JSON.parse(line).checkpoint));
    assert.ok(stored.length > 1);
    assert.ok(witnessed.has(stored.at(-1)), "the last one");
    for (const jws of witnessed) assert.ok(stored.includes(String(jws)));

    await t.test(
      "AUDIT-D-10 a store that was lost is told, counted and recorded at the start, and treated as a restored copy",
      async () => {
        const database = join(production.folder, "mandate.sqlite");
        rmSync(database);
        const { child, lines } = launchServer(production.configFile);
        const told = () => lines.flatMap((line) => /"event":"(witness_\w+|store_\w+)"/.exec(line)?.[1] ?? []);
        await until(() => told().includes("store_restored"), "it says that it waits");
        // On a busy machine the first checkpoint is delivered by now, too.
        const before = told().filter((event) => event !== "witness_works");
        assert.deepEqual(before, ["witness_ahead", "store_restored"]);
        const { port } = lines
          .map((line) => JSON.parse(line))
          .find(({ listener }) => listener === "operations");
        const at = (path: string) => fetch(`http://127.0.0.1:${port}${path}`);
        assert.match(await (await at("/metrics")).text(), /^mandate_witness_logs_ahead 1$/m);
        assert.equal((await at("/readyz")).status, 503);
        child.kill("SIGTERM");
        assert.deepEqual(await once(child, "exit"), [0, null]);
        const store = await openStore({ sqlite: database });
        const events = await store.log.read({ log: "one", limit: 100 });
        assert.notEqual(await store.restored.find(), undefined, "the next start waits, too");
        await store.close();
        assert.equal(events.filter(({ body }) => body.includes('"reason":"witness_ahead"')).length, 1);
      },
    );
  } finally {
    production.remove();
  }
});

test("SIGTERM finishes requests in progress, accepts no new ones, and exits with 0", async () => {
  const world = await makeWorld({ ...client, ...rule("read") });
  const body = "grant_type=client_credentials";
  const socket = connect({
    host: "127.0.0.1",
    port: world.server.port,
    ca: world.ca,
    servername: "as.example",
  });
  try {
    await once(socket, "secureConnect");
    const head = [
      "POST /token HTTP/1.1",
      "Host: as.example",
      `Authorization: ${CREDENTIALS.authorization}`,
      "Content-Type: application/x-www-form-urlencoded",
      `Content-Length: ${body.length}`,
      // Its answer says that the head has arrived.
      "Expect: 100-continue",
    ];
    socket.write(`${head.join("\r\n")}\r\n\r\n${body.slice(0, 10)}`);
    await once(socket, "readable");
    assert.match(String(socket.read()), /^HTTP\/1\.1 100 /);
    world.server.child.kill("SIGTERM");
    const isRefused = () =>
      world.token({ grant_type: "client_credentials" }, CREDENTIALS).then(
        () => false,
        ({ code }) => code === "ECONNREFUSED",
      );
    await until(isRefused, "no new connection is taken");
    socket.write(body.slice(10));
    const answer = (await socket.toArray()).join("");
    assert.match(answer, /^HTTP\/1\.1 200 /);
    assert.equal(await world.server.stop(), 0);
  } finally {
    socket.destroy();
    await world.stop();
  }
});

/** A server in production that serves on after SIGTERM, its `/readyz`, and a request on a new connection. */
async function makeDraining(t: TestContext, drainSeconds: number) {
  const production = await makeProduction({ operations: { port: 0 } });
  t.after(() => production.remove());
  const config = JSON.parse(readFileSync(production.configFile, "utf8"));
  config.listen.drainSeconds = drainSeconds;
  writeFileSync(production.configFile, JSON.stringify(config));
  const server = await startServer(production.configFile);
  t.after(() => server.child.kill("SIGKILL"));
  // One that would keep its connections.
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const at = server.lines.map((line) => JSON.parse(line)).find(({ listener }) => listener === "operations");
  const ca = readFileSync(join(production.folder, "tls/ca.pem"), "utf8");
  return {
    server,
    ready: async () => (await fetch(`http://127.0.0.1:${at.port}/readyz`)).status,
    async build() {
      const body = Object(await (await fetch(`http://127.0.0.1:${at.port}/readyz`)).json());
      return defined<Record<string, string>>({
        version: body.version,
        commit: body.commit,
        sha256: body.sha256,
      });
    },
    ask: () => send(`${config.issuer}/jwks`, { ca, agent }),
    told: () => server.lines.filter((line) => line.includes('"event":"draining"')).length,
  };
}

test("HTTP-D-67 a started server names its build in /readyz", async (t) => {
  const { build } = await makeDraining(t, 0);
  const { version, release } = JSON.parse(readFileSync(join(PROGRAM, "package.json"), "utf8"));
  assert.deepEqual(await build(), { version, ...release });
});

test("from SIGTERM on an instance is not ready, and serves on for listen.drainSeconds", async (t) => {
  const { server, ready, ask, told } = await makeDraining(t, 1);
  assert.equal(await ready(), 200);
  const startMs = performance.now();
  server.child.kill("SIGTERM");
  await until(async () => (await ready()) === 503, "it is not ready");
  await until(() => told() === 1, "it is told");
  const { status, headers } = await ask();
  assert.deepEqual([status, headers.connection], [200, "close"]);
  await once(server.child, "exit");
  assert.equal(server.child.exitCode, 0);
  assert.ok(performance.now() - startMs >= 1000);
});

test("a second SIGTERM ends the drain at once", async (t) => {
  const { server, ready } = await makeDraining(t, 300);
  server.child.kill("SIGTERM");
  await until(async () => (await ready()) === 503, "it is not ready");
  assert.equal(await server.stop(), 0);
});

/** SIGHUP in the production profile: what it takes, what it leaves, what it names, and what it does during the start. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { Agent } from "node:https";
import { join } from "node:path";
import { after, afterEach, before, describe, type TestContext, test } from "node:test";
import { connect, type TLSSocket } from "node:tls";
import { type Authority, derOf } from "../scripts/dev-keys.ts";
import { issueServerCertificate, makeAuthority } from "../scripts/dev-pki.ts";
import { send } from "../scripts/http-client.ts";
import { freePorts, launchServer, MAIN, type ServerProcess, startServer } from "../scripts/server-process.ts";
import { makeProduction, type Production } from "../scripts/trials/production.ts";
import { openStore } from "../src/adapters/store/open.ts";
import { openDatabaseProxy } from "./support/database-proxy.ts";
import { freshDatabase, sharePostgres } from "./support/postgres.ts";
import { stop } from "./support/stop.ts";
import { until } from "./support/until.ts";

const IDP = "https://idp.example";

type ConfigJson = Record<string, unknown> & {
  listen: { port: number };
  policies: readonly { id: string }[];
};
type Told = Record<string, unknown> & { event: string; message: string };

const readConfig = ({ configFile }: Production): ConfigJson => JSON.parse(readFileSync(configFile, "utf8"));

function change(production: Production, changes: object): void {
  // Renamed, so that a reload under way never reads half of it.
  const next = `${production.configFile}.next`;
  writeFileSync(next, JSON.stringify({ ...readConfig(production), ...changes }));
  renameSync(next, production.configFile);
}

const toldBy = ({ lines }: Pick<ServerProcess, "lines">): Told[] => lines.map((line) => JSON.parse(line));

async function running(t: TestContext, extra: object = {}): Promise<[Production, ServerProcess]> {
  const production = await makeProduction(extra);
  const server = await startServer(production.configFile);
  t.after(async () => {
    await server.stop();
    production.remove();
  });
  return [production, server];
}

/** The certificate that a new connection to this port is shown, as DER. */
async function shownAt(port: number): Promise<Buffer> {
  const socket: TLSSocket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false });
  await once(socket, "secureConnect");
  const shown = socket.getPeerX509Certificate()?.raw;
  socket.destroy();
  assert.ok(shown);
  return shown;
}

/** Writes a new certificate of this authority and its key, as a renewal does. */
async function renew({ folder }: Production, authority: Authority, name = ""): Promise<Buffer> {
  const { keyPem, certPem } = await issueServerCertificate(authority, ["localhost", "127.0.0.1"]);
  writeFileSync(join(folder, `tls/${name}key.pem`), keyPem);
  writeFileSync(join(folder, `tls/${name}cert.pem`), certPem);
  return derOf(certPem);
}

const listenerAt = (port: number, name: string) => ({
  host: "127.0.0.1",
  port,
  tls: { key: { file: `tls/${name}key.pem` }, cert: { file: `tls/${name}cert.pem` } },
});

test("RFC6749-3.2-3 SIGHUP takes renewed certificates on all listeners; open connections go on", async (t) => {
  const production = await makeProduction();
  const authority = await makeAuthority("next year's authority");
  const [mtls = 0, proxy = 0] = await freePorts(2);
  await renew(production, authority, "proxy-");
  change(production, {
    mtls: { ...listenerAt(mtls, ""), origin: "https://mtls.example" },
    proxy: { ...listenerAt(proxy, "proxy-"), ca: { file: "tls/ca.pem" }, name: "proxy.example" },
  });
  const server = await startServer(production.configFile);
  const { issuer } = readConfig(production);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(async () => {
    agent.destroy();
    await server.stop();
    production.remove();
  });
  const ca = readFileSync(join(production.folder, "tls/ca.pem"), "utf8");
  const keptAlive = async (): Promise<number> => (await send(`${issuer}/jwks`, { ca, agent })).status;
  assert.equal(await keptAlive(), 200);

  const next = await renew(production, authority);
  const nextForProxy = await renew(production, authority, "proxy-");
  assert.deepEqual(await server.reload(), []);
  assert.deepEqual(await shownAt(server.port), next);
  assert.deepEqual(await shownAt(mtls), next);
  assert.deepEqual(await shownAt(proxy), nextForProxy);
  // Its certificate was of an authority that no new connection could be verified by.
  assert.equal(await keptAlive(), 200);
  await assert.rejects(send(`${issuer}/jwks`, { ca }), { code: "UNABLE_TO_VERIFY_LEAF_SIGNATURE" });
  const renewed = toldBy(server).filter(({ event }) => event === "certificate_renewed");
  assert.deepEqual(renewed.map(({ listener }) => listener).sort(), ["listen", "mtls", "proxy"]);
  assert.match(renewed[0]?.message ?? "", /valid until 20\d\d-/);

  assert.deepEqual(await server.reload(), []);
  assert.equal(
    toldBy(server).filter(({ event }) => event === "certificate_renewed").length,
    3,
    "none is new",
  );
});

const DAMAGE: [what: string, damage: (production: Production) => Promise<void>, told: RegExp][] = [
  [
    "a certificate without its key",
    async (production) => {
      const key = readFileSync(join(production.folder, "tls/key.pem"));
      await renew(production, await makeAuthority("other"));
      writeFileSync(join(production.folder, "tls/key.pem"), key);
    },
    /^not reloaded: listen\.tls\.key: is not the private key of the certificate/,
  ],
  [
    "a file that cannot be read",
    async (production) => {
      const { listen } = readConfig(production);
      change(production, { listen: { ...listen, tls: listenerAt(0, "no-").tls } });
    },
    /^not reloaded: listen\.tls\.key\.file: tls\/no-key\.pem cannot be read: there is no such file or folder: correct its name, or make it/,
  ],
  [
    "a file outside of --allow-fs-read",
    async (production) => {
      const { listen } = readConfig(production);
      const tls = { ...listenerAt(0, "").tls, key: { file: "/etc/hostname" } };
      change(production, { listen: { ...listen, tls } });
    },
    /^not reloaded: listen\.tls\.key\.file: \/etc\/hostname cannot be read: it is outside of the folders of --allow-fs-read: move it, or add the flag for it/,
  ],
  [
    "a chain that is damaged after its first certificate",
    async ({ folder }) => {
      const cert = join(folder, "tls/cert.pem");
      const pem = readFileSync(cert, "utf8");
      writeFileSync(cert, `${pem}\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`);
    },
    /^not reloaded: listen\.tls\.cert: /,
  ],
  [
    "another profile, by whose rules a weak secret is accepted",
    async (production) => {
      const clients = { "nightly-report": { method: "client_secret_basic", secrets: ["short"] } };
      change(production, { profile: "development", clients });
    },
    /^not reloaded: profile: cannot change while the server runs; restart it$/,
  ],
  [
    "another issuer",
    async (production) => change(production, { issuer: "https://another.example" }),
    /^not reloaded: issuer: cannot change while the server runs; restart it$/,
  ],
  [
    "a configuration that is not JSON",
    async ({ configFile }) => writeFileSync(configFile, '{ "version": 1,'),
    /^not reloaded: .*config\.json: is not valid JSON/,
  ],
];

/** One server, whose files are put back after each of these tests, and are read again in the next one. */
describe("a server that is told to reload", () => {
  let production: Production;
  let server: ServerProcess;
  let files: readonly (readonly [path: string, content: string])[];
  before(async () => {
    production = await makeProduction();
    const paths = ["config.json", "tls/key.pem", "tls/cert.pem"].map((name) => join(production.folder, name));
    files = paths.map((path) => [path, readFileSync(path, "utf8")]);
    server = await startServer(production.configFile);
  });
  afterEach(() => {
    for (const [path, content] of files) writeFileSync(path, content);
  });
  after(() => stop(server, () => production.remove()));

  for (const [what, damage, problem] of DAMAGE) {
    test(`CONF-D-6 with ${what} nothing of the reload is taken, and the log says which and why`, async () => {
      const known = server.lines.length;
      const before = await shownAt(server.port);
      assert.deepEqual(await server.reload(), []);
      const told = () => toldBy(server).slice(known);
      const inForce = told().find(({ event }) => event === "reloaded")?.policy;
      assert.match(String(inForce), /^sha256:[0-9a-f]{64}$/);
      change(production, { policies: [] });
      await damage(production);
      const [refusal = ""] = await server.reload();
      assert.match(refusal, problem);
      assert.deepEqual(await shownAt(server.port), before);
      assert.equal(await production.token(), 200, "the old policy");
      const refused = told().filter(({ event }) => event === "reload_refused");
      assert.ok(refused.length > 0);
      for (const { policy } of refused) assert.equal(policy, inForce);
    });
  }

  test("CONF-D-20 a file of a trust bundle that is half written or missing is told, and the rest is taken", async () => {
    const file = join(production.folder, "bundle.json");
    const domain = { "td.example": { bundle: { file: "bundle.json" } } };
    change(production, { trustDomains: domain, drafts: ["draft-ietf-oauth-spiffe-client-auth-02"] });
    const told = async (): Promise<readonly string[]> => {
      const known = toldBy(server).length;
      assert.deepEqual(await server.reload(), []);
      const warnings = toldBy(server).slice(known);
      return warnings.filter(({ event }) => event === "config_warning").map(({ message }) => String(message));
    };
    const left = "the last good copy stays in use, and without one the workloads are refused";
    assert.deepEqual(await told(), [
      `trustDomains.td.example.bundle.file: bundle.json cannot be read: there is no such file or folder: correct its name, or make it: ${left}`,
    ]);
    writeFileSync(file, '{"keys":[');
    assert.deepEqual(await told(), [
      `trustDomains.td.example.bundle.file: bundle.json is not a trust bundle: ${left}`,
    ]);
    writeFileSync(file, '{"keys":[]}');
    assert.deepEqual(await told(), []);
  });

  test("many SIGHUPs at once are done one after the other, and the last file is in force", async () => {
    const { policies } = readConfig(production);
    for (let round = 0; round < 20; round++) {
      change(production, { policies: round % 2 === 0 ? [] : policies });
      server.child.kill("SIGHUP");
    }
    change(production, { policies: [] });
    assert.deepEqual(await server.reload(), []);
    await until(async () => (await production.token()) === 400, "the last file is in force");
  });
});

test("CONF-D-5 settings that need a restart are named by their paths, and the rest is taken", async (t) => {
  const [production, server] = await running(t);
  const { listen, policies } = readConfig(production);
  writeFileSync(join(production.folder, "keys/encryption-key"), Buffer.alloc(32, 1).toString("base64url"));
  const [free = 0] = await freePorts(1);
  change(production, {
    listen: { ...listen, port: free },
    mtls: { ...listenerAt(0, ""), origin: "https://mtls.example" },
    operations: { port: 0 },
    trustedIssuers: { [IDP]: { keys: { discover: true }, subjects: { prefix: "company:" } } },
    signIn: { providers: { company: { issuer: IDP, clientId: "mandate" } } },
    store: { sqlite: "elsewhere.sqlite" },
    audit: { instance: "two", retentionDays: 7 },
    limits: { fetchesPerMinuteByHost: 7 },
    policies: [],
  });
  assert.deepEqual(await server.reload(), []);
  const told = toldBy(server);
  const named = told.filter(({ event }) => event === "restart_needed");
  assert.deepEqual(named.map(({ setting }) => setting).sort(), [
    "audit.instance",
    "audit.retentionDays",
    "keys.encryptionKey",
    "limits.fetchesPerMinuteByHost",
    "listen.port",
    "mtls.host",
    "mtls.origin",
    "mtls.port",
    "operations.host",
    "operations.port",
    "signIn",
    "store.sqlite",
  ]);
  const port = named.find(({ setting }) => setting === "listen.port");
  assert.equal(port?.message, "listen.port changed: restart to use it");
  assert.match(
    String(named.find(({ setting }) => setting === "signIn")?.message),
    /^signIn is in force as it is now/,
  );
  assert.equal(await production.token(), 400, "the new policy, at the old port");
  const { issuer } = readConfig(production);
  const ca = readFileSync(join(production.folder, "tls/ca.pem"), "utf8");
  const { body } = await send(`${issuer}/.well-known/oauth-authorization-server`, { ca });
  assert.equal(body.mtls_endpoint_aliases, undefined, "of a listener that is not open");
  assert.equal(body.authorization_endpoint, `${issuer}/authorize`, "users sign in from now on");
  assert.equal(body.tls_client_certificate_bound_access_tokens, true, "the main listener asks as before");

  change(production, { policies });
  assert.deepEqual(await server.reload(), []);
  const [first, second] = toldBy(server).filter(({ event }) => event === "reloaded");
  assert.notEqual(first?.policy, second?.policy);
});

test("a SIGHUP while the start waits for the store is done after it", async (t) => {
  const production = await makeProduction();
  const shared = await sharePostgres();
  const proxy = await openDatabaseProxy(await freshDatabase(shared));
  proxy.manner = "close";
  writeFileSync(join(production.folder, "database"), proxy.url);
  change(production, { store: { postgres: { file: "database" } } });
  const server = launchServer(production.configFile);
  t.after(async () => {
    const ended = once(server.child, "exit");
    server.child.kill("SIGTERM");
    await ended;
    proxy.close();
    await shared.stop();
    production.remove();
  });
  const tells = (event: string) => () => toldBy(server).some((one) => one.event === event);
  await until(tells("store_awaited"), "the start waits");
  change(production, { policies: [] });
  server.child.kill("SIGHUP");
  proxy.manner = "pass";
  await until(tells("reloaded"), "the reload is done");
  const events = toldBy(server).map(({ event }) => event);
  assert.deepEqual(events.slice(0, 4), ["store_awaited", "store_replication", "listening", "reloaded"]);
  assert.equal(await production.token(), 400, "the new policy");
});

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  test(`${signal} while the start waits for the store ends it with 0`, async (t) => {
    const production = await makeProduction();
    t.after(() => production.remove());
    writeFileSync(join(production.folder, "database"), "postgres://mandate@127.0.0.1:1/mandate");
    change(production, { store: { postgres: { file: "database" } } });
    const { child, lines, errors } = launchServer(production.configFile);
    const ended = once(child, "exit");
    await until(() => lines.some((line) => line.includes("store_awaited")), "the start waits");
    child.kill("SIGHUP");
    child.kill(signal);
    assert.deepEqual(await ended, [0, null]);
    assert.deepEqual(errors, []);
    assert.deepEqual(
      lines.map((line) => JSON.parse(line).event),
      ["store_awaited", "stopped"],
    );
  });
}

// --- before the start ---------------------------------------------------------------------------------------------

/** Sends a signal to the process itself, as soon as anything is loaded but what listens to signals. */
const atFirstLoad = (signal: NodeJS.Signals): { NODE_OPTIONS: string } => {
  const hooks = `
    import { registerHooks } from "node:module";
    const hooks = registerHooks({
      load(url, context, load) {
        const isFirst = /\\.ts$/.test(url) && !/\\/src\\/(?:main|start\\/signals)\\.ts$/.test(url);
        if (isFirst) hooks.deregister();
        if (isFirst) process.kill(process.pid, "${signal}");
        return load(url, context);
      },
    });`;
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hooks)}` };
};

test("a SIGHUP before all else is loaded does not end the start, and is done after it", async (t) => {
  const production = await makeProduction();
  t.after(() => production.remove());
  const server = await startServer(production.configFile, { environment: atFirstLoad("SIGHUP") });
  t.after(() => server.child.kill("SIGKILL"));
  await until(() => toldBy(server).some(({ event }) => event === "reloaded"), "the reload is done");
  assert.equal(await server.stop(), 0);
});

test("a SIGTERM before all else is loaded ends the start with 0, and a command by the signal", async (t) => {
  const production = await makeProduction();
  t.after(() => production.remove());
  const environment = atFirstLoad("SIGTERM");
  const { child } = launchServer(production.configFile, { environment });
  assert.deepEqual(await once(child, "exit"), [0, null]);
  const store = await openStore({ sqlite: join(production.folder, "mandate.sqlite") });
  const checkpoints = await store.audit.checkpoints(new Map(), 10);
  await store.close();
  assert.equal(checkpoints.length, 1, "what the start wrote is closed as at each stop");
  const command = spawn(process.execPath, [MAIN, "--version"], {
    env: { ...process.env, ...environment },
  });
  assert.deepEqual(await once(command, "exit"), [null, "SIGTERM"]);
});

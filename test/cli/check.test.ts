/** `mandate check`: what it opens, what it says of it, and what it does not claim. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { randomUUID, X509Certificate } from "node:crypto";
import { once } from "node:events";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test } from "node:test";
import { rootCertificates } from "node:tls";
import postgres from "postgres";
import { issueServerCertificate, makeAuthority, makeIntermediate } from "../../scripts/dev-pki.ts";
import { makeProfile } from "../../scripts/dev-profile.ts";
import { freePorts, MAIN, startServer } from "../../scripts/server-process.ts";
import { openJournal } from "../../src/adapters/audit/journal.ts";
import { clock } from "../../src/adapters/clock.ts";
import { random } from "../../src/adapters/crypto/random.ts";
import { openStore } from "../../src/adapters/store/open.ts";
import { certificatesOf } from "../../src/cli/check/certificates.ts";
import { datesOf } from "../../src/cli/check/dates.ts";
import type { Finding } from "../../src/cli/check/finding.ts";
import { portsOf } from "../../src/cli/check/ports.ts";
import { loadConfig } from "../../src/config/config.ts";
import { EXIT } from "../../src/limits/process.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { DRAFT } from "../../src/spec/workload-grant.ts";
import type { Log } from "../../src/start/log.ts";
import { openService } from "../../src/start/service.ts";
import { parseCommand, runCommand } from "../support/host.ts";
import { makePlatform } from "../support/platforms.ts";
import { freshDatabase, sharePostgres, startPostgres } from "../support/postgres.ts";
import { startProvider } from "../support/provider.ts";
import { openSigner } from "../support/signer.ts";
import { until } from "../support/until.ts";
import { LOOPBACK, startWebServer } from "../support/web.ts";

const ROOT = join(import.meta.dirname, "../..");

let folder: string;
let config: Record<string, unknown> & { issuer: string };
let sqlite: string;

before(async () => {
  folder = join(mkdtempSync(join(tmpdir(), "mandate check ")), "data");
  const { configFile } = await makeProfile(folder);
  config = JSON.parse(readFileSync(configFile, "utf8"));
  sqlite = join(folder, "mandate.sqlite");
});
after(() => rmSync(join(folder, ".."), { recursive: true, force: true }));

/** On a port that is free now. */
const LISTEN = {
  host: "127.0.0.1",
  port: 0,
  tls: { key: { file: "tls/key.pem" }, cert: { file: "tls/cert.pem" } },
};

async function check(patch: object = {}): Promise<{ code: number; findings: Finding[] }> {
  const file = join(folder, "checked.json");
  writeFileSync(file, JSON.stringify({ ...config, listen: LISTEN, ...patch }));
  const command = await parseCommand(["check", "--json", "--config", file]);
  assert.ok(command.ok && command.value.on === "files");
  const findings: Finding[] = [];
  const print = (line: string): void => void findings.push(JSON.parse(line));
  return { code: await command.value.run({ print, printError: assert.fail }), findings };
}

const at = (findings: readonly Finding[], where: string): Finding =>
  findings.find((one) => one.where === where) ??
  assert.fail(`nothing about ${where}: ${JSON.stringify(findings)}`);

const KEY = "keys.encryptionKey";

test("a sound configuration before the first start has no error, and check makes no database", async () => {
  const { code, findings } = await check();
  assert.equal(code, 0, JSON.stringify(findings));
  assert.deepEqual(
    findings.filter(({ level }) => level !== "ok").map(({ level, where }) => [level, where]),
    [],
  );
  assert.match(at(findings, "store.sqlite").says, /^there is no database yet: the first start makes /);
  assert.match(at(findings, "listen.tls.cert").says, /^the certificate is valid until 20/);
  assert.equal(
    at(findings, "trustDomains.dev.example.bundle").says,
    "has 1 JWT keys and 1 X.509 authorities",
  );
  assert.ok(!findings.some(({ where }) => where === KEY), "a key that opened nothing is not called right");
  assert.ok(!existsSync(sqlite));
});

test("the key-encryption key is tried on the signing keys of the store", async () => {
  const right = readFileSync(join(folder, "keys/encryption-key"), "utf8");
  const store = await openStore({ sqlite });
  await openSigner(store, Buffer.from(right, "base64url"), ["ES256"], clock);
  await store.close();
  const good = await check();
  assert.deepEqual([good.code, at(good.findings, KEY).says], [0, "opens the 2 signing keys of the store"]);
  writeFileSync(join(folder, "keys/other"), Buffer.alloc(32, 7).toString("base64url"));
  const wrong = await check({ keys: { encryptionKey: { file: "keys/other" } } });
  assert.equal(wrong.code, 1);
  assert.deepEqual(at(wrong.findings, KEY), {
    level: "error",
    where: KEY,
    says: "is not the key that the signing keys in the store were encrypted with: restore that key",
  });
});

test("an instance that was retired is an error", async () => {
  const file = "retired.sqlite";
  const says = async () => at((await check({ store: { sqlite: file } })).findings, "audit.instance");
  const store = await openStore({ sqlite: join(folder, file) });
  assert.equal((await says()).says, "development begins a log of its own");
  const onFatal = assert.fail;
  const journal = await openJournal({ log: "development", store: store.log, clock, random, onFatal });
  await journal.close();
  assert.match(
    (await says()).says,
    /^development has a log of \d+ events in the store, and no process uses the name$/,
  );
  const loaded = loadConfig(join(folder, "config.json"));
  assert.ok(loaded.ok);
  const { settings } = loaded.value;
  assert.equal((await runCommand(["audit", "retire", "development"], { settings, store })).code, 0);
  await store.close();
  const { level, says: told } = await says();
  assert.equal(level, "error");
  assert.match(told, /^development was retired, .*: give this instance another name$/);
});

test("tables of an older version are told and not changed", async () => {
  const file = join(folder, "older.sqlite");
  copyFileSync(sqlite, file);
  const count = (): unknown => {
    const db = new DatabaseSync(file);
    const done = db.prepare("select max(number) as done from migration").get()?.done;
    db.close();
    return done;
  };
  const db = new DatabaseSync(file);
  db.exec("delete from migration where number = (select max(number) from migration)");
  db.close();
  const older = count();
  const { code, findings } = await check({ store: { sqlite: "older.sqlite" } });
  assert.equal(code, 3);
  assert.match(
    at(findings, "store.sqlite").says,
    /^the tables are those of an older version \(\d+ of \d+ migrations\)/,
  );
  assert.equal(at(findings, KEY).level, "unseen");
  assert.equal(count(), older);
});

const places: readonly (readonly [what: string, store: object, code: number, says: RegExp])[] = [
  [
    "a folder that is not there",
    { sqlite: "nowhere/a.sqlite" },
    1,
    /^the folder .*nowhere does not exist: make it/,
  ],
  ["a file that is no database", { sqlite: "config.json" }, 3, /^SQLite answered 26/],
  ["a database that does not answer", { postgres: "postgres://u:p@127.0.0.1:1/d" }, 3, /ECONNREFUSED/],
];
for (const [what, store, want, says] of places) {
  test(`the store is ${what}`, async () => {
    const { code, findings } = await check({ store });
    const [name = ""] = Object.keys(store);
    assert.match(at(findings, `store.${name}`).says, says);
    assert.equal(code, want);
  });
}

test("an empty PostgreSQL database is fit for a first start, and gets no tables by the check", async (t) => {
  const server = await sharePostgres();
  t.after(server.stop);
  const postgres = await freshDatabase(server);
  for (let round = 0; round < 2; round++) {
    const { code, findings } = await check({ store: { postgres } });
    assert.deepEqual([code, at(findings, "store.postgres").level], [0, "warning"]);
    assert.match(
      at(findings, "store.postgres").says,
      /no tables of this server yet: the first start makes them/,
    );
  }
});

test("bundles and keys are opened, and a failure names its place", async () => {
  writeFileSync(join(folder, "text"), "nothing of the kind");
  const trustDomains = {
    "dev.example": { bundle: { url: "https://127.0.0.1:1/bundle", privateNetworks: ["127.0.0.1/32"] } },
  };
  const { code, findings } = await check({ trustDomains });
  assert.equal(code, 3);
  const found = at(findings, "trustDomains.dev.example.bundle");
  assert.match(found.says, /^cannot be used \(.*\): correct the URL, its ca or its privateNetworks$/);
});

test("FEDC-D-7 of each registration of workloads it is told whether a token is accepted again", async () => {
  const issuer = "https://cloud.example";
  const cloud = makePlatform(issuer);
  writeFileSync(join(folder, "cloud.json"), cloud.jwks);
  const dedicated = { tenancy: "dedicated" };
  const { findings } = await check({
    drafts: [SPIFFE_DRAFT, DRAFT],
    trustedIssuers: {
      [issuer]: {
        keys: { file: "cloud.json" },
        workloads: {
          once: { ...dedicated, subjects: ["once/*"] },
          file: { ...dedicated, subjects: ["file/*"], reusable: true, maxAgeSeconds: 3600 },
        },
      },
    },
  });
  const told = (name: string) => at(findings, `trustedIssuers.${issuer}.workloads.${name}`);
  assert.deepEqual([told("once").level, told("file").level], ["ok", "ok"]);
  assert.match(told("once").says, /accepted once.*need reusable/);
  assert.match(told("file").says, /accepted again until it is 3600 seconds old/);
});

test("PCL-D-16 of each issuer whose events are taken it is told which formats of subjects are taken", async () => {
  const issuer = "https://signals.example";
  writeFileSync(join(folder, "signals.json"), makePlatform(issuer).jwks);
  const told = async (more: object) => {
    const signals = { name: "s", ...more };
    const entry = { keys: { file: "signals.json" }, acceptAs: [], subjects: "keep", signals };
    const { findings } = await check({ trustedIssuers: { [issuer]: entry } });
    return at(findings, `trustedIssuers.${issuer}.signals`).says;
  };
  assert.match(
    await told({}),
    /^formats of subjects that are taken: iss_sub, [^;]*; that are not: email,.*phone_number/,
  );
  const email = { email: "/email" };
  assert.match(
    await told(email),
    /taken: [^;]*, email \(email: [^;]* in \/email, if verified\); that are not: [^;]*phone/,
  );
  assert.match(await told({ ...email, unverifiedEmail: true }), /in \/email\);/);
});

test("certificates are warned of 14 days before their end, and are errors afterwards", () => {
  const loaded = loadConfig(join(folder, "config.json"));
  assert.ok(loaded.ok, JSON.stringify(loaded));
  const { validToDate } = new X509Certificate(loaded.value.fixed.listen.cert);
  const end = validToDate.getTime() / 1000;
  const days = 86_400;
  const levels = [end - 15 * days, end - 14 * days, end - 1, end].map(
    (nowSeconds) => at(datesOf(loaded.value, nowSeconds), "listen.tls.cert").level,
  );
  assert.deepEqual(levels, ["ok", "warning", "warning", "error"]);
  assert.match(at(datesOf(loaded.value, end - 3 * days), "listen.tls.cert").says, /in 3 days: renew it/);
});

test("a damaged certificate behind the first of an authority's file is left out of the dates", async () => {
  const pem = readFileSync(join(folder, "tls/ca.pem"), "utf8");
  const broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  writeFileSync(join(folder, "half.pem"), `${pem}\n${broken}`);
  const keys = {
    url: "https://127.0.0.1:1/jwks",
    ca: { file: "half.pem" },
    privateNetworks: ["127.0.0.1/32"],
  };
  const trustedIssuers = { "https://half.example": { keys, subjects: { prefix: "half:" } } };
  const { findings } = await check({ trustedIssuers, policies: [], signIn: undefined, clients: {} });
  assert.equal(at(findings, "trustedIssuers.https://half.example.keys.ca").level, "ok");
});

test("problems of the configuration are told with their paths, and end the check with 2", async () => {
  const { code, findings } = await check({ listen: undefined, drafts: [] });
  assert.equal(code, 2);
  assert.deepEqual(findings, [{ level: "error", where: "listen", says: "is missing" }]);
});

test("a key-encryption key that was replaced is warned of until no signing key needs it", async () => {
  const right = readFileSync(join(folder, "keys/encryption-key"), "utf8");
  writeFileSync(join(folder, "keys/next"), Buffer.alloc(32, 9).toString("base64url"));
  const [next, old] = [{ file: "keys/next" }, { file: "keys/encryption-key" }];
  const place = { sqlite: join(folder, "replaced.sqlite") };
  const looked = async (encryptionKey: object, otherEncryptionKey: object) => {
    const keys = { encryptionKey, otherEncryptionKey };
    const { findings } = await check({ store: { sqlite: "replaced.sqlite" }, keys });
    const { level, says } = at(findings, "keys.otherEncryptionKey");
    return [level, says];
  };
  const store = await openStore(place);
  await openSigner(store, Buffer.from(right, "base64url"), ["ES256"], clock);
  await store.close();
  assert.deepEqual(await looked(next, old), [
    "warning",
    'is needed by 2 signing keys in the store: run "mandate keys reencrypt" when every instance has both keys',
  ]);
  assert.deepEqual(await looked(old, next), ["ok", "is needed by no signing key in the store"]);
});

test("an instance name in use tells its process, and one that a dead process left is free", async (t) => {
  const server = await sharePostgres();
  t.after(server.stop);
  for (const place of [{ sqlite: join(folder, "held.sqlite") }, { postgres: await freshDatabase(server) }]) {
    const patch = { store: "sqlite" in place ? { sqlite: "held.sqlite" } : place };
    const says = async () => at((await check(patch)).findings, "audit.instance").says;
    const store = await openStore(place);
    const held = await store.names.take("development", { host: hostname(), pid: process.pid }, 60_000);
    assert.ok(held.ok);
    assert.match(await says(), new RegExp(`^development is in use by process ${process.pid} on `));
    await held.value.release();
    assert.equal(await says(), "development begins a log of its own");
    // No process of Linux or macOS has this number.
    await store.names.take("development", { host: hostname(), pid: 99_999_999 }, 60_000);
    assert.equal(await says(), "development begins a log of its own");
    await store.close();
  }
});

/** The level and the text by which a start says which replication its database has; it is ended before it listens. */
async function saidAtStart(url: string): Promise<readonly string[]> {
  const file = join(folder, "started.json");
  writeFileSync(file, JSON.stringify({ ...config, listen: LISTEN, store: { postgres: url } }));
  const loaded = loadConfig(file);
  assert.ok(loaded.ok, JSON.stringify(loaded));
  const told: string[] = [];
  const log: Log = {
    entry: () => true,
    request: () => {},
    tell({ level, event, message }) {
      if (event === "store_replication") told.push(level, message);
    },
    status: () => ({ waitingBytes: 0, lostLines: 0 }),
    close: () => {},
  };
  await (await openService(loaded.value, { log, onFatal: assert.fail })).close();
  return told;
}

test("STORE-D-22 check and the start say which replication PostgreSQL has, and what a failover keeps", async (t) => {
  const server = await startPostgres();
  t.after(server.stop);
  await (await openStore({ postgres: server.url })).close();
  const says = async (words: RegExp) =>
    (await check({ store: { postgres: server.url } })).findings.find((one) => words.test(one.says))?.level;
  assert.equal(await says(/^no standby follows; .* set synchronous_standby_names to keep it$/), "ok");
  const [level, text] = await saidAtStart(server.url);
  assert.equal(level, "info");
  assert.match(text ?? "", /^PostgreSQL: no standby follows; /);
  const standby = await startPostgres({ standbyOf: server });
  t.after(standby.stop);
  assert.equal(
    await says(/^standbys follow \(1\), and no commit waits for them: a failover may lose/),
    "warning",
  );
  assert.equal((await saidAtStart(server.url))[0], "warning");
  const sql = postgres(server.url, { max: 1 });
  t.after(() => sql.end());
  await sql`alter system set synchronous_standby_names = '*'`;
  await sql`select pg_reload_conf()`;
  await until(
    async () => (await says(/^a commit waits for standbys .*: \*\)/)) === "ok",
    "the setting is read",
  );
});

test("the role at PostgreSQL is looked at: a superuser is warned of, an owner is told that less is enough, and what is missing is named", async (t) => {
  const server = await sharePostgres();
  t.after(server.stop);
  const url = new URL(await freshDatabase(server));
  await (await openStore({ postgres: url.href })).close();
  const says = async () => (await check({ store: { postgres: url.href } })).findings.map((one) => one.says);
  const warned = / is a superuser, and may change every database of this server: serve by a role of its own$/;
  assert.ok((await says()).some((one) => warned.test(one)));
  const sql = postgres(url.href, { max: 1 });
  t.after(() => sql.end());
  const role = `checks_${randomUUID()}`;
  await sql`create role ${sql(role)} login password 'checks'`;
  await sql`grant usage on schema public to ${sql(role)}`;
  await sql`grant select, insert, update, delete, truncate on all tables in schema public to ${sql(role)}`;
  Object.assign(url, { username: role, password: "checks" });
  const told = (await says()).find((one) => one.startsWith(`"${role}" has the rights that a server needs`));
  assert.match(told ?? "", /, and more: .*; revoke update, truncate on event from "checks_/);
  await sql`revoke all on all tables in schema public from ${sql(role)}`;
  const lacking = (await says()).find((one) => one.startsWith(`"${role}" lacks rights`));
  assert.match(
    lacking ?? "",
    /lacks rights, which the owner gives: grant .* on checkpoint to .*; grant .* on token to /,
  );
  await sql`drop owned by ${sql(role)}`;
  await sql`drop role ${sql(role)}`;
});

test("the flags that it prints are what the server needs, and each that is left out is named", async (t) => {
  const elsewhere = mkdtempSync(join(tmpdir(), "mandate-elsewhere-"));
  t.after(() => rmSync(elsewhere, { recursive: true, force: true }));
  const bundle = join(elsewhere, "bundle.json");
  copyFileSync(join(folder, "trust-domain/bundle.json"), bundle);
  const witness = mkdtempSync(join(tmpdir(), "mandate-witness-"));
  t.after(() => rmSync(witness, { recursive: true, force: true }));
  const patch = {
    trustDomains: { "dev.example": { bundle: { file: bundle } } },
    audit: { instance: "development", witness: { file: join(witness, "checkpoints.jsonl") } },
    store: { sqlite: "state/mandate.sqlite" },
  };
  mkdirSync(join(folder, "state"), { recursive: true });
  const { code, findings } = await check(patch);
  assert.equal(code, 0, JSON.stringify(findings));
  const [, printed = ""] = / needs (.*)$/.exec(at(findings, "--permission").says) ?? [];
  const flags = [...printed.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? "");
  const under = (words: readonly string[]) => {
    const command = [MAIN, "check", "--json", "--config", join(folder, "checked.json")];
    const flagged = ["--disable-warning=ExperimentalWarning", ...words, ...command];
    // What a run of all tests preloads: without it, each process takes the types out of its sources.
    const { NODE_OPTIONS } = process.env;
    return spawnSync(process.execPath, flagged, { encoding: "utf8", env: { NODE_OPTIONS } });
  };
  const whole = under(flags);
  assert.equal(whole.status, 0, whole.stdout + whole.stderr);
  // Without these, neither this command nor the configuration is read.
  const needed = ["--permission", `--allow-fs-read=${ROOT}`, `--allow-fs-read=${folder}`];
  for (const flag of flags.filter((one) => !needed.includes(one))) {
    const { status, stdout, stderr } = under(flags.filter((one) => one !== flag));
    assert.ok(status === 1 || status === 2, `${flag}: ${status} ${stderr}`);
    const [found, ...others] = stdout
      .trim()
      .split("\n")
      .map((line): Finding => JSON.parse(line));
    assert.deepEqual([found?.level, others], ["error", []], flag);
    const path = flag.replace(/^.*=/, "").replace(/\/\*$/, "");
    assert.ok(found?.says.includes(path), `${flag}: ${found?.says}`);
    assert.match(found?.says ?? "", /the flag|add --allow-/);
  }
});

test("the clock of this machine is compared with that of PostgreSQL", async (t) => {
  const server = await sharePostgres();
  t.after(server.stop);
  const postgres = await freshDatabase(server);
  await (await openStore({ postgres })).close();
  const { findings } = await check({ store: { postgres } });
  const [clockFinding] = findings.filter(({ says }) => says.startsWith("the clock of this machine is "));
  assert.equal(clockFinding?.level, "ok");
});

test("a port that another process holds is an error, as is an address of others", async (t) => {
  // It takes connections and answers none of them, or at once with what is neither TLS nor HTTP.
  for (const greeting of ["", "SSH-2.0-any\r\n"]) {
    const holder = createServer((socket) => socket.on("error", () => {}).write(greeting)).listen(
      0,
      "127.0.0.1",
    );
    await once(holder, "listening");
    t.after(() => void holder.close());
    const { port } = holder.address() as AddressInfo;
    const { code, findings } = await check({ listen: { ...LISTEN, port } });
    assert.equal(code, 1);
    assert.deepEqual(at(findings, "listen.port"), {
      level: "error",
      where: "listen.port",
      says: `127.0.0.1:${port} is in use by a process that does not show this certificate: stop that process, or change "listen.port"`,
    });
    const operations = at((await check({ operations: { port } })).findings, "operations.port");
    assert.match(operations.says, /is in use by a process that shows no metrics of this server: stop /);
  }
  const loaded = loadConfig(join(folder, "config.json"));
  assert.ok(loaded.ok);
  const fixed = { ...loaded.value.fixed, operations: { host: "192.0.2.1", port: 9090 } };
  const foreign = at(await portsOf({ ...loaded.value, fixed }), "operations.port");
  assert.equal(foreign.level, "error");
  assert.match(
    foreign.says,
    /cannot be listened on, because this machine does not have that address: change "operations\.host"/,
  );
});

test("the ports that this server holds are in use by it, and not an error", async (t) => {
  const [port = 0, operations = 0] = await freePorts(2);
  const patch = {
    listen: { ...LISTEN, port },
    operations: { port: operations },
    store: { sqlite: "runs.sqlite" },
  };
  writeFileSync(join(folder, "runs.json"), JSON.stringify({ ...config, ...patch }));
  const server = await startServer(join(folder, "runs.json"));
  t.after(() => server.stop());
  const { code, findings } = await check(patch);
  assert.equal(code, 0, JSON.stringify(findings));
  assert.equal(at(findings, "listen.port").says, `127.0.0.1:${port} is in use by this server`);
  assert.equal(at(findings, "operations.port").says, `127.0.0.1:${operations} is in use by this server`);
});

/** What is found of a certificate, beside its dates. */
const ofCertificate = (findings: readonly Finding[], where = "listen.tls.cert") =>
  findings.filter((one) => one.where === where && !/^the certificate is valid /.test(one.says));

test("the certificates are for the hosts of the issuer and of mtls.origin, or it is an error", async () => {
  const tls = { key: { file: "tls/key.pem" }, cert: { file: "tls/cert.pem" } };
  const mtls = (origin: string) => ({ mtls: { host: "127.0.0.1", port: 0, tls, origin } });
  const good = await check(mtls("https://127.0.0.1:8445"));
  assert.deepEqual(
    ofCertificate(good.findings).map(({ says }) => says),
    ["is for localhost"],
  );
  assert.deepEqual(
    ofCertificate(good.findings, "mtls.tls.cert").map(({ says }) => says),
    ["is for 127.0.0.1"],
  );
  const wrong = await check({ issuer: "https://as.example", ...mtls("https://mtls.as.example") });
  assert.equal(wrong.code, 1);
  const names = "localhost, 127.0.0.1, 0:0:0:0:0:0:0:1";
  for (const [where, host] of [
    ["listen.tls.cert", "as.example"],
    ["mtls.tls.cert", "mtls.as.example"],
  ] as const) {
    const says = `is for ${names} and not for ${host}, so that clients refuse it: get one for ${host}, or correct the URL`;
    assert.deepEqual(ofCertificate(wrong.findings, where), [{ level: "error", where, says }]);
  }
});

test("the certificate of an authority in place of the server's is an error", async () => {
  const { certPem, keyPem } = await makeAuthority("Example Root");
  writeFileSync(join(folder, "ca.pem"), certPem);
  writeFileSync(join(folder, "ca-key.pem"), keyPem);
  const tls = { key: { file: "ca-key.pem" }, cert: { file: "ca.pem" } };
  const { code, findings } = await check({ listen: { ...LISTEN, tls } });
  assert.equal(code, 1);
  assert.match(ofCertificate(findings)[0]?.says ?? "", /^is that of an authority and not for localhost/);
});

test("in production the chain of a certificate is tried: in order, complete, and known to clients", async () => {
  const loaded = loadConfig(join(folder, "config.json"));
  assert.ok(loaded.ok);
  const root = await makeAuthority("Example Root");
  const between = await makeIntermediate(root, "Example Issuing");
  const leaf = await issueServerCertificate(between, ["localhost"]);
  const look = (...chain: readonly { certPem: string }[]): string[] => {
    const cert = chain.map(({ certPem }) => certPem).join("\n");
    const fixed = { ...loaded.value.fixed, listen: { ...loaded.value.fixed.listen, cert } };
    const settings = { ...loaded.value.settings, production: true };
    return certificatesOf({ ...loaded.value, fixed, settings }).map(({ level, says }) => `${level} ${says}`);
  };
  const unknown = (authority: string) => [
    "ok is for localhost",
    `unseen whether clients know its authority, ${authority}: this machine does not`,
  ];
  assert.deepEqual(look(leaf), unknown("Example Issuing"));
  assert.deepEqual(look(leaf, between), unknown("Example Root"));
  assert.deepEqual(look(leaf, between, root), unknown("Example Root"));
  assert.deepEqual(look(leaf, root, between), [
    "ok is for localhost",
    "error its certificate 2 did not issue its certificate 1: put the one of this server first, and behind each the one that issued it",
  ]);
  const [known = ""] = rootCertificates;
  assert.match(look({ certPem: known }).at(-1) ?? "", /^ok leads to .+, which this machine knows$/);
});

test("a bundle and a key set without keys are warned of", async () => {
  writeFileSync(join(folder, "empty.json"), '{"keys":[]}');
  const keys = { file: "empty.json" };
  const { code, findings } = await check({
    trustDomains: { "dev.example": { bundle: keys } },
    trustedIssuers: { "https://idp.example": { keys, subjects: "keep" } },
    policies: [],
  });
  assert.equal(code, 0);
  for (const where of ["trustDomains.dev.example.bundle", "trustedIssuers.https://idp.example.keys"]) {
    assert.equal(at(findings, where).level, "warning");
    assert.match(
      at(findings, where).says,
      /^has no keys, so that .*: fill it, unless everything is to be revoked$/,
    );
  }
});

test("what the server sends to is looked at: receivers of signals, the sink of checkpoints, the key service", async (t) => {
  const requests: string[] = [];
  const receiver = await startWebServer((request) => {
    requests.push(`${request.method} ${new URL(request.url).pathname}`);
    return new Response("", { status: request.url.endsWith("/gone") ? 404 : 405 });
  });
  t.after(receiver.stop);
  writeFileSync(join(folder, "receiver.pem"), receiver.ca);
  const at_ = (path: string, extra: object = {}) => ({
    ...{ url: `${receiver.origin}/${path}`, ca: { file: "receiver.pem" }, privateNetworks: LOOPBACK },
    ...extra,
  });
  const stream = (path: string, extra: object = {}) => ({
    ...{ audience: "https://api.example", targets: ["https://api.example"] },
    ...at_(path, extra),
  });
  const { code, findings } = await check({
    signals: {
      streams: {
        good: stream("events"),
        wrong: stream("gone"),
        closed: stream("events", { privateNetworks: [] }),
        untrusted: stream("events", { ca: undefined }),
      },
    },
    audit: { instance: "development", witness: at_("checkpoints") },
    keys: { encryptionKey: { file: "keys/encryption-key" }, service: at_("keys") },
  });
  assert.equal(code, EXIT.unavailable);
  const said = (where: string) => [at(findings, where).level, at(findings, where).says];
  const unseen = "whether it takes events is not checked";
  assert.deepEqual(said("signals.streams.good"), ["ok", `answers; ${unseen}`]);
  assert.deepEqual(said("signals.streams.wrong"), [
    "warning",
    `answers, but with status 404 to GET: look at the path of its URL, unless it knows POST alone; ${unseen}`,
  ]);
  for (const name of ["closed", "untrusted"]) {
    const [level, says] = said(`signals.streams.${name}`);
    assert.equal(level, "unreachable");
    assert.match(says ?? "", /^cannot be reached \(.*\): correct the URL, its ca or its privateNetworks$/);
  }
  assert.deepEqual(said("audit.witness"), ["ok", "answers; whether it takes checkpoints is not checked"]);
  assert.deepEqual(said("keys.service"), ["ok", "answers; whether it makes keys and signs is not checked"]);
  assert.deepEqual([...new Set(requests)].sort(), [
    "GET /checkpoints",
    "GET /events",
    "GET /gone",
    "GET /keys",
  ]);
});

test("the metadata of the providers are fetched, and one that does not answer is told", async (t) => {
  const provider = await startProvider();
  t.after(provider.close);
  writeFileSync(join(folder, "provider.pem"), provider.ca);
  const ofUsers = {
    id: "users",
    allow: "delegation",
    actors: ["spiffe://dev.example/agents/planner"],
    subjects: { issuers: [provider.issuer] },
    subjectToken: { audiences: [config.issuer] },
    consent: "record",
    targets: ["https://api.example"],
    scopes: ["trips.read"],
  };
  const signIn = (extra: object) => ({
    trustedIssuers: provider.trusted(),
    signIn: { providers: { company: provider.provider(extra) } },
    policies: [ofUsers],
  });
  const found = async (extra: object) =>
    at(
      (await check({ ...signIn(extra), mtls: undefined, clients: {} })).findings,
      "signIn.providers.company",
    );
  assert.match(
    (await found({})).says,
    /^answers, and takes codes at .*\/token; whether it knows this client is not/,
  );
  const unreachable = await found({ privateNetworks: [] });
  assert.equal(unreachable.level, "unreachable");
  assert.equal((await found({ recheck: "introspection" })).level, "ok");
  provider.lies.metadata = { introspection_endpoint: undefined };
  const { level, says } = await found({ recheck: "introspection" });
  assert.deepEqual(
    [level, says],
    [
      "warning",
      'its metadata name no introspection_endpoint, which "recheck": "introspection" asks about users: choose "refresh" or "visit"',
    ],
  );
});

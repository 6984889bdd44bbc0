import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, type TestContext, test } from "node:test";
import { type HostRun, runCommandLine } from "../../scripts/command-line.ts";
import { issueServerCertificate, makeAuthority } from "../../scripts/dev-pki.ts";
import { openJournal } from "../../src/adapters/audit/journal.ts";
import { clock } from "../../src/adapters/clock.ts";
import { hash } from "../../src/adapters/crypto/hash.ts";
import { random } from "../../src/adapters/crypto/random.ts";
import { openStore } from "../../src/adapters/store/open.ts";
import type { Store, StoredClient } from "../../src/adapters/store/store.ts";
import type { AuditEvent } from "../../src/audit/event.ts";
import { recordAsAdmin } from "../../src/cli/admin-log.ts";
import { stored } from "../../src/cli/callers/gather.ts";
import { CALLER_FORMATS } from "../../src/cli/callers.ts";
import { initialTokenLine } from "../../src/cli/clients/initial-tokens.ts";
import { loadConfig } from "../../src/config/config.ts";
import type { InitialToken, RegisteredClient } from "../../src/records.ts";
import { makeInitialToken, makeRegistered } from "../adapters/store/registrations.contract.ts";
import { makeClient } from "../adapters/store/store.contract.ts";
import { parseCommand, runCommand, spawnCommandLine } from "../support/host.ts";
import { migratedFile } from "../support/migrated.ts";
import { freshDatabase, type SharedPostgres, sharePostgres } from "../support/postgres.ts";
import { stop } from "../support/stop.ts";

const PLANNER = "spiffe://td.example/agents/planner";
const API = "https://api.example";
const CLIENT_CREDENTIALS = "client_credentials";
const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const GRANT_TYPES = [CLIENT_CREDENTIALS, EXCHANGE, "urn:ietf:params:oauth:grant-type:jwt-bearer"];
const DAY = 86_400;

let folder: string;
let server: SharedPostgres;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "mandate-client-"));
  const { keyPem, certPem } = await issueServerCertificate(await makeAuthority("Test authority"), [
    "localhost",
  ]);
  writeFileSync(join(folder, "key.pem"), keyPem);
  writeFileSync(join(folder, "cert.pem"), certPem);
  server = await sharePostgres();
});
after(() => stop(server, () => rmSync(folder, { recursive: true })));

type Where = { sqlite: string } | { postgres: string };
/** An empty store, a configuration that names it, and a connection to it that stays open. */
type Site = { config: string; store: Store };

async function makeSite(t: TestContext, where: Where): Promise<Site> {
  const store = await openStore(where);
  t.after(() => store.close());
  return { config: configure(where), store };
}

function configure(store: Where): string {
  const file = join(folder, `${randomUUID()}.json`);
  const tls = { key: { file: "key.pem" }, cert: { file: "cert.pem" } };
  const config = {
    version: 1,
    profile: "development",
    issuer: "https://as.example",
    listen: { host: "127.0.0.1", port: 0, tls },
    store,
    keys: { encryptionKey: randomBytes(32).toString("base64url") },
    audit: { instance: "as-1" },
    clients: { nightly: { method: "client_secret_basic", secrets: ["inline"] } },
    targets: [{ names: [API, "api"], scopes: ["trips.read"] }],
  };
  writeFileSync(file, JSON.stringify(config));
  return file;
}

const newFile = (): string => join(folder, `${randomUUID()}.sqlite`);
const sqliteSite = async (t: TestContext): Promise<Site> => makeSite(t, { sqlite: await migratedFile() });
const sites: Record<string, (t: TestContext) => Promise<Site>> = {
  SQLite: sqliteSite,
  PostgreSQL: async (t) => makeSite(t, { postgres: await freshDatabase(server) }),
};

type Run = HostRun;

const commandLine = (config: string, words: readonly string[]): string[] => [
  ...["--config", config, "clients"],
  ...words,
];
const client = (config: string, ...words: string[]): Promise<Run> =>
  runCommandLine(commandLine(config, words));
const clientProcess = (config: string, ...words: string[]): Promise<Run> =>
  spawnCommandLine(commandLine(config, words));

/** The same within this process, with the store of the site. */
async function inside({ config, store }: Site, ...words: string[]): Promise<Run> {
  const loaded = loadConfig(config);
  assert.ok(loaded.ok);
  return runCommand(["clients", ...words], { settings: loaded.value.settings, store });
}

type Shown = { id: string; secret: string; expires: number };

function shown({ code, out, err }: Run): Shown {
  assert.deepEqual([code, err], [0, ""]);
  const found = /^client_id (\S+)\nclient_secret (\S+)\nclient_secret_expires_at (\d+)\n$/.exec(out);
  const [, id = "", secret = "", expires] = found ?? assert.fail(out);
  return { id, secret, expires: Number(expires) };
}

const EVENT: AuditEvent = { type: "client.registered", outcome: "allow", reason: "by_operator" };
const CREATE = ["create", "--method", "client_secret_basic"];
const create = async (site: Site, ...words: string[]): Promise<Shown> =>
  shown(await inside(site, ...CREATE, ...words));

test("RFC6749-2.3.1-5 a client that is created without a method may send its secret either way", async (t) => {
  const site = await sqliteSite(t);
  const { id } = shown(await inside(site, "create"));
  const found = await site.store.clients.find(id);
  assert.ok(found !== undefined && "auth" in found);
  assert.equal(found.auth.method, "client_secret");
  const event = (await bodies(site)).findLast(({ type }) => type === "client.registered");
  assert.equal(event?.detail.method, "client_secret");
});

async function createFive(site: Site): Promise<Shown[]> {
  const made = [];
  for (let count = 0; count < 5; count++) made.push(await create(site));
  return made;
}

const NOW = 1_790_000_000;
const nowSeconds = (): number => Math.floor(Date.now() / 1000);
const soon = (seconds: number | undefined, wanted: number): void =>
  assert.ok(seconds !== undefined && Math.abs(seconds - nowSeconds() - wanted) < 30, `${seconds}`);
const bodies = async ({ store }: Site) =>
  (await store.log.read({ log: "admin", limit: 1000 })).map(({ body }) => JSON.parse(body));
/** When each secret of a client ends, by its digest. */
async function ends({ store }: Site, id: string): Promise<Record<string, number | undefined>> {
  const found = await store.clients.find(id);
  assert.ok(found !== undefined && "auth" in found);
  return Object.fromEntries(
    found.auth.secrets.map(({ digest, expiresAtSeconds }) => [digest, expiresAtSeconds]),
  );
}

// --- the life of a client, as the operator types it, on both stores -----------------------------------------------

for (const [name, make] of Object.entries(sites)) {
  test(`RFC6749-10.10-1 a client is created, rotated, listed and disabled; only digests are stored (${name})`, async (t) => {
    const site = await make(t);
    const made = shown(await clientProcess(site.config, ...CREATE));
    assert.deepEqual(await site.store.clients.find(made.id), {
      clientId: made.id,
      source: "operator",
      auth: { method: "client_secret_basic", secrets: [{ digest: hash.sha256(made.secret) }] },
      grantTypes: GRANT_TYPES,
    });

    const rotated = shown(await client(site.config, "rotate", made.id));
    assert.deepEqual([rotated.id, rotated.expires], [made.id, 0]);
    const both = await ends(site, made.id);
    assert.deepEqual(
      new Set(Object.keys(both)),
      new Set([made, rotated].map((one) => hash.sha256(one.secret))),
    );
    soon(both[hash.sha256(made.secret)], DAY);
    assert.equal(both[hash.sha256(rotated.secret)], undefined);

    const listed = await client(site.config, "list");
    const line = new RegExp(`^${made.id} in-force from=operator last=none method=client_secret_basic `, "m");
    assert.match(listed.out, line);
    const records = (await client(site.config, "list", "--json")).out.trim().split("\n");
    const record = records.map((one) => JSON.parse(one)).find((one) => one.from === "operator");
    assert.deepEqual(
      [record.client_id, record.state, record.method, record.secrets_expire_at.length],
      [made.id, "in-force", "client_secret_basic", 2],
    );
    const disabled = await client(site.config, "disable", made.id);
    assert.deepEqual([disabled.code, disabled.err], [0, ""]);
    // Effective at once for an instance that is already running.
    assert.equal(await site.store.clients.find(made.id), undefined);

    const events = await bodies(site);
    assert.deepEqual(
      events.map(({ type, outcome, reason, detail }) => [type, outcome, reason, detail?.client_id]),
      [
        ["log.genesis", "allow", "log_opened", undefined],
        ["client.registered", "allow", "by_operator", made.id],
        ["client.updated", "allow", "by_operator", made.id],
        ["admin.access", "allow", "by_operator", undefined],
        ["admin.access", "allow", "by_operator", undefined],
        ["client.disabled", "allow", "by_operator", made.id],
      ],
    );
    const told = JSON.stringify(events) + listed.out + disabled.out;
    for (const { secret } of [made, rotated]) {
      for (const hidden of [secret, hash.sha256(secret)]) assert.ok(!told.includes(hidden));
    }
  });
}

test("RFC6749-2.2-1, RFC6749-2.2-3 client_ids are unique, of fixed length, and unlike URLs and SPIFFE IDs", async (t) => {
  const site = await sqliteSite(t);
  const made = await createFive(site);
  assert.equal(new Set(made.map(({ id }) => id)).size, 5);
  for (const { id } of made) assert.match(id, /^c_[A-Za-z0-9_-]{22}$/);
});

test("RFC6749-10.10-2, RFC6749-10.10-3, RFC7591-3.2.1-4 secrets are unique and have 256 bits", async (t) => {
  const site = await sqliteSite(t);
  const made = await createFive(site);
  const rotated = shown(await inside(site, "rotate", made[0]?.id ?? ""));
  const secrets = [...made, rotated].map(({ secret }) => secret);
  assert.equal(new Set(secrets).size, 6);
  for (const secret of secrets) {
    assert.match(secret, /^[A-Za-z0-9_-]{43}$/);
    assert.equal(Buffer.from(secret, "base64url").length, 32);
  }
});

test("a client and its event have the requested values", async (t) => {
  const site = await sqliteSite(t);
  const asked = ["--grant-type", EXCHANGE, "--grant-type", EXCHANGE, "--workload", PLANNER];
  const more = ["--default-target", "api", "--expires", "60", "--json"];
  const run = await inside(site, "create", "--method", "client_secret_post", ...asked, ...more);
  const { client_id: id, client_secret: secret, client_secret_expires_at: expires } = JSON.parse(run.out);
  soon(expires, 60);
  assert.deepEqual(await site.store.clients.find(id), {
    clientId: id,
    source: "operator",
    auth: {
      method: "client_secret_post",
      secrets: [{ digest: hash.sha256(secret), expiresAtSeconds: expires }],
    },
    grantTypes: [EXCHANGE],
    workload: PLANNER,
    defaultTarget: "api",
  });
  const [, { detail, policy }] = await bodies(site);
  const { uid, ...rest } = detail;
  assert.equal(uid, process.getuid?.());
  assert.match(policy.digest, /^sha256:[0-9a-f]{64}$/);
  assert.deepEqual(rest, {
    client_id: id,
    method: "client_secret_post",
    grant_types: [EXCHANGE],
    workload: PLANNER,
    default_target: "api",
    secret_expires_at: expires,
  });
});

const refusedClients = [
  ["SID-3.1-1 a workload that is a trust domain", ["--workload", "spiffe://td.example"], "--workload"],
  ["a workload that is a pattern", ["--workload", "spiffe://td.example/*"], "--workload"],
  ["a workload that is not a SPIFFE ID", ["--workload", "planner"], "--workload"],
  ["an unknown default target", ["--default-target", "API"], "--default-target"],
] as const;

for (const [name, words, want] of refusedClients) {
  test(`${name} is refused, and nothing is written`, async (t) => {
    const site = await sqliteSite(t);
    const run = await inside(site, ...CREATE, ...words);
    assert.deepEqual([run.code, run.out], [1, ""]);
    assert.ok(run.err.startsWith(want), run.err);
    assert.equal(run.err.split("\n").length, 2);
    assert.deepEqual(await site.store.log.logs(), []);
    assert.deepEqual(await site.store.clients.list(), []);
  });
}

test("AUDIT-D-1 nothing is changed and no secret is printed if the event cannot be recorded", async (t) => {
  const sqlite = newFile();
  const site = await makeSite(t, { sqlite });
  const made = await create(site);
  const db = new DatabaseSync(sqlite);
  db.exec("create trigger stop before insert on event begin select raise(rollback, 'no'); end");
  db.close();
  for (const words of [CREATE, ["rotate", made.id], ["disable", made.id], INITIAL]) {
    const run = await clientProcess(site.config, ...words);
    assert.notEqual(run.code, 0);
    assert.equal(run.out, "");
  }
  assert.equal((await site.store.clients.list()).length, 1);
  assert.deepEqual(await ends(site, made.id), { [hash.sha256(made.secret)]: undefined });
});

// --- rotation -----------------------------------------------------------------------------------------------------

test("a rotation takes an overlap and an expiry of the new secret", async (t) => {
  const site = await sqliteSite(t);
  const { id, secret } = await create(site);
  const rotated = shown(await inside(site, "rotate", id, "--overlap", "60", "--expires", "3600"));
  const both = await ends(site, id);
  soon(both[hash.sha256(secret)], 60);
  soon(both[hash.sha256(rotated.secret)], 3600);
  const { detail } = (await bodies(site)).at(-1);
  assert.equal(detail.older_secrets_end_at, both[hash.sha256(secret)]);
  assert.equal(detail.secret_expires_at, rotated.expires);
  assert.equal(detail.change, "secret_rotated");
});

test("a rotation with an overlap of 0 ends the older secrets at once", async (t) => {
  const site = await sqliteSite(t);
  const { id } = await create(site);
  await inside(site, "rotate", id);
  const { client_secret: secret } = JSON.parse(
    (await inside(site, "rotate", id, "--overlap", "0", "--json")).out,
  );
  assert.deepEqual(await ends(site, id), { [hash.sha256(secret)]: undefined });
});

/** A store in which something happens between reading a client and changing it. */
function interrupted({ config, store }: Site, happens: () => Promise<unknown>): Site {
  let left = 1;
  const log: Store["log"] = {
    ...store.log,
    async append(batch) {
      if (left-- > 0) await happens();
      return store.log.append(batch);
    },
  };
  return { config, store: { ...store, log } };
}

test("the second of two concurrent rotations writes nothing, so that the printed secret stays valid", async (t) => {
  const site = await sqliteSite(t);
  const { id, secret } = await create(site);
  let first: Shown | undefined;
  const between = interrupted(site, async () => {
    first = shown(await inside(site, "rotate", id));
  });
  const second = await inside(between, "rotate", id);
  assert.deepEqual([second.code, second.out], [1, ""]);
  assert.match(
    second.err,
    /^Another command changed c_\S+ meanwhile, and nothing was written: try again\.\n$/,
  );
  const both = await ends(site, id);
  assert.equal(Object.keys(both).length, 2);
  soon(both[hash.sha256(secret)], DAY);
  assert.equal(both[hash.sha256(first?.secret ?? "")], undefined);
});

test("a client that is disabled during a rotation stays disabled, and no secret is printed", async (t) => {
  const site = await sqliteSite(t);
  const { id } = await create(site);
  const run = await inside(
    interrupted(site, () => inside(site, "disable", id)),
    "rotate",
    id,
  );
  assert.deepEqual([run.code, run.out], [1, ""]);
  assert.equal(await site.store.clients.find(id), undefined);
  assert.equal((await site.store.clients.list(id))[0]?.secrets.length, 1);
});

test("a client whose secret is rotated while it is being disabled is disabled", async (t) => {
  const site = await sqliteSite(t);
  const { id } = await create(site);
  const run = await inside(
    interrupted(site, () => inside(site, "rotate", id)),
    "disable",
    id,
  );
  assert.equal(run.code, 0, run.err);
  assert.equal(await site.store.clients.find(id), undefined);
});

test("concurrent rotations leave every printed secret valid, and one of them without an expiry", async (t) => {
  const site = await sqliteSite(t);
  const { id, secret } = await create(site);
  const runs = await Promise.all(Array.from({ length: 4 }, () => client(site.config, "rotate", id)));
  const done = runs.filter(({ code }) => code === 0).map(shown);
  assert.ok(done.length > 0);
  for (const { code, out, err } of runs) {
    if (code !== 0) assert.ok(code === 1 && out === "" && /Another command|try again/.test(err), err);
  }
  const all = await ends(site, id);
  const known = new Set([secret, ...done.map((one) => one.secret)].map((one) => hash.sha256(one)));
  assert.deepEqual(new Set(Object.keys(all)), known);
  assert.equal(Object.values(all).filter((end) => end === undefined).length, 1);
  assert.equal((await bodies(site)).length, 2 + done.length);
});

// --- clients that registered themselves -------------------------------------------------------------------------------

async function register({ store }: Site, values: Partial<RegisteredClient> = {}): Promise<string> {
  const client = makeRegistered({ registrationClass: "crew", ...values });
  const onFatal = (reason: string): void => assert.fail(reason);
  const journal = await openJournal({ log: "as-1", store: store.log, clock, random, onFatal });
  const recorded = await journal.record({ event: EVENT, registration: { register: client, clientsMax: 9 } });
  assert.ok(recorded.ok);
  await journal.close();
  return client.clientId;
}

for (const [name, make] of Object.entries(sites)) {
  test(`RFC7591-3.1-1 list includes clients that registered themselves, with their class (${name})`, async (t) => {
    const site = await make(t);
    const made = await create(site);
    const metadata = { token_endpoint_auth_method: "spiffe_jwt", grant_types: [EXCHANGE] };
    const registered = await register(site, { metadata, secrets: [] });
    const { out } = await inside(site, "list");
    const lines = out.split("\n").slice(0, -1);
    assert.equal(lines.length, 3, "with the one of the configuration");
    const ofOperator = `${made.id} in-force from=operator last=none method=client_secret_basic grant-type`;
    assert.ok(lines.some((line) => line.startsWith(ofOperator)));
    const line = lines.find((one) => one.startsWith(registered)) ?? "";
    assert.match(
      line,
      new RegExp(
        ` in-force from=registration last=none method=spiffe_jwt class=crew grant-type=${EXCHANGE} created=\\S+$`,
      ),
    );
  });

  test(`RFC7592-2.3-1 an operator can disable a client that registered itself, but not rotate its secret (${name})`, async (t) => {
    const site = await make(t);
    const id = await register(site);
    const rotated = await inside(site, "rotate", id);
    assert.deepEqual([rotated.code, rotated.out], [1, ""]);
    assert.match(rotated.err, /^Client c_\S+ registered itself, so only it can change its secret/);
    assert.deepEqual(await bodies(site), []);
    assert.equal((await inside(site, "disable", id)).code, 0);
    assert.equal(await site.store.clients.find(id), undefined);
    assert.equal(await site.store.registrations.client(id), undefined);
    assert.match((await inside(site, "list")).out, / disabled .* class=crew /);
    assert.deepEqual((await bodies(site)).map(({ type, detail }) => [type, detail?.client_id]).slice(1), [
      ["client.disabled", id],
      ["admin.access", undefined],
    ]);
  });
}

// --- initial access tokens ------------------------------------------------------------------------------------------

const INITIAL = ["initial-token", "create", "--class", "crew"];

type TokenJson = { id: string; token: string; expires: number };

function shownToken({ code, out, err }: Run): TokenJson {
  assert.deepEqual([code, err], [0, ""]);
  const found = /^id (\S+)\ninitial_access_token (\S+)\nexpires_at (\d+)\n$/.exec(out);
  const [, id = "", token = "", expires] = found ?? assert.fail(out);
  return { id, token, expires: Number(expires) };
}

for (const [name, make] of Object.entries(sites)) {
  test(`RFC7591-3-3 an initial access token is created, listed and revoked; only its digest is stored (${name})`, async (t) => {
    const site = await make(t);
    const made = shownToken(await client(site.config, ...INITIAL));
    soon(made.expires, DAY);
    assert.match(made.token, /^iat_[A-Za-z0-9_-]{43}$/);
    assert.match(made.id, /^i_[A-Za-z0-9_-]{22}$/);
    const stored = await site.store.registrations.initialToken(hash.sha256(made.token));
    const { createdAtSeconds, ...rest } = stored ?? assert.fail();
    assert.deepEqual(rest, {
      id: made.id,
      digest: hash.sha256(made.token),
      registrationClass: "crew",
      ceiling: { grantTypes: GRANT_TYPES },
      uses: 0,
      usesMax: 1,
      expiresAtSeconds: made.expires,
    });
    soon(createdAtSeconds, 0);

    const listed = await client(site.config, "initial-token", "list");
    assert.match(listed.out, new RegExp(`^${made.id} in-force class=crew [^\\n]* uses=0/1 expires=\\S+\\n$`));
    const revoked = await client(site.config, "initial-token", "revoke", made.id);
    assert.deepEqual([revoked.code, revoked.err], [0, ""]);
    const after = await site.store.registrations.initialToken(hash.sha256(made.token));
    soon(after?.revokedAtSeconds, 0);

    const events = await bodies(site);
    assert.deepEqual(
      events.map(({ type, outcome, reason, detail }) => [type, outcome, reason, detail?.id]),
      [
        ["log.genesis", "allow", "log_opened", undefined],
        ["initial_access_token.created", "allow", "by_operator", made.id],
        ["initial_access_token.revoked", "allow", "by_operator", made.id],
      ],
    );
    const told = JSON.stringify(events) + listed.out + revoked.out;
    for (const hidden of [made.token, hash.sha256(made.token)]) assert.ok(!told.includes(hidden));
  });
}

test("RFC7591-3-3 an initial access token and its event have the requested limits", async (t) => {
  const site = await sqliteSite(t);
  const bounds = ["--grant-type", EXCHANGE, "--grant-type", EXCHANGE, "--scope", "a b"];
  const run = await inside(site, ...INITIAL, ...bounds, "--uses", "7", "--expires", "60", "--json");
  const { id, initial_access_token: token, expires_at: expires, ...rest } = JSON.parse(run.out);
  assert.deepEqual(rest, {});
  soon(expires, 60);
  const { ceiling, usesMax } = (await site.store.registrations.initialToken(hash.sha256(token))) ?? {};
  assert.deepEqual([ceiling, usesMax], [{ grantTypes: [EXCHANGE], scopes: ["a", "b"] }, 7]);
  const { grant_types, scope } = JSON.parse((await inside(site, "initial-token", "list", "--json")).out);
  assert.deepEqual([grant_types, scope], [[EXCHANGE], "a b"]);
  const [, { detail, policy }] = await bodies(site);
  assert.match(policy.digest, /^sha256:[0-9a-f]{64}$/);
  assert.deepEqual(detail, {
    id,
    class: "crew",
    grant_types: [EXCHANGE],
    scope: "a b",
    uses_max: 7,
    expires_at: expires,
    uid: process.getuid?.(),
  });
});

test("RFC7591-3-3 initial access tokens are unique, and no id begins with a hyphen", async (t) => {
  const site = await sqliteSite(t);
  const made = [];
  for (let count = 0; count < 5; count++) made.push(shownToken(await inside(site, ...INITIAL)));
  assert.equal(new Set(made.flatMap(({ id, token }) => [id, token])).size, 10);
  const { out } = await inside(site, "initial-token", "list");
  const listed = out.split("\n").map((line) => line.split(" ")[0]);
  assert.deepEqual(new Set(listed), new Set([...made.map(({ id }) => id), ""]));
});

test("revoking an unknown or a revoked initial access token is refused", async (t) => {
  const site = await sqliteSite(t);
  const { id, token } = shownToken(await inside(site, ...INITIAL));
  await inside(site, "initial-token", "revoke", id);
  const before = await bodies(site);
  for (const which of [id, "i_unknown", token, "i_\u202e"]) {
    const run = await inside(site, "initial-token", "revoke", which);
    assert.deepEqual([run.code, run.out], [1, ""]);
    assert.match(
      run.err,
      /^Initial access token \S+ is unknown or revoked: see "clients initial-token list"\.\n$/,
    );
  }
  assert.deepEqual(await bodies(site), before);
});

const initialToken = makeInitialToken({
  id: "i_a",
  ceiling: { grantTypes: [CLIENT_CREDENTIALS], scopes: ["a", "b"] },
  usesMax: 2,
  createdAtSeconds: NOW - 10,
  expiresAtSeconds: NOW + 10,
});
const BOUNDS = `class=crew grant-type=${CLIENT_CREDENTIALS} scope="a b"`;
const ENDS = "expires=2026-09-21T14:13:30.000Z";
const initialTokenLines: readonly (readonly [string, Partial<InitialToken>, string])[] = [
  ["an unused initial access token is in force", {}, `i_a in-force ${BOUNDS} uses=0/2 ${ENDS}`],
  [
    "an initial access token with uses left is in force",
    { uses: 1 },
    `i_a in-force ${BOUNDS} uses=1/2 ${ENDS}`,
  ],
  [
    "an initial access token is used up after its last use",
    { uses: 2 },
    `i_a used-up ${BOUNDS} uses=2/2 ${ENDS}`,
  ],
  [
    "an initial access token is expired from its expiry time on",
    { expiresAtSeconds: NOW },
    `i_a expired ${BOUNDS} uses=0/2 expires=2026-09-21T14:13:20.000Z`,
  ],
  [
    "a revoked initial access token shows when it was revoked",
    { revokedAtSeconds: NOW, uses: 2 },
    `i_a revoked ${BOUNDS} uses=2/2 ${ENDS} revoked=2026-09-21T14:13:20.000Z`,
  ],
  [
    "an initial access token without a scope limit shows none",
    { ceiling: { grantTypes: [CLIENT_CREDENTIALS] } },
    `i_a in-force class=crew grant-type=${CLIENT_CREDENTIALS} uses=0/2 ${ENDS}`,
  ],
];
for (const [name, values, want] of initialTokenLines) {
  test(name, () => assert.equal(initialTokenLine({ ...initialToken, ...values }, NOW), want));
}

// --- clients that cannot be changed -------------------------------------------------------------------------------

test("an unknown, disabled or configured client is neither rotated nor disabled", async (t) => {
  const site = await sqliteSite(t);
  const { id } = await create(site);
  await inside(site, "disable", id);
  const before = await bodies(site);
  const cases = [
    [id, /unknown or disabled/],
    ["c_unknown", /unknown or disabled/],
    ["c_a\u202e", /^Cannot (rotate|disable) client "c_a\\u202e": it is unknown or disabled/],
    ["nightly", /configuration file/],
  ] as const;
  for (const command of ["rotate", "disable"]) {
    for (const [which, want] of cases) {
      const run = await inside(site, command, which);
      assert.deepEqual([run.code, run.out], [1, ""]);
      assert.match(run.err, want);
    }
  }
  assert.deepEqual(await bodies(site), before);
});

// --- list ---------------------------------------------------------------------------------------------------------

const kept: StoredClient = {
  clientId: "c_a",
  source: "operator",
  method: "client_secret_basic",
  version: 1,
  grantTypes: [CLIENT_CREDENTIALS],
  secrets: [{ createdAtSeconds: NOW - 10 }],
  createdAtSeconds: NOW - 10,
};
const FROM = "from=operator last=none";
const COMMON = `method=client_secret_basic grant-type=${CLIENT_CREDENTIALS} created=2026-09-21T14:13:10.000Z`;
const secretUntil = (end: number) => ({ createdAtSeconds: NOW - 10, expiresAtSeconds: end });
const clientLines: readonly (readonly [string, Partial<StoredClient>, string])[] = [
  ["a client with a secret is in force", {}, `c_a in-force ${COMMON} secrets-end=never`],
  [
    "a client shows when each valid secret expires",
    { secrets: [secretUntil(NOW), secretUntil(NOW + 1), { createdAtSeconds: NOW }] },
    `c_a in-force ${COMMON} secrets-end=2026-09-21T14:13:21.000Z,never`,
  ],
  [
    "a client whose secrets have expired is expired",
    { secrets: [secretUntil(NOW)] },
    `c_a expired ${COMMON}`,
  ],
  [
    "a client that may send its secret either way is expired with its secrets as well",
    { method: "client_secret", secrets: [] },
    `c_a expired ${COMMON.replace("client_secret_basic", "client_secret")}`,
  ],
  [
    "a disabled client shows when it was disabled",
    { disabledAtSeconds: NOW },
    `c_a disabled ${COMMON} secrets-end=never disabled=2026-09-21T14:13:20.000Z`,
  ],
  [
    "a client that registered itself shows its class",
    { source: "registration", registrationClass: "crew" },
    `c_a in-force from=registration last=none ${COMMON.replace(" ", " class=crew ")} secrets-end=never`,
  ],
  [
    "a client with another authentication method is in force without a secret",
    { source: "registration", method: "spiffe_jwt", secrets: [] },
    `c_a in-force from=registration last=none ${COMMON.replace("client_secret_basic", "spiffe_jwt")}`,
  ],
  [
    "AUDIT-D-7 no value can look like another field",
    { workload: PLANNER, defaultTarget: "a created=b\u202e", grantTypes: [] },
    `c_a in-force method=client_secret_basic workload=${PLANNER} target="a created=b\\u202e" ` +
      "created=2026-09-21T14:13:10.000Z secrets-end=never",
  ],
];

for (const [name, values, want] of clientLines) {
  const shown = want.replace(/^c_a (\S+) (?!from)/, `c_a $1 ${FROM} `);
  test(name, () => assert.equal(CALLER_FORMATS.text.line(stored({ ...kept, ...values }, NOW)), shown));
}

test("list prints every client in order, disabled ones included", async (t) => {
  const site = await sqliteSite(t);
  const made = [await create(site), await create(site), await create(site, "--expires", "60")];
  await inside(site, "disable", made[1]?.id ?? "");
  const { out } = await inside(site, "list");
  const rows = out
    .split("\n")
    .slice(0, -1)
    .map((line) => line.split(" ").slice(0, 2));
  const want = made.map(({ id }, index) => [id, index === 1 ? "disabled" : "in-force"]);
  want.push(["nightly", "in-force"]);
  assert.deepEqual(
    rows,
    want.toSorted(([a = ""], [b = ""]) => (a < b ? -1 : 1)),
  );
});

// --- the journal --------------------------------------------------------------------------------------------------

test("AUDIT-D-1 changes of one client in the same batch are made one after the other", async (t) => {
  const { store } = await sqliteSite(t);
  const onFatal = (reason: string): void => assert.fail(reason);
  const journal = await openJournal({ log: "as-1", store: store.log, clock, random, onFatal });
  const add = makeClient();
  const rotate = { rotate: add.clientId, version: 1, olderEndSeconds: 2, atSeconds: 1 };
  const outcomes = await Promise.all([
    journal.record({ event: EVENT, client: { add, atSeconds: 1 } }),
    journal.record({ event: EVENT, client: { add, atSeconds: 1 } }),
    journal.record({ event: EVENT, client: { ...rotate, secret: { digest: "x" } } }),
    journal.record({ event: EVENT, client: { ...rotate, secret: { digest: "y" } } }),
    journal.record({ event: EVENT, client: { disable: add.clientId, atSeconds: 1 } }),
  ]);
  await journal.close();
  assert.deepEqual(
    outcomes.map((outcome) => (outcome.ok ? [] : outcome.error)),
    [[], ["client_current"], [], ["client_current"], []],
  );
  assert.equal((await store.log.head("as-1"))?.seq, 3);
  assert.equal((await store.clients.list(add.clientId))[0]?.version, 3);
});

const rotate = { rotate: "c_a", version: 1, secret: { digest: "x" }, olderEndSeconds: 1, atSeconds: 1 };
const unstorable = [
  ["a NUL in a client_id", { add: makeClient({ clientId: "\0" }), atSeconds: 1 }],
  ["a lone surrogate in a grant type", { add: makeClient({ grantTypes: ["\ud800"] }), atSeconds: 1 }],
  ["a NUL in a workload", { add: makeClient({ workload: "\0" }), atSeconds: 1 }],
  ["a NUL in a default target", { add: makeClient({ defaultTarget: "\0" }), atSeconds: 1 }],
  ["a fraction of a second", { add: makeClient(), atSeconds: 0.5 }],
  ["a NUL in a rotation", { ...rotate, rotate: "\0" }],
  ["a NUL in a digest", { ...rotate, secret: { digest: "\0" } }],
  ["an infinite end", { ...rotate, olderEndSeconds: Number.POSITIVE_INFINITY }],
  ["an expiry with a fraction of a second", { ...rotate, secret: { digest: "x", expiresAtSeconds: 0.5 } }],
  ["a NUL in the client_id to disable", { disable: "\0", atSeconds: 1 }],
] as const;

for (const [name, change] of unstorable) {
  test(`${name} is a fault, and nothing is written`, async (t) => {
    const { store } = await sqliteSite(t);
    const fault = /cannot be stored|not a whole number/;
    await assert.rejects(recordAsAdmin(store, { event: EVENT, client: change }), fault);
    assert.equal((await store.log.head("admin"))?.seq, 0);
    assert.deepEqual(await store.clients.list(), []);
  });
}

// --- the command line -------------------------------------------------------------------------------------------

const wrongLines: readonly (readonly [string, readonly string[]])[] = [
  ["no command", []],
  ["an unknown command", ["enable", "c_a"]],
  ["an unknown option", [...CREATE, "--scope", "a"]],
  ["an option of another command", ["disable", "c_a", "--overlap", "1"]],
  ["an option without its value", ["create", "--method"]],
  ["a duplicate option", [...CREATE, "--method", "client_secret_post"]],
  ["an empty option", [...CREATE, "--workload", ""]],
  ["a method that has no secret", ["create", "--method", "private_key_jwt"]],
  ["the method none", ["create", "--method", "none"]],
  ["an unsupported grant type", [...CREATE, "--grant-type", "authorization_code"]],
  ["a supported and an unsupported grant type", [...CREATE, "--grant-type", EXCHANGE, "--grant-type", "x"]],
  ["a client_id chosen by the operator", [...CREATE, "c_a"]],
  ["a lifetime of zero", [...CREATE, "--expires", "0"]],
  ["an overlap that is not a number", ["rotate", "c_a", "--overlap", "1d"]],
  ["a negative overlap", ["rotate", "c_a", "--overlap=-1"]],
  ["a rotation without a client_id", ["rotate"]],
  ["a rotation of two clients", ["rotate", "c_a", "c_b"]],
  ["disable without a client_id", ["disable"]],
  ["list with a client_id", ["list", "c_a"]],
  ["initial-token without a command", ["initial-token"]],
  ["an initial access token without a class", ["initial-token", "create"]],
  ["a class with capital letters", ["initial-token", "create", "--class", "Crew"]],
  ["a class with a space", ["initial-token", "create", "--class", "a b"]],
  ["a class that is too long", ["initial-token", "create", "--class", "a".repeat(64)]],
  ["two classes", [...INITIAL, "--class", "other"]],
  ["the reserved class of open registration", ["initial-token", "create", "--class", "open"]],
  ["the reserved class of an administrator's clients", ["initial-token", "create", "--class", "managed"]],
  [
    "an unsupported grant type of an initial access token",
    [...INITIAL, "--grant-type", "authorization_code"],
  ],
  ["an invalid scope", [...INITIAL, "--scope", 'a "b"']],
  ["an empty scope", [...INITIAL, "--scope", ""]],
  ["a blank scope", [...INITIAL, "--scope", " "]],
  ["zero uses", [...INITIAL, "--uses", "0"]],
  ["a fraction of a use", [...INITIAL, "--uses", "0.5"]],
  ["uses in exponent notation", [...INITIAL, "--uses", "1e9"]],
  ["an initial access token with a lifetime of zero", [...INITIAL, "--expires", "0"]],
  ["a method of an initial access token", [...INITIAL, "--method", "client_secret_basic"]],
  ["an initial access token chosen by the operator", [...INITIAL, "iat_a"]],
  ["initial-token revoke without an id", ["initial-token", "revoke"]],
  ["initial-token list with an id", ["initial-token", "list", "i_a"]],
  ["an unknown command of initial-token", ["initial-token", "rotate", "i_a"]],
];

const parse = (words: readonly string[]) => parseCommand(["clients", ...words]);

for (const [name, words] of wrongLines) {
  test(`clients refuses a command line with ${name}`, async () => assert.ok(!(await parse(words)).ok));
}

const rightLines: readonly (readonly [string, readonly string[]])[] = [
  ["a method alone", CREATE],
  ["several grant types", [...CREATE, "--grant-type", EXCHANGE, "--grant-type", CLIENT_CREDENTIALS]],
  ["an overlap of 0", ["rotate", "c_a", "--overlap", "0"]],
  [
    "an initial access token with all limits",
    [...INITIAL, "--scope", "a b", "--uses", "9", "--expires", "1"],
  ],
  ["initial-token revoke with an id", ["initial-token", "revoke", "i_a"]],
  ["options in any order", ["--overlap", "5", "rotate", "--config", "a.json", "c_a", "--json"]],
];

for (const [name, words] of rightLines) {
  test(`clients accepts a command line with ${name}`, async () => assert.ok((await parse(words)).ok));
}

test("clients exits with 2, prints the usage and opens nothing for a wrong command line", async () => {
  const sqlite = newFile();
  const run = await client(configure({ sqlite }), "creat\u009be");
  assert.deepEqual([run.code, run.out], [2, ""]);
  assert.match(run.err, /^unknown command "clients creat\\u009be"\n\nUsage:\n {2}mandate clients create /);
  assert.ok(!existsSync(sqlite));
});

test("clients exits with 3 and a message without a stack for an unreachable database", async () => {
  const run = await clientProcess(configure({ postgres: "postgres://u:p@127.0.0.1:1/d" }), ...CREATE);
  assert.deepEqual([run.code, run.out], [3, ""]);
  assert.match(run.err, /^the connection/);
  assert.doesNotMatch(run.err, /\n {4}at /);
});

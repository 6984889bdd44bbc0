/** Starts that fail at what lies outside of the configuration: one message with the place and the remedy, no stack trace. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import postgres from "postgres";
import { MAIN, startServer } from "../scripts/server-process.ts";
import { makeProduction, type Production } from "../scripts/trials/production.ts";
import { clock } from "../src/adapters/clock.ts";
import { openStore } from "../src/adapters/store/open.ts";
import { type DatabaseServer, startDatabaseServer } from "./support/pg-transports.ts";
import { freshDatabase } from "./support/postgres.ts";
import { openSigner } from "./support/signer.ts";
import { stop } from "./support/stop.ts";

let server: DatabaseServer;
before(async () => {
  server = await startDatabaseServer();
});
after(() => stop(server));

/** What the server says, as the only thing on standard error. */
async function refusal({ configFile }: Pick<Production, "configFile">, code: number): Promise<string> {
  const fault = await startServer(configFile).then(
    async (started) => {
      await started.stop();
      return assert.fail("the server started");
    },
    (error: Error) => error,
  );
  const [end, ...lines] = fault.message.split("\n");
  assert.equal(end, `the server ended with ${code}:`);
  assert.doesNotMatch(fault.message, /\n {4}at |Node\.js v/);
  return lines.join("\n");
}

/** A folder with a database that holds a signing key. */
async function used({ folder }: Production): Promise<DatabaseSync> {
  const file = join(folder, "mandate.sqlite");
  const store = await openStore({ sqlite: file });
  await openSigner(store, Buffer.alloc(32, 7), ["ES256"], clock);
  await store.close();
  return new DatabaseSync(file);
}

const KEY = { keys: { encryptionKey: { file: "right-key" } } };

/** The setting that differs, what is done to the folder before the start, and what is told. */
type Fault = readonly [
  what: string,
  patch: object,
  prepare: (production: Production) => void | Promise<void>,
  told: RegExp,
];

const inStore = String.raw`^The store in \S.*config\.json is not available: `;

const FAULTS: readonly Fault[] = [
  [
    "another key-encryption key",
    {},
    async (production) => (await used(production)).close(),
    /^keys\.encryptionKey is not the key that the signing keys in the store were encrypted with: restore that key$/,
  ],
  [
    "a damaged signing key",
    KEY,
    async (production) => {
      const db = await used(production);
      db.exec("update signing_key set public_jwk = '{}'");
      db.close();
    },
    /^the signing key \S+ in the store is damaged: restore the store from a backup$/,
  ],
  [
    "a database of a newer version",
    {},
    async (production) => {
      const db = await used(production);
      db.exec("insert into migration (number, additive) values (9999, 0)");
      db.close();
    },
    /^store: the database is at migration 9999, which is not additive, .*: use a newer version$/,
  ],
  [
    "a file that is no database",
    { store: { sqlite: "config.json", startSeconds: 0 } },
    () => undefined,
    new RegExp(`${inStore}SQLite answered 26: the file is not a database: correct .store\\.sqlite.$`),
  ],
  [
    "a folder in place of the database",
    { store: { sqlite: "tls", startSeconds: 0 } },
    () => undefined,
    new RegExp(`${inStore}.*tls: cannot be opened: it is a folder$`),
  ],
  [
    "a witness in a folder that is not there",
    { audit: { instance: "one", witness: { file: "nowhere/witness" } } },
    () => undefined,
    /^audit\.witness: \S.*nowhere\/witness cannot be written: its folder does not exist: make it$/,
  ],
  [
    "a database on a host that is not there",
    { store: { postgres: { file: "url" }, startSeconds: 0 } },
    ({ folder }) => writeFileSync(join(folder, "url"), "postgres://u:secret@db.invalid/d"),
    new RegExp(`${inStore}the connection to the database failed \\((ENOTFOUND|EAI_AGAIN)\\): the`),
  ],
];

/** What of the URL differs, and what is told; each is met on another way to a database. */
const DATABASE_FAULTS: readonly (readonly [
  what: string,
  change: (url: URL) => void | Promise<void>,
  told: string,
])[] = [
  [
    "a database that nothing listens for",
    (url) => {
      url.port = "1";
    },
    "the connection to the database failed \\((ECONNREFUSED|ENOENT)\\): nothing listens at this ",
  ],
  [
    "a database that does not exist",
    (url) => {
      url.pathname = "/nowhere";
    },
    "the connection to the database failed \\(3D000\\): there is no database of this name: create it",
  ],
  [
    "a wrong password of the database",
    (url) => {
      url.password = "guest";
    },
    "the connection to the database failed \\(28P01\\): the user or the password of .store\\.postgres. is wrong, or .* has expired there$",
  ],
  [
    "a user of the database who may not make tables",
    async (url) => {
      const sql = postgres(url.href, { max: 1, onnotice: () => undefined });
      await sql.unsafe(
        "drop role if exists mandate_visitor; create role mandate_visitor login password 'guest'",
      );
      await sql.end();
      Object.assign(url, { username: "mandate_visitor", password: "guest" });
    },
    'there are no tables of this server yet, and mandate_visitor may not change the schema public: run "mandate migrate" as ',
  ],
];

/** What a URL becomes, given the folder of the configuration. */
const WAYS: Readonly<Record<string, (url: URL, folder: string) => string>> = {
  "without TLS": ({ href }) => href,
  "with TLS": ({ href }, folder) => {
    writeFileSync(join(folder, "database-ca.pem"), server.authority.certPem);
    return `${href}?sslmode=verify-full&sslrootcert=database-ca.pem`;
  },
  "through a Unix socket": ({ href }) => `${href}?host=${server.socketFolder}`,
};

const ways = Object.entries(WAYS);
const databaseFaults = DATABASE_FAULTS.map(([what, change, told], index): Fault => {
  const [way, write] = ways[index % ways.length] ?? assert.fail();
  const prepare = async ({ folder }: Production): Promise<void> => {
    const url = new URL(await freshDatabase(server));
    await change(url);
    writeFileSync(join(folder, "url"), write(url, folder));
  };
  const patch = { store: { postgres: { file: "url" }, startSeconds: 0 } };
  return [`${what}, ${way},`, patch, prepare, new RegExp(`${inStore}${told}`)];
});

for (const [what, patch, prepare, told] of [...FAULTS, ...databaseFaults]) {
  test(`${what} stops the start with one line`, async (t) => {
    const production = await makeProduction(patch);
    t.after(production.remove);
    writeFileSync(join(production.folder, "right-key"), Buffer.alloc(32, 7).toString("base64url"));
    await prepare(production);
    // 3: the store cannot be used now, which may pass; 1: starting again changes nothing.
    const said = await refusal(production, /^\^(The store|store:)/.test(told.source) ? 3 : 1);
    assert.match(said, told);
    assert.doesNotMatch(said, /\n|secret|guest/);
  });
}

const run = promisify(execFile);

test("commands that are refused by the database end with one line, on every way to it", async (t) => {
  const said = await Promise.all(
    Object.values(WAYS).map(async (write, index) => {
      const command = index % 2 === 0 ? "check" : "audit";
      const production = await makeProduction({ store: { postgres: { file: "url" } } });
      t.after(production.remove);
      const url = new URL(server.url);
      url.password = "guest";
      writeFileSync(join(production.folder, "url"), write(url, production.folder));
      const main = ["--disable-warning=ExperimentalWarning", MAIN, command];
      const end = run(process.execPath, [...main, "--config", production.configFile]);
      return end.then(
        () => assert.fail("the command succeeded"),
        ({ stdout, stderr }: { stdout: string; stderr: string }) => stdout + stderr,
      );
    }),
  );
  for (const lines of said) {
    assert.match(
      lines,
      /28P01\): the user or the password of .store\.postgres. is wrong, or .* has expired there$/m,
    );
    assert.doesNotMatch(lines, /\n {4}at |Node\.js v|guest/);
  }
});

test("a configuration file that is not there stops the start with one line", async (t) => {
  const production = await makeProduction();
  t.after(production.remove);
  const configFile = join(production.folder, "none.json");
  const said = await refusal({ configFile }, 2);
  assert.equal(
    said,
    `Invalid configuration in ${configFile}:\n  ${configFile}: cannot be read: there is no such file or folder: correct its name, or make it`,
  );
});

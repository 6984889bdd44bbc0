/**
 * What the operator of the rehearsal has: a PostgreSQL with TLS, a provider, a folder made by `mandate init`, copies of it
 * for further instances, and the commands that `init` printed.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import postgres from "postgres";
import { freshDatabase, startPostgres } from "../../../test/support/postgres.ts";
import { startProvider } from "../../../test/support/provider.ts";
import { issueServerCertificate, makeAuthority } from "../../dev-pki.ts";
import { freePorts } from "../../server-process.ts";
import type { Backend } from "../balancer.ts";
import { type Server, startServer } from "./server.ts";
import { parentOf } from "./usage.ts";

const MAIN = join(import.meta.dirname, "../../../src/main.ts");
const NAMES = ["localhost", "127.0.0.1"];
export const CLIENT = "planner";
export const APP = "planner-app";
export const API = "https://api.example";
export const SCOPE = "trips.read";
export const USER = "alice";
/** As short as production accepts: see src/adapters/crypto/README.md. */
export const KEYS = { cacheSeconds: 60, announceSeconds: 92 };

export type Instance = Backend & { name: string; folder: string };
export type Run = { code: number | null; out: string; err: string };

export type Site = {
  issuer: string;
  /** PEM of the authority of the servers' certificates. */
  ca: string;
  secretOf(client: string): string;
  /** Of the user, for the client's app at the provider. */
  idToken: string;
  provider: string;
  instances: readonly Instance[];
  /** A file beside the folders of the instances. */
  fileAt(name: string): string;
  /** The URL of the database for commands of this machine, and of an empty one. */
  database: string;
  freshDatabase(): Promise<string>;
  /** The process above those of the connections (Linux). */
  databasePid(): Promise<number>;
  /** An instance of its own, which begins as a copy of the folder of the first, on another database. */
  addInstance(name: string, audit: string, database: string): Promise<Instance>;
  /** `mandate …`, with the configuration of this instance; `tried` returns a refusal, which else is thrown. */
  tried(at: Instance, ...words: string[]): Promise<Run>;
  mandate(at: Instance, ...words: string[]): Promise<Run>;
  /** `mandate …` without a configuration. */
  offline(words: readonly string[]): Promise<Run>;
  /** Runs the command that `init` printed for the start. */
  start(at: Instance): Server;
  /** Writes another certificate with another key into the folder of each instance. */
  renew(): Promise<void>;
  close(): Promise<void>;
};

export async function makeSite(count: number): Promise<Site> {
  const parent = mkdtempSync(join(tmpdir(), "mandate rehearsal "));
  const fileAt = (name: string): string => join(parent, name);
  const authority = await makeAuthority("Authority of the company");
  const certificate = () => issueServerCertificate(authority, NAMES);
  const { keyPem, certPem } = await certificate();
  const [server, provider] = await Promise.all([
    startPostgres({ durable: true, tls: { key: keyPem, cert: certPem } }),
    startProvider(),
  ]);
  const verified = (url: string): string => `${url}?sslmode=verify-full&sslrootcert=database-ca.pem`;
  const database = await freshDatabase(server);
  const [port = 0] = await freePorts(1);
  const issuer = `https://localhost:${port}`;
  const first = fileAt("one");
  writeFileSync(fileAt("database-url"), verified(database), { mode: 0o600 });
  writeFileSync(fileAt("provider-ca.pem"), provider.ca);

  const made = await run(MAIN, [
    ...["init", first, "--issuer", issuer, "--store", fileAt("database-url")],
    ...["--provider", provider.issuer, "--provider-ca", fileAt("provider-ca.pem")],
    ...["--provider-network", "127.0.0.1/32", "--provider-network", "::1/128"],
    ...["--agent", CLIENT, "--agent-client-id", APP, "--api", API, "--scope", SCOPE],
  ]);
  assert.equal(made.code, 0, made.err);
  const printed = /^ {2}3\. (.*)$/m.exec(made.out)?.[1] ?? assert.fail(made.out);

  const addInstance = async (name: string, audit: string, url: string): Promise<Instance> => {
    const [listen = 0, health = 0] = await freePorts(2);
    const folder = fileAt(name);
    if (folder !== first) cpSync(first, folder, { recursive: true });
    const file = join(folder, "config.json");
    const config = JSON.parse(readFileSync(file, "utf8"));
    config.listen.port = listen;
    config.operations.port = health;
    if (url !== database) {
      config.store.postgres.file = "database-url";
      writeFileSync(join(folder, "database-url"), verified(url), { mode: 0o600 });
    }
    config.audit.instance = audit;
    Object.assign(config.keys, KEYS);
    writeFileSync(file, JSON.stringify(config, null, 2));
    return { name, folder, port: listen, health };
  };
  writeFileSync(join(first, "database-ca.pem"), authority.certPem);
  writeFileSync(join(first, "tls/key.pem"), keyPem, { mode: 0o600 });
  writeFileSync(join(first, "tls/cert.pem"), certPem);
  const instances: Instance[] = [];
  for (const name of ["one", "two", "three"].slice(0, count)) {
    instances.push(await addInstance(name, name, database));
  }
  const servers: Server[] = [];
  const tried = (at: Instance, ...words: string[]): Promise<Run> =>
    run(MAIN, [...words, "--config", join(at.folder, "config.json")]);
  return {
    ...{ issuer, ca: authority.certPem, instances, fileAt, database, addInstance, tried },
    async mandate(at, ...words) {
      const done = await tried(at, ...words);
      assert.equal(done.code, 0, `mandate ${words.join(" ")}: ${done.out}${done.err}`);
      return done;
    },
    offline: (words) => run(MAIN, words),
    provider: provider.issuer,
    secretOf: (client) => readFileSync(join(first, "clients", client), "utf8").trim(),
    idToken: await provider.userToken(USER, APP, { nonce: "n", exp: Math.floor(Date.now() / 1_000) + 3_600 }),
    freshDatabase: () => freshDatabase(server),
    async databasePid() {
      const sql = postgres(database, { max: 1 });
      const [backend] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
      const pid = parentOf(backend?.pid ?? assert.fail());
      await sql.end();
      return pid;
    },
    start({ folder }) {
      const server = startServer(
        printed.replaceAll(`${first}/`, `${folder}/`).replaceAll(`${first}'`, `${folder}'`),
      );
      servers.push(server);
      return server;
    },
    async renew() {
      const { keyPem: key, certPem: cert } = await certificate();
      for (const { folder } of instances) {
        for (const [name, content] of [
          ["cert.pem", cert],
          ["key.pem", key],
        ] as const) {
          const file = join(folder, "tls", name);
          writeFileSync(`${file}.next`, content, { mode: 0o600 });
          renameSync(`${file}.next`, file);
          await sleep(50);
        }
      }
    },
    async close() {
      for (const server of servers) await server.end("SIGKILL");
      await Promise.all([server.stop(), provider.close()]);
      rmSync(parent, { recursive: true, force: true });
    },
  };
}

async function run(main: string, words: readonly string[]): Promise<Run> {
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", main, ...words], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [out, err] = await Promise.all([
    child.stdout.setEncoding("utf8").toArray(),
    child.stderr.setEncoding("utf8").toArray(),
    once(child, "exit"),
  ]);
  return { code: child.exitCode, out: out.join(""), err: err.join("") };
}

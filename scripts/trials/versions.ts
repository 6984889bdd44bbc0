/** Servers of several versions on one store, one after the other or beside each other, and what they are asked meanwhile. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { NOTES } from "../../test/support/people.ts";
import { startProvider } from "../../test/support/provider.ts";
import { until } from "../../test/support/until.ts";
import { LOOPBACK, startWebServer } from "../../test/support/web.ts";
import { makeSurroundings } from "../../test/support/world.ts";
import type { Revision } from "../bench/revision.ts";
import { ROOT } from "../bench/stage.ts";
import type { Authority } from "../dev-keys.ts";
import { claimsOf } from "../http-client.ts";
import type { ServerProcess } from "../server-process.ts";
import { configurationFor, type Kept, openJourneys, SECRET } from "./journeys.ts";

const WORKERS = 3;

export type Version = Pick<Revision, "root" | "commit">;

export const THIS: Version = { root: ROOT, commit: "this version" };

export type Versions = {
  start(version: Version, instance: string): Promise<ServerProcess>;
  /** Does this while these instances are under load, and keeps the load up for some rounds at least. */
  beside<T>(serving: readonly ServerProcess[], work: () => Promise<T>): Promise<T>;
  /** That all that was given stands at this instance, and all that was ended stays ended. */
  check(at: ServerProcess): Promise<void>;
  /** That the trail verifies and has what was given; what was done, in a line. */
  conclude(): string;
  close(): Promise<void>;
};

/** `postgres`: the URL of an empty database with TLS. */
export async function openVersions(
  rounds: number,
  postgres?: { url: string; authority: Authority },
): Promise<Versions> {
  const provider = await startProvider();
  const told = new Set<unknown>();
  const receiver = await startWebServer(async (request) => {
    const { sub_id } = claimsOf(await request.text()) as { sub_id?: { jti?: string } };
    told.add(sub_id?.jti);
    return new Response(null, { status: 202 });
  });
  const surroundings = await makeSurroundings(configurationFor(provider), {
    ...(postgres && { postgres: `${postgres.url}?sslmode=verify-full&sslrootcert=database-ca.pem` }),
    files: {
      secret: SECRET,
      "provider.pem": provider.ca,
      "receiver.pem": receiver.ca,
      ...(postgres && { "database-ca.pem": postgres.authority.certPem }),
    },
  });
  const config = JSON.parse(readFileSync(surroundings.configFile, "utf8"));
  Object.assign(config.trustedIssuers, provider.trusted());
  const targets = ["trips", NOTES];
  const place = { url: receiver.origin, ca: { file: "receiver.pem" }, privateNetworks: LOOPBACK };
  const signals = { streams: { api: { audience: "https://api.example", targets, ...place } } };
  const servers: ServerProcess[] = [];
  const files: string[] = [];
  const journeys = openJourneys(surroundings, provider);
  const [kept, ended]: [Kept[], Kept[]] = [[], []];

  const play = async (serving: readonly ServerProcess[]): Promise<void> => {
    const any = (): ServerProcess => serving[randomInt(serving.length)] as ServerProcess;
    for (const journey of journeys) {
      const one = await journey(any(), any());
      if (randomInt(2) === 0) {
        kept.push(one);
        continue;
      }
      await one.end(any());
      ended.push(one);
      for (const at of serving) assert.equal(await one.stands(at), false, "an ending reaches each instance");
    }
  };

  return {
    async start(version, instance) {
      const { startServer } = await import(join(version.root, "scripts/server-process.ts"));
      const file = join(surroundings.folder, `${instance}.json`);
      writeFileSync(file, JSON.stringify({ ...config, audit: { instance }, signals }));
      files.push(file);
      // The packages of a copy are a link to ours, which its permissions do not include.
      const environment = { NODE_OPTIONS: `--allow-fs-read=${join(ROOT, "node_modules")}` };
      const server: ServerProcess = await startServer(file, { environment });
      servers.push(server);
      return server;
    },
    async beside(serving, work) {
      let [done, working] = [0, true];
      const worker = async (): Promise<void> => {
        for (; working || done < rounds; done++) await play(serving);
      };
      const all = [
        work().finally(() => {
          working = false;
        }),
        ...Array.from({ length: WORKERS }, worker),
      ] as const;
      try {
        return (await Promise.all(all))[0];
      } finally {
        // A server that still starts after a fault would outlive the trial.
        working = false;
        await Promise.allSettled(all);
      }
    },
    async check(at) {
      for (const one of kept) assert.equal(await one.stands(at), true, "what was given stands");
      for (const one of ended) assert.equal(await one.stands(at), false, "what was ended stays ended");
      await until(() => ended.every(({ jti }) => told.has(jti)), "the receiver is told");
    },
    conclude() {
      const audit = (...args: string[]): string =>
        execFileSync(
          process.execPath,
          ["--disable-warning=ExperimentalWarning", ...[join(ROOT, "src/main.ts"), "audit", ...args]],
          { encoding: "utf8" },
        );
      const at = ["--config", files.at(-1) ?? ""];
      audit("verify", ...at);
      for (const { jti } of kept.slice(0, 5)) {
        const found = audit("--jti", jti, "--json", ...at);
        assert.ok(found.includes(`"jti":${JSON.stringify(jti)}`), `${jti} is not found`);
      }
      const on = postgres === undefined ? "SQLite" : "PostgreSQL";
      const count = kept.length + ended.length;
      return `${on}: ${count} chains and grants of users, ${ended.length} ended and told; 0 refused, 0 lost`;
    },
    async close() {
      for (const { child } of servers) child.kill("SIGKILL");
      await surroundings.remove();
      await Promise.all([provider.close(), receiver.stop()]);
    },
  };
}

/** Signals during the start, in the production profile. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { ServerProcess } from "../scripts/server-process.ts";
import { launchServer } from "../scripts/server-process.ts";
import type { Production } from "../scripts/trials/production.ts";
import { makeProduction } from "../scripts/trials/production.ts";
import { openDatabaseProxy } from "./support/database-proxy.ts";
import { freshDatabase, sharePostgres } from "./support/postgres.ts";
import { until } from "./support/until.ts";

type ConfigJson = Record<string, unknown> & {
  listen: { port: number };
  policies: readonly { id: string }[];
};
type Told = Record<string, unknown> & { event: string; message: string };

const readConfig = ({ configFile }: Production): ConfigJson => JSON.parse(readFileSync(configFile, "utf8"));

const change = (production: Production, changes: object): void =>
  writeFileSync(production.configFile, JSON.stringify({ ...readConfig(production), ...changes }));

const toldBy = ({ lines }: Pick<ServerProcess, "lines">): Told[] => lines.map((line) => JSON.parse(line));

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
  assert.deepEqual(events.slice(0, 3), ["store_awaited", "listening", "reloaded"]);
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

/** A start whose database goes away at any moment before the server listens. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { loadConfig } from "../src/config/config.ts";
import type { Log } from "../src/start/log.ts";
import { settleRestored } from "../src/start/restored.ts";
import { openService } from "../src/start/service.ts";
import { type DatabaseProxy, openDatabaseProxy } from "./support/database-proxy.ts";
import { freshDatabase, type SharedPostgres, sharePostgres } from "./support/postgres.ts";
import { stop } from "./support/stop.ts";
import { makeSurroundings, type Surroundings } from "./support/world.ts";

/** A start is cut off after each of these parts of what it says to its database. */
const PARTS = 5;

let server: SharedPostgres;
let proxy: DatabaseProxy;
let surroundings: Surroundings;
before(async () => {
  server = await sharePostgres();
  proxy = await openDatabaseProxy(await freshDatabase(server));
  surroundings = await makeSurroundings({}, { postgres: proxy.url });
});
after(() => stop(() => proxy.close(), surroundings.remove, server));

/** The service as far as it is before its listeners are opened; returns the notices of its start. */
async function start(encryptionKey?: Uint8Array): Promise<readonly string[]> {
  const config = loadConfig(surroundings.configFile);
  assert.ok(config.ok, JSON.stringify(config));
  if (encryptionKey !== undefined) Object.assign(config.value.fixed.keys, { encryptionKey });
  const told: string[] = [];
  const log: Log = {
    entry: () => true,
    request: () => {},
    tell({ event }) {
      told.push(event);
      if (event === "store_awaited") proxy.manner = "pass";
    },
    status: () => ({ waitingBytes: 0, lostLines: 0 }),
    close: () => {},
  };
  const service = await openService(config.value, { log, onFatal: assert.fail });
  const { signal: stopped } = new AbortController();
  await settleRestored({ ...service, mark: service.restored, log, stopped });
  await service.close();
  return told;
}

test("STORE-D-20 a start whose database goes away after its first answers waits, wherever that is, and then starts", async () => {
  let pieces = 0;
  proxy.onPiece = () => void pieces++;
  await start();
  pieces = 0;
  assert.ok(!(await start()).includes("store_awaited"));
  const all = pieces;
  assert.ok(all > 20, String(all));
  let waited = 0;
  for (let part = 1; part < PARTS; part++) {
    let left = Math.floor((part * all) / PARTS);
    proxy.onPiece = () => {
      if (--left !== 0) return;
      proxy.manner = "close";
      proxy.cut();
    };
    const told = await start();
    // Periodic work may have met the fault, for which no start waits.
    if (told.includes("store_awaited")) waited++;
    proxy.manner = "pass";
    await turn();
  }
  assert.ok(waited >= PARTS / 2, `${waited} of ${PARTS - 1} starts waited`);
});

test("a start that fails closes what it has opened: the next one has the name of the instance at once", async () => {
  proxy.onPiece = () => {};
  await start();
  await assert.rejects(start(new Uint8Array(32)), { name: "KeysUnusable" });
  assert.ok(!(await start()).includes("name_awaited"));
});

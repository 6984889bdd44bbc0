/** What an operator does: other settings for a server that runs. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { World } from "./world.ts";

type Config = Record<string, unknown>;

export async function reload(
  { configFile, server }: World,
  change: (config: Config) => object,
): Promise<void> {
  const config: Config = JSON.parse(readFileSync(configFile, "utf8"));
  writeFileSync(configFile, JSON.stringify({ ...config, ...change(config) }));
  const known = server.lines.length;
  server.child.kill("SIGHUP");
  await sleep(300);
  const refused = server.lines.slice(known).filter((line) => line.startsWith("not reloaded"));
  assert.deepEqual(refused, []);
}

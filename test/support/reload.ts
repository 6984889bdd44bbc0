/** What an operator does: other settings for a server that runs. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "./until.ts";
import type { World } from "./world.ts";

type Config = Record<string, unknown>;

export async function reload(
  { configFile, server }: World,
  change: (config: Config) => object,
): Promise<void> {
  const config: Config = JSON.parse(readFileSync(configFile, "utf8"));
  writeFileSync(configFile, JSON.stringify({ ...config, ...change(config) }));
  assert.deepEqual(await server.reload(), []);
}

/** Puts this bundle of the trust domain into force, or has it refused. */
export async function reloadBundle(
  { folder, server, events }: Pick<World, "folder" | "server" | "events">,
  content: object,
): Promise<void> {
  const changes = async () => (await events()).filter(({ type }) => type.startsWith("trust_bundle.")).length;
  const before = await changes();
  writeFileSync(join(folder, "bundle.json"), JSON.stringify(content));
  assert.deepEqual(await server.reload(), []);
  await until(async () => (await changes()) > before, "the bundle changes");
}

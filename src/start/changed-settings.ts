/** The settings that a reload leaves as they are, by their paths in the configuration. */
import type { Config } from "../config/config.ts";
import { ConfigFile } from "../config/schema.ts";
import { membersOf } from "../setting.ts";

type Fixed = Config["fixed"];

/** Their members in the schema say so; they stand at the same paths in Config["fixed"]. */
const OF_START = new Set(membersOf(ConfigFile).flatMap(({ path, ofStart }) => (ofStart ? [path] : [])));

/** The parts of a database URL besides its server. */
const BESIDE: Readonly<Record<string, readonly string[]>> = {
  "store.postgres": ["store.socketFolder", "store.hosts", "store.tls"],
};

/** Settings are compared by value; a section that came or went is named by each of its members. */
export function changedSettings(inForce: Fixed, next: Fixed): readonly string[] {
  const differs = (path: string): boolean =>
    JSON.stringify(valueAt(inForce, path)) !== JSON.stringify(valueAt(next, path));
  return [...OF_START].filter((path) => [path, ...(BESIDE[path] ?? [])].some(differs));
}

const valueAt = (from: unknown, path: string): unknown =>
  path.split(".").reduce((value, name) => Object(value)[name], from);

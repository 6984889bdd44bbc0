/** `npm run schema`: writes the JSON Schema of the configuration file from the sources, as the server comes with it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { toJsonSchema } from "@valibot/to-json-schema";
import { DESCRIPTIONS } from "../src/config/descriptions.ts";
import { ConfigFile } from "../src/config/schema.ts";

export const SCHEMA_FILE = join(import.meta.dirname, "../src/config/config.schema.json");

type Node = Readonly<Record<string, unknown>>;

/** Checks and transformations of our own cannot be expressed in JSON Schema and are left out. */
function configSchema(): object {
  const schema = toJsonSchema(ConfigFile, { typeMode: "input", errorMode: "ignore", target: "draft-07" });
  const unused = new Set(Object.keys(DESCRIPTIONS));
  const without = new Set<string>();
  const described = describeMembers(schema as Node, "", (path) => {
    const row = rowOf(path);
    if (row === undefined) without.add(path);
    else unused.delete(row);
    return row && DESCRIPTIONS[row];
  });
  const problems = [
    ...[...without].map((path) => `has no row for ${path}`),
    ...[...unused].map((row) => `has a row for ${row}, which is no member`),
  ];
  if (problems.length > 0) throw new Error(`src/config/descriptions.ts ${problems.join("; ")}`);
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    title: "Configuration of Mandate",
    ...described,
  };
}

/** The longest end of the path that has a row. */
function rowOf(path: string): string | undefined {
  const names = path.split(".");
  return names
    .map((_, index) => names.slice(index).join("."))
    .find((end) => Object.hasOwn(DESCRIPTIONS, end));
}

/** The schema with a description at each member of each object; an entry of an array or a record is no member. */
function describeMembers(node: Node, path: string, textOf: (path: string) => string | undefined): Node {
  const below = (value: unknown, at: string): unknown => {
    if (Array.isArray(value)) return value.map((one) => below(one, at));
    return typeof value === "object" && value !== null ? describeMembers(value as Node, at, textOf) : value;
  };
  const entries = Object.entries(node).map(([name, value]) => {
    if (name === "properties") {
      const members = Object.entries(value as Record<string, Node>).map(([member, schema]) => {
        const at = path === "" ? member : `${path}.${member}`;
        return [member, { description: textOf(at), ...describeMembers(schema, at, textOf) }];
      });
      return [name, Object.fromEntries(members)];
    }
    if (name === "items" || name === "additionalProperties") return [name, below(value, `${path}.*`)];
    return [name, ["anyOf", "oneOf", "allOf"].includes(name) ? below(value, path) : value];
  });
  return Object.fromEntries(entries);
}

export const schemaText = (): string => `${JSON.stringify(configSchema(), null, 2)}\n`;

if (import.meta.main) writeFileSync(SCHEMA_FILE, schemaText());

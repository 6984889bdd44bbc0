/** `npm run schema`: writes the JSON Schema of the configuration file from the sources, as the server comes with it. */
import { writeFileSync } from "node:fs";
import { toJsonSchema } from "@valibot/to-json-schema";
import { ConfigFile } from "../src/config/schema.ts";
import { SCHEMA_FILE } from "../src/program.ts";

/** Checks and transformations of our own cannot be expressed in JSON Schema and are left out. */
export function schemaText(): string {
  const schema = toJsonSchema(ConfigFile, { typeMode: "input", errorMode: "ignore", target: "draft-07" });
  const titled = {
    $schema: "http://json-schema.org/draft-07/schema#",
    title: "Configuration of Mandate",
    ...schema,
  };
  return `${JSON.stringify(titled, (name, value) => (name === "takenBy" ? undefined : value), 2)}\n`;
}

if (import.meta.main) writeFileSync(SCHEMA_FILE, schemaText());

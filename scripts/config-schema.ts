/** `npm run schema`: writes the JSON Schema of the configuration file from the sources, as the server comes with it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { toJsonSchema } from "@valibot/to-json-schema";
import { ConfigFile } from "../src/config/schema.ts";

export const SCHEMA_FILE = join(import.meta.dirname, "../src/config/config.schema.json");

/** Checks and transformations of our own cannot be expressed in JSON Schema and are left out. */
const configSchema = (): object => ({
  $schema: "http://json-schema.org/draft-07/schema#",
  title: "Configuration of Mandate",
  ...toJsonSchema(ConfigFile, { typeMode: "input", errorMode: "ignore", target: "draft-07" }),
});

export const schemaText = (): string => `${JSON.stringify(configSchema(), null, 2)}\n`;

if (import.meta.main) writeFileSync(SCHEMA_FILE, schemaText());

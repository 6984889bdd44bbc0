/** `npm run config-schema`: the JSON Schema of the configuration file, for editors. The server checks more than that. */
import { toJsonSchema } from "@valibot/to-json-schema";
import { ConfigFile } from "../src/config/schema.ts";

/** Checks and transformations of our own cannot be expressed in JSON Schema and are left out. */
export const configSchema = (): object => ({
  $schema: "http://json-schema.org/draft-07/schema#",
  title: "Configuration of Mandate",
  ...toJsonSchema(ConfigFile, { typeMode: "input", errorMode: "ignore", target: "draft-07" }),
});

if (import.meta.main) console.log(JSON.stringify(configSchema(), null, 2));

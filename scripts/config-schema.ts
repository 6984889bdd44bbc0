/** The JSON Schema of the configuration file, for editors: `npm run config-schema`. The server judges by its own. */
import { toJsonSchema } from "@valibot/to-json-schema";
import { ConfigFile } from "../src/config/schema.ts";

/** What a JSON Schema cannot say (checks of our own, what becomes of a value) is left out of it. */
export const configSchema = (): object => ({
  $schema: "http://json-schema.org/draft-07/schema#",
  title: "Configuration of Mandate",
  ...toJsonSchema(ConfigFile, { typeMode: "input", errorMode: "ignore", target: "draft-07" }),
});

if (import.meta.main) console.log(JSON.stringify(configSchema(), null, 2));

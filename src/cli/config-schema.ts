/** `mandate config-schema`: prints the JSON Schema of the configuration file, which is made from the sources. */
import { readFileSync } from "node:fs";
import { EXIT } from "../limits/process.ts";
import type { Result } from "../result.ts";
import type { Command } from "./command.ts";
import { onFiles } from "./command.ts";

const SCHEMA = new URL("../config/config.schema.json", import.meta.url);

export const configSchemaCommand = (): Result<Command, string> =>
  onFiles(async ({ print }) => {
    print(readFileSync(SCHEMA, "utf8").trimEnd());
    return EXIT.done;
  });

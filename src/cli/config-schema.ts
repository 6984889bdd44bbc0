/** `mandate config-schema`: prints the JSON Schema of the configuration file, which is made from the sources. */
import { readFileSync } from "node:fs";
import { EXIT } from "../limits/process.ts";
import { SCHEMA_FILE } from "../program.ts";
import type { Result } from "../result.ts";
import { type Command, onFiles } from "./command.ts";

export const configSchemaCommand = (): Result<Command, string> =>
  onFiles(async ({ print }) => {
    print(readFileSync(SCHEMA_FILE, "utf8").trimEnd());
    return EXIT.done;
  });

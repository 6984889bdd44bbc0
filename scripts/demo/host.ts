/** Runs the operator's commands (`npm run mandate`) for the demo. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

const MANDATE = join(import.meta.dirname, "../../src/main.ts");

/** `command` is split at spaces; each option becomes `--name value`. Returns the standard output. */
export async function runOnHost(
  folder: string,
  command: string,
  options: Readonly<Record<string, string>> = {},
): Promise<string> {
  const given = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
  const args = [MANDATE, ...command.split(" "), "--config", join(folder, "config.json"), ...given];
  return (await promisify(execFile)(process.execPath, args)).stdout.trimEnd();
}

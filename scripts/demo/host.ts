/** Runs the operator's commands (`npm run admin`, `npm run client`) for the demo. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

/** `command` is split at spaces; each option becomes `--name value`. Returns the standard output. */
export async function runOnHost(
  script: "admin" | "client",
  folder: string,
  command: string,
  options: Readonly<Record<string, string>> = {},
): Promise<string> {
  const file = join(import.meta.dirname, "..", `${script}.ts`);
  const given = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
  const args = [file, "--config", join(folder, "config.json"), ...command.split(" "), ...given];
  return (await promisify(execFile)(process.execPath, args)).stdout.trimEnd();
}

/** Runs the operator's commands (`npm run mandate`) for the demo. */
import { join } from "node:path";
import { runCommandLine } from "../command-line.ts";

/** `command` is split at spaces; each option becomes `--name value`. Returns the standard output. */
export async function runOnHost(
  folder: string,
  command: string,
  options: Readonly<Record<string, string>> = {},
): Promise<string> {
  const given = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
  const words = [...command.split(" "), "--config", join(folder, "config.json"), ...given];
  const { code, out, err } = await runCommandLine(words);
  if (code !== 0) throw new Error(`mandate ${command}: ${err}`);
  return out.trimEnd();
}

/** What the command lines of admin, client and policy share. */
import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";
import type { Admin } from "./record.ts";

export const DEVELOPMENT_CONFIG = "data/config.json";

/** Resolves to the exit code. */
export type Run = (admin: Admin) => Promise<number>;

export type Command = { configFile: string; run: Run };

export const textOption = { type: "string", multiple: true } as const;

/** Turns an exception into an error text, for calls that throw on wrong input (`parseArgs`, `readFileSync`). */
export function attempt<T>(parse: () => T): Result<T, string> {
  try {
    return ok(parse());
  } catch (error) {
    // The first line names the problem; further lines of parseArgs are general advice.
    return err(error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error));
  }
}

/** The first problem with a command's options. --config is always allowed; only `repeatable` ones may occur twice. */
export function findWrongOption(
  name: string,
  values: Readonly<Record<string, readonly string[] | boolean | undefined>>,
  allowed: readonly string[],
  repeatable: readonly string[],
): string | undefined {
  for (const [option, given] of Object.entries(values)) {
    if (option !== "config" && !allowed.includes(option)) return `"${name}" has no option --${option}`;
    if (given === undefined || typeof given === "boolean") continue;
    // Refused, because taking the last of two would silently ignore the first.
    if (!repeatable.includes(option) && given.length > 1) return `--${option} is given twice`;
    if (given.includes("")) return `--${option} is empty`;
  }
  return undefined;
}

export function wholeNumber(digits = ""): number | undefined {
  return /^[1-9][0-9]{0,8}$/.test(digits) ? Number(digits) : undefined;
}

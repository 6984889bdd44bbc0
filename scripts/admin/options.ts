/** What the command lines of the operator have in common. */
import type { Result } from "../../src/result.ts";
import { err, ok } from "../../src/result.ts";
import type { Admin } from "./record.ts";

export const DEVELOPMENT_CONFIG = "data/config.json";

/** Answers with the exit code. */
export type Run = (admin: Admin) => Promise<number>;

export type Command = { configFile: string; run: Run };

export const text = { type: "string", multiple: true } as const;

/** The outcome of the platform's parser, whose faults are the user's mistakes. */
export function attempt<T>(parse: () => T): Result<T, string> {
  try {
    return ok(parse());
  } catch (error) {
    // Its further lines are advice.
    return err(error instanceof Error ? (error.message.split("\n")[0] ?? "") : "cannot be read");
  }
}

/** What is wrong with the options of a command: `allowed` beside --config, those in `repeatable` more than once. */
export function findWrongOption(
  name: string,
  values: Readonly<Record<string, readonly string[] | boolean | undefined>>,
  allowed: readonly string[],
  repeatable: readonly string[],
): string | undefined {
  for (const [option, given] of Object.entries(values)) {
    if (option !== "config" && !allowed.includes(option)) return `--${option} is not for ${name}`;
    if (given === undefined || typeof given === "boolean") continue;
    // The last of two would win in silence.
    if (!repeatable.includes(option) && given.length > 1) return `--${option} is given twice`;
    if (given.includes("")) return `--${option} is empty`;
  }
  return undefined;
}

export function wholeNumber(digits = ""): number | undefined {
  return /^[1-9][0-9]{0,8}$/.test(digits) ? Number(digits) : undefined;
}

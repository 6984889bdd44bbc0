/** Questions on the terminal. */
import { createInterface } from "node:readline/promises";
import type { AskLine } from "./questions.ts";

/** Undefined without a person: input or output is no terminal. */
export function openTerminal(): { ask: AskLine; close(): void } | undefined {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return undefined;
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  return { ask: (question) => lines.question(question), close: () => lines.close() };
}

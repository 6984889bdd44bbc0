/** Questions on the terminal. */
import { createInterface } from "node:readline/promises";
import { InputEnded, type Prompt } from "./questions.ts";

type Input = NodeJS.ReadableStream & { isTTY?: boolean };
type Output = NodeJS.WritableStream & { isTTY?: boolean };

/** Undefined if no person is there, because input or output is no terminal. */
export function openTerminal(
  input: Input = process.stdin,
  output: Output = process.stdout,
): { prompt: Prompt; close(): void } | undefined {
  if (!input.isTTY || !output.isTTY) return undefined;
  const lines = createInterface({ input, output });
  const ended = new AbortController();
  // A question that waits does not notice the end of the input by itself.
  lines.once("close", () => ended.abort());
  return {
    prompt: (question) =>
      lines.question(question, { signal: ended.signal }).catch(() => {
        throw new InputEnded();
      }),
    close: () => lines.close(),
  };
}

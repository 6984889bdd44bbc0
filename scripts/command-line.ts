/** The command line of the operator (`npm run mandate`) within this process: to start one for each takes longer. */
import { Writable } from "node:stream";
import { readCommandLine } from "../src/cli/command-line.ts";
import { runOnHost } from "../src/cli/host.ts";

export type HostRun = { code: number | null; out: string; err: string };

/** Runs a command line that does not start the server; resolves to its exit code and what it wrote. */
export async function runCommandLine(words: readonly string[]): Promise<HostRun> {
  const invocation = readCommandLine(words);
  if (invocation.kind === "serve") throw new Error("this command line starts the server");
  const [stdout, stderr] = [collect(), collect()];
  const code = await runOnHost(invocation, { stdout: stdout.stream, stderr: stderr.stream });
  return { code, out: stdout.text(), err: stderr.text() };
}

function collect(): { stream: Writable; text(): string } {
  let text = "";
  const write = (chunk: string, _encoding: string, done: () => void): void => {
    text += chunk;
    done();
  };
  return { stream: new Writable({ decodeStrings: false, write }), text: () => text };
}

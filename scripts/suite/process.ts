/** Starts a server as a process for an adapter, and waits for the line that says that it listens. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

export type Running = { child: ChildProcess; stop(): Promise<void> };

const LINES_KEPT = 40;

/** `ready` is looked for in what it prints on both streams. */
export async function startProcess(
  [program = "", ...words]: readonly string[],
  ready: RegExp,
  environment: NodeJS.ProcessEnv = {},
): Promise<Running> {
  const child = spawn(program, words, {
    stdio: ["ignore", "pipe", "pipe"],
    // What the process of the suite was told by the environment is not for the server.
    env: { ...process.env, NODE_OPTIONS: undefined, ...environment },
  });
  const said: string[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const hear = (part: unknown): void => {
    said.push(...String(part).split("\n"));
    if (ready.test(String(part))) resolve();
    said.splice(0, said.length - LINES_KEPT);
  };
  child.stdout.on("data", hear);
  child.stderr.on("data", hear);
  const ended = once(child, "exit");
  child.once("error", reject);
  child.once("exit", (code) => reject(new Error(`${program} ended with ${code}:\n${said.join("\n")}`)));
  await promise;
  return {
    child,
    async stop() {
      if (child.exitCode !== null) return;
      child.kill();
      await ended;
    },
  };
}

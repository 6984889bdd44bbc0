/** The processes of a run: each measured server and the load process, and questions to them. */
import { type ChildProcess, fork, type Serializable } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import * as v from "valibot";

export const HOST = "127.0.0.1";
const START_TIMEOUT_MS = 15_000;
const POLL_MS = 5;

/** What usage.mjs answers. */
export const Usage = v.object({
  cpuMicros: v.number(),
  residentBytes: v.number(),
  allocatedBytes: v.number(),
  loopDelayMs: v.number(),
  stallMs: v.number(),
  stallCpuMs: v.number(),
});
export type Usage = v.InferOutput<typeof Usage>;

export type MeasuredOptions = {
  cwd: string;
  /** Takes standard output and standard error. */
  logFile: string;
  flags?: readonly string[];
  /** What it has in its environment beside that of this process. */
  environment?: NodeJS.ProcessEnv;
};

/**
 * Starts a server with the preload that reports its usage; waits until its output says that it listens. If it fails
 * later, its output comes to standard error.
 */
export async function startMeasured(
  script: string,
  args: readonly string[],
  { cwd, logFile, flags = [], environment = {} }: MeasuredOptions,
): Promise<ChildProcess> {
  const log = openSync(logFile, "w", 0o600);
  const server = fork(script, args, {
    cwd,
    execArgv: [...flags, `--import=${join(import.meta.dirname, "usage.mjs")}`],
    stdio: ["ignore", log, log, "ipc"],
    env: { ...process.env, ...environment },
  });
  closeSync(log);
  const deadlineMs = performance.now() + START_TIMEOUT_MS;
  for (;;) {
    const said = readFileSync(logFile, "utf8");
    if (said.includes(" listens on ")) {
      server.once("exit", (code) => code && console.error(readFileSync(logFile, "utf8")));
      return server;
    }
    if (hasEnded(server) || performance.now() > deadlineMs) {
      await end(server);
      throw new Error(`the server did not start: ${said}`);
    }
    await sleep(POLL_MS);
  }
}

/** Sends one message to a child process and waits for its answer; the caller sends one at a time. */
export function ask<S extends v.GenericSchema>(
  child: ChildProcess,
  question: Serializable,
  schema: S,
): Promise<v.InferOutput<S>> {
  return new Promise((resolve, reject) => {
    const ended = () => {
      child.off("message", answered);
      reject(new Error(`a child process ended with ${child.exitCode ?? child.signalCode}`));
    };
    const answered = (answer: unknown) => {
      child.off("exit", ended);
      const parsed = v.safeParse(schema, answer);
      if (parsed.success) resolve(parsed.output);
      else reject(new v.ValiError(parsed.issues));
    };
    if (hasEnded(child)) return ended();
    child.once("exit", ended);
    child.once("message", answered);
    child.send(question);
  });
}

export async function end(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  await ended;
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

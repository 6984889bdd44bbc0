/** Starts the server as its own process, as `npm start` does, and waits for the line that says where it listens. */

import { type ChildProcess, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { whyNotFree } from "../src/adapters/free-ports.ts";
import { endsWithThis } from "./guard.ts";

/** The folder of the program that is started: these sources, or a release (`MANDATE_RELEASE`). */
export const PROGRAM = resolve(process.env.MANDATE_RELEASE ?? join(import.meta.dirname, ".."));

/** The file of that program that Node runs for a command line. */
export const MAIN = join(
  PROGRAM,
  JSON.parse(readFileSync(join(PROGRAM, "package.json"), "utf8")).bin.mandate,
);
const POLL_MS = 20;
const RELOAD_TIMEOUT_MS = 10_000;

export type ServerProcess = {
  child: ChildProcess;
  port: number;
  /** Every line of standard output so far. */
  lines: string[];
  /** Every line of standard error so far. */
  errors: string[];
  /** Has the configuration read again; the lines by which it was refused, and none once it is in force. */
  reload(): Promise<string[]>;
  stop(signal?: NodeJS.Signals): Promise<number | null>;
};

export type StartOptions = {
  /** Standard output of the server; without it, a pipe to this process. The port is then the configured one. */
  stdout?: number;
  /** How many files and connections the system lets it open. */
  filesMax?: number;
  /** What the server has in its environment beside that of this process. */
  environment?: NodeJS.ProcessEnv;
};

/** A server of which nothing is known yet: whether it listens, waits, or refuses to start. */
export function launchServer(
  configFile: string,
  { stdout, filesMax, environment = {} }: StartOptions = {},
): Pick<ServerProcess, "child" | "lines" | "errors"> {
  const folder = dirname(configFile);
  const permissions = [
    "--permission",
    "--allow-net",
    `--allow-fs-read=${PROGRAM}`,
    `--allow-fs-read=${folder}`,
  ];
  permissions.push(`--allow-fs-write=${folder}/*`);
  // Without these two, the platform ignores its cache of compiled modules.
  const cache = process.env.NODE_COMPILE_CACHE;
  if (cache !== undefined) permissions.push(`--allow-fs-read=${cache}`, `--allow-fs-write=${cache}/*`);
  // Without these, the platform writes no coverage.
  const coverage = process.env.NODE_V8_COVERAGE;
  if (coverage !== undefined) permissions.push("--allow-inspector", `--allow-fs-write=${coverage}/*`);
  const flags = [
    "--disable-warning=ExperimentalWarning",
    "--max-semi-space-size=16",
    "--max-old-space-size=512",
    ...permissions,
  ];
  const limited = filesMax === undefined ? [] : ["sh", "-c", `ulimit -n ${filesMax}; exec "$0" "$@"`];
  const [program = "", ...words] = [...limited, process.execPath, ...flags];
  const child = endsWithThis(
    spawn(program, [...words, MAIN, "--config", configFile], {
      stdio: ["ignore", stdout ?? "pipe", "pipe"],
      env: { ...process.env, ...environment },
    }),
  );
  const lines: string[] = [];
  const errors: string[] = [];
  if (child.stderr !== null) createInterface({ input: child.stderr }).on("line", (line) => errors.push(line));
  if (child.stdout !== null) createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
  return { child, lines, errors };
}

export async function startServer(configFile: string, options: StartOptions = {}): Promise<ServerProcess> {
  const { child, lines, errors } = launchServer(configFile, options);
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const exited = once(child, "exit");
  child.once("exit", (code) => reject(new Error(`the server ended with ${code}:\n${errors.join("\n")}`)));
  if (child.stdout === null) {
    waitForPort(JSON.parse(readFileSync(configFile, "utf8")).listen.port, child).then(resolve, reject);
  } else {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const port = listeningPort(line);
      if (port !== undefined) resolve(port);
    });
  }
  const port = await promise;
  return {
    child,
    port,
    lines,
    errors,
    async reload() {
      const known = lines.length;
      const reported = () =>
        lines
          .slice(known)
          .map(told)
          .filter((text) => /^(not )?reloaded: /.test(text));
      const { stdout } = child;
      if (stdout === null) throw new Error("the output of this server is not read");
      child.kill("SIGHUP");
      const signal = AbortSignal.timeout(RELOAD_TIMEOUT_MS);
      while (reported().length === 0) await once(stdout, "data", { signal });
      return reported().filter((line) => line.startsWith("not "));
    },
    async stop(signal = "SIGTERM") {
      child.kill(signal);
      await exited;
      return child.exitCode;
    },
  };
}

/** The message of a notice: prose in the development profile, else JSON. */
const told = (line: string): string => (line.startsWith("{") ? String(JSON.parse(line).message) : line);

/** The port in the line that says where the server listens: prose in the development profile, else JSON. */
function listeningPort(line: string): number | undefined {
  const told = /listens on .*:(\d+)\.$/.exec(line)?.[1];
  if (told !== undefined) return Number(told);
  if (!line.startsWith("{") || !line.includes('"event":"listening"')) return undefined;
  const { listener, port } = JSON.parse(line);
  return listener === "listen" ? port : undefined;
}

async function waitForPort(port: number, child: ChildProcess): Promise<number> {
  for (;;) {
    const socket = connect(port, "127.0.0.1");
    try {
      await once(socket, "connect");
      return port;
    } catch (fault) {
      if (child.exitCode !== null) throw fault;
      await sleep(POLL_MS);
    } finally {
      socket.destroy();
    }
  }
}

/**
 * Below the ports that the platforms give to connections and to listeners without a port of their own (from 32768), since
 * one of those would be taken while a server that listens there is started again.
 */
const PORTS = { from: 10_000, to: 32_000 };

/** Ports that were free a moment ago, and that no other process draws here while this one runs. */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = randomInt(PORTS.from, PORTS.to);
    if ((await whyNotFree({ host: "127.0.0.1", port })) === undefined && (await hold(port))) ports.add(port);
  }
  return [...ports];
}

/**
 * By a socket of UDP, which takes nothing from TCP and ends with the process: between two starts of a server, its port is
 * free to all others.
 */
async function hold(port: number): Promise<boolean> {
  const socket = createSocket("udp4");
  try {
    socket.bind({ port, address: "127.0.0.1", exclusive: true });
    await once(socket, "listening");
  } catch (fault) {
    socket.close();
    if (fault instanceof Error && "code" in fault && fault.code === "EADDRINUSE") return false;
    throw fault;
  }
  socket.unref();
  return true;
}

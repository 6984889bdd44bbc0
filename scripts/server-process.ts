/** Starts the server as its own process, as `npm start` does, and waits for the line that says where it listens. */

import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";

const ROOT = join(import.meta.dirname, "..");

export type ServerProcess = {
  child: ChildProcess;
  port: number;
  /** Every line of standard output so far. */
  lines: string[];
  stop(signal?: NodeJS.Signals): Promise<number | null>;
};

export async function startServer(configFile: string): Promise<ServerProcess> {
  const folder = dirname(configFile);
  const permissions = ["--permission", "--allow-net", `--allow-fs-read=${ROOT}`, `--allow-fs-read=${folder}`];
  const flags = ["--disable-warning=ExperimentalWarning", ...permissions, `--allow-fs-write=${folder}/*`];
  const child = spawn(process.execPath, [...flags, join(ROOT, "src/main.ts"), "--config", configFile], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const lines: string[] = [];
  const errors: string[] = [];
  createInterface({ input: child.stderr }).on("line", (line) => errors.push(line));
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  createInterface({ input: child.stdout }).on("line", (line) => {
    lines.push(line);
    const port = /listens on .*:(\d+)\.$/.exec(line)?.[1];
    if (port !== undefined) resolve(Number(port));
  });
  child.once("exit", (code) => reject(new Error(`the server ended with ${code}:\n${errors.join("\n")}`)));
  const port = await promise;
  return {
    child,
    port,
    lines,
    async stop(signal = "SIGTERM") {
      if (child.exitCode === null && child.signalCode === null) {
        const exited = once(child, "exit");
        child.kill(signal);
        await exited;
      }
      return child.exitCode;
    },
  };
}

/** Ports that were free a moment ago. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, "127.0.0.1"));
  await Promise.all(servers.map((server) => once(server, "listening")));
  const ports = servers.map((server) => {
    const address = server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  });
  for (const server of servers) server.close();
  await Promise.all(servers.map((server) => once(server, "close")));
  return ports;
}

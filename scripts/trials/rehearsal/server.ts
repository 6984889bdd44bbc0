/** A server that a command line of the shell starts. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { dirname } from "node:path";
import { createInterface } from "node:readline";

export type Server = {
  pid: number;
  /** Throws what the server said if it has ended. */
  listens(): boolean;
  /** The message of the first event of this name in the log. */
  says(event: string): string | undefined;
  /** Its exit code. */
  end(signal: NodeJS.Signals): Promise<number | null>;
};

/** With Node of this process first in the path. */
export function startServer(command: string): Server {
  const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env.PATH}` };
  const child = spawn("/bin/sh", ["-c", `exec ${command}`], { env, stdio: ["ignore", "pipe", "pipe"] });
  const [lines, errors]: [string[], string[]] = [[], []];
  createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
  createInterface({ input: child.stderr }).on("line", (line) => errors.push(line));
  const hasEnded = (): boolean => (child.exitCode ?? child.signalCode) !== null;
  return {
    pid: child.pid ?? assert.fail(),
    listens() {
      assert.ok(!hasEnded(), [...lines.slice(-3), ...errors].join("\n"));
      return lines.some((line) => /"event":"listening".*"listener":"listen"/.test(line));
    },
    says(event) {
      const line = lines.find((each) => each.includes(`"event":"${event}"`));
      return line === undefined ? undefined : String(JSON.parse(line).message);
    },
    async end(signal) {
      const gone = hasEnded() ? undefined : once(child, "exit");
      child.kill(signal);
      await gone;
      return child.exitCode;
    },
  };
}

/** The programs of the pages for developers, as printed there, in processes of their own. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

const ROOT = join(import.meta.dirname, "../..");

const python = (...words: string[]): boolean => spawnSync("python3", words).status === 0;
/** Why the programs in Python do not run here. */
export const NO_PYTHON = python("--version") ? false : "there is no python3";
const PYJWT = "import jwt, cryptography; assert [*map(int, jwt.__version__.split('.')[:2])] >= [2, 14]";
export const NO_PYJWT = python("-c", PYJWT) ? false : 'python3 has no "pyjwt[crypto]>=2.14"';

/** By their names. */
export function programs(): Map<string, string> {
  const pages = [
    "http/developers",
    "http/developers-apis",
    "http/signals",
    "people/README",
    "policy/details",
    "audit/proofs",
    "policy/transactions",
  ];
  return programsOn(pages, "ts|python");
}

/** Those of the page for Spring. */
export const javaPrograms = (): Map<string, string> => programsOn(["http/developers-spring"], "java");

function programsOn(pages: readonly string[], languages: string): Map<string, string> {
  const text = pages.map((page) => readFileSync(join(ROOT, `src/${page}.md`), "utf8")).join("\n");
  const blocks = text.matchAll(new RegExp(`^\`\`\`(?:${languages}) (\\S+)\\n([\\s\\S]*?)^\`\`\`$`, "gm"));
  return new Map([...blocks].map(([, name = "", program = ""]) => [name, program]));
}

export type Program = { child: ChildProcess; errors: string[]; next(): Promise<string> };

export type Programs = {
  folder: string;
  run(name: string, environment: Record<string, string>): Program;
  /** Runs an API, until it listens. */
  serve(name: string, environment: Record<string, string>): Promise<void>;
  stop(): Promise<void>;
};

/** Writes the programs into a new folder. */
export function layPrograms(folder: string): Programs {
  mkdirSync(folder);
  for (const [name, text] of programs()) writeFileSync(join(folder, name), text);
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  const running: ChildProcess[] = [];

  const run = (name: string, environment: Record<string, string>): Program => {
    const command = name.endsWith(".py") ? "python3" : process.execPath;
    const { PATH, NODE_COMPILE_CACHE } = process.env;
    const env = { PATH, NODE_COMPILE_CACHE, ...environment };
    const child = spawn(command, [name], { cwd: folder, stdio: ["ignore", "pipe", "pipe"], env });
    running.push(child);
    const errors: string[] = [];
    createInterface({ input: child.stderr }).on("line", (line) => errors.push(line));
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const next = async (): Promise<string> => {
      const { value, done } = await lines.next();
      return done ? assert.fail(`${name} ended:\n${errors.join("\n")}`) : value;
    };
    return { child, errors, next };
  };

  return {
    folder,
    run,
    async serve(name, environment) {
      assert.equal(await run(name, environment).next(), "listening");
    },
    async stop() {
      for (const child of running) {
        child.kill();
        if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
      }
    },
  };
}

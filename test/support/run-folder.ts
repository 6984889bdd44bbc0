/** The folder of a test run, for everything that its processes write; `npm run test:quick` needs nothing else. */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** Names the folder of a run, where what many tests copy is kept. */
export const SHARED_FOLDER = "MANDATE_TEST_FOLDER";

const ROOT = join(import.meta.dirname, "../..");
const CACHE = join(ROOT, "node_modules/.cache");

/**
 * Here the platform keeps compiled modules, each by the digest of its text, since hundreds of processes load the same
 * ones. They outlast a run, as in a run each test file is loaded only once; `npm ci` removes them.
 */
const COMPILED = join(CACHE, "compiled");

const MODULES = import.meta.resolve("./modules.ts");

const MEMORY = "/dev/shm";
const MEMORY_BYTES_MIN = 2 ** 31;

let folder: string | undefined;

/** The processes of the tests, and those that they start, inherit this environment. */
export function globalSetup(): void {
  folder = makeFolder(MEMORY) ?? makeFolder(tmpdir());
  if (folder === undefined) throw new Error(`nothing can be run in ${tmpdir()}`);
  process.env.TMPDIR = folder;
  process.env.NODE_COMPILE_CACHE = COMPILED;
  // As a URL, since the path may have a space.
  process.env.NODE_OPTIONS = `${process.env.NODE_OPTIONS ?? ""} --import=${MODULES}`.trim();
  mkdirSync(COMPILED, { recursive: true });
  writeSources(join(CACHE, "sources"));
  process.env[SHARED_FOLDER] = folder;
}

export function globalTeardown(): void {
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
}

/** What `modules.ts` reads: a line that says where each file of `src` begins and ends, then their texts without types. */
function writeSources(file: string): void {
  const places: Record<string, [from: number, to: number]> = {};
  const texts: Buffer[] = [];
  let to = 0;
  for (const path of globSync(join(ROOT, "src/**/*.ts"))) {
    try {
      const text = Buffer.from(stripTypeScriptTypes(readFileSync(path, "utf8")));
      places[pathToFileURL(path).href] = [to, to + text.length];
      to += text.length;
      texts.push(text);
    } catch {
      // A fault in its syntax: the platform reads this file itself, and tells where the fault is.
    }
  }
  // As one step, since another run may read it.
  const next = `${file}.${process.pid}`;
  writeFileSync(next, Buffer.concat([Buffer.from(`${JSON.stringify(places)}\n`), ...texts]));
  renameSync(next, file);
}

/** In memory where there is room, since stores sync at every commit. */
function makeFolder(parent: string): string | undefined {
  let made: string | undefined;
  try {
    const { bavail, bsize } = statfsSync(parent);
    if (parent === MEMORY && bavail * bsize < MEMORY_BYTES_MIN) return undefined;
    made = mkdtempSync(join(parent, "mandate-run-"));
    // PostgreSQL runs as another user.
    chmodSync(made, 0o755);
    const script = join(made, "runs");
    writeFileSync(script, "#!/bin/sh\n", { mode: 0o755 });
    if (spawnSync(script).status === 0) return made;
  } catch {
    // Not on this machine.
  }
  if (made !== undefined) rmSync(made, { recursive: true });
  return undefined;
}

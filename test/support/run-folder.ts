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
import { removedWithThis } from "../../scripts/guard.ts";

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

/** The first line of what `modules.ts` reads: where each file begins and ends, and which file a package's name means. */
export type Sources = {
  places: Record<string, [from: number, to: number]>;
  packages: Record<string, string>;
};

/** That line, then the texts: of `src`, without types, and of the packages that it imports, if those are modules. */
function writeSources(file: string): void {
  const places: Sources["places"] = {};
  const packages: Sources["packages"] = {};
  const texts: Buffer[] = [];
  let to = 0;
  const add = (path: string, text: Buffer): void => {
    places[pathToFileURL(path).href] = [to, to + text.length];
    to += text.length;
    texts.push(text);
  };
  for (const path of globSync(join(ROOT, "src/**/*.ts"))) {
    try {
      add(path, Buffer.from(stripTypeScriptTypes(readFileSync(path, "utf8"))));
    } catch {
      // A fault in its syntax: the platform reads this file itself, and tells where the fault is.
    }
  }
  for (const [, specifier = ""] of Buffer.concat(texts)
    .toString()
    .matchAll(/ from "([a-z][\w./-]+)"/g)) {
    if (packages[specifier] === undefined) packages[specifier] = import.meta.resolve(specifier);
  }
  for (const path of globSync(
    join(ROOT, "node_modules/{jose/dist/webapi,postgres/src,valibot/dist}/**/*.{js,mjs}"),
  )) {
    add(path, readFileSync(path));
  }
  // As one step, since another run may read it.
  const next = `${file}.${process.pid}`;
  writeFileSync(next, Buffer.concat([Buffer.from(`${JSON.stringify({ places, packages })}\n`), ...texts]));
  renameSync(next, file);
}

/** In memory where there is room, since stores sync at every commit. */
function makeFolder(parent: string): string | undefined {
  let made: string | undefined;
  try {
    const { bavail, bsize } = statfsSync(parent);
    if (parent === MEMORY && bavail * bsize < MEMORY_BYTES_MIN) return undefined;
    made = removedWithThis(mkdtempSync(join(parent, "mandate-run-")));
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

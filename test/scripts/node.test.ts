/** The launcher of every npm script: which Node it runs, and its message if none is new enough. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";

const LAUNCHER = join(import.meta.dirname, "../../scripts/node");
const INSTALLED = "node_modules/node-any-platform/bin/node";
const MACHINE = "machine/node";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "mandate launcher "));
  mkdirSync(join(folder, "scripts"));
  copyFileSync(LAUNCHER, join(folder, "scripts/node"));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** A stand-in for Node: prints a version for --version, else its own path and its arguments. */
function place(file: string, version: string): void {
  mkdirSync(dirname(join(folder, file)), { recursive: true });
  const script = `#!/bin/sh\nif [ "$1" = --version ]; then echo ${version}; else echo "${file} $*"; fi\n`;
  writeFileSync(join(folder, file), script, { mode: 0o755 });
}

const run = () =>
  spawnSync("/bin/sh", [join(folder, "scripts/node"), "a file.ts", "--flag"], {
    encoding: "utf8",
    env: { PATH: `${join(folder, "machine")}:/usr/bin:/bin` },
  });

test("the launcher prefers the Node that npm ci installed, whether or not npm linked it", () => {
  place(INSTALLED, "v26.10.0");
  place(MACHINE, "v27.0.0");
  assert.equal(run().stdout, `${INSTALLED} a file.ts --flag\n`);
});

test("the launcher falls back to the machine's own Node where it is new enough", () => {
  place(MACHINE, "v26.0.0");
  assert.equal(run().stdout, `${MACHINE} a file.ts --flag\n`);
});

test("the launcher prints in one line what is missing and which version it found", () => {
  place(MACHINE, "v22.19.0");
  const { status, stdout, stderr } = run();
  assert.equal(status, 1);
  assert.equal(stdout, "");
  assert.match(stderr, /^Node 26 or newer is missing \(found: v22\.19\.0\)\. [^\n]+\n$/);
});

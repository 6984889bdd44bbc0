/**
 * The reading lists (src/reading.txt) against what servers load and call: as a reviewer of a deployment without users reads
 * one part of src, that part is what runs there.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { LISTS, readEntries } from "../scripts/reading.ts";
import { type Coverage, readCoverage, writesCoverage } from "./support/coverage.ts";
import { openMachines } from "./support/machines.ts";
import { freshDatabase, type SharedPostgres, sharePostgres } from "./support/postgres.ts";
import { startProvider, type TestProvider } from "./support/provider.ts";
import { stop } from "./support/stop.ts";
import { openUsers, playUsers } from "./support/users.ts";
import { makeWorld } from "./support/world.ts";

const ROOT = join(import.meta.dirname, "..");
const SRC = join(ROOT, dirname(LISTS));
const VARIANTS = join(ROOT, "test/conformance/product.test.ts");

const entries = readEntries(readFileSync(join(ROOT, LISTS), "utf8"));
const read = (file: string): string => readFileSync(join(SRC, file), "utf8");
const sources = globSync("**/*.ts", { cwd: SRC }).sort();

let folder: string;
let database: SharedPostgres;
let provider: TestProvider;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "mandate reading "));
  [database, provider] = await Promise.all([sharePostgres(), startProvider()]);
});
after(() => stop(provider, database, () => rmSync(folder, { recursive: true, force: true })));

/** What the servers load and call that `work` starts and stops. */
async function coverageOf(name: string, work: () => Promise<unknown>): Promise<Coverage> {
  const place = join(folder, name);
  mkdirSync(place);
  const before = { ...process.env };
  // What this process starts inherits its environment.
  Object.assign(process.env, writesCoverage(place));
  try {
    await work();
  } finally {
    process.env = before;
  }
  return readCoverage(place);
}

async function playVariants(): Promise<void> {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  await promisify(execFile)(process.execPath, [VARIANTS], { env });
}

async function playMachines(): Promise<void> {
  const machines = await openMachines();
  try {
    await machines.play();
  } finally {
    await machines.stop();
  }
}

async function playPeople(): Promise<void> {
  const world = await openUsers(provider);
  try {
    await playUsers(world, provider);
  } finally {
    await world.stop();
  }
}

/** It only starts: what it answers stands in the lists already. */
async function startOnPostgres(): Promise<void> {
  const world = await makeWorld({}, { postgres: await freshDatabase(database) });
  await world.stop();
}

const TRUNK = ["Core", "Options", "Operators", "Start", "Background", "Trail"];
const BESIDE = ["Background", "Trail"];

test("each file of src stands in the list of the requests or processes that need it", async () => {
  const variants = await coverageOf("variants", playVariants);
  const machines = await coverageOf("machines", playMachines);
  const people = await coverageOf("people", playPeople);
  const postgres = await coverageOf("postgres", startOnPostgres);
  const alone = variants.loaded.union(machines.loaded);
  const starting = variants.starting.union(machines.starting);

  /** The lists in which a file may stand, by what runs of it. */
  function listsFor(file: string): readonly string[] {
    const forPeople = people.starting.has(file) || people.serving.has(file) ? ["People"] : [];
    if (alone.has(file)) {
      // A table of constants serves where it is loaded; the entry point runs as it is loaded.
      if (!machines.functional.has(file) || file === "main.ts") return [...TRUNK, "People"];
      const serving = variants.serving.has(file) || machines.serving.has(file);
      if (starting.has(file)) return serving ? TRUNK : ["Start", ...BESIDE];
      // What works by itself may do so at any time.
      if (variants.serving.has(file)) return ["Core", ...BESIDE];
      return serving ? ["Core", "Options", "Operators", ...BESIDE] : ["Start", ...BESIDE, ...forPeople];
    }
    if (people.loaded.has(file)) return people.functional.has(file) ? forPeople : ["People"];
    if (postgres.loaded.has(file)) return ["PostgreSQL"];
    return importersOf(file).flatMap((importer) =>
      LOADERS.includes(importer) ? ["Commands"] : listOf(importer),
    );
  }

  const wrong = sources.flatMap((file) => {
    const [list = "none"] = listOf(file);
    const lists = [...new Set(listsFor(file))];
    if (lists.includes(list)) return [];
    return [`${file} stands in ${list}, and belongs in ${lists.join(" or ") || "none"}`];
  });
  assert.ok(wrong.length === 0, `the lists of ${LISTS}:\n${wrong.join("\n")}`);
});

test("the first screen names at most 30 files, each of Core, and once", () => {
  const [first = ""] = readFileSync(join(SRC, "README.md"), "utf8").split("\n## By attack\n", 1);
  const named = [...first.matchAll(/\]\(([^)]+)\)/g)].map(([, file = ""]) => file);
  assert.ok(named.length > 0 && named.length <= 30, `${named.length} files`);
  assert.deepEqual(
    named.filter((file, at) => named.indexOf(file) !== at || !listOf(file).includes("Core")),
    [],
  );
});

const listOf = (file: string): string[] =>
  entries.filter((entry) => entry.file === file).map(({ list }) => list);

/** They load the commands, each when it is called. */
const LOADERS = ["main.ts", "cli/commands.ts"];

/** For a file that no server loads: a command, or types. */
const importersOf = (file: string): string[] =>
  sources.filter((source) =>
    [...read(source).matchAll(/(?: from |\bimport\()"(\.[^"]+)"/g)].some(
      ([, name = ""]) => join(dirname(source), name) === file,
    ),
  );

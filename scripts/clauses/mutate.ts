/**
 * Breaks the lines that enforce clauses, one after another, in a copy of the tree, and runs the tests that name the
 * clause: `npm run clauses -- --mutate`. A trial for a developer, bounded by its time; test/clauses/README.md says more.
 */
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, posix } from "node:path";
import { pathToFileURL } from "node:url";
import { type Prng, prng } from "../../test/support/prng.ts";
import type { Sources } from "../../test/support/run-folder.ts";
import { type Mutation, mutationsByLine, mutationsOf } from "./mutations.ts";
import {
  allClauses,
  type Clause,
  findLines,
  findNames,
  idFinder,
  isMet,
  isServer,
  type Places,
  type Source,
  type Tree,
} from "./register.ts";

/** `anywhere`: any line of code or SQL is broken, and the tests that are near to it are run. */
export type MutateOptions = { seed: number; minutes: number; clauses: number; anywhere: boolean };

/** `ids`: the clauses whose tests are run; `whole`: test files of which all tests are run, before those. */
type Trial = { file: string; mutation: Mutation; ids: string[]; whole: string[] };
type Outcome = "died" | "hung" | "NOT NOTICED" | "refused by the type check" | "no test ran";

const RUN_TIMEOUT_MS = 120_000;
const LINGER_MS = 5000;

/** Without packages, which are hard links: nothing that a test writes reaches the tree. */
function copyTree(root: string): string {
  const copy = mkdtempSync(join(tmpdir(), "clauses-mutate-"));
  const left = new Set([".git", "node_modules", "data"]);
  const names = readdirSync(root).filter((name) => !left.has(name));
  execFileSync("cp", ["-a", ...names.map((name) => join(root, name)), copy]);
  execFileSync("cp", ["-al", join(root, "node_modules"), copy]);
  return copy;
}

function shuffled<T>(random: Prng, from: readonly T[]): T[] {
  const rest = [...from];
  return from.map(() => rest.splice(random.below(rest.length), 1)[0] as T);
}

const fileOf = (place: string): string => place.replace(/:.*/s, "");
const lineOf = (place: string): number => Number(/:(\d+)/.exec(place)?.[1]);

/** Pure tests first, since they take least, and those of whole servers last. */
const COSTS = ["spec", "policy", "settings", "audit", "config", "http", "flows", "people", "adapters"];
const cost = (file: string): number => {
  const at = COSTS.indexOf(file.split("/")[1] ?? "");
  return at < 0 ? COSTS.length : at;
};
const byCost = (files: Iterable<string>): string[] => [...new Set(files)].sort((a, b) => cost(a) - cost(b));

/** The files that import each file. */
function importers(sources: readonly Source[]): (file: string) => readonly string[] {
  const by = new Map<string, string[]>();
  for (const { file, text } of sources) {
    for (const [, path = ""] of text.matchAll(/(?:from|import) "(\.[^"]+)"/g)) {
      const imported = posix.join(posix.dirname(file), path);
      by.set(imported, [...(by.get(imported) ?? []), file]);
    }
  }
  return (file) => by.get(file) ?? [];
}

const isTest = (file: string): boolean => file.endsWith(".test.ts");

/** The test files that import one of these, or else what imports it, and so on for a few steps. */
function testsNear(files: readonly string[], of: (file: string) => readonly string[]): string[] {
  let level = files;
  for (let steps = 0; steps < 4; steps++) {
    const tests = level.filter(isTest);
    if (tests.length > 0) return byCost(tests);
    level = [...new Set(level.flatMap(of))];
  }
  return [];
}

/** The test files in which tests of these ids run: tests that stand in another file run where it is imported. */
function filesNaming(
  names: Places,
  of: (file: string) => readonly string[],
  ids: readonly string[],
): string[] {
  const found = ids.flatMap((id) => (names.get(id) ?? []).map(fileOf));
  return byCost(found.flatMap((file) => (isTest(file) ? [file] : testsNear([file], of))));
}

/** A mutation of each of the clauses in an order that the seed gives: of a first line of all, then of a second. */
function trialsOfClauses({ register, code }: Tree, names: Places, random: Prng): Trial[] {
  const server = code.filter(({ file }) => isServer(file));
  const lines = findLines(register, server);
  const owned = new Map(
    server.map(({ file, text }) => {
      const places = [...lines.values()].flat().filter((place) => fileOf(place) === file);
      return [file, mutationsByLine(file, text, [...new Set(places.map(lineOf))])] as const;
    }),
  );
  const mine = shuffled(random, allClauses(register).filter(isMet))
    .filter(({ id }) => names.has(id))
    .map(({ id }: Clause) =>
      shuffled(random, lines.get(id) ?? []).flatMap((place): Trial[] => {
        const file = fileOf(place);
        const all = owned.get(file)?.get(lineOf(place)) ?? [];
        return all.length === 0 ? [] : [{ file, mutation: random.pick(all), ids: [id], whole: [] }];
      }),
    );
  const rounds = Math.max(...mine.map(({ length }) => length));
  return Array.from({ length: rounds }, (_, round) => mine.flatMap((one) => one[round] ?? [])).flat();
}

/** How many of the test files that import a file are run, and how far around a mutation ids are looked for. */
const NEAR_FILES = 8;
const NEAR_CHARACTERS = 1500;

/** Mutations of any line; their tests are those of files that import the file, then those of the ids around it. */
function* trialsAnywhere(
  { register, code, tests }: Tree,
  of: (file: string) => readonly string[],
  random: Prng,
): Iterable<Trial> {
  const idsOf = idFinder(register);
  const weighed = code
    .filter(({ file }) => isServer(file))
    .flatMap((source) => {
      const all = mutationsOf(source.file, source.text);
      return all.map((mutation) => ({ source, mutation }));
    });
  for (;;) {
    const { source, mutation } = random.pick(weighed);
    const { file, text } = source;
    const ofStores = tests
      .map((one) => one.file)
      .filter((one) => /^test\/adapters\/store\/.*\.test\.ts$/.test(one));
    const whole = file.endsWith(".sql") ? ofStores : testsNear([file], of).slice(0, NEAR_FILES);
    const around = text.slice(Math.max(0, mutation.start - NEAR_CHARACTERS), mutation.end + NEAR_CHARACTERS);
    yield { file, mutation, ids: [...new Set(idsOf(around))], whole };
  }
}

/**
 * Of one file, as a suite: Node runs an `after` of a whole file before its `before` is done if a pattern leaves none of its
 * tests, and what that opened keeps the process. One that failed is given time to end, since it then keeps for the next
 * mutant what it compiled.
 */
function runFile(copy: string, options: readonly string[], file: string): Promise<Outcome> {
  const name = file.replace(/^test\/(.*)\.test\.ts$/, "$1");
  const script = `import { runFiles } from "./test/support/run-files.ts"; await runFiles(${JSON.stringify(name)});`;
  const args = ["--disable-warning=ExperimentalWarning", "--test-reporter=tap", ...options];
  const { NODE_TEST_CONTEXT: _, MANDATE_TEST_FOLDER: __, ...env } = process.env;
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  const run = spawn(process.execPath, [...args, "--input-type=module", "--eval", script], {
    cwd: copy,
    env,
    detached: true,
    stdio: ["ignore", "pipe", "ignore"],
  });
  const kill = (): void => {
    if (run.pid !== undefined && run.exitCode === null) process.kill(-run.pid, "SIGKILL");
  };
  let said = "";
  const hang = (): void => {
    resolve("hung");
    kill();
  };
  const timers = [setTimeout(hang, RUN_TIMEOUT_MS)];
  run.stdout.on("data", (part) => {
    said += part;
    if (timers.length === 1 && /^\s*not ok /m.test(said)) timers.push(setTimeout(kill, LINGER_MS));
  });
  run.on("close", (code) => {
    for (const timer of timers) clearTimeout(timer);
    if (code !== 0) resolve("died");
    resolve(/^# pass 0$/m.test(said) ? "no test ran" : "NOT NOTICED");
  });
  return promise;
}

/** Until one fails. */
async function runTests(
  copy: string,
  options: readonly string[],
  files: readonly string[],
): Promise<Outcome> {
  let worst: Outcome = "no test ran";
  for (const file of files) {
    const outcome = await runFile(copy, options, file);
    if (isNoticed(outcome)) return outcome;
    if (outcome === "NOT NOTICED") worst = outcome;
  }
  return worst;
}

/** The text of a file of the copy, of which the processes of a test run read the texts without types from elsewhere. */
function writer(copy: string): (file: string, text: string) => void {
  const cache = join(copy, "node_modules/.cache/sources");
  const whole = readFileSync(cache);
  const start = whole.indexOf("\n");
  const { places, packages }: Sources = JSON.parse(whole.toString("utf8", 0, start));
  return (file, text) => {
    writeFileSync(join(copy, file), text);
    const { [pathToFileURL(join(copy, file)).href]: place, ...others } = places;
    if (place === undefined && file.endsWith(".ts"))
      throw new Error(`${file} is not among the texts of the run`);
    const head = JSON.stringify({ places: others, packages });
    writeFileSync(cache, Buffer.concat([Buffer.from(head), whole.subarray(start)]));
  };
}

const isNoticed = (outcome: Outcome): boolean => outcome === "died" || outcome === "hung";

async function judge(copy: string, trial: Trial, named: readonly string[]): Promise<Outcome> {
  const pattern = `--test-name-pattern=(?<![0-9A-Za-z.-])(?:${trial.ids.map(RegExp.escape).join("|")})(?![0-9A-Za-z-])`;
  const first = trial.whole.length === 0 ? "no test ran" : await runTests(copy, [], trial.whole);
  if (isNoticed(first)) return first;
  const rest = named.filter((file) => !trial.whole.includes(file));
  const second = rest.length === 0 ? "no test ran" : await runTests(copy, [pattern], rest);
  if (isNoticed(second)) return second;
  // Only what no test noticed is type-checked: what cannot be compiled cannot be landed.
  const lax = [
    "--noUnusedLocals",
    "false",
    "--noUnusedParameters",
    "false",
    "--allowUnreachableCode",
    "true",
  ];
  const program = join(copy, "node_modules/typescript/bin/tsc");
  const settings = join(copy, "tsconfig.src.json");
  writeFileSync(settings, '{ "extends": "./tsconfig.json", "include": ["src"] }');
  const info = ["--incremental", "--tsBuildInfoFile", join(copy, "node_modules/.cache/mutate.json")];
  const { NODE_OPTIONS: _, ...env } = process.env;
  try {
    execFileSync(process.execPath, [program, "-p", settings, ...lax, ...info], {
      cwd: copy,
      env,
      stdio: "ignore",
    });
  } catch {
    return "refused by the type check";
  }
  return second === "no test ran" ? first : second;
}

const short = (text: string): string => text.replaceAll(/\s+/g, " ").slice(0, 90);

/** A line for each mutant, and at the end how many died, of the whole and by document. */
export async function* mutate(root: string, tree: Tree, options: MutateOptions): AsyncIterable<string> {
  const { seed, minutes, clauses, anywhere } = options;
  const end = Date.now() + minutes * 60_000;
  const random = prng(seed);
  const names = findNames(tree.register, tree.tests);
  const of = importers([...tree.code, ...tree.tests]);
  yield `seed ${seed}, at most ${minutes} minutes and ${clauses} mutants`;
  const copy = copyTree(root);
  // Of the copy, so that its caches are written there.
  const { globalSetup, globalTeardown } = await import(join(copy, "test/support/run.ts"));
  await globalSetup();
  const write = writer(copy);
  const counts = new Map<string, Map<Outcome, number>>();
  const count = (of: string, outcome: Outcome) => {
    const own = counts.get(of) ?? new Map<Outcome, number>();
    counts.set(of, own.set(outcome, (own.get(outcome) ?? 0) + 1));
  };
  const documents = new Map(
    [...tree.register].flatMap(([name, document]) => document.clauses.map(({ id }) => [id, name] as const)),
  );
  const trials = anywhere ? trialsAnywhere(tree, of, random) : trialsOfClauses(tree, names, random);
  let done = 0;
  let isStopped = false;
  // The copy is removed then, behind the mutant that runs.
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => (isStopped = true));
  try {
    for (const trial of trials) {
      if (isStopped || done === clauses || Date.now() > end) break;
      const { file, mutation, ids } = trial;
      const named = filesNaming(names, of, ids);
      const { text = "" } = tree.code.find((source) => source.file === file) ?? {};
      if (done === 0 && !anywhere && (await runTests(copy, [], named.slice(0, 1))) !== "NOT NOTICED")
        throw new Error(`a test of ${named[0]} fails without a mutation`);
      const { start, end: stop, to, what } = mutation;
      write(file, text.slice(0, start) + to + text.slice(stop));
      const outcome = await judge(copy, trial, named);
      write(file, text);
      done++;
      const line = text.slice(0, start).split("\n").length;
      const shown = anywhere ? file : (ids[0] ?? "");
      count("total", outcome);
      count(anywhere ? file.split("/").slice(0, 2).join("/") : (documents.get(shown) ?? ""), outcome);
      const place = `${file}:${line}`;
      yield `${outcome}: ${anywhere ? place : `${shown} ${place}`} ${what}: ${short(text.slice(start, stop))}`;
    }
  } finally {
    await globalTeardown();
    rmSync(copy, { recursive: true, force: true });
  }
  for (const [of, outcomes] of counts) {
    const noticed = (outcomes.get("died") ?? 0) + (outcomes.get("hung") ?? 0);
    const all = noticed + (outcomes.get("NOT NOTICED") ?? 0) + (outcomes.get("no test ran") ?? 0);
    const each = [...outcomes].map(([outcome, number]) => `${number} ${outcome}`).join(", ");
    yield `${of}: ${all === 0 ? "none counts" : `${((100 * noticed) / all).toFixed(1)} % died`} (${each})`;
  }
}

/** What a run of the tests reports (`reporter.ts` writes it), and whether it may be believed for this tree. */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { nameReader, type Places, type Register, type Tree } from "./register.ts";

export const REPORT_FILE = ".test-report.jsonl";

/** A test with the names of what encloses it, its own last. "not run here": it was skipped, with its reason. */
export type TestRun = {
  file: string;
  line: number;
  names: string[];
  outcome: "passed" | "failed" | "not run here";
  reason?: string;
};
/** One line of the report: the tree and the options of the run, a test, a test file that ended, the end. */
export type ReportLine = { digest: string; limits: string[] } | { test: TestRun } | { ran: string } | "ended";

/** What is known of the tests that name an id; "named": from the text alone. */
export type Evidence = Map<string, TestRun["outcome"] | "named">;

/** Changes when a file of code or tests changes; the register may change without a new run. */
export function digestOf({ code, tests }: Pick<Tree, "code" | "tests">): string {
  const hash = createHash("sha256");
  for (const { file, text } of [...code, ...tests]) hash.update(JSON.stringify([file, text]));
  return hash.digest("base64url");
}

export type Judged = { tests: TestRun[] } | { doubt: string };

/** The tests of a report, or why it says nothing about this tree. */
export function judgeReport(text: string, tree: Pick<Tree, "code" | "tests">): Judged {
  const lines = text.trimEnd().split("\n");
  // A run that was killed leaves half a line and no end.
  if (lines.at(-1) !== JSON.stringify("ended")) return { doubt: "its run did not come to an end" };
  const read: ReportLine[] = lines.map((line) => JSON.parse(line));
  const head = read.find((line) => typeof line === "object" && "digest" in line);
  if (head?.digest !== digestOf(tree)) return { doubt: "code or tests have changed since its run" };
  if (head.limits.length > 0) return { doubt: `its run was limited by ${head.limits.join(" ")}` };
  const ran = new Set(read.flatMap((line) => (typeof line === "object" && "ran" in line ? [line.ran] : [])));
  const [missing, ...more] = tree.tests
    .map(({ file }) => file)
    .filter((file) => file.endsWith(".test.ts") && !ran.has(file));
  if (missing !== undefined) {
    return { doubt: `its run lacks ${missing}${more.length > 0 ? ` and ${more.length} more` : ""}` };
  }
  return { tests: read.flatMap((line) => (typeof line === "object" && "test" in line ? [line.test] : [])) };
}

/** The report of the last run, if it speaks of this tree. */
export function loadReport(root: string, tree: Pick<Tree, "code" | "tests">): Judged {
  const file = join(root, REPORT_FILE);
  if (!existsSync(file)) return { doubt: "there is none" };
  return judgeReport(readFileSync(file, "utf8"), tree);
}

/** A function that finds the ids that a test, or what encloses it, is named after. */
function testReader(register: Register): (test: TestRun) => string[] {
  const idsOfName = nameReader(register);
  return ({ names }) => names.flatMap(idsOfName);
}

/** One failure counts against an id, one pass for it; a test that could not run here counts for nothing. */
export function evidenceOf(register: Register, tests: TestRun[]): Evidence {
  const evidence: Evidence = new Map();
  const idsOfTest = testReader(register);
  for (const outcome of ["not run here", "passed", "failed"] as const) {
    for (const test of tests.filter((test) => test.outcome === outcome)) {
      for (const id of idsOfTest(test)) evidence.set(id, outcome);
    }
  }
  return evidence;
}

/** The tests by the ids that they name, each with what became of it. */
export function findRuns(register: Register, tests: TestRun[]): Places {
  const found: Places = new Map();
  const idsOfTest = testReader(register);
  for (const test of tests) {
    const { file, line, names, outcome, reason } = test;
    const end = reason === undefined ? outcome : `${outcome}: ${reason}`;
    const place = `${file}:${line} ${names.join(" > ")} (${end})`;
    for (const id of new Set(idsOfTest(test))) found.set(id, [...(found.get(id) ?? []), place]);
  }
  return found;
}

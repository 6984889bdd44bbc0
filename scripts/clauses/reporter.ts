/**
 * A reporter for node:test that writes REPORT_FILE: `--test-reporter=./scripts/clauses/reporter.ts`.
 * It names the tree and the options of the run, so that neither an old run nor part of one counts as a whole.
 */
import { join, relative } from "node:path";
import type { TestEvent } from "node:test/reporters";
import { loadTree } from "./register.ts";
import { digestOf, type ReportLine, type TestRun } from "./report.ts";

const ROOT = join(import.meta.dirname, "../..");
/** Options by which tests of a file stay out without a word in its summary. */
const LIMITS = /^--(experimental-)?test-(name-pattern|skip-pattern|only|tag-filter|rerun-failures)\b/;

/** Whether this is the name of a whole test file (`test/support/run-files.ts`). */
const isFile = (name = ""): boolean => name.endsWith(".test.ts");

const line = (value: ReportLine): string => `${JSON.stringify(value)}\n`;

function outcomeOf(
  event: TestEvent & { type: "test:pass" | "test:fail" },
): Pick<TestRun, "outcome" | "reason"> {
  const { skip, todo } = event.data;
  if (event.type === "test:fail") return { outcome: "failed" };
  const excuse = skip ?? todo ?? false;
  if (excuse === false) return { outcome: "passed" };
  return { outcome: "not run here", reason: excuse === true ? "no reason given" : excuse };
}

export default async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const options = [...process.execArgv, ...(process.env.NODE_OPTIONS ?? "").split(" ")];
  yield line({ digest: digestOf(loadTree(ROOT)), limits: options.filter((option) => LIMITS.test(option)) });
  const names: string[] = [];
  for await (const event of events) {
    // Reported in the order of the files, each test after what encloses it has started.
    if (event.type === "test:start") names.splice(event.data.nesting, names.length, event.data.name);
    if (event.type !== "test:pass" && event.type !== "test:fail") continue;
    const { type } = event.data.details;
    if (type === "suite" && isFile(event.data.name)) yield line({ ran: event.data.name });
    // A suite that passed shows nothing but what its tests show.
    if (type === "suite" && event.type === "test:pass") continue;
    const { file = "", line: number = 0, nesting, name } = event.data;
    const path = [...names.slice(isFile(names[0]) && nesting > 0 ? 1 : 0, nesting), name];
    yield line({ test: { file: relative(ROOT, file), line: number, names: path, ...outcomeOf(event) } });
  }
  yield line("ended");
}

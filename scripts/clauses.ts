/** `npm run clauses`: the clause register (test/clauses) against code and tests; its README says how to use this. */
import { randomInt } from "node:crypto";
import { writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { DRAFTS, findDraftProblems } from "./clauses/drafts.ts";
import { findStaleHeads } from "./clauses/elsewhere.ts";
import { registerPage } from "./clauses/html.ts";
import { compareLedgers, loadLedgers } from "./clauses/ledgers.ts";
import { findProblems } from "./clauses/problems.ts";
import {
  allClauses,
  type Clause,
  clausesOf,
  findLines,
  findNames,
  isServer,
  loadTree,
} from "./clauses/register.ts";
import { type Evidence, evidenceOf, findRuns, loadReport, REPORT_FILE } from "./clauses/report.ts";
import { counts, decisions, drafts, planned, reasons, rows, table } from "./clauses/views.ts";

const USAGE = `
npm run clauses [DOCUMENT]                 the counts of all documents, or the rows of one, of an id, an RFC, a draft or words
npm run clauses -- --quiet                 the counts in one line
npm run clauses -- --open [DOCUMENT]       planned binding clauses
npm run clauses -- --decisions [DOCUMENT]  what we chose where a document leaves a choice
npm run clauses -- --exceptions [DOCUMENT] what is not met, or with a setting alone, each with its reason
npm run clauses -- --drafts                drafts: the revision followed, the newest seen, and why one is not followed
npm run clauses -- --reasons               the reasons of audit events, each with a sentence
npm run clauses -- --ledgers DIR           differences from a folder of ledgers
npm run clauses -- --html [FILE]           one page of all, to be read in a browser
npm run clauses -- --mutate [--seed N] [--minutes M] [--clauses N] [--anywhere]
                                           breaks enforcing lines (or any line), and says which break no test noticed
With each of them but --reasons, --report required refuses to do without the report of a whole run of the tests.`;

function refuseArguments(problem: string): never {
  console.error(problem + USAGE);
  process.exit(2);
}

function readArguments() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        help: { type: "boolean", short: "h" },
        quiet: { type: "boolean" },
        open: { type: "boolean" },
        decisions: { type: "boolean" },
        exceptions: { type: "boolean" },
        drafts: { type: "boolean" },
        reasons: { type: "boolean" },
        ledgers: { type: "string" },
        html: { type: "boolean" },
        mutate: { type: "boolean" },
        seed: { type: "string" },
        minutes: { type: "string" },
        clauses: { type: "string" },
        anywhere: { type: "boolean" },
        report: { type: "string" },
      },
    });
    const { report, ledgers, help, seed, minutes, clauses, anywhere, ...flags } = values;
    if (help) {
      console.log(USAGE.trim());
      process.exit();
    }
    const views = [...Object.keys(flags), ...(ledgers === undefined ? [] : ["ledgers"])];
    const [view] = views;
    const takesDocument = view === undefined || ["open", "decisions", "exceptions", "html"].includes(view);
    if (views.length > 1) throw new Error(`--${views.join(" and --")} do not go together`);
    if (positionals.length > (view === "html" ? 1 : takesDocument ? 9 : 0))
      throw new Error(`too many arguments: ${positionals.join(" ")}`);
    if (report !== undefined && report !== "required")
      throw new Error(`--report takes "required", not "${report}"`);
    const bounds = { seed, minutes, clauses };
    if (view !== "mutate" && (anywhere || Object.values(bounds).some((one) => one !== undefined)))
      throw new Error("--seed, --minutes, --clauses and --anywhere go with --mutate");
    for (const [option, value = "0"] of Object.entries(bounds))
      if (!/^\d{1,9}$/.test(value)) throw new Error(`--${option} takes a number, not "${value}"`);
    const mutation = {
      seed: Number(seed ?? randomInt(1e9)),
      minutes: Number(minutes ?? 10),
      clauses: Number(clauses ?? 1e9),
      anywhere: anywhere === true,
    };
    return {
      view,
      name: positionals.length === 0 ? undefined : positionals.join(" "),
      ledgers,
      mutation,
      isReportRequired: report !== undefined,
    };
  } catch (error) {
    return refuseArguments(error instanceof Error ? error.message : String(error));
  }
}

const { view, name, ledgers, mutation, isReportRequired } = readArguments();
// The reasons say nothing of clauses, so neither the register nor a report is read for them.
if (view === "reasons") {
  // Written at once: the rest of a pipe would be lost when the process exits.
  writeSync(1, `${reasons().join("\n")}\n`);
  process.exit();
}
const root = join(import.meta.dirname, "..");
const tree = loadTree(root);
const { register, code, tests } = tree;
if (view === "mutate") {
  // Loaded here alone, since it needs packages of the tests.
  const { mutate } = await import("./clauses/mutate.ts");
  for await (const line of mutate(root, tree, mutation)) writeSync(1, `${line}\n`);
  process.exit();
}
const isOfAll = name === undefined || view === "html";
const clauses = isOfAll ? allClauses(register) : clausesOf(register, name);
if (clauses === undefined) refuseArguments(`no document, id or text of test/clauses is ${name}`);

const report = loadReport(root, tree);
// What scripts name, they only ask or show: it enforces nothing.
const lines = findLines(
  register,
  code.filter(({ file }) => isServer(file)),
);
const named = "doubt" in report ? findNames(register, tests) : findRuns(register, report.tests);
const evidence: Evidence =
  "doubt" in report
    ? new Map([...named.keys()].map((id) => [id, "named"]))
    : evidenceOf(register, report.tests);
const problems = [
  ...findProblems(register, tree, evidence),
  ...findStaleHeads(register, code),
  ...findDraftProblems(allClauses(register), [...code, ...tree.documents]),
];

function show(clauses: Clause[]): string[] {
  if (view === "quiet") return [counts(clauses)];
  if (view === "decisions") {
    const chosen = clauses.filter(({ status }) => status === "decision");
    return [`decisions: ${chosen.length}`, ...decisions(chosen, named)];
  }
  if (view === "exceptions") {
    const unmet = clauses.filter(({ status }) => status === "exception");
    return [`exceptions: ${unmet.length}`, ...rows(unmet, new Map(), new Map())];
  }
  if (view === "drafts") return drafts(DRAFTS, clauses);
  if (view === "html") {
    const file = name ?? "clauses.html";
    const [shownBy = ""] = told;
    writeFileSync(file, registerPage({ register, lines, tests: named, evidence, drafts: DRAFTS, shownBy }));
    return [`written to ${file}`];
  }
  if (view === "open") {
    const open = planned(clauses);
    return [`planned: ${open.length}`, ...open];
  }
  if (ledgers !== undefined) {
    const { waiting, alone, differences } = compareLedgers(register, loadLedgers(ledgers));
    problems.push(...differences);
    return [
      `rows of capabilities that are not built: ${waiting.join(", ") || "none"}`,
      `rows that no ledger has: ${alone.join(", ") || "none"}`,
    ];
  }
  return name === undefined ? table(register) : rows(clauses, lines, named);
}

function tellReport(): string[] {
  if ("doubt" in report) {
    const doubt = `${REPORT_FILE} is not used: ${report.doubt}`;
    if (isReportRequired) problems.push(`${doubt}; npm test writes it`);
    return [`Checked the text of the tests alone, not a run (${doubt}).`];
  }
  const idle = report.tests.filter(({ outcome }) => outcome === "not run here");
  return [
    `Checked against the report of a whole run: ${report.tests.length} tests, ${idle.length} not run here.`,
    ...idle.map(
      ({ file, line, names, reason }) => `not run here: ${file}:${line} ${names.join(" > ")}: ${reason}`,
    ),
  ];
}

const told = tellReport();
for (const line of [...show(clauses), ...told]) console.log(line);
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exitCode = 1;

/** The tool of the register as pure functions, its reporter in a run, and the register of this tree. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { findStaleReasons } from "../scripts/clauses/capabilities.ts";
import { type Draft, findDraftProblems, SEEN_ON } from "../scripts/clauses/drafts.ts";
import { findStaleHeads } from "../scripts/clauses/elsewhere.ts";
import { registerPage } from "../scripts/clauses/html.ts";
import { compareLedgers, readLedger } from "../scripts/clauses/ledgers.ts";
import { mutationsByLine, mutationsOf } from "../scripts/clauses/mutations.ts";
import { findProblems } from "../scripts/clauses/problems.ts";
import {
  allClauses,
  type Clause,
  clausesOf,
  type Document,
  findLines,
  findNames,
  idFinder,
  loadTree,
  type Register,
  type Source,
  type Tree,
} from "../scripts/clauses/register.ts";
import {
  digestOf,
  type Evidence,
  evidenceOf,
  findRuns,
  judgeReport,
  type ReportLine,
  type TestRun,
} from "../scripts/clauses/report.ts";
import { count, decisions, drafts, planned as plannedRows, reasons, rows } from "../scripts/clauses/views.ts";
import { REASONS } from "../src/audit/reasons.ts";

const root = join(import.meta.dirname, "..");
let loaded: Tree | undefined;
/** Read once for all tests. */
const thisTree = (): Tree => {
  loaded ??= loadTree(root);
  return loaded;
};
const tested: Clause = { id: "DOC-2.1-1", level: "MUST", summary: "A rule.", status: "tested" };
const planned: Clause = { ...tested, status: "planned", note: "operations" };
const exception: Clause = { ...tested, status: "exception", note: "a reason" };
const decision: Clause = { ...tested, status: "decision", note: "it is safer" };
const untestable: Clause = { ...decision, untested: "nothing observes it" };
const advice: Clause = { ...tested, level: "SHOULD" };
const permission: Clause = { ...tested, level: "MAY" };
const ours = { status: "decision" } as const;
const other: Clause = { ...tested, id: "DOC-3-1" };
const restating: Clause = { ...tested, id: "DOC-4-1", same: ["DOC-2.1-1", "DOC-3-1"] };
const { note: _, ...unexplained } = exception;
const unknownRfc = `RFC${0}-1-1`;

const registerOf = (...clauses: Clause[]): Register =>
  new Map([["doc", { title: "Document", source: "here", clauses }]]);
const source = (text: string) => [{ file: "file.ts", text }];
const treeOf = (text: string) => ({ code: source(text), tests: [] });
const passed = (...ids: string[]): Evidence => new Map(ids.map((id) => [id, "passed"]));

const fits: [string, Clause[], string, Evidence][] = [
  ["a tested clause with its test", [tested], "// DOC-2.1-1: enforced here.", passed("DOC-2.1-1")],
  ["a test known from the text alone", [tested], "DOC-2.1-1", new Map([["DOC-2.1-1", "named"]])],
  ["a tested permission without a test", [permission], "", passed()],
  ["a planned clause without a test", [planned], "", passed()],
  ["an exception with a reason, and a test", [exception], "", passed("DOC-2.1-1")],
  ["a decision with its test", [decision], "DOC-2.1-1", passed("DOC-2.1-1")],
  ["a decision that binds no one, with its test", [{ ...advice, ...ours }], "", passed("DOC-2.1-1")],
  ["a decision that no test can show, with the reason", [untestable], "", passed()],
  ["what is not offered", [{ ...exception, status: "not-offered" }], "", passed()],
  [
    "a restatement of tested clauses",
    [tested, other, restating],
    "DOC-2.1-1 DOC-3-1",
    passed("DOC-2.1-1", "DOC-3-1"),
  ],
  ["a tested recommendation that no line cites", [advice], "", passed(advice.id)],
  ["a clause enforced by structure", [{ ...tested, enforced: "structure: one road" }], "", passed(tested.id)],
  ["a clause enforced by the platform", [{ ...tested, enforced: "platform: TLS" }], "", passed(tested.id)],
  [
    "a clause enforced by another row",
    [tested, { ...other, enforced: "row DOC-2.1-1" }],
    "DOC-2.1-1",
    passed("DOC-2.1-1", "DOC-3-1"),
  ],
  ["words that only look like ids", [planned], "UTF-8-1 DOC-2 DOC-2.1-1x X-DOC-9-9 OTHER-1-1", passed()],
];
for (const [name, clauses, code, evidence] of fits) {
  test(`the register accepts ${name}`, () => {
    assert.deepEqual(findProblems(registerOf(...clauses), treeOf(code), evidence), []);
  });
}

const misfits: [string, Clause[], string, Evidence, string][] = [
  ["a tested clause without a test", [tested], "DOC-2.1-1", passed(), "is tested, but no test names it"],
  ["the test of a longer id", [tested], "", passed("DOC-2.1-18"), "is tested, but no test names it"],
  ["advice without a test", [advice], "", passed(), "is tested, but no test names it"],
  ["a MUST NOT†", [{ ...tested, level: "MUST NOT†" }], "", passed(), "is tested, but no test names it"],
  ["a DECIDE", [{ ...tested, level: "DECIDE" }], "", passed(), "is tested, but no test names it"],
  [
    "half a restatement",
    [{ ...restating, id: "DOC-2.1-1", same: ["DOC-3-1", "DOC-4-1"] }],
    "",
    passed("DOC-3-1"),
    "is tested, but no test names it",
  ],
  [
    "a test that failed",
    [tested],
    "",
    new Map([["DOC-2.1-1", "failed"]]),
    "is tested, but a test that names it failed",
  ],
  [
    "a failed test of a permission",
    [permission],
    "",
    new Map([["DOC-2.1-1", "failed"]]),
    "is tested, but a test that names it failed",
  ],
  [
    "a restatement of a clause whose test failed",
    [{ ...restating, id: "DOC-2.1-1", same: ["DOC-3-1", "DOC-4-1"] }],
    "",
    new Map([...passed("DOC-3-1"), ["DOC-4-1", "failed"]]),
    "is tested, but a test that names it failed",
  ],
  [
    "a test that could not run here",
    [tested],
    "",
    new Map([["DOC-2.1-1", "not run here"]]),
    "is tested, but its test could not run here",
  ],
  [
    "a planned clause with a test",
    [planned],
    "",
    passed("DOC-2.1-1"),
    "is planned, but a test names it: set it to tested",
  ],
  [
    "a restatement of nothing",
    [{ ...exception, same: ["DOC-7-7"] }],
    "",
    passed(),
    "DOC-7-7 is not in the register",
  ],
  ["an exception without a reason", [unexplained], "", passed(), "is exception without a note"],
  ["a decision without a test", [decision], "DOC-2.1-1", passed(), "is decision, but no test names it"],
  [
    "a decision whose test failed",
    [decision],
    "DOC-2.1-1",
    new Map([["DOC-2.1-1", "failed"]]),
    "is decision, but a test that names it failed",
  ],
  [
    "a decision whose test could not run here",
    [decision],
    "DOC-2.1-1",
    new Map([["DOC-2.1-1", "not run here"]]),
    "is decision, but its test could not run here",
  ],
  [
    "a binding decision that no line, row or reason enforces",
    [decision],
    "",
    passed("DOC-2.1-1"),
    "is decision, but no line, row or reason says what enforces it",
  ],
  [
    "a decision that no test can show, and that one shows",
    [untestable],
    "",
    passed("DOC-2.1-1"),
    "says that no test can show it, but one names it",
  ],
  [
    "a rule of a document that no test can show",
    [{ ...untestable, status: "tested" }],
    "DOC-2.1-1",
    passed(),
    "says why no test shows it, but is tested",
  ],
  [
    "a service not offered without a reason",
    [{ ...unexplained, status: "not-offered" }],
    "",
    passed(),
    "is not-offered without a note",
  ],
  [
    "a plan without a capability",
    [{ ...unexplained, status: "planned" }],
    "",
    passed(),
    "is planned without a note",
  ],
  [
    "a plan for an unknown capability",
    [{ ...planned, note: "soon" }],
    "",
    passed(),
    "has an unknown capability, soon",
  ],
  ["an unknown status", [{ ...exception, status: "done" }], "", passed(), "has an unknown status, done"],
  ["an unknown level", [{ ...planned, level: "SHALL" }], "", passed(), "has an unknown level, SHALL"],
  ["a DECIDE with †", [{ ...planned, level: "DECIDE†" }], "", passed(), "has an unknown level, DECIDE†"],
  ["an id twice", [planned, planned], "", passed(), "is in the register twice"],
  [
    "an enforcer without its kind",
    [{ ...tested, enforced: "the router" }],
    "",
    passed("DOC-2.1-1"),
    "says unclearly what enforces it, the router",
  ],
  [
    "an enforcer of what is not met",
    [{ ...planned, enforced: "platform: TLS" }],
    "",
    passed(),
    "says what enforces it, but is planned",
  ],
  [
    "what is stricter than the text, and met",
    [{ ...tested, stricter: true }],
    "DOC-2.1-1",
    passed("DOC-2.1-1"),
    "says that it is stricter, but is tested",
  ],
  [
    "an enforcing row that is unknown",
    [{ ...tested, enforced: "row DOC-7-7" }],
    "",
    passed("DOC-2.1-1"),
    "DOC-7-7 is not in the register",
  ],
  [
    "an enforcing row that is not met",
    [
      { ...tested, enforced: "row DOC-3-1" },
      { ...planned, id: "DOC-3-1" },
    ],
    "",
    passed("DOC-2.1-1"),
    "is enforced by DOC-3-1, which is not tested",
  ],
  [
    "a rule that no line, row or reason enforces",
    [tested],
    "DOC-2.1-18",
    passed("DOC-2.1-1"),
    "is tested, but no line, row or reason says what enforces it",
  ],
  [
    "a restatement of such a rule",
    [other, { ...restating, id: "DOC-2.1-1", same: ["DOC-3-1"] }],
    "",
    passed("DOC-3-1"),
    "is tested, but no line, row or reason says what enforces it",
  ],
  [
    "an enforcing row that names a row",
    [
      { ...tested, enforced: "row DOC-3-1" },
      { ...other, enforced: "row DOC-2.1-1" },
    ],
    "",
    passed("DOC-2.1-1", "DOC-3-1"),
    "is enforced by DOC-3-1, which has neither a line nor a reason",
  ],
];
for (const [name, clauses, code, evidence, problem] of misfits) {
  test(`the register refuses ${name}`, () => {
    const problems = findProblems(registerOf(...clauses), treeOf(code), evidence);
    assert.ok(problems.includes(`DOC-2.1-1: ${problem}`), problems.join("\n"));
  });
}

test("a line of scripts or of the probe, which no server runs, enforces nothing", () => {
  const code = ["scripts/dev-keys.ts", "src/cli/probe/rows.ts"].map((file) => ({
    file,
    text: "// DOC-2.1-1",
  }));
  assert.deepEqual(findProblems(registerOf(tested), { code, tests: [] }, passed("DOC-2.1-1")), [
    "DOC-2.1-1: is tested, but no line, row or reason says what enforces it",
  ]);
});

test("the register refuses an id without a number, and unknown ids in code and tests", () => {
  const register = registerOf({ ...planned, id: "DOC-2.1" });
  assert.deepEqual(findProblems(register, treeOf(`DOC-2.1-9 ${unknownRfc}`), passed()), [
    "DOC-2.1: is not an id",
    "file.ts: DOC-2.1-9 is not in the register",
    `file.ts: ${unknownRfc} is not in the register`,
  ]);
});

test("a name is the start of a string literal, and may hold several ids", () => {
  const text = [
    "/**",
    " * `DOC-1-1` in a header",
    " */",
    'test("DOC-2.1-1, DOC-2.1-v2 refuses DOC-5-1", run); // "DOC-6-1" in a comment',
    "  [`DOC-3-1 accepts $" + "{value}`, 'DOC-4-1 at https://as.example'],",
  ].join("\n");
  const register = registerOf(planned);
  assert.deepEqual(
    [...findNames(register, source(text))],
    [
      ["DOC-2.1-1", ["file.ts:4 DOC-2.1-1, DOC-2.1-v2 refuses DOC-5-1"]],
      ["DOC-2.1-v2", ["file.ts:4 DOC-2.1-1, DOC-2.1-v2 refuses DOC-5-1"]],
      ["DOC-3-1", ["file.ts:5 DOC-3-1 accepts $" + "{value}"]],
      ["DOC-4-1", ["file.ts:5 DOC-4-1 at https://as.example"]],
    ],
  );
  assert.deepEqual(idFinder(register)("see DOC-2.1-1, DOC-2.1-18."), ["DOC-2.1-1", "DOC-2.1-18"]);
  assert.deepEqual(findLines(register, source(text)).get("DOC-5-1"), ["file.ts:4"]);
});

const runOf = (outcome: TestRun["outcome"], ...names: string[]): TestRun => ({
  file: "test/a.test.ts",
  line: 7,
  names,
  outcome,
});
const skipped: TestRun = { ...runOf("not run here", "DOC-5-1 stores"), reason: "no store" };
const runs = [
  runOf("failed", "DOC-3-1 refuses a"),
  runOf("passed", "DOC-3-1 refuses b"),
  runOf("passed", "DOC-4-1 stores"),
  { ...skipped, names: ["DOC-4-1 stores elsewhere"] },
  skipped,
  runOf("passed", "DOC-2.1-1, DOC-2.1-v2 of a suite", "in plain words, not DOC-6-1"),
];

test("an id is met by a test that passed, or by one in a suite of its name, and by no failed or idle one", () => {
  assert.deepEqual(
    evidenceOf(registerOf(tested), runs),
    new Map<string, string>([
      ["DOC-2.1-1", "passed"],
      ["DOC-2.1-v2", "passed"],
      ["DOC-3-1", "failed"],
      ["DOC-4-1", "passed"],
      ["DOC-5-1", "not run here"],
    ]),
  );
});

const tree = { code: source("code"), tests: [{ file: "test/a.test.ts", text: "tests" }] };
const head = { digest: digestOf(tree), limits: [] };
const whole: ReportLine[] = [head, { test: skipped }, { ran: "test/a.test.ts" }, "ended"];
const judge = (lines: ReportLine[], now = tree) =>
  judgeReport(lines.map((line) => `${JSON.stringify(line)}\n`).join(""), now);

test("the report of a whole run of this tree counts, with support files that hold no tests", () => {
  const now = { ...tree, tests: [...tree.tests, { file: "test/support/a.ts", text: "" }] };
  assert.deepEqual(judge([{ ...head, digest: digestOf(now) }, ...whole.slice(1)], now), { tests: [skipped] });
});

const doubts: [string, ReportLine[], typeof tree, string][] = [
  ["that was cut off", whole.slice(0, -1), tree, "its run did not come to an end"],
  [
    "of older tests",
    whole,
    { ...tree, tests: [{ file: "test/a.test.ts", text: "other tests" }] },
    "code or tests have changed since its run",
  ],
  ["of older code", whole, { ...tree, code: source("new") }, "code or tests have changed since its run"],
  [
    "of some tests",
    [{ ...head, limits: ["--test-name-pattern=A"] }, ...whole.slice(1)],
    tree,
    "its run was limited by --test-name-pattern=A",
  ],
  ["of some files", [head, "ended"], tree, "its run lacks test/a.test.ts"],
];
for (const [name, lines, now, doubt] of doubts) {
  test(`a report ${name} does not count`, () => {
    assert.deepEqual(judge(lines, now), { doubt });
  });
}
test("a report of which half a line was written does not count", () => {
  assert.deepEqual(judgeReport(`${JSON.stringify(head)}\n{"test":{"fi`, tree), {
    doubt: "its run did not come to an end",
  });
});

test("the reporter writes suites, skipped and failed tests, and the files that ran to their end", () => {
  const folder = mkdtempSync(join(tmpdir(), "report-"));
  const file = (name: string, text: string) => writeFileSync(join(folder, name), text);
  try {
    file(
      "a.test.mjs",
      `import { describe, it, suite, test } from "node:test";
      suite("test/a.test.ts", () => {
        describe("DOC-1-1 suite", () => { describe("inner", () => { it("one", () => {}); }); });
        describe("DOC-1-2 empty", () => {});
        test("outer", async (t) => { await t.test("DOC-1-3 child", () => { throw new Error(); }); });
        test("DOC-1-4 idle", (t) => t.skip("no store"));
      });
      suite("test/b.test.ts", () => { test("two", () => {}); });`,
    );
    const ends = 'suite("test/c.test.ts", () => { test("ends the process", () => process.exit(0)); });';
    file("b.test.mjs", `import { suite, test } from "node:test"; ${ends}`);
    const report = join(folder, "report.jsonl");
    const reporter = join(root, "scripts/clauses/reporter.ts");
    const options = [`--test-reporter=${reporter}`, `--test-reporter-destination=${report}`];
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    spawnSync(process.execPath, ["--test", "--test-skip-pattern=never", ...options], { cwd: folder, env });
    const lines = readFileSync(report, "utf8").trimEnd().split("\n");
    const [first, ...rest] = lines.map((line): ReportLine => JSON.parse(line));
    assert.deepEqual(first, { digest: digestOf(thisTree()), limits: ["--test-skip-pattern=never"] });
    const told = rest.map((line) => {
      if (line === "ended") return line;
      if ("ran" in line) return `ran ${line.ran}`;
      if (!("test" in line)) return "";
      const { names, outcome, reason } = line.test;
      return [names.join(" > "), outcome, reason].filter((part) => part !== undefined).join(": ");
    });
    assert.deepEqual(told, [
      "DOC-1-1 suite > inner > one: passed",
      "outer > DOC-1-3 child: failed",
      "outer: failed",
      "DOC-1-4 idle: not run here: no store",
      "ran test/a.test.ts",
      "test/a.test.ts: failed",
      "two: passed",
      "ran test/b.test.ts",
      "b.test.mjs: passed",
      "ended",
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

const ledger = [
  "| id | level | on | requirement |",
  "|---|---|---|---|",
  "| DOC-2.1-1 | MUST | AS | A rule. |",
  "| DOC-3-1 | MUST‡ | AS | A rule without a keyword.† |",
  "| DOC-4-1 | MAY† | AS | A permission. |",
  "see | DOC-5-1 | or | others |",
].join("\n");
const ledgers = [
  { file: "doc.md", text: ledger },
  { file: "new.md", text: "| NEW-1-1 | MUST | AS | A rule. |" },
  { file: "README.md", text: "| mark | means |" },
];

test("a ledger row has its level in the second cell, and † anywhere", () => {
  assert.deepEqual(
    [...readLedger(ledger)],
    [
      ["DOC-2.1-1", "MUST"],
      ["DOC-3-1", "MUST†"],
      ["DOC-4-1", "MAY†"],
    ],
  );
});

test("ledgers and register agree on ids and levels, and the register may have more than they", () => {
  const level = (clause: Clause, level: string) => ({ ...clause, level });
  const same = registerOf(
    tested,
    level(other, "MUST†"),
    level(restating, "MAY†"),
    { ...decision, id: "DOC-9-1" },
    { ...tested, id: "DOC-D-1" },
    { ...tested, id: "ALONE-1-1" },
  );
  const fits = { waiting: ["new things (1)"], alone: ["ALONE-1-1"], differences: [] };
  assert.deepEqual(compareLedgers(same, ledgers, new Map([["NEW", "new things"]])), fits);
});

test("a row that is missing or has another level is a problem, also of a document that is new", () => {
  const different = registerOf(tested, other);
  assert.deepEqual(compareLedgers(different, ledgers, new Map()).differences, [
    "DOC-3-1: is MUST† in the ledger doc, MUST in the register",
    "DOC-4-1: is in the ledger doc, not in the register",
    "NEW-1-1: is in the ledger new, not in the register",
  ]);
});

test("a document with a tested clause is built, so that its other rows do not wait, which is checked without ledgers", () => {
  const problems = findStaleReasons([tested], GONE, new Map([["DOC", "new things"]]));
  assert.deepEqual(problems, ["DOC-2.1-1: is tested, but new things are listed as not built"]);
});

const list: Draft[] = [
  { name: "draft-a", pin: "01", seen: "02", row: "DOC-2.1-1" },
  { name: "draft-b", seen: "07", row: "DOC-3-1" },
];
const unfollowed: Clause = { ...other, status: "not-offered", note: "it changes" };

test("each draft is printed with the revision that is followed, the newest that was seen, and the reason of its row", () => {
  assert.deepEqual(drafts(list, [tested, unfollowed]), [
    `drafts: 2, newest revisions looked for on ${SEEN_ON}`,
    "draft-a: followed 01, seen 02",
    "    DOC-2.1-1: A rule.",
    "draft-b: not followed, seen 07",
    "    DOC-3-1: it changes",
  ]);
});

const DRAFT_TEXTS: readonly [name: string, text: string, clauses: Clause[], problems: string[]][] = [
  ["is there, and one that is not followed may be named in any", "draft-a-01, draft-b-03", [unfollowed], []],
  [
    "is another one",
    "draft-a-02",
    [unfollowed],
    ["file.ts: names draft-a-02, but the list of drafts follows 01"],
  ],
  [
    "is of no draft of the list",
    "draft-c-00",
    [unfollowed],
    ["file.ts: draft-c-00 is not in the list of drafts"],
  ],
  ["has a row that is met", "", [other], ["draft-b: is not followed, but DOC-3-1 is tested"]],
  ["has no row", "", [], ["draft-b: DOC-3-1 is not in the register"]],
];
for (const [name, text, clauses, problems] of DRAFT_TEXTS) {
  test(`a revision of a draft that ${name}: ${problems.length > 0 ? "is a problem" : "fits"}`, () => {
    assert.deepEqual(findDraftProblems([tested, ...clauses], source(text), list), problems);
  });
}

test("the list of drafts names what code and register of this tree follow", () => {
  const { register, code, documents } = thisTree();
  assert.deepEqual(findDraftProblems(allClauses(register), [...code, ...documents]), []);
});

for (const [what, argument, first] of [
  ["an id", "RFC8693-2.1-18", /^RFC8693-2\.1-18 MUST tested: /],
  [
    "the question what is not met",
    "--exceptions",
    /^exceptions: \d+\n[A-Z]\S+ \S+ exception: .+\n {4}note: ./,
  ],
  ["the question how it is used", "--help", /^npm run clauses /],
] as const) {
  test(`npm run clauses takes ${what}`, () => {
    const ran = spawnSync(process.execPath, [join(root, "scripts/clauses.ts"), argument], {
      encoding: "utf8",
    });
    assert.equal(ran.status, 0, ran.stderr);
    assert.match(ran.stdout, first);
  });
}

for (const [what, asked, first] of [
  ["a document", "rfc8693", "RFC8693-"],
  ["an RFC that a document follows", "rfc10070", "B7523-"],
  ["an RFC as it is written", "RFC 8693", "RFC8693-"],
  ["a draft, whatever its revision", "draft-ietf-oauth-identity-chaining-18", "IDC-"],
  ["words in any order", "CLAIM act", ""],
  ["an RFC that rows only name", "rfc7515", ""],
  ["a word", "mandate_job_request", ""],
] as const) {
  test(`the rows of ${what} are found`, () => {
    const [found] = clausesOf(thisTree().register, asked) ?? assert.fail();
    assert.ok(found?.id.startsWith(first));
  });
}

test("npm run clauses -- --ledgers names a row that is missing here, and exits with 1", () => {
  const folder = mkdtempSync(join(tmpdir(), "ledgers-"));
  try {
    writeFileSync(join(folder, "doc.md"), "| NEW-1-1 | MUST | AS | A rule. |\n");
    const script = join(root, "scripts/clauses.ts");
    const ran = spawnSync(process.execPath, [script, "--ledgers", folder], { encoding: "utf8" });
    assert.equal(ran.status, 1);
    assert.match(ran.stderr, /^NEW-1-1: is in the ledger doc, not in the register$/m);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("counts are clauses, binding ones, then one for each status", () => {
  const idle: Clause = { ...exception, level: "SHOULD†", status: "not-offered" };
  assert.deepEqual(count([tested, planned, exception, decision, idle]), [5, 4, 1, 1, 1, 1, 1]);
});

test("what is open: planned binding clauses", () => {
  const clauses = [tested, planned, { ...planned, level: "SHOULD" }, advice];
  assert.deepEqual(plannedRows(clauses), ["DOC-2.1-1 MUST [operations] A rule."]);
});

test("a row is printed with its lines of code and its tests", () => {
  const register = registerOf(tested);
  const explained: Clause = { ...other, note: "of old", enforced: "row DOC-2.1-1", same: ["DOC-2.1-1"] };
  const lines = findLines(register, source("\n// DOC-2.1-1: here"));
  assert.deepEqual(rows([tested, explained], lines, findRuns(register, runs)), [
    "DOC-2.1-1 MUST tested: A rule.",
    "    code file.ts:2",
    "    test test/a.test.ts:7 DOC-2.1-1, DOC-2.1-v2 of a suite > in plain words, not DOC-6-1 (passed)",
    "DOC-3-1 MUST tested: A rule.",
    "    note: of old",
    "    enforced by row DOC-2.1-1",
    "    same as DOC-2.1-1",
    "    test test/a.test.ts:7 DOC-3-1 refuses a (failed)",
    "    test test/a.test.ts:7 DOC-3-1 refuses b (passed)",
  ]);
});

test("a decision is printed with its reason and the first of its tests, or why no test can show it", () => {
  const tests = findRuns(registerOf(decision, other), runs);
  const restating: Clause = { ...decision, id: "DOC-5-2", same: ["DOC-3-1"] };
  assert.deepEqual(decisions([decision, restating, untestable], tests), [
    "DOC-2.1-1 MUST A rule.",
    "    it is safer",
    "    test test/a.test.ts:7 DOC-2.1-1, DOC-2.1-v2 of a suite > in plain words, not DOC-6-1 (passed)",
    "DOC-5-2 MUST A rule.",
    "    it is safer",
    "    test test/a.test.ts:7 DOC-3-1 refuses a (failed) and 1 more",
    "DOC-2.1-1 MUST A rule.",
    "    it is safer",
    "    no test: nothing observes it",
  ]);
});

/** The page of some rows, one of them with markup in its words. */
function pageOf(...clauses: Clause[]): string {
  const register = registerOf(...clauses);
  const lines = findLines(register, source("// DOC-2.1-1"));
  const found = { register, lines, tests: findRuns(register, runs), evidence: evidenceOf(register, runs) };
  return registerPage({ ...found, drafts: list, shownBy: "From a run." });
}

test("the page of the register has each clause once, with its kind, its lines and its tests, and what is not met", () => {
  const { register, code, tests } = thisTree();
  const whole = { register, lines: findLines(register, code), tests: findNames(register, tests) };
  const page = registerPage({ ...whole, evidence: new Map(), drafts: [], shownBy: "" });
  const shown = [...page.matchAll(/<article id="([^"]+)"/g)].map(([, id]) => id);
  assert.deepEqual(shown, [...new Set(allClauses(register).map(({ id }) => id))]);

  const small = pageOf(
    tested,
    { ...other, enforced: "row DOC-2.1-1" },
    { ...exception, id: "DOC-5-1", stricter: true },
  );
  assert.match(
    small,
    /<article id="DOC-2.1-1" class="behaviour">(?:(?!<\/article>)[\s\S])*<code>file.ts:1<\/code>/,
  );
  assert.match(
    small,
    /<article id="DOC-3-1" class="row failed">(?:(?!<\/article>)[\s\S])*tests \(2\): failed/,
  );
  assert.match(small, /<article id="DOC-5-1" class="stricter unmet">/);
  assert.match(
    small,
    /<th scope="row"><a href="#d-doc">doc<\/a><\/th><td><a href="#DOC-5-1">DOC-5-1<\/a><\/td>/,
  );
});

test("the page of the register writes what stands between grave accents as code, and tells a failed test by its colour", () => {
  const page = pageOf({ ...other, summary: "Send `aud` and `exp`.", enforced: "row DOC-2.1-1" });
  assert.ok(page.includes("<p>Send <code>aud</code> and <code>exp</code>.</p>"));
  assert.match(page, /class="row failed"/);
  assert.match(page, /\.failed summary \{ color: var\(--bad\)/);
});

test("the page of the register escapes every text, loads nothing, and its filters are anchors and style", () => {
  const markup = "<script>alert(1)</script>&\"'";
  const page = pageOf({ ...exception, summary: markup, note: markup, on: markup });
  assert.equal(page.split("<script>").length, 2);
  assert.ok(page.includes("&#60;script&#62;alert(1)&#60;/script&#62;&#38;&#34;&#39;"));
  assert.doesNotMatch(page, /\b(?:src|srcset)=|<link|@import|url\(/);
  for (const [, target = ""] of page.matchAll(/href="#(only-[^"]+)"/g)) {
    assert.ok(page.includes(`<span id="${target}"></span>`), target);
    assert.ok(
      page.includes(`#${target}:target ~ main :is(article:not(.${target.slice("only-".length)})`),
      target,
    );
  }
});

const RULED = `// DOC-1-1: a limit
const MAX = 3;
/** DOC-1-2: judged in order. */
function judge(a: number, b: "one"): boolean {
  // DOC-1-3: an own rule.
  if (a > MAX || !a) return false;
  log("a sentence");
  return list.every((one) => one === b);
}
const made = { aud, ...rest }; // DOC-1-4
`;

test("a line that names a clause owns the breaks of what stands behind it, and no type or prose is broken", () => {
  const owned = mutationsByLine("a.ts", RULED, [1, 3, 5, 10]);
  const shown = [...owned].map(([line, all]) => [
    line,
    ...all.map(({ start, end, to }) => `${RULED.slice(start, end)} -> ${to}`),
  ]);
  assert.deepEqual(shown, [
    [1, "3 -> 4"],
    [3, 'log("a sentence"); -> ;', "every -> some", "one === b -> ((one) !== (b))"],
    [
      5,
      "a > MAX || !a -> !(a > MAX || !a)",
      "if (a > MAX || !a) return false; -> ;",
      "a > MAX || !a -> ((a > MAX) && (!a))",
      "a > MAX -> ((a) >= (MAX))",
      "! -> ",
      "false -> true",
    ],
    [10, "aud, -> ", "...rest -> "],
  ]);
});

test("breaks of SQL are made in statements, not in their comments", () => {
  const sql = "-- a = b AND c\nCREATE TABLE t (a TEXT NOT NULL, CHECK (a < 1 AND b = 2))";
  const told = (file: string, text: string) =>
    mutationsOf(file, text).map(({ start, end, to }) => `${text.slice(start, end)}->${to}`);
  const broken = ["AND->OR", " NOT NULL->", "<-><=", "=-><>"];
  assert.deepEqual(told("a.sql", sql), broken);
  assert.deepEqual(told("a.ts", `const made = \`${sql}\`;`), broken);
});

test("AUDIT-D-2 --reasons prints every reason with its sentence, in alphabetical order", () => {
  const printed = reasons();
  assert.deepEqual(printed, printed.toSorted());
  assert.equal(printed.length, Object.keys(REASONS).length);
  for (const line of printed) assert.match(line, /^[a-z0-9_]+: \S+ \S+ /);
  assert.ok(printed.includes("no_rule: no rule of the policy allows it"));
  assert.ok(printed.includes("subject_jwt_expired: subject token: the JWT has expired"));
  const script = join(root, "scripts/clauses.ts");
  const { stdout } = spawnSync(process.execPath, [script, "--reasons"], { encoding: "utf8" });
  assert.deepEqual(stdout.trimEnd().split("\n"), printed);
});

const misuses: [string, string[], RegExp][] = [
  ["an unknown option", ["--promote"], /Unknown option '--promote'/],
  ["an unknown document", ["rfc1"], /no document, id or text of test\/clauses is rfc1/],
  ["a seed without mutants", ["--seed", "1"], /--seed, --minutes, --clauses and --anywhere go with --mutate/],
  ["a time that is no number", ["--mutate", "--minutes", "soon"], /--minutes takes a number, not "soon"/],
  ["a report that is not required", ["--report", "wanted"], /--report takes "required"/],
];
for (const [name, options, problem] of misuses) {
  test(`npm run clauses refuses ${name}, and says how it is used`, () => {
    const script = join(root, "scripts/clauses.ts");
    const { status, stderr } = spawnSync(process.execPath, [script, ...options], { encoding: "utf8" });
    assert.equal(status, 2);
    assert.match(stderr, problem);
    assert.match(stderr, /npm run clauses \[DOCUMENT\]/);
  });
}

test("register, code and the text of the tests of this tree fit together", () => {
  const { register, code, tests } = thisTree();
  const named = [...findNames(register, tests).keys()];
  assert.deepEqual(findProblems(register, { code, tests }, new Map(named.map((id) => [id, "named"]))), []);
});

/** A test that fails says which clause is broken. */
const IDS_MAX = 6;

test("a test is named by at most six clauses, so that its failure says which of them is broken", () => {
  const { register, tests } = thisTree();
  const idsAt = new Map<string, number>();
  for (const place of [...findNames(register, tests).values()].flat()) {
    const [at = ""] = place.split(" ");
    idsAt.set(at, (idsAt.get(at) ?? 0) + 1);
  }
  const more = [...idsAt].filter(([, ids]) => ids > IDS_MAX).map(([at, ids]) => `${at} has ${ids}`);
  assert.deepEqual(more, []);
});

const GONE = new Map([["a browser", ["no browsers"]]]);
const STALE: readonly [name: string, clause: Partial<Clause>, problems: readonly string[]][] = [
  ["names what is built", {}, ['DOC-2.1-1: says "No browsers", but there is a browser']],
  ["is a plan", { note: "not bound yet" }, ['DOC-2.1-1: says "yet", which is a plan and no reason']],
  ["only begins alike", { note: "no browsers-to-be" }, []],
  ["is that of a tested row", { status: "tested" }, []],
];
for (const [name, changes, problems] of STALE) {
  test(`a reason that ${name}: ${problems.length > 0 ? "the row is looked at again" : "the row stays"}`, () => {
    for (const status of ["exception", "not-offered"]) {
      const clause: Clause = { ...exception, status, note: "No browsers are served", ...changes };
      assert.deepEqual(findStaleReasons([clause], GONE, new Map()), problems);
    }
  });
}

test("a reason that names what is not built stays, until the capability leaves the list of what is not", () => {
  const clause: Clause = { ...exception, note: "no browsers are served" };
  assert.deepEqual(findStaleReasons([clause], GONE, new Map([["DOC", "a browser"]])), []);
});

const HEADS: readonly [name: string, head: string, problems: readonly string[]][] = [
  [
    "the section and the file",
    "/**\n * The document.\n * Elsewhere: 2.1 flows/a.ts, http/b.ts; 10 http/b.ts.\n */\n",
    [],
  ],
  [
    "them over two lines",
    "/**\n * The document.\n * Elsewhere: 2.1 flows/a.ts,\n * http/b.ts; 10 http/b.ts.\n */\n",
    [],
  ],
  [
    "nothing",
    "/**\n * The document.\n */\n",
    ["src/spec/doc.ts: its head must end with: Elsewhere: 2.1 flows/a.ts, http/b.ts; 10 http/b.ts."],
  ],
  [
    "too much",
    "/**\n * Elsewhere: 2.1 flows/a.ts, http/b.ts; 10 http/b.ts; 11 http/b.ts.\n */\n",
    ["src/spec/doc.ts: its head must end with: Elsewhere: 2.1 flows/a.ts, http/b.ts; 10 http/b.ts."],
  ],
];
for (const [name, head, problems] of HEADS) {
  test(`the head of a document's module has to say what is enforced elsewhere: it says ${name}`, () => {
    const file = (path: string, text: string): Source => ({ file: `src/${path}`, text });
    const code = [
      file("spec/doc.ts", `${head}// DOC-1-1\n`),
      file("spec/doc-more.ts", "// DOC-3-1\n"),
      file("http/b.ts", "// DOC-10-1, DOC-2.1-2\n"),
      file("flows/a.ts", "// DOC-2.1-1\n"),
    ];
    assert.deepEqual(findStaleHeads(registerOf(tested), code), problems);
  });
}

test("the heads of this tree's modules say what is enforced elsewhere", () => {
  const { register, code } = thisTree();
  assert.deepEqual(findStaleHeads(register, code), []);
});

/** One clause a line, so that a change of status is a change of one line. */
function format({ title, source, clauses }: Document): string {
  const head = `  "title": ${JSON.stringify(title)},\n  "source": ${JSON.stringify(source)},\n`;
  const lines = clauses.map((clause) => `    ${JSON.stringify(clause)}`).join(",\n");
  return `{\n${head}  "clauses": [\n${lines}\n  ]\n}\n`;
}

test("the register cites nothing that a reader of the repository cannot open", () => {
  for (const { clauses } of thisTree().register.values()) {
    for (const { id, summary, note = "" } of clauses)
      assert.doesNotMatch(`${summary} ${note}`, /\b[a-z0-9-]+\.md\b|\btrap [0-9]|\[bug\]/, id);
  }
});

test("every register file has one clause a line", () => {
  const { documents, register } = thisTree();
  assert.ok(documents.length > 0);
  for (const { file, text } of documents) {
    const name = file.replace(/^.*\/|\.json$/g, "");
    const document = register.get(name);
    assert.ok(document);
    assert.equal(text, format(document), file);
  }
});

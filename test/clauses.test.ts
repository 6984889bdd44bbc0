import assert from "node:assert/strict";
import { join } from "node:path";
import test from "node:test";
import type { Clause, Register } from "../scripts/clauses.ts";
import {
  count,
  findIds,
  findNames,
  findProblems,
  format,
  loadTree,
  openClauses,
  promote,
} from "../scripts/clauses.ts";

const root = join(import.meta.dirname, "..");
const tested: Clause = { id: "DOC-2.1-1", level: "MUST", summary: "A rule.", status: "tested" };
const planned: Clause = { ...tested, status: "planned", note: "operations" };
const exception: Clause = { ...tested, status: "exception", note: "a reason" };
const { note: _, ...unexplained } = exception;

const registerOf = (...clauses: Clause[]): Register =>
  new Map([["doc", { title: "Document", source: "here", clauses }]]);
const source = (text: string) => [{ file: "file.ts", text }];
const naming = (...names: string[]) => source(names.map((name) => `test("${name} holds", run);`).join("\n"));
const unknownRfc = `RFC${0}-1-1`;

const fits: [string, Clause[], string, string[]][] = [
  ["a tested clause with its test", [tested], "// DOC-2.1-1: enforced here.", ["DOC-2.1-1"]],
  ["a tested clause that is not binding", [{ ...tested, level: "SHOULD" }], "", []],
  ["a planned clause without a test", [planned], "", []],
  [
    "an exception with a reason, tested or not",
    [exception, { ...exception, id: "DOC-3-1" }],
    "",
    ["DOC-2.1-1"],
  ],
  ["what is not offered", [{ ...exception, status: "not-offered" }], "", []],
  [
    "a clause tested where it is restated",
    [tested, { ...tested, id: "DOC-3-1", same: ["DOC-2.1-1"] }],
    "",
    ["DOC-2.1-1"],
  ],
  ["words that only look like ids", [planned], "UTF-8-1 DOC-2 DOC-2.1-1x X-DOC-9-9 OTHER-1-1", []],
];
for (const [name, clauses, code, names] of fits) {
  test(`the register accepts ${name}`, () => {
    assert.deepEqual(findProblems(registerOf(...clauses), source(code), naming(...names)), []);
  });
}

const misfits: [string, Clause[], string, string[], string][] = [
  [
    "a tested clause that no test names",
    [tested],
    "DOC-2.1-1",
    [],
    "DOC-2.1-1: is tested, but no test names it",
  ],
  ["the test of a longer id", [tested], "", ["DOC-2.1-18"], "DOC-2.1-1: is tested, but no test names it"],
  [
    "a tested MUST NOT†",
    [{ ...tested, level: "MUST NOT†" }],
    "",
    [],
    "DOC-2.1-1: is tested, but no test names it",
  ],
  ["a tested DECIDE", [{ ...tested, level: "DECIDE" }], "", [], "DOC-2.1-1: is tested, but no test names it"],
  [
    "half a restatement",
    [{ ...tested, id: "DOC-3-1", same: ["DOC-2.1-1", "DOC-2.1-2"] }],
    "",
    ["DOC-2.1-1"],
    "DOC-3-1: is tested, but no test names it",
  ],
  [
    "a planned clause with a test",
    [planned],
    "",
    ["DOC-2.1-1"],
    "DOC-2.1-1: is planned, but a test names it: set it to tested",
  ],
  ["an unknown id in a test", [planned], "", ["DOC-2.1-9"], "file.ts: DOC-2.1-9 is not in the register"],
  ["an unknown id in code", [planned], "DOC-2.1-9", [], "file.ts: DOC-2.1-9 is not in the register"],
  ["an unknown RFC in code", [planned], unknownRfc, [], `file.ts: ${unknownRfc} is not in the register`],
  [
    "a restatement of nothing",
    [{ ...exception, same: ["DOC-7-7"] }],
    "",
    [],
    "DOC-2.1-1: DOC-7-7 is not in the register",
  ],
  ["an exception without a reason", [unexplained], "", [], "DOC-2.1-1: is exception without a note"],
  [
    "a service not offered without a reason",
    [{ ...unexplained, status: "not-offered" }],
    "",
    [],
    "DOC-2.1-1: is not-offered without a note",
  ],
  [
    "a plan without a capability",
    [{ ...unexplained, status: "planned" }],
    "",
    [],
    "DOC-2.1-1: is planned without a note",
  ],
  [
    "a plan for an unknown capability",
    [{ ...planned, note: "soon" }],
    "",
    [],
    "DOC-2.1-1: has an unknown capability, soon",
  ],
  ["an unknown status", [{ ...exception, status: "done" }], "", [], "DOC-2.1-1: has an unknown status, done"],
  ["an id twice", [planned, planned], "", [], "DOC-2.1-1: is in the register twice"],
  ["an id without a number", [{ ...planned, id: "DOC-2.1" }], "", [], "DOC-2.1: is not an id"],
];
for (const [name, clauses, code, names, problem] of misfits) {
  test(`the register refuses ${name}`, () => {
    assert.ok(findProblems(registerOf(...clauses), source(code), naming(...names)).includes(problem));
  });
}

test("a name is the start of a string literal, and may hold several ids", () => {
  const text = [
    "/**",
    " * `DOC-1-1` in a header",
    " */",
    'test("DOC-2.1-1, DOC-2.1-v2 refuses DOC-5-1", run); // "DOC-6-1" in a comment',
    "  [`DOC-3-1 accepts $" + "{value}`, 'DOC-4-1 at https://as.example'],",
  ].join("\n");
  const register = registerOf(planned);
  assert.deepEqual(findNames(register, text), ["DOC-2.1-1", "DOC-2.1-v2", "DOC-3-1", "DOC-4-1"]);
  assert.deepEqual(findIds(register, "see DOC-2.1-1, DOC-2.1-18."), ["DOC-2.1-1", "DOC-2.1-18"]);
});

test("promoting sets planned clauses that are named to tested, and nothing else", () => {
  const open: Clause = { ...planned, id: "DOC-3-1" };
  const excused: Clause = { ...exception, id: "DOC-4-1" };
  const before = registerOf(planned, open, excused);
  const after = promote(before, naming("DOC-2.1-1, DOC-4-1"));
  assert.deepEqual(after, registerOf(tested, open, excused));
  assert.deepEqual(openClauses(after, "doc"), ["DOC-3-1 MUST [operations] A rule."]);
  assert.deepEqual(openClauses(after, "other"), []);
});

test("counts are clauses, binding ones, then one for each status", () => {
  const advice: Clause = { ...exception, level: "SHOULD†", status: "not-offered" };
  assert.deepEqual(count([tested, planned, exception, advice]), [4, 3, 1, 1, 1, 1]);
});

test("register, code and tests of this tree fit together", () => {
  const { register, code, tests } = loadTree(root);
  assert.deepEqual(findProblems(register, code, tests), []);
});

test("every register file has one clause a line", () => {
  const { documents, register } = loadTree(root);
  assert.ok(documents.length > 0);
  for (const { file, text } of documents) {
    const name = file.replace(/^.*\/|\.json$/g, "");
    const document = register.get(name);
    assert.ok(document);
    assert.equal(text, format(document), file);
  }
});

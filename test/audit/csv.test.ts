/** Events as rows of a table, which a spreadsheet must not take for formulas. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { eventCells, eventColumns } from "../../src/audit/columns.ts";
import { csvLine } from "../../src/audit/csv.ts";

const cells: readonly (readonly [what: string, cell: string, want: string])[] = [
  ["plain text stays as it is", "spiffe://td.example/a", "spiffe://td.example/a"],
  ["a comma is quoted", "a,b", '"a,b"'],
  ["a quote is doubled", 'say "a"', '"say ""a"""'],
  ["an empty cell stays empty", "", ""],
  ["a formula gets an apostrophe", "=1+1", "'=1+1"],
  ["a formula behind blanks gets an apostrophe", "  =1+1", "'  =1+1"],
  ["a plus gets an apostrophe", "+1", "'+1"],
  ["a minus gets an apostrophe", "-1", "'-1"],
  ["an at sign gets an apostrophe", "@SUM(A1)", "'@SUM(A1)"],
  ["a formula in full-width letters gets an apostrophe", "＝1", "'＝1"],
  ["an apostrophe gets another, so that one is always taken away", "'=1", "''=1"],
  ["a formula with a quote is quoted too", '=HYPERLINK("x")', '"\'=HYPERLINK(""x"")"'],
  ["a tab is written as an escape", "\t=1", "\\u0009=1"],
  ["a carriage return is written as an escape", "\r=1", "\\u000d=1"],
  ["a line feed does not end the row", "a\n=1", "a\\u000a=1"],
  ["a mark that reverses the text is written as an escape", "a\u202eb", "a\\u202eb"],
  [
    "a formula behind a semicolon, at which some spreadsheets split, is kept from being a cell",
    "a;=1",
    "a\\u003b=1",
  ],
  ["another semicolon stays", "a;b", "a;b"],
];
for (const [what, cell, want] of cells) {
  test(`AUDIT-D-7 CSV: ${what}`, () => assert.equal(csvLine([cell, "next"]), `${want},next`));
}

const DENIED = {
  type: "token.denied",
  outcome: "deny",
  reason: "no_rule",
  requested: { audience: ["api"], resource: ["https://b.example"] },
};

test("a row has a cell for each column, also of an event that cannot be read", () => {
  const place = { timeMs: 1_790_000_000_000, log: "as-1", seq: 7 };
  const good = eventCells({ ...place, body: JSON.stringify(DENIED) });
  const named = Object.fromEntries(eventColumns.map((name, index) => [name, good[index]]));
  const { time, log, seq, type, outcome, reason, subject, target } = named;
  assert.deepEqual(
    [time, log, seq, type, outcome, reason, subject, target],
    ["2026-09-21T14:13:20.000Z", "as-1", "7", "token.denied", "deny", "no_rule", "", "api https://b.example"],
  );
  const bad = eventCells({ ...place, body: "{" });
  assert.deepEqual([bad.length, good.length], [eventColumns.length, eventColumns.length]);
  assert.equal(bad.at(-1), 'has an unreadable body: run "audit verify"');
});

/** RFC 9110: blanks, lists and weights of header fields. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseMediaType, parseWeight, splitField, stripBlanks } from "../../src/spec/rfc9110.ts";

test("blanks are SP and HTAB: every other character stays", () => {
  assert.equal(stripBlanks(" \t a b\t "), "a b");
  for (let code = 0; code < 256; code++) {
    const text = `${String.fromCharCode(code)}x${String.fromCharCode(code)}`;
    assert.equal(stripBlanks(text), code === 9 || code === 32 ? "x" : text);
  }
  assert.deepEqual(
    [stripBlanks(""), stripBlanks("\t "), stripBlanks("\ufeff\u2003")],
    ["", "", "\ufeff\u2003"],
  );
});

const fields = [
  ["a, b ,\tc", ["a", "b", "c"]],
  ["", [""]],
  [",,", ["", "", ""]],
  ['a;x="b, c", d', ['a;x="b, c"', "d"]],
  ['a;x="b\\", c", d', ['a;x="b\\", c"', "d"]],
  ['a;x="b\\\\", c', ['a;x="b\\\\"', "c"]],
  ['"a, b', ['"a, b']],
  ["\xa0a, b\xa0", ["\xa0a", "b\xa0"]],
] as const;
for (const [field, want] of fields) {
  test(`the list ${JSON.stringify(field)}: is split outside of quotes alone`, () =>
    assert.deepEqual(splitField(field, ","), want));
}

const weights = [
  ["0", 0],
  ["0.", 0],
  ["0.125", 0.125],
  ["1", 1],
  ["1.000", 1],
  ["1.001", undefined],
  ["0.1234", undefined],
  ["2", undefined],
  ["0x1", undefined],
  ["1e0", undefined],
  ["", undefined],
  [" 1", undefined],
] as const;
for (const [text, want] of weights) {
  test(`the weight ${JSON.stringify(text)}: ${want === undefined ? "is none" : "is read"}`, () =>
    assert.equal(parseWeight(text), want));
}

const OFFERED = ["application/json", "application/x-ndjson", "text/csv"];
const accepted = [
  ["", "application/json"],
  ["*/*", "application/json"],
  ["text/csv", "text/csv"],
  ["Text/CSV ; header=present", "text/csv"],
  ["text/*", "text/csv"],
  ["*/*, application/x-ndjson", "application/x-ndjson"],
  ["text/csv;q=0.5, application/x-ndjson;q=0.7", "application/x-ndjson"],
  ["application/json;q=0, */*", "application/x-ndjson"],
  ["text/html, */*;q=0.1", "application/json"],
  ["application/*;q=0.1, text/csv;q=0.2", "text/csv"],
  ["text/html", undefined],
  ["text/csv;q=0", undefined],
  ["text/csv;q=much", undefined],
  ["*", undefined],
] as const;
for (const [field, want] of accepted) {
  test(`of JSON, NDJSON and CSV, Accept ${JSON.stringify(field)} gets ${want ?? "none"}`, () =>
    assert.equal(chooseMediaType(field, OFFERED), want));
}

import assert from "node:assert/strict";
import { test } from "node:test";
import { parseDetails, readDetails } from "../../src/spec/rfc9396.ts";

const kindOf = (text: string): string => {
  const parsed = parseDetails(text);
  return parsed.ok ? "ok" : parsed.error.kind;
};
const one = (fields: string): string => `[{"type":"t",${fields}}]`;

const CASES: readonly (readonly [string, string, string])[] = [
  ["RFC9396-2-1 an object with a type is read", '[{"type":"t"}]', "ok"],
  ["RFC9396-2-1 an object without a type is refused", '[{"actions":["a"]}]', "details_malformed"],
  ["RFC9396-2-1 a type that is no text is refused", '[{"type":1}]', "details_malformed"],
  ["RFC9396-2-1 an empty type is refused", '[{"type":""}]', "details_malformed"],
  ["RFC9396-2-2 several objects of one type are read", '[{"type":"t"},{"type":"t","a":"b"}]', "ok"],
  ["RAR-D-12 a name that stands twice is refused", one('"a":"b","a":"c"'), "details_malformed"],
  [
    "RAR-D-12 an escaped name that stands twice is refused",
    one('"a":"b","\\u0061":"c"'),
    "details_malformed",
  ],
  ["RAR-D-12 a second type is refused", '[{"type":"t","type":"u"}]', "details_malformed"],
  ["RAR-D-12 an empty array is refused", "[]", "details_malformed"],
  ["RAR-D-12 an empty list is refused", one('"a":[]'), "details_malformed"],
  ["RAR-D-12 a text twice in a list is refused", one('"a":["x","x"]'), "details_malformed"],
  ["RAR-D-12 the greatest safe integer is read", one('"a":9007199254740991'), "ok"],
  ["RAR-D-12 the integer after it is refused", one('"a":9007199254740992'), "details_malformed"],
  [
    "RAR-D-12 an integer that is rounded to another is refused",
    one('"a":9007199254740993'),
    "details_malformed",
  ],
  [
    "RAR-D-12 a fraction that is rounded away is refused",
    one('"a":1.0000000000000000001'),
    "details_malformed",
  ],
  [
    "RAR-D-12 a fraction of the greatest integer is refused",
    one('"a":9007199254740990.4'),
    "details_malformed",
  ],
  ["RAR-D-12 a whole number with an exponent is refused", one('"a":5e2'), "details_malformed"],
  ["RAR-D-12 a whole number with a fraction is refused", one('"a":5.0'), "details_malformed"],
  ["RAR-D-12 minus zero is refused", one('"a":-0'), "details_malformed"],
  ["RAR-D-12 an infinite number is refused", one('"a":1e999'), "details_malformed"],
  ["RAR-D-12 a number that looks odd within a text is read", one('"a":"1.5e3, \\"-0\\""'), "ok"],
  ["RAR-D-12 null is refused", one('"a":null'), "details_malformed"],
  ["RAR-D-12 an object within an object is refused", one('"a":{"b":"c"}'), "details_malformed"],
  ["RAR-D-12 a list of numbers is refused", one('"a":[1]'), "details_malformed"],
  ["RAR-D-12 a list within a list is refused", one('"a":[["b"]]'), "details_malformed"],
  ["RAR-D-12 an empty text is refused", one('"a":""'), "details_malformed"],
  ["RAR-D-12 an object in place of the array is refused", '{"type":"t"}', "details_malformed"],
  ["RAR-D-12 what is no JSON is refused", '[{"type":"t"}', "details_malformed"],
  ["RAR-D-12 a lone surrogate is refused", one('"a":"\\ud800"'), "details_malformed"],
  ["RAR-D-12 a text of 512 bytes is read", one(`"a":"${"x".repeat(512)}"`), "ok"],
  ["RAR-D-12 a text of 513 bytes is refused", one(`"a":"${"x".repeat(513)}"`), "details_malformed"],
  ["RAR-D-12 bytes are counted and not characters", one(`"a":"${"é".repeat(257)}"`), "details_malformed"],
  ["RAR-D-12 16 fields are read", one(fields(16)), "ok"],
  ["RAR-D-12 17 fields are refused", one(fields(17)), "details_malformed"],
  ["RAR-D-12 64 texts in a list are read", one(`"a":${texts(64)}`), "ok"],
  ["RAR-D-12 65 texts in a list are refused", one(`"a":${texts(65)}`), "details_malformed"],
  ["RAR-D-12 16 objects are read", objects(16), "ok"],
  ["RAR-D-12 17 objects are refused", objects(17), "details_too_large"],
  [
    "RAR-D-12 more than 8 KiB are refused before they are parsed",
    `[${" ".repeat(8192)}`,
    "details_too_large",
  ],
  ["RAR-D-12 deep nesting is refused", `${"[".repeat(5000)}`, "details_malformed"],
];

function fields(count: number): string {
  return Array.from({ length: count }, (_, index) => `"f${index}":true`).join(",");
}
function texts(count: number): string {
  return JSON.stringify(Array.from({ length: count }, (_, index) => `v${index}`));
}
function objects(count: number): string {
  return JSON.stringify(Array.from({ length: count }, (_, index) => ({ type: "t", a: `v${index}` })));
}

for (const [name, text, want] of CASES) test(name, () => assert.equal(kindOf(text), want));

test("RFC9396-12-2 texts are read as they are, without normalisation", () => {
  const [decomposed, composed] = ["e\u0301", "\u00e9"];
  const parsed = parseDetails(JSON.stringify([{ type: "t", a: decomposed, b: composed }]));
  assert.deepEqual(parsed.ok && { ...parsed.value[0] }, { type: "t", a: decomposed, b: composed });
});

test("RAR-D-12 a claim has the same limits as the parameter", () => {
  const large = Array.from({ length: 16 }, (_, index) => ({ type: "t", a: `${index}`.padEnd(512, "x") }));
  assert.equal(readDetails(large).ok, false);
  assert.equal(readDetails([{ type: "t", a: 1.5 }]).ok, false);
  assert.equal(readDetails([{ type: "t", a: 2 ** 53 }]).ok, false);
  assert.equal(readDetails(undefined).ok, false);
  assert.equal(readDetails([]).ok, false);
  assert.equal(readDetails([{ type: "t", __proto__: null, a: 1 }]).ok, true);
});

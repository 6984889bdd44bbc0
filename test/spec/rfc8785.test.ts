import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { type Json, parseJson } from "../../src/spec/rfc8259.ts";
import { canonicalize, canonicalizeSparse } from "../../src/spec/rfc8785.ts";

const cases = [
  ["RFC8785-3.2-1 no white space is written", '{ "a" : [ 1 , { } , [ ] ] }', '{"a":[1,{},[]]}'],
  [
    "RFC8785-3.2.3-1 names are sorted at every level",
    '{"b":{"d":1,"c":2},"a":[{"z":1,"y":2}]}',
    '{"a":[{"y":2,"z":1}],"b":{"c":2,"d":1}}',
  ],
  ["RFC8785-3.2.3-1 the order of arrays is kept", "[3,1,2]", "[3,1,2]"],
  ["RFC8785-3.2.3-1 digits are sorted as text", '{"10":1,"9":2,"1":3}', '{"1":3,"10":1,"9":2}'],
  // By code points U+FB33 precedes U+1F600; by UTF-16 code units the surrogates of U+1F600 precede it.
  [
    "RFC8785-3.2.3-1 names are sorted by UTF-16 code units",
    '{"\ufb33":1,"😀":2,"é":3,"A":4}',
    '{"A":4,"é":3,"😀":2,"\ufb33":1}',
  ],
  [
    "RFC8785-3.2.2-1 numbers are written as ECMAScript writes them",
    "[1.0,-0,1E3,1e21,1e-7,0.1,333333333.33333329]",
    "[1,0,1000,1e+21,1e-7,0.1,333333333.3333333]",
  ],
  [
    "RFC8785-3.2.2-1 only what must be escaped is escaped",
    String.raw`"\u0041\/\u00e9\u0022\\\u000a\u001F"`,
    String.raw`"A/é\"\\\n\u001f"`,
  ],
  ["RFC8785-3.2.2-1 the literals are written", "[true,false,null]", "[true,false,null]"],
] as const;

for (const [name, text, want] of cases) {
  test(name, () => {
    const value = parseJson(text, 4);
    assert(value.ok);
    assert.equal(canonicalize(value.value), want);
  });
}

const faults: readonly (readonly [string, Json])[] = [
  ["RFC8785-3.2.2-1 on a lone surrogate an exception is thrown", { a: ["\ud83d"] }],
  ["RFC8785-3.2.2-1 on a lone surrogate in a name an exception is thrown", { "\ude00": 1 }],
  ["RFC8785-3.2.2-1 on NaN an exception is thrown", { a: Number.NaN }],
  ["RFC8785-3.2.2-1 on infinity an exception is thrown", [Number.POSITIVE_INFINITY]],
  ["RFC8785-3.1-1 on a member without value an exception is thrown", { a: undefined } as unknown as Json],
  ["RFC8785-3.1-1 on an element without a value an exception is thrown", [undefined] as unknown as Json],
  ["RFC8785-3.1-1 on no value an exception is thrown", undefined as unknown as Json],
];

for (const [name, value] of faults) test(name, () => assert.throws(() => canonicalize(value), TypeError));

test("RFC8785-3.2.4-1 the hashes of a chain of audit events are reproduced", () => {
  const hash = (value: Json) => createHash("sha256").update("\0").update(canonicalize(value)).digest("hex");
  const genesis = hash({ type: "log.genesis", time: 1_790_000_000, seq: 0, prev: "0".repeat(64) });
  assert.equal(genesis, "722d8c1444a4b830093c5d854f9d61a7213c96371c43ecab23d9236ea6ced4ca");
  const next = hash({
    type: "token_exchange.delegation",
    time: 1_790_000_001,
    seq: 1,
    prev: genesis,
    outcome: "allow",
  });
  assert.equal(next, "56deb23184532e27f2a185d9bef6ac5323a934853d8a521ee9b6477037461c87");
});

test("RFC8785-3.2.3-1 at each depth, members in order and others are written alike", () => {
  const inner = [
    { a: [{ b: 1, c: "x" }], d: null },
    { d: null, a: [{ c: "x", b: 1 }] },
  ] as const;
  for (const one of inner) {
    for (const value of [
      { a: one, e: { f: 1 } },
      { e: { f: 1 }, a: one },
    ])
      assert.equal(
        canonicalize(value as unknown as Json),
        '{"a":{"a":[{"b":1,"c":"x"}],"d":null},"e":{"f":1}}',
      );
  }
});

test("RFC8785-3.1-1 of a record with optional members, an undefined one is left out, in order or not; no element is", () => {
  for (const value of [
    { a: 1, b: undefined, c: { d: undefined } },
    { c: { d: undefined }, b: undefined, a: 1 },
  ])
    assert.equal(canonicalizeSparse(value as unknown as Json), '{"a":1,"c":{}}');
  assert.throws(() => canonicalizeSparse({ a: [undefined] } as unknown as Json), TypeError);
});

test("RFC8785-3.2.3-1 few names and many, in order or not, are sorted alike, by UTF-16 code units", () => {
  for (let count = 0; count <= 70; count++) {
    const names = Array.from({ length: count }, (_, index) =>
      `${(index * 37) % 64}\ufb33😀`.slice(index % 3),
    );
    const want = [...new Set(names)].sort().map((name) => `${JSON.stringify(name)}:0`);
    for (const given of [names, names.toSorted()]) {
      const value = Object.fromEntries(given.map((name) => [name, 0]));
      assert.equal(canonicalize(value), `{${want.join()}}`);
    }
  }
});

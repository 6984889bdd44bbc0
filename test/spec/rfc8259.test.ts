import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeUtf8, parseJson } from "../../src/spec/rfc8259.ts";
import { mutate, type Prng, prng } from "../support/prng.ts";

const DEPTH = 4;

const accepted = [
  ["RFC7515-10.12-v1 every kind of value is accepted", '{"a":[1,-0.5e-3,true,false,null,"s",{}],"b":[]}'],
  ["RFC7515-10.12-v1 white space between tokens is accepted", ' \t\r\n{ "a" :\t[ 1 ,\n2 ] }\r '],
  ["RFC7515-10.12-v1 every escape is accepted", String.raw`"\"\\\/\b\f\n\r\tA\u00e9"`],
  ["RFC7515-10.12-v1 a bare value is accepted", "0"],
  ["RFC7515-10.13-v2 a character outside the BMP is accepted", '"😀"'],
  ["RFC7515-10.13-v2 an escaped pair is accepted", String.raw`"\ud83d\ude00"`],
  ["RFC7519-4-v1 one name in two objects is accepted", '{"a":{"a":1},"b":[{"a":1},{"a":2}]}'],
  ["RFC7515-10.13-v1 names that differ in case are accepted", '{"sig":1,"SIG":2}'],
  ["RFC7519-2-v2 the largest double is accepted", "1.7976931348623157e308"],
  ["RFC7523-3-2 nesting up to the limit is accepted", '[[{"a":[1]}],[[]]]'],
] as const;

for (const [name, text] of accepted) {
  test(name, () => {
    const got = parseJson(text, DEPTH);
    assert.equal(JSON.stringify(got.ok ? got.value : got.error), JSON.stringify(JSON.parse(text)));
  });
}

const refused = [
  ["RFC7515-10.12-v1 an empty text is refused", "", "json_malformed"],
  ["RFC7515-10.12-v1 an unterminated object is refused", '{"a":1', "json_malformed"],
  ["RFC7515-10.12-v1 an unterminated string is refused", '"a', "json_malformed"],
  ["RFC7515-10.12-v1 a string that ends in an escape is refused", '"a\\', "json_malformed"],
  ["RFC7515-10.12-v1 brackets that do not match are refused", "[1}", "json_malformed"],
  ["RFC7515-10.12-v1 a comma at the end of an object is refused", '{"a":1,}', "json_malformed"],
  ["RFC7515-10.12-v1 a comma at the end of an array is refused", "[1,]", "json_malformed"],
  ["RFC7515-10.12-v1 a member without a value is refused", '{"a":}', "json_malformed"],
  ["RFC7515-10.12-v1 a member without a colon is refused", '{"a" 1}', "json_malformed"],
  ["RFC7515-10.12-v1 a name without quotes is refused", "{a:1}", "json_malformed"],
  ["RFC7515-10.12-v1 single quotes are refused", "{'a':1}", "json_malformed"],
  ["RFC7515-10.12-v1 a comment is refused", "[1/*x*/]", "json_malformed"],
  ["RFC7515-10.12-v1 a number with a leading zero is refused", "01", "json_malformed"],
  ["RFC7515-10.12-v1 a number with a plus sign is refused", "+1", "json_malformed"],
  ["RFC7515-10.12-v1 a number that ends in a point is refused", "1.", "json_malformed"],
  ["RFC7515-10.12-v1 a number without integer part is refused", ".5", "json_malformed"],
  ["RFC7515-10.12-v1 hexadecimal is refused", "0x10", "json_malformed"],
  ["RFC7515-10.12-v1 NaN is refused", "NaN", "json_malformed"],
  ["RFC7515-10.12-v1 an incomplete literal is refused", "tru", "json_malformed"],
  ["RFC7515-10.12-v1 an unknown escape is refused", String.raw`"\x41"`, "json_malformed"],
  ["RFC7515-10.12-v1 a short escape is refused", String.raw`"\u41"`, "json_malformed"],
  ["RFC7515-10.12-v1 a control character in a string is refused", '"a\nb"', "json_malformed"],
  ["RFC7515-10.12-v1 other white space is refused", "\u00a01", "json_malformed"],
  ["RFC7515-10.12-v2 a second value is refused", "{} {}", "json_malformed"],
  ["RFC7515-10.12-v2 a NUL at the end is refused", "{}\0", "json_malformed"],
  ["RFC7515-10.13-v2 a lone high surrogate is refused", String.raw`"\ud83d"`, "json_malformed"],
  ["RFC7515-10.13-v2 a lone low surrogate in a name is refused", String.raw`{"\ude00":1}`, "json_malformed"],
  [
    "RFC7515-10.13-v2 a surrogate pair in the wrong order is refused",
    String.raw`"\ude00\ud83d"`,
    "json_malformed",
  ],
  ["RFC7519-4-v1 a repeated member name is refused", '{"a":1,"b":2,"a":1}', "json_duplicate_member"],
  [
    "RFC7517-4-v1 a repeated member name in a nested object is refused",
    '{"keys":[{"kid":"a","kid":"b"}]}',
    "json_duplicate_member",
  ],
  [
    "RFC7515-10.13-v1 a repeated member name hidden by an escape is refused",
    String.raw`{"sig":1,"\u0073ig":2}`,
    "json_duplicate_member",
  ],
  ["RFC7515-4-v1 a second __proto__ is refused", '{"__proto__":1,"__proto__":2}', "json_duplicate_member"],
  ["RFC7519-2-v2 a number that becomes infinite is refused", '{"exp":1e400}', "json_number_not_finite"],
  ["RFC7523-3-2 an object nested too deep is refused", '[[[[{"a":1}]]]]', "json_too_deep"],
  ["RFC7523-3-2 an array nested too deep is refused", "[[[[[]]]]]", "json_too_deep"],
  ["RFC7523-3-2 extreme nesting without a stack overflow is refused", "[".repeat(1_000_000), "json_too_deep"],
] as const;

for (const [name, text, want] of refused) {
  test(name, () => {
    const got = parseJson(text, DEPTH);
    assert.equal(got.ok ? "ok" : got.error.kind, want);
  });
}

test("RFC7515-10.13-v1 __proto__ is kept as an ordinary member", () => {
  const got = parseJson('{"__proto__":{"exp":1},"constructor":2}', DEPTH);
  assert(got.ok);
  assert.equal(Object.getPrototypeOf(got.value), null);
  assert.deepEqual(Object.keys(got.value as object), ["__proto__", "constructor"]);
  assert.equal((got.value as { exp?: unknown }).exp, undefined);
});

const bytes = [
  ["RFC8725-3.7-v1 UTF-8 is accepted", [0x41, 0xc3, 0xa9, 0xf0, 0x9f, 0x98, 0x80], "Aé😀"],
  ["RFC8725-3.7-v2 a truncated sequence is refused", [0x41, 0xc3], "utf8_malformed"],
  ["RFC8725-3.7-v2 Latin-1 is refused", [0xe9, 0x41], "utf8_malformed"],
  ["RFC8725-3.7-v2 an overlong encoding is refused", [0xc0, 0x80], "utf8_malformed"],
  ["RFC8725-3.7-v2 an encoded surrogate is refused", [0xed, 0xa0, 0x80], "utf8_malformed"],
  ["RFC8725-3.7-v2 a byte order mark is refused", [0xef, 0xbb, 0xbf, 0x7b, 0x7d], "utf8_malformed"],
] as const;

for (const [name, input, want] of bytes) {
  test(name, () => {
    const got = decodeUtf8(Uint8Array.from(input));
    assert.equal(got.ok ? got.value : got.error.kind, want);
  });
}

const SEED = 20261121;
const ROUNDS = 5_000;
const NAMES = ["a", "b", "exp", "__proto__", "é", "\\u0061", "\\n"];
const SCALARS = ["0", "-1.5e3", "true", "null", '"x"', '"\\u00e9\\ud83d\\ude00"', '"\\\\\\""'];
const NOISE = [...'{}[]",:\\0e-. \n\u0000\ud800u', "\\ud800", "1e999", "true"];

/** A JSON text of at most three levels, and whether an object in it repeats a name after unescaping. */
function randomJson(random: Prng, depth = 0): { text: string; duplicate: boolean } {
  const shape = depth === 3 ? 0 : random.below(3);
  if (shape === 0) return { text: random.pick(SCALARS), duplicate: false };
  const items = Array.from({ length: random.below(4) }, () => randomJson(random, depth + 1));
  const duplicate = items.some((item) => item.duplicate);
  const space = random.pick(["", " ", "\n"]);
  if (shape === 1)
    return { text: `[${space}${items.map((item) => item.text).join(`,${space}`)}]`, duplicate };
  const names = items.map(() => random.pick(NAMES));
  const unescaped = new Set(names.map((name) => JSON.parse(`"${name}"`)));
  const members = items.map((item, index) => `"${names[index]}"${space}:${item.text}`);
  return { text: `{${members.join(`${space},`)}}`, duplicate: duplicate || unescaped.size < names.length };
}

test("RFC7519-4-v1 random objects are refused exactly if they repeat a name", () => {
  const random = prng(SEED);
  const seen = { ok: 0, json_duplicate_member: 0 };
  for (let round = 0; round < ROUNDS; round++) {
    const { text, duplicate } = randomJson(random);
    const got = parseJson(text, DEPTH);
    const want = duplicate ? "json_duplicate_member" : "ok";
    assert.equal(got.ok ? "ok" : got.error.kind, want, `seed ${SEED}, round ${round}: ${text}`);
    seen[want]++;
  }
  assert(seen.ok > 100 && seen.json_duplicate_member > 100);
});

test("RFC7515-10.12-v1 random text is read as JSON.parse reads it, or refused", () => {
  const random = prng(SEED);
  let agreed = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const text = mutate(random, randomJson(random).text, NOISE);
    const about = `seed ${SEED}, round ${round}: ${JSON.stringify(text)}`;
    const got = parseJson(text, DEPTH);
    let want: unknown;
    try {
      want = JSON.parse(text);
    } catch {
      assert(!got.ok, about);
      continue;
    }
    if (got.ok) {
      assert.equal(JSON.stringify(got.value), JSON.stringify(want), about);
      agreed++;
    } else if (got.error.kind === "json_malformed") {
      // JSON.parse accepts an unpaired surrogate.
      assert.match(text, /\\ud|[\ud800-\udfff]/i, about);
    }
  }
  assert(agreed > 100);
});

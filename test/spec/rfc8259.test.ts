import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeUtf8, parseJson } from "../../src/spec/rfc8259.ts";
import type { Prng } from "../support/prng.ts";
import { mutate, prng } from "../support/prng.ts";

const DEPTH = 4;

const accepted = [
  ["RFC7515-10.12-v1 accepts every kind of value", '{"a":[1,-0.5e-3,true,false,null,"s",{}],"b":[]}'],
  ["RFC7515-10.12-v1 accepts white space between tokens", ' \t\r\n{ "a" :\t[ 1 ,\n2 ] }\r '],
  ["RFC7515-10.12-v1 accepts every escape", String.raw`"\"\\\/\b\f\n\r\tA\u00e9"`],
  ["RFC7515-10.12-v1 accepts a bare value", "0"],
  ["RFC7515-10.13-v2 accepts a character outside the BMP", '"😀"'],
  ["RFC7515-10.13-v2 accepts an escaped pair", String.raw`"\ud83d\ude00"`],
  ["RFC7519-4-v1 accepts one name in two objects", '{"a":{"a":1},"b":[{"a":1},{"a":2}]}'],
  ["RFC7515-10.13-v1 accepts names that differ in case", '{"sig":1,"SIG":2}'],
  ["RFC7519-2-v2 accepts the largest double", "1.7976931348623157e308"],
  ["RFC7523-3-2 accepts nesting up to the limit", '[[{"a":[1]}],[[]]]'],
] as const;

for (const [name, text] of accepted) {
  test(name, () => {
    const got = parseJson(text, DEPTH);
    assert.equal(JSON.stringify(got.ok ? got.value : got.error), JSON.stringify(JSON.parse(text)));
  });
}

const refused = [
  ["RFC7515-10.12-v1 refuses an empty text", "", "json_malformed"],
  ["RFC7515-10.12-v1 refuses an unterminated object", '{"a":1', "json_malformed"],
  ["RFC7515-10.12-v1 refuses an unterminated string", '"a', "json_malformed"],
  ["RFC7515-10.12-v1 refuses a string that ends in an escape", '"a\\', "json_malformed"],
  ["RFC7515-10.12-v1 refuses brackets that do not match", "[1}", "json_malformed"],
  ["RFC7515-10.12-v1 refuses a comma at the end of an object", '{"a":1,}', "json_malformed"],
  ["RFC7515-10.12-v1 refuses a comma at the end of an array", "[1,]", "json_malformed"],
  ["RFC7515-10.12-v1 refuses a member without a value", '{"a":}', "json_malformed"],
  ["RFC7515-10.12-v1 refuses a member without a colon", '{"a" 1}', "json_malformed"],
  ["RFC7515-10.12-v1 refuses a name without quotes", "{a:1}", "json_malformed"],
  ["RFC7515-10.12-v1 refuses single quotes", "{'a':1}", "json_malformed"],
  ["RFC7515-10.12-v1 refuses a comment", "[1/*x*/]", "json_malformed"],
  ["RFC7515-10.12-v1 refuses a number with a leading zero", "01", "json_malformed"],
  ["RFC7515-10.12-v1 refuses a number with a plus sign", "+1", "json_malformed"],
  ["RFC7515-10.12-v1 refuses a number that ends in a point", "1.", "json_malformed"],
  ["RFC7515-10.12-v1 refuses a number without integer part", ".5", "json_malformed"],
  ["RFC7515-10.12-v1 refuses hexadecimal", "0x10", "json_malformed"],
  ["RFC7515-10.12-v1 refuses NaN", "NaN", "json_malformed"],
  ["RFC7515-10.12-v1 refuses an incomplete literal", "tru", "json_malformed"],
  ["RFC7515-10.12-v1 refuses an unknown escape", String.raw`"\x41"`, "json_malformed"],
  ["RFC7515-10.12-v1 refuses a short escape", String.raw`"\u41"`, "json_malformed"],
  ["RFC7515-10.12-v1 refuses a control character in a string", '"a\nb"', "json_malformed"],
  ["RFC7515-10.12-v1 refuses other white space", "\u00a01", "json_malformed"],
  ["RFC7515-10.12-v2 refuses a second value", "{} {}", "json_malformed"],
  ["RFC7515-10.12-v2 refuses a NUL at the end", "{}\0", "json_malformed"],
  ["RFC7515-10.13-v2 refuses a lone high surrogate", String.raw`"\ud83d"`, "json_malformed"],
  ["RFC7515-10.13-v2 refuses a lone low surrogate in a name", String.raw`{"\ude00":1}`, "json_malformed"],
  [
    "RFC7515-10.13-v2 refuses a surrogate pair in the wrong order",
    String.raw`"\ude00\ud83d"`,
    "json_malformed",
  ],
  ["RFC7519-4-v1 refuses a repeated member name", '{"a":1,"b":2,"a":1}', "json_duplicate_member"],
  [
    "RFC7517-4-v1 refuses a repeated member name in a nested object",
    '{"keys":[{"kid":"a","kid":"b"}]}',
    "json_duplicate_member",
  ],
  [
    "RFC7515-10.13-v1 refuses a repeated member name hidden by an escape",
    String.raw`{"sig":1,"\u0073ig":2}`,
    "json_duplicate_member",
  ],
  ["RFC7515-4-v1 refuses a second __proto__", '{"__proto__":1,"__proto__":2}', "json_duplicate_member"],
  ["RFC7519-2-v2 refuses a number that becomes infinite", '{"exp":1e400}', "json_number_not_finite"],
  ["RFC7523-3-2 refuses an object nested too deep", '[[[[{"a":1}]]]]', "json_too_deep"],
  ["RFC7523-3-2 refuses an array nested too deep", "[[[[[]]]]]", "json_too_deep"],
  ["RFC7523-3-2 refuses extreme nesting without a stack overflow", "[".repeat(1_000_000), "json_too_deep"],
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
  ["RFC8725-3.7-v1 accepts UTF-8", [0x41, 0xc3, 0xa9, 0xf0, 0x9f, 0x98, 0x80], "Aé😀"],
  ["RFC8725-3.7-v2 refuses a truncated sequence", [0x41, 0xc3], "utf8_malformed"],
  ["RFC8725-3.7-v2 refuses Latin-1", [0xe9, 0x41], "utf8_malformed"],
  ["RFC8725-3.7-v2 refuses an overlong encoding", [0xc0, 0x80], "utf8_malformed"],
  ["RFC8725-3.7-v2 refuses an encoded surrogate", [0xed, 0xa0, 0x80], "utf8_malformed"],
  ["RFC8725-3.7-v2 refuses a byte order mark", [0xef, 0xbb, 0xbf, 0x7b, 0x7d], "utf8_malformed"],
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

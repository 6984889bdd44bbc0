/** RFC 7239: the address of its client that a proxy tells. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type ForwardedField, parseForwarded } from "../../src/spec/rfc7239.ts";
import { prng } from "../support/prng.ts";

const told = (value: string, field: ForwardedField = "Forwarded"): string | undefined => {
  const parsed = parseForwarded(field, value);
  return parsed.ok ? (parsed.value ?? "hidden") : parsed.error.kind;
};

const MALFORMED = "forwarded_malformed";
const MISSING = "forwarded_for_missing";

const elements: readonly (readonly [name: string, value: string, want: string])[] = [
  ["RFC7239-5.2-1 an address", "for=192.0.2.60", "192.0.2.60"],
  ["RFC7239-5.2-1 an address in quotes", 'for="192.0.2.60"', "192.0.2.60"],
  ["RFC7239-6.1-1 an address with a port", 'for="192.0.2.60:47011"', "192.0.2.60"],
  ["RFC7239-6-1 an address of version 6", 'for="[2001:db8:cafe::17]"', "2001:db8:cafe::17"],
  ["RFC7239-6-1 an address of version 6 with a port", 'for="[2001:DB8:0::17]:4711"', "2001:db8::17"],
  ["RFC7239-6-1 a mapped address", 'for="[::ffff:192.0.2.60]"', "192.0.2.60"],
  ["RFC7239-6.1-1 an obfuscated port", 'for="192.0.2.60:_https"', "192.0.2.60"],
  ["RFC7239-6.2-1 an unknown client", "for=unknown", "hidden"],
  ["RFC7239-6.2-1 an unknown client, in other letters", "for=Unknown", "hidden"],
  ["RFC7239-6.3-1 an obfuscated client", "for=_SEVKISEK", "hidden"],
  ["RFC7239-6.3-1 an obfuscated client with a port", 'for="_gazonk:80"', "hidden"],
  ["RFC7239-4-2 names in other letters", "Proto=https;FOR=192.0.2.60", "192.0.2.60"],
  ["RFC7239-4-1 the last element counts", "for=192.0.2.1, for=192.0.2.2,for=192.0.2.3", "192.0.2.3"],
  ["RFC7239-4-1 other parameters of the last element", "for=192.0.2.1,by=_x;for=192.0.2.2", "192.0.2.2"],
  ["RFC7239-4-1 empty elements and pairs", ", for=192.0.2.1;;by=_x; , ,", "192.0.2.1"],
  ["RFC7239-4-1 a comma in quotes", 'for="_a, for=192.0.2.1", for=192.0.2.2', "192.0.2.2"],
  ["RFC7239-4-1 a comma in the last quotes", 'for=192.0.2.2;by="_a, for=192.0.2.1"', "192.0.2.2"],
  ["RFC7239-4-1 a quote within quotes", 'secret="\\", for=192.0.2.1", for=192.0.2.2', "192.0.2.2"],
  ["RFC7239-4-1 an escaped address", 'for="\\1\\92.0.2.60"', "192.0.2.60"],
  ["RFC7239-4-1 no client in the last element", "for=192.0.2.1, proto=https", MISSING],
  ["RFC7239-4-1 an empty field", "", MISSING],
  ["RFC7239-4-1 commas alone", ", ,", MISSING],
  ["RFC7239-4-3 a client that is told twice", "for=192.0.2.1;For=192.0.2.2", MALFORMED],
  ["RFC7239-4-1 quotes that do not end", 'for="192.0.2.1, for=192.0.2.2', MALFORMED],
  ["RFC7239-4-1 no value", "for=", MALFORMED],
  ["RFC7239-4-1 no name", "192.0.2.1", MALFORMED],
  ["RFC7239-4-1 a blank between pairs", "for=192.0.2.1; proto=https", MALFORMED],
  ["RFC7239-4-1 a blank around the sign", "for =192.0.2.1", MALFORMED],
  ["RFC7239-4-1 a port without quotes", "for=192.0.2.1:80", MALFORMED],
  ["RFC7239-4-1 characters after quotes", 'for="192.0.2.1"0', MALFORMED],
  ["RFC7239-6-1 version 6 without brackets", 'for="2001:db8::1"', MALFORMED],
  ["RFC7239-6-1 version 6 with a zone", 'for="[fe80::1%eth0]"', MALFORMED],
  ["RFC7239-6-1 version 4 in brackets", 'for="[192.0.2.1]"', MALFORMED],
  ["RFC7239-6-1 three numbers", "for=192.0.2", MALFORMED],
  ["RFC7239-6-1 a number too large", "for=192.0.2.256", MALFORMED],
  ["RFC7239-6-1 a number in octal", "for=192.0.02.1", MALFORMED],
  ["RFC7239-6-1 a name", "for=client.example", MALFORMED],
  ["RFC7239-6.1-1 a port of six digits", 'for="192.0.2.1:123456"', MALFORMED],
  ["RFC7239-6.1-1 a port that is empty", 'for="192.0.2.1:"', MALFORMED],
];
for (const [name, value, want] of elements) {
  test(`${name}: ${value}`, () => assert.equal(told(value), want));
}

const lists: readonly (readonly [value: string, want: string])[] = [
  ["192.0.2.60", "192.0.2.60"],
  ["192.0.2.1, 192.0.2.60", "192.0.2.60"],
  ['what a client sent",for=x, 192.0.2.60 ', "192.0.2.60"],
  ["2001:db8::0:1", "2001:db8::1"],
  ["[2001:db8::1]:443", "2001:db8::1"],
  ["192.0.2.60:443", "192.0.2.60"],
  ["::ffff:192.0.2.60", "192.0.2.60"],
  ["unknown", "hidden"],
  ["192.0.2.1,", MISSING],
  ["", MISSING],
  ["192.0.2.1 192.0.2.2", MALFORMED],
  ["client.example", MALFORMED],
  ["192.0.2.1,\t192.0.2.60 ", "192.0.2.60"],
  ["192.0.2.60\xa0", MALFORMED],
  ["\xa0192.0.2.60", MALFORMED],
  ["[2001:db8::1", MALFORMED],
  ["unknown:1:2", MALFORMED],
  ["_a:_b:c", MALFORMED],
  [`_${"a".repeat(255)}`, "hidden"],
  [`_${"a".repeat(256)}`, MALFORMED],
  [`${":".repeat(16_000)}!`, MALFORMED],
  ['"192.0.2.1"', MALFORMED],
  ["1:2:3", MALFORMED],
];
for (const [value, want] of lists) {
  test(`RFC7239-7.4-1 X-Forwarded-For: ${value.slice(0, 60)}`, () =>
    assert.equal(told(value, "X-Forwarded-For"), want));
}

test("RFC7239-4-1 whatever a client sends, it is never taken for what the proxy added behind it", () => {
  const random = prng(7239);
  const pieces = ["for=", "192.0.2.1", '"', "\\", ",", ";", " ", "[", "]", "_x", "=", "unknown", "by"];
  for (let round = 0; round < 20_000; round++) {
    const length = random.below(12);
    const sent = Array.from({ length }, () => random.pick(pieces)).join("");
    for (const [field, added, want] of [
      ["Forwarded", "for=192.0.2.60", "192.0.2.60"],
      ["Forwarded", 'for="[2001:db8::60]:80";by="_x"', "2001:db8::60"],
      ["X-Forwarded-For", "192.0.2.60", "192.0.2.60"],
    ] as const) {
      const heard = told(`${sent}, ${added}`, field);
      assert.ok(heard === want || heard === MALFORMED, `${field}: ${sent}`);
    }
  }
});

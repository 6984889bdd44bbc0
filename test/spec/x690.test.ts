import assert from "node:assert/strict";
import { test } from "node:test";
import { DER_DEPTH_MAX } from "../../src/limits/input.ts";
import {
  childrenOf,
  type Der,
  readAscii,
  readBits,
  readBoolean,
  readDer,
  readInteger,
  readOid,
  readTime,
  SEQUENCE,
  sameBytes,
} from "../../src/spec/x690.ts";
import { hex, oid, seq, tlv } from "../fixtures/x509/build.ts";
import { prng } from "../support/prng.ts";

const judge = (bytes: Uint8Array): string => {
  const got = readDer(bytes);
  return got.ok ? "ok" : got.error.kind;
};

function node(bytes: Uint8Array): Der {
  const got = readDer(bytes);
  assert(got.ok, bytes.toHex());
  return got.value;
}

const nested = (depth: number) => {
  let bytes = hex("0500");
  for (let level = 1; level < depth; level++) bytes = seq(bytes);
  return bytes;
};

const encodings: readonly (readonly [string, string, string])[] = [
  ["an empty sequence is accepted", "3000", "ok"],
  ["a length of 127 is accepted", `047f${"00".repeat(127)}`, "ok"],
  ["a length of 128 in the long form is accepted", `048180${"00".repeat(128)}`, "ok"],
  ["a length of 256 in two octets is accepted", `04820100${"00".repeat(256)}`, "ok"],
  ["an empty string is refused", "", "der_truncated"],
  ["an identifier alone is refused", "30", "der_truncated"],
  ["truncated content is refused", "300205", "der_truncated"],
  ["a truncated length is refused", "0482", "der_truncated"],
  ["a child that is longer than its parent is refused", "3003040200", "der_truncated"],
  ["a child whose length is cut off by its parent is refused", "30020481", "der_truncated"],
  ["octets after the value are refused", "050000", "der_trailing"],
  ["a second value is refused", "05000500", "der_trailing"],
  ["the indefinite length is refused", "30800000", "der_length_malformed"],
  ["the reserved length is refused", "30ff", "der_length_malformed"],
  ["a long form for a short length is refused", "04810100", "der_length_malformed"],
  ["a leading zero in the length is refused", `04820080${"00".repeat(128)}`, "der_length_malformed"],
  ["a length of five octets is refused", "04850000000001ff", "der_length_malformed"],
  ["a length of four gigabytes is refused", "0484ffffffff", "der_truncated"],
  ["a multi-octet tag is refused", "1f810100", "der_tag_refused"],
  ["a multi-octet context tag is refused", "bf810100", "der_tag_refused"],
  ["end-of-contents is refused", "0000", "der_tag_refused"],
  ["a constructed string is refused", "2403040100", "der_tag_refused"],
  ["a constructed UTF-8 string is refused", "2c030c0141", "der_tag_refused"],
  ["a primitive sequence is refused", "1000", "der_tag_refused"],
  ["a primitive set is refused", "1100", "der_tag_refused"],
  ["primitive and constructed context tags are accepted", "30058001ffa000", "ok"],
  ["FALSE is accepted", "010100", "ok"],
  ["TRUE is accepted", "0101ff", "ok"],
  ["another TRUE is refused", "010101", "der_value_malformed"],
  ["an empty BOOLEAN is refused", "0100", "der_value_malformed"],
  ["a BOOLEAN of two octets is refused", "0102ffff", "der_value_malformed"],
  ["a zero is accepted", "020100", "ok"],
  ["a zero before a high bit is accepted", "02020080", "ok"],
  ["minus 129 is accepted", "0202ff7f", "ok"],
  ["an empty INTEGER is refused", "0200", "der_value_malformed"],
  ["a superfluous leading zero is refused", "0202007f", "der_value_malformed"],
  ["a superfluous sign octet is refused", "0202ff80", "der_value_malformed"],
  ["an ENUMERATED with a superfluous leading zero is refused", "0a02007f", "der_value_malformed"],
  ["an empty BIT STRING is accepted", "030100", "ok"],
  ["unused bits that are zero are accepted", "030207 80", "ok"],
  ["a BIT STRING without its count of unused bits is refused", "0300", "der_value_malformed"],
  ["non-zero unused bits are refused", "03020781", "der_value_malformed"],
  ["eight unused bits are refused", "03020800", "der_value_malformed"],
  ["unused bits of an empty BIT STRING are refused", "030101", "der_value_malformed"],
  ["a NULL with content is refused", "050100", "der_value_malformed"],
  ["an OID is accepted", "06032a0304", "ok"],
  ["an empty OID is refused", "0600", "der_value_malformed"],
  ["a truncated OID is refused", "06022a83", "der_value_malformed"],
  ["an OID with a leading zero group inside is refused", "06032a8001", "der_value_malformed"],
  ["an OID that begins with a zero group is refused", "06028001", "der_value_malformed"],
  ["a zero group inside an arc of an OID is accepted", "06042a818001", "ok"],
  ["an OID of 65 octets is refused", `0641${"2a".repeat(65)}`, "der_value_malformed"],
  ["an OID of 64 octets is accepted", `0640${"2a".repeat(64)}`, "ok"],
  ["a set in order is accepted", "3106020101020102", "ok"],
  ["equal members of a set are accepted", "3106020101020101", "ok"],
  ["a set out of order is refused", "3106020102020101", "der_value_malformed"],
  ["a malformed nested value is refused", "30073005a003010101", "der_value_malformed"],
];

for (const [name, text, want] of encodings) {
  test(`X5S-5.1-1 DER ${name}`, () => assert.equal(judge(hex(text)), want));
}

test("X5S-5.1-1 DER accepts nesting up to the limit and refuses more", () => {
  assert.equal(judge(nested(DER_DEPTH_MAX)), "ok");
  assert.equal(judge(nested(DER_DEPTH_MAX + 1)), "der_too_deep");
  assert.equal(judge(nested(3000)), "der_too_deep");
});

test("X5S-5.1-1 DER keeps the bytes of every value", () => {
  const bytes = hex("3008020105 30030c0141");
  const [number, list] = childrenOf(node(bytes), SEQUENCE);
  assert.deepEqual(number?.bytes.toHex(), "020105");
  assert.deepEqual(number?.content.toHex(), "05");
  assert.deepEqual(
    list?.children.map((child) => child.bytes.toHex()),
    ["0c0141"],
  );
  assert.deepEqual(childrenOf(number, SEQUENCE), []);
  assert.deepEqual(childrenOf(undefined, SEQUENCE), []);
});

const integers: readonly (readonly [string, bigint])[] = [
  ["020100", 0n],
  ["02017f", 127n],
  ["02020080", 128n],
  ["020180", -128n],
  ["0202ff7f", -129n],
  ["0209 00ffffffffffffffff", 2n ** 64n - 1n],
];
for (const [text, want] of integers) {
  test(`X5S-5.1-1 DER reads the integer ${want}`, () => assert.equal(readInteger(node(hex(text))), want));
}

for (const dotted of ["0.9.2342.19200300.100.1.25", "1.2.840.10045.4.3.2", "2.5.29.15", "2.40.1", "2.47"]) {
  test(`X5S-5.1-1 DER reads the OID ${dotted}`, () => assert.equal(readOid(node(oid(dotted))), dotted));
}
const oids: readonly (readonly [string, string])[] = [
  ["0603883703", "2.999.3"],
  ["06015f", "2.15"],
  ["060127", "0.39"],
  ["060128", "1.0"],
  ["06014f", "1.39"],
  ["060150", "2.0"],
];
for (const [text, want] of oids) {
  test(`X5S-5.1-1 DER reads the OID of ${text}`, () => assert.equal(readOid(node(hex(text))), want));
}
test("X5S-5.1-1 DER distinguishes OID arcs that a double cannot hold", () => {
  const [a, b] = ["01", "02"].map((last) => readOid(node(hex(`060c6a87${"80".repeat(9)}${last}`))));
  assert.ok(a?.startsWith("2.26.") && b?.startsWith("2.26."));
  assert.notEqual(a, b);
});

const timeOf = (tag: number, text: string) =>
  readTime({ tag, bytes: hex(""), content: new TextEncoder().encode(text), children: [] });
const times: readonly (readonly [string, number, string, number | undefined])[] = [
  ["UTCTime is accepted", 0x17, "260102030405Z", Date.UTC(2026, 0, 2, 3, 4, 5)],
  ["reads 49 as 2049", 0x17, "490101000000Z", Date.UTC(2049, 0, 1)],
  ["reads 50 as 1950", 0x17, "500101000000Z", Date.UTC(1950, 0, 1)],
  ["GeneralizedTime is accepted", 0x18, "21260102030405Z", Date.UTC(2126, 0, 2, 3, 4, 5)],
  ["99991231235959Z is accepted", 0x18, "99991231235959Z", Date.UTC(9999, 11, 31, 23, 59, 59)],
  ["a leap day is accepted", 0x17, "240229000000Z", Date.UTC(2024, 1, 29)],
  ["a leap day in another year is refused", 0x17, "250229000000Z", undefined],
  ["month 13 is refused", 0x17, "261301000000Z", undefined],
  ["month 0 is refused", 0x17, "260001000000Z", undefined],
  ["day 0 is refused", 0x17, "260100000000Z", undefined],
  ["hour 24 is refused", 0x17, "260101240000Z", undefined],
  ["minute 60 is refused", 0x17, "260101006000Z", undefined],
  ["second 60 is refused", 0x17, "260101000060Z", undefined],
  ["a time without seconds is refused", 0x17, "2601010000Z", undefined],
  ["local time is refused", 0x17, "260101000000", undefined],
  ["another zone is refused", 0x17, "260101000000+0100", undefined],
  ["fractions are refused", 0x18, "20260101000000.5Z", undefined],
  ["four digits in UTCTime are refused", 0x17, "20260101000000Z", undefined],
  ["two digits in GeneralizedTime are refused", 0x18, "260101000000Z", undefined],
  ["the year 50 in four digits is refused", 0x18, "00500101000000Z", undefined],
  ["blanks are refused", 0x17, " 60101000000Z", undefined],
  ["non-ASCII digits are refused", 0x17, "２60101000000Z", undefined],
  ["an empty time is refused", 0x18, "", undefined],
  ["another type is refused", 0x0c, "260102030405Z", undefined],
];
for (const [name, tag, text, want] of times) {
  test(`X5S-5.1-1 DER ${name}`, () => {
    assert.equal(timeOf(tag, text), want === undefined ? undefined : want / 1000);
    if (tag !== 0x0c) {
      assert.equal(
        judge(tlv(tag, new TextEncoder().encode(text))),
        want === undefined ? "der_value_malformed" : "ok",
      );
    }
  });
}

test("X5S-5.1-1 DER reads a value only as its own type", () => {
  const text = node(hex("0c0141"));
  assert.deepEqual(
    [readBoolean(text), readInteger(text), readBits(text), readOid(text), readTime(text)],
    [undefined, undefined, undefined, undefined, undefined],
  );
  assert.equal(readBoolean(node(hex("0101ff"))), true);
  assert.equal(readBoolean(node(hex("010100"))), false);
  assert.deepEqual(readBits(node(hex("03020780"))), { unused: 7, bytes: hex("80") });
});

test("RFC8705-7.5-3 only printable ASCII text is accepted", () => {
  assert.equal(readAscii(hex("612e 7e20")), "a.~ ");
  for (const text of ["6100", "610a", "617f", "61c3bc", "1f"])
    assert.equal(readAscii(hex(text)), undefined, text);
});

test("X5S-5.1-1 bytes are compared in full", () => {
  assert.ok(sameBytes(hex("0102"), hex("0102")));
  for (const other of ["", "01", "010203", "0103"]) assert.ok(!sameBytes(hex("0102"), hex(other)));
});

test("X5S-5.1-1 DER reading random octets never throws", () => {
  const random = prng(690);
  const tags = [0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x17, 0x18, 0x30, 0x31, 0x80, 0xa0, 0xa3];
  let read = 0;
  for (let round = 0; round < 20_000; round++) {
    const bytes = Uint8Array.from({ length: random.below(24) }, () =>
      random.below(3) === 0 ? random.below(256) : random.below(2) === 0 ? random.below(6) : random.pick(tags),
    );
    const got = readDer(bytes);
    if (!got.ok) continue;
    read++;
    assert.ok(sameBytes(got.value.bytes, bytes));
  }
  assert.ok(read > 20, `only ${read} were DER`);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { KID_CHARS_MAX } from "../../src/limits/input.ts";
import { decodeBase64url, encodeBase64url, mediaType, parseJws } from "../../src/spec/rfc7515.ts";
import { mutate, prng } from "../support/prng.ts";

const utf8 = new TextEncoder();
const part = (value: unknown) =>
  encodeBase64url(utf8.encode(typeof value === "string" ? value : JSON.stringify(value)));
const jws = (header: unknown, claims: unknown = {}) => `${part(header)}.${part(claims)}.AQID`;
const kind = (compact: string) => {
  const got = parseJws(compact);
  return got.ok ? "ok" : got.error.kind;
};

const base64url = [
  ["RFC7515-2-v1 one byte is accepted", "QQ", [0x41]],
  ["RFC7515-2-v1 two bytes are accepted", "QUI", [0x41, 0x42]],
  ["RFC7515-2-v1 three bytes are accepted", "QUJD", [0x41, 0x42, 0x43]],
  ["RFC7515-2-v1 the two special letters are accepted", "-_-_", [0xfb, 0xff, 0xbf]],
  ["RFC7515-2-v1 an empty string is accepted", "", []],
  ["RFC7515-2-v1 padding is refused", "QQ==", undefined],
  ["RFC7515-2-v1 the letters of base64 are refused", "+/+/", undefined],
  ["RFC7515-2-v1 a blank is refused", "QU JD", undefined],
  ["RFC7515-2-v1 a line break at the end is refused", "QUJD\n", undefined],
  ["RFC7515-2-v1 non-zero bits among four unused ones are refused", "QR", undefined],
  ["RFC7515-2-v1 non-zero bits among two unused ones are refused", "QUJ", undefined],
  ["RFC7515-2-v1 an impossible length is refused", "QUJDQ", undefined],
  ["RFC7515-2-v1 a non-ASCII character is refused", "QUJé", undefined],
] as const;

for (const [name, text, want] of base64url) {
  test(name, () => {
    assert.deepEqual(decodeBase64url(text), want && Uint8Array.from(want));
    if (want !== undefined) assert.equal(encodeBase64url(Uint8Array.from(want)), text);
  });
}

test("RFC7515-2-v1 of all texts with one ending after four letters, only those are decoded that encoding gives back", () => {
  const letters = [...new TextDecoder().decode(Uint8Array.from({ length: 128 }, (_, code) => code))];
  for (const last of letters) {
    for (const text of [last, `A${last}`, `AA${last}`, `AAA${last}`, `QUJDA${last}`, `QUJDAA${last}`]) {
      const bytes = Buffer.from(text, "base64url");
      const isCanonical = bytes.toString("base64url") === text;
      assert.deepEqual(decodeBase64url(text), isCanonical ? Uint8Array.from(bytes) : undefined, text);
    }
  }
});

const types = [
  ["RFC7515-4.1.9-v1 the prefix is added to a short type", "at+jwt", "application/at+jwt"],
  ["RFC7515-4.1.9-v1 a full type is kept", "application/at+jwt", "application/at+jwt"],
  ["RFC7515-4.1.9-v1 ASCII letters are compared without case", "Application/AT+JWT", "application/at+jwt"],
  ["RFC7515-4.1.9-v1 other letters are compared exactly", "to\u212aen+jwt", "application/to\u212aen+jwt"],
] as const;

for (const [name, typ, want] of types) test(name, () => assert.equal(mediaType(typ), want));

const es256 = { alg: "ES256" };
const levels = (depth: number): string => `${'{"act":'.repeat(depth - 1)}{}${"}".repeat(depth - 1)}`;
const sized = (length: number) => {
  const compact = jws(es256);
  return compact + "A".repeat(length - compact.length);
};

const cases = [
  ["RFC7515-5.2-v1 three parts are accepted", jws(es256), "ok"],
  ["RFC7515-5.2-v1 two parts are refused", "e30.e30", "jws_not_compact"],
  ["RFC7515-5.2-v1 four parts are refused", "e30.e30.AQID.AQID", "jws_not_compact"],
  ["RFC7515-5.2-v1 six parts are refused", "e30.e30.AQID.AQID.AQID.AQID", "jws_not_compact"],
  ["RFC7515-5.2-v1 an empty payload is refused", `${part(es256)}..AQID`, "jws_not_compact"],
  ["RFC7515-5.2-v1 an empty string is refused", "", "jws_not_compact"],
  ["RFC7518-3.6-v1 an empty signature is refused", `${part({ alg: "none" })}.e30.`, "jws_not_compact"],
  ["JSV-2-2 a JWE is refused", `${part({ alg: "dir", enc: "A128GCM" })}.AA.AA.AA.AA`, "jws_encrypted"],
  [
    "B8725-3.3-1 a JWE with an empty key is refused",
    `${part({ alg: "dir", enc: "A128GCM" })}..AA.AA.AA`,
    "jws_encrypted",
  ],
  [
    "B8725-3.14-1 the JSON serialization is refused",
    '{"payload":"e30","signature":"AQID"}',
    "jws_not_compact",
  ],
  ["B8725-3.14-1 a leading blank is refused", ` ${jws(es256)}`, "jws_not_compact"],
  ["B8725-3.14-1 a line break at the end is refused", `${jws(es256)}\n`, "jws_not_compact"],
  [
    "RFC7515-5.2-v2 a header with non-zero unused bits is refused",
    `${part('{"alg":"ES256"} ').replace(/A$/, "B")}.e30.AQID`,
    "jws_base64url_malformed",
  ],
  [
    "RFC7515-5.2-v2 a payload with non-zero unused bits is refused",
    `${part(es256)}.e31.AQID`,
    "jws_base64url_malformed",
  ],
  [
    "RFC7515-5.2-v2 a signature with non-zero unused bits is refused",
    `${part(es256)}.e30.AQJ`,
    "jws_base64url_malformed",
  ],
  ["PROD-8.4-2, RFC7523-3-2 a token of 16 KiB is accepted", sized(16 * 1024), "ok"],
  ["PROD-8.4-2, RFC7523-3-2 a longer token is refused", sized(16 * 1024 + 4), "jws_too_large"],
  ["RFC7515-5.2-v3 a header that is not an object is refused", jws([es256]), "jws_part_malformed"],
  [
    "RFC7515-5.2-v3 a header that is not UTF-8 is refused",
    `${encodeBase64url(Uint8Array.of(0x22, 0xe9, 0x22))}.e30.AQID`,
    "jws_part_malformed",
  ],
  [
    "RFC7515-10.12-v2 text after the header object is refused",
    jws('{"alg":"ES256"} x'),
    "jws_part_malformed",
  ],
  [
    "RFC7515-4-v1 a header with a name twice is refused",
    jws('{"alg":"ES256","alg":"none"}'),
    "jws_part_malformed",
  ],
  ["RFC7523-3-2 a header of 8 levels is accepted", jws(`{"alg":"ES256","x":${levels(7)}}`), "ok"],
  [
    "RFC7523-3-2 a header of 9 levels is refused",
    jws(`{"alg":"ES256","x":${levels(8)}}`),
    "jws_part_malformed",
  ],
  ["RFC7519-7.2-v2 claims that are not an object are refused", jws(es256, ["a"]), "jws_part_malformed"],
  ["RFC7519-7.2-v2 claims that are null are refused", jws(es256, null), "jws_part_malformed"],
  ["RFC7519-7.2-v2 claims that are not JSON are refused", jws(es256, "{"), "jws_part_malformed"],
  [
    "RFC7519-4-v1 claims with a name twice are refused",
    jws(es256, '{"sub":"a","sub":"b"}'),
    "jws_part_malformed",
  ],
  ["RFC7523-3-2 claims of 16 levels are accepted", jws(es256, levels(16)), "ok"],
  ["RFC7523-3-2 claims of 17 levels are refused", jws(es256, levels(17)), "jws_part_malformed"],
  ["RFC7515-4.1.1-v1 a header without alg is refused", jws({}), "jws_header_malformed"],
  [
    "RFC7515-4.1.1-v1 an alg that is not a string is refused",
    jws({ alg: ["ES256"] }),
    "jws_header_malformed",
  ],
  ["RFC7515-4.1.4-v1 a kid is accepted", jws({ ...es256, kid: "k1" }), "ok"],
  ["RFC7515-4.1.4-v1 a kid that is a number is refused", jws({ ...es256, kid: 1 }), "jws_header_malformed"],
  ["RFC7515-4.1.4-v1 a kid that is null is refused", jws({ ...es256, kid: null }), "jws_header_malformed"],
  ["RFC8725-3.10-v1 the longest kid is accepted", jws({ ...es256, kid: "k".repeat(KID_CHARS_MAX) }), "ok"],
  [
    "RFC8725-3.10-v1 a longer kid is refused",
    jws({ ...es256, kid: "k".repeat(KID_CHARS_MAX + 1) }),
    "jws_header_malformed",
  ],
  ["RFC7515-4.1.9-v1 a typ is accepted", jws({ ...es256, typ: "JWT" }), "ok"],
  [
    "RFC7515-4.1.9-v1 a typ that is not a string is refused",
    jws({ ...es256, typ: 1 }),
    "jws_header_malformed",
  ],
  ["RFC7519-5.2-v1 another cty is accepted", jws({ ...es256, cty: "json" }), "ok"],
  ["RFC7519-5.2-v1 a nested JWT is refused", jws({ ...es256, cty: "JWT" }), "jws_header_refused"],
  [
    "RFC7519-5.2-v1 a nested JWT in lower case is refused",
    jws({ ...es256, cty: "jwt" }),
    "jws_header_refused",
  ],
  [
    "RFC7519-5.2-v1 a nested JWT as a full type is refused",
    jws({ ...es256, cty: "application/jwt" }),
    "jws_header_refused",
  ],
  ["RFC7519-5.2-v1 a cty that is not a string is refused", jws({ ...es256, cty: 1 }), "jws_header_malformed"],
  ["RFC7515-4-v2 an unknown parameter is accepted", jws({ ...es256, "x-new": 1 }), "ok"],
  [
    "RFC7515-4.1.11-v1, RFC7515-5.2-v4 an extension is refused",
    jws({ ...es256, crit: ["exp"], exp: 1 }),
    "jws_header_refused",
  ],
  [
    "RFC7515-4.1.11-v3, RFC7515-4.1.11-v2 an empty crit is refused",
    jws({ ...es256, crit: [] }),
    "jws_header_refused",
  ],
  ["RFC7797-7-v1 the default of b64 is accepted", jws({ ...es256, b64: true }), "ok"],
  [
    "RFC7797-7-v1 a payload that is not encoded is refused",
    jws({ ...es256, b64: false }),
    "jws_header_refused",
  ],
  [
    "RFC7797-7-v1 a b64 that is not a boolean is refused",
    jws({ ...es256, b64: "false" }),
    "jws_header_refused",
  ],
  ...["jku", "jwk", "x5u", "x5c", "x5t", "x5t#S256"].map(
    (name) =>
      [`RFC8725-3.10-v2 ${name} is refused`, jws({ ...es256, [name]: "x" }), "jws_header_refused"] as const,
  ),
  ...["enc", "zip", "epk", "apu", "apv", "iv", "tag", "p2s", "p2c"].map(
    (name) =>
      [`B8725-3.15-1 ${name} is refused`, jws({ ...es256, [name]: "x" }), "jws_header_refused"] as const,
  ),
] as const;

for (const [name, compact, want] of cases) test(name, () => assert.equal(kind(compact), want));

test("RFC7515-4.1.3-v1 never trusts a key in the header", () => {
  for (const member of ["jku", "jwk", "x5u", "x5c", "x5t", "x5t#S256"])
    assert.equal(kind(jws({ ...es256, [member]: {} })), "jws_header_refused", member);
  assert.equal(kind(jws(es256)), "ok");
});

test("RFC7515-5.2-v5 the signed bytes are returned as received", () => {
  const compact = jws('{ "typ":"JWT", "alg":"ES256", "kid":"\\u006b1" }', '{ "sub" : "a" }');
  const got = parseJws(compact);
  assert(got.ok);
  const { header, claims, signingInput, signature } = got.value;
  assert.equal(`${signingInput}.AQID`, compact);
  assert.equal(got.value.compact, compact);
  assert.deepEqual([...signature], [1, 2, 3]);
  assert.deepEqual([header.alg, header.kid, header.typ], ["ES256", "k1", "JWT"]);
  assert.deepEqual(Object.keys(header.members), ["typ", "alg", "kid"]);
  assert.equal(claims.sub, "a");
});

const SEED = 20261121;
const ROUNDS = 5_000;
const NOISE = [..."AQRgw9-_.+/=~ \n{\u00e9\ud800", "e30", "..", "fQ", "In0"];

test("RFC7515-5.2-v2 of a random token only the canonical encoding is accepted", () => {
  const random = prng(SEED);
  const compact = jws({ alg: "ES256", kid: "k1", typ: "JWT" }, { sub: "a", exp: 1 });
  let accepted = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const text = mutate(random, compact, NOISE);
    const got = parseJws(text);
    if (!got.ok) continue;
    const about = `seed ${SEED}, round ${round}: ${JSON.stringify(text)}`;
    const [header = "", payload = "", signature = ""] = text
      .split(".")
      .map((piece) => Buffer.from(piece, "base64url"));
    assert.equal(
      JSON.stringify(got.value.header.members),
      JSON.stringify(JSON.parse(header.toString())),
      about,
    );
    assert.equal(JSON.stringify(got.value.claims), JSON.stringify(JSON.parse(payload.toString())), about);
    const again = [header, payload, signature].map((piece) => Buffer.from(piece).toString("base64url"));
    assert.equal(again.join("."), text, about);
    accepted++;
  }
  assert(accepted > 20, `only ${accepted} accepted`);
});

import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { KEYS_MAX, KID_CHARS_MAX } from "../../src/limits/input.ts";
import { decodeBase64url, encodeBase64url } from "../../src/spec/rfc7515.ts";
import {
  algorithmsOf,
  type Jwk,
  parseJwk,
  parseJwkSet,
  RSA_ALGORITHMS,
  selectKey,
} from "../../src/spec/rfc7517.ts";
import type { Json, JsonObject } from "../../src/spec/rfc8259.ts";

const ec = (namedCurve: string) =>
  generateKeyPairSync("ec", { namedCurve }).publicKey.export({ format: "jwk" }) as JsonObject & { x: string };
const p256 = ec("P-256");
const second = ec("P-256");
const p384 = ec("P-384");
const p521 = ec("P-521");
const ed25519 = generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" }) as JsonObject & {
  x: string;
};
const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).publicKey.export({
  format: "jwk",
}) as JsonObject & { n: string };
const oct = { kty: "oct", k: "AQID" };

const bytesOf = (text: string): Uint8Array => decodeBase64url(text) ?? new Uint8Array();
/** The same number with a leading octet added or removed. */
const longer = (text: string) => encodeBase64url(Uint8Array.of(0, ...bytesOf(text)));
const shorter = (text: string) => encodeBase64url(bytesOf(text).subarray(1));
/** The same length with the last bit flipped. */
const flipped = (text: string) =>
  encodeBase64url(bytesOf(text).map((byte, at, all) => byte ^ (at === all.length - 1 ? 1 : 0)));
const integer = (value: bigint) => {
  const hex = value.toString(16);
  return encodeBase64url(Uint8Array.fromHex(hex.padStart(hex.length + (hex.length % 2), "0")));
};

const primes = Array.from({ length: 166 }, (_, index) => index + 2).filter((n) => !isComposite(n));
function isComposite(n: number): boolean {
  for (let factor = 2; factor * factor <= n; factor++) if (n % factor === 0) return true;
  return false;
}
const primorial = primes.reduce((product, prime) => product * BigInt(prime), 1n);

/** An odd number of this many bits without a small factor; its private key is not needed. */
function modulus(bits: number): bigint {
  for (let n = 2n ** BigInt(bits - 1) + 1n; ; n += 2n)
    if (primes.every((prime) => n % BigInt(prime) !== 0n)) return n;
}

/** Generated as the library affected by ROCA did: each factor is a power of 65537 modulo the primorial. */
function marked(): bigint {
  const power = (exponent: number) => {
    let value = 1n;
    for (let i = 0; i < exponent; i++) value = (value * 65537n) % primorial;
    return value;
  };
  const multiple = (3n * 2n ** 1022n) / primorial;
  return (multiple * primorial + power(1234)) * ((multiple + 1n) * primorial + power(4321));
}

const keys: readonly (readonly [string, Json, string])[] = [
  ["RFC7518-6.2.1-v1 P-256 is accepted", p256, "ok"],
  ["RFC7518-6.2.1-v1 P-384 is accepted", p384, "ok"],
  ["RFC7518-6.2.1-v1 P-521 is accepted", p521, "ok"],
  ["RFC8037-2-v1 Ed25519 is accepted", ed25519, "ok"],
  ["RFC7518-6.3.1-v1 RSA is accepted", rsa, "ok"],
  ["RFC7517-4-v2 unknown members are accepted", { ...p256, x5t: "AA", ext: true }, "ok"],
  ["RFC7517-4.1-v1 a key without kty is refused", { ...p256, kty: null }, "jwk_unusable"],
  ["RFC7517-4.1-v1 kty in lower case is refused", { ...p256, kty: "ec" }, "jwk_unusable"],
  ["RFC7517-5-v2 an unknown kty is refused", { kty: "AKP", pub: "AA" }, "jwk_unusable"],
  ["RFC7517-5-v2 a string is refused", "key", "jwk_unusable"],
  ["RFC7518-6.2.1-v1 EC without y is refused", { kty: "EC", crv: "P-256", x: p256.x }, "jwk_unusable"],
  ["RFC7518-6.2.1-v1 EC without crv is refused", { ...p256, crv: 1 }, "jwk_unusable"],
  ["RFC7518-6.2.1-v1 an unknown curve is refused", { ...p256, crv: "secp256k1" }, "jwk_unusable"],
  ["RFC7518-6.2.1-v2 a longer coordinate is refused", { ...p256, x: longer(p256.x) }, "jwk_unusable"],
  ["RFC7518-6.2.1-v2 a shorter coordinate is refused", { ...p256, x: shorter(p256.x) }, "jwk_unusable"],
  [
    "RFC7518-6.2.1-v2 the coordinates of another curve are refused",
    { ...p384, crv: "P-256" },
    "jwk_unusable",
  ],
  [
    "RFC7638-3.3-v1 a coordinate that is not base64url is refused",
    { ...p256, x: `${p256.x.slice(0, -1)}"` },
    "jwk_unusable",
  ],
  ["RFC7515-2-v1 a coordinate with padding is refused", { ...p256, x: `${p256.x}=` }, "jwk_unusable"],
  ["RFC8725-3.4-v1 a point that is not on P-256 is refused", { ...p256, x: flipped(p256.x) }, "jwk_unusable"],
  ["RFC8725-3.4-v1 a point that is not on P-384 is refused", { ...p384, x: flipped(p384.x) }, "jwk_unusable"],
  ["RFC8725-3.4-v1 a point that is not on P-521 is refused", { ...p521, x: flipped(p521.x) }, "jwk_unusable"],
  ["RFC8725-3.4-v1 the origin is refused", { ...p256, x: "A".repeat(43), y: "A".repeat(43) }, "jwk_unusable"],
  ["RFC8037-3.1-v1 another OKP curve is refused", { ...ed25519, crv: "X25519" }, "jwk_unusable"],
  ["RFC8037-2-v1 OKP without x is refused", { kty: "OKP", crv: "Ed25519" }, "jwk_unusable"],
  ["RFC8037-2-v1 a longer x is refused", { ...ed25519, x: longer(ed25519.x) }, "jwk_unusable"],
  ["RFC8037-2-v1 a shorter x is refused", { ...ed25519, x: shorter(ed25519.x) }, "jwk_unusable"],
  ["RFC7518-6.3.1-v1 RSA without e is refused", { kty: "RSA", n: rsa.n }, "jwk_unusable"],
  ["RFC7518-6.3.1-v1 a leading zero octet of n is refused", { ...rsa, n: longer(rsa.n) }, "jwk_unusable"],
  ["RFC7518-6.3.1-v1 a leading zero octet of e is refused", { ...rsa, e: longer("AQAB") }, "jwk_unusable"],
  ["RFC7518-6.3.1-v1 an empty n is refused", { ...rsa, n: "" }, "jwk_unusable"],
  ["RFC7518-6.3.1-v1 an empty e is refused", { ...rsa, e: "" }, "jwk_unusable"],
  ["RFC7518-3.3-v1 2048 bits are accepted", { ...rsa, n: integer(modulus(2048)) }, "ok"],
  ["RFC7518-3.3-v1 2047 bits are refused", { ...rsa, n: integer(modulus(2047)) }, "jwk_unusable"],
  ["RFC7518-3.5-v1 1024 bits are refused", { ...rsa, n: integer(modulus(1024)) }, "jwk_unusable"],
  ["RFC7523-3-2 4096 bits are accepted", { ...rsa, n: integer(modulus(4096)) }, "ok"],
  ["RFC7523-3-2 4097 bits are refused", { ...rsa, n: integer(modulus(4097)) }, "jwk_unusable"],
  ["RFC8725-3.4-v1 an even modulus is refused", { ...rsa, n: integer(modulus(2048) + 1n) }, "jwk_unusable"],
  [
    "RFC8725-3.4-v1 a modulus with a small factor is refused",
    { ...rsa, n: integer(modulus(2040) * 167n) },
    "jwk_unusable",
  ],
  [
    "RFC8725-3.4-v1 a modulus with the fingerprint of ROCA is refused",
    { ...rsa, n: integer(marked()) },
    "jwk_unusable",
  ],
  ["RFC8725-3.4-v1 an exponent of 32 bits is accepted", { ...rsa, e: integer(2n ** 32n - 1n) }, "ok"],
  [
    "RFC8725-3.4-v1 an exponent of 33 bits is refused",
    { ...rsa, e: integer(2n ** 32n + 1n) },
    "jwk_unusable",
  ],
  ["RFC8725-3.4-v1 the exponent 3 is refused", { ...rsa, e: "Aw" }, "jwk_unusable"],
  ["RFC8725-3.4-v1 an even exponent is refused", { ...rsa, e: integer(65538n) }, "jwk_unusable"],
  ["RFC7517-4.2-v1 use sig is accepted", { ...p256, use: "sig" }, "ok"],
  ["RFC7517-4.2-v1 use enc is refused", { ...p256, use: "enc" }, "jwk_unusable"],
  ["RFC7517-4.2-v1 use in upper case is refused", { ...p256, use: "SIG" }, "jwk_unusable"],
  ["RFC7517-4.2-v1 use null is refused", { ...p256, use: null }, "jwk_unusable"],
  [
    "RFC7517-4.3-v2 key_ops that agree with use is accepted",
    { ...p256, use: "sig", key_ops: ["verify"] },
    "ok",
  ],
  [
    "RFC7517-4.3-v2 both operations of signatures are accepted",
    { ...p256, key_ops: ["sign", "verify"] },
    "ok",
  ],
  ["RFC7517-4.3-v2 key_ops without verify is refused", { ...p256, key_ops: ["sign"] }, "jwk_unusable"],
  ["RFC7517-4.3-v2 empty key_ops is refused", { ...p256, key_ops: [] }, "jwk_unusable"],
  [
    "RFC7517-4.3-v2 key_ops that disagree with use is refused",
    { ...rsa, use: "sig", key_ops: ["verify", "encrypt"] },
    "jwk_unusable",
  ],
  ["RFC7517-4.3-v2 key_ops that is not an array is refused", { ...p256, key_ops: "verify" }, "jwk_unusable"],
  [
    "RFC7517-4.3-v1 a repeated operation is refused",
    { ...p256, key_ops: ["verify", "verify"] },
    "jwk_unusable",
  ],
  ["RFC8725-3.10-v1 the longest kid is accepted", { ...p256, kid: "k".repeat(KID_CHARS_MAX) }, "ok"],
  [
    "RFC8725-3.10-v1 a longer kid is refused",
    { ...p256, kid: "k".repeat(KID_CHARS_MAX + 1) },
    "jwk_unusable",
  ],
  ["RFC7515-4.1.4-v1 a kid that is a number is refused", { ...p256, kid: 1 }, "jwk_unusable"],
  ["RFC8725-3.1-v5 the algorithm of the curve is accepted", { ...p256, alg: "ES256" }, "ok"],
  ["RFC8725-3.1-v5 the algorithm of another curve is refused", { ...p256, alg: "ES384" }, "jwk_unusable"],
  ["RFC8725-3.1-v5 an algorithm of RSA signatures is accepted", { ...rsa, alg: "PS512" }, "ok"],
  ["RFC8725-3.1-v5 an algorithm of RSA encryption is refused", { ...rsa, alg: "RSA-OAEP" }, "jwk_unusable"],
  ["RFC8725-3.1-v5 HMAC on a public key is refused", { ...rsa, alg: "HS256" }, "jwk_unusable"],
  ["RFC8725-3.1-v5 an alg that is not a string is refused", { ...p256, alg: ["ES256"] }, "jwk_unusable"],
  ["RFC8037-2-v1 d in OKP is refused", { ...ed25519, d: "AA" }, "jwk_private"],
  ["RFC7517-9.2-1 d in EC is refused", { ...p256, d: "AA" }, "jwk_private"],
  ...["d", "p", "q", "dp", "dq", "qi", "oth"].map(
    (name) => [`RFC7517-9.2-1 ${name} in RSA is refused`, { ...rsa, [name]: "AA" }, "jwk_private"] as const,
  ),
  ["RFC7517-9.2-1 a symmetric key is refused", oct, "jwk_private"],
  [
    "RFC7517-9.2-1 priv in AKP (RFC 9964) is refused",
    { kty: "AKP", alg: "ML-DSA-44", priv: "AA" },
    "jwk_private",
  ],
];

for (const [name, value, want] of keys) {
  test(name, () => {
    const got = parseJwk(value);
    assert.equal(got.ok ? "ok" : got.error.kind, want);
  });
}

test("RFC7517-4-v2 known members are kept, and all others dropped", () => {
  const got = parseJwk({ ...p256, kid: "k1", alg: "ES256", use: "sig", x5u: "https://a.example" });
  assert.deepEqual(got, { ok: true, value: { ...p256, kid: "k1", alg: "ES256" } });
});

const many = (count: number) => ({
  keys: Array.from({ length: count }, (_, index) => ({ ...p256, kid: `k${index}` })),
});

const sets = [
  ["RFC7517-5-v1 an object with keys is accepted", JSON.stringify({ keys: [p256, rsa] }), 2],
  ["RFC7517-5-v1 an empty set is accepted", '{"keys":[]}', 0],
  ["RFC7517-5-v3 other members of the set are accepted", JSON.stringify({ keys: [p256], next: 1 }), 1],
  ["RFC7517-5-v1, RFC7517-5-1 an array is refused", JSON.stringify([p256]), "jwk_set_malformed"],
  ["RFC7517-5-v1, RFC7517-5-1 a set without keys is refused", "{}", "jwk_set_malformed"],
  [
    "RFC7517-5-v1, RFC7517-5-1 keys that are not an array are refused",
    JSON.stringify({ keys: p256 }),
    "jwk_set_malformed",
  ],
  [
    "RFC7517-5-1 a set that names its keys twice is refused",
    `{"keys":[${JSON.stringify(p256)}],"keys":[${JSON.stringify(rsa)}]}`,
    "jwk_set_malformed",
  ],
  ["RFC7517-5-v1 what is not JSON is refused", "<html>", "jwk_set_malformed"],
  [
    "RFC7517-4-v1 a repeated member is refused",
    '{"keys":[{"kty":"AKP","kid":"a","kid":"b"}]}',
    "jwk_set_malformed",
  ],
  [
    "RFC7517-5-v2 keys that it cannot use are skipped",
    JSON.stringify({ keys: [{ kty: "AKP" }, 1, null, {}, p256, { ...p256, use: "enc" }] }),
    1,
  ],
  [
    "RFC7517-9.2-1 a set that contains a private key is refused",
    JSON.stringify({ keys: [p256, { ...rsa, use: "enc", d: "AA" }] }),
    "jwk_set_private",
  ],
  [
    "RFC7517-9.2-1 a set that contains a symmetric key is refused",
    JSON.stringify({ keys: [p256, oct] }),
    "jwk_set_private",
  ],
  [
    "SBN-4.2.1-1 the members of an unknown key type are not treated as private",
    JSON.stringify({ keys: [p256, { kty: "DSA", p: "AA", q: "AA" }] }),
    1,
  ],
  ["RFC7523-3-2 the largest number of keys is accepted", JSON.stringify(many(KEYS_MAX)), KEYS_MAX],
  ["RFC7523-3-2 one key more is refused", JSON.stringify(many(KEYS_MAX + 1)), "jwk_set_too_large"],
] as const;

for (const [name, text, want] of sets) {
  test(name, () => {
    const got = parseJwkSet(text);
    assert.equal(got.ok ? got.value.length : got.error.kind, want);
  });
}

const jwk = (value: Json, named: { kid?: string; alg?: string } = {}): Jwk => {
  const got = parseJwk({ ...(value as JsonObject), ...named });
  assert(got.ok);
  return got.value;
};

const algorithms = [
  ["RFC7518-3.4-v3 one algorithm for P-256 is allowed", jwk(p256), ["ES256"]],
  ["RFC7518-3.4-v3 one algorithm for P-384 is allowed", jwk(p384), ["ES384"]],
  ["RFC7518-3.4-v3 one algorithm for P-521 is allowed", jwk(p521), ["ES512"]],
  ["RFC8037-3.1-v1 one algorithm under two names for Ed25519 is allowed", jwk(ed25519), ["EdDSA", "Ed25519"]],
  [
    "RFC7517-4.4-1 only the algorithm that an RSA key names is allowed",
    jwk(rsa, { alg: "PS384" }),
    ["PS384"],
  ],
  ["RFC8725-3.1-v4 what the caller lists for an RSA key without alg are allowed", jwk(rsa), ["PS256"]],
] as const;

for (const [name, key, want] of algorithms)
  test(name, () => assert.deepEqual(algorithmsOf(key, ["PS256"]), want));

const a = jwk(p256, { kid: "a" });
const b = jwk(rsa, { kid: "b" });
const set = [a, b];
const choices = [
  ["RFC7515-6-v2 a key is found by kid", set, { alg: "ES256", kid: "a" }, undefined, "a"],
  [
    "RFC7515-6-v2 an unknown kid is refused even if another key fits",
    set,
    { alg: "ES256", kid: "c" },
    undefined,
    "key_unknown",
  ],
  [
    "RFC7517-4.5-2 a kid that differs in case is refused",
    set,
    { alg: "ES256", kid: "A" },
    undefined,
    "key_unknown",
  ],
  [
    "RFC8725-3.1-v5 a key of another type is refused",
    set,
    { alg: "RS256", kid: "a" },
    undefined,
    "key_unsuitable",
  ],
  [
    "RFC7518-3.4-v3 a key of another curve is refused",
    [jwk(p384, { kid: "a" })],
    { alg: "ES256", kid: "a" },
    undefined,
    "key_unsuitable",
  ],
  [
    "B8725-3.1-2 an algorithm other than the one that the key names is refused",
    [jwk(rsa, { kid: "b", alg: "PS256" })],
    { alg: "RS256", kid: "b" },
    undefined,
    "key_unsuitable",
  ],
  [
    "RFC8725-3.1-v4 RS256 with an RSA key without alg is accepted",
    set,
    { alg: "RS256", kid: "b" },
    undefined,
    "b",
  ],
  [
    "RFC8725-3.1-v4 PS256 with the same key is refused",
    set,
    { alg: "PS256", kid: "b" },
    undefined,
    "key_unsuitable",
  ],
  [
    "RFC8725-3.1-v4 PS256 with the same key is accepted if the caller lists it",
    set,
    { alg: "PS256", kid: "b" },
    RSA_ALGORITHMS,
    "b",
  ],
  [
    "RFC8725-3.1-v1 HMAC with a public key is refused",
    set,
    { alg: "HS256", kid: "b" },
    RSA_ALGORITHMS,
    "key_unsuitable",
  ],
  ["RFC7515-6-v2 a missing kid is accepted if one key fits", set, { alg: "ES256" }, undefined, "a"],
  [
    "RFC7515-6-v2 a missing kid is refused if two keys fit",
    [a, jwk(second, { kid: "c" })],
    { alg: "ES256" },
    undefined,
    "key_ambiguous",
  ],
  [
    "RFC7515-6-v2 a missing kid is refused if no key fits",
    set,
    { alg: "ES384" },
    undefined,
    "key_unsuitable",
  ],
  [
    "RFC7517-4.5-1 one kid on two keys of which one fits is accepted",
    [a, jwk(rsa, { kid: "a" })],
    { alg: "ES256", kid: "a" },
    undefined,
    "a",
  ],
  ["JWKS-D-1 the same key twice is one key", [a, a], { alg: "ES256", kid: "a" }, undefined, "a"],
  [
    "JWKS-D-1 the same key with another kid and with alg is one key, where no kid chooses",
    [a, jwk(p256, { kid: "z", alg: "ES256" })],
    { alg: "ES256" },
    undefined,
    "a",
  ],
  [
    "RFC7517-4.5-1 one kid on two keys that both fit is refused",
    [a, jwk(second, { kid: "a" })],
    { alg: "ES256", kid: "a" },
    undefined,
    "key_ambiguous",
  ],
  [
    "RFC7515-6-v2 an empty kid that no key has is refused",
    [jwk(p256)],
    { alg: "ES256", kid: "" },
    undefined,
    "key_unknown",
  ],
] as const;

for (const [name, from, header, rsaAlgorithms, want] of choices) {
  test(name, () => {
    const got = selectKey(from, header, rsaAlgorithms);
    assert.equal(got.ok ? got.value.kid : got.error.kind, want);
  });
}

test("RFC7517-5.1-1 the same key is chosen in any order", () => {
  assert.deepEqual(selectKey([b, a], { alg: "ES256" }), selectKey([a, b], { alg: "ES256" }));
});

import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { KEYS_MAX, KID_CHARS_MAX } from "../../src/limits/input.ts";
import { decodeBase64url, encodeBase64url } from "../../src/spec/rfc7515.ts";
import type { Jwk } from "../../src/spec/rfc7517.ts";
import { algorithmsOf, parseJwk, parseJwkSet, RSA_ALGORITHMS, selectKey } from "../../src/spec/rfc7517.ts";
import type { Json, JsonObject } from "../../src/spec/rfc8259.ts";

const ec = (namedCurve: string) =>
  generateKeyPairSync("ec", { namedCurve }).publicKey.export({ format: "jwk" }) as JsonObject & { x: string };
const p256 = ec("P-256");
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
  ["RFC7518-6.2.1-v1 accepts P-256", p256, "ok"],
  ["RFC7518-6.2.1-v1 accepts P-384", p384, "ok"],
  ["RFC7518-6.2.1-v1 accepts P-521", p521, "ok"],
  ["RFC8037-2-v1 accepts Ed25519", ed25519, "ok"],
  ["RFC7518-6.3.1-v1 accepts RSA", rsa, "ok"],
  ["RFC7517-4-v2 accepts unknown members", { ...p256, x5t: "AA", ext: true }, "ok"],
  ["RFC7517-4.1-v1 refuses a key without kty", { ...p256, kty: null }, "jwk_unusable"],
  ["RFC7517-4.1-v1 refuses kty in lower case", { ...p256, kty: "ec" }, "jwk_unusable"],
  ["RFC7517-5-v2 refuses an unknown kty", { kty: "AKP", pub: "AA" }, "jwk_unusable"],
  ["RFC7517-5-v2 refuses a string", "key", "jwk_unusable"],
  ["RFC7518-6.2.1-v1 refuses EC without y", { kty: "EC", crv: "P-256", x: p256.x }, "jwk_unusable"],
  ["RFC7518-6.2.1-v1 refuses EC without crv", { ...p256, crv: 1 }, "jwk_unusable"],
  ["RFC7518-6.2.1-v1 refuses an unknown curve", { ...p256, crv: "secp256k1" }, "jwk_unusable"],
  ["RFC7518-6.2.1-v2 refuses a longer coordinate", { ...p256, x: longer(p256.x) }, "jwk_unusable"],
  ["RFC7518-6.2.1-v2 refuses a shorter coordinate", { ...p256, x: shorter(p256.x) }, "jwk_unusable"],
  ["RFC7518-6.2.1-v2 refuses the coordinates of another curve", { ...p384, crv: "P-256" }, "jwk_unusable"],
  [
    "RFC7638-3.3-v1 refuses a coordinate that is not base64url",
    { ...p256, x: `${p256.x.slice(0, -1)}"` },
    "jwk_unusable",
  ],
  ["RFC7515-2-v1 refuses a coordinate with padding", { ...p256, x: `${p256.x}=` }, "jwk_unusable"],
  ["RFC8725-3.4-v1 refuses a point that is not on P-256", { ...p256, x: flipped(p256.x) }, "jwk_unusable"],
  ["RFC8725-3.4-v1 refuses a point that is not on P-384", { ...p384, x: flipped(p384.x) }, "jwk_unusable"],
  ["RFC8725-3.4-v1 refuses a point that is not on P-521", { ...p521, x: flipped(p521.x) }, "jwk_unusable"],
  ["RFC8725-3.4-v1 refuses the origin", { ...p256, x: "A".repeat(43), y: "A".repeat(43) }, "jwk_unusable"],
  ["RFC8037-3.1-v1 refuses another OKP curve", { ...ed25519, crv: "X25519" }, "jwk_unusable"],
  ["RFC8037-2-v1 refuses OKP without x", { kty: "OKP", crv: "Ed25519" }, "jwk_unusable"],
  ["RFC8037-2-v1 refuses a longer x", { ...ed25519, x: longer(ed25519.x) }, "jwk_unusable"],
  ["RFC8037-2-v1 refuses a shorter x", { ...ed25519, x: shorter(ed25519.x) }, "jwk_unusable"],
  ["RFC7518-6.3.1-v1 refuses RSA without e", { kty: "RSA", n: rsa.n }, "jwk_unusable"],
  ["RFC7518-6.3.1-v1 refuses a leading zero octet of n", { ...rsa, n: longer(rsa.n) }, "jwk_unusable"],
  ["RFC7518-6.3.1-v1 refuses a leading zero octet of e", { ...rsa, e: longer("AQAB") }, "jwk_unusable"],
  ["RFC7518-6.3.1-v1 refuses an empty n", { ...rsa, n: "" }, "jwk_unusable"],
  ["RFC7518-6.3.1-v1 refuses an empty e", { ...rsa, e: "" }, "jwk_unusable"],
  ["RFC7518-3.3-v1 accepts 2048 bits", { ...rsa, n: integer(modulus(2048)) }, "ok"],
  ["RFC7518-3.3-v1 refuses 2047 bits", { ...rsa, n: integer(modulus(2047)) }, "jwk_unusable"],
  ["RFC7518-3.5-v1 refuses 1024 bits", { ...rsa, n: integer(modulus(1024)) }, "jwk_unusable"],
  ["RFC7523-3-2 accepts 4096 bits", { ...rsa, n: integer(modulus(4096)) }, "ok"],
  ["RFC7523-3-2 refuses 4097 bits", { ...rsa, n: integer(modulus(4097)) }, "jwk_unusable"],
  ["RFC8725-3.4-v1 refuses an even modulus", { ...rsa, n: integer(modulus(2048) + 1n) }, "jwk_unusable"],
  [
    "RFC8725-3.4-v1 refuses a modulus with a small factor",
    { ...rsa, n: integer(modulus(2040) * 167n) },
    "jwk_unusable",
  ],
  [
    "RFC8725-3.4-v1 refuses a modulus with the fingerprint of ROCA",
    { ...rsa, n: integer(marked()) },
    "jwk_unusable",
  ],
  ["RFC8725-3.4-v1 accepts an exponent of 32 bits", { ...rsa, e: integer(2n ** 32n - 1n) }, "ok"],
  ["RFC8725-3.4-v1 refuses an exponent of 33 bits", { ...rsa, e: integer(2n ** 32n + 1n) }, "jwk_unusable"],
  ["RFC8725-3.4-v1 refuses the exponent 3", { ...rsa, e: "Aw" }, "jwk_unusable"],
  ["RFC8725-3.4-v1 refuses an even exponent", { ...rsa, e: integer(65538n) }, "jwk_unusable"],
  ["RFC7517-4.2-v1 accepts use sig", { ...p256, use: "sig" }, "ok"],
  ["RFC7517-4.2-v1 refuses use enc", { ...p256, use: "enc" }, "jwk_unusable"],
  ["RFC7517-4.2-v1 refuses use in upper case", { ...p256, use: "SIG" }, "jwk_unusable"],
  ["RFC7517-4.2-v1 refuses use null", { ...p256, use: null }, "jwk_unusable"],
  ["RFC7517-4.3-v2 accepts key_ops that agree with use", { ...p256, use: "sig", key_ops: ["verify"] }, "ok"],
  ["RFC7517-4.3-v2 accepts both operations of signatures", { ...p256, key_ops: ["sign", "verify"] }, "ok"],
  ["RFC7517-4.3-v2 refuses key_ops without verify", { ...p256, key_ops: ["sign"] }, "jwk_unusable"],
  ["RFC7517-4.3-v2 refuses empty key_ops", { ...p256, key_ops: [] }, "jwk_unusable"],
  [
    "RFC7517-4.3-v2 refuses key_ops that disagree with use",
    { ...rsa, use: "sig", key_ops: ["verify", "encrypt"] },
    "jwk_unusable",
  ],
  ["RFC7517-4.3-v2 refuses key_ops that is not an array", { ...p256, key_ops: "verify" }, "jwk_unusable"],
  ["RFC7517-4.3-v1 refuses a repeated operation", { ...p256, key_ops: ["verify", "verify"] }, "jwk_unusable"],
  ["RFC8725-3.10-v1 accepts the longest kid", { ...p256, kid: "k".repeat(KID_CHARS_MAX) }, "ok"],
  ["RFC8725-3.10-v1 refuses a longer kid", { ...p256, kid: "k".repeat(KID_CHARS_MAX + 1) }, "jwk_unusable"],
  ["RFC7515-4.1.4-v1 refuses a kid that is a number", { ...p256, kid: 1 }, "jwk_unusable"],
  ["RFC8725-3.1-v5 accepts the algorithm of the curve", { ...p256, alg: "ES256" }, "ok"],
  ["RFC8725-3.1-v5 refuses the algorithm of another curve", { ...p256, alg: "ES384" }, "jwk_unusable"],
  ["RFC8725-3.1-v5 accepts an algorithm of RSA signatures", { ...rsa, alg: "PS512" }, "ok"],
  ["RFC8725-3.1-v5 refuses an algorithm of RSA encryption", { ...rsa, alg: "RSA-OAEP" }, "jwk_unusable"],
  ["RFC8725-3.1-v5 refuses HMAC on a public key", { ...rsa, alg: "HS256" }, "jwk_unusable"],
  ["RFC8725-3.1-v5 refuses an alg that is not a string", { ...p256, alg: ["ES256"] }, "jwk_unusable"],
  ["RFC8037-2-v1 refuses d in OKP", { ...ed25519, d: "AA" }, "jwk_private"],
  ["RFC7517-9.2-1 refuses d in EC", { ...p256, d: "AA" }, "jwk_private"],
  ...["d", "p", "q", "dp", "dq", "qi", "oth"].map(
    (name) => [`RFC7517-9.2-1 refuses ${name} in RSA`, { ...rsa, [name]: "AA" }, "jwk_private"] as const,
  ),
  ["RFC7517-9.2-1 refuses a symmetric key", oct, "jwk_private"],
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
  ["RFC7517-5-v1 accepts an object with keys", JSON.stringify({ keys: [p256, rsa] }), 2],
  ["RFC7517-5-v1 accepts an empty set", '{"keys":[]}', 0],
  ["RFC7517-5-v3 accepts other members of the set", JSON.stringify({ keys: [p256], next: 1 }), 1],
  ["RFC7517-5-v1, RFC7517-5-1 refuses an array", JSON.stringify([p256]), "jwk_set_malformed"],
  ["RFC7517-5-v1, RFC7517-5-1 refuses a set without keys", "{}", "jwk_set_malformed"],
  [
    "RFC7517-5-v1, RFC7517-5-1 refuses keys that are not an array",
    JSON.stringify({ keys: p256 }),
    "jwk_set_malformed",
  ],
  [
    "RFC7517-5-1 refuses a set that names its keys twice",
    `{"keys":[${JSON.stringify(p256)}],"keys":[${JSON.stringify(rsa)}]}`,
    "jwk_set_malformed",
  ],
  ["RFC7517-5-v1 refuses what is not JSON", "<html>", "jwk_set_malformed"],
  [
    "RFC7517-4-v1 refuses a repeated member",
    '{"keys":[{"kty":"AKP","kid":"a","kid":"b"}]}',
    "jwk_set_malformed",
  ],
  [
    "RFC7517-5-v2 skips keys that it cannot use",
    JSON.stringify({ keys: [{ kty: "AKP" }, 1, null, {}, p256, { ...p256, use: "enc" }] }),
    1,
  ],
  [
    "RFC7517-9.2-1 refuses a set that contains a private key",
    JSON.stringify({ keys: [p256, { ...rsa, use: "enc", d: "AA" }] }),
    "jwk_set_private",
  ],
  [
    "RFC7517-9.2-1 refuses a set that contains a symmetric key",
    JSON.stringify({ keys: [p256, oct] }),
    "jwk_set_private",
  ],
  [
    "SBN-4.2.1-1 does not treat the members of an unknown key type as private",
    JSON.stringify({ keys: [p256, { kty: "DSA", p: "AA", q: "AA" }] }),
    1,
  ],
  ["RFC7523-3-2 accepts the largest number of keys", JSON.stringify(many(KEYS_MAX)), KEYS_MAX],
  ["RFC7523-3-2 refuses one key more", JSON.stringify(many(KEYS_MAX + 1)), "jwk_set_too_large"],
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
  ["RFC7518-3.4-v3 allows one algorithm for P-256", jwk(p256), ["ES256"]],
  ["RFC7518-3.4-v3 allows one algorithm for P-384", jwk(p384), ["ES384"]],
  ["RFC7518-3.4-v3 allows one algorithm for P-521", jwk(p521), ["ES512"]],
  ["RFC8037-3.1-v1 allows one algorithm under two names for Ed25519", jwk(ed25519), ["EdDSA", "Ed25519"]],
  ["RFC7517-4.4-1 allows only the algorithm that an RSA key names", jwk(rsa, { alg: "PS384" }), ["PS384"]],
  ["RFC8725-3.1-v4 allows what the caller lists for an RSA key without alg", jwk(rsa), ["PS256"]],
] as const;

for (const [name, key, want] of algorithms)
  test(name, () => assert.deepEqual(algorithmsOf(key, ["PS256"]), want));

const a = jwk(p256, { kid: "a" });
const b = jwk(rsa, { kid: "b" });
const set = [a, b];
const choices = [
  ["RFC7515-6-v2 finds a key by kid", set, { alg: "ES256", kid: "a" }, undefined, "a"],
  [
    "RFC7515-6-v2 refuses an unknown kid even if another key fits",
    set,
    { alg: "ES256", kid: "c" },
    undefined,
    "key_unknown",
  ],
  [
    "RFC7517-4.5-2 refuses a kid that differs in case",
    set,
    { alg: "ES256", kid: "A" },
    undefined,
    "key_unknown",
  ],
  [
    "RFC8725-3.1-v5 refuses a key of another type",
    set,
    { alg: "RS256", kid: "a" },
    undefined,
    "key_unsuitable",
  ],
  [
    "RFC7518-3.4-v3 refuses a key of another curve",
    [jwk(p384, { kid: "a" })],
    { alg: "ES256", kid: "a" },
    undefined,
    "key_unsuitable",
  ],
  [
    "B8725-3.1-2 refuses an algorithm other than the one that the key names",
    [jwk(rsa, { kid: "b", alg: "PS256" })],
    { alg: "RS256", kid: "b" },
    undefined,
    "key_unsuitable",
  ],
  [
    "RFC8725-3.1-v4 accepts RS256 with an RSA key without alg",
    set,
    { alg: "RS256", kid: "b" },
    undefined,
    "b",
  ],
  [
    "RFC8725-3.1-v4 refuses PS256 with the same key",
    set,
    { alg: "PS256", kid: "b" },
    undefined,
    "key_unsuitable",
  ],
  [
    "RFC8725-3.1-v4 accepts PS256 with the same key if the caller lists it",
    set,
    { alg: "PS256", kid: "b" },
    RSA_ALGORITHMS,
    "b",
  ],
  [
    "RFC8725-3.1-v1 refuses HMAC with a public key",
    set,
    { alg: "HS256", kid: "b" },
    RSA_ALGORITHMS,
    "key_unsuitable",
  ],
  ["RFC7515-6-v2 accepts a missing kid if one key fits", set, { alg: "ES256" }, undefined, "a"],
  [
    "RFC7515-6-v2 refuses a missing kid if two keys fit",
    [a, jwk(p256, { kid: "c" })],
    { alg: "ES256" },
    undefined,
    "key_ambiguous",
  ],
  ["RFC7515-6-v2 refuses a missing kid if no key fits", set, { alg: "ES384" }, undefined, "key_unsuitable"],
  [
    "RFC7517-4.5-1 accepts one kid on two keys of which one fits",
    [a, jwk(rsa, { kid: "a" })],
    { alg: "ES256", kid: "a" },
    undefined,
    "a",
  ],
  [
    "RFC7517-4.5-1 refuses one kid on two keys that both fit",
    [a, a],
    { alg: "ES256", kid: "a" },
    undefined,
    "key_ambiguous",
  ],
  [
    "RFC7515-6-v2 refuses an empty kid that no key has",
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

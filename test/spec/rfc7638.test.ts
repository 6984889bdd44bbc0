import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { type EcJwk, type Jwk, parseJwk } from "../../src/spec/rfc7517.ts";
import { thumbprintInput } from "../../src/spec/rfc7638.ts";
import type { JsonObject } from "../../src/spec/rfc8259.ts";

const ec: EcJwk = {
  kty: "EC",
  crv: "P-256",
  x: "MQgPAkAgXSv3VyGBXzRSTgy98uhTeEwjuqIt9saw4UA",
  y: "F-dUk8AniOPrUBz75sWa1KnYLxAIkp-Vkm1DBLI65zs",
};
const okp = { kty: "OKP", crv: "Ed25519", x: "z3xu9qieo3piI9XuwCBOrUheAovbI-PAcZl8zLP7eVc" };
const rsa = {
  kty: "RSA",
  e: "AQAB",
  n:
    "xr532X7oFIQkvYGe5-8RIobFLZZsv1vVkTEjfR71nw-1UMuk2NfHIRPrrc9sRZlzpcFXqXVKwaCj6mQRmXhCpGOFdB8QeutgfzY_DXN-JvOb" +
    "5J2eOSfQ7SbrX-53dwBxGZhES0EDX3G7JxyeiggzyseD_NuyOAqOBi9o-cWemZTBtpNsy6bfsxjAGBr8-eLpdg3f8rx-nq5NkLdYLwsFOfty" +
    "brTpm_U9FQ7Zq7V9xtEJeoH-TSwJx4XSvF3SrLgEJDAwxHa14f1N6chjN0X9DIHLjIHwrWYwfdjHBelXz6ElQWiCVowsWMen3YaAivgiZC5E" +
    "aQyY8PiwxbUFbudfAw",
};

const thumbprint = (key: Jwk) => createHash("sha256").update(thumbprintInput(key)).digest("base64url");

const vectors: readonly (readonly [string, JsonObject, string])[] = [
  ["RFC7638-3-v1 the thumbprint of an EC key is computed", ec, "Ut6npynumsD46ZOtXM6IRCIt7kGpMkBu5TUMJJdxmGw"],
  [
    "RFC8037-2-v2 the thumbprint of an OKP key is computed",
    okp,
    "cFvR0steYexnHQvaiRSuc2uva0M5-id8Xix4GUNk_fI",
  ],
  [
    "RFC7638-3-v1 the thumbprint of an RSA key is computed",
    rsa,
    "6V3x-6U-miOy3F8ChvcLjTaipjA_e7PU5xtUhXASkEc",
  ],
];

for (const [name, members, want] of vectors) {
  test(name, () => {
    const key = parseJwk({ use: "sig", kid: "k1", ...members });
    assert(key.ok);
    assert.equal(thumbprint(key.value), want);
  });
}

test("RFC7638-3.2.1-v1 the thumbprints of a private key and its public key are the same", () => {
  const secret = { ...ec, d: "AQID" };
  assert.equal(thumbprint(secret), thumbprint(ec));
});

test("RFC7638-3-v1 the thumbprints of different keys differ", () => {
  assert.notEqual(thumbprint({ ...ec, y: ec.x }), thumbprint(ec));
});

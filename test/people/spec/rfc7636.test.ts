import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { isVerifier, parseChallenge } from "../../../src/people/spec/rfc7636.ts";
import { CHALLENGE_METHODS } from "../../../src/spec/rfc8414.ts";

const VERIFIER = "lqHI9GSHdMQSQtv8WnvjxBRw4d2u4lCUsG2MLBKJMwA";
const CHALLENGE = "5cGoPkAhNhiffXjDfzU5A691dVulekRyh7-oxITWxZo";

test("RFC7636-4.4.1-1 the challenge of a known verifier is accepted, and is its SHA-256", () => {
  assert.equal(createHash("sha256").update(VERIFIER).digest("base64url"), CHALLENGE);
  assert.deepEqual(parseChallenge(CHALLENGE, "S256"), { ok: true, value: CHALLENGE });
  assert.deepEqual(CHALLENGE_METHODS, ["S256"]);
});

const refused = [
  [
    "RFC7636-4.4.1-1, RFC7636-5-1, RFC9700-2.1.1-1 a missing challenge",
    undefined,
    "S256",
    "challenge_missing",
  ],
  ["RFC7636-4.3-1 a missing method, which means plain", CHALLENGE, undefined, "challenge_method_refused"],
  ["RFC7636-7.2-1, RFC7636-4.4.1-3 plain", CHALLENGE, "plain", "challenge_method_refused"],
  ["RFC7636-4.4.1-3 a method in another case", CHALLENGE, "s256", "challenge_method_refused"],
  ["RFC7636-4.4.1-1 a challenge with padding", `${CHALLENGE}=`, "S256", "challenge_malformed"],
  ["RFC7636-4.4.1-1 a challenge that is too short", CHALLENGE.slice(1), "S256", "challenge_malformed"],
  [
    "RFC7636-4.4.1-1 base64 in place of base64url",
    CHALLENGE.replace("-", "+"),
    "S256",
    "challenge_malformed",
  ],
  ["RFC7636-4.4.1-1 unused bits that are set", `${CHALLENGE.slice(0, -1)}p`, "S256", "challenge_malformed"],
] as const;
for (const [name, challenge, method, want] of refused) {
  test(`${name} is refused`, () => {
    assert.deepEqual(parseChallenge(challenge, method), { ok: false, error: { kind: want } });
  });
}

test("RFC7636-4.1-1 a verifier has 43 to 128 unreserved characters", () => {
  assert.ok(isVerifier(VERIFIER));
  assert.ok(isVerifier("~._-".repeat(32)));
  for (const bad of ["a".repeat(42), "a".repeat(129), `${VERIFIER}+`, `${VERIFIER}=`, `${VERIFIER} `, ""]) {
    assert.equal(isVerifier(bad), false, bad);
  }
});

import assert from "node:assert/strict";
import { createHmac, randomBytes } from "node:crypto";
import { test } from "node:test";
import { makeRegistrationTokens } from "../../../src/adapters/crypto/registration-tokens.ts";

const KEY = new Uint8Array(32).fill(7);

test("RFC7592-5-4 a registration access token is the digest of its purpose, client and generation", () => {
  const purpose = "registration access token";
  // RFC 5869 computed here: extract without salt, expand to one block.
  const extracted = createHmac("sha256", Buffer.alloc(32)).update(KEY).digest();
  const key = createHmac("sha256", extracted).update(purpose).update("\x01").digest();
  const want = createHmac("sha256", key).update(`["${purpose}","c_a",3]`).digest("base64url");
  assert.equal(makeRegistrationTokens([KEY]).of("c_a", 3), want);
  assert.equal(Buffer.from(want, "base64url").length, 32);
});

test("HTTP-D-33, RFC7592-5-1 the same generation has the same token, even after a restart", () => {
  const [one, two] = [makeRegistrationTokens([KEY]), makeRegistrationTokens([Uint8Array.from(KEY)])];
  assert.equal(one.of("c_a", 1), two.of("c_a", 1));
});

test("RFC7592-A.1-2, RFC7592-B-3 each client, generation and key has a different token", () => {
  const tokens = makeRegistrationTokens([KEY]);
  const different = [
    ["c_a", 1],
    ["c_a", 2],
    ["c_a", 11],
    ["c_a1", 1],
    ["c_b", 1],
    ['c_a",1', 1],
    ["", 1],
    ["\ud800", 1],
    ["\ud801", 1],
    ["\ufffd", 1],
  ] as const;
  const made = different.map(([clientId, generation]) => tokens.of(clientId, generation));
  made.push(makeRegistrationTokens([randomBytes(32)]).of("c_a", 1));
  assert.equal(new Set(made).size, made.length);
});

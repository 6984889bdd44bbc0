import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { makeClock } from "../../../src/adapters/clock.ts";
import { makeNonces } from "../../../src/adapters/crypto/nonces.ts";

const KEY = new Uint8Array(32).fill(7);
const MINUTE = 60;
const START = 1_790_000_040;
const noncesAt = (seconds: number, key = KEY, issuer = "https://as.example") =>
  makeNonces(
    [key],
    issuer,
    makeClock(() => seconds * 1000),
  );

test("RFC9449-8-1 a nonce that one instance made is accepted by another, also after a restart", () => {
  const nonce = noncesAt(START).current();
  assert.equal(noncesAt(START, Uint8Array.from(KEY)).endSeconds(nonce), START + 2 * MINUTE);
});

test("HTTP-D-31, RFC9449-8-5, RFC9449-11.1-1 the newest nonce and the one before it are accepted, and no older one", () => {
  const nonce = noncesAt(START).current();
  for (const [later, isAccepted] of [
    [0, true],
    [59, true],
    [60, true],
    [119, true],
    [120, false],
    [3600, false],
  ] as const) {
    const end = noncesAt(START + later).endSeconds(nonce);
    assert.equal(end, isAccepted ? START + 2 * MINUTE : undefined, String(later));
  }
  assert.notEqual(noncesAt(START + MINUTE).current(), nonce);
  assert.equal(noncesAt(START + MINUTE - 1).current(), nonce);
});

test("RFC9449-8-5 a nonce of an instance whose clock is ahead is accepted, if it is by a minute at most", () => {
  assert.ok(noncesAt(START).endSeconds(noncesAt(START + MINUTE).current()));
  assert.equal(noncesAt(START).endSeconds(noncesAt(START + 2 * MINUTE).current()), undefined);
});

test("RFC9449-8-3, RFC9449-9-1 a nonce of another key or another server is not accepted, nor is any other text", () => {
  const nonces = noncesAt(START);
  const others = [noncesAt(START, randomBytes(32)), noncesAt(START, KEY, "https://as.other.example")];
  for (const other of others) assert.equal(nonces.endSeconds(other.current()), undefined);
  const nonce = nonces.current();
  const guessed = [`${START}`, `${Math.floor(START / MINUTE)}`];
  for (const text of [
    "",
    "x",
    ...guessed,
    nonce.slice(1),
    `${nonce}A`,
    nonce.toLowerCase(),
    "é".repeat(43),
  ]) {
    assert.equal(nonces.endSeconds(text), undefined, text);
  }
  // RFC9449-8.1-1
  assert.match(nonce, /^[A-Za-z0-9_-]{43}$/);
});

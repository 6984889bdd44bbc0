import assert from "node:assert/strict";
import { createHmac, randomBytes } from "node:crypto";
import { test } from "node:test";
import {
  cpuMs,
  makeClock,
  makeFormTokens,
  makeNonces,
  makeRegistrationTokens,
  makeWaiting,
  random,
} from "../../../src/adapters/crypto/system.ts";
import type { PendingRequest } from "../../../src/records.ts";

const KEY = new Uint8Array(32).fill(7);

test("RFC6749-10.10-2, RFC6749-10.10-3, RFC7519-4.1.7-v1 ids have 128 random bits and secrets 256", () => {
  for (const [make, bytes] of [
    [random.id, 16],
    [random.secret, 32],
  ] as const) {
    const made = Array.from({ length: 1_000 }, make);
    assert.equal(new Set(made).size, made.length);
    for (const one of made) assert.equal(Buffer.from(one, "base64url").length, bytes);
    // Every bit is set in some values and not in all.
    const all = made.map((one) => BigInt(`0x${Buffer.from(one, "base64url").toString("hex")}`));
    const ones = (1n << BigInt(8 * bytes)) - 1n;
    assert.equal(
      all.reduce((bits, one) => bits | one, 0n),
      ones,
    );
    assert.equal(
      all.reduce((bits, one) => bits & one, ones),
      0n,
    );
  }
});

test("RFC6749-10.10-3, RFC7519-4.1.7-v1 no part of an id is part of the next one, however many are drawn at once", () => {
  const ids = Array.from({ length: 3_000 }, () => Buffer.from(random.id(), "base64url"));
  const parts = ids.flatMap((id) => [0, 4, 8].map((from) => id.subarray(from, from + 8).toString("hex")));
  assert.ok(ids.every(({ length }) => length === 16));
  assert.equal(new Set(parts).size, parts.length);
});

test("RFC7592-5-4 a registration access token is the digest of its purpose, client and generation", () => {
  const purpose = "registration access token";
  // RFC 5869 computed here: extract without salt, expand to one block.
  const extracted = createHmac("sha256", Buffer.alloc(32)).update(KEY).digest();
  const key = createHmac("sha256", extracted).update(purpose).update("\x01").digest();
  const want = createHmac("sha256", key).update(`["${purpose}","c_a",3]`).digest("base64url");
  assert.equal(makeRegistrationTokens([KEY]).of("c_a", 3), want);
  assert.equal(Buffer.from(want, "base64url").length, 32);
});

test("RFC7592-5-1 the same generation has the same token, even after a restart", () => {
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

// --- nonces -------------------------------------------------------------------------------------------------------

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

test("RFC9449-8-5, RFC9449-11.1-1 the newest nonce and the one before it are accepted, and no older one", () => {
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
  for (const text of ["", "x", nonce.slice(1), `${nonce}A`, nonce.toLowerCase(), "é".repeat(43)]) {
    assert.equal(nonces.endSeconds(text), undefined, text);
  }
  // RFC9449-8.1-1
  assert.match(nonce, /^[A-Za-z0-9_-]{43}$/);
});

// --- the key-encryption key is replaced ---------------------------------------------------------------------------

const OLD = new Uint8Array(32).fill(8);

test("while one key-encryption key replaces another, what is derived from either is accepted, and made by the new one", () => {
  const clock = makeClock(() => START * 1000);
  const derived = (keys: readonly [Uint8Array, ...Uint8Array[]]) => {
    const [registration, forms] = [makeRegistrationTokens(keys), makeFormTokens(keys)];
    const nonces = makeNonces(keys, "https://as.example", clock);
    return {
      made: [registration.of("c", 1), forms.of("s", "r"), nonces.current()],
      accepts: ([token = "", form = "", nonce = ""]: readonly string[]) => [
        registration.accepts(token, "c", 1),
        forms.accepts(form, "s", "r"),
        nonces.endSeconds(nonce) !== undefined,
      ],
    };
  };
  const [before, both, after] = [derived([OLD]), derived([KEY, OLD]), derived([KEY])];
  const [all, none] = [
    [true, true, true],
    [false, false, false],
  ];
  assert.deepEqual(both.made, after.made);
  assert.deepEqual(both.accepts(before.made), all);
  assert.deepEqual(both.accepts(after.made), all);
  assert.deepEqual(after.accepts(before.made), none);
  // An instance that does not have the new key yet: it is given as the other one first.
  assert.deepEqual(derived([OLD, KEY]).accepts(after.made), all);
  assert.deepEqual(before.accepts(after.made), none);
  const parts = makeRegistrationTokens([KEY, OLD]);
  for (const [client, generation] of [
    ["c", 2],
    ["d", 1],
  ] as const)
    assert.equal(parts.accepts(before.made[0] ?? "", client, generation), false);
});

test("PROD-8.3-1 the CPU time of the thread grows with its work, in milliseconds", () => {
  const [beganCpuMs, beganMs] = [cpuMs(), performance.now()];
  const passedMs = () => performance.now() - beganMs;
  while (cpuMs() - beganCpuMs < 20) assert.ok(passedMs() < 10_000);
  // A thread works on one core; the platform counts by some milliseconds.
  assert.ok(passedMs() > 10);
});

test("PAGE-D-4 what waits in a browser opens for that browser, as what it is, until it expires, on every instance", () => {
  const [older, newer, other] = [randomBytes(32), randomBytes(32), randomBytes(32)];
  const pushed = { id: "1", expiresAtSeconds: 100 } as PendingRequest;
  const sealed = makeWaiting([older]).seal("request", "browser", pushed);
  const open = (
    keys: Parameters<typeof makeWaiting>[0],
    ...asked: ["request" | "pushed", string, number]
  ) => {
    const [kind, holder, nowSeconds] = asked;
    return makeWaiting(keys).open(kind, holder, sealed, nowSeconds);
  };
  assert.deepEqual(open([older], "request", "browser", 99), pushed);
  // While one key-encryption key replaces the other, whichever comes first.
  assert.deepEqual(open([newer, older], "request", "browser", 99), pushed);
  assert.equal(open([older], "request", "browser", 100), undefined);
  assert.equal(open([older], "request", "another", 99), undefined);
  assert.equal(open([older], "pushed", "browser", 99), undefined);
  assert.equal(open([other], "request", "browser", 99), undefined);
  assert.notEqual(makeWaiting([older]).seal("request", "browser", pushed), sealed);
});

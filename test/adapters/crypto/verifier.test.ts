/** Signatures that were found valid, for tokens that callers send again and again. */
import assert from "node:assert/strict";
import { generateKeyPairSync, sign } from "node:crypto";
import { test } from "node:test";
import { verifier } from "../../../src/adapters/crypto/verifier.ts";
import { SIGNED_REMEMBERED_MAX } from "../../../src/limits/input.ts";
import { encodeBase64url, type Jws, parseJws } from "../../../src/spec/rfc7515.ts";
import { type Jwk, parseJwkSet } from "../../../src/spec/rfc7517.ts";

type Pair = { key: Jwk; issue(number: number): Jws };

function makePair(): Pair {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const keys = parseJwkSet(JSON.stringify({ keys: [publicKey.export({ format: "jwk" })] }));
  const [key] = keys.ok ? keys.value : [];
  assert.ok(key !== undefined);
  const encode = (part: object): string => encodeBase64url(new TextEncoder().encode(JSON.stringify(part)));
  return {
    key,
    issue(number) {
      const input = `${encode({ alg: "Ed25519" })}.${encode({ number })}`;
      return parsed(`${input}.${encodeBase64url(sign(undefined, Buffer.from(input), privateKey))}`);
    },
  };
}

function parsed(compact: string): Jws {
  const jws = parseJws(compact);
  assert.ok(jws.ok);
  return jws.value;
}

/** The same token with other bytes as signature, which no parser makes: valid only if it is not computed again. */
const unsigned = (jws: Jws): Jws => ({ ...jws, signature: new Uint8Array(64) });

test("a valid signature is not computed again for the same token and key, and by verify() always is", async () => {
  const { key, issue } = makePair();
  const jws = issue(1);
  assert.equal(await verifier.verifyRepeated(unsigned(jws), key), false);
  assert.equal(await verifier.verifyRepeated(jws, key), true);
  assert.equal(await verifier.verifyRepeated(unsigned(jws), key), true);
  assert.equal(await verifier.verify(unsigned(jws), key), false);
});

test("RFC8725-3.3-1, RFC7515-2-v1 another signature, other claims and another spelling are verified by themselves", async () => {
  const { key, issue } = makePair();
  const [jws, other] = [issue(1), issue(2)];
  assert.equal(await verifier.verifyRepeated(jws, key), true);
  assert.equal(await verifier.verifyRepeated(other, key), true);
  const [first = "", second = "", third = ""] = jws.compact.split(".");
  const changed = `${third.startsWith("A") ? "B" : "A"}${third.slice(1)}`;
  assert.equal(await verifier.verifyRepeated(parsed(`${first}.${second}.${changed}`), key), false);
  const [, otherClaims = ""] = other.compact.split(".");
  assert.equal(await verifier.verifyRepeated(parsed(`${first}.${otherClaims}.${third}`), key), false);
  assert.equal(parseJws(`${jws.compact}=`).ok, false);
  // Nor does a failure make the same text a good one when it comes again.
  assert.equal(await verifier.verifyRepeated(parsed(`${first}.${second}.${changed}`), key), false);
});

test("what is remembered belongs to one key object: another key, and the same key loaded again, verify anew", async () => {
  const { key, issue } = makePair();
  const jws = issue(1);
  assert.equal(await verifier.verifyRepeated(jws, key), true);
  assert.equal(await verifier.verifyRepeated(jws, makePair().key), false);
  assert.equal(await verifier.verifyRepeated(unsigned(jws), { ...key }), false);
});

test("a failure is not remembered; beyond the limit a token that is not sent again is forgotten, one that is stays", async () => {
  const { key, issue } = makePair();
  const [once, again] = [issue(-1), issue(-2)];
  assert.equal(await verifier.verifyRepeated(unsigned(once), key), false);
  assert.equal(await verifier.verifyRepeated(once, key), true);
  assert.equal(await verifier.verifyRepeated(again, key), true);
  for (let number = 0; number < SIGNED_REMEMBERED_MAX; number++) {
    if (number % 1_000 === 0) assert.equal(await verifier.verifyRepeated(unsigned(again), key), true);
    if (number === SIGNED_REMEMBERED_MAX / 4) {
      assert.equal(await verifier.verifyRepeated(unsigned(once), key), true);
    }
    assert.equal(await verifier.verifyRepeated(issue(number), key), true);
  }
  assert.equal(await verifier.verifyRepeated(unsigned(once), key), false);
  assert.equal(await verifier.verifyRepeated(unsigned(again), key), true);
});

test("a token that came again is parsed once: the same frozen object for the same text, and for no other", async () => {
  const { key, issue } = makePair();
  const { compact } = issue(1);
  const parse = (text: string) => {
    const jws = verifier.parse(text);
    assert.ok(jws.ok);
    return jws.value;
  };
  assert.equal(await verifier.verifyRepeated(parse(compact), key), true);
  assert.notEqual(parse(compact), parse(compact));
  assert.equal(await verifier.verifyRepeated(parse(compact), key), true);
  const kept = parse(compact);
  assert.equal(parse(compact), kept);
  assert.deepEqual(kept, parsed(compact));
  assert.throws(() => Object.assign(kept.claims, { number: 2 }), TypeError);
  assert.throws(() => Object.assign(kept.header.members, { alg: "none" }), TypeError);
  assert.equal(await verifier.verifyRepeated(kept, key), true);
  assert.equal(await verifier.verifyRepeated(kept, makePair().key), false);
  // Another spelling and another signature are other texts.
  assert.equal(verifier.parse(`${compact}=`).ok, false);
  const changed = compact.replace(/.(?=.{10}$)/, (letter) => (letter === "A" ? "B" : "A"));
  assert.equal(await verifier.verifyRepeated(parse(changed), key), false);
});

test("RFC8725-3.3-1 what is kept of a token is its text as it reads, whatever object was verified", async () => {
  const { key, issue } = makePair();
  const jws = issue(1);
  for (let times = 0; times < 2; times++) {
    const read = verifier.parse(jws.compact);
    assert.ok(read.ok);
    Object.assign(read.value.claims, { number: 2 });
    assert.equal(verifier.verifyRepeated(read.value, key), true);
  }
  const kept = verifier.parse(jws.compact);
  assert.ok(kept.ok && Object.isFrozen(kept.value.claims));
  assert.deepEqual(kept.ok && kept.value.claims, parsed(jws.compact).claims);
});

test("a token that came again by another way than the parser drives out none that is kept", () => {
  const { key, issue } = makePair();
  const { compact } = issue(1);
  for (let times = 0; times < 3; times++) assert.equal(verifier.verifyRepeated(parsed(compact), key), true);
  const read = verifier.parse(compact);
  assert.ok(read.ok && !Object.isFrozen(read.value.claims));
});

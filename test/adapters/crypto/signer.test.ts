import assert from "node:assert/strict";
import { constants, createHash, createPrivateKey, generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { CompactSign, type CryptoKey, compactDecrypt, exportJWK, generateKeyPair, importJWK } from "jose";
import { makeClock } from "../../../src/adapters/clock.ts";
import { verifier } from "../../../src/adapters/crypto/verifier.ts";
import { openStore } from "../../../src/adapters/store/open.ts";
import type { KeyRow, Store } from "../../../src/adapters/store/store.ts";
import type { Signer } from "../../../src/ports.ts";
import { encodeBase64url, type Jws, parseJws } from "../../../src/spec/rfc7515.ts";
import { type Jwk, parseJwk } from "../../../src/spec/rfc7517.ts";
import { thumbprintInput } from "../../../src/spec/rfc7638.ts";
import type { Json, JsonObject } from "../../../src/spec/rfc8259.ts";
import { ASSERTION_ALGORITHMS, OWN_ALGORITHMS, SVID_ALGORITHMS } from "../../../src/spec/rfc8725.ts";
import { migratedFile } from "../../support/migrated.ts";
import { openSigner } from "../../support/signer.ts";

const NOW_SECONDS = 1_790_000_000;
const CLOCK = makeClock(() => NOW_SECONDS * 1000 + 999);
const CLAIMS = { sub: "u-4821" };

const encode = (value: object): string => encodeBase64url(new TextEncoder().encode(JSON.stringify(value)));

function parsed(compact: string): Jws {
  const jws = parseJws(compact);
  assert.ok(jws.ok, compact);
  return jws.value;
}

// --- verification -------------------------------------------------------------------------------------------------

type Pair = { key: Jwk; privateKey: CryptoKey };

async function makePair(alg: string): Promise<Pair> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  const key = parseJwk((await exportJWK(publicKey)) as Json);
  assert.ok(key.ok);
  return { key: key.value, privateKey };
}

async function signed(alg: string, { privateKey }: Pair, claims: object = CLAIMS): Promise<string> {
  const payload = new TextEncoder().encode(JSON.stringify(claims));
  return new CompactSign(payload).setProtectedHeader({ alg }).sign(privateKey);
}

/** The same token with another signature. */
function withSignature(compact: string, signature: Uint8Array): Jws {
  const [header, payload] = compact.split(".");
  return parsed(`${header}.${payload}.${encodeBase64url(signature)}`);
}

for (const alg of new Set([...ASSERTION_ALGORITHMS, ...SVID_ALGORITHMS])) {
  test(`RFC7515-5.2-v5, RFC7515-5.2-v6 ${alg}: accepts only the key's own signature of these bytes`, async () => {
    const [pair, other] = await Promise.all([makePair(alg), makePair(alg)]);
    const compact = await signed(alg, pair);
    const jws = parsed(compact);
    assert.equal(await verifier.verify(jws, pair.key), true);
    assert.equal(await verifier.verify(jws, { ...pair.key, alg }), true, "a key that names the algorithm");
    assert.equal(await verifier.verify(jws, other.key), false, "another key");
    const otherClaims = await signed(alg, pair, { sub: "u-4822" });
    assert.equal(
      await verifier.verify(withSignature(otherClaims, jws.signature), pair.key),
      false,
      "other claims",
    );
    const changed = jws.signature.map((byte, index) => (index === 9 ? byte ^ 1 : byte));
    assert.equal(
      await verifier.verify(withSignature(compact, changed), pair.key),
      false,
      "another signature",
    );
    const header = encode({ alg, kid: "k1" });
    const renamed = parsed(`${header}.${compact.slice(compact.indexOf(".") + 1)}`);
    assert.equal(await verifier.verify(renamed, pair.key), false, "another header");
  });
}

const mismatches: [key: string, names: string | undefined, header: string][] = [
  ["ES256", undefined, "ES384"],
  ["ES384", undefined, "ES256"],
  ["ES256", undefined, "RS256"],
  ["ES256", undefined, "EdDSA"],
  ["ES256", undefined, "HS256"],
  ["RS256", "RS256", "PS256"],
  ["RS256", "PS256", "RS256"],
  ["RS256", "RS256", "RS512"],
  ["RS256", undefined, "HS256"],
  ["RS256", undefined, "ES256"],
  ["EdDSA", undefined, "ES256"],
  ["ES256", undefined, "none"],
  ["ES256", undefined, "es256"],
];
for (const [kind, names, alg] of mismatches) {
  const named = names === undefined ? "" : ` that names ${names}`;
  test(`RFC8725-3.1-v2 a key for ${kind}${named} does not verify a signature as ${alg}`, async () => {
    const pair = await makePair(kind);
    const key: Jwk = names === undefined ? pair.key : { ...pair.key, alg: names };
    const { signature } = parsed(await signed(kind, pair));
    const jws = parsed(`${encode({ alg })}.${encode(CLAIMS)}.${encodeBase64url(signature)}`);
    assert.equal(await verifier.verify(jws, key), false);
  });
}

test("RFC8725-3.1-v2 an RSA key without alg verifies by the algorithm of the header and no other", async () => {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const key = parseJwk(publicKey.export({ format: "jwk" }) as Json);
  assert.ok(key.ok);
  for (const alg of ["RS256", "PS256"]) {
    const padding = alg === "PS256" ? constants.RSA_PKCS1_PSS_PADDING : constants.RSA_PKCS1_PADDING;
    const input = `${encode({ alg })}.${encode(CLAIMS)}`;
    const signature = sign("sha256", Buffer.from(input), { key: privateKey, padding, saltLength: 32 });
    assert.equal(await verifier.verify(parsed(`${input}.${encodeBase64url(signature)}`), key.value), true);
    const other = `${encode({ alg: alg === "PS256" ? "RS256" : "PS256" })}.${encode(CLAIMS)}`;
    assert.equal(await verifier.verify(parsed(`${other}.${encodeBase64url(signature)}`), key.value), false);
  }
});

test("RFC7518-3.5-v2 a PSS signature with another salt length is refused", async () => {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const key = parseJwk(publicKey.export({ format: "jwk" }) as Json);
  assert.ok(key.ok);
  const input = `${encode({ alg: "PS256" })}.${encode(CLAIMS)}`;
  for (const [saltLength, want] of [
    [32, true],
    [0, false],
    [20, false],
    [64, false],
  ] as const) {
    const padding = constants.RSA_PKCS1_PSS_PADDING;
    const signature = sign("sha256", Buffer.from(input), { key: privateKey, padding, saltLength });
    const jws = parsed(`${input}.${encodeBase64url(signature)}`);
    assert.equal(await verifier.verify(jws, key.value), want, String(saltLength));
  }
});

const NAMES = ["EdDSA", "Ed25519"];
for (const signedAs of NAMES) {
  for (const named of [undefined, ...NAMES]) {
    const keyAlg = named ?? "missing";
    test(`RFC8037-3.1-v1 a signature with alg ${signedAs} by an Ed25519 key whose alg is ${keyAlg} is verified`, async () => {
      const pair = await makePair("Ed25519");
      const privateKey = await importJWK(await exportJWK(pair.privateKey), signedAs);
      assert.ok(!(privateKey instanceof Uint8Array));
      const jws = parsed(await signed(signedAs, { ...pair, privateKey }));
      const key: Jwk = named === undefined ? pair.key : { ...pair.key, alg: named };
      assert.equal(await verifier.verify(jws, key), true);
      assert.equal(await verifier.verify(jws, (await makePair("Ed25519")).key), false);
    });
  }
}

test("RFC7518-3.4-v1 an ECDSA signature is accepted only as R and S in full length, not as DER or with another length", async () => {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const key = parseJwk(publicKey.export({ format: "jwk" }) as Json);
  assert.ok(key.ok);
  const input = `${encode({ alg: "ES256" })}.${encode(CLAIMS)}`;
  const verifies = (signature: Uint8Array) =>
    verifier.verify(parsed(`${input}.${encodeBase64url(signature)}`), key.value);
  const raw = sign("sha256", Buffer.from(input), { key: privateKey, dsaEncoding: "ieee-p1363" });
  assert.equal(await verifies(raw), true);
  const der = sign("sha256", Buffer.from(input), { key: privateKey, dsaEncoding: "der" });
  assert.equal(await verifies(der), false);
  assert.equal(await verifies(raw.subarray(0, 63)), false);
  assert.equal(await verifies(Buffer.concat([raw, Buffer.of(0)])), false);
  assert.equal(await verifies(Buffer.concat([Buffer.of(0), raw])), false);
  assert.equal(await verifies(Buffer.alloc(64)), false, "all zeros");
});

test("RFC8725-3.4-v1 a key that is not on its curve verifies nothing and causes no fault", async () => {
  const pair = await makePair("ES256");
  const jws = parsed(await signed("ES256", pair));
  assert.ok(pair.key.kty === "EC");
  assert.equal(await verifier.verify(jws, { ...pair.key, y: pair.key.x }), false);
  assert.equal(await verifier.verify(jws, { ...pair.key, x: "AA", y: "AA" }), false);
});

// --- our own keys -------------------------------------------------------------------------------------------------

const SEAL = randomBytes(32);

async function memory(t: TestContext): Promise<Store> {
  const store = await openStore({ sqlite: await migratedFile() });
  t.after(() => store.close());
  return store;
}

const open = (store: Store, algorithms: readonly string[] = ["ES256"], seal: Uint8Array = SEAL) =>
  openSigner(store, seal, algorithms, CLOCK);

/** A valid key of another store, for tests that change it. */
async function makeRow(t: TestContext, alg = "ES256"): Promise<KeyRow> {
  const store = await memory(t);
  await open(store, [alg]);
  const row = (await store.keys.list()).find(({ state }) => state === "active");
  assert.ok(row);
  return row;
}

async function storeWith(t: TestContext, ...rows: KeyRow[]): Promise<Store> {
  const store = await memory(t);
  for (const row of rows) assert.equal(await store.keys.insertIfNone(row), true);
  return store;
}

const members = (key: Jwk): string[] => Object.keys(key).sort();

async function verifies(signer: Signer, compact: string): Promise<boolean> {
  const jws = parsed(compact);
  const key = signer.own(jws.header);
  assert.ok(key);
  return verifier.verify(jws, key);
}

test("the first start creates an active key and an announced one for each algorithm, and the next start none", async (t) => {
  const store = await memory(t);
  await open(store, ["ES256"]);
  const first = await store.keys.list();
  await open(store, OWN_ALGORITHMS);
  const rows = await store.keys.list();
  for (const state of ["active", "announced"]) {
    const algorithms = rows.filter((row) => row.state === state).map(({ alg }) => alg);
    assert.deepEqual(algorithms.sort(), [...OWN_ALGORITHMS].sort(), state);
  }
  assert.ok(rows.every(({ createdAtSeconds }) => createdAtSeconds === NOW_SECONDS));
  assert.deepEqual(
    rows.filter(({ alg }) => alg === "ES256"),
    first,
  );
  await open(store, OWN_ALGORITHMS);
  assert.deepEqual(await store.keys.list(), rows);
});

test("an algorithm without an active key takes the announced one, or else gets a new one", async (t) => {
  const [retired, announced] = await Promise.all([makeRow(t), makeRow(t, "EdDSA")]);
  const store = await storeWith(
    t,
    { ...retired, state: "retired", sinceSeconds: NOW_SECONDS },
    { ...announced, state: "announced" },
  );
  const signer = await open(store, ["ES256", "EdDSA"]);
  assert.notEqual((await signer.current("ES256")).kid, retired.kid);
  assert.equal((await signer.current("EdDSA")).kid, announced.kid);
});

test("RFC8725-3.2-v4 nothing is signed with none", async (t) => {
  const store = await memory(t);
  await assert.rejects(open(store, ["none"]), /alg/);
  assert.deepEqual(await store.keys.list(), []);
  const signer = await open(store);
  const { kid } = await signer.current("ES256");
  await assert.rejects(async () => signer.sign({ kid, alg: "none" }, "at+jwt", JSON.stringify(CLAIMS)), {
    message: "this key does not sign",
  });
  assert.ok(!OWN_ALGORITHMS.includes("none" as never));
});

test("RFC7515-10.1-v1, RFC8725-3.5-v1 every signing key is made anew, with all the bits that its algorithm has room for", async (t) => {
  const room: Record<string, object> = {
    ES256: { namedCurve: "prime256v1" },
    EdDSA: {},
    RS256: { modulusLength: 2048, publicExponent: 65537n },
  };
  const secrets: string[] = [];
  for (const store of [await memory(t), await memory(t)]) {
    await open(store, OWN_ALGORITHMS);
    for (const { alg, privateJwe } of await store.keys.list()) {
      const { plaintext } = await compactDecrypt(privateJwe, SEAL);
      const jwk = JSON.parse(new TextDecoder().decode(plaintext));
      assert.deepEqual(createPrivateKey({ key: jwk, format: "jwk" }).asymmetricKeyDetails, room[alg]);
      const bits = [...Buffer.from(jwk.d, "base64url")].map((byte) => byte.toString(2).padStart(8, "0"));
      // Of 256 random bits, fewer than 75 or more than 181 are ones in less than one key of ten billion.
      const ones = bits.join("").replaceAll("0", "").length / bits.length / 8;
      assert.ok(ones > 0.29 && ones < 0.71, `${alg}: ${ones} of its bits are ones`);
      secrets.push(jwk.d);
    }
  }
  // An active and an announced one of each algorithm, in either store.
  assert.equal(secrets.length, 4 * OWN_ALGORITHMS.length);
  assert.equal(new Set(secrets).size, secrets.length);
});

test("two instances that create their first keys at the same time have the same ones", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "mandate test "));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "keys.sqlite");
  const stores = await Promise.all([
    openStore({ sqlite: file }),
    openStore({ sqlite: file }),
    openStore({ sqlite: file }),
  ]);
  t.after(() => Promise.all(stores.map((store) => store.close())));
  const signers = await Promise.all(stores.map((store) => open(store, OWN_ALGORITHMS)));
  for (const alg of OWN_ALGORITHMS) {
    const current = await Promise.all(signers.map((signer) => signer.current(alg)));
    assert.equal(new Set(current.map(({ kid }) => kid)).size, 1, alg);
  }
  assert.equal(new Set(signers.map((signer) => JSON.stringify(signer.published()))).size, 1);
  const [first, second] = signers;
  assert.ok(first && second);
  const compact = await first.sign(await first.current("ES256"), "at+jwt", JSON.stringify(CLAIMS));
  assert.equal(await verifies(second, compact), true, "the second verifies what the first signed");
});

test("RFC7517-7-1, RFC7517-9.2-1, RFC7515-10.2-v1 the store contains private keys only encrypted", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "mandate test "));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const store = await openStore({ sqlite: join(folder, "keys.sqlite") });
  t.after(() => store.close());
  await open(store, OWN_ALGORITHMS);
  const secrets: string[] = [];
  const names: string[] = [];
  for (const { kid, privateJwe, publicJwk } of await store.keys.list()) {
    assert.deepEqual(
      members(JSON.parse(publicJwk)).filter((name) => /^(d|p|q|dp|dq|qi)$/.test(name)),
      [],
    );
    const { plaintext, protectedHeader } = await compactDecrypt(privateJwe, SEAL);
    assert.equal(protectedHeader.enc, "A256GCM");
    const { d } = JSON.parse(new TextDecoder().decode(plaintext));
    assert.equal(typeof d, "string");
    names.push(kid);
    secrets.push(d, Buffer.from(d, "base64url").toString("latin1"));
  }
  const stored = readdirSync(folder).map((name) => readFileSync(join(folder, name), "latin1"));
  for (const name of names) assert.ok(stored.some((bytes) => bytes.includes(name)));
  for (const secret of secrets) assert.ok(!stored.some((bytes) => bytes.includes(secret)));
});

test("RFC7517-9.2-1 another key-encryption key is an error, and no key is added", async (t) => {
  const store = await memory(t);
  await open(store);
  const rows = await store.keys.list();
  await assert.rejects(open(store, ["ES256"], randomBytes(32)), {
    message:
      "keys.encryptionKey is not the key that the signing keys in the store were encrypted with: restore that key",
  });
  assert.deepEqual(await store.keys.list(), rows);
});

const tampered: [name: string, change: (row: KeyRow, other: KeyRow) => KeyRow][] = [
  ["another public key under the same kid", (row, other) => ({ ...row, publicJwk: renamed(other, row.kid) })],
  [
    "another public key and its kid",
    (row, other) => ({ ...row, kid: other.kid, publicJwk: other.publicJwk }),
  ],
  ["another private key", (row, other) => ({ ...row, privateJwe: other.privateJwe })],
  ["another kid", (row, other) => ({ ...row, kid: other.kid, publicJwk: renamed(row, other.kid) })],
  ["two different kids", (row, other) => ({ ...row, publicJwk: renamed(row, other.kid) })],
  ["another algorithm", (row) => ({ ...row, alg: "EdDSA" })],
  ["a malformed public key", (row) => ({ ...row, publicJwk: "{}" })],
  [
    "a public key with a private member",
    (row) => ({ ...row, publicJwk: row.publicJwk.replace("{", '{"d":"AA",') }),
  ],
];

const renamed = ({ publicJwk }: KeyRow, kid: string): string =>
  JSON.stringify({ ...JSON.parse(publicJwk), kid });

for (const [name, change] of tampered) {
  test(`RFC7638-3.2.1-v1 a stored key with ${name} fails the start`, async (t) => {
    const [row, other] = await Promise.all([makeRow(t), makeRow(t)]);
    await open(await storeWith(t, row), []);
    const changed = change(row, other);
    const message = `the signing key ${changed.kid} in the store is damaged: restore the store from a backup`;
    await assert.rejects(open(await storeWith(t, changed), []), { message });
  });
}

test("RFC7517-7-1, RFC8414-2-6, RFC7638-3-v1 the published key set has only public members, and each key its use, algorithm and thumbprint", async (t) => {
  const signer = await open(await memory(t), OWN_ALGORITHMS);
  const published = signer.published() as readonly (JsonObject & Jwk)[];
  const byKid = new Map(published.map((key) => [key.kid, key]));
  const want: Record<string, string[]> = {
    ES256: ["alg", "crv", "kid", "kty", "use", "x", "y"],
    EdDSA: ["alg", "crv", "kid", "kty", "use", "x"],
    RS256: ["alg", "e", "kid", "kty", "n", "use"],
  };
  // The active ones, and their successors.
  assert.equal(byKid.size, 2 * OWN_ALGORITHMS.length);
  for (const key of published) {
    assert.deepEqual(members(key), want[String(key.alg)]);
    assert.equal(key.use, "sig");
    assert.equal(key.kid, createHash("sha256").update(thumbprintInput(key)).digest("base64url"));
  }
  for (const alg of OWN_ALGORITHMS) {
    const { kid } = await signer.current(alg);
    assert.equal(byKid.get(kid)?.alg, alg);
  }
});

for (const alg of OWN_ALGORITHMS) {
  test(`RFC9068-2.1-1, RFC7515-6-v1, RFC7515-5.1-v1 a signature with ${alg} names key and algorithm`, async (t) => {
    const signer = await open(await memory(t), [alg]);
    const key = await signer.current(alg);
    const compact = await signer.sign(key, "at+jwt", JSON.stringify({ ...CLAIMS, n: "ü" }));
    const jws = parsed(compact);
    assert.deepEqual({ ...jws.header.members }, { typ: "at+jwt", alg, kid: key.kid });
    assert.deepEqual({ ...jws.claims }, { ...CLAIMS, n: "ü" });
    assert.equal(await verifies(signer, compact), true);
    // RFC8725-3.11-v1: another kind of token has its own type under the same key.
    const other = parsed(await signer.sign(key, "authz-grant+jwt", JSON.stringify(CLAIMS)));
    assert.equal(other.header.members.typ, "authz-grant+jwt");
  });
}

test("RFC7518-3.4-v2 R and S of a signature have their full length, including leading zero bytes", async (t) => {
  const signer = await open(await memory(t), ["ES256"]);
  const key = await signer.current("ES256");
  for (let n = 0, zeros = 0; zeros < 2; n++) {
    const compact = await signer.sign(key, "at+jwt", JSON.stringify({ ...CLAIMS, n }));
    const { signature } = parsed(compact);
    assert.equal(signature.length, 64);
    // One signature in 128 has a zero byte at the beginning of R or S.
    if (signature[0] !== 0 && signature[32] !== 0) continue;
    zeros++;
    assert.equal(await verifies(signer, compact), true);
  }
});

test("RFC9068-4-12 an announced key is published but does not sign, and a retired one still verifies", async (t) => {
  const [active, announced, retired] = await Promise.all([makeRow(t), makeRow(t), makeRow(t)]);
  const before = await open(await storeWith(t, retired));
  const old = await before.sign(await before.current("ES256"), "at+jwt", JSON.stringify(CLAIMS));
  const store = await storeWith(
    t,
    { ...announced, state: "announced", createdAtSeconds: NOW_SECONDS - 2 },
    { ...retired, state: "retired", createdAtSeconds: NOW_SECONDS - 1 },
    active,
  );
  const signer = await open(store);
  assert.deepEqual(
    signer.published().map(({ kid }) => kid),
    [announced.kid, retired.kid, active.kid],
  );
  assert.equal((await signer.current("ES256")).kid, active.kid);
  await assert.rejects(
    async () => signer.sign({ kid: announced.kid, alg: "ES256" }, "at+jwt", JSON.stringify(CLAIMS)),
    {
      message: "this key does not sign",
    },
  );
  // Another instance may know earlier that it signs now.
  assert.equal(signer.own({ kid: announced.kid, alg: "ES256", members: {} })?.kid, announced.kid);
  assert.equal(await verifies(signer, old), true);
});

test("RFC9068-4-12 an own key is found only by its kid and for its algorithm", async (t) => {
  const signer = await open(await memory(t), OWN_ALGORITHMS);
  for (const alg of OWN_ALGORITHMS) {
    const { kid } = await signer.current(alg);
    assert.equal(signer.own({ kid, alg, members: {} })?.kid, kid);
    for (const other of ["ES256", "ES384", "RS256", "PS256", "RS512", "EdDSA", "none", "HS256"]) {
      if (other !== alg) assert.equal(signer.own({ kid, alg: other, members: {} }), undefined, other);
    }
    assert.equal(signer.own({ alg, members: {} }), undefined, "without kid");
    assert.equal(signer.own({ kid: `${kid}x`, alg, members: {} }), undefined, "another kid");
    await assert.rejects(async () => signer.sign({ kid, alg: "ES384" }, "at+jwt", JSON.stringify(CLAIMS)), {
      message: "this key does not sign",
    });
  }
});

test("a key of one purpose neither signs nor verifies for another", async (t) => {
  const store = await memory(t);
  const purposes = ["token", "checkpoint", "grant"] as const;
  const signers = await Promise.all(
    purposes.map((purpose) => openSigner(store, SEAL, ["ES256"], CLOCK, purpose)),
  );
  const made = await store.keys.list();
  assert.deepEqual(made.map(({ purpose }) => purpose).sort(), [...purposes, ...purposes].sort());
  for (const signer of signers) {
    const key = await signer.current("ES256");
    const published = signer.published().map(({ kid }) => kid);
    assert.equal(published.length, 2);
    assert.ok(published.includes(key.kid));
    const { header } = parsed(await signer.sign(key, "at+jwt", JSON.stringify(CLAIMS)));
    for (const other of signers) {
      assert.equal(other.own(header) !== undefined, other === signer);
      if (other === signer) continue;
      await assert.rejects(async () => other.sign(key, "at+jwt", JSON.stringify(CLAIMS)), {
        message: "this key does not sign",
      });
    }
  }
});

test("an algorithm that was not opened has no signing key", async (t) => {
  const signer = await open(await memory(t));
  await assert.rejects(async () => signer.current("RS256"), { message: "no active signing key for RS256" });
});

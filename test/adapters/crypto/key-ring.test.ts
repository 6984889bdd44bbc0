/** The signing keys of several instances on one store: their life by the clock, and what each instance knows of it. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { compactVerify, createLocalJWKSet, type JWK } from "jose";
import { openJournal } from "../../../src/adapters/audit/journal.ts";
import { clock, makeClock } from "../../../src/adapters/clock.ts";
import type { EncryptionKeys } from "../../../src/adapters/crypto/encryption-keys.ts";
import type { KeyRing } from "../../../src/adapters/crypto/key-ring.ts";
import { random } from "../../../src/adapters/crypto/random.ts";
import { verifier } from "../../../src/adapters/crypto/verifier.ts";
import { openStore } from "../../../src/adapters/store/open.ts";
import type { Store } from "../../../src/adapters/store/store.ts";
import { KEY_POLL_SECONDS, KEY_RETIRE_SECONDS_MIN } from "../../../src/limits/keys.ts";
import { ACCESS_TOKEN_SECONDS_MAX, SKEW_SECONDS } from "../../../src/limits/tokens.ts";
import { StoreUnavailable } from "../../../src/ports.ts";
import { type KeyPurpose, nextChange } from "../../../src/settings/key-life.ts";
import { parseJws } from "../../../src/spec/rfc7515.ts";
import { freshDatabase, sharePostgres } from "../../support/postgres.ts";
import { type Prng, prng } from "../../support/prng.ts";
import { openRing, type RingOptions, SCHEDULE } from "../../support/signer.ts";

const SEAL = randomBytes(32);
const START = 1_790_000_000;
const { rotateSeconds, announceSeconds, retireSeconds } = SCHEDULE;

type Fleet = {
  rings: readonly KeyRing[];
  store: Store;
  now(): number;
  pass(seconds: number): void;
  /** Opens one more instance. */
  open(options?: Partial<RingOptions>): Promise<KeyRing>;
  events(): Promise<{ type: string; reason: string; detail: Record<string, string> }[]>;
};

async function makeFleet(
  t: TestContext,
  size: number,
  place: () => Promise<string>,
  schedule = SCHEDULE,
): Promise<Fleet> {
  const at = await place();
  const stores: Store[] = [];
  let nowSeconds = START;
  const fleetClock = makeClock(() => nowSeconds * 1000);
  t.after(() => Promise.all(stores.map((store) => store.close())));
  const open = async (options: Partial<RingOptions> = {}): Promise<KeyRing> => {
    const store = await openStore(at.startsWith("postgres") ? { postgres: at } : { sqlite: at });
    const purposes: readonly KeyPurpose[] = ["token"];
    const log = `keys-${stores.push(store)}`;
    const usual = { store, encryptionKeys: [SEAL] as const, algorithms: ["ES256"], purposes, log, schedule };
    return openRing({ ...usual, clock: fleetClock, ...options });
  };
  const rings = await Promise.all(Array.from({ length: size }, () => open()));
  const [store] = stores;
  assert.ok(store);
  return {
    rings,
    store,
    open,
    now: () => nowSeconds,
    pass(seconds) {
      nowSeconds += seconds;
    },
    async events() {
      const logs = (await store.log.logs()).map((log) => store.log.read({ log, limit: 100 }));
      const bodies = (await Promise.all(logs)).flat().map(({ body }) => JSON.parse(body));
      return bodies.filter(({ type }) => type.startsWith("key."));
    },
  };
}

const inFile = (t: TestContext) => async (): Promise<string> => {
  const folder = mkdtempSync(join(tmpdir(), "mandate keys "));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "keys.sqlite");
};

const kidOf = async (ring: KeyRing): Promise<string> => (await ring.signer("token").current("ES256")).kid;
const published = (ring: KeyRing): readonly unknown[] =>
  ring
    .signer("token")
    .published()
    .map(({ kid }) => kid);
const states = (ring: KeyRing): string[] =>
  ring
    .facts()
    .map(({ state }) => state)
    .sort();

async function signed(ring: KeyRing): Promise<string> {
  const signer = ring.signer("token");
  return signer.sign(await signer.current("ES256"), "at+jwt", JSON.stringify({ sub: "u" }));
}

async function verifies(ring: KeyRing, token: string): Promise<boolean> {
  const jws = parseJws(token);
  assert.ok(jws.ok);
  const key = ring.signer("token").own(jws.value.header);
  return key !== undefined && (await verifier.verify(jws.value, key));
}

const renewAll = (rings: readonly KeyRing[]) => Promise.all(rings.map((ring) => ring.renew()));

for (const [name, place] of [
  ["SQLite", inFile],
  [
    "PostgreSQL",
    (t: TestContext) => async () => {
      const postgres = await sharePostgres();
      t.after(() => postgres.stop());
      return freshDatabase(postgres);
    },
  ],
] as const) {
  test(`KEYS-D-3, RFC9068-4-12 three instances change their key as one, and every token verifies at each (${name})`, async (t) => {
    const fleet = await makeFleet(t, 3, place(t));
    const { rings, pass } = fleet;
    const [one, two, three] = rings;
    assert.ok(one && two && three);
    await renewAll(rings);
    assert.equal(new Set(await Promise.all(rings.map(kidOf))).size, 1);
    assert.deepEqual(states(one), ["active", "announced"]);
    const first = await kidOf(one);
    const before = await signed(one);
    pass(rotateSeconds);
    // One instance changes it, the others still sign with the key before, and know the next one already.
    await two.renew();
    const second = await kidOf(two);
    assert.notEqual(second, first);
    assert.equal(await kidOf(one), first);
    for (const ring of rings) assert.ok(published(ring).includes(second));
    const tokens = [before, await signed(one), await signed(two)];
    for (const ring of rings) for (const token of tokens) assert.equal(await verifies(ring, token), true);
    await renewAll(rings);
    assert.deepEqual(await Promise.all(rings.map(kidOf)), [second, second, second]);
    assert.deepEqual(states(three), ["active", "announced", "retired"]);
    for (const token of tokens) assert.equal(await verifies(three, token), true);
    pass(retireSeconds);
    await renewAll(rings);
    assert.deepEqual(states(three), ["active", "announced"]);
    assert.ok(!published(three).includes(first));
    assert.equal(await verifies(three, before), false);
    // Each change is recorded once, although three instances saw that it was due.
    const told = (await fleet.events()).map(({ type, reason }) => `${type} ${reason}`);
    assert.deepEqual(told.sort(), ["key.removed key_over", "key.rotated key_due"]);
  });
}

test("RFC9068-4-12 a successor is announced for its time, also where the change is due before", async (t) => {
  const { pass, open } = await makeFleet(t, 1, inFile(t));
  const ring = await open({ schedule: { ...SCHEDULE, rotateSeconds: 1 } });
  const first = await kidOf(ring);
  pass(announceSeconds - 1);
  await ring.renew();
  assert.equal(await kidOf(ring), first);
  pass(1);
  await ring.renew();
  assert.notEqual(await kidOf(ring), first);
});

test("an algorithm that comes into use gets its keys with the first token, on every instance the same", async (t) => {
  const { open } = await makeFleet(t, 1, inFile(t));
  const algorithms: string[] = ["ES256"];
  const [one, two] = [await open({ algorithms }), await open({ algorithms })];
  await assert.rejects(async () => one.signer("token").current("EdDSA"), {
    message: "no active signing key for EdDSA",
  });
  algorithms.push("EdDSA");
  const kids = await Promise.all([one, two].map((ring) => ring.signer("token").current("EdDSA")));
  assert.equal(new Set(kids.map(({ kid }) => kid)).size, 1);
});

test("KEYS-D-5 a key that cannot be opened ends a start, is told of once later, and does not stop the others", async (t) => {
  const { rings, store, open } = await makeFleet(t, 1, inFile(t));
  const [ring] = rings;
  assert.ok(ring);
  const told: string[] = [];
  const watching = await open({ told });
  const other: EncryptionKeys = [randomBytes(32)];
  await assert.rejects(open({ encryptionKeys: other }), { name: "KeysUnusable" });
  const [row] = await store.keys.list();
  assert.ok(row);
  await store.keys.insertIfNone({ ...row, kid: "x", alg: "EdDSA", state: "retired" });
  await watching.renew();
  await watching.renew();
  assert.equal(told.length, 1);
  assert.match(told[0] ?? "", /signing key x in the store is damaged/);
  assert.equal(await verifies(ring, await signed(watching)), true);
});

/** A verifier that we did not write, with a key set that it keeps for as long as it may, of one instance or another. */
function makeVerifier(rings: readonly KeyRing[], now: () => number, dice: Prng) {
  let keys: ReturnType<typeof createLocalJWKSet> | undefined;
  let fetchedAt = 0;
  return async (token: string): Promise<void> => {
    if (keys === undefined || now() >= fetchedAt + SHORTEST.cacheSeconds) {
      const published = dice.pick(rings).signer("token").published();
      keys = createLocalJWKSet({ keys: [...published] as unknown as JWK[] });
      fetchedAt = now();
    }
    await compactVerify(token, keys);
  };
}

/** As short as production allows. */
const SHORTEST = {
  ...SCHEDULE,
  rotateSeconds: 4_000,
  announceSeconds: SCHEDULE.cacheSeconds + KEY_POLL_SECONDS + SKEW_SECONDS,
  retireSeconds: KEY_RETIRE_SECONDS_MIN,
};

test("RFC9068-4-12 over four rotations no token fails at a verifier that keeps the key set for as long as its header says", async (t) => {
  const { rings, pass, now, store } = await makeFleet(t, 3, inFile(t), SHORTEST);
  const dice = prng(7);
  const verifiers = Array.from({ length: 4 }, () => makeVerifier(rings, now, dice));
  const living: { token: string; expSeconds: number }[] = [];
  const kids: string[] = [];
  let changedAt = now();
  let verified = 0;
  const check = async (token: string): Promise<void> => {
    for (const verify of verifiers) await verify(token);
    verified += verifiers.length;
  };
  for (let step = 0; kids.length < 5; step++) {
    const facts = rings.flatMap((ring) => ring.facts());
    const next = Math.min(
      ...facts.map((key) => nextChange(key, facts, SHORTEST) ?? Number.POSITIVE_INFINITY),
    );
    // Around a change by seconds, in which each instance looks every other time; else all have looked meanwhile.
    const soon = next - now() <= 6 || now() - changedAt < 6;
    pass(soon ? 1 : Math.min(60, next - now() - 5));
    for (const [index, ring] of rings.entries())
      if (!soon || (step + index) % KEY_POLL_SECONDS === 0) await ring.renew();
    for (const ring of rings) {
      const token = await signed(ring);
      await check(token);
      living.push({ token, expSeconds: now() + ACCESS_TOKEN_SECONDS_MAX });
      const kid = await kidOf(ring);
      if (kids.includes(kid)) continue;
      kids.push(kid);
      changedAt = now();
      // Every other change is by order, as soon as the successor was announced.
      if (kids.length % 2 === 0) await order(store, kid, now());
    }
    while (living[0] !== undefined && living[0].expSeconds <= now()) await check(living.shift()?.token ?? "");
  }
  assert.ok(verified > 3_000, `${verified} verifications`);
});

/** As the operator's command does. */
async function order(store: Store, kid: string, replaceAtSeconds: number): Promise<void> {
  const journal = await openJournal({
    log: `order-${kid}`,
    store: store.log,
    clock,
    random,
    onFatal: assert.fail,
  });
  const event = { type: "key.rotation_ordered", outcome: "allow", reason: "by_operator" } as const;
  const keys = [{ kid, from: "active", to: "active", replaceAtSeconds }] as const;
  assert.ok((await journal.record({ event, keys })).ok);
  await journal.close();
}

test("an announced key that cannot be opened never signs, and the one before it does", async (t) => {
  const file = await inFile(t)();
  const { rings, store, pass } = await makeFleet(t, 1, async () => file);
  const [ring] = rings;
  assert.ok(ring);
  const first = await kidOf(ring);
  const other = await makeFleet(t, 1, inFile(t));
  const [announced, planted] = [await store.keys.list(), await other.store.keys.list()].map((rows) =>
    rows.find(({ state }) => state === "announced"),
  );
  assert.ok(announced && planted);
  const db = new DatabaseSync(file);
  db.exec(`update signing_key set private_jwe = '${planted.privateJwe}' where kid = '${announced.kid}'`);
  db.close();
  pass(rotateSeconds + announceSeconds);
  await ring.renew();
  assert.equal(await kidOf(ring), first);
  assert.ok(await signed(ring));
});

test("KEYS-D-4 while the store cannot be read, an instance signs and verifies with the keys that it has", async (t) => {
  const { rings, store } = await makeFleet(t, 1, inFile(t));
  const [ring] = rings;
  assert.ok(ring);
  const before = await signed(ring);
  await store.close();
  await assert.rejects(ring.renew(), StoreUnavailable);
  for (const token of [before, await signed(ring)]) assert.equal(await verifies(ring, token), true);
});

/** The signing keys of several instances on one store: their life by the clock, and what each instance knows of it. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { test } from "node:test";
import type { KeyRing } from "../../../src/adapters/crypto/key-ring.ts";
import type { EncryptionKeys } from "../../../src/adapters/crypto/system.ts";
import { makeClock } from "../../../src/adapters/crypto/system.ts";
import { verifier } from "../../../src/adapters/crypto/verifier.ts";
import { openStore } from "../../../src/adapters/store/open.ts";
import type { Store } from "../../../src/adapters/store/store.ts";
import type { KeyPurpose } from "../../../src/settings/key-life.ts";
import { parseJws } from "../../../src/spec/rfc7515.ts";
import { freshDatabase, startPostgres } from "../../support/postgres.ts";
import type { RingOptions } from "../../support/signer.ts";
import { openRing, SCHEDULE } from "../../support/signer.ts";

const SEAL = randomBytes(32);
const START = 1_790_000_000;
const { rotateSeconds, announceSeconds, retireSeconds } = SCHEDULE;

type Fleet = {
  rings: readonly KeyRing[];
  store: Store;
  pass(seconds: number): void;
  /** Opens one more instance. */
  open(options?: Partial<RingOptions>): Promise<KeyRing>;
  events(): Promise<{ type: string; reason: string; detail: Record<string, string> }[]>;
};

async function makeFleet(t: TestContext, size: number, place: () => Promise<string>): Promise<Fleet> {
  const at = await place();
  const stores: Store[] = [];
  let nowSeconds = START;
  const clock = makeClock(() => nowSeconds * 1000);
  t.after(() => Promise.all(stores.map((store) => store.close())));
  const open = async (options: Partial<RingOptions> = {}): Promise<KeyRing> => {
    const store = await openStore(at.startsWith("postgres") ? { postgres: at } : { sqlite: at });
    const purposes: readonly KeyPurpose[] = ["token"];
    const log = `keys-${stores.push(store)}`;
    return openRing({
      store,
      encryptionKeys: [SEAL],
      algorithms: ["ES256"],
      clock,
      purposes,
      log,
      ...options,
    });
  };
  const rings = await Promise.all(Array.from({ length: size }, () => open()));
  const [store] = stores;
  assert.ok(store);
  return {
    rings,
    store,
    open,
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
  return signer.sign(await signer.current("ES256"), "at+jwt", { sub: "u" });
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
      const postgres = await startPostgres();
      t.after(() => postgres.stop());
      return freshDatabase(postgres);
    },
  ],
] as const) {
  test(`RFC9068-4-12 three instances change their key as one, and every token verifies at each (${name})`, async (t) => {
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
  await assert.rejects(one.signer("token").current("EdDSA"), { message: "no active signing key for EdDSA" });
  algorithms.push("EdDSA");
  const kids = await Promise.all([one, two].map((ring) => ring.signer("token").current("EdDSA")));
  assert.equal(new Set(kids.map(({ kid }) => kid)).size, 1);
});

test("a key that cannot be opened ends a start, is told of once later, and does not stop the others", async (t) => {
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

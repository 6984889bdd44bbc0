/** The contract of both stores: what providers said last of their users. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Recheck } from "../../../src/records.ts";
import { makeFamily } from "./families.contract.ts";
import { type Harness, NOW_SECONDS, Writer } from "./store.contract.ts";

const ORIGIN = { iss: "https://idp.example", sub: "alice" };
const word = (extra: Partial<Recheck> = {}): Recheck => ({
  origin: ORIGIN,
  version: 1,
  provider: "company",
  confirmedAtSeconds: NOW_SECONDS,
  askedAtSeconds: NOW_SECONDS,
  sealed: "sealed",
  expiresAtSeconds: NOW_SECONDS + 60,
  ...extra,
});

export function testRechecks({ name, create }: Harness): void {
  test(`${name}: RECHECK-D-1 what a provider said is found with a family of its user, and the next sign-in takes its place`, async (t) => {
    const store = await (await create(t)).open();
    const { families, rechecks } = store;
    const writer = new Writer(store);
    await writer.write({ family: { start: makeFamily({ origin: ORIGIN }), digest: "d" } });
    const found = async () => (await families.find("d"))?.recheck;
    assert.equal(await found(), undefined);
    await writer.write({ recheck: word({ origin: { ...ORIGIN, sub: "bob" }, provider: "other" }) });
    assert.equal(await found(), undefined);
    await writer.write({ recheck: word() });
    assert.deepEqual(await found(), word());
    assert.deepEqual(await rechecks.find(ORIGIN), word());
    assert.equal(await rechecks.find({ ...ORIGIN, iss: "https://other.example" }), undefined);
    const { sealed: _, ...bare } = word({
      confirmedAtSeconds: NOW_SECONDS + 5,
      expiresAtSeconds: NOW_SECONDS + 90,
    });
    await writer.write({ recheck: bare });
    assert.deepEqual(await found(), { ...bare, version: 2 });
  });

  test(`${name}: RECHECK-D-1, OIDC-D-2 of a sign-in whose attempt is spent, nothing that its provider said is kept`, async (t) => {
    const store = await (await create(t)).open();
    const writer = new Writer(store);
    const spent = {
      kind: "attempt",
      key: "n",
      version: 1,
      body: {},
      expiresAtSeconds: NOW_SECONDS + 60,
    } as const;
    const rows = [{ add: spent }];
    assert.deepEqual(await writer.write({ rows, recheck: word() }), []);
    assert.deepEqual(await writer.write({ rows, recheck: word({ provider: "other" }) }), ["row_new"]);
    assert.deepEqual(await store.rechecks.find(ORIGIN), word());
  });

  test(`${name}: RECHECK-D-2 of changes of one version, by whatever instances, one is made, and none is of a version before`, async (t) => {
    const opened = await create(t);
    const stores = [await opened.open(), await opened.open()];
    const [first = assert.fail()] = stores;
    await new Writer(first).write({ recheck: word() });
    for (let round = 2; round < 12; round++) {
      const made = await Promise.all(
        [...stores, ...stores].map(({ rechecks }) => rechecks.replace(word({ version: round }))),
      );
      assert.equal(made.filter(Boolean).length, 1, `round ${round}`);
    }
    assert.equal(await first.rechecks.replace(word({ version: 5 })), false);
    assert.equal(
      await first.rechecks.replace(word({ origin: { ...ORIGIN, sub: "bob" }, version: 2 })),
      false,
    );
  });

  test(`${name}: what a provider said is removed once it has expired`, async (t) => {
    const store = await (await create(t)).open();
    const { families, rechecks } = store;
    const family = { start: makeFamily({ origin: ORIGIN }), digest: "d" };
    await new Writer(store).write({ family, recheck: word() });
    assert.equal(await rechecks.sweep(NOW_SECONDS + 60, 10), 0);
    assert.equal(await rechecks.sweep(NOW_SECONDS + 61, 10), 1);
    assert.equal((await families.find("d"))?.recheck, undefined);
  });
}

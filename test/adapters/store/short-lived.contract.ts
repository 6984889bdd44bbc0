/** The contract of both stores: the rows of sign-in and authorization. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ShortLived } from "../../../src/records.ts";
import { rounds } from "../../support/rounds.ts";
import { type Harness, NOW_SECONDS, Writer } from "./store.contract.ts";

const session = (key: string, extra: Partial<ShortLived> = {}) => ({
  kind: "session" as const,
  key,
  version: 1,
  body: {
    origin: { iss: "https://idp.example", sub: "a\u0000\u{1F511}" },
    sub: "alice",
    provider: "company",
    displayName: "\ud800 alone",
    startedAtSeconds: NOW_SECONDS,
  },
  expiresAtSeconds: NOW_SECONDS + 60,
  ...extra,
});

export function testShortLived({ name, create }: Harness): void {
  test(`${name}: PAGE-D-4 a row is found as it was added, until it expires`, async (t) => {
    const rows = (await (await create(t)).open()).shortLived;
    const row = session("a", { holder: "b" });
    await rows.add(row);
    assert.deepEqual(await rows.find("session", "a", NOW_SECONDS + 59), row);
    assert.equal(await rows.find("session", "a", NOW_SECONDS + 60), undefined);
    assert.equal(await rows.find("code", "a", NOW_SECONDS), undefined);
    assert.equal(await rows.find("session", "A", NOW_SECONDS), undefined);
    // A page's id comes from its URL.
    for (const key of ["a\0", "\ud800"])
      assert.equal(await rows.find("session", key, NOW_SECONDS), undefined);
  });

  test(`${name}: PAGE-D-14 the sessions of a user are found by the user, until they expire, and no other rows`, async (t) => {
    const rows = (await (await create(t)).open()).shortLived;
    const own = session("a", { holder: "alice" });
    for (const row of [own, session("b", { holder: "bob" }), session("c")]) await rows.add(row);
    await rows.add({ ...own, kind: "code", key: "d" });
    assert.deepEqual(await rows.ofUser("alice", NOW_SECONDS + 59), [own.body]);
    assert.deepEqual(await rows.ofUser("alice", NOW_SECONDS + 60), []);
  });

  test(`${name}: OIDC-D-2, PAGE-D-4 of changes to one version one is made`, async (t) => {
    const opened = await create(t);
    const stores = [await opened.open(), await opened.open()];
    const [first] = stores;
    for (let round = 0; round < rounds(4); round++) {
      const row = session(`r${round}`);
      await first?.shortLived.add(row);
      const next = (who: number) => ({ ...row, version: 2, body: { ...row.body, displayName: `${who}` } });
      const made = await Promise.all(stores.map(({ shortLived }, who) => shortLived.replace(next(who))));
      assert.deepEqual(made.filter(Boolean).length, 1, `round ${round}`);
      const found = await first?.shortLived.find("session", row.key, NOW_SECONDS);
      assert.deepEqual(found?.body, next(made.indexOf(true)).body);
      assert.equal(found?.version, 2);
    }
    assert.equal(await first?.shortLived.replace({ ...session("none"), version: 2 }), false);
  });

  test(`${name}: PAGE-D-4, OIDC-D-8 rows are written with their event, or not at all`, async (t) => {
    const store = await (await create(t)).open();
    const writer = new Writer(store);
    const { shortLived: rows } = store;
    const [one, two] = [session("a", { holder: "b" }), session("b")];
    assert.deepEqual(await writer.write({ rows: [{ add: one }, { add: two }] }), []);
    assert.deepEqual(await rows.find("session", "a", NOW_SECONDS), one);
    // One that is there already is a condition that fails, and nothing of the entry is written.
    const again = [
      { add: session("c") },
      { add: { ...one, version: 2 } },
      { remove: "session", key: "b" },
    ] as const;
    assert.deepEqual(await writer.write({ rows: again }), ["row_new"]);
    assert.deepEqual(await rows.find("session", "a", NOW_SECONDS), one);
    assert.deepEqual(await rows.find("session", "b", NOW_SECONDS), two);
    assert.equal(await rows.find("session", "c", NOW_SECONDS), undefined);
    // Another guard of the entry that fails keeps a row from being written too.
    const consent = { withdraw: "none", atSeconds: NOW_SECONDS };
    const rest = [{ add: session("d") }, { remove: "session", key: "a" }] as const;
    assert.deepEqual(await writer.write({ consent, rows: rest }), ["consent_current"]);
    assert.equal(await rows.find("session", "d", NOW_SECONDS), undefined);
    assert.deepEqual(await writer.write({ rows: rest }), []);
    assert.equal((await rows.find("session", "d", NOW_SECONDS))?.key, "d");
    assert.equal(await rows.find("session", "a", NOW_SECONDS), undefined);
  });

  test(`${name}: PAGE-D-4, OIDC-D-2 of entries of two instances that add one row, one is written`, async (t) => {
    const opened = await create(t);
    const stores = [await opened.open(), await opened.open()];
    const writers = stores.map((store, index) => new Writer(store, `as-${index}`));
    for (let round = 0; round < rounds(4); round++) {
      const rows = [{ add: session(`r${round}`) }];
      const failed = await Promise.all(writers.map((writer) => writer.write({ rows })));
      assert.deepEqual(
        failed.toSorted((x, y) => x.length - y.length),
        [[], ["row_new"]],
        `round ${round}`,
      );
    }
  });

  test(`${name}: PAGE-D-18 of one holder the oldest rows of a kind fall, and of no other`, async (t) => {
    const store = await (await create(t)).open();
    const writer = new Writer(store);
    const { shortLived: rows } = store;
    for (const [index, holder] of ["b", "b", "c", "b", "b"].entries()) {
      const add = session(`s${index}`, { holder, expiresAtSeconds: NOW_SECONDS + 60 + index });
      assert.deepEqual(await writer.write({ rows: [{ add, most: 3 }] }), []);
    }
    const keys = ["s0", "s1", "s2", "s3", "s4"];
    const found = await Promise.all(keys.map((key) => rows.find("session", key, NOW_SECONDS)));
    assert.deepEqual(
      found.map((row) => row?.key),
      [undefined, "s1", "s2", "s3", "s4"],
    );
    // Without a limit none fall.
    const kept = session("s5", { holder: "b", expiresAtSeconds: NOW_SECONDS + 90 });
    assert.deepEqual(await writer.write({ rows: [{ add: kept }] }), []);
    assert.equal((await rows.find("session", "s1", NOW_SECONDS))?.key, "s1");
  });

  test(`${name}: what has expired is removed in bounded batches`, async (t) => {
    const rows = (await (await create(t)).open()).shortLived;
    for (const key of ["a", "b", "c"]) await rows.add(session(key));
    await rows.add(session("d", { expiresAtSeconds: NOW_SECONDS + 90 }));
    assert.equal(await rows.sweep(NOW_SECONDS + 60, 10), 0);
    assert.equal(await rows.sweep(NOW_SECONDS + 61, 2), 2);
    assert.equal(await rows.sweep(NOW_SECONDS + 61, 2), 1);
    assert.equal((await rows.find("session", "d", NOW_SECONDS))?.key, "d");
  });
}

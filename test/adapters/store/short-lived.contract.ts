/** The contract of both stores: the rows of sign-in and authorization. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ShortLived } from "../../../src/records.ts";
import type { Harness } from "./store.contract.ts";
import { NOW_SECONDS } from "./store.contract.ts";

const CAPS = { perBrowser: 3, inAll: 100, nowSeconds: NOW_SECONDS };

const session = (key: string, extra: Partial<ShortLived<"session">> = {}): ShortLived<"session"> => ({
  kind: "session",
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
    const row = session("a", { browser: "b" });
    assert.equal(await rows.add(row, CAPS), true);
    assert.deepEqual(await rows.find("session", "a", NOW_SECONDS + 59), row);
    assert.equal(await rows.find("session", "a", NOW_SECONDS + 60), undefined);
    assert.equal(await rows.find("code", "a", NOW_SECONDS), undefined);
    assert.equal(await rows.find("session", "A", NOW_SECONDS), undefined);
    // A page's id comes from its URL.
    for (const key of ["a\0", "\ud800"])
      assert.equal(await rows.find("session", key, NOW_SECONDS), undefined);
  });

  test(`${name}: OIDC-D-2, PAGE-D-4 of changes to one version one is made`, async (t) => {
    const opened = await create(t);
    const stores = [await opened.open(), await opened.open()];
    const [first] = stores;
    for (let round = 0; round < 20; round++) {
      const row = session(`r${round}`);
      await first?.shortLived.add(row, CAPS);
      const next = (who: number) => ({ ...row, version: 2, body: { ...row.body, displayName: `${who}` } });
      const made = await Promise.all(stores.map(({ shortLived }, who) => shortLived.replace(next(who))));
      assert.deepEqual(made.filter(Boolean).length, 1, `round ${round}`);
      const found = await first?.shortLived.find("session", row.key, NOW_SECONDS);
      assert.equal(found?.body.displayName, `${made.indexOf(true)}`);
      assert.equal(found?.version, 2);
    }
    assert.equal(await first?.shortLived.replace({ ...session("none"), version: 2 }), false);
  });

  test(`${name}: PAGE-D-18 of one browser the oldest rows of a kind fall`, async (t) => {
    const rows = (await (await create(t)).open()).shortLived;
    for (const [index, browser] of ["b", "b", "c", "b", "b"].entries()) {
      const expiresAtSeconds = NOW_SECONDS + 60 + index;
      await rows.add(session(`s${index}`, { browser, expiresAtSeconds }), CAPS);
    }
    const keys = ["s0", "s1", "s2", "s3", "s4"];
    const found = await Promise.all(keys.map((key) => rows.find("session", key, NOW_SECONDS)));
    assert.deepEqual(
      found.map((row) => row?.key),
      [undefined, "s1", "s2", "s3", "s4"],
    );
  });

  test(`${name}: PAGE-D-18 beyond the cap in all nothing is added and nothing falls`, async (t) => {
    const rows = (await (await create(t)).open()).shortLived;
    const caps = { ...CAPS, inAll: 2 };
    assert.equal(await rows.add(session("old", { expiresAtSeconds: NOW_SECONDS }), caps), true);
    assert.equal(await rows.add(session("a", { browser: "b" }), caps), true);
    assert.equal(await rows.add(session("b", { browser: "b" }), caps), true);
    assert.equal(await rows.add(session("c", { browser: "b" }), { ...caps, perBrowser: 1 }), false);
    assert.equal(await rows.find("session", "c", NOW_SECONDS), undefined);
    assert.equal((await rows.find("session", "a", NOW_SECONDS))?.key, "a");
    // Another kind has room of its own.
    const { browser: _, ...other } = session("c");
    assert.equal(await rows.add({ ...other, kind: "code" } as unknown as ShortLived, caps), true);
  });

  test(`${name}: what has expired is removed in bounded batches`, async (t) => {
    const rows = (await (await create(t)).open()).shortLived;
    for (const key of ["a", "b", "c"]) await rows.add(session(key), CAPS);
    await rows.add(session("d", { expiresAtSeconds: NOW_SECONDS + 90 }), CAPS);
    assert.equal(await rows.sweep(NOW_SECONDS + 60, 10), 0);
    assert.equal(await rows.sweep(NOW_SECONDS + 61, 2), 2);
    assert.equal(await rows.sweep(NOW_SECONDS + 61, 2), 1);
    assert.equal((await rows.find("session", "d", NOW_SECONDS))?.key, "d");
    await rows.remove("session", "d");
    assert.equal(await rows.find("session", "d", NOW_SECONDS), undefined);
  });
}

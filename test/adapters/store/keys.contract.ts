/** The contract of both stores for the life of signing keys. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { KeyChange, Store } from "../../../src/adapters/store/store.ts";
import type { Ending } from "../../../src/policy/endings.ts";
import { type Harness, makeKey, makeToken, NOW_SECONDS, Writer } from "./store.contract.ts";

const LATER = NOW_SECONDS + 60;

async function withPair(store: Store) {
  const active = makeKey();
  const announced = makeKey({ state: "announced", createdAtSeconds: NOW_SECONDS + 1 });
  for (const key of [active, announced]) assert.equal(await store.keys.insertIfNone(key), true);
  const swap: readonly KeyChange[] = [
    { kid: active.kid, from: "active", to: "retired", sinceSeconds: LATER },
    { kid: announced.kid, from: "announced", to: "active", sinceSeconds: LATER },
  ];
  return { active, announced, swap };
}

export function testKeys({ name, create }: Harness): void {
  test(`one key retires and its successor becomes active in one step, whatever their order (${name})`, async (t) => {
    for (const turned of [false, true]) {
      const store = await (await create(t)).open();
      const { active, announced, swap } = await withPair(store);
      const keys = turned ? swap.toReversed() : swap;
      assert.deepEqual(await new Writer(store, `turned-${turned}`).write({ keys }), []);
      assert.deepEqual(await store.keys.list(), [
        { ...active, state: "retired", sinceSeconds: LATER },
        { ...announced, state: "active", sinceSeconds: LATER },
      ]);
      const next = makeKey({ state: "announced", createdAtSeconds: LATER });
      assert.equal(await store.keys.insertIfNone(next), true);
      assert.equal(await store.keys.insertIfNone(makeKey({ state: "announced" })), false, "a second one");
    }
  });

  test(`a change of a key that is in another state, or is gone, writes nothing (${name})`, async (t) => {
    const store = await (await create(t)).open();
    const { active, announced, swap } = await withPair(store);
    const writer = new Writer(store);
    const wrong: readonly KeyChange[] = [
      { kid: active.kid, from: "retired", to: "removed" },
      { kid: announced.kid, from: "active", to: "active", replaceAtSeconds: LATER },
      { kid: active.kid, from: "active", to: "active", was: "other", privateJwe: "new" },
      { kid: "none", from: "active", to: "retired" },
    ];
    for (const change of wrong) {
      assert.deepEqual(await writer.write({ keys: [change] }), ["key_current"]);
      const [other] = swap.filter(({ kid }) => kid !== change.kid);
      assert.deepEqual(await writer.write({ keys: [change, other ?? change] }), ["key_current"]);
    }
    assert.deepEqual(await store.keys.list(), [active, announced]);
    assert.deepEqual(await writer.write({ keys: swap }), []);
    assert.deepEqual(await writer.write({ keys: swap }), ["key_current"]);
  });

  test(`a key is marked, sealed anew and removed, and nothing else of it changes (${name})`, async (t) => {
    const store = await (await create(t)).open();
    const { active, announced } = await withPair(store);
    const writer = new Writer(store);
    const { kid } = active;
    const same = { kid, from: "active", to: "active" } as const;
    assert.deepEqual(await writer.write({ keys: [{ ...same, replaceAtSeconds: LATER }] }), []);
    assert.deepEqual(
      await writer.write({ keys: [{ ...same, was: active.privateJwe, privateJwe: "new" }] }),
      [],
    );
    await store.keys.markUsed([kid, "none"], LATER + 1);
    const marked = { ...active, replaceAtSeconds: LATER, privateJwe: "new", usedAtSeconds: LATER + 1 };
    assert.deepEqual(await store.keys.list(), [marked, announced]);
    assert.deepEqual(
      await writer.write({ keys: [{ kid: announced.kid, from: "announced", to: "removed" }] }),
      [],
    );
    assert.deepEqual(await store.keys.list(), [marked]);
  });

  test(`of instances that change the same keys at the same time, one does (${name})`, async (t) => {
    const opened = await create(t);
    const stores = [await opened.open(), await opened.open()];
    const [first] = stores;
    assert.ok(first);
    for (let round = 0; round < 5; round++) {
      for (const { kid, state } of await first.keys.list())
        assert.deepEqual(
          await new Writer(first, `clear-${round}-${kid}`).write({
            keys: [{ kid, from: state, to: "removed" }],
          }),
          [],
        );
      const { swap } = await withPair(first);
      const outcomes = await Promise.all(
        stores.map((store, index) =>
          new Writer(store, `as-${index}-${round}`).write({ keys: index === 0 ? swap : swap.toReversed() }),
        ),
      );
      assert.deepEqual(outcomes.flat(), ["key_current"], `round ${round}`);
      const states: string[] = (await first.keys.list()).map(({ state }) => state);
      assert.deepEqual(states.sort(), ["active", "retired"]);
    }
  });

  test(`what a withdrawn key signed is not recorded, and the guard says that it is for the key (${name})`, async (t) => {
    const store = await (await create(t)).open();
    const writer = new Writer(store);
    const ending: Ending = {
      key: "the-key",
      cutOffMs: Number.MAX_SAFE_INTEGER,
      atMs: NOW_SECONDS * 1000,
      expiresAtSeconds: LATER,
    };
    const stands = (key: string) => ({ kind: "key_stands", keys: [{ key, sinceMs: LATER * 1000 }] }) as const;
    const token = makeToken();
    assert.deepEqual(await writer.write({ ending }), []);
    assert.deepEqual(await writer.write({ token, guards: [stands("the-key")] }), ["key_stands"]);
    assert.equal(await store.facts.token(token.jti), undefined);
    assert.deepEqual(await writer.write({ token, guards: [stands("another")] }), []);
  });
}

/** The contract of both stores: security events that wait for their receivers, and what they are made of. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ENDING_STRETCH_MAX } from "../../../src/limits/store.ts";
import type { ReachedToken } from "../../../src/policy/signals.ts";
import type { TokenPlace } from "../../../src/ports-store.ts";
import type { Signal } from "../../../src/records.ts";
import { endingOf } from "./endings.contract.ts";
import { type Harness, makeEvent, makeToken, NOW_SECONDS, Writer } from "./store.contract.ts";

const NOW_MS = NOW_SECONDS * 1000;

const signal = (jti: string, extra: Partial<Signal> = {}): Signal => ({
  ...{ stream: "booking", jti, body: `body of ${jti}`, eventId: `event of ${jti}` },
  ...{ atMs: NOW_MS, expiresAtSeconds: NOW_SECONDS + 60 },
  ...extra,
});

export function testSignals({ name, create, sql }: Harness): void {
  test(`${name}: SSF-D-1 endings are listed since a time, the oldest first, each with its event and reason`, async (t) => {
    const store = await (await create(t)).open();
    const writer = new Writer(store);
    for (const [at, jti] of ["a", "b", "c"].entries()) {
      const ending = endingOf({ by: "token", jti }, NOW_MS + at);
      assert.deepEqual(await writer.write({ ending }), []);
    }
    const [, b, c] = ["a", "b", "c"].map((jti, at) => endingOf({ by: "token", jti }, NOW_MS + at));
    const found = await store.signals.endings(NOW_MS + 1, 10);
    const shown = found.map(({ key, atMs, cutOffMs }) => ({ key, atMs, cutOffMs }));
    assert.deepEqual(
      shown,
      [b, c].map((one) => one && { key: one.key, atMs: one.atMs, cutOffMs: one.cutOffMs }),
    );
    assert.ok(found.every(({ eventId }) => eventId.length > 0));
    assert.equal((await store.signals.endings(NOW_MS, 2)).length, 2);
  });

  test(`${name}: SSF-9-1 tokens are listed that carry one of the keys, for the audiences that are named, until they expire`, async (t) => {
    const store = await (await create(t)).open();
    const audience = "https://booking.example";
    const wanted = ["a", "b", "a"].map((ruleId) => makeToken({ audience, ruleId }));
    const others = [
      makeToken({ ruleId: "a" }),
      makeToken({ audience, ruleId: "a", expiresAtSeconds: NOW_SECONDS }),
      ...Array.from({ length: ENDING_STRETCH_MAX }, () => makeToken({ audience })),
    ];
    const keys = ["a", "b", "of no token"].map((id) => endingOf({ by: "rule", id }).key);
    const batch = [...wanted, ...others].map((token, seq) => ({ token, event: makeEvent("as-1", seq) }));
    assert.deepEqual(await store.log.append(batch), []);
    const list = async (keys: readonly string[]) => {
      const found: ReachedToken[] = [];
      let stretches = 0;
      for (let place: TokenPlace | undefined; ; ) {
        const filter = { keys, audiences: [audience, "b'; --"], expireAfterSeconds: NOW_SECONDS };
        const next = await store.signals.tokens({ ...filter, ...(place && { place }) });
        found.push(...next.tokens);
        stretches++;
        place = next.place;
        if (place === undefined) return { found, stretches };
      }
    };
    const jtis = (tokens: readonly { jti: string }[]) => tokens.map(({ jti }) => jti).toSorted();
    const { found, stretches } = await list(keys);
    // Few tokens are found by the index of their keys, where there is one.
    assert.equal(stretches, sql === "postgres" ? 1 : 2);
    assert.deepEqual(jtis(found), jtis(wanted));
    // With many keys, others may be among them, which are told apart by their own keys.
    const { found: ofMany } = await list([...Array.from({ length: 20 }, (_, at) => `none-${at}`), ...keys]);
    const carry = ofMany.filter(({ endingKeys }) => endingKeys.some(({ key }) => keys.includes(key)));
    assert.deepEqual(jtis(carry), jtis(wanted));
  });

  test(`${name}: SSF-D-2 an event is added once, and its text stays the one that was added first`, async (t) => {
    const { signals } = await (await create(t)).open();
    const text = { body: `"'\\ \u00e9\n{"a":[1]}` };
    assert.equal(await signals.add([signal("a", text), signal("b")]), 2);
    assert.equal(await signals.add([signal("a", { body: "another" }), signal("c")]), 1);
    assert.equal(await signals.add([signal("a", { stream: "crew" })]), 1);
    assert.deepEqual(await signals.known("booking", ["c", "d", "a", "'"]), new Set(["a", "c"]));
    assert.deepEqual(await signals.known("crew", ["a", "b"]), new Set(["a"]));
    const taken = await signals.take("booking", NOW_MS, NOW_MS + 9, 10);
    assert.deepEqual(
      taken.toSorted((a, b) => (a.jti < b.jti ? -1 : 1)),
      [signal("a", text), signal("b"), signal("c")],
    );
  });

  test(`${name}: SSF-D-1 of several instances one takes an event, until it is due again or settled`, async (t) => {
    const opened = await create(t);
    const stores = [await opened.open(), await opened.open()];
    const [{ signals } = assert.fail()] = stores;
    const all = Array.from({ length: 40 }, (_, at) => `event-${at}`);
    await signals.add(all.map((jti) => signal(jti)));
    const takeAll = async ({ signals: own }: (typeof stores)[0]): Promise<string[]> => {
      const taken: string[] = [];
      for (;;) {
        const some = await own.take("booking", NOW_MS, NOW_MS + 1_000, 3);
        taken.push(...some.map(({ jti }) => jti));
        if (some.length === 0) return taken;
      }
    };
    const taken = (await Promise.all(stores.map(takeAll))).flat();
    assert.deepEqual(taken.toSorted(), all.toSorted());
    await signals.settle(signal("event-0"), NOW_MS);
    await signals.postpone(signal("event-1"), NOW_MS + 5_000);
    const again = await signals.take("booking", NOW_MS + 1_000, NOW_MS + 9_000, 100);
    assert.equal(again.length, 38);
    assert.deepEqual(
      (await signals.take("booking", NOW_MS + 5_000, NOW_MS + 9_000, 100)).map(({ jti }) => jti),
      ["event-1"],
    );
    assert.deepEqual(await signals.waiting("booking", 100), { count: 39, oldestMs: NOW_MS });
    assert.deepEqual(await signals.waiting("booking", 9), { count: 9, oldestMs: NOW_MS });
    assert.deepEqual(await signals.waiting("crew", 9), { count: 0 });
  });

  test(`${name}: SSF-D-5 expired events are removed, and those that were not delivered are counted once`, async (t) => {
    const { signals } = await (await create(t)).open();
    const later = signal("later", { expiresAtSeconds: NOW_SECONDS + 61 });
    await signals.add([...["a", "b", "c"].map((jti) => signal(jti)), later]);
    await signals.settle(signal("a"), NOW_MS);
    const rounds = [await signals.sweep(NOW_SECONDS + 61, 2), await signals.sweep(NOW_SECONDS + 61, 2)];
    assert.deepEqual(
      rounds.map(({ rows }) => rows),
      [2, 1],
    );
    assert.equal(
      rounds.reduce((sum, { lost }) => sum + (lost.get("booking") ?? 0), 0),
      2,
    );
    assert.equal((await signals.waiting("booking", 9)).count, 1);
  });
}

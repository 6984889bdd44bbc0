/** The contract of both stores: families of refresh tokens. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { hash } from "../../../src/adapters/crypto/hash.ts";
import { buildEnding, type EndingSelector, grantKeys } from "../../../src/policy/endings.ts";
import type { Family, FamilyChange } from "../../../src/records.ts";
import { defined } from "../../../src/result.ts";
import { rounds } from "../../support/rounds.ts";
import {
  type Harness,
  ISSUER,
  makeEvent,
  makeToken,
  NOW_SECONDS,
  notEnded,
  type Opened,
  Writer,
} from "./store.contract.ts";

export const WINDOW = { windowMs: 60_000, elsewhere: false };

export function makeFamily(values: Partial<Family> = {}): Family {
  const family = {
    id: "grant-1",
    clientId: "desk-app",
    rotates: true,
    origin: { iss: ISSUER, sub: "alice" },
    sub: "idp|al\u0000ce",
    target: "https://notes.example",
    scopes: ["notes.read"],
    consentId: "page-1",
    offline: true,
    startedAtSeconds: NOW_SECONDS,
    endsAtSeconds: NOW_SECONDS + 2_592_000,
    idleEndsAtSeconds: NOW_SECONDS + 604_800,
    usedAtSeconds: NOW_SECONDS,
    generation: 1,
    ...values,
  };
  const endingKeys = grantKeys(hash.sha256, { ...family, signedInAtSeconds: NOW_SECONDS - 60 });
  return { ...family, endingKeys };
}

type Use = Extract<FamilyChange, { use: string }>;

const use = (presented: number, values: Partial<Use> = {}): FamilyChange => ({
  use: "grant-1",
  presented,
  atSeconds: NOW_SECONDS + presented,
  ...values,
});

const next = (digest: string, by: string) => ({ digest, sealed: digest, by, earlier: [] });

export const rotation = (presented: number): FamilyChange =>
  use(presented, {
    next: { ...next(`digest-${presented + 1}`, `by-${presented}`), sealed: `sealed-${presented + 1}` },
    idleEndsAtSeconds: NOW_SECONDS + 604_800 + presented,
  });

export const retry = (presented: number, again = WINDOW): FamilyChange => use(presented, { again });

export function testFamilies({ name, create }: Harness): void {
  const started = async (t: TestContext, family = makeFamily()) => {
    const opened: Opened = await create(t);
    const store = await opened.open();
    const writer = new Writer(store);
    assert.deepEqual(await writer.write({ family: { start: family, digest: "digest-1" } }), []);
    return { opened, store, writer, family };
  };

  test(`a family is found by any of its tokens, and listed for its user (${name})`, async (t) => {
    const { store, writer, family } = await started(t);
    assert.deepEqual(await store.families.find("digest-1"), { family, presented: 1 });
    assert.deepEqual(await store.families.list(family.origin), [{ family }]);
    assert.deepEqual(await store.families.list({ iss: ISSUER, sub: "bob" }), []);
    assert.equal(await store.families.find("digest-0"), undefined);
    assert.equal(await store.families.find("\ud800"), undefined);
    assert.deepEqual(await writer.write({ family: rotation(1) }), []);
    const now = {
      ...family,
      generation: 2,
      usedAtSeconds: NOW_SECONDS + 1,
      idleEndsAtSeconds: NOW_SECONDS + 604_801,
    };
    const old = await store.families.find("digest-1");
    const { latest: [last] = [], nowMs = 0, sealed } = old?.rotated ?? {};
    const { atMs = 0, ...rotated } = last ?? {};
    assert.deepEqual(
      [old?.family, old?.presented, rotated, sealed],
      [now, 1, { generation: 1, by: "by-1" }, "sealed-2"],
    );
    const agoMs = nowMs - atMs;
    assert.ok(agoMs >= -1_000 && agoMs < 60_000, `${agoMs} ms ago`);
    assert.equal((await store.families.find("digest-2"))?.presented, 2);
  });

  test(`REFRESH-D-4 a token is rotated once, and only the current one (${name})`, async (t) => {
    const { store, writer } = await started(t);
    assert.deepEqual(await writer.write({ family: rotation(2) }), ["family_current"]);
    assert.deepEqual(await writer.write({ family: rotation(1) }), []);
    assert.deepEqual(await writer.write({ family: rotation(1) }), ["family_current"]);
    assert.deepEqual(await writer.write({ family: { ...rotation(2), use: "other" } as Use }), [
      "family_current",
    ]);
    assert.equal((await store.families.find("digest-2"))?.family.generation, 2);
    assert.equal(await store.families.find("digest-3"), undefined);
  });

  test(`REFRESH-D-4 of rotations by several instances at the same time one is made (${name})`, async (t) => {
    const { opened, store } = await started(t);
    const writers = await Promise.all(
      ["as-2", "as-3", "as-4"].map(async (log) => new Writer(await opened.open(), log)),
    );
    for (let generation = 1; generation <= 10; generation++) {
      const digest = (log: number): string => `${generation + 1}-${log}`;
      const rotations = writers.map((_, log) => use(generation, { next: next(digest(log), "here") }));
      const made = await Promise.all(
        writers.map((writer, log) => writer.write(defined({ family: rotations[log] }))),
      );
      assert.equal(made.filter((failed) => failed.length === 0).length, 1, JSON.stringify(made));
      const found = await Promise.all([0, 1, 2].map((log) => store.families.find(digest(log))));
      assert.equal(found.filter((one) => one !== undefined).length, 1);
    }
  });

  test(`REFRESH-D-5 the token before is sent again within its time, however often, until the next is used (${name})`, async (t) => {
    const { store, writer } = await started(t);
    assert.deepEqual(await writer.write({ family: retry(1) }), ["family_current"]);
    assert.deepEqual(await writer.write({ family: rotation(1) }), []);
    assert.deepEqual(await writer.write({ family: retry(1, { ...WINDOW, windowMs: -1_000 }) }), [
      "family_current",
    ]);
    for (let count = 0; count < 50; count++) assert.deepEqual(await writer.write({ family: retry(1) }), []);
    assert.deepEqual(await writer.write({ family: rotation(2) }), []);
    assert.deepEqual(await writer.write({ family: retry(1) }), ["family_current"]);
    assert.deepEqual(await writer.write({ family: retry(2) }), []);
    assert.equal((await store.families.find("digest-2"))?.rotated?.sealed, "sealed-3");
  });

  test(`REFRESH-D-5 fifty retries at several instances at the same time are all written (${name})`, async (t) => {
    const { opened, writer } = await started(t);
    assert.deepEqual(await writer.write({ family: rotation(1) }), []);
    const logs = Array.from({ length: 10 }, (_, index) => `as-${index + 2}`);
    const writers = await Promise.all(logs.map(async (log) => new Writer(await opened.open(), log)));
    for (let round = 0; round < 5; round++) {
      const made = await Promise.all(writers.map((one) => one.write({ family: retry(1) })));
      assert.deepEqual(made.flat(), []);
    }
  });

  test(`REFRESH-D-5 the rotations of a moment before stay known with the last one, and go with it (${name})`, async (t) => {
    const { store, writer } = await started(t);
    const first = { generation: 7, atMs: 1_764_300_000_123 };
    const earlier = [{ generation: 8, by: "of-8", atMs: 1_764_300_000_456 }, first];
    assert.deepEqual(
      await writer.write({ family: use(1, { next: { ...next("digest-2", "by-1"), earlier } }) }),
      [],
    );
    const { latest: [last, ...others] = [] } = (await store.families.find("digest-1"))?.rotated ?? {};
    assert.deepEqual([last?.generation, last?.by, others], [1, "by-1", earlier]);
    assert.equal(await store.families.forgetSuccessors(-1_000, 10), 1);
    const after = (await store.families.find("digest-1"))?.rotated?.latest;
    assert.deepEqual(
      after?.map(({ generation, by }) => [generation, by]),
      [[1, undefined]],
    );
  });

  test(`REFRESH-D-21 the token before is sent again from elsewhere once in the life of a family, at whatever instances (${name})`, async (t) => {
    const { opened, store, writer } = await started(t);
    const elsewhere = retry(1, { ...WINDOW, elsewhere: true });
    assert.deepEqual(await writer.write({ family: rotation(1) }), []);
    assert.deepEqual(await writer.write({ family: retry(1) }), []);
    assert.equal((await store.families.find("digest-1"))?.retriedElsewhere, undefined);
    const writers = await Promise.all(
      ["as-2", "as-3", "as-4", "as-5"].map(async (log) => new Writer(await opened.open(), log)),
    );
    const made = await Promise.all(writers.map((one) => one.write({ family: elsewhere })));
    assert.equal(made.filter((failed) => failed.length === 0).length, 1, JSON.stringify(made));
    assert.deepEqual(await writer.write({ family: retry(1) }), [], "the first source goes on");
    assert.deepEqual(await writer.write({ family: rotation(2) }), []);
    const later = retry(2, { ...WINDOW, elsewhere: true });
    assert.deepEqual(await writer.write({ family: later }), ["family_current"]);
    const found = await store.families.find("digest-2");
    assert.deepEqual([found?.retriedElsewhere, found?.rotated?.latest[0]?.by], [true, "by-2"]);
    assert.equal((await store.families.list(makeFamily().origin))[0]?.retriedElsewhere, true);
  });

  test(`batches that use the same families in another order do not block each other (${name})`, async (t) => {
    const { opened, writer } = await started(t);
    const ids = Array.from({ length: 20 }, (_, index) => `many-${index}`);
    for (const id of ids) {
      assert.deepEqual(await writer.write({ family: { start: makeFamily({ id }), digest: `of-${id}` } }), []);
    }
    const stores = await Promise.all(
      ["as-2", "as-3", "as-4"].map(async (log) => ({ log, store: await opened.open() })),
    );
    for (let round = 0; round < rounds(4); round++) {
      const written = stores.map(({ log, store }, index) => {
        const turned = [...ids.slice(7 * index), ...ids.slice(0, 7 * index)];
        const batch = turned.map((id, at) => ({
          event: makeEvent(log, round * ids.length + at),
          family: { use: id, presented: 1, atSeconds: NOW_SECONDS + round },
        }));
        return store.log.append(batch);
      });
      assert.deepEqual(await Promise.all(written), [[], [], []]);
    }
  });

  test(`nothing of a batch is written where a family is not as expected (${name})`, async (t) => {
    const { store } = await started(t);
    const token = makeToken();
    const failed = await store.log.append([
      { event: makeEvent("as-9", 0), token },
      { event: makeEvent("as-9", 1), family: rotation(7) },
    ]);
    assert.deepEqual(failed, [{ entry: 1, guard: "family_current" }]);
    assert.equal(await store.facts.token(token.jti), undefined);
  });

  test(`a family of a client that proves itself is used without a rotation (${name})`, async (t) => {
    const { store, writer, family } = await started(t, makeFamily({ rotates: false }));
    const later = use(1, { atSeconds: NOW_SECONDS + 90, idleEndsAtSeconds: NOW_SECONDS + 604_890 });
    assert.deepEqual(await writer.write({ family: later }), []);
    assert.deepEqual(await writer.write({ family: use(1) }), []);
    const moved = { usedAtSeconds: NOW_SECONDS + 90, idleEndsAtSeconds: NOW_SECONDS + 604_890 };
    assert.deepEqual(await store.families.list(family.origin), [{ family: { ...family, ...moved } }]);
  });

  const ends: readonly EndingSelector[] = [
    { by: "grant", id: "grant-1" },
    { by: "every_grant" },
    { by: "consent", id: "page-1" },
    { by: "client", clientId: "desk-app" },
    { by: "subject", iss: ISSUER, sub: "alice" },
    { by: "issuer", issuer: ISSUER },
    { by: "everything" },
  ];
  for (const selector of ends) {
    test(`REFRESH-D-14 an ending by ${selector.by} reaches a family, with the reason of its event (${name})`, async (t) => {
      const { store, writer, family } = await started(t);
      const ending = buildEnding(hash.sha256, selector, NOW_SECONDS * 1000);
      const event = makeEvent("as-8", 0, JSON.stringify({ reason: "by_operator" }));
      assert.deepEqual(await store.log.append([{ event, ending }]), []);
      const ended = { eventId: event.id, atMs: NOW_SECONDS * 1000, reason: "by_operator" };
      assert.deepEqual(await store.families.list(family.origin), [{ family, ended }]);
      assert.deepEqual((await store.families.find("digest-1"))?.ended, ended);
      assert.deepEqual(await writer.write({ family: rotation(1), guards: [notEnded(family)] }), [
        "not_ended",
      ]);
    });
  }

  test(`an ending of another grant or of an earlier time reaches no family (${name})`, async (t) => {
    const { store, writer, family } = await started(t);
    const others: readonly [EndingSelector, number][] = [
      [{ by: "grant", id: "grant-2" }, 0],
      [{ by: "client", clientId: "desk-app" }, 60],
      [{ by: "every_grant" }, 60],
    ];
    for (const [selector, earlier] of others) {
      const ending = buildEnding(hash.sha256, selector, (NOW_SECONDS - earlier) * 1000);
      assert.deepEqual(await writer.write({ ending }), []);
    }
    assert.deepEqual(await store.families.list(family.origin), [{ family }]);
  });

  test(`successors are forgotten after the window, and families after their end (${name})`, async (t) => {
    const { store, writer, family } = await started(t);
    assert.deepEqual(await writer.write({ family: rotation(1) }), []);
    assert.equal(await store.families.forgetSuccessors(60_000, 10), 0);
    assert.equal((await store.families.find("digest-1"))?.rotated?.sealed, "sealed-2");
    assert.equal(await store.families.forgetSuccessors(-1_000, 10), 1);
    const { sealed, latest: [last] = [] } = (await store.families.find("digest-1"))?.rotated ?? {};
    assert.deepEqual([sealed, last?.by], [undefined, undefined]);
    assert.equal(await store.families.sweep(family.endsAtSeconds, 10), 0);
    let removed = 0;
    for (let last = -1; last !== 0; removed += last)
      last = await store.families.sweep(family.endsAtSeconds + 1, 1);
    assert.equal(removed, 3, "two tokens and the family");
    assert.equal(await store.families.find("digest-2"), undefined);
    assert.deepEqual(await store.families.list(family.origin), []);
  });
}

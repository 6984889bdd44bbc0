/** The contract of both stores: consents for which users may be asked. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { PendingConsent } from "../../../src/records.ts";
import { rounds } from "../../support/rounds.ts";
import { type Harness, NOW_SECONDS, Writer } from "./store.contract.ts";

export const CAPS = { perActor: 9, perSubject: 9, perPair: 9, nowSeconds: NOW_SECONDS };

export const pending = (id: string, extra: Partial<PendingConsent> = {}): PendingConsent => ({
  id,
  version: 1,
  asked: `about-${id}`,
  actor: "spiffe://td.example/planner",
  subject: "alice",
  ask: {
    mode: "delegation",
    clientId: "spiffe://td.example/planner",
    subject: {
      tokenType: "jwt",
      origin: { iss: "https://idp.example", sub: "a\u0000\u{1F511}\ud800" },
      audiences: [],
      scopes: ["trips.read"],
      expiresAtSeconds: NOW_SECONDS,
      chain: [{ sub: "x", iss: "y" }],
      issuer: "https://idp.example",
    },
  },
  startedAtSeconds: NOW_SECONDS,
  renewals: 0,
  polls: 0,
  pollsRecorded: 0,
  expiresAtSeconds: NOW_SECONDS + 60,
  ...extra,
});

export function testPendingConsents({ name, create }: Harness): void {
  test(`${name}: PAGE-D-23 a pending consent is found as it was added, until it expires`, async (t) => {
    const { pendingConsents: rows } = await (await create(t)).open();
    assert.deepEqual(await rows.open(pending("a"), CAPS), pending("a"));
    assert.deepEqual(await rows.find("a", NOW_SECONDS + 59), pending("a"));
    assert.equal(await rows.find("a", NOW_SECONDS + 60), undefined);
    // An id comes from a URL.
    for (const id of ["A", "a\0", "\ud800"]) assert.equal(await rows.find(id, NOW_SECONDS), undefined);
  });

  test(`${name}: PAGE-D-23 of the same user, agent, target and scopes there is one at a time`, async (t) => {
    const opened = await create(t);
    const stores = [await opened.open(), await opened.open()];
    const [first = assert.fail()] = stores;
    for (let round = 0; round < rounds(4); round++) {
      const asked = `about-${round}`;
      const made = await Promise.all(
        stores.map(({ pendingConsents }, who) =>
          pendingConsents.open(pending(`${round}-${who}`, { asked }), { ...CAPS, ...NO_CAPS }),
        ),
      );
      const [one, other] = made;
      assert.ok(one !== undefined);
      assert.deepEqual(one, other, `round ${round}`);
    }
    // After it has expired, another takes its place.
    const later = pending("later", { asked: "about-0", expiresAtSeconds: NOW_SECONDS + 120 });
    const nowSeconds = NOW_SECONDS + 60;
    assert.deepEqual(await first.pendingConsents.open(later, { ...CAPS, ...NO_CAPS, nowSeconds }), later);
    assert.deepEqual(await first.pendingConsents.find("later", nowSeconds), later);
  });

  test(`${name}: PAGE-D-23 one that was decided about is given again while it lives`, async (t) => {
    const { pendingConsents: rows } = await (await create(t)).open();
    await rows.open(pending("a"), CAPS);
    const decided = pending("a", { version: 2, decided: true });
    assert.equal(await rows.replace(decided), true);
    assert.equal(await rows.replace(decided), false);
    assert.deepEqual(await rows.open(pending("b", { asked: "about-a" }), CAPS), decided);
  });

  test(`${name}: PAGE-D-23 a decision is written with its event, and of two for one version none but the first`, async (t) => {
    const store = await (await create(t)).open();
    const writer = new Writer(store);
    const { pendingConsents: rows } = store;
    await rows.open(pending("a"), CAPS);
    await rows.open(pending("b"), CAPS);
    const question = pending("a", {
      version: 2,
      decided: true,
      denied: true,
      expiresAtSeconds: NOW_SECONDS + 90,
    });
    assert.deepEqual(await writer.write({ question }), []);
    assert.deepEqual(await rows.find("a", NOW_SECONDS + 60), question);
    assert.deepEqual(await writer.write({ question: { ...question, decided: false } }), ["question_current"]);
    assert.deepEqual(await writer.write({ question: pending("none", { version: 2 }) }), ["question_current"]);
    assert.deepEqual(await rows.find("a", NOW_SECONDS), question);
    assert.deepEqual(await rows.find("b", NOW_SECONDS), pending("b"));
  });

  test(`${name}: DTR-D-13 those of one user are listed, the one that ends first before the others, until they expire`, async (t) => {
    const { pendingConsents: rows } = await (await create(t)).open();
    await rows.open(pending("late", { expiresAtSeconds: NOW_SECONDS + 90 }), CAPS);
    await rows.open(pending("early", { codes: [{ link: "l", endsAtSeconds: 1 }], unlinked: true }), CAPS);
    await rows.open(pending("of-another", { subject: "bert" }), CAPS);
    const listed = async (now: number) => (await rows.list("alice", now)).map(({ id }) => id);
    assert.deepEqual(await listed(NOW_SECONDS), ["early", "late"]);
    assert.deepEqual(await listed(NOW_SECONDS + 60), ["late"]);
    assert.deepEqual(await rows.list("nul\0", NOW_SECONDS), []);
    const [first] = await rows.list("alice", NOW_SECONDS);
    assert.deepEqual([first?.codes, first?.unlinked], [[{ link: "l", endsAtSeconds: 1 }], true]);
  });

  const caps = [
    ["of one agent", { perActor: 2 }, { subject: "another" }, { actor: "spiffe://td.example/b" }],
    ["of one user", { perSubject: 2 }, { actor: "spiffe://td.example/b" }, { subject: "another" }],
    ["of one agent for one user", { perPair: 2 }, {}, { subject: "another" }],
  ] as const;
  for (const [which, cap, within, beside] of caps) {
    test(`${name}: PAGE-D-23 beyond the cap ${which} nothing is added`, async (t) => {
      const { pendingConsents: rows } = await (await create(t)).open();
      const limits = { ...CAPS, ...cap };
      // One that has expired takes no room.
      await rows.open(pending("old", { expiresAtSeconds: NOW_SECONDS }), { ...limits, ...NO_CAPS });
      for (const id of ["a", "b"]) assert.equal((await rows.open(pending(id), limits))?.id, id);
      assert.equal(await rows.open(pending("c", within), limits), undefined);
      assert.equal(await rows.find("c", NOW_SECONDS), undefined);
      if (beside !== undefined) assert.equal((await rows.open(pending("d", beside), limits))?.id, "d");
      // The ones that are there are found as before.
      assert.equal((await rows.open(pending("e", { asked: "about-a" }), limits))?.id, "a");
    });

    test(`${name}: PAGE-D-23 one that is answered takes no room of the cap ${which}, and one that was cancelled does`, async (t) => {
      const store = await (await create(t)).open();
      const { pendingConsents: rows } = store;
      const limits = { ...CAPS, ...cap };
      for (const id of ["a", "b"]) assert.equal((await rows.open(pending(id), limits))?.id, id);
      const closed = pending("a", { version: 2, closed: true });
      assert.ok(await rows.replace(closed));
      assert.equal(await rows.open(pending("c", within), limits), undefined);
      assert.ok(await rows.replace({ ...closed, version: 3, decided: true }));
      assert.equal((await rows.open(pending("c", within), limits))?.id, "c");
      assert.equal(await rows.open(pending("d", within), limits), undefined);
      const question = pending("b", { version: 2, decided: true, denied: true });
      assert.deepEqual(await new Writer(store).write({ question }), []);
      assert.equal((await rows.open(pending("d", within), limits))?.id, "d");
    });
  }

  for (const [which, cap, values] of [
    ["of one agent", { perActor: 2 }, (subject: string) => ({ subject })],
    ["of one user", { perSubject: 2 }, (actor: string) => ({ actor })],
    ["of one agent for one user", { perPair: 2 }, () => ({})],
  ] as const) {
    test(`${name}: PAGE-D-23 of many that are opened at the same time no more are added than the cap ${which}`, async (t) => {
      const opened = await create(t);
      const stores = [await opened.open(), await opened.open(), await opened.open()];
      for (let round = 0; round < rounds(4); round++) {
        const of = { actor: `agent-${round}`, subject: `user-${round}` };
        const made = await Promise.all(
          stores.flatMap(({ pendingConsents }, one) =>
            ["a", "b"].map((id) => {
              const row = pending(`${round}-${one}-${id}`, { ...of, ...values(`${round}-${one}-${id}`) });
              return pendingConsents.open(row, { ...CAPS, ...NO_CAPS, ...cap });
            }),
          ),
        );
        assert.equal(made.filter((row) => row !== undefined).length, 2, `round ${round}`);
      }
    });
  }

  test(`${name}: AUDIT-D-13 polls of all instances are counted in the row, and a change of the row keeps their number`, async (t) => {
    const opened = await create(t);
    const stores = [(await opened.open()).pendingConsents, (await opened.open()).pendingConsents];
    const [rows = assert.fail()] = stores;
    const first = await rows.open(pending("a"), CAPS);
    assert.ok(first);
    const polled = await Promise.all(
      Array.from({ length: 20 }, async (_, n) => stores[n % 2]?.poll(first, NOW_SECONDS + n)),
    );
    assert.ok(polled.every(Boolean));
    const found = await rows.find("a", NOW_SECONDS);
    assert.deepEqual([found?.polls, found?.pollsRecorded], [20, 0]);
    // What was read before does not lower the number, and what changed meanwhile is not polled.
    assert.ok(await rows.replace({ ...first, version: 2, decided: true, pollsRecorded: 20 }));
    assert.equal(await rows.poll(first, NOW_SECONDS), false);
    const changed = await rows.find("a", NOW_SECONDS);
    assert.deepEqual([changed?.polls, changed?.pollsRecorded, changed?.decided], [20, 20, true]);
    assert.equal(await rows.poll({ ...first, version: 2 }, NOW_SECONDS + 60), false);
  });

  test(`${name}: AUDIT-D-13 one that takes the place of an expired one leaves what that counted`, async (t) => {
    const { pendingConsents: rows } = await (await create(t)).open();
    const asked = "about";
    const first = (await rows.open(pending("a", { asked }), CAPS)) ?? assert.fail();
    assert.ok(await rows.poll(first, NOW_SECONDS));
    const nowSeconds = NOW_SECONDS + 60;
    const next = pending("b", { asked, expiresAtSeconds: nowSeconds + 60 });
    assert.deepEqual(await rows.open(next, { ...CAPS, nowSeconds }), next);
    const over = await rows.over(nowSeconds + 1, 9);
    assert.deepEqual(
      over.map(({ id, polls }) => [id, polls]),
      [["a", 1]],
    );
  });

  test(`${name}: pending consents that have expired are found in bounded batches, and removed`, async (t) => {
    const { pendingConsents: rows } = await (await create(t)).open();
    for (const id of ["a", "b", "c"]) await rows.open(pending(id), CAPS);
    await rows.open(pending("d", { expiresAtSeconds: NOW_SECONDS + 90 }), CAPS);
    assert.deepEqual(await rows.over(NOW_SECONDS + 60, 10), []);
    const over = await rows.over(NOW_SECONDS + 61, 2);
    assert.equal(over.length, 2);
    const [one = assert.fail()] = over;
    assert.equal(await rows.remove(one, NOW_SECONDS + 60), 0);
    assert.equal(await rows.remove(one, NOW_SECONDS + 61), 1);
    assert.equal((await rows.over(NOW_SECONDS + 61, 9)).length, 2);
    assert.equal((await rows.find("d", NOW_SECONDS))?.id, "d");
  });
}

const NO_CAPS = { perActor: 99, perSubject: 99, perPair: 99 };

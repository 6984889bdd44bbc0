/** The contract of both stores for endings: what an ending reaches, by look-up and as a guard. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { hash } from "../../../src/adapters/crypto/hash.ts";
import type { Store } from "../../../src/adapters/store/store.ts";
import { ENDING_STRETCH_MAX } from "../../../src/limits/store.ts";
import { ENDING_KEPT_SECONDS, ENDING_REACH_MS } from "../../../src/limits/tokens.ts";
import {
  buildEnding,
  disabledKey,
  type Ending,
  type EndingSelector,
  liftDisabled,
} from "../../../src/policy/endings.ts";
import type { TokenPlace } from "../../../src/ports-store.ts";
import type { Guard, TokenRecord } from "../../../src/records.ts";
import {
  type Harness,
  ISSUER,
  isLive,
  makeEvent,
  makeToken,
  NOW_SECONDS,
  notEnded,
  Writer,
} from "./store.contract.ts";

const NOW_MS = NOW_SECONDS * 1000;
const US = "https://as.example";
const [X, Y] = ["spiffe://td.example/x", "spiffe://other.example/y"];

export const endingOf = (selector: EndingSelector, atMs = NOW_MS): Ending =>
  buildEnding(hash.sha256, selector, atMs);

/** A family: a foreign subject token of a minute ago, exchanged by X, and that token by Y; and one token beside it. */
function makeFamily(): Record<"first" | "second" | "beside", TokenRecord> {
  const root = { issuedAtSeconds: NOW_SECONDS - 60 };
  const first = makeToken(
    { clientId: X, workload: X, chain: [{ iss: US, sub: X }], ruleId: "rule-x", consentId: "c-1" },
    root,
  );
  const second = makeToken(
    {
      clientId: "desk",
      workload: Y,
      chain: [
        { iss: US, sub: Y },
        { iss: US, sub: X },
      ],
      ruleId: "rule-y",
      ancestors: [first.jti],
      issuedAtSeconds: NOW_SECONDS + 30,
    },
    { keys: first.endingKeys },
  );
  const origin = { iss: "https://other-idp.example", sub: "alice" };
  const beside = makeToken({
    clientId: "c-2",
    workload: "spiffe://third.example/z",
    ruleId: "rule-z",
    origin,
  });
  return { first, second, beside };
}

/** What each selector names, and which of the family it ends. */
const SELECTORS: readonly (readonly [
  string,
  EndingSelector,
  readonly (keyof ReturnType<typeof makeFamily>)[],
])[] = [
  ["subject", { by: "subject", iss: ISSUER, sub: "alice" }, ["first", "second"]],
  ["another issuer's subject of this name", { by: "subject", iss: US, sub: "alice" }, []],
  ["actor of the first hop", { by: "actor", spiffeId: X }, ["first", "second"]],
  ["actor of the second hop", { by: "actor", spiffeId: Y }, ["second"]],
  ["client", { by: "client", clientId: X }, ["first", "second"]],
  ["client of the second hop", { by: "client", clientId: "desk" }, ["second"]],
  ["trust domain", { by: "trust_domain", name: "td.example" }, ["first", "second"]],
  ["trust domain of the second hop", { by: "trust_domain", name: "other.example" }, ["second"]],
  ["issuer", { by: "issuer", issuer: ISSUER }, ["first", "second"]],
  ["rule", { by: "rule", id: "rule-x" }, ["first", "second"]],
  ["rule of the second hop", { by: "rule", id: "rule-y" }, ["second"]],
  ["consent", { by: "consent", id: "c-1" }, ["first", "second"]],
  ["unknown consent", { by: "consent", id: "c-2" }, []],
  ["everything", { by: "everything" }, ["first", "second", "beside"]],
  ["everything up to before the first", { by: "everything", upToMs: NOW_MS - 60_001 }, []],
  ["everything up to the first's root", { by: "everything", upToMs: NOW_MS - 60_000 }, ["first", "second"]],
];

export function testEndings({ name, create, sql }: Harness): void {
  const check = (title: string, body: (store: Store, t: TestContext) => Promise<void>) =>
    test(`${title} (${name})`, async (t) => body(await (await create(t)).open(), t));

  const liveOf = async (store: Store, tokens: readonly TokenRecord[]): Promise<readonly boolean[]> =>
    (await Promise.all(tokens.map(({ jti }) => store.facts.token(jti)))).map(isLive);

  for (const [what, selector, ends] of SELECTORS) {
    check(`an ending by ${what} reaches all below it, by look-up and as a guard`, async (store) => {
      const writer = new Writer(store);
      const family = makeFamily();
      for (const token of Object.values(family)) assert.deepEqual(await writer.write({ token }), []);
      assert.deepEqual(await liveOf(store, Object.values(family)), [true, true, true]);
      // The second of the family was written half a minute later.
      assert.deepEqual(await writer.write({ ending: endingOf(selector, NOW_MS + 30_000) }), []);
      for (const [member, token] of Object.entries(family)) {
        const ended = ends.some((one) => one === member);
        assert.equal(isLive(await store.facts.token(token.jti)), !ended, member);
        assert.deepEqual(await writer.write({ guards: [notEnded(token)] }), ended ? ["not_ended"] : []);
      }
    });
  }

  check("AUDIT-D-5 an ending by token reaches its descendants and no other", async (store) => {
    const writer = new Writer(store);
    const root = await writer.token();
    const child = await writer.token({ ancestors: [root] });
    const grandchild = await writer.token({ ancestors: [child, root] });
    const sibling = await writer.token({ ancestors: [root] });
    const live = async () =>
      (await Promise.all([root, child, grandchild, sibling].map((jti) => store.facts.token(jti)))).map(
        isLive,
      );
    assert.deepEqual(await live(), [true, true, true, true]);
    assert.deepEqual(await writer.write({ ending: endingOf({ by: "token", jti: child }) }), []);
    assert.deepEqual(await live(), [true, false, false, true]);
    assert.deepEqual(await writer.write({ guards: [writer.guard(sibling, root)] }), []);
    assert.deepEqual(await writer.write({ guards: [writer.guard(grandchild)] }), ["not_ended"]);
  });

  check("an ending reaches a write-out of the store into the future, and nothing later", async (store) => {
    const writer = new Writer(store);
    const cases = [0, ENDING_REACH_MS / 1000, ENDING_REACH_MS / 1000 + 1];
    const tokens = cases.map((later) => makeToken({ clientId: "c-1", issuedAtSeconds: NOW_SECONDS + later }));
    assert.deepEqual(await writer.write({ ending: endingOf({ by: "client", clientId: "c-1" }) }), []);
    for (const [index, token] of tokens.entries()) {
      const want = index < 2 ? ["not_ended"] : [];
      assert.deepEqual(await writer.write({ token, guards: [notEnded(token)] }), want);
    }
    assert.deepEqual(await liveOf(store, tokens), [false, false, true]);
  });

  check(
    "of a batch with one name and several times, the entries that the ending reaches are named",
    async (store) => {
      const writer = new Writer(store);
      assert.deepEqual(await writer.write({ ending: endingOf({ by: "client", clientId: "c-1" }) }), []);
      const cutOffMs = NOW_MS + ENDING_REACH_MS;
      const key = endingOf({ by: "client", clientId: "c-1" }).key;
      const other = endingOf({ by: "client", clientId: "c-2" }).key;
      const guarded = [
        { kind: "not_ended", keys: [{ key: other, sinceMs: cutOffMs }] },
        { kind: "not_ended", keys: [{ key, sinceMs: cutOffMs + 1 }] },
        { kind: "key_stands", keys: [{ key, sinceMs: cutOffMs }] },
        {
          kind: "not_ended",
          keys: [
            { key: other, sinceMs: 0 },
            { key, sinceMs: 0 },
          ],
        },
      ] as const;
      const batch = guarded.map((guard, index) => ({ event: makeEvent("as-2", index), guards: [guard] }));
      assert.deepEqual(await store.log.append(batch), [
        { entry: 2, guard: "key_stands" },
        { entry: 3, guard: "not_ended" },
      ]);
    },
  );

  check(
    "a guard holds for each of its keys, and one that cannot be written refuses its own entry",
    async (store) => {
      const ending = { ...endingOf({ by: "rule", id: "gone" }), cutOffMs: 50 };
      assert.deepEqual(await store.log.append([{ event: makeEvent("as-1", 0), ending }]), []);
      const standing = (...keys: readonly (readonly [key: string, sinceMs: number])[]): Guard => ({
        kind: "not_ended",
        keys: keys.map(([key, sinceMs]) => ({ key, sinceMs })),
      });
      const { key } = ending;
      const guards = [
        standing([key, 51]),
        standing([key, 5], [key, 51]),
        standing([key, 51], ["other", 5], [key, 50]),
        standing(),
        standing(["other", 5]),
      ];
      const batch = guards.map((guard, at) => ({ event: makeEvent("as-1", at + 1), guards: [guard] }));
      assert.deepEqual(
        (await store.log.append(batch)).map(({ entry }) => entry),
        [1, 2],
      );
      for (const malformed of [standing(['x":1,"k', 5]), { kind: "not_ended" } as unknown as Guard]) {
        const entries = [standing(), malformed].map((guard, at) => ({
          event: makeEvent("as-1", at + 1),
          guards: [guard],
        }));
        await assert.rejects(async () => store.log.append(entries), { name: "NotStorable", entry: 1 });
      }
    },
  );

  check("the first of several endings is the one that is told", async (store) => {
    const token = makeToken({ clientId: "c-1" });
    const later = makeEvent("as-1", 1);
    const earlier = makeEvent("as-1", 2);
    await store.log.append([{ event: makeEvent("as-1", 0), token }]);
    await store.log.append([
      { event: later, ending: endingOf({ by: "client", clientId: "c-1" }, NOW_MS + 2) },
    ]);
    await store.log.append([
      { event: earlier, ending: endingOf({ by: "token", jti: token.jti }, NOW_MS + 1) },
    ]);
    const facts = await store.facts.token(token.jti);
    assert.deepEqual(facts?.ended, { eventId: earlier.id, atMs: NOW_MS + 1 });
  });

  check(
    "POLICY-D-20 a subject that is disabled has nothing, and once it is enabled again what begins later",
    async (store) => {
      const writer = new Writer(store);
      const origin = { iss: ISSUER, sub: "alice" };
      const at = (later: number) => makeToken({ origin, issuedAtSeconds: NOW_SECONDS + later });
      const [before, meanwhile, after] = [at(-10), at(1_000), at(3_000)];
      const other = makeToken({ origin: { ...origin, sub: "bob" } });
      for (const token of [before, other]) assert.deepEqual(await writer.write({ token }), []);
      const disabled = endingOf({ by: "subject", ...origin, disabled: true });
      assert.deepEqual(await writer.write({ ending: disabled }), []);
      assert.deepEqual(await writer.write({ ending: endingOf({ by: "subject", ...origin }) }), []);
      assert.deepEqual(await writer.write({ token: meanwhile, guards: [notEnded(meanwhile)] }), [
        "not_ended",
      ]);
      const key = [disabledKey(hash.sha256, origin)];
      assert.equal(await store.endings.isEnded(key), true);
      assert.equal(await store.endings.isEnded([disabledKey(hash.sha256, { ...origin, sub: "bob" })]), false);
      const lift = liftDisabled(hash.sha256, origin, NOW_MS + 2_000_000);
      assert.deepEqual(await writer.write({ lift }), []);
      assert.equal(await store.endings.isEnded(key), false);
      assert.deepEqual(await writer.write({ token: meanwhile, guards: [notEnded(meanwhile)] }), [
        "not_ended",
      ]);
      assert.deepEqual(await writer.write({ token: after, guards: [notEnded(after)] }), []);
      assert.deepEqual(await liveOf(store, [before, after, other]), [false, true, true]);
    },
  );

  test(`STORE-D-5 what an ending would reach and has reached is found in the order of expiry: few by their keys where there is an index, many stretch by stretch (${name})`, async (t) => {
    const store = await (await create(t)).open();
    const tokens = Array.from({ length: 2 * ENDING_STRETCH_MAX + 600 }, (_, index) =>
      makeToken({
        ...{ clientId: `c-${index % 2}`, ruleId: index % 100 === 1 ? "few" : "many" },
        expiresAtSeconds: NOW_SECONDS + (index % 3 === 0 ? 0 : 300 - (index % 7)),
      }),
    );
    await store.log.append(tokens.map((token, seq) => ({ event: makeEvent("as-1", seq), token })));
    const inOrder = tokens
      .filter(({ expiresAtSeconds }) => expiresAtSeconds > NOW_SECONDS)
      .toSorted((a, b) => a.expiresAtSeconds - b.expiresAtSeconds || (a.jti < b.jti ? -1 : 1));
    const find = async ({ key }: Ending, cutOffMs: number, page: { afterJti?: string } = {}) => {
      const found: string[] = [];
      let answers = 0;
      for (let place: TokenPlace | undefined; ; ) {
        const filter = { key, cutOffMs, nowSeconds: NOW_SECONDS, ...page, ...(place && { place }) };
        const next = await store.endings.next(filter);
        found.push(...next.tokens.map(({ record }) => record.jti));
        answers++;
        place = next.place;
        if (place === undefined) return { found, answers };
      }
    };
    const many = inOrder.filter(({ clientId }) => clientId === "c-1").map(({ jti }) => jti);
    const few = inOrder.filter(({ ruleId }) => ruleId === "few").map(({ jti }) => jti);
    const [ofMany, ofFew] = [
      endingOf({ by: "client", clientId: "c-1" }),
      endingOf({ by: "rule", id: "few" }),
    ];
    assert.deepEqual(await find(ofMany, NOW_MS), { found: many, answers: 2 });
    assert.deepEqual(await find(ofFew, NOW_MS), { found: few, answers: sql === "postgres" ? 1 : 2 });
    assert.deepEqual((await find(ofMany, NOW_MS - 1)).found, []);
    for (const [one, all] of [
      [ofMany, many],
      [ofFew, few],
    ] as const) {
      const afterJti = all[9] ?? "";
      assert.deepEqual((await find(one, NOW_MS, { afterJti })).found, all.slice(10));
    }
    // A token that has expired since comes before all that live.
    const afterJti = tokens[0]?.jti ?? "";
    assert.deepEqual((await find(ofFew, NOW_MS, { afterJti })).found, few);
    await store.log.append([{ event: makeEvent("as-1", tokens.length), ending: ofFew }]);
    assert.deepEqual((await find(ofFew, NOW_MS)).found, few);
  });

  check("an ending is removed when nothing is left that it could reach", async (store) => {
    const writer = new Writer(store);
    const token = makeToken({ expiresAtSeconds: NOW_SECONDS + 10 * ENDING_KEPT_SECONDS });
    assert.deepEqual(await writer.write({ token }), []);
    const ending = endingOf({ by: "subject", iss: ISSUER, sub: "alice" });
    assert.deepEqual(await writer.write({ ending }), []);
    assert.equal(await store.audit.sweep(NOW_SECONDS + ENDING_KEPT_SECONDS, 10), 0);
    assert.deepEqual(await liveOf(store, [token]), [false]);
    assert.equal(await store.audit.sweep(NOW_SECONDS + ENDING_KEPT_SECONDS + 1, 10), 1);
    assert.deepEqual(await liveOf(store, [token]), [true]);
  });
}

/** An instance that serves looks at the logs of all, and at the mark: a store that went back is told once. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { keepClosings } from "../src/adapters/audit/closings.ts";
import type { Loss } from "../src/adapters/audit/journal.ts";
import { hash } from "../src/adapters/crypto/hash.ts";
import type { Store } from "../src/adapters/store/store.ts";
import { endingEntry } from "../src/flows/endings.ts";
import type { Notice } from "../src/http/log-events.ts";
import { STORE_LOOK_MS, STORE_RETRY_MS } from "../src/limits/store.ts";
import type { Consent } from "../src/policy/access.ts";
import { buildEnding, disabledKey, liftDisabled } from "../src/policy/endings.ts";
import { StoreUnavailable } from "../src/ports.ts";
import { markWentBack, watchStore } from "../src/start/went-back.ts";
import { makeRegistered } from "./adapters/store/registrations.contract.ts";
import { EVENT, makeTrail, record } from "./support/trail.ts";
import { until } from "./support/until.ts";
import { consentOf } from "./support/world.ts";

/** An instance that is idle beside another one, and looks at a store that may be replaced or away. */
async function watched(t: TestContext) {
  const { store, journal, clock, timers } = await makeTrail(t);
  const [own, other] = [await journal("as-1"), await journal("as-2")];
  let now: Store | undefined = store;
  let looks = 0;
  const behind = (): Store => {
    if (now === undefined) throw new StoreUnavailable("the store is away");
    return now;
  };
  const losses: Loss[] = [];
  const seen: Pick<Store, "log" | "audit" | "restored"> = {
    get log() {
      return behind().log;
    },
    get audit() {
      looks++;
      return behind().audit;
    },
    get restored() {
      return behind().restored;
    },
  };
  const stop = watchStore({ store: seen, journal: own, clock, timers, onLoss: (loss) => losses.push(loss) });
  t.after(stop);
  return {
    ...{ store, journal, own, other, losses },
    replace(by: Store | undefined) {
      now = by;
    },
    /** Two looks, the first of which is done when the second begins. */
    async look() {
      for (const until2 of [looks + 1, looks + 2]) {
        await until(() => {
          if (looks < until2) timers.pass(STORE_LOOK_MS);
          return looks >= until2 || losses.length > 0;
        }, "it looks");
      }
    },
  };
}

test("AUDIT-D-10 an idle instance notices by the log of another one that the store went back, and tells it once", async (t) => {
  const { store, other, losses, replace, look } = await watched(t);
  await record(other, 3);
  await look();
  const copy = await makeTrail(t);
  for (const log of ["as-1", "as-2"]) {
    for (const event of await store.log.read({ log, limit: 2 })) await copy.store.log.append([{ event }]);
  }
  assert.equal(losses.length, 0);
  replace(copy.store);
  await look();
  await look();
  assert.deepEqual(
    losses.map(({ reason, behind }) => [reason, behind?.log, behind?.known, behind?.stored]),
    [['the store has lost records of the audit log "as-2"', "as-2", 4, 2]],
  );
});

test("AUDIT-D-10 the mark of another instance is noticed while serving", async (t) => {
  const { store, losses, look } = await watched(t);
  await look();
  assert.equal(losses.length, 0);
  await store.restored.set(1);
  await look();
  assert.deepEqual(losses, [{ reason: "the store was marked as a restored copy while this process ran" }]);
});

test("a store that grows, that is away, and that has a further log is as it was", async (t) => {
  const { store, journal, own, other, losses, replace, look } = await watched(t);
  for (let round = 0; round < 3; round++) {
    await look();
    await record(own, 2);
    await record(other, 1);
    replace(undefined);
    await look();
    replace(store);
    await record(await journal(`as-${3 + round}`), 1);
  }
  await look();
  assert.equal(losses.length, 0);
});

const behind = { log: "as-2", known: 4, stored: 2, forked: false, knownMs: 1_790_000_000_000 };

for (const [what, laterMs, isMarked] of [
  ["since it lost records is not marked again", 1, false],
  ["before it lost records is marked", -60_000, true],
] as const) {
  test(`AUDIT-D-10 a store in which all was ended ${what}`, async (t) => {
    const { store, journal, clock, timers } = await makeTrail(t);
    const ours = await journal("as-1");
    const ending = buildEnding(hash.sha256, { by: "everything" }, behind.knownMs + laterMs);
    await ours.record({ event: EVENT, ending });
    const told: unknown[] = [];
    const log = { tell: (notice: Notice) => void told.push(notice) };
    const reopen = () => journal("as-2");
    await markWentBack({ store, clock, hash, timers, log, reopen, closings: () => [] }, behind);
    assert.equal((await store.restored.find()) !== undefined, isMarked);
    assert.match(
      JSON.stringify(told),
      isMarked ? /as a restored copy/ : /was ended since\. This process ends/,
    );
    const [event] = (await store.log.read({ log: "as-2", limit: 9 })).filter(({ body }) =>
      /witness_ahead/.test(body),
    );
    assert.ok(event, "the loss is recorded");
  });
}

test("STORE-D-25 of what an instance took away the latest 1,024 records are kept", () => {
  const { since } = keepClosings({
    follow(listener) {
      for (let seq = 0; seq < 1_030; seq++) listener([{ seq, id: `${seq}`, closing: { event: EVENT } }]);
    },
  });
  assert.deepEqual([since(0).length, since(0)[0]?.seq], [1_024, 6]);
});

test("STORE-D-25 what an instance ended, withdrew and removed by records that the store has lost is written again, and no lift is", async (t) => {
  const [lost, copy] = [await makeTrail(t), await makeTrail(t)];
  const [ours, theirs] = [await lost.journal("as-1"), await copy.journal("as-1")];
  const consents = ["a", "b", "c"].map((user) => consentOf(user, "agent", "api", ["read"]));
  const [kept, unknown, other] = consents;
  const [client, added] = [makeRegistered(), makeRegistered({ clientId: "c_added" })];
  assert.ok(kept !== undefined && unknown !== undefined && other !== undefined);
  const stands: readonly Consent[] = [kept, other];
  for (const journal of [ours, theirs]) {
    for (const add of stands) assert.ok((await journal.record({ event: EVENT, consent: { add } })).ok);
    const registration = { register: client, clientsMax: 9 };
    assert.ok((await journal.record({ event: EVENT, registration })).ok);
  }
  const ports = { hash, clock: lost.clock };
  const by = { reason: "by_operator" } as const;
  const { since } = keepClosings(ours);
  const gone = { iss: "https://idp.example", sub: "gone" };
  const back = { iss: "https://idp.example", sub: "back" };
  const narrowed = { ...other, version: 2, scopes: [] };
  const ending = buildEnding(hash.sha256, { by: "grant", id: "g" }, lost.clock.nowMs());
  const { seq } = ours.head();
  for (const entry of [
    { event: EVENT, consent: { withdraw: kept.id, atSeconds: 1 } },
    { event: EVENT, consent: { replace: narrowed } },
    { event: EVENT, registration: { remove: client.clientId, atSeconds: 1 } },
    endingEntry(ports, { by: "subject", ...gone, disabled: true }, by),
    // The copy does not know the consent, and gets the ending.
    { event: EVENT, consent: { add: unknown } },
    { event: EVENT, consent: { withdraw: unknown.id, atSeconds: 1 }, ending },
    endingEntry(ports, { by: "subject", ...back, disabled: true }, by),
    { event: EVENT, lift: liftDisabled(hash.sha256, back, lost.clock.nowMs()) },
    { event: EVENT, registration: { register: added, clientsMax: 9 } },
    { event: EVENT },
  ])
    assert.ok((await ours.record(entry)).ok);
  const told: Notice[] = [];
  const { store, clock, timers } = copy;
  let tries = 0;
  const serving = {
    ...{ store, clock, hash, timers, log: { tell: (notice: Notice) => void told.push(notice) } },
    async reopen() {
      if (++tries > 1) return copy.journal("as-1");
      // The store is away again meanwhile.
      setImmediate(() => timers.pass(STORE_RETRY_MS));
      throw new StoreUnavailable("the store is away");
    },
    closings: () => since(seq + 1),
  };
  await markWentBack(serving, { ...behind, log: "as-1", stored: seq + 1 });
  assert.equal((await store.consents.find(kept.id))?.withdrawnAtSeconds, 1);
  assert.deepEqual((await store.consents.find(other.id))?.scopes, []);
  for (const one of [client, added]) assert.equal(await store.registrations.client(one.clientId), undefined);
  const isEnded = (key: string) => store.endings.isEnded([{ key, sinceMs: Number.MAX_SAFE_INTEGER }]);
  const disabled = [gone, back].map((one) => disabledKey(hash.sha256, one).key);
  assert.deepEqual(await Promise.all([...disabled, ending.key].map(isEnded)), [true, true, true]);
  assert.match(String(told.at(-1)?.message), /^Of the 6 endings, .* 6 were written again\./);
  const bodies = (await store.log.read({ log: "as-1", limit: 99 })).map(({ body }) => body);
  assert.equal(bodies.filter((body) => body.includes('"written_again":"')).length, 6);
});

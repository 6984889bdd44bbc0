/** An instance that serves looks at the logs of all, and at the mark: a store that went back is told once. */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { test } from "node:test";
import type { Loss } from "../src/adapters/audit/journal.ts";
import { hash } from "../src/adapters/crypto/hash.ts";
import type { Store } from "../src/adapters/store/store.ts";
import type { Notice } from "../src/http/log-events.ts";
import { STORE_LOOK_MS } from "../src/limits/store.ts";
import { buildEnding } from "../src/policy/endings.ts";
import { StoreUnavailable } from "../src/ports.ts";
import { markWentBack, watchStore } from "../src/start/went-back.ts";
import { EVENT, makeTrail, record } from "./support/trail.ts";
import { until } from "./support/until.ts";

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
      return behind().audit;
    },
    restored: {
      ...store.restored,
      find: async () => {
        looks++;
        return behind().restored.find();
      },
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
    await markWentBack({ store, clock, hash, timers, log, reopen }, behind);
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

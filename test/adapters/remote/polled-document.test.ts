import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Change, Kept, Loaded } from "../../../src/adapters/remote/polled-document.ts";
import { keepDocument } from "../../../src/adapters/remote/polled-document.ts";
import { LAST_GOOD_SECONDS, REFETCH_SECONDS } from "../../../src/limits.ts";

const NOW_MS = 1_790_000_000_000;
const DOWN = "ECONNREFUSED";

/** Numbers stand for documents: a higher one is newer. A fault stands for a failed load. */
type Copy = number | Error;

/** What is kept outside, or why it cannot be reached. */
type Shelf = { copy?: { value: number; loadedAtMs: number }; fault?: Error };

/** A source whose answers the test gives, one for each load; the last one is given again and again. */
class Source {
  readonly copies: Copy[];
  readonly changes: Change[] = [];
  readonly kept: Kept<number>;
  loads = 0;
  /** What the last load was told. */
  latest: number | undefined;
  /** What outlives this source. */
  readonly store: Shelf;
  nowMs = NOW_MS;
  /** While it is set, a load waits for it. */
  gate: Promise<void> | undefined;
  #refreshSeconds: number;

  constructor(
    t: TestContext,
    copies: Copy[],
    refreshSeconds = 3600,
    gate?: Promise<void>,
    store: Shelf = {},
  ) {
    this.copies = copies;
    this.store = store;
    this.gate = gate;
    this.#refreshSeconds = refreshSeconds;
    this.kept = keepDocument({
      load: (latest) => this.#load(latest),
      accepts: (old, next) => next >= old,
      same: (old, next) => old === next,
      onChange: (change) => this.changes.push(change),
      clock: { nowMs: () => this.nowMs },
      lastGoodSeconds: LAST_GOOD_SECONDS,
      memory: {
        recall: async () => {
          if (this.store.fault !== undefined) throw this.store.fault;
          return this.store.copy;
        },
        remember: async ({ value }, loadedAtMs) => {
          if (this.store.fault !== undefined) throw this.store.fault;
          this.store.copy = { value, loadedAtMs };
        },
      },
    });
    t.after(() => this.kept.stop());
  }

  async #load(latest: number | undefined): Promise<Loaded<number>> {
    this.loads++;
    this.latest = latest;
    await this.gate;
    const copy = (this.copies.length > 1 ? this.copies.shift() : this.copies[0]) ?? 0;
    if (copy instanceof Error) throw copy;
    return { value: copy, text: String(copy), refreshSeconds: this.#refreshSeconds };
  }

  /** Lets so much time pass that an early look is allowed again, and takes it. */
  async lookLater(seconds = REFETCH_SECONDS): Promise<number | undefined> {
    this.nowMs += seconds * 1000;
    await this.kept.lookAgain();
    return this.kept.current();
  }

  states(): string[] {
    return this.changes.map(({ state, reason }) => (reason === undefined ? state : `${state}: ${reason}`));
  }
}

test("the first copy is waited for and reported", async (t) => {
  const source = new Source(t, [1]);
  assert.equal(await source.kept.current(), 1);
  assert.deepEqual(source.states(), ["updated"]);
});

test("all who wait for the first copy wait for one load", async (t) => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const source = new Source(t, [1], 3600, promise);
  const waiting = Array.from({ length: 50 }, () => source.kept.current());
  resolve();
  assert.deepEqual(new Set(await Promise.all(waiting)), new Set([1]));
  assert.equal(source.loads, 1);
});

test("without a first copy there is none, until one comes", async (t) => {
  const source = new Source(t, [new Error(DOWN), 1]);
  assert.equal(await source.kept.current(), undefined);
  assert.equal(await source.lookLater(), 1);
  assert.deepEqual(source.states(), [`failed: ${DOWN}`, "updated"]);
});

test("a change is reported, the same copy once more is not", async (t) => {
  const source = new Source(t, [1, 1, 2]);
  await source.kept.current();
  for (const want of [1, 2, 2]) assert.equal(await source.lookLater(), want);
  assert.equal(source.loads, 4, "the first load, and one for each look");
  assert.deepEqual(source.states(), ["updated", "updated"]);
});

test("a failure is reported once, however long it lasts, and so is its end", async (t) => {
  const source = new Source(t, [1, new Error(DOWN), new Error("ETIMEDOUT"), new Error(DOWN), 1]);
  await source.kept.current();
  for (let look = 0; look < 5; look++) assert.equal(await source.lookLater(), 1);
  assert.deepEqual(source.states(), ["updated", `failed: ${DOWN}`, "updated"]);
});

test("each new failure is reported", async (t) => {
  const source = new Source(t, [1, new Error(DOWN), 1, new Error("ETIMEDOUT")]);
  await source.kept.current();
  for (let look = 0; look < 3; look++) await source.lookLater();
  assert.deepEqual(source.states(), ["updated", `failed: ${DOWN}`, "updated", "failed: ETIMEDOUT"]);
});

test("SFD-4.2-1 the last good copy serves until its ceiling, and not a moment longer", async (t) => {
  const source = new Source(t, [1, new Error(DOWN)]);
  await source.kept.current();
  source.nowMs = NOW_MS + LAST_GOOD_SECONDS * 1000;
  assert.equal(await source.kept.current(), 1);
  source.nowMs += 1;
  assert.equal(await source.kept.current(), undefined);
});

test("the ceiling counts from the last good load, the same copy or not", async (t) => {
  const source = new Source(t, [1, 1, new Error(DOWN)]);
  await source.kept.current();
  assert.equal(await source.lookLater(LAST_GOOD_SECONDS - 1), 1);
  assert.equal(await source.lookLater(LAST_GOOD_SECONDS), 1);
  assert.equal(await source.lookLater(1), undefined);
});

test("that the copy has become too old is reported once, and so is its end", async (t) => {
  const source = new Source(t, [1, new Error(DOWN), new Error(DOWN), new Error(DOWN), 1]);
  await source.kept.current();
  assert.equal(await source.lookLater(), 1);
  assert.equal(await source.lookLater(LAST_GOOD_SECONDS), undefined);
  assert.equal(await source.lookLater(), undefined);
  assert.equal(await source.lookLater(), 1);
  const tooOld = "failed: the last good copy is too old";
  assert.deepEqual(source.states(), ["updated", `failed: ${DOWN}`, tooOld, "updated"]);
});

test("SFD-4.2-2 an older copy is refused and reported, a newer one taken", async (t) => {
  const source = new Source(t, [2, 1, 1, 3]);
  await source.kept.current();
  for (const want of [2, 2, 3]) assert.equal(await source.lookLater(), want);
  assert.deepEqual(source.states(), ["updated", "failed: an older copy was offered", "updated"]);
});

test("SFD-4.2-2 an older copy does not make the one we have last any longer, nor take its place when that is too old", async (t) => {
  const source = new Source(t, [2, 1]);
  await source.kept.current();
  assert.equal(await source.lookLater(LAST_GOOD_SECONDS), 2);
  assert.equal(await source.lookLater(), undefined);
  assert.equal(await source.lookLater(), undefined);
});

// --- what outlives the process ------------------------------------------------------------------------------------

/** A source with what another one, at work before it, has left. */
const after = (t: TestContext, copies: Copy[], value: number, ageSeconds: number): Source => {
  const store = { copy: { value, loadedAtMs: NOW_MS - ageSeconds * 1000 } };
  return new Source(t, copies, 3600, undefined, store);
};

test("SFD-4.2-1 a copy that is loaded is stored with its time, and so is the same once more", async (t) => {
  const source = new Source(t, [1]);
  await source.kept.current();
  assert.deepEqual(source.store.copy, { value: 1, loadedAtMs: NOW_MS });
  await source.lookLater();
  assert.deepEqual(source.store.copy, { value: 1, loadedAtMs: NOW_MS + REFETCH_SECONDS * 1000 });
});

const ages: [ageSeconds: number, want: number | undefined, states: string[]][] = [
  [LAST_GOOD_SECONDS, 1, ["updated: the stored copy is taken", `failed: ${DOWN}`]],
  [LAST_GOOD_SECONDS + 1, undefined, [`failed: ${DOWN}`, "failed: the last good copy is too old"]],
];
for (const [ageSeconds, want, states] of ages) {
  test(`SFD-4.2-1 after a restart in an outage a copy ${ageSeconds} s old is ${want === undefined ? "not served" : "served"}`, async (t) => {
    const source = after(t, [new Error(DOWN)], 1, ageSeconds);
    assert.equal(await source.kept.current(), want);
    assert.deepEqual(source.states(), states);
  });
}

test("a stored copy that was served gets too old like any other", async (t) => {
  const source = after(t, [new Error(DOWN)], 1, LAST_GOOD_SECONDS - REFETCH_SECONDS);
  assert.equal(await source.lookLater(), 1);
  source.nowMs += 1;
  assert.equal(await source.kept.current(), undefined);
});

test("SFD-4.2-2 after a restart an older copy than the stored one is refused, a newer one taken", async (t) => {
  const source = after(t, [1, 3], 2, 60);
  assert.equal(await source.kept.current(), 2);
  assert.equal(await source.lookLater(), 3);
  const offered = "failed: an older copy was offered";
  assert.deepEqual(source.states(), ["updated: the stored copy is taken", offered, "updated"]);
});

test("SFD-4.2-2 an older copy is refused though the stored one is too old to serve", async (t) => {
  const source = after(t, [1], 2, LAST_GOOD_SECONDS + 1);
  assert.equal(await source.kept.current(), undefined);
  assert.equal(source.store.copy?.value, 2);
});

test("what is loaded first is served and not what is stored", async (t) => {
  const source = after(t, [2], 1, 60);
  assert.equal(await source.kept.current(), 2);
  assert.deepEqual(source.states(), ["updated"]);
});

test("the load is told the newest copy there is, however old", async (t) => {
  const source = after(t, [2], 1, 2 * LAST_GOOD_SECONDS);
  await source.kept.current();
  assert.equal(source.latest, 1);
  await source.lookLater();
  assert.equal(source.latest, 2);
});

test("while loading fails, what another instance has loaded is taken, and by its own age", async (t) => {
  const source = new Source(t, [1, new Error(DOWN)]);
  await source.kept.current();
  source.store.copy = { value: 2, loadedAtMs: NOW_MS + 1000 };
  assert.equal(await source.lookLater(), 2);
  assert.deepEqual(source.kept.state(), { state: "last_good", ageSeconds: REFETCH_SECONDS - 1 });
  source.store.copy = { value: 1, loadedAtMs: NOW_MS + 2000 };
  assert.equal(await source.lookLater(), 2, "an older one is not, whoever loaded it last");
});

test("SFD-4.2-2 a newer copy of another instance counts though it was loaded before the older one", async (t) => {
  const source = new Source(t, [1, 1, 3]);
  await source.kept.current();
  source.store.copy = { value: 2, loadedAtMs: NOW_MS - 1000 };
  assert.equal(await source.lookLater(), 2, "what is offered once more is an older copy by now");
  assert.equal(await source.lookLater(), 3);
});

test("a copy that was too old to serve gives way to what another instance has loaded", async (t) => {
  const source = new Source(t, [1, new Error(DOWN)]);
  await source.kept.current();
  assert.equal(await source.lookLater(LAST_GOOD_SECONDS + 1), undefined);
  source.store.copy = { value: 1, loadedAtMs: source.nowMs };
  assert.equal(await source.lookLater(), 1);
  const tooOld = "failed: the last good copy is too old";
  const want = ["updated", `failed: ${DOWN}`, tooOld, "updated: the stored copy is taken"];
  assert.deepEqual(source.states(), want);
  assert.equal(await source.lookLater(LAST_GOOD_SECONDS), undefined);
  assert.deepEqual(source.states(), [...want, tooOld]);
});

test("a store that fails stops no load and takes no copy away", async (t) => {
  const store: Shelf = { fault: new Error("the store is away") };
  const source = new Source(t, [1, 2, new Error(DOWN)], 3600, undefined, store);
  assert.equal(await source.kept.current(), 1);
  assert.equal(await source.lookLater(), 2);
  assert.equal(await source.lookLater(), 2);
  assert.equal(store.copy, undefined);
});

test("it says what its copy is worth, and how old it is", async (t) => {
  const source = new Source(t, [new Error(DOWN), 1, new Error(DOWN)]);
  await source.kept.current();
  assert.deepEqual(source.kept.state(), { state: "none" });
  await source.lookLater();
  assert.deepEqual(source.kept.state(), { state: "fresh", ageSeconds: 0 });
  await source.lookLater(40);
  assert.deepEqual(source.kept.state(), { state: "last_good", ageSeconds: 40 });
  source.nowMs += LAST_GOOD_SECONDS * 1000;
  assert.deepEqual(source.kept.state(), { state: "none", ageSeconds: LAST_GOOD_SECONDS + 40 });
});

// --- when it looks ----------------------------------------------------------------------------------------------

test("SFD-4.1-1 it looks again at the pace that the copy gives", async (t) => {
  const source = new Source(t, [1, 2, 3], 0.02);
  const deadlineMs = performance.now() + 2_000;
  while ((await source.kept.current()) !== 3 && performance.now() < deadlineMs) await sleep(5);
  assert.equal(await source.kept.current(), 3);
});

test("it looks again in half the time that its copy serves, however slow a pace the copy gives", async (t) => {
  let loads = 0;
  const kept = keepDocument({
    load: async () => ({ value: ++loads, text: "", refreshSeconds: 3600 }),
    accepts: () => true,
    same: () => false,
    onChange: () => {},
    clock: { nowMs: () => NOW_MS },
    lastGoodSeconds: 0.1,
  });
  t.after(() => kept.stop());
  const deadlineMs = performance.now() + 2_000;
  while (loads < 3 && performance.now() < deadlineMs) await sleep(5);
  assert.equal(loads, 3);
});

test("SFD-6.2-1 after a failure it does not look at the pace of the copy", async (t) => {
  const source = new Source(t, [1, new Error(DOWN)], 0.02);
  await sleep(200);
  assert.equal(source.loads, 2);
});

test("an early look is refused until the time has passed, though the last one failed", async (t) => {
  const source = new Source(t, [new Error(DOWN), 1]);
  await source.kept.current();
  assert.equal(await source.lookLater(REFETCH_SECONDS - 1), undefined);
  assert.equal(source.loads, 1);
  assert.equal(await source.lookLater(1), 1);
  assert.equal(source.loads, 2);
});

test("an early look is one load for all who ask at the same time, and they get what it brought", async (t) => {
  const source = new Source(t, [1, 2]);
  await source.kept.current();
  const { promise, resolve } = Promise.withResolvers<void>();
  source.gate = promise;
  source.nowMs += REFETCH_SECONDS * 1000;
  const looks = Array.from({ length: 50 }, async () => {
    await source.kept.lookAgain();
    return source.kept.current();
  });
  resolve();
  assert.deepEqual(new Set(await Promise.all(looks)), new Set([2]));
  assert.equal(source.loads, 2);
});

test("a look that is under way does not keep the last good copy from being served", async (t) => {
  const source = new Source(t, [1]);
  await source.kept.current();
  source.gate = new Promise(() => {});
  source.nowMs += REFETCH_SECONDS * 1000;
  void source.kept.lookAgain();
  assert.equal(await source.kept.current(), 1);
});

test("an early look takes the place of the one that was due, instead of adding to it", async (t) => {
  const source = new Source(t, [1], 0.1);
  await source.kept.current();
  for (let look = 0; look < 5; look++) await source.lookLater();
  await sleep(150);
  // The first, five early ones, and one at the pace of the copy; a slow machine may come to the next one.
  assert.ok(source.loads === 7 || source.loads === 8, String(source.loads));
});

// --- the end ----------------------------------------------------------------------------------------------------

test("SFD-6.3-1 stopped, it has no copy and looks no more", async (t) => {
  const source = new Source(t, [1], 0.02);
  await source.kept.current();
  source.kept.stop();
  const { loads } = source;
  assert.equal(await source.kept.current(), undefined);
  assert.equal(await source.lookLater(), undefined);
  await sleep(100);
  assert.equal(source.loads, loads);
});

const ends: [string, Copy][] = [
  ["a copy", 1],
  ["a failure", new Error(DOWN)],
];
for (const [what, outcome] of ends) {
  test(`SFD-6.3-1 stopped during a load, it takes ${what} from it no more, reports nothing and sets no timer`, async (t) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const source = new Source(t, [outcome], 0.02, promise);
    const waiting = source.kept.current();
    source.kept.stop();
    resolve();
    assert.equal(await waiting, undefined);
    await sleep(100);
    assert.equal(await source.kept.current(), undefined);
    assert.deepEqual(source.changes, []);
    assert.equal(source.loads, 1);
  });
}

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import {
  type Change,
  type Loaded,
  type PolledDocument,
  pollDocument,
} from "../../../src/adapters/remote/polled-document.ts";
import {
  EARLY_LOOK_SECONDS,
  LAST_GOOD_SECONDS,
  REFETCH_SECONDS,
  UNKNOWN_AGE_SECONDS,
} from "../../../src/limits/fetching.ts";
import { SKEW_SECONDS } from "../../../src/limits/tokens.ts";
import { makeTime, makeTimers, type TestTime } from "../../support/timers.ts";

const NOW_MS = 1_790_000_000_000;
const DOWN = "ECONNREFUSED";

/** A number stands for a document, and a higher one is newer; an error stands for a failed load. */
type Copy = number | Error;

/** The stored copy, or the error of the store. */
type Shelf = { copy?: { value: number; loadedAtMs: number }; fault?: Error };

/** A source whose answers the test sets, one for each load; the last one is repeated. */
class Source {
  readonly copies: Copy[];
  readonly changes: Change[] = [];
  readonly kept: PolledDocument<number>;
  loads = 0;
  /** The newest copy that was passed to the last load. */
  latest: number | undefined;
  /** The store, which outlives this source. */
  readonly store: Shelf;
  readonly time: TestTime;
  readonly timers = makeTimers();
  /** Every load waits for it while it is set. */
  gate: Promise<void> | undefined;
  #refreshSeconds: number;

  constructor(
    t: TestContext,
    copies: Copy[],
    refreshSeconds = 3600,
    gate?: Promise<void>,
    store: Shelf = {},
    nowMs = NOW_MS,
  ) {
    this.time = makeTime(nowMs);
    this.copies = copies;
    this.store = store;
    this.gate = gate;
    this.#refreshSeconds = refreshSeconds;
    this.kept = pollDocument({
      load: (latest) => this.#load(latest),
      accepts: (old, next) => next >= old,
      same: (old, next) => old === next,
      onChange: (change) => this.changes.push(change),
      clock: this.time.clock,
      timers: this.timers,
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
        redate: async (loadedAtMs, nextMs) => {
          if (this.store.copy?.loadedAtMs === loadedAtMs) this.store.copy.loadedAtMs = nextMs;
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

  /** The copy after an early look that is due at once. */
  async look(): Promise<number | undefined> {
    for await (const _ of this.kept.looks());
    return this.kept.current();
  }

  lookLater(seconds = REFETCH_SECONDS): Promise<number | undefined> {
    this.time.nowMs += seconds * 1000;
    return this.look();
  }

  /** Lets what is due within these seconds be loaded, and no more. */
  async pass(seconds: number): Promise<void> {
    this.timers.pass(seconds * 1000);
    await setImmediate();
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

test("all callers share the load of the first copy", async (t) => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const source = new Source(t, [1], 3600, promise);
  const waiting = Array.from({ length: 50 }, () => source.kept.current());
  resolve();
  assert.deepEqual(new Set(await Promise.all(waiting)), new Set([1]));
  assert.equal(source.loads, 1);
});

test("there is no copy until a load succeeds", async (t) => {
  const source = new Source(t, [new Error(DOWN), 1]);
  assert.equal(await source.kept.current(), undefined);
  assert.equal(await source.lookLater(), 1);
  assert.deepEqual(source.states(), [`failed: ${DOWN}`, "updated"]);
});

test("a change is reported, but not the same copy again", async (t) => {
  const source = new Source(t, [1, 1, 2]);
  await source.kept.current();
  for (const want of [1, 2, 2]) assert.equal(await source.lookLater(), want);
  assert.equal(source.loads, 4, "the first load and one for each refetch");
  assert.deepEqual(source.states(), ["updated", "updated"]);
});

test("a lasting failure is reported once, and its end once", async (t) => {
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

test("SFD-4.2-1 the last good copy is served until its limit and no longer", async (t) => {
  const source = new Source(t, [1, new Error(DOWN)]);
  await source.kept.current();
  source.time.nowMs = NOW_MS + LAST_GOOD_SECONDS * 1000;
  assert.equal(await source.kept.current(), 1);
  source.time.nowMs += 1;
  assert.equal(await source.kept.current(), undefined);
});

test("the limit counts from the last successful load, even of the same copy", async (t) => {
  const source = new Source(t, [1, 1, new Error(DOWN)]);
  await source.kept.current();
  assert.equal(await source.lookLater(LAST_GOOD_SECONDS - 1), 1);
  assert.equal(await source.lookLater(LAST_GOOD_SECONDS), 1);
  source.time.nowMs += 1;
  assert.equal(await source.kept.current(), undefined);
});

test("SFD-4.2-1 the limit counts from when the copy was asked for, however late it comes, here and in the store", async (t) => {
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  const source = new Source(t, [1], 3600, gate);
  await setImmediate();
  source.time.nowMs += LAST_GOOD_SECONDS * 1000;
  open();
  assert.equal(await source.kept.current(), 1);
  assert.deepEqual(source.store.copy, { value: 1, loadedAtMs: NOW_MS });
  source.time.nowMs += 1;
  assert.equal(await source.kept.current(), undefined);
});

test("that the copy is too old is reported once, and the end of that once", async (t) => {
  const source = new Source(t, [1, new Error(DOWN), new Error(DOWN), new Error(DOWN), 1]);
  await source.kept.current();
  assert.equal(await source.lookLater(), 1);
  assert.equal(await source.lookLater(LAST_GOOD_SECONDS), undefined);
  assert.equal(await source.lookLater(), undefined);
  assert.equal(await source.lookLater(), 1);
  const tooOld = "failed: the last good copy is too old";
  assert.deepEqual(source.states(), ["updated", `failed: ${DOWN}`, tooOld, "updated"]);
});

test("SFD-4.2-2 an older copy is refused and reported, and a newer one is accepted", async (t) => {
  const source = new Source(t, [2, 1, 1, 3]);
  await source.kept.current();
  for (const want of [2, 2, 3]) assert.equal(await source.lookLater(), want);
  assert.deepEqual(source.states(), ["updated", "failed: an older copy was offered", "updated"]);
});

test("SFD-4.2-2 an older copy neither prolongs the current one nor replaces it when that is too old", async (t) => {
  const source = new Source(t, [2, 1]);
  await source.kept.current();
  assert.equal(await source.lookLater(LAST_GOOD_SECONDS), 2);
  assert.equal(await source.lookLater(), undefined);
  assert.equal(await source.lookLater(), undefined);
});

// --- stored copies ------------------------------------------------------------------------------------------------

/** A source with the copy that an earlier one has stored. */
const after = (t: TestContext, copies: Copy[], value: number, ageSeconds: number): Source => {
  const store = { copy: { value, loadedAtMs: NOW_MS - ageSeconds * 1000 } };
  return new Source(t, copies, 3600, undefined, store);
};

test("SFD-4.2-1 a loaded copy is stored with its time, and again if the same copy is loaded", async (t) => {
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

test("a stored copy that is served becomes too old like any other", async (t) => {
  const source = after(t, [new Error(DOWN)], 1, LAST_GOOD_SECONDS - REFETCH_SECONDS);
  assert.equal(await source.lookLater(), 1);
  source.time.nowMs += 1;
  assert.equal(await source.kept.current(), undefined);
});

test("SFD-4.2-2 after a restart refuses a copy older than the stored one and accepts a newer one", async (t) => {
  const source = after(t, [1, 3], 2, 60);
  assert.equal(await source.kept.current(), 2);
  assert.equal(await source.lookLater(), 3);
  const offered = "failed: an older copy was offered";
  assert.deepEqual(source.states(), ["updated: the stored copy is taken", offered, "updated"]);
});

test("SFD-4.2-2 an older copy is refused even if the stored one is too old to be served", async (t) => {
  const source = after(t, [1], 2, LAST_GOOD_SECONDS + 1);
  assert.equal(await source.kept.current(), undefined);
  assert.equal(source.store.copy?.value, 2);
});

test("the first loaded copy is served, not the stored one", async (t) => {
  const source = after(t, [2], 1, 60);
  assert.equal(await source.kept.current(), 2);
  assert.deepEqual(source.states(), ["updated"]);
});

test("the newest copy is passed to the load, however old it is", async (t) => {
  const source = after(t, [2], 1, 2 * LAST_GOOD_SECONDS);
  await source.kept.current();
  assert.equal(source.latest, 1);
  await source.lookLater();
  assert.equal(source.latest, 2);
});

test("while loading fails, serves the copy that another instance has stored, by its own age", async (t) => {
  const source = new Source(t, [1, new Error(DOWN)]);
  await source.kept.current();
  source.store.copy = { value: 2, loadedAtMs: NOW_MS + 1000 };
  assert.equal(await source.lookLater(), 2);
  assert.deepEqual(source.kept.state(), { state: "last_good", ageSeconds: REFETCH_SECONDS - 1 });
  source.store.copy = { value: 1, loadedAtMs: NOW_MS + 2000 };
  assert.equal(await source.lookLater(), 2, "an older copy is not served, even if it was loaded later");
});

test("SFD-4.2-2 a newer copy of another instance is served even if it was loaded before the older one", async (t) => {
  const source = new Source(t, [1, 1, 3]);
  await source.kept.current();
  source.store.copy = { value: 2, loadedAtMs: NOW_MS - 1000 };
  assert.equal(await source.lookLater(), 2, "the loaded copy is older than the stored one");
  assert.equal(await source.lookLater(), 3);
});

test("a copy that is too old is replaced by the one that another instance has stored", async (t) => {
  const source = new Source(t, [1, new Error(DOWN)]);
  await source.kept.current();
  assert.equal(await source.lookLater(LAST_GOOD_SECONDS + 1), undefined);
  source.store.copy = { value: 1, loadedAtMs: source.time.nowMs };
  assert.equal(await source.lookLater(), 1);
  const tooOld = "failed: the last good copy is too old";
  const want = ["updated", `failed: ${DOWN}`, tooOld, "updated: the stored copy is taken"];
  assert.deepEqual(source.states(), want);
  assert.equal(await source.lookLater(LAST_GOOD_SECONDS), undefined);
  assert.deepEqual(source.states(), [...want, tooOld]);
});

test("a failing store neither prevents loads nor removes the copy", async (t) => {
  const store: Shelf = { fault: new Error("the store is away") };
  const source = new Source(t, [1, 2, new Error(DOWN)], 3600, undefined, store);
  assert.equal(await source.kept.current(), 1);
  assert.equal(await source.lookLater(), 2);
  assert.equal(await source.lookLater(), 2);
  assert.equal(store.copy, undefined);
});

test("the state and the age of the copy are reported", async (t) => {
  const source = new Source(t, [new Error(DOWN), 1, new Error(DOWN)]);
  await source.kept.current();
  assert.deepEqual(source.kept.state(), { state: "none" });
  await source.lookLater();
  assert.deepEqual(source.kept.state(), { state: "fresh", ageSeconds: 0 });
  await source.lookLater(40);
  assert.deepEqual(source.kept.state(), { state: "last_good", ageSeconds: 40 });
  source.time.nowMs += LAST_GOOD_SECONDS * 1000;
  assert.deepEqual(source.kept.state(), { state: "none", ageSeconds: LAST_GOOD_SECONDS + 40 });
});

// --- clocks -------------------------------------------------------------------------------------------------------

const DAY_SECONDS = 86_400;
for (const days of [-2, 2]) {
  test(`CONF-D-17 a clock that is set by ${days} days makes the age unknown: fetched anew at once, served for ${UNKNOWN_AGE_SECONDS} s`, async (t) => {
    const source = new Source(t, [1, new Error(DOWN)]);
    await source.kept.current();
    source.time.wallAheadMs = days * DAY_SECONDS * 1000;
    assert.equal(await source.kept.current(), 1);
    await setImmediate();
    assert.equal(source.loads, 2, "fetched anew");
    source.time.nowMs += UNKNOWN_AGE_SECONDS * 1000;
    assert.equal(await source.kept.current(), 1);
    source.time.nowMs += 1;
    assert.equal(await source.kept.current(), undefined);
    assert.equal(source.loads, 2, "once for each time that the clock is set");
  });

  test(`a copy that is loaded after the clock was set by ${days} days is served for its time`, async (t) => {
    const source = new Source(t, [1, 2, new Error(DOWN)]);
    await source.kept.current();
    source.time.wallAheadMs = days * DAY_SECONDS * 1000;
    await source.kept.current();
    await setImmediate();
    source.time.nowMs += LAST_GOOD_SECONDS * 1000;
    assert.equal(await source.kept.current(), 2);
    source.time.nowMs += 1;
    assert.equal(await source.kept.current(), undefined);
  });
}

test("a clock that is set while a load is under way limits the stored copy that is taken after it", async (t) => {
  const source = after(t, [new Error(DOWN)], 1, 0);
  const { promise, resolve } = Promise.withResolvers<void>();
  source.gate = promise;
  await setImmediate();
  source.time.wallAheadMs = -2 * DAY_SECONDS * 1000;
  resolve();
  assert.equal(await source.kept.current(), 1);
  source.time.nowMs += UNKNOWN_AGE_SECONDS * 1000 + 1;
  assert.equal(await source.kept.current(), undefined);
});

test("a small difference of the clocks changes nothing", async (t) => {
  const source = new Source(t, [1, new Error(DOWN)]);
  await source.kept.current();
  for (const seconds of [SKEW_SECONDS, -SKEW_SECONDS]) {
    source.time.wallAheadMs = seconds * 1000;
    source.time.nowMs += UNKNOWN_AGE_SECONDS * 1000;
    assert.equal(await source.kept.current(), 1);
  }
  assert.equal(source.loads, 1);
});

test(`CONF-D-17 a stored copy from the future is served for ${UNKNOWN_AGE_SECONDS} s, and no longer after another start`, async (t) => {
  const first = after(t, [new Error(DOWN)], 1, -2 * DAY_SECONDS);
  assert.equal(await first.kept.current(), 1);
  first.time.nowMs += UNKNOWN_AGE_SECONDS * 1000;
  assert.equal(await first.kept.current(), 1);
  first.time.nowMs += 1;
  assert.equal(await first.kept.current(), undefined);
  for (const seconds of [UNKNOWN_AGE_SECONDS + 1, 2 * DAY_SECONDS]) {
    const later = new Source(t, [new Error(DOWN)], 3600, undefined, first.store, NOW_MS + seconds * 1000);
    assert.equal(await later.kept.current(), undefined, `${seconds} s later`);
  }
});

test("SFD-4.2-1 a stored copy that was met before becomes no younger by a clock that is set back, whoever stored it", async (t) => {
  for (const store of [{}, { copy: { value: 1, loadedAtMs: NOW_MS } }]) {
    const source = new Source(
      t,
      "copy" in store ? [new Error(DOWN)] : [1, new Error(DOWN)],
      3600,
      undefined,
      store,
    );
    assert.equal(await source.kept.current(), 1);
    const goneMs = LAST_GOOD_SECONDS * 1000 + 1;
    source.time.nowMs += goneMs;
    source.time.wallAheadMs -= goneMs;
    await source.kept.refresh();
    await source.kept.refresh();
    assert.equal(await source.kept.current(), undefined);
  }
});

test("a stored copy is as old as before once a clock that was set ahead is set right again", async (t) => {
  const source = new Source(t, [1, new Error(DOWN)]);
  assert.equal(await source.kept.current(), 1);
  for (const wallAheadMs of [2 * LAST_GOOD_SECONDS * 1000, 0]) {
    source.time.wallAheadMs = wallAheadMs;
    await source.kept.current();
    await source.kept.refresh();
  }
  source.time.nowMs += LAST_GOOD_SECONDS * 1000;
  assert.equal(await source.kept.current(), 1);
  source.time.nowMs += 1;
  assert.equal(await source.kept.current(), undefined);
});

test("a stored copy from the future does not make a copy of unknown age younger", async (t) => {
  const source = new Source(t, [1, new Error(DOWN)]);
  await source.kept.current();
  delete source.store.copy;
  source.time.wallAheadMs = -2 * DAY_SECONDS * 1000;
  await source.kept.current();
  await setImmediate();
  // Written late, with the time of the clock before it was set.
  source.store.copy = { value: 1, loadedAtMs: NOW_MS };
  source.time.nowMs += (UNKNOWN_AGE_SECONDS - 100) * 1000;
  assert.equal(await source.look(), 1);
  source.time.nowMs += 101_000;
  assert.equal(await source.kept.current(), undefined);
  assert.equal(
    source.store.copy.loadedAtMs,
    NOW_MS - (2 * DAY_SECONDS + LAST_GOOD_SECONDS - UNKNOWN_AGE_SECONDS) * 1000,
  );
});

test("a stored copy that the clock is a little behind is as old as one of now", async (t) => {
  const source = after(t, [new Error(DOWN)], 1, -SKEW_SECONDS);
  assert.equal(await source.kept.current(), 1);
  assert.deepEqual(source.kept.state(), { state: "last_good", ageSeconds: 0 });
});

// --- when it loads ----------------------------------------------------------------------------------------------

test("SFD-4.1-1 the document is loaded again at the interval of the copy", async (t) => {
  const source = new Source(t, [1, 2, 3], 3600);
  await source.kept.current();
  for (const copy of [1, 2]) {
    await source.pass(0.89 * 3600);
    assert.equal(await source.kept.current(), copy);
    await source.pass(0.11 * 3600);
    assert.equal(await source.kept.current(), copy + 1);
  }
});

test("the document is loaded again after half the time that the copy may be served, even if its interval is longer", async (t) => {
  let loads = 0;
  const timers = makeTimers();
  const kept = pollDocument({
    load: async () => ({ value: ++loads, text: "", refreshSeconds: 3600 }),
    accepts: () => true,
    same: () => false,
    onChange: () => {},
    clock: makeTime(NOW_MS).clock,
    timers,
    lastGoodSeconds: 1800,
  });
  t.after(() => kept.stop());
  await kept.current();
  for (const count of [1, 2]) {
    timers.pass(0.89 * 900_000);
    assert.equal(loads, count);
    timers.pass(0.11 * 900_000);
    await setImmediate();
    assert.equal(loads, count + 1);
  }
});

test("SFD-6.2-1 after a failure does not load at the interval of the copy", async (t) => {
  const source = new Source(t, [1, new Error(DOWN)], 2);
  await source.kept.current();
  await source.pass(2);
  assert.equal(source.loads, 2);
  await source.pass(0.89 * REFETCH_SECONDS);
  assert.equal(source.loads, 2);
  await source.pass(0.11 * REFETCH_SECONDS);
  assert.equal(source.loads, 3);
});

test("a scheduled load does not use up the early look", async (t) => {
  const source = new Source(t, [1, 2, 3], 100);
  await source.kept.current();
  await source.pass(100);
  assert.equal(await source.kept.current(), 2);
  assert.equal(await source.look(), 3);
  assert.equal(source.loads, 3);
});

test("the second early look waits for its interval, even if the first failed", async (t) => {
  const source = new Source(t, [new Error(DOWN), new Error(DOWN), 1]);
  await source.kept.current();
  assert.equal(await source.look(), undefined);
  assert.equal(source.loads, 2);
  const second = source.look();
  await source.pass(EARLY_LOOK_SECONDS - 1);
  assert.equal(source.loads, 2);
  await source.pass(1);
  assert.equal(await second, 1);
});

test("simultaneous early looks share one load and its result", async (t) => {
  const source = new Source(t, [1, 2]);
  await source.kept.current();
  const { promise, resolve } = Promise.withResolvers<void>();
  source.gate = promise;
  const looks = Array.from({ length: 50 }, () => source.look());
  resolve();
  assert.deepEqual(new Set(await Promise.all(looks)), new Set([2]));
  assert.equal(source.loads, 2);
});

test("the last good copy is served while an early look is under way", async (t) => {
  const source = new Source(t, [1]);
  await source.kept.current();
  source.gate = new Promise(() => {});
  void source.look();
  assert.equal(source.kept.current(), 1);
});

test("an early look replaces the scheduled load", async (t) => {
  const source = new Source(t, [1], 100);
  await source.kept.current();
  for (let look = 0; look < 5; look++) await source.lookLater();
  await source.pass(100);
  // The first load, five early ones and one scheduled.
  assert.equal(source.loads, 7);
});

test("a fetch by the operator begins after one that is under way, and all that ask meanwhile share it", async (t) => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const source = new Source(t, [1, 2, 3], 3600, promise);
  const refreshed = Promise.all(Array.from({ length: 50 }, () => source.kept.refresh()));
  resolve();
  await refreshed;
  assert.equal(await source.kept.current(), 2);
  assert.equal(source.loads, 2);
});

// --- stopping ---------------------------------------------------------------------------------------------------

test("SFD-6.3-1 a stopped source has no copy and loads no more", async (t) => {
  const source = new Source(t, [1], 20);
  await source.kept.current();
  source.kept.stop();
  const { loads } = source;
  assert.equal(await source.kept.current(), undefined);
  assert.equal(await source.lookLater(), undefined);
  await source.kept.refresh();
  source.timers.pass(100_000);
  assert.equal(source.loads, loads);
});

const ends: [string, Copy][] = [
  ["a copy", 1],
  ["a failure", new Error(DOWN)],
];
for (const [what, outcome] of ends) {
  test(`SFD-6.3-1 a source stopped during a load ignores ${what}, reports nothing and sets no timer`, async (t) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const source = new Source(t, [outcome], 20, promise);
    const waiting = source.kept.current();
    source.kept.stop();
    resolve();
    assert.equal(await waiting, undefined);
    source.timers.pass(100_000);
    assert.equal(await source.kept.current(), undefined);
    assert.deepEqual(source.changes, []);
    assert.equal(source.loads, 1);
  });
}

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { makeEarlyLooks } from "../../../src/adapters/remote/early-looks.ts";
import { EARLY_LOOK_SECONDS, EARLY_LOOK_WAITERS_MAX } from "../../../src/limits/fetching.ts";
import type { KeyWait } from "../../../src/ports.ts";
import { makeTime, makeTimers } from "../../support/timers.ts";

/** A document that is fetched for as long as a test likes. */
function open() {
  const time = makeTime(0);
  const timers = makeTimers();
  /** When each fetch began, in seconds. */
  const begun: number[] = [];
  let running: PromiseWithResolvers<void> | undefined;
  const fetch = (): Promise<void> => {
    begun.push(time.nowMs / 1000);
    running = Promise.withResolvers();
    return running.promise;
  };
  const { clock } = time;
  const looks = makeEarlyLooks({ look: fetch, underWay: () => running?.promise, clock, timers });
  return {
    begun,
    fetch,
    async pass(seconds: number) {
      time.nowMs += seconds * 1000;
      timers.pass(seconds * 1000);
      await setImmediate();
    },
    async end(fault?: Error) {
      const ended = running;
      running = undefined;
      if (fault === undefined) ended?.resolve();
      else ended?.reject(fault);
      await setImmediate();
    },
    /** A request that finds nothing: the number of fetches that it waited for. */
    ask(until?: KeyWait) {
      const request = { state: "waits" as "waits" | "fault" | number };
      const end = (state: "fault" | number): void => {
        request.state = state;
      };
      Array.fromAsync(looks.fetches(until)).then(
        ({ length }) => end(length),
        () => end("fault"),
      );
      return request;
    },
  };
}

test("CONF-D-16 the first look is at once, and requests at the same time share it", async () => {
  const { ask, end, begun } = open();
  const requests = [ask(), ask(), ask()];
  await setImmediate();
  assert.deepEqual(begun, [0]);
  await end();
  assert.deepEqual(
    requests.map(({ state }) => state),
    [1, 1, 1],
  );
});

test("after a look the next one is due when the interval has passed, however many requests wait", async () => {
  const { ask, end, pass, begun } = open();
  ask();
  await setImmediate();
  await end();
  await pass(2);
  const requests = Array.from({ length: 10 }, () => ask());
  await pass(EARLY_LOOK_SECONDS - 2.1);
  assert.deepEqual(begun, [0]);
  await pass(0.1);
  await end();
  assert.deepEqual(begun, [0, EARLY_LOOK_SECONDS]);
  assert.deepEqual(new Set(requests.map(({ state }) => state)), new Set([1]));
});

test("a request during a look waits for it, and then for the next, which begins after the request", async () => {
  const { ask, end, pass, begun } = open();
  ask();
  await setImmediate();
  await pass(1);
  const request = ask();
  await end();
  assert.equal(request.state, "waits");
  await pass(EARLY_LOOK_SECONDS - 1);
  await end();
  assert.equal(request.state, 2);
  assert.deepEqual(begun, [0, EARLY_LOOK_SECONDS]);
});

test("a fetch for another reason uses up no look, and a look begins after it", async () => {
  const { ask, end, fetch, pass, begun } = open();
  void fetch();
  await pass(1);
  const request = ask();
  await setImmediate();
  assert.deepEqual(begun, [0]);
  await end();
  await end();
  assert.equal(request.state, 2);
  assert.deepEqual(begun, [0, 1]);
});

test("a look that is due during another fetch begins after it, even if that fetch fails", async () => {
  const { ask, end, fetch, pass, begun } = open();
  ask();
  await setImmediate();
  await end();
  const request = ask();
  await pass(EARLY_LOOK_SECONDS - 1);
  const other = fetch();
  await pass(1);
  assert.deepEqual(begun, [0, EARLY_LOOK_SECONDS - 1]);
  await end(new Error("a fault"));
  await assert.rejects(other);
  assert.deepEqual(begun, [0, EARLY_LOOK_SECONDS - 1, EARLY_LOOK_SECONDS]);
  await end();
  assert.equal(request.state, 1);
});

test("a fault of a fetch is that of the requests that wait for it, and of no later one", async () => {
  const { ask, end, fetch, begun } = open();
  const other = fetch();
  const faulty = ask();
  await end(new Error("a fault"));
  await assert.rejects(other);
  assert.equal(faulty.state, "fault");
  const second = ask();
  await setImmediate();
  await end();
  assert.equal(second.state, 1);
  assert.deepEqual(begun, [0, 0]);
});

test("CONF-D-16 more requests than the limit are refused at once, and there is room again after the look", async () => {
  const { ask, end, pass } = open();
  const requests = Array.from({ length: EARLY_LOOK_WAITERS_MAX }, () => ask());
  const refused = ask();
  await setImmediate();
  assert.equal(refused.state, 0);
  await end();
  assert.deepEqual(new Set(requests.map(({ state }) => state)), new Set([1]));
  const next = ask();
  await pass(EARLY_LOOK_SECONDS);
  await end();
  assert.equal(next.state, 1);
});

for (const suspect of [true, false]) {
  test(`CONF-D-16 where ${suspect ? "suspect" : "other"} requests have taken all their places, the rest wait beside them`, async () => {
    const { ask, end } = open();
    const { signal } = new AbortController();
    for (let taken = 0; taken < EARLY_LOOK_WAITERS_MAX; taken++) ask({ deadline: signal, suspect });
    const refused = ask({ deadline: signal, suspect });
    const beside = ask({ deadline: signal, suspect: !suspect });
    await setImmediate();
    await end();
    assert.deepEqual([refused.state, beside.state], [0, 1]);
  });
}

const ends = ["deadline", "gone"] as const;
for (const end of ends) {
  test(`a request whose ${end} signal is aborted waits no longer, and makes room for another`, async () => {
    const { ask, pass } = open();
    ask();
    await setImmediate();
    const aborts = { deadline: new AbortController(), gone: new AbortController() };
    const until = { deadline: aborts.deadline.signal, gone: aborts.gone.signal };
    const requests = Array.from({ length: EARLY_LOOK_WAITERS_MAX - 1 }, () => ask(until));
    aborts[end].abort(new Error("over"));
    await setImmediate();
    assert.deepEqual(new Set(requests.map(({ state }) => state)), new Set(["fault"]));
    const next = ask();
    await pass(1);
    assert.equal(next.state, "waits");
  });
}

test("a request that was at its end before does not wait", async () => {
  const { ask } = open();
  const late = ask({ deadline: AbortSignal.abort() });
  await setImmediate();
  assert.equal(late.state, "fault");
});

/** The order of verifications, under a clock that only the test moves. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as settle } from "node:timers/promises";
import { makeProofQueue } from "../../src/adapters/proof-queue.ts";
import { PROOF_MS, PROOFS_WAITING_MAX } from "../../src/limits/connections.ts";
import type { Paths, WaitEnd } from "../../src/ports.ts";
import { err, ok } from "../../src/result.ts";
import { makeTimers } from "../support/timers.ts";

const BUDGET = { perSecond: 300, burst: 30 };
const CLEAN = "192.0.2.1";
const SUSPECT = "192.0.2.2";
const NO_PATH = [Object(undefined), [], [], 0] as const satisfies Parameters<Paths["verify"]>;
type Ending = "proven" | "failed" | "fault";

function setUp(budget = BUDGET, failureMs = 0) {
  const timers = makeTimers();
  let worked = 0;
  let costMs = 0;
  let stillMs = 0;
  const proofs = makeProofQueue({
    // Path validation takes time, in which nothing else happens.
    clock: { monotonicMs: () => timers.nowMs() + worked },
    cpuMs: () => worked,
    timers,
    budget,
    paths: {
      verify() {
        worked += costMs;
        timers.pass(stillMs);
        return err({ kind: "issuer_unknown" });
      },
    },
    failedLately: (source) => source === SUSPECT,
    failureMs,
  });
  const begun: string[] = [];
  const ask = (name: string, source: string, pathMs = 0, ending: Ending = "failed", until?: WaitEnd) =>
    Promise.resolve(
      proofs.verify(
        source,
        async (paths) => {
          begun.push(name);
          costMs = pathMs;
          if (pathMs > 0) paths.verify(...NO_PATH);
          if (ending === "fault") throw new Error("the store is lost");
          return ending === "proven" ? ok(name) : err({ reason: "wrong" });
        },
        until,
      ),
    );
  return {
    ask,
    proofs,
    begun,
    /** In the middle of the next path validations the machine stands still for so long. */
    standStill(ms: number) {
      stillMs = ms;
    },
    /** Uses up the budget and this many milliseconds more. */
    exhaust: (debtMs: number) => ask("first", CLEAN, budget.burst + debtMs - PROOF_MS),
    async pass(ms: number) {
      for (let passed = 0; passed < ms; passed++) {
        timers.pass(1);
        await settle();
      }
    },
  };
}

test("PROD-8.3-1 callers are verified at once while there is budget, wherever they come from", async () => {
  const { ask, begun } = setUp();
  await Promise.all([ask("a", SUSPECT), ask("b", CLEAN), ask("c", SUSPECT)]);
  assert.deepEqual(begun, ["a", "b", "c"]);
});

test("PROD-8.3-1 callers wait while failures have used up the budget, as long as it takes to fill again", async () => {
  const { ask, exhaust, begun, pass } = setUp();
  await exhaust(3);
  const waiting = ask("next", CLEAN);
  await pass(9);
  assert.deepEqual(begun, ["first"]);
  // Three milliseconds of work fill again in ten.
  await pass(2);
  assert.deepEqual(begun, ["first", "next"]);
  assert.deepEqual(await waiting, { ok: false, error: { reason: "wrong" } });
});

test("PROD-8.3-1 each verification is charged, and the time of path validation beside it", async () => {
  const { ask, begun, pass } = setUp({ perSecond: 100, burst: 1000 });
  for (let tried = 0; tried < 100; tried++) await ask("spends", CLEAN, 1);
  await ask("spends", CLEAN, 1000 - 100 * (1 + PROOF_MS) - PROOF_MS + 109);
  // What was worked, a second and a little, has filled it again by a tenth, but for a millisecond.
  const waiting = ask("next", CLEAN);
  assert.equal(begun.at(-1), "spends");
  await pass(20);
  assert.equal(begun.at(-1), "next");
  await waiting;
});

test("PROD-8.3-1 while the machine stands still no verification is charged", async () => {
  const { ask, begun, standStill } = setUp();
  standStill(60_000);
  await ask("first", CLEAN, 1);
  ask("next", CLEAN);
  await settle();
  assert.deepEqual(begun, ["first", "next"]);
});

for (const ending of ["proven", "fault"] as const) {
  test(`PROD-8.3-1 a verification that ends as ${ending} gives back what it took`, async () => {
    const { ask, begun } = setUp();
    for (let done = 0; done < 100; done++) await ask("a", SUSPECT, 20, ending).catch(() => undefined);
    assert.equal(begun.length, 100);
  });
}

test("PROD-8.3-1 work that needs no wait is answered at once, and gives back what it took", () => {
  const { proofs } = setUp();
  const fault = (): never => {
    throw new Error("a fault of ours");
  };
  for (let done = 0; done <= BUDGET.burst / PROOF_MS; done++) {
    assert.deepEqual(
      proofs.verify(SUSPECT, () => ok(done)),
      ok(done),
    );
    assert.throws(() => proofs.verify(SUSPECT, fault), /a fault of ours/);
  }
});

test("PROD-8.3-1 a fault of the work reaches its caller", async () => {
  const { ask } = setUp();
  await assert.rejects(ask("a", CLEAN, 1, "fault"), /the store is lost/);
});

test("PROD-8.3-1 what a proven caller gives back lets the next one begin at once", async () => {
  const { ask, exhaust, begun } = setUp({ perSecond: 0.001, burst: 30 });
  const proven = ask("long", CLEAN, 40, "proven");
  const waiting = [exhaust(-20), ask("a", CLEAN, 0, "proven")];
  await Promise.all([proven, ...waiting]);
  assert.deepEqual(begun, ["long", "first", "a"]);
});

test("HTTP-D-4, PROD-8.3-1 while the budget is short, sources with recent failures queue behind the others", async () => {
  const { ask, exhaust, begun, pass } = setUp();
  await exhaust(30);
  const waiting = [ask("s1", SUSPECT), ask("c1", CLEAN), ask("s2", SUSPECT), ask("c2", CLEAN)];
  await pass(50);
  waiting.push(ask("c3", CLEAN));
  await pass(60);
  await Promise.all(waiting);
  assert.deepEqual(begun, ["first", "c1", "c2", "c3", "s1", "s2"]);
});

test("PROD-8.3-1 failing callers get no more than the budget", async () => {
  const { ask, exhaust, begun, pass } = setUp();
  await exhaust(0);
  const waiting = Array.from({ length: 300 }, (_, index) => ask(String(index), SUSPECT, 2));
  await pass(1000);
  // A second gives 300 ms, and the work itself takes time: 2.3 ms are charged, while 0.6 ms fill again.
  const most = 300 / (2 + PROOF_MS - 0.6) + 2;
  assert.ok(begun.length > most - 10 && begun.length <= most, `${begun.length} begun`);
  await pass(1000);
  await Promise.all(waiting);
});

test("HTTP-D-5, RFC6749-2.3.1-8 a failure ends a fixed time after it began, whatever its work took, and a proof at once", async () => {
  const { ask, pass } = setUp(BUDGET, 10);
  const ended: string[] = [];
  const end = async (name: string, pathMs: number, ending: Ending) => {
    ask(name, CLEAN, pathMs, ending).then(() => ended.push(name));
    await settle();
  };
  await end("proven", 0, "proven");
  // The clock moves by what the work takes.
  await end("known", 2, "failed");
  await pass(7);
  assert.deepEqual(ended, ["proven"]);
  await pass(1);
  assert.deepEqual(ended, ["proven", "known"]);
  await end("unknown", 0, "failed");
  await pass(9);
  assert.deepEqual(ended, ["proven", "known"]);
  await pass(1);
  assert.deepEqual(ended, ["proven", "known", "unknown"]);
  await end("long", 11, "failed");
  assert.equal(ended.at(-1), "long");
});

test("HTTP-D-4, PROD-8.3-1 a full queue refuses, and the other queue takes callers nevertheless", async () => {
  const { ask, exhaust, pass } = setUp();
  await exhaust(30);
  const full = { ok: false, error: { reason: "proofs_too_many", retrySeconds: 1 } };
  const fill = (source: string) =>
    Array.from({ length: PROOFS_WAITING_MAX }, () => ask("a", source, 0, "proven"));
  const suspects = fill(SUSPECT);
  assert.deepEqual(await ask("s", SUSPECT), full);
  const clean = fill(CLEAN);
  assert.deepEqual(await ask("c", CLEAN), full);
  await pass(110);
  for (const one of await Promise.all([...suspects, ...clean])) assert.equal(one.ok, true);
});

const ends: readonly (readonly [string, (signal: AbortSignal) => WaitEnd])[] = [
  ["deadline passes", (deadline) => ({ deadline })],
  ["peer leaves", (gone) => ({ deadline: new AbortController().signal, gone })],
];
for (const [what, until] of ends) {
  test(`PROD-8.3-1 a caller whose ${what} leaves its place, and nothing is verified for it`, async () => {
    const { ask, exhaust, begun, pass } = setUp();
    await exhaust(30);
    const controller = new AbortController();
    const leaving = Array.from({ length: PROOFS_WAITING_MAX }, () =>
      ask("leaves", CLEAN, 0, "failed", until(controller.signal)),
    );
    const reason = new Error("it ended");
    controller.abort(reason);
    for (const one of await Promise.allSettled(leaving)) {
      assert.deepEqual(one, { status: "rejected", reason });
    }
    await assert.rejects(ask("late", CLEAN, 0, "failed", until(controller.signal)), reason);
    const waiting = ask("stays", CLEAN);
    await pass(110);
    await waiting;
    assert.deepEqual(begun, ["first", "stays"]);
  });
}

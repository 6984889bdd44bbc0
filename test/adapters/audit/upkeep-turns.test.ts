/** How long upkeep holds the event loop: by processor time, in which neither the disk nor other processes count. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fill } from "../../../scripts/bench/fill.ts";
import { buildSegment } from "../../../src/adapters/audit/indexing.ts";
import { openStore } from "../../../src/adapters/store/open.ts";
import { removePaced } from "../../../src/adapters/store/paced-removal.ts";
import { AUDIT_SEGMENT_EVENTS } from "../../../src/limits/audit.ts";
import { migratedFile } from "../../support/migrated.ts";
import { ISSUER, NOW_SECONDS } from "../store/store.contract.ts";

/** On a processor that does the yardstick in its time; a slower one has more. */
const TURN_MS_MAX = 10;
const YARDSTICK_MS = 45;
const LOG = "as-1";
const SEGMENTS = 6;
/** The work is done in as many stretches; a long turn that the platform causes, by a collection or by compiling, is in few. */
const STRETCHES = 6;

/** The processor time of the longest turn of the event loop while the work is done. */
async function longestTurnMs(work: () => Promise<void>): Promise<number> {
  let longest = 0;
  let isDone = false;
  let before = process.threadCpuUsage();
  const look = (): void => {
    const now = process.threadCpuUsage();
    longest = Math.max(longest, now.user + now.system - before.user - before.system);
    before = now;
    if (!isDone) setImmediate(look);
  };
  setImmediate(look);
  await work();
  isDone = true;
  await new Promise((resolve) => setImmediate(resolve));
  return longest / 1000;
}

/** Some work whose processor time tells how fast this machine is; the least of several, which nothing disturbed. */
function yardstickMs(): number {
  const rounds = Array.from({ length: 5 }, () => {
    const before = process.threadCpuUsage();
    let value = { name: "x".repeat(20), list: [1, 2, 3], inner: { at: 0 } };
    for (let at = 0; at < 100_000; at++) value = JSON.parse(JSON.stringify({ ...value, inner: { at } }));
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / 1000;
  });
  return Math.min(...rounds);
}

test("no turn of upkeep takes more than 10 ms of processor time on SQLite", async (t) => {
  const store = await openStore({ sqlite: await migratedFile() });
  t.after(() => store.close());
  const count = SEGMENTS * AUDIT_SEGMENT_EVENTS;
  await fill(store.log, {
    ...{ log: LOG, count, fromMs: NOW_SECONDS * 1000, everyMs: 1, expiresAtSeconds: NOW_SECONDS },
    ...{ issuer: "https://as.example", idpIssuer: ISSUER },
  });
  const each = count / STRETCHES;
  const removed = async (remove: (limit: number) => number | Promise<number>) => {
    let left = each;
    await removePaced(
      store,
      () => left <= 0,
      async (limit) => {
        const gone = await remove(Math.min(limit, left));
        left -= gone;
        return gone;
      },
    );
  };
  const works: Record<string, (stretch: number) => Promise<void>> = {
    "the index of events that are read again": async (stretch) => {
      for (let fromSeq = stretch * each; fromSeq < (stretch + 1) * each; fromSeq += AUDIT_SEGMENT_EVENTS)
        await buildSegment(store, { log: LOG, fromSeq, toSeq: fromSeq + AUDIT_SEGMENT_EVENTS - 1 });
    },
    "removal of expired rows": () => removed((limit) => store.audit.sweep(NOW_SECONDS + 1, limit)),
    "removal of old events, with their index": () => removed((limit) => store.audit.prune(LOG, count, limit)),
  };
  const mostMs = TURN_MS_MAX * Math.max(1, yardstickMs() / YARDSTICK_MS);
  for (const [what, work] of Object.entries(works)) {
    const longest: number[] = [];
    for (let stretch = 0; stretch < STRETCHES; stretch++)
      longest.push(await longestTurnMs(() => work(stretch)));
    assert.ok(Math.min(...longest) <= mostMs, `${what}: ${longest}, at most ${mostMs}`);
  }
});

/** How long receivers wait for the event of an ending, under load: with healthy ones alone, and beside hostile ones. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { claimsOf } from "../../../test/support/world.ts";
import { describeTimes, readStates, timesOf } from "./figures.ts";
import { underLoad } from "./load.ts";
import type { Receivers } from "./receivers.ts";
import type { Site } from "./site.ts";

const PER_SECOND = 300;
/** Of load, and less of endings, which begin a while later and end before it. */
const SECONDS = 36;
const APART_SECONDS = 3;
const ENDINGS_EVERY_MS = 1_000;
const TOLD_MS = 2_000;
const WAIT_MS = 20_000;

/** Ends single tokens, at each instance in turn. */
export async function tellUnderLoad(site: Site, receivers: Receivers, name: string): Promise<string> {
  await site.tell(receivers);
  const before = await readStates(site);
  const work = async () => {
    await sleep(1_000 * APART_SECONDS);
    const ended = new Map<string, number>();
    const endMs = performance.now() + 1_000 * (SECONDS - 2 * APART_SECONDS);
    for (let turn = 0; performance.now() < endMs; turn++) {
      const dueMs = performance.now() + ENDINGS_EVERY_MS;
      const at = site.instances[turn % site.instances.length] ?? assert.fail();
      const { body } = await site.exchange(at, await site.userToken(`${name}-${turn}`));
      const jti = String(claimsOf(body.access_token).jti);
      ended.set(jti, performance.now());
      await site.end(at, { token: jti });
      await sleep(Math.max(0, dueMs - performance.now()));
    }
    return ended;
  };
  const { done: ended, load } = await underLoad(
    site,
    { perSecond: PER_SECOND, seconds: SECONDS, user: name },
    work,
  );
  const told = (): readonly number[] =>
    receivers.healthy.flatMap((stream) =>
      (receivers.got.get(stream) ?? []).flatMap(({ subject: { jti = "" }, atMs }) => {
        const sentMs = ended.get(jti);
        return sentMs === undefined ? [] : [atMs - sentMs];
      }),
    );
  const expected = ended.size * receivers.healthy.length;
  const untilMs = performance.now() + WAIT_MS;
  while (told().length < expected && performance.now() < untilMs) await sleep(100);
  const times = timesOf(told());
  const after = await readStates(site);
  const memory = after.map(({ residentMiB }, at) => `${before[at]?.residentMiB} to ${residentMiB}`);
  const line = [
    `${name}: ${ended.size} endings, ${receivers.healthy.length} healthy receivers: told within ${describeTimes(times)}`,
    `load ${load.perSecond}/s, p99 ${load.p99Ms} ms`,
    `memory ${memory.join(", ")} MiB`,
    `longest turn ${after.map(({ longestMs }) => longestMs).join(", ")} ms`,
  ].join("; ");
  const wrong = [
    times.count !== expected && `${expected - times.count} events did not arrive`,
    times.p99 > TOLD_MS && `p99 is above ${TOLD_MS} ms`,
    after.some(({ ready }) => !ready) && "an instance is not ready",
    receivers.foreign() > 0 && `${receivers.foreign()} events with the audience of another`,
  ].filter(Boolean);
  assert.ok(wrong.length === 0, `${wrong.join(", ")}: ${line}`);
  return line;
}

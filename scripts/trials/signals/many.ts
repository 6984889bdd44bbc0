/** A thousand endings in a second, and one that reaches ten thousand tokens: that each receiver is told of all, and what that costs. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { spread } from "./disabled.ts";
import { readStates, timesOf } from "./figures.ts";
import type { Receivers } from "./receivers.ts";
import type { Instance, Site } from "./site.ts";

const ENDINGS = 1_000;
const TOKENS = 10_000;
/** Of so many subjects, in equal shares. */
const SUBJECTS = 1_000;
const TOLD_MS = 120_000;
/** What a request may wait for the event loop, also on a machine that does much else. */
const TURN_MS = 1_000;

const turnOf = (site: Site, turn: number): Instance =>
  site.instances[turn % site.instances.length] ?? assert.fail();

async function issue(site: Site, turn: number, subject: string, agent?: "bulk"): Promise<void> {
  const { status, text } = await site.exchange(turnOf(site, turn), subject, agent);
  assert.equal(status, 200, text);
}

/** Waits until every healthy receiver has an event of each of these endings; when that was. */
async function untilTold(
  receivers: Receivers,
  isOfThese: (sub: string, cause: string) => boolean,
  count: number,
) {
  const endMs = performance.now() + TOLD_MS;
  const countOf = (stream: string): number =>
    (receivers.got.get(stream) ?? []).filter(({ subject, cause }) => isOfThese(subject.sub ?? "", cause))
      .length;
  for (;;) {
    const counts = receivers.healthy.map(countOf);
    if (counts.every((one) => one >= count) || performance.now() > endMs) return counts;
    await sleep(200);
  }
}

export async function endMany(site: Site, receivers: Receivers): Promise<string> {
  const subs = Array.from({ length: ENDINGS }, (_, index) => `many-${index}`);
  const tokens = await Promise.all(subs.map((sub) => site.userToken(sub)));
  await spread(ENDINGS, (turn) => issue(site, turn, tokens[turn] ?? ""));
  await readStates(site);
  const sentMs = new Map<string, number>();
  const startMs = performance.now();
  await spread(ENDINGS, async (turn) => {
    sentMs.set(`company:many-${turn}`, performance.now());
    await site.end(turnOf(site, turn), { subject: { iss: site.provider.issuer, sub: `many-${turn}` } });
  });
  const endedMs = performance.now() - startMs;
  const counts = await untilTold(receivers, (sub) => sentMs.has(sub), ENDINGS);
  return conclude(
    site,
    receivers,
    `${ENDINGS} endings in ${(endedMs / 1000).toFixed(1)} s`,
    counts,
    ENDINGS,
    (sub) => sentMs.get(sub),
  );
}

export async function endCovering(site: Site, receivers: Receivers): Promise<string> {
  const tokens = await Promise.all(
    Array.from({ length: SUBJECTS }, (_, index) => site.userToken(`covered-${index}`)),
  );
  await spread(TOKENS, (turn) => issue(site, turn, tokens[turn % SUBJECTS] ?? "", "bulk"));
  await readStates(site);
  const startMs = performance.now();
  const { ended, event } = await site.end(turnOf(site, 0), { rule: "bulk" });
  const answeredMs = Math.round(performance.now() - startMs);
  const counts = await untilTold(receivers, (_, cause) => cause === event, SUBJECTS);
  const name = `an ending of ${ended} tokens of ${SUBJECTS} users, answered in ${answeredMs} ms`;
  return conclude(site, receivers, name, counts, SUBJECTS, (_, cause) =>
    cause === event ? startMs : undefined,
  );
}

async function conclude(
  site: Site,
  { got, healthy }: Receivers,
  name: string,
  counts: readonly number[],
  expected: number,
  sentOf: (sub: string, cause: string) => number | undefined,
): Promise<string> {
  const times = timesOf(
    healthy.flatMap((stream) =>
      (got.get(stream) ?? []).flatMap(({ subject: { sub = "" }, cause, atMs }) => {
        const sentMs = sentOf(sub, cause);
        return sentMs === undefined ? [] : [atMs - sentMs];
      }),
    ),
  );
  const states = await readStates(site);
  const least = Math.min(...counts);
  const line = `${name}: ${least} of ${expected} events at each of ${healthy.length} receivers, the last after ${(times.max / 1000).toFixed(1)} s (p50 ${(times.p50 / 1000).toFixed(1)} s); longest turn ${states.map(({ longestMs }) => longestMs).join(", ")} ms; memory ${states.map(({ residentMiB }) => residentMiB).join(", ")} MiB`;
  assert.ok(
    counts.every((one) => one === expected),
    line,
  );
  assert.ok(
    states.every(({ ready, longestMs }) => ready && longestMs <= TURN_MS),
    line,
  );
  return line;
}

/** What an operator sees of receivers that fail: in `/readyz`, in the metrics and in the trail. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { SIGNAL_TEST_SECONDS, SIGNAL_TESTS_MISSED } from "../../../src/limits/signals.ts";
import { HOSTILE_NAMES, type Receivers } from "./receivers.ts";
import type { Site } from "./site.ts";

/** It says 202 to every other push, and so it counts as one that takes events. */
const REACHABLE = ["lies"];
const WAIT_MS = 1_000 * SIGNAL_TEST_SECONDS * (SIGNAL_TESTS_MISSED + 2);

export async function showHostile(site: Site, receivers: Receivers): Promise<string> {
  const lost = HOSTILE_NAMES.filter((name) => !REACHABLE.includes(name)).toSorted();
  const endMs = performance.now() + WAIT_MS;
  for (;;) {
    const shown = await Promise.all(site.instances.map((at) => site.readiness(at)));
    const unreachable = shown.map(({ body }) =>
      Object.entries(body.streams)
        .filter(([, { reachable }]) => !reachable)
        .map(([name]) => name)
        .toSorted(),
    );
    const isAll = unreachable.every((names) => names.join() === lost.join());
    if (!isAll && performance.now() < endMs) {
      await sleep(1_000);
      continue;
    }
    assert.deepEqual(
      unreachable,
      site.instances.map(() => lost),
    );
    assert.ok(
      shown.every(({ status }) => status === 200),
      "an instance is not ready",
    );
    for (const at of site.instances) {
      const metrics = await site.metrics(at);
      for (const name of lost)
        assert.match(metrics, new RegExp(`^mandate_stream_reachable\\{stream="${name}"\\} 0$`, "m"));
      for (const name of receivers.healthy)
        assert.match(metrics, new RegExp(`^mandate_stream_reachable\\{stream="${name}"\\} 1$`, "m"));
    }
    const events = await site.streamEvents();
    const inTrail = new Set(
      events.flatMap(({ type, stream }) => (type === "signal.unreachable" ? [stream] : [])),
    );
    assert.deepEqual([...inTrail].toSorted(), lost);
    const [{ body } = assert.fail()] = shown;
    const waiting = lost.map((name) => `${name} ${body.streams[name]?.waiting}`);
    return `unreachable at every instance, in metrics and trail, while each is ready: ${waiting.join(", ")} events wait`;
  }
}

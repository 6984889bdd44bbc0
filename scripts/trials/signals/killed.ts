/** An instance is killed between an ending and the delivery of what is told of it: that every event arrives, under one id. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { claimsOf } from "../../../test/support/world.ts";
import type { Receivers } from "./receivers.ts";
import type { Instance, Site } from "./site.ts";

/** An instance looks for endings twice a second, so that most are killed before they sent. */
const DELAY_MS_MAX = 400;
/** A part of the deliveries fails and is repeated meanwhile. */
const FAILING = 0.2;
const TOLD_MS = 90_000;

export async function killBetween(site: Site, receivers: Receivers, rounds: number): Promise<string> {
  const ended = new Set<string>();
  receivers.fail(FAILING);
  let [round, unsent] = [0, 0];
  const killAgain = async (at: Instance): Promise<void> => {
    while (round < rounds) {
      const sub = `killed-${round++}`;
      const { status, body, text } = await site.exchange(at, await site.userToken(sub));
      assert.equal(status, 200, text);
      const jti = String(claimsOf(body.access_token).jti);
      await site.end(at, { token: jti });
      ended.add(jti);
      await sleep(Math.random() * DELAY_MS_MAX);
      at.server.child.kill("SIGKILL");
      if (!receivers.healthy.some((stream) => isTold(receivers, stream, jti))) unsent++;
      await site.restart(at);
    }
  };
  await Promise.all(site.instances.map(killAgain));
  receivers.fail(0);
  const untilMs = performance.now() + TOLD_MS;
  const missing = (): number =>
    receivers.healthy.reduce(
      (sum, stream) => sum + [...ended].filter((jti) => !isTold(receivers, stream, jti)).length,
      0,
    );
  while (missing() > 0 && performance.now() < untilMs) await sleep(200);
  const ids = receivers.healthy.map(
    (stream) =>
      (receivers.got.get(stream) ?? []).filter(({ subject }) => ended.has(subject.jti ?? "")).length,
  );
  const line = `${rounds} kills after an ending, ${unsent} of them before any receiver was told: ${missing()} of ${rounds * receivers.healthy.length} events missing, ${Math.max(...ids)} ids for ${rounds} endings at a receiver, ${receivers.again()} came again`;
  assert.ok(missing() === 0 && ids.every((count) => count === rounds), line);
  return line;
}

const isTold = ({ got }: Receivers, stream: string, jti: string): boolean =>
  (got.get(stream) ?? []).some(({ subject }) => subject.jti === jti);

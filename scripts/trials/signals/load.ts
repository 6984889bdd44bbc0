/** A steady load of exchanges on every instance, by processes of its own. */
import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { ask } from "../../bench/children.ts";
import { Outcome as Answered, type Outcome } from "../../bench/load.ts";
import type { Site } from "./site.ts";

const CONNECTIONS = 8;

export type Loaded = { perSecond: number; p99Ms: number };

/** Does this while so many exchanges a second are asked for, for so long; fails if one of them is refused. */
export async function underLoad<T>(
  site: Site,
  { perSecond, seconds, user }: { perSecond: number; seconds: number; user: string },
  work: () => Promise<T>,
): Promise<{ done: T; load: Loaded }> {
  const call = await site.exchangeCall(await site.userToken(user));
  const everyMs = (1_000 * site.instances.length) / perSecond;
  const count = Math.round((1_000 * seconds) / everyMs);
  const children: ChildProcess[] = [];
  const run = async (port: number): Promise<Outcome> => {
    const child = fork(join(import.meta.dirname, "../../bench/load.ts"));
    children.push(child);
    const endpoint = { host: "127.0.0.1", port, ca: site.ca };
    return ask(
      child,
      { endpoint, calls: [call], count, connections: CONNECTIONS, anew: false, everyMs },
      Answered,
    );
  };
  try {
    const load = Promise.all(site.instances.map(({ server }) => run(server.port)));
    const [outcomes, done] = await Promise.all([load, work()]);
    let [rate, p99Ms] = [0, 0];
    for (const one of outcomes) {
      if ("problem" in one) assert.fail(one.problem);
      rate += (1_000 * count) / one.elapsedMs;
      p99Ms = Math.max(p99Ms, one.p99Ms);
    }
    return { done, load: { perSecond: Math.round(rate), p99Ms: Math.round(p99Ms) } };
  } finally {
    for (const child of children) {
      if (child.exitCode === null && child.disconnect) {
        child.disconnect();
        await once(child, "exit");
      }
    }
  }
}

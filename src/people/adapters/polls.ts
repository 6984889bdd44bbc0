/** When clients that wait polled last, in this process: one that comes too soon is told so, and waits longer (DTR-11.3-1). */
import { POLL_RAISE_SECONDS, POLL_SECONDS, POLL_SECONDS_MAX, POLLS_KNOWN_MAX } from "../../limits/people.ts";
import type { Clock } from "../../ports.ts";
import type { Polls } from "../ports.ts";

type Last = { request: string; atMs: number; seconds: number };

export function makePolls({ monotonicMs }: Pick<Clock, "monotonicMs">): Polls {
  const known = new Map<string, Last>();
  return {
    isTooSoon(key, request) {
      const nowMs = monotonicMs();
      const last = known.get(key);
      if (last === undefined) {
        known.set(key, { request, atMs: nowMs, seconds: POLL_SECONDS });
        const [first] = known.size > POLLS_KNOWN_MAX ? known.keys() : [];
        if (first !== undefined) known.delete(first);
        return false;
      }
      if (last.request === request) return false;
      const isTooSoon = nowMs - last.atMs < last.seconds * 1000;
      if (isTooSoon) last.seconds = Math.min(last.seconds + POLL_RAISE_SECONDS, POLL_SECONDS_MAX);
      else Object.assign(last, { request, atMs: nowMs });
      return isTooSoon;
    },
  };
}

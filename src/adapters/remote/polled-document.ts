/**
 * A polled document, such as a trust bundle or a key set (SFD-4.2-1): fetched at the interval that it asks for, served
 * from the last good copy while fetches fail, and not served once that copy is too old. With a memory the copy survives
 * a restart.
 */

import { REFETCH_SECONDS, SKEW_SECONDS, UNKNOWN_AGE_SECONDS } from "../../limits.ts";
import type { Clock, SourceState, Timers } from "../../ports.ts";
import { defined } from "../../result.ts";
import type { EarlyLooks } from "./early-looks.ts";
import { makeEarlyLooks } from "./early-looks.ts";
import { clocksDisagree, momentOf } from "./moment.ts";

/** `text` is the document as received. */
export type Loaded<T> = { value: T; text: string; refreshSeconds: number };

/** `loadedAtMs` is by the wall clock, since it outlives this process. */
export type Copy<T> = { value: T; loadedAtMs: number };

/** `bornMs` is when the copy was loaded, by the monotonic clock. */
type Held<T> = { value: T; bornMs: number };

export type Change = { state: "updated" | "failed"; reason?: string };

/** Stores the last good copy outside of this process; its faults are ignored. */
export type Memory<T> = {
  recall(): Promise<Copy<T> | undefined>;
  remember(loaded: Loaded<T>, loadedAtMs: number): Promise<void>;
  /** Gives the stored copy another time of loading, unless another copy was stored since. */
  redate(loadedAtMs: number, nextMs: number): Promise<void>;
};

export type PollOptions<T> = {
  /** `latest` is the newest copy, of whatever age. */
  load: (latest: T | undefined) => Promise<Loaded<T>>;
  /** Whether the new copy may replace the old one. */
  accepts: (old: T, next: T) => boolean;
  same: (old: T, next: T) => boolean;
  /** How many keys a copy has, for its state. */
  size?: (value: T) => number;
  /** Called when the copy changes, when fetches begin to fail, and when the copy has become too old. */
  onChange: (change: Change) => void;
  clock: Clock;
  timers: Timers;
  /** How long a copy is served while fetches fail. */
  lastGoodSeconds: number;
  memory?: Memory<T>;
};

export type PolledDocument<T> = {
  /** The last good copy; undefined without one, or if it is too old. */
  current(): Promise<T | undefined>;
  /** Yields after each early fetch, for a request that needs a key that the copy lacks. */
  looks: EarlyLooks["fetches"];
  /** A fetch that begins after this call, for a reload by the operator. */
  refresh(): Promise<void>;
  state(): SourceState;
  /** Drops the copy and stops polling; the result of a fetch in flight is ignored. */
  stop(): void;
};

/** SFD-6.2-1: a failed poll is followed by a pause. */
const RETRY_SECONDS = REFETCH_SECONDS;
/** A shorter pause until the first copy, because the other server may have started after this one. */
const FIRST_RETRY_SECONDS = 5;

/** Starts polling at once and goes on until it is stopped. */
export function pollDocument<T>(options: PollOptions<T>): PolledDocument<T> {
  const { load, accepts, same, size, onChange, clock, timers, lastGoodSeconds, memory } = options;
  let copy: Held<T> | undefined;
  let state: "good" | "failing" | "expired" = "good";
  let loading: Promise<void> | undefined;
  let following: Promise<void> | undefined;
  let cancel = (): void => {};
  let stopped = false;
  let clocksAgreed = momentOf(clock);
  const unknownAgeMs = (lastGoodSeconds - UNKNOWN_AGE_SECONDS) * 1000;

  const ageMs = ({ bornMs }: Held<T>): number => clock.monotonicMs() - bornMs;
  const tooOld = (held: Held<T>): boolean => ageMs(held) > lastGoodSeconds * 1000;

  /** From now on the copy counts as one of unknown age. */
  const limit = (held: Held<T>): void => {
    held.bornMs = Math.min(held.bornMs, clock.monotonicMs() - unknownAgeMs);
  };

  const hold = ({ value, loadedAtMs }: Copy<T>): Held<T> => {
    const storedAgeMs = clock.nowMs() - loadedAtMs;
    const known = storedAgeMs >= -SKEW_SECONDS * 1000;
    // One of unknown age never makes ours younger, however often it is read.
    const heldAgeMs = known
      ? Math.max(storedAgeMs, 0)
      : Math.max(unknownAgeMs, copy === undefined ? 0 : ageMs(copy));
    // Otherwise a later process would take the time for a past one as soon as the clock has reached it.
    if (!known) memory?.redate(loadedAtMs, clock.nowMs() - heldAgeMs).catch(() => undefined);
    return { value, bornMs: clock.monotonicMs() - heldAgeMs };
  };

  /** A clock that was set makes the age unknown: the document is fetched anew at once. */
  const heed = (): void => {
    if (stopped || !clocksDisagree(clock, clocksAgreed)) return;
    clocksAgreed = momentOf(clock);
    if (copy !== undefined) limit(copy);
    void poll();
  };

  const fail = (reason: string): void => {
    if (state === "good") {
      state = "failing";
      onChange({ state: "failed", reason });
    }
    // The copy is kept although it is not served, so that an even older one cannot replace it.
    if (state === "failing" && copy !== undefined && tooOld(copy)) {
      state = "expired";
      onChange({ state: "failed", reason: "the last good copy is too old" });
    }
  };

  /** The newer of our copy and the stored one, which another instance or an earlier process may have fetched. */
  const newest = (stored: Held<T> | undefined): Held<T> | undefined => {
    if (copy === undefined || stored === undefined) return copy ?? stored;
    if (!accepts(stored.value, copy.value)) return stored;
    if (!accepts(copy.value, stored.value)) return copy;
    return stored.bornMs > copy.bornMs ? stored : copy;
  };

  const adopt = (stored: Held<T>): void => {
    const changed = copy === undefined || state === "expired" || !same(copy.value, stored.value);
    copy = stored;
    if (tooOld(stored)) return;
    if (state === "expired") state = "failing";
    if (changed) onChange({ state: "updated", reason: "the stored copy is taken" });
  };

  const take = (loaded: Loaded<T>): void => {
    const { value } = loaded;
    const changed = copy === undefined || state !== "good" || !same(copy.value, value);
    copy = { value, bornMs: clock.monotonicMs() };
    state = "good";
    if (changed) onChange({ state: "updated" });
    memory?.remember(loaded, clock.nowMs()).catch(() => undefined);
  };

  const attempt = async (): Promise<void> => {
    const stored = await memory?.recall().catch(() => undefined);
    const begun = momentOf(clock);
    const latest = newest(stored && hold(stored));
    const loaded = await load(latest?.value).catch((error) =>
      String(error instanceof Error ? error.message : error),
    );
    if (stopped) return;
    if (latest !== undefined && clocksDisagree(clock, begun)) limit(latest);
    let nextSeconds = latest === undefined ? FIRST_RETRY_SECONDS : RETRY_SECONDS;
    if (typeof loaded !== "string" && (latest === undefined || accepts(latest.value, loaded.value))) {
      take(loaded);
      // At the latest after half of the time that the copy may be served, so that there is time to try again.
      nextSeconds = Math.min(loaded.refreshSeconds, lastGoodSeconds / 2);
    } else {
      // SFD-4.2-1: the latest copy stays in use.
      if (latest !== undefined && latest !== copy) adopt(latest);
      fail(typeof loaded === "string" ? loaded : "an older copy was offered");
    }
    // Up to a tenth earlier at random, so that many instances do not fetch at the same moment.
    cancel = timers.after(nextSeconds * 1000 * (0.9 + 0.1 * Math.random()), poll);
  };

  const poll = (): Promise<void> => {
    cancel();
    loading ??= attempt().finally(() => {
      loading = undefined;
    });
    return loading;
  };

  /** What is under way may have been read before the call, so all calls during it share the load after it. */
  const refresh = async (): Promise<void> => {
    if (loading !== undefined) {
      following ??= loading.then(() => {
        following = undefined;
        return stopped ? undefined : poll();
      });
      return following;
    }
    if (!stopped) await poll();
  };

  const looks = makeEarlyLooks({
    look: () => (stopped ? undefined : poll()),
    underWay: () => loading,
    clock,
    timers,
  });

  void poll();
  return {
    async current() {
      heed();
      if (copy === undefined && loading !== undefined) await loading;
      return copy === undefined || tooOld(copy) ? undefined : copy.value;
    },
    looks: looks.fetches,
    refresh,
    state() {
      heed();
      if (copy === undefined) return { state: "none" };
      const ageSeconds = Math.floor(ageMs(copy) / 1000);
      if (tooOld(copy)) return { state: "none", ageSeconds };
      const keys = size?.(copy.value);
      return defined<SourceState>({ state: state === "good" ? "fresh" : "last_good", ageSeconds, keys });
    },
    stop() {
      stopped = true;
      copy = undefined;
      cancel();
    },
  };
}

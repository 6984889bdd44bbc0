/**
 * A polled document, such as a trust bundle or a key set (SFD-4.2-1): fetched at the interval that it asks for, served
 * from the last good copy while fetches fail, and not served once that copy is too old. With a memory the copy survives
 * a restart.
 */

import { REFETCH_SECONDS } from "../../limits.ts";
import type { Clock, SourceState, Timers } from "../../ports.ts";

/** `text` is the document as received. */
export type Loaded<T> = { value: T; text: string; refreshSeconds: number };

export type Copy<T> = { value: T; loadedAtMs: number };

export type Change = { state: "updated" | "failed"; reason?: string };

/** Stores the last good copy outside of this process; its faults are ignored. */
export type Memory<T> = {
  recall(): Promise<Copy<T> | undefined>;
  remember(loaded: Loaded<T>, loadedAtMs: number): Promise<void>;
};

export type PollOptions<T> = {
  /** `latest` is the newest copy, of whatever age. */
  load: (latest: T | undefined) => Promise<Loaded<T>>;
  /** Whether the new copy may replace the old one. */
  accepts: (old: T, next: T) => boolean;
  same: (old: T, next: T) => boolean;
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
  /** An early fetch, because a request needs a key that the copy lacks; limited in rate, and shared by all callers. */
  lookAgain(): Promise<void>;
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
  const { load, accepts, same, onChange, clock, timers, lastGoodSeconds, memory } = options;
  let copy: Copy<T> | undefined;
  let state: "good" | "failing" | "expired" = "good";
  let loading: Promise<void> | undefined;
  let following: Promise<void> | undefined;
  let lookedAtMs = 0;
  let cancel = (): void => {};
  let stopped = false;

  const tooOld = ({ loadedAtMs }: Copy<T>): boolean => clock.nowMs() - loadedAtMs > lastGoodSeconds * 1000;

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
  const newest = (stored: Copy<T> | undefined): Copy<T> | undefined => {
    if (copy === undefined || stored === undefined) return copy ?? stored;
    if (!accepts(stored.value, copy.value)) return stored;
    if (!accepts(copy.value, stored.value)) return copy;
    return stored.loadedAtMs > copy.loadedAtMs ? stored : copy;
  };

  const adopt = (stored: Copy<T>): void => {
    const changed = copy === undefined || state === "expired" || !same(copy.value, stored.value);
    copy = stored;
    if (tooOld(stored)) return;
    if (state === "expired") state = "failing";
    if (changed) onChange({ state: "updated", reason: "the stored copy is taken" });
  };

  const take = (loaded: Loaded<T>): void => {
    const { value } = loaded;
    const changed = copy === undefined || state !== "good" || !same(copy.value, value);
    copy = { value, loadedAtMs: clock.nowMs() };
    state = "good";
    if (changed) onChange({ state: "updated" });
    memory?.remember(loaded, copy.loadedAtMs).catch(() => undefined);
  };

  const attempt = async (): Promise<void> => {
    lookedAtMs = clock.nowMs();
    const stored = await memory?.recall().catch(() => undefined);
    const latest = newest(stored);
    const loaded = await load(latest?.value).catch((error) =>
      String(error instanceof Error ? error.message : error),
    );
    if (stopped) return;
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

  void poll();
  return {
    async current() {
      if (copy === undefined && loading !== undefined) await loading;
      return copy === undefined || tooOld(copy) ? undefined : copy.value;
    },
    async lookAgain() {
      if (stopped) return;
      if (loading !== undefined || clock.nowMs() - lookedAtMs >= REFETCH_SECONDS * 1000) await poll();
    },
    refresh,
    state() {
      if (copy === undefined) return { state: "none" };
      const ageSeconds = Math.floor((clock.nowMs() - copy.loadedAtMs) / 1000);
      if (tooOld(copy)) return { state: "none", ageSeconds };
      return { state: state === "good" ? "fresh" : "last_good", ageSeconds };
    },
    stop() {
      stopped = true;
      copy = undefined;
      cancel();
    },
  };
}

/**
 * A polled document, such as a trust bundle or a key set (SFD-4.2-1): fetched at the interval that it asks for, served
 * from the last good copy while fetches fail, and not served once that copy is too old. With a memory the copy survives
 * a restart.
 */

import { REFETCH_SECONDS, UNKNOWN_AGE_SECONDS } from "../../limits/fetching.ts";
import { SKEW_SECONDS } from "../../limits/tokens.ts";
import type { Clock, KeyWait, SourceState, Timers } from "../../ports.ts";
import { type Awaitable, defined, whenReady } from "../../result.ts";
import { type ClockReading, clocksDisagree, msSince, readClocks } from "./clock-reading.ts";
import { type EarlyLooks, makeEarlyLooks } from "./early-looks.ts";

/** `text` is the document as received. */
export type Loaded<T> = { value: T; text: string; refreshSeconds: number };

/** `loadedAtMs` is by the wall clock, since it outlives this process. */
export type Copy<T> = { value: T; loadedAtMs: number };

/** `bornMs` is when the copy was asked for, by the monotonic clock. */
type Held<T> = { value: T; bornMs: number };

export type Change = { state: "updated" | "failed"; reason?: string };

/** Stores the last good copy outside of this process; its faults are ignored. */
export type Memory<T> = {
  recall(): Promise<Copy<T> | undefined>;
  remember(loaded: Loaded<T>, loadedAtMs: number): Promise<void>;
  /** Gives the stored copy another time of loading, unless another copy was stored since. */
  redate(loadedAtMs: number, nextMs: number): Promise<void>;
};

type PollOptions<T> = {
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

/** SFD-6.2-1: a failed poll is followed by a pause. */
const RETRY_SECONDS = REFETCH_SECONDS;
/** The pause is shorter until the first copy, because the other server may have started after this one. */
const FIRST_RETRY_SECONDS = 5;

/** As the store has it. */
export const wholeSeconds = (ms: number): number => Math.floor(ms / 1000);

/** Starts polling at once and goes on until it is stopped. */
export function pollDocument<T>(options: PollOptions<T>): PolledDocument<T> {
  return new PolledDocument(options);
}

export type { PolledDocument };

class PolledDocument<T> {
  readonly #options: PollOptions<T>;
  readonly #unknownAgeMs: number;
  readonly #looks: EarlyLooks;
  #copy: Held<T> | undefined;
  #state: "good" | "failing" | "expired" = "good";
  #loading: Promise<void> | undefined;
  #following: Promise<void> | undefined;
  #cancel = (): void => {};
  #stopped = false;
  #clocksAgreed: ClockReading;
  /** The stored copy as it was first met, by the whole second of its loading: no clock that is set makes it younger. */
  #met = { loadedAtSeconds: Number.NaN, bornMs: 0 };

  constructor(options: PollOptions<T>) {
    const { clock, timers, lastGoodSeconds } = options;
    this.#options = options;
    this.#unknownAgeMs = (lastGoodSeconds - UNKNOWN_AGE_SECONDS) * 1000;
    this.#clocksAgreed = readClocks(clock);
    this.#looks = makeEarlyLooks({
      look: () => (this.#stopped ? undefined : this.#poll()),
      underWay: () => this.#loading,
      clock,
      timers,
    });
    void this.#poll();
  }

  /** The last good copy; undefined without one, or if it is too old. */
  current(): Awaitable<T | undefined> {
    this.#heed();
    const loading = this.#copy === undefined ? this.#loading : undefined;
    return whenReady(loading, () =>
      this.#copy === undefined || this.#tooOld(this.#copy) ? undefined : this.#copy.value,
    );
  }

  /** Yields the copy after each early fetch, for a request that needs a key that the copy lacks. */
  looks(until?: KeyWait): AsyncGenerator<void, void, void> {
    return this.#looks.fetches(until);
  }

  /**
   * Begins a fetch after this call, for a reload by the operator. A fetch that is under way may have been read before
   * the call, so all calls during it share the load after it.
   */
  async refresh(): Promise<void> {
    if (this.#loading !== undefined) {
      this.#following ??= this.#loading.then(() => {
        this.#following = undefined;
        return this.#stopped ? undefined : this.#poll();
      });
      return this.#following;
    }
    if (!this.#stopped) await this.#poll();
  }

  state(): SourceState {
    this.#heed();
    const copy = this.#copy;
    if (copy === undefined) return { state: "none" };
    const ageSeconds = Math.floor(this.#ageMs(copy) / 1000);
    if (this.#tooOld(copy)) return { state: "none", ageSeconds };
    const keys = this.#options.size?.(copy.value);
    const state = this.#state === "good" ? "fresh" : "last_good";
    return defined<SourceState>({ state, ageSeconds, keys });
  }

  /** Drops the copy and stops polling; the result of a fetch in flight is ignored. */
  stop(): void {
    this.#stopped = true;
    this.#copy = undefined;
    this.#cancel();
  }

  #poll(): Promise<void> {
    this.#cancel();
    this.#loading ??= this.#attempt().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  async #attempt(): Promise<void> {
    const { load, accepts, clock, timers, lastGoodSeconds, memory } = this.#options;
    const stored = await memory?.recall().catch(() => undefined);
    const begun = readClocks(clock);
    const latest = this.#newest(stored && this.#hold(stored));
    const loaded = await load(latest?.value).catch((error) =>
      String(error instanceof Error ? error.message : error),
    );
    if (this.#stopped) return;
    if (latest !== undefined && clocksDisagree(clock, begun)) this.#limit(latest);
    let nextSeconds = latest === undefined ? FIRST_RETRY_SECONDS : RETRY_SECONDS;
    if (typeof loaded !== "string" && (latest === undefined || accepts(latest.value, loaded.value))) {
      this.#take(loaded, begun);
      // The next load is at the latest after half of the time that the copy may be served, so that there is time to try
      // again.
      nextSeconds = Math.min(loaded.refreshSeconds, lastGoodSeconds / 2);
    } else {
      // SFD-4.2-1: the latest copy stays in use.
      if (latest !== undefined && latest !== this.#copy) this.#adopt(latest);
      this.#fail(typeof loaded === "string" ? loaded : "an older copy was offered");
    }
    // A load is up to a tenth earlier at random, so that many instances do not fetch at the same time.
    this.#cancel = timers.after(nextSeconds * 1000 * (0.9 + 0.1 * Math.random()), () => this.#poll());
  }

  /** Its age counts from when it was asked for, so that a slow answer does not count as younger than it is. */
  #take(loaded: Loaded<T>, begun: ClockReading): void {
    const { same, onChange, clock, memory } = this.#options;
    const { value } = loaded;
    const changed = this.#copy === undefined || this.#state !== "good" || !same(this.#copy.value, value);
    const loadedAtMs = clock.nowMs() - msSince(clock, begun);
    this.#copy = { value, bornMs: this.#meet(loadedAtMs, begun.monotonicMs) };
    this.#state = "good";
    if (changed) onChange({ state: "updated" });
    memory?.remember(loaded, loadedAtMs).catch(() => undefined);
  }

  #adopt(stored: Held<T>): void {
    const { same, onChange } = this.#options;
    const expired = this.#state === "expired";
    const changed = this.#copy === undefined || expired || !same(this.#copy.value, stored.value);
    this.#copy = stored;
    if (this.#tooOld(stored)) return;
    if (expired) this.#state = "failing";
    if (changed) onChange({ state: "updated", reason: "the stored copy is taken" });
  }

  #fail(reason: string): void {
    const { onChange } = this.#options;
    if (this.#state === "good") {
      this.#state = "failing";
      onChange({ state: "failed", reason });
    }
    // The copy is kept although it is not served, so that an even older one cannot replace it.
    if (this.#state === "failing" && this.#copy !== undefined && this.#tooOld(this.#copy)) {
      this.#state = "expired";
      onChange({ state: "failed", reason: "the last good copy is too old" });
    }
  }

  /** The newer of our copy and the stored one, which another instance or an earlier process may have fetched. */
  #newest(stored: Held<T> | undefined): Held<T> | undefined {
    const { accepts } = this.#options;
    const copy = this.#copy;
    if (copy === undefined || stored === undefined) return copy ?? stored;
    if (!accepts(stored.value, copy.value)) return stored;
    if (!accepts(copy.value, stored.value)) return copy;
    return stored.bornMs > copy.bornMs ? stored : copy;
  }

  #hold({ value, loadedAtMs }: Copy<T>): Held<T> {
    const { clock, memory } = this.#options;
    const storedAgeMs = clock.nowMs() - loadedAtMs;
    const known = storedAgeMs >= -SKEW_SECONDS * 1000;
    // A copy of unknown age never makes ours younger, however often it is read.
    const heldAgeMs = known
      ? Math.max(storedAgeMs, 0)
      : Math.max(this.#unknownAgeMs, this.#copy === undefined ? 0 : this.#ageMs(this.#copy));
    // Without this a later process would take the time for a past one as soon as the clock has reached it.
    if (!known) memory?.redate(loadedAtMs, clock.nowMs() - heldAgeMs).catch(() => undefined);
    const bornMs = clock.monotonicMs() - heldAgeMs;
    const isMet = this.#met.loadedAtSeconds === wholeSeconds(loadedAtMs);
    return { value, bornMs: Math.min(bornMs, isMet ? this.#met.bornMs : this.#meet(loadedAtMs, bornMs)) };
  }

  #meet(loadedAtMs: number, bornMs: number): number {
    this.#met = { loadedAtSeconds: wholeSeconds(loadedAtMs), bornMs };
    return bornMs;
  }

  /** A clock that was set makes the age unknown: the document is fetched anew at once. */
  #heed(): void {
    const { clock } = this.#options;
    if (this.#stopped || !clocksDisagree(clock, this.#clocksAgreed)) return;
    this.#clocksAgreed = readClocks(clock);
    if (this.#copy !== undefined) this.#limit(this.#copy);
    void this.#poll();
  }

  /** From now on the copy counts as one of unknown age. */
  #limit(held: Held<T>): void {
    held.bornMs = Math.min(held.bornMs, this.#options.clock.monotonicMs() - this.#unknownAgeMs);
  }

  #ageMs({ bornMs }: Held<T>): number {
    return this.#options.clock.monotonicMs() - bornMs;
  }

  #tooOld(held: Held<T>): boolean {
    return this.#ageMs(held) > this.#options.lastGoodSeconds * 1000;
  }
}

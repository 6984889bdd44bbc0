/**
 * A document that ages: polled at its own pace, served from its last good copy while that is young enough, then
 * not at all. Trust bundles and key sets of others are of this kind (spiffe-bundle.md, jwks.md). The copy outlives
 * the process where it has a memory.
 */

import { REFETCH_SECONDS } from "../../limits.ts";
import type { Clock, SourceState } from "../../ports.ts";

/** `text` is the document as it came. */
export type Loaded<T> = { value: T; text: string; refreshSeconds: number };

export type Copy<T> = { value: T; loadedAtMs: number };

export type Change = { state: "updated" | "failed"; reason?: string };

/** Where the last good copy is kept beside this process; its faults are its own. */
export type Memory<T> = {
  recall(): Promise<Copy<T> | undefined>;
  remember(loaded: Loaded<T>, loadedAtMs: number): Promise<void>;
};

export type KeptOptions<T> = {
  /** `latest` is the newest copy there is, however old. */
  load: (latest: T | undefined) => Promise<Loaded<T>>;
  /** Whether the new copy may take the place of the old one. */
  accepts: (old: T, next: T) => boolean;
  same: (old: T, next: T) => boolean;
  /** Told when the copy changes, when loading begins to fail, and when the copy has become too old to serve. */
  onChange: (change: Change) => void;
  clock: Clock;
  /** How long a copy serves while loading fails. */
  lastGoodSeconds: number;
  memory?: Memory<T>;
};

export type Kept<T> = {
  /** The last good copy; undefined where there is none, or where it is too old to trust. */
  current(): Promise<T | undefined>;
  /** An early look, because somebody named a key that the copy does not have; limited and shared. */
  lookAgain(): Promise<void>;
  /** A look at once, because the operator says so. */
  refresh(): Promise<void>;
  state(): SourceState;
  /** Forgets the copy and looks no more; what is under way counts for nothing. */
  stop(): void;
};

/** SFD-6.2-1: after a failed poll the next interval is waited for. */
const RETRY_SECONDS = REFETCH_SECONDS;
/** Until there is a first copy, less: we may have started before whom we ask. */
const FIRST_RETRY_SECONDS = 5;

export function keepDocument<T>(options: KeptOptions<T>): Kept<T> {
  const { load, accepts, same, onChange, clock, lastGoodSeconds, memory } = options;
  let copy: Copy<T> | undefined;
  let state: "good" | "failing" | "expired" = "good";
  let loading: Promise<void> | undefined;
  let lookedAtMs = 0;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  const tooOld = ({ loadedAtMs }: Copy<T>): boolean => clock.nowMs() - loadedAtMs > lastGoodSeconds * 1000;

  const fail = (reason: string): void => {
    if (state === "good") {
      state = "failing";
      onChange({ state: "failed", reason });
    }
    // Kept all the same, so that a still older one cannot take its place.
    if (state === "failing" && copy !== undefined && tooOld(copy)) {
      state = "expired";
      onChange({ state: "failed", reason: "the last good copy is too old" });
    }
  };

  /** Another instance, or we ourselves before a restart, may have got further than this process. */
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
      // Well before the copy is too old, whatever pace it asks for: there must be time to try again.
      nextSeconds = Math.min(loaded.refreshSeconds, lastGoodSeconds / 2);
    } else {
      // SFD-4.2-1
      if (latest !== undefined && latest !== copy) adopt(latest);
      fail(typeof loaded === "string" ? loaded : "an older copy was offered");
    }
    // A little earlier each time by chance, so that many instances do not ask in step.
    timer = setTimeout(refresh, nextSeconds * 1000 * (0.9 + 0.1 * Math.random())).unref();
  };

  const refresh = (): Promise<void> => {
    clearTimeout(timer);
    loading ??= attempt().finally(() => {
      loading = undefined;
    });
    return loading;
  };

  void refresh();
  return {
    async current() {
      if (copy === undefined && loading !== undefined) await loading;
      return copy === undefined || tooOld(copy) ? undefined : copy.value;
    },
    async lookAgain() {
      if (stopped) return;
      if (loading !== undefined || clock.nowMs() - lookedAtMs >= REFETCH_SECONDS * 1000) await refresh();
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
      clearTimeout(timer);
    },
  };
}

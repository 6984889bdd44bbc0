/**
 * A document that ages: polled at its own pace, served from its last good copy while that is young enough, then
 * not at all. Trust bundles and key sets of trusted issuers are both of this kind (spiffe-bundle.md, jwks.md).
 */
import type { Clock } from "../ports.ts";
import { LAST_GOOD_SECONDS, REFETCH_SECONDS } from "../spec/limits.ts";

export type Loaded<T> = { value: T; refreshSeconds: number };

export type Change = { state: "updated" | "failed"; reason?: string };

export type KeptOptions<T> = {
  load: () => Promise<Loaded<T>>;
  /** Whether the new copy may take the place of the old one. */
  accepts: (old: T, next: T) => boolean;
  same: (old: T, next: T) => boolean;
  /** Told when the copy changes, when loading begins to fail, and when the copy has become too old to serve. */
  onChange: (change: Change) => void;
  clock: Clock;
};

export type Kept<T> = {
  /** The last good copy; undefined where there is none, or where it is too old to trust. */
  current(): Promise<T | undefined>;
  /** An early look, because somebody named a key that the copy does not have; limited and shared. */
  lookAgain(): Promise<void>;
  /** A look at once, because the operator says so. */
  refresh(): Promise<void>;
  /** Forgets the copy and looks no more; what is under way counts for nothing. */
  stop(): void;
};

/** SFD-6.2-1: after a failed poll the next interval is waited for. */
const RETRY_SECONDS = REFETCH_SECONDS;
/** Until there is a first copy, less: we may have started before whom we ask. */
const FIRST_RETRY_SECONDS = 5;

export function keepDocument<T>({ load, accepts, same, onChange, clock }: KeptOptions<T>): Kept<T> {
  let copy: { value: T; loadedAtMs: number } | undefined;
  let state: "good" | "failing" | "expired" = "good";
  let loading: Promise<void> | undefined;
  let lookedAtMs = 0;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  const tooOld = (loadedAtMs: number): boolean => clock.nowMs() - loadedAtMs > LAST_GOOD_SECONDS * 1000;

  const fail = (reason: string): void => {
    if (state === "good") {
      state = "failing";
      onChange({ state: "failed", reason });
    }
    // Kept all the same, so that a still older one cannot take its place.
    if (state === "failing" && copy !== undefined && tooOld(copy.loadedAtMs)) {
      state = "expired";
      onChange({ state: "failed", reason: "the last good copy is too old" });
    }
  };

  /** Takes the copy if it may be taken, and says when to look again. */
  const take = ({ value, refreshSeconds }: Loaded<T>): number => {
    if (copy !== undefined && !accepts(copy.value, value)) {
      fail("an older copy was offered");
      return RETRY_SECONDS;
    }
    const changed = copy === undefined || state !== "good" || !same(copy.value, value);
    copy = { value, loadedAtMs: clock.nowMs() };
    state = "good";
    if (changed) onChange({ state: "updated" });
    return refreshSeconds;
  };

  const attempt = async (): Promise<void> => {
    lookedAtMs = clock.nowMs();
    const loaded = await load().catch((error) => String(error instanceof Error ? error.message : error));
    if (stopped) return;
    let nextSeconds = copy === undefined ? FIRST_RETRY_SECONDS : RETRY_SECONDS;
    if (typeof loaded === "string") fail(loaded);
    else nextSeconds = take(loaded);
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
      return copy === undefined || tooOld(copy.loadedAtMs) ? undefined : copy.value;
    },
    async lookAgain() {
      if (stopped) return;
      if (loading !== undefined || clock.nowMs() - lookedAtMs >= REFETCH_SECONDS * 1000) await refresh();
    },
    refresh,
    stop() {
      stopped = true;
      copy = undefined;
      clearTimeout(timer);
    },
  };
}

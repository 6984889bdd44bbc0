/** Tells which endings are due for a look: at once where this process wrote them or begins, and once more later. */
import { SIGNAL_ENDINGS_MAX, SIGNAL_SECOND_LOOK_MS } from "../../limits/signals.ts";
import { EXPIRED_GRACE_SECONDS } from "../../limits/store.ts";
import { ACCESS_TOKEN_SECONDS_MAX } from "../../limits/tokens.ts";
import type { RecordedEnding } from "../../policy/signals.ts";
import type { OpenJournal } from "../audit/journal.ts";
import type { TellOptions } from "./tell.ts";

type WatchOptions = Pick<TellOptions, "store" | "clock" | "settings"> & {
  journal: Pick<OpenJournal, "follow">;
};

type Endings = readonly RecordedEnding[];

/** Endings older than this end nothing that still lives anywhere. */
const REACH_MS = 1000 * (ACCESS_TOKEN_SECONDS_MAX + EXPIRED_GRACE_SECONDS);
/** Endings are looked for again for this long: instances differ in their clocks, and a write takes time. */
const WINDOW_MS = 6 * SIGNAL_SECOND_LOOK_MS;

export class EndingWatch {
  readonly #options: WatchOptions;
  /** The events that this process wrote, and when. */
  readonly #own = new Map<string, number>();
  /** By their events, the endings that were seen: when that was, and when each is due; never again after its last look. */
  readonly #seen = new Map<string, { atMs: number; dueMs: number }>();
  #lookedMs: number | undefined;

  constructor(options: WatchOptions) {
    const { journal, settings } = options;
    this.#options = options;
    journal.follow((written) => {
      if (settings().streams.size === 0) return;
      for (const { id, timeMs } of written) this.#own.set(id, timeMs);
    });
  }

  /** Tells the endings that are due; they stay due where `tell` fails. */
  async look(tell: (due: Endings) => Promise<unknown>): Promise<void> {
    const nowMs = this.#options.clock.nowMs();
    for await (const found of this.since((this.#lookedMs ?? 0) - WINDOW_MS)) {
      const due = found.filter(({ eventId }) => this.#see(eventId, nowMs).dueMs <= nowMs);
      if (due.length === 0) continue;
      await tell(due);
      for (const { eventId } of due) {
        const one = this.#see(eventId, nowMs);
        const secondMs = one.atMs + SIGNAL_SECOND_LOOK_MS;
        one.dueMs = one.dueMs < secondMs ? secondMs : Number.POSITIVE_INFINITY;
      }
    }
    this.#lookedMs = nowMs;
    for (const [id, { atMs }] of this.#seen) if (atMs < nowMs - 2 * WINDOW_MS) this.#seen.delete(id);
    for (const [id, atMs] of this.#own) if (atMs < nowMs - WINDOW_MS) this.#own.delete(id);
  }

  /** The instance that wrote an ending looks at once and once more; the others look once, as late as that. */
  #see(eventId: string, nowMs: number): { atMs: number; dueMs: number } {
    const isFirst = this.#lookedMs === undefined || this.#own.has(eventId);
    const dueMs = isFirst ? nowMs : nowMs + SIGNAL_SECOND_LOOK_MS;
    return this.#seen.getOrInsert(eventId, { atMs: nowMs, dueMs });
  }

  /** The endings that were recorded since then and may still matter, in pages. */
  async *since(fromMs: number): AsyncGenerator<Endings> {
    for (let sinceMs = Math.max(fromMs, this.#options.clock.nowMs() - REACH_MS); ; ) {
      const found = await this.#options.store.signals.endings(sinceMs, SIGNAL_ENDINGS_MAX);
      if (found.length > 0) yield found;
      if (found.length < SIGNAL_ENDINGS_MAX) return;
      // More than one page of one millisecond would be read again and again.
      sinceMs = Math.max(found.at(-1)?.atMs ?? 0, sinceMs + 1);
    }
  }
}

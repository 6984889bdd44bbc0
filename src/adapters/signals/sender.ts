/**
 * Sends security events: finds endings that the streams have not been told of, and delivers what is due. The endings are
 * the outbox: they are written with what they end, and what is told of them can be made again at any time, with the same
 * ids. So a process that stops in between loses nothing, and no request waits for a receiver. Every instance delivers; the
 * one that recorded an ending looks at once, the others after it.
 */
import { isDeepStrictEqual } from "node:util";
import { SIGNAL_INTERVAL_MS, SIGNAL_TEST_SECONDS, SIGNALS_WAITING_MAX } from "../../limits/signals.ts";
import { STORE_SWEEP_MAX } from "../../limits/store.ts";
import type { RecordedEnding } from "../../policy/signals.ts";
import type { Timers } from "../../ports.ts";
import type { OpenJournal } from "../audit/journal.ts";
import { type PeriodicWork, runPeriodically } from "../periodic.ts";
import { Receiver, type ReceiverOptions, type StreamState, signalEvent } from "./receiver.ts";
import { tellEndings } from "./tell.ts";
import { EndingWatch } from "./watch-endings.ts";

export type SenderOptions = ReceiverOptions & {
  journal: Pick<OpenJournal, "follow">;
  timers: Timers;
  onFault: (text: string) => void;
  /** SIGNALS_WAITING_MAX, if not given. */
  waitingMax?: number;
};

export type SignalSender = PeriodicWork & {
  /** The streams by their names. */
  states(): ReadonlyMap<string, StreamState>;
};

export function startSender(options: SenderOptions): SignalSender {
  const { timers, onFault } = options;
  const sender = new Sender(options);
  const name = "security events";
  const work = (closing: () => boolean): Promise<void> => sender.work(closing);
  const periodic = runPeriodically(work, { name, everyMs: SIGNAL_INTERVAL_MS, timers, onFault });
  return {
    run: periodic.run,
    async close() {
      await periodic.close();
      await sender.close();
    },
    states: () => sender.states(),
  };
}

class Sender {
  readonly #options: SenderOptions;
  readonly #waitingMax: number;
  readonly #watch: EndingWatch;
  readonly #receivers = new Map<string, Receiver>();
  /** Deliveries to one receiver wait for no other. */
  readonly #underWay = new Map<Receiver, Promise<void>>();
  #sweptMs: number;

  constructor(options: SenderOptions) {
    this.#options = options;
    this.#waitingMax = options.waitingMax ?? SIGNALS_WAITING_MAX;
    this.#watch = new EndingWatch(options);
    this.#sweptMs = options.clock.monotonicMs();
  }

  async work(closing: () => boolean): Promise<void> {
    const all = this.#configure();
    if (all.length === 0) return;
    const current = all.filter(({ behindMs }) => behindMs === undefined);
    await this.#watch.look((due) => this.#tell(current, due, closing));
    for (const one of all) await this.#catchUp(one, closing);
    await this.#sweep();
    for (const one of all) {
      one.waiting = await this.#options.store.signals.waiting(one.stream.name, this.#waitingMax);
      this.#deliver(one, closing);
    }
  }

  states(): ReadonlyMap<string, StreamState> {
    return new Map([...this.#receivers].map(([name, one]) => [name, one.state()]));
  }

  async close(): Promise<void> {
    await Promise.all(this.#underWay.values());
    for (const one of this.#receivers.values()) one.retire();
  }

  /** A stream that was changed by a reload begins anew; what the store has for it already is not told again. */
  #configure(): readonly Receiver[] {
    const { streams } = this.#options.settings();
    for (const [name, one] of this.#receivers) {
      if (isDeepStrictEqual(streams.get(name), one.stream)) continue;
      one.retire();
      this.#receivers.delete(name);
    }
    return [...streams].map(([name, stream]) =>
      this.#receivers.getOrInsertComputed(name, () => new Receiver(stream, this.#options)),
    );
  }

  /** SSF-D-7: a receiver for which too many events wait is told of the rest later. */
  async #tell(
    receivers: readonly Receiver[],
    due: readonly RecordedEnding[],
    closing: () => boolean,
  ): Promise<boolean> {
    const added = (one: Receiver): void => this.#deliver(one, closing);
    const left = await tellEndings(this.#options, receivers, due, { most: this.#waitingMax, added, closing });
    for (const [one, { atMs }] of left) {
      one.behindMs = atMs;
      this.#options.record(signalEvent(one.stream.name, "signal.delayed", "signals_too_many"));
    }
    return left.size === 0;
  }

  async #catchUp(one: Receiver, closing: () => boolean): Promise<void> {
    if (one.behindMs === undefined || one.waiting.count > this.#waitingMax / 2) return;
    for await (const found of this.#watch.since(one.behindMs))
      if (!(await this.#tell([one], found, closing))) return;
    one.behindMs = undefined;
  }

  async #sweep(): Promise<void> {
    const { store, clock, record } = this.#options;
    if (clock.monotonicMs() - this.#sweptMs < 1000 * SIGNAL_TEST_SECONDS) return;
    const { rows, lost } = await store.signals.sweep(clock.nowSeconds(), STORE_SWEEP_MAX);
    // What one statement leaves is removed by the next.
    if (rows < STORE_SWEEP_MAX) this.#sweptMs = clock.monotonicMs();
    for (const [name, count] of lost)
      record({ ...signalEvent(name, "signal.expired", "signals_expired"), count });
  }

  #deliver(receiver: Receiver, closing: () => boolean): void {
    if (this.#underWay.has(receiver)) return;
    const { onFault } = this.#options;
    const run = receiver
      .deliver(closing)
      .catch((fault) =>
        onFault(`security events: ${fault instanceof Error ? fault.message : "no reason given"}`),
      )
      .finally(() => this.#underWay.delete(receiver));
    this.#underWay.set(receiver, run);
  }
}

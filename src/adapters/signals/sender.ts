/**
 * Sends security events: finds endings that the streams have not been told of, and delivers what is due. The endings are
 * the outbox: they are written with what they end, and what is told of them can be made again at any time, with the same
 * ids. So a process that stops in between loses nothing, and no request waits for a receiver. Every instance delivers; the
 * one that recorded an ending looks at once, the others after it.
 */
import type { AuditEvent } from "../../audit/event.ts";
import { KEPT_CONNECTION_SECONDS } from "../../limits/fetching.ts";
import {
  SIGNAL_ENDINGS_MAX,
  SIGNAL_INTERVAL_MS,
  SIGNAL_LEASE_MS,
  SIGNAL_PUSHES_MAX,
  SIGNAL_RETRY_MS,
  SIGNAL_RETRY_MS_MAX,
  SIGNAL_SECOND_LOOK_MS,
  SIGNAL_TEST_SECONDS,
  SIGNAL_TESTS_MISSED,
  SIGNALS_WAITING_MAX,
} from "../../limits/signals.ts";
import { EXPIRED_GRACE_SECONDS, STORE_SWEEP_MAX } from "../../limits/store.ts";
import { ACCESS_TOKEN_SECONDS_MAX } from "../../limits/tokens.ts";
import type { RecordedEnding } from "../../policy/signals.ts";
import type { Clock, Random, Timers } from "../../ports.ts";
import type { Signal } from "../../records.ts";
import type { StreamSettings } from "../../settings/settings.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import type { OpenJournal } from "../audit/journal.ts";
import type { PeriodicWork } from "../periodic.ts";
import { runPeriodically } from "../periodic.ts";
import { CheckedAgent } from "../remote/checked-agent.ts";
import type { Pushed } from "./push.ts";
import { push } from "./push.ts";
import type { TellOptions } from "./tell.ts";
import { makeVerification, tellEndings } from "./tell.ts";

export type SenderOptions = TellOptions & {
  journal: Pick<OpenJournal, "follow">;
  timers: Timers;
  random: Pick<Random, "id">;
  record: (event: AuditEvent) => void;
  onFault: (text: string) => void;
  /** SIGNALS_WAITING_MAX, if not given. */
  waitingMax?: number;
};

export type StreamState = { waiting: number; oldestSeconds: number; reachable: boolean };

export type SignalSender = PeriodicWork & {
  /** The streams by their names. */
  states(): ReadonlyMap<string, StreamState>;
};

/** Endings older than this end nothing that still lives anywhere. */
const REACH_MS = 1000 * (ACCESS_TOKEN_SECONDS_MAX + EXPIRED_GRACE_SECONDS);
/** Endings are looked for again for this long: instances differ in their clocks, and a write takes time. */
const WINDOW_MS = 6 * SIGNAL_SECOND_LOOK_MS;
type SignalEvent = Extract<AuditEvent["type"], `signal.${string}`>;
const TEST_MS = 1000 * SIGNAL_TEST_SECONDS;

/** A receiver that fails is asked once, after a pause that grows, until it answers again. */
class Receiver {
  readonly stream: StreamSettings;
  readonly agent: CheckedAgent;
  failures = 0;
  nextMs = 0;
  /** When something was sent last, and when something was taken. */
  sentMs: number;
  takenMs: number;
  isLost = false;
  waiting: { count: number; oldestMs?: number } = { count: 0 };
  /** Endings since then were not told, because too many events waited. */
  behindMs: number | undefined;

  constructor(stream: StreamSettings, clock: Clock) {
    this.stream = stream;
    this.sentMs = clock.monotonicMs();
    this.takenMs = this.sentMs;
    this.agent = new CheckedAgent(stream.endpoint, { kept: { ms: 1000 * KEPT_CONNECTION_SECONDS, clock } });
  }
}

export function startSender(options: SenderOptions): SignalSender {
  const {
    store,
    clock,
    timers,
    random,
    settings,
    record,
    onFault,
    waitingMax = SIGNALS_WAITING_MAX,
  } = options;
  const { signals } = store;
  const endings = watchEndings(options);
  const receivers = new Map<string, Receiver>();
  let sweptMs = clock.monotonicMs();

  /** A stream that was changed by a reload begins anew. */
  const configure = (): readonly Receiver[] => {
    const { streams } = settings();
    for (const [name, { stream, agent }] of receivers) {
      if (streams.get(name) === stream) continue;
      agent.retire();
      receivers.delete(name);
    }
    return [...streams].map(([name, stream]) =>
      receivers.getOrInsertComputed(name, () => new Receiver(stream, clock)),
    );
  };

  const tell = async (all: readonly Receiver[]): Promise<void> => {
    const due = await endings.due();
    for (const found of due.pages) {
      // SSF-D-7
      const full = all.filter((one) => one.behindMs !== undefined || one.waiting.count >= waitingMax);
      for (const one of full) {
        if (one.behindMs === undefined) record(eventOf(one, "signal.delayed", "signals_too_many"));
        one.behindMs ??= found[0]?.atMs;
      }
      const open = all.filter((one) => !full.includes(one));
      await tellEndings(
        options,
        open.map(({ stream }) => stream),
        found,
      );
      due.looked(found);
    }
    due.done();
    for (const one of all) {
      if (one.behindMs === undefined || one.waiting.count > waitingMax / 2) continue;
      for await (const found of endings.since(one.behindMs)) await tellEndings(options, [one.stream], found);
      one.behindMs = undefined;
    }
  };

  /** What came of a push is known of its receiver from then on. */
  const send = async (receiver: Receiver, body: string): Promise<Pushed> => {
    receiver.sentMs = clock.monotonicMs();
    const pushed = await push(receiver.stream, body, receiver.agent);
    if (pushed.is === "failed") {
      receiver.failures++;
      const mostMs = Math.min(SIGNAL_RETRY_MS * 2 ** (receiver.failures - 1), SIGNAL_RETRY_MS_MAX);
      receiver.nextMs = clock.nowMs() + Math.ceil(mostMs * Math.random());
      return pushed;
    }
    receiver.failures = 0;
    receiver.nextMs = 0;
    receiver.takenMs = clock.monotonicMs();
    if (receiver.isLost) record(eventOf(receiver, "signal.reachable", "receiver_answers"));
    receiver.isLost = false;
    return pushed;
  };

  const settle = async (receiver: Receiver, signal: Signal): Promise<void> => {
    const pushed = await send(receiver, signal.body);
    if (pushed.is === "failed") return signals.postpone(signal, receiver.nextMs);
    await signals.settle(signal, clock.nowMs());
    if (pushed.is === "delivered") return;
    const detail = { jti: signal.jti, err: pushed.cause };
    record(eventOf(receiver, "signal.refused", "receiver_refused", detail));
  };

  const deliver = async (receiver: Receiver, closing: () => boolean): Promise<void> => {
    while (!closing() && clock.nowMs() >= receiver.nextMs) {
      const nowMs = clock.nowMs();
      const most = receiver.failures > 0 ? 1 : SIGNAL_PUSHES_MAX;
      const taken = await signals.take(receiver.stream.name, nowMs, nowMs + SIGNAL_LEASE_MS, most);
      if (taken.length === 0) return;
      await Promise.all(taken.map((signal) => settle(receiver, signal)));
    }
  };

  /** Both sides see by a test that a stream works to which nothing was sent of late. */
  const test = async (receiver: Receiver): Promise<void> => {
    const nowMs = clock.monotonicMs();
    if (!receiver.isLost && nowMs - receiver.takenMs >= SIGNAL_TESTS_MISSED * TEST_MS) {
      receiver.isLost = true;
      record(eventOf(receiver, "signal.unreachable", "receiver_fails"));
    }
    if (nowMs - receiver.sentMs < TEST_MS) return;
    await send(receiver, await makeVerification(options, receiver.stream, random.id()));
  };

  const sweep = async (): Promise<void> => {
    if (clock.monotonicMs() - sweptMs < TEST_MS) return;
    sweptMs = clock.monotonicMs();
    const { lost } = await signals.sweep(clock.nowSeconds(), STORE_SWEEP_MAX);
    for (const [name, count] of lost)
      record({ ...eventOf({ stream: { name } }, "signal.expired", "signals_expired"), count });
  };

  const work = async (closing: () => boolean): Promise<void> => {
    const all = configure();
    if (all.length === 0) return;
    await tell(all);
    await sweep();
    for (const one of all) {
      one.waiting = await signals.waiting(one.stream.name, waitingMax);
      delivering(one, closing);
    }
  };
  /** Deliveries to one receiver wait for no other. */
  const underWay = new Map<Receiver, Promise<void>>();
  const delivering = (receiver: Receiver, closing: () => boolean): void => {
    if (underWay.has(receiver)) return;
    const run = deliver(receiver, closing)
      .then(() => test(receiver))
      .catch((fault) =>
        onFault(`security events: ${fault instanceof Error ? fault.message : "no reason given"}`),
      )
      .finally(() => underWay.delete(receiver));
    underWay.set(receiver, run);
  };
  const periodic = runPeriodically(work, {
    name: "security events",
    everyMs: SIGNAL_INTERVAL_MS,
    timers,
    onFault,
  });
  return {
    run: periodic.run,
    async close() {
      await periodic.close();
      await Promise.all(underWay.values());
      for (const { agent } of receivers.values()) agent.retire();
    },
    states: () =>
      new Map(
        [...receivers].map(([name, { isLost, waiting }]) => {
          const { count, oldestMs = clock.nowMs() } = waiting;
          const oldestSeconds = Math.max(0, (clock.nowMs() - oldestMs) / 1000);
          return [name, { waiting: count, oldestSeconds, reachable: !isLost }];
        }),
      ),
  };
}

const eventOf = (
  { stream: { name } }: { stream: Pick<StreamSettings, "name"> },
  type: SignalEvent,
  reason: AuditEvent["reason"],
  detail: JsonObject = {},
): AuditEvent => ({
  type,
  outcome: type === "signal.reachable" ? "allow" : "error",
  reason,
  detail: { stream: name, ...detail },
});

/** Tells which endings are due for a look: at once where this process wrote them or begins, and once more later. */
function watchEndings({ store, clock, journal, settings }: SenderOptions) {
  /** When each ending was seen, and how often it was looked at, by this process or by the one that recorded it. */
  const seen = new Map<string, { atMs: number; looks: number }>();
  /** The events that this process wrote, and when. */
  const own = new Map<string, number>();
  let lookedMs: number | undefined;
  journal.follow((written) => {
    if (settings().streams.size === 0) return;
    for (const { id, timeMs } of written) own.set(id, timeMs);
  });
  const isDue = (eventId: string, nowMs: number): boolean => {
    const before = seen.get(eventId);
    if (before === undefined) {
      const isFirst = lookedMs === undefined || own.has(eventId);
      seen.set(eventId, { atMs: nowMs, looks: isFirst ? 0 : 1 });
      return isFirst;
    }
    return before.looks === 0 || (before.looks === 1 && nowMs >= before.atMs + SIGNAL_SECOND_LOOK_MS);
  };
  async function* since(fromMs: number): AsyncGenerator<readonly RecordedEnding[]> {
    for (let sinceMs = fromMs; ; ) {
      const found = await store.signals.endings(sinceMs, SIGNAL_ENDINGS_MAX);
      if (found.length > 0) yield found;
      const lastMs = found.at(-1)?.atMs ?? sinceMs;
      if (found.length < SIGNAL_ENDINGS_MAX) return;
      // More than one page of one millisecond would be read for ever.
      sinceMs = Math.max(lastMs, sinceMs + 1);
    }
  }
  return {
    since,
    async due() {
      const nowMs = clock.nowMs();
      const pages: (readonly RecordedEnding[])[] = [];
      const fromMs = Math.max((lookedMs ?? 0) - WINDOW_MS, nowMs - REACH_MS);
      for await (const found of since(fromMs)) {
        const due = found.filter(({ eventId }) => isDue(eventId, nowMs));
        if (due.length > 0) pages.push(due);
      }
      return {
        pages,
        /** They were told, which a fault of the store would have prevented. */
        looked(page: readonly RecordedEnding[]): void {
          for (const { eventId } of page) {
            const one = seen.get(eventId);
            if (one !== undefined) one.looks++;
          }
        },
        done(): void {
          lookedMs = nowMs;
          for (const [id, { atMs }] of seen) if (atMs < nowMs - 2 * WINDOW_MS) seen.delete(id);
          for (const [id, atMs] of own) if (atMs < nowMs - WINDOW_MS) own.delete(id);
        },
      };
    },
  };
}

/** One receiver of security events: what is due is delivered to it, and what comes of that tells whether it answers. */
import type { AuditEvent } from "../../audit/event.ts";
import { KEPT_CONNECTION_SECONDS } from "../../limits/fetching.ts";
import {
  SIGNAL_LEASE_MS,
  SIGNAL_PUSHES_MAX,
  SIGNAL_RETRY_AFTER_SECONDS_MAX,
  SIGNAL_RETRY_MS,
  SIGNAL_RETRY_MS_MAX,
  SIGNAL_TEST_SECONDS,
  SIGNAL_TESTS_MISSED,
} from "../../limits/signals.ts";
import type { Random } from "../../ports.ts";
import type { Signal } from "../../records.ts";
import { defined } from "../../result.ts";
import type { StreamSettings } from "../../settings/settings.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import { retrySeconds } from "../../spec/rfc9110.ts";
import { CheckedAgent } from "../remote/checked-agent.ts";
import { type Pushed, push } from "./push.ts";
import { makeVerification, type TellOptions } from "./tell.ts";

export type ReceiverOptions = TellOptions & {
  random: Pick<Random, "id">;
  record: (event: AuditEvent) => void;
};

export type StreamState = { waiting: number; oldestSeconds: number; reachable: boolean };

const TEST_MS = 1000 * SIGNAL_TEST_SECONDS;

export class Receiver {
  readonly stream: StreamSettings;
  waiting: { count: number; oldestMs?: number } = { count: 0 };
  /** Endings since then were not told: at first all of them, and later those for which too many events waited. */
  behindMs: number | undefined = 0;
  readonly #options: ReceiverOptions;
  readonly #agent: CheckedAgent;
  #failures = 0;
  /** Why the last of them was one. */
  #cause: string | undefined;
  /** Until then a receiver that fails is not asked. */
  #nextMs = 0;
  /** When something was sent last, and when something was taken. */
  #sentMs: number;
  #takenMs: number;
  #isLost = false;

  constructor(stream: StreamSettings, options: ReceiverOptions) {
    const { clock } = options;
    this.stream = stream;
    this.#options = options;
    this.#sentMs = clock.monotonicMs();
    this.#takenMs = this.#sentMs;
    this.#agent = new CheckedAgent(stream.endpoint, { kept: { ms: 1000 * KEPT_CONNECTION_SECONDS, clock } });
  }

  /** Delivers what is due, and then tests a stream to which nothing was sent of late. */
  async deliver(closing: () => boolean): Promise<void> {
    const { store, clock } = this.#options;
    while (!closing() && clock.nowMs() >= this.#nextMs) {
      const nowMs = clock.nowMs();
      // A receiver that fails is asked by one request at a time.
      const most = this.#failures > 0 ? 1 : SIGNAL_PUSHES_MAX;
      const due = await store.signals.take(this.stream.name, nowMs, nowMs + SIGNAL_LEASE_MS, most);
      if (due.length === 0) break;
      await Promise.all(due.map((signal) => this.#settle(signal)));
    }
    await this.#test();
  }

  state(): StreamState {
    const nowMs = this.#options.clock.nowMs();
    const { count, oldestMs = nowMs } = this.waiting;
    const oldestSeconds = Math.max(0, (nowMs - oldestMs) / 1000);
    return { waiting: count, oldestSeconds, reachable: !this.#isLost };
  }

  retire(): void {
    this.#agent.retire();
  }

  async #settle(signal: Signal): Promise<void> {
    const { store, clock } = this.#options;
    const pushed = await this.#send(signal.body);
    if (pushed.is === "failed") return store.signals.postpone(signal, this.#nextMs);
    // JOB-D-20: what its receiver refused has told it nothing.
    await store.signals.settle(signal, pushed.is === "delivered" ? clock.nowMs() : 0);
    if (pushed.is === "delivered") return;
    this.#record("signal.refused", "receiver_refused", { jti: signal.jti, err: pushed.cause });
  }

  /** Both sides see by a test that the stream works. */
  async #test(): Promise<void> {
    const { clock, random } = this.#options;
    const nowMs = clock.monotonicMs();
    // A process that slept has asked nothing, so that the time alone says nothing of the receiver.
    const isFailing = this.#failures > 0 && nowMs - this.#takenMs >= SIGNAL_TESTS_MISSED * TEST_MS;
    if (isFailing && !this.#isLost) {
      this.#isLost = true;
      this.#record("signal.unreachable", "receiver_fails", defined<JsonObject>({ cause: this.#cause }));
    }
    if (nowMs - this.#sentMs < TEST_MS) return;
    await this.#send(await makeVerification(this.#options, this.stream, random.id()));
  }

  /** After a failure there is a pause, which grows until something is taken again. */
  async #send(body: string): Promise<Pushed> {
    const { clock } = this.#options;
    this.#sentMs = clock.monotonicMs();
    const pushed = await push(this.stream, body, this.#agent);
    if (pushed.is === "failed") {
      this.#failures++;
      this.#cause = pushed.cause;
      const mostMs = Math.min(SIGNAL_RETRY_MS * 2 ** (this.#failures - 1), SIGNAL_RETRY_MS_MAX);
      // SSF-D-5: with the pause on top, instances that were told the same time do not come back at the same moment.
      const asked = retrySeconds(pushed.retryAfter ?? "", clock.nowSeconds()) ?? 0;
      const askedMs = 1000 * Math.min(asked, SIGNAL_RETRY_AFTER_SECONDS_MAX);
      this.#nextMs = clock.nowMs() + askedMs + Math.ceil(mostMs * Math.random());
      return pushed;
    }
    this.#failures = 0;
    this.#nextMs = 0;
    this.#takenMs = clock.monotonicMs();
    if (this.#isLost) this.#record("signal.reachable", "receiver_answers");
    this.#isLost = false;
    return pushed;
  }

  #record(type: SignalEvent, reason: AuditEvent["reason"], detail?: JsonObject): void {
    this.#options.record(signalEvent(this.stream.name, type, reason, detail));
  }
}

type SignalEvent = Extract<AuditEvent["type"], `signal.${string}`>;

export const signalEvent = (
  stream: string,
  type: SignalEvent,
  reason: AuditEvent["reason"],
  detail: JsonObject = {},
): AuditEvent => ({
  type,
  outcome: type === "signal.reachable" ? "allow" : "error",
  reason,
  detail: { stream, ...detail },
});

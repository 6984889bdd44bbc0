/**
 * The order in which callers are verified, so that those that fail do not delay those that are proven. Verification has a
 * budget of CPU time, which fills on the monotonic clock: a caller that fails uses it up, and one that is proven gives
 * back what it took. While the budget is short, callers wait, those from sources with recent failures behind the others
 * (PROD-8.3-1). A failure ends a fixed time after its verification began, so that its time does not tell whether there is
 * such a client, and where.
 */
import { PROOF_MS, PROOFS_WAITING_MAX } from "../limits/connections.ts";
import type { Clock, Paths, ProofQueue, ProofsTooMany, Timers, WaitEnd } from "../ports.ts";
import { type Awaitable, err, ok, type Result, whenDone, whenOk } from "../result.ts";
import type { Rate } from "../settings/sections.ts";

type ProofQueueOptions = {
  clock: Pick<Clock, "monotonicMs">;
  /** The CPU time of this thread so far, so that a machine that stands still for a while charges no caller for it. */
  cpuMs: () => number;
  timers: Pick<Timers, "after">;
  /** The milliseconds of verification in a second, and at once. */
  budget: Rate;
  paths: Paths;
  failedLately: (source: string) => boolean;
  /** The time from the begin of a verification to the end of a failure, in whole milliseconds. */
  failureMs: number;
};

/** The time that a caller is told to wait where too many wait already, because it is unknown when they are done. */
const FULL: ProofsTooMany = { reason: "proofs_too_many", retrySeconds: 1 };

export function makeProofQueue(options: ProofQueueOptions): ProofQueue {
  const { clock, timers, failedLately } = options;
  const account = openAccount(clock, options.budget);
  /** Each entry begins the work of one caller, in the order in which they came. */
  const first = new Set<() => void>();
  const later = new Set<() => void>();
  let armed = false;

  /** Verifications run one at a time, because the cost of one is known when it is done; its end begins the next one. */
  const beginNext = (): void => {
    const queue = first.size > 0 ? first : later;
    const [begin] = queue;
    if (begin === undefined) return;
    if (account.balanceMs() > 0) {
      queue.delete(begin);
      account.take(PROOF_MS);
      begin();
    }
    if (armed) return;
    armed = true;
    timers.after(account.msUntilMore(), () => {
      armed = false;
      beginNext();
    });
  };

  const turn = (source: string, until: WaitEnd | undefined): Awaitable<Result<undefined, ProofsTooMany>> => {
    const suspect = failedLately(source);
    const ahead = suspect ? first.size + later.size : first.size;
    if (ahead === 0 && account.balanceMs() > 0) {
      account.take(PROOF_MS);
      return ok(undefined);
    }
    const queue = suspect ? later : first;
    if (queue.size >= PROOFS_WAITING_MAX) return err(FULL);
    const waiting = place(queue, until);
    beginNext();
    return waiting.then(() => ok(undefined));
  };

  return {
    verify: (source, work, until) =>
      whenOk(turn(source, until), () => {
        const beganMs = clock.monotonicMs();
        const measured = measure(options, account);
        const end = (failed: boolean): void => {
          if (!failed) account.take(-measured.takenMs());
          beginNext();
        };
        // A fault of ours is not the caller's failure.
        const onFault = (fault: unknown): never => {
          end(false);
          throw fault;
        };
        const settle = <R extends Result<unknown, unknown>>(proven: R): Awaitable<R> => {
          end(!proven.ok);
          // RFC6749-2.3.1-8: a refusal does not tell by its time which clients there are.
          return proven.ok ? proven : failureEnd(beganMs, options).then(() => proven);
        };
        return whenDone(() => work(measured.paths), settle, onFault);
      }),
  };
}

/** The same, which takes its time from the account. */
function measure({ paths, cpuMs }: ProofQueueOptions, account: ReturnType<typeof openAccount>) {
  let takenMs = PROOF_MS;
  const measured: Paths = {
    verify(...path) {
      const startMs = cpuMs();
      const verified = paths.verify(...path);
      const spentMs = cpuMs() - startMs;
      takenMs += spentMs;
      account.take(spentMs);
      return verified;
    },
  };
  return { paths: measured, takenMs: () => takenMs };
}

/**
 * The end is on a whole millisecond, because a timer ends on one; from a fraction, its end would tell how long the work
 * was.
 */
async function failureEnd(beganMs: number, { clock, timers, failureMs }: ProofQueueOptions): Promise<void> {
  const endMs = Math.ceil(beganMs) + failureMs;
  for (;;) {
    const leftMs = Math.ceil(endMs - clock.monotonicMs());
    if (leftMs <= 0) return;
    await new Promise<void>((resolve) => void timers.after(leftMs, resolve));
  }
}

/** A token bucket of milliseconds, which work may overdraw, since its cost is known only when it is done. */
function openAccount({ monotonicMs }: Pick<Clock, "monotonicMs">, { perSecond, burst }: Rate) {
  let leftMs = burst;
  let atMs = monotonicMs();
  const balanceMs = (): number => {
    const nowMs = monotonicMs();
    leftMs = Math.min(burst, leftMs + ((nowMs - atMs) / 1000) * perSecond);
    atMs = nowMs;
    return leftMs;
  };
  return {
    balanceMs,
    take(ms: number): void {
      leftMs = Math.min(burst, balanceMs() - ms);
    },
    /** The time until the balance is above 0. */
    msUntilMore: (): number => Math.floor((Math.max(0, -balanceMs()) / perSecond) * 1000) + 1,
  };
}

/**
 * The wait of a caller in this queue ends with its turn, or with its deadline or departure, after which it leaves its
 * place.
 */
async function place(queue: Set<() => void>, until: WaitEnd | undefined): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const begin = (): void => resolve();
  queue.add(begin);
  const ends = [until?.deadline, until?.gone].filter((signal) => signal !== undefined);
  const leave = ({ target }: { target: EventTarget | null }): void => {
    queue.delete(begin);
    reject((target as AbortSignal).reason);
  };
  try {
    for (const signal of ends) {
      signal.throwIfAborted();
      signal.addEventListener("abort", leave);
    }
    await promise;
  } finally {
    queue.delete(begin);
    for (const signal of ends) signal.removeEventListener("abort", leave);
  }
}

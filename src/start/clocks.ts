/**
 * The clock of this machine, compared with that of the database: instances whose clocks differ disagree about what has
 * expired, which nonce is current and which token an ending reaches. Beyond the limit the instance is not ready.
 */
import { differsBy, measureClock } from "../adapters/store/clock-difference.ts";
import type { Store } from "../adapters/store/store.ts";
import { CLOCK_DIFFERENCE_MS_MAX, CLOCK_LOOK_MS } from "../limits/process.ts";
import type { Clock, Timers } from "../ports.ts";
import type { Log } from "./log.ts";

export type ClockWatch = {
  /** Seconds by which this machine was ahead when it was last compared; undefined if the store has no clock of its own. */
  differenceSeconds(): number | undefined;
  agrees(): boolean;
  stop(): void;
};

type ClockOptions = {
  store: Pick<Store, "nowMs">;
  clock: Pick<Clock, "nowMs" | "monotonicMs">;
  timers: Timers;
  log: Pick<Log, "tell">;
};

/** The first comparison is done when this resolves. */
export async function watchClocks({ store, clock, timers, log }: ClockOptions): Promise<ClockWatch> {
  let differenceMs: number | undefined;
  let agrees = true;
  const look = async (): Promise<void> => {
    // While the store does not answer, the last known difference stays.
    const measured = await measureClock(store, clock).catch(() => undefined);
    if (measured === undefined) return;
    differenceMs = measured.differenceMs;
    const differs = differsBy(measured, CLOCK_DIFFERENCE_MS_MAX);
    if (differs !== agrees) return;
    agrees = !differs;
    const shown = `${(Math.abs(differenceMs) / 1000).toFixed(1)} s ${differenceMs > 0 ? "ahead of" : "behind"}`;
    log.tell(
      agrees
        ? {
            level: "info",
            event: "clock_agrees",
            message: "The clock agrees with that of the database again.",
          }
        : {
            level: "error",
            event: "clock_differs",
            message: `The clock of this machine is ${shown} that of the database, so that this instance is not ready: correct the time service of the one that is wrong.`,
          },
    );
  };
  await look();
  const stop = timers.every(CLOCK_LOOK_MS, look);
  return {
    differenceSeconds: () => (differenceMs === undefined ? undefined : differenceMs / 1000),
    agrees: () => agrees,
    stop,
  };
}

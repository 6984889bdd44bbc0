/**
 * The clock of this machine, compared with that of the database: instances whose clocks differ disagree about what has
 * expired, which nonce is current and which token an ending reaches. Beyond the limit the instance is not ready, unless
 * all instances agree and only the database differs.
 */
import type { InstanceName } from "../adapters/audit/instance-name.ts";
import { type ClockState, judgeClock, measureClock } from "../adapters/store/clock-difference.ts";
import type { Store } from "../adapters/store/store.ts";
import type { Notice } from "../http/log-events.ts";
import { CLOCK_LOOK_MS } from "../limits/process.ts";
import type { Clock, Timers } from "../ports.ts";
import type { Settings } from "../settings/settings.ts";
import type { Log } from "./log.ts";

export type ClockWatch = {
  /** Seconds by which this machine was ahead when it was last compared; undefined if the store has no clock of its own. */
  differenceSeconds(): number | undefined;
  state(): ClockState;
  stop(): void;
};

type ClockOptions = {
  store: Pick<Store, "nowMs" | "names">;
  /** The name of this instance, and what holds it. */
  instance: string;
  name: Pick<InstanceName, "host" | "noteClock">;
  settings: () => Pick<Settings, "clockSkewSeconds">;
  clock: Pick<Clock, "nowMs" | "monotonicMs">;
  timers: Timers;
  log: Pick<Log, "tell">;
};

/** The first comparison is done when this resolves. */
export async function watchClocks(options: ClockOptions): Promise<ClockWatch> {
  const { store, instance, name, settings, clock, timers, log } = options;
  let differenceMs: number | undefined;
  let state: ClockState = "agrees";
  let isFirst = true;
  let differed = false;
  const compare = async (): Promise<void> => {
    const measured = await measureClock(store, clock);
    if (measured === undefined) return;
    differenceMs = measured.differenceMs;
    await name.noteClock(Math.round(differenceMs));
    const others = (await store.names.clocks?.())?.filter((other) => other.name !== instance) ?? [];
    const found = judgeClock(measured, name.host, others, settings().clockSkewSeconds);
    // What the others noted may be as old as one look: where the clock of the database was set, they have not seen it.
    const isEarly = found === "differs" && others.length > 0 && !isFirst && !differed;
    differed = found === "differs";
    isFirst = false;
    if (isEarly || found === state) return;
    state = found;
    log.tell(noticeOf(state, differenceMs));
  };
  // While the store does not answer, what was found last stays.
  const look = (): Promise<void> => compare().catch(() => undefined);
  await look();
  const stop = timers.every(CLOCK_LOOK_MS, look);
  return {
    differenceSeconds: () => (differenceMs === undefined ? undefined : differenceMs / 1000),
    state: () => state,
    stop,
  };
}

function noticeOf(state: ClockState, differenceMs: number): Notice {
  const seconds = (Math.abs(differenceMs) / 1000).toFixed(1);
  switch (state) {
    case "agrees":
      return {
        level: "info",
        event: "clock_agrees",
        message: "The clock agrees with that of the database again.",
      };
    case "database_differs":
      return {
        level: "warning",
        event: "database_clock_differs",
        message: `The clock of the database is ${seconds} s ${differenceMs > 0 ? "behind" : "ahead of"} those of all instances, which agree and serve: correct the time service of the database.`,
      };
    case "differs":
      return {
        level: "error",
        event: "clock_differs",
        message: `The clock of this machine is ${seconds} s ${differenceMs > 0 ? "ahead of" : "behind"} that of the database, so that this instance is not ready: correct the time service of the one that is wrong.`,
      };
  }
}

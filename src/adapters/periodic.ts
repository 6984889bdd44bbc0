/** Runs work periodically, one round at a time; a fault is reported and the next round still runs. */
import type { Timers } from "../ports.ts";

export type PeriodicWork = {
  /** Runs a round now, after the one under way. */
  run(): Promise<void>;
  /** Ends when the round under way has ended. */
  close(): Promise<void>;
};

type PeriodicOptions = {
  /** The words that stand before the message of each fault. */
  name: string;
  everyMs: number;
  timers: Timers;
  onFault: (words: string) => void;
};

/** `closing` tells whether a long round should stop where it is. */
export function runPeriodically(
  work: (closing: () => boolean) => Promise<void>,
  { name, everyMs, timers, onFault }: PeriodicOptions,
): PeriodicWork {
  let closed = false;
  let running = Promise.resolve();
  const round = async (): Promise<void> => {
    try {
      await work(() => closed);
    } catch (fault) {
      onFault(`${name}: ${fault instanceof Error ? fault.message : "no reason given"}`);
    }
  };
  const run = (): Promise<void> => {
    running = running.then(round);
    return running;
  };
  const cancel = timers.every(everyMs, run);
  return {
    run,
    async close() {
      closed = true;
      cancel();
      await running;
    },
  };
}

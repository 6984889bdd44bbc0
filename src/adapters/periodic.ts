/** Work that comes round: one round at a time, the last one ended before the process ends; a fault is told and outlived. */

export type Upkeep = {
  /** A round now, after the one under way. */
  run(): Promise<void>;
  close(): Promise<void>;
};

export type UpkeepOptions = {
  /** What its faults begin with. */
  name: string;
  everyMs: number;
  onFault: (words: string) => void;
};

/** `closing` tells a long round that it may stop where it is. */
export function keepUp(
  work: (closing: () => boolean) => Promise<void>,
  { name, everyMs, onFault }: UpkeepOptions,
): Upkeep {
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
  const timer = setInterval(run, everyMs).unref();
  return {
    run,
    async close() {
      closed = true;
      clearInterval(timer);
      await running;
    },
  };
}

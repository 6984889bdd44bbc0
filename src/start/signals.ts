/**
 * The operator's signals. An unhandled one ends the process, so they are listened to before anything else is loaded, and
 * this file imports nothing: what it imported would be loaded before its first line.
 */

type SignalWork = {
  /** Called for each SIGHUP; returns when it is done, so that two are done one after the other. */
  reload: () => void;
  /** Called for each SIGTERM and SIGINT. */
  stop: () => void;
};

export type Signals = {
  /** Aborted by the first SIGTERM or SIGINT. */
  readonly stopped: AbortSignal;
  /** What signals do from now on; those that came before do it now. */
  answer(work: SignalWork): void;
  /** For a command of the operator: they end the process, and one that came before does it now. */
  release(): Promise<void>;
};

export function openSignals(): Signals {
  const stopping = new AbortController();
  let work: SignalWork | undefined;
  let missed: NodeJS.Signals | undefined;
  const hangUp = (signal: NodeJS.Signals): void => {
    if (work === undefined) missed ??= signal;
    else work.reload();
  };
  const stop = (signal: NodeJS.Signals): void => {
    if (work === undefined) missed = signal;
    stopping.abort();
    work?.stop();
  };
  const listeners = { SIGHUP: hangUp, SIGTERM: stop, SIGINT: stop } as const;
  const each = Object.entries(listeners) as [NodeJS.Signals, typeof stop][];
  for (const [name, listener] of each) process.on(name, listener);
  return {
    stopped: stopping.signal,
    answer(given) {
      work = given;
      if (missed === "SIGHUP") work.reload();
      if (stopping.signal.aborted) work.stop();
    },
    async release() {
      // One that has arrived is told in the next turn of the event loop.
      await new Promise(setImmediate);
      for (const [name, listener] of each) process.off(name, listener);
      if (missed !== undefined) process.kill(process.pid, missed);
    },
  };
}

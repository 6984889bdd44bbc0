/** The operator's signals, listened to before anything else is loaded, because an unhandled one ends the process. */

export type SignalWork = {
  /** For each SIGHUP; returns when it is done, so that two are done one after the other. */
  reload: () => void;
  /** For each SIGTERM and SIGINT. */
  stop: () => void;
};

export type Signals = {
  /** Aborted by the first SIGTERM or SIGINT. */
  readonly stopped: AbortSignal;
  /** What signals do from now on; those that came before do it now. */
  answer(work: SignalWork): void;
};

export function openSignals(): Signals {
  const stopping = new AbortController();
  let work: SignalWork | undefined;
  let missedReload = false;
  process.on("SIGHUP", () => {
    if (work === undefined) missedReload = true;
    else work.reload();
  });
  const stop = (): void => {
    stopping.abort();
    work?.stop();
  };
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
  return {
    stopped: stopping.signal,
    answer(given) {
      work = given;
      if (missedReload) work.reload();
      if (stopping.signal.aborted) work.stop();
    },
  };
}

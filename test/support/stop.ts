type Made = { stop(): unknown } | { close(): unknown } | (() => unknown) | undefined;

/**
 * Ends what the tests of a file made, in this order, each although another one fails. What a failed `before` has not made
 * is undefined here; a hook that threw at it would leave all the rest open.
 */
export async function stop(...made: readonly Made[]): Promise<void> {
  const faults: unknown[] = [];
  for (const one of made) {
    try {
      await end(one);
    } catch (fault) {
      faults.push(fault);
    }
  }
  if (faults.length > 0) throw new AggregateError(faults, "not all that the tests made could be stopped");
}

function end(one: Made): unknown {
  if (one === undefined) return;
  if (typeof one === "function") return one();
  return "stop" in one ? one.stop() : one.close();
}

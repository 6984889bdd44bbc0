/** Which listeners can be opened beside each other, in one process and in several. */
type Place = { host: string; port: number };
type Places = { listen: Place; mtls?: Place | undefined; proxy?: Place | undefined };

/**
 * Why several processes cannot serve on one port. Where the platform has the option at all, only Linux spreads new
 * connections over all of them, and lets no other user join.
 */
export function whyNotShared(
  { store, listen, mtls, proxy }: { store: object } & Places,
  platform: NodeJS.Platform,
): string | undefined {
  if (platform !== "linux") return "works on Linux only: remove it";
  if ("sqlite" in store) {
    return "needs `store.postgres`, because processes that share a port share a store: remove it, or change `store`";
  }
  if ([listen, mtls, proxy].some((at) => at?.port === 0)) {
    return "needs ports that are not 0, which is another port for each process";
  }
  return undefined;
}

/** Pairs of listeners that cannot both be opened. Port 0 is another one each time. */
export function sharedPorts(
  listeners: readonly (readonly [string, Place | undefined])[],
): readonly (readonly [string, string])[] {
  const isEvery = (host: string): boolean => host === "0.0.0.0" || host === "::";
  const collide = (a: Place, b: Place): boolean =>
    a.port !== 0 && a.port === b.port && (a.host === b.host || isEvery(a.host) || isEvery(b.host));
  return listeners.flatMap(([name, at], index) => {
    const taken = listeners.slice(0, index).find(([, one]) => at && one && collide(at, one));
    return taken === undefined ? [] : [[name, taken[0]] as const];
  });
}

/**
 * The name of this instance, which one process at a time has (AUDIT-D-11): it writes the log of this name. Where a hold
 * lapses it is renewed; a process that was stopped for too long, or whose store was away, may find that another one has
 * taken the name, and then never writes again.
 */
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { LEASE_SECONDS_MAX, NAME_RENEWALS, NAME_RETRY_MS } from "../../limits/store.ts";
import { StoreUnavailable } from "../../ports.ts";
import { type Awaitable, defined, whenDone } from "../../result.ts";
import type { Held, InstanceNames, NameTaken, Store } from "../store/store.ts";

/** Another process has the name; the message says which one, and since when. */
export class NameInUse extends Error {
  override name = "NameInUse";
}

export type NameOptions = {
  names: InstanceNames;
  name: string;
  leaseSeconds: number;
  /** Called once, when a hold has to lapse before the name can be taken. */
  onWait: (text: string) => void;
  /** Ends the wait; its reason is thrown. */
  stopped?: AbortSignal;
  /** A hold that is not renewed for this time is taken, whatever the clock of the store says. */
  deadMs?: number;
};

export type InstanceName = {
  /**
   * Whether this process may write now: false once another one has taken the name. A hold that has lapsed is renewed
   * first; throws StoreUnavailable if that fails.
   */
  ensure(): Awaitable<boolean>;
  /** Whether the hold stands, by the clock of this process. */
  stands(): boolean;
  /** The host that the other instances know it by. */
  host: string;
  /** Notes by how much the clock of this machine is ahead of that of the store, for the other instances. */
  noteClock(aheadMs: number): Promise<void>;
  /** Calls back once, when another process has taken the name. */
  onLost(tell: () => void): void;
  /** Gives the name up; one that cannot be given up lapses. */
  close(): Promise<void>;
};

/** What decides about requests, some of which are answered by what is read alone. */
const DECIDING = [
  ...(["facts", "consents", "endings", "clients", "registrations", "subjectEmails"] as const),
  ...(["families", "shortLived", "jobs", "pendingConsents", "rechecks"] as const),
];

/**
 * STORE-D-26: what decides is read while the hold stands; one that has lapsed is renewed first. Each renewal is a commit, so
 * that a primary that another one has replaced, and that commits nothing any more, is not read for longer than a hold.
 */
export function readWhileHeld<Rows extends Pick<Store, (typeof DECIDING)[number]>>(
  store: Rows,
  { ensure }: Pick<InstanceName, "ensure">,
): Rows {
  const held = DECIDING.map((part) => [part, eachWhileHeld(store[part], ensure)]);
  return { ...store, ...Object.fromEntries(held) };
}

const eachWhileHeld = (rows: object, ensure: InstanceName["ensure"]): object =>
  Object.fromEntries(
    Object.entries(rows).map(([name, read]) => [
      name,
      (...asked: unknown[]) => whileHeld(ensure, () => read(...asked)),
    ]),
  );

const whileHeld = <T>(ensure: InstanceName["ensure"], read: () => Awaitable<T>): Awaitable<T> =>
  whenDone(
    ensure,
    (stands) => {
      if (!stands) throw new StoreUnavailable("another process has the name of this instance");
      return read();
    },
    (fault) => {
      // Nothing was asked, so that a request that was to read can be done anew.
      if (fault instanceof StoreUnavailable) Object.assign(fault, { noWriter: true });
      throw fault;
    },
  );

/** Takes the name. A hold that is not renewed is waited for, until it has lapsed; throws NameInUse for any other. */
export async function takeName(options: NameOptions): Promise<InstanceName> {
  const { names, name, leaseSeconds, onWait, stopped, deadMs = 1_000 * LEASE_SECONDS_MAX } = options;
  const self = { host: hostname(), pid: process.pid };
  const leaseMs = 1_000 * leaseSeconds;
  const startMs = performance.now();
  let found: NameTaken | undefined;
  for (;;) {
    const askedMs = performance.now();
    // The clock of the store may have been set back since, so a hold that was not renewed for this time counts as
    // lapsed.
    const dead = askedMs > startMs + deadMs ? found?.lapsesAtMs : undefined;
    const taken = await names.take(name, self, leaseMs, dead);
    if (taken.ok) return keep(taken.value, self.host, leaseMs, askedMs);
    const { lapsesAtMs } = taken.error;
    // The hold was renewed while we waited, so its process is alive.
    const isAlive = found !== undefined && found.lapsesAtMs !== lapsesAtMs;
    if (lapsesAtMs === undefined || isAlive) throw new NameInUse(describe(name, taken.error));
    if (found === undefined) onWait(`${describe(name, taken.error)}; waiting until that lapses`);
    found = taken.error;
    await sleep(NAME_RETRY_MS, undefined, defined({ signal: stopped })).catch(() => undefined);
    stopped?.throwIfAborted();
  }
}

function describe(name: string, { host, pid, sinceMs }: NameTaken): string {
  const holder = pid === undefined ? "another process" : `process ${pid} on ${host}`;
  const since = sinceMs === undefined ? "" : ` since ${new Date(sinceMs).toISOString()}`;
  return `the name ${JSON.stringify(name)} is in use: ${holder} has it${since}`;
}

function keep(
  { renew, noteClock, release }: Held,
  host: string,
  leaseMs: number,
  takenMs: number,
): InstanceName {
  let untilMs = renew === undefined ? Number.POSITIVE_INFINITY : takenMs + leaseMs;
  let lost = false;
  let tellLost = (): void => {};
  let renewing: Promise<void> | undefined;
  const stands = (): boolean => !lost && performance.now() < untilMs;

  const renewOnce = async (): Promise<void> => {
    // The time is taken before the store is asked, because its answer may take long.
    const askedMs = performance.now();
    if (renew === undefined || lost) return;
    if (await renew()) {
      untilMs = askedMs + leaseMs;
    } else {
      lost = true;
      tellLost();
    }
  };
  const renewShared = (): Promise<void> => {
    renewing ??= renewOnce().finally(() => {
      renewing = undefined;
    });
    return renewing;
  };
  // A renewal that fails is tried again at the next turn, or by the next write.
  const timer = setInterval(() => renewShared().catch(() => undefined), leaseMs / NAME_RENEWALS);
  timer.unref();

  return {
    ensure: () => stands() || (!lost && renewShared().then(() => !lost)),
    stands,
    host,
    noteClock: async (aheadMs) => noteClock?.(aheadMs),
    onLost(tell) {
      tellLost = tell;
    },
    async close() {
      clearInterval(timer);
      await renewing?.catch(() => undefined);
      if (!lost) await release().catch(() => undefined);
    },
  };
}

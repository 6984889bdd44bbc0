/** The one place where a store is opened; it comes back migrated and ready. */
import { setTimeout as sleep } from "node:timers/promises";
import { STORE_RETRY_MS, STORE_TIMEOUT_MS } from "../../limits/store.ts";
import { StoreUnavailable } from "../../ports.ts";
import { defined } from "../../result.ts";
import type { StorePlace } from "../../settings/settings.ts";
import { type OpenOptions, type Store, StoreBusy } from "./store.ts";

/** Opens the store and migrates it; a call that takes longer than `timeoutMs` throws StoreUnavailable. */
export function openStore(place: StorePlace, timeoutMs = STORE_TIMEOUT_MS): Promise<Store> {
  return open(place, { timeoutMs, mustExist: false, mustBeCurrent: false });
}

/** For commands, which must not make an empty database at a wrong place and answer from it. */
export function openExistingStore(place: StorePlace): Promise<Store> {
  return open(place, { timeoutMs: STORE_TIMEOUT_MS, mustExist: true, mustBeCurrent: false });
}

/** For commands that only look: nothing is made, and nothing is changed. */
export function openUnchangedStore(place: StorePlace): Promise<Store> {
  return open(place, { timeoutMs: STORE_TIMEOUT_MS, mustExist: true, mustBeCurrent: true });
}

/**
 * AUDIT-D-17: a logical copy or a standby, whose sessions write nothing. What decides is never read from it: an ending may
 * be missing there.
 */
export function openCopy(place: StorePlace): Promise<Store> {
  const asItIs = { mustExist: true, mustBeCurrent: true, isCopy: true };
  return open(place, { timeoutMs: STORE_TIMEOUT_MS, ...asItIs });
}

/** Does a step of the start, again where the store was away meanwhile. */
export type AtStart = <T>(step: () => Promise<T>) => Promise<T>;

/**
 * STORE-D-20: for the server, each of whose steps until it listens waits so long while the database does not answer, so
 * that an outage meets no start harder than another. `onWait` is told once for each what it waits for; once `stopped` is
 * aborted, its reason is thrown. The steps may be done twice.
 */
export function waitAtStart(
  place: StorePlace,
  waitSeconds: number,
  onWait: (why: string) => void,
  stopped?: AbortSignal,
): AtStart {
  return async (step) => {
    const deadlineMs = performance.now() + 1_000 * waitSeconds;
    for (let told = false; ; told = true) {
      try {
        return await step();
      } catch (fault) {
        if (!isPassing(fault, place) || performance.now() >= deadlineMs) throw fault;
        if (!told) onWait(fault.message);
        await sleep(STORE_RETRY_MS, undefined, defined({ signal: stopped })).catch(() => undefined);
        stopped?.throwIfAborted();
      }
    }
  };
}

/** A place that is refused, and a key service that is away, are no store that will be back. */
const isPassing = (fault: unknown, place: StorePlace): fault is StoreUnavailable =>
  fault instanceof StoreBusy ||
  (fault instanceof StoreUnavailable && "postgres" in place && fault.constructor === StoreUnavailable);

/** The statements with which `openStore` would bring the tables up to this version; nothing is made or changed. */
export async function pendingScripts(place: StorePlace): Promise<readonly string[]> {
  if ("sqlite" in place) return (await import("./sqlite/store.ts")).sqliteScripts(place.sqlite);
  return (await import("./postgres/store.ts")).postgresScripts(place);
}

/** Loads the code of the one kind of store that this process has. */
async function open(place: StorePlace, options: OpenOptions): Promise<Store> {
  if ("sqlite" in place) return (await import("./sqlite/store.ts")).openSqlite(place.sqlite, options);
  return (await import("./postgres/store.ts")).openPostgres(place, options);
}

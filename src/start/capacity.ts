/** How many connections fit, beside all else that is open, into what the system lets a process open. */
import { openFilesMax } from "../adapters/process.ts";
import type { Config } from "../config/config.ts";
import {
  CONNECTIONS_MAX,
  CONNECTIONS_TOLD_MS,
  FILES_RESERVED,
  OPERATIONS_CONNECTIONS_MAX,
} from "../limits/connections.ts";
import { FETCHES_IN_FLIGHT_MAX } from "../limits/fetching.ts";
import { STORE_CONNECTIONS_MAX } from "../limits/store.ts";
import type { Clock } from "../ports.ts";
import type { Log } from "./log.ts";
import { StartRefused } from "./refused.ts";

type Fixed = Pick<Config["fixed"], "mtls" | "proxy" | "store">;

/** The most connections of each listener: what the others and the store leave of the files that may be open. */
export function connectionsThatFit({ mtls, proxy, store }: Fixed, filesMax: number): number {
  const { connections = STORE_CONNECTIONS_MAX } = "connections" in store ? store : {};
  const others = FILES_RESERVED + OPERATIONS_CONNECTIONS_MAX + FETCHES_IN_FLIGHT_MAX + connections;
  const listeners = [true, mtls, proxy].filter(Boolean).length;
  return Math.min(CONNECTIONS_MAX, Math.floor((filesMax - others) / listeners));
}

export function fitConnections(fixed: Fixed, log: Pick<Log, "tell">, filesMax = openFilesMax()): number {
  const fits = connectionsThatFit(fixed, filesMax);
  if (fits === CONNECTIONS_MAX) return fits;
  const missing = `The system lets this process open ${filesMax} files, into which ${Math.max(fits, 0)} connections of each listener fit`;
  const remedy = "raise the limit (ulimit -n, LimitNOFILE= of the unit)";
  if (fits < 1) throw new StartRefused(`${missing}: ${remedy}.`);
  const message = `${missing}, and not ${CONNECTIONS_MAX}; further ones are refused. For more, ${remedy}.`;
  log.tell({ level: "warning", event: "files_limited", message });
  return fits;
}

/** One source may have half of the connections at most, so that it shuts out no other where there are few. */
export const connectionsOfSource = (connectionsMax: number, most: number): number =>
  Math.min(most, Math.ceil(connectionsMax / 2));

/** Why a listener did not take a connection: it has as many as it may, or no file can be opened. */
export type Refusal = "limit" | "files";

/**
 * The log gets one line in a minute for each listener and reason, since a flood of connections must not become one of
 * lines.
 */
export function tellRefusals(log: Pick<Log, "tell">, { monotonicMs }: Pick<Clock, "monotonicMs">) {
  const told = new Map<string, number>();
  return (listener: string, why: Refusal): void => {
    const key = `${listener} ${why}`;
    const nowMs = monotonicMs();
    if (nowMs - (told.get(key) ?? Number.NEGATIVE_INFINITY) < CONNECTIONS_TOLD_MS) return;
    told.set(key, nowMs);
    const because = why === "limit" ? "it has as many as it may have" : "no more files can be opened";
    const message = `${listener} refuses connections: ${because}.`;
    log.tell({ level: "error", event: "connections_refused", message, listener });
  };
}

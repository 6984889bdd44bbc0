/** The configuration that is in force: since when, whether a later one was refused, and what of it ends by itself. */
import type { Config } from "../config/config.ts";
import { type Dated, datedOf } from "../config/dated.ts";
import type { ConfigurationState } from "../http/operations.ts";
import { DAY_SECONDS, END_WARNING_DAYS } from "../limits/process.ts";
import type { Clock } from "../ports.ts";
import type { Log } from "./log.ts";

export type InForce = {
  readonly current: Config;
  take(next: Config): void;
  /** Whether the file as it is now is refused, so that this configuration stays in force. */
  refuse(isRefused: boolean): void;
  state(): ConfigurationState;
  /** Tells once of each certificate, authority and secret that it is about to end, and once that it has ended. */
  tellEnds(log: Log): void;
};

export function makeInForce(started: Config, { nowSeconds }: Pick<Clock, "nowSeconds">): InForce {
  let current = started;
  let dated = datedOf(started);
  let sinceSeconds = nowSeconds();
  let refused = false;
  const told = new Set<string>();
  const stateOf = ({ endSeconds }: Dated): "valid" | "ends_soon" | "ended" => {
    const leftSeconds = endSeconds - nowSeconds();
    if (leftSeconds <= 0) return "ended";
    return leftSeconds <= END_WARNING_DAYS * DAY_SECONDS ? "ends_soon" : "valid";
  };
  return {
    get current() {
      return current;
    },
    take(next) {
      current = next;
      dated = datedOf(next);
      sinceSeconds = nowSeconds();
      refused = false;
    },
    refuse(isRefused) {
      refused = isRefused;
    },
    state: () => ({
      policy: current.settings.policy.digest,
      sinceSeconds,
      refused,
      // Names of clients and partners are not told on a listener without authentication; it has only their number.
      certificates: dated
        .filter(({ kind }) => kind === "certificate")
        .map((one) => ({ where: one.where, endSeconds: one.endSeconds, state: stateOf(one) })),
      othersEnding: dated.filter((one) => one.kind !== "certificate" && stateOf(one) !== "valid").length,
    }),
    tellEnds(log) {
      for (const one of dated) {
        const { where, kind, endSeconds } = one;
        const state = stateOf(one);
        const key = JSON.stringify([where, endSeconds, state]);
        if (state === "valid" || told.has(key)) continue;
        told.add(key);
        const has = state === "ended" ? "ended" : "ends";
        const message = `${where}: the ${kind} ${has} on ${new Date(1000 * endSeconds).toISOString()}: replace it`;
        log.tell({ level: state === "ended" ? "error" : "warning", event: "ends", message });
      }
    },
  };
}

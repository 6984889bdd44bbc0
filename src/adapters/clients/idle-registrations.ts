/**
 * Removes registered clients that are not used (RFC7591-5-5): those that never got a token, and those whose last token
 * is too old, each with an event. Rows of removed clients and ended tokens are deleted later. Every instance does this,
 * and several may do it at the same time.
 */
import type { Reason } from "../../audit/reasons.ts";
import { RETENTION_INTERVAL_MS } from "../../limits/audit.ts";
import { LAST_TOKEN_LAG_SECONDS } from "../../limits/clients.ts";
import { EXPIRED_GRACE_SECONDS, STORE_SWEEP_MAX } from "../../limits/store.ts";
import { ACCESS_TOKEN_SECONDS_MAX } from "../../limits/tokens.ts";
import type { Clock, Journal, Timers } from "../../ports.ts";
import type { Settings } from "../../settings/settings.ts";
import { AUTHORIZATION_CODE } from "../../spec/rfc6749.ts";
import { OWN_CLASSES } from "../../spec/rfc7591.ts";
import { type PeriodicWork, runPeriodically } from "../periodic.ts";
import { removePaced } from "../store/paced-removal.ts";
import type { Store } from "../store/store.ts";

type RegistrationsOptions = {
  store: Pick<Store, "registrations" | "sliceMs">;
  journal: Journal;
  clock: Clock;
  timers: Timers;
  settings: () => Settings;
  onFault: (words: string) => void;
};

/** A client that asks users and registered without an initial access token. */
const OPEN = { registrationClass: OWN_CLASSES.anybody, grantType: AUTHORIZATION_CODE };

export function startIdleRegistrations(options: RegistrationsOptions): PeriodicWork {
  const { store, journal, clock, timers, settings, onFault } = options;

  /** Changes nothing if the client is removed already or has just got a token. */
  const remove = async (clientId: string, reason: Reason, unusedSince: number): Promise<void> => {
    const { digest } = settings().policy;
    const detail = { client_id: clientId };
    await journal.record({
      event: { type: "client.removed", outcome: "allow", reason, policy: { digest }, detail },
      registration: { remove: clientId, unusedSince, atSeconds: clock.nowSeconds() },
    });
  };

  /** A round takes at most one page; the rest follows in the next round. */
  const removeIdle = async (closing: () => boolean): Promise<void> => {
    const { unusedSeconds, unusedOpenSeconds, idleSeconds } = settings().registration;
    const unusedSince = clock.nowSeconds() - unusedSeconds;
    const unusedOpenSince = clock.nowSeconds() - unusedOpenSeconds;
    const idleSince = clock.nowSeconds() - idleSeconds - LAST_TOKEN_LAG_SECONDS;
    const cutOffs = { unusedSince, unusedOpenSince, idleSince };
    const found = await store.registrations.idle({ ...cutOffs, open: OPEN, limit: STORE_SWEEP_MAX });
    for (const { clientId, hadToken, isOpen } of found) {
      if (closing()) return;
      if (hadToken) await remove(clientId, "idle", idleSince);
      // MCPC-D-10: a client that needs no more than a request to come is removed sooner, as some clients register
      // before any click.
      else await remove(clientId, "unused", isOpen ? unusedOpenSince : unusedSince);
    }
  };

  const sweep = async (closing: () => boolean): Promise<void> => {
    // The row of a removed client revokes its tokens, so it stays until they have expired.
    const before = clock.nowSeconds() - EXPIRED_GRACE_SECONDS - ACCESS_TOKEN_SECONDS_MAX;
    await removePaced(store, closing, (limit) => store.registrations.sweep(before, limit));
  };

  const work = async (closing: () => boolean): Promise<void> => {
    await removeIdle(closing);
    await sweep(closing);
  };
  return runPeriodically(work, { name: "registrations", everyMs: RETENTION_INTERVAL_MS, timers, onFault });
}

/**
 * RFC7591-5-7: the ceiling is stored, so that the last one of open registration is known when the configuration has
 * none any more.
 */
export const startKeptCeilings = ({
  store,
  timers,
  settings,
  onFault,
}: Pick<RegistrationsOptions, "store" | "timers" | "settings" | "onFault">): PeriodicWork => {
  const work = async (): Promise<void> => {
    const { open } = settings().registration;
    if (open !== undefined) await store.registrations.keepCeiling(OWN_CLASSES.anybody, open);
  };
  return runPeriodically(work, { name: "ceilings", everyMs: RETENTION_INTERVAL_MS, timers, onFault });
};

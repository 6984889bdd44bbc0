/**
 * The first start on a store that is a copy: everything that was issued is ended, and no request is answered until every
 * assertion that may have been spent has expired. What was recorded after the copy is missing in it: spent assertions and
 * codes, used refresh tokens, endings.
 */
import type { AtStart } from "../adapters/store/open.ts";
import type { RestoredMark } from "../adapters/store/store.ts";
import { recordEnding } from "../flows/endings.ts";
import { ASSERTION_SECONDS_MAX } from "../limits/tokens.ts";
import type { Ports, Timers } from "../ports.ts";
import type { Settings } from "../settings/settings.ts";
import type { Log } from "./log.ts";

type RestoredOptions = {
  mark: RestoredMark;
  ports: Pick<Ports, "clock" | "hash" | "journal" | "settings">;
  timers: Timers;
  log: Log;
  stopped: AbortSignal;
  atStart: AtStart;
};

/** Resolves when requests may be answered. A process that ends before finds the mark again at its next start. */
export async function settleRestored(options: RestoredOptions): Promise<void> {
  const { mark, ports, timers, log, stopped, atStart } = options;
  const copiedMs = await atStart(() => mark.find());
  if (copiedMs === undefined) return;
  const settings = ports.settings();
  const waitSeconds = longestSingleUse(settings);
  const copied = new Date(copiedMs).toISOString();
  const message =
    `The store is a copy of ${copied}, and what was recorded after it is missing: withdrawn consents, removed and disabled ` +
    "clients, and what was used once. Every token that was issued before now is ended. For " +
    `${waitSeconds} s no request is answered, until assertions that may have been used have expired. Then compare consents ` +
    "and clients with what you know of the time since.";
  const policy = { digest: settings.policy.digest };
  for (const by of ["everything", "every_grant"] as const) {
    const of = { reason: "store_restored", policy, detail: { copied_at: copied } } as const;
    await atStart(() => recordEnding(ports, { by }, of));
  }
  log.tell({ level: "warning", event: "store_restored", message });
  await pause(1_000 * waitSeconds, timers, stopped);
  if (stopped.aborted) return;
  await atStart(() => mark.clear());
}

/** The longest time for which a JWT is accepted that is accepted once, with the tolerance for clocks of others. */
function longestSingleUse({ clientAssertionSeconds, trustedIssuers, clockSkewSeconds }: Settings): number {
  const vouched = [...trustedIssuers.values()].map(({ vouches }) =>
    vouches === undefined || vouches.reusable ? 0 : vouches.maxAgeSeconds,
  );
  return Math.max(ASSERTION_SECONDS_MAX, clientAssertionSeconds, ...vouched) + 2 * clockSkewSeconds;
}

/** Waits until the time has passed or the process is told to stop. */
async function pause(ms: number, timers: Timers, stopped: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  // Our timers do not keep the process alive, and nothing else may do so before it listens.
  const alive = setInterval(() => undefined, ms);
  const cancel = timers.after(ms, resolve);
  stopped.addEventListener("abort", () => resolve(), { once: true });
  if (stopped.aborted) resolve();
  await promise;
  cancel();
  clearInterval(alive);
}

/**
 * REPL-D-2: the policy in force, kept in the store by its digest, so that what it decided can be decided again. It is added
 * at the start and by a reload; each round notes that it still decides, and adds it where the store was away before.
 */
import { POLICY_UNUSED_SECONDS, RETENTION_INTERVAL_MS } from "../../limits/audit.ts";
import { policyText } from "../../policy/archive.ts";
import type { Clock, Timers } from "../../ports.ts";
import type { Settings } from "../../settings/settings.ts";
import { type PeriodicWork, runPeriodically } from "../periodic.ts";
import { removePaced } from "../store/paced-removal.ts";
import type { Store } from "../store/store.ts";

export type ArchiveOptions = {
  store: Pick<Store, "policies">;
  settings: () => Pick<Settings, "policy">;
  clock: Clock;
  timers: Timers;
  onFault: (text: string) => void;
};

export function startPolicyArchive({
  store,
  settings,
  clock,
  timers,
  onFault,
}: ArchiveOptions): PeriodicWork {
  const work = async (): Promise<void> => {
    const { issuer, digest, written } = settings().policy;
    const usedAtSeconds = clock.nowSeconds();
    if (await store.policies.use(digest, usedAtSeconds)) return;
    const body = [...policyText({ issuer, ...written })].join("");
    await store.policies.add({ digest, body, usedAtSeconds });
  };
  return runPeriodically(work, { name: "policy archive", everyMs: RETENTION_INTERVAL_MS, timers, onFault });
}

/** Removes what no event names any more: what was last in force some time before the first event that is left. */
export async function removePolicies(
  store: Pick<Store, "policies" | "audit" | "sliceMs">,
  closing: () => boolean,
): Promise<void> {
  const spans = (await store.audit.heads()).map(({ log, seq }) => ({ log, afterSeq: -1, toSeq: seq }));
  const firstMs = await store.audit.earliestMs(spans);
  if (firstMs === undefined) return;
  const before = Math.floor(firstMs / 1000) - POLICY_UNUSED_SECONDS;
  await removePaced(store, closing, (limit) => store.policies.sweep(before, limit));
}

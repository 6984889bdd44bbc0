/** The signing keys of this process: opened at the start, and looked at every few seconds. */
import type { OpenJournal } from "../adapters/audit/journal.ts";
import { type KeyRing, openKeyRing } from "../adapters/crypto/key-ring.ts";
import type { KeyCustody } from "../adapters/crypto/seal.ts";
import { type PeriodicWork, runPeriodically } from "../adapters/periodic.ts";
import type { Store } from "../adapters/store/store.ts";
import type { Watch } from "../http/operations.ts";
import { KEY_POLL_SECONDS } from "../limits/keys.ts";
import type { Clock, Timers } from "../ports.ts";
import { defined } from "../result.ts";
import { type KeyFacts, keysInUse, nextChange } from "../settings/key-life.ts";
import type { KeySchedule } from "../settings/sections.ts";
import type { Settings } from "../settings/settings.ts";
import { watchKeyService } from "./key-service.ts";
import type { Log } from "./log.ts";

type KeysOptions = {
  store: Store;
  journal: OpenJournal;
  custody: KeyCustody;
  settings: () => Settings;
  clock: Clock;
  timers: Timers;
  log: Log;
};

export type OpenedKeys = {
  ring: KeyRing;
  work: readonly PeriodicWork[];
  keyService: Watch["keyService"];
};

export async function openKeys({
  store,
  journal,
  custody,
  settings,
  clock,
  timers,
  log,
}: KeysOptions): Promise<OpenedKeys> {
  const watched = watchKeyService({ custody, clock, timers, log });
  const ring = await openKeyRing({
    store,
    custody: watched.custody,
    clock,
    uses: () => keysInUse(settings()),
    schedule: () => settings().keys,
    record: async (entry) => (await journal.record(entry)).ok,
    onUnusable: (message) => log.tell({ level: "error", event: "key_unusable", message }),
  });
  let works = true;
  const look = async (): Promise<void> => {
    try {
      await ring.renew();
      works = true;
    } catch (fault) {
      // The failure is told once, because the keys that are held sign on, and the next look comes soon.
      if (works) throw fault;
    }
  };
  const work = runPeriodically(look, {
    name: "the signing keys were not read again",
    everyMs: 1_000 * KEY_POLL_SECONDS,
    timers,
    onFault(message) {
      works = false;
      log.tell({ level: "warning", event: "keys_not_read", message });
    },
  });
  return { ring, work: [work, await watched.begin(ring.facts)], keyService: watched.state };
}

type WatchedKey = ReturnType<Watch["signingKeys"]>[number];

/** Retired keys are left out: there may be several of a kind, and nothing is to be done about them. */
export const signingKeysOf = (
  keys: readonly KeyFacts[],
  schedule: KeySchedule,
  nowSeconds: number,
): readonly WatchedKey[] =>
  keys
    .filter(({ state }) => state !== "retired")
    .map((key) => {
      const { purpose, alg, state, createdAtSeconds } = key;
      const changeAt = nextChange(key, keys, schedule);
      return defined<WatchedKey>({
        labels: { purpose, alg, state },
        ageSeconds: nowSeconds - createdAtSeconds,
        changeSeconds: changeAt === undefined ? undefined : changeAt - nowSeconds,
      });
    });

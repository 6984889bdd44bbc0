/** Signing keys of one purpose in a store, as the server has them; what changes them is recorded in a log of their own. */

import assert from "node:assert/strict";
import * as v from "valibot";
import { openJournal } from "../../src/adapters/audit/journal.ts";
import type { EncryptionKeys } from "../../src/adapters/crypto/encryption-keys.ts";
import { type KeyRing, openKeyRing } from "../../src/adapters/crypto/key-ring.ts";
import { random } from "../../src/adapters/crypto/random.ts";
import { type KeyCustody, sealedKeys } from "../../src/adapters/crypto/seal.ts";
import type { Store } from "../../src/adapters/store/store.ts";
import type { Clock, Signer } from "../../src/ports.ts";
import type { KeyPurpose } from "../../src/settings/key-life.ts";
import { KeySchedule } from "../../src/settings/sections.ts";

/** That of a configuration that says nothing of it. */
export const SCHEDULE = v.parse(KeySchedule, {});

export type RingOptions = {
  store: Store;
  encryptionKeys: EncryptionKeys;
  algorithms: readonly string[];
  clock: Clock;
  purposes: readonly KeyPurpose[];
  schedule?: KeySchedule;
  /** The name of the log, one for each instance. */
  log?: string;
  told?: string[];
  custody?: KeyCustody;
};

export function openRing({
  store,
  encryptionKeys,
  algorithms,
  clock,
  purposes,
  schedule = SCHEDULE,
  log = "keys",
  told = [],
  custody = sealedKeys(encryptionKeys),
}: RingOptions): Promise<KeyRing> {
  return openKeyRing({
    store,
    custody,
    clock,
    uses: () => purposes.flatMap((purpose) => algorithms.map((alg) => ({ purpose, alg }))),
    schedule: () => schedule,
    async record(entry) {
      // What was created is in the store; a change is written together with its event.
      if (entry.keys === undefined) return true;
      const journal = await openJournal({ log, store: store.log, clock, random, onFatal: assert.fail });
      const { ok } = await journal.record(entry);
      await journal.close();
      return ok;
    },
    onUnusable: (message) => void told.push(message),
  });
}

export async function openSigner(
  store: Store,
  encryptionKey: Uint8Array,
  algorithms: readonly string[],
  clock: Clock,
  purpose: KeyPurpose = "token",
): Promise<Signer> {
  const purposes = [purpose];
  const ring = await openRing({ store, encryptionKeys: [encryptionKey], algorithms, clock, purposes });
  return ring.signer(purpose);
}

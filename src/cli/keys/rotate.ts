/** `mandate keys rotate`: announced keys sign in place of the active ones, as soon as verifiers know them. */

import { clock } from "../../adapters/clock.ts";
import { type KeeperOptions, keepKeys, keyEvent } from "../../adapters/crypto/key-ring.ts";
import { checkKeys, KeysUnusable } from "../../adapters/crypto/seal.ts";
import type { KeyRow } from "../../adapters/store/store.ts";
import { EXIT } from "../../limits/process.ts";
import { type KeyPurpose, keysInUse, nextChange } from "../../settings/key-life.ts";
import { byOperator, recordAsAdmin } from "../admin-log.ts";
import type { Admin } from "../command.ts";
import { jsonLine, time, word } from "../text.ts";

export type Rotated = { purpose?: KeyPurpose; alg?: string; json: boolean };

export async function rotateKeys(admin: Admin, { purpose, alg, json }: Rotated): Promise<number> {
  const { store, settings, print, printError } = admin;
  const unusable = await whyUnusable(admin);
  if (unusable !== undefined) {
    printError(`${unusable}. Nothing was changed.`);
    return EXIT.refused;
  }
  const isMeant = (key: KeyRow): boolean =>
    // An auditor keeps the keys of checkpoints, so they change only where they are named.
    (purpose === undefined ? key.purpose !== "checkpoint" : key.purpose === purpose) &&
    (alg === undefined || key.alg === alg);
  const actives = (await store.keys.list()).filter((key) => key.state === "active" && isMeant(key));
  if (actives.length === 0) {
    printError('There is no active key of this kind; see "keys list".');
    return EXIT.refused;
  }
  for (const key of actives) {
    const event = keyEvent("key.rotation_ordered", "by_operator", key);
    const { kid } = key;
    const replaceAtSeconds = clock.nowSeconds();
    // The write has no effect where the key was replaced at this moment, which is what was asked for.
    await recordAsAdmin(store, {
      event: withOperator(admin, event),
      keys: [{ kid, from: "active", to: "active", replaceAtSeconds }],
    });
  }
  const keys = await keepKeys(keeperOf(admin));
  for (const old of actives) {
    const current = keys.find((key) => isSameKind(key, old) && key.state === "active");
    const next = keys.find((key) => isSameKind(key, old) && key.state === "announced");
    const changeAt = current?.kid === old.kid ? nextChange(current, keys, settings.keys) : undefined;
    const signs = changeAt === undefined ? current?.kid : next?.kid;
    if (json) print(jsonLine({ purpose: old.purpose, alg: old.alg, from: old.kid, to: signs, at: changeAt }));
    else print(describe(old, signs ?? "", changeAt));
  }
  return EXIT.done;
}

const isSameKind = (a: KeyRow, b: KeyRow): boolean => a.purpose === b.purpose && a.alg === b.alg;

const describe = ({ purpose, alg, kid }: KeyRow, signs: string, changeAt: number | undefined): string =>
  changeAt === undefined
    ? `${purpose} ${alg}: ${word(signs)} signs now in place of ${word(kid)}.`
    : `${purpose} ${alg}: ${word(signs)} is announced, and signs from ${time(changeAt * 1000)} on in place of ${word(kid)}.`;

/** Why this command must not make a key: with another key-encryption key no instance could open it. */
export async function whyUnusable({ store, custody }: Admin): Promise<string | undefined> {
  try {
    await checkKeys(await store.keys.list(), custody);
    return undefined;
  } catch (fault) {
    if (!(fault instanceof KeysUnusable)) throw fault;
    return fault.message;
  }
}

/** The work that is due in the life of keys, done by a command: its events are in the log of the commands. */
export const keeperOf = (admin: Admin): KeeperOptions => ({
  store: admin.store,
  custody: admin.custody,
  clock,
  uses: () => keysInUse(admin.settings),
  schedule: () => admin.settings.keys,
  record: ({ event, ...changes }) =>
    recordAsAdmin(admin.store, { ...changes, event: withOperator(admin, event) }),
});

/** AUDIT-D-4: every event names the policy in force. */
export const withOperator = ({ settings }: Admin, event: ReturnType<typeof keyEvent>) => ({
  ...event,
  ...byOperator(settings, event.detail),
  reason: event.reason,
});

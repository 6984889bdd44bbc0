/** `mandate keys reencrypt`: the stored signing keys are encrypted with the key-encryption key that replaces another. */
import { KeysUnusable, sealAnew } from "../../adapters/crypto/seal.ts";
import type { KeyChange } from "../../adapters/store/store.ts";
import { EXIT } from "../../limits/process.ts";
import { operatorEvent, recordAsAdmin } from "../admin-log.ts";
import type { Admin } from "../command.ts";
import { jsonLine } from "../text.ts";

export async function reencryptKeys(admin: Admin, json: boolean): Promise<number> {
  const { store, settings, encryptionKeys, print, printError } = admin;
  const rows = await store.keys.list();
  const keys: KeyChange[] = [];
  try {
    for (const row of rows) {
      const { kid, state, privateJwe: was } = row;
      const privateJwe = await sealAnew(row, encryptionKeys);
      if (privateJwe !== undefined) keys.push({ kid, from: state, to: state, was, privateJwe });
    }
  } catch (fault) {
    if (!(fault instanceof KeysUnusable)) throw fault;
    printError(`${fault.message}. Nothing was changed.`);
    return EXIT.refused;
  }
  const event = operatorEvent(settings, "key.reencrypted", { kids: keys.map(({ kid }) => kid) });
  if (keys.length > 0 && !(await recordAsAdmin(store, { event, keys }))) {
    printError("A key changed meanwhile, and nothing was written: try again.");
    return EXIT.refused;
  }
  if (json) {
    print(jsonLine({ reencrypted: keys.length, keys: rows.length }));
    return EXIT.done;
  }
  print(`Encrypted anew: ${keys.length} of ${rows.length} keys.`);
  print("No key in the store needs keys.otherEncryptionKey any more; backups of the store still need it.");
  return EXIT.done;
}

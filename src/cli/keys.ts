/** `mandate keys`: which of its forms was called, and with what. */

import { KeysUnusable, sealAnew } from "../adapters/crypto/seal.ts";
import type { KeyChange } from "../adapters/store/store.ts";
import { EXIT } from "../limits/process.ts";
import { defined, err, type Result } from "../result.ts";
import type { KeyPurpose } from "../settings/key-life.ts";
import { OWN_ALGORITHMS } from "../spec/rfc8725.ts";
import { operatorEvent, recordAsAdmin } from "./admin-log.ts";
import { type Admin, type Command, onFiles, onStore } from "./command.ts";
import { writeEncryptionKey } from "./keys/encryption-key.ts";
import { listKeys } from "./keys/list.ts";
import { type Rotated, rotateKeys } from "./keys/rotate.ts";
import { withdrawKey } from "./keys/withdraw.ts";
import type { CommandArguments } from "./options.ts";
import { jsonLine } from "./text.ts";

const PURPOSES: readonly KeyPurpose[] = ["token", "grant", "checkpoint", "signal"];

export function keysCommand(given: CommandArguments): Result<Command, string> {
  const [first = ""] = given.args;
  const json = given.has("json");
  switch (given.form) {
    case "rotate":
      return readRotation(given);
    case "withdraw":
      return onStore(given, (admin) =>
        withdrawKey(admin, { kid: first, dryRun: given.has("dry-run"), json }),
      );
    case "reencrypt":
      return onStore(given, (admin) => reencryptKeys(admin, json));
    case "new-encryption-key":
      return onFiles((terminal) => writeEncryptionKey(first, terminal));
    default:
      return onStore(given, (admin) => listKeys(admin, json));
  }
}

function readRotation(given: CommandArguments): Result<Command, string> {
  const [named, alg] = ["purpose", "alg"].map(given.one);
  const purpose = PURPOSES.find((one) => one === named);
  if (named !== undefined && purpose === undefined)
    return err(`--purpose is not one of ${PURPOSES.join(", ")}`);
  const algorithms: readonly string[] = OWN_ALGORITHMS;
  if (alg !== undefined && !algorithms.includes(alg))
    return err(`--alg is not one of ${algorithms.join(", ")}`);
  const which = defined<Rotated>({ purpose, alg, json: given.has("json") });
  return onStore(given, (admin) => rotateKeys(admin, which));
}

async function reencryptKeys(admin: Admin, json: boolean): Promise<number> {
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

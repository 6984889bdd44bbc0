/** `mandate keys`: which of its forms was called, and with what. */
import { defined, err, type Result } from "../result.ts";
import type { KeyPurpose } from "../settings/key-life.ts";
import { OWN_ALGORITHMS } from "../spec/rfc8725.ts";
import { type Command, onFiles, onStore } from "./command.ts";
import { writeEncryptionKey } from "./keys/encryption-key.ts";
import { listKeys } from "./keys/list.ts";
import { reencryptKeys } from "./keys/reencrypt.ts";
import { type Rotated, rotateKeys } from "./keys/rotate.ts";
import { withdrawKey } from "./keys/withdraw.ts";
import type { CommandArguments } from "./options.ts";

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

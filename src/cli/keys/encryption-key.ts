/** Makes key-encryption keys, and writes one into a file of its own. */
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { EXIT } from "../../limits/process.ts";
import type { Terminal } from "../command.ts";

export const makeSecret32 = (): string => randomBytes(32).toString("base64url");

/** It is not printed, because a terminal and its history keep what they show. */
export async function writeEncryptionKey(file: string, { print }: Terminal): Promise<number> {
  writeFileSync(file, makeSecret32(), { mode: 0o600, flag: "wx" });
  print(`Wrote ${file}: back it up apart from the database.`);
  print("A new server names it in keys.encryptionKey. One that has keys already needs both for a while:");
  print("name it in keys.otherEncryptionKey first, then swap the two, then run keys reencrypt.");
  return EXIT.done;
}

/** The `keys` section: the key-encryption key, and when signing keys change. */
import * as v from "valibot";
import { KEY_CACHE_SECONDS_MIN, KEY_POLL_SECONDS, KEY_RETIRE_SECONDS_MIN } from "../limits/keys.ts";
import { defined } from "../result.ts";
import { KeySchedule } from "../settings/sections.ts";
import type { KeyServicePlace } from "../settings/settings.ts";
import type { Reader } from "./reader.ts";
import type { ConfigFile } from "./schema.ts";

/** The key-encryption key; undefined where it cannot be used, which is a problem. */
export const readEncryptionKey = ({ keys }: ConfigFile, reader: Reader): Uint8Array | undefined =>
  readKey("keys.encryptionKey", keys.encryptionKey, reader);

/** The other key-encryption key, while one replaces the other. */
export function readOtherEncryptionKey(
  { keys: { otherEncryptionKey: from } }: ConfigFile,
  reader: Reader,
  encryptionKey: Uint8Array | undefined,
): Uint8Array | undefined {
  const path = "keys.otherEncryptionKey";
  const other = from === undefined ? undefined : readKey(path, from, reader);
  if (other === undefined || encryptionKey === undefined || !Buffer.from(other).equals(encryptionKey))
    return other;
  return reader.problem(
    path,
    "is the key in keys.encryptionKey: give the one that it replaces, or leave this out",
  );
}

/** The key service; undefined if there is none, and private keys are in the store, encrypted. */
export function readKeyService({ keys }: ConfigFile, reader: Reader): KeyServicePlace | undefined {
  const { service: from } = keys;
  if (from === undefined) return undefined;
  const path = "keys.service";
  const { authorization } = from;
  if (from.url.endsWith("/")) reader.problem(`${path}.url`, "ends with a slash");
  return defined<KeyServicePlace>({
    service: reader.readRemote(path, from),
    authorization: authorization && reader.readSecret(`${path}.authorization`, authorization),
  });
}

function readKey(
  path: string,
  from: ConfigFile["keys"]["encryptionKey"],
  { problem, readSecret }: Reader,
): Uint8Array | undefined {
  const encoded = readSecret(path, from);
  if (encoded === undefined) return undefined;
  const bytes = Buffer.from(encoded, "base64url");
  if (bytes.length === 32 && bytes.toString("base64url") === encoded) return bytes;
  return problem(
    path,
    'is not 32 bytes in base64url without padding: make one with "mandate keys new-encryption-key FILE"',
  );
}

/** RFC9068-4-12: what is too short for that leaves a verifier without the key of a token, so it is for trials alone. */
export function readKeySchedule({ keys, clockSkewSeconds }: ConfigFile, { weakness }: Reader): KeySchedule {
  const schedule = v.parse(KeySchedule, keys);
  const { rotateSeconds, announceSeconds, retireSeconds, cacheSeconds } = schedule;
  const least = (name: string, value: number, min: number, why: string): void => {
    if (value < min) weakness(`keys.${name}`, `is less than ${min}: ${why}`);
  };
  const spreadSeconds = cacheSeconds + KEY_POLL_SECONDS + clockSkewSeconds;
  least("cacheSeconds", cacheSeconds, KEY_CACHE_SECONDS_MIN, "every verifier would fetch the keys too often");
  least(
    "announceSeconds",
    announceSeconds,
    spreadSeconds,
    "a verifier may have fetched the keys before (cacheSeconds)",
  );
  least(
    "retireSeconds",
    retireSeconds,
    KEY_RETIRE_SECONDS_MIN,
    "a token may live as long, and longer by the clock skew",
  );
  least(
    "rotateSeconds",
    rotateSeconds,
    announceSeconds,
    "the next key is announced for as long (announceSeconds)",
  );
  return schedule;
}

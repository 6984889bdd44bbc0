/** The schema of the section `keys`. */
import * as v from "valibot";
import { PUBLISHED_SECONDS } from "../limits/connections.ts";
import {
  KEY_ANNOUNCE_SECONDS,
  KEY_CACHE_SECONDS_MAX,
  KEY_RETIRE_SECONDS,
  KEY_ROTATE_SECONDS,
  KEY_SECONDS_MAX,
} from "../limits/keys.ts";
import { remote, seconds, secret } from "./values.ts";

const span = (fallback: number, max = KEY_SECONDS_MAX) =>
  v.optional(v.pipe(seconds, v.maxValue(max)), fallback);

export const KeysFile = v.strictObject({
  encryptionKey: secret,
  /** Beside it while one replaces the other: it decrypts, and what is derived from it is accepted. */
  otherEncryptionKey: v.optional(secret),
  /** Makes the signing keys and signs with them. */
  service: v.optional(v.strictObject({ ...remote.entries, authorization: v.optional(secret) })),
  /** How long one key signs, is published before that, and is published after it. */
  rotateSeconds: span(KEY_ROTATE_SECONDS),
  announceSeconds: span(KEY_ANNOUNCE_SECONDS),
  retireSeconds: span(KEY_RETIRE_SECONDS),
  /** `max-age` of the key set. */
  cacheSeconds: span(PUBLISHED_SECONDS, KEY_CACHE_SECONDS_MAX),
});

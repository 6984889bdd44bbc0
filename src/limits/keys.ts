/** The signing keys of this server, and the key service that may hold them. */
import { ACCESS_TOKEN_SECONDS_MAX } from "./tokens.ts";

/** How long a key signs. */
export const KEY_ROTATE_SECONDS = 90 * 24 * 3600;
/** How long a key is published before it signs: long enough to replace every instance of the version before. */
export const KEY_ANNOUNCE_SECONDS = 24 * 3600;
/** How long a key is published after it has signed. The least is the longest life of a token and the largest skew. */
export const KEY_RETIRE_SECONDS = 7_200;
export const KEY_RETIRE_SECONDS_MIN = ACCESS_TOKEN_SECONDS_MAX + 60;
/** The most that each of these may be, and the least and the most for `max-age` of the key set. */
export const KEY_SECONDS_MAX = 400 * 24 * 3600;
export const KEY_CACHE_SECONDS_MIN = 60;
export const KEY_CACHE_SECONDS_MAX = 3600;
/** Each instance reads the keys in the store this often. */
export const KEY_POLL_SECONDS = 2;
/** A key at the key service is tried this often while it fails, and otherwise after so long without a signature. */
export const KEY_SERVICE_LOOK_MS = 5_000;
export const KEY_SERVICE_QUIET_MS = 60_000;
/** Failures in a row after which a key counts as one that does not sign. */
export const KEY_SERVICE_FAILURES_MAX = 3;
/** An answer of the key service. */
export const KEY_SERVICE_BYTES_MAX = 16 * 1024;
/**
 * A key is given up this long after the last instance had its algorithm in use; that it is in use is noted this often.
 */
export const KEY_UNUSED_SECONDS = 3600;
export const KEY_USED_LAG_SECONDS = 600;

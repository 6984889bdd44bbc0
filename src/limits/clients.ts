/** Clients: their secrets, their metadata and their registration. */

/** The least characters of a configured client secret, and the least bits that they are worth against guessing. */
export const CLIENT_SECRET_CHARS_MIN = 32;
export const CLIENT_SECRET_BITS_MIN = 96;
/** A client whose metadata document cannot be fetched is told to try again after this time. */
export const UNREACHABLE_SECONDS = 10;
/** The name of a client in its metadata. */
export const CLIENT_NAME_CHARS_MAX = 256;
/** Entries of one list in client metadata, and translations of one member. */
export const METADATA_LIST_MAX = 64;
/** The recorded time of a registered client's last token is updated at most this often. */
export const LAST_TOKEN_LAG_SECONDS = 3600;
/** The most registered clients of one class. */
export const CLIENTS_REGISTERED_MAX = 10_000;
/** A registered client is removed this long after its registration if it never got a token. */
export const CLIENT_UNUSED_SECONDS = 7 * 24 * 3600;
/**
 * The same for a client that asks users and came without an initial access token; it is shorter, because some register
 * before any click.
 */
export const CLIENT_UNUSED_SECONDS_OPEN = 24 * 3600;
/** A registered client is removed this long after its last token. */
export const CLIENT_IDLE_SECONDS = 90 * 24 * 3600;
export const REGISTRATION_CACHE_MAX = 1_000;
export const REGISTRATION_CACHE_BYTES_MAX = 16 * 1024 * 1024;
export const INITIAL_TOKEN_SECONDS = 24 * 3600;

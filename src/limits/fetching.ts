/** Documents that are fetched: key sets, trust bundles, metadata. */

/**
 * Interval between fetches of a remote document: the least, the default without a hint in the document, and the most.
 */
export const FETCHED_SECONDS_MIN = 30;
export const FETCHED_SECONDS = 300;
export const FETCHED_SECONDS_MAX = 3600;
/** Pause after a failed fetch. */
export const REFETCH_SECONDS = 30;
/**
 * The least time between the starts of early looks at one document for a key that its copy lacks, apart from scheduled
 * fetches.
 */
export const EARLY_LOOK_SECONDS = 5;
/**
 * The most requests from sources with recent failures that wait for an early look at one document; as many from other
 * sources may wait.
 */
export const EARLY_LOOK_WAITERS_MAX = 256;
/** How long the last good copy of a trust bundle or an issuer's key set is used while fetches fail. */
export const LAST_GOOD_SECONDS = 24 * 3600;
/** The same for a client's key set. */
export const CLIENT_LAST_GOOD_SECONDS = 3600;
/**
 * How much longer a copy of unknown age is used while fetches fail. Its age is unknown if it is from the future, or
 * from before a clock was set.
 */
export const UNKNOWN_AGE_SECONDS = 300;
export const FETCH_TIMEOUT_MS = 5_000;
export const KEY_SET_BYTES_MAX = 256 * 1024;
export const METADATA_BYTES_MAX = 64 * 1024;
/** Size of a client metadata document. */
export const DOCUMENT_BYTES_MAX = 5 * 1024;
/** Bytes of a response besides its content: header, interim responses, trailers, chunk framing. */
export const FETCHED_AROUND_BYTES_MAX = 64 * 1024;
/** Metadata documents in the cache, and the same number of key sets. */
export const FETCHED_CACHE_MAX = 1_000;
export const FETCHED_CACHE_BYTES_MAX = 16 * 1024 * 1024;
export const FETCHES_IN_FLIGHT_MAX = 64;
export const FETCHES_IN_FLIGHT_BY_HOST_MAX = 4;
export const FETCHES_IN_FLIGHT_BY_SOURCE_MAX = 8;
/** Addresses of one host that are tried. */
export const FETCH_ADDRESSES_MAX = 4;
/** Connections to one origin that wait to be used again, and how long one is used after it was opened. */
export const KEPT_CONNECTIONS_MAX = 16;
export const KEPT_CONNECTION_SECONDS = 60;
/** A request is sent again where its kept connection was closed within this time. */
export const KEPT_LOST_MS = 1_000;

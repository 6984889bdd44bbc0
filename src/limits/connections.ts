/** Connections, requests and answers, and the work for callers that have not proven themselves. */

export const HANDSHAKE_TIMEOUT_MS = 10_000;
export const HEADERS_TIMEOUT_MS = 10_000;
export const REQUEST_TIMEOUT_MS = 15_000;
/** The time from the end of a request to its answer, whatever its steps wait for. */
export const ANSWER_TIMEOUT_MS = 10_000;
/** The time from the begin of a token request for which it is held while no database server writes: with a rest to tell why. */
export const HELD_MS = 9_500;
/** Pause before it is looked again whether one does. */
export const HELD_LOOK_MS = 100;
/** The most requests that are held, and the bytes of their forms. */
export const HELD_REQUESTS_MAX = 1_024;
export const HELD_BYTES_MAX = 16 * 1024 * 1024;
/** An outage that has lasted so long holds no more requests. */
export const HELD_OUTAGE_MS_MAX = 60_000;
export const IDLE_TIMEOUT_MS = 20_000;
/** Interval at which connections are checked for these timeouts. */
export const CHECK_INTERVAL_MS = 1_000;
/** Time to read a response that was sent before the connection is closed. */
export const LINGER_MS = 1_000;
export const CONNECTION_AGE_MAX_MS = 300_000;
export const SHUTDOWN_TIMEOUT_MS = 10_000;
export const BODY_BYTES_MAX = 64 * 1024;
/** Bytes of a refused body that are read and discarded before the connection is cut. */
export const DISCARD_BYTES_MAX = 1024 * 1024;
export const HEADER_BYTES_MAX = 16 * 1024;
/** The limit on the listener for the proxy, which forwards certificates in header fields. */
export const PROXY_HEADER_BYTES_MAX = 48 * 1024;
/** Number of header fields. */
export const HEADERS_MAX = 64;
export const CONNECTIONS_MAX = 4096;
/**
 * Files that are open beside connections: the database, the log, the witness, what the platform needs, and a reserve.
 */
export const FILES_RESERVED = 64;
/** How often the log says that a listener refuses connections. */
export const CONNECTIONS_TOLD_MS = 60_000;
export const CONNECTIONS_PER_SOURCE_MAX = 256;
/** The limit on the listener for the proxy, whose connections count only until it has proven itself. */
export const PROXY_UNPROVEN_PER_SOURCE_MAX = 2048;
export const OPERATIONS_CONNECTIONS_MAX = 32;
export const REQUESTS_PER_CONNECTION_MAX = 1000;
/**
 * The CPU time that one verification is charged for in advance; path validation is not in it, because it is measured.
 */
export const PROOF_MS = 0.3;
/** The time from the begin of a verification to its refusal: as a rule longer than the look-ups for it take. */
export const FAILURE_MS = 10;
/** CPU time in each second that failed verifications may take. */
export const PROOFS_MS_PER_SECOND = 300;
/** The most callers from sources with recent failures that wait to be verified; as many from other sources may wait. */
export const PROOFS_WAITING_MAX = 512;
/** `max-age` of our own metadata, and of our key set unless it is configured. */
export const PUBLISHED_SECONDS = 300;
/** How long a browser may keep the answer to a preflight. */
export const PREFLIGHT_SECONDS = 600;

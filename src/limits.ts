/** Every limit and lifetime that is one for the whole service. Configuration may narrow some of them. */

// Lifetimes, in seconds.
export const ACCESS_TOKEN_SECONDS = 300;
export const ACCESS_TOKEN_SECONDS_MAX = 3600;
export const TOKEN_SECONDS_MIN = 5;
export const GRANT_SECONDS = 60;
export const GRANT_SECONDS_MAX = 300;
export const ASSERTION_SECONDS_MAX = 300;
export const SVID_SECONDS_MAX = 3600;
export const SKEW_SECONDS = 30;
export const FETCHED_SECONDS_MIN = 30;
export const FETCHED_SECONDS = 300;
export const FETCHED_SECONDS_MAX = 3600;
export const REFETCH_SECONDS = 30;
export const LAST_GOOD_SECONDS = 24 * 3600;
export const CLIENT_LAST_GOOD_SECONDS = 3600;
export const PUBLISHED_SECONDS = 300;

// Times, in milliseconds.
export const FETCH_TIMEOUT_MS = 5_000;
export const HANDSHAKE_TIMEOUT_MS = 10_000;
export const HEADERS_TIMEOUT_MS = 10_000;
export const REQUEST_TIMEOUT_MS = 15_000;
export const IDLE_TIMEOUT_MS = 20_000;
export const CHECK_INTERVAL_MS = 1_000;
export const LINGER_MS = 1_000;
export const CONNECTION_AGE_MAX_MS = 300_000;
export const STORE_TIMEOUT_MS = 5_000;
export const STORE_RETRY_MS = 1_000;
export const MIGRATION_TIMEOUT_MS = 60_000;
export const SHUTDOWN_TIMEOUT_MS = 10_000;

// Sizes.
export const BODY_BYTES_MAX = 64 * 1024;
export const DISCARD_BYTES_MAX = 1024 * 1024;
export const HEADER_BYTES_MAX = 16 * 1024;
export const PROXY_HEADER_BYTES_MAX = 48 * 1024;
export const HEADERS_MAX = 64;
export const CONNECTIONS_MAX = 4096;
export const CONNECTIONS_PER_SOURCE_MAX = 256;
export const OPERATIONS_CONNECTIONS_MAX = 32;
export const REQUESTS_PER_CONNECTION_MAX = 1000;
export const LOG_PATH_CHARS_MAX = 256;
export const JWT_BYTES_MAX = 16 * 1024;
export const ISSUED_TOKEN_BYTES_MAX = 6 * 1024;
export const KEY_SET_BYTES_MAX = 256 * 1024;
export const METADATA_BYTES_MAX = 64 * 1024;
export const KEYS_MAX = 64;
export const ACT_HOPS_MAX = 8;
export const ACT_BYTES_MAX = 8 * 1024;
export const JSON_DEPTH_MAX = 8;
export const CLAIMS_DEPTH_MAX = 16;
export const STRING_BYTES_MAX = 2 * 1024;
/** Of one claim that is carried over into a grant. */
export const CLAIM_VALUES_MAX = 64;
export const KID_CHARS_MAX = 256;
/** Entries of a list of client metadata, and members of it in other languages. */
export const METADATA_LIST_MAX = 64;
export const SPIFFE_ID_BYTES_MAX = 2048;
export const TRUST_DOMAIN_BYTES_MAX = 255;
export const RSA_BITS_MIN = 2048;
export const RSA_BITS_MAX = 4096;
export const CERTIFICATE_BYTES_MAX = 16 * 1024;
export const CERTIFICATES_SENT_MAX = 10;
/** Leaf and anchor included. */
export const CERTIFICATE_PATH_MAX = 5;
export const SIGNATURE_CHECKS_MAX = 20;
export const CERTIFICATES_KEPT_MAX = 1024;
/** Names of one path times the name constraints above them. */
export const NAME_CHECKS_MAX = 10_000;
export const DER_DEPTH_MAX = 16;

// Audit trail.
export const CHECKPOINT_EVENTS = 1_000;
export const CHECKPOINT_SECONDS = 60;
/** Other logs that one checkpoint names. */
export const CHECKPOINT_HEADS_MAX = 32;
export const RETENTION_DAYS = 400;
export const RETENTION_INTERVAL_MS = 300_000;
/** What has expired is kept for a while longer, on whatever clock. */
export const EXPIRED_KEPT_SECONDS = 3_600;
export const AUDIT_PAGE = 100;
export const AUDIT_PAGE_MAX = 1_000;
export const AUDIT_CURSOR_BYTES_MAX = 8 * 1024;

// Store.
export const STORE_CONNECTIONS_MAX = 10;
export const JOURNAL_BATCH_MAX = 256;
export const STORE_SWEEP_MAX = 1_000;
export const JOURNAL_PENDING_MAX = 10_000;

// Registration.
/** What is known of a registered client's last token may be so far behind. */
export const LAST_TOKEN_LAG_SECONDS = 3600;
export const CLIENTS_REGISTERED_MAX = 10_000;
export const CLIENT_UNUSED_SECONDS = 7 * 24 * 3600;
export const CLIENT_IDLE_SECONDS = 90 * 24 * 3600;
export const REGISTERED_KEPT_MAX = 1_000;
export const REGISTERED_KEPT_BYTES_MAX = 16 * 1024 * 1024;
export const INITIAL_TOKEN_SECONDS = 24 * 3600;

// What clients bring the URL of.
export const DOCUMENT_BYTES_MAX = 5 * 1024;
/** Header, interim answers, trailers and what stands between the chunks, beside the content itself. */
export const FETCHED_AROUND_BYTES_MAX = 64 * 1024;
/** Documents, and as many key sets. */
export const FETCHED_KEPT_MAX = 1_000;
export const FETCHED_KEPT_BYTES_MAX = 16 * 1024 * 1024;
export const FETCHES_IN_FLIGHT_MAX = 64;
export const FETCHES_IN_FLIGHT_BY_HOST_MAX = 4;
export const FETCHES_IN_FLIGHT_BY_SOURCE_MAX = 8;
/** Addresses of one name that are tried. */
export const FETCH_ADDRESSES_MAX = 4;

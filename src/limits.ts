/**
 * The limits and lifetimes of the whole service, the unit last in each name. Some of them can be changed by a setting.
 */

// Lifetimes, in seconds.
/** Lifetime of an access token, if its rule does not say. */
export const ACCESS_TOKEN_SECONDS = 300;
export const ACCESS_TOKEN_SECONDS_MAX = 3600;
/** A token that would expire sooner is not issued. */
export const TOKEN_SECONDS_MIN = 5;
/** Lifetime of an issued JWT authorization grant, if its rule does not say. */
export const GRANT_SECONDS = 60;
export const GRANT_SECONDS_MAX = 300;
/** Age and lifetime of a client assertion or of a grant that is redeemed. */
export const ASSERTION_SECONDS_MAX = 300;
/** The most that an operator may allow for a client assertion that is accepted once: some libraries make them so. */
export const CLIENT_ASSERTION_SECONDS_MAX = 3600;
/** Age of a DPoP proof without a nonce. */
export const PROOF_SECONDS_MAX = 60;
/** A new DPoP nonce is made this often, and one is accepted until the next but one is made. */
export const NONCE_SECONDS = 60;
/** Remaining lifetime of a JWT-SVID. */
export const SVID_SECONDS_MAX = 3600;
/** Clock difference that is tolerated between this server and others. */
export const SKEW_SECONDS = 30;
/** Interval between fetches of a remote document: at least, without a hint in the document, and at most. */
export const FETCHED_SECONDS_MIN = 30;
export const FETCHED_SECONDS = 300;
export const FETCHED_SECONDS_MAX = 3600;
/** Pause after a failed fetch. */
export const REFETCH_SECONDS = 30;
/** Between the starts of early looks at one document for a key that its copy lacks, apart from scheduled fetches. */
export const EARLY_LOOK_SECONDS = 5;
/** Requests that wait for an early look at one document: so many from sources with recent failures, and so many others. */
export const EARLY_LOOK_WAITERS_MAX = 256;
/** How long the last good copy of a trust bundle or an issuer's key set is used while fetches fail. */
export const LAST_GOOD_SECONDS = 24 * 3600;
/** The same for a client's key set. */
export const CLIENT_LAST_GOOD_SECONDS = 3600;
/** How much longer a copy of unknown age is used while fetches fail: one from the future, or from before a clock was set. */
export const UNKNOWN_AGE_SECONDS = 300;
/** How long a server that was told to stop serves on, so that balancers see that it is not ready. */
export const DRAIN_SECONDS = { production: 5, development: 0 };
export const DRAIN_SECONDS_MAX = 300;
/** `max-age` of our own metadata, and of our key set unless it is configured. */
export const PUBLISHED_SECONDS = 300;
/** How long a browser may keep the answer to a preflight. */
export const PREFLIGHT_SECONDS = 600;

// Signing keys.
/** How long a key signs. */
export const KEY_ROTATE_SECONDS = 90 * 24 * 3600;
/** How long a key is published before it signs: long enough to replace every instance of the version before. */
export const KEY_ANNOUNCE_SECONDS = 24 * 3600;
/** How long a key is published after it has signed, and the least: the longest life of a token and the largest skew. */
export const KEY_RETIRE_SECONDS = 7_200;
export const KEY_RETIRE_SECONDS_MIN = ACCESS_TOKEN_SECONDS_MAX + 60;
/** What each of these may be at most, and `max-age` of the key set at least and at most. */
export const KEY_SECONDS_MAX = 400 * 24 * 3600;
export const KEY_CACHE_SECONDS_MIN = 60;
export const KEY_CACHE_SECONDS_MAX = 3600;
/** Each instance reads the keys in the store this often. */
export const KEY_POLL_SECONDS = 2;
/** A key at the key service is tried this often while it fails, else where no signature was asked for so long. */
export const KEY_SERVICE_LOOK_MS = 5_000;
export const KEY_SERVICE_QUIET_MS = 60_000;
/** Failures in a row after which a key counts as one that does not sign. */
export const KEY_SERVICE_FAILURES_MAX = 3;
/** A key is given up this long after the last instance had its algorithm in use, and its use is noted this often. */
export const KEY_UNUSED_SECONDS = 3600;
export const KEY_USED_LAG_SECONDS = 600;

/** A user has this long to sign in and to decide, and may ask for as long again a few times (WCAG-2.2.1-1). */
export const REQUEST_SECONDS = 600;
export const RENEWALS_MAX = 10;
export const SIGN_IN_SECONDS = 600;
/** A session ends after so long without a page, and in any case. */
export const SESSION_IDLE_SECONDS = 900;
export const SESSION_SECONDS_MAX = 3600;
/** From the user's decision to the redemption (RFC6749-4.1.2-2). */
export const CODE_SECONDS = 60;
/** A code is remembered for as long as what it gave may live, so that a second use is noticed. */
export const CODE_KEPT_SECONDS = CODE_SECONDS + ACCESS_TOKEN_SECONDS_MAX;
/** From a pushed authorization request to the browser that brings its reference. */
export const PUSHED_SECONDS = 60;
/** Refresh tokens of a user who let the client go on without them: from the click, and without use. */
export const REFRESH_DAYS = 30;
export const REFRESH_DAYS_MAX = 90;
export const REFRESH_IDLE_DAYS = 7;
/** Refresh tokens of any other: from the click. */
export const REFRESH_HOURS = 12;
export const REFRESH_HOURS_MAX = 24;
/** After a rotation the token before it gives the same successor for so long, and so often. */
export const REFRESH_RETRY_SECONDS = 10;
export const REFRESH_RETRY_SECONDS_MAX = 60;
export const REFRESH_RETRIES_MAX = 5;
/** How often kept successors are looked for whose window is over. */
export const REFRESH_FORGET_MS = 30_000;
/** Families of one user for one client and target; the one that was used longest ago ends. */
export const FAMILIES_MAX = 20;
/** How long a consent lasts that a user gave on a page. */
export const CONSENT_DAYS = 90;
export const CONSENT_DAYS_MAX = 400;

// Times, in milliseconds.
export const FETCH_TIMEOUT_MS = 5_000;
/**
 * A sign-in provider that so often in a row was waited for in vain, for so long at least, is not asked for a while; then
 * one request tries it.
 */
export const PAUSE_FAILURES_MAX = 3;
export const PAUSE_SLOW_MS = 1_000;
export const PAUSE_MS = 30_000;
export const HANDSHAKE_TIMEOUT_MS = 10_000;
export const HEADERS_TIMEOUT_MS = 10_000;
export const REQUEST_TIMEOUT_MS = 15_000;
/** From the end of a request to its answer, whatever its steps wait for. */
export const ANSWER_TIMEOUT_MS = 10_000;
export const IDLE_TIMEOUT_MS = 20_000;
/** Interval at which connections are checked for these timeouts. */
export const CHECK_INTERVAL_MS = 1_000;
/** Time to read a response that was sent before the connection is closed. */
export const LINGER_MS = 1_000;
export const CONNECTION_AGE_MAX_MS = 300_000;
export const STORE_TIMEOUT_MS = 5_000;
/** How far the cut-off of an ending reaches into the future: what is being written at the same time is ended too. */
export const ENDING_REACH_MS = STORE_TIMEOUT_MS;
/** How long the start waits for the store. */
export const STORE_START_SECONDS = 60;
/** Pause before a database file that another process holds is tried again. */
export const STORE_BUSY_RETRY_MS = 10;
/** Pause before a database that did not answer is tried again. */
export const STORE_RETRY_MS = 1_000;
export const STORE_CONNECTS_WINDOW_MS = 1_200;
export const STORE_CONNECT_TIMEOUT_MS = 3_000;
/** Rounds of the digest of a password that a database may ask for: 250 ms, in which nothing else is done. */
export const SCRAM_ITERATIONS_MAX = 1_000_000;
/** Time beyond its own limit that a statement has to end before its connection is given up. */
export const STORE_GRACE_MS = 1_000;
/** Pause before connections to a server that does not write are all replaced again. */
export const STORE_RENEW_MS = 2_000;
export const MIGRATION_TIMEOUT_MS = 60_000;
/** How often a server looks whether its store went back. */
export const STORE_LOOK_MS = 1_000;
/** By how much the clock of this machine may differ from that of the database, and how often that is compared. */
export const CLOCK_DIFFERENCE_MS_MAX = 2_000;
export const CLOCK_LOOK_MS = 2_000;
/** How often a server looks whether the files of its configuration have changed. */
export const FILES_LOOK_MS = 10_000;
export const SHUTDOWN_TIMEOUT_MS = 10_000;
/** Pause before the log is written again after a failure, and after its pipe was full. */
export const LOG_RETRY_MS = 1_000;
export const LOG_PIPE_RETRY_MS = 10;

/** CPU time that one verification is charged for at once, path validation apart, which is measured. */
export const PROOF_MS = 0.3;
/** From the begin of a verification to its refusal: longer than the look-ups for it take, as a rule. */
export const FAILURE_MS = 10;
/** CPU time in each second that failed verifications may take. */
export const PROOFS_MS_PER_SECOND = 300;

/** How long the tokens are counted that an ending reaches, before the answer says that there may be more. */
export const ENDING_COUNT_MS = 3_000;

// Sizes.
export const BODY_BYTES_MAX = 64 * 1024;
/** Bytes of a refused body that are read and discarded before the connection is cut. */
export const DISCARD_BYTES_MAX = 1024 * 1024;
export const HEADER_BYTES_MAX = 16 * 1024;
/** On the listener for the proxy, which forwards certificates in header fields. */
export const PROXY_HEADER_BYTES_MAX = 48 * 1024;
/** Number of header fields. */
export const HEADERS_MAX = 64;
export const CONNECTIONS_MAX = 4096;
/** Files that are open beside connections: the database, the log, the witness, what the platform needs, and some more. */
export const FILES_RESERVED = 64;
/** How often it is told that a listener refuses connections. */
export const CONNECTIONS_TOLD_MS = 60_000;
export const CONNECTIONS_PER_SOURCE_MAX = 256;
/** On the listener for the proxy, whose connections count only until it has proven itself. */
export const PROXY_UNPROVEN_PER_SOURCE_MAX = 2048;
export const OPERATIONS_CONNECTIONS_MAX = 32;
export const REQUESTS_PER_CONNECTION_MAX = 1000;
/** Callers that wait to be verified: so many from sources with recent failures, and so many from others. */
export const PROOFS_WAITING_MAX = 512;
export const LOG_PATH_CHARS_MAX = 256;
/** The name that a proxy gives its client: an address, or a token of the proxy for it. */
export const FORWARDED_NODE_CHARS_MAX = 256;
/** Lines of the log that cannot be written wait up to this size; further ones are lost and counted. */
export const LOG_WAITING_BYTES_MAX = 1024 * 1024;
/** Of a configured client secret: its characters, and what they are worth against guessing. */
export const CLIENT_SECRET_CHARS_MIN = 32;
export const CLIENT_SECRET_BITS_MIN = 96;
export const JWT_BYTES_MAX = 16 * 1024;
export const ISSUED_TOKEN_BYTES_MAX = 12 * 1024;
export const KEY_SET_BYTES_MAX = 256 * 1024;
/** An answer of the key service. */
export const KEY_SERVICE_BYTES_MAX = 16 * 1024;
export const METADATA_BYTES_MAX = 64 * 1024;
export const KEYS_MAX = 64;
export const ACT_HOPS_MAX = 8;
export const ACT_BYTES_MAX = 8 * 1024;
export const JSON_DEPTH_MAX = 8;
export const CLAIMS_DEPTH_MAX = 16;
export const STRING_BYTES_MAX = 2 * 1024;
/** Values of one claim that is carried over into a grant. */
export const CLAIM_VALUES_MAX = 64;
/** `state` of an authorization request, which goes back to the client as it came. */
export const STATE_BYTES_MAX = 2 * 1024;
/** After so long a client is told to try again whose metadata document cannot be fetched. */
export const CLIENT_UNREACHABLE_SECONDS = 10;
/** The name of a client in its metadata. */
export const CLIENT_NAME_CHARS_MAX = 256;
/** A name of a client or a user, as a page shows it. */
export const NAME_CHARS_MAX = 64;
export const KID_CHARS_MAX = 256;
/** Tokens of one key whose valid signature is remembered; beyond it, the older half is forgotten. */
export const SIGNED_REMEMBERED_MAX = 4_096;
/** Tokens that came again and are kept as they read, and the length of their texts together. */
export const PARSED_REMEMBERED_MAX = 4_096;
export const PARSED_REMEMBERED_CHARS_MAX = 4 * 1024 * 1024;
export const PROOF_JTI_CHARS_MAX = 256;
/** Entries of one list in client metadata, and translations of one member. */
export const METADATA_LIST_MAX = 64;
export const SPIFFE_ID_BYTES_MAX = 2048;
export const TRUST_DOMAIN_BYTES_MAX = 255;
export const RSA_BITS_MIN = 2048;
export const RSA_BITS_MAX = 4096;
export const CERTIFICATE_BYTES_MAX = 16 * 1024;
/** Certificates that a peer may send, leaf included. */
export const CERTIFICATES_SENT_MAX = 10;
/** Certificates of a path, leaf and anchor included. */
export const CERTIFICATE_PATH_MAX = 5;
/** Signatures that are verified in search of one path. */
export const SIGNATURE_CHECKS_MAX = 20;
export const CERTIFICATE_CACHE_MAX = 1024;
/** Comparisons for one path: its names times the name constraints above them. */
export const NAME_CHECKS_MAX = 10_000;
export const DER_DEPTH_MAX = 16;

/** Parts of rules that are shared by all rules with the same ones. */
export const SHARED_VALUES_MAX = 1_000;

// Audit trail.
/** A checkpoint is signed after this many events or seconds. */
export const CHECKPOINT_EVENTS = 1_000;
export const CHECKPOINT_SECONDS = 60;
/** Other logs that one checkpoint names. */
export const CHECKPOINT_HEADS_MAX = 32;
/** The end of the witness file that is read at the start. */
export const WITNESS_READ_BYTES_MAX = 1024 * 1024;
/** Successive events of one log in a block of the index, at most. */
export const AUDIT_BLOCK_EVENTS = 1_024;
/** Events that are fewer get a block after this time, so that a log that is not written any more is indexed to its end. */
export const AUDIT_BLOCK_WAIT_SECONDS = 24 * 3600;
/** How often blocks are built, and how many of one log then; and how many times rows are removed that they replace. */
export const AUDIT_INDEX_INTERVAL_MS = 2_000;
export const AUDIT_BLOCKS_PER_ROUND = 16;
/** Blocks that one step of a search lists, opens at first and opens at most. */
export const AUDIT_BLOCKS_LISTED = 500;
export const AUDIT_BLOCKS_READ_MIN = 8;
export const AUDIT_BLOCKS_READ_MAX = 64;
/** Events that one step of a search, or of building a block, reads. */
export const AUDIT_EVENTS_READ = 128;
export const RETENTION_DAYS = 400;
export const RETENTION_INTERVAL_MS = 300_000;
/** Expired rows are removed this much later, so that clocks of instances may differ. */
export const EXPIRED_GRACE_SECONDS = 3_600;
/** Entries on one page of the audit API, by default and at most. */
export const AUDIT_PAGE = 100;
export const AUDIT_PAGE_MAX = 1_000;
/** Tokens on one page of those that an ending would end, by default and at most. */
export const ENDED_PAGE = 100;
export const ENDED_PAGE_MAX = 1_000;
/** Requests that one count of failed authentications or of introspection names. */
export const FAILED_REQUESTS_MAX = 8;
export const AUDIT_CURSOR_BYTES_MAX = 8 * 1024;

// Sign-in and authorization.
/** Sessions of one user; beyond it the oldest end. The same for codes. */
export const SESSIONS_PER_USER_MAX = 32;
export const CODES_PER_USER_MAX = 64;
/** An authorization request that waits in the browser, before it is encrypted: it stands in URLs, at the provider too. */
export const WAITING_BYTES_MAX = 3 * 1024;

// Consents for which users may be asked at the same time: by one agent, of one user, and by one of one.
export const PENDING_PER_ACTOR_MAX = 500;
export const PENDING_PER_SUBJECT_MAX = 32;
export const PENDING_PER_ACTOR_AND_SUBJECT_MAX = 4;

// The account page.
/** Consents and events on one page. */
export const ACCOUNT_CONSENTS = 20;
export const ACCOUNT_EVENTS = 20;
/** Events of the user that are read in one stretch, for one page, and to find when consents were used last. */
export const ACCOUNT_STRETCH = 50;
export const ACCOUNT_EVENTS_READ = 500;
export const ACCOUNT_USES_READ = 500;
/** Consents that are withdrawn in one stretch when a user takes back all of them. */
export const WITHDRAWN_AT_ONCE = 20;

// Store.
/** Pages in the write-ahead log of SQLite from which on a commit copies them back: as a rule, and after a removal. */
export const STORE_WAL_PAGES = { written: 1_000, removed: 250 };
/** Size of the write-ahead log of SQLite on disk, once no reader needs more of it. */
export const STORE_WAL_BYTES_MAX = 8 * 1024 * 1024;
export const STORE_CONNECTIONS_MAX = 10;
/** Connections to the database that are tried in one window: longer than a second, so that delays add up to no more. */
export const STORE_CONNECTS_MAX = 5;
/** How long an instance has its name without renewing it. */
export const LEASE_SECONDS = 5;
export const LEASE_SECONDS_MAX = 60;
/** Renewals in the time in which a lease lapses. */
export const NAME_RENEWALS = 4;
/** Pause before a name that another process has is tried again. */
export const NAME_RETRY_MS = 200;
/** Entries that the journal writes in one transaction. */
export const JOURNAL_BATCH_MAX = 256;
/** A batch waits for entries of other requests while turns of the event loop bring work, but no longer than this. */
export const JOURNAL_COMPANY_MS = 4;
/** A turn that took longer brought work. */
export const EMPTY_TURN_MS = 0.05;
/** Writes of unknown outcome that may still arrive. */
export const JOURNAL_DOUBTED_MAX = 1_000;
/** How long an ending is kept that also refuses foreign tokens issued before it. */
export const ENDING_KEPT_SECONDS = 400 * 24 * 3600;
/** Tokens that are looked through at once for those that an ending reaches. */
export const ENDING_STRETCH_MAX = 1_000;
/** Rows that one clean-up statement removes: at least, so that a busy machine makes progress, and at most. */
export const SLICE_ROWS_MIN = 16;
export const STORE_SWEEP_MAX = 1_000;
/** How long such a statement should take: SQLite holds the event loop meanwhile. The pause is a multiple of its time. */
export const SLICE_MS = { sqlite: 4, postgres: 50 };
export const SLICE_PAUSES = 2;
/** Entries that wait to be written; beyond it new ones are refused. */
export const JOURNAL_PENDING_MAX = 10_000;

// Registration.
/** The recorded time of a registered client's last token is updated at most this often. */
export const LAST_TOKEN_LAG_SECONDS = 3600;
/** Registered clients of one class. */
export const CLIENTS_REGISTERED_MAX = 10_000;
/** A registered client is removed this long after its registration if it never got a token. */
export const CLIENT_UNUSED_SECONDS = 7 * 24 * 3600;
/** The same for a client that asks users and came without an initial access token: some register before any click. */
export const CLIENT_UNUSED_SECONDS_OPEN = 24 * 3600;
/** A registered client is removed this long after its last token. */
export const CLIENT_IDLE_SECONDS = 90 * 24 * 3600;
export const REGISTRATION_CACHE_MAX = 1_000;
export const REGISTRATION_CACHE_BYTES_MAX = 16 * 1024 * 1024;
export const INITIAL_TOKEN_SECONDS = 24 * 3600;

// Documents whose URL a client supplies.
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

// For the operator.
export const DAY_SECONDS = 24 * 3600;
/** How long before its end a certificate or secret is warned of. */
export const END_WARNING_DAYS = 14;
/** The exit codes of the server and of every command. `refused`: the answer is no, and it is known. */
export const EXIT = { done: 0, refused: 1, unusable: 2, unavailable: 3 } as const;

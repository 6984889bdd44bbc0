/** Security events, sent and received (Shared Signals). */

/** A received event: more is not read. */
export const SIGNAL_BYTES_MAX = 16 * 1024;
/** Living tokens of one stream that an ending reaches, and that are told one by one; of more, the subjects are told. */
export const SIGNAL_TOKENS_MAX = 200;
/** How often an instance looks for events that are due, and for endings that other instances recorded. */
export const SIGNAL_INTERVAL_MS = 500;
/** Tokens are looked for once more after this time, because one may have been written beside the ending. */
export const SIGNAL_SECOND_LOOK_MS = 5_000;
/** Endings that one look takes up. */
export const SIGNAL_ENDINGS_MAX = 1_000;
/**
 * Events of one stream that wait, as each instance counts them; endings beyond that are looked at again when half of them
 * are delivered.
 */
export const SIGNALS_WAITING_MAX = 10_000;
/** Events that are on their way to one receiver at a time. */
export const SIGNAL_PUSHES_MAX = 4;
/** The answer of a receiver. */
export const SIGNAL_ANSWER_BYTES_MAX = 4 * 1024;
/** After this time another instance may send an event that was taken up and not settled. */
export const SIGNAL_LEASE_MS = 30_000;
/** The pause after a failure: the first, and the longest. */
export const SIGNAL_RETRY_MS = 1_000;
export const SIGNAL_RETRY_MS_MAX = 60_000;
/** The longest wait that a receiver may ask for. */
export const SIGNAL_RETRY_AFTER_SECONDS_MAX = 300;
/** Events of one issuer that are taken in a second, and at once. */
export const SIGNALS_PER_SECOND = 100;
export const SIGNALS_AT_ONCE = 200;
/** A stream is tested this often, and counts as unreachable after three tests without success. */
export const SIGNAL_TEST_SECONDS = 60;
export const SIGNAL_TESTS_MISSED = 3;
/** How far ahead of our clock a received event may have been signed; it may come at any time after that. */
export const SIGNAL_FUTURE_SECONDS = 30;
/** How long the id of a received event is remembered. */
export const SIGNAL_SEEN_SECONDS = 24 * 3600;
/** Users with one e-mail address whom one entry of the journal ends. */
export const EMAIL_SUBJECTS_MAX = 100;
/** Events of one stream that are signed and written at once, between which requests are served. */
export const SIGNALS_MADE_MAX = 50;

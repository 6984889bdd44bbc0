/** The audit trail: checkpoints, index, retention, pages. */

/** A checkpoint is signed after this many events or seconds. */
export const CHECKPOINT_EVENTS = 1_000;
export const CHECKPOINT_SECONDS = 60;
/** Other logs that one checkpoint names. */
export const CHECKPOINT_HEADS_MAX = 32;
/** The end of the witness file that is read at the start. */
export const WITNESS_READ_BYTES_MAX = 1024 * 1024;
/** The most successive events of one log in a segment of the index. */
export const AUDIT_SEGMENT_EVENTS = 1_024;
/** After this time fewer events get a segment too, so that a log that is not written any more is indexed to its end. */
export const AUDIT_SEGMENT_WAIT_SECONDS = 24 * 3600;
/** Events of this process whose terms are kept until their segment is built; those of further ones are read again. */
export const AUDIT_EVENTS_KEPT_MAX = 16 * AUDIT_SEGMENT_EVENTS;
/** Terms whose keys are remembered, because most of an event's terms are those of others too. */
export const TERM_KEYS_MAX = 2_048;
/** How often segments are built, and how many of one log then; as many times, rows of an older index are removed. */
export const AUDIT_INDEX_INTERVAL_MS = 2_000;
export const AUDIT_SEGMENTS_PER_ROUND = 16;
/** The segments that one step of a search looks through, that it opens at first, and that it opens at most. */
export const AUDIT_SEGMENTS_LISTED = 2_000;
export const AUDIT_SEGMENTS_READ_MIN = 8;
export const AUDIT_SEGMENTS_READ_MAX = 64;
/** Events that one step of a search, or of building a segment, reads. */
export const AUDIT_EVENTS_READ = 128;
export const RETENTION_DAYS = 400;
export const RETENTION_INTERVAL_MS = 300_000;
/** A policy that was last in force this long before the first event that is left decided none of those that are left. */
export const POLICY_UNUSED_SECONDS = 24 * 3600;
/** The consents of one user to one agent that the event of a decision names. */
export const FACTS_CONSENTS_MAX = 16;
/** Entries on one page of the audit API, by default and at most. */
export const AUDIT_PAGE = 100;
export const AUDIT_PAGE_MAX = 1_000;
/** When a receipt that no checkpoint covers is asked for again. */
export const RECEIPT_RETRY_SECONDS = 10;
/** The events that one page reads at most for filters that are no terms of the index. */
export const AUDIT_PAGE_READ_MAX = 10_000;
/** Requests that one count of failed authentications or of introspection names. */
export const FAILED_REQUESTS_MAX = 8;
/** How long an export from a copy waits there for the record of itself, and how often it looks. */
export const COPY_WAIT_MS = 5_000;
export const COPY_POLL_MS = 50;
export const AUDIT_CURSOR_BYTES_MAX = 8 * 1024;
/** How far back `mandate agents list` looks for the last use of a caller, unless it is told. */
export const CALLERS_SECONDS = 90 * 24 * 3600;
/** The newest events that it reads for callers that no record, rule or setting names. */
export const CALLERS_EVENTS_MAX = 50_000;
/** The newest events that `mandate tokens disabled` reads. */
export const DISABLED_EVENTS_MAX = 50_000;

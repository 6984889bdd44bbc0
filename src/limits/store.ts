/** The store, the names of instances and the journal. */

export const STORE_TIMEOUT_MS = 5_000;
/** How long the start waits for the store. */
export const STORE_START_SECONDS = 60;
/** Pause before a database file that another process holds is tried again. */
export const STORE_BUSY_RETRY_MS = 10;
/** Pause before a database that did not answer is tried again. */
export const STORE_RETRY_MS = 1_000;
/** The same for each of several servers: well below the second in which the next one that writes is to be found. */
export const STORE_TURN_MS = 400;
/** How often the start looks at which server answers a session: a proxy that takes turns at random is met. */
export const STORE_LOOKS = 20;
/** The most servers in a list. */
export const STORE_HOSTS_MAX = 8;
/**
 * The most connections to the database that are tried in one window, which is longer than a second so that delays add
 * up to no more.
 */
export const STORE_CONNECTS_MAX = 5;
export const STORE_CONNECTS_WINDOW_MS = 1_200;
export const STORE_CONNECT_TIMEOUT_MS = 3_000;
/**
 * The most rounds of the digest of a password that a database may ask for; they take 250 ms, in which nothing else is
 * done.
 */
export const SCRAM_ITERATIONS_MAX = 1_000_000;
/** Time beyond its own limit that a statement has to end before its connection is given up. */
export const STORE_GRACE_MS = 1_000;
/** Pause before connections to a server that does not write are all replaced again. */
export const STORE_RENEW_MS = 2_000;
export const MIGRATION_TIMEOUT_MS = 60_000;
/** How long a migration waits for a table; the pause before it tries again, and how often it does. */
export const MIGRATION_LOCK_MS = 500;
export const MIGRATION_PAUSE_MS = 200;
export const MIGRATION_TRIES_MAX = 60;
/** How often a server looks whether its store has lost records. */
export const STORE_LOOK_MS = 1_000;
/**
 * The pages in the write-ahead log of SQLite from which on a commit copies them back: as a rule, and after a removal.
 */
export const STORE_WAL_PAGES = { written: 1_000, removed: 250 };
/** Of the records of an instance that took something away, the latest are written again where the store loses them. */
export const CLOSINGS_KEPT_MAX = 1_024;
/** How often an instance tries that, each time after STORE_RETRY_MS, before it ends. */
export const WRITE_AGAIN_TRIES_MAX = 30;
/** Size of the write-ahead log of SQLite on disk, once no reader needs more of it. */
export const STORE_WAL_BYTES_MAX = 8 * 1024 * 1024;
export const STORE_CONNECTIONS_MAX = 10;
/** How long an instance has its name without renewing it. */
export const LEASE_SECONDS = 5;
export const LEASE_SECONDS_MAX = 60;
/** Renewals in the time in which a lease lapses. */
export const NAME_RENEWALS = 4;
/** Pause before a name that another process has is tried again. */
export const NAME_RETRY_MS = 200;
/** A statement whose unique key another instance takes each time is run so often. */
export const STORE_RUNS_MAX = 100;
/** Entries that the journal writes in one transaction. */
export const JOURNAL_BATCH_MAX = 256;
/** A batch waits for entries of other requests while turns of the event loop bring work, but at most for this time. */
export const JOURNAL_COMPANY_MS = 4;
/** On PostgreSQL it also waits for the callers of the last commit, at most for this part of the time that it took. */
export const JOURNAL_COMPANY_PART = 0.25;
/** A turn of the event loop that took longer than this brought work. */
export const EMPTY_TURN_MS = 0.05;
/** The most writes of unknown outcome that are remembered because they may still arrive. */
export const JOURNAL_DOUBTED_MAX = 1_000;
/** The most entries that wait to be written; beyond it new ones are refused. */
export const JOURNAL_PENDING_MAX = 10_000;
/** Tokens that are looked through at once for those that an ending reaches. */
export const ENDING_STRETCH_MAX = 1_000;
/** Expired rows are removed this much later, so that clocks of instances may differ. */
export const EXPIRED_GRACE_SECONDS = 3_600;
/** The rows that one clean-up statement removes: the least, so that a busy machine makes progress, and the most. */
export const SLICE_ROWS_MIN = 16;
export const STORE_SWEEP_MAX = 1_000;
/**
 * How long such a statement should take, because SQLite holds the event loop meanwhile. The pause after it is a
 * multiple of its time.
 */
export const SLICE_MS = { sqlite: 4, postgres: 50 };
export const SLICE_PAUSES = 2;

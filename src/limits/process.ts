/** The process: its end, its clock, its files, its log, its exit codes. */

/** How long a server that was told to stop keeps serving, so that balancers see that it is not ready. */
export const DRAIN_SECONDS = { production: 5, development: 0 };
export const DRAIN_SECONDS_MAX = 300;
/** By how much the clock of this machine may differ from that of the database, and how often that is compared. */
export const CLOCK_DIFFERENCE_MS_MAX = 2_000;
export const CLOCK_LOOK_MS = 2_000;
/** How long `mandate check` waits for the process that holds a port to show what it is. */
export const HOLDER_TIMEOUT_MS = 2_000;
/** How often a server looks whether the files of its configuration have changed. */
export const FILES_LOOK_MS = 10_000;
/** How often the log tells in full what is not available. */
export const FAULT_TOLD_MS = 1_000;
/** Pause before the log is written again after a failure, and after its pipe was full. */
export const LOG_RETRY_MS = 1_000;
export const LOG_PIPE_RETRY_MS = 10;
export const LOG_PATH_CHARS_MAX = 256;
/** Lines of the log that cannot be written wait up to this size; further ones are lost and counted. */
export const LOG_WAITING_BYTES_MAX = 1024 * 1024;
/** The most parts of rules that are kept to be shared by all rules with the same ones. */
export const SHARED_VALUES_MAX = 1_000;
export const DAY_SECONDS = 24 * 3600;
/** How long before its end a certificate or secret causes a warning. */
export const END_WARNING_DAYS = 14;
/** The exit codes of the server and of every command; `refused` means that the answer is no, and is known. */
export const EXIT = { done: 0, refused: 1, unusable: 2, unavailable: 3 } as const;
/** What `mandate probe` waits for an answer, and reads of one. */
export const PROBE_TIMEOUT_MS = 10_000;
export const PROBE_BYTES_MAX = 256 * 1024;

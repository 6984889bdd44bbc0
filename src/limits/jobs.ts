/** Jobs: how long they last and how many there are. */

/** How long a job lasts if what asks for it does not say, and at most (JOB-D-2). */
export const JOB_SECONDS = 24 * 3600;
export const JOB_SECONDS_MAX = 30 * 24 * 3600;
/** How long a job is kept once it is over, so that what was done for it can be told. */
export const JOB_KEPT_SECONDS = 90 * 24 * 3600;
/** What asks for a job: its whole text, and the names in one of its lists. */
export const JOB_REQUEST_BYTES_MAX = 4 * 1024;
export const JOB_NAMES_MAX = 20;
export const JOB_TOKENS_MAX = 1_000_000;
/** Jobs on one page of a list. */
export const JOBS_LISTED = 100;
/** JOB-D-24: the most jobs of one agent that live at the same time, and of these for one user. */
export const JOBS_PER_AGENT_MAX = 10_000;
export const JOBS_PER_AGENT_AND_SUBJECT_MAX = 50;
/** JOB-D-3: the words of the asker. */
export const JOB_TITLE_CHARS_MAX = 200;
/** The tokens of one job that a command prints. */
export const JOB_TOKENS_SHOWN = 1_000;

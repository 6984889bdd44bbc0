/** Users: signing in, deciding on a page, refresh tokens, the account page. */
import { ACCESS_TOKEN_SECONDS_MAX } from "./tokens.ts";

/** The time that a user has to sign in and to decide, and how often they may ask for as long again (WCAG-2.2.1-1). */
export const REQUEST_SECONDS = 600;
export const RENEWALS_MAX = 10;
export const SIGN_IN_SECONDS = 600;
/** A session ends after this time without a page, and after this time in any case. */
export const SESSION_IDLE_SECONDS = 900;
export const SESSION_SECONDS_MAX = 3600;
/** The most sessions of one user, and the most codes; beyond them the oldest end. */
export const SESSIONS_PER_USER_MAX = 32;
/** The time from the user's decision to the redemption (RFC6749-4.1.2-2). */
export const CODE_SECONDS = 60;
/** A code is remembered for as long as what it gave may live, so that a second use is noticed. */
export const CODE_KEPT_SECONDS = CODE_SECONDS + ACCESS_TOKEN_SECONDS_MAX;
export const CODES_PER_USER_MAX = 64;
/** The time from a pushed authorization request to the browser that brings its reference. */
export const PUSHED_SECONDS = 60;
/** `state` of an authorization request, which goes back to the client as it came. */
export const STATE_BYTES_MAX = 2 * 1024;
/**
 * The size of an authorization request that waits in the browser, before it is encrypted; it is small, because it
 * stands in URLs, at the provider too.
 */
export const WAITING_BYTES_MAX = 3 * 1024;
/** A logo of the operator: the file, each side of the picture, and for how long a browser keeps it. */
export const LOGO_BYTES_MAX = 32 * 1024;
export const LOGO_PIXELS_MAX = 1024;
export const LOGO_CACHE_SECONDS = 24 * 3600;
/** A name of a client or a user, as a page shows it. */
export const NAME_CHARS_MAX = 64;
/** An identifier above the buttons is whole up to this length; of a longer one its authority is shown, and so much of its end. */
export const ID_CHARS_BRIEF = 100;
export const ID_CHARS_END = 40;
/** The names of a chain in one line; beyond it the agents between are counted. */
export const CHAIN_CHARS_MAX = 240;
/**
 * After so many requests in a row that waited for a sign-in provider in vain, each for at least this time, the provider
 * is not asked for a while; then one request tries it.
 */
export const PAUSE_FAILURES_MAX = 3;
export const PAUSE_SLOW_MS = 1_000;
export const PAUSE_MS = 30_000;
/** How long refresh tokens of a user last who let the client go on without them: from the click, and without use. */
export const REFRESH_DAYS = 30;
export const REFRESH_DAYS_MAX = 90;
export const REFRESH_IDLE_DAYS = 7;
/** How long other refresh tokens last, from the click. */
export const REFRESH_HOURS = 12;
export const REFRESH_HOURS_MAX = 24;
/** How long after a rotation the token before it still gives the same successor. */
export const REFRESH_RETRY_SECONDS = 10;
export const REFRESH_RETRY_SECONDS_MAX = 60;
/** The most rotations of one family within that time, since each is noted; after that the family waits. */
export const REFRESH_ROTATIONS_MAX = 64;
/** After this time a refresh may come again whose token was replaced a moment ago, or that lost to others. */
export const REFRESH_WAIT_SECONDS = 1;
/** How often successors are looked for that were kept and whose window is over. */
export const REFRESH_FORGET_MS = 30_000;
/** The most families of one user for one client and target; beyond it the one that was used longest ago ends. */
export const FAMILIES_MAX = 20;
/** After this time without a word of the user's provider, a refresh asks it first. */
export const RECHECK_SECONDS = 15 * 60;
export const RECHECK_SECONDS_MAX = 24 * 3600;
/**
 * How much longer refresh tokens serve while the provider does not answer; at least as long as an answer may take, since
 * one request asks and the others go on.
 */
export const RECHECK_GRACE_SECONDS = 3600;
export const RECHECK_GRACE_SECONDS_MIN = 10;
export const RECHECK_GRACE_SECONDS_MAX = 7 * 24 * 3600;
/** How long refresh tokens serve after the last sign-in of a user whose provider cannot be asked. */
export const RECHECK_UNASKED_SECONDS = 24 * 3600;
/** A provider is asked about one user at most this often, whatever comes of it. */
export const RECHECK_AGAIN_SECONDS = 30;
/**
 * How long a request waits for the answer to the question of another one, and how often it looks: longer than a fetch may
 * take.
 */
export const RECHECK_WAIT_MS = 6_000;
export const RECHECK_LOOK_MS = 100;
/** How long a consent lasts that a user gave on a page. */
export const CONSENT_DAYS = 90;
export const CONSENT_DAYS_MAX = 400;
/**
 * The most consents for which users may be asked at the same time: by one agent, of one user, and by one agent of one
 * user.
 */
export const PENDING_PER_ACTOR_MAX = 500;
export const PENDING_PER_SUBJECT_MAX = 32;
export const PENDING_PER_ACTOR_AND_SUBJECT_MAX = 4;
/**
 * How long a client that waits for its user may poll, and how long at least, or its request is not deferred; and the
 * codes that wait for the answer to one question.
 */
export const DEFERRAL_SECONDS = 3600;
export const DEFERRAL_SECONDS_MIN = 30;
export const DEFERRAL_SECONDS_SET_MIN = 60;
export const DEFERRAL_SECONDS_SET_MAX = 24 * 3600;
export const DEFERRALS_PER_QUESTION_MAX = 4;
/** How long an ended code is told from an unknown one. */
export const DEFERRAL_KEPT_SECONDS = 3600;
/** A question that was refused, or cancelled so often, is not opened for a client that waits for so long. */
export const REFUSED_SECONDS = 3600;
export const CANCELS_MAX = 3;
/** The time between two polls, by how much each one that comes sooner raises it, and to how much. */
export const POLL_SECONDS = 10;
export const POLL_RAISE_SECONDS = 5;
export const POLL_SECONDS_MAX = 60;
/** The codes of which one instance knows the last poll; beyond it the one that was polled first is forgotten. */
export const POLLS_KNOWN_MAX = 20_000;
/** Consents and events on one page. */
export const ACCOUNT_CONSENTS = 20;
/** So often is the store read for them, where most belong to jobs. */
export const STANDING_READS_MAX = 10;
export const ACCOUNT_EVENTS = 20;
/**
 * The events of the user that are read in one stretch, and the most for one page and for finding when consents were
 * used last.
 */
export const ACCOUNT_STRETCH = 50;
export const ACCOUNT_EVENTS_READ = 500;
export const ACCOUNT_USES_READ = 500;
/** The days of which the account page tells more than the list of events: those of a week, in any zone. */
export const ACCOUNT_LATELY_DAYS = 8;
/** Consents that are withdrawn in one stretch when a user takes back all of them. */
export const WITHDRAWN_AT_ONCE = 20;

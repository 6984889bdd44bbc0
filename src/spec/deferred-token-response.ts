/**
 * OAuth 2.0 Deferred Token Response, draft-ietf-oauth-deferred-token-response-01:
 * https://datatracker.ietf.org/doc/html/draft-ietf-oauth-deferred-token-response-01
 * Covers 5.1 the wish to wait, 6.4 the code, 6.5 the poll, 8.4 the type of the code.
 * Elsewhere: DTR 4.1 people/flows/poll.ts; DTR 5 people/flows/ask-instead.ts; DTR 5.1 config/config.ts,
 * spec/rfc8414.ts; DTR 5.2 people/flows/redeem-code.ts, people/records.ts; DTR 5.3 spec/rfc6749.ts; DTR 6.3
 * people/flows/ask-instead.ts; DTR 6.4 http/errors.ts, http/form.ts, people/flows/ask-user.ts, people/flows/asked.ts,
 * people/flows/deferrals.ts; DTR 6.5 people/flows/deferrals.ts; DTR 6.6 http/errors.ts, people/flows/deferrals.ts; DTR
 * 8.2 flows/people.ts, flows/revoke.ts, http/errors.ts, people/flows/cancel-deferral.ts; DTR 8.4 spec/rfc8414.ts; DTR
 * 11.1 http/revoke.ts, people/flows/deferrals.ts; DTR 11.3 http/errors.ts, people/adapters/polls.ts; DTR 11.7
 * http/errors.ts, people/flows/poll.ts; DTR 11.8 people/flows/deferrals.ts; DTR 12.2 people/flows/defer.ts; DTR D
 * flows/issued-entry.ts, flows/options/refresh-and-deferral.ts, flows/people.ts, http/errors.ts, http/form.ts,
 * people/audit/own-events.ts, people/flows/ask-instead.ts, people/flows/ask-user.ts, people/flows/asked.ts,
 * people/flows/cancel-deferral.ts, people/flows/defer.ts, people/flows/deferrals.ts, people/flows/poll.ts,
 * people/http/account.ts, people/pages/account-page.ts.
 */
import { err, ok, type Result } from "../result.ts";
import type { Form } from "./rfc6749.ts";

export const DRAFT = "draft-ietf-oauth-deferred-token-response-01";

export const DEFERRED = "urn:ietf:params:oauth:grant-type:deferred";

/** DTR-8.4-1: the type of a code, by which a client cancels it. */
export const DEFERRAL_CODE = "urn:ietf:params:oauth:token-type:deferral-code";

// --- the request (5) --------------------------------------------------------------------------------------------

/** DTR-5-1, DTR-5.1-1: whether the client can wait; values that are not known say nothing. */
export const canWait = ({ completion_mode: mode }: Pick<Form, "completion_mode">): boolean =>
  mode?.split(" ").includes("deferred") ?? false;

// --- the code (6.4) ---------------------------------------------------------------------------------------------

const PREFIX = "mdc_";

/** DTR-6.4-2, DTR-4.1-2: a code holds 256 random bits in base64url, and nothing else. */
export const buildDeferralCode = (secret: string): string => `${PREFIX}${secret}`;

/** Whether the text has the form of a code of ours. */
export const isDeferralCode = (text: string): boolean => /^mdc_[A-Za-z0-9_-]{43}$/.test(text);

// --- the poll (6.5) ---------------------------------------------------------------------------------------------

/** What a poll holds: the code, and what authenticates its client. */
const OF_POLL: readonly string[] = [
  "grant_type",
  "deferral_code",
  "client_id",
  "client_secret",
  "client_assertion_type",
  "client_assertion",
];

type PollFailure = { kind: "deferral_code_missing" } | { kind: "poll_repeats_request"; parameter: string };

/** DTR-6.5-4: what the client asked for stands since the first request, so that a poll cannot change it. */
export function parsePoll(form: Form): Result<string, PollFailure> {
  const { deferral_code: code } = form;
  if (code === undefined) return err({ kind: "deferral_code_missing" });
  const extra = Object.entries(form).find(([name, value]) => value.length > 0 && !OF_POLL.includes(name));
  return extra === undefined ? ok(code) : err({ kind: "poll_repeats_request", parameter: extra[0] });
}

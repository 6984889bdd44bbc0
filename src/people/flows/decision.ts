/** A user decides on a page of ours: what the page is bound to, what was offered, and what of it the form gives. */

import type { Reason } from "../../audit/reasons.ts";
import type { AuditedRequest } from "../../flows/refusal.ts";
import { RENEWALS_MAX, REQUEST_SECONDS } from "../../limits/people.ts";
import type { Consent } from "../../policy/access.ts";
import { unaskedRules } from "../../policy/closure.ts";
import type { ProposedJob } from "../../policy/jobs.ts";
import type { Caller, SubjectRule, Target } from "../../policy/rules.ts";
import type { Result } from "../../result.ts";
import { defined } from "../../result.ts";
import type { RefreshSettings } from "../../settings/settings.ts";
import type { Detail } from "../../spec/rfc9396.ts";
import type { PeoplePorts } from "../ports.ts";
import type { PagePlace } from "../records.ts";
import type { Outcome } from "./outcome.ts";
import { countedNotice } from "./outcome.ts";
import type { OpenSession } from "./session.ts";
import { SIGN_OUT } from "./sign-out.ts";

/** What the browser brings: the digests of its two cookies, which are absent where it has none of our form. */
export type Visitor = { browser?: string; session?: string };

/** The form of a page, as it was sent. */
export type Decision = {
  allows: boolean;
  scopes: readonly string[];
  /** The objects of the details that are ticked, by their places. */
  details: readonly number[];
  /** The box that takes every scope. */
  all: boolean;
  /** The box that PAGE-D-8 requires. */
  confirmed: boolean;
  formToken: string;
};

export type Offered = {
  target: Target;
  scope: readonly string[];
  details?: readonly Detail[];
  job?: ProposedJob;
};

/** What of it a form gives. */
export type Given = { scopes: readonly string[]; details?: readonly Detail[] };

/** What waits for a decision of this session: `about` is the id that its form tokens are bound to. */
export type Waits = { about: string; place: PagePlace & { id: string }; session: OpenSession };

/** The rules ask no user. */
export type Without = { consents: readonly Consent[]; rules: readonly SubjectRule[] };

/** What a page shows on which a user decides. */
export type DecisionPage<O extends Offered> = {
  next: "page";
  /** The id of the request, as the URL of the page has it. */
  id: string;
  session: OpenSession;
  offer: O;
  /** The form token, which is bound to session and request, and to what the page shows (PAGE-D-5). */
  formToken: string;
  /** JOB-D-5: beside a job, the consents and the rules by which its agent may act without it. */
  without?: Without;
  /** The form token of a sign-out. */
  signOutToken: string;
  expiresAtSeconds: number;
  renewable: boolean;
};

/** `refresh` says how long refresh tokens that come of it are good. */
export function showOffer<O extends Offered>(
  ports: Pick<PeoplePorts, "settings" | "formTokens">,
  { about, place, session }: Waits,
  offer: O,
  { renewals, expiresAtSeconds }: { renewals: number; expiresAtSeconds: number },
  refresh?: RefreshSettings,
): DecisionPage<O> {
  const tokenOf = (subject: string): string => ports.formTokens.of(session.key, subject);
  return {
    next: "page",
    id: place.id,
    session,
    offer,
    formToken: `${tokenOf(about)}.${tokenOf(shownOn(ports, about, offer, refresh))}`,
    signOutToken: tokenOf(SIGN_OUT),
    expiresAtSeconds,
    renewable: renewals < RENEWALS_MAX,
  };
}

/**
 * PAGE-D-11, REFRESH-D-1: what the user is told that a click gives, and for how long; the settings may change before
 * the click.
 */
const shownOn = (
  { settings }: Pick<PeoplePorts, "settings">,
  about: string,
  { target, scope, details, job }: Offered,
  refresh: RefreshSettings | undefined,
): string => {
  const consentSeconds = settings().signIn?.consentSeconds;
  const shown = ["shown", about, target.names[0], scope, consentSeconds, refresh];
  const more = [details, job].filter((one) => one !== undefined);
  return JSON.stringify([...shown, ...more]);
};

/** What the agent may do without the job that it asks for, which a stop of the job does not end (JOB-D-5). */
export async function withoutJob(
  { facts, clock, settings }: Pick<PeoplePorts, "facts" | "clock" | "settings">,
  { origin }: OpenSession,
  actor: string,
  caller: Omit<Caller, "mode">,
  job: ProposedJob | undefined,
): Promise<Without | undefined> {
  if (job === undefined) return undefined;
  const standing = await facts.consents(origin, actor, clock.nowSeconds());
  return {
    consents: standing.filter(({ jobId }) => jobId === undefined),
    rules: unaskedRules(settings().policy, origin, caller),
  };
}

/** WCAG-2.2.1-1: gives the user as much time again, a limited number of times; undefined after the last of them. */
export const renewed = <T extends { renewals: number; expiresAtSeconds: number }>(
  { clock }: Pick<PeoplePorts, "clock">,
  waits: T,
): T | undefined =>
  waits.renewals >= RENEWALS_MAX
    ? undefined
    : {
        ...waits,
        renewals: waits.renewals + 1,
        expiresAtSeconds: clock.nowSeconds() + REQUEST_SECONDS,
      };

// --- the form ---------------------------------------------------------------------------------------------------

/** What a page asks of this flow: `offer` is decided anew, as policy and client may have changed since it was shown. */
type Decidable<O extends Offered, P> = Waits & {
  offer: Result<O, { reason: Reason }>;
  /** Called as for `showOffer`. */
  refreshOf?: (offer: O) => RefreshSettings | undefined;
  /** Shows the page again, where a box is missing without which nothing is given. */
  lacks?: (offer: O) => P | undefined;
  refuse(reason: Reason): Promise<Outcome>;
  give(offer: O, given: Given): Promise<Outcome>;
};

export async function decideOffer<O extends Offered, P = never>(
  ports: Pick<PeoplePorts, "settings" | "formTokens" | "authFailures">,
  audited: AuditedRequest,
  { allows, scopes, details: ticked, all, formToken }: Omit<Decision, "confirmed">,
  { about, place, session, offer, refreshOf, lacks, refuse, give }: Decidable<O, P>,
): Promise<Outcome | P> {
  const [made = "", shown = ""] = formToken.split(".");
  const foreign = checkForm(ports, audited, session, { formToken: made, about });
  if (foreign !== undefined) return foreign;
  if (!allows) return refuse("user_refused");
  if (!offer.ok) return refuse(offer.error.reason);
  const seen = shownOn(ports, about, offer.value, refreshOf?.(offer.value));
  const changed = checkForm(ports, audited, session, { formToken: shown, about: seen }, place);
  if (changed !== undefined) return changed;
  const again = lacks?.(offer.value);
  if (again !== undefined) return again;
  // PAGE-D-11: only what was offered and ticked is given.
  const { scope, details } = offer.value;
  const given = defined<Given>({
    scopes: scope.filter((one) => all || scopes.includes(one)),
    details: details?.filter((_, index) => ticked.includes(index)),
  });
  // RAR-D-3: without any object of a type, it would be given without limit.
  const isLost = details?.some(({ type }) => !given.details?.some((one) => one.type === type)) ?? false;
  return given.scopes.length === 0 || isLost ? refuse("nothing_ticked") : give(offer.value, given);
}

/**
 * PAGE-D-5, RFC6749-10.12-1: undefined for a form that was made for this session and about this, because no other page
 * can have sent it.
 */
export function checkForm(
  ports: Pick<PeoplePorts, "formTokens" | "authFailures">,
  audited: AuditedRequest,
  { key }: OpenSession,
  { formToken, about }: { formToken: string; about: string },
  onwards?: PagePlace,
): Outcome | undefined {
  if (ports.formTokens.accepts(formToken, key, about)) return undefined;
  return countedNotice(ports, audited, "form_refused", "form_token_wrong", onwards);
}

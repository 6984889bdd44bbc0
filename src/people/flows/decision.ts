/** A user decides on a page of ours: what the page is bound to, what was offered, and what of it the form gives. */

import type { Reason } from "../../audit/reasons.ts";
import type { AuditedRequest } from "../../flows/refusal.ts";
import { RENEWALS_MAX, REQUEST_SECONDS } from "../../limits/people.ts";
import type { Consent, JobInForce, Origin } from "../../policy/access.ts";
import { unaskedRules } from "../../policy/closure.ts";
import type { PolicySet, Target } from "../../policy/rules.ts";
import type { Worded } from "../../policy/worded.ts";
import type { Result } from "../../result.ts";
import { namingOf } from "../../settings/agents.ts";
import type { RefreshSettings } from "../../settings/settings.ts";
import type { Json } from "../../spec/rfc8259.ts";
import {
  type Asker,
  type Choice,
  endOfGiven,
  type Given,
  givenOf,
  type Lack,
  type PermissionsAt,
  permissionsBy,
  replacedBy,
  standingFor,
  type Ticked,
} from "../policy/permissions.ts";
import type { PeoplePorts } from "../ports.ts";
import type { PagePlace } from "../records.ts";
import { furtherAgentsOf, type Offered } from "./offer.ts";
import { countedNotice, type Outcome } from "./outcome.ts";
import type { OpenSession } from "./session.ts";
import { SIGN_OUT } from "./sign-out.ts";

/** What the browser brings: the digests of its two cookies, which are absent where it has none of our form. */
export type Visitor = { browser?: string; session?: string };

/** The form of a page, as it was sent. */
export type Decision = Ticked & {
  allows: boolean;
  /** The box that PAGE-D-8 requires. */
  confirmed: boolean;
  formToken: string;
};

/** Why a form is shown again, with nothing decided: a box is missing. */
export type Problem = Lack | "unconfirmed";

/** PAGE-D-43: the boxes that were ticked are shown ticked again. */
export type FormError = { problem: Problem; ticked: Ticked & { confirmed: boolean } };

/** What waits for a decision of this session: `about` is the id that its form tokens are bound to. */
export type Waits = {
  about: string;
  place: PagePlace & { id: string };
  session: OpenSession;
  /** The parties that the page names as those that ask, with what they call themselves. */
  by: readonly { id: string; claimedName?: Worded }[];
};

/** What a page shows on which a user decides. */
export type DecisionPage<O extends Offered> = Partial<FormError> & {
  next: "page";
  /** The id of the request, as the URL of the page has it. */
  id: string;
  session: OpenSession;
  offer: O;
  /** The form token, which is bound to session and request, and to what the page shows (PAGE-D-5). */
  formToken: string;
  /** The form token of a sign-out. */
  signOutToken: string;
  expiresAtSeconds: number;
  renewable: boolean;
};

/** `refresh` says how long refresh tokens that come of it are good. */
export function showOffer<O extends Offered>(
  ports: Pick<PeoplePorts, "settings" | "formTokens">,
  waits: Waits,
  offer: O,
  { renewals, expiresAtSeconds }: { renewals: number; expiresAtSeconds: number },
  refresh?: RefreshSettings,
): DecisionPage<O> {
  const { about, place, session } = waits;
  const tokenOf = (subject: string): string => ports.formTokens.of(session.key, subject);
  return {
    next: "page",
    id: place.id,
    session,
    offer,
    formToken: `${tokenOf(about)}.${tokenOf(shownOn(ports, waits, offer, refresh))}`,
    signOutToken: tokenOf(SIGN_OUT),
    expiresAtSeconds,
    renewable: renewals < RENEWALS_MAX,
  };
}

/**
 * PAGE-D-11, PAGE-D-45, REFRESH-D-1: all that the page says of what a click gives: to which parties, in which words, and
 * for how long; the settings may change before the click.
 */
const shownOn = (
  { settings }: Pick<PeoplePorts, "settings">,
  { about, by, session }: Waits,
  offer: Offered,
  refresh: RefreshSettings | undefined,
): string => {
  const { agents, policy, signIn } = settings();
  const { choice, job, inJob, denied, kept, without } = offer;
  const further = furtherAgentsOf(policy, offer, session);
  const named = [...by, ...[...choice.agents, ...further.map((id) => ({ id }))]];
  const at = ({ target, name, permissions }: PermissionsAt) => [
    ...[name, target.title, target.partner?.jobs],
    permissions,
  ];
  const said = [
    ["shown", about, shownIn(choice), signIn?.consentSeconds, refresh, job, inJob, denied, further],
    named.map(({ id, claimedName }: Waits["by"][number]) => [id, namingOf(agents, id, claimedName)]),
    choice.at.map(({ target, limits }) => [
      ...[target.title, target.partner?.jobs],
      limits.map(({ detail }) => target.details.get(detail.type)),
    ]),
    kept && [kept.permissions, kept.consent.expiresAtSeconds],
    without && [without.already.map(at), without.unasked.map(at)],
    choice.unasked.map((one) => one.at.map(at)),
  ];
  return JSON.stringify(said, (_, value: unknown) => (value instanceof Map ? [...value] : value));
};

/** JOB-D-5: the boxes with their words, and whom they are for. */
export const shownIn = ({ at, agents, unasked }: Choice): Json => {
  const shown = at.map(({ target, ...boxes }) => [target.names[0], boxes]);
  const beside = unasked.map((one) => [
    one.agent,
    one.at.map(({ name, permissions }) => [name, permissions]),
  ]);
  return [shown, agents.map(({ id, may }) => [id, [...may]]), beside] as unknown as Json;
};

export const endsAt = (
  { settings, clock }: Pick<PeoplePorts, "settings" | "clock">,
  offer: Offered,
): number => endOfGiven(clock.nowSeconds(), settings().signIn?.consentSeconds ?? 0, offer);

/** What stands already, of which the page tells: what the click changes, and what a stop of the job does not end (JOB-D-5). */
export function withStanding<O extends Offered & { target: Target; scope: readonly string[] }>(
  policy: PolicySet,
  origin: Origin,
  asker: Asker,
  standing: readonly Consent[],
  offer: O,
  inJob?: JobInForce,
): O {
  if (offer.job === undefined) {
    const { target, scope, choice } = offer;
    const limits = choice.at[0]?.limits ?? [];
    const details = limits.length === 0 ? undefined : limits.map(({ detail }) => detail);
    const kept = replacedBy(policy, standing, { target, scope, details, job: inJob });
    return kept === undefined || kept.permissions.length === 0 ? offer : { ...offer, kept };
  }
  const already = standing
    .filter(({ jobId }) => jobId === undefined)
    .flatMap((consent) => standingFor(policy, origin, asker, consent));
  return {
    ...offer,
    without: { already, unasked: permissionsBy(policy, unaskedRules(policy, origin, asker)) },
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
type Decidable<O extends Offered, P, R> = Waits & {
  offer: Result<O, { reason: Reason }>;
  /** Called as for `showOffer`. */
  refreshOf?: (offer: O) => RefreshSettings | undefined;
  /** Whether the user ticked what they have to confirm, on a page that asks for it. */
  confirmed: boolean;
  /** Shows the page again, where a box is missing without which nothing is given. */
  again(offer: O, error: FormError): P | Promise<P>;
  refuse(reason: Reason): Promise<R>;
  give(offer: O, given: Given): Promise<R>;
};

export async function decideOffer<O extends Offered, P, R = Outcome>(
  ports: Pick<PeoplePorts, "settings" | "formTokens" | "authFailures">,
  audited: AuditedRequest,
  { allows, formToken, ...ticked }: Omit<Decision, "confirmed">,
  { offer, refreshOf, confirmed, again, refuse, give, ...waits }: Decidable<O, P, R>,
): Promise<Outcome | P | R> {
  const { about, place, session } = waits;
  const [made = "", shown = ""] = formToken.split(".");
  const foreign = checkForm(ports, audited, session, { formToken: made, about });
  if (foreign !== undefined) return foreign;
  if (!allows) return refuse("user_refused");
  if (!offer.ok) return refuse(offer.error.reason);
  const seen = shownOn(ports, waits, offer.value, refreshOf?.(offer.value));
  const changed = checkForm(ports, audited, session, { formToken: shown, about: seen }, place);
  if (changed !== undefined) return changed;
  const given = givenOf(offer.value.choice, ticked, offer.value.job?.bounds);
  const lacks = (problem: Problem) =>
    again(offer.value, { problem, ticked: { ...ticked, confirmed: confirmed } });
  // PAGE-D-11: a box that is missing decides nothing; the page asks for it.
  if (!confirmed) return lacks("unconfirmed");
  return given.ok ? give(offer.value, given.value) : lacks(given.error);
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

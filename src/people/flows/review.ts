/** The page on which a user decides about a client's request: who sees it, and what it shows. */

import { findClient } from "../../flows/find-client.ts";
import type { AuditedRequest } from "../../flows/refusal.ts";
import { CODE_SECONDS } from "../../limits/people.ts";
import { SKEW_SECONDS } from "../../limits/tokens.ts";
import type { Allowed, Denied } from "../../policy/access.ts";
import { isFor } from "../../policy/rules.ts";
import type { BasePorts } from "../../ports.ts";
import { defined } from "../../result.ts";
import type { Client, RefreshSettings } from "../../settings/settings.ts";
import type { AskingClientPorts, DecisionPorts, PeoplePorts } from "../ports.ts";
import type { DecisionRecord, PendingRequest } from "../records.ts";
import { isOnComputer } from "../spec/rfc6749-authorization.ts";
import { type DecisionPage, showOffer, type Visitor, type Waits } from "./decision.ts";
import { comesWithRefresh, type ReviewOffer } from "./offer.ts";
import { countedNotice, type Outcome } from "./outcome.ts";
import { redirectOf } from "./read-authorization.ts";
import { findSession, type OpenSession } from "./session.ts";

/** What the page shows. */
export type Review = DecisionPage<ReviewOffer> & {
  client: Client;
  redirectUri: string;
  /** PAGE-D-8: anything may be behind the client, so the user confirms that they began this themselves. */
  mustConfirm: boolean;
  /**
   * Present if refresh tokens come of it; `asksOffline` says that the client asks to go on without the user, and
   * `visitSeconds` how often they have to sign in here for that, where their provider cannot be asked (RECHECK-D-4).
   */
  refresh?: { asksOffline: boolean; visitSeconds?: number };
  /** Why the client asks, in its own words. */
  reason?: string;
  /** The languages of the user, as the client knows them. */
  uiLocales?: string;
};

/**
 * A request of this browser, about which this session may decide; `place` is the page with the request as the browser
 * has it.
 */
export type Found = Waits & { request: PendingRequest; client: Client };

export type ReviewPorts = AskingClientPorts &
  DecisionPorts &
  Pick<PeoplePorts, "successors" | "waiting" | "jobs">;

export function showReview(ports: DecisionPorts, found: Found, offer: ReviewOffer): Review {
  const { request, client, session } = found;
  const { redirectUri, wishes, reason, offline = false } = request;
  const unaskedSeconds = session.unasked ? ports.settings().signIn?.recheck.unaskedSeconds : undefined;
  const refresh = refreshOf(ports, client, offer);
  return defined<Review>({
    ...showOffer(ports, found, offer, request, refresh),
    client,
    redirectUri,
    mustConfirm: mustConfirm(client, redirectUri),
    refresh: refresh && defined({ asksOffline: offline, visitSeconds: unaskedSeconds }),
    uiLocales: wishes.uiLocales,
    reason,
  });
}

/** REFRESH-D-1: how long refresh tokens that come of it are good. */
export const refreshOf = (
  { settings }: BasePorts,
  client: Client,
  offer: Allowed,
): RefreshSettings | undefined => (comesWithRefresh(client, offer) ? settings().signIn?.refresh : undefined);

/** PAGE-D-8, MCPC-D-10 */
export const mustConfirm = ({ source }: Client, redirectUri: string): boolean =>
  source === "registration" || isOnComputer(redirectUri);

/** The request, if it is this browser's and undecided, its client as it is now, and the session that may decide about it. */
export async function findRequest(
  ports: ReviewPorts,
  audited: AuditedRequest,
  id: string,
  { browser, session: cookie }: Visitor,
): Promise<Found | Outcome> {
  const nowSeconds = ports.clock.nowSeconds();
  const place = { page: "review", id } as const;
  // PAGE-D-4: the request opens in no other browser.
  const request = browser && ports.waiting.open("request", browser, id, nowSeconds);
  if (!request) return countedNotice(ports, audited, "request_gone", "request_unknown");
  const session = await findSession(ports, cookie);
  const decided = await ports.shortLived.find("decision", request.id, nowSeconds);
  if (decided !== undefined && !mayRepeat(decided.body, session, nowSeconds)) {
    return countedNotice(ports, audited, "request_decided", "request_decided");
  }
  if (session === undefined || needsSignIn(ports, request, session)) return { next: "sign_in", place };
  // RFC9126-7.4-1: the client is read as it is now, since it may have been removed or changed meanwhile.
  const client = await findClient(ports, request.clientId, audited.source_ip);
  if (!client.ok) {
    const { reason, unreachable } = client.error;
    return countedNotice(ports, audited, unreachable ? "client_unreachable" : "client_unknown", reason);
  }
  // PAGE-D-13: the redirect URI is checked again, because a code must not go to a place that the client no longer has.
  const redirect = redirectOf(ports, client.value, request.redirectUri);
  if (!redirect.ok) return countedNotice(ports, audited, "redirect_refused", redirect.error.kind);
  return { about: request.id, place, by: partiesOf(client.value), request, client: client.value, session };
}

const partiesOf = ({ clientId: id, claimedName }: Client): Waits["by"] => [
  defined<Waits["by"][number]>({ id, claimedName }),
];

/**
 * The answer to a click may have been lost: the page is shown again in its own session, for as long as a code is good.
 */
export const mayRepeat = (
  { session, atSeconds }: DecisionRecord,
  visitor: OpenSession | undefined,
  nowSeconds: number,
): boolean => session === visitor?.key && nowSeconds < atSeconds + CODE_SECONDS;

/** OIDC-D-5: the user signs in anew, or has done so recently, where the client asks for it; once for each request. */
function needsSignIn(
  ports: BasePorts,
  { wishes, session: signedInBy }: PendingRequest,
  session: OpenSession,
): boolean {
  if (signedInBy === session.key) return false;
  const { prompt, maxAgeSeconds } = wishes;
  if (prompt.includes("login") || prompt.includes("select_account")) return true;
  if (maxAgeSeconds === undefined) return false;
  const { authTimeSeconds } = session;
  return (
    authTimeSeconds === undefined || authTimeSeconds + maxAgeSeconds + SKEW_SECONDS < ports.clock.nowSeconds()
  );
}

/**
 * OIDC-D-7: the user signs in as the rule demands it, once for each request; the provider is asked for what the rule
 * names.
 */
export function demandSignIn(
  { settings }: BasePorts,
  { session: _, ...request }: PendingRequest,
  { trace }: Denied,
): PendingRequest | undefined {
  if (request.demanded) return undefined;
  // PCL-D-8: what the provider said of the user may be too old, which another sign-in mends.
  const demanding = trace.find(({ failed }) => failed === "sign_in" || failed === "claims_too_old");
  const rule = settings().policy.rules.get(demanding?.rule ?? "");
  if (rule === undefined || !isFor(rule, "code")) return undefined;
  const { wishes } = request;
  const demanded = {
    ...wishes,
    prompt:
      demanding?.failed === "sign_in" ? [...new Set([...wishes.prompt, "login" as const])] : wishes.prompt,
    acrValues: rule.acr ?? wishes.acrValues,
  };
  // The sign-in that was done for this request is not enough, so it does not count as done.
  return { ...request, wishes: demanded, demanded: true };
}

/** GET /authorize (RFC 6749 3.1), and GET and POST /authorize/review, the page on which the user decides. */

import type { Handler, HttpRequest, HttpResponse } from "../../http/handler.ts";
import type { Ports } from "../../ports.ts";
import { defined } from "../../result.ts";
import type { RefreshSettings } from "../../settings/settings.ts";
import { authorize } from "../flows/authorize.ts";
import { decideReview, openReview } from "../flows/decide-review.ts";
import { furtherAgents } from "../flows/offer.ts";
import type { Review } from "../flows/review.ts";
import type { ConsentView } from "../pages/consent-page.ts";
import { consentPage } from "../pages/consent-page.ts";
import { isOnComputer } from "../spec/rfc6749-authorization.ts";
import { idOf, MALFORMED, minutesUntil, readDecision, shownScopes, visitorOf } from "./decision-form.ts";
import { knownAs, shownTarget, shownUser } from "./known-as.ts";
import {
  hostOf,
  knowBrowser,
  onPage,
  outcomeAnswer,
  pageAnswer,
  redirectAnswer,
  signInUrl,
} from "./page-answers.ts";

export function authorizeEndpoint(ports: Ports): Handler {
  return onPage(ports, async ({ request, note, rawQuery }) => {
    const { browser, remember } = knowBrowser(ports, request);
    return remember(outcomeAnswer(ports, await authorize(ports, note, rawQuery, browser)));
  });
}

export function reviewEndpoint(ports: Ports): Handler {
  return onPage(ports, async ({ request, note, query }) => {
    const id = idOf(query);
    const renew = query.get("renew") === "1";
    const review = await openReview(ports, note, id, visitorOf(ports, request), renew);
    return answer(ports, request, review);
  });
}

export function decideEndpoint(ports: Ports): Handler {
  return onPage(ports, async ({ request, note, signIn, query }) => {
    const decision = await readDecision(request);
    if (decision === undefined) return outcomeAnswer(ports, MALFORMED);
    const review = await decideReview(ports, signIn, note, idOf(query), visitorOf(ports, request), decision);
    return answer(ports, request, review);
  });
}

type Reviewed = Awaited<ReturnType<typeof openReview | typeof decideReview>>;

function answer(ports: Ports, request: HttpRequest, review: Reviewed): HttpResponse {
  switch (review.next) {
    case "page":
      return knowBrowser(ports, request).remember(
        pageAnswer(ports, consentPage(viewOf(ports, review)), "consent", review.uiLocales),
      );
    case "sign_in":
      return redirectAnswer(
        ports,
        signInUrl(ports.settings().issuer, { page: "review", id: review.request }),
      );
    default:
      return outcomeAnswer(ports, review);
  }
}

/** PAGE-D-6 */
function viewOf({ settings, clock }: Ports, review: Review & { problem?: "unconfirmed" }): ConsentView {
  const { issuer, policy, signIn } = settings();
  const { client, offer, session, redirectUri, expiresAtSeconds } = review;
  const { target, scope } = offer;
  const loopback = isOnComputer(redirectUri);
  const nowSeconds = clock.nowSeconds();
  const known = knownAs(client);
  return defined<ConsentView>({
    client: known,
    claimedName: "operatorName" in known ? undefined : client.title,
    redirectHost: hostOf(redirectUri),
    loopback,
    differs: "host" in known && !loopback && hostOf(redirectUri) !== known.host,
    mustConfirm: review.mustConfirm,
    target: shownTarget(target, offer.audience),
    scopes: shownScopes(target, scope),
    refresh: signIn && review.refresh && { ...shownTimes(signIn.refresh), ...review.refresh },
    untilSeconds: nowSeconds + (signIn?.consentSeconds ?? 0),
    agents: furtherAgents(policy, target, scope, session),
    user: shownUser(session),
    formToken: review.formToken,
    signOutToken: review.signOutToken,
    request: review.id,
    base: issuer,
    minutesLeft: minutesUntil(expiresAtSeconds, nowSeconds),
    renewable: review.renewable,
    problem: review.problem,
  });
}

const shownTimes = ({ seconds, idleSeconds, briefSeconds }: RefreshSettings) => ({
  hours: Math.floor(briefSeconds / 3600),
  days: Math.floor(seconds / 86_400),
  idleDays: Math.floor(idleSeconds / 86_400),
});

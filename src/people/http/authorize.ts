/** GET /authorize (RFC 6749 3.1), and GET and POST /authorize/review, the page on which the user decides. */

import type { Handler, HttpRequest, HttpResponse } from "../../http/handler.ts";
import type { BasePorts } from "../../ports.ts";
import { defined } from "../../result.ts";
import type { RefreshSettings } from "../../settings/settings.ts";
import { type AuthorizePorts, authorize } from "../flows/authorize.ts";
import { decideReview, openReview } from "../flows/decide-review.ts";
import type { Review, ReviewPorts } from "../flows/review.ts";
import { type ConsentView, consentPage } from "../pages/consent-page.ts";
import type { ShownTimes } from "../pages/texts-en.ts";
import type { PagePorts } from "../ports.ts";
import { isOnComputer } from "../spec/rfc6749-authorization.ts";
import { decisionView, idOf, MALFORMED, readDecision, visitorOf } from "./decision-form.ts";
import { shownParty } from "./known-as.ts";
import { hostOf, knowBrowser, onPage, outcomeAnswer, pageAnswer } from "./page-answers.ts";

export function authorizeEndpoint(ports: PagePorts & AuthorizePorts): Handler {
  return onPage(ports, async ({ request, audited, rawQuery }) => {
    const { browser, remember } = knowBrowser(ports, request);
    return remember(outcomeAnswer(ports, await authorize(ports, audited, rawQuery, browser)));
  });
}

export function reviewEndpoint(ports: PagePorts & ReviewPorts): Handler {
  return onPage(ports, async ({ request, audited, query }) => {
    const id = idOf(query);
    const renew = query.get("renew") === "1";
    const review = await openReview(ports, audited, id, visitorOf(ports, request), renew);
    return answer(ports, request, review);
  });
}

export function decideEndpoint(ports: PagePorts & ReviewPorts): Handler {
  return onPage(ports, async ({ request, audited, query }) => {
    const decision = await readDecision(request);
    if (decision === undefined) return outcomeAnswer(ports, MALFORMED);
    const visitor = visitorOf(ports, request);
    const review = await decideReview(ports, audited, idOf(query), visitor, decision);
    return answer(ports, request, review);
  });
}

type Reviewed = Awaited<ReturnType<typeof openReview | typeof decideReview>>;

function answer(ports: BasePorts, request: HttpRequest, review: Reviewed): HttpResponse {
  if (review.next !== "page") return outcomeAnswer(ports, review);
  const page = pageAnswer(ports, consentPage(viewOf(ports, review)), "consent", review.uiLocales);
  return knowBrowser(ports, request).remember(page);
}

/** PAGE-D-6 */
function viewOf(ports: BasePorts, review: Review): ConsentView {
  const { signIn, agents } = ports.settings();
  const { client, redirectUri, mustConfirm, reason } = review;
  const loopback = isOnComputer(redirectUri);
  const known = shownParty(agents, client.clientId, client);
  return defined<ConsentView>({
    ...decisionView(ports, review),
    client: known,
    clientId: client.clientId,
    reason,
    redirectHost: hostOf(redirectUri),
    loopback,
    differs: known.isHost === true && !loopback && hostOf(redirectUri) !== known.id,
    mustConfirm,
    refresh: signIn && review.refresh && { ...shownTimes(signIn.refresh, review.refresh), ...review.refresh },
  });
}

const shownTimes = (
  { seconds, idleSeconds, briefSeconds }: RefreshSettings,
  { visitSeconds = seconds }: NonNullable<Review["refresh"]>,
) =>
  defined<ShownTimes>({
    hours: Math.floor(briefSeconds / 3600),
    days: Math.floor(seconds / 86_400),
    idleDays: Math.floor(idleSeconds / 86_400),
    visitHours: visitSeconds < seconds ? Math.max(1, Math.floor(visitSeconds / 3600)) : undefined,
  });

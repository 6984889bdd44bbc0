/** GET and POST /ask: the page behind the `error_uri` of a refusal, on which the user gives the consent that an agent lacks. */

import type { Handler, HttpResponse } from "../../http/handler.ts";
import type { Ports } from "../../ports.ts";
import { defined } from "../../result.ts";
import type { AskedReview } from "../flows/asked.ts";
import { decideAsked, openAsked } from "../flows/asked.ts";
import { furtherAgents } from "../flows/offer.ts";
import type { AskView } from "../pages/ask-page.ts";
import { askPage } from "../pages/ask-page.ts";
import { idOf, MALFORMED, minutesUntil, readDecision, shownScopes, visitorOf } from "./decision-form.ts";
import { shownTarget, shownUser } from "./known-as.ts";
import { hostOf, onPage, outcomeAnswer, pageAnswer, redirectAnswer, signInUrl } from "./page-answers.ts";

export function askEndpoint(ports: Ports): Handler {
  return onPage(ports, async ({ request, note, query }) => {
    const renew = query.get("renew") === "1";
    return answer(ports, await openAsked(ports, note, idOf(query), visitorOf(ports, request), renew));
  });
}

export function decideAskEndpoint(ports: Ports): Handler {
  return onPage(ports, async ({ request, note, signIn, query }) => {
    const decision = await readDecision(request);
    if (decision === undefined) return outcomeAnswer(ports, MALFORMED);
    const visitor = visitorOf(ports, request);
    return answer(ports, await decideAsked(ports, signIn, note, idOf(query), visitor, decision));
  });
}

function answer(ports: Ports, review: Awaited<ReturnType<typeof openAsked>>): HttpResponse {
  switch (review.next) {
    case "page":
      return pageAnswer(ports, askPage(viewOf(ports, review)));
    case "sign_in":
      return redirectAnswer(ports, signInUrl(ports.settings().issuer, review.place));
    default:
      return outcomeAnswer(ports, review);
  }
}

/** PAGE-D-25 */
function viewOf({ settings, clock }: Ports, review: AskedReview): AskView {
  const { issuer, policy, signIn } = settings();
  const { agent, chain, offer, session, id, formToken, signOutToken, renewable } = review;
  const { target, scope } = offer;
  const [name = ""] = target.names;
  const nowSeconds = clock.nowSeconds();
  return {
    agent,
    // The chain has the current actor first.
    before: chain
      .map(({ sub, iss }) =>
        defined<AskView["before"][number]>({ id: sub, host: iss === issuer ? undefined : hostOf(iss) }),
      )
      .reverse(),
    target: shownTarget(target, name),
    scopes: shownScopes(target, scope),
    untilSeconds: nowSeconds + (signIn?.consentSeconds ?? 0),
    agents: furtherAgents(policy, target, scope, session),
    user: shownUser(session),
    formToken,
    signOutToken,
    request: id,
    base: issuer,
    minutesLeft: minutesUntil(review.expiresAtSeconds, nowSeconds),
    renewable,
  };
}

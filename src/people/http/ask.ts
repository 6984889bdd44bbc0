/** GET and POST /ask: the page behind the `error_uri` of a refusal, on which the user gives the consent that an agent lacks. */

import type { Handler, HttpResponse } from "../../http/handler.ts";
import type { BasePorts } from "../../ports.ts";
import { defined } from "../../result.ts";
import { type Agents, namingOf } from "../../settings/agents.ts";
import { type AskedPorts, type AskedReview, decideAsked, openAsked } from "../flows/asked.ts";
import { type AskView, askPage } from "../pages/ask-page.ts";
import type { ShownParty } from "../pages/parties.ts";
import type { PagePorts } from "../ports.ts";
import { decisionView, idOf, MALFORMED, readDecision, visitorOf } from "./decision-form.ts";
import { shownParty, toldParty } from "./known-as.ts";
import { onPage, outcomeAnswer, pageAnswer } from "./page-answers.ts";

export function askEndpoint(ports: PagePorts & AskedPorts): Handler {
  return onPage(ports, async ({ request, audited, query }) => {
    const renew = query.get("renew") === "1";
    return answer(ports, await openAsked(ports, audited, idOf(query), visitorOf(ports, request), renew));
  });
}

export function decideAskEndpoint(ports: PagePorts & AskedPorts): Handler {
  return onPage(ports, async ({ request, audited, query }) => {
    const decision = await readDecision(request);
    if (decision === undefined) return outcomeAnswer(ports, MALFORMED);
    const visitor = visitorOf(ports, request);
    return answer(ports, await decideAsked(ports, audited, idOf(query), visitor, decision));
  });
}

function answer(ports: BasePorts, review: Awaited<ReturnType<typeof openAsked>>): HttpResponse {
  if (review.next !== "page") return outcomeAnswer(ports, review);
  return pageAnswer(ports, askPage(viewOf(ports, review)));
}

/** PAGE-D-25 */
function viewOf(ports: BasePorts, review: AskedReview): AskView {
  const { agents } = ports.settings();
  const { actor, clientId, chain, reason } = review;
  return defined<AskView>({
    ...decisionView(ports, review),
    reason,
    agent: shownAgent(agents, actor, clientId),
    // The chain has the current actor first.
    before: chain
      .map(({ sub, iss, claimed }) => (claimed ? toldParty(agents, sub, iss) : shownParty(agents, sub)))
      .reverse(),
  });
}

/** The operator names an agent by its own id, or by that of the client by which it asks. */
function shownAgent(agents: Agents, actor: string, clientId: string): ShownParty {
  const own = shownParty(agents, actor);
  const naming = own.naming ?? namingOf(agents, clientId);
  return defined<ShownParty>({ ...own, naming });
}

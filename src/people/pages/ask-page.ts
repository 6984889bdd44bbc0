/** The page on which a user gives the consent that an agent lacks, or refuses it (PAGE-D-10, PAGE-D-11, PAGE-D-25). */
import type { DecisionView, Ways } from "./decision-parts.ts";
import { decisionForm, fact, factsOf } from "./decision-parts.ts";
import { isolated } from "./display-names.ts";
import type { Html } from "./html.ts";
import { html } from "./html.ts";
import type { Page } from "./page.ts";
import type { ShownParty } from "./parties.ts";
import { aboutParty, idBeside, partyName, partyTitle, reasonOf } from "./parties.ts";
import type { Texts } from "./texts.ts";

export type AskView = DecisionView & {
  agent: ShownParty;
  /** The actors between the user and the agent, the user's own first. */
  before: readonly ShownParty[];
};

export const askPage = (view: AskView): Page => ({
  status: 200,
  show: (texts) => {
    const name = partyTitle(view.agent, texts);
    const id = idBeside(view.agent, texts);
    const ways = waysOf(view);
    // Without a name the heading has the SPIFFE ID.
    const identity = id === undefined ? [] : [fact(texts.agentIdentity, id)];
    return {
      title: texts.consentTitle(name),
      body: html`
<h1>${texts.askHeading(isolated(name))}</h1>
${aboutParty(view.agent, texts)}
${reasonOf(view.reason, texts)}
<p>${texts.askWhy}</p>
${factsOf(view, ways, texts, [...identity, chainOf(view, texts)])}
${decisionForm(view, ways, texts)}`,
    };
  },
});

function waysOf({ base, request }: AskView): Ways {
  const id = encodeURIComponent(request);
  return { action: `${base}/ask?r=${id}`, again: `${base}/signin?ask=${id}&again=1` };
}

/** PAGE-D-25: each actor on the way from the user to the agent. */
function chainOf({ before }: AskView, texts: Texts): Html {
  const hops = before.map((hop) => html`<li>${partyName(hop, texts)}</li>`);
  return fact(texts.worksFor, html`<ol><li>${texts.you}</li>${hops}<li>${texts.thisAgent}</li></ol>`);
}

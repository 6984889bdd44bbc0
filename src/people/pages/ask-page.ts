/** The page on which a user gives the consent that an agent lacks, or refuses it (PAGE-D-10, PAGE-D-11, PAGE-D-25). */

import { type Html, html } from "../../spec/html.ts";
import { type DecisionView, decision, problemOf, titleOf, type Ways } from "./decision-parts.ts";
import { isolated } from "./display-names.ts";
import { inZone } from "./language.ts";
import { fact, type Page } from "./page.ts";
import {
  aboutParty,
  answersFor,
  becauseOf,
  besideDisc,
  headingName,
  idBeneath,
  partyName,
  partyTitle,
  passedOn,
  reasonOf,
  type ShownParty,
} from "./parties.ts";
import type { Texts } from "./texts.ts";

export type AskView = DecisionView & {
  agent: ShownParty;
  /** The actors between the user and the agent, the user's own first. */
  before: readonly ShownParty[];
};

export const askPage = (view: AskView): Page => ({
  status: view.problem === undefined ? 200 : 400,
  show: (catalogue) => {
    const texts = inZone(catalogue, view.zone);
    const { agent, before } = view;
    const name = partyTitle(agent, texts);
    return {
      title: titleOf(view, texts.consentTitle(name), texts),
      body: html`
${problemOf(view, texts)}
${besideDisc(agent, html`<h1>${texts.askHeading(headingName(agent, texts))}</h1>${idBeneath(agent, texts)}`, texts)}
${aboutParty(agent, texts) ?? html`<p class="hint">${texts.notDescribed(isolated(texts.operator ?? ""))}</p>`}
${passedOn([...before, agent], texts)}
${reasonOf(view.reason, texts)}
${becauseOf(view.because, texts)}
${view.denied ? html`<p><strong>${texts.refusedBefore}</strong></p>` : undefined}
${decision(view, waysOf(view), texts, { advice: view.denied ? undefined : texts.askWhy, facts: ownFacts(view, texts) })}`,
    };
  },
});

function waysOf({ base, request }: AskView): Ways {
  const id = encodeURIComponent(request);
  return { action: `${base}/ask?r=${id}`, again: `${base}/signin?ask=${id}&again=1` };
}

/** PAGE-D-25: each actor on the way from the user to the agent, with its whole id, and who answers for the agent. */
function ownFacts({ agent, before }: AskView, texts: Texts): readonly Html[] {
  const hops = [...before, agent].map((hop) => html`<li>${partyName(hop, texts)}</li>`);
  const answered = answersFor(agent, texts);
  return [
    ...(answered === undefined ? [] : [fact(texts.answersFor, answered)]),
    fact(texts.identities, html`<ol>${hops}</ol>`),
  ];
}

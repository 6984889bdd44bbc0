/** What the two pages have in common on which a user decides: what is asked, the buttons, and beneath them the details. */

import type { Worded } from "../../policy/worded.ts";
import { inLanguage } from "../../policy/worded.ts";
import type { DetailView } from "./detail-sentences.ts";
import { sentence } from "./detail-sentences.ts";
import type { ShownTarget, ShownUser } from "./display-names.ts";
import { shownId, targetName, userName } from "./display-names.ts";
import type { Html } from "./html.ts";
import { html } from "./html.ts";
import type { JobView } from "./job-part.ts";
import { jobPart } from "./job-part.ts";
import { dayOf } from "./language.ts";
import type { ShownParty } from "./parties.ts";
import { partyName } from "./parties.ts";
import type { Texts } from "./texts.ts";

export type DecisionView = {
  target: ShownTarget;
  scopes: readonly { value: string; sentence: Worded }[];
  /** The objects to which all of that is limited. */
  details: readonly DetailView[];
  /** The job that is to be approved. */
  job?: JobView;
  /** Until when what is allowed lasts. */
  untilSeconds: number;
  /** Workloads that may act further without asking again. */
  agents: readonly ShownParty[];
  /** Why the client or agent asks, in its own words. */
  reason?: string;
  user: ShownUser;
  /** The time zone of the user, where it is known. */
  zone?: string;
  formToken: string;
  signOutToken: string;
  /** The id in the URL of the page. */
  request: string;
  /** The forms and links of this server begin with it. */
  base: string;
  /** How long the page is good, and whether the user can extend that. */
  minutesLeft: number;
  renewable: boolean;
};

/** Where the form of a page goes, and where the browser goes if another user wants to decide. */
export type Ways = { action: string; again: string };

/** What a page adds: a warning before the buttons, which may have a box, and facts of its own. */
type Own = { warning?: Html | undefined; facts: readonly Html[] };

export const hidden = (name: string, value: string): Html =>
  html`<input type="hidden" name="${name}" value="${value}">`;

/** PAGE-D-27: what is asked stands first, then the buttons, and everything else beneath them. */
export function decision(view: DecisionView, { action, again }: Ways, texts: Texts, own: Own): Html {
  const { minutesLeft, renewable } = view;
  const renew = `${action}&renew=1`;
  const more = renewable ? html` <a href="${renew}">${texts.moreTime}</a>` : undefined;
  return html`
<form method="post" action="${action}" autocomplete="off">
${hidden("token", view.formToken)}
${jobPart(view.job, texts)}
${scopes(view, texts)}
${limits(view, texts)}
${furtherParties(view, texts)}
${own.warning}
${choices(texts)}
</form>
<p class="hint">${texts.canTakeBack} ${texts.timeLeft(minutesLeft)}${
    // WCAG-2.2.1-1
    more
  }</p>
<details><summary>${texts.details}</summary>
<dl>
${fact(texts.lastsUntil, html`${dayOf(view.untilSeconds, texts)}`)}
${own.facts}
${fact(texts.scopeNames, html`${shownId(view.scopes.map(({ value }) => value).join(" "))}`)}
</dl></details>
${signedInAs(view, again, texts)}`;
}

/** PAGE-D-6, OIDC-D-9: who is signed in, with the ways to be another user or none. */
export const signedInAs = (
  { base, user, signOutToken }: Pick<DecisionView, "base" | "user" | "signOutToken">,
  again: string,
  texts: Texts,
): Html => html`
<form class="who" method="post" action="${base}/signout">
${hidden("token", signOutToken)}
<p>${texts.signedInAs} ${userName(user)} · <a href="${again}">${texts.notYou}</a> · <button>${texts.signOut}</button></p>
</form>`;

export const fact = (term: string | Html, what: Html): Html =>
  html`<div><dt>${term}</dt><dd>${what}</dd></div>`;

/**
 * PAGE-D-10, WCAG-1.3.1-1: the scopes are a group with its legend, in which nothing is ticked, and one box takes all.
 */
function scopes({ target, scopes: offered }: DecisionView, texts: Texts): Html {
  const every = box("all", "1", texts.everything, "every");
  return html`<fieldset aria-describedby="tick-hint"><legend>${texts.asksTo(targetName(target, texts))}</legend>
<p class="hint" id="tick-hint">${texts.tickHint}</p>
${offered.map(({ value, sentence }) => box("scope", value, inLanguage(sentence, [texts.language]), "one"))}
${offered.length > 1 ? every : undefined}
</fieldset>`;
}

const box = (name: string, value: string, words: string, kind: "one" | "every"): Html =>
  html`<label class="${kind}"><input type="checkbox" name="${name}" value="${value}"><span>${words}</span></label>`;

/** RAR-D-9, RFC9396-3.1-2: every object is shown with all that it says, and is given unless its tick is taken away. */
function limits({ details }: DecisionView, texts: Texts): Html | undefined {
  if (details.length === 0) return undefined;
  const boxes = details.map(
    (one, index) =>
      html`<label class="one"><input type="checkbox" name="detail" value="${index}" checked><span>${sentence(one, texts)}</span></label>`,
  );
  return html`<fieldset aria-describedby="limits-hint"><legend>${texts.limits}</legend>
<p class="hint" id="limits-hint">${texts.limitsHint}</p>
${boxes}
</fieldset>`;
}

/** How many act further is part of what is asked; which ones, a click away. */
export function furtherParties(
  { agents: named }: Pick<DecisionView, "agents">,
  texts: Texts,
): Html | undefined {
  if (named.length === 0) return undefined;
  const items = named.map((agent) => html`<li>${partyName(agent, texts)}</li>`);
  return html`<details><summary>${texts.agentsFurther(named.length)}</summary><ul>${items}</ul></details>`;
}

/** PAGE-D-10: the two buttons look alike. `about` is the id of what they are about, where that is not the page. */
export function choices({ refuse, allow }: Texts, about?: string): Html {
  const by = about === undefined ? undefined : html` aria-describedby="${about}"`;
  return html`<div class="choices"><button name="decision" value="refuse" formnovalidate${by}>${refuse}</button><button name="decision" value="allow"${by}>${allow}</button></div>`;
}

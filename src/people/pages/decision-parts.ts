/** What the two pages have in common on which a user decides: the facts, the scopes with their boxes, and the buttons. */
import type { Worded } from "../../policy/worded.ts";
import { inLanguage } from "../../policy/worded.ts";
import type { ShownTarget, ShownUser } from "./display-names.ts";
import { targetName, userName } from "./display-names.ts";
import type { Html } from "./html.ts";
import { html } from "./html.ts";
import { dayOf } from "./language.ts";
import type { ShownParty } from "./parties.ts";
import { partyName } from "./parties.ts";
import type { Texts } from "./texts.ts";

export type DecisionView = {
  target: ShownTarget;
  scopes: readonly { value: string; sentence: Worded }[];
  /** Until when what is allowed lasts. */
  untilSeconds: number;
  /** Workloads that may act further without asking again. */
  agents: readonly ShownParty[];
  /** Why the client or agent asks, in its own words. */
  reason?: string;
  user: ShownUser;
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

export const hidden = (name: string, value: string): Html =>
  html`<input type="hidden" name="${name}" value="${value}">`;

/** `confirmation` stands before the buttons. */
export const decisionForm = (
  view: DecisionView,
  { action }: Ways,
  texts: Texts,
  confirmation?: Html,
): Html => html`
<form method="post" action="${action}" autocomplete="off">
${hidden("token", view.formToken)}
${scopes(view, texts)}
${agents(view, texts)}
${confirmation}
${choices(texts)}
</form>
<p>${texts.takenBackAt(html`<a href="${view.base}/account">${texts.accountTitle}</a>`)}</p>
${signOutForm(view, texts)}`;

/** OIDC-D-9 */
export const signOutForm = (
  { base, signOutToken }: Pick<DecisionView, "base" | "signOutToken">,
  texts: Texts,
): Html => html`
<form class="leave" method="post" action="${base}/signout">
${hidden("token", signOutToken)}
<button>${texts.signOut}</button>
</form>`;

/** `own` are the facts of the page itself, after the one that says who is signed in. */
export function factsOf(
  view: DecisionView,
  { action, again }: Ways,
  texts: Texts,
  own: readonly Html[],
): Html {
  const { user, untilSeconds, minutesLeft, renewable } = view;
  const renew = `${action}&renew=1`;
  return html`<dl>
${fact(texts.signedInAs, html`${userName(user)} · <a href="${again}">${texts.notYou}</a>`)}
${own}
${fact(texts.lastsUntil, html`${dayOf(untilSeconds, texts)}`)}
${
  // WCAG-2.2.1-1
  fact(
    texts.timeLeft,
    html`${texts.minutes(minutesLeft)}${renewable ? html` · <a href="${renew}">${texts.moreTime}</a>` : undefined}`,
  )
}
</dl>`;
}

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

function agents({ agents: named }: DecisionView, texts: Texts): Html | undefined {
  if (named.length === 0) return undefined;
  const items = named.map((agent) => html`<li>${partyName(agent, texts)}</li>`);
  return html`<p>${texts.agents}</p><ul>${items}</ul>`;
}

/** PAGE-D-10: the two buttons look alike. */
const choices = ({ refuse, allow }: Texts): Html =>
  html`<div class="choices"><button name="decision" value="refuse" formnovalidate>${refuse}</button><button name="decision" value="allow">${allow}</button></div>`;

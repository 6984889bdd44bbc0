/** The page on which a user reads what they allowed and what was done in their name, and takes it back (PAGE-D-15). */
import type { Worded } from "../../policy/worded.ts";
import { inLanguage } from "../../policy/worded.ts";
import type { OwnEventKind } from "../audit/own-events.ts";
import { fact, hidden, signOutForm } from "./decision-parts.ts";
import type { ShownTarget, ShownUser } from "./display-names.ts";
import { shownId, targetName, userName } from "./display-names.ts";
import type { Html } from "./html.ts";
import { html, link } from "./html.ts";
import { dayOf, minuteOf } from "./language.ts";
import type { Page } from "./page.ts";
import type { ShownParty } from "./parties.ts";
import { aboutParty, partyName } from "./parties.ts";
import type { Texts } from "./texts.ts";

export type PermissionView = { target: ShownTarget; sentences: readonly Worded[] };

export type AllowedView = {
  id: string;
  formToken: string;
  party: ShownParty;
  permissions: readonly PermissionView[];
  /** Workloads that may act further without asking again. */
  agents: readonly ShownParty[];
  sinceSeconds?: number;
  untilSeconds?: number;
  lastUse: { atMs: number } | { noneSinceMs: number } | "none";
  /**
   * The families with which the client goes on without the user; `idleUntilSeconds` is when one ends if it is not used.
   */
  goesOn: readonly {
    sinceSeconds: number;
    usedSeconds: number;
    untilSeconds: number;
    idleUntilSeconds?: number;
  }[];
  /** When such a family was ended because two parties had it. */
  reusedAtMs?: number;
  /** Whether two networks had the token of one that still stands. */
  renewedElsewhere?: boolean;
};

export type EventView = {
  kind: OwnEventKind;
  atMs: number;
  /** In the order in which they acted. */
  parties: readonly ShownParty[];
  permissions: readonly PermissionView[];
};

export type AccountView = {
  /** The forms and links of this server begin with it. */
  base: string;
  user: ShownUser;
  signOutToken: string;
  allowed: readonly AllowedView[];
  moreAllowed?: string;
  /** On a page that is not the first: the way there. */
  firstAllowed?: string;
  /** The longest lifetime of a token, in minutes. */
  minutesAfter: number;
  takeAllToken: string;
  events: readonly EventView[];
  /** The days that are shown, as they were written. */
  firstDay: string;
  lastDay: string;
  older?: string;
  newest?: string;
  problem?: "unconfirmed" | "day";
};

export const accountPage = (view: AccountView): Page => ({
  status: view.problem === undefined ? 200 : 400,
  show: (texts) => ({
    title: problemTitle(view, texts) ?? texts.accountTitle,
    body: html`
${problemOf(view, texts)}
<h1>${texts.accountTitle}</h1>
${signedInAs(view, texts)}
<h2>${texts.allowedHeading}</h2>
${allowed(view, texts)}
<h2>${texts.doneHeading}</h2>
${done(view, texts)}
${signOutForm(view, texts)}`,
  }),
});

const signedInAs = ({ base, user }: AccountView, texts: Texts): Html =>
  html`<p>${texts.signedInAs} ${userName(user)} · <a href="${base}/signin?again=1">${texts.notYou}</a></p>`;

function problemTitle({ problem }: AccountView, texts: Texts): string | undefined {
  if (problem === undefined) return undefined;
  return problem === "day" ? texts.dayWrongTitle : texts.unconfirmedTitle;
}

/** WCAG-3.3.1-1: the text names the field, and says what to do. */
function problemOf(view: AccountView, texts: Texts): Html | undefined {
  const title = problemTitle(view, texts);
  if (title === undefined) return undefined;
  const remedy = view.problem === "day" ? texts.dayWrong : texts.takeAllUnconfirmed;
  return html`<div class="warning" role="alert"><p><strong>${title}.</strong></p><p id="problem">${remedy}</p></div>`;
}

// --- what is allowed --------------------------------------------------------------------------------------------

function allowed(view: AccountView, texts: Texts): Html {
  const { allowed: all, moreAllowed, firstAllowed, minutesAfter } = view;
  if (all.length === 0 && moreAllowed === undefined) return html`<p>${texts.nothingAllowed}</p>`;
  return html`<p class="hint">${texts.takeBackHint(minutesAfter)}</p>
<ul class="cards">${all.map((one, index) => card(one, index, view, texts))}</ul>
${moreAllowed === undefined ? undefined : html`<p>${link(moreAllowed, html`${texts.moreAllowed}`)}</p>`}
${firstAllowed === undefined ? undefined : html`<p>${link(firstAllowed, html`${texts.firstAllowed}`)}</p>`}
${takeAll(view, texts)}`;
}

function card(one: AllowedView, index: number, { base }: AccountView, texts: Texts): Html {
  const { party, permissions, agents, sinceSeconds, untilSeconds } = one;
  const until = untilSeconds === undefined ? texts.untilTakenBack : dayOf(untilSeconds, texts);
  return html`<li><h3 id="allowed-${index}">${partyName(party, texts)}</h3>
${aboutParty(party, texts)}
${warned(one, texts)}
<dl>
${permissions.map((permission) => permitted(permission, texts))}
${sinceSeconds === undefined ? undefined : fact(texts.allowedSince, html`${dayOf(sinceSeconds, texts)}`)}
${fact(texts.allowedUntil, html`${until}`)}
${fact(texts.lastUsed, html`${usedText(one, texts)}`)}
${listed(
  texts.goesOn,
  one.goesOn.map((grant) => grantText(grant, texts)),
)}
${listed(
  texts.agents,
  agents.map((agent) => partyName(agent, texts)),
)}
</dl>
<form method="post" action="${base}/account/withdraw">
${hidden("token", one.formToken)}${hidden("consent", one.id)}
<button aria-describedby="allowed-${index}">${texts.takeBack}</button>
</form></li>`;
}

const permitted = ({ target, sentences }: PermissionView, texts: Texts): Html =>
  fact(
    texts.mayAt(targetName(target, texts)),
    html`<ul>${sentences.map((one) => html`<li>${shownId(inLanguage(one, [texts.language]))}</li>`)}</ul>`,
  );

function usedText({ lastUse }: AllowedView, texts: Texts): string {
  if (lastUse === "none") return texts.noUse;
  return "atMs" in lastUse
    ? dayOf(lastUse.atMs / 1000, texts)
    : texts.noUseSince(dayOf(lastUse.noneSinceMs / 1000, texts));
}

const listed = (term: string, items: readonly Html[]): Html | undefined =>
  items.length === 0 ? undefined : fact(term, html`<ul>${items.map((item) => html`<li>${item}</li>`)}</ul>`);

function grantText(
  { sinceSeconds, usedSeconds, untilSeconds, idleUntilSeconds }: AllowedView["goesOn"][number],
  texts: Texts,
): Html {
  const day = (seconds: number): string => dayOf(seconds, texts);
  const idle = idleUntilSeconds === undefined ? undefined : texts.goesOnIdle(day(idleUntilSeconds));
  return html`${texts.goesOnUntil(day(sinceSeconds), day(usedSeconds), day(untilSeconds))} ${idle}`;
}

/** REFRESH-D-7, REFRESH-D-21 */
function warned({ reusedAtMs, renewedElsewhere }: AllowedView, texts: Texts): Html | undefined {
  const lines = [
    ...(reusedAtMs === undefined ? [] : [texts.reused(dayOf(reusedAtMs / 1000, texts))]),
    ...(renewedElsewhere ? [texts.renewedElsewhere] : []),
  ].map((line) => html`<p>${line}</p>`);
  return lines.length === 0 ? undefined : html`<div class="warning">${lines}</div>`;
}

/** WCAG-3.3.4-1: withdrawing all at once needs a box in addition, since much is gone then. */
function takeAll({ base, takeAllToken, problem }: AccountView, texts: Texts): Html {
  const wrong = problem === "unconfirmed" ? html` aria-invalid="true" aria-describedby="problem"` : undefined;
  return html`<h3>${texts.takeAllHeading}</h3>
<form method="post" action="${base}/account/withdraw">
${hidden("token", takeAllToken)}${hidden("all", "1")}
<label><input type="checkbox" name="confirm" value="1" required${wrong}><span>${texts.takeAllConfirm}</span></label>
<button>${texts.takeAll}</button>
</form>`;
}

// --- what was done ----------------------------------------------------------------------------------------------

function done(view: AccountView, texts: Texts): Html {
  const { events, older, newest } = view;
  const ways = [newest && link(newest, html`${texts.newest}`), older && link(older, html`${texts.older}`)];
  const items = ways.filter((way) => typeof way === "object").map((way) => html`<li>${way}</li>`);
  return html`<p class="hint">${texts.doneHint}</p>
${days(view, texts)}
${events.length === 0 ? html`<p>${texts.nothingDone}</p>` : html`<ol class="cards">${events.map((one) => entry(one, texts))}</ol>`}
${items.length === 0 ? undefined : html`<ul class="choices">${items}</ul>`}`;
}

function days({ base, firstDay, lastDay, problem }: AccountView, texts: Texts): Html {
  const wrong = problem === "day" ? html` aria-invalid="true" aria-describedby="problem"` : undefined;
  const day = (name: string, words: string, value: string): Html =>
    html`<label><span>${words}</span><input type="date" name="${name}" value="${value}"${wrong}></label>`;
  return html`<form method="get" action="${base}/account">
<fieldset class="days"><legend>${texts.daysLegend}</legend>
${day("from", texts.firstDay, firstDay)}${day("to", texts.lastDay, lastDay)}
<button>${texts.showDays}</button>
</fieldset></form>`;
}

function entry({ kind, atMs, parties, permissions }: EventView, texts: Texts): Html {
  const last = parties.at(-1);
  const agent = last === undefined ? html`` : partyName(last, texts);
  return html`<li><p class="hint">${minuteOf(atMs, texts)}</p>
<p>${texts.done[kind](agent)}</p>
${parties.length > 1 ? html`<p>${texts.wayOfAgents}:</p><ol>${parties.map((party) => html`<li>${partyName(party, texts)}</li>`)}</ol>` : undefined}
${permissions.map((permission) => html`<p>${doneWith(permission, texts)}</p>`)}</li>`;
}

function doneWith({ target, sentences }: PermissionView, texts: Texts): Html {
  const words = sentences.map((one) => shownId(inLanguage(one, [texts.language]))).join("; ");
  return html`${texts.doneAt(targetName(target, texts))}${words === "" ? undefined : html`: ${words}`}`;
}

/** The page on which a user allows a client what it asks for, or refuses (PAGE-D-6 to PAGE-D-11). */
import type { Html } from "./html.ts";
import { html } from "./html.ts";
import { dayOf } from "./language.ts";
import { isolated, shownHost, shownId, shownName } from "./names.ts";
import type { Page } from "./page.ts";
import type { Texts } from "./texts.ts";

export type ConsentView = {
  /** How the client is known: by the host of its document, by when it registered itself, or by the operator's name. */
  client: { host: string } | { registeredAtSeconds: number } | { operatorName: string };
  /** What the client calls itself. */
  claimedName?: string;
  /** Host and port of the redirect URI, or the scheme where it has none. */
  redirectHost: string;
  loopback: boolean;
  /** Whether the redirect URI is at another host than the client's document. */
  differs: boolean;
  mustConfirm: boolean;
  target: { title: string; host?: string };
  scopes: readonly { value: string; sentence: string }[];
  /** Until when what is allowed lasts. */
  untilSeconds: number;
  /** Workloads that may act further without asking again. */
  agents: readonly string[];
  user: string;
  formToken: string;
  signOutToken: string;
  request: string;
  /** The forms and links of this server begin with it. */
  base: string;
  /** How long the page is good, and whether it can be made to last longer. */
  minutesLeft: number;
  renewable: boolean;
  problem?: "unconfirmed";
};

export const consentPage = (view: ConsentView): Page => ({
  status: view.problem === undefined ? 200 : 400,
  show: (texts) => {
    const name = nameOf(view, texts);
    return {
      title: view.problem === undefined ? texts.consentTitle(name) : texts.unconfirmedTitle,
      body: html`
${problemOf(view, texts)}
<h1>${texts.consentHeading(isolated(name))}</h1>
${claimOf(view, texts)}
${warnings(view, texts)}
${facts(view, texts)}
${form(view, texts)}
${signOut(view, texts)}`,
    };
  },
});

const actionOf = ({ base, request }: ConsentView): string =>
  `${base}/authorize/review?r=${encodeURIComponent(request)}`;

const form = (view: ConsentView, texts: Texts): Html => html`
<form method="post" action="${actionOf(view)}" autocomplete="off">
${hidden("token", view.formToken)}
${scopes(view, texts)}
${agents(view, texts)}
${confirmation(view, texts)}
${choices(texts)}
</form>`;

const hidden = (name: string, value: string): Html =>
  html`<input type="hidden" name="${name}" value="${value}">`;

/** OIDC-D-9 */
const signOut = ({ base, signOutToken }: ConsentView, texts: Texts): Html => html`
<form class="leave" method="post" action="${base}/signout">
${hidden("token", signOutToken)}
<button>${texts.signOut}</button>
</form>`;

function nameOf({ client }: ConsentView, texts: Texts): string {
  if ("host" in client) return shownHost(client.host);
  if ("operatorName" in client) return shownName(client.operatorName) ?? texts.selfRegisteredClient;
  return texts.selfRegisteredClient;
}

/** PAGE-D-7: the host is the heading, and the name a claim in quotation marks. */
function claimOf({ claimedName }: ConsentView, texts: Texts): Html | undefined {
  const name = shownName(claimedName);
  return name === undefined ? undefined : html`<p>${texts.claimedName(isolated(name))}</p>`;
}

/** WCAG-3.3.1-1: which box, and what to do. */
const problemOf = ({ problem }: ConsentView, texts: Texts): Html | undefined =>
  problem === undefined
    ? undefined
    : html`<div class="warning" role="alert"><p><strong>${texts.unconfirmedTitle}.</strong></p><p id="unconfirmed">${texts.unconfirmed}</p></div>`;

/** WCAG-1.4.1-1: in words, beside the colour. */
function warnings(view: ConsentView, texts: Texts): Html | undefined {
  const { client, loopback, differs, redirectHost, mustConfirm } = view;
  const lines = [
    "registeredAtSeconds" in client
      ? html`<p>${texts.selfRegistered(dayOf(client.registeredAtSeconds, texts))}</p>`
      : undefined,
    // PAGE-D-8
    loopback ? html`<p>${texts.loopback}</p>` : undefined,
    // PAGE-D-9
    differs
      ? html`<p>${texts.redirectDiffers(isolated(shownHost(redirectHost)), isolated(nameOf(view, texts)))}</p>`
      : undefined,
    mustConfirm ? html`<p><strong>${texts.onlyIfYou}</strong></p>` : undefined,
  ].filter((line) => line !== undefined);
  if (lines.length === 0) return undefined;
  return html`<div class="warning"><h2>${texts.beforeYouGoOn}</h2>${lines}</div>`;
}

function facts(view: ConsentView, texts: Texts): Html {
  const { user, base, request, redirectHost, loopback, untilSeconds, minutesLeft, renewable } = view;
  const again = `${base}/signin?r=${encodeURIComponent(request)}&again=1`;
  const renew = `${actionOf(view)}&renew=1`;
  const redirect = html`${isolated(shownHost(redirectHost))}${loopback ? html` (${texts.onThisComputer})` : undefined}`;
  return html`<dl>
${fact(texts.signedInAs, html`${isolated(shownName(user) ?? shownId(user))} · <a href="${again}">${texts.notYou}</a>`)}
${fact(texts.answerGoesTo, redirect)}
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

const fact = (term: string, what: Html): Html => html`<div><dt>${term}</dt><dd>${what}</dd></div>`;

/** PAGE-D-10, WCAG-1.3.1-1: a group with its legend, in which nothing is ticked, and one box takes all. */
function scopes({ target, scopes: offered }: ConsentView, texts: Texts): Html {
  const host = target.host === undefined ? undefined : html` (${isolated(shownHost(target.host))})`;
  const title = html`${isolated(shownId(target.title))}${host}`;
  const every = box("all", "1", texts.everything, "every");
  return html`<fieldset aria-describedby="tick-hint"><legend>${texts.asksTo(title)}</legend>
<p class="hint" id="tick-hint">${texts.tickHint}</p>
${offered.map(({ value, sentence }) => box("scope", value, sentence, "one"))}
${offered.length > 1 ? every : undefined}
</fieldset>`;
}

const box = (name: string, value: string, words: string, kind: "one" | "every"): Html =>
  html`<label class="${kind}"><input type="checkbox" name="${name}" value="${value}"><span>${words}</span></label>`;

function agents({ agents: named }: ConsentView, texts: Texts): Html | undefined {
  if (named.length === 0) return undefined;
  const items = named.map((agent) => html`<li>${isolated(shownId(agent))}</li>`);
  return html`<p>${texts.agents}</p><ul>${items}</ul>`;
}

/** PAGE-D-8: a browser asks for the box itself, though not of a user who refuses; the server asks in any case. */
function confirmation({ mustConfirm, problem }: ConsentView, texts: Texts): Html | undefined {
  if (!mustConfirm) return undefined;
  const wrong = problem === undefined ? undefined : html` aria-invalid="true" aria-describedby="unconfirmed"`;
  return html`<label><input type="checkbox" name="confirm" value="1" required${wrong}><span>${texts.confirm}</span></label>`;
}

/** PAGE-D-10: two alike. */
const choices = ({ refuse, allow }: Texts): Html =>
  html`<div class="choices"><button name="decision" value="refuse" formnovalidate>${refuse}</button><button name="decision" value="allow">${allow}</button></div>`;

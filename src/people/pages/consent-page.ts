/** The page on which a user allows a client what it asks for, or refuses (PAGE-D-6 to PAGE-D-11). */
import { OFFLINE_ACCESS } from "../../spec/rfc6749.ts";
import type { DecisionView, Ways } from "./decision-parts.ts";
import { decisionForm, fact, factsOf } from "./decision-parts.ts";
import { isolated, shownHost } from "./display-names.ts";
import type { Html } from "./html.ts";
import { html } from "./html.ts";
import type { Page } from "./page.ts";
import type { ShownParty } from "./parties.ts";
import { aboutParty, idBeside, partyId, partyTitle, reasonOf } from "./parties.ts";
import type { Texts } from "./texts.ts";

export type ConsentView = DecisionView & {
  client: ShownParty;
  /** Host and port of the redirect URI, or the scheme where it has none. */
  redirectHost: string;
  loopback: boolean;
  /** Whether the redirect URI is at another host than the client's document. */
  differs: boolean;
  mustConfirm: boolean;
  /** Present if refresh tokens come of it, for so long; `asksOffline` makes it longer if the user ticks that. */
  refresh?: { hours: number; days: number; idleDays: number; asksOffline: boolean };
  problem?: "unconfirmed";
};

export const consentPage = (view: ConsentView): Page => ({
  status: view.problem === undefined ? 200 : 400,
  show: (texts) => {
    const name = partyTitle(view.client, texts);
    const ways = waysOf(view);
    return {
      title: view.problem === undefined ? texts.consentTitle(name) : texts.unconfirmedTitle,
      body: html`
${problemOf(view, texts)}
<h1>${texts.consentHeading(isolated(name))}</h1>
${identityOf(view, texts)}
${aboutParty(view.client, texts)}
${reasonOf(view.reason, texts)}
${warnings(view, texts)}
${factsOf(view, ways, texts, ownFacts(view, texts))}
${decisionForm(withOffline(view, texts), ways, texts, confirmation(view, texts))}`,
    };
  },
});

function waysOf({ base, request }: ConsentView): Ways {
  const id = encodeURIComponent(request);
  return { action: `${base}/authorize/review?r=${id}`, again: `${base}/signin?r=${id}&again=1` };
}

/** NAME-D-1: the id beneath the title, unless it is the heading. */
function identityOf({ client }: ConsentView, texts: Texts): Html | undefined {
  const id = idBeside(client, texts);
  return id === undefined ? undefined : html`<p class="hint">${id}</p>`;
}

/** WCAG-3.3.1-1: the text names the box, and says what to do. */
const problemOf = ({ problem }: ConsentView, texts: Texts): Html | undefined =>
  problem === undefined
    ? undefined
    : html`<div class="warning" role="alert"><p><strong>${texts.unconfirmedTitle}.</strong></p><p id="unconfirmed">${texts.unconfirmed}</p></div>`;

/** WCAG-1.4.1-1: the state is told in words, beside the colour. */
function warnings(view: ConsentView, texts: Texts): Html | undefined {
  const { client, loopback, differs, redirectHost, mustConfirm } = view;
  const lines = [
    // PAGE-D-8
    loopback ? html`<p>${texts.loopback}</p>` : undefined,
    // PAGE-D-9
    differs
      ? html`<p>${texts.redirectDiffers(isolated(shownHost(redirectHost)), isolated(partyId(client)))}</p>`
      : undefined,
    mustConfirm ? html`<p><strong>${texts.onlyIfYou}</strong></p>` : undefined,
  ].filter((line) => line !== undefined);
  if (lines.length === 0) return undefined;
  return html`<div class="warning"><h2>${texts.beforeYouGoOn}</h2>${lines}</div>`;
}

const ownFacts = (view: ConsentView, texts: Texts): readonly Html[] => {
  const redirect = fact(texts.answerGoesTo, redirectOf(view, texts));
  const { refresh } = view;
  // REFRESH-D-1: the page says for how long the client goes on by itself.
  return refresh === undefined
    ? [redirect]
    : [redirect, fact(texts.goesOnFor, html`${texts.hours(refresh.hours)}`)];
};

/** REFRESH-D-2: that it goes on for longer needs a box of its own. */
function withOffline(view: ConsentView, texts: Texts): ConsentView {
  const { refresh, scopes } = view;
  if (!refresh?.asksOffline) return view;
  return { ...view, scopes: [...scopes, { value: OFFLINE_ACCESS, sentence: texts.goOnWithoutMe(refresh) }] };
}

const redirectOf = ({ redirectHost, loopback }: ConsentView, texts: Texts): Html =>
  html`${isolated(shownHost(redirectHost))}${loopback ? html` (${texts.onThisComputer})` : undefined}`;

/** PAGE-D-8: a browser asks for the box itself, though not of a user who refuses; the server asks in any case. */
function confirmation({ mustConfirm, problem }: ConsentView, texts: Texts): Html | undefined {
  if (!mustConfirm) return undefined;
  const wrong = problem === undefined ? undefined : html` aria-invalid="true" aria-describedby="unconfirmed"`;
  return html`<label><input type="checkbox" name="confirm" value="1" required${wrong}><span>${texts.confirm}</span></label>`;
}

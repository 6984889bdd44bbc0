/** The page on which a user allows a client what it asks for, or refuses (PAGE-D-6 to PAGE-D-11). */

import { type Html, html } from "../../spec/html.ts";
import { OFFLINE_ACCESS } from "../../spec/rfc6749.ts";
import { checked, type DecisionView, decision, problemOf, titleOf, type Ways } from "./decision-parts.ts";
import { isolated, shownHost, shownId } from "./display-names.ts";
import { inZone } from "./language.ts";
import { fact, type Page } from "./page.ts";
import {
  aboutParty,
  answersFor,
  becauseOf,
  besideDisc,
  headingName,
  idBeneath,
  partyId,
  partyTitle,
  reasonOf,
  type ShownParty,
} from "./parties.ts";
import type { Texts } from "./texts.ts";
import type { ShownTimes } from "./texts-en.ts";

export type ConsentView = DecisionView & {
  client: ShownParty;
  clientId: string;
  /** Host and port of the redirect URI, or the scheme where it has none. */
  redirectHost: string;
  loopback: boolean;
  /** Whether the redirect URI is at another host than the client's document. */
  differs: boolean;
  mustConfirm: boolean;
  /** Present if refresh tokens come of it, for so long; `asksOffline` makes it longer if the user ticks that. */
  refresh?: ShownTimes & { asksOffline: boolean };
};

export const consentPage = (view: ConsentView): Page => ({
  status: view.problem === undefined ? 200 : 400,
  show: (catalogue) => {
    const texts = inZone(catalogue, view.zone);
    const name = partyTitle(view.client, texts);
    return {
      title: titleOf(view, texts.consentTitle(name), texts),
      body: html`
${problemOf(view, texts)}
${besideDisc(view.client, html`<h1>${texts.consentHeading(headingName(view.client, texts))}</h1>${idBeneath(view.client, texts)}`, texts)}
${aboutParty(view.client, texts)}
${reasonOf(view.reason, texts)}
${becauseOf(view.because, texts)}
${decision(withOffline(view, texts), waysOf(view), texts, { warning: warning(view, texts), advice: texts.askWhy, facts: ownFacts(view, texts) })}`,
    };
  },
});

function waysOf({ base, request }: ConsentView): Ways {
  const id = encodeURIComponent(request);
  return { action: `${base}/authorize/review?r=${id}`, again: `${base}/signin?r=${id}&again=1` };
}

/** WCAG-1.4.1-1: the state is told in words, beside the colour. */
function warning(view: ConsentView, texts: Texts): Html | undefined {
  const { client, loopback, differs, redirectHost } = view;
  const lines = [
    // PAGE-D-8
    loopback ? html`<p>${texts.loopback}</p>` : undefined,
    // PAGE-D-9
    differs
      ? html`<p>${texts.redirectDiffers(isolated(shownHost(redirectHost)), isolated(partyId(client)))}</p>`
      : undefined,
    confirmation(view, texts),
  ].filter((line) => line !== undefined);
  return lines.length === 0 ? undefined : html`<div class="warning">${lines}</div>`;
}

/** PAGE-D-8: a browser asks for the box itself, though not of a user who refuses; the server asks in any case. */
function confirmation({ mustConfirm, problem, ticked }: ConsentView, texts: Texts): Html | undefined {
  if (!mustConfirm) return undefined;
  const isMissing = problem === "unconfirmed";
  const wrong = isMissing ? html` aria-invalid="true" aria-describedby="problem"` : undefined;
  return html`<label><input type="checkbox" name="confirm" value="1" required${wrong}${checked(ticked?.confirmed)}><span>${texts.confirm}</span></label>`;
}

function ownFacts(view: ConsentView, texts: Texts): readonly Html[] {
  const answered = answersFor(view.client, texts);
  return [
    // REFRESH-D-1: the page says for how long the client goes on by itself.
    ...(view.refresh === undefined ? [] : [fact(texts.goesOnFor, html`${texts.hours(view.refresh.hours)}`)]),
    fact(texts.answerGoesTo, redirectOf(view, texts)),
    ...(answered === undefined ? [] : [fact(texts.answersFor, answered)]),
    fact(texts.clientId, isolated(shownId(view.clientId))),
  ];
}

/** REFRESH-D-2: that it goes on for longer needs a box of its own. */
function withOffline(view: ConsentView, texts: Texts): ConsentView {
  const {
    refresh,
    at: [own, ...others],
  } = view;
  if (!refresh?.asksOffline || own === undefined) return view;
  const goesOn = { box: OFFLINE_ACCESS, scope: OFFLINE_ACCESS, sentence: texts.goOnWithoutMe(refresh) };
  return { ...view, at: [{ ...own, permissions: [...own.permissions, goesOn] }, ...others] };
}

const redirectOf = ({ redirectHost, loopback }: ConsentView, texts: Texts): Html =>
  html`${isolated(shownHost(redirectHost))}${loopback ? html` (${texts.onThisComputer})` : undefined}`;

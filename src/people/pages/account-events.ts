/** What was done in a user's name, by day and within a day by agent, with the way that led to each act. */
import { JOB_TITLE_CHARS_MAX } from "../../limits/jobs.ts";
import { inLanguage } from "../../policy/worded.ts";
import type { OwnEventKind } from "../audit/own-events.ts";
import { fact } from "./decision-parts.ts";
import type { PermissionView } from "./display-names.ts";
import { isolated, shownId, shownName, targetName } from "./display-names.ts";
import type { Html } from "./html.ts";
import { html } from "./html.ts";
import { dayOf, minuteOf, momentOf } from "./language.ts";
import type { ShownParty } from "./parties.ts";
import { chain, partyHeading, partyName } from "./parties.ts";
import type { DoneSort, Texts } from "./texts.ts";

export type EventView = {
  kind: OwnEventKind;
  atMs: number;
  /** In the order in which they acted. */
  parties: readonly ShownParty[];
  permissions: readonly PermissionView[];
  /** The title of a job, in the words of its agent. */
  title?: string;
};

/** WCAG-1.4.1-1: each sort has a sign and a colour, beside the sentence. */
const SIGNS: Record<DoneSort, string> = { act: "»", gift: "+", refusal: "×", ending: "–", session: "·" };

const SORTS: Record<OwnEventKind, DoneSort> = {
  token_given: "gift",
  acted: "act",
  acted_as_you: "act",
  grant_redeemed: "act",
  refused: "refusal",
  you_refused: "refusal",
  allowed: "gift",
  allowed_by_others: "gift",
  taken_back: "ending",
  taken_back_by_others: "ending",
  job_approved: "gift",
  job_approved_by_others: "gift",
  job_refused: "refusal",
  job_stopped: "ending",
  job_stopped_by_others: "ending",
  renewed_elsewhere: "act",
  ended: "ending",
  signed_in: "session",
  signed_out: "session",
};

export function days(events: readonly EventView[], texts: Texts): Html {
  const byDay = Map.groupBy(events, ({ atMs }) => dayOf(atMs / 1000, texts));
  return html`${legend(events, texts)}
${[...byDay].map(([day, ofDay]) => html`<section><h3>${day}</h3>${agents(ofDay, texts)}</section>`)}`;
}

function legend(events: readonly EventView[], texts: Texts): Html {
  const shown = new Set(events.map(({ kind }) => SORTS[kind]));
  return html`<ul class="legend">${[...shown].map((sort) => html`<li>${sign(sort)} ${texts.sorts[sort]}</li>`)}</ul>`;
}

const sign = (sort: DoneSort): Html =>
  html`<span class="sign ${sort}" aria-hidden="true">${SIGNS[sort]}</span>`;

/** What has no agent is the user's own. */
function agents(events: readonly EventView[], texts: Texts): readonly Html[] {
  const byAgent = Map.groupBy(events, ({ parties }) => parties.at(-1)?.id);
  return [...byAgent.values()].map((ofAgent) => {
    const agent = ofAgent[0]?.parties.at(-1);
    const { heading, beneath = html`` } =
      agent === undefined ? { heading: html`${texts.yourself}` } : partyHeading(agent, texts);
    return html`<h4>${heading}</h4>${beneath}
<ul class="events">${ofAgent.map((event) => entry(event, texts))}</ul>`;
  });
}

function entry({ kind, atMs, parties, permissions, title }: EventView, texts: Texts): Html {
  const job = shownName(title, JOB_TITLE_CHARS_MAX);
  return html`<li>${sign(SORTS[kind])}<div>
<p><span class="time">${minuteOf(atMs, texts)}</span> ${texts.done[kind]}${job === undefined ? undefined : html` ${texts.jobTitle(isolated(job))}`}</p>
${permissions.map((permission) => html`<p>${doneWith(permission, texts)}</p>`)}
${parties.length > 1 ? chain(parties, texts) : undefined}
${parties.length > 1 ? details(parties, atMs, texts) : undefined}
</div></li>`;
}

/** The ids of those behind the names. */
const details = (parties: readonly ShownParty[], atMs: number, texts: Texts): Html =>
  html`<details><summary>${texts.more}</summary><dl>
${fact(texts.identities, html`<ol>${parties.map((party) => html`<li>${partyName(party, texts)}</li>`)}</ol>`)}
${fact(texts.exactTime, html`${momentOf(atMs)}`)}
</dl></details>`;

function doneWith({ target, sentences }: PermissionView, texts: Texts): Html {
  const words = sentences.map((one) => shownId(inLanguage(one, [texts.language]))).join("; ");
  return html`${texts.doneAt(targetName(target, texts))}${words === "" ? undefined : html`: ${words}`}`;
}

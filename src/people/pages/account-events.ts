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
import { chainLine, partyHeading, partyName } from "./parties.ts";
import type { Texts } from "./texts.ts";

export type EventView = {
  kind: OwnEventKind;
  atMs: number;
  /** In the order in which they acted. */
  parties: readonly ShownParty[];
  permissions: readonly PermissionView[];
  /** The title of a job, in the words of its agent. */
  title?: string;
};

/** What is told apart by a mark and a colour. */
type DoneSort = "act" | "gift" | "refusal" | "ending" | "session";

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
  job_stopped_by_operator: "ending",
  job_stopped_by_agent: "ending",
  renewed_elsewhere: "act",
  ended: "ending",
  signed_in: "session",
  signed_out: "session",
};

/** The newest day is open, and each other a line. */
export function days(events: readonly EventView[], texts: Texts): Html {
  const byDay = [...Map.groupBy(events, ({ atMs }) => dayOf(atMs / 1000, texts))];
  const all = byDay.map(
    ([day, ofDay], index) =>
      html`<details class="day"${index === 0 ? html` open` : undefined}><summary><h3>${day}</h3> <span class="hint">${texts.entries(ofDay.length)}</span></summary>${agents(ofDay, texts)}</details>`,
  );
  return html`${all}`;
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
<ul class="events">${refusalsFolded(ofAgent, texts)}</ul>`;
  });
}

/** PAGE-D-36: the refusals of an agent on one day are one line, since a program may try again and again. */
function refusalsFolded(events: readonly EventView[], texts: Texts): readonly Html[] {
  const refusals = events.filter(({ kind }) => kind === "refused");
  if (refusals.length < 2) return events.map((event) => entry(event, texts));
  const folded = html`<li>${sign("refusal")}<details><summary>${texts.refusals(refusals.length)}</summary>
<ul class="events">${refusals.map((event) => entry(event, texts))}</ul></details></li>`;
  return events.flatMap((event) => {
    if (event.kind !== "refused") return [entry(event, texts)];
    return event === refusals[0] ? [folded] : [];
  });
}

function entry({ kind, atMs, parties, permissions, title }: EventView, texts: Texts): Html {
  const job = shownName(title, JOB_TITLE_CHARS_MAX);
  return html`<li>${sign(SORTS[kind])}<div>
<p><span class="time">${minuteOf(atMs, texts)}</span> ${texts.done[kind]}${job === undefined ? undefined : html` ${texts.jobTitle(isolated(job))}`}</p>
${permissions.map((permission) => html`<p class="hint">${doneWith(permission, texts)}</p>`)}
${parties.length > 1 ? details(parties, atMs, texts) : undefined}
</div></li>`;
}

/** The way, and the ids of those behind the names. */
const details = (parties: readonly ShownParty[], atMs: number, texts: Texts): Html =>
  html`<details><summary>${chainLine(parties, texts)}</summary><dl>
${fact(texts.identities, html`<ol>${parties.map((party) => html`<li>${partyName(party, texts)}</li>`)}</ol>`)}
${fact(texts.exactTime, html`${momentOf(atMs)}`)}
</dl></details>`;

function doneWith({ target, sentences }: PermissionView, texts: Texts): Html {
  const words = sentences.map((one) => shownId(inLanguage(one, [texts.language]))).join("; ");
  return html`${texts.doneAt(targetName(target, texts))}${words === "" ? undefined : html`: ${words}`}`;
}

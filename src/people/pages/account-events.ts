/** What was done in a user's name, by day and within a day by agent, with the way that led to each act. */
import { JOB_TITLE_CHARS_MAX } from "../../limits/jobs.ts";
import { type Html, html } from "../../spec/html.ts";
import type { OwnEventKind, RefusedFor } from "../audit/own-events.ts";
import { isolated, type PermissionView, shownName, targetName } from "./display-names.ts";
import { sentencesOf } from "./job-part.ts";
import { dayOf, minuteOf, momentOf } from "./language.ts";
import { fact } from "./page.ts";
import { partyHeading, partyName, passedOn, type ShownParty } from "./parties.ts";
import type { Texts } from "./texts.ts";

export type EventView = {
  kind: OwnEventKind;
  atMs: number;
  /** In the order in which they acted. */
  parties: readonly ShownParty[];
  permissions: readonly PermissionView[];
  /** The title of a job, in the words of its agent. */
  title?: string;
  /** Why it was refused. */
  refusedFor?: RefusedFor;
};

/** What is told apart by a word and a colour (WCAG-1.4.1-1). */
type DoneSort = keyof Texts["sorts"];

const SORTS: Record<OwnEventKind, DoneSort> = {
  token_given: "access",
  acted: "access",
  acted_as_you: "access",
  grant_redeemed: "access",
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
  renewed_elsewhere: "access",
  ended: "ending",
  signed_in: "session",
  signed_out: "session",
};

/** Of these the word before the entry says all, where it has permissions. */
const TOLD_BY_SORT: ReadonlySet<OwnEventKind> = new Set(["token_given", "acted", "refused"]);

/** The form for other days; what is wrong with those that were written stands in it. */
export function chosenDays(
  { base, firstDay, lastDay }: { base: string; firstDay: string; lastDay: string },
  problem: Html | undefined,
  texts: Texts,
): Html {
  const wrong = problem && html` aria-invalid="true" aria-describedby="problem"`;
  const day = (name: string, words: string, value: string): Html =>
    html`<label><span>${words}</span><input type="date" name="${name}" value="${value}"${wrong}></label>`;
  const open = problem !== undefined || firstDay !== "" || lastDay !== "" ? html` open` : undefined;
  return html`<details id="days"${open}><summary>${texts.daysLegend}</summary>
${problem}
<form class="days" method="get" action="${base}/account#days">
${day("from", texts.firstDay, firstDay)}${day("to", texts.lastDay, lastDay)}
<button>${texts.showDays}</button>
</form></details>`;
}

/** The newest day is open, and each other a line. */
export function days(events: readonly EventView[], texts: Texts): Html {
  const byDay = [...Map.groupBy(events, ({ atMs }) => dayOf(atMs / 1000, texts))];
  const all = byDay.map(
    ([day, ofDay], index) =>
      html`<details class="day"${index === 0 ? html` open` : undefined}><summary><h3>${day}</h3></summary>${agents(ofDay, texts)}</details>`,
  );
  return html`${all}`;
}

const sign = (sort: DoneSort, time: Html, texts: Texts): Html =>
  html`<span class="sign ${sort}">${texts.sorts[sort]}</span> <span class="time">${time}</span>`;

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
  const entries = entriesOf(events);
  const refusals = entries.filter(({ kind }) => kind === "refused");
  const times = refusals.reduce((sum, one) => sum + one.times.length, 0);
  if (times < 2) return entries.map((one) => entry(one, texts));
  const all = refusals.flatMap((one) => one.times);
  const [from, to] = [Math.min(...all), Math.max(...all)];
  const isOneMinute = Math.floor(from / 60_000) === Math.floor(to / 60_000);
  const between = html`${isOneMinute ? undefined : html`${minuteOf(from, texts)}–`}${minuteOf(to, texts)}`;
  const whys = new Set(refusals.map(({ refusedFor }) => refusedFor));
  const [wanted, ...others] = new Map(
    refusals.map(({ permissions: all }) => [JSON.stringify(all), all]),
  ).values();
  const folded = html`<li>${sign("refusal", between, texts)}<div>${others.length === 0 && wanted ? doneWith(wanted, texts) : undefined}<p class="hint">${texts.times(times)} ${[...whys].map((why) => whySaid(why, texts))}</p>
<details><summary>${texts.more}</summary><ul class="events">${refusals.map((one) => entry(one, texts))}</ul></details></div></li>`;
  return entries.flatMap((one) => {
    if (one.kind !== "refused") return [entry(one, texts)];
    return one === refusals[0] ? [folded] : [];
  });
}

type Entry = EventView & { times: readonly number[] };

/** PAGE-D-36: what an agent did again on one day, in the same way, is one line with its times, at the place of the newest. */
function entriesOf(events: readonly EventView[]): readonly Entry[] {
  const same = Map.groupBy(events, ({ atMs: _, ...event }) => JSON.stringify(event));
  return [...same.values()].flatMap(([first, ...more]) =>
    first === undefined ? [] : [{ ...first, times: [first, ...more].map(({ atMs }) => atMs) }],
  );
}

const whySaid = (why: RefusedFor | undefined, texts: Texts): Html =>
  why === undefined ? html`` : html`${texts.refusedFor[why]} `;

function entry({ kind, times, parties, permissions, title, refusedFor }: Entry, texts: Texts): Html {
  const minutes = [...new Map(times.map((atMs) => [Math.floor(atMs / 60_000), atMs])).values()];
  const told = minutes.map((atMs, index) => html`${index === 0 ? "" : ", "}${minuteOf(atMs, texts)}`);
  const several = minutes.length === times.length ? undefined : ` (${texts.entries(times.length)})`;
  return html`<li>${sign(SORTS[kind], html`${told}${several}`, texts)}<div>
${doneWith(permissions, texts)}<p class="hint">${permissions.length > 0 && TOLD_BY_SORT.has(kind) ? undefined : doneSaid(kind, title, texts)} ${whySaid(refusedFor, texts)}</p>
${parties.length > 1 ? details(parties, times, texts) : undefined}
</div></li>`;
}

/** JOB-D-3: the title, where the trail has it, in quotation marks. */
function doneSaid(kind: OwnEventKind, title: string | undefined, texts: Texts): Html {
  const [said, job] = [texts.done[kind], shownName(title, JOB_TITLE_CHARS_MAX)];
  return job === undefined
    ? html`${said}`
    : html`${said.replace(/\.$/, ":")} ${texts.jobTitle(isolated(job))}`;
}

/** The way, and the ids of those behind the names. */
const details = (parties: readonly ShownParty[], times: readonly number[], texts: Texts): Html =>
  html`${passedOn(parties, texts)}<details><summary>${texts.more}</summary><dl>
${fact(texts.identities, html`<ol>${parties.map((party) => html`<li>${partyName(party, texts)}</li>`)}</ol>`)}
${fact(texts.exactTime, html`${times.map(momentOf).join(", ")}`)}
</dl></details>`;

const doneWith = (permissions: readonly PermissionView[], texts: Texts): Html | undefined =>
  permissions.length === 0
    ? undefined
    : html`<p>${permissions.map(({ target, sentences }, index) => {
        const what = sentences.length === 0 ? undefined : `${sentencesOf(sentences, texts)} · `;
        return html`${index === 0 ? "" : "; "}${what}${targetName(target, texts)}`;
      })}</p>`;

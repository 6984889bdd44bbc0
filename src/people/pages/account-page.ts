/** The page on which a user reads what they allowed and what was done in their name, and takes it back (PAGE-D-15). */
import { JOB_TITLE_CHARS_MAX } from "../../limits/jobs.ts";
import { inLanguage } from "../../policy/worded.ts";
import { type Html, html, link } from "../../spec/html.ts";
import { chosenDays, days, type EventView } from "./account-events.ts";
import { type WeekView, weekPart } from "./account-week.ts";
import { hidden, signedInAs } from "./decision-parts.ts";
import { type DetailView, sentence } from "./detail-sentences.ts";
import {
  isolated,
  type PermissionView,
  type ShownTarget,
  type ShownUser,
  shownId,
  shownName,
  targetName,
  targetNames,
} from "./display-names.ts";
import { dayOf, inZone, untilOf, whenOf } from "./language.ts";
import { fact, factList, type Page } from "./page.ts";
import {
  aboutParty,
  answersFor,
  besideDisc,
  partyHeading,
  partyLines,
  partyName,
  partyTitle,
  type ShownParty,
} from "./parties.ts";
import type { Texts } from "./texts.ts";

/** What an agent has of the user; what one agent has stands in one card. */
type HeldView = {
  id: string;
  formToken: string;
  /** The whole id of the agent. */
  agent: string;
  party: ShownParty;
  /** Those that led to its last act, with it; empty where it acted for the user at once. */
  way: readonly ShownParty[];
};

export type AllowedView = HeldView & {
  permissions: readonly PermissionView[];
  /** Where it gives nothing any more: the targets that are gone, or have none of its scopes. */
  gone?: readonly ShownTarget[];
  /** The objects to which they are limited. */
  details: readonly DetailView[];
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

/** A job that goes on; `title` is in the words of the agent. */
export type OwnJobView = HeldView &
  Pick<AllowedView, "gone"> & {
    title: string;
    /** The other agents that take part. */
    participants: readonly ShownParty[];
    permissions: readonly PermissionView[];
    untilSeconds: number;
    /** What its agent may do without it because of rules that ask no user. */
    beside: readonly PermissionView[];
  };

/** A job that was stopped, and the targets that may accept for a while what it gave. */
export type StoppedView = Pick<OwnJobView, "title" | "party"> & {
  open: readonly { target: ShownTarget; untilSeconds: number }[];
};

/** An open question to the user, which they answer on its own page. */
export type QuestionView = Pick<AllowedView, "id" | "party" | "permissions"> & {
  minutesLeft: number;
  /** Until when what is allowed lasts. */
  untilSeconds: number;
};

export type AccountView = {
  /** The forms and links of this server begin with it. */
  base: string;
  user: ShownUser;
  /** The time zone of the user, where it is known. */
  zone?: string;
  signOutToken: string;
  /** On the first page alone. */
  week?: WeekView;
  questions: readonly QuestionView[];
  allowed: readonly AllowedView[];
  moreAllowed?: string;
  /** On a page that is not the first: the way there. */
  firstAllowed?: string;
  /** The longest lifetime of a token, in minutes. */
  minutesAfter: number;
  takeAllToken: string;
  jobs: readonly OwnJobView[];
  stopped: readonly StoppedView[];
  nowSeconds: number;
  events: readonly EventView[];
  /** The days that are shown, as they were written. */
  firstDay: string;
  lastDay: string;
  older?: string;
  newest?: string;
  problem?: "unconfirmed" | keyof Texts["dayProblems"];
};

export const accountPage = (view: AccountView): Page => ({
  status: view.problem === undefined ? 200 : 400,
  isAccount: true,
  show: (catalogue) => {
    const texts = inZone(catalogue, view.zone);
    return {
      title: problemTitle(view, texts) ?? texts.accountTitle,
      body: html`
${problemOf(view, "all", texts)}
<h1>${texts.accountTitle}</h1>
${signedInAs(view, `${view.base}/signin?again=1`, texts)}
${view.questions.length === 0 ? undefined : asked(view, texts)}
<h2>${texts.allowedHeading}</h2>
${allowed(view, texts)}
${stoppedOf(view, texts)}
${view.week && weekPart(view.week, texts)}
<h2>${texts.doneHeading}</h2>
${done(view, texts)}`,
    };
  },
});

function problemTitle({ problem }: AccountView, texts: Texts): string | undefined {
  if (problem === undefined) return undefined;
  return problem === "unconfirmed" ? texts.unconfirmedTitle : texts.dayProblems[problem].title;
}

/** WCAG-3.3.1-1: the text stands at the fields, names what is wrong, and says what to do. */
function problemOf({ problem }: AccountView, at: "days" | "all", texts: Texts): Html | undefined {
  if (problem === undefined || (problem === "unconfirmed") !== (at === "all")) return undefined;
  const { title, text } =
    problem === "unconfirmed"
      ? { title: texts.unconfirmedTitle, text: texts.takeAllUnconfirmed }
      : texts.dayProblems[problem];
  return html`<div class="warning" role="alert"><p><strong>${title}.</strong></p><p id="problem">${text}</p></div>`;
}

/** JOB-D-3: the title is what the agent calls the work, in quotation marks. PAGE-D-32: its end has the time that is left. */
function jobPart(job: OwnJobView, label: string, view: AccountView, texts: Texts): Html {
  const { id, formToken, title, participants, permissions, gone, untilSeconds, beside } = job;
  return html`<div class="given job"><h4 id="${label}">${texts.jobInProgress(isolated(shownName(title, JOB_TITLE_CHARS_MAX) ?? id))}</h4>
<p class="hint">${voided(gone, texts)} ${texts.jobEnds(untilOf(untilSeconds, view.nowSeconds, texts))}</p>
<dl class="may">${permissions.map((permission) => permitted(permission, texts))}${beside.map((one) => besides(one, texts))}${listed(
    texts.jobAgents,
    participants.map((party) => partyLines(party, texts)),
  )}</dl>
${separate(job, view, texts)}
<div class="acts"><details class="ask"><summary aria-describedby="${label}">${texts.stopJob}</summary>
<form method="post" action="${view.base}/account/withdraw">
${hidden("token", formToken)}${hidden("job", id)}
<p>${texts.stopJobQuestion}</p>
<button aria-describedby="${label}">${texts.stopJobYes}</button>
</form></details>
${folded([wayTo(job, texts)], texts)}</div></div>`;
}

/** JOB-D-23: what rules give its agent beside the job, which outlives it, and how it ends. */
function besides({ target, sentences }: PermissionView, texts: Texts): Html {
  const ends = html`<span class="hint">${texts.byOperator(isolated(texts.operator ?? ""))}</span>`;
  return factList(texts.mayBeside(targetName(target, texts)), [
    ...sentences.map((one) => said(one, texts)),
    ends,
  ]);
}

/** JOB-D-23: consents of its agent and of those that take part, which outlive it. */
function separate({ party, participants }: OwnJobView, { allowed: all }: AccountView, texts: Texts) {
  const lines = [party, ...participants].flatMap((one) => {
    const standing = all.filter(({ party: { id, isHost } }) => id === one.id && isHost === one.isHost);
    const given = standing.flatMap(({ permissions }) => permissions);
    if (given.length === 0) return [];
    return [html`<p>${texts.keepsOwn(isolated(partyTitle(one, texts)), placesOf(given, texts))}</p>`];
  });
  return lines.length === 0 ? undefined : html`<div class="also">${lines}</div>`;
}

function placesOf(given: readonly PermissionView[], texts: Texts): Html {
  const targets = new Map(given.map(({ target }) => [JSON.stringify(target), target]));
  return targetNames([...targets.values()], texts);
}

/** JOB-D-21: a stop is told with what it does not reach at once. */
function stoppedOf({ stopped, nowSeconds }: AccountView, texts: Texts): Html | undefined {
  if (stopped.length === 0) return undefined;
  const cards = stopped.map(({ title, party, open }) => {
    const left = open.map(
      ({ target, untilSeconds }) =>
        html` ${texts.stillAccepted(targetName(target, texts), whenOf(untilSeconds, nowSeconds, texts))}`,
    );
    return html`<li>${named(party, undefined, texts)}
<div class="given"><h4>${texts.jobTitle(isolated(shownName(title, JOB_TITLE_CHARS_MAX) ?? ""))}</h4>
<p>${texts.stopped}${left}</p></div></li>`;
  });
  return html`<h2>${texts.stoppedHeading}</h2>
<ul class="cards">${cards}</ul>`;
}

/** DTR-D-13: each question leads to its own page, where the reason, the whole chain and a box for each permission stand. */
const asked = (view: AccountView, texts: Texts): Html =>
  html`<h2>${texts.askedHeading}</h2>
<ul class="cards">${view.questions.map((question, index) => questionCard(question, index, view, texts))}</ul>`;

function questionCard(
  question: QuestionView,
  index: number,
  { base, nowSeconds }: AccountView,
  texts: Texts,
): Html {
  const { id, party, permissions, minutesLeft, untilSeconds } = question;
  const label = `asked-${index}`;
  const decide = html`<a href="${base}/ask?r=${id}" aria-describedby="${label}">${texts.lookAndDecide}</a>`;
  return html`<li><div>${named(party, label, texts)}${aboutParty(party, texts)}</div>
<div class="given"><dl class="may">${permissions.map((one) => permitted(one, texts, texts.asksTo))}</dl>
<p class="hint">${texts.lasts(untilOf(untilSeconds, nowSeconds, texts))} ${texts.timeLeft(minutesLeft)}</p>
<div class="choices ways">${decide}</div></div></li>`;
}

// --- what is allowed --------------------------------------------------------------------------------------------

/** PAGE-D-36: one card for each agent. */
function allowed(view: AccountView, texts: Texts): Html {
  const { allowed: all, jobs, moreAllowed, firstAllowed } = view;
  // What may have been stolen stands first.
  const isWarned = (one: AllowedView): boolean =>
    one.reusedAtMs !== undefined || one.renewedElsewhere === true;
  const agents = [...new Set([...all.filter(isWarned), ...jobs, ...all].map(({ agent }) => agent))];
  if (agents.length === 0 && moreAllowed === undefined) return html`<p>${texts.nothingAllowed}</p>`;
  return html`<ul class="cards">${agents.map((agent, index) => card(agent, `agent-${index}`, view, texts))}</ul>
${moreAllowed === undefined ? undefined : html`<p>${link(moreAllowed, html`${texts.moreAllowed}`)}</p>`}
${firstAllowed === undefined ? undefined : html`<p>${link(firstAllowed, html`${texts.firstAllowed}`)}</p>`}
${takeAll(view, texts)}`;
}

function card(agent: string, label: string, view: AccountView, texts: Texts): Html {
  const jobs = view.jobs.filter((one) => one.agent === agent);
  const all = view.allowed.filter((one) => one.agent === agent);
  const [first] = [...jobs, ...all];
  return html`<li><div>${first && html`${named(first.party, label, texts)}${aboutParty(first.party, texts)}${refusedLast(first.party, view, texts)}`}</div>
${jobs.map((job, index) => jobPart(job, `${label}-job-${index}`, view, texts))}
${all.map((one) => givenPart(one, label, view, texts))}</li>`;
}

/** The newest entries alone say what was last. */
function refusedLast({ id }: ShownParty, { week, events, nowSeconds }: AccountView, texts: Texts) {
  const last = events.find(({ kind, parties }) => kind === "refused" && parties.at(-1)?.id === id);
  if (week === undefined || last === undefined) return undefined;
  return html`<p class="hint refusal">${texts.lastRefused(whenOf(last.atMs / 1000, nowSeconds, texts))}</p>`;
}

/** Its disc, its name and its id. */
function named(party: ShownParty, label: string | undefined, texts: Texts): Html {
  const { heading, beneath } = partyHeading(party, texts);
  const id = label && html` id="${label}"`;
  return besideDisc(party, html`<h3${id}>${heading}</h3>${beneath}`, texts);
}

function givenPart(one: AllowedView, label: string, view: AccountView, texts: Texts): Html {
  const { permissions, gone, untilSeconds, details } = one;
  const limits = listed(
    texts.limits,
    details.map((detail) => sentence(detail, texts)),
  );
  const ends =
    untilSeconds === undefined
      ? texts.untilTakenBack
      : texts.lasts(untilOf(untilSeconds, view.nowSeconds, texts));
  const until = voided(gone, texts) ?? ends;
  return html`<div class="given">${warned(one, texts)}
${permissions.length === 0 ? undefined : html`<dl class="may">${permissions.map((permission) => permitted(permission, texts))}${limits}</dl>`}
<p class="hint">${until} ${usedText(one, view, texts)}</p>
<div class="acts">${takeBack(one, label, view, texts)}
${furtherFacts(one, texts)}</div></div>`;
}

/** PAGE-D-34: a record that gives nothing may be taken back all the same, since what is gone may come back. */
const voided = (gone: readonly ShownTarget[] | undefined, texts: Texts): Html | undefined =>
  gone === undefined || gone.length === 0 ? undefined : texts.givesNothing(targetNames(gone, texts));

/** One question, without which nothing is taken back. */
const takeBack = ({ id, formToken }: AllowedView, label: string, view: AccountView, texts: Texts): Html =>
  html`<details class="ask"><summary aria-describedby="${label}">${texts.takeBack}</summary>
<form method="post" action="${view.base}/account/withdraw">
${hidden("token", formToken)}${hidden("consent", id)}
<p>${texts.takeBackQuestion}</p>
<p class="hint">${texts.takeBackHint(view.minutesAfter)}</p>
<button aria-describedby="${label}">${texts.takeBackYes}</button>
</form></details>`;

const permitted = ({ target, sentences }: PermissionView, texts: Texts, words = texts.mayAt): Html =>
  factList(
    words(targetName(target, texts)),
    sentences.map((one) => said(one, texts)),
  );

const said = (sentence: PermissionView["sentences"][number], { language }: Texts): Html =>
  html`${shownId(inLanguage(sentence, [language]))}`;

/** Those that led to the last act, with their ids. */
const wayTo = ({ way }: HeldView, texts: Texts): Html | undefined =>
  way.length === 0
    ? undefined
    : fact(texts.identities, html`<ol>${way.map((party) => html`<li>${partyName(party, texts)}</li>`)}</ol>`);

function folded(facts: readonly (Html | undefined)[], texts: Texts): Html | undefined {
  const some = facts.filter((one) => one !== undefined);
  return some.length === 0
    ? undefined
    : html`<details><summary>${texts.more}</summary><dl>${some}</dl></details>`;
}

function furtherFacts(one: AllowedView, texts: Texts): Html | undefined {
  const { party, sinceSeconds, goesOn, agents } = one;
  const answered = answersFor(party, texts);
  const facts = [
    wayTo(one, texts),
    answered && fact(texts.answersFor, answered),
    sinceSeconds === undefined ? undefined : fact(texts.allowedSince, html`${dayOf(sinceSeconds, texts)}`),
    listed(
      texts.goesOn,
      goesOn.map((grant) => grantText(grant, texts)),
    ),
    listed(
      texts.mayActFurther,
      agents.map((agent) => partyName(agent, texts)),
    ),
  ];
  return folded(facts, texts);
}

function usedText({ lastUse }: AllowedView, { nowSeconds }: AccountView, texts: Texts): Html | string {
  if (lastUse === "none") return texts.noUse;
  return "atMs" in lastUse
    ? texts.lastUsed(whenOf(lastUse.atMs / 1000, nowSeconds, texts))
    : texts.noUseSince(dayOf(lastUse.noneSinceMs / 1000, texts));
}

const listed = (term: string, items: readonly Html[]): Html | undefined =>
  items.length === 0 ? undefined : factList(term, items);

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
function takeAll({ base, takeAllToken, problem, minutesAfter, jobs }: AccountView, texts: Texts): Html {
  // JOB-D-23: what rules give that ask no user.
  const left = jobs.flatMap(({ party, beside }) =>
    beside.length === 0 ? [] : [html`${isolated(partyTitle(party, texts))}: ${placesOf(beside, texts)}`],
  );
  const wrong = problem === "unconfirmed" ? html` aria-invalid="true" aria-describedby="problem"` : undefined;
  const open = problem === "unconfirmed" ? html` open` : undefined;
  return html`<details class="ask danger"${open}><summary>${texts.takeAll}</summary>
<form method="post" action="${base}/account/withdraw">
${hidden("token", takeAllToken)}${hidden("all", "1")}
<p>${texts.takeAllHint}</p>
<p class="hint">${texts.takeBackHint(minutesAfter)}</p>
<label><input type="checkbox" name="confirm" value="1" required${wrong}><span>${texts.takeAllConfirm}</span></label>
<button>${texts.takeAll}</button>
</form></details>
${left.map((one) => html`<p class="hint">${texts.takeAllLeaves(isolated(texts.operator ?? ""))} ${one}.</p>`)}`;
}

// --- what was done ----------------------------------------------------------------------------------------------

function done(view: AccountView, texts: Texts): Html {
  const { events, older, newest } = view;
  const ways = [newest && link(newest, html`${texts.newest}`), older && link(older, html`${texts.older}`)];
  const items = ways.filter((way) => typeof way === "object").map((way) => html`<li>${way}</li>`);
  // Days that were not looked at say nothing of what is on record.
  const problem = problemOf(view, "days", texts);
  const none = problem === undefined ? html`<p>${texts.nothingDone}</p>` : undefined;
  return html`<p class="hint">${texts.doneHint(texts.zone)}</p>
${chosenDays(view, problem, texts)}
${events.length === 0 ? none : days(events, texts)}
${items.length === 0 ? undefined : html`<ul class="choices">${items}</ul>`}`;
}

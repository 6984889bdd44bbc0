/** What a page shows of a job that a user is asked to approve: the words of the asker, and every bound (JOB-D-3, JOB-D-5). */
import { JOB_TITLE_CHARS_MAX } from "../../limits/jobs.ts";
import { inLanguage } from "../../policy/worded.ts";
import { type Html, html } from "../../spec/html.ts";
import {
  isolated,
  type PermissionView,
  type ShownTarget,
  shownName,
  targetName,
  targetNames,
} from "./display-names.ts";
import { untilOf } from "./language.ts";
import { disc, partyLines, partyName, type ShownParty } from "./parties.ts";
import type { Texts } from "./texts.ts";

/** Targets and scopes of the job are the permissions beside it. */
export type JobView = {
  title: string;
  /**
   * Those that would take part, by the value of the box of each: `may` has what they get of what is ticked, where that is
   * not all, and `unasked` what rules that ask no user give them in the job.
   */
  participants: readonly {
    box: string;
    party: ShownParty;
    may?: readonly PermissionView[];
    unasked: readonly PermissionView[];
  }[];
  /** The same of the agent that asks. */
  own?: readonly PermissionView[];
  /** No one else may take part. */
  alone?: boolean;
  maxTokens?: number;
  maxDepth?: number;
  /** JOB-D-5: what the agent may do without the job, which a stop of it does not end. */
  without: readonly PermissionView[];
  /** What it may do without it because of rules that ask no user. */
  beside: readonly PermissionView[];
  /** What the agent that asks gets in the job by such rules. */
  unasked: readonly PermissionView[];
  /** Partners that go on with what they have when the job has ended (JOB-D-16). */
  goOn: readonly ShownTarget[];
};

export const jobPart = (job: JobView | undefined, texts: Texts): Html | undefined =>
  job &&
  html`<div class="quote"><p class="hint">${texts.jobAsked}</p>
<h2>${texts.jobTitle(isolated(shownTitle(job.title)))}</h2>
</div>`;

/** The bounds are this server's, so they stand apart from the words of the one that asks. */
export function jobBounds(job: JobView | undefined, texts: Texts): Html | undefined {
  const { alone, maxTokens, maxDepth } = job ?? {};
  const bounds = [
    alone ? texts.jobAlone : undefined,
    maxTokens === undefined ? undefined : texts.jobTokens(maxTokens),
    maxDepth === undefined ? undefined : texts.jobDepth(maxDepth),
  ].filter((bound) => bound !== undefined);
  return bounds.length === 0 ? undefined : html`<p>${bounds.join(" ")}</p>`;
}

/** PAGE-D-35: what rules give in the job that ask no user comes of the click alone. */
export const jobGift = (job: JobView | undefined, texts: Texts): Html | undefined =>
  job === undefined || job.unasked.length === 0 ? undefined : texts.jobUnasked(briefly(job.unasked, texts));

/** JOB-D-16: what cannot be taken back stands beside what can. */
export const takingBack = (job: JobView | undefined, texts: Texts): Html =>
  job === undefined || job.goOn.length === 0
    ? html`${texts.canTakeBack}`
    : texts.jobGoesOn(targetNames(job.goOn, texts));

/** JOB-D-5: the click gives none of it, so that where it is stands in plain sight, and what it is folded. */
export function withoutIt(job: JobView | undefined, texts: Texts): Html | undefined {
  const { without = [], beside = [] } = job ?? {};
  const all = [...without, ...beside];
  if (all.length === 0) return undefined;
  const targets = new Map(all.map(({ target }) => [JSON.stringify(target), target]));
  const more =
    beside.length === 0
      ? undefined
      : html`<p>${texts.jobBeside}:</p>${listOf(beside, texts)}<p>${texts.jobBesideEnds}</p>`;
  return html`<details><summary>${texts.jobWithout(targetNames([...targets.values()], texts))}</summary>${without.length === 0 ? undefined : listOf(without, texts)}${more}</details>`;
}

/** JOB-D-28: it has a title if it is one of ours, and else the server whose it is. */
export type JobInForceView = { title?: string; issuer?: ShownParty; endsAtSeconds: number };

export function inJobPart(
  { inJob, untilSeconds, nowSeconds }: { inJob?: JobInForceView; untilSeconds: number; nowSeconds: number },
  texts: Texts,
): Html | undefined {
  if (inJob === undefined) return undefined;
  const { title, issuer, endsAtSeconds } = inJob;
  const named = issuer === undefined ? texts.jobTitle(isolated(shownTitle(title))) : partyName(issuer, texts);
  // PAGE-D-32: a page tells one end, which is that of what is given.
  const end =
    endsAtSeconds === untilSeconds ? texts.jobEnds(untilOf(endsAtSeconds, nowSeconds, texts)) : undefined;
  return html`<div class="quote"><p>${issuer === undefined ? texts.inJob : texts.inJobElsewhere}</p>
<h2>${named}</h2>
${end && html`<p>${end}</p>`}
</div>`;
}

const shownTitle = (title: string | undefined): string => shownName(title, JOB_TITLE_CHARS_MAX) ?? "";

/** PAGE-D-35: each of them needs a tick of its own, and its card says what it gets. */
export function participants(
  job: JobView | undefined,
  ticked: readonly string[] | undefined,
  texts: Texts,
): Html | undefined {
  if (job === undefined || job.participants.length === 0) return undefined;
  const boxes = job.participants.map(
    (one) =>
      html`<label class="one"><input type="checkbox" name="agent" value="${one.box}"${ticked?.includes(one.box) ? html` checked` : undefined}>${disc(one.party, texts)}<span>${partyLines(one.party, texts)}</span>${partSaid(one, texts)}</label>`,
  );
  return html`<fieldset class="parties" aria-describedby="tick-hint"><legend class="head">${texts.jobAgents}</legend>
<div>${boxes}</div>
</fieldset>`;
}

/** What it gets of the ticks, and then what rules that ask no user give it with its own tick. */
function partSaid({ may, unasked }: JobView["participants"][number], texts: Texts): Html {
  const ofTicks = may === undefined ? html`${texts.jobPartAll}` : texts.jobPart(briefly(may, texts));
  const parts = [
    may?.length === 0 ? undefined : ofTicks,
    unasked.length === 0 ? undefined : texts.jobPartExtra(briefly(unasked, texts)),
  ].filter((one) => one !== undefined);
  const all = parts.length === 0 ? [html`${texts.jobPartNone}`] : parts;
  return html`<span class="share">${all.map((one) => html` <span>${one}</span>`)}</span>`;
}

/** In one line. */
export const briefly = (permissions: readonly PermissionView[], texts: Texts): Html =>
  html`${permissions.map(({ target, sentences }, index) => {
    const what = sentences.length === 0 ? undefined : `${sentencesOf(sentences, texts)}, `;
    return html`${index === 0 ? "" : "; "}${what}${texts.at(targetName(target, texts))}`;
  })}`;

export const sentencesOf = (sentences: PermissionView["sentences"], texts: Texts): string =>
  sentences.map((one) => inLanguage(one, [texts.language])).join("; ");

const listOf = (permissions: readonly PermissionView[], texts: Texts): Html => {
  const items = permissions.map((one) => html`<li>${briefly([one], texts)}</li>`);
  return html`<ul>${items}</ul>`;
};

/** What a page shows of a job that a user is asked to approve: the words of the asker, and every bound (JOB-D-3, JOB-D-5). */
import { JOB_TITLE_CHARS_MAX } from "../../limits/jobs.ts";
import type { Worded } from "../../policy/worded.ts";
import { inLanguage } from "../../policy/worded.ts";

import type { PermissionView, ShownTarget } from "./display-names.ts";
import { isolated, shownName, targetName } from "./display-names.ts";
import type { Html } from "./html.ts";
import { html } from "./html.ts";
import { dayOf } from "./language.ts";
import type { ShownParty } from "./parties.ts";
import { partyName } from "./parties.ts";
import type { Texts } from "./texts.ts";

export type JobView = {
  title: string;
  untilSeconds: number;
  targets: readonly ShownTarget[];
  /** Of all these targets, each in the operator's words. */
  scopes: readonly Worded[];
  /** Who may take part; empty where the job does not limit that. */
  agents: readonly ShownParty[];
  maxTokens?: number;
  maxDepth?: number;
  /** JOB-D-5: what the agent may do without the job, which a stop of it does not end. */
  without: readonly PermissionView[];
  /** What it may do without it because of rules that ask no user. */
  beside: readonly PermissionView[];
  /** Partners that go on with what they have when the job has ended (JOB-D-16). */
  goOn: readonly ShownTarget[];
};

export function jobPart(job: JobView | undefined, texts: Texts): Html | undefined {
  if (job === undefined) return undefined;
  const { maxTokens, maxDepth } = job;
  const among = (items: readonly Html[]): Html =>
    html`<ul>${items.map((item) => html`<li>${item}</li>`)}</ul>`;
  const bounds = [
    html`<li>${texts.jobUntil(dayOf(job.untilSeconds, texts))}</li>`,
    html`<li>${texts.jobAt}${among(job.targets.map((target) => html`${targetName(target, texts)}`))}</li>`,
    html`<li>${texts.jobMay}${among(job.scopes.map((one) => html`${inLanguage(one, [texts.language])}`))}</li>`,
    job.agents.length === 0
      ? undefined
      : html`<li>${texts.jobAgents}${among(job.agents.map((agent) => html`${partyName(agent, texts)}`))}</li>`,
    maxTokens === undefined ? undefined : html`<li>${texts.jobTokens(maxTokens)}</li>`,
    maxDepth === undefined ? undefined : html`<li>${texts.jobDepth(maxDepth)}</li>`,
    ...job.goOn.map((target) => html`<li>${texts.jobGoesOn(targetName(target, texts))}</li>`),
  ].filter((bound) => bound !== undefined);
  const title = shownName(job.title, JOB_TITLE_CHARS_MAX) ?? "";
  return html`<p>${texts.jobAsked}</p>
<h2>${texts.jobTitle(isolated(title))}</h2>
<ul>${bounds}</ul>
${job.without.length === 0 ? undefined : html`<p>${texts.jobWithout}</p>${listOf(job.without, texts)}`}
${besideIt(job.beside, texts)}`;
}

/** JOB-D-23: what goes on when the job is stopped, and that the operator alone ends it. */
export const besideIt = (beside: readonly PermissionView[], texts: Texts): Html | undefined =>
  beside.length === 0
    ? undefined
    : html`<details><summary>${texts.jobBeside}</summary>${listOf(beside, texts)}<p>${texts.jobBesideEnds}</p></details>`;

const listOf = (permissions: readonly PermissionView[], texts: Texts): Html => {
  const items = permissions.map(({ target, sentences }) => {
    const may = sentences.map((one) => html`<li>${inLanguage(one, [texts.language])}</li>`);
    return html`<li>${targetName(target, texts)}<ul>${may}</ul></li>`;
  });
  return html`<ul>${items}</ul>`;
};

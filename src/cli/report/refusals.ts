/** The refusals of a report, each as a ladder with the smallest change (CHANGE-D-2). */
import { REASONS } from "../../audit/reasons.ts";
import { changeText } from "../../policy/change-words.ts";
import { type Html, html } from "../../spec/html.ts";
import { shown } from "./map.ts";
import type { Model, RefusalRow } from "./model.ts";
import { at, digits, type Links, nameCell, type ReportPage, some } from "./parts.ts";

const REFUSALS_SHOWN = 150;

const SENTENCES: ReadonlyMap<string, string> = new Map(Object.entries(REASONS));

const SIDES = {
  subject_token: "the subject token lacks it",
  client: "the client is not registered for it",
  rule: "the rule does not allow it",
  target: "the target does not have it",
  job: "the job does not include it",
  consent: "the consent does not cover it",
} as const;

export function refusalsPage({ refusals, agents, counted }: Model, links: Links): ReportPage {
  const titles = new Map(agents.map(({ id, title }) => [id, title]));
  const listed = refusals.slice(0, REFUSALS_SHOWN);
  const more = refusals.length - listed.length + counted.unlisted;
  const body = html`<h1>Refusals</h1>
<p class="hint">Questions that were refused, the most frequent first. Each condition of the nearest rule has its mark, by the policy that is in force. What would have allowed a request is a suggestion: it is applied nowhere, and its caller is not told.</p>
${listed.length === 0 ? html`<p>Nothing was refused.</p>` : html`<ul class="cards">${listed.map((one) => refusalCard(one, nameCell(one.agent, titles.get(one.agent), links.get(`agent ${one.agent}`))))}</ul>`}
${more > 0 ? html`<p class="hint">${digits(more)} more; <code>mandate audit --summary --outcome deny</code> counts them all.</p>` : undefined}`;
  return { file: "refusals.html", title: "Refusals", body };
}

/** `who`: the agent, where the page is not its own. */
export function refusalCard(one: RefusalRow, who?: Html): Html {
  const { reason, mode, target, scope, use, subjects, allowedNow, judged, lastRequest } = one;
  const asks = html`${mode.replaceAll("_", " ")}${target === undefined ? undefined : html` at <code>${shown(target)}</code>`}${scope === undefined ? undefined : html`, scope <code>${shown(scope)}</code>`}${subjects.by.size === 0 ? undefined : html`, for ${some(subjects.by.size, "subject")}`}`;
  const ladder = judged?.ladder;
  const rungs =
    ladder?.rungs.map(({ text, holds }) => html`<li class="${holds ? "yes" : "no"}">${text}</li>`) ?? [];
  const scopes =
    ladder?.scopes.map(({ scope: name, fell }) =>
      fell === undefined
        ? html`<li class="yes"><span>scope <code>${shown(name)}</code></span></li>`
        : html`<li class="no"><span>scope <code>${shown(name)}</code>: ${SIDES[fell]}</span></li>`,
    ) ?? [];
  return html`<li><h3>${who ?? asks}</h3>
${who === undefined ? undefined : html`<p>${asks}</p>`}
<p><strong>${some(use.count, "time")}</strong>, last ${at(use.lastMs)}${lastRequest === undefined ? undefined : html`, request <code>${shown(lastRequest)}</code>`}</p>
<p>Refused: ${SENTENCES.get(reason) ?? "for another reason"} <code>(${shown(reason)})</code></p>
${judged === undefined ? undefined : html`<ul class="ladder" aria-label="${ladder === undefined ? "Rules" : `Rule ${shown(ladder.rule)}`}">${ladder === undefined ? html`<li class="no">a rule for this caller at this target</li>` : [...rungs, ...scopes]}</ul>`}
${allowedNow ? html`<p class="hint">The policy in force would allow it.</p>` : judged === undefined ? undefined : changeBox(judged.suggestion)}</li>`;
}

const changeBox = (found: NonNullable<RefusalRow["judged"]>["suggestion"]): Html =>
  found === undefined
    ? html`<p class="hint">No change of one rule, consent, token or registration would have allowed it.</p>`
    : html`<div class="change"><p class="hint">Suggestion, not applied: the smallest change that would have allowed it, by rule <code>${shown(found.rule)}</code></p><ul>${found.changes.map((change) => html`<li>${shown(changeText(change))}</li>`)}</ul></div>`;

/** What the two pages have in common on which a user decides: what is asked, the buttons, and beneath them the details. */

import { CHAIN_CHARS_MAX } from "../../limits/people.ts";
import { inLanguage, type Worded } from "../../policy/worded.ts";
import { type Html, html } from "../../spec/html.ts";
import type { FormError } from "../flows/decision.ts";
import { type DetailView, sentence } from "./detail-sentences.ts";
import {
  isolated,
  type PermissionView,
  type ShownTarget,
  type ShownUser,
  shownId,
  targetName,
  userName,
} from "./display-names.ts";
import {
  briefly,
  inJobPart,
  type JobInForceView,
  type JobView,
  jobBounds,
  jobGift,
  jobPart,
  participants,
  sentencesOf,
  takingBack,
  withoutIt,
} from "./job-part.ts";
import { untilOf } from "./language.ts";
import { fact, factList } from "./page.ts";
import { besideDisc, idBeneath, partyName, partyTitle, type ShownParty } from "./parties.ts";
import type { Texts } from "./texts.ts";

/** An object that limits what is asked; `governs` are the scopes for which it counts. */
type Limit = { box: string; type: string; governs: readonly string[]; detail: DetailView };

export type DecisionView = Partial<FormError> & {
  /** What is asked at each target, and the objects to which that is limited; `box` is the value of the box of each. */
  at: readonly {
    target: ShownTarget;
    /** `unbounded`: objects could limit an amount of it, and those that are asked do not. */
    permissions: readonly { box: string; scope: string; sentence: Worded; unbounded?: boolean }[];
    limits: readonly Limit[];
  }[];
  /** The job that is to be approved. */
  job?: JobView;
  /** The job in which it is asked, which is approved already. */
  inJob?: JobInForceView;
  /** Until when what is allowed lasts, and the time of the page. */
  untilSeconds: number;
  nowSeconds: number;
  /** What was given before, which ends at the same time from now on, and until when it lasted. */
  kept?: PermissionView & { untilSeconds: number };
  /** Workloads that may act further without asking again. */
  agents: readonly ShownParty[];
  /** The user has refused it, and may take that back. */
  denied?: true;
  /** Why the client or agent asks, in its own words. */
  reason?: string;
  /** Why this user is asked, as the rule says it. */
  because?: Worded;
  user: ShownUser;
  /** The time zone of the user, where it is known. */
  zone?: string;
  formToken: string;
  signOutToken: string;
  /** The id in the URL of the page. */
  request: string;
  /** The forms and links of this server begin with it. */
  base: string;
  /** How long the page is good, and whether the user can extend that. */
  minutesLeft: number;
  renewable: boolean;
};

/** Where the form of a page goes, and where the browser goes if another user wants to decide. */
export type Ways = { action: string; again: string };

/** What a page adds: a warning before the buttons, which may have a box, advice beneath it, and facts of its own. */
type Own = { warning?: Html | undefined; advice?: string | undefined; facts: readonly Html[] };

export const hidden = (name: string, value: string): Html =>
  html`<input type="hidden" name="${name}" value="${value}">`;

/** PAGE-D-27: what is asked stands first, then the buttons, and everything else beneath them. */
export function decision(view: DecisionView, { action, again }: Ways, texts: Texts, own: Own): Html {
  const { minutesLeft, renewable } = view;
  const renew = `${action}&renew=1`;
  const more = renewable ? html` <a href="${renew}">${texts.moreTime}</a>` : undefined;
  const also = alsoMeant(view, texts);
  return html`
<form method="post" action="${action}" autocomplete="off">
${hidden("token", view.formToken)}
${jobPart(view.job, texts)}
${inJobPart(view, texts)}
<p class="hint" id="tick-hint">${view.job && html`<strong class="head">${texts.permissions}</strong> `}${view.job?.unasked.length ? texts.tickHintElse : texts.tickHint}</p>
${view.at.map((one, index) => permissionsAt(one, view, index, texts))}
${participants(view.job, view.ticked?.agents, texts)}
${everything(view, texts)}
${also.length > 0 ? html`<div class="also"><p class="hint">${texts.withAllow}</p><ul>${also}</ul></div>` : undefined}
${own.warning}
${terms(view, texts)}
${choices(texts)}
<p class="hint"><strong class="missing">${texts.tickFirst} </strong>${own.advice} <span class="whole">${texts.timeLeft(minutesLeft)}${
    // WCAG-2.2.1-1
    more
  }</span></p>
</form>
<details><summary>${texts.details}</summary>
<dl>
${own.facts}
${
  view.agents.length === 0
    ? undefined
    : factList(
        texts.mayActFurther,
        view.agents.map((one) => partyName(one, texts)),
      )
}
${fact(texts.scopeNames, html`${shownId(scopesOf(view).join(" "))}`)}
</dl></details>
${signedInAs(view, again, texts)}`;
}

/** PAGE-D-27: until when it lasts, and where and how often it counts. */
function terms({ untilSeconds, nowSeconds, job }: DecisionView, texts: Texts): Html {
  const end = html`<strong>${untilOf(untilSeconds, nowSeconds, texts)}</strong>`;
  const lasts = job === undefined ? texts.lasts(end) : texts.jobLasts(end);
  return html`<div class="terms"><p>${lasts} ${takingBack(job, texts)}</p>${jobBounds(job, texts)}
${withoutIt(job, texts)}</div>`;
}

/** PAGE-D-27, PAGE-D-35: all that the click brings or ends without a tick. */
const alsoMeant = (view: DecisionView, texts: Texts): readonly Html[] =>
  [jobGift(view.job, texts), furtherParties(view, texts), keptPart(view, texts)].flatMap((one) =>
    one === undefined ? [] : [html`<li>${one}</li>`],
  );

/** PAGE-D-45: nothing that was given before ends at another time than it did without being told. */
function keptPart({ kept, untilSeconds, nowSeconds }: DecisionView, texts: Texts): Html | undefined {
  if (kept === undefined) return undefined;
  const before = kept.untilSeconds > untilSeconds ? untilOf(kept.untilSeconds, nowSeconds, texts) : undefined;
  return texts.keptToo(briefly([kept], texts), before);
}

/** PAGE-D-6, OIDC-D-9: who is signed in, with the ways to be another user or none. */
export const signedInAs = (
  { base, user, signOutToken }: Pick<DecisionView, "base" | "user" | "signOutToken">,
  again: string,
  texts: Texts,
): Html => html`
<form class="who" method="post" action="${base}/signout">
${hidden("token", signOutToken)}
<p><span>${texts.signedInAs} ${userName(user)}</span> <a href="${again}">${texts.notYou}</a> <button>${texts.signOut}</button></p>
</form>`;

const scopesOf = ({ at }: DecisionView): readonly string[] => [
  ...new Set(at.flatMap(({ permissions }) => permissions.map(({ scope }) => scope))),
];

/**
 * PAGE-D-10, WCAG-1.3.1-1: the permissions at one target are a group with its legend, in which nothing is ticked. Its
 * limits stand in it.
 */
function permissionsAt(
  { target, permissions, limits }: DecisionView["at"][number],
  { ticked, job }: Pick<DecisionView, "ticked" | "job">,
  index: number,
  texts: Texts,
): Html {
  // PAGE-D-35: where the one that asks gets nothing, it does not ask for itself.
  const own = job?.own && (job.own.find((one) => isSame(one.target, target))?.sentences ?? []);
  const asks = own?.length === 0 ? texts.asksForOthers : texts.asksTo;
  const isPart = own !== undefined && own.length > 0 && own.length < permissions.length;
  const [among, alone] = partitioned(limits, isAmong(limits));
  // RAR-D-9: a limit of one permission is told in its box, and any other one beneath them.
  const isOf = ({ governs }: Limit, scope: string): boolean => {
    const governed = permissions.filter((one) => governs.includes(one.scope));
    return governed.length === 1 && governed[0]?.scope === scope;
  };
  const [within, beneath] = partitioned(alone, (one) => permissions.some(({ scope }) => isOf(one, scope)));
  const boxes = permissions.map((one) => {
    const limit = within.filter((each) => isOf(each, one.scope)).map((each) => limitSaid(each, texts));
    const none = one.unbounded ? html` <span class="limit">${texts.noAmountLimit}</span>` : undefined;
    const words = html`${inLanguage(one.sentence, [texts.language])}${limit}${none}`;
    return box("scope", one.box, words, "one", ticked?.scopes.includes(one.box));
  });
  return html`<fieldset aria-describedby="tick-hint"><legend>${asks(targetName(target, texts))}</legend>
${isPart ? html`<p class="hint">${texts.jobOwn(sentencesOf(own, texts))}</p>` : undefined}
${boxes}
${alone.map((one) => hidden("detail", one.box))}${beneath.map((one) => html`<p>${limitSaid(one, texts)}</p>`)}
${limitsAmong(among, ticked, index, texts)}
</fieldset>`;
}

function partitioned<T>(all: readonly T[], isFirst: (one: T) => boolean): [readonly T[], readonly T[]] {
  return [all.filter(isFirst), all.filter((one) => !isFirst(one))];
}

/** RAR-D-3: the only object of a type is no choice, since without it nothing would be given. */
const limitSaid = ({ detail }: Limit, texts: Texts): Html =>
  html` <span class="limit">${sentence(detail, texts, texts.only)}</span>`;

/** Whether it is a choice among several of its type. */
const isAmong =
  (limits: readonly Limit[]) =>
  (one: Limit): boolean =>
    limits.filter(({ type }) => type === one.type).length > 1;

const isSame = (one: ShownTarget, other: ShownTarget): boolean =>
  one.host === other.host && JSON.stringify(one.title) === JSON.stringify(other.title);

/** One box takes all of it. */
function everything({ at, job, ticked }: DecisionView, texts: Texts): Html | undefined {
  const { participants: agents = [] } = job ?? {};
  const permissions = at.flatMap((one) => one.permissions);
  const limits = at.flatMap((one) => one.limits.filter(isAmong(one.limits)));
  const extra = agents.flatMap(({ unasked }) => unasked.flatMap(({ sentences }) => sentences));
  if (permissions.length + limits.length + agents.length < 2) return undefined;
  // PAGE-D-35: it says what it takes, the further agents and what comes with them too.
  const counted = Object.entries({ permissions, limits, agents, extra }).flatMap(([kind, { length }]) =>
    length === 0 ? [] : [texts.boxes[kind as keyof Texts["boxes"]](length)],
  );
  return box("all", "1", html`${texts.everything(counted.join(", "))}`, "every", ticked?.all);
}

export const box = (
  name: string,
  value: string,
  words: Html,
  kind: "one" | "every",
  isTicked: boolean | undefined,
): Html =>
  html`<label class="${kind}"><input type="checkbox" name="${name}" value="${value}"${checked(isTicked)}><span>${words}</span></label>`;

/** PAGE-D-10, PAGE-D-43: nothing is ticked before the user has ticked it. */
export const checked = (isTicked: boolean | undefined): Html | undefined =>
  isTicked ? html` checked` : undefined;

/** RAR-D-9, RFC9396-3.1-2: of several objects of a type, each is shown with all that it says, and has a box. */
function limitsAmong(
  limits: readonly Limit[],
  ticked: DecisionView["ticked"],
  index: number,
  texts: Texts,
): Html | undefined {
  if (limits.length === 0) return undefined;
  const hint = `limits-hint-${index}`;
  const boxes = limits.map((one) =>
    box("detail", one.box, sentence(one.detail, texts), "one", ticked?.details.includes(one.box)),
  );
  return html`<fieldset aria-describedby="${hint}"><legend>${texts.limits}</legend>
<p class="hint" id="${hint}">${texts.limitsHint}</p>
${boxes}
</fieldset>`;
}

/** WCAG-3.3.1-1: what is missing, what to do, and that nothing is decided. */
export function problemOf({ problem, at: [own] }: DecisionView, texts: Texts): Html | undefined {
  if (problem === undefined) return undefined;
  const target = own === undefined ? html`` : targetName(own.target, texts);
  const { title, text } = texts.problems[problem];
  return html`<div class="warning" role="alert"><p id="problem"><strong>${title}.</strong> ${text(target)}</p></div>`;
}

export const titleOf = ({ problem }: DecisionView, title: string, texts: Texts): string =>
  problem === undefined ? title : texts.problems[problem].title;

/** So many are named, or none where names are long. */
const NAMED_MAX = 3;

/** That others act further is part of what is asked, so they stand in plain sight; their whole ids are in the details. */
function furtherParties({ agents: all }: DecisionView, texts: Texts): Html | undefined {
  if (all.length === 0) return undefined;
  const first = all.slice(0, NAMED_MAX);
  // PAGE-D-27: names of a foreign party's choosing take a bounded place.
  const isLong = first.map((one) => partyTitle(one, texts)).join("").length > CHAIN_CHARS_MAX;
  const named = isLong ? [] : first;
  const entries = named.map((one) => {
    const name = html`<strong>${isolated(partyTitle(one, texts))}</strong>${idBeneath(one, texts)}`;
    return besideDisc(one, name, texts);
  });
  return html`${entries}<p>${texts.agentsFurther(isolated(texts.operator ?? ""), named.length, all.length - named.length)}</p>`;
}

/**
 * PAGE-D-10: the two buttons are of one size, and one is as near as the other; the style draws the second one as inactive
 * until a permission is ticked, though it works, and answers what is missing.
 */
const choices = ({ refuse, allow }: Texts): Html =>
  html`<div class="choices"><button name="decision" value="refuse" formnovalidate>${refuse}</button><button name="decision" value="allow">${allow}</button></div>`;

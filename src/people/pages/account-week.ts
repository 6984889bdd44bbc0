/** A week at a glance: how often agents got access in a user's name on each day, and how often one was refused. */

import { type Html, html } from "../../spec/html.ts";
import type { OwnEvent, OwnEventKind } from "../audit/own-events.ts";
import { weekdayOf } from "./language.ts";
import { BAR_STEPS } from "./style.ts";
import type { Texts } from "./texts.ts";

export type WeekView = {
  /** Today is the last one. */
  days: readonly { atSeconds: number; acts: number; refusals: number }[];
  agents: number;
  /** There were more events than are counted. */
  isCut: boolean;
};

const ACTS: readonly OwnEventKind[] = [
  "token_given",
  "acted",
  "acted_as_you",
  "grant_redeemed",
  "renewed_elsewhere",
];

const DAYS = 7;

/** PAGE-D-36: counts by the days of the reader. */
export function weekOf(
  events: readonly OwnEvent[],
  isCut: boolean,
  nowSeconds: number,
  zone = "UTC",
): WeekView {
  const today = Temporal.Instant.fromEpochMilliseconds(nowSeconds * 1000)
    .toZonedDateTimeISO(zone)
    .startOfDay();
  const starts = Array.from({ length: DAYS + 1 }, (_, index) =>
    today.add({ days: index + 1 - DAYS }).startOfDay(),
  ).map(({ epochMilliseconds }) => epochMilliseconds);
  const acting = events.filter(({ kind, timeMs }) => ACTS.includes(kind) && timeMs >= (starts[0] ?? 0));
  const between = (from: number, to: number, of: (event: OwnEvent) => boolean): number =>
    events.filter((event) => event.timeMs >= from && event.timeMs < to && of(event)).length;
  return {
    days: starts.slice(0, DAYS).map((from, index) => {
      const to = starts[index + 1] ?? from;
      return {
        // Noon, which is on this day whatever the clocks do.
        atSeconds: (from + to) / 2000,
        acts: between(from, to, ({ kind }) => ACTS.includes(kind)),
        refusals: between(from, to, ({ kind }) => kind === "refused"),
      };
    }),
    agents: new Set(acting.map(({ agents }) => agents.at(-1)?.id)).size,
    isCut,
  };
}

/** Each bar has its number beside it, and the sentence says what is counted, so that nothing is told by form alone. */
export function weekPart({ days, agents, isCut }: WeekView, texts: Texts): Html {
  const most = Math.max(1, ...days.map(({ acts, refusals }) => acts + refusals));
  const all = (of: "acts" | "refusals"): number => days.reduce((sum, day) => sum + day[of], 0);
  const refused = all("refusals");
  const bar = (kind: "no" | "yes", times: number): Html =>
    html`<span class="bar ${kind} b${Math.ceil((BAR_STEPS * times) / most)}"></span>`;
  const bars = days.map(
    ({ atSeconds, acts, refusals }) =>
      html`<li>${refusals === 0 ? undefined : html`<strong>${refusals}</strong>${bar("no", refusals)}`}${bar("yes", acts)} <span>${acts}</span> <span class="hint">${weekdayOf(atSeconds, texts)}</span></li>`,
  );
  const given = all("acts") === 0 ? texts.weekNone : texts.weekTold(all("acts"), agents);
  return html`<h2>${texts.weekHeading}</h2>
<p class="key">${given}</p>${refused === 0 ? undefined : html`<p class="key">${texts.weekRefused(refused)}</p>`}${isCut ? html`<p>${texts.weekCut}</p>` : undefined}
${all("acts") + refused === 0 ? undefined : html`<ul class="week">${bars}</ul>`}`;
}

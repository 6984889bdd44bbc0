/** Which of our languages a page is in, and how dates are written in it (PAGE-D-17). */

import { type Html, html } from "../../spec/html.ts";
import { splitWeighted } from "../../spec/rfc9110.ts";
import type { Texts } from "./texts.ts";
import { de } from "./texts-de.ts";
import { en } from "./texts-en.ts";

/** The first language is for readers of no language that we have. */
export const LANGUAGES: readonly Texts[] = [en, de];

/**
 * The texts for the languages that the client names for its user (`ui_locales`, OpenID Connect Core 3.1.2.1), else for
 * those that the browser prefers (`Accept-Language`), each in the order of preference.
 */
export function textsFor(uiLocales: string | undefined, acceptLanguage: string | null): Texts {
  const wished = [...(uiLocales ?? "").split(" "), ...preferred(acceptLanguage ?? "")];
  const found = wished.map((tag) => LANGUAGES.find(({ language }) => language === primaryOf(tag)));
  return found.find((texts) => texts !== undefined) ?? en;
}

const primaryOf = (tag: string): string | undefined => tag.toLowerCase().split(/[-_]/, 1)[0];

/** RFC 9110 12.5.4; a language of weight 0 is not wanted. */
const preferred = (field: string): readonly string[] =>
  splitWeighted(field)
    .filter(({ weight }) => weight > 0)
    .toSorted((one, other) => other.weight - one.weight)
    .map(({ item }) => item);

/** The texts for a reader whose time zone may be known. */
export const inZone = (texts: Texts, zone: string | undefined): Texts =>
  zone === undefined ? texts : { ...texts, zone };

/** Writes the minute in the zone of the reader, or else in UTC, which it names then. */
const clockOf = (ms: number, { language, zone }: Texts): string => {
  const form = { timeStyle: "short", hourCycle: "h23", timeZone: zone ?? "UTC" } as const;
  const time = new Intl.DateTimeFormat(language, form).format(ms);
  return zone === undefined ? `${time} UTC` : time;
};

/** PAGE-D-30: the minute in the zone of the reader; the second in UTC is in the title. */
export const minuteOf = (ms: number, texts: Texts): Html => timeOf(ms / 1000, clockOf(ms, texts));

/** The day of the week in brief. */
export const weekdayOf = (seconds: number, { language, zone = "UTC" }: Texts): string =>
  new Intl.DateTimeFormat(language, { weekday: "short", timeZone: zone }).format(seconds * 1000);

/** Writes the second in UTC, as the audit trail has it. */
export const momentOf = (ms: number): string => new Date(ms).toISOString();

/** Writes the day, in the zone of the reader or else in UTC. */
export const dayOf = (seconds: number, { language, zone = "UTC" }: Texts): string =>
  new Intl.DateTimeFormat(language, { dateStyle: "long", timeZone: zone }).format(seconds * 1000);

/** PAGE-D-32: a point in time as people say it, from `nowSeconds`; the second in UTC is in the title. */
export const whenOf = (seconds: number, nowSeconds: number, texts: Texts): Html =>
  timeOf(seconds, said(seconds, nowSeconds, texts));

/** PAGE-D-32: an end, with the time that is left where that is counted in hours or days. */
export function untilOf(seconds: number, nowSeconds: number, texts: Texts): Html {
  const left = leftUntil(seconds, nowSeconds, texts);
  const at = said(seconds, nowSeconds, texts);
  return timeOf(seconds, left === undefined ? at : `${at} (${left})`);
}

const timeOf = (seconds: number, words: string): Html =>
  html`<time datetime="${momentOf(seconds * 1000)}" title="${momentOf(seconds * 1000)}">${words}</time>`;

/** From so many days on, a day is told without its time, and no days are counted. */
const FAR_DAYS = 7;
/** From so many hours on, no minutes are counted. */
const FAR_HOURS = 10;

function said(seconds: number, nowSeconds: number, texts: Texts): string {
  const days = daysBetween(nowSeconds, seconds, texts);
  const day = dayOf(seconds, texts);
  if (Math.abs(days) >= FAR_DAYS) return day;
  return `${texts.nearDays.get(days) ?? day}, ${clockOf(seconds * 1000, texts)}`;
}

/** Rounded up, so that no end comes later than it is told. */
function leftUntil(seconds: number, nowSeconds: number, texts: Texts): string | undefined {
  const minutes = Math.ceil((seconds - nowSeconds) / 60);
  const days = daysBetween(nowSeconds, seconds, texts);
  if (minutes <= 0 || days >= FAR_DAYS) return undefined;
  if (days > 1) return texts.inDays(days);
  if (minutes >= FAR_HOURS * 60) return texts.inTime(Math.ceil(minutes / 60), 0);
  return texts.inTime(Math.floor(minutes / 60), minutes % 60);
}

/** How many midnights of the reader are between. */
function daysBetween(from: number, to: number, { zone = "UTC" }: Texts): number {
  const [begin, end] = [from, to].map((seconds) =>
    Temporal.Instant.fromEpochMilliseconds(seconds * 1000)
      .toZonedDateTimeISO(zone)
      .toPlainDate(),
  );
  return begin === undefined || end === undefined ? 0 : begin.until(end).days;
}

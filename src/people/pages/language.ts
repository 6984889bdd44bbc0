/** Which of our languages a page is in, and how dates are written in it (PAGE-D-17). */

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

/** Writes the minute in the zone of the reader, where it is known, with UTC beside it. */
export function minuteOf(ms: number, { language, zone }: Texts): string {
  const at = (timeZone: string): string =>
    new Intl.DateTimeFormat(language, { timeStyle: "short", timeZone }).format(ms);
  return zone === undefined ? at("UTC") : `${at(zone)} (${at("UTC")} UTC)`;
}

/** Writes the second in UTC, as the audit trail has it. */
export const momentOf = (ms: number): string => new Date(ms).toISOString();

/** Writes the day, in the zone of the reader or else in UTC. */
export const dayOf = (seconds: number, { language, zone = "UTC" }: Texts): string =>
  new Intl.DateTimeFormat(language, { dateStyle: "long", timeZone: zone }).format(seconds * 1000);

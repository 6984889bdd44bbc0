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

/** Writes day and minute, in UTC. */
export const minuteOf = (ms: number, { language }: Texts): string =>
  new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short", timeZone: "UTC" }).format(ms);

/** Writes the day, in the time zone in which the server counts. */
export const dayOf = (seconds: number, { language }: Texts): string =>
  new Intl.DateTimeFormat(language, { dateStyle: "long", timeZone: "UTC" }).format(seconds * 1000);

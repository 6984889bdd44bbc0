/** Text that the operator writes for people, in one language or in several: what may stand in it, and which is shown. */
import * as v from "valibot";
import { hasStackedMarks, isBlank, unsafeIn } from "../audit/safe-text.ts";
import { STRING_BYTES_MAX } from "../limits/input.ts";

/** One text for all languages, or one for each language tag; the first is for readers of no language among them. */
export type Worded = string | Readonly<Record<string, string>>;

/** RFC 5646 2.1, as far as pages choose by it: a language of two or three letters, and what it is followed by. */
const LANGUAGE = /^[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8}){0,7}$/;

const isShown = v.check(
  (text: string) => unsafeIn(text) === undefined,
  ({ input }) => `has a character that is not shown, or that reorders others: leave out ${unsafeIn(input)}`,
);

/** RFC6749-10.14-1, NAME-D-8: a name of a party or target, which people are shown and which is compared as it is. */
export const nameText = v.pipe(
  v.string(),
  v.nonEmpty("is empty"),
  v.maxBytes(STRING_BYTES_MAX, "is too long"),
  isShown,
);

/** RFC6749-10.14-1, NAME-D-4: a text that has no characters which hide, reorder or cover others; any space is one. */
export const shownText = (charsMax: number) =>
  v.pipe(
    v.string(),
    v.check((text) => !isBlank(text), "has nothing that people see"),
    v.check((text) => [...text].length <= charsMax, `is longer than ${charsMax} characters`),
    isShown,
    v.check((text) => !hasStackedMarks(text), "has more than three combining marks on one letter"),
  );

/** NAME-D-5: the same text, or one for each language. */
export const worded = (charsMax: number) =>
  v.union(
    [
      shownText(charsMax),
      v.pipe(
        v.record(v.string(), shownText(charsMax)),
        v.check((texts) => Object.keys(texts).length > 0, "names no language"),
        v.check(
          (texts) => Object.keys(texts).every((tag) => LANGUAGE.test(tag)),
          'has a name that is no language tag such as "en" or "de-AT"',
        ),
      ),
    ],
    'is neither a text nor texts by language, such as { "en": …, "de": … }',
  );

/** The text for the first of these languages that it is written in. */
export function inLanguage(text: Worded, languages: readonly string[]): string {
  if (typeof text === "string") return text;
  const texts = Object.entries(text).map(([tag, one]) => ({ tag: tag.toLowerCase(), one }));
  for (const language of languages.map((one) => one.toLowerCase())) {
    const found =
      texts.find(({ tag }) => tag === language) ??
      texts.find(({ tag }) => primary(tag) === primary(language));
    if (found !== undefined) return found.one;
  }
  return texts[0]?.one ?? "";
}

/** The text in every language. */
export const wordings = (text: Worded): readonly string[] =>
  typeof text === "string" ? [text] : Object.values(text);

const primary = (tag: string): string | undefined => tag.split("-", 1)[0];

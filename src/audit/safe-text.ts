/**
 * Untrusted text that is shown to people: no character of it moves a cursor, reverses a line or is invisible. An operator
 * sees such a character escaped, may not write it, and a page leaves it out.
 */

/** Controls, bidi and other format marks, lone surrogates, every space except U+0020, and invisible characters. */
const UNSAFE = /(?! )[\p{C}\p{Z}\p{DI}]/gu;
/** The blank pattern of Braille is drawn as nothing too. */
const DRAWN_BLANK = /\u2800/g;
/** More marks on one letter than any script needs would be drawn over the lines around it. */
const STACKED = /(\p{M}{3})\p{M}+/gu;
/** Marks without a letter of their own would be drawn over what stands before the text. */
const LEADING = /^[ \p{M}]+/u;

/**
 * AUDIT-D-7: unsafe characters are written as JSON escapes, so that a body stays the same JSON and its canonical form
 * (RFC 8785) keeps its hash.
 */
export function escapeUnsafe(text: string): string {
  return text.replace(UNSAFE, (character) =>
    Array.from({ length: character.length }, (_, index) => character.charCodeAt(index))
      .map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`)
      .join(""),
  );
}

/** The first unsafe character, as U+XXXX; a space of any width counts as a space. */
export function unsafeIn(text: string): string | undefined {
  const [found] = text.replace(/\p{Zs}/gu, " ").match(UNSAFE) ?? [];
  const point = found?.codePointAt(0);
  return point === undefined ? undefined : `U+${point.toString(16).toUpperCase().padStart(4, "0")}`;
}

export const isBlank = (text: string): boolean => /^[\p{Zs}\u2800]*$/u.test(text);

export const hasStackedMarks = (text: string): boolean => text.search(STACKED) !== -1;

/** PAGE-D-7: the text without what hides, reorders or covers others, on one line. */
export const harmless = (raw: string): string =>
  raw
    .toWellFormed()
    .replace(/\p{White_Space}+/gu, " ")
    .replace(UNSAFE, "")
    .replace(DRAWN_BLANK, "")
    .replace(STACKED, "$1")
    .replace(/ +/g, " ")
    .replace(LEADING, "")
    .trim()
    // This is done last, because what stood between two characters may have kept them from being one.
    .normalize("NFC");

const codeOf = (text: string): string =>
  Array.from(text, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`).join("");

/**
 * RAR-D-9: the whole text, with the code of each character in place of one that is not seen, not seen as what it is, or
 * among `others`; two texts never look the same by what is left out.
 */
export const spelledOut = (raw: string, others: RegExp): string =>
  raw
    .replace(/\\/g, codeOf)
    .replace(UNSAFE, codeOf)
    .replace(DRAWN_BLANK, codeOf)
    .replace(others, codeOf)
    .replace(/(\p{M}{3})(\p{M}+)/gu, (_, shown: string, more: string) => shown + codeOf(more))
    .replace(/^\p{M}+/u, codeOf)
    .replace(/^ | $| (?= )/g, codeOf);

/** NAME-D-7: the beginning of a text of any length, in whole characters. */
export const beginningOf = (text: string, charsMax: number): string => {
  const most = text.slice(0, 2 * charsMax);
  return [...most].slice(0, charsMax).join("");
};

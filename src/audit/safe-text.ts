/** Untrusted text that is shown to people: no character of it moves a cursor, reverses a line or is invisible. */

// Controls, bidi and other format marks, lone surrogates, every space except U+0020, and invisible characters.
const UNSAFE = /(?! )[\p{C}\p{Z}\p{DI}]/gu;

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

/** NAME-D-7: the beginning of a text of any length, in whole characters. */
export const beginningOf = (text: string, charsMax: number): string => {
  const most = text.slice(0, 2 * charsMax);
  return [...most].slice(0, charsMax).join("");
};

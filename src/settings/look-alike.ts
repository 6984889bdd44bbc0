/**
 * Whether two names look alike to people: each has a skeleton, in the manner of Unicode Technical Standard 39 section 4,
 * made by the platform's normalization and a short table of letters that are drawn alike.
 */

/** By Latin letter: digits, signs and letters of other scripts that look like it, small or large. */
const DRAWN_LIKE: Readonly<Record<string, string>> = {
  a: "@аαɑ",
  b: "вβьƅ",
  c: "сςϲ",
  d: "ԁɗ",
  e: "3еεзэ",
  f: "ғϝ",
  g: "9ɡ",
  h: "нһη",
  k: "кκ",
  l: "i1|ıіιӏљ",
  j: "јϳ",
  m: "мμ",
  n: "пո",
  o: "0оοօσ",
  p: "рρ",
  q: "ԛ",
  r: "гᴦ",
  s: "5$ѕ",
  t: "7тτ",
  u: "υսц",
  v: "νѵ",
  w: "ԝωѡ",
  x: "хχ",
  y: "уγү",
  z: "2ζ",
};
const LETTERS: ReadonlyMap<string, string> = new Map(
  Object.entries(DRAWN_LIKE).flatMap(([letter, like]) => [...like].map((one) => [one, letter] as const)),
);

/** Two names with the same skeleton look alike; it is empty where a name has no letters. */
export const skeleton = (name: string): string =>
  [...name.normalize("NFKD").toUpperCase().toLowerCase().normalize("NFKD")]
    .map((character) => LETTERS.get(character) ?? character)
    .filter((character) => /[\p{L}\p{N}]/u.test(character))
    .join("")
    .replaceAll("rn", "m")
    .replaceAll("vv", "w");

/** Letters of a script that no writing system mixes with Latin ones in a word; those of East Asia do. */
const APART =
  /(?![\p{Script=Latin}\p{Script=Common}\p{Script=Inherited}\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}])\p{L}/u;
const LATIN = /\p{Script=Latin}/u;

/** Whether a word has Latin letters and some of another script, as a name has that is to look like another one. */
export const mixesScripts = (name: string): boolean =>
  name.split(/[^\p{L}\p{M}\p{C}]+/u).some((word) => LATIN.test(word) && APART.test(word));

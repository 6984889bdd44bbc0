/**
 * Whether two names look alike to people: each has a skeleton, in the manner of Unicode Technical Standard 39 section 4,
 * made by the platform's normalization and a short table of letters that are drawn alike.
 */

/** By Latin letter: digits, signs, and letters with a stroke or hook or of other scripts that look like it, small or large. */
const DRAWN_LIKE: Readonly<Record<string, string>> = {
  a: "@аαɑᴀꓮꭺ4ⱥɐ",
  b: "вβьƅʙꓐᏼ8ƀɓ",
  c: "сςϲᴄꓚꮯȼƈ",
  d: "ԁɗᴅꓓꭰđɖ",
  e: "3еεзэᴇꓰꭼɇǝɘə",
  f: "ғϝꜰꓝƒ",
  g: "9ɡɢꓖꮐǥɠ",
  h: "нһηʜꓧꮋħɦɥ",
  j: "јϳᴊꓙꭻɉʝ",
  k: "кκᴋꓗꮶƙꝁĸ",
  l: "i1|ıіιӏљɪʟꓡꓲꮮꭵłɨƚ",
  m: "мμᴍꓟꮇɱɯ",
  n: "пոɴꓠɲɳƞŋ",
  o: "0оοօσᴏꓳøɵ",
  p: "рρᴘꓑꮲƥᵽ",
  q: "ԛʠɋ",
  r: "гᴦʀꓣꭱꮢɍɽɹɾ",
  s: "5$ѕꜱꓢꮥꮪʂ",
  t: "7тτᴛꓔꭲŧƭʈⱦ",
  u: "υսцᴜꓴʉ",
  v: "νѵᴠꓦꮩʋʌ",
  w: "ԝωѡᴡꓪꮃⱳʍ",
  x: "хχꓫ",
  y: "уγүʏꓬꭹꮍƴɏʎ",
  z: "2ζᴢꓜꮓƶȥ",
};
const LETTERS: ReadonlyMap<string, string> = new Map(
  Object.entries(DRAWN_LIKE).flatMap(([letter, like]) =>
    [...like.toLowerCase()].map((one) => [one, letter] as const),
  ),
);

/** Letters in dark circles and squares, and those of flags, which normalization does not know; each block has 26. */
const BLOCKS = [0x1f1e6, 0x1f170, 0x1f150] as const;
function unboxed(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const at = BLOCKS.map((first) => code - first).find((index) => index >= 0 && index < 26);
  return at === undefined ? character : String.fromCharCode(97 + at);
}

/** Two names with the same skeleton look alike; it is empty where a name has no letters. */
export const skeleton = (name: string): string =>
  [...name.normalize("NFKD").toUpperCase().toLowerCase().normalize("NFKD")]
    .map(unboxed)
    .map((character) => LETTERS.get(character) ?? character)
    .filter((character) => /[\p{L}\p{N}]/u.test(character))
    .join("")
    .replaceAll("rn", "m")
    .replaceAll("vv", "w");

/** Whether one name is taken for the other: the same, or with words before or behind it that leave it whole. */
export const isTakenFor = (look: string, other: string): boolean =>
  look === other || (other.length >= WHOLE_LETTERS_MIN && look.includes(other));

/** A shorter name may be part of an honest word. */
const WHOLE_LETTERS_MIN = 8;

/** Letters of a script that no writing system mixes with Latin ones in a word; those of East Asia do. */
const APART =
  /(?![\p{Script=Latin}\p{Script=Common}\p{Script=Inherited}\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}])\p{L}/u;
const LATIN = /\p{Script=Latin}/u;

/** Whether a word has Latin letters and some of another script, as a name has that is to look like another one. */
export const mixesScripts = (name: string): boolean =>
  name.split(/[^\p{L}\p{M}\p{C}]+/u).some((word) => LATIN.test(word) && APART.test(word));

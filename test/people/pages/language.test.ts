/** The catalogue, and in which of its languages a page is. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { dayOf, LANGUAGES, textsFor } from "../../../src/people/pages/language.ts";

const cases = [
  ["nothing is said", undefined, null, "en"],
  ["the browser prefers German", undefined, "de-AT,en;q=0.5", "de"],
  ["the order is that of the qualities", undefined, "en;q=0.5, de;q=0.9", "de"],
  ["none that we have is preferred", undefined, "fr,ja;q=0.9", "en"],
  ["the second is one that we have", undefined, "fr;q=1.0,de;q=0.8,en;q=0.7", "de"],
  ["a quality that is none", undefined, "de;q=0x1,en;q=0.1", "en"],
  ["a quality beyond the most", undefined, "en;q=0.9, de;q=9", "en"],
  ["blanks around a tag and its quality", undefined, "en;q=0.5,\tde ; q=0.9", "de"],
  ["a byte that is no blank before a tag", undefined, "\xa0de, en;q=0.5", "en"],
  ["a language is not wanted", undefined, "de;q=0,en;q=0.1", "en"],
  ["the client knows better than the browser", "fr de-CH", "en", "de"],
  ["the client knows none that we have", "fr", "de", "de"],
  ["garbage", ";;,", ",;q=x,=,\u0000", "en"],
  ["a name of a member", "constructor __proto__", "toString", "en"],
] as const;
for (const [name, uiLocales, accept, want] of cases) {
  test(`PAGE-D-17 ${name}: ${want}`, () => assert.equal(textsFor(uiLocales, accept).language, want));
}

/** What is at a key: its kind, and how many parameters it takes. */
const kindsOf = (texts: object): unknown =>
  Object.entries(texts)
    .map(([key, value]) => [
      key,
      typeof value === "object"
        ? kindsOf(value)
        : `${typeof value} ${value.length * Number(typeof value === "function")}`,
    ])
    .sort();

test("PAGE-D-17 every language has every key, with the same parameters, and no text is empty or in two languages", () => {
  const [english, ...others] = LANGUAGES;
  assert.ok(english !== undefined && others.length > 0);
  const flat = (texts: object): string[] =>
    Object.values(texts).flatMap((value) => (typeof value === "object" ? flat(value) : [String(value)]));
  for (const other of others) {
    assert.deepEqual(kindsOf(other), kindsOf(english));
    const same: string[] = flat(english).filter((text) => flat(other).includes(text));
    assert.deepEqual(same, [], other.language);
  }
  for (const texts of LANGUAGES) assert.ok(!flat(texts).includes(""));
});

test("HTTP-D-46, PAGE-D-17 dates are written as the language does", () => {
  const at = Date.UTC(2027, 1, 19, 23, 59) / 1000;
  assert.deepEqual(
    LANGUAGES.map((texts) => dayOf(at, texts)),
    ["February 19, 2027", "19. Februar 2027"],
  );
});

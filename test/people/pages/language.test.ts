/** The catalogue, and in which of its languages a page is. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { dayOf, inZone, LANGUAGES, textsFor, untilOf, whenOf } from "../../../src/people/pages/language.ts";

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
    // "ID:" is a word of both languages.
    const same: string[] = flat(english).filter((text) => text !== "ID:" && flat(other).includes(text));
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

const now = Date.UTC(2026, 10, 28, 13, 40) / 1000;
const HOUR = 3600;
const DAY = 24 * HOUR;
const ends = [
  ["in two hours", 2 * HOUR, "today, 16:40 (in 2 h)", "heute, 16:40 (noch 2 h)"],
  ["in a second", 1, "today, 14:40 (in 1 min)", "heute, 14:40 (noch 1 min)"],
  [
    "in an hour and a part of a minute",
    HOUR + 61,
    "today, 15:41 (in 1 h 2 min)",
    "heute, 15:41 (noch 1 h 2 min)",
  ],
  ["after midnight", 10 * HOUR, "tomorrow, 00:40 (in 10 h)", "morgen, 00:40 (noch 10 h)"],
  ["tomorrow night", 32.5 * HOUR, "tomorrow, 23:10 (in 33 h)", "morgen, 23:10 (noch 33 h)"],
  ["in three days", 3 * DAY, "December 1, 2026, 14:40 (in 3 days)", "1. Dezember 2026, 14:40 (noch 3 Tage)"],
  ["in 90 days", 90 * DAY, "February 26, 2027", "26. Februar 2027"],
  ["before now", -HOUR, "today, 13:40", "heute, 13:40"],
] as const;
for (const [name, seconds, english, german] of ends) {
  test(`PAGE-D-32 an end ${name} is told as "${english}"`, () => {
    const told = LANGUAGES.map((texts) => untilOf(now + seconds, now, inZone(texts, "Europe/Berlin")));
    assert.deepEqual(told.map(textOf), [english, german]);
  });
}

test("PAGE-D-32 a point in time is told from its day in the zone of the reader, and without one in UTC", () => {
  const [english] = LANGUAGES;
  assert.ok(english);
  const told = (zone: string | undefined, seconds: number): string =>
    textOf(whenOf(now + seconds, now, inZone(english, zone)));
  assert.deepEqual(
    [told("Europe/Berlin", -15 * HOUR), told("Asia/Tokyo", -15 * HOUR), told(undefined, -14 * HOUR)],
    ["yesterday, 23:40", "today, 07:40", "yesterday, 23:40 UTC"],
  );
  assert.equal(told("Europe/Berlin", -7 * DAY), "November 21, 2026");
});

test("PAGE-D-32 an end is told across the hour that the clocks of the reader skip", () => {
  const [english] = LANGUAGES;
  assert.ok(english);
  const before = Date.UTC(2027, 2, 27, 23, 30) / 1000;
  const told = untilOf(before + 3 * HOUR, before, inZone(english, "Europe/Berlin"));
  assert.equal(textOf(told), "today, 04:30 (in 3 h)");
  assert.match(String(told), /^<time datetime="2027-03-28T02:30:00.000Z" title="2027-03-28T02:30:00.000Z">/);
});

const textOf = (markup: unknown): string => String(markup).replace(/<[^>]+>/g, "");

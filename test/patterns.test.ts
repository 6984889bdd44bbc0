/** No regular expression of `src` takes longer than its input is long: one request could hold up all others. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { literalsIn, patternsOf } from "./support/patterns.ts";
import { slowOn } from "./support/slow-inputs.ts";

for (const { file, pattern } of await patternsOf()) {
  test(`RFC6749-10.14-1 ${file} ${pattern}: a text made to be slow is read in linear time`, () => {
    assert.equal(slowOn(pattern), undefined);
  });
}

const slow = [
  ["cubic, three classes that overlap", /^[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*$/],
  ["from every start to the end", /[^/]+$/],
  ["from every start to a line feed", /[-_].*$/],
  ["blanks at the end", /\s+$/],
  ["a part that begins again within itself", /\[--[^\]]*\]|\S+/g],
  ["repeated repetition", /^(?:a+)+$/],
  ["two alternatives alike", /^(?:[a-z]|[a-f])*$/],
  ["after a beginning", /^https:\/\/(?:[a-z.]*\.)*example$/],
] as const;
for (const [name, pattern] of slow) {
  test(`a pattern that is slow, ${name}: is found`, () => assert.notEqual(slowOn(pattern), undefined));
}

const source = [
  "const half = total / 2 / count; // not /this/",
  'const one = /[/"]+\\/x/gi.test(text) ? `@{rest.map((part) => `<li>@{/^b/.test(part) ? part.split(/,/) : part}</li>`)}/` : a / b;',
  'const names = ["/a/b/", /^c$/u]; /* nor /that/ */ return /d{2}/;',
].map((line) => line.replaceAll("@", "$"));
test("every pattern of a source text is found, and no division, text or comment is taken for one", () => {
  assert.deepEqual(literalsIn(source.join("\n")).map(String), [
    '/[/"]+\\/x/gi',
    "/^b/",
    "/,/",
    "/^c$/u",
    "/d{2}/",
  ]);
});

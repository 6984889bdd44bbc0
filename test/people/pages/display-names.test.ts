/** How foreign names and hosts are shown. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as v from "valibot";
import { shownTarget } from "../../../src/people/http/known-as.ts";
import {
  shownHost,
  shownId,
  shownName,
  targetName,
  userName,
} from "../../../src/people/pages/display-names.ts";
import { compilePolicy } from "../../../src/policy/rules.ts";
import { ResourceServer } from "../../../src/policy/targets.ts";
import { prng } from "../../support/prng.ts";

const names = [
  ["an ordinary name", "Claude", "Claude"],
  ["letters of all scripts", "日本語 العربية ไทย", "日本語 العربية ไทย"],
  ["composed", "Cafe\u0301", "Café"],
  ["line breaks and tabs are spaces", "a\r\n\tb\u2028c\u00a0d", "a b c d"],
  ["control characters", "a\u0000b\u001b\u0085c", "abc".replace("b", "b ")],
  ["text that turns around", "a\u202ecod.exe\u2066\u200f", "acod.exe"],
  ["what cannot be seen", "a\u200b\u200d\u2060\ufeff\u00ad\u034f\u3164\u115f\u2800\ufe0f\u{e0041}b", "ab"],
  ["private use and unassigned", "a\ue000\u{f0000}\u0378b", "ab"],
  ["half of a pair", "a\ud800b", "a\ufffdb"],
  ["quotation marks", "Claude” — checked by “Example", "Claude' — checked by 'Example"],
  ["many marks on one letter", `a${"\u0315".repeat(20)}b`, `a${"\u0315".repeat(3)}b`],
  ["marks that would be drawn over the sign before it", " \u0338\u20ddClaude", "Claude"],
  ["no name", undefined, undefined],
  ["an empty name", "", undefined],
  ["nothing to see", " \u200b\u3164 ", undefined],
  ["64 characters", "x".repeat(64), "x".repeat(64)],
  ["65 characters", "x".repeat(65), `${"x".repeat(63)}…`],
  ["65 characters of two units", "🙂".repeat(65), `${"🙂".repeat(63)}…`],
] as const;
for (const [name, raw, shown] of names) {
  test(`PAGE-D-7 a name: ${name}`, () => assert.equal(shownName(raw), shown));
}

test("PAGE-D-7 whatever a name is made of, what is shown is short, visible and normal", () => {
  const { below } = prng(7);
  for (let round = 0; round < 3000; round++) {
    const raw = String.fromCodePoint(
      ...Array.from({ length: below(90) }, () => (below(2) ? below(0x3000) : below(0x110000))),
    );
    const shown = shownName(raw) ?? "x";
    assert.ok([...shown].length <= 64);
    assert.doesNotMatch(
      shown,
      /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}“”"„«»]/u,
      JSON.stringify(raw),
    );
    assert.equal(shown, shown.normalize("NFC"));
  }
});

const users = [
  ["a name beside the subject", { id: "u-1", name: "Anna" }, "u-1 (Anna)"],
  ["no name", { id: "u-1" }, "u-1"],
  ["nothing to see in the name", { id: "u-1", name: "\u200b" }, "u-1"],
  ["the subject for a name", { id: "u-1", name: "u-1" }, "u-1"],
  ["a name that turns the text around", { id: "u-1", name: "\u202eanna" }, "u-1 (anna)"],
] as const;
for (const [name, user, shown] of users) {
  test(`PAGE-D-26 ${name}: the subject stands first`, () =>
    assert.equal(String(userName(user)).replaceAll(/<\/?bdi>/g, ""), shown));
}

const hosts = [
  ["claude.ai", "claude.ai"],
  ["127.0.0.1:49152", "127.0.0.1:49152"],
  ["[::1]:8080", "[::1]:8080"],
  ["bücher.example", "xn--bcher-kva.example"],
  ["xn--bcher-kva.example", "xn--bcher-kva.example"],
  ["сlaude.ai", "xn--laude-0ye.ai"],
  ["claude.ai@evil.example", "evil.example"],
  [`${"a".repeat(60)}.${"b".repeat(60)}.example`, `${"a".repeat(60)}.${"b".repeat(60)}.example`],
  ["com.example.app:", "com.example.app:"],
  ["no host\u202e", "no host"],
] as const;
for (const [raw, shown] of hosts) {
  test(`PAGE-D-7 a host: ${JSON.stringify(raw)}`, () => assert.equal(shownHost(raw), shown));
}

test("PAGE-D-7 an identifier is not cut", () => {
  const id = `spiffe://td.example/${"part/".repeat(100)}end`;
  assert.equal(shownId(id), id);
});

test("PAGE-D-47 a target whose title another one has is named by its name too, and any other by its host", () => {
  const file = { scopes: ["a"], sentences: {}, title: "the booking agent" };
  const compiled = compilePolicy(
    [],
    [
      { ...file, names: ["booking-agent"] },
      { ...file, names: ["https://b.example/Two"] },
      { ...file, names: ["https://c.example/x"], title: "Crew" },
    ].map((one) => v.parse(ResourceServer, one)),
    "https://as.example",
    "sha256:0",
  );
  assert.ok(compiled.ok);
  const { targets } = compiled.value;
  const named = [...targets.keys()].map((name) =>
    targetName(shownTarget(targets.get(name), name), { language: "en" })
      .toString()
      .replaceAll(/<[^>]+>/g, ""),
  );
  assert.deepEqual(named, [
    "the booking agent (booking-agent)",
    "the booking agent (https://b.example/Two)",
    "Crew (c.example)",
  ]);
});

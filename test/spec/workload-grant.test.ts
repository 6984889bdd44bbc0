/** The names of platforms' workloads, and the one registration that a token matches. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../src/spec/rfc8259.ts";
import { matchesPattern, prefixesOver } from "../../src/spec/spiffe/id.ts";
import {
  isWorkloadName,
  isWorkloadPattern,
  matchRegistration,
  type PlatformRegistration,
  parsePlatformId,
  platformId,
  takesName,
} from "../../src/spec/workload-grant.ts";

const registration = (changes: Partial<PlatformRegistration>): PlatformRegistration => ({
  name: "one",
  issuer: "https://p.example",
  uses: ["grant"],
  subjects: ["*"],
  claims: new Map(),
  types: [undefined],
  maxLifeSeconds: 300,
  maxAgeSeconds: 300,
  reusable: false,
  svid: false,
  ...changes,
});

const NAMED: Partial<PlatformRegistration> = {
  namedBy: ["/repository_id", "/environment"],
  claims: new Map([["/repository_id", ["1"]]]),
};

const PRINTABLE = Array.from({ length: 95 }, (_, index) => String.fromCharCode(32 + index));

test("WAG-4-2 each printable character of sub has a name of its own, which is read back", () => {
  const names = PRINTABLE.map((char) => platformId("acme", `a${char}`));
  assert.equal(new Set(names).size, 95);
  for (const [index, name] of names.entries()) {
    assert.deepEqual(parsePlatformId(name), { registration: "acme", named: [`a${PRINTABLE[index]}`] });
  }
});

test("FEDC-D-12 letters of any script are escaped as UTF-8, and read back", () => {
  for (const sub of ["feature/größe", "環境", "\u{1f600}", "a\u0308", "ä"]) {
    const name = platformId("acme", sub);
    assert.match(name, /^platform:\/\/acme\/[A-Za-z0-9.~_%-]+$/);
    assert.deepEqual(parsePlatformId(name), { registration: "acme", named: [sub] });
  }
});

test("FEDC-D-11 a name of several claims is read back, and is no other's", () => {
  const name = platformId("gh", "1296269", "a/b");
  assert.equal(name, "platform://gh/1296269/a%2Fb");
  assert.deepEqual(parsePlatformId(name), { registration: "gh", named: ["1296269", "a/b"] });
  assert.notEqual(name, platformId("gh", "1296269/a/b"));
});

const takes: [what: string, named: readonly string[], want: boolean, more?: Partial<PlatformRegistration>][] =
  [
    ["of its subjects", ["agent/1"], true],
    ["of none of its subjects", ["other/1"], false],
    ["of two claims, where sub names", ["agent/1", "x"], false],
    ["of a pinned and a free claim", ["1", "x"], true, NAMED],
    ["of a claim that is pinned to another value", ["2", "x"], false, NAMED],
    ["of one claim too few", ["1"], false, NAMED],
  ];
for (const [what, named, want, more] of takes) {
  test(`PLAT-D-16, FEDC-D-11 a name ${what} ${want ? "stands" : "ends"}`, () => {
    const one = registration({ subjects: ["agent/*"], ...more });
    assert.equal(takesName(one, { registration: "one", named }), want);
  });
}

const pairs: [string, [string, string], [string, string]][] = [
  ["an escape and what it stands for", ["a", "a%2Fb"], ["a", "a/b"]],
  ["a slash in sub and a registration", ["a", "b/c"], ["a.b", "c"]],
  ["two registrations", ["a", "x"], ["b", "x"]],
  ["two cases", ["a", "X"], ["a", "x"]],
];
for (const [what, one, other] of pairs) {
  test(`WAG-4-2, PLAT-D-7 ${what} have two names`, () => {
    assert.notEqual(platformId(...one), platformId(...other));
  });
}

const names: [text: string, isName: boolean, isPattern: boolean][] = [
  ["platform://acme.agents.example/agent%2F7f3d", true, true],
  ["platform://acme/*", false, true],
  ["platform://acme/a/*", false, false],
  ["platform://acme/a/b", true, true],
  ["platform://acme/a/b/c/d", true, true],
  ["platform://acme/a/b/c/d/e", false, false],
  ["platform://acme/a//b", false, false],
  ["platform://acme/a/", false, false],
  ["platform://acme/gr%C3%B6%C3%9Fe", true, true],
  ["platform://acme/gr%F6%DFe", false, false],
  ["platform://acme/%C3", false, false],
  ["platform://acme/%E2%80%AE", false, false],
  ["platform://acme/%ED%A0%80", false, false],
  ["platform://acme/", false, false],
  ["platform://*", false, false],
  ["platform://ACME/a", false, false],
  ["platform://acme/%2f", false, false],
  ["platform://acme/%41", false, false],
  ["platform://acme/%0A", false, false],
  ["platform://acme/%", false, false],
  [`platform://${"a".repeat(65)}/x`, false, false],
  [`platform://acme/${"x".repeat(512)}`, true, true],
  [`platform://acme/${"x".repeat(513)}`, false, false],
  ["Platform://acme/x", false, false],
  ["spiffe://td.example/a", true, true],
  ["spiffe://td.example/*", false, true],
  ["spiffe://td.example", false, false],
];
for (const [text, isName, isPattern] of names) {
  test(`PLAT-D-8 ${text.slice(0, 60)} is ${isName ? "a name" : "no name"}, and ${isPattern ? "may" : "may not"} stand in a rule`, () => {
    assert.deepEqual([isWorkloadName(text), isWorkloadPattern(text)], [isName, isPattern]);
  });
}

test("PLAT-D-8 a prefix stands over the workloads of its registration and of no other", () => {
  const id = platformId("acme", "a/b");
  assert.deepEqual(prefixesOver(id), ["platform://acme/*"]);
  assert.ok(matchesPattern("platform://acme/*", id));
  assert.ok(!matchesPattern("platform://acme/*", platformId("acme-2", "a")));
});

type Matching = [what: string, changes: Partial<PlatformRegistration>, claims: JsonObject, isMatch: boolean];
const pinned = (pointer: string, ...values: (string | boolean)[]) => ({
  claims: new Map([[pointer, values]]),
});
const matching: Matching[] = [
  ["PLAT-D-1 an exact subject", { subjects: ["a"] }, { sub: "a" }, true],
  ["WAG-4-1 a subject in another case", { subjects: ["a"] }, { sub: "A" }, false],
  ["PLAT-D-1 a prefix", { subjects: ["a:*"] }, { sub: "a:b" }, true],
  ["PLAT-D-1 a prefix alone", { subjects: ["a:*"] }, { sub: "a:" }, false],
  ["PLAT-D-1 what only begins like a prefix", { subjects: ["a:*"] }, { sub: "ab:c" }, false],
  ["PLAT-D-1 no subject", {}, {}, false],
  ["PLAT-D-1 a number as subject", {}, { sub: 7 }, false],
  ["PROD-2.3-14 a JWT about its own issuer", {}, { sub: "https://p.example" }, false],
  ["WAG-6.1-2 a pinned claim", pinned("/a/b", "x", "y"), { sub: "s", a: { b: "y" } }, true],
  ["WAG-6.1-2 a pinned boolean", pinned("/ref_protected", true), { sub: "s", ref_protected: true }, true],
  ["WAG-6.1-2 a boolean as text", pinned("/ref_protected", true), { sub: "s", ref_protected: "true" }, false],
  ["WAG-6.1-2 a name with a slash", pinned("/a~1b", "x"), { sub: "s", "a/b": "x" }, true],
  ["WAG-6.1-2 a name with a tilde", pinned("/a~0b", "x"), { sub: "s", "a~b": "x" }, true],
  [
    "WAG-6.1-2 a tilde that is not an escape of a slash",
    pinned("/a~01b", "x"),
    { sub: "s", "a~1b": "x" },
    true,
  ],
  ["WAG-6.3-1 a claim that is missing", pinned("/tenant", "t"), { sub: "s" }, false],
  ["WAG-6.3-1 a claim with another value", pinned("/tenant", "t"), { sub: "s", tenant: "T" }, false],
  ["WAG-6.1-2 an entry of a list", pinned("/a/0", "x"), { sub: "s", a: ["x"] }, false],
  ["WAG-6.1-2 a list of the value", pinned("/a", "x"), { sub: "s", a: ["x"] }, false],
  ["WAG-6.1-2 an inherited member", pinned("/constructor/name", "Object"), { sub: "s" }, false],
  ["WAG-6.2-1 the same claim in another place", pinned("/a/b", "x"), { sub: "s", b: "x" }, false],
];
for (const [what, changes, claims, isMatch] of matching) {
  test(`${what} ${isMatch ? "matches" : "does not match"}`, () => {
    assert.equal(matchRegistration([registration(changes)], claims).ok, isMatch);
  });
}

test("WAG-6.1-2, PLAT-D-4 a token that matches two registrations is refused, with the names of both", () => {
  const all = [
    registration({}),
    registration({ name: "two", subjects: ["a"] }),
    registration({ name: "c", subjects: ["c"] }),
  ];
  const got = matchRegistration(all, { sub: "a" });
  assert.deepEqual(got, { ok: false, error: { kind: "workload_ambiguous", names: ["one", "two"] } });
  assert.ok(matchRegistration(all, { sub: "b" }).ok);
});

/** The life of signing keys, as a pure function of what is known of them and of the time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as v from "valibot";
import { KEY_UNUSED_SECONDS } from "../../src/limits/keys.ts";
import { apiTarget } from "../../src/policy/own-target.ts";
import { compilePolicy } from "../../src/policy/rules.ts";
import {
  dueSteps,
  type KeyFacts,
  type KeyState,
  type KeyStep,
  type KeyUse,
  keysInUse,
  nextChange,
} from "../../src/settings/key-life.ts";
import { KeySchedule } from "../../src/settings/sections.ts";

const NOW = 1_790_000_000;
const SCHEDULE = v.parse(KeySchedule, { rotateSeconds: 1_000_000, announceSeconds: 10_000 });
const TOKEN: KeyUse = { purpose: "token", alg: "ES256" };

/** A key that came into its state so many seconds ago. */
const key = (kid: string, state: KeyState, ago: number, more: Partial<KeyFacts> = {}): KeyFacts => ({
  ...TOKEN,
  kid,
  state,
  createdAtSeconds: NOW - ago - 5,
  sinceSeconds: NOW - ago,
  ...more,
});

const told = (step: KeyStep): string => {
  switch (step.do) {
    case "create":
      return `create ${step.state} ${step.use.purpose} ${step.use.alg}`;
    case "activate":
      return `activate ${step.key.kid} for ${step.retires?.kid ?? "none"}: ${step.reason}`;
    case "retire":
      return `retire ${step.key.kid}`;
    case "remove":
      return `remove ${step.key.kid}: ${step.reason}`;
  }
};
const due = (keys: readonly KeyFacts[], uses: readonly KeyUse[] = [TOKEN]): readonly string[] =>
  dueSteps(keys, uses, SCHEDULE, NOW).map(told);

const cases: readonly [name: string, keys: readonly KeyFacts[], want: readonly string[]][] = [
  ["the first key signs at once", [], ["create active token ES256"]],
  ["an active key gets a successor", [key("a", "active", 0)], ["create announced token ES256"]],
  ["a young key signs on", [key("a", "active", 999_999), key("b", "announced", 500_000)], []],
  [
    "a key whose time is over gives way to its successor",
    [key("a", "active", 1_000_000), key("b", "announced", 500_000)],
    ["activate b for a: key_due"],
  ],
  [
    "a successor that was not announced for long enough does not sign, however old the key",
    [key("a", "active", 5_000_000), key("b", "announced", 9_999)],
    [],
  ],
  [
    "an order replaces a young key",
    [key("a", "active", 10, { replaceAtSeconds: NOW }), key("b", "announced", 10_000)],
    ["activate b for a: by_operator"],
  ],
  [
    "an order does not shorten the announcement",
    [key("a", "active", 10, { replaceAtSeconds: NOW }), key("b", "announced", 9_999)],
    [],
  ],
  [
    "an announced key signs at once where no other can",
    [key("a", "announced", 1)],
    ["activate a for none: none_before"],
  ],
  [
    "a retired key is published until nothing that it signed is valid",
    [key("a", "active", 7_199), key("b", "announced", 1), key("c", "retired", 7_199)],
    [],
  ],
  [
    "then it is removed",
    [key("a", "active", 7_200), key("b", "announced", 1), key("c", "retired", 7_200)],
    ["remove c: key_over"],
  ],
];
for (const [name, keys, want] of cases) test(`RFC9068-4-12 ${name}`, () => assert.deepEqual(due(keys), want));

test("a key that has not changed its state counts from its creation", () => {
  const old = { ...TOKEN, kid: "a", state: "active", createdAtSeconds: NOW - 1_000_000 } as const;
  assert.deepEqual(due([old, key("b", "announced", 10_000)]), ["activate b for a: key_due"]);
});

test("a key of checkpoints changes by order alone and is never removed", () => {
  const use: KeyUse = { purpose: "checkpoint", alg: "ES256" };
  const keys = [
    key("a", "active", 9_000_000, use),
    key("b", "announced", 9_000_000, use),
    key("c", "retired", 9_000_000, use),
  ];
  assert.deepEqual(due(keys, [use]), []);
  assert.deepEqual(
    keys.map((one) => nextChange(one, keys, SCHEDULE)),
    [undefined, undefined, undefined],
  );
  const ordered = keys.map((one) => (one.kid === "a" ? { ...one, replaceAtSeconds: NOW } : one));
  assert.deepEqual(due(ordered, [use]), ["activate b for a: by_operator"]);
});

test("keys of an algorithm that no instance has in use are given up, an hour after the last one", () => {
  const since = (ago: number) => [
    key("a", "active", 90_000, { usedAtSeconds: NOW - ago }),
    key("b", "announced", 90_000, { usedAtSeconds: NOW - ago }),
  ];
  assert.deepEqual(due(since(KEY_UNUSED_SECONDS - 1), []), []);
  assert.deepEqual(due(since(KEY_UNUSED_SECONDS), []), ["retire a", "remove b: key_unused"]);
  assert.deepEqual(due([key("c", "retired", 7_200)], []), ["remove c: key_over"]);
  // One that was never in use.
  assert.deepEqual(due([key("a", "active", 90_000)], []), ["retire a"]);
});

test("purposes and algorithms have keys of their own", () => {
  const uses: readonly KeyUse[] = [
    TOKEN,
    { purpose: "grant", alg: "ES256" },
    { purpose: "token", alg: "EdDSA" },
  ];
  assert.deepEqual(due([key("a", "active", 1), key("b", "announced", 1)], uses), [
    "create active grant ES256",
    "create active token EdDSA",
  ]);
});

test("both keys of a pair tell the time of their change, and a retired one that of its end", () => {
  const keys = [key("a", "active", 100), key("b", "announced", 50), key("c", "retired", 7_000)];
  assert.deepEqual(
    keys.map((one) => nextChange(one, keys, SCHEDULE)),
    [NOW - 100 + 1_000_000, NOW - 100 + 1_000_000, NOW + 200],
  );
  const ordered = [key("a", "active", 100, { replaceAtSeconds: NOW }), key("b", "announced", 50)];
  assert.deepEqual(
    ordered.map((one) => nextChange(one, ordered, SCHEDULE)),
    [NOW - 50 + 10_000, NOW - 50 + 10_000],
  );
});

test("only what targets and partners need is in use, beside the key of checkpoints", () => {
  const issuer = "https://as.example";
  const usesOf = (...more: object[]): readonly string[] => {
    const policy = compilePolicy([], [...more, apiTarget(issuer)] as never, issuer, "sha256:0");
    assert.ok(policy.ok, JSON.stringify(policy));
    return keysInUse({ policy: policy.value, streams: new Map() }).map(
      ({ purpose, alg }) => `${purpose} ${alg}`,
    );
  };
  const [own] = [apiTarget(issuer)];
  assert.deepEqual(usesOf(), ["checkpoint EdDSA", "token ES256"]);
  assert.deepEqual(usesOf({ ...own, names: ["https://api.example"], alg: "RS256" }), [
    "checkpoint EdDSA",
    "token RS256",
    "token ES256",
  ]);
  // TXN-D-12: the key of access tokens signs no transaction token.
  const transaction = { purposes: {}, rctx: {}, tctx: {} };
  assert.deepEqual(usesOf({ ...own, names: ["td.example"], alg: "EdDSA", transaction }), [
    "checkpoint EdDSA",
    "grant EdDSA",
    "token ES256",
  ]);
});

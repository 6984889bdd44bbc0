/** The keys of a token, which endings reach, and how far they reach. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { hash } from "../../src/adapters/crypto/hash.ts";
import { REFRESH_DAYS_MAX } from "../../src/limits/people.ts";
import {
  ACCESS_TOKEN_SECONDS_MAX,
  DISABLED_KEPT_SECONDS,
  ENDING_KEPT_SECONDS,
  ENDING_REACH_MS,
} from "../../src/limits/tokens.ts";
import {
  buildEnding,
  type Endable,
  type EndingSelector,
  endingKeys,
  type Root,
} from "../../src/policy/endings.ts";

const US = "https://as.example";
const [ONE, TWO] = ["spiffe://one.example/a", "spiffe://two.example/b"];
const NOW = 1_790_000_000;
/** With this digest a key can be read; it is cut off, so the names here are short. */
const asText = (text: string): string => text;

const token = (values: Partial<Endable> = {}): Endable => ({
  jti: "t",
  clientId: "c",
  origin: { iss: "i", sub: "s" },
  ruleId: "r",
  issuedAtSeconds: NOW,
  ...values,
});

/** The keys with their age in seconds. */
const agesOf = (issued: Endable, root?: Root): Record<string, number> =>
  Object.fromEntries(endingKeys(asText, issued, root).map(({ key, sinceMs }) => [key, NOW - sinceMs / 1000]));

const OWN = { '["token","t"]': 0, '["client","c"]': 0, '["rule","r"]': 0 };
const ROOT = (age: number) => ({ '["everything"]': age, '["subject","i","s"]': age, '["issuer","i"]': age });

test("a token carries its own names since it was issued, and those of its subject since the foreign token was", () => {
  assert.deepEqual(agesOf(token()), { ...OWN, ...ROOT(0) });
  const root = { issuedAtSeconds: NOW - 60 };
  assert.deepEqual(agesOf(token({ consentId: "k" }), root), { ...OWN, '["consent","k"]': 0, ...ROOT(60) });
  // The clock of its issuer is ahead of ours.
  assert.deepEqual(agesOf(token(), { issuedAtSeconds: NOW + 20 }), { ...OWN, ...ROOT(0) });
});

test("a token carries the keys of the one that it comes from, each as old as there", () => {
  const keys = [
    { key: "inherited", sinceMs: (NOW - 90) * 1000 },
    { key: '["client","c"]', sinceMs: (NOW - 30) * 1000 },
  ];
  const want = { ...OWN, inherited: 90, '["client","c"]': 30 };
  assert.deepEqual(agesOf(token(), { keys }), want);
});

/** The workloads among the keys. */
function workloadsOf(values: Partial<Endable>): readonly string[] {
  const keys = endingKeys(hash.sha256, token(values)).map(({ key }) => key);
  return [ONE, TWO].filter((spiffeId) =>
    keys.includes(buildEnding(hash.sha256, { by: "actor", spiffeId }, 0).key),
  );
}

test("POLICY-D-4 the actor of a token is its workload alone", () => {
  assert.deepEqual(workloadsOf({}), []);
  assert.deepEqual(workloadsOf({ workload: TWO }), [TWO]);
  // A client with the name of a workload proved nothing of it.
  assert.deepEqual(workloadsOf({ clientId: ONE }), []);
});

const cases: readonly (readonly [EndingSelector, { reach: number; kept: number }])[] = [
  [
    { by: "token", jti: "t" },
    { reach: Number.MAX_SAFE_INTEGER, kept: ACCESS_TOKEN_SECONDS_MAX },
  ],
  [
    { by: "client", clientId: "c" },
    { reach: ENDING_REACH_MS, kept: REFRESH_DAYS_MAX * 24 * 3600 },
  ],
  [
    { by: "actor", spiffeId: ONE },
    { reach: ENDING_REACH_MS, kept: ACCESS_TOKEN_SECONDS_MAX },
  ],
  [
    { by: "consent", id: "k" },
    { reach: ENDING_REACH_MS, kept: REFRESH_DAYS_MAX * 24 * 3600 },
  ],
  [
    { by: "grant", id: "g" },
    { reach: Number.MAX_SAFE_INTEGER, kept: REFRESH_DAYS_MAX * 24 * 3600 },
  ],
  // JOB-D-12
  [
    { by: "job", iss: US, id: "j" },
    { reach: Number.MAX_SAFE_INTEGER, kept: REFRESH_DAYS_MAX * 24 * 3600 },
  ],
  [{ by: "every_grant" }, { reach: ENDING_REACH_MS, kept: REFRESH_DAYS_MAX * 24 * 3600 }],
  [
    { by: "subject", iss: "i", sub: "s" },
    { reach: ENDING_REACH_MS, kept: ENDING_KEPT_SECONDS },
  ],
  [
    { by: "subject", iss: "i", sub: "s", upToMs: NOW * 1000 - 7 },
    { reach: -7, kept: ENDING_KEPT_SECONDS },
  ],
  [
    { by: "subject", iss: "i", sub: "s", upToMs: NOW * 2000 },
    { reach: ENDING_REACH_MS, kept: ENDING_KEPT_SECONDS },
  ],
  [
    { by: "subject", iss: "i", sub: "s", disabled: true },
    { reach: Number.MAX_SAFE_INTEGER, kept: DISABLED_KEPT_SECONDS },
  ],
  [
    { by: "sign_in", iss: "i", sid: "s" },
    { reach: Number.MAX_SAFE_INTEGER, kept: REFRESH_DAYS_MAX * 24 * 3600 },
  ],
  [
    { by: "issuer", issuer: "i" },
    { reach: ENDING_REACH_MS, kept: ENDING_KEPT_SECONDS },
  ],
  [{ by: "everything" }, { reach: ENDING_REACH_MS, kept: ENDING_KEPT_SECONDS }],
  [
    { by: "everything", upToMs: NOW * 1000 - 7 },
    { reach: -7, kept: ENDING_KEPT_SECONDS },
  ],
  // Nothing of the future is ended.
  [
    { by: "everything", upToMs: NOW * 2000 },
    { reach: ENDING_REACH_MS, kept: ENDING_KEPT_SECONDS },
  ],
];

for (const [selector, { reach, kept }] of cases) {
  test(`an ending by ${JSON.stringify(selector)} reaches so far, and is kept so long`, () => {
    const { cutOffMs, expiresAtSeconds } = buildEnding(asText, selector, NOW * 1000);
    const want = reach === Number.MAX_SAFE_INTEGER ? reach : NOW * 1000 + reach;
    assert.deepEqual([cutOffMs, expiresAtSeconds], [want, NOW + kept]);
  });
}

test("the order in which a subject is written does not change its key", () => {
  const [first, second] = [
    { by: "subject", iss: "i", sub: "s" },
    { sub: "s", iss: "i", by: "subject" },
  ] as const;
  assert.equal(buildEnding(asText, first, 0).key, buildEnding(asText, second, 0).key);
});

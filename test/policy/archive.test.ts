import assert from "node:assert/strict";
import { test } from "node:test";
import * as v from "valibot";
import { policyText, readArchive } from "../../src/policy/archive.ts";
import { apiTarget } from "../../src/policy/own-target.ts";
import { compilePolicy, Rule, Target } from "../../src/policy/rules.ts";
import type { JsonObject } from "../../src/spec/rfc8259.ts";

const ISSUER = "https://as.example";
const API = "https://api.example";
const PARTNER = "https://partner.example";

const RULES: readonly JsonObject[] = [
  {
    id: "z-first-in-the-file",
    allow: "delegation",
    actors: ["spiffe://td.example/crew/*"],
    subjects: { issuers: ["https://idp.example"], subs: ["a"] },
    subjectToken: { audiences: ["self"] },
    targets: [API],
    scopes: ["read", "pay"],
    consent: "record",
    askUser: true,
    issues: "access_token",
    lifetimeSeconds: 120,
    details: [{ type: "payment", most: "10.50" }],
  },
  {
    id: "grant",
    allow: "impersonation",
    clients: ["app"],
    subjects: { issuers: ["https://idp.example"] },
    subjectToken: { scopes: ["read"] },
    targets: [`${PARTNER}/alias`],
    scopes: ["read"],
    consent: "may_act",
    issues: "grant",
    lifetimeSeconds: 30,
  },
  { id: "own", allow: "client_credentials", clients: ["app"], targets: [API], scopes: ["read"] },
];
const TARGETS: readonly JsonObject[] = [
  {
    names: [API, "other-name"],
    scopes: ["read", "pay"],
    owners: ["spiffe://td.example/api"],
    title: { en: "The API", de: "Die Schnittstelle" },
    sentences: { read: "may read" },
    details: {
      payment: { governs: ["pay"], fields: { most: { is: "decimal", narrows: "max" } } },
    },
  },
  {
    kind: "partner",
    issuer: PARTNER,
    aliases: [`${PARTNER}/alias`],
    scopes: ["read"],
    clients: { app: "their-app" },
    subjects: { table: { a: "b" } },
    claims: ["email"],
    resources: ["https://api.partner.example/"],
    jobs: "honours",
  },
];

function makeSet() {
  const policies = RULES.map((one) => v.parse(Rule, { lifetimeSeconds: 300, ...one }));
  const targets = [...TARGETS.map((one) => v.parse(Target, one)), apiTarget(ISSUER)];
  const set = compilePolicy(policies, targets, ISSUER, "sha256:00");
  assert.ok(set.ok, JSON.stringify(set));
  return { set: set.value, text: [...policyText({ issuer: ISSUER, policies, targets })].join("") };
}

test("REPL-D-2 the set that is read from its text is the one that was in force, in every part", () => {
  const { set, text } = makeSet();
  const read = readArchive(text, "sha256:00");
  assert.ok(read.ok, read.ok ? "" : read.error);
  // Objects of parsed JSON have no prototype, and functions are compared by what they know.
  const plain = (of: typeof set) => structuredClone({ ...of, known: undefined });
  assert.deepEqual(plain(read.value), plain(set));
  assert.equal(read.value.known.scope.has("pay"), true);
  assert.equal([...policyText({ issuer: ISSUER, ...read.value.written })].join(""), text);
});

const changes: readonly [string, (text: string) => string, RegExp][] = [
  ["no JSON", (text) => text.slice(1), /no JSON object/],
  ["cut", (text) => text.slice(0, -20), /no JSON object/],
  ["of another form", (text) => text.replace(/"v":1\}$/, '"v":2}'), /form 2, and this version reads 1/],
  [
    "without targets",
    (text) => text.replace('],"targets":[{', '],"target":[{'),
    /lacks its issuer, rules or targets/,
  ],
  [
    "with a member that is unknown here",
    (text) => text.replace('"allow":"client_credentials"', '"allow":"client_credentials","also":true'),
    /another version: rule 3 /,
  ],
  [
    "without a member that has a default here",
    (text) => text.replace('"binding":"none",', ""),
    /another version: target 1 /,
  ],
  [
    "with a partner that is unknown here",
    (text) => text.replace('"jobs":"honours"', '"jobs":"x"'),
    /target 2/,
  ],
  [
    "with a rule for no target",
    (text) => text.replace(`"names":["${API}"`, '"names":["x"'),
    /unknown target/,
  ],
];
for (const [what, change, says] of changes) {
  test(`REPL-D-3 an archive is told as what it is: ${what}`, () => {
    const { text } = makeSet();
    const changed = change(text);
    assert.notEqual(changed, text);
    const read = readArchive(changed, "sha256:00");
    assert.match(read.ok ? "read" : read.error, says);
  });
}

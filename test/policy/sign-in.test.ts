/** What a rule demands of the sign-in of a user, with a code and with each refresh; and of two such rules, which is wider. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as v from "valibot";
import { SKEW_SECONDS } from "../../src/limits/tokens.ts";
import type { AccessRequest, Subject } from "../../src/policy/access.ts";
import { decide } from "../../src/policy/decide.ts";
import { findWiderRule, indexBySubject } from "../../src/policy/redundant.ts";
import { compilePolicy, Rule, Target } from "../../src/policy/rules.ts";

const ISSUER = "https://as.example";
const IDP = "https://idp.example";
const NOTES = "https://notes.example/mcp";
const NOW = 1_790_000_000;

const ruleOf = (id: string, demands: object) =>
  v.parse(Rule, {
    id,
    allow: "authorization_code",
    clients: ["app"],
    subjects: { issuers: [IDP] },
    targets: [NOTES],
    scopes: ["notes.read"],
    refresh: true,
    ...demands,
  });

function policyOf(...rules: Rule[]) {
  const target = v.parse(Target, { names: [NOTES], scopes: ["notes.read"], people: true });
  const policy = compilePolicy(rules, [target], ISSUER, "d");
  assert.ok(policy.ok);
  return policy.value;
}

const origin = { iss: IDP, sub: "alice" };
const consent = { id: "c", version: 1, origin, actor: "app", targets: [NOTES], scopes: ["notes.read"] };

function reasonOf(demands: object, signIn: Subject["signIn"], tokenType: Subject["tokenType"]): string {
  const subject: Subject = {
    tokenType,
    origin,
    audiences: [],
    scopes: ["notes.read"],
    expiresAtSeconds: NOW + 3_600,
    chain: [],
    issuer: IDP,
    ...(signIn === undefined ? {} : { signIn }),
  };
  const access: AccessRequest = {
    mode: "authorization_code",
    clientId: "app",
    subject,
    target: NOTES,
    consents: [consent],
    nowSeconds: NOW,
  };
  const decided = decide(policyOf(ruleOf("r", demands)), access);
  return decided.ok ? "allowed" : decided.error.reason;
}

const within300 = { signInSecondsMax: 300 };
const strong = { acr: ["strong", "stronger"] };
const cases: readonly (readonly [string, object, Subject["signIn"], string])[] = [
  ["no demand and nothing known", {}, undefined, "allowed"],
  ["a class that is named", strong, { acr: "stronger" }, "allowed"],
  ["another class", strong, { acr: "weak" }, "sign_in_insufficient"],
  ["no class", strong, {}, "sign_in_insufficient"],
  ["the oldest sign-in", within300, { authTimeSeconds: NOW - 300 - SKEW_SECONDS }, "allowed"],
  ["an older sign-in", within300, { authTimeSeconds: NOW - 301 - SKEW_SECONDS }, "sign_in_insufficient"],
  ["no time", within300, { acr: "strong" }, "sign_in_insufficient"],
  ["both", { ...strong, ...within300 }, { acr: "strong", authTimeSeconds: NOW }, "allowed"],
];
for (const [what, demands, signIn, want] of cases) {
  for (const tokenType of ["code", "refresh_token"] as const) {
    test(`OIDC-D-7 ${what}, by ${tokenType}: ${want}`, () => {
      assert.equal(reasonOf(demands, signIn, tokenType), want);
    });
  }
}

const pairs: readonly (readonly [string, object, object, boolean])[] = [
  ["the same demands", within300, within300, true],
  ["a shorter time", within300, { signInSecondsMax: 200 }, true],
  ["a longer time", within300, { signInSecondsMax: 400 }, false],
  ["no time", within300, {}, false],
  ["fewer classes", strong, { acr: ["strong"] }, true],
  ["another class", strong, { acr: ["weak"] }, false],
  ["a pushed request where the other takes any", {}, { pushed: true }, true],
  ["any request where the other demands a pushed one", { pushed: true }, {}, false],
  ["refresh tokens that the other does not give", { refresh: false }, {}, false],
];
for (const [what, first, second, want] of pairs) {
  test(`PROD-2.6-10 a rule with ${what} is ${want ? "" : "not "}covered by the other`, () => {
    const rules = [ruleOf("a", first), ruleOf("b", second)] as const;
    const policy = policyOf(...rules);
    const wider = findWiderRule(policy, rules[1], indexBySubject(rules), false);
    assert.equal(wider?.id, want ? "a" : undefined);
  });
}

import assert from "node:assert/strict";
import { test } from "node:test";
import * as v from "valibot";
import type { AccessRequest, Consent, Subject } from "../../src/policy/access.ts";
import { decide } from "../../src/policy/decide.ts";
import { compilePolicy, Rule, Target } from "../../src/policy/rules.ts";

const issuer = "https://as.example";
const idp = "https://idp.example";
const planner = "spiffe://td.example/agents/planner";
const booking = "spiffe://td.example/agents/booking";
const now = 1790000000;

const targets = [
  { names: ["planner-agent"], owners: [planner], scopes: ["trips.read", "trips.book", "trips.pay"] },
  { names: ["booking-agent"], owners: [booking], scopes: ["trips.read", "trips.book"] },
  { names: ["crew-desk"], owners: ["spiffe://td.example/crew/*"], scopes: ["trips.read"] },
  { names: ["https://api.example", "api"], scopes: ["trips.read", "trips.book", "trips.pay"] },
  { names: ["reports"], scopes: ["reports.read"] },
];

type Patch = Record<string, unknown>;

const rule: Patch = {
  id: "crew",
  allow: "delegation",
  actors: [planner],
  subjects: { issuers: [idp] },
  subjectToken: { audiences: [issuer, "self"] },
  consent: "record",
  targets: ["booking-agent"],
  scopes: ["trips.read", "trips.book"],
};
const implied = { consent: "implied", acknowledge: "subjects-not-asked" };
const impersonation = { ...rule, allow: "impersonation" };

const subject: Subject = {
  tokenType: "access_token",
  origin: { iss: idp, sub: "u-4821" },
  audiences: ["planner-agent"],
  scopes: ["trips.read", "trips.book", "trips.pay"],
  expiresAtSeconds: now + 600,
  chain: [],
  issuer,
};
const consent: Consent = {
  id: "consent-1",
  version: 3,
  origin: { iss: idp, sub: "u-4821" },
  actor: planner,
  targets: ["booking-agent"],
  scopes: ["trips.read", "trips.book", "trips.pay"],
};
const access: AccessRequest = {
  mode: "delegation",
  clientId: planner,
  workload: planner,
  subject,
  target: "booking-agent",
  scope: ["trips.read", "trips.book"],
  consents: [consent],
  nowSeconds: now,
};

/** Without the members that are undefined, as a caller would leave them out. */
const present = <T extends object>(value: T): T =>
  Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as T;

const compile = (rules: readonly Patch[]) => {
  const set = compilePolicy(
    rules.map((one) => v.parse(Rule, present(one))),
    targets.map((one) => v.parse(Target, one)),
    issuer,
    "sha256:00",
  );
  assert.ok(set.ok);
  return set.value;
};

/** Allowed: the rule and the scope. Denied: kind, reason, and the condition that failed at each rule. */
function outcome(rules: readonly Patch[], asked: AccessRequest): string {
  const got = decide(compile(rules), asked);
  if (got.ok) return `${got.value.rule.id}: ${got.value.scope.join(" ")}`;
  const { kind, reason, trace } = got.error;
  return [kind, reason, ...trace.map((one) => one.failed)].join(" ");
}

type AccessPatch = { [Name in keyof AccessRequest]?: AccessRequest[Name] | undefined };
const asking = (patch: AccessPatch): AccessRequest => present({ ...access, ...patch }) as AccessRequest;
const withSubject = (patch: { [Name in keyof Subject]?: Subject[Name] }): AccessPatch => ({
  subject: { ...subject, ...patch },
});
const withConsent = (patch: { [Name in keyof Consent]?: Consent[Name] }): AccessPatch => ({
  consents: [{ ...consent, ...patch }],
});
const by = (workload: string): AccessPatch => ({ clientId: workload, workload });

const allowed = "crew: trips.read trips.book";
/** Denied by the one condition that failed; the reason names some of the conditions. */
const no = (failed: string): string => `policy_denied ${REASONS[failed] ?? "no_rule"} ${failed}`;
const REASONS: Record<string, string> = {
  chain_depth: "chain_too_deep",
  consent: "consent_missing",
  subject_token: "subject_token_does_not_permit",
};

const prior = { sub: "spiffe://td.example/apps/portal", iss: issuer };
const mayAct = { sub: planner };

type Case = [name: string, rules: readonly Patch[], patch: AccessPatch, want: string];

const cases: Case[] = [
  // --- no rule
  ["PROD-1.5-1, PROD-2.6-1, PROD-4.1r2-1 a request that a rule allows is allowed", [rule], {}, allowed],
  [
    "PROD-1.5-2, PROD-7.1-1, PROD-4.1r2-2 an exchange without a rule is denied",
    [],
    {},
    "policy_denied no_rule",
  ],
  [
    "PROD-1.5-2 an impersonation by a rule for delegation is denied",
    [rule],
    { mode: "impersonation" },
    "policy_denied no_rule",
  ],
  [
    "PROD-1.5-2 a delegation by a rule for impersonation is denied",
    [impersonation],
    {},
    "policy_denied no_rule",
  ],
  [
    "PROD-1.5-2 client credentials by a rule for delegation are denied",
    [rule],
    { mode: "client_credentials" },
    "policy_denied no_rule",
  ],
  ["PROD-1.3-2 an exchange without a subject token is denied", [rule], { subject: undefined }, no("subject")],
  [
    "PROD-1.5-1 an impersonation by a rule for impersonation is allowed",
    [impersonation],
    { mode: "impersonation" },
    allowed,
  ],

  // --- the caller
  ["PROD-2.6-2, PROD-7.3-2 another actor is denied", [rule], by(booking), "policy_denied no_rule"],
  [
    "PROD-2.6-2 an actor by prefix is allowed",
    [{ ...rule, actors: ["spiffe://td.example/agents/*"] }],
    {},
    allowed,
  ],
  [
    "PROD-2.6-2, PROD-7.3-2 an actor outside the prefix is denied",
    [{ ...rule, actors: ["spiffe://td.example/agent/*"] }],
    {},
    "policy_denied no_rule",
  ],
  [
    "PROD-2.6-3 a client without workload is denied",
    [rule],
    { clientId: "c-report", workload: undefined },
    "policy_denied actor_without_workload",
  ],
  [
    "PROD-2.6-3 a client without workload is denied even if its client_id is a SPIFFE ID",
    [rule],
    { workload: undefined },
    "policy_denied actor_without_workload",
  ],
  ["PROD-2.6-3 a client with a configured workload is allowed", [rule], { clientId: "c-report" }, allowed],
  [
    "RFC6749-10.3-4, RFC8693-2.1-4 an impersonation by a client is allowed",
    [{ ...impersonation, actors: undefined, clients: ["c-portal"] }],
    { mode: "impersonation", clientId: "c-portal" },
    allowed,
  ],
  [
    "RFC6749-10.3-4, RFC8693-2.1-4 an impersonation by another client is denied",
    [{ ...impersonation, actors: undefined, clients: ["c-portal"] }],
    { mode: "impersonation", clientId: "c-report" },
    "policy_denied no_rule",
  ],
  [
    "RFC8693-2.1-4 a client by the origin of its URL is allowed",
    [{ ...impersonation, actors: undefined, clients: ["https://agents.example/*"] }],
    { mode: "impersonation", clientId: "https://agents.example/planner.json" },
    allowed,
  ],
  [
    "RFC8693-2.1-4 a client with a URL of another origin is denied",
    [{ ...impersonation, actors: undefined, clients: ["https://agents.example/*"] }],
    { mode: "impersonation", clientId: "https://agents.example.org/planner.json" },
    "policy_denied no_rule",
  ],
  [
    "PROD-7.3-2 another workload is denied if the rule names clients and actors",
    [{ ...impersonation, clients: ["c-portal"], actors: [booking] }],
    { mode: "impersonation", clientId: "c-portal" },
    no("actor"),
  ],
  [
    "PROD-7.3-2 a client without workload is denied if the rule names clients and actors",
    [{ ...impersonation, clients: ["c-portal"] }],
    { mode: "impersonation", clientId: "c-portal", workload: undefined },
    no("actor"),
  ],
  [
    "PROD-7.3-2 the client with its workload is allowed if the rule names both",
    [{ ...impersonation, clients: ["c-portal"] }],
    { mode: "impersonation", clientId: "c-portal" },
    allowed,
  ],
  [
    "POLICY-D-8, PROD-7.3-2 an actor that is the subject is denied",
    [rule],
    withSubject({ origin: { iss: issuer, sub: planner } }),
    "policy_denied actor_is_subject",
  ],
  [
    "POLICY-D-8, PROD-7.3-2 a client that is the subject of its impersonation is denied",
    [{ ...impersonation, subjects: { issuers: [issuer] } }],
    {
      mode: "impersonation",
      clientId: "c-portal",
      ...withSubject({ origin: { iss: issuer, sub: "c-portal" } }),
    },
    "policy_denied actor_is_subject",
  ],
  [
    "PROD-7.3-2 a foreign subject with the same sub as the actor is allowed",
    [rule],
    {
      ...withSubject({ origin: { iss: idp, sub: planner } }),
      ...withConsent({ origin: { iss: idp, sub: planner } }),
    },
    allowed,
  ],

  // --- the subject
  [
    "PROD-2.6-4 subjects of another issuer are denied",
    [rule],
    withSubject({ origin: { iss: "https://other.example", sub: "u-4821" } }),
    no("subject_issuer"),
  ],
  [
    "PROD-2.6-4 the subject's original issuer is compared, not the token's",
    [{ ...rule, subjects: { issuers: [issuer] } }],
    {},
    no("subject_issuer"),
  ],
  [
    "PROD-2.6-4 a named subject is allowed",
    [{ ...rule, subjects: { issuers: [idp], subs: ["u-1", "u-4821"] } }],
    {},
    allowed,
  ],
  [
    "PROD-2.6-4 a subject that is not named is denied",
    [{ ...rule, subjects: { issuers: [idp], subs: ["u-1"] } }],
    {},
    no("subject"),
  ],

  // --- consent
  ["PROD-2.6-4 an exchange without a consent is denied", [rule], { consents: [] }, no("consent")],
  [
    "PROD-2.6-4 an exchange with a consent of another subject is denied",
    [rule],
    withConsent({ origin: { iss: idp, sub: "u-1" } }),
    no("consent"),
  ],
  [
    "PROD-2.6-4 an exchange with a consent of an equal sub of another issuer is denied",
    [rule],
    withConsent({ origin: { iss: issuer, sub: "u-4821" } }),
    no("consent"),
  ],
  [
    "PROD-2.6-4 an exchange with a consent for another actor is denied",
    [rule],
    withConsent({ actor: booking }),
    no("consent"),
  ],
  [
    "PROD-2.6-4 an exchange with a consent for a prefix of actors is denied",
    [rule],
    withConsent({ actor: "spiffe://td.example/agents/*" }),
    no("consent"),
  ],
  [
    "PROD-2.6-4 an exchange with a consent for another target is denied",
    [rule],
    withConsent({ targets: ["crew-desk"] }),
    no("consent"),
  ],
  [
    "PROD-2.6-4 an exchange with a consent for a target that no longer exists is denied",
    [rule],
    withConsent({ targets: ["gone"] }),
    no("consent"),
  ],
  [
    "PROD-2.6-4 an exchange with a consent without targets is denied",
    [rule],
    withConsent({ targets: [] }),
    no("consent"),
  ],
  [
    "PROD-2.6-4 an exchange with a consent for another name of the target is allowed",
    [{ ...rule, targets: ["api"] }],
    { target: "https://api.example", ...withConsent({ targets: ["x", "api"] }) },
    allowed,
  ],
  [
    "PROD-2.6-4, RTE-D-6 an exchange with a consent that expires in less than 5 s is denied",
    [rule],
    withConsent({ expiresAtSeconds: now + 4 }),
    no("consent"),
  ],
  [
    "PROD-2.6-4 an exchange with a consent that expires later is allowed",
    [rule],
    withConsent({ expiresAtSeconds: now + 5 }),
    allowed,
  ],
  [
    "PROD-2.6-4 an exchange is allowed if one of several consents fits",
    [rule],
    { consents: [{ ...consent, id: "a", actor: booking }, consent] },
    allowed,
  ],
  [
    "PROD-2.6-4 a workload with a consent for its client is denied",
    [{ ...impersonation, actors: undefined, clients: ["c-portal"] }],
    { mode: "impersonation", clientId: "c-portal", ...withConsent({ actor: "c-portal" }) },
    no("consent"),
  ],
  [
    "PROD-2.6-4 a client without workload with a consent for the client is allowed",
    [{ ...impersonation, actors: undefined, clients: ["c-portal"] }],
    {
      mode: "impersonation",
      clientId: "c-portal",
      workload: undefined,
      ...withSubject({ audiences: [issuer] }),
      ...withConsent({ actor: "c-portal" }),
    },
    allowed,
  ],
  [
    "PROD-2.6-8 no consent is needed if consent is implied",
    [{ ...rule, ...implied }],
    { consents: [] },
    allowed,
  ],
  [
    "PROD-2.6-8 an exchange with may_act in the token is allowed",
    [{ ...rule, consent: "may_act" }],
    { consents: [], ...withSubject({ mayAct }) },
    allowed,
  ],
  [
    "PROD-2.6-8 an exchange without may_act in the token is denied",
    [{ ...rule, consent: "may_act" }],
    {},
    no("consent"),
  ],
  [
    "PROD-2.6-8 may_act is not accepted in place of a consent on record",
    [rule],
    { consents: [], ...withSubject({ mayAct }) },
    no("consent"),
  ],

  // --- may_act
  ["RFC8693-4.4-2 the actor that may_act names is allowed", [rule], withSubject({ mayAct }), allowed],
  [
    "RFC8693-4.4-2 an exchange is denied if may_act names another actor",
    [rule],
    withSubject({ mayAct: { sub: booking } }),
    "policy_denied may_act_names_another",
  ],
  [
    "RFC8693-4.4-2 an exchange is denied if may_act has no sub",
    [rule],
    withSubject({ mayAct: {} }),
    "policy_denied may_act_names_another",
  ],
  [
    "RFC8693-4.4-2 an exchange is denied if may_act names another actor, even with implied consent",
    [{ ...rule, ...implied }],
    withSubject({ mayAct: { sub: booking } }),
    "policy_denied may_act_names_another",
  ],
  ["RFC8693-4.4-2 may_act alone allows nothing", [], withSubject({ mayAct }), "policy_denied no_rule"],
  [
    "RFC8693-4.4-2 a delegation is denied if may_act names the client instead of its workload",
    [rule],
    { clientId: "c-portal", ...withSubject({ mayAct: { sub: "c-portal" } }) },
    "policy_denied may_act_names_another",
  ],
  [
    "RFC8693-4.4-2 an impersonation is allowed if may_act names the client",
    [impersonation],
    { mode: "impersonation", clientId: "c-portal", ...withSubject({ mayAct: { sub: "c-portal" } }) },
    allowed,
  ],
  [
    "RFC8693-4.4-2 an impersonation is denied if may_act names another actor",
    [impersonation],
    { mode: "impersonation", ...withSubject({ mayAct: { sub: booking } }) },
    "policy_denied may_act_names_another",
  ],
  [
    "RFC8693-4.4-2 may_act is read without iss as naming a party of the token's issuer",
    [impersonation],
    {
      mode: "impersonation",
      clientId: "c-portal",
      ...withSubject({ issuer: idp, mayAct: { sub: "c-portal" } }),
    },
    "policy_denied may_act_names_another",
  ],

  // --- the subject token
  [
    "PROD-2.6-5, PROD-7.3-1 an audience that the rule names is allowed",
    [{ ...rule, subjectToken: { audiences: ["planner-agent"] } }],
    {},
    allowed,
  ],
  [
    "PROD-2.6-5 this server's issuer as audience is allowed",
    [rule],
    withSubject({ audiences: [issuer] }),
    allowed,
  ],
  [
    "PROD-2.6-5 one of several audiences is allowed",
    [rule],
    withSubject({ audiences: ["x", "planner-agent"] }),
    allowed,
  ],
  [
    "PROD-2.6-9, PROD-7.3-1 an audience that the rule does not name is denied",
    [{ ...rule, subjectToken: { audiences: [issuer] } }],
    {},
    no("subject_token"),
  ],
  [
    "PROD-7.3-1 self means only targets that the actor owns",
    [rule],
    withSubject({ audiences: ["crew-desk"] }),
    no("subject_token"),
  ],
  [
    "PROD-7.3-1 the literal audience self in a token is ignored",
    [{ ...rule, subjectToken: { audiences: ["self"] } }],
    withSubject({ audiences: ["self", issuer] }),
    no("subject_token"),
  ],
  [
    "PROD-7.3-1 a token for another audience is denied even if the rule names it",
    [{ ...rule, subjectToken: { audiences: ["crew-desk"] } }],
    withSubject({ audiences: ["crew-desk"] }),
    no("subject_token"),
  ],
  [
    "PROD-7.3-1 a token without audience is denied",
    [rule],
    withSubject({ audiences: [] }),
    no("subject_token"),
  ],
  [
    "PROD-2.6-5 a token whose audience is the client is allowed",
    [{ ...rule, subjectToken: { audiences: ["c-portal"] } }],
    { clientId: "c-portal", ...withSubject({ audiences: ["c-portal"] }) },
    allowed,
  ],
  [
    "PROD-2.6-5 a token whose audience is the workload is allowed",
    [{ ...rule, subjectToken: { audiences: [planner] } }],
    withSubject({ audiences: [planner] }),
    allowed,
  ],
  [
    "PROD-2.6-9 a scope in place of the audience is allowed",
    [{ ...rule, subjectToken: { scopes: ["trips.pay"] } }],
    withSubject({ audiences: ["x"] }),
    allowed,
  ],
  [
    "PROD-2.6-9, PROD-7.3-1 a token without the scope that the rule names is denied",
    [{ ...rule, subjectToken: { scopes: ["delegate"] } }],
    withSubject({ audiences: ["x"] }),
    no("subject_token"),
  ],
  [
    "PROD-2.6-9 the audience is ignored if the rule names only scopes",
    [{ ...rule, subjectToken: { scopes: ["delegate"] } }],
    {},
    no("subject_token"),
  ],
  [
    "PROD-2.6-9 an exchange is allowed by audience or scope if the rule names both",
    [{ ...rule, subjectToken: { audiences: ["self"], scopes: ["delegate"] } }],
    {},
    allowed,
  ],

  // --- the chain
  [
    "PROD-4.1v6-5 a delegated token whose audience is the caller is allowed",
    [rule],
    withSubject({ chain: [prior] }),
    allowed,
  ],
  [
    "PROD-4.1v6-5 a delegated token whose audience is this server is allowed",
    [rule],
    withSubject({ chain: [prior], audiences: [issuer] }),
    allowed,
  ],
  [
    "PROD-4.1v6-5 a delegated token with another audience is denied",
    [rule],
    withSubject({ chain: [prior], audiences: ["crew-desk"] }),
    "policy_denied not_meant_for_caller",
  ],
  [
    "PROD-4.1v6-5 a scope does not replace the audience of a delegated token",
    [{ ...rule, subjectToken: { scopes: ["trips.pay"] } }],
    withSubject({ chain: [prior], audiences: ["x"] }),
    "policy_denied not_meant_for_caller",
  ],
  [
    "PROD-4.1v6-5 an impersonation with a delegated token for another audience is denied",
    [{ ...impersonation, subjectToken: { scopes: ["trips.pay"] } }],
    { mode: "impersonation", ...withSubject({ chain: [prior], audiences: ["x"] }) },
    "policy_denied not_meant_for_caller",
  ],
  [
    "PROD-4.1v6-6 a chain of the rule's depth is allowed",
    [{ ...rule, maxChainDepth: 2 }],
    withSubject({ chain: [prior] }),
    allowed,
  ],
  [
    "PROD-4.1v6-6 a longer chain than the rule allows is denied",
    [{ ...rule, maxChainDepth: 2 }],
    withSubject({ chain: [prior, prior] }),
    no("chain_depth"),
  ],
  [
    "PROD-4.1v6-6 eight hops including the new one are allowed",
    [rule],
    withSubject({ chain: Array(7).fill(prior) }),
    allowed,
  ],
  [
    "PROD-4.1v6-6 nine hops are denied",
    [rule],
    withSubject({ chain: Array(8).fill(prior) }),
    no("chain_depth"),
  ],
  [
    "PROD-4.1v6-6 a chain of more than 8 KiB is denied",
    [rule],
    withSubject({ chain: Array(5).fill({ ...prior, sub: `spiffe://td.example/${"a".repeat(1600)}` }) }),
    no("chain_depth"),
  ],
  [
    "PROD-4.1v6-6 an impersonation with a chain of any depth, which it drops, is allowed",
    [impersonation],
    { mode: "impersonation", ...withSubject({ chain: Array(9).fill(prior) }) },
    allowed,
  ],

  // --- lifetime
  [
    "PROD-8.4-1 a subject token that is valid for five seconds is allowed",
    [rule],
    withSubject({ expiresAtSeconds: now + 5 }),
    allowed,
  ],
  [
    "PROD-8.4-1 a subject token that is valid for less than five seconds is denied",
    [rule],
    withSubject({ expiresAtSeconds: now + 4 }),
    "policy_denied subject_token_expires_too_soon lifetime",
  ],
  [
    "PROD-8.4-1 an expired subject token is denied",
    [rule],
    withSubject({ expiresAtSeconds: now - 1 }),
    "policy_denied subject_token_expires_too_soon lifetime",
  ],

  // --- scope
  [
    "PROD-2.6-6, PROD-8.2-1, PROD-4.1r4-1 the requested scope is granted",
    [rule],
    { scope: ["trips.book"] },
    "crew: trips.book",
  ],
  ["PROD-2.6-6 never adds to the requested scope", [rule], { scope: ["trips.read"] }, "crew: trips.read"],
  [
    "PROD-2.6-6 no scope that the subject token lacks is granted",
    [rule],
    withSubject({ scopes: ["trips.book"] }),
    "crew: trips.book",
  ],
  [
    "PROD-2.6-6 no scope that the rule lacks is granted",
    [{ ...rule, scopes: ["trips.read"] }],
    {},
    "crew: trips.read",
  ],
  [
    "PROD-2.6-6, RFC9068-2.2.3-2, RFC8707-2.2-5 no scope that the target lacks is granted",
    [{ ...rule, targets: ["crew-desk"] }],
    { target: "crew-desk", ...withConsent({ targets: ["crew-desk"] }) },
    "crew: trips.read",
  ],
  [
    "PROD-2.6-6 no scope that the consent lacks is granted",
    [rule],
    withConsent({ scopes: ["trips.book"] }),
    "crew: trips.book",
  ],
  [
    "PROD-8.2-1 scopes are not restricted by a consent that the rule does not require",
    [{ ...rule, ...implied }],
    withConsent({ scopes: [] }),
    allowed,
  ],
  ["RFC6749-3.3-2 unknown scopes are dropped", [rule], { scope: ["trips.read", "x"] }, "crew: trips.read"],
  [
    "RFC6749-3.3-1 a scope is granted once",
    [rule],
    { scope: ["trips.read", "trips.read"] },
    "crew: trips.read",
  ],
  [
    "RFC6749-3.3-1 scopes are compared by case",
    [rule],
    { scope: ["Trips.read"] },
    "scope_refused scope_empty scope",
  ],
  [
    "PROD-8.2-1 an exchange is denied if the subject token leaves no scope",
    [rule],
    withSubject({ scopes: [] }),
    "scope_refused scope_empty scope",
  ],
  [
    "PROD-8.2-1 an exchange is denied if the rule leaves no scope",
    [{ ...rule, scopes: ["trips.pay"] }],
    {},
    "scope_refused scope_empty scope",
  ],
  [
    "PROD-8.2-1 an exchange is denied if the target leaves no scope",
    [{ ...rule, targets: ["reports"] }],
    { target: "reports", ...withConsent({ targets: ["reports"] }) },
    "scope_refused scope_empty scope",
  ],
  [
    "PROD-8.2-1 an exchange is denied if the consent leaves no scope",
    [rule],
    withConsent({ scopes: ["trips.pay"] }),
    "policy_denied consent_missing scope",
  ],
  ["PROD-8.2-1 an empty list of scopes is denied", [rule], { scope: [] }, "scope_refused scope_empty scope"],
  [
    "RFC6749-3.3-4, PROD-4.1v5-2 every allowed scope is granted if none is requested",
    [rule],
    { scope: undefined },
    allowed,
  ],
  [
    "RFC6749-3.3-4 the scopes of the subject token are granted if none is requested",
    [rule],
    { scope: undefined, ...withSubject({ scopes: ["trips.pay", "trips.book"] }) },
    "crew: trips.book",
  ],
  [
    "RFC6749-3.3-4 an exchange is denied if none is requested and none remains",
    [rule],
    { scope: undefined, ...withSubject({ scopes: ["x"] }) },
    "scope_refused scope_empty scope",
  ],

  // --- target
  [
    "PROD-4.1-30 an exchange without target is denied",
    [rule],
    { target: undefined },
    "target_refused target_missing",
  ],
  [
    "RFC8693-2.2.2-3 an unknown target is denied",
    [rule],
    { target: "nowhere" },
    "target_refused target_unknown",
  ],
  [
    "RFC8693-2.2.2-3 target names are compared exactly",
    [rule],
    { target: "Booking-Agent" },
    "target_refused target_unknown",
  ],
  [
    "RFC8693-2.2.2-3 a target that the rule does not name is denied",
    [rule],
    { target: "crew-desk" },
    "target_refused target_not_allowed",
  ],
  [
    "RFC8693-2.2.2-3 a target that none of several rules names is denied",
    [
      { ...rule, ...implied },
      { ...rule, ...implied, id: "more", targets: ["api"] },
    ],
    { target: "crew-desk", consents: [] },
    "target_refused target_not_allowed",
  ],
  [
    "RFC8693-2.2.2-3 the target is reported even if no scope would remain there",
    [rule],
    { target: "crew-desk", scope: ["x"] },
    "target_refused target_not_allowed",
  ],
  [
    "RFC8693-2.2.2-3 no rule is reported to a caller without consent for any target",
    [rule],
    { target: "crew-desk", consents: [] },
    "policy_denied no_rule",
  ],
  [
    "RFC8693-2.2.2-3 no rule is reported to an actor without rules",
    [rule],
    { target: "crew-desk", ...by(booking) },
    "policy_denied no_rule",
  ],

  // --- several rules
  [
    "PROD-2.6-10 the rule that grants more is chosen",
    [
      { ...rule, id: "a", scopes: ["trips.read"] },
      { ...rule, id: "b" },
    ],
    {},
    "b: trips.read trips.book",
  ],
  [
    "PROD-2.6-10 the smaller id of two rules that grant the same is chosen",
    [
      { ...rule, id: "b" },
      { ...rule, id: "a" },
    ],
    {},
    "a: trips.read trips.book",
  ],
  [
    "PROD-2.6-10 granted scopes are compared, not the scopes of the rules",
    [
      { ...rule, id: "b", scopes: ["trips.read", "trips.pay", "x"] },
      { ...rule, id: "a", scopes: ["trips.read"] },
    ],
    {},
    "a: trips.read",
  ],
  [
    "PROD-2.6-10 never combines two rules",
    [
      { ...rule, id: "a", scopes: ["trips.read"] },
      { ...rule, id: "b", scopes: ["trips.book"] },
    ],
    {},
    "a: trips.read",
  ],
  [
    "PROD-2.6-10 the matching rule of two is chosen",
    [
      { ...rule, id: "a", subjects: { issuers: [issuer] } },
      { ...rule, id: "b" },
    ],
    {},
    "b: trips.read trips.book",
  ],
  [
    "PROD-2.6-10 the condition that failed is recorded at each rule",
    [
      { ...rule, id: "d", consent: "may_act" },
      { ...rule, id: "a", subjects: { issuers: [issuer] } },
      { ...rule, id: "c", maxChainDepth: 1 },
      { ...rule, id: "b", subjectToken: { audiences: [issuer] } },
    ],
    withSubject({ chain: [prior] }),
    "policy_denied chain_too_deep subject_issuer subject_token chain_depth consent",
  ],
  [
    "PROD-8.2-1 an empty scope is reported if one rule fails only by scope",
    [
      { ...rule, id: "a", subjects: { issuers: [issuer] } },
      { ...rule, id: "b", scopes: ["x"] },
    ],
    {},
    "scope_refused scope_empty subject_issuer scope",
  ],
];

for (const [name, rules, patch, want] of cases) {
  test(name, () => assert.equal(outcome(rules, asking(patch)), want));
}

// --- client credentials ---------------------------------------------------------------------------------------------

const machine: Patch = {
  id: "m",
  allow: "client_credentials",
  clients: ["c-report"],
  targets: ["api"],
  scopes: ["trips.read"],
};
const report = { ...machine, id: "n", targets: ["reports"], scopes: ["reports.read"] };
const own: AccessPatch = {
  mode: "client_credentials",
  clientId: "c-report",
  workload: undefined,
  subject: undefined,
  consents: [],
  target: undefined,
  scope: undefined,
};

const machines: [name: string, rules: readonly Patch[], patch: AccessPatch, want: string][] = [
  ["PROD-1.5-2 client credentials without a rule are denied", [], {}, "policy_denied no_rule"],
  [
    "PROD-1.5-2 client credentials for a target without a rule are denied",
    [],
    { target: "api" },
    "policy_denied no_rule",
  ],
  [
    "RFC9068-3-2, PROD-4.1r5-1 the requested target is used",
    [machine, report],
    { target: "https://api.example" },
    "m https://api.example trips.read",
  ],
  [
    "RFC6749-3.3-4, RFC9068-3-4 the only target of the rules is used",
    [machine],
    {},
    "m https://api.example trips.read",
  ],
  [
    "RFC9068-3-4 the only target of two rules is used",
    [machine, { ...machine, id: "l", targets: ["https://api.example"] }],
    {},
    "l https://api.example trips.read",
  ],
  [
    "RFC9068-3-4 a request without scope is denied if there are two targets",
    [machine, report],
    {},
    "target_refused target_missing",
  ],
  [
    "RFC9068-3-4 a request without scope is denied if one rule has two targets",
    [{ ...machine, targets: ["api", "reports"] }],
    {},
    "target_refused target_missing",
  ],
  [
    "RFC9068-3-5 the target that the scope implies is used",
    [machine, report],
    { scope: ["reports.read"] },
    "n reports reports.read",
  ],
  [
    "RFC9068-3-5 unknown scopes are ignored when the scope implies the target",
    [machine, report],
    { scope: ["reports.read", "x"] },
    "n reports reports.read",
  ],
  [
    "RFC9068-3-6 scopes of two targets are denied",
    [machine, report],
    { scope: ["reports.read", "trips.read"] },
    "scope_refused scope_ambiguous",
  ],
  [
    "RFC9068-3-6 a scope that two targets have is denied",
    [machine, { ...report, targets: ["booking-agent"] }],
    { scope: ["trips.read"] },
    "scope_refused scope_ambiguous",
  ],
  [
    "RFC9068-3-5 a scope that no target has is denied",
    [machine, report],
    { scope: ["x"] },
    "scope_refused scope_empty",
  ],
  [
    "RFC9068-3-5 a scope of a target that is not allowed is denied",
    [machine],
    { scope: ["reports.read"] },
    "scope_refused scope_empty",
  ],
  [
    "RFC9068-3-5 a scope that the rule does not have is denied",
    [machine],
    { scope: ["trips.pay"] },
    "scope_refused scope_empty scope",
  ],
  [
    "RFC9068-3-4 targets of a rule for another workload are ignored",
    [
      { ...machine, actors: [planner] },
      { ...report, actors: [booking] },
    ],
    { workload: planner },
    "m https://api.example trips.read",
  ],
  [
    "RFC8693-2.2.2-3 a target that no rule names is denied",
    [machine],
    { target: "reports" },
    "target_refused target_not_allowed",
  ],
  [
    "RFC8693-2.2.2-3 an unknown target of client credentials is denied",
    [machine],
    { target: "nowhere" },
    "target_refused target_unknown",
  ],
  [
    "PROD-4.1v1-2 every scope of rule and target is granted if none is requested",
    [{ ...machine, scopes: ["trips.pay", "x", "trips.pay", "trips.read"] }],
    {},
    "m https://api.example trips.pay trips.read",
  ],
  [
    "PROD-4.1v1-2 the requested scope of client credentials is granted",
    [{ ...machine, scopes: ["trips.pay", "trips.read"] }],
    { scope: ["trips.read"] },
    "m https://api.example trips.read",
  ],
  [
    "PROD-2.6-10 a scope of a rule is counted once",
    [
      { ...machine, id: "b", scopes: ["trips.read", "trips.read"] },
      { ...machine, id: "a", scopes: ["trips.book"] },
    ],
    {},
    "a https://api.example trips.book",
  ],
  [
    "PROD-2.6-2 a workload is allowed",
    [{ ...machine, clients: undefined, actors: ["spiffe://td.example/*"] }],
    by(planner),
    "m https://api.example trips.read",
  ],
];

for (const [name, rules, patch, want] of machines) {
  test(name, () => {
    const asked = asking({ ...own, ...patch });
    const got = decide(compile(rules), asked);
    assert.equal(
      got.ok
        ? `${got.value.rule.id} ${got.value.audience} ${got.value.scope.join(" ")}`
        : outcome(rules, asked),
      want,
    );
  });
}

// --- what an allowing decision contains -----------------------------------------------------------------------------

function decided(rules: readonly Patch[], patch: AccessPatch = {}) {
  const got = decide(compile(rules), asking(patch));
  assert.ok(got.ok, JSON.stringify(got));
  return got.value;
}

const lifetimes: [string, Patch, AccessPatch, number][] = [
  ["PROD-8.4-1 a token has the lifetime of the rule", { ...rule, lifetimeSeconds: 60 }, {}, 60],
  ["PROD-8.4-1 a token has a lifetime of 300 s by default", rule, {}, 300],
  [
    "PROD-8.4-1, RFC8693-2.1-24 a token expires with its subject token at the latest",
    rule,
    withSubject({ expiresAtSeconds: now + 90 }),
    90,
  ],
  [
    "RTE-D-6, RTE-5-4 a token expires with the consent that it rests on at the latest",
    rule,
    withConsent({ expiresAtSeconds: now + 90 }),
    90,
  ],
  ["PROD-8.4-1 the lifetime counts from the request", rule, { nowSeconds: now + 550 }, 600],
  ["PROD-8.4-1 the lifetime applies without a subject token", machine, own, 300],
];
for (const [name, one, patch, want] of lifetimes) {
  test(name, () => assert.equal(decided([one], patch).expiresAtSeconds, now + want));
}

test("PROD-4.1r5-1 the audience is the requested name, unchanged", () => {
  const api = { ...rule, ...implied, targets: ["https://api.example"] };
  for (const target of ["api", "https://api.example"]) {
    const got = decided([api], { target });
    assert.equal(got.audience, target);
    assert.deepEqual(got.target.names, ["https://api.example", "api"]);
  }
});

test("PROD-2.6-4 a decision names the consent that it is based on", () => {
  assert.deepEqual(decided([rule]).consent, { id: "consent-1", version: 3 });
  assert.equal(decided([{ ...rule, ...implied }]).consent, undefined);
});

const consents = [
  { ...consent, id: "c", scopes: ["trips.read"] },
  { ...consent, id: "b", scopes: ["trips.book"] },
];
test("PROD-2.6-6 one consent is used, and two are never combined", () => {
  for (const given of [consents, consents.toReversed()]) {
    const got = decided([rule], { consents: given });
    assert.deepEqual([got.consent?.id, got.scope], ["b", ["trips.book"]]);
  }
});
test("PROD-2.6-6 the consent that grants more is used", () => {
  for (const given of [
    [...consents, { ...consent, id: "d" }],
    [{ ...consent, id: "d" }, ...consents],
  ]) {
    const got = decided([rule], { consents: given });
    assert.deepEqual([got.consent?.id, got.scope], ["d", ["trips.read", "trips.book"]]);
  }
});

test("PROD-2.6-6 where each scope was dropped is recorded", () => {
  const scope = ["a", "b", "c", "d", "trips.read"];
  const got = decided([{ ...rule, targets: ["api"], scopes: ["b", "c", "d", "trips.read", "trips.pay"] }], {
    scope: [...scope, "trips.pay"],
    target: "api",
    ...withSubject({ scopes: ["a", "c", "d", "trips.read", "trips.pay"] }),
    ...withConsent({ targets: ["api"], scopes: ["trips.read", "d"] }),
  });
  assert.deepEqual(got.trace, [
    {
      rule: "crew",
      fallen: [
        { scope: "a", at: "rule" },
        { scope: "b", at: "subject_token" },
        { scope: "c", at: "target" },
        { scope: "d", at: "target" },
        { scope: "trips.pay", at: "consent" },
      ],
    },
  ]);
});

test("RFC6749-3.3-4 which scopes of the subject token were dropped if none is requested is recorded", () => {
  const got = decided([{ ...rule, scopes: ["x", "trips.read"] }], { scope: undefined });
  const fallen = ["trips.book", "trips.pay"].map((scope) => ({ scope, at: "rule" }));
  assert.deepEqual(got.trace, [{ rule: "crew", fallen }]);
});

test("PROD-2.6-10 the trace contains every examined rule, ordered by id", () => {
  const got = decided([
    { ...rule, id: "b" },
    { ...rule, id: "a", subjects: { issuers: [issuer] } },
  ]);
  assert.deepEqual(got.trace, [{ rule: "a", failed: "subject_issuer" }, { rule: "b" }]);
});

test("RFC8693-4.1-6, RFC8693-4.1-7, PROD-2.5r1-2, PROD-2.5r2-1 earlier actors are ignored", () => {
  const chains = [prior, { sub: planner, iss: issuer }, { sub: booking, iss: idp }, { sub: "x", iss: "y" }];
  const open = { ...rule, maxChainDepth: 2 };
  const [first, ...others] = chains.map((hop) => decided([open], withSubject({ chain: [hop] })));
  for (const other of others) assert.deepEqual(other, first);
  assert.equal(
    outcome(
      [open],
      asking({
        ...by(booking),
        ...withSubject({ audiences: [issuer], chain: [{ sub: planner, iss: issuer }] }),
      }),
    ),
    "policy_denied no_rule",
  );
});

test("PROD-2.6-10 of ten thousand rules one is examined", () => {
  const many = Array.from({ length: 10_000 }, (_, index) => ({
    ...rule,
    id: `r${index}`,
    actors: [`spiffe://td.example/agents/a${index}`],
  }));
  const policy = compile(many);
  const actor = "spiffe://td.example/agents/a4821";
  const got = decide(
    policy,
    asking({ ...by(actor), ...withSubject({ audiences: [issuer] }), ...withConsent({ actor }) }),
  );
  assert.ok(got.ok);
  assert.deepEqual(got.value.trace, [{ rule: "r4821" }]);
});

/** Limits that are narrowed or removed reach tokens that are out, and every token below them, at the next exchange. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { standing, within } from "../../src/flows/standing.ts";
import type { Consent } from "../../src/policy/access.ts";
import type { StoredConsent } from "../../src/records.ts";
import { err } from "../../src/result.ts";
import {
  type Issued,
  KINDS,
  kiosk,
  OFFICE,
  type OfficeConfiguration,
  OTHER_DOMAIN,
  openOffice,
  PARTNER,
  VOUCHER,
} from "../support/office.ts";
import { claimsOf, EXCHANGE, IDP, ISSUER, workload } from "../support/world.ts";

const without = <T extends object>(from: T, name: string): object =>
  Object.fromEntries(Object.entries(from).filter(([key]) => key !== name));

/** The configuration with these members of one rule changed; without the rule if there are none. */
const withRule = (id: string, change?: object) => (from: OfficeConfiguration) => ({
  policies: from.policies
    .filter((rule) => change !== undefined || rule.id !== id)
    .map((rule) => (rule.id === id ? { ...rule, ...change } : rule)),
});
const withClient = (id: string, change: object) => (from: OfficeConfiguration) => ({
  clients: {
    ...from.clients,
    [id]: { ...from.clients[id as keyof OfficeConfiguration["clients"]], ...change },
  },
});
const withIssuer = (id: string, change: object) => (from: OfficeConfiguration) => ({
  trustedIssuers: {
    ...from.trustedIssuers,
    [id]: { ...from.trustedIssuers[id as keyof OfficeConfiguration["trustedIssuers"]], ...change },
  },
});
const withDesk = (change: object) => (from: OfficeConfiguration) => ({
  targets: from.targets.map((one) => (one.names.includes("desk") ? { ...one, ...change } : one)),
});

type Row = readonly [
  what: string,
  ends: readonly Issued[],
  reason: string,
  (from: OfficeConfiguration) => object,
];

const CHANGES: readonly Row[] = [
  [
    "a client that is deleted from the configuration",
    ["portal"],
    "token_client_gone",
    ({ clients }) => ({ clients: without(clients, "portal") }),
  ],
  [
    "a client that loses the grant type",
    ["portal"],
    "token_client_narrowed",
    withClient("portal", { grantTypes: [EXCHANGE] }),
  ],
  [
    "a client that is given another workload",
    ["kiosk", "invited"],
    "token_workload_changed",
    withClient("kiosk", { workload: workload("another") }),
  ],
  [
    "a client that loses its workload",
    ["crew"],
    "token_workload_changed",
    withClient("associated", { spiffeId: `spiffe://${OTHER_DOMAIN}/others/*` }),
  ],
  [
    "metadata documents that are switched off",
    ["document"],
    "token_client_gone",
    (from) => ({ clientMetadataDocuments: undefined, policies: withoutRule(from, "documents") }),
  ],
  [
    "an origin whose documents are no longer accepted",
    ["document"],
    "token_client_gone",
    (from) => ({
      clientMetadataDocuments: { origins: ["https://another.example"] },
      policies: withoutRule(from, "documents"),
    }),
  ],
  [
    "a trust domain that is removed",
    ["asked", "crew"],
    "token_workload_gone",
    ({ trustDomains }) => ({ trustDomains: without(trustDomains, OTHER_DOMAIN) }),
  ],
  [
    "a trust domain that no longer admits the workload",
    ["asked"],
    "token_workload_gone",
    ({ trustDomains }) => ({
      trustDomains: {
        ...trustDomains,
        [OTHER_DOMAIN]: { bundle: { file: "bundle.json" }, admit: [`spiffe://${OTHER_DOMAIN}/others/*`] },
      },
    }),
  ],
  [
    "an issuer that is disabled",
    ["vouched"],
    "token_client_gone",
    ({ trustedIssuers }) => ({
      trustedIssuers: { ...trustedIssuers, [VOUCHER]: { ...trustedIssuers[VOUCHER], disabled: true } },
    }),
  ],
  [
    "an issuer that no longer vouches",
    ["vouched"],
    "token_client_gone",
    ({ trustedIssuers, clients }) => ({
      trustedIssuers: without(trustedIssuers, VOUCHER),
      clients: without(clients, "vouched"),
      policies: OFFICE.policies.map((rule) => (rule.id === "own" ? { ...rule, clients: ["portal"] } : rule)),
    }),
  ],
  ["a rule that is removed", ["portal", "vouched"], "token_rule_gone", withRule("own")],
  [
    "POLICY-D-6 a rule under another id",
    ["portal", "vouched"],
    "token_rule_gone",
    withRule("own", { id: "renamed" }),
  ],
  ["a rule with fewer scopes", ["asked"], "token_rule_narrowed", withRule("asked", { scopes: ["read"] })],
  ["a rule with other targets", ["asked"], "token_rule_narrowed", withRule("asked", { targets: ["spare"] })],
  ["a rule with other actors", ["asked"], "token_rule_narrowed", withRule("asked", { actors: [kiosk] })],
  [
    "a rule with other clients",
    ["portal", "vouched"],
    "token_rule_narrowed",
    withRule("own", { clients: ["hotel"] }),
  ],
  [
    "a rule with the clients of before and actors beside",
    ["portal", "vouched"],
    "token_rule_narrowed",
    withRule("own", { actors: [kiosk] }),
  ],
  [
    "a rule with other subjects",
    ["asked"],
    "token_rule_narrowed",
    withRule("asked", { subjects: { issuers: [IDP], subs: ["u-2"] } }),
  ],
  [
    "a rule with subjects of another issuer",
    ["guest"],
    "token_rule_narrowed",
    withRule("guests", { subjects: { issuers: [IDP] } }),
  ],
  [
    "a rule that asks for a consent on record",
    ["invited"],
    "token_rule_narrowed",
    withRule("invited", { consent: "record", acknowledge: undefined }),
  ],
  [
    "a rule that asks for a consent in the token",
    ["invited"],
    "token_rule_narrowed",
    withRule("invited", { consent: "may_act", acknowledge: undefined }),
  ],
  [
    "a rule that allows something else",
    ["invited"],
    "token_rule_narrowed",
    withRule("invited", {
      allow: "client_credentials",
      subjects: undefined,
      subjectToken: undefined,
      consent: undefined,
      acknowledge: undefined,
    }),
  ],
  [
    "an issuer that is removed",
    ["guest"],
    "origin_not_trusted",
    (from) => ({
      trustedIssuers: without(from.trustedIssuers, PARTNER),
      policies: withRule("onward", { subjects: { issuers: [IDP, ISSUER] } })(from).policies.filter(
        ({ id }) => id !== "guests",
      ),
    }),
  ],
  [
    "RFC7519-4.1.2-v1 an issuer whose subjects are named otherwise",
    ["asked", "invited"],
    "token_issuer_narrowed",
    withIssuer(IDP, { subjects: { prefix: "i:" } }),
  ],
  [
    "an issuer whose table lacks the subject",
    ["guest"],
    "token_issuer_narrowed",
    withIssuer(PARTNER, { subjects: { table: { "u-78": "guest-78" } } }),
  ],
  [
    "an issuer whose grants are no longer accepted",
    ["guest"],
    "token_issuer_narrowed",
    withIssuer(PARTNER, { grants: undefined, acceptAs: ["jwt"] }),
  ],
  [
    "an issuer whose subject tokens are no longer accepted",
    ["asked", "invited"],
    "token_issuer_narrowed",
    withIssuer(IDP, { acceptAs: [], grants: { scopes: ["read"] } }),
  ],
  [
    "a subject that is disabled",
    ["guest"],
    "subject_disabled",
    ({ trustedIssuers }) => ({
      trustedIssuers: {
        ...trustedIssuers,
        [PARTNER]: { ...trustedIssuers[PARTNER], disabledSubjects: ["u-77"] },
      },
    }),
  ],
  [
    "a target that is removed",
    KINDS,
    "token_target_gone",
    (from) => ({
      targets: from.targets.slice(1),
      policies: from.policies.map((rule) => ({ ...rule, targets: ["spare"] })),
    }),
  ],
  [
    "POLICY-D-18, RFC8705-3-1, RFC9449-5-1 a target that demands bound tokens",
    KINDS,
    "token_target_narrowed",
    withDesk({ binding: "any" }),
  ],
  ["a target with fewer scopes", KINDS, "token_target_narrowed", withDesk({ scopes: ["read"] })],
];

function withoutRule(from: OfficeConfiguration, id: string) {
  return from.policies.filter((rule) => rule.id !== id);
}

/** Every change meets the same tokens: one of each kind, and one that was exchanged twice from it. */
const office = await openOffice({ after });
const issued = new Map<Issued, readonly string[]>();
for (const kind of KINDS) {
  const first = await office.token(kind);
  issued.set(kind, [first, await office.onward(await office.onward(first))]);
}

async function outcomes() {
  const seen: Record<string, unknown> = {};
  for (const [kind, tokens] of issued) seen[kind] = await Promise.all(tokens.map(office.tried));
  return seen;
}
const outcomesWanted = (ends: readonly Issued[], outcome: string, other: string) =>
  Object.fromEntries(KINDS.map((kind) => [kind, Array(2).fill(ends.includes(kind) ? outcome : other)]));

test("without a change all of it is good", async () => {
  assert.deepEqual(await outcomes(), outcomesWanted([], "", "good"));
});

for (const [what, ends, reason, change] of CHANGES) {
  test(`${what} reaches what is out, and all below it, until it is taken back`, async () => {
    office.reload({ ...OFFICE, ...change(OFFICE) });
    const narrowed = await outcomes();
    office.reload(OFFICE);
    assert.deepEqual(narrowed, outcomesWanted(ends, `subject_${reason}`, "good"));
    assert.deepEqual(await outcomes(), outcomesWanted([], "", "good"));
  });
}

test("POLICY-D-5 a rule that demands other subject tokens reaches none that was exchanged before", async () => {
  const demands = { subjectToken: { audiences: ["https://elsewhere.example"] } };
  const issued = ["asked", "invited"];
  office.reload({
    ...OFFICE,
    policies: OFFICE.policies.map((rule) => (issued.includes(rule.id) ? { ...rule, ...demands } : rule)),
  });
  const seen = await outcomes();
  office.reload(OFFICE);
  assert.deepEqual(seen, outcomesWanted([], "", "good"));
});

test("POLICY-D-9 a consent that is narrowed or expires reaches what was issued under it, and all below it", async (t) => {
  const { token, onward, tried, consent, ports, pass, nowSeconds } = await openOffice(t);
  const tokens = [await token("asked")];
  tokens.push(await onward(tokens[0] ?? ""));
  const beside = await token("invited");
  const event = { type: "consent.recorded", outcome: "allow", reason: "by_operator" } as const;
  let { version } = consent;
  const replace = async (change: Partial<Consent>) => {
    const next = { ...consent, ...change, version: ++version };
    assert.ok((await ports.journal.record({ event, consent: { replace: next } })).ok);
    assert.equal(await tried(beside), "good");
    return Promise.all(tokens.map(tried));
  };
  const [narrowed, gone] = ["subject_token_consent_narrowed", "subject_token_consent_gone"];
  assert.deepEqual(await replace({}), ["good", "good"]);
  assert.deepEqual(await replace({ scopes: ["read"] }), [narrowed, narrowed]);
  assert.deepEqual(await replace({ targets: ["spare"] }), [narrowed, narrowed]);
  assert.deepEqual(await replace({ expiresAtSeconds: nowSeconds + 10 }), ["good", "good"]);
  pass(10);
  assert.deepEqual(await Promise.all(tokens.map(tried)), [gone, gone]);
  assert.equal(await tried(beside), "good");
});

test("a shorter lifetime of a rule reaches what was issued for longer", async (t) => {
  const { token, tried, reload, pass } = await openOffice(t);
  const issued = await token("portal");
  reload({ ...OFFICE, ...withRule("own", { lifetimeSeconds: 60 })(OFFICE) });
  pass(59);
  assert.equal(await tried(issued), "good");
  pass(1);
  assert.equal(await tried(issued), "subject_token_rule_narrowed");
});

test("a lower depth of a rule reaches longer chains", async (t) => {
  const { token, onward, tried, reload } = await openOffice(t);
  const first = await onward(await token("portal"));
  const second = await onward(first);
  reload({ ...OFFICE, ...withRule("onward", { maxChainDepth: 2 })(OFFICE) });
  // The first is within the limit, but nothing may be added to the second.
  assert.deepEqual([await tried(first), await tried(second)], ["good", "chain_too_deep"]);
  reload({ ...OFFICE, ...withRule("onward", { maxChainDepth: 1 })(OFFICE) });
  assert.deepEqual(
    [await tried(first), await tried(second)],
    ["chain_too_deep", "subject_token_rule_narrowed"],
  );
});

test("a consent that is gone or withdrawn reaches what was issued under it", async (t) => {
  const { token, ports, consent } = await openOffice(t);
  const jti = String(claimsOf(await token("asked")).jti);
  const facts = await ports.facts.token(jti);
  assert.ok(facts);
  const nowSeconds = ports.clock.nowSeconds();
  const under = (consents: readonly StoredConsent[]) => within(ports, { ...facts, consents }, nowSeconds);
  assert.ok((await under([consent])).ok);
  for (const consents of [[], [{ ...consent, withdrawnAtSeconds: nowSeconds }]]) {
    assert.deepEqual(await under(consents), err("token_consent_gone"));
  }
});

test("AUDIT-D-5 a token with an ancestor of which there is no record does not stand, nor one that has expired", async (t) => {
  const { token, onward, ports } = await openOffice(t);
  const { jti } = claimsOf(await onward(await token("portal")));
  const facts = await ports.facts.token(String(jti));
  assert.ok(facts);
  const missing = { ...ports, facts: { ...ports.facts, token: async () => ({ ...facts, ancestors: [] }) } };
  assert.deepEqual(await standing(missing, String(jti), ports.clock.nowSeconds()), err("token_unknown"));
  const { issuedAtSeconds, expiresAtSeconds } = facts.record;
  assert.ok((await standing(ports, String(jti), issuedAtSeconds)).ok);
  assert.ok((await standing(ports, String(jti), expiresAtSeconds - 1)).ok);
  assert.deepEqual(await standing(ports, String(jti), expiresAtSeconds), err("jwt_expired"));
});

test("POLICY-D-18 a rule that no longer lets unbound tokens out of bound ones reaches those that came out", async (t) => {
  const { ports, token, onward, reload } = await openOffice(t);
  const unbound = await onward(await token("invited"));
  const facts = await ports.facts.token(String(claimsOf(unbound).jti));
  assert.ok(facts);
  const confirmation = { jkt: "A".repeat(43) };
  const ancestors = facts.ancestors.map((one) => ({ ...one, confirmation }));
  const judge = (record = facts.record) =>
    within(ports, { ...facts, record, ancestors }, ports.clock.nowSeconds());
  assert.deepEqual(await judge(), err("token_rule_narrowed"));
  assert.ok((await judge({ ...facts.record, confirmation })).ok);
  reload({ ...OFFICE, ...withRule("onward", { unbound: true })(OFFICE) });
  assert.ok((await judge()).ok);
});

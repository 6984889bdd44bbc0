/** Grants that this server issues for partners, and grants of other issuers that are redeemed here. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as v from "valibot";
import type { AccessRequest, Consent, Product, Subject } from "../../src/policy/access.ts";
import { decide } from "../../src/policy/decide.ts";
import { compilePolicy, Rule, Target } from "../../src/policy/rules.ts";

const issuer = "https://as.example";
const idp = "https://idp.example";
const partner = "https://as.partner.example";
const stays = "https://stays.partner.example";
const booking = "spiffe://td.example/agents/booking";
const planner = "spiffe://td.example/agents/planner";
const now = 1790000000;

const targets = [
  { names: ["booking-agent"], owners: [booking], scopes: ["trips.read", "trips.book"] },
  { names: ["api", "https://api.example"], scopes: ["trips.read", "trips.book"] },
  { names: ["reports"], scopes: ["reports.read"] },
  {
    kind: "partner",
    issuer: partner,
    aliases: ["partner"],
    scopes: ["trips.read", "stays.read"],
    clients: { [booking]: "booking-there", "https://known.example/c": "known-there" },
    resources: [stays, "urn:partner:cars"],
  },
  { kind: "partner", issuer: "https://as.other.example", scopes: ["trips.read"], resources: ["urn:other"] },
];

type Patch = Record<string, unknown>;

const exchange: Patch = {
  actors: [booking],
  subjects: { issuers: [idp] },
  subjectToken: { audiences: [issuer, "self"] },
  consent: "implied",
  acknowledge: "subjects-not-asked",
  scopes: ["trips.read", "trips.book"],
};
const rule = (id: string, patch: Patch): Patch => ({ id, ...exchange, ...patch });
/** One rule for each mode and product. */
const all = [
  rule("delegated-token", { allow: "delegation", targets: ["api"] }),
  rule("delegated-grant", { allow: "delegation", issues: "grant", targets: [partner] }),
  rule("impersonated-token", { allow: "impersonation", targets: ["api"] }),
  rule("impersonated-grant", { allow: "impersonation", issues: "grant", targets: [partner] }),
];
const grant = rule("g", {
  allow: "delegation",
  issues: "grant",
  targets: ["partner"],
  idJagSubjects: ["id_token", "access_token"],
});
const redemption = {
  id: "r",
  allow: "redemption",
  clients: ["c-stays"],
  targets: ["api"],
  scopes: ["trips.read", "trips.book"],
  subjects: { issuers: [partner] },
  consent: "implied",
  acknowledge: "subjects-not-asked",
};

const subject: Subject = {
  tokenType: "access_token",
  origin: { iss: idp, sub: "u-4821" },
  audiences: ["booking-agent"],
  scopes: ["trips.read", "trips.book", "stays.read"],
  expiresAtSeconds: now + 600,
  chain: [],
  issuer,
};
const consent: Consent = {
  id: "consent-1",
  version: 3,
  origin: { iss: idp, sub: "u-4821" },
  actor: booking,
  targets: [partner],
  scopes: ["trips.read"],
};
const asked: AccessRequest = {
  mode: "delegation",
  clientId: booking,
  workload: booking,
  subject,
  target: partner,
  scope: ["trips.read"],
  consents: [],
  nowSeconds: now,
};
const foreign: Subject = {
  ...subject,
  tokenType: "grant",
  origin: { iss: partner, sub: "p-7" },
  audiences: [issuer],
  scopes: ["trips.read"],
  expiresAtSeconds: now + 60,
  issuer: partner,
};
const redeeming: AccessRequest = {
  mode: "redemption",
  clientId: "c-stays",
  subject: foreign,
  target: "api",
  scope: ["trips.read"],
  consents: [],
  nowSeconds: now,
};
const prior = { sub: planner, iss: issuer };

type AccessPatch = { [Name in keyof AccessRequest]?: AccessRequest[Name] | undefined };
type SubjectPatch = { [Name in keyof Subject]?: Subject[Name] };

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
  assert.ok(set.ok, JSON.stringify(set));
  return set.value;
};

/** Allowed: rule, product, audience and scope. Denied: kind, reason, and the condition that failed at each rule. */
function outcome(rules: readonly Patch[], access: AccessRequest): string {
  const got = decide(compile(rules), access);
  if (!got.ok) {
    const { kind, reason, trace } = got.error;
    return [kind, reason, ...trace.map((one) => one.failed)].join(" ");
  }
  const { rule, product, audience, scope } = got.value;
  const issued = product.kind === "grant" ? [product.profile, ...grantDetails(product)] : ["token"];
  return [`${rule.id}:`, ...issued, `at ${audience},`, ...scope].join(" ");
}

function grantDetails({ clientIdThere, resources }: Extract<Product, { kind: "grant" }>): readonly string[] {
  return [...(clientIdThere === undefined ? [] : [`as ${clientIdThere}`]), ...resources];
}

const asking = (patch: AccessPatch, base = asked): AccessRequest =>
  present({ ...base, ...patch }) as AccessRequest;
const withSubject = (patch: SubjectPatch): AccessPatch => ({ subject: { ...subject, ...patch } });
const withGrant = (patch: SubjectPatch): AccessPatch => ({ subject: { ...foreign, ...patch } });
const by = (clientId: string): AccessPatch => ({ clientId });

// --- mode and product -----------------------------------------------------------------------------------------------

const products: [mode: AccessRequest["mode"], target: string, want: string][] = [
  ["delegation", "api", "delegated-token: token at api, trips.read"],
  ["delegation", partner, `delegated-grant: jwt as booking-there at ${partner}, trips.read`],
  ["impersonation", "api", "impersonated-token: token at api, trips.read"],
  ["impersonation", partner, `impersonated-grant: jwt as booking-there at ${partner}, trips.read`],
];
for (const [mode, target, want] of products) {
  for (const chain of [[], [prior]]) {
    const where = target === partner ? "a partner" : "a resource server";
    const what = `${mode} at ${where}, ${chain.length === 0 ? "with a subject's own token" : "with a delegated token"},`;
    const access = asking({ mode, target, ...withSubject({ chain }) });
    test(`PROD-4.1v7-4, PROD-4.1v7-3, PROD-1.7-3 ${what} is decided by the rule for it`, () => {
      assert.equal(outcome(all, access), want);
    });
    test(`PROD-1.5-2 ${what} is decided by no other rule`, () => {
      const others = all.filter(({ id }) => !want.startsWith(`${id}:`));
      assert.equal(outcome(others, access), "target_refused target_not_allowed");
    });
  }
}

const jag = { requestedType: "id-jag" } as const;
const idToken = { tokenType: "id_token", audiences: [booking] } as const;
const plain = `g: jwt as booking-there at ${partner}, trips.read`;
const idJag = `g: id-jag as booking-there at ${partner}, trips.read`;

const cases: [name: string, rules: readonly Patch[], patch: AccessPatch, want: string][] = [
  // --- the requested token type
  ["PROD-4.1v8-3 a plain grant for a partner is issued by default", [grant], {}, plain],
  ["PROD-4.1v8-3 a plain grant is issued if a JWT is requested", [grant], { requestedType: "jwt" }, plain],
  ["PROD-4.1v8-3 an ID-JAG is issued if one is requested", [grant], jag, idJag],
  [
    "PROD-1.7-3, PROD-4.1v7-4 an access token for a partner is denied",
    [grant],
    { requestedType: "access_token" },
    "policy_denied token_type_not_for_target",
  ],
  [
    "RFC8693-2.1-14 an access token for a resource server is issued if one is requested",
    all,
    { target: "api", requestedType: "access_token" },
    "delegated-token: token at api, trips.read",
  ],
  [
    "RFC8693-2.1-14 an access token for a resource server is issued if a JWT is requested, since it is one",
    all,
    { target: "api", requestedType: "jwt" },
    "delegated-token: token at api, trips.read",
  ],
  [
    "PROD-1.7-3, PROD-4.1v7-4 an ID-JAG for a resource server is denied",
    all,
    { target: "api", requestedType: "id-jag" },
    "policy_denied token_type_not_for_target",
  ],
  [
    "IDC-2.3.2-1 an unknown partner is denied",
    [grant],
    { target: "https://as.partner.example/" },
    "target_refused target_unknown",
  ],
  [
    "IDC-2.3.1-1 a grant without target is denied",
    [grant],
    { target: undefined },
    "target_refused target_missing",
  ],
  [
    "IDC-2.3.3-2, IDJAG-4.3-2 the partner's issuer is the audience if the target is its alias",
    [grant],
    { target: "partner", ...jag },
    idJag,
  ],
  [
    "IDC-2.3.2-1 a partner that the rule does not name is denied",
    [grant],
    { target: "https://as.other.example" },
    "target_refused target_not_allowed",
  ],
  [
    "RFC8693-2.2.2-3 no rule is reported if an ID-JAG is not allowed at any target",
    [rule("t", { allow: "delegation", targets: ["api"] })],
    { requestedType: "id-jag", ...withSubject({ tokenType: "id_token" }) },
    "policy_denied no_rule",
  ],
  [
    "RFC8693-2.2.2-3 no rule is reported if an access token is not allowed at any target",
    [grant],
    { target: "api", requestedType: "access_token" },
    "policy_denied no_rule",
  ],
  [
    "RFC8693-2.2.2-3 the target is reported if the requested type is allowed at another target",
    [grant],
    { target: "https://as.other.example", requestedType: "jwt" },
    "target_refused target_not_allowed",
  ],
  [
    "RFC8693-2.2.2-3 no rule is reported if the subject token type is not allowed for an ID-JAG at any target",
    [{ ...grant, targets: ["https://as.other.example"], idJagSubjects: ["jwt"] }],
    jag,
    "policy_denied no_rule",
  ],

  // --- the client_id at the partner
  [
    "IDJAG-5-1 a client with a metadata document is named by its URL",
    [grant],
    { ...jag, ...by("https://agents.example/booking.json") },
    `g: id-jag as https://agents.example/booking.json at ${partner}, trips.read`,
  ],
  [
    "IDJAG-5-1 the configured client_id is preferred to the client's URL",
    [grant],
    { ...jag, ...by("https://known.example/c") },
    `g: id-jag as known-there at ${partner}, trips.read`,
  ],
  [
    "IDJAG-3.1-5 an ID-JAG to a client without a client_id at the partner is denied",
    [grant],
    { ...jag, ...by("c-portal") },
    "policy_denied client_unknown_at_partner",
  ],
  [
    "IDJAG-3.1-5 the workload's client_id is not used for its client",
    [grant],
    { ...jag, ...by("c-booking") },
    "policy_denied client_unknown_at_partner",
  ],
  [
    "IDJAG-3.1-5 the client_id of another partner is not used",
    [{ ...grant, targets: ["https://as.other.example"] }],
    { ...jag, target: "https://as.other.example" },
    "policy_denied client_unknown_at_partner",
  ],
  [
    "IDJAG-3.1-5 a plain grant is issued to a client without a client_id at the partner",
    [grant],
    by("c-portal"),
    `g: jwt at ${partner}, trips.read`,
  ],

  // --- subject tokens of an ID-JAG
  [
    "IDJAG-4.3-3 an ID-JAG is issued for an ID token by default",
    [{ ...grant, idJagSubjects: undefined }],
    { ...jag, subject: { ...subject, ...idToken, audiences: [issuer] } },
    idJag,
  ],
  ...(["access_token", "jwt"] as const).flatMap((tokenType): [string, Patch[], AccessPatch, string][] => [
    [
      `IDJAG-4.3-3 an ID-JAG for the token type ${tokenType} by default is denied`,
      [{ ...grant, idJagSubjects: undefined }],
      { ...jag, ...withSubject({ tokenType }) },
      "policy_denied subject_token_does_not_permit subject_token",
    ],
    [
      `IDJAG-4.3-3 an ID-JAG is issued for the token type ${tokenType} if the rule names it`,
      [{ ...grant, idJagSubjects: ["id_token", tokenType] }],
      { ...jag, ...withSubject({ tokenType }) },
      idJag,
    ],
    [
      `IDJAG-4.3-3 an ID-JAG for an ID token is denied if the rule names only ${tokenType}`,
      [{ ...grant, idJagSubjects: [tokenType] }],
      { ...jag, ...withSubject({ tokenType: "id_token" }) },
      "policy_denied subject_token_does_not_permit subject_token",
    ],
    [
      `IDJAG-4.3-3 a plain grant is issued for the token type ${tokenType} independently of idJagSubjects`,
      [{ ...grant, idJagSubjects: ["id_token"] }],
      withSubject({ tokenType }),
      plain,
    ],
  ]),
  [
    "IDC-5.3-1, IDJAG-4.3.3-2 an ID-JAG for a token with another audience is denied even if its scope permits the exchange",
    [{ ...grant, idJagSubjects: ["access_token"], subjectToken: { scopes: ["trips.read"] } }],
    { ...jag, ...withSubject({ tokenType: "access_token", audiences: ["other-client"], chain: [] }) },
    "policy_denied subject_token_does_not_permit subject_token",
  ],
  [
    "IDC-5.3-1 an ID-JAG is issued for a token for the caller whose scope permits the exchange",
    [{ ...grant, idJagSubjects: ["access_token"], subjectToken: { scopes: ["trips.read"] } }],
    { ...jag, ...withSubject({ tokenType: "access_token", audiences: [booking], chain: [] }) },
    idJag,
  ],
  [
    "IDJAG-4.3-3 a scope that the rule names does not permit another token type",
    [{ ...grant, idJagSubjects: undefined, subjectToken: { scopes: ["trips.read"] } }],
    jag,
    "policy_denied subject_token_does_not_permit subject_token",
  ],

  // --- resources of the partner
  [
    "EMA-7.6.1-1, IDJAG-4.3.3-5 the requested resources of the partner are included",
    [grant],
    { ...jag, resources: [stays, "urn:partner:cars"] },
    `g: id-jag as booking-there ${stays} urn:partner:cars at ${partner}, trips.read`,
  ],
  ["EMA-7.6.1-1 no resources are included if none is requested", [grant], { ...jag, resources: [] }, idJag],
  ...[["urn:other"], [stays, "https://api.example"], [`${stays}/`]].map(
    (resources): [string, Patch[], AccessPatch, string] => [
      `EMA-7.6.1-1 the resources ${resources.join(" and ")} are denied`,
      [grant],
      { ...jag, resources },
      "target_refused resource_not_allowed",
    ],
  ),
  [
    "EMA-7.6.1-1 resources of the partner in a plain grant are denied",
    [grant],
    { resources: [stays] },
    "target_refused resource_not_allowed",
  ],
  [
    "EMA-7.6.1-1 resources of the partner at a resource server are denied",
    all,
    { target: "api", resources: [stays] },
    "target_refused resource_not_allowed",
  ],

  // --- conditions that hold for every product
  [
    "PROD-2.6-2 another actor a grant is denied",
    [grant],
    { clientId: planner, workload: planner },
    "policy_denied no_rule",
  ],
  [
    "PROD-2.6-4 a grant for subjects of another issuer is denied",
    [grant],
    withSubject({ origin: { iss: "https://other.example", sub: "u-4821" } }),
    "policy_denied no_rule subject_issuer",
  ],
  [
    "PROD-2.6-4 a grant without consent is denied",
    [{ ...grant, consent: "record", acknowledge: undefined }],
    {},
    "policy_denied consent_missing consent",
  ],
  ...[partner, "partner"].map((name): [string, Patch[], AccessPatch, string] => [
    `PROD-2.6-4 a grant with a consent for ${name} is allowed`,
    [{ ...grant, consent: "record", acknowledge: undefined }],
    { consents: [{ ...consent, targets: [name] }] },
    plain,
  ]),
  [
    "PROD-2.6-4 a grant with a consent for another target is denied",
    [{ ...grant, consent: "record", acknowledge: undefined }],
    { consents: [{ ...consent, targets: [stays, "https://as.other.example"] }] },
    "policy_denied consent_missing consent",
  ],
  [
    "RFC8693-4.4-2 a grant to a caller that may_act does not name is denied",
    [grant],
    withSubject({ mayAct: { sub: planner } }),
    "policy_denied may_act_names_another",
  ],
  [
    "IDC-5.3-1, PROD-4.1v6-5 a grant for a delegated token with another audience is denied",
    [{ ...grant, subjectToken: { scopes: ["trips.read"] } }],
    withSubject({ chain: [prior], audiences: ["api"] }),
    "policy_denied not_meant_for_caller",
  ],
  [
    "PROD-4.1v6-6 a grant with a longer chain than the rule allows is denied",
    [{ ...grant, maxChainDepth: 2 }],
    withSubject({ chain: [prior, prior] }),
    "policy_denied chain_too_deep chain_depth",
  ],
  [
    "IDC-2.5-1 no scope that the subject token lacks is granted",
    [{ ...grant, scopes: ["trips.read", "stays.read"] }],
    { scope: ["trips.read", "stays.read"], ...withSubject({ scopes: ["stays.read"] }) },
    `g: jwt as booking-there at ${partner}, stays.read`,
  ],
  [
    "IDJAG-4.3.3-6 no scope that the partner does not have is granted",
    [grant],
    { ...jag, scope: ["trips.book", "trips.read"] },
    idJag,
  ],
  [
    "IDC-2.3.1-3 only requested scopes are granted",
    [grant],
    { scope: ["trips.book"] },
    "scope_refused scope_empty scope",
  ],
];
for (const [name, rules, patch, want] of cases) {
  test(name, () => assert.equal(outcome(rules, asking(patch)), want));
}

test("IDC-5.5-1 a grant expires after a minute or the rule's lifetime, at the latest with its subject token", () => {
  const ends = (patch: Patch, subjectPatch: SubjectPatch = {}): number => {
    const got = decide(compile([{ ...grant, ...patch }]), asking(withSubject(subjectPatch)));
    assert.ok(got.ok);
    return got.value.expiresAtSeconds - now;
  };
  assert.deepEqual(
    [ends({}), ends({ lifetimeSeconds: 300 }), ends({}, { expiresAtSeconds: now + 20 })],
    [60, 300, 20],
  );
});

test("PROD-2.6-10 the rule that grants more at a partner is chosen, then the smaller id", () => {
  const more = { ...grant, id: "z", scopes: ["trips.read", "stays.read"] };
  const wanted = asking({ scope: ["trips.read", "stays.read"] });
  assert.match(outcome([grant, more], wanted), /^z:/);
  assert.match(outcome([{ ...more, id: "y" }, more], wanted), /^y:/);
});

// --- client credentials and redemption at a partner -----------------------------------------------------------------

const machine = {
  id: "m",
  allow: "client_credentials",
  clients: [booking],
  targets: ["api"],
  scopes: ["trips.read"],
};
for (const mode of ["client_credentials", "redemption"] as const) {
  test(`PROD-1.7-3 ${mode} at a partner is denied`, () => {
    const access =
      mode === "redemption" ? asking({ target: "partner" }, redeeming) : asking({ mode, subject: undefined });
    assert.equal(outcome([machine, redemption], access), "target_refused target_is_partner");
  });
}

// --- redemption -----------------------------------------------------------------------------------------------------

const redeemed = "r: token at api, trips.read";
const onRecord = { ...redemption, consent: "record", acknowledge: undefined };
const given: Consent = {
  ...consent,
  origin: { iss: partner, sub: "p-7" },
  actor: "c-stays",
  targets: ["api"],
};
const atReports = { ...redemption, id: "s", targets: ["reports"], scopes: ["reports.read"] };

const redemptions: [name: string, rules: readonly Patch[], patch: AccessPatch, want: string][] = [
  // --- the caller
  ["IDC-2.4.2-4 a redemption by a rule for the client is allowed", [redemption], {}, redeemed],
  ["IDC-2.4.2-4, PROD-1.5-2 a redemption without a rule is denied", [], {}, "policy_denied no_rule"],
  [
    "PROD-1.5-2 a redemption by rules for other modes is denied",
    [...all, { ...machine, clients: ["c-stays"] }],
    {},
    "policy_denied no_rule",
  ],
  [
    "PROD-1.5-2 an exchange by a rule for redemption is denied",
    [{ ...redemption, clients: [booking] }],
    asked,
    "policy_denied no_rule",
  ],
  [
    "PROD-2.6-2 a redemption by another client is denied",
    [redemption],
    by("c-other"),
    "policy_denied no_rule",
  ],
  [
    "PROD-2.6-2 a redemption by a client of the class is allowed",
    [{ ...redemption, clients: undefined, classes: ["staff"] }],
    { ...by("c_1"), registrationClass: "staff" },
    redeemed,
  ],
  [
    "PROD-2.6-2 a redemption by a client of another class is denied",
    [{ ...redemption, clients: undefined, classes: ["staff"] }],
    { ...by("c_1"), registrationClass: "guests" },
    "policy_denied no_rule",
  ],
  [
    "PROD-2.6-3 a redemption by a workload is allowed",
    [{ ...redemption, clients: undefined, actors: [booking] }],
    { clientId: booking, workload: booking },
    redeemed,
  ],
  [
    "PROD-7.3-2 the workload is required as well if the rule names clients and actors",
    [{ ...redemption, actors: [booking] }],
    {},
    "policy_denied no_rule actor",
  ],

  // --- the subject
  [
    "IDC-2.4.2-4 a grant of another issuer is denied",
    [redemption],
    withGrant({ origin: { iss: idp, sub: "p-7" }, issuer: idp }),
    "policy_denied no_rule subject_issuer",
  ],
  [
    "PROD-2.6-4 a named subject is allowed",
    [{ ...redemption, subjects: { issuers: [partner], subs: ["p-7"] } }],
    {},
    redeemed,
  ],
  [
    "PROD-2.6-4 a subject that is not named is denied",
    [{ ...redemption, subjects: { issuers: [partner], subs: ["p-8"] } }],
    {},
    "policy_denied no_rule subject",
  ],
  [
    "PROD-1.3-2 a redemption without a grant is denied",
    [redemption],
    { subject: undefined },
    "policy_denied no_rule subject",
  ],
  ["PROD-2.6-4 a redemption with a recorded consent is allowed", [onRecord], { consents: [given] }, redeemed],
  [
    "PROD-2.6-4 a redemption without a consent is denied",
    [onRecord],
    {},
    "policy_denied consent_missing consent",
  ],
  [
    "PROD-2.6-4 a redemption with the consent of an equal sub of this server is denied",
    [onRecord],
    { consents: [{ ...given, origin: { iss: issuer, sub: "p-7" } }] },
    "policy_denied consent_missing consent",
  ],
  [
    "PROD-2.6-8 a redemption with may_act in the grant is allowed",
    [{ ...onRecord, consent: "may_act" }],
    withGrant({ mayAct: { sub: "c-stays", iss: issuer } }),
    redeemed,
  ],
  [
    "PROD-2.6-8 a redemption without may_act in the grant is denied",
    [{ ...onRecord, consent: "may_act" }],
    {},
    "policy_denied consent_missing consent",
  ],
  [
    "RFC8693-4.4-2 a redemption by a caller that may_act does not name is denied",
    [redemption],
    withGrant({ mayAct: { sub: "c-other", iss: issuer } }),
    "policy_denied may_act_names_another",
  ],

  // --- the grant
  [
    "PROD-4.1v6-5 the audience of a grant is not checked, which was checked on verification",
    [redemption],
    withGrant({ audiences: ["x"] }),
    redeemed,
  ],
  [
    "PROD-4.1v6-5 the audience of a delegated grant is not checked either",
    [redemption],
    withGrant({ audiences: ["x"], chain: [prior] }),
    redeemed,
  ],
  [
    "PROD-4.1v6-6 a chain of eight hops is allowed, because redemption adds none",
    [redemption],
    withGrant({ chain: Array(8).fill(prior) }),
    redeemed,
  ],
  [
    "PROD-4.1v6-6 a chain of the rule's length is allowed",
    [{ ...redemption, maxChainDepth: 2 }],
    withGrant({ chain: [prior, prior] }),
    redeemed,
  ],
  [
    "PROD-4.1v6-6 a longer chain is denied",
    [{ ...redemption, maxChainDepth: 1 }],
    withGrant({ chain: [prior, prior] }),
    "policy_denied chain_too_deep chain_depth",
  ],
  [
    "PROD-4.1v6-6 a chain of more than 8 KiB is denied",
    [redemption],
    withGrant({ chain: Array(6).fill({ ...prior, sub: `spiffe://td.example/${"a".repeat(1600)}` }) }),
    "policy_denied chain_too_deep chain_depth",
  ],

  // --- scope
  [
    "RFC7521-4.1-3, EMA-7.2.1-1, IDJAG-4.4.1-6 no scope that the grant lacks is granted",
    [redemption],
    { scope: ["trips.read", "trips.book"] },
    redeemed,
  ],
  [
    "EMA-7.2.1-1 only requested scopes are granted",
    [redemption],
    { scope: ["trips.book"], ...withGrant({ scopes: ["trips.read", "trips.book"] }) },
    "r: token at api, trips.book",
  ],
  [
    "RFC6749-3.3-4 the scope of the grant is granted if none is requested",
    [redemption],
    { scope: undefined },
    redeemed,
  ],
  [
    "IDJAG-4.4.1-6 nothing is granted for a grant without scope",
    [redemption],
    { scope: undefined, ...withGrant({ scopes: [] }) },
    "scope_refused scope_empty scope",
  ],
  [
    "PROD-2.6-6 no scope that the rule lacks is granted",
    [{ ...redemption, scopes: ["trips.book"] }],
    {},
    "scope_refused scope_empty scope",
  ],
  [
    "PROD-2.6-6 no scope that the consent lacks is granted",
    [onRecord],
    { consents: [{ ...given, scopes: ["trips.book"] }] },
    "scope_refused scope_empty scope",
  ],

  // --- target
  [
    "RFC9068-3-4 the only target of the rules is used",
    [redemption],
    { target: undefined },
    "r: token at api, trips.read",
  ],
  [
    "RFC9068-3-5 the target that the requested scope implies is used",
    [redemption, atReports],
    { target: undefined, scope: ["reports.read"], ...withGrant({ scopes: ["trips.read", "reports.read"] }) },
    "s: token at reports, reports.read",
  ],
  [
    "RFC9068-3-5 the target that the scope of the grant implies is used",
    [redemption, atReports],
    { target: undefined, scope: undefined },
    "r: token at api, trips.read",
  ],
  [
    "RFC9068-3-6 scopes of two targets are denied",
    [redemption, atReports],
    { target: undefined, scope: ["trips.read", "reports.read"] },
    "scope_refused scope_ambiguous",
  ],
  [
    "RFC9068-3-4 a grant whose scope implies two targets is denied if none is requested",
    [redemption, atReports],
    { target: undefined, scope: undefined, ...withGrant({ scopes: ["trips.read", "reports.read"] }) },
    "target_refused target_missing",
  ],
  [
    "RFC9068-3-4 targets of a rule for other subjects are ignored",
    [redemption, { ...redemption, id: "s", targets: ["booking-agent"], subjects: { issuers: [idp] } }],
    { target: undefined },
    "r: token at api, trips.read",
  ],
  [
    "RFC9068-3-4 targets of a rule for shorter chains are ignored",
    [redemption, { ...redemption, id: "s", targets: ["booking-agent"], maxChainDepth: 1 }],
    { target: undefined, ...withGrant({ chain: [prior, prior] }) },
    "r: token at api, trips.read",
  ],
  [
    "RFC8693-2.2.2-3 a target that no rule names is denied",
    [redemption],
    { target: "reports" },
    "target_refused target_not_allowed",
  ],
];
for (const [name, rules, patch, want] of redemptions) {
  test(name, () => assert.equal(outcome(rules, asking(patch, redeeming)), want));
}

test("RFC7521-4.1-5, PROD-8.4-1 a token has the lifetime of the rule, not of the grant", () => {
  const seconds = [60, 1].map((left) => {
    const got = decide(compile([redemption]), asking(withGrant({ expiresAtSeconds: now + left }), redeeming));
    return got.ok ? got.value.expiresAtSeconds - now : got.error.reason;
  });
  assert.deepEqual(seconds, [300, 300]);
});

test("PROD-2.6-10 of ten thousand redemption rules one is examined, by client and by class", () => {
  const many = Array.from({ length: 10_000 }, (_, index) => ({
    ...redemption,
    id: `r${index}`,
    clients: [`c${index}`],
    classes: [`k${index}`],
  }));
  const policy = compile(many);
  const callers = [
    { clientId: "c4821" },
    { clientId: "c_1", registrationClass: "k4821" },
    { clientId: "c4821", registrationClass: "k4821" },
  ];
  for (const caller of callers) {
    const got = decide(policy, { ...redeeming, ...caller });
    assert.ok(got.ok);
    assert.deepEqual(got.value.trace, [{ rule: "r4821" }]);
  }
});

// --- scopes that a client is registered for -------------------------------------------------------------------------

const wide = { ...machine, clients: undefined, classes: ["staff"], scopes: ["trips.read", "trips.book"] };
const registered: AccessRequest = {
  mode: "client_credentials",
  clientId: "c_1",
  registrationClass: "staff",
  target: "api",
  clientScopes: ["trips.read"],
  consents: [],
  nowSeconds: now,
};

test("PROD-2.6-6 a client gets only registered scopes, and where the others were dropped is recorded", () => {
  for (const scope of [undefined, ["trips.book", "trips.read"]]) {
    const got = decide(compile([wide]), present({ ...registered, scope }) as AccessRequest);
    assert.ok(got.ok);
    assert.deepEqual(got.value.scope, ["trips.read"]);
    assert.deepEqual(got.value.trace, [{ rule: "m", fallen: [{ scope: "trips.book", at: "client" }] }]);
  }
});

test("PROD-2.6-6 a client gets only registered scopes even if the subject token has more", () => {
  const none = { clientScopes: ["x"], ...withSubject({}) };
  assert.equal(outcome([grant], asking(none)), "scope_refused scope_empty scope");
  assert.equal(
    outcome([redemption], asking({ clientScopes: [] }, redeeming)),
    "scope_refused scope_empty scope",
  );
});

test("PROD-2.6-6 a client without registered scopes gets the rule's scopes", () => {
  const { clientScopes: _, ...open } = registered;
  assert.equal(outcome([wide], open), "m: token at api, trips.read trips.book");
});

/** Bound tokens in the decision: what a token is bound to, and by whom a bound token may be exchanged. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as v from "valibot";
import type { AccessRequest, ProvenKeys, Subject } from "../../src/policy/access.ts";
import { checkPolicy } from "../../src/policy/checks.ts";
import { decide } from "../../src/policy/decide.ts";
import { compilePolicy, type PolicySet, Rule, Target } from "../../src/policy/rules.ts";
import { defined } from "../../src/result.ts";

const issuer = "https://as.example";
const idp = "https://idp.example";
const partner = "https://partner.example";
const booking = "spiffe://td.example/agents/booking";
const now = 1_790_000_000;
const scopes = ["trips.read"];
const parties = {
  trustDomains: { "td.example": {} },
  trustedIssuers: { [idp]: { acceptAs: ["jwt"], subjects: "keep" as const, grants: {} } },
  clients: {},
};

const targets = [
  { names: ["plain"], owners: [booking], scopes },
  { names: ["certificate"], scopes, binding: "certificate" },
  { names: ["dpop"], scopes, binding: "dpop" },
  { names: ["any"], scopes, binding: "any" },
  { kind: "partner", issuer: partner, scopes, clients: { [booking]: "booking-there" } },
];
const servers = ["plain", "certificate", "dpop", "any"];
const exchange = {
  allow: "delegation",
  actors: [booking],
  subjects: { issuers: [idp] },
  subjectToken: { audiences: [issuer, "self"] },
  consent: "implied",
  acknowledge: "subjects-not-asked",
  scopes,
};
const machine = { id: "own", allow: "client_credentials", actors: [booking], targets: servers, scopes };

function compile(rules: readonly object[]): { policy: PolicySet; rules: Rule[] } {
  const parsed = rules.map((one) => v.parse(Rule, one));
  const set = compilePolicy(
    parsed,
    targets.map((one) => v.parse(Target, one)),
    issuer,
    "sha256:00",
  );
  assert.ok(set.ok, JSON.stringify(set));
  return { policy: set.value, rules: parsed };
}

const jkt = "key-of-the-caller";
const x5t = "certificate-of-the-caller";
const certificate = { x5t, notAfterSeconds: now + 3600 };

/** What the token is bound to and until when, or why there is none. */
function outcome(
  rules: readonly object[],
  asked: Omit<AccessRequest, "clientId" | "consents" | "nowSeconds">,
): string {
  const access: AccessRequest = {
    clientId: booking,
    workload: booking,
    consents: [],
    nowSeconds: now,
    ...asked,
  };
  const got = decide(compile(rules).policy, access);
  if (!got.ok) return `${got.error.kind} ${got.error.reason}`;
  const { confirmation, expiresAtSeconds, demand } = got.value;
  if (access.keys === "assumed") return `demands ${demand}`;
  return `${confirmation === undefined ? "unbound" : Object.entries(confirmation).flat().join(" ")} ${expiresAtSeconds - now}`;
}

// --- a client's own token -----------------------------------------------------------------------------------------

const byProof = `jkt ${jkt} 300`;
const byCertificate = `x5t#S256 ${x5t} 300`;
const missing = "binding_refused binding_not_proven";
const excluded = "binding_refused binding_excluded";

type Keys = { none: ProvenKeys; proof: ProvenKeys; certificate: ProvenKeys; both: ProvenKeys };
const KEYS: Keys = { none: {}, proof: { jkt }, certificate: { certificate }, both: { jkt, certificate } };

const table: readonly (readonly [string, string, AccessRequest["bindsBy"], Record<keyof Keys, string>])[] = [
  [
    "RFC9449-5-1, RFC8705-3-1 a target that demands nothing: a proof binds, a certificate alone does not",
    "plain",
    undefined,
    { none: "unbound 300", proof: byProof, certificate: "unbound 300", both: byProof },
  ],
  [
    "RFC8705-3-1 a target that demands certificates",
    "certificate",
    undefined,
    { none: missing, proof: excluded, certificate: byCertificate, both: excluded },
  ],
  [
    "RFC9449-5-1 a target that demands DPoP",
    "dpop",
    undefined,
    { none: missing, proof: byProof, certificate: missing, both: byProof },
  ],
  [
    "RFC7800-3.1-v1 a target that demands either: DPoP first, and never both",
    "any",
    undefined,
    { none: missing, proof: byProof, certificate: byCertificate, both: byProof },
  ],
  [
    "RFC8705-3.4-1, RFC8705-3.4-2 a client that demands certificates",
    "plain",
    ["certificate"],
    { none: missing, proof: byProof, certificate: byCertificate, both: byProof },
  ],
  [
    "RFC9449-5.2-1, MDP-4-1 a client that demands DPoP",
    "plain",
    ["dpop"],
    { none: missing, proof: byProof, certificate: missing, both: byProof },
  ],
  [
    "RFC9449-5.2-1 a client that demands DPoP at a target that excludes it",
    "certificate",
    ["dpop"],
    { none: excluded, proof: excluded, certificate: excluded, both: excluded },
  ],
];
for (const [name, target, bindsBy, wants] of table) {
  for (const [shown, want] of Object.entries(wants)) {
    test(`${name}; shown: ${shown}`, () => {
      const keys = KEYS[shown as keyof Keys];
      const asked = defined<Parameters<typeof outcome>[1]>({
        mode: "client_credentials",
        target,
        bindsBy,
        keys,
      });
      assert.equal(outcome([machine], asked), want);
    });
  }
}

test("RFC8705-6.3-1 a token never outlives the certificate that it is bound to", () => {
  const at = (seconds: number): string =>
    outcome([machine], {
      mode: "client_credentials",
      target: "certificate",
      keys: { certificate: { x5t, notAfterSeconds: now + seconds } },
    });
  assert.equal(at(120), `x5t#S256 ${x5t} 120`);
  assert.equal(at(5), `x5t#S256 ${x5t} 5`);
  assert.equal(at(4), missing);
  assert.equal(at(-1), missing);
  // One that is not bound to it may.
  const unbound = { x5t, notAfterSeconds: now + 1 };
  assert.equal(
    outcome([machine], { mode: "client_credentials", target: "plain", keys: { certificate: unbound } }),
    "unbound 300",
  );
});

test("POLICY-D-19 a question assumes the keys, and the answer says what is demanded", () => {
  for (const target of servers) {
    const demand = target === "plain" ? "none" : target;
    const asked = { mode: "client_credentials", target, keys: "assumed" } as const;
    assert.equal(outcome([machine], asked), `demands ${demand}`);
  }
});

test("a caller without a rule learns nothing of what a target demands", () => {
  const asked = { mode: "client_credentials", target: "dpop" } as const;
  assert.equal(outcome([{ ...machine, targets: ["plain"] }], asked), "target_refused target_not_allowed");
  assert.equal(outcome([], asked), "policy_denied no_rule");
});

// --- bound subject tokens -----------------------------------------------------------------------------------------

const subject: Subject = {
  tokenType: "access_token",
  origin: { iss: idp, sub: "u-1" },
  audiences: ["plain"],
  scopes,
  expiresAtSeconds: now + 600,
  chain: [],
  issuer,
};
const forThem = { ...exchange, id: "r", targets: ["plain"] };
const noKey = "policy_denied subject_key_not_proven";

type BoundCase = [
  name: string,
  rule: object,
  subject: Partial<Subject>,
  keys: AccessRequest["keys"],
  want: string,
];
const other = { jkt: "another key" };
const audience = { boundSubject: "audience" };
const unbound = { unbound: true };
const cases: BoundCase[] = [
  ["RFC9449-4.3-12 the holder of its key", {}, { boundTo: { jkt } }, { jkt }, byProof],
  [
    "RFC8705-3-3 the holder of its certificate",
    {},
    { boundTo: { "x5t#S256": x5t } },
    { certificate },
    byCertificate,
  ],
  ["RFC9449-4.3-12 a caller without proof", {}, { boundTo: { jkt } }, {}, noKey],
  ["RFC9449-6-2 the holder of another key", {}, { boundTo: other }, { jkt, certificate }, noKey],
  [
    "RFC8705-6.3-1 the holder of another certificate",
    {},
    { boundTo: { "x5t#S256": "old" } },
    { certificate },
    noKey,
  ],
  ["RFC8705-3-3 a thumbprint is no other kind's", {}, { boundTo: { "x5t#S256": jkt } }, { jkt }, noKey],
  ["RFC7800-3.1-v2 a key that is not understood", {}, { boundTo: "unknown" }, { jkt, certificate }, noKey],
  ["its audience, by its rule", audience, { boundTo: other }, { jkt }, byProof],
  [
    "its audience with a certificate, by its rule",
    audience,
    { boundTo: "unknown" },
    { certificate },
    byCertificate,
  ],
  ["its audience without any key: the new token would be unbound", audience, { boundTo: other }, {}, missing],
  [
    "its audience without any key, where the rule allows that too",
    { ...audience, ...unbound },
    { boundTo: other },
    {},
    "unbound 300",
  ],
  [
    "an audience that is this server's issuer",
    audience,
    { boundTo: other, audiences: [issuer] },
    { jkt },
    noKey,
  ],
  ["an unbound rule does not lift the proof", unbound, { boundTo: other }, { jkt }, noKey],
  ["an unbound rule binds to a proof nevertheless", unbound, { boundTo: { jkt } }, { jkt }, byProof],
  [
    "an unbound rule and a certificate",
    unbound,
    { boundTo: { "x5t#S256": x5t } },
    { certificate },
    "unbound 300",
  ],
  ["an unbound token stays so", {}, {}, { certificate }, "unbound 300"],
  ["a question about a bound token", {}, { boundTo: other }, "assumed", "demands any"],
];
for (const [name, change, said, keys, want] of cases) {
  test(`POLICY-D-17, POLICY-D-16 a bound subject token is exchanged: ${name}`, () => {
    const asked = { mode: "delegation", target: "plain", subject: { ...subject, ...said } } as const;
    assert.equal(
      outcome([{ ...forThem, ...change }], defined<Parameters<typeof outcome>[1]>({ ...asked, keys })),
      want,
    );
  });
}

test("of two rules that allow, the one that needs no key decides where none is proven", () => {
  const rules = [forThem, { ...forThem, id: "s", ...audience, ...unbound }];
  const asked = { mode: "delegation", target: "plain", subject: { ...subject, boundTo: other } } as const;
  assert.equal(outcome(rules, asked), "unbound 300");
});

const grant = { ...exchange, id: "g", issues: "grant", targets: [partner] };
for (const [name, boundTo, keys, want] of [
  ["IDJAG-9.9-1, IDJAG-9.9-2 a grant is bound by a proof", undefined, { jkt }, `jkt ${jkt} 60`],
  ["IDJAG-9.9-2 and not by a certificate", undefined, { certificate }, "unbound 60"],
  ["IDJAG-9.9-2 nor without", undefined, {}, "unbound 60"],
  [
    "IDJAG-9.9-2 what is bound to a certificate becomes no unbound grant",
    { "x5t#S256": x5t },
    { certificate },
    missing,
  ],
] as const) {
  test(name, () => {
    const said = defined<Subject>({ ...subject, boundTo });
    assert.equal(outcome([grant], { mode: "delegation", target: partner, subject: said, keys }), want);
  });
}

const redeeming = {
  id: "r",
  allow: "redemption",
  actors: [booking],
  subjects: { issuers: [idp] },
  consent: "implied",
  acknowledge: "subjects-not-asked",
  targets: servers,
  scopes,
};
for (const [name, target, boundTo, keys, want] of [
  ["IDJAG-9.9-3 a bound grant is redeemed by the holder of its key", "plain", { jkt }, { jkt }, byProof],
  ["IDJAG-9.9-3 and by no other", "plain", other, { jkt }, noKey],
  ["IDJAG-9.9-4 nor without a proof", "plain", { jkt }, {}, noKey],
  ["IDJAG-9.9-5 an unbound grant and a proof", "plain", undefined, { jkt }, byProof],
  ["IDJAG-9.9-6 an unbound grant for a target that demands a key", "dpop", undefined, {}, missing],
] as const) {
  test(name, () => {
    const said = defined<Subject>({
      ...subject,
      tokenType: "grant",
      issuer: idp,
      audiences: [issuer],
      boundTo,
    });
    assert.equal(outcome([redeeming], { mode: "redemption", target, subject: said, keys }), want);
  });
}

test("RFC9449-11.2-1 a bound token is as short-lived as any other", () => {
  const lasting = (lifetimeSeconds: number): boolean =>
    v.safeParse(Rule, { ...machine, lifetimeSeconds }).success;
  assert.deepEqual([lasting(3600), lasting(3601)], [true, false]);
});

// --- checks at load -----------------------------------------------------------------------------------------------

const warned = (change: object): string => {
  const { policy, rules } = compile([{ ...forThem, ...change }]);
  return checkPolicy(policy, rules, parties).warnings.join("\n");
};

test("PROD-2.6-7 the load warns of a rule that lets bound tokens become unbound, and of members without effect", () => {
  assert.match(warned(unbound), /issues unbound tokens in exchange for bound ones/);
  assert.match(warned({ ...unbound, targets: ["dpop", "any"] }), /"unbound" without effect/);
  assert.match(
    warned({ ...audience, subjectToken: { audiences: [issuer] } }),
    /"boundSubject" without effect/,
  );
  assert.doesNotMatch(warned({ ...audience }), /boundSubject|unbound/);
  assert.doesNotMatch(
    warned({ boundSubject: "proof", subjectToken: { audiences: [issuer] } }),
    /boundSubject|unbound/,
  );
  assert.doesNotMatch(warned({}), /boundSubject|unbound/);
});

test("PROD-2.6-7 a wider rule is wider in these members too", () => {
  const redundant = (first: object, second: object): boolean => {
    const { policy, rules } = compile([
      { ...forThem, id: "a", ...first },
      { ...forThem, id: "b", ...second },
    ]);
    return checkPolicy(policy, rules, parties).warnings.some((one) => one.includes('rule "b" is redundant'));
  };
  assert.ok(redundant({}, {}));
  assert.ok(redundant({ ...audience, ...unbound }, {}));
  assert.ok(!redundant({}, audience));
  assert.ok(!redundant({}, unbound));
  assert.ok(!redundant(audience, unbound));
});

test("RFC9449-5.1-1 a target that demands DPoP is refused where that is off", () => {
  const { policy, rules } = compile([machine]);
  assert.deepEqual(checkPolicy(policy, rules, { ...parties, dpop: { algorithms: [] } }).problems, [
    'targets: "dpop" demands DPoP, which dpop.algorithms turns off',
  ]);
  assert.deepEqual(checkPolicy(policy, rules, { ...parties, dpop: { algorithms: ["ES256"] } }).problems, []);
});

for (const [name, change] of [
  ["boundSubject in client credentials", { ...machine, boundSubject: "proof" }],
  ["unbound in client credentials", { ...machine, unbound: true }],
  ["boundSubject in a redemption", { ...redeeming, boundSubject: "audience" }],
  ["an unknown boundSubject", { ...forThem, boundSubject: "issuer" }],
  ["a text as unbound", { ...forThem, unbound: "true" }],
] as const) {
  test(`PROD-2.6-7 ${name} is refused`, () => assert.ok(!v.safeParse(Rule, change).success));
}

test("PROD-2.6-7 an unknown binding, and one of a partner, are refused", () => {
  assert.ok(!v.safeParse(Target, { names: ["a"], scopes, binding: "mtls" }).success);
  assert.ok(!v.safeParse(Target, { ...targets[4], binding: "dpop" }).success);
});

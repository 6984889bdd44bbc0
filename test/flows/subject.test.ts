/** The readers of the claims of subject tokens and grants: each rule with an accepting and a refusing case. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { makeClock } from "../../src/adapters/clock.ts";
import { grantIssuer, readGrant } from "../../src/flows/order/grant.ts";
import {
  mapSubject,
  readForeignSubject,
  readOwnSubject,
  subjectIssuer,
} from "../../src/flows/order/subject.ts";
import type { Ports } from "../../src/ports.ts";
import type {
  Client,
  GrantSettings,
  Settings,
  SubjectMapping,
  TrustedIssuer,
} from "../../src/settings/settings.ts";
import type { RequestedType } from "../../src/spec/rfc8693.ts";

const us = "https://as.example";
const idp = "https://idp.example";
const NOW = 2_000_000_000;
const grants: GrantSettings = { profiles: ["jwt", "id-jag"], scopes: ["trips.read"], requireClientId: true };
const issuer = {
  issuer: idp,
  audiences: [us],
  acceptAs: ["jwt", "id_token"],
  subjects: { kind: "keep", reservedPrefixes: ["p:"], reserved: new Set(["anna"]) },
  scopes: ["trips.read"],
  subjectClaim: "sub",
  workloads: [],
  disabledSubjects: new Set(["gone"]),
  grants,
} as unknown as TrustedIssuer;
const settings = {
  issuer: us,
  assertionAudience: "issuer-or-token-endpoint",
  clockSkewSeconds: 30,
  policy: { claims: new Map() },
  trustedIssuers: new Map([[idp, issuer]]),
} as unknown as Settings;
const desk = { clientId: "desk" } as Client;
const ports: Pick<Ports, "settings" | "clock" | "clients"> = {
  settings: () => settings,
  clock: makeClock(() => NOW * 1000),
  clients: { find: async (clientId) => (clientId === "desk" ? desk : undefined) },
};

const token = { iss: idp, sub: "u-1", aud: us, scope: "trips.read trips.book", iat: NOW, exp: NOW + 300 };
const hop = { sub: "bot", iss: idp, claimed: true } as const;

type Sent = { claims?: object; as?: "jwt" | "id_token"; asks?: RequestedType; by?: Partial<TrustedIssuer> };

async function readToken({ claims = {}, as = "jwt", asks, by = {} }: Sent) {
  const known = new Map([[idp, { ...issuer, ...by }]]);
  const under = { ...ports, settings: () => ({ ...settings, trustedIssuers: known }) };
  const sent = { claims: { ...token, ...claims }, tokenType: as, clientId: "desk", requestedType: asks };
  const from = subjectIssuer(under, sent);
  return from.ok ? readForeignSubject(under, from.value, sent) : from;
}

/** Refused for this reason, or accepted with these members of the subject. */
const tokens: [name: string, sent: Sent, want: string | object][] = [
  ["PROD-4.1-27 the token of a trusted issuer is taken", {}, { issuer: idp, tokenType: "jwt" }],
  [
    "PROD-4.1-27 the token of an issuer that is not trusted is refused",
    { claims: { iss: "https://other.example" } },
    "issuer_unknown",
  ],
  [
    "RFC8693-2.1-20 a type that the issuer is not trusted for is refused",
    { by: { acceptAs: ["id_token"] } },
    "issuer_not_accepted_as_type",
  ],
  [
    "RFC7519-4.1.3-v1 a token that is meant for another is refused",
    { claims: { aud: "other" } },
    "jwt_audience_refused",
  ],
  [
    "RFC8693-2.1-20 an ID token that was made for the client is taken",
    { claims: { aud: "desk" }, as: "id_token" },
    { audiences: ["desk"] },
  ],
  [
    "RFC8693-2.1-20 an ID token that was made for another client is refused",
    { claims: { aud: "other" }, as: "id_token" },
    "jwt_audience_refused",
  ],
  [
    "RFC8693-2.1-20 another JWT that was made for the client is refused",
    { claims: { aud: "desk" } },
    "jwt_audience_refused",
  ],
  [
    "IDJAG-4.3.3-2 an ID-JAG is made of an ID token for the client",
    { claims: { aud: "desk" }, as: "id_token", asks: "id-jag" },
    { tokenType: "id_token" },
  ],
  [
    "IDJAG-4.3.3-2 no ID-JAG is made of an ID token for us",
    { as: "id_token", asks: "id-jag" },
    "jwt_audience_refused",
  ],
  [
    "IDJAG-4.3.3-2 no ID-JAG is made of an ID token that was issued to another party",
    { claims: { aud: ["desk", "app"], azp: "app" }, as: "id_token", asks: "id-jag" },
    "jwt_audience_refused",
  ],
  [
    "OIDC-2-1 an ID token whose sub has more than 255 characters is refused",
    { claims: { sub: "u".repeat(256) }, as: "id_token" },
    "id_token_sub_refused",
  ],
  [
    "OIDC-2-1 an ID token whose sub is not ASCII is refused, whichever claim names the user",
    { claims: { sub: "\u00fc-1", oid: "u-1" }, as: "id_token", by: { subjectClaim: "oid" } },
    "id_token_sub_refused",
  ],
  [
    "OIDC-2-1 an ID token that does not say when it was issued is refused",
    { claims: { iat: undefined }, as: "id_token" },
    "jwt_time_missing",
  ],
  [
    "RFC7519-2-v1 a JWT, which is no ID token, of any subject is taken",
    { claims: { sub: `\u00fc-${"1".repeat(256)}` } },
    {},
  ],
  ["RFC7519-4.1.4-1 an expired token is refused", { claims: { exp: NOW - 31 } }, "jwt_expired"],
  [
    "RFC8693-2.1-20 a token that is older than its issuer may have them is refused",
    { claims: { iat: NOW - 91 }, by: { maxAgeSeconds: 60 } },
    "jwt_too_old",
  ],
  [
    "RFC8693-2.1-20 a token of any age is taken where the issuer has no limit",
    { claims: { iat: NOW - 9000 } },
    {},
  ],
  ["RFC8693-4.2-1 the scopes of the token are taken", {}, { scopes: ["trips.read", "trips.book"] }],
  ["RFC8693-4.2-1 scopes in an array are refused", { claims: { scope: ["trips.read"] } }, "scope_malformed"],
  [
    "PROD-2.6-6 without scope, a token permits what its issuer's entry says",
    { claims: { scope: undefined } },
    { scopes: ["trips.read"] },
  ],
  [
    "RFC8693-4.1-2 the actors are taken, of the token's issuer unless they say otherwise",
    { claims: { act: { sub: "bot", act: { sub: "x", iss: us } } } },
    { chain: [hop, { sub: "x", iss: us, claimed: true }] },
  ],
  ["RFC8693-4.1-1 an actor without name is refused", { claims: { act: { iss: idp } } }, "act_malformed"],
  [
    "RFC8693-4.4-1 the party that may act is taken",
    { claims: { may_act: { sub: "desk" } } },
    { mayAct: { sub: "desk" } },
  ],
  [
    "RFC8693-4.4-1 a may_act that is no object is refused",
    { claims: { may_act: "desk" } },
    "may_act_malformed",
  ],
];
for (const [name, sent, want] of tokens) {
  test(name, async () => {
    const got = await readToken(sent);
    if (typeof want === "string") return assert.equal(got.ok ? "accepted" : got.error.reason, want);
    assert.ok(got.ok, got.ok ? "" : got.error.reason);
    const subject: Record<string, unknown> = got.value.subject;
    for (const [member, value] of Object.entries(want)) assert.deepEqual(subject[member], value, member);
    const claims = { ...token, ...sent.claims };
    assert.deepEqual(subject.origin, { iss: idp, sub: claims.sub });
    assert.deepEqual(got.value.claims, claims);
  });
}

const keep = issuer.subjects;
const prefix: SubjectMapping = { kind: "prefix", prefix: "p:" };
const table: SubjectMapping = {
  kind: "table",
  table: new Map([
    ["7f3a", "anna"],
    ["c", "desk"],
  ]),
};
const subjects: [
  name: string,
  mapping: SubjectMapping,
  foreign: string,
  sub: string | undefined,
  reason?: string,
][] = [
  ["RFC7519-4.1.2-v1 a subject is kept", keep, "u-1", "u-1"],
  [
    "RFC7519-4.1.2-v1 a subject that another issuer's subjects may be mapped to is refused",
    keep,
    "p:u-1",
    undefined,
    "sub_belongs_to_another_issuer",
  ],
  [
    "RFC7519-4.1.2-v1 a subject that another issuer's subject is mapped to is refused",
    keep,
    "anna",
    undefined,
    "sub_belongs_to_another_issuer",
  ],
  ["RFC7519-4.1.2-v1 a subject is prefixed", prefix, "u-1", "p:u-1"],
  ["IDC-2.4.2-3 a subject is found in a table", table, "7f3a", "anna"],
  ["IDC-2.4.2-3 a subject that is not in the table is refused", table, "u-1", undefined, "sub_not_mapped"],
  [
    "RFC9068-5-1 a subject like a URL is refused",
    keep,
    "https://u.example",
    undefined,
    "sub_looks_like_machine",
  ],
  ["RFC9068-5-1 a subject that is a client is refused", keep, "desk", undefined, "sub_looks_like_machine"],
  [
    "RFC9068-5-1 a subject that would become a client is refused",
    table,
    "c",
    undefined,
    "sub_looks_like_machine",
  ],
  ["RFC6749-10.14-1 control characters are refused", keep, "u\u00001", undefined, "sub_malformed"],
  ["RFC6749-10.14-1 a mark of bidirectional text is refused", keep, "u\u200f1", undefined, "sub_malformed"],
  [
    "RFC6749-10.14-1 an override of bidirectional text is refused",
    keep,
    "u\u202e1",
    undefined,
    "sub_malformed",
  ],
  [
    "RFC6749-10.14-1 an isolate of bidirectional text is refused",
    keep,
    "u\u2066\u20691",
    undefined,
    "sub_malformed",
  ],
  ["RFC6749-10.14-1 half a character is refused", keep, "u\ud800", undefined, "sub_malformed"],
  [
    "PROD-4.1-27 a subject that the operator disabled is refused",
    keep,
    "gone",
    undefined,
    "subject_disabled",
  ],
];
for (const [name, mapping, foreign, sub, reason] of subjects) {
  test(name, async () => {
    const got = await mapSubject(ports, { ...issuer, subjects: mapping }, foreign, {});
    if (sub === undefined) return assert.equal(got.ok ? got.value.sub : got.error.reason, reason);
    assert.deepEqual(got, { ok: true, value: { sub, origin: { iss: idp, sub: foreign } } });
  });
}

for (const [name, audience, want] of [
  ["PROD-5r4-1 a token of ours for a target is taken", "booking-agent", "u-1"],
  ["PROD-5r4-1 a token of ours for our own endpoints is refused", `${us}/api`, "token_for_own_endpoints"],
] as const) {
  test(name, () => {
    const row = { origin: { iss: idp, sub: "u-1" }, scopes: [], expiresAtSeconds: NOW, chain: [hop] };
    const got = readOwnSubject(us, { ...row, sub: "u-1", audiences: [audience] });
    assert.equal(got.ok ? got.value.sub : got.error.reason, want);
    if (got.ok) {
      assert.deepEqual(got.value.subject, {
        ...row,
        audiences: [audience],
        issuer: us,
        tokenType: "access_token",
      });
    }
  });
}

const plain = { iss: idp, sub: "u-1", aud: us, client_id: "desk", jti: "g-1", iat: NOW, exp: NOW + 60 };

type Redeemed = { claims?: object; profile?: "jwt" | "id-jag"; by?: Partial<GrantSettings> | null };

async function redeem({ claims = {}, profile = "jwt", by = {} }: Redeemed) {
  const trusted = { ...issuer, grants: by === null ? undefined : { ...grants, ...by } } as TrustedIssuer;
  const under = { ...ports, settings: () => ({ ...settings, trustedIssuers: new Map([[idp, trusted]]) }) };
  const from = grantIssuer(under, { issuer: idp, profile });
  return from.ok ? readGrant(under, from.value, profile, { ...plain, ...claims }, "desk") : from;
}

const redeemed: [name: string, sent: Redeemed, want: string | object][] = [
  [
    "IDC-2.4.2-4 a grant of an issuer that is trusted for grants is taken",
    {},
    { tokenType: "grant", audiences: [us] },
  ],
  ["IDC-2.4.2-4 a grant of any other issuer is refused", { by: null }, "issuer_not_trusted_for_grants"],
  [
    "IDC-2.4.2-4 a profile that was not agreed on is refused",
    { profile: "id-jag", by: { profiles: ["jwt"] } },
    "grant_profile_not_accepted",
  ],
  [
    "IDC-2.4.2-2 the token endpoint is taken as audience of a plain grant",
    { claims: { aud: `${us}/token` } },
    { audiences: [`${us}/token`] },
  ],
  [
    "IDJAG-4.4.1-3 the token endpoint as audience of an ID-JAG is refused",
    { claims: { aud: `${us}/token` }, profile: "id-jag" },
    "jwt_audience_refused",
  ],
  [
    "RFC7523-3-2 a plain grant that names no client is refused",
    { claims: { client_id: undefined } },
    "jwt_claim_missing",
  ],
  [
    "RFC7523-3-2 a plain grant that names no client is taken where the operator has agreed to that",
    { claims: { client_id: undefined }, by: { requireClientId: false } },
    {},
  ],
  [
    "IDJAG-4.4.1-4 an ID-JAG that names no client is refused, whatever was agreed",
    { claims: { client_id: undefined }, profile: "id-jag", by: { requireClientId: false } },
    "jwt_claim_missing",
  ],
  ["IDC-2.4.2-3 a subject that is disabled here is refused", { claims: { sub: "gone" } }, "subject_disabled"],
  [
    "IDJAG-4.4.1-6 the scopes of the grant are taken",
    { claims: { scope: "trips.book" } },
    { scopes: ["trips.book"] },
  ],
  [
    "IDJAG-4.4.1-6 without scope, a grant permits what the operator set for that",
    {},
    { scopes: ["trips.read"] },
  ],
  [
    "IDJAG-4.4.1-6 without scope, a grant permits nothing where nothing was set",
    { by: { scopes: [] } },
    { scopes: [] },
  ],
  ["RFC8693-4.1-6 an actor of the issuer is taken", { claims: { act: { sub: "bot" } } }, { chain: [hop] }],
  [
    "RFC8693-4.1-6 a current actor in our name is refused",
    { claims: { act: { sub: "bot", iss: us } } },
    "act_names_our_actor",
  ],
  [
    "RFC8693-4.1-7 an earlier actor in our name is taken",
    { claims: { act: { sub: "bot", act: { sub: "x", iss: us } } } },
    { chain: [hop, { sub: "x", iss: us, claimed: true }] },
  ],
];
for (const [name, sent, want] of redeemed) {
  test(name, async () => {
    const got = await redeem(sent);
    if (typeof want === "string") return assert.equal(got.ok ? "accepted" : got.error.reason, want);
    assert.ok(got.ok, got.ok ? "" : got.error.reason);
    const subject: Record<string, unknown> = got.value.subject;
    for (const [member, value] of Object.entries(want)) assert.deepEqual(subject[member], value, member);
    // IDC-5.5-2: until the slowest clock has it expired.
    const spends = { kind: "grant_fresh", issuer: idp, jti: "g-1", expiresAtSeconds: NOW + 60 + 30 };
    assert.deepEqual(got.value.spends, spends);
  });
}

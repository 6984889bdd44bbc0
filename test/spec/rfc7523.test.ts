import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeBase64url, type Jws, parseJws } from "../../src/spec/rfc7515.ts";
import {
  type AssertionRule,
  checkClientAssertion,
  checkGrant,
  type GrantRule,
  JWT_BEARER,
  JWT_BEARER_GRANT,
  parseClientAssertion,
  parseGrant,
} from "../../src/spec/rfc7523.ts";
import type { JsonObject } from "../../src/spec/rfc8259.ts";
import { mutate, prng } from "../support/prng.ts";

const now = 1_790_000_000;
const us = "https://as.example";
const endpoint = `${us}/token`;

const part = (value: JsonObject) => encodeBase64url(new TextEncoder().encode(JSON.stringify(value)));

function jws(header: JsonObject, claims: JsonObject): Jws {
  const got = parseJws(`${part(header)}.${part(claims)}.AQID`);
  assert(got.ok);
  return got.value;
}

const header = { alg: "ES256", kid: "k1", typ: "JWT" };
const claims = { iss: "c-71f0", sub: "c-71f0", aud: us, iat: now, exp: now + 60, jti: "3d1f6a5e" };

test("RFC7523-2.2-1 the type of client assertions is this URN", () => {
  assert.equal(JWT_BEARER, "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
});

// --- before the signature: the issuer whose keys verify it --------------------------------------------------------

const { iss: _iss, ...withoutIssuer } = claims;
const { sub: _sub, ...withoutSubject } = claims;

const heads: readonly (readonly [string, JsonObject, JsonObject, string])[] = [
  ["RFC7523-3-1 a complete assertion is accepted", header, claims, "ok"],
  ["RFC7523-3-15 unknown claims are accepted", header, { ...claims, acr: "1", x: [{}] }, "ok"],
  ...["ES256", "ES384", "EdDSA", "Ed25519", "PS256", "RS256"].map(
    (alg) =>
      [
        `RFC8725-3.2-1, RFC7523-5-2, RFC8725-3.2-v2 ${alg} is accepted`,
        { ...header, alg },
        claims,
        "ok",
      ] as const,
  ),
  ...["HS256", "HS512", "ES512", "RS384", "PS512", "none", "None", "es256", "ES256K"].map(
    (alg) =>
      [
        `RFC8725-3.2-1, RFC8725-3.1-v1 ${alg} is refused`,
        { ...header, alg },
        claims,
        "jwt_algorithm_refused",
      ] as const,
  ),
  ["B7523-4-9 a missing typ is accepted", { alg: "ES256" }, claims, "ok"],
  ["B7523-4-8 its own typ is accepted", { ...header, typ: "client-authentication+jwt" }, claims, "ok"],
  [
    "RFC7515-4.1.9-1 its own typ with application/ is accepted",
    { ...header, typ: "application/Client-Authentication+JWT" },
    claims,
    "ok",
  ],
  ...[
    "at+jwt",
    "application/at+jwt",
    "dpop+jwt",
    "oauth-id-jag+jwt",
    "authz-grant+jwt",
    "wit+jwt",
    "logout+jwt",
    "secevent+jwt",
    "txntoken+jwt",
    "oauth-client-auth+jwt",
    "JOSE",
    "audit-checkpoint+jwt",
  ].map(
    (typ) => [`RFC8725-3.12-v1 a ${typ} is refused`, { ...header, typ }, claims, "jwt_type_refused"] as const,
  ),
  ["RFC7523-3-3, RFC7521-5.2-1 a missing issuer is refused", header, withoutIssuer, "jwt_claim_missing"],
  ["RFC7523-3-3 an empty issuer is refused", header, { ...claims, iss: "" }, "jwt_claim_malformed"],
  [
    "RFC7523-3-3, PROD-2.3-2 a list of issuers is refused",
    header,
    { ...claims, iss: ["c-71f0"] },
    "jwt_claim_malformed",
  ],
  ["RFC7523-3-3 null as issuer is refused", header, { ...claims, iss: null }, "jwt_claim_malformed"],
  ["RFC7523-3-5, RFC7521-5.2-2 a missing subject is refused", header, withoutSubject, "jwt_claim_missing"],
  [
    "RFC7523-3-5, PROD-2.3-3 a number as subject is refused",
    header,
    { ...claims, sub: 71 },
    "jwt_claim_malformed",
  ],
  ["RFC7523-3-5 an object as subject is refused", header, { ...claims, sub: {} }, "jwt_claim_malformed"],
];
for (const [name, head, body, want] of heads) {
  test(name, () => {
    const got = parseClientAssertion(jws(head, body));
    assert.equal(got.ok ? "ok" : got.error.kind, want);
  });
}

test("RFC7523-3-4, RFC7521-5.1-1 issuer and subject are returned unchanged", () => {
  for (const name of ["HTTPS://AS.Example:443/%7e", "cafe\u0301", " c ", "__proto__"]) {
    const got = parseClientAssertion(jws(header, { ...claims, iss: name, sub: `${name}/` }));
    assert.deepEqual(got, { ok: true, value: { issuer: name, subject: `${name}/` } });
  }
});

// --- after the signature: audience and times ---------------------------------------------------------------------

const RULE: AssertionRule = { issuer: us, audiences: [us, endpoint], nowSeconds: now, skewSeconds: 30 };
const STRICT: AssertionRule = { ...RULE, audiences: [us] };
const HOUR: AssertionRule = { ...RULE, maxAgeSeconds: 3600 };
const LONG: AssertionRule = { ...RULE, singleUseSecondsMax: 3600 };

const { aud: _aud, ...withoutAudience } = claims;
const { exp: _exp, ...withoutEnd } = claims;
const { iat: _iat, ...withoutStart } = claims;
const { jti: _jti, ...withoutId } = claims;

const bodies: readonly (readonly [string, JsonObject, AssertionRule, string])[] = [
  ["RFC7523-3-7 our issuer identifier is accepted", claims, RULE, "ok"],
  ["RFC7523-3-8 the token endpoint is accepted", { ...claims, aud: endpoint }, RULE, "ok"],
  [
    "B7523-4-5 the token endpoint is refused if only the issuer is configured",
    { ...claims, aud: endpoint },
    STRICT,
    "audience_refused",
  ],
  ["B7523-4-3 our issuer identifier is accepted if only it is configured", claims, STRICT, "ok"],
  ["B7523-4-6 one value in an array is accepted", { ...claims, aud: [us] }, STRICT, "ok"],
  [
    "RFC7523-3-7, B7523-4-1, RFC7521-5.2-3 a missing audience is refused",
    withoutAudience,
    RULE,
    "audience_missing",
  ],
  ["B7523-4-6 an empty array is refused", { ...claims, aud: [] }, RULE, "audience_malformed"],
  [
    "B7523-4-6 both names of this server are refused",
    { ...claims, aud: [us, endpoint] },
    RULE,
    "audience_several",
  ],
  [
    "B7523-4-6 a repeated name of this server is refused",
    { ...claims, aud: [us, us] },
    RULE,
    "audience_several",
  ],
  [
    "B7523-4-6 another server beside this one is refused",
    { ...claims, aud: [us, "https://x"] },
    RULE,
    "audience_several",
  ],
  ["B7523-4-6 a nested array is refused", { ...claims, aud: [[us]] }, RULE, "audience_malformed"],
  [
    "RFC7519-4.1.3-1 an object as audience is refused",
    { ...claims, aud: { [us]: us } },
    RULE,
    "audience_malformed",
  ],
  ...[
    "https://other.example",
    `${us}/`,
    `${endpoint}/`,
    `${endpoint}?`,
    `${us}/introspect`,
    `${us}.evil`,
    "https://AS.example",
    "https://as.example:443",
    ` ${us}`,
    us.slice(0, -1),
    "http://as.example",
  ].map(
    (aud) =>
      [
        `B7523-4-7, RFC7523-3-9, RFC7521-5.1-2 ${JSON.stringify(aud)} is refused`,
        { ...claims, aud },
        RULE,
        "audience_refused",
      ] as const,
  ),

  ["RFC7523-3-10, RFC7521-5.2-4 a missing exp is refused", withoutEnd, RULE, "time_missing"],
  ["RFC7523-3-10 one that expired within the skew is accepted", { ...claims, exp: now - 29 }, RULE, "ok"],
  [
    "RFC7523-3-10 one that expired longer ago than the skew is refused",
    { ...claims, exp: now - 30 },
    RULE,
    "expired",
  ],
  [
    "RFC7519-4.1.4-1 an exp that is a string is refused",
    { ...claims, exp: `${now + 60}` },
    RULE,
    "time_malformed",
  ],
  ["RFC7519-4.1.4-1 an exp of null is refused", { ...claims, exp: null }, RULE, "time_malformed"],
  ["RFC7519-4.1.4-1 a negative exp is refused", { ...claims, exp: -1 }, RULE, "time_malformed"],
  [
    "RFC7519-4.1.4-1 an exp that is too large is refused",
    { ...claims, exp: 2 ** 53 },
    RULE,
    "time_malformed",
  ],
  ["RFC7523-3-11 a lifetime of five minutes is accepted", { ...claims, exp: now + 300 }, RULE, "ok"],
  [
    "RFC7523-3-11, RFC7521-5.2-5 a longer lifetime is refused",
    { ...claims, exp: now + 301 },
    RULE,
    "lifetime_too_long",
  ],
  [
    "RFC7523-3-11 a longer lifetime is refused even if little of it is left",
    { ...claims, iat: now - 200, exp: now + 101 },
    RULE,
    "lifetime_too_long",
  ],
  ["RFC7523-3-11 330 s without iat are accepted", { ...withoutStart, exp: now + 330 }, RULE, "ok"],
  [
    "RFC7523-3-11 331 s without iat are refused",
    { ...withoutStart, exp: now + 331 },
    RULE,
    "lifetime_too_long",
  ],
  ["RFC7523-3-12 an nbf within the skew is accepted", { ...claims, nbf: now + 30 }, RULE, "ok"],
  ["RFC7523-3-12 an nbf beyond the skew is refused", { ...claims, nbf: now + 31 }, RULE, "not_yet_valid"],
  ["RFC7523-3-12 an nbf that is a string is refused", { ...claims, nbf: "0" }, RULE, "time_malformed"],
  [
    "RFC7523-3-13 an iat within the skew is accepted",
    { ...claims, iat: now + 30, exp: now + 90 },
    RULE,
    "ok",
  ],
  [
    "RFC7523-3-13 an iat beyond the skew is refused",
    { ...claims, iat: now + 31, exp: now + 90 },
    RULE,
    "issued_in_future",
  ],
  ["RFC7523-3-13 an age of five minutes is accepted", { ...claims, iat: now - 300, exp: now }, RULE, "ok"],
  ["RFC7523-3-13 a greater age is refused", { ...claims, iat: now - 301, exp: now - 2 }, RULE, "too_old"],
  [
    "RFC7523-5-1 an age of one hour is accepted if that is configured",
    { ...claims, iat: now - 3600, exp: now },
    HOUR,
    "ok",
  ],
  [
    "RFC7523-5-1 an age of more than one hour is refused",
    { ...claims, iat: now - 3601, exp: now - 2 },
    HOUR,
    "too_old",
  ],
  [
    "RFC7523-5-1 a lifetime of more than one hour is refused",
    { ...claims, exp: now + 3601 },
    HOUR,
    "lifetime_too_long",
  ],
  [
    "RFC7523-5-1 exp is checked as strictly with a longer maximum age",
    { ...claims, iat: now - 3000, exp: now - 30 },
    HOUR,
    "expired",
  ],
  [
    "RFC7523-3-11 a lifetime of an hour is accepted if that is configured for assertions that are used once",
    { ...claims, exp: now + 3600 },
    LONG,
    "ok",
  ],
  [
    "RFC7523-3-11 such a lifetime without jti, since the assertion could be sent again, is refused",
    { ...withoutId, exp: now + 3600 },
    LONG,
    "lifetime_too_long",
  ],
  ["RFC7523-3-11 more than that hour is refused", { ...claims, exp: now + 3631 }, LONG, "lifetime_too_long"],
  [
    "RFC7523-5-1 the maximum age of an issuer that vouches stands beside it",
    { ...claims, iat: now - 3601, exp: now + 1 },
    { ...LONG, maxAgeSeconds: 7200 },
    "ok",
  ],

  ["PROD-2.3-5 a missing jti is accepted", withoutId, RULE, "ok"],
  ...[1, true, null, "", ["3d1f6a5e"], { jti: "3d1f6a5e" }].map(
    (jti) =>
      [
        `RFC7523-3-17 ${JSON.stringify(jti)} as jti is refused`,
        { ...claims, jti },
        RULE,
        "claim_malformed",
      ] as const,
  ),
];
for (const [name, body, rule, want] of bodies) {
  test(name, () => {
    const got = checkClientAssertion(jws(header, body), rule);
    assert.equal(got.ok ? "ok" : got.error.kind, want === "ok" ? want : `jwt_${want}`);
  });
}

const typed: readonly (readonly [string, string, unknown, string])[] = [
  ["our issuer is accepted", "client-authentication+jwt", us, "ok"],
  ["our issuer in an array is accepted", "client-authentication+jwt", [us], "ok"],
  ["the token endpoint is refused", "client-authentication+jwt", endpoint, "assertion_audience_not_issuer"],
  [
    "the token endpoint is refused whatever the case and prefix of the type",
    "application/Client-Authentication+JWT",
    [endpoint],
    "assertion_audience_not_issuer",
  ],
  [
    "our issuer beside the token endpoint is refused",
    "client-authentication+jwt",
    [us, endpoint],
    "jwt_audience_several",
  ],
];
for (const [name, typ, aud, want] of typed) {
  test(`B7523-D-1 of a client assertion that has its type ${name}, where others may name the token endpoint`, () => {
    const got = checkClientAssertion(jws({ ...header, typ }, { ...claims, aud } as JsonObject), RULE);
    assert.equal(got.ok ? "ok" : got.error.kind, want);
  });
}

test("RFC7523-3-14 the audience used, the jti and the expiry rounded up to a second are returned", () => {
  const fraction = { ...claims, aud: [endpoint], exp: now + 59.2 };
  assert.deepEqual(checkClientAssertion(jws(header, fraction), RULE), {
    ok: true,
    value: { audience: endpoint, jti: "3d1f6a5e", expiresAtSeconds: now + 60 },
  });
  assert.deepEqual(checkClientAssertion(jws(header, withoutId), RULE), {
    ok: true,
    value: { audience: us, expiresAtSeconds: now + 60 },
  });
});

// --- grants: before the signature -------------------------------------------------------------------------------

const idp = "https://idp.example";
const grantHeader = { alg: "ES256", kid: "g3", typ: "authz-grant+jwt" };
const grant = {
  iss: idp,
  sub: "u-77",
  aud: us,
  client_id: "c-booking",
  scope: "trips.read trips.book",
  iat: now,
  exp: now + 60,
  jti: "g-1",
};
const { iss: _grantIssuer, ...grantWithoutIssuer } = grant;

test("RFC7523-2.1-1 the grant type is this URN", () => {
  assert.equal(JWT_BEARER_GRANT, "urn:ietf:params:oauth:grant-type:jwt-bearer");
});

const grantHeads: readonly (readonly [string, JsonObject, JsonObject, string])[] = [
  ["RFC8725-3.11-v1 a typed grant is read as a plain grant", grantHeader, grant, "jwt"],
  [
    "RFC7515-4.1.9-1 the typ with application/ is read",
    { ...grantHeader, typ: "application/Authz-Grant+JWT" },
    grant,
    "jwt",
  ],
  ["B8725-3.11-2 a grant without typ is read as a plain grant", { alg: "ES256" }, grant, "jwt"],
  ["B8725-3.11-2 a grant of typ JWT is read as a plain grant", { ...grantHeader, typ: "jwt" }, grant, "jwt"],
  [
    "IDJAG-4.4.1-2 an ID-JAG is read by its typ",
    { ...grantHeader, typ: "oauth-id-jag+jwt" },
    grant,
    "id-jag",
  ],
  [
    "IDJAG-4.4.1-2 an ID-JAG is read by its typ in any case",
    { ...grantHeader, typ: "Application/OAuth-ID-JAG+JWT" },
    grant,
    "id-jag",
  ],
  [
    "IDJAG-4.4.1-2 a typ that is similar to an ID-JAG's is refused",
    { ...grantHeader, typ: "id-jag+jwt" },
    grant,
    "jwt_type_refused",
  ],
  ...["ES256", "ES384", "EdDSA", "Ed25519", "PS256", "RS256"].map(
    (alg) =>
      [`RFC8725-3.2-v2 a grant with ${alg} is accepted`, { ...grantHeader, alg }, grant, "jwt"] as const,
  ),
  ...["HS256", "none", "nOnE", "ES512", "es256"].map(
    (alg) =>
      [
        `RFC8725-3.1-v1 a grant with ${alg} is refused`,
        { ...grantHeader, alg },
        grant,
        "jwt_algorithm_refused",
      ] as const,
  ),
  ["RFC7523-3-3 a grant without issuer is refused", grantHeader, grantWithoutIssuer, "jwt_claim_missing"],
  [
    "RFC7523-3-3 a grant with an empty issuer is refused",
    grantHeader,
    { ...grant, iss: "" },
    "jwt_claim_malformed",
  ],
  [
    "RFC7523-3-3 a grant with a list of issuers is refused",
    grantHeader,
    { ...grant, iss: [idp] },
    "jwt_claim_malformed",
  ],
  [
    "IDJAG-9.4-1 a grant that this server issued is refused",
    grantHeader,
    { ...grant, iss: us },
    "grant_self_issued",
  ],
  [
    "IDJAG-9.4-1 an ID-JAG that this server issued is refused",
    { ...grantHeader, typ: "oauth-id-jag+jwt" },
    { ...grant, iss: us },
    "grant_self_issued",
  ],
  [
    "RFC7523-3-4 another spelling of our issuer identifier is treated as another issuer",
    grantHeader,
    { ...grant, iss: `${us}/` },
    "jwt",
  ],
];
for (const [name, head, body, want] of grantHeads) {
  test(name, () => {
    const got = parseGrant(jws(head, body), us);
    assert.equal(got.ok ? got.value.profile : got.error.kind, want);
  });
}

test("RFC7523-3-4 the issuer of a grant is returned unchanged", () => {
  for (const iss of ["HTTPS://IdP.Example:443/%7e", "cafe\u0301", "__proto__"]) {
    const got = parseGrant(jws(grantHeader, { ...grant, iss }), us);
    assert.deepEqual(got, { ok: true, value: { issuer: iss, profile: "jwt" } });
  }
});

// --- grants: after the signature ---------------------------------------------------------------------------------

const GRANT_RULE: GrantRule = {
  audiences: [us, endpoint],
  clientId: "c-booking",
  requireClientId: true,
  nowSeconds: now,
  skewSeconds: 30,
};
const ANY_CLIENT: GrantRule = { ...GRANT_RULE, requireClientId: false };
const ISSUER_ONLY: GrantRule = { ...GRANT_RULE, audiences: [us] };

const { sub: _grantSubject, ...grantWithoutSubject } = grant;
const { aud: _grantAudience, ...grantWithoutAudience } = grant;
const { exp: _grantEnd, ...grantWithoutEnd } = grant;
const { iat: _grantStart, ...grantWithoutStart } = grant;
const { jti: _grantId, ...grantWithoutId } = grant;
const { client_id: _grantClient, ...grantWithoutClient } = grant;
const { scope: _grantScope, ...grantWithoutScope } = grant;

const grantBodies: readonly (readonly [string, JsonObject, GrantRule, string])[] = [
  ["RFC7523-3-1 a complete grant is accepted", grant, GRANT_RULE, "ok"],
  [
    "RFC7523-3-15 unknown claims of a grant are accepted",
    { ...grant, acr: "1", aud_tenant: "t", sub_id: { format: "opaque", id: "x" } },
    GRANT_RULE,
    "ok",
  ],
  [
    "RFC7523-3-3, RFC7521-5.2-1 a grant without issuer is refused",
    grantWithoutIssuer,
    GRANT_RULE,
    "jwt_claim_missing",
  ],
  [
    "RFC7523-3-5, RFC7521-5.2-2 a grant without subject is refused",
    grantWithoutSubject,
    GRANT_RULE,
    "jwt_claim_missing",
  ],
  [
    "RFC7523-3-5 a grant with an empty subject is refused",
    { ...grant, sub: "" },
    GRANT_RULE,
    "jwt_claim_malformed",
  ],
  [
    "RFC7523-3-5 a grant with a number as subject is refused",
    { ...grant, sub: 77 },
    GRANT_RULE,
    "jwt_claim_malformed",
  ],
  ["RFC7519-2-v1 a subject that is a URI is accepted", { ...grant, sub: "acct:u-77@x" }, GRANT_RULE, "ok"],
  [
    "RFC7519-2-v1 a subject that is a malformed URI is refused",
    { ...grant, sub: "acct:u 77" },
    GRANT_RULE,
    "jwt_claim_malformed",
  ],
  [
    "RFC7521-6.2-1 a grant whose subject is its issuer is refused",
    { ...grant, sub: idp },
    GRANT_RULE,
    "grant_issuer_is_subject",
  ],

  ["IDC-2.4.2-2 a grant for our issuer identifier is accepted", grant, ISSUER_ONLY, "ok"],
  [
    "B7523-4-2, IDC-2.4.2-2 a grant for the token endpoint is accepted",
    { ...grant, aud: endpoint },
    GRANT_RULE,
    "ok",
  ],
  [
    "B7523-4-2 a grant for the token endpoint is refused if only the issuer is configured",
    { ...grant, aud: endpoint },
    ISSUER_ONLY,
    "jwt_audience_refused",
  ],
  ["IDC-2.4.2-2 a grant for this server in an array is accepted", { ...grant, aud: [us] }, GRANT_RULE, "ok"],
  [
    "IDC-2.4.2-2, RFC7521-5.2-3 a grant without aud is refused",
    grantWithoutAudience,
    GRANT_RULE,
    "jwt_audience_missing",
  ],
  [
    "IDC-2.4.2-2 a grant with an empty aud is refused",
    { ...grant, aud: [] },
    GRANT_RULE,
    "jwt_audience_malformed",
  ],
  [
    "IDC-2.4.2-2, IDJAG-9.4-2 a grant for another server is refused",
    { ...grant, aud: "https://as.other.example" },
    GRANT_RULE,
    "jwt_audience_refused",
  ],
  [
    "RFC7523-3-9 a grant for our issuer identifier with a slash appended is refused",
    { ...grant, aud: `${us}/` },
    GRANT_RULE,
    "jwt_audience_refused",
  ],
  [
    "IDC-2.4.2-2 a grant for this server and another is refused",
    { ...grant, aud: [us, "https://as.other.example"] },
    GRANT_RULE,
    "jwt_audience_several",
  ],
  [
    "IDC-2.4.2-2 a grant for both names of this server is refused",
    { ...grant, aud: [us, endpoint] },
    GRANT_RULE,
    "jwt_audience_several",
  ],

  [
    "RFC7523-3-10, RFC7521-5.2-4 a grant without exp is refused",
    grantWithoutEnd,
    GRANT_RULE,
    "jwt_time_missing",
  ],
  [
    "RFC7523-3-10 a grant that expired within the skew is accepted",
    { ...grant, exp: now - 29 },
    GRANT_RULE,
    "ok",
  ],
  [
    "RFC7523-3-10 a grant that expired longer ago than the skew is refused",
    { ...grant, exp: now - 30 },
    GRANT_RULE,
    "jwt_expired",
  ],
  [
    "RFC7523-3-11 a grant with a lifetime of five minutes is accepted",
    { ...grant, exp: now + 300 },
    GRANT_RULE,
    "ok",
  ],
  [
    "RFC7523-3-11 a grant with a longer lifetime is refused",
    { ...grant, exp: now + 301 },
    GRANT_RULE,
    "jwt_lifetime_too_long",
  ],
  [
    "RFC7523-3-11 a grant without iat that expires within 330 s is accepted",
    { ...grantWithoutStart, exp: now + 330 },
    GRANT_RULE,
    "ok",
  ],
  [
    "RFC7523-3-11 a grant without iat that expires later is refused",
    { ...grantWithoutStart, exp: now + 331 },
    GRANT_RULE,
    "jwt_lifetime_too_long",
  ],
  [
    "RFC7523-3-12 a grant whose nbf is within the skew is accepted",
    { ...grant, nbf: now + 30 },
    GRANT_RULE,
    "ok",
  ],
  [
    "RFC7523-3-12 a grant whose nbf is later is refused",
    { ...grant, nbf: now + 31 },
    GRANT_RULE,
    "jwt_not_yet_valid",
  ],
  [
    "RFC7523-3-13 a grant issued in the future is refused",
    { ...grant, iat: now + 31 },
    GRANT_RULE,
    "jwt_issued_in_future",
  ],
  [
    "RFC7523-3-13 a grant that is too old is refused",
    { ...grant, iat: now - 301, exp: now - 2 },
    GRANT_RULE,
    "jwt_too_old",
  ],

  ["RFC7523-3-14 a grant without jti is refused", grantWithoutId, GRANT_RULE, "jwt_claim_missing"],
  ...[1, null, "", ["g-1"]].map(
    (jti) =>
      [
        `RFC7523-3-17 a grant with ${JSON.stringify(jti)} as jti is refused`,
        { ...grant, jti },
        GRANT_RULE,
        "jwt_claim_malformed",
      ] as const,
  ),

  [
    "RFC7523-3-2 a grant that names another client is refused",
    { ...grant, client_id: "c-other" },
    GRANT_RULE,
    "grant_client_differs",
  ],
  [
    "RFC7523-3-2 a grant that names another client is refused even if client_id is optional",
    { ...grant, client_id: "c-other" },
    ANY_CLIENT,
    "grant_client_differs",
  ],
  [
    "RFC7523-3-2 a grant that names the client with other capitals is refused",
    { ...grant, client_id: "C-Booking" },
    GRANT_RULE,
    "grant_client_differs",
  ],
  ["RFC7523-3-2 a grant without client_id is refused", grantWithoutClient, GRANT_RULE, "jwt_claim_missing"],
  [
    "RFC7523-3-2 a grant without client_id is accepted if it is optional",
    grantWithoutClient,
    ANY_CLIENT,
    "ok",
  ],
  ...[null, "", ["c-booking"]].map(
    (client) =>
      [
        `RFC7523-3-17 a grant with ${JSON.stringify(client)} as client_id is refused`,
        { ...grant, client_id: client },
        ANY_CLIENT,
        "jwt_claim_malformed",
      ] as const,
  ),

  ...["t-1", "", null].map(
    (tenant) =>
      [
        `IDJAG-3.1-2 a grant with ${JSON.stringify(tenant)} as tenant is refused`,
        { ...grant, tenant },
        GRANT_RULE,
        "grant_tenant_unsupported",
      ] as const,
  ),

  ["RFC8693-4.2-1 a grant without scope is accepted", grantWithoutScope, GRANT_RULE, "ok"],
  ...[["trips.read"], null, 1, "", " ", "trips.read  trips.book", "trips.read ", 'a"b', "a\\b", "é"].map(
    (scope) =>
      [
        `RFC8693-4.2-1 a grant with the scope ${JSON.stringify(scope)} is refused`,
        { ...grant, scope },
        GRANT_RULE,
        "jwt_claim_malformed",
      ] as const,
  ),
];
for (const [name, body, rule, want] of grantBodies) {
  test(name, () => {
    const got = checkGrant(jws(grantHeader, body), rule);
    assert.equal(got.ok ? "ok" : got.error.kind, want);
  });
}

test("RFC7523-3-14 the claims of a grant and the second until which its jti is kept are returned", () => {
  const fraction = {
    ...grant,
    aud: [endpoint],
    exp: now + 59.2,
    scope: "b a b",
    resource: "https://x.example",
  };
  assert.deepEqual(checkGrant(jws(grantHeader, fraction), GRANT_RULE), {
    ok: true,
    value: {
      issuer: idp,
      subject: "u-77",
      audience: endpoint,
      jti: "g-1",
      expiresAtSeconds: now + 60,
      clientId: "c-booking",
      scope: ["b", "a"],
      resources: [],
    },
  });
  const { client_id: _client, scope: _scope, ...least } = grant;
  assert.deepEqual(checkGrant(jws(grantHeader, least), ANY_CLIENT), {
    ok: true,
    value: {
      issuer: idp,
      subject: "u-77",
      audience: us,
      jti: "g-1",
      expiresAtSeconds: now + 60,
      resources: [],
    },
  });
});

test("RFC7523-3-17 checking a seeded random grant never throws", () => {
  const random = prng(7523);
  const pieces = ["null", "[]", "{}", '"', ":", ",", "1e9", "-1", "true", "__proto__", "iss", "aud", "0"];
  let parsed = 0;
  for (let round = 0; round < 2_000; round++) {
    const body = mutate(random, JSON.stringify(grant), pieces);
    const head = mutate(random, JSON.stringify(grantHeader), pieces);
    const [first, second] = [head, body].map((text) => encodeBase64url(new TextEncoder().encode(text)));
    const got = parseJws(`${first}.${second}.AQID`);
    if (!got.ok) continue;
    parsed++;
    assert.equal(typeof parseGrant(got.value, us).ok, "boolean");
    assert.equal(typeof checkGrant(got.value, GRANT_RULE).ok, "boolean");
  }
  assert.ok(parsed > 100, String(parsed));
});

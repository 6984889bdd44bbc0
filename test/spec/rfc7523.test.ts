import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../src/spec/json.ts";
import type { Jws } from "../../src/spec/rfc7515.ts";
import { encodeBase64url, parseJws } from "../../src/spec/rfc7515.ts";
import type { AssertionRule } from "../../src/spec/rfc7523.ts";
import { checkClientAssertion, JWT_BEARER, parseClientAssertion } from "../../src/spec/rfc7523.ts";

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

test("RFC7523-2.2-1 the type of client assertions is spelled in this one way", () => {
  assert.equal(JWT_BEARER, "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
});

// --- before the signature: whose keys to ask for ----------------------------------------------------------------

const { iss: _iss, ...withoutIssuer } = claims;
const { sub: _sub, ...withoutSubject } = claims;

const heads: readonly (readonly [string, JsonObject, JsonObject, string])[] = [
  ["RFC7523-3-1 accepts a usual assertion", header, claims, "ok"],
  ["RFC7523-3-15 accepts claims that it does not know", header, { ...claims, acr: "1", x: [{}] }, "ok"],
  ...["ES256", "ES384", "EdDSA", "Ed25519", "PS256", "RS256"].map(
    (alg) => [`RFC7523-5-2, RFC8725-3.2-v2 accepts ${alg}`, { ...header, alg }, claims, "ok"] as const,
  ),
  ...["HS256", "HS512", "ES512", "RS384", "PS512", "none", "None", "es256", "ES256K"].map(
    (alg) => [`RFC8725-3.1-v1 refuses ${alg}`, { ...header, alg }, claims, "jwt_algorithm_refused"] as const,
  ),
  ["B7523-4-9 accepts no type", { alg: "ES256" }, claims, "ok"],
  ["B7523-4-8 accepts its own type", { ...header, typ: "client-authentication+jwt" }, claims, "ok"],
  [
    "RFC7515-4.1.9-1 accepts its own type, written out",
    { ...header, typ: "application/Client-Authentication+JWT" },
    claims,
    "ok",
  ],
  ...[
    ...["at+jwt", "application/at+jwt", "dpop+jwt", "oauth-id-jag+jwt", "authz-grant+jwt", "wit+jwt"],
    ...[
      "logout+jwt",
      "secevent+jwt",
      "txntoken+jwt",
      "oauth-client-auth+jwt",
      "JOSE",
      "audit-checkpoint+jwt",
    ],
  ].map(
    (typ) => [`RFC8725-3.12-v1 refuses a ${typ}`, { ...header, typ }, claims, "jwt_type_refused"] as const,
  ),
  ["RFC7523-3-3, RFC7521-5.2-1 refuses no issuer", header, withoutIssuer, "jwt_claim_missing"],
  ["RFC7523-3-3 refuses an empty issuer", header, { ...claims, iss: "" }, "jwt_claim_malformed"],
  ["RFC7523-3-3 refuses a list of issuers", header, { ...claims, iss: ["c-71f0"] }, "jwt_claim_malformed"],
  ["RFC7523-3-3 refuses null as issuer", header, { ...claims, iss: null }, "jwt_claim_malformed"],
  ["RFC7523-3-5, RFC7521-5.2-2 refuses no subject", header, withoutSubject, "jwt_claim_missing"],
  ["RFC7523-3-5 refuses a number as subject", header, { ...claims, sub: 71 }, "jwt_claim_malformed"],
  ["RFC7523-3-5 refuses an object as subject", header, { ...claims, sub: {} }, "jwt_claim_malformed"],
];
for (const [name, head, body, want] of heads) {
  test(name, () => {
    const got = parseClientAssertion(jws(head, body));
    assert.equal(got.ok ? "ok" : got.error.kind, want);
  });
}

test("RFC7523-3-4, RFC7521-5.1-1 issuer and subject come out letter by letter", () => {
  for (const name of ["HTTPS://AS.Example:443/%7e", "cafe\u0301", " c ", "__proto__"]) {
    const got = parseClientAssertion(jws(header, { ...claims, iss: name, sub: `${name}/` }));
    assert.deepEqual(got, { ok: true, value: { issuer: name, subject: `${name}/` } });
  }
});

// --- after the signature: meant for us, and now -----------------------------------------------------------------

const RULE: AssertionRule = { audiences: [us, endpoint], nowSeconds: now, skewSeconds: 30 };
const STRICT: AssertionRule = { ...RULE, audiences: [us] };
const HOUR: AssertionRule = { ...RULE, maxAgeSeconds: 3600 };

const { aud: _aud, ...withoutAudience } = claims;
const { exp: _exp, ...withoutEnd } = claims;
const { iat: _iat, ...withoutStart } = claims;
const { jti: _jti, ...withoutId } = claims;

const bodies: readonly (readonly [string, JsonObject, AssertionRule, string])[] = [
  ["RFC7523-3-7 accepts our issuer identifier", claims, RULE, "ok"],
  ["RFC7523-3-8 accepts the token endpoint", { ...claims, aud: endpoint }, RULE, "ok"],
  [
    "B7523-4-5 refuses the token endpoint if so set",
    { ...claims, aud: endpoint },
    STRICT,
    "audience_refused",
  ],
  ["B7523-4-3 accepts our issuer identifier if so set", claims, STRICT, "ok"],
  ["B7523-4-6 accepts one value in an array", { ...claims, aud: [us] }, STRICT, "ok"],
  ["RFC7523-3-7, B7523-4-1, RFC7521-5.2-3 refuses no audience", withoutAudience, RULE, "audience_missing"],
  ["B7523-4-6 refuses an empty array", { ...claims, aud: [] }, RULE, "audience_malformed"],
  ["B7523-4-6 refuses both of ours", { ...claims, aud: [us, endpoint] }, RULE, "audience_several"],
  ["B7523-4-6 refuses ours twice", { ...claims, aud: [us, us] }, RULE, "audience_several"],
  ["B7523-4-6 refuses another beside ours", { ...claims, aud: [us, "https://x"] }, RULE, "audience_several"],
  ["B7523-4-6 refuses an array in the array", { ...claims, aud: [[us]] }, RULE, "audience_malformed"],
  ["RFC7519-4.1.3-1 refuses an object", { ...claims, aud: { [us]: us } }, RULE, "audience_malformed"],
  ...[
    ...["https://other.example", `${us}/`, `${endpoint}/`, `${endpoint}?`, `${us}/introspect`, `${us}.evil`],
    ...["https://AS.example", "https://as.example:443", ` ${us}`, us.slice(0, -1), "http://as.example"],
  ].map(
    (aud) =>
      [
        `B7523-4-7, RFC7523-3-9, RFC7521-5.1-2 refuses ${JSON.stringify(aud)}`,
        { ...claims, aud },
        RULE,
        "audience_refused",
      ] as const,
  ),

  ["RFC7523-3-10, RFC7521-5.2-4 refuses no exp", withoutEnd, RULE, "time_missing"],
  ["RFC7523-3-10 accepts one that ended within the skew", { ...claims, exp: now - 29 }, RULE, "ok"],
  ["RFC7523-3-10 refuses one that ended at the skew", { ...claims, exp: now - 30 }, RULE, "expired"],
  ["RFC7519-4.1.4-1 refuses an exp in words", { ...claims, exp: `${now + 60}` }, RULE, "time_malformed"],
  ["RFC7519-4.1.4-1 refuses an exp of null", { ...claims, exp: null }, RULE, "time_malformed"],
  ["RFC7519-4.1.4-1 refuses an exp before all time", { ...claims, exp: -1 }, RULE, "time_malformed"],
  ["RFC7519-4.1.4-1 refuses an exp beyond all time", { ...claims, exp: 2 ** 53 }, RULE, "time_malformed"],
  ["RFC7523-3-11 accepts a life of five minutes", { ...claims, exp: now + 300 }, RULE, "ok"],
  [
    "RFC7523-3-11, RFC7521-5.2-5 refuses a longer one",
    { ...claims, exp: now + 301 },
    RULE,
    "lifetime_too_long",
  ],
  [
    "RFC7523-3-11 refuses a longer one though little of it is left",
    { ...claims, iat: now - 200, exp: now + 101 },
    RULE,
    "lifetime_too_long",
  ],
  ["RFC7523-3-11 accepts 330 s without iat", { ...withoutStart, exp: now + 330 }, RULE, "ok"],
  ["RFC7523-3-11 refuses 331 s without iat", { ...withoutStart, exp: now + 331 }, RULE, "lifetime_too_long"],
  ["RFC7523-3-12 accepts an nbf within the skew", { ...claims, nbf: now + 30 }, RULE, "ok"],
  ["RFC7523-3-12 refuses an nbf beyond it", { ...claims, nbf: now + 31 }, RULE, "not_yet_valid"],
  ["RFC7523-3-12 refuses an nbf in words", { ...claims, nbf: "0" }, RULE, "time_malformed"],
  ["RFC7523-3-13 accepts an iat within the skew", { ...claims, iat: now + 30, exp: now + 90 }, RULE, "ok"],
  [
    "RFC7523-3-13 refuses an iat beyond it",
    { ...claims, iat: now + 31, exp: now + 90 },
    RULE,
    "issued_in_future",
  ],
  ["RFC7523-3-13 accepts five minutes of age", { ...claims, iat: now - 300, exp: now }, RULE, "ok"],
  ["RFC7523-3-13 refuses more", { ...claims, iat: now - 301, exp: now - 2 }, RULE, "too_old"],
  ["RFC7523-5-1 accepts an hour where that is agreed", { ...claims, iat: now - 3600, exp: now }, HOUR, "ok"],
  ["RFC7523-5-1 refuses more", { ...claims, iat: now - 3601, exp: now - 2 }, HOUR, "too_old"],
  ["RFC7523-5-1 refuses a longer life", { ...claims, exp: now + 3601 }, HOUR, "lifetime_too_long"],
  ["RFC7523-5-1 is as strict about the end", { ...claims, iat: now - 3000, exp: now - 30 }, HOUR, "expired"],

  ["PROD-2.3-5 accepts no jti", withoutId, RULE, "ok"],
  ...[1, true, null, "", ["3d1f6a5e"], { jti: "3d1f6a5e" }].map(
    (jti) =>
      [
        `RFC7523-3-17 refuses ${JSON.stringify(jti)} as jti`,
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

test("RFC7523-3-14 says what is spent and until when: the audience used, the jti, the whole second of its end", () => {
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

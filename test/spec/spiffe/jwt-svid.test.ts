import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeBase64url, type Jws, parseJws } from "../../../src/spec/rfc7515.ts";
import type { JsonObject } from "../../../src/spec/rfc8259.ts";
import { checkJwtSvid, parseJwtSvid } from "../../../src/spec/spiffe/jwt-svid.ts";

const now = 1_790_000_000;
const us = "https://as.example";
const id = "spiffe://td.example/ns/shop/sa/cart";
const part = (value: JsonObject) => encodeBase64url(new TextEncoder().encode(JSON.stringify(value)));

function jws(header: JsonObject, claims: JsonObject): Jws {
  const got = parseJws(`${part(header)}.${part(claims)}.AQID`);
  assert(got.ok);
  return got.value;
}

const header = { alg: "ES256", kid: "k7", typ: "JWT" };
const claims = { sub: id, aud: [us], exp: now + 300 };

const heads: readonly (readonly [string, JsonObject, JsonObject, string])[] = [
  ["JSV-2-1 alg, kid and typ are accepted", header, claims, "ok"],
  ["JSV-2-1 alg alone is accepted", { alg: "ES256" }, claims, "ok"],
  ["JSV-2-1 cty is refused", { ...header, cty: "json" }, claims, "svid_header_refused"],
  ["JSV-2-1 b64 is refused", { ...header, b64: true }, claims, "svid_header_refused"],
  ["JSV-2-1 an unknown member is refused", { ...header, "x-new": 1 }, claims, "svid_header_refused"],
  ...["RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512"].map(
    (alg) => [`JSV-2.1-1 ${alg} is accepted`, { ...header, alg }, claims, "ok"] as const,
  ),
  ...["EdDSA", "Ed25519", "HS256", "none", "es256", ""].map(
    (alg) =>
      [
        `JSV-2.1-1 ${alg || "an empty alg"} is refused`,
        { ...header, alg },
        claims,
        "jwt_algorithm_refused",
      ] as const,
  ),
  [
    "JSV-4-1 alg is checked before anything else",
    { alg: "HS256", typ: "x", cty: "y" },
    {},
    "jwt_algorithm_refused",
  ],
  ["JSV-2.3-1 JOSE is accepted", { ...header, typ: "JOSE" }, claims, "ok"],
  [
    "JSV-2.3-1 the type of access tokens is refused",
    { ...header, typ: "at+jwt" },
    claims,
    "jwt_type_refused",
  ],
  [
    "JSV-2.3-1 the type of client assertions is refused",
    { ...header, typ: "client-authentication+jwt" },
    claims,
    "jwt_type_refused",
  ],
  ["JSV-3.1-1 a missing sub is refused", header, { aud: us, exp: now }, "svid_subject_malformed"],
  [
    "JSV-3.1-1 a sub that is not a SPIFFE ID is refused",
    header,
    { ...claims, sub: "https://td.example/a" },
    "svid_subject_malformed",
  ],
  [
    "JSV-3.1-1 a SPIFFE ID with capitals in the trust domain is refused",
    header,
    { ...claims, sub: "spiffe://TD.example/a" },
    "svid_subject_malformed",
  ],
  [
    "JSV-3.1-1 the trust domain itself is refused",
    header,
    { ...claims, sub: "spiffe://td.example" },
    "svid_subject_malformed",
  ],
  ["JSV-3.1-1 an array as sub is refused", header, { ...claims, sub: [id] }, "svid_subject_malformed"],
];

for (const [name, head, body, want] of heads) {
  test(name, () => {
    const got = parseJwtSvid(jws(head, body));
    assert.equal(got.ok ? "ok" : got.error.kind, want);
  });
}

test("JSV-3.1-1 the SPIFFE ID and its trust domain are returned", () => {
  assert.deepEqual(parseJwtSvid(jws(header, claims)), {
    ok: true,
    value: {
      spiffeId: { id, trustDomain: "td.example", path: "/ns/shop/sa/cart" },
      trustDomain: "td.example",
    },
  });
});

const rule = { audiences: [us, `${us}/token`], nowSeconds: now, skewSeconds: 30 };

const bodies: readonly (readonly [string, JsonObject, string])[] = [
  ["JSV-3.2-1 our issuer identifier alone is accepted", { aud: us }, us],
  ["JSV-3.2-1 our token endpoint alone is accepted", { aud: [`${us}/token`] }, `${us}/token`],
  [
    "JSV-7.2-1 our issuer identifier beside another audience is refused",
    { aud: [us, "https://rs.example"] },
    "jwt_audience_several",
  ],
  ["JSV-3.2-1 another audience is refused", { aud: "https://rs.example" }, "jwt_audience_refused"],
  ["JSV-3.2-1 an empty audience is refused", { aud: [] }, "jwt_audience_malformed"],
  ["JSV-A-1 an exp within the skew is accepted", { exp: now - 29 }, us],
  ["JSV-A-1 an exp beyond the skew is refused", { exp: now - 30 }, "jwt_expired"],
  ["JSV-3.3-1 an exp that is a string is refused", { exp: String(now + 300) }, "jwt_time_malformed"],
  [
    "JSV-7.1-1 one hour of remaining lifetime is accepted",
    { exp: now + 3600, iat: now - 86_400, jti: "again" },
    us,
  ],
  [
    "JSV-7.1-1 more than one hour of remaining lifetime is refused",
    { exp: now + 3601 },
    "jwt_lifetime_too_long",
  ],
  ["JSV-4-2 nbf and iat in the past are accepted", { nbf: now - 1, iat: now - 1 }, us],
  ["JSV-4-2 nbf in the future is refused", { nbf: now + 31 }, "jwt_not_yet_valid"],
  ["JSV-4-2 iat in the future is refused", { iat: now + 31 }, "jwt_issued_in_future"],
];

for (const [name, extra, want] of bodies) {
  test(name, () => {
    const got = checkJwtSvid(jws(header, { ...claims, ...extra }), rule);
    assert.equal(got.ok ? got.value.audience : got.error.kind, want);
  });
}

test("JSV-3.2-1 an SVID without audience is refused", () => {
  const got = checkJwtSvid(jws(header, { sub: id, exp: now + 300 }), rule);
  assert.deepEqual(got, { ok: false, error: { kind: "jwt_audience_missing" } });
});

test("JSV-3.3-1 an SVID without exp is refused", () => {
  const got = checkJwtSvid(jws(header, { sub: id, aud: us }), rule);
  assert.deepEqual(got, { ok: false, error: { kind: "jwt_time_missing", claim: "exp" } });
});

test("JSV-7.1-1 a shorter remaining lifetime that the operator sets is applied", () => {
  const got = checkJwtSvid(jws(header, claims), { ...rule, remainingSecondsMax: 299 });
  assert.deepEqual(got, { ok: false, error: { kind: "jwt_lifetime_too_long" } });
});

test("JSV-4-2 audience and times are returned", () => {
  const got = checkJwtSvid(jws(header, { ...claims, iat: now }), rule);
  assert.deepEqual(got, { ok: true, value: { audience: us, exp: now + 300, iat: now } });
});

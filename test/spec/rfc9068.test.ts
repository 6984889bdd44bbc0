import assert from "node:assert/strict";
import { test } from "node:test";
import { AT_JWT, buildAccessTokenClaims, fitsIssuedSize } from "../../src/spec/rfc9068.ts";

const issuer = "https://as.example";
const planner = { sub: "spiffe://td.example/agents/planner", iss: issuer };
const booking = { sub: "spiffe://td.example/agents/booking", iss: issuer };
const token = {
  issuer,
  subject: "u-4821",
  audience: "booking-agent",
  clientId: "spiffe://td.example/agents/planner",
  scope: ["trips.read", "trips.book"],
  issuedAtSeconds: 1790000000,
  expiresAtSeconds: 1790000300,
  jti: "kZ1f0-9bQ",
  chain: [],
};

test("RFC9068-2.1-5, RFC9068-2.1-6 typ has no application/ prefix", () => assert.equal(AT_JWT, "at+jwt"));

const claims = [
  ["RFC9068-2.2-1, PROD-2.5-2 an access token has our issuer as iss", "iss", "https://as.example"],
  ["RFC9068-2.2-4, PROD-2.5-3 an access token has the subject as sub", "sub", "u-4821"],
  [
    "RFC8725-3.9-1, RFC6750-5.2-3, RFC6750-5.3-3, RFC9068-2.2-3, PROD-2.5-8 an access token has one aud, a string",
    "aud",
    "booking-agent",
  ],
  [
    "RFC9068-2.2-7, RFC8693-4.3-1 an access token has the requesting client",
    "client_id",
    "spiffe://td.example/agents/planner",
  ],
  [
    "RFC9068-2.2.3-1, RFC8693-4.2-1, PROD-2.5-9 an access token has scope as one string",
    "scope",
    "trips.read trips.book",
  ],
  ["RFC9068-2.2-8, PROD-2.5-10 an access token has the time of issue", "iat", 1790000000],
  ["RFC9068-2.2-2, PROD-2.5-11 an access token has the expiry", "exp", 1790000300],
  ["RFC9068-2.2-9 an access token has jti", "jti", "kZ1f0-9bQ"],
  ["PROD-2.5-5, PROD-2.5r3-1 an access token has no act without an actor", "act", undefined],
  ["RFC8693-4.4-2 no may_act is added", "may_act", undefined],
] as const;

for (const [name, claim, want] of claims) {
  test(name, () => assert.deepEqual(buildAccessTokenClaims(token)[claim], want));
}

test("RFC9068-6-2, RFC8693-6-3 an access token has these claims and no others", () => {
  const names = ["iss", "sub", "aud", "client_id", "scope", "iat", "exp", "jti"];
  assert.deepEqual(Object.keys(buildAccessTokenClaims(token)), names);
});

test("PROD-2.5-4, PROD-2.5-6 the actor is named beside the user", () => {
  const { sub, act } = buildAccessTokenClaims({ ...token, chain: [planner] });
  assert.deepEqual({ sub, act }, { sub: "u-4821", act: { sub: planner.sub } });
});

test("PROD-2.5-7, PROD-2.5r1-1, PROD-2.5r2-3 earlier actors are nested beneath the current one", () => {
  const { act } = buildAccessTokenClaims({ ...token, chain: [booking, planner] });
  assert.deepEqual(act, { sub: booking.sub, act: { sub: planner.sub } });
});

test("RFC8693-4.4-2 may_act is carried over, so that its restriction still holds", () => {
  const mayAct = { sub: planner.sub };
  assert.deepEqual(buildAccessTokenClaims({ ...token, mayAct }).may_act, mayAct);
});

test("fitsIssuedSize accepts claims up to a token of 12 KiB with its signature", () => {
  // 12,288 bytes minus 1,024 for header and signature leave 11,264 bytes of base64url, which encode 8,448.
  const filled = (bytes: number) => {
    const rest = bytes - Buffer.byteLength(JSON.stringify(buildAccessTokenClaims({ ...token, jti: "" })));
    return JSON.stringify(buildAccessTokenClaims({ ...token, jti: "j".repeat(rest) }));
  };
  assert.equal(fitsIssuedSize(filled(8448)), true);
  assert.equal(fitsIssuedSize(filled(8449)), false);
});

test("fitsIssuedSize measures bytes, not characters", () => {
  assert.equal(fitsIssuedSize(JSON.stringify({ sub: "é".repeat(4200) })), true);
  assert.equal(fitsIssuedSize(JSON.stringify({ sub: "é".repeat(4250) })), false);
});

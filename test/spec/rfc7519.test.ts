import assert from "node:assert/strict";
import { test } from "node:test";
import type { TimeRule } from "../../src/spec/rfc7519.ts";
import {
  audiences,
  checkAudienceContains,
  checkSoleAudience,
  checkTimes,
  stringClaim,
  stringOrUriClaim,
} from "../../src/spec/rfc7519.ts";
import type { JsonObject } from "../../src/spec/rfc8259.ts";

const now = 1_790_000_000;
const rule: TimeRule = { nowSeconds: now, skewSeconds: 30 };
const own: TimeRule = { ...rule, expSkewSeconds: 0 };
const assertion: TimeRule = { ...rule, lifetimeSecondsMax: 300, ageSecondsMax: 300 };
const aged: TimeRule = { ...rule, ageSecondsMax: 3600 };
const svid: TimeRule = { ...rule, remainingSecondsMax: 3600 };
const exp = now + 60;

const times: readonly (readonly [string, TimeRule, JsonObject, string])[] = [
  ["RFC7523-3-10 accepts a token with exp", rule, { exp }, "ok"],
  ["RFC7523-3-10 refuses a token without exp", rule, { iat: now }, "jwt_time_missing exp"],
  ["RFC7519-2-v2 accepts a fraction", rule, { exp: now + 0.5 }, "ok"],
  ["RFC7519-2-v2 accepts the largest time", rule, { exp: 2 ** 53 - 1 }, "ok"],
  ["RFC7519-2-v2 refuses a larger time", rule, { exp: 2 ** 53 }, "jwt_time_malformed exp"],
  ["RFC7519-2-v2 accepts time zero", rule, { exp, iat: 0 }, "ok"],
  ["RFC7519-2-v2 refuses a negative time", rule, { exp, iat: -1 }, "jwt_time_malformed iat"],
  ["RFC7519-4.1.4-v3 refuses exp as a string", rule, { exp: String(exp) }, "jwt_time_malformed exp"],
  ["RFC7519-4.1.4-v3 refuses exp as null", rule, { exp: null }, "jwt_time_malformed exp"],
  ["RFC7519-4.1.4-v3 refuses exp as an array", rule, { exp: [exp] }, "jwt_time_malformed exp"],
  [
    "RFC7519-4.1.4-v3 refuses an infinite exp",
    rule,
    { exp: Number.POSITIVE_INFINITY },
    "jwt_time_malformed exp",
  ],
  ["RFC7519-4.1.4-v3 refuses NaN as exp", rule, { exp: Number.NaN }, "jwt_time_malformed exp"],
  ["RFC7519-4.1.4-v1 accepts our own token a second before exp", own, { exp: now + 1 }, "ok"],
  ["RFC7519-4.1.4-v1 refuses our own token at exp", own, { exp: now }, "jwt_expired"],
  ["RFC7519-4.1.4-v2 accepts a token within the skew after exp", rule, { exp: now - 29 }, "ok"],
  ["RFC7519-4.1.4-v2 refuses a token after the skew", rule, { exp: now - 30 }, "jwt_expired"],
  ["RFC7519-4.1.5-v1 accepts nbf now", rule, { exp, nbf: now }, "ok"],
  ["RFC7519-4.1.5-v1 accepts nbf within the skew", rule, { exp, nbf: now + 30 }, "ok"],
  ["RFC7523-3-12 refuses nbf beyond the skew", rule, { exp, nbf: now + 31 }, "jwt_not_yet_valid"],
  ["RFC7519-4.1.5-v2 refuses nbf as a string", rule, { exp, nbf: String(now) }, "jwt_time_malformed nbf"],
  ["RFC7523-3-2 accepts iat within the skew", rule, { exp, iat: now + 30 }, "ok"],
  ["RFC7523-3-2 refuses iat beyond the skew", rule, { exp, iat: now + 31 }, "jwt_issued_in_future"],
  ["RFC7519-4.1.6-v1 refuses iat as a string", rule, { exp, iat: String(now) }, "jwt_time_malformed iat"],
  ["RFC7519-4.1.6-v1 refuses iat as an object", rule, { exp, iat: {} }, "jwt_time_malformed iat"],
  ["RFC7523-3-11 accepts the longest lifetime", assertion, { iat: now, exp: now + 300 }, "ok"],
  [
    "RFC7523-3-11 refuses a longer lifetime",
    assertion,
    { iat: now, exp: now + 301 },
    "jwt_lifetime_too_long",
  ],
  [
    "RFC7523-3-11 refuses a longer lifetime even near its end",
    assertion,
    { iat: now - 290, exp: now + 20 },
    "jwt_lifetime_too_long",
  ],
  ["RFC7523-3-11 accepts a token without iat that expires soon", assertion, { exp: now + 330 }, "ok"],
  [
    "RFC7523-3-11 refuses a token without iat that expires later",
    assertion,
    { exp: now + 331 },
    "jwt_lifetime_too_long",
  ],
  ["RFC7523-3-11 accepts any lifetime if no limit is set", rule, { iat: now, exp: now + 10 ** 6 }, "ok"],
  ["RFC7523-3-13 accepts a token of the greatest age", assertion, { iat: now - 300, exp: now }, "ok"],
  ["RFC7523-3-13 refuses an older token", assertion, { iat: now - 301, exp: now - 1 }, "jwt_too_old"],
  [
    "RFC7523-3-13 accepts a token of the greatest age with a long lifetime",
    aged,
    { iat: now - 3600, exp: now + 10 ** 6 },
    "ok",
  ],
  [
    "RFC7523-3-13 refuses an older token with a long lifetime",
    aged,
    { iat: now - 3601, exp: now + 10 ** 6 },
    "jwt_too_old",
  ],
  ["RFC7523-3-13 refuses a token without iat if its age is limited", aged, { exp }, "jwt_time_missing iat"],
  ["JSV-A-1 accepts an SVID with an hour left", svid, { exp: now + 3600 }, "ok"],
  ["JSV-A-1 refuses an SVID with more left", svid, { exp: now + 3601 }, "jwt_lifetime_too_long"],
  [
    "JSV-A-1 accepts an SVID with an hour left that is a day old",
    svid,
    { iat: now - 86_400, exp: now + 3600 },
    "ok",
  ],
];

for (const [name, limits, claims, want] of times) {
  test(name, () => {
    const got = checkTimes(claims, limits);
    assert.equal(got.ok ? "ok" : Object.values(got.error).join(" "), want);
  });
}

test("RFC7519-2-v2 the times that are present are returned", () => {
  assert.deepEqual(checkTimes({ exp, iat: now, sub: "a" }, rule), { ok: true, value: { exp, iat: now } });
});

const strings: readonly (readonly [string, JsonObject, string])[] = [
  ["RFC7523-3-17 accepts a string", { sub: "a" }, "a"],
  ["RFC7523-3-5 refuses an absent claim", { iss: "a" }, "jwt_claim_missing"],
  ["RFC7523-3-17 refuses an empty string", { sub: "" }, "jwt_claim_malformed"],
  ["RFC7523-3-17 refuses an array", { sub: ["a"] }, "jwt_claim_malformed"],
  ["RFC7523-3-17 refuses a number", { sub: 1 }, "jwt_claim_malformed"],
  ["RFC7523-3-17 refuses null", { sub: null }, "jwt_claim_malformed"],
];

for (const [name, claims, want] of strings) {
  test(name, () => {
    for (const read of [stringClaim, stringOrUriClaim]) {
      const got = read(claims, "sub");
      assert.equal(got.ok ? got.value : got.error.kind, want);
    }
  });
}

const uris = [
  ["RFC7519-2-v1 accepts any characters in a name without colon", "auth0|5 é", "ok"],
  ["RFC7519-2-v1 accepts an https URI", "https://as.example/t/1?x=%2F#y", "ok"],
  ["RFC7519-2-v1 accepts a SPIFFE ID", "spiffe://td.example/a", "ok"],
  ["RFC7519-2-v1 accepts a URI without slashes", "system:serviceaccount:ns:sa", "ok"],
  ["RFC7519-2-v1 refuses a colon without scheme", ":a", "jwt_claim_malformed"],
  ["RFC7519-2-v1 refuses a scheme that begins with a digit", "1a:b", "jwt_claim_malformed"],
  ["RFC7519-2-v1 refuses a blank in a URI", "https://as.example/a b", "jwt_claim_malformed"],
  ["RFC7519-2-v1 refuses an incomplete escape in a URI", "https://as.example/%2", "jwt_claim_malformed"],
  ["RFC7519-2-v1 refuses non-ASCII characters in a URI", "https://as.example/é", "jwt_claim_malformed"],
  ["RFC7519-2-v1 refuses a line break in a URI", "https://as.example/\n", "jwt_claim_malformed"],
] as const;

for (const [name, iss, want] of uris) {
  test(name, () => {
    const got = stringOrUriClaim({ iss }, "iss");
    assert.equal(got.ok ? "ok" : got.error.kind, want);
  });
}

const us = "https://as.example";
const endpoint = "https://as.example/token";
const named: readonly (readonly [string, JsonObject, string, string])[] = [
  ["RFC7519-4.1.3-v2 accepts a string", { aud: us }, us, us],
  ["RFC7519-4.1.3-v2 accepts an array of one", { aud: [us] }, us, us],
  ["RFC7523-3-8 accepts the token endpoint if it is listed", { aud: endpoint }, endpoint, endpoint],
  [
    "B7523-4-6 refuses this server together with another",
    { aud: [us, "https://rs.example"] },
    "jwt_audience_several",
    us,
  ],
  ["B7523-4-6 refuses two names of this server", { aud: [endpoint, us] }, "jwt_audience_several", endpoint],
  ["B7523-4-6 refuses a repeated name of this server", { aud: [us, us] }, "jwt_audience_several", us],
  [
    "RFC7523-3-7 refuses another server",
    { aud: "https://rs.example" },
    "jwt_audience_refused",
    "jwt_audience_refused",
  ],
  [
    "RFC7519-4.1.3-v1 refuses two others",
    { aud: ["a", "b"] },
    "jwt_audience_several",
    "jwt_audience_refused",
  ],
  [
    "RFC7523-3-9 refuses an appended slash",
    { aud: `${us}/` },
    "jwt_audience_refused",
    "jwt_audience_refused",
  ],
  [
    "RFC7523-3-9 refuses a difference in case",
    { aud: "https://AS.example" },
    "jwt_audience_refused",
    "jwt_audience_refused",
  ],
  [
    "RFC7523-3-9 refuses a longer path",
    { aud: `${endpoint}/x` },
    "jwt_audience_refused",
    "jwt_audience_refused",
  ],
  ["RFC7523-3-7 refuses a missing audience", {}, "jwt_audience_missing", "jwt_audience_missing"],
  ["B7523-4-6 refuses an empty array", { aud: [] }, "jwt_audience_malformed", "jwt_audience_malformed"],
  [
    "RFC7519-4.1.3-v2 refuses an empty string",
    { aud: "" },
    "jwt_audience_malformed",
    "jwt_audience_malformed",
  ],
  [
    "RFC7519-4.1.3-v2 refuses a number beside this server",
    { aud: [us, 1] },
    "jwt_audience_malformed",
    "jwt_audience_malformed",
  ],
  [
    "RFC7519-4.1.3-v2 refuses an array in an array",
    { aud: [[us]] },
    "jwt_audience_malformed",
    "jwt_audience_malformed",
  ],
  ["RFC7519-4.1.3-v2 refuses null", { aud: null }, "jwt_audience_malformed", "jwt_audience_malformed"],
];

for (const [name, claims, sole, contained] of named) {
  test(`${name} (sole: ${sole}, contained: ${contained})`, () => {
    const accepted = [us, endpoint];
    const one = checkSoleAudience(claims, accepted);
    const some = checkAudienceContains(claims, accepted);
    assert.equal(one.ok ? one.value : one.error.kind, sole);
    assert.equal(some.ok ? some.value : some.error.kind, contained);
  });
}

test("RFC7519-4.1.3-v2 all audiences are listed in order", () => {
  assert.deepEqual(audiences({ aud: ["b", "a"] }), { ok: true, value: ["b", "a"] });
  assert.deepEqual(audiences({ aud: "b" }), { ok: true, value: ["b"] });
});

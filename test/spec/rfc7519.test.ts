import assert from "node:assert/strict";
import { test } from "node:test";
import {
  audiences,
  checkAudienceContains,
  checkSoleAudience,
  checkTimes,
  stringClaim,
  stringOrUriClaim,
  type TimeRule,
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
  ["RFC7523-3-10 a token with exp is accepted", rule, { exp }, "ok"],
  ["RFC7523-3-10 a token without exp is refused", rule, { iat: now }, "jwt_time_missing exp"],
  ["RFC7519-2-v2 a fraction is accepted", rule, { exp: now + 0.5 }, "ok"],
  ["RFC7519-2-v2 the largest time is accepted", rule, { exp: 2 ** 53 - 1 }, "ok"],
  ["RFC7519-2-v2 a larger time is refused", rule, { exp: 2 ** 53 }, "jwt_time_malformed exp"],
  ["RFC7519-2-v2 time zero is accepted", rule, { exp, iat: 0 }, "ok"],
  ["RFC7519-2-v2 a negative time is refused", rule, { exp, iat: -1 }, "jwt_time_malformed iat"],
  ["RFC7519-4.1.4-v3 exp as a string is refused", rule, { exp: String(exp) }, "jwt_time_malformed exp"],
  ["RFC7519-4.1.4-v3 exp as null is refused", rule, { exp: null }, "jwt_time_malformed exp"],
  ["RFC7519-4.1.4-v3 exp as an array is refused", rule, { exp: [exp] }, "jwt_time_malformed exp"],
  [
    "RFC7519-4.1.4-v3 an infinite exp is refused",
    rule,
    { exp: Number.POSITIVE_INFINITY },
    "jwt_time_malformed exp",
  ],
  ["RFC7519-4.1.4-v3 NaN as exp is refused", rule, { exp: Number.NaN }, "jwt_time_malformed exp"],
  ["RFC7519-4.1.4-v1 our own token a second before exp is accepted", own, { exp: now + 1 }, "ok"],
  ["RFC7519-4.1.4-v1 our own token at exp is refused", own, { exp: now }, "jwt_expired"],
  ["RFC7519-4.1.4-v2 a token within the skew after exp is accepted", rule, { exp: now - 29 }, "ok"],
  ["RFC7519-4.1.4-v2 a token after the skew is refused", rule, { exp: now - 30 }, "jwt_expired"],
  ["RFC7519-4.1.5-v1 nbf now is accepted", rule, { exp, nbf: now }, "ok"],
  ["RFC7519-4.1.5-v1 nbf within the skew is accepted", rule, { exp, nbf: now + 30 }, "ok"],
  ["RFC7523-3-12 nbf beyond the skew is refused", rule, { exp, nbf: now + 31 }, "jwt_not_yet_valid"],
  ["RFC7519-4.1.5-v2 nbf as a string is refused", rule, { exp, nbf: String(now) }, "jwt_time_malformed nbf"],
  ["RFC7523-3-2 iat within the skew is accepted", rule, { exp, iat: now + 30 }, "ok"],
  ["RFC7523-3-2 iat beyond the skew is refused", rule, { exp, iat: now + 31 }, "jwt_issued_in_future"],
  ["RFC7519-4.1.6-v1 iat as a string is refused", rule, { exp, iat: String(now) }, "jwt_time_malformed iat"],
  ["RFC7519-4.1.6-v1 iat as an object is refused", rule, { exp, iat: {} }, "jwt_time_malformed iat"],
  ["RFC7523-3-11 the longest lifetime is accepted", assertion, { iat: now, exp: now + 300 }, "ok"],
  [
    "RFC7523-3-11 a longer lifetime is refused",
    assertion,
    { iat: now, exp: now + 301 },
    "jwt_lifetime_too_long",
  ],
  [
    "RFC7523-3-11 a longer lifetime is refused even near its end",
    assertion,
    { iat: now - 290, exp: now + 20 },
    "jwt_lifetime_too_long",
  ],
  ["RFC7523-3-11 a token without iat that expires soon is accepted", assertion, { exp: now + 330 }, "ok"],
  [
    "RFC7523-3-11 a token without iat that expires later is refused",
    assertion,
    { exp: now + 331 },
    "jwt_lifetime_too_long",
  ],
  ["RFC7523-3-11 any lifetime is accepted if no limit is set", rule, { iat: now, exp: now + 10 ** 6 }, "ok"],
  ["RFC7523-3-13 a token of the greatest age is accepted", assertion, { iat: now - 300, exp: now }, "ok"],
  ["RFC7523-3-13 an older token is refused", assertion, { iat: now - 301, exp: now - 1 }, "jwt_too_old"],
  [
    "RFC7523-3-13 a token of the greatest age with a long lifetime is accepted",
    aged,
    { iat: now - 3600, exp: now + 10 ** 6 },
    "ok",
  ],
  [
    "RFC7523-3-13 an older token with a long lifetime is refused",
    aged,
    { iat: now - 3601, exp: now + 10 ** 6 },
    "jwt_too_old",
  ],
  [
    "RFC7523-3-13 a token without iat is refused if its age is limited",
    aged,
    { exp },
    "jwt_time_missing iat",
  ],
  ["JSV-A-1 an SVID with an hour left is accepted", svid, { exp: now + 3600 }, "ok"],
  ["JSV-A-1 an SVID with more left is refused", svid, { exp: now + 3601 }, "jwt_lifetime_too_long"],
  [
    "JSV-A-1 an SVID with an hour left that is a day old is accepted",
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
  ["RFC7523-3-17 a string is accepted", { sub: "a" }, "a"],
  ["RFC7523-3-5 an absent claim is refused", { iss: "a" }, "jwt_claim_missing"],
  ["RFC7523-3-17 an empty string is refused", { sub: "" }, "jwt_claim_malformed"],
  ["RFC7523-3-17 an array is refused", { sub: ["a"] }, "jwt_claim_malformed"],
  ["RFC7523-3-17 a number is refused", { sub: 1 }, "jwt_claim_malformed"],
  ["RFC7523-3-17 null is refused", { sub: null }, "jwt_claim_malformed"],
];

for (const [name, claims, want] of strings) {
  test(name, () => {
    for (const read of [stringClaim, stringOrUriClaim]) {
      const got = read(claims, "sub");
      assert.equal(got.ok ? got.value : got.error.kind, want);
    }
  });
}

const uris: readonly (readonly [name: string, iss: string, failure?: string])[] = [
  ["RFC7519-2-v1 any characters in a name without colon are accepted", "Auth0|5 e\u0301"],
  ["RFC7519-2-v1 an https URI is accepted", "https://AS.example/t/1?x=%2F#y"],
  ["RFC7519-2-v1 a URI keeps its final slash", "https://as.example/"],
  ["RFC7519-2-v1 a SPIFFE ID is accepted", "spiffe://td.example/a"],
  ["RFC7519-2-v1 a URI without slashes is accepted", "system:serviceaccount:ns:sa"],
  ["RFC7519-2-v1 a colon without scheme is refused", ":a", "jwt_claim_malformed"],
  ["RFC7519-2-v1 a scheme that begins with a digit is refused", "1a:b", "jwt_claim_malformed"],
  ["RFC7519-2-v1 a blank in a URI is refused", "https://as.example/a b", "jwt_claim_malformed"],
  ["RFC7519-2-v1 an incomplete escape in a URI is refused", "https://as.example/%2", "jwt_claim_malformed"],
  ["RFC7519-2-v1 non-ASCII characters in a URI are refused", "https://as.example/é", "jwt_claim_malformed"],
  ["RFC7519-2-v1 a line break in a URI is refused", "https://as.example/\n", "jwt_claim_malformed"],
];

for (const [name, iss, failure] of uris) {
  test(name, () => {
    const got = stringOrUriClaim({ iss }, "iss");
    assert.equal(got.ok ? got.value : got.error.kind, failure ?? iss);
  });
}

const us = "https://as.example";
const endpoint = "https://as.example/token";
const named: readonly (readonly [string, JsonObject, string, string])[] = [
  ["RFC7519-4.1.3-v2 a string is accepted", { aud: us }, us, us],
  ["RFC7519-4.1.3-v2 an array of one is accepted", { aud: [us] }, us, us],
  ["RFC7523-3-8 the token endpoint is accepted if it is listed", { aud: endpoint }, endpoint, endpoint],
  [
    "B7523-4-6 this server together with another is refused",
    { aud: [us, "https://rs.example"] },
    "jwt_audience_several",
    us,
  ],
  [
    "B7523-4-6 two names of this server are refused",
    { aud: [endpoint, us] },
    "jwt_audience_several",
    endpoint,
  ],
  ["B7523-4-6 a repeated name of this server is refused", { aud: [us, us] }, "jwt_audience_several", us],
  [
    "RFC7523-3-7 another server is refused",
    { aud: "https://rs.example" },
    "jwt_audience_refused",
    "jwt_audience_refused",
  ],
  [
    "RFC7519-4.1.3-v1 two others are refused",
    { aud: ["a", "b"] },
    "jwt_audience_several",
    "jwt_audience_refused",
  ],
  [
    "RFC7523-3-9 an appended slash is refused",
    { aud: `${us}/` },
    "jwt_audience_refused",
    "jwt_audience_refused",
  ],
  [
    "RFC7523-3-9 a difference in case is refused",
    { aud: "https://AS.example" },
    "jwt_audience_refused",
    "jwt_audience_refused",
  ],
  [
    "RFC7523-3-9 a longer path is refused",
    { aud: `${endpoint}/x` },
    "jwt_audience_refused",
    "jwt_audience_refused",
  ],
  ["RFC7523-3-7 a missing audience is refused", {}, "jwt_audience_missing", "jwt_audience_missing"],
  ["B7523-4-6 an empty array is refused", { aud: [] }, "jwt_audience_malformed", "jwt_audience_malformed"],
  [
    "RFC7519-4.1.3-v2 an empty string is refused",
    { aud: "" },
    "jwt_audience_malformed",
    "jwt_audience_malformed",
  ],
  [
    "RFC7519-4.1.3-v2 a number beside this server is refused",
    { aud: [us, 1] },
    "jwt_audience_malformed",
    "jwt_audience_malformed",
  ],
  [
    "RFC7519-4.1.3-v2 an array in an array is refused",
    { aud: [[us]] },
    "jwt_audience_malformed",
    "jwt_audience_malformed",
  ],
  ["RFC7519-4.1.3-v2 null is refused", { aud: null }, "jwt_audience_malformed", "jwt_audience_malformed"],
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

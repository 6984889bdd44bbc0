import assert from "node:assert/strict";
import { test } from "node:test";
import {
  buildIdJagClaims,
  checkAssertionAudience,
  checkIdJag,
  DRAFT,
  ID_JAG_PROFILE,
  ID_JAG_TYP,
  type IdJagRule,
} from "../../src/spec/id-jag.ts";
import { buildGrantClaims } from "../../src/spec/identity-chaining.ts";
import type { Json, JsonObject } from "../../src/spec/rfc8259.ts";

const now = 1_790_000_000;
const us = "https://as.example";
const there = "https://as.y.example";
const api = "https://api.y.example";

test("PROD-9.2-11 the draft is followed at this revision", () => {
  assert.equal(DRAFT, "draft-ietf-oauth-identity-assertion-authz-grant-04");
});

test("IDJAG-3.1-7 an ID-JAG has its own typ", () => assert.equal(ID_JAG_TYP, "oauth-id-jag+jwt"));

test("IDJAG-7.2-2 the grant profile has this name", () => {
  assert.equal(ID_JAG_PROFILE, "urn:ietf:params:oauth:grant-profile:id-jag");
});

// --- issued -----------------------------------------------------------------------------------------------------

const idJag = {
  issuer: us,
  subject: "u-77",
  audience: there,
  clientIdThere: "https://x.example/client.json",
  scope: ["doc.read"],
  issuedAtSeconds: now,
  expiresAtSeconds: now + 60,
  jti: "j-9",
  chain: [],
  claims: {},
  resources: [api],
};

const members: [string, string, Json][] = [
  ["IDJAG-3.1-1 an ID-JAG has our issuer identifier as iss", "iss", us],
  ["IDJAG-5-2 an ID-JAG has the subject that the other server knows", "sub", "u-77"],
  ["IDJAG-3.1-4 an ID-JAG has the issuer identifier of the other server as aud", "aud", there],
  [
    "IDJAG-3.1-5, IDJAG-5-1 an ID-JAG has the client_id that the other server knows",
    "client_id",
    idJag.clientIdThere,
  ],
  ["IDJAG-3.1-6 an ID-JAG has jti", "jti", "j-9"],
  ["IDJAG-3.1-6 an ID-JAG has iat", "iat", now],
  ["IDJAG-3.1-6 an ID-JAG has exp", "exp", now + 60],
  ["IDJAG-4.3.3-8 an ID-JAG has the granted scope", "scope", "doc.read"],
  ["IDJAG-4.3.3-8, EMA-4.3-1 one resource is written as a string", "resource", api],
];
for (const [name, claim, want] of members) {
  test(name, () => assert.deepEqual(buildIdJagClaims(idJag)[claim], want));
}

test("IDJAG-4.3.3-8 several resources are written as an array, and an empty list is omitted", () => {
  const resources = [api, "https://files.y.example"];
  assert.deepEqual(buildIdJagClaims({ ...idJag, resources }).resource, resources);
  assert.ok(!("resource" in buildIdJagClaims({ ...idJag, resources: [] })));
});

test("EMA-7.4.3-1, IDJAG-9.7-1 an ID-JAG has these claims and no others", () => {
  const names = ["iss", "sub", "aud", "client_id", "scope", "iat", "exp", "jti", "resource"];
  assert.deepEqual(Object.keys(buildIdJagClaims(idJag)), names);
});

test("PROD-4.1v8-2 apart from resource, an ID-JAG has the claims of a plain grant with the same chain", () => {
  const chain = [{ sub: "spiffe://td.example/agents/booking", iss: us }];
  const { resource, ...rest } = buildIdJagClaims({ ...idJag, chain, claims: { acr: "2", resource: "x" } });
  assert.deepEqual(rest, buildGrantClaims({ ...idJag, chain, claims: { acr: "2" } }));
  assert.equal(resource, api);
});

// --- the identity assertion -------------------------------------------------------------------------------------

const assertions: [string, JsonObject, string, string][] = [
  ["IDJAG-4.3.3-2 an ID token for the client is accepted", { aud: "c-x" }, "c-x", "ok"],
  ["IDJAG-4.3.3-2 one with the client in an array is accepted", { aud: ["c-x"] }, "c-x", "ok"],
  ["IDJAG-4.3.3-2 one with several audiences is accepted", { aud: ["c-y", "c-x"] }, "c-x", "ok"],
  [
    "IDJAG-4.3.3-2 one for a client that is a URL is accepted",
    { aud: idJag.clientIdThere },
    idJag.clientIdThere,
    "ok",
  ],
  ["IDJAG-4.3.3-2 one for another client is refused", { aud: "c-y" }, "c-x", "jwt_audience_refused"],
  [
    "IDJAG-4.3.3-2 one that names the client only in azp is refused",
    { aud: "c-y", azp: "c-x" },
    "c-x",
    "jwt_audience_refused",
  ],
  ["IDJAG-4.3.3-2 an ID-JAG issued to the client (azp) is accepted", { aud: "c-x", azp: "c-x" }, "c-x", "ok"],
  [
    "IDJAG-4.3.3-2 one with several audiences that was issued to the client is accepted",
    { aud: ["c-y", "c-x"], azp: "c-x" },
    "c-x",
    "ok",
  ],
  [
    "IDJAG-4.3.3-2 one with several audiences that was issued to another of them is refused",
    { aud: ["c-y", "c-x"], azp: "c-y" },
    "c-x",
    "jwt_audience_refused",
  ],
  ...["c-y", "C-X", "", null, ["c-x"]].map((azp): [string, JsonObject, string, string] => [
    `IDJAG-4.3.3-2 one with azp ${JSON.stringify(azp)} is refused`,
    { aud: "c-x", azp },
    "c-x",
    "jwt_audience_refused",
  ]),
  [
    "IDJAG-4.3.3-2 one for a client_id that extends this one is refused",
    { aud: "c-xy" },
    "c-x",
    "jwt_audience_refused",
  ],
  [
    "IDJAG-4.3.3-2 one for the client_id with other capitals is refused",
    { aud: "C-X" },
    "c-x",
    "jwt_audience_refused",
  ],
  ["IDJAG-4.3.3-2 one for this server is refused", { aud: us }, "c-x", "jwt_audience_refused"],
  ["IDJAG-4.3.3-2 one without aud is refused", {}, "c-x", "jwt_audience_missing"],
  ["IDJAG-4.3.3-2 one with an empty aud is refused", { aud: [] }, "c-x", "jwt_audience_malformed"],
  ["IDJAG-4.3.3-2 one with a number as aud is refused", { aud: [1] }, "c-x", "jwt_audience_malformed"],
];
for (const [name, claims, clientId, want] of assertions) {
  test(name, () => {
    const got = checkAssertionAudience(claims, clientId);
    assert.equal(got.ok ? "ok" : got.error.kind, want);
  });
}

// --- redeemed ---------------------------------------------------------------------------------------------------

const RULE: IdJagRule = { issuer: us, clientId: "c-x", nowSeconds: now, skewSeconds: 30 };
const claims = {
  iss: "https://idp.example",
  sub: "u-77",
  aud: us,
  client_id: "c-x",
  jti: "j-9",
  iat: now,
  exp: now + 60,
  scope: "doc.read",
  resource: "https://api.example",
};
const { client_id: _client, ...forAnyClient } = claims;
const { iat: _start, ...ofAnyAge } = claims;
const { exp: _end, ...withoutEnd } = claims;
const { iss: _issuer, ...withoutIssuer } = claims;
const { sub: _subject, ...withoutSubject } = claims;
const { jti: _id, ...withoutId } = claims;
const { aud: _audience, ...withoutAudience } = claims;

const redemptions: [string, JsonObject, string][] = [
  ["EMA-7.4.1-2 a complete ID-JAG is accepted", claims, "ok"],
  ["EMA-7.4.1-2 one without issuer is refused", withoutIssuer, "jwt_claim_missing"],
  ["EMA-7.4.1-2 one without subject is refused", withoutSubject, "jwt_claim_missing"],
  ["EMA-7.4.1-2 one without audience is refused", withoutAudience, "jwt_audience_missing"],
  ["EMA-7.4.1-2 one without iat is refused", ofAnyAge, "jwt_time_missing"],
  ["EMA-7.4.1-2 one without exp is refused", withoutEnd, "jwt_time_missing"],
  ["EMA-7.4.1-2 an expired one is refused", { ...claims, iat: now - 90, exp: now - 30 }, "jwt_expired"],
  [
    "EMA-7.4.1-2 an ID-JAG issued in the future is refused",
    { ...claims, iat: now + 31 },
    "jwt_issued_in_future",
  ],
  ["IDJAG-3.1-6 one without jti is refused", withoutId, "jwt_claim_missing"],
  ["IDJAG-4.4.1-3 our issuer identifier in an array is accepted", { ...claims, aud: [us] }, "ok"],
  ["IDJAG-4.4.1-3 our token endpoint is refused", { ...claims, aud: `${us}/token` }, "jwt_audience_refused"],
  [
    "IDJAG-4.4.1-3 our issuer identifier with a slash appended is refused",
    { ...claims, aud: `${us}/` },
    "jwt_audience_refused",
  ],
  ["IDJAG-4.4.1-3, IDJAG-9.4-2 another server is refused", { ...claims, aud: there }, "jwt_audience_refused"],
  [
    "IDJAG-4.4.1-3 us together with another server is refused",
    { ...claims, aud: [us, there] },
    "jwt_audience_several",
  ],
  [
    "IDJAG-4.4.1-4 one for another client is refused",
    { ...claims, client_id: "c-y" },
    "grant_client_differs",
  ],
  ["IDJAG-4.4.1-4 one without client_id is refused", forAnyClient, "jwt_claim_missing"],
  [
    "IDJAG-4.4.1-4 one for a list of clients is refused",
    { ...claims, client_id: ["c-x"] },
    "jwt_claim_malformed",
  ],
  ["IDJAG-3.1-2 one with a tenant is refused", { ...claims, tenant: "t-1" }, "grant_tenant_unsupported"],
  ...["", 1, null, {}, [], [""], [1], ["https://api.example", null], [["https://api.example"]]].map(
    (resource): [string, JsonObject, string] => [
      `IDJAG-4.4.1-6 ${JSON.stringify(resource)} as resource is refused`,
      { ...claims, resource },
      "jwt_claim_malformed",
    ],
  ),
];
for (const [name, body, want] of redemptions) {
  test(name, () => {
    const got = checkIdJag({ claims: body }, RULE);
    assert.equal(got.ok ? "ok" : got.error.kind, want);
  });
}

test("IDJAG-4.4.1-3, IDJAG-4.4.1-4 an ID-JAG is not judged by the looser settings of plain grants", () => {
  const loose = { ...RULE, audiences: [us, `${us}/token`], requireClientId: false };
  const toEndpoint = checkIdJag({ claims: { ...claims, aud: `${us}/token` } }, loose);
  assert.equal(toEndpoint.ok || toEndpoint.error.kind, "jwt_audience_refused");
  const unnamed = checkIdJag({ claims: forAnyClient }, loose);
  assert.equal(unnamed.ok || unnamed.error.kind, "jwt_claim_missing");
});

const resources: [string, Json | undefined, readonly string[]][] = [
  ["IDJAG-4.4.1-6 an absent resource is read as none", undefined, []],
  ["IDJAG-4.4.1-6 a resource is read", "https://api.example", ["https://api.example"]],
  ["IDJAG-4.4.1-6 one resource in an array is read", ["https://api.example"], ["https://api.example"]],
  ["IDJAG-4.4.1-6 several resources are read in order", ["b:b", "a:a"], ["b:b", "a:a"]],
];
for (const [name, resource, want] of resources) {
  test(name, () => {
    const { resource: _resource, ...rest } = claims;
    const got = checkIdJag({ claims: { ...rest, ...(resource !== undefined && { resource }) } }, RULE);
    assert.deepEqual(got, {
      ok: true,
      value: {
        issuer: "https://idp.example",
        subject: "u-77",
        audience: us,
        jti: "j-9",
        expiresAtSeconds: now + 60,
        clientId: "c-x",
        scope: ["doc.read"],
        resources: want,
      },
    });
  });
}

test("IDJAG-4.4.1-3 an issued ID-JAG is accepted by the server that it names", () => {
  const rule = { issuer: there, clientId: idJag.clientIdThere, nowSeconds: now, skewSeconds: 0 };
  const got = checkIdJag({ claims: buildIdJagClaims(idJag) }, rule);
  assert.ok(got.ok);
  assert.deepEqual(got.value.resources, [api]);
});

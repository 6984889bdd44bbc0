/**
 * Grants of other issuers, redeemed here: what a grant and its client must fulfil, that a grant is redeemed once, and
 * that nothing else is accepted as one. The test plays the issuers. What the token takes from a grant:
 * grants-content.test.ts.
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { SignJWT } from "jose";
import { type Answer, basic } from "../../scripts/http-client.ts";
import { makeProver, type Prover } from "../support/dpop.ts";
import type { Claims } from "../support/foreign.ts";
import {
  ALL,
  aGrant,
  booking,
  FAR,
  type Guests,
  type IssuerName,
  issuerOf,
  JWT_BEARER,
  KINDS,
  type Kind,
  openToGuests,
  ROOMS,
  SAFE,
  SCOPES,
  SECRET,
  STAYS,
  TYP,
  tokenOf,
  tool,
} from "../support/guests.ts";
import { stop } from "../support/stop.ts";
import { ACCESS_TOKEN, claimsOf, EXCHANGE, ISSUER, JWT } from "../support/world.ts";

const BY_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token";
const now = (): number => Math.floor(Date.now() / 1000);

let guests: Guests;

before(async () => {
  guests = await openToGuests();
});

after(() => stop(guests));

// --- the response -------------------------------------------------------------------------------------------------

test("IDC-2.4.1-1, IDC-2.4.3-1, IDC-5.4-1, RFC7521-4.1-6, PROD-4.1v9-4 the complete response to a plain grant", async () => {
  const assertion = await guests.grant();
  const answer = await guests.redeem(assertion);
  const { access_token: token, ...rest } = answer.body;
  const told = { token_type: "Bearer", expires_in: 300, scope: SCOPES.join(" ") };
  assert.deepEqual([answer.status, rest], [200, told], answer.text);
  assert.deepEqual([answer.headers["cache-control"], answer.headers.pragma], ["no-store", "no-cache"]);
  const { iat, jti, ...claims } = claimsOf(token);
  assert.deepEqual(claims, {
    iss: ISSUER,
    sub: "p:u-77",
    aud: STAYS,
    client_id: "hotel",
    scope: SCOPES.join(" "),
    exp: Number(iat) + 300,
  });
  assert.notEqual(jti, claimsOf(assertion).jti);
  const event = await guests.eventOf(answer);
  assert.deepEqual([event?.type, event?.mode, event?.granted?.jti], ["grant.redeemed", "redemption", jti]);
  const { token: note, ...subject } = (event?.subject ?? {}) as { token?: { type: string; jti: string } };
  assert.deepEqual(subject, { iss: issuerOf("partner"), sub: "u-77", kind: "user" });
  assert.deepEqual([note?.type, note?.jti], ["grant", claimsOf(assertion).jti]);
});

test("IDJAG-4.4.1-7, IDJAG-4.4.3-1, EMA-5.1-1 the complete response to an ID-JAG, with the API that the token is for", async () => {
  const answer = await guests.redeem(await guests.grant({ resource: STAYS, scope: "stays.read" }, "id-jag"));
  const { access_token: token, ...rest } = answer.body;
  const told = { token_type: "Bearer", expires_in: 300, scope: "stays.read", resource: STAYS };
  assert.deepEqual([answer.status, rest], [200, told], answer.text);
  const { iat, jti: _, ...claims } = claimsOf(token);
  assert.deepEqual(claims, {
    iss: ISSUER,
    sub: "p:u-77",
    aud: STAYS,
    client_id: "hotel",
    scope: "stays.read",
    exp: Number(iat) + 300,
  });
});

test("IDC-2.4.1-1, RFC7523-2.1-1, RFC7521-4.1-1 a request must have one assertion with one JWT", async () => {
  const authorization = basic("hotel", SECRET);
  const none = await guests.world.token({ grant_type: JWT_BEARER }, { authorization });
  await guests.assertRefused(none, "assertion_missing", "invalid_request");
  const assertion = [await guests.grant(), await guests.grant()];
  const two = await guests.world.token({ grant_type: JWT_BEARER, assertion }, { authorization });
  assert.deepEqual([two.status, two.body.error], [400, "invalid_request"]);
  const joined = await guests.redeem(assertion.join(" "));
  assert.deepEqual([joined.status, joined.body.error], [400, "invalid_grant"]);
});

for (const grantType of ["jwt-bearer", JWT_BEARER.toUpperCase(), `${JWT_BEARER} `, "authorization_code"]) {
  test(`RFC7523-2.1-1, IDC-2-1 a grant is not redeemed with the grant type ${JSON.stringify(grantType)}`, async () => {
    const answer = await guests.redeem(await guests.grant(), { grant_type: grantType });
    assert.deepEqual([answer.status, answer.body.error], [400, "unsupported_grant_type"]);
  });
}

// --- the grant ----------------------------------------------------------------------------------------------------

const [REDEEMED, UNTRUSTED] = ["redeemed", "issuer_not_trusted_for_grants"];
const [MISSING, MALFORMED] = ["jwt_claim_missing", "jwt_claim_malformed"];
const [AUDIENCE, MACHINE] = ["jwt_audience_refused", "sub_looks_like_machine"];

/** Name, outcome, changed claims, changed header members. */
type Row = [string, string, Claims | (() => Claims), Claims?];

const ofEveryKind: Row[] = [
  ["RFC7523-3-3 no issuer", MISSING, { iss: undefined }],
  ["RFC7523-3-3 a list of issuers", MALFORMED, { iss: ["https://partner.example"] }],
  ["RFC7523-3-4 its issuer with a slash", UNTRUSTED, { iss: "https://partner.example/" }],
  ["RFC7523-3-4 its issuer in capital letters", UNTRUSTED, { iss: "https://PARTNER.example" }],
  ["IDC-2.4.2-4 an issuer that is trusted for other tokens", UNTRUSTED, { iss: issuerOf("closed") }],
  ["IDC-2.4.2-4 an unknown issuer", UNTRUSTED, { iss: "https://unknown.example" }],
  ["IDJAG-9.4-1, PROD-4.1v9-4 our own issuer", "grant_self_issued", { iss: ISSUER }],
  ["RFC7523-3-5 no subject", MISSING, { sub: undefined }],
  ["RFC7523-3-5 an empty subject", MALFORMED, { sub: "" }],
  ["RFC7521-6.2-1 its issuer as subject", "grant_issuer_is_subject", { sub: "https://partner.example" }],
  ["RFC9068-5-1 a workload as subject", MACHINE, { sub: booking }],
  ["RFC9068-5-1 a URL as subject", MACHINE, { sub: "https://root.example/" }],
  ["RFC6749-10.14-1 a subject with a line break", "sub_malformed", { sub: "u\n77" }],
  ["RFC7523-3-7 no audience", "jwt_audience_missing", { aud: undefined }],
  ["RFC7523-3-7, IDC-2.4.2-2, IDJAG-9.4-2 another server", AUDIENCE, { aud: FAR }],
  ["RFC7523-3-9, IDC-2.4.2-2 our issuer with a slash as audience", AUDIENCE, { aud: `${ISSUER}/` }],
  ["RFC7523-3-9 our issuer with a port as audience", AUDIENCE, { aud: `${ISSUER}:443` }],
  ["RFC7523-3-7 an API of ours as audience", AUDIENCE, { aud: STAYS }],
  ["RFC7523-3-7 our own endpoints as audience", AUDIENCE, { aud: `${ISSUER}/api` }],
  ["B7523-4-6 our issuer and another as audience", "jwt_audience_several", { aud: [ISSUER, FAR] }],
  [
    "B7523-4-6 our issuer and token endpoint as audience",
    "jwt_audience_several",
    { aud: [ISSUER, `${ISSUER}/token`] },
  ],
  ["RFC7523-3-7, IDJAG-4.4.1-3 our issuer in a list of one", REDEEMED, { aud: [ISSUER] }],
  ["RFC7523-3-10 no end", "jwt_time_missing", { exp: undefined }],
  ["RFC7523-3-10 a text as exp", "jwt_time_malformed", { exp: "tomorrow" }],
  ["RFC7523-3-10, EMA-7.4.2-1 an exp in the past", "jwt_expired", () => ended(31)],
  ["RFC7523-3-10 an exp in the past within the clock skew", REDEEMED, () => ended(20)],
  [
    "RFC7523-3-11, EMA-7.4.2-1 an exp too far in the future",
    "jwt_lifetime_too_long",
    () => ({ exp: now() + 310 }),
  ],
  ["RFC7523-3-12 an nbf in the future", "jwt_not_yet_valid", () => ({ nbf: now() + 60 })],
  ["RFC7523-3-13 an old iat", "jwt_too_old", () => ({ iat: now() - 305, exp: now() - 10 })],
  ["RFC7523-3-2 an iat in the future", "jwt_issued_in_future", () => ({ iat: now() + 60, exp: now() + 90 })],
  ["RFC7523-3-14, EMA-7.4.2-2 no jti", MISSING, { jti: undefined }],
  ["RFC7523-3-17 a number as jti", MALFORMED, { jti: 7 }],
  ["IDJAG-4.4.1-4 another client", "grant_client_differs", { client_id: "other" }],
  ["IDJAG-4.4.1-4 the client in capital letters", "grant_client_differs", { client_id: "Hotel" }],
  ["IDJAG-4.4.1-4 no client", MISSING, { client_id: undefined }],
  ["IDJAG-4.4.1-4 a list of clients", MALFORMED, { client_id: ["hotel"] }],
  ["IDJAG-9.9-4 a key to which the grant is bound", "subject_key_not_proven", { cnf: { jkt: "x" } }],
  ["RFC7800-3.1-v2 a key that is not understood", "subject_key_not_proven", { cnf: { kid: "k" } }],
  ["RFC7800-3.1-v2 null as cnf", "subject_key_not_proven", { cnf: null }],
  [
    "POLICY-D-13, IDJAG-4.4.1-6 authorization details",
    "details_claim_malformed",
    { authorization_details: [] },
  ],
  [
    "RAR-D-7, POLICY-D-13 details of a type that is not taken from its issuer",
    "details_claim_refused",
    { authorization_details: [{ type: "stay" }] },
  ],
  ["POLICY-D-13, IDJAG-3.1-2 a tenant", "grant_tenant_unsupported", { tenant: "t-1" }],
  ["RFC8693-4.2-1 a list of scopes", MALFORMED, { scope: SCOPES }],
  ["RFC8693-4.2-1 an empty scope", MALFORMED, { scope: "" }],
  ["PROD-4.1v6-6 an act without sub", "act_malformed", { act: {} }],
  ["RFC8693-4.4-1 a may_act that is not an object", "may_act_malformed", { may_act: booking }],
  ["RFC7523-3-15 unknown claims", REDEEMED, { color: "red", sub_id: { format: "email" } }],
  ["RFC7515-4.1.11-v1 an extension", "jws_header_refused", {}, { crit: ["b64"], b64: true }],
  ["RFC8725-3.12-v1 the typ of an access token", "jwt_type_refused", {}, { typ: "at+jwt" }],
  [
    "RFC8725-3.12-v1 the typ of a client assertion",
    "jwt_type_refused",
    {},
    { typ: "client-authentication+jwt" },
  ],
];

const ended = (seconds: number): Claims => ({ iat: now() - 100, exp: now() - seconds });

async function assertOutcome(answer: Answer, outcome: string): Promise<void> {
  if (outcome === REDEEMED) tokenOf(answer);
  else await guests.assertRefused(answer, outcome);
}

test("POLICY-D-14 a grant that is bound to a key is redeemed with a proof of that key, and with that of another is refused", async () => {
  const [owner, other] = [await makeProver(), await makeProver()];
  const redeem = async (by: Prover): Promise<Answer> => {
    const assertion = await guests.grant({ cnf: { jkt: owner.jkt } });
    const headers = { authorization: basic("hotel", SECRET), dpop: by.prove(`${ISSUER}/token`) };
    return guests.world.token({ grant_type: JWT_BEARER, assertion }, headers);
  };
  await guests.assertRefused(await redeem(other), "subject_key_not_proven");
  const answer = await redeem(owner);
  assert.equal(answer.body.token_type, "DPoP", answer.text);
});

for (const kind of KINDS) {
  test(`IDJAG-9.9-6 ${aGrant(kind)} without a key, for a target that demands one, is refused without a proof, and with one the token is bound`, async () => {
    const prover = await makeProver();
    const redeem = async (headers: Record<string, string>): Promise<Answer> => {
      const assertion = await guests.grant({ client_id: "holder" }, kind);
      const authorization = basic("holder", SECRET);
      return guests.world.token(
        { grant_type: JWT_BEARER, assertion, audience: SAFE },
        { authorization, ...headers },
      );
    };
    await guests.assertRefused(await redeem({}), "binding_not_proven", "invalid_grant");
    const answer = await redeem({ dpop: prover.prove(`${ISSUER}/token`) });
    assert.deepEqual([answer.status, answer.body.token_type], [200, "DPoP"], answer.text);
  });
  for (const [name, outcome, claims, header] of ofEveryKind) {
    test(`IDC-2.4.2-1, ${name} in ${aGrant(kind)}: ${outcome}`, async () => {
      const said = typeof claims === "function" ? claims() : claims;
      await assertOutcome(await guests.redeem(await guests.grant(said, kind, header)), outcome);
    });
  }
}

const ofOneKind: [string, Kind, string, Claims, Claims?][] = [
  ["RFC7523-3-8, B7523-4-2 our token endpoint as audience", "plain", REDEEMED, { aud: `${ISSUER}/token` }],
  ["IDJAG-4.4.1-3 our token endpoint as audience", "id-jag", AUDIENCE, { aud: `${ISSUER}/token` }],
  ["RFC7523-3-13 no iat", "plain", REDEEMED, { iat: undefined }],
  ["EMA-7.4.1-2 no iat", "id-jag", "jwt_time_missing", { iat: undefined }],
  ["IDJAG-4.4.1-6 an empty list as resource", "id-jag", MALFORMED, { resource: [] }],
  [
    "IDJAG-4.4.1-2 its typ as a full media type",
    "id-jag",
    REDEEMED,
    {},
    { typ: "application/OAuth-ID-JAG+JWT" },
  ],
  ["IDJAG-4.4.1-2 its typ without the suffix", "id-jag", "jwt_type_refused", {}, { typ: "oauth-id-jag" }],
  ["RFC8725-3.12-v1 no typ", "plain", REDEEMED, {}, { typ: undefined }],
  ["RFC8725-3.12-v1 the typ JWT", "plain", REDEEMED, {}, { typ: "JWT" }],
];
for (const [name, kind, outcome, claims, header] of ofOneKind) {
  test(`${name} in ${aGrant(kind)}: ${outcome}`, async () => {
    await assertOutcome(await guests.redeem(await guests.grant(claims, kind, header)), outcome);
  });
}

const OTHER_PROFILE = "grant_profile_not_accepted";
const untyped = { typ: undefined };
const pairwise = { sub: "7f3a" };

const ofOneIssuer: [string, IssuerName, string, Claims, Claims?][] = [
  // Each unknown kid is of another issuer: the second early look at the keys of one waits for its time.
  [
    "IDC-2.4.2-1, EMA-7.4.1-1 an unknown kid in a plain grant",
    "partner",
    "issuer_key_unknown",
    {},
    { kid: "f-2" },
  ],
  [
    "IDC-2.4.2-1, EMA-7.4.1-1 an unknown kid in an ID-JAG",
    "enterprise",
    "issuer_key_unknown",
    {},
    { kid: "f-2", typ: TYP["id-jag"] },
  ],
  ["RFC7523-5-1 a plain grant of an issuer trusted for ID-JAGs", "enterprise", OTHER_PROFILE, {}],
  [
    "RFC8725-3.12-v1 an ID token of an issuer trusted for ID-JAGs",
    "enterprise",
    OTHER_PROFILE,
    {},
    { typ: "JWT" },
  ],
  [
    "RFC7523-5-1 an ID-JAG of an issuer trusted for plain grants",
    "pairwise",
    OTHER_PROFILE,
    pairwise,
    { typ: TYP["id-jag"] },
  ],
  [
    "RFC7523-3-2 a grant without client_id, as configured",
    "pairwise",
    REDEEMED,
    { ...pairwise, client_id: undefined },
  ],
  [
    "RFC7523-3-2 a grant for another client",
    "pairwise",
    "grant_client_differs",
    { ...pairwise, client_id: "other" },
  ],
  ["RFC8725-3.12-v1 a typed grant of an issuer of subject tokens", "both", REDEEMED, {}],
  [
    "POLICY-D-11, RFC8725-3.12-v1 an untyped grant of an issuer of subject tokens",
    "both",
    "jwt_type_refused",
    {},
    untyped,
  ],
  ["RFC8725-3.12-v1 a JWT of an issuer of subject tokens", "both", "jwt_type_refused", {}, { typ: "JWT" }],
  ["RFC8725-3.12-v1 a typed grant of an issuer of software statements", "stated", REDEEMED, {}],
  [
    "POLICY-D-11, RFC8725-3.12-v1 an untyped grant of an issuer of software statements",
    "stated",
    "jwt_type_refused",
    {},
    untyped,
  ],
];
for (const [name, issuer, outcome, claims, header] of ofOneIssuer) {
  test(`${name}: ${outcome}`, async () => {
    const usual = { client_id: "hotel", scope: "stays.read" };
    const assertion = await guests.foreign[issuer].grant({ ...usual, ...claims }, header);
    await assertOutcome(await guests.redeem(assertion), outcome);
  });
}

test("RFC7523-3-16, EMA-7.4.1-1, EMA-7.4.1-3, RFC8725-3.8-v1 a signature of any party but the issuer is refused", async () => {
  const claims = claimsOf(await guests.grant());
  // Another issuer's key with the same kid.
  const forged = await guests.foreign.both.sign(claims, { typ: TYP.plain });
  await guests.assertRefused(await guests.redeem(forged), "signature_invalid");
  const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString("base64url");
  const [header = "", payload = "", signature = ""] = (await guests.grant()).split(".");
  const richer = [header, encode({ ...claims, sub: "root" }), signature].join(".");
  await guests.assertRefused(await guests.redeem(richer), "signature_invalid");
  const bare = encode({ alg: "none", typ: TYP.plain });
  for (const unsigned of [
    `${header}.${payload}.`,
    `${bare}.${payload}.${signature}`,
    `${bare}.${payload}.`,
  ]) {
    const answer = await guests.redeem(unsigned);
    assert.deepEqual([answer.status, answer.body.error], [400, "invalid_grant"]);
  }
  const hmac = await new SignJWT(claims)
    .setProtectedHeader({ alg: "HS256", typ: TYP.plain, kid: "f-1" })
    .sign(new TextEncoder().encode(JSON.stringify(guests.foreign.partner.jwks.keys[0])));
  await guests.assertRefused(await guests.redeem(hmac), "jwt_algorithm_refused");
});

test("RFC7521-4.1.1-1, RFC7521-4.1.1-2, RFC7523-3.1-2, RFC7523-3.1-3, RFC6749-5.2-6, IDC-2.4.2-5 every invalid grant gets the same response", async () => {
  const wrong = [
    await guests.grant({ iss: "https://unknown.example" }),
    await guests.grant({ sub: booking }),
    await guests.grant({ client_id: "other" }),
    await guests.grant(ended(60)),
    await guests.foreign.both.grant({ client_id: "hotel", scope: SCOPES.join(" ") }, { kid: "f-2" }),
    await guests.foreign.both.sign(claimsOf(await guests.grant()), { typ: TYP.plain }),
    "abc",
  ];
  for (const assertion of wrong) {
    const { status, headers, body } = await guests.redeem(assertion);
    assert.equal(status, 400);
    assert.deepEqual(body, { error: "invalid_grant", error_description: "the grant is not accepted" });
    assert.deepEqual([headers["cache-control"], headers.pragma], ["no-store", "no-cache"]);
  }
});

// --- the client ---------------------------------------------------------------------------------------------------

test("RFC7523-3.1-1, IDC-5.5-3, PROD-4.1r1-1, IDJAG-9.1-1 a grant is redeemed by an authenticated client only, and a failed authentication does not use it up", async () => {
  const form = { grant_type: JWT_BEARER, assertion: await guests.grant() };
  for (const [extra, headers] of [
    [{}, {}],
    [{ client_id: "hotel" }, {}],
    [{}, { authorization: basic("hotel", "wrong") }],
    [{ client_id: "hotel", client_secret: SECRET }, {}],
  ] as const) {
    const answer = await guests.world.token({ ...form, ...extra }, headers);
    assert.equal(answer.body.error, "invalid_client");
  }
  tokenOf(await guests.redeem(form.assertion));
});

test("RFC6749-5.2-7, IDC-2.4.2-4 a client redeems grants only if it is registered for the grant type and a rule allows it", async () => {
  const registered = await guests.redeem(await guests.grant({ client_id: "elsewhere" }), {}, "elsewhere");
  await guests.assertRefused(registered, "grant_type_not_registered", "unauthorized_client");
  const unruly = await guests.redeem(await guests.grant({ client_id: "desk" }), {}, "desk");
  await guests.assertRefused(unruly, "no_rule");
});

test("IDJAG-4.4.1-4, IDJAG-4.1-1 a grant presented by another client is refused and not used up", async () => {
  const assertion = await guests.grant();
  await guests.assertRefused(await guests.redeem(assertion, {}, "other"), "grant_client_differs");
  // AUDIT-D-2: the signature is valid, so the event names the subject.
  const { jti, sub } = claimsOf(assertion);
  const events = await guests.world.events();
  const found = events.find(({ subject }) => Object(Object(subject).token).jti === jti);
  assert.deepEqual([found?.type, Object(found?.subject).sub], ["grant.denied", sub]);
  assert.equal(tokenOf(await guests.redeem(assertion)).client_id, "hotel");
});

test("IDJAG-4.4.1-4 a grant names a workload as its client by SPIFFE ID", async () => {
  const { world } = guests;
  const redeemAs = async (path: string, client_id: string): Promise<Answer> => {
    const assertion = await guests.grant({ client_id });
    return world.token({ grant_type: JWT_BEARER, assertion, ...world.as(await world.svid(path)) });
  };
  const claims = tokenOf(await redeemAs("agents/booking", booking));
  assert.deepEqual([claims.client_id, claims.sub, claims.aud], [booking, "p:u-77", "stays-tool"]);
  await guests.assertRefused(await redeemAs("agents/booking", "hotel"), "grant_client_differs");
  await guests.assertRefused(await redeemAs("tools/stays", tool), "no_rule");
});

// --- single use ---------------------------------------------------------------------------------------------------

for (const kind of KINDS) {
  test(`IDC-5.5-2, EMA-7.4.2-2, RFC7523-3-14 ${aGrant(kind)} is redeemed once`, async () => {
    const assertion = await guests.grant({}, kind);
    tokenOf(await guests.redeem(assertion));
    await guests.assertRefused(await guests.redeem(assertion), "grant_replayed");
    await guests.assertRefused(await guests.redeem(assertion, { scope: "stays.read" }), "grant_replayed");
  });
}

test("RFC7523-3-14 a used grant is recognized by issuer and jti alone", async () => {
  const jti = randomUUID();
  tokenOf(await guests.redeem(await guests.grant({ jti })));
  for (const again of [await guests.grant({ jti, sub: "u-78" }), await guests.grant({ jti }, "id-jag")]) {
    await guests.assertRefused(await guests.redeem(again), "grant_replayed");
  }
  tokenOf(await guests.redeem(await guests.grant({ jti: jti.toUpperCase() })));
  const others = { jti, client_id: "hotel", scope: "stays.read" };
  tokenOf(await guests.redeem(await guests.foreign.both.grant(others)));
});

test("IDC-5.5-2 a grant refused for its scope or target is not used up", async () => {
  const assertion = await guests.grant();
  const wider = await guests.redeem(assertion, { scope: "stays.pay" });
  await guests.assertRefused(wider, "scope_empty", "invalid_scope");
  const elsewhere = await guests.redeem(assertion, { resource: ROOMS });
  await guests.assertRefused(elsewhere, "target_not_allowed", "invalid_target");
  tokenOf(await guests.redeem(assertion));
});

test("RFC9396-5-1, RFC9396-5-2 a redemption with authorization details is refused and does not use up the grant", async () => {
  const assertion = await guests.grant();
  const answer = await guests.redeem(assertion, { authorization_details: '[{"type":"stay"}]' });
  const reason = "details_type_unknown";
  await guests.assertRefused(answer, reason, "invalid_authorization_details");
  tokenOf(await guests.redeem(assertion));
});

const assertionOf = (jti = randomUUID() as string): Promise<string> => {
  const [iat, exp] = [now(), now() + 60];
  return new SignJWT({ iss: "keyed", sub: "keyed", aud: ISSUER, iat, exp, jti })
    .setProtectedHeader({ alg: "ES256", kid: "k-1" })
    .sign(guests.clientKey);
};

/** Redeems a grant as a client that authenticates with this assertion. */
const redeemBy = (assertion: string, client_assertion: string): Promise<Answer> => {
  const client = { client_assertion_type: BY_ASSERTION, client_assertion };
  return guests.world.token({ grant_type: JWT_BEARER, assertion, ...client });
};

test("RFC7523-3-14 the jti of a client assertion and that of a grant are used up together, each for its own issuer", async () => {
  const jti = randomUUID();
  const first = await guests.grant({ client_id: "keyed", jti });
  const second = await guests.grant({ client_id: "keyed" });
  const client = await assertionOf(jti);
  tokenOf(await redeemBy(first, client));
  const replayed = await redeemBy(second, client);
  assert.deepEqual([replayed.status, replayed.body.error], [400, "invalid_client"]);
  assert.equal((await guests.eventOf(replayed))?.reason, "assertion_replayed");
  // The second grant was not used up.
  tokenOf(await redeemBy(second, await assertionOf()));
});

test("RFC7523-3-14 a request with a used grant uses up its client assertion", async () => {
  const used = await guests.grant({ client_id: "keyed" });
  tokenOf(await redeemBy(used, await assertionOf()));
  const client = await assertionOf();
  await guests.assertRefused(await redeemBy(used, client), "grant_replayed");
  const fresh = await guests.grant({ client_id: "keyed" });
  const replayed = await redeemBy(fresh, client);
  assert.deepEqual([replayed.status, replayed.body.error], [400, "invalid_client"]);
  assert.equal((await guests.eventOf(replayed))?.reason, "assertion_replayed");
  tokenOf(await redeemBy(fresh, await assertionOf()));
});

// --- other tokens -------------------------------------------------------------------------------------------------

test("RFC8725-3.12-v1 no other JWT is accepted as a grant", async () => {
  const { world, foreign, grant } = guests;
  const ours = await world.token(
    { grant_type: "client_credentials" },
    { authorization: basic("desk", SECRET) },
  );
  const cases: [string, string, string][] = [
    ["a partner's access token", "jwt_type_refused", await grant({ aud: STAYS }, "plain", { typ: "at+jwt" })],
    ["a partner's ID token", AUDIENCE, await grant({ aud: "hotel", azp: "hotel" }, "plain", { typ: "JWT" })],
    ["a subject token", UNTRUSTED, await foreign.closed.grant({ client_id: "hotel" }, { typ: "JWT" })],
    ["the client's own assertion", UNTRUSTED, await assertionOf()],
    ["a JWT-SVID", MISSING, await world.svid("agents/booking")],
    ["our access token", "jwt_type_refused", String(ours.body.access_token)],
    ["an encrypted JWT", "jws_encrypted", `${await grant()}.e30.e30`],
    ["no JWT", "jws_not_compact", "abc"],
  ];
  for (const [what, reason, assertion] of cases) {
    const answer = await guests.redeem(assertion);
    assert.equal(answer.body.error, "invalid_grant", what);
    assert.equal((await guests.eventOf(answer))?.reason, reason, what);
  }
});

test("RFC8725-3.12-v1 a token that authenticates a vouched client is refused as a grant, and a grant does not authenticate a client", async () => {
  const { foreign } = guests;
  const claims = { sub: "job-1", client_id: "vouched", scope: "stays.read" };
  const vouching = () => foreign.both.grant(claims, { typ: "JWT" });
  const twice = await vouching();
  await guests.assertRefused(await redeemBy(twice, twice), "jwt_type_refused");
  const grant = await foreign.both.grant(claims);
  const asAssertion = await redeemBy(grant, grant);
  assert.deepEqual([asAssertion.status, asAssertion.body.error], [400, "invalid_client"]);
  assert.equal(tokenOf(await redeemBy(grant, await vouching())).client_id, "vouched");
});

test("RFC8725-3.12-v1, IDC-2-1 a foreign grant is refused as subject token, actor token, client assertion and access token", async () => {
  const { world, foreign } = guests;
  const svid = await world.svid("tools/stays");
  const exchange = (form: object): Promise<Answer> =>
    world.token({ grant_type: EXCHANGE, audience: ROOMS, ...world.as(svid), ...form });
  for (const name of ["partner", "both"] as const) {
    for (const kind of KINDS) {
      const assertion = await foreign[name].grant({ client_id: "hotel" }, { typ: TYP[kind] });
      const what = `${aGrant(kind)} of ${name}`;
      for (const type of [JWT, ID_TOKEN, ACCESS_TOKEN]) {
        const answer = await exchange({ subject_token: assertion, subject_token_type: type });
        assert.deepEqual([answer.status, answer.body.error], [400, "invalid_request"], `${what} ${type}`);
      }
      const subject_token = await foreign.both.grant({}, { typ: "JWT" });
      const subject = { subject_token, subject_token_type: JWT };
      for (const type of [JWT, ACCESS_TOKEN]) {
        const answer = await exchange({ ...subject, actor_token: assertion, actor_token_type: type });
        const reason = String((await guests.eventOf(answer))?.reason);
        assert.deepEqual([answer.body.error, reason.slice(0, 6)], ["invalid_request", "actor_"], what);
      }
      const client = { client_assertion_type: BY_ASSERTION, client_assertion: assertion };
      const asClient = await world.token({ grant_type: "client_credentials", ...client });
      assert.deepEqual([asClient.status, asClient.body.error], [400, "invalid_client"], what);
      const asBearer = await world.get("/consents", { headers: { authorization: `Bearer ${assertion}` } });
      assert.deepEqual([asBearer.status, asBearer.body.error], [401, "invalid_token"], what);
    }
  }
});

// --- metadata -----------------------------------------------------------------------------------------------------

test("IDJAG-7.2-1, IDJAG-7.2-2, IDJAG-7.2-3, EMA-6-1, IDJAG-9.5-1 the metadata say that ID-JAGs are redeemed, without naming their issuers", async () => {
  const { body, text } = await guests.world.get("/.well-known/oauth-authorization-server");
  const profile = "urn:ietf:params:oauth:grant-profile:id-jag";
  assert.deepEqual(body.authorization_grant_profiles_supported, [profile]);
  assert.ok((body.grant_types_supported as string[]).includes(JWT_BEARER));
  for (const issuer of ALL) assert.ok(!text.includes(issuer));
});

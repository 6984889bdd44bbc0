/**
 * The nine variants of the product document, sent with exactly the parameters that it lists, in that order, over TLS;
 * the last one to a second server, which trusts the first.
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { decodeProtectedHeader, exportJWK, generateKeyPair, SignJWT } from "jose";
import { mintX509Svid } from "../../scripts/dev-pki.ts";
import { type Answer, basic } from "../../scripts/http-client.ts";
import { DRAFT as ID_JAG_DRAFT } from "../../src/spec/id-jag.ts";
import { DRAFT as CHAINING_DRAFT } from "../../src/spec/identity-chaining.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { stop } from "../support/stop.ts";
import { LOOPBACK } from "../support/web.ts";
import {
  ACCESS_TOKEN,
  claimsOf,
  EXCHANGE,
  type Form,
  IDP,
  ISSUER,
  JWT,
  makeWorld,
  type World,
  workload,
} from "../support/world.ts";

const SECRET = "kX3v-Zr9Qw7TnB2mLp5YsD8fHj4Gc6Ra";
const PORTAL_SECRET = "portal-portal-portal-portal-1234";
const USER = "u-4821";
const API = "https://api.example";
/** The partner, `{auth_url}` in the document. */
const PARTNER = "https://as.partner.example";
const STAYS = "https://stays.partner.example";
const ID_JAG = "urn:ietf:params:oauth:token-type:id-jag";
const JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const planner = workload("agents/planner");
const booking = workload("agents/booking");
const portal = workload("apps/portal");
const reportKey = await generateKeyPair("ES256", { extractable: true });
const reportJwk = { ...(await exportJWK(reportKey.publicKey)), kid: "r1" };
/** The key of booking at the partner. */
const thereKey = await generateKeyPair("ES256", { extractable: true });
const thereJwk = { ...(await exportJWK(thereKey.publicKey)), kid: "b1" };
const scopes = ["trips.read", "trips.book"];
const drafts = [SPIFFE_DRAFT, CHAINING_DRAFT, ID_JAG_DRAFT];

const exchangeRule = { subjects: { issuers: [IDP] }, consent: "record" };

const CONFIGURATION = {
  clients: {
    "c-nightly": { method: "client_secret_post", secrets: [SECRET], defaultTarget: API },
    "c-report": { method: "private_key_jwt", jwks: { keys: [reportJwk] }, defaultTarget: API },
    "c-portal": { method: "client_secret_basic", secrets: [PORTAL_SECRET], workload: portal },
  },
  targets: [
    { names: ["planner-agent"], owners: [planner], scopes: [...scopes, "trips.pay"] },
    { names: ["booking-agent"], owners: [booking], scopes },
    { names: [API], scopes },
    { kind: "partner", issuer: PARTNER, scopes, clients: { [booking]: "booking-there" } },
  ],
  policies: [
    {
      id: "reports",
      allow: "client_credentials",
      clients: ["c-nightly", "c-report"],
      targets: [API],
      scopes: ["trips.read"],
    },
    {
      id: "planner-reads",
      allow: "client_credentials",
      actors: [planner],
      targets: [API],
      scopes: ["trips.read"],
    },
    {
      id: "portal",
      allow: "impersonation",
      clients: ["c-portal"],
      subjectToken: { audiences: [ISSUER] },
      targets: ["planner-agent"],
      scopes: [...scopes, "trips.pay"],
      lifetimeSeconds: 900,
      ...exchangeRule,
    },
    {
      id: "planner-to-booking",
      allow: "delegation",
      actors: [planner],
      subjectToken: { audiences: ["planner-agent"] },
      targets: ["booking-agent"],
      scopes,
      ...exchangeRule,
    },
    {
      id: "booking-to-api",
      allow: "delegation",
      actors: [booking],
      subjectToken: { audiences: ["booking-agent"] },
      targets: [API],
      scopes,
      ...exchangeRule,
    },
    {
      id: "booking-for-legacy",
      allow: "impersonation",
      actors: [booking],
      subjectToken: { audiences: ["booking-agent"] },
      targets: [API],
      scopes,
      ...exchangeRule,
    },
    {
      id: "booking-abroad-unseen",
      allow: "impersonation",
      issues: "grant",
      actors: [booking],
      subjectToken: { audiences: ["booking-agent"] },
      targets: [PARTNER],
      scopes,
      ...exchangeRule,
    },
    {
      id: "booking-abroad",
      allow: "delegation",
      issues: "grant",
      actors: [booking],
      subjectToken: { audiences: ["booking-agent"] },
      idJagSubjects: ["access_token"],
      targets: [PARTNER],
      scopes,
      ...exchangeRule,
    },
  ],
  drafts,
};

/** The second server trusts the first as an issuer of grants, by its issuer URL and key set alone. */
const partnerConfiguration = (port: number): object => ({
  trustDomains: {},
  trustedIssuers: {
    [ISSUER]: {
      keys: { url: `https://localhost:${port}/jwks`, ca: { file: "as.pem" }, privateNetworks: LOOPBACK },
      acceptAs: [],
      subjects: "keep",
      grants: {},
    },
  },
  clients: { "booking-there": { method: "private_key_jwt", jwks: { keys: [thereJwk] } } },
  targets: [{ names: [STAYS], scopes }],
  policies: [
    {
      id: "guests",
      allow: "redemption",
      clients: ["booking-there"],
      subjects: { issuers: [ISSUER] },
      consent: "implied",
      acknowledge: "subjects-not-asked",
      targets: [STAYS],
      scopes,
    },
  ],
  drafts,
});

let world: World;
let partner: World;
/** An access token of ours for the user with the planner as audience, obtained in advance. */
let t0: string;

before(async () => {
  world = await makeWorld(CONFIGURATION);
  await world.consent(USER, "apps/portal", "planner-agent", [...scopes, "trips.pay"]);
  await world.consent(USER, "agents/planner", "booking-agent", scopes);
  await world.consent(USER, "agents/booking", API, scopes);
  await world.consent(USER, "agents/booking", PARTNER, scopes);
  const idToken = await world.idp.mintUserToken({
    sub: USER,
    aud: ISSUER,
    scope: "trips.read trips.book trips.pay",
    expSeconds: 900,
  });
  const answer = await world.token(
    {
      grant_type: EXCHANGE,
      subject_token: idToken,
      subject_token_type: "urn:ietf:params:oauth:token-type:id_token",
      audience: "planner-agent",
    },
    { authorization: basic("c-portal", PORTAL_SECRET) },
  );
  assert.equal(answer.status, 200, answer.text);
  t0 = String(answer.body.access_token);
  const options = { host: new URL(PARTNER).host, files: { "as.pem": world.ca } };
  partner = await makeWorld(partnerConfiguration(world.server.port), options);
});

after(() => stop(partner, world));

/** Compares the complete response and the complete claims of its token. */
function assertToken(answer: Answer, expected: Record<string, unknown>, issuedTokenType?: string): string {
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.headers["content-type"], "application/json");
  assert.equal(answer.headers["cache-control"], "no-store");
  assert.equal(answer.headers.location, undefined);
  assert.equal(answer.headers["set-cookie"], undefined);
  const { access_token: token, ...rest } = answer.body;
  const claims = claimsOf(token);
  const { iat, exp, jti } = claims;
  assert.ok(Number.isInteger(iat) && Number.isInteger(exp));
  assert.match(String(jti), /^[\w-]{22,}$/);
  assert.deepEqual(claims, { iss: ISSUER, ...expected, iat, exp, jti });
  assert.deepEqual(rest, {
    token_type: issuedTokenType === JWT || issuedTokenType === ID_JAG ? "N_A" : "Bearer",
    expires_in: Number(exp) - Number(iat),
    scope: expected.scope,
    ...(issuedTokenType !== undefined && { issued_token_type: issuedTokenType }),
  });
  return String(token);
}

const SCOPES = [
  ["with scope", true],
  ["without scope", false],
] as const;

const optional = (sent: boolean, scope: string): Form => (sent ? { scope } : {});

for (const [how, sent] of SCOPES) {
  test(`PROD-4.1v1-1, PROD-4.1v1-2, PROD-4.1v1-3, PROD-5-1, PROD-2.7-1, PROD-4.1-17 variant 1, client credentials by secret, ${how}`, async () => {
    const answer = await world.token({
      grant_type: "client_credentials",
      client_id: "c-nightly",
      client_secret: SECRET,
      ...optional(sent, "trips.read"),
    });
    const expected = { sub: "c-nightly", aud: API, client_id: "c-nightly", scope: "trips.read" };
    const claims = claimsOf(assertToken(answer, expected));
    assert.equal(Number(claims.exp) - Number(claims.iat), 300);
  });

  test(`PROD-4.1v2-1, PROD-4.1v2-2, PROD-5-5, PROD-4.1-19, PROD-1.1-2, PROD-1.6-1 variant 2, client credentials by signed JWT, ${how}`, async () => {
    const now = Math.floor(Date.now() / 1000);
    const assertion = await new SignJWT({
      iss: "c-report",
      sub: "c-report",
      aud: `${ISSUER}/token`,
      jti: randomUUID(),
      iat: now,
      exp: now + 60,
    })
      .setProtectedHeader({ alg: "ES256", kid: "r1", typ: "JWT" })
      .sign(reportKey.privateKey);
    const answer = await world.token({
      grant_type: "client_credentials",
      client_assertion_type: JWT_BEARER,
      client_assertion: assertion,
      ...optional(sent, "trips.read"),
    });
    assertToken(answer, { sub: "c-report", aud: API, client_id: "c-report", scope: "trips.read" });
  });

  test(`PROD-4.1v4-1, PROD-4.1v4-2, PROD-4.1v4-3, PROD-5-12, PROD-2.1-10, PROD-2.4-1 variant 4, client credentials by X.509-SVID, ${how}`, async () => {
    const svid = await mintX509Svid(world.trustDomain, planner);
    const certificate = { key: svid.keyPem, cert: svid.chainPem };
    const form = { grant_type: "client_credentials", ...optional(sent, "trips.read") };
    const expected = { sub: planner, aud: API, client_id: planner, scope: "trips.read" };
    assertToken(await world.token(form, {}, certificate), expected);
    assertToken(await world.token({ ...form, client_id: planner }, {}, certificate), expected);
    const other = await world.token({ ...form, client_id: booking }, {}, certificate);
    assert.deepEqual([other.status, other.body.error], [400, "invalid_client"]);
  });

  test(`PROD-4.1v3-1, PROD-4.1v3-3, PROD-5-8, PROD-5-11, PROD-2.4-1, PROD-4.1-20 variant 3, client credentials by JWT-SVID, ${how}`, async () => {
    const answer = await world.token({
      grant_type: "client_credentials",
      client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-spiffe",
      client_assertion: await world.svid("agents/planner", {
        header: { alg: "ES256", kid: "td-1", typ: "JWT" },
      }),
      ...optional(sent, "trips.read"),
    });
    const expected = { sub: planner, aud: API, client_id: planner, scope: "trips.read" };
    const { jti } = claimsOf(assertToken(answer, expected));
    const event = (await world.events()).find(({ granted }) => granted?.jti === jti);
    assert.partialDeepStrictEqual(event?.client, { aud: ISSUER, kid: "td-1", typ: "JWT" });
  });

  test(`PROD-4.1v5-1, PROD-4.1v5-5, PROD-0-1, PROD-1.4-1, PROD-4.1-3, PROD-4.1-4 variant 5, delegation, ${how}`, async () => {
    const answer = await delegate(
      "agents/planner",
      t0,
      "booking-agent",
      optional(sent, "trips.read trips.book"),
    );
    const expected = { sub: USER, act: { sub: planner }, aud: "booking-agent", client_id: planner };
    const token = assertToken(answer, { ...expected, scope: "trips.read trips.book" }, ACCESS_TOKEN);
    assert.ok(Number(claimsOf(token).exp) <= Number(claimsOf(t0).exp));
  });

  test(`PROD-4.1v6-1, PROD-4.1v6-3, PROD-4.1v6-4, PROD-2.5r1-1, PROD-2.5r2-3, PROD-4.1-18 variant 6, chained delegation, ${how}`, async () => {
    const t5 = await plannersToken();
    const answer = await delegate("agents/booking", t5, API, optional(sent, "trips.read"));
    const act = { sub: booking, act: { sub: planner } };
    const scope = sent ? "trips.read" : "trips.read trips.book";
    const token = assertToken(answer, { sub: USER, act, aud: API, client_id: booking, scope }, ACCESS_TOKEN);
    assert.ok(Number(claimsOf(token).exp) <= Number(claimsOf(t5).exp));
  });

  test(`PROD-4.1v7-1, PROD-4.1v7-2, PROD-6.1-2, PROD-6.1-3, PROD-3-10, PROD-3-8 variant 7a, impersonation, ${how}`, async () => {
    const answer = await world.token({
      grant_type: EXCHANGE,
      subject_token: await plannersToken(),
      subject_token_type: ACCESS_TOKEN,
      client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-spiffe",
      client_assertion: await world.svid("agents/booking"),
      audience: API,
      ...optional(sent, "trips.read"),
    });
    const scope = sent ? "trips.read" : "trips.read trips.book";
    const token = assertToken(answer, { sub: USER, aud: API, client_id: booking, scope }, ACCESS_TOKEN);
    const { jti } = claimsOf(token);
    const event = (await world.events()).find(({ granted }) => granted?.jti === jti);
    assert.equal(event?.mode, "impersonation");
    assert.deepEqual(event?.chain, [{ iss: ISSUER, sub: planner }]);
  });

  test(`RFC6749-3.2-5, PROD-3-11 two empty actor parameters count as omitted: a rule for impersonation allows it, ${how}`, async () => {
    const answer = await world.token({
      grant_type: EXCHANGE,
      subject_token: await plannersToken(),
      subject_token_type: ACCESS_TOKEN,
      actor_token: "",
      actor_token_type: "",
      client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-spiffe",
      client_assertion: await world.svid("agents/booking"),
      audience: API,
      ...optional(sent, "trips.read"),
    });
    const scope = sent ? "trips.read" : "trips.read trips.book";
    assertToken(answer, { sub: USER, aud: API, client_id: booking, scope }, ACCESS_TOKEN);
  });

  test(`PROD-4.1v7-1, PROD-4.1v7-3, PROD-4.1v7-4, PROD-6.1-2 variant 7b, an impersonation grant for a legacy server, ${how}`, async () => {
    const answer = await world.token({
      grant_type: EXCHANGE,
      subject_token: await plannersToken(),
      subject_token_type: ACCESS_TOKEN,
      client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-spiffe",
      client_assertion: await world.svid("agents/booking"),
      audience: PARTNER,
      ...optional(sent, "trips.read"),
    });
    const scope = sent ? "trips.read" : "trips.read trips.book";
    const grant = assertToken(answer, { sub: USER, aud: PARTNER, client_id: "booking-there", scope }, JWT);
    assert.equal(decodeProtectedHeader(grant).typ, "authz-grant+jwt");
    assert.equal(answer.body.expires_in, 60);
    const { jti } = claimsOf(grant);
    const event = (await world.events()).find(({ granted }) => granted?.jti === jti);
    assert.equal(event?.mode, "impersonation");
    assert.deepEqual(event?.chain, [{ iss: ISSUER, sub: planner }]);
  });

  for (const [variant, asked, type, typ] of [
    ["8a", {}, JWT, "authz-grant+jwt"],
    ["8b", { requested_token_type: ID_JAG }, ID_JAG, "oauth-id-jag+jwt"],
  ] as const) {
    test(`PROD-4.1v8-1, PROD-4.1v8-2, PROD-4.1v8-3, PROD-4.1v8-4, PROD-4.1-23, PROD-4.1-24 variant ${variant}, a grant with the chain, ${how}`, async () => {
      const form = { ...optional(sent, "trips.read"), ...asked };
      const answer = await delegate("agents/booking", await plannersToken(), PARTNER, form);
      const act = { sub: booking, act: { sub: planner } };
      const scope = sent ? "trips.read" : "trips.read trips.book";
      const expected = { sub: USER, act, aud: PARTNER, client_id: "booking-there", scope };
      const grant = assertToken(answer, expected, type);
      assert.equal(decodeProtectedHeader(grant).typ, typ);
      assert.equal(answer.body.expires_in, 60);
    });
  }
}

/** Booking's client assertion for the token endpoint of the partner. */
function assertionThere(): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  return new SignJWT({
    iss: "booking-there",
    sub: "booking-there",
    aud: `${PARTNER}/token`,
    jti: randomUUID(),
    iat: now,
    exp: now + 60,
  })
    .setProtectedHeader({ alg: "ES256", kid: "b1", typ: "JWT" })
    .sign(thereKey.privateKey);
}

/** `grant` is the response of variant 8, with the grant. */
async function redeemThere(grant: Answer): Promise<Answer> {
  return partner.token({
    grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer",
    assertion: String(grant.body.access_token),
    client_assertion_type: JWT_BEARER,
    client_assertion: await assertionThere(),
  });
}

for (const [variant, asked] of [
  ["8a", {}],
  ["8b", { requested_token_type: ID_JAG }],
] as const) {
  test(`PROD-4.1v9-1, PROD-4.1v9-2, PROD-4.1v9-3, PROD-4.1v9-4, PROD-5r2-1, PROD-1.7-2 variant 9, redemption of ${variant} at the external server, once`, async () => {
    const form = { scope: "trips.read", ...asked };
    const grant = await delegate("agents/booking", await plannersToken(), PARTNER, form);
    const act = { sub: booking, iss: ISSUER, act: { sub: planner, iss: ISSUER } };
    const expected = { iss: PARTNER, sub: USER, act, aud: STAYS, client_id: "booking-there" };
    assertToken(await redeemThere(grant), { ...expected, scope: "trips.read" });
    const again = await redeemThere(grant);
    assert.deepEqual([again.status, again.body.error], [400, "invalid_grant"]);
  });
}

/** The response of variant 5. */
async function plannersToken(): Promise<string> {
  const answer = await delegate("agents/planner", t0, "booking-agent", {});
  return String(answer.body.access_token);
}

async function delegate(agent: string, subjectToken: string, audience: string, scope: Form): Promise<Answer> {
  const svid = await world.svid(agent);
  return world.token({
    grant_type: EXCHANGE,
    subject_token: subjectToken,
    subject_token_type: ACCESS_TOKEN,
    actor_token: svid,
    actor_token_type: JWT,
    client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-spiffe",
    client_assertion: svid,
    audience,
    ...scope,
  });
}

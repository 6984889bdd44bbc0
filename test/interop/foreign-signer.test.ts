/**
 * We redeem grants that we did not sign: `oauth4webapi` signs with WebCrypto and shares no code with our side, and the
 * MCP SDK signs with its helpers. The metadata of their issuer name its key set.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createPrivateKeyJwtAuth } from "@modelcontextprotocol/client";
import * as oauth from "oauth4webapi";
import { type Answer, basic } from "../../scripts/http-client.ts";
import { DRAFT as ID_JAG_DRAFT } from "../../src/spec/id-jag.ts";
import { DRAFT as CHAINING_DRAFT } from "../../src/spec/identity-chaining.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { stop } from "../support/stop.ts";
import { type DocumentServer, LOOPBACK, startDocumentServer } from "../support/web.ts";
import { claimsOf, type Form, ISSUER, makeWorld, type World } from "../support/world.ts";

const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const API = "https://api.example";
const OTHER_API = "https://other-api.example";
const SECRET = "the-secret-of-the-desk-here-123456";
const scopes = ["trips.read", "trips.book"];
const ID_JAG = "oauth-id-jag+jwt";
const PLAIN = "authz-grant+jwt";

const ALGORITHMS = ["ES256", "Ed25519", "PS256", "RS256"] as const;

type Alg = (typeof ALGORITHMS)[number];
type Key = { kid: string; privateKey: CryptoKey; jwk: object };

async function makeKey(alg: Alg): Promise<Key> {
  const { publicKey, privateKey } = await oauth.generateKeyPair(alg, { extractable: true });
  return { kid: alg, privateKey, jwk: { ...(await crypto.subtle.exportKey("jwk", publicKey)), kid: alg } };
}

let keys: Record<Alg, Key>;
/** An unpublished key with a published `kid`. */
let unpublished: Key;
/** The issuer's web server. */
let foreign: DocumentServer;
let world: World;

before(async () => {
  keys = {
    ES256: await makeKey("ES256"),
    Ed25519: await makeKey("Ed25519"),
    PS256: await makeKey("PS256"),
    RS256: await makeKey("RS256"),
  };
  unpublished = await makeKey("ES256");
  foreign = await startDocumentServer();
  const { origin } = foreign;
  foreign.documents.set("/.well-known/oauth-authorization-server", {
    issuer: origin,
    jwks_uri: `${origin}/keys`,
    response_types_supported: [],
  });
  foreign.documents.set("/keys", { keys: Object.values(keys).map(({ jwk }) => jwk) });
  world = await makeWorld(
    {
      trustedIssuers: {
        [origin]: {
          keys: { discover: true, ca: { file: "foreign.pem" }, privateNetworks: LOOPBACK },
          acceptAs: [],
          subjects: { prefix: "guest:" },
          grants: {},
          algorithms: ALGORITHMS,
        },
      },
      clients: {
        desk: { method: "client_secret_basic", secrets: [SECRET], defaultTarget: API },
        other: { method: "client_secret_basic", secrets: [SECRET] },
      },
      targets: [
        { names: [API], scopes },
        { names: [OTHER_API], scopes },
      ],
      policies: [
        {
          id: "guests",
          allow: "redemption",
          clients: ["desk"],
          targets: [API, OTHER_API],
          scopes,
          subjects: { issuers: [origin] },
          consent: "implied",
          acknowledge: "subjects-not-asked",
        },
      ],
      drafts: [SPIFFE_DRAFT, ID_JAG_DRAFT, CHAINING_DRAFT],
    },
    { files: { "foreign.pem": foreign.ca } },
  );
});

after(() => stop(world, foreign));

type Claims = Record<string, unknown>;
const nowSeconds = (): number => Math.floor(Date.now() / 1000);

/** A grant for the client "desk" unless the claims change it. */
async function sign(
  typ: string,
  claims: Claims = {},
  { kid, privateKey }: Key = keys.ES256,
): Promise<string> {
  const form = new URLSearchParams();
  const proof = oauth.PrivateKeyJwt(
    { key: privateKey, kid },
    {
      // The library's hook for servers that require a different assertion.
      [oauth.modifyAssertion](header, payload) {
        header.typ = typ;
        for (const name of Object.keys(payload)) delete payload[name];
        Object.assign(payload, {
          iss: foreign.origin,
          sub: "g-1",
          aud: ISSUER,
          client_id: "desk",
          iat: nowSeconds(),
          exp: nowSeconds() + 60,
          jti: crypto.randomUUID(),
          scope: "trips.read",
          ...claims,
        });
      },
    },
  );
  await proof({ issuer: ISSUER }, { client_id: "desk" }, form, new Headers());
  return form.get("client_assertion") ?? "";
}

const redeem = (assertion: string, form: Form = {}, by = "desk"): Promise<Answer> =>
  world.token({ grant_type: JWT_BEARER, assertion, ...form }, { authorization: basic(by, SECRET) });

function assertRedeemed(answer: Answer, audience = API): Claims {
  assert.equal(answer.status, 200, answer.text);
  assert.deepEqual([answer.body.token_type, answer.body.scope], ["Bearer", "trips.read"]);
  const claims = claimsOf(answer.body.access_token);
  assert.deepEqual([claims.iss, claims.aud, claims.client_id], [ISSUER, audience, "desk"]);
  return claims;
}

for (const [name, typ] of [
  ["RFC7523-2.1-1, IDC-2.4.3-1 a plain grant", PLAIN],
  ["RFC7523-2.1-1, IDC-2.4.3-1 a plain grant", "JWT"],
  ["IDJAG-4.4.1-1, IDJAG-4.4.1-2 an ID-JAG", ID_JAG],
] as const) {
  test(`${name} of a foreign signer is redeemed: ${typ}`, async () => {
    assert.equal(assertRedeemed(await redeem(await sign(typ))).sub, "guest:g-1");
  });
}

for (const alg of ALGORITHMS) {
  test(`RFC7523-5-2, EMA-7.4.1-1 a grant signed by ${alg} is redeemed`, async () => {
    assertRedeemed(await redeem(await sign(ID_JAG, {}, keys[alg])));
  });
}

test("RFC7523-2.1-1 a grant as the MCP SDK signs it is redeemed, without a kid", async () => {
  const form = new URLSearchParams();
  const privateKey = await crypto.subtle.exportKey("jwk", keys.ES256.privateKey);
  const proof = createPrivateKeyJwtAuth({
    issuer: foreign.origin,
    subject: "g-2",
    audience: ISSUER,
    alg: "ES256",
    privateKey: { ...privateKey },
    claims: { client_id: "desk", scope: "trips.read" },
  });
  await proof(new Headers(), form, `${ISSUER}/token`);
  const claims = assertRedeemed(await redeem(form.get("client_assertion") ?? ""));
  assert.equal(claims.sub, "guest:g-2");
});

test("IDJAG-9.8-2 the actors in a grant are in the token, with the iss of their issuer", async () => {
  const chain = {
    sub: "spiffe://foreign.example/booking",
    act: { sub: "planner", iss: "https://third.example" },
  };
  const { act } = assertRedeemed(await redeem(await sign(PLAIN, { act: chain })));
  assert.deepEqual(act, { ...chain, iss: foreign.origin });
});

test("IDJAG-4.4.1-6, EMA-5.1-1 the resource in a grant is the audience of the token, instead of the client's default target", async () => {
  assertRedeemed(await redeem(await sign(ID_JAG, { resource: OTHER_API })), OTHER_API);
});

// --- refusals -----------------------------------------------------------------------------------------------------

async function assertRefused(answer: Answer, error: string, reason: string): Promise<void> {
  assert.deepEqual([answer.status, answer.body.error], [400, error], answer.text);
  const id = answer.headers["x-request-id"];
  const event = (await world.events()).find(({ request }) => Object(request).id === id);
  assert.equal(event?.reason, reason);
}

const ago = (seconds: number): Claims => ({ iat: nowSeconds() - seconds, exp: nowSeconds() - seconds + 60 });

const REFUSED: [string, () => Promise<string>, string][] = [
  ["RFC7521-5.2-7 signed with an unpublished key", () => sign(PLAIN, {}, unpublished), "signature_invalid"],
  [
    "RFC8725-3.8-v1 with an untrusted iss",
    () => sign(PLAIN, { iss: "https://unknown.example" }),
    "issuer_not_trusted_for_grants",
  ],
  ["IDJAG-9.4-1 with our own issuer as iss", () => sign(PLAIN, { iss: ISSUER }), "grant_self_issued"],
  [
    "IDJAG-4.4.1-1 an ID-JAG with an untrusted iss",
    () => sign(ID_JAG, { iss: "https://unknown.example" }),
    "issuer_not_trusted_for_grants",
  ],
  ["IDJAG-4.4.1-1 an ID-JAG without iss", () => sign(ID_JAG, { iss: undefined }), "jwt_claim_missing"],
  ["IDJAG-4.4.1-1 an ID-JAG without sub", () => sign(ID_JAG, { sub: undefined }), "jwt_claim_missing"],
  [
    "IDJAG-4.4.1-1 an ID-JAG for another server",
    () => sign(ID_JAG, { aud: foreign.origin }),
    "jwt_audience_refused",
  ],
  ["IDJAG-4.4.1-1 an ID-JAG without aud", () => sign(ID_JAG, { aud: undefined }), "jwt_audience_missing"],
  ["IDJAG-4.4.1-1 an ID-JAG issued two minutes ago", () => sign(ID_JAG, ago(120)), "jwt_expired"],
  ["IDJAG-4.4.1-1 an ID-JAG without exp", () => sign(ID_JAG, { exp: undefined }), "jwt_time_missing"],
  [
    "IDJAG-4.4.1-1 an ID-JAG signed with an unpublished key",
    () => sign(ID_JAG, {}, unpublished),
    "signature_invalid",
  ],
  ["RFC8725-3.12-v1 with the typ of an access token", () => sign("at+jwt"), "jwt_type_refused"],
  ["IDC-2.4.2-2 for another server", () => sign(PLAIN, { aud: foreign.origin }), "jwt_audience_refused"],
  [
    "IDJAG-4.4.1-3 for our token endpoint, as an ID-JAG",
    () => sign(ID_JAG, { aud: `${ISSUER}/token` }),
    "jwt_audience_refused",
  ],
  ["IDJAG-4.4.1-4 for another client", () => sign(ID_JAG, { client_id: "other" }), "grant_client_differs"],
  ["RFC7523-3-10 issued two minutes ago", () => sign(PLAIN, ago(120)), "jwt_expired"],
  [
    "RFC7523-3-11 valid for an hour",
    () => sign(PLAIN, { exp: nowSeconds() + 3600 }),
    "jwt_lifetime_too_long",
  ],
  ["RFC7523-3-14 without a jti", () => sign(PLAIN, { jti: undefined }), "jwt_claim_missing"],
  [
    "EMA-7.6.2-1 for an unknown API",
    () => sign(ID_JAG, { resource: "https://no.example" }),
    "grant_resource_unknown",
  ],
  [
    "IDJAG-9.9-4 bound to a key",
    () => sign(ID_JAG, { cnf: { jkt: "a-thumbprint" } }),
    "subject_key_not_proven",
  ],
];
for (const [name, grant, reason] of REFUSED) {
  test(`${name}: a grant of a foreign signer is refused`, async () => {
    await assertRefused(await redeem(await grant()), "invalid_grant", reason);
  });
}

test("IDC-2.4.2-4 a grant for a client that no rule names is refused", async () => {
  const grant = await sign(PLAIN, { client_id: "other" });
  await assertRefused(await redeem(grant, {}, "other"), "invalid_grant", "no_rule");
});

test("IDC-2.4.2-2 a plain grant with our token endpoint as audience is redeemed", async () => {
  assertRedeemed(await redeem(await sign(PLAIN, { aud: `${ISSUER}/token` })));
});

for (const typ of [PLAIN, ID_JAG]) {
  test(`IDC-5.5-2, EMA-7.4.2-2 a redeemed grant is refused, also signed again with the same jti: ${typ}`, async () => {
    const jti = crypto.randomUUID();
    const grant = await sign(typ, { jti });
    assertRedeemed(await redeem(grant));
    await assertRefused(await redeem(grant), "invalid_grant", "grant_replayed");
    await assertRefused(await redeem(await sign(typ, { jti })), "invalid_grant", "grant_replayed");
  });
}

test("RFC7521-4.1-3, EMA-7.2.1-1 a scope that is not in the grant is refused, and a narrower scope is granted", async () => {
  const more = await redeem(await sign(ID_JAG), { scope: "trips.book" });
  await assertRefused(more, "invalid_scope", "scope_empty");
  const both = await sign(ID_JAG, { scope: scopes.join(" ") });
  assertRedeemed(await redeem(both, { scope: "trips.read" }));
});

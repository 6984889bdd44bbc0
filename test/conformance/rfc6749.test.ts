/**
 * What all responses of OAuth endpoints have in common: they are not cacheable, have no duplicate member, and their
 * error texts are printable ASCII. One server, and each endpoint with a success and a refusal.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Answer, basic } from "../../scripts/http-client.ts";
import { DRAFT as ID_JAG_DRAFT } from "../../src/spec/id-jag.ts";
import { DRAFT as CHAINING_DRAFT } from "../../src/spec/identity-chaining.ts";
import { parseJson } from "../../src/spec/rfc8259.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import {
  assertRegistered,
  bearer,
  CC,
  JSON_TYPE,
  type Metadata,
  post,
  type Registered,
} from "../support/registration.ts";
import { stop } from "../support/stop.ts";
import { claimsOf, EXCHANGE, IDP, ISSUER, JWT, makeWorld, type World } from "../support/world.ts";

const SECRET = "nightly-nightly-nightly-nightly1";
const API = "https://api.example";
const PARTNER = "https://as.partner.example";
const OWN = `${ISSUER}/api`;
const OWN_SCOPES = ["policy:explain", "audit:read", "consent:manage", "client:manage"];
const NIGHTLY = { authorization: basic("nightly", SECRET) };

const CONFIGURATION = {
  clients: { nightly: { method: "client_secret_basic", secrets: [SECRET] } },
  targets: [
    { names: [API], scopes: ["read"] },
    {
      kind: "partner",
      issuer: PARTNER,
      scopes: ["read"],
      clients: { nightly: "nightly-there" },
    },
  ],
  policies: [
    { id: "nightly", allow: "client_credentials", clients: ["nightly"], targets: [API], scopes: ["read"] },
    { id: "own", allow: "client_credentials", clients: ["nightly"], targets: [OWN], scopes: OWN_SCOPES },
    ...(["access_token", "grant"] as const).map((issues) => ({
      id: `as-user-${issues}`,
      allow: "impersonation",
      issues,
      clients: ["nightly"],
      subjects: { issuers: [IDP] },
      subjectToken: { audiences: [ISSUER] },
      consent: "implied",
      acknowledge: "subjects-not-asked",
      targets: [issues === "grant" ? PARTNER : API],
      scopes: ["read"],
    })),
  ],
  drafts: [SPIFFE_DRAFT, CHAINING_DRAFT, ID_JAG_DRAFT],
};

let world: World;
/** A token for each of our own endpoints. */
let own: Record<string, string>;

before(async () => {
  world = await makeWorld(CONFIGURATION);
  own = await ownToken(OWN_SCOPES.join(" "));
});

after(() => stop(world));

async function ownToken(scope: string): Promise<Record<string, string>> {
  const answer = await world.token({ ...CC, audience: OWN, scope }, NIGHTLY);
  assert.equal(answer.status, 200, answer.text);
  return bearer(String(answer.body.access_token));
}

const register = async (): Promise<Registered> => assertRegistered(await post(world, {}, own));

async function manage(method: string, body?: (registered: Registered) => Metadata): Promise<Answer> {
  const registered = await register();
  return world.get(`/register/${registered.client_id}`, {
    method,
    headers: { ...bearer(registered.registration_access_token), ...(body && JSON_TYPE) },
    ...(body && { body: JSON.stringify(body(registered)) }),
  });
}

async function exchange(audience: string, subject: object = {}): Promise<Answer> {
  const subject_token = await world.idp.mintUserToken({
    sub: "u-1",
    aud: ISSUER,
    scope: "read",
    ...subject,
  });
  return world.token({ grant_type: EXCHANGE, subject_token, subject_token_type: JWT, audience }, NIGHTLY);
}

const explain = (headers: Record<string, string>): Promise<Answer> =>
  world.get("/policy/explain", {
    method: "POST",
    headers: { ...JSON_TYPE, ...headers },
    body: JSON.stringify({ client: "nightly", target: API }),
  });

const RESPONSES: [what: string, status: number, ask: () => Promise<Answer>][] = [
  ["a token", 200, () => world.token({ ...CC, audience: API }, NIGHTLY)],
  ["an exchanged token", 200, () => exchange(API)],
  ["an issued grant", 200, () => exchange(PARTNER)],
  ["no credentials", 400, () => world.token(CC)],
  ["a wrong secret", 401, () => world.token(CC, { authorization: basic("nightly", "wrong") })],
  ["no grant type", 400, () => world.token({ scope: "read" }, NIGHTLY)],
  ["an unknown grant type", 400, () => world.token({ grant_type: "password" }, NIGHTLY)],
  ["an unknown target", 400, () => world.token({ ...CC, audience: "nowhere" }, NIGHTLY)],
  ["an unknown scope", 400, () => world.token({ ...CC, audience: API, scope: "write" }, NIGHTLY)],
  ["an invalid subject token", 400, () => exchange(API, { aud: "https://other.example" })],
  ["another method", 405, () => world.get("/token")],
  ["an unknown path", 404, () => world.get("/tokens")],
  ["a registration", 201, () => post(world, {}, own)],
  ["a registration without a token", 401, () => post(world, {})],
  ["invalid metadata", 400, () => post(world, { grant_types: ["password"] }, own)],
  ["a registration that is read", 200, () => manage("GET")],
  ["a registration that is replaced", 200, () => manage("PUT", ({ client_id }) => ({ client_id }))],
  ["a registration with an invalid update", 400, () => manage("PUT", () => ({ client_id: "other" }))],
  ["an unknown registration", 401, () => world.get("/register/c_1", { headers: bearer("abc") })],
  ["an explained decision", 200, () => explain(own)],
  ["an explanation without a token", 401, () => explain({})],
  ["an explanation with insufficient scope", 403, async () => explain(await ownToken("audit:read"))],
  ["the audit trail", 200, () => world.get("/audit/events", { headers: own })],
  ["consents", 200, () => world.get(`/consents?iss=${IDP}&sub=u-1`, { headers: own })],
];

const TEXT = /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/;
/** The challenges for a request without a token, which have no error code (RFC6750-3.1-5, RFC9449-7.2-2). */
const ABOUT = 'realm="as\\.example"(?:, scope="policy:explain")?, resource_metadata="[^"]+"';
const BARE = new RegExp(`^Bearer ${ABOUT}, DPoP ${ABOUT}, algs="[^"]+"$`);

for (const [what, status, ask] of RESPONSES) {
  test(`RFC6749-5.1-6, RFC6749-5.1-7, RFC6749-3.2-8, RFC6749-5.2-10, RFC6749-5.2-11, RFC6750-5.2-7 ${what}: not cacheable, without duplicate members, in printable ASCII`, async () => {
    const answer = await ask();
    assert.equal(answer.status, status, answer.text);
    assert.deepEqual([answer.headers["cache-control"], answer.headers.pragma], ["no-store", "no-cache"]);
    assert.equal(answer.headers["set-cookie"], undefined);
    // parseJson refuses duplicate members.
    assert.equal(parseJson(answer.text, 16).ok, true, answer.text);
    // HTTP-D-64: a registration without a token has a code in its body, not in its challenge.
    const isBare = BARE.test(answer.headers["www-authenticate"] ?? "") && !what.startsWith("a registration");
    assert.equal("error" in answer.body, status >= 400 && !isBare);
    for (const member of ["error", "error_description"]) {
      if (member in answer.body) assert.match(String(answer.body[member]), TEXT);
    }
  });
}

test("RFC6749-5.1-6, RFC6749-5.1-7 a deletion has an empty response that is not cacheable", async () => {
  const { status, headers, text } = await manage("DELETE");
  assert.deepEqual([status, text], [204, ""]);
  assert.deepEqual([headers["cache-control"], headers.pragma], ["no-store", "no-cache"]);
});

test("RFC6749-8.1-1, RFC6750-4-1 access tokens have the type Bearer, grants N_A", async () => {
  const types = [
    [await world.token({ ...CC, audience: API }, NIGHTLY), "Bearer"],
    [await exchange(API), "Bearer"],
    [await exchange(PARTNER), "N_A"],
  ] as const;
  for (const [answer, type] of types) assert.equal(answer.body.token_type, type, answer.text);
});

test("RFC6749-5.1-2, RFC6749-4.4.3-1 the response has the lifetime of the token, and no other token", async () => {
  for (const answer of [await world.token({ ...CC, audience: API }, NIGHTLY), await exchange(API)]) {
    const { issued_token_type: _, ...told } = answer.body;
    assert.deepEqual(Object.keys(told).sort(), ["access_token", "expires_in", "scope", "token_type"]);
    const { iat, exp } = claimsOf(told.access_token);
    assert.equal(told.expires_in, Number(exp) - Number(iat));
  }
});

test("RFC6749-4.5-1, RFC6749-4.4.2-1, RFC8693-2.1-1 a grant type is recognized by its complete name in its exact spelling only", async () => {
  assert.equal((await world.token({ ...CC, audience: API }, NIGHTLY)).status, 200);
  assert.equal((await exchange(API)).status, 200);
  const subject_token = await world.idp.mintUserToken({ sub: "u-1", aud: ISSUER, scope: "read" });
  for (const grant_type of [
    "CLIENT_CREDENTIALS",
    "client-credentials",
    "client_credentials ",
    EXCHANGE.toUpperCase(),
    `${EXCHANGE}/`,
    "token-exchange",
    `${EXCHANGE}#`,
  ]) {
    const form = { grant_type, subject_token, subject_token_type: JWT, audience: API };
    const answer = await world.token(form, NIGHTLY);
    assert.deepEqual([answer.status, answer.body.error], [400, "unsupported_grant_type"], grant_type);
  }
});

test("RFC6749-4.4-1, RFC6749-4.4.2-2, RFC6749-10.1-4, RFC6749-10.2-1, RFC9700-2.5-1 no token without client authentication, for any grant type", async () => {
  const subject_token = await world.idp.mintUserToken({ sub: "u-1", aud: ISSUER, scope: "read" });
  const forms = [CC, { grant_type: EXCHANGE, subject_token, subject_token_type: JWT }];
  for (const form of forms.map((one) => ({ ...one, audience: API }))) {
    assert.equal((await world.token(form, NIGHTLY)).status, 200);
    for (const name of [{}, { client_id: "nightly" }, { client_id: "nightly", client_secret: "" }]) {
      const answer = await world.token({ ...form, ...name });
      assert.deepEqual([answer.status, answer.body], [400, UNAUTHENTICATED], answer.text);
    }
  }
});

const UNAUTHENTICATED = { error: "invalid_client", error_description: "client authentication failed" };

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type AuthenticationRequest,
  buildAuthenticationUrl,
  buildClientAssertion,
  checkIdToken,
  checkIdTokenHeader,
  checkResponseIssuer,
  describeMetadataFailure,
  type IdTokenRule,
  maxAgeOf,
  parseAuthenticationResponse,
  parseProviderMetadata,
  parseTokenAnswer,
  providerMetadataUrl,
} from "../../../src/people/spec/oidc.ts";
import { checkLogoutHeader } from "../../../src/people/spec/oidc-backchannel.ts";

const ISSUER = "https://idp.example/";
const NOW = 1_800_000_000;

// --- metadata -----------------------------------------------------------------------------------------------------

test("OIDCD-4-1 the metadata are below the issuer, without its final slash", () => {
  assert.equal(providerMetadataUrl(ISSUER), "https://idp.example/.well-known/openid-configuration");
  assert.equal(
    providerMetadataUrl("https://idp.example/tenant/v2.0"),
    "https://idp.example/tenant/v2.0/.well-known/openid-configuration",
  );
});

const metadata = {
  issuer: ISSUER,
  authorization_endpoint: "https://login.example/authorize",
  token_endpoint: "https://idp.example/token",
  jwks_uri: "https://idp.example/keys",
};
const documents = [
  ["OIDCD-3-1 complete metadata", metadata, "ok"],
  ["OIDCD-4.3-1 another issuer", { ...metadata, issuer: "https://idp.example" }, "metadata_issuer_differs"],
  ["OIDCD-3-1 no issuer", { ...metadata, issuer: undefined }, "metadata_issuer_differs"],
  [
    "OIDCD-3-1 no authorization endpoint",
    { ...metadata, authorization_endpoint: undefined },
    "metadata_member_missing",
  ],
  ["OIDCD-3-1 no token endpoint", { ...metadata, token_endpoint: undefined }, "metadata_member_missing"],
  ["OIDCD-3-1 no key set", { ...metadata, jwks_uri: undefined }, "metadata_member_missing"],
  [
    "OIDCD-7.1-1 a token endpoint without TLS",
    { ...metadata, token_endpoint: "http://idp.example/token" },
    "metadata_member_missing",
  ],
  [
    "OIDCD-7.1-1 a key set without TLS",
    { ...metadata, jwks_uri: "http://idp.example/keys" },
    "metadata_member_missing",
  ],
  ["a list", [], "metadata_malformed"],
] as const;
for (const [name, document, want] of documents) {
  test(`${name}: ${want}`, () => {
    const parsed = parseProviderMetadata(JSON.stringify(document), ISSUER);
    assert.equal(parsed.ok ? "ok" : parsed.error.kind, want);
  });
}

for (const member of ["authorization_endpoint", "token_endpoint", "jwks_uri"]) {
  test(`OIDCD-3-1 metadata without ${member} are refused, and the operator is told which member it is`, () => {
    const parsed = parseProviderMetadata(JSON.stringify({ ...metadata, [member]: undefined }), ISSUER);
    assert.equal(
      parsed.ok ? "ok" : describeMetadataFailure(parsed.error),
      `metadata_member_missing: ${member}`,
    );
  });
}

test("JWKS-D-4 metadata of a provider that name another issuer are told with both names", () => {
  const parsed = parseProviderMetadata(JSON.stringify({ ...metadata, issuer: ISSUER.slice(0, -1) }), ISSUER);
  assert.equal(
    parsed.ok ? "ok" : describeMetadataFailure(parsed.error),
    `metadata_issuer_differs: the document names "https://idp.example", not "${ISSUER}"`,
  );
});

// --- the request --------------------------------------------------------------------------------------------------

const plain: AuthenticationRequest = {
  clientId: "us",
  redirectUri: "https://as.example/callback/company",
  scopes: ["profile"],
  state: "s",
  nonce: "n",
  challenge: "c",
  wishes: { prompt: [], acrValues: [] },
  acrValues: [],
};
const parameters = (asked: Partial<AuthenticationRequest>, endpoint = "https://idp.example/login") =>
  Object.fromEntries(new URL(buildAuthenticationUrl(endpoint, { ...plain, ...asked })).searchParams);

test("OIDC-3.1.2.1-1, OIDC-3.1.2.1-2 the request has all that the flow needs, and nothing else", () => {
  assert.deepEqual(parameters({}, "https://idp.example/login?tenant=1"), {
    tenant: "1",
    response_type: "code",
    client_id: "us",
    redirect_uri: "https://as.example/callback/company",
    scope: "openid profile",
    state: "s",
    nonce: "n",
    code_challenge: "c",
    code_challenge_method: "S256",
  });
});

test("OIDC-D-5, OIDC-3.1.2.1-5, MCPC-D-15 of the client's wishes those are sent that the provider may heed", () => {
  const wishes = {
    prompt: ["login", "select_account", "consent"],
    maxAgeSeconds: 900,
    acrValues: ["urn:a", "urn:evil"],
    uiLocales: "de en",
  } as const;
  const { prompt, max_age, acr_values, ui_locales } = parameters({ wishes, acrValues: ["urn:a", "urn:b"] });
  assert.deepEqual(
    [prompt, max_age, acr_values, ui_locales],
    ["login select_account", "0", "urn:a", "de en"],
  );
});

test("OIDC-D-5 the shorter of two ages holds", () => {
  const wishes = { prompt: [], acrValues: [] };
  assert.equal(maxAgeOf(wishes, undefined), undefined);
  assert.equal(maxAgeOf({ ...wishes, maxAgeSeconds: 60 }, 900), 60);
  assert.equal(maxAgeOf({ ...wishes, maxAgeSeconds: 3600 }, 900), 900);
  assert.equal(maxAgeOf({ ...wishes, prompt: ["login"] }, 900), 0);
});

// --- the response -------------------------------------------------------------------------------------------------

const responses = [
  ["code=c&state=s", "ok"],
  ["code=c&state=s&iss=https%3A%2F%2Fidp.example%2F&session_state=x", "ok"],
  ["error=access_denied&state=s&error_description=text", "ok"],
  ["code=c", "callback_malformed"],
  ["state=s", "callback_malformed"],
  ["code=c&error=e&state=s", "callback_malformed"],
  ["code=c&code=d&state=s", "callback_malformed"],
  ["code=c&state=s&state=t", "callback_malformed"],
  ["code=%ff&state=s", "callback_malformed"],
  ["code=a+%7E&state=s", "ok"],
  ["code=&state=s", "callback_malformed"],
  ["code=a%00&state=s", "callback_malformed"],
  ["code=a%0D%0Ab&state=s", "callback_malformed"],
  ["code=%C3%A4&state=s", "callback_malformed"],
] as const;
for (const [query, want] of responses) {
  test(`OIDC-3.1.2.7-1, OIDC-3.1.2.6-1 the response ${query}: ${want}`, () => {
    const parsed = parseAuthenticationResponse(query);
    assert.equal(parsed.ok ? "ok" : parsed.error.kind, want);
  });
}

const issuers = [
  ["the issuer", ISSUER, true, "ok"],
  ["the issuer without its slash", "https://idp.example", false, "callback_issuer_differs"],
  ["another issuer", "https://other.example/", true, "callback_issuer_differs"],
  ["nothing where the provider does not name itself", undefined, false, "ok"],
  ["nothing where the provider names itself", undefined, true, "callback_issuer_missing"],
] as const;
for (const [name, iss, namesItself, want] of issuers) {
  test(`OIDC-D-1 iss is ${name}: ${want}`, () => {
    const response = iss === undefined ? { state: "s", code: "c" } : { state: "s", code: "c", iss };
    const ours = { authorizationEndpoint: "", tokenEndpoint: "", hasPublicSubjects: true, namesItself };
    const checked = checkResponseIssuer(response, ISSUER, ours);
    assert.equal(checked.ok ? "ok" : checked.error.kind, want);
  });
}

// --- the token request --------------------------------------------------------------------------------------------

test("OIDC-9-1, OIDC-9-2 our assertion is for one audience alone, for one use, for a minute", () => {
  assert.deepEqual(buildClientAssertion({ clientId: "us", audience: ISSUER }, NOW, "j"), {
    iss: "us",
    sub: "us",
    aud: ISSUER,
    jti: "j",
    iat: NOW,
    exp: NOW + 60,
  });
});

const answers = [
  [{ id_token: "a.b.c", token_type: "bearer", access_token: "unread" }, "ok"],
  [{ id_token: "a.b.c", token_type: "N_A" }, "provider_answer_malformed"],
  [{ token_type: "Bearer" }, "provider_answer_malformed"],
  [{ id_token: ["a.b.c"], token_type: "Bearer" }, "provider_answer_malformed"],
  ["text", "provider_answer_malformed"],
] as const;
for (const [answer, want] of answers) {
  test(`OIDC-3.1.3.3-1 the answer ${JSON.stringify(answer)}: ${want}`, () => {
    const parsed = parseTokenAnswer(JSON.stringify(answer));
    assert.equal(parsed.ok ? "ok" : parsed.error.kind, want);
  });
}

// --- the ID token -------------------------------------------------------------------------------------------------

const rule: IdTokenRule = {
  issuer: ISSUER,
  clientId: "us",
  algorithm: "RS256",
  nonce: "n",
  nowSeconds: NOW,
  startedAtSeconds: NOW - 60,
  requiredAcr: [],
};
const claims = { iss: ISSUER, sub: "u", aud: "us", exp: NOW + 300, iat: NOW, nonce: "n" };
type Extra = Record<string, unknown>;
const tokens: readonly (readonly [name: string, extra: Extra, rule: Partial<IdTokenRule>, want: string])[] = [
  ["OIDC-2-1 a token that is in order", {}, {}, "ok"],
  [
    "OIDC-3.1.3.7-2, OIDCD-4.3-2 another issuer",
    { iss: "https://idp.example" },
    {},
    "id_token_issuer_differs",
  ],
  ["OIDC-3.1.3.7-3 an audience in a list of one", { aud: ["us"] }, {}, "ok"],
  ["OIDC-3.1.3.7-3 a second audience", { aud: ["us", "them"] }, {}, "jwt_audience_several"],
  ["OIDC-3.1.3.7-3 another audience", { aud: "them" }, {}, "jwt_audience_refused"],
  ["OIDC-3.1.3.7-3 an audience that begins with ours", { aud: "us-too" }, {}, "jwt_audience_refused"],
  ["OIDC-3.1.3.7-3 no audience", { aud: undefined }, {}, "jwt_audience_missing"],
  ["OIDC-3.1.3.7-4 our azp", { azp: "us" }, {}, "ok"],
  ["OIDC-3.1.3.7-4 another azp", { azp: "them" }, {}, "azp_differs"],
  ["OIDC-3.1.3.7-9 expired within the skew", { exp: NOW - 29 }, {}, "ok"],
  ["OIDC-3.1.3.7-9 expired", { exp: NOW - 30 }, {}, "jwt_expired"],
  ["OIDC-2-1 no expiry", { exp: undefined }, {}, "jwt_time_missing"],
  ["OIDC-3.1.3.7-10 issued 300 s ago", { iat: NOW - 300 }, {}, "ok"],
  ["OIDC-3.1.3.7-10 issued longer ago", { iat: NOW - 301 }, {}, "jwt_too_old"],
  ["OIDC-3.1.3.7-10 issued ahead of us, beyond the skew", { iat: NOW + 31 }, {}, "jwt_issued_in_future"],
  ["OIDC-2-1 a subject of 255 characters", { sub: "u".repeat(255) }, {}, "ok"],
  ["OIDC-2-1 a subject of 256 characters", { sub: "u".repeat(256) }, {}, "id_token_sub_refused"],
  ["OIDC-2-1 a subject that is not ASCII", { sub: "\u00fcser" }, {}, "id_token_sub_refused"],
  ["OIDC-2-1 no subject", { sub: undefined }, {}, "jwt_claim_missing"],
  ["OIDC-2-1 no time of issue", { iat: undefined }, {}, "jwt_time_missing"],
  ["OIDC-D-11 someone who acts for the user", { act: { sub: "support" } }, {}, "jwt_of_actor"],
  ["RFC8417-4-1, CONF-D-7 an event", { events: { e: {} } }, {}, "untyped_event"],
  ["OIDC-3.1.3.7-11 no nonce", { nonce: undefined }, {}, "nonce_missing"],
  ["OIDC-3.1.3.7-11 the nonce of another sign-in", { nonce: "m" }, {}, "nonce_differs"],
  ["OIDC-3.1.3.7-12, OIDC-3.1.2.1-7 a required class", { acr: "b" }, { requiredAcr: ["a", "b"] }, "ok"],
  ["OIDC-3.1.3.7-12, OIDC-3.1.2.1-7 another class", { acr: "c" }, { requiredAcr: ["a", "b"] }, "acr_refused"],
  ["OIDC-3.1.3.7-12 no class", {}, { requiredAcr: ["a"] }, "acr_refused"],
  ["OIDC-3.1.3.7-13, OIDC-3.1.2.1-6 no auth_time", {}, { maxAgeSeconds: 60 }, "auth_time_missing"],
  ["OIDC-3.1.3.7-13 an age that is allowed", { auth_time: NOW - 150 }, { maxAgeSeconds: 60 }, "ok"],
  ["OIDC-3.1.3.7-13 an older one", { auth_time: NOW - 151 }, { maxAgeSeconds: 60 }, "auth_time_too_old"],
  [
    "OIDC-D-5 an earlier sign-in where a new one was asked for",
    { auth_time: NOW - 91 },
    { maxAgeSeconds: 0 },
    "auth_time_too_old",
  ],
];
for (const [name, extra, ruled, want] of tokens) {
  test(`${name}: ${want}`, () => {
    const entries = Object.entries({ ...claims, ...extra }).filter(([, one]) => one !== undefined);
    const checked = checkIdToken(Object.fromEntries(entries) as typeof claims, { ...rule, ...ruled });
    assert.equal(checked.ok ? "ok" : checked.error.kind, want);
  });
}

const headers = [
  ["OIDC-3.1.3.7-7 the agreed algorithm", { alg: "RS256" }, "ok"],
  ["OIDC-3.1.3.7-7 another algorithm", { alg: "ES256" }, "jwt_algorithm_refused"],
  ["OIDC-3.1.3.7-8 a symmetric algorithm", { alg: "HS256" }, "jwt_algorithm_refused"],
  ["OIDC-3.1.3.7-8 none", { alg: "none" }, "jwt_algorithm_refused"],
  ["the type JWT", { alg: "RS256", typ: "JWT" }, "ok"],
  ["the type of an access token", { alg: "RS256", typ: "at+jwt" }, "jwt_type_refused"],
] as const;
for (const [name, header, want] of headers) {
  test(`${name}: ${want}`, () => {
    const checked = checkIdTokenHeader({ ...header, members: {} }, rule);
    assert.equal(checked.ok ? "ok" : checked.error.kind, want);
  });
}

test("OIDC-D-7 what the token does not say stays unsaid", () => {
  assert.deepEqual(checkIdToken(claims, rule), { ok: true, value: {} });
  const said = checkIdToken({ ...claims, auth_time: NOW - 5.5, acr: "a" }, rule);
  assert.deepEqual(said, { ok: true, value: { authTimeSeconds: NOW - 6, acr: "a" } });
});

// --- logout tokens ------------------------------------------------------------------------------------------------

for (const [alg, want] of [
  ["ES256", "ok"],
  ["PS256", "jwt_algorithm_refused"],
  ["HS256", "jwt_algorithm_refused"],
  ["none", "jwt_algorithm_refused"],
] as const) {
  test(`OIDCB-2.6-2 a logout token by ${alg}, of a provider whose ID tokens are signed by ES256: ${want}`, () => {
    const header = { alg, typ: "logout+jwt", members: { alg, typ: "logout+jwt" } };
    const checked = checkLogoutHeader(header, { algorithm: "ES256" });
    assert.equal(checked.ok ? "ok" : checked.error.kind, want);
  });
}

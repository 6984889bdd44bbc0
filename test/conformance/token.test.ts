/**
 * Hostile requests at the token endpoint: what is refused, with which error code, and what the audit trail records.
 * Over TLS; the events are read from the store. The policy is the example rule of src/policy/README.md.
 */
import assert from "node:assert/strict";
import { createHmac, createPrivateKey, sign } from "node:crypto";
import { after, before, test } from "node:test";
import { mintJwtSvid } from "../../scripts/dev-keys.ts";
import { makeTrustDomain } from "../../scripts/dev-pki.ts";
import { type Answer, basic, postForm } from "../../scripts/http-client.ts";
import { stop } from "../support/stop.ts";
import { until } from "../support/until.ts";
import {
  ACCESS_TOKEN,
  claimsOf,
  EXCHANGE,
  type Form,
  ISSUER,
  JWT,
  JWT_SPIFFE,
  makeWorld,
  TRUST_DOMAIN,
  type World,
  workload,
} from "../support/world.ts";

const EXAMPLE_RULE = {
  id: "crew-for-travellers",
  allow: "delegation",
  actors: [
    "spiffe://td.example/agents/planner",
    "spiffe://td.example/agents/booking",
    "spiffe://td.example/crew/*",
  ],
  subjects: { issuers: ["https://idp.example"] },
  subjectToken: { audiences: ["https://as.example", "self"] },
  consent: "record",
  maxChainDepth: 4,
  targets: ["booking-agent", "crew-desk", "https://api.example"],
  scopes: ["trips.read", "trips.book"],
  lifetimeSeconds: 300,
};

const API = "https://api.example";
const SECRET = "s3cret %&=ü/+ with everything";
const scopes = ["trips.read", "trips.book"];

const CONFIGURATION = {
  clients: {
    nightly: { method: "client_secret_basic", secrets: ["older-secret", SECRET], defaultTarget: API },
    body: { method: "client_secret_post", secrets: [SECRET], defaultTarget: API },
    exchanger: { method: "client_secret_basic", secrets: [SECRET], grantTypes: [EXCHANGE] },
    ruleless: { method: "client_secret_basic", secrets: [SECRET] },
  },
  targets: [
    { names: ["booking-agent"], owners: [workload("agents/booking")], scopes },
    { names: ["crew-desk"], owners: [workload("crew/*")], scopes },
    { names: [API, "api"], scopes },
    { names: ["unlisted"], scopes },
    { names: ["legacy"], scopes, alg: "RS256" },
    { names: ["modern"], scopes, alg: "EdDSA" },
  ],
  policies: [
    EXAMPLE_RULE,
    { ...EXAMPLE_RULE, id: "other-algorithms", targets: ["crew-desk", "legacy", "modern"] },
    {
      id: "machines",
      allow: "client_credentials",
      clients: ["nightly", "body", "exchanger"],
      targets: [API],
      scopes: ["trips.read"],
    },
    {
      id: "planner-reads",
      allow: "client_credentials",
      actors: [workload("agents/planner")],
      targets: [API, "booking-agent"],
      scopes: ["trips.read"],
    },
  ],
};

let world: World;

before(async () => {
  world = await makeWorld(CONFIGURATION, { skipsLooks: true });
  await world.consent("u-1", "agents/planner", "booking-agent", scopes);
  await world.consent("u-1", "agents/booking", "crew-desk", scopes);
  await world.consent("u-1", "crew/ana", API, scopes);
});

after(() => stop(world));

const userToken = (input = {}): Promise<string> =>
  world.idp.mintUserToken({ sub: "u-1", aud: ISSUER, scope: "trips.read trips.book", ...input });

type Hop = { subjectToken: string; type?: string; audience?: string; svid?: string; extra?: Form };

/** One delegation by the agent; parameters that are empty in `extra` are left out. */
async function delegate(
  agent: string,
  { subjectToken, type = JWT, audience, svid, extra = {} }: Hop,
): Promise<Answer> {
  const own = svid ?? (await world.svid(agent));
  return world.token({
    grant_type: EXCHANGE,
    subject_token: subjectToken,
    subject_token_type: type,
    actor_token: own,
    actor_token_type: JWT,
    ...world.as(own),
    ...(audience !== undefined && { audience }),
    ...extra,
  });
}

function assertError(answer: Answer, status: number, error: string): void {
  assert.deepEqual([answer.status, answer.body.error], [status, error], answer.text);
  assert.equal(answer.headers["cache-control"], "no-store");
  assert.equal(answer.headers.pragma, "no-cache");
  assert.match(String(answer.body.error_description), /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/);
}

// --- chained delegation -----------------------------------------------------------------------------------------

test("RFC8693-4.1-5, PROD-2.5-4, PROD-4.1v6-2, PROD-6.1-1 the example rule permits three hops", async () => {
  const first = await delegate("agents/planner", {
    subjectToken: await userToken(),
    audience: "booking-agent",
  });
  assert.equal(first.status, 200, first.text);
  const second = await delegate("agents/booking", {
    subjectToken: String(first.body.access_token),
    type: ACCESS_TOKEN,
    audience: "crew-desk",
  });
  assert.equal(second.status, 200, second.text);
  const third = await delegate("crew/ana", {
    subjectToken: String(second.body.access_token),
    type: ACCESS_TOKEN,
    audience: API,
  });
  assert.equal(third.status, 200, third.text);
  const claims = claimsOf(third.body.access_token);
  assert.equal(claims.sub, "u-1");
  assert.deepEqual(claims.act, {
    sub: workload("crew/ana"),
    act: { sub: workload("agents/booking"), act: { sub: workload("agents/planner") } },
  });
  const events = await world.events();
  const event = events.find(({ granted }) => granted?.jti === claims.jti);
  assert.ok(event);
  assert.equal(event.type, "token_exchange.delegation");
  assert.deepEqual(event.granted?.parent_jti, [
    claimsOf(second.body.access_token).jti,
    claimsOf(first.body.access_token).jti,
  ]);
});

// --- malformed requests -----------------------------------------------------------------------------------------

const CC = { grant_type: "client_credentials" };
const NIGHTLY = { authorization: basic("nightly", SECRET) };

/** Sends a raw body. */
const raw = (body: string, headers: Record<string, string> = {}): Promise<Answer> =>
  world.token(body, { ...NIGHTLY, ...headers });

const malformed = [
  ["RFC6749-5.2-2 no grant type", "scope=trips.read", {}],
  ["RFC6749-3.2-5 a parameter without a value counts as absent", "grant_type=", {}],
  ["RFC6749-3.2-7 a repeated parameter", "grant_type=client_credentials&scope=a&scope=a", {}],
  [
    "RFC6749-3.2-7 repeated authorization details",
    "grant_type=client_credentials&authorization_details=[]&authorization_details=[]",
    {},
  ],
  ["RFC6749-3.2-7 a repeated unknown parameter", "grant_type=client_credentials&x=1&x=2", {}],
  ["RFC6749-10.14-1 a NUL in an unknown parameter", "grant_type=client_credentials&x=a%00b", {}],
  ["RFC6749-B-2 a broken percent sequence", "grant_type=client_credentials&scope=%zz", {}],
  ["RFC6749-B-2 a broken UTF-8 sequence", "grant_type=client_credentials&scope=%ff", {}],
  ["RFC6749-10.14-1 a NUL", "grant_type=client_credentials&scope=a%00b", {}],
  [
    "PROD-4.1-2 another content type",
    '{"grant_type":"client_credentials"}',
    { "content-type": "application/json" },
  ],
  ["PROD-4.1-2 a text type", "grant_type=client_credentials", { "content-type": "text/plain" }],
  [
    "PROD-4.1-2 another charset",
    "grant_type=client_credentials",
    { "content-type": "application/x-www-form-urlencoded; charset=latin1" },
  ],
] as const;

for (const [name, body, headers] of malformed) {
  test(`${name}: invalid_request`, async () => {
    assertError(await raw(body, headers), 400, "invalid_request");
  });
}

test("PROD-8.4-2 a body of 64 KiB is read, and one that is a byte larger is refused", async () => {
  const ofBytes = (count: number): string => "grant_type=client_credentials&x=".padEnd(count, "a");
  const full = await raw(ofBytes(64 * 1024));
  assert.equal(full.status, 200, full.text);
  assertError(await raw(ofBytes(64 * 1024 + 1)), 413, "invalid_request");
});

test("RFC6749-3.2-6, RFC6749-3.2-5 unknown and empty parameters are ignored", async () => {
  const answer = await raw("grant_type=client_credentials&scope=&x=1&y=1&__proto__=3&scope=trips.read&&");
  assert.equal(answer.status, 200, answer.text);
});

for (const [name, parameter] of [
  ["RFC6749-2.3.1-6 a secret in the URI is refused", "client_secret=x"],
  ["RFC6749-2.3.1-6 an assertion in the URI is refused", "client_assertion=x"],
  ["RFC6749-2.3.1-6, RFC9396-5-1 authorization details in the URI are refused", "authorization_details=[]"],
] as const) {
  test(name, async () => {
    const url = `${ISSUER}/token?${parameter}`;
    const reach = { ca: world.ca, connect: { host: "127.0.0.1", port: world.server.port } };
    assertError(await postForm(url, CC, { ...reach, headers: NIGHTLY }), 400, "invalid_request");
  });
}

const DETAILS = [
  ['[{"type":"payment_initiation"}]', "details_type_unknown"],
  ["[]", "details_malformed"],
  ["no list", "details_malformed"],
] as const;
for (const [details, why] of DETAILS) {
  test(`RFC9396-8-1, RFC9396-5-1, RFC9396-5-2 authorization details are refused instead of ignored: ${details}`, async () => {
    const extra = { authorization_details: details };
    assertError(await world.token({ ...CC, ...extra }, NIGHTLY), 400, "invalid_authorization_details");
    assertError(await plannerWith(extra), 400, "invalid_authorization_details");
    const events = (await world.events()).slice(-2);
    assert.deepEqual(
      events.map(({ type }) => type),
      ["token.denied", "token_exchange.denied"],
    );
    for (const { reason } of events) assert.equal(reason, why);
  });
}

test("RFC9396-5-1, RFC6749-3.2-5 authorization details without a value count as absent", async () => {
  const answer = await raw("grant_type=client_credentials&authorization_details=");
  assert.equal(answer.status, 200, answer.text);
  assert.equal((await plannerWith({ authorization_details: "" })).status, 200);
});

test("PROD-4.1-31, PROD-7.5-1, RFC6749-3.2-4 GET is refused with Allow", async () => {
  const answer = await world.get("/token");
  assert.equal(answer.status, 405);
  assert.equal(answer.headers.allow, "POST");
});

test("RFC6749-5.2-8, PROD-4.1-25, PROD-4.1-17, PROD-4.1-18, PROD-1.1-2, PROD-7.4-2 unknown grant types and short names are unsupported_grant_type", async () => {
  for (const grantType of ["password", "authorization_code", "token-exchange", "Client_Credentials"]) {
    assertError(await world.token({ grant_type: grantType }, NIGHTLY), 400, "unsupported_grant_type");
  }
});

// --- client authentication --------------------------------------------------------------------------------------

test("RFC6749-2.3.1-1, RFC6749-2.3.1-2, PROD-5-3 Basic is accepted with escapes, and with either of two secrets", async () => {
  for (const secret of ["older-secret", SECRET]) {
    const answer = await world.token(CC, { authorization: basic("nightly", secret) });
    assert.equal(answer.status, 200, answer.text);
  }
});

const strangers = [
  [
    "RFC6749-10.2-1, PROD-4.1r1-1, PROD-7.5-1, RFC6749-3.2.1-1 no credential",
    {},
    undefined,
    400,
    "invalid_client",
  ],
  ["RFC6749-2.2-2 a bare client_id", { client_id: "nightly" }, undefined, 400, "invalid_client"],
  ["RFC6749-5.2-5, PROD-7.5-1 a wrong secret", {}, basic("nightly", "wrong"), 401, "invalid_client"],
  ["RFC6749-5.2-3, PROD-1.6-1 an unknown client", {}, basic("unknown", SECRET), 401, "invalid_client"],
  ["RFC6749-5.2-5 another scheme", {}, "Bearer abc", 401, "invalid_client"],
  [
    "RFC6749-2.3.1-2 base64 with invalid characters",
    {},
    basic("nightly", SECRET).replace(/.{4}$/, "$&\u00a0"),
    401,
    "invalid_client",
  ],
  [
    "RFC6749-2.3.1-5 a secret in the body for a client with Basic",
    { client_id: "nightly", client_secret: SECRET },
    undefined,
    400,
    "invalid_client",
  ],
  [
    "RFC6749-2.3.1-5 Basic for a client with its secret in the body",
    {},
    basic("body", SECRET),
    401,
    "invalid_client",
  ],
  [
    "RFC6749-2.3-4 two secrets",
    { client_id: "nightly", client_secret: SECRET },
    basic("nightly", SECRET),
    400,
    "invalid_request",
  ],
  [
    "RFC6749-3.2.1-2 another client_id beside Basic",
    { client_id: "body" },
    basic("nightly", SECRET),
    400,
    "invalid_request",
  ],
] as const;

for (const [name, form, authorization, status, error] of strangers) {
  test(`${name}: ${error}`, async () => {
    const answer = await world.token(
      { ...CC, ...form },
      authorization === undefined ? {} : { authorization },
    );
    assertError(answer, status, error);
    assert.equal(
      answer.headers["www-authenticate"]?.startsWith("Basic realm="),
      status === 401 ? true : undefined,
    );
  });
}

test("RFC7521-4.2.1-2, PROD-4.1v2-3 an assertion beside a secret is invalid_client", async () => {
  const form = { ...CC, ...world.as(await world.svid("agents/planner")) };
  assertError(
    await world.token({ ...form, client_id: "body", client_secret: SECRET }),
    400,
    "invalid_client",
  );
  assertError(await world.token(form, NIGHTLY), 401, "invalid_client");
});

test("RFC7521-4.2-1, PROD-4.1-26, PROD-4.1-20 an assertion without its type or with another is invalid_client", async () => {
  const assertion = await world.svid("agents/planner");
  const types = [undefined, "jwt-spiffe", "urn:ietf:params:oauth:client-assertion-type:saml2-bearer"];
  for (const type of types) {
    const form = {
      ...CC,
      client_assertion: assertion,
      ...(type !== undefined && { client_assertion_type: type }),
    };
    assertError(await world.token(form), 400, "invalid_client");
  }
  assertError(await world.token({ ...CC, client_assertion_type: JWT_SPIFFE }), 400, "invalid_client");
});

test("RFC6749-5.2-7, PROD-7.4-2 a grant type that the client is not registered for, or that no rule allows, is unauthorized_client", async () => {
  assertError(
    await world.token(CC, { authorization: basic("exchanger", SECRET) }),
    400,
    "unauthorized_client",
  );
  assertError(
    await world.token(CC, { authorization: basic("ruleless", SECRET) }),
    400,
    "unauthorized_client",
  );
});

// --- JWT-SVIDs --------------------------------------------------------------------------------------------------

test("PROD-2.3-4, SPCA-3.1-8 issuer or token endpoint are accepted as audience, as a string or in a list of one", async () => {
  for (const aud of [ISSUER, `${ISSUER}/token`, [ISSUER]]) {
    const svid = await world.svid("agents/planner", { aud });
    const answer = await world.token({ ...CC, ...world.as(svid), audience: API });
    assert.equal(answer.status, 200, answer.text);
  }
});

test("PROD-4.1v3-4 client_id may repeat the SPIFFE ID, and must not name another client", async () => {
  const form = { ...CC, ...world.as(await world.svid("agents/planner")), audience: API };
  assert.equal((await world.token({ ...form, client_id: workload("agents/planner") })).status, 200);
  assertError(await world.token({ ...form, client_id: workload("agents/booking") }), 400, "invalid_client");
  assertError(await world.token({ ...form, client_id: "nightly" }), 400, "invalid_client");
});

/** Signs any header and claims with the trust domain's own key. */
function forge(header: object, claims: object, keyPem = world.trustDomain.jwt.keyPem): string {
  const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString("base64url");
  const input = `${encode(header)}.${encode(claims)}`;
  const signature = sign("sha256", Buffer.from(input), {
    key: createPrivateKey(keyPem),
    dsaEncoding: "ieee-p1363",
  });
  return `${input}.${signature.toString("base64url")}`;
}

const seconds = (): number => Math.floor(Date.now() / 1000);
const usual = (): Record<string, unknown> => ({
  sub: workload("agents/planner"),
  aud: ISSUER,
  iat: seconds(),
  exp: seconds() + 300,
});
const HEADER = { alg: "ES256", kid: "td-1", typ: "JWT" };

test("SPCA-3.1-4 forge makes valid SVIDs too", async () => {
  const answer = await world.token({ ...CC, ...world.as(forge(HEADER, usual())), audience: API });
  assert.equal(answer.status, 200, answer.text);
});

const badSvids: readonly [string, () => string | Promise<string>][] = [
  ["SPCA-3.1-5, JSV-A-1 expired", () => forge(HEADER, { ...usual(), exp: seconds() - 31 })],
  ["SPCA-3.1-4, JSV-3.3-1 without exp", () => forge(HEADER, { ...usual(), exp: undefined })],
  ["RFC7519-4.1.4-v3 exp as a string", () => forge(HEADER, { ...usual(), exp: String(seconds() + 300) })],
  ["SPCA-3.1-4 without sub", () => forge(HEADER, { ...usual(), sub: undefined })],
  [
    "SPCA-3.1-4 with a sub that is not a SPIFFE ID",
    () => forge(HEADER, { ...usual(), sub: "https://td.example/agents/planner" }),
  ],
  ["SPCA-3.1-4 that is not a JWT", () => forge(HEADER, usual()).replaceAll(".", "")],
  ["PROD-8.1-2 an exp in more than an hour", () => forge(HEADER, { ...usual(), exp: seconds() + 3700 })],
  ["RFC7519-4.1.5-v1 not yet valid", () => forge(HEADER, { ...usual(), nbf: seconds() + 60 })],
  ["JSV-3.2-1 for another audience", () => forge(HEADER, { ...usual(), aud: "https://other.example" })],
  [
    "SPCA-3.1-6, JSV-3.2-2 for this server and another",
    () => forge(HEADER, { ...usual(), aud: [ISSUER, "https://other.example"] }),
  ],
  ["RFC7523-3-9 an extra slash", () => forge(HEADER, { ...usual(), aud: `${ISSUER}/` })],
  [
    "SPCA-3.1-4, RFC8725-3.9-1, JSV-3.2-1 without audience",
    () => forge(HEADER, { ...usual(), aud: undefined }),
  ],
  [
    "PROD-2.1-8, SPCA-5-1 of an unknown trust domain",
    () => forge(HEADER, { ...usual(), sub: "spiffe://other.example/agents/planner" }),
  ],
  [
    "SPCA-3.1-4, JSV-3.1-1, PROD-2.1-5, PROD-2.4-2 without a workload path",
    () => forge(HEADER, { ...usual(), sub: "spiffe://td.example" }),
  ],
  ["SID-2.1-2 in upper case", () => forge(HEADER, { ...usual(), sub: "spiffe://TD.example/agents/planner" })],
  ["JSV-2.1-1 alg none", () => `${forge({ ...HEADER, alg: "none" }, usual()).replace(/[^.]+$/, "")}`],
  [
    "RFC8725-3.1-v3 HMAC with the public key",
    () => {
      const input = forge({ ...HEADER, alg: "HS256" }, usual()).replace(/\.[^.]+$/, "");
      return `${input}.${createHmac("sha256", JSON.stringify(world.trustDomain.jwt.kid)).update(input).digest("base64url")}`;
    },
  ],
  ["RFC7515-4.1.11-v1 with crit", () => forge({ ...HEADER, crit: ["x"], x: 1 }, usual())],
  ["JSV-2-1 with jku", () => forge({ ...HEADER, jku: "https://evil.example" }, usual())],
  ["B7523-4-8 with the typ of an access token", () => forge({ ...HEADER, typ: "at+jwt" }, usual())],
  ["RFC7517-4.5-2 with an unknown kid", () => forge({ ...HEADER, kid: "TD-1" }, usual())],
  [
    "PROD-2.3-13, SPCA-3.1-7 signed by another domain's authority",
    async () => {
      const other = await makeTrustDomain(TRUST_DOMAIN);
      return forge(HEADER, usual(), other.jwt.keyPem);
    },
  ],
  [
    "SPCA-6.2.4-1 signed by the trusted issuer that its iss names",
    () => world.idp.mintUserToken({ sub: workload("agents/planner"), aud: ISSUER }),
  ],
  [
    "PROD-7.2-1 with a changed claim",
    () => {
      const [header, , signature] = forge(HEADER, usual()).split(".");
      const claims = { ...usual(), sub: workload("agents/booking") };
      return `${header}.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.${signature}`;
    },
  ],
  ["RFC7515-2-v1 with padding", () => `${forge(HEADER, usual())}=`],
  ["RFC7515-5.2-v1 in five parts", () => `${forge(HEADER, usual())}.a.b`],
  [
    "RFC7519-4-v1 with a duplicate claim",
    () => {
      const text = JSON.stringify(usual()).replace("{", '{"sub":"spiffe://td.example/agents/booking",');
      const input = `${Buffer.from(JSON.stringify(HEADER)).toString("base64url")}.${Buffer.from(text).toString("base64url")}`;
      const key = { key: createPrivateKey(world.trustDomain.jwt.keyPem), dsaEncoding: "ieee-p1363" } as const;
      return `${input}.${sign("sha256", Buffer.from(input), key).toString("base64url")}`;
    },
  ],
];

for (const [name, make] of badSvids) {
  test(`PROD-4.1r3-2, ${name}: the SVID is refused, as client assertion and as actor token`, async () => {
    const svid = await make();
    assertError(await world.token({ ...CC, ...world.as(svid), audience: API }), 400, "invalid_client");
    const exchange = await delegate("agents/planner", {
      subjectToken: await userToken(),
      audience: "booking-agent",
      extra: { actor_token: svid },
    });
    assertError(exchange, 400, "invalid_request");
    const last = (await world.events()).findLast(({ type }) => type === "token_exchange.denied");
    assert.match(String(last?.reason), /^actor_/);
  });
}

test("SPCA-8.1-3 an access token of ours is refused as a client assertion", async () => {
  const answer = await world.token({ ...CC, ...world.as(await world.svid("agents/planner")), audience: API });
  const token = String(answer.body.access_token);
  assertError(await world.token({ ...CC, ...world.as(token), audience: API }), 400, "invalid_client");
});

// --- exchanges --------------------------------------------------------------------------------------------------

type Refused = readonly [name: string, make: () => Promise<Answer>, error: string, reason: string | RegExp];

const plannerWith = async (extra: Form, subject = {}): Promise<Answer> =>
  delegate("agents/planner", { subjectToken: await userToken(subject), audience: "booking-agent", extra });

const tampered = async (): Promise<string> => {
  const [header, claims, signature] = (await userToken()).split(".");
  const other = Buffer.from(String(claims), "base64url").toString().replace('"u-1"', '"u-2"');
  return `${header}.${Buffer.from(other).toString("base64url")}.${signature}`;
};

const refusals: readonly Refused[] = [
  [
    "RFC8693-2.1-15 no subject token",
    () => plannerWith({ subject_token: "" }),
    "invalid_request",
    "subject_token_missing",
  ],
  [
    "RFC8693-2.1-16 no subject token type",
    () => plannerWith({ subject_token_type: "" }),
    "invalid_request",
    "subject_token_type_missing",
  ],
  [
    "PROD-4.1-27 an unsupported subject token type",
    () => plannerWith({ subject_token_type: "urn:ietf:params:oauth:token-type:saml2" }),
    "invalid_request",
    "subject_token_type_unsupported",
  ],
  [
    "RFC8693-2.1-18 an actor token without type",
    async () => {
      const svid = await world.svid("agents/planner");
      const form = {
        subject_token: await userToken(),
        subject_token_type: JWT,
        actor_token: svid,
        audience: "api",
      };
      return world.token({ grant_type: EXCHANGE, ...world.as(svid), ...form });
    },
    "invalid_request",
    "actor_token_type_missing",
  ],
  [
    "PROD-3-11, RFC8693-2.1-19 an empty actor token with a type",
    () => plannerWith({ actor_token: "" }),
    "invalid_request",
    "actor_token_type_alone",
  ],
  [
    "PROD-3-11, RFC8693-2.1-18 an actor token with an empty type",
    () => plannerWith({ actor_token_type: "" }),
    "invalid_request",
    "actor_token_type_missing",
  ],
  [
    "RFC6749-3.2-5, PROD-3-11 two empty actor parameters, an impersonation without a rule for it",
    () => plannerWith({ actor_token: "", actor_token_type: "" }),
    "invalid_request",
    "no_rule",
  ],
  [
    "PROD-4.1-28 an actor token of another type",
    () => plannerWith({ actor_token_type: "urn:ietf:params:oauth:token-type:id_token" }),
    "invalid_request",
    "actor_token_type_unsupported",
  ],
  [
    "PROD-4.1r3-1, PROD-7.2-1, RFC8693-2.1-20 a tampered subject token",
    async () => plannerWith({ subject_token: await tampered() }),
    "invalid_request",
    "subject_signature_invalid",
  ],
  [
    "PROD-4.1r3-1, RFC7519-4.1.4-v1 an expired subject token",
    () => plannerWith({}, { expSeconds: -31 }),
    "invalid_request",
    "subject_jwt_expired",
  ],
  [
    "RFC8725-3.9-1, RFC7519-4.1.3-v1 a subject token with another audience",
    () => plannerWith({}, { aud: "https://other.example" }),
    "invalid_request",
    "subject_jwt_audience_refused",
  ],
  [
    "PROD-4.1-27 a subject token of an unknown issuer",
    () => plannerWith({}, { claims: { iss: "https://other.example" } }),
    "invalid_request",
    "subject_issuer_unknown",
  ],
  [
    "RFC8693-3-3 a foreign token declared as an access token",
    () => plannerWith({ subject_token_type: ACCESS_TOKEN }),
    "invalid_request",
    /^subject_jwt_type_refused|subject_issuer_not_ours$/,
  ],
  [
    "RFC6749-10.14-1 a foreign subject with a NUL",
    () => plannerWith({}, { sub: "u-1\u0000" }),
    "invalid_request",
    "subject_sub_malformed",
  ],
  [
    "RFC9068-5-1 a foreign subject that looks like a workload",
    () => plannerWith({}, { sub: workload("agents/planner") }),
    "invalid_request",
    "subject_sub_looks_like_machine",
  ],
  [
    "RFC9068-5-1 a foreign subject that looks like a client",
    () => plannerWith({}, { sub: "nightly" }),
    "invalid_request",
    "subject_sub_looks_like_machine",
  ],
  [
    "PROD-4.1v5-3, PROD-4.1v5-4, RFC8693-2.1-21 the actor token of another workload",
    async () => plannerWith({ actor_token: await world.svid("agents/booking") }),
    "invalid_request",
    "actor_not_the_caller",
  ],
  [
    "PROD-7.1-1, PROD-7.3-2 no rule for this actor",
    async () => delegate("agents/other", { subjectToken: await userToken(), audience: "booking-agent" }),
    "invalid_request",
    "no_rule",
  ],
  [
    "PROD-2.6-4 no consent of this subject",
    () => plannerWith({}, { sub: "u-2" }),
    "invalid_request",
    "consent_missing",
  ],
  [
    "PROD-3-7, RFC8693-1.1-4 an impersonation without a rule for it",
    async () =>
      world.token({
        grant_type: EXCHANGE,
        subject_token: await userToken(),
        subject_token_type: JWT,
        audience: "booking-agent",
        ...world.as(await world.svid("agents/planner")),
      }),
    "invalid_request",
    "no_rule",
  ],
  [
    "RFC8693-4.4-2 a may_act that names another",
    () => plannerWith({}, { claims: { may_act: { sub: workload("agents/booking") } } }),
    "invalid_request",
    "may_act_names_another",
  ],
  [
    "PROD-4.1v6-5 a delegated token for another audience",
    async () => {
      const first = await plannerWith({});
      return delegate("crew/ana", {
        subjectToken: String(first.body.access_token),
        type: ACCESS_TOKEN,
        audience: API,
      });
    },
    "invalid_request",
    "not_meant_for_caller",
  ],
  [
    "RFC8707-2-9, PROD-4.1-30 no target",
    async () => delegate("agents/planner", { subjectToken: await userToken() }),
    "invalid_target",
    "target_missing",
  ],
  [
    "RFC8693-2.2.2-3 an unknown target",
    () => plannerWith({ audience: "nowhere" }),
    "invalid_target",
    "target_unknown",
  ],
  [
    "RFC8693-2.2.2-3 a target that the rule does not name",
    () => plannerWith({ audience: "unlisted" }),
    "invalid_target",
    "target_not_allowed",
  ],
  [
    "RFC8693-2.1.1-2 two targets",
    () => plannerWith({ audience: ["booking-agent", "crew-desk"] }),
    "invalid_target",
    "targets_several",
  ],
  [
    "RFC8707-2-2 a resource that is not a URI",
    () => plannerWith({ resource: "booking-agent" }),
    "invalid_target",
    "resource_malformed",
  ],
  [
    "RFC6749-5.2-9 an unavailable scope",
    () => plannerWith({ scope: "trips.pay" }),
    "invalid_scope",
    "scope_empty",
  ],
  [
    "RFC6749-3.3-1 a scope with two spaces",
    () => plannerWith({ scope: "trips.read  trips.book" }),
    "invalid_scope",
    "scope_malformed",
  ],
];

for (const [name, make, error, reason] of refusals) {
  test(`PROD-6.1-1, PROD-7.4-2, ${name}: ${error} and an event`, async () => {
    const before = (await world.events()).length;
    assertError(await make(), 400, error);
    const events = (await world.events()).slice(before);
    const event = events.findLast(({ type }) => type === "token_exchange.denied");
    assert.match(String(event?.reason), reason instanceof RegExp ? reason : new RegExp(`^${reason}$`));
    assert.deepEqual(event?.error, { error, status: 400 });
  });
}

test("RFC8693-2.1-12, RFC8693-2.1-11, PROD-4.1r5-1 one target with two names gets the first requested name as aud", async () => {
  await world.consent("u-1", "agents/planner", API, scopes);
  const form = { resource: API, audience: "api" };
  const answer = await delegate("agents/planner", { subjectToken: await userToken(), extra: form });
  assert.equal(answer.status, 200, answer.text);
  assert.equal(claimsOf(answer.body.access_token).aud, "api");
});

test("RFC6749-5.1-4, PROD-4.1r4-1, RFC6749-3.3-3 the remaining scope is granted and returned", async () => {
  const answer = await plannerWith({ scope: "trips.pay trips.read" });
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.body.scope, "trips.read");
});

test("RFC8693-2.1-24 a token never outlives its subject token", async () => {
  const subjectToken = await userToken({ expSeconds: 20 });
  const answer = await delegate("agents/planner", { subjectToken, audience: "booking-agent" });
  assert.equal(answer.status, 200, answer.text);
  assert.ok(Number(claimsOf(answer.body.access_token).exp) <= Number(claimsOf(subjectToken).exp));
});

test("RFC8725-3.2-1, RFC9068-2.1-4, RFC9068-2.1-5 each target gets its algorithm, and every token has the typ at+jwt", async () => {
  const headers: { kid: string }[] = [];
  for (const audience of ["crew-desk", "legacy", "modern"]) {
    await world.consent("u-1", "agents/planner", audience, scopes);
    const answer = await delegate("agents/planner", { subjectToken: await userToken(), audience });
    assert.equal(answer.status, 200, answer.text);
    const [header = ""] = String(answer.body.access_token).split(".");
    headers.push(JSON.parse(Buffer.from(header, "base64url").toString()));
  }
  const { body } = await world.get("/jwks");
  const keys = body.keys as { kid: string; alg: string; use: string }[];
  for (const [index, alg] of ["ES256", "RS256", "EdDSA"].entries()) {
    const { kid = "", ...rest } = headers[index] ?? {};
    assert.deepEqual(rest, { alg, typ: "at+jwt" });
    assert.ok(keys.some((key) => key.kid === kid && key.alg === alg && key.use === "sig"));
  }
});

// --- logs -------------------------------------------------------------------------------------------------------

test("AUDIT-D-3, RFC6749-10.3-1 log and audit trail contain no token, secret or assertion", async () => {
  const svid = await world.svid("agents/planner");
  const subjectToken = await userToken();
  const answer = await delegate("agents/planner", { subjectToken, audience: "booking-agent", svid });
  await world.token(CC, NIGHTLY);
  const kept = JSON.stringify(await world.events()) + world.server.lines.join("\n");
  for (const token of [svid, subjectToken, String(answer.body.access_token)]) {
    assert.ok(!kept.includes(String(token.split(".")[2])), "a signature is enough to rebuild a token");
  }
  assert.ok(!kept.includes(SECRET) && !kept.includes(basic("nightly", SECRET).slice("Basic ".length)));
});

test("a line of the log names the grant of a token request, and no value that is not served", async () => {
  const grants: [asked: string, logged: string][] = [
    ["client_credentials", "client_credentials"],
    [EXCHANGE, EXCHANGE],
    ["password", "other"],
    ['x"} 1', "other"],
  ];
  for (const [grant_type, logged] of grants) {
    const { headers } = await world.token({ grant_type }, NIGHTLY);
    const line = () => world.server.lines.find((one) => one.includes(String(headers["x-request-id"])));
    await until(() => line() !== undefined, "the request is logged");
    assert.equal(JSON.parse(line() ?? "").grant, logged);
  }
});

test("PROD-2.4-6, PROD-5r1-2 an unknown workload of a trust domain is a client at once", async () => {
  const svid = await mintJwtSvid(world.trustDomain, { sub: workload("crew/new-today"), aud: ISSUER });
  await world.consent("u-1", "crew/new-today", API, scopes);
  const answer = await delegate("crew/new-today", { subjectToken: await userToken(), audience: API, svid });
  assert.equal(answer.status, 200, answer.text);
});

/** RFC 9449 at the endpoints: proofs at the token endpoint and at our own, each wrong in one thing, and what they use up. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { type Answer, basic, type Form } from "../../scripts/http-client.ts";
import { athOf, makeProver, type Prover } from "../support/dpop.ts";
import { type Forgery, seconds } from "../support/forge.ts";
import { createInitialToken } from "../support/host.ts";
import { makeService } from "../support/service.ts";
import { stop } from "../support/stop.ts";
import {
  ACCESS_TOKEN,
  claimsOf,
  type Event,
  EXCHANGE,
  IDP,
  ISSUER,
  JWT,
  type Service,
  workload,
} from "../support/world.ts";

const API = "https://api.example";
const STRICT = "https://strict.example";
const BY_CERTIFICATE = "https://certificates.example";
const OWN = `${ISSUER}/api`;
const HERE = `${ISSUER}/token`;
const EXPLAIN = `${ISSUER}/policy/explain`;
const SECRET = "operator-operator-operator-12345";
const CC = { grant_type: "client_credentials", audience: API };
const planner = workload("agents/planner");
const booking = workload("agents/booking");
const DESK = "spiffe://td.example/desk";
const scopes = ["trips.read"];

const configuration = (dpop: object = {}) => ({
  dpop,
  clients: {
    operator: { method: "client_secret_basic", secrets: [SECRET] },
    careful: { method: "client_secret_basic", secrets: [SECRET], dpop_bound_access_tokens: true },
    desk: {
      method: "client_secret_basic",
      secrets: [SECRET],
      workload: DESK,
      actorAccessToken: true,
    },
    careless: { method: "client_secret_basic", secrets: [SECRET], dpop_bound_access_tokens: false },
  },
  targets: [
    { names: [API], scopes, introspectors: ["operator"] },
    { names: ["booking-agent"], owners: [booking], scopes },
    { names: [STRICT], scopes, binding: "dpop" },
    { names: [BY_CERTIFICATE], scopes, binding: "certificate" },
  ],
  policies: [
    {
      id: "own",
      allow: "client_credentials",
      clients: ["operator", "careful", "careless", "desk"],
      targets: [API, STRICT, BY_CERTIFICATE],
      scopes,
    },
    { id: "open", allow: "client_credentials", classes: ["open"], targets: [API], scopes },
    {
      id: "operators",
      allow: "client_credentials",
      clients: ["operator", "careful"],
      targets: [OWN],
      scopes: ["policy:explain", "consent:manage", "client:manage"],
    },
    {
      id: "agents",
      allow: "delegation",
      actors: [planner, booking, DESK],
      subjects: { issuers: [IDP] },
      subjectToken: { audiences: [ISSUER, "self"] },
      consent: "implied",
      acknowledge: "subjects-not-asked",
      targets: [API, "booking-agent"],
      scopes,
    },
  ],
  registration: { mode: "open", open: { scopes, grantTypes: ["client_credentials"] } },
  consents: { issuers: { [IDP]: { clients: ["account"] } } },
  limits: { failuresPerMinuteBySource: 100_000, failuresPerMinuteByClient: 100_000 },
});

let service: Service;
/** With nonces at the token endpoint too. */
let noncing: Service;
/** Without DPoP. */
let without: Service;
let prover: Prover;
let thief: Prover;

before(async () => {
  [prover, thief] = [await makeProver(), await makeProver()];
  const { targets, policies, clients, ...rest } = configuration({ algorithms: [] });
  service = await makeService(configuration({ nonces: [] }), { inFile: true });
  noncing = await makeService(configuration({ nonces: ["token", "api"] }));
  without = await makeService({
    ...rest,
    clients: { operator: clients.operator },
    targets: targets.filter(({ binding }) => binding !== "dpop"),
    policies: [
      { ...policies[0], clients: ["operator"], targets: [API] },
      { ...policies[2], clients: ["operator"] },
    ],
  });
});

after(() => stop(service, noncing, without));

const ask = (
  proof: string | undefined,
  form: Form = CC,
  at = service,
  client = "operator",
): Promise<Answer> =>
  at.token(form, { authorization: basic(client, SECRET), ...(proof !== undefined && { dpop: proof }) });

async function eventOf(answer: Answer, at = service): Promise<Event | undefined> {
  const id = answer.headers["x-request-id"];
  const events = await at.events();
  return events.findLast(({ request }) => (request as { id?: string } | undefined)?.id === id);
}

/** What the trail says of keys. */
type Trailed = Event & {
  client?: { jkt?: string };
  granted?: { cnf?: object; token_type?: string };
  subject?: { token: { cnf?: object } };
};

async function assertRefused(answer: Answer, error: string, reason: string, at = service): Promise<void> {
  assert.deepEqual([answer.status, answer.body.error], [400, error], answer.text);
  assert.equal((await eventOf(answer, at))?.reason, reason);
}

function assertBound(answer: Answer, jkt = prover.jkt): Record<string, unknown> {
  assert.deepEqual([answer.status, answer.body.token_type], [200, "DPoP"], answer.text);
  const claims = claimsOf(answer.body.access_token);
  assert.deepEqual(claims.cnf, { jkt });
  return claims;
}

// --- at the token endpoint ----------------------------------------------------------------------------------------

test("RFC9449-5-4, RFC9449-6.1-1, PROD-2.5-13, RFC7800-3-v1, RFC7800-4-v1, RFC7800-4-v2 a proof binds the token, where nothing demands it", async () => {
  const answer = await ask(prover.prove(HERE));
  const claims = assertBound(answer);
  assert.deepEqual([claims.sub, claims.iss, claims.aud], ["operator", ISSUER, API]);
  assert.equal(answer.headers["dpop-nonce"], undefined);
  const event = await eventOf(answer);
  assert.ok(event);
  const { client, granted } = event as Trailed;
  assert.deepEqual([granted?.cnf, granted?.token_type], [{ jkt: prover.jkt }, "DPoP"]);
  assert.equal(client?.jkt, prover.jkt);
});

test("RFC9449-5-1 without a proof the token is a bearer token", async () => {
  const { status, body } = await ask(undefined);
  assert.deepEqual([status, body.token_type], [200, "Bearer"]);
  assert.equal(claimsOf(body.access_token).cnf, undefined);
});

test("RFC9449-5-1 each grant is bound: a delegation too", async () => {
  const svid = await service.svid("agents/planner");
  const subject_token = await service.idp.mintUserToken({ sub: "u-1", aud: ISSUER, scope: "trips.read" });
  const exchange = { grant_type: EXCHANGE, subject_token, subject_token_type: JWT, audience: API };
  const actor = { actor_token: svid, actor_token_type: JWT };
  const answer = await service.token(
    { ...exchange, ...actor, ...service.as(svid) },
    { dpop: prover.prove(HERE) },
  );
  assert.deepEqual(assertBound(answer).act, { sub: planner });
});

const WRONG: [name: string, reason: string, proof: () => string][] = [
  ["RFC9449-4.3-4, RFC9449-11.5-1 another type", "jwt_type_refused", () => prove({ header: { typ: "JWT" } })],
  [
    "RFC9449-4.3-5, RFC9449-11.6-2 no algorithm",
    "jwt_algorithm_refused",
    () => prove({ header: { alg: "none" } }),
  ],
  ["RFC9449-4.3-5, RFC9449-11.6-1 a MAC", "jwt_algorithm_refused", () => prove({ header: { alg: "HS256" } })],
  ["RFC9449-4.3-6 no key", "jwk_unusable", () => prove({ header: { jwk: undefined } })],
  ["RFC9449-4.3-6 another's key", "signature_invalid", () => prove({ header: { jwk: thief.jwk } })],
  [
    "RFC9449-4.3-7 a private key",
    "jwk_private",
    () => prove({ header: { jwk: prover.key.privateKey.export({ format: "jwk" }) } }),
  ],
  ["RFC9449-4.2-8 an extension", "jws_header_refused", () => prove({ header: { crit: ["b64"], b64: true } })],
  ["RFC9449-4.3-3 no jti", "jwt_claim_missing", () => prove({ claims: { jti: undefined } })],
  ["RFC9449-11.1-3 a long jti", "jti_too_long", () => prove({ claims: { jti: "j".repeat(257) } })],
  ["RFC9449-4.3-8 another method", "method_differs", () => prove({ claims: { htm: "GET" } })],
  ["RFC9449-4.3-9 another URL", "url_differs", () => prove({ claims: { htu: `${ISSUER}/register` } })],
  ["RFC9449-4.3-11 a stale proof", "jwt_too_old", () => prove({ claims: { iat: seconds() - 65 } })],
  [
    "RFC9449-4.3-11 a proof of the future",
    "jwt_issued_in_future",
    () => prove({ claims: { iat: seconds() + 60 } }),
  ],
  ["RFC9449-4.3-1 two proofs", "repeated", () => `${prove()}, ${prove()}`],
  ["RFC9449-4.3-2 a text", "jws_not_compact", () => "proof"],
];
const prove = (changes: Forgery = {}): string => prover.prove(HERE, changes);

for (const [name, reason, proof] of WRONG) {
  test(`HTTP-D-26, RFC9449-5-2, RFC9449-5-3, ${name}: invalid_dpop_proof, whether or not a proof is demanded`, async () => {
    await assertRefused(await ask(proof()), "invalid_dpop_proof", `proof_${reason}`);
    await assertRefused(
      await ask(proof(), { ...CC, audience: STRICT }),
      "invalid_dpop_proof",
      `proof_${reason}`,
    );
  });
}

test("RFC9449-D-1, RFC9449-7.1-3 a proof of an algorithm that is not listed is refused, and the answer names those that are", async () => {
  const rs256 = await makeProver("RS256");
  const metadata = await service.get("/.well-known/oauth-authorization-server");
  const listed = metadata.body.dpop_signing_alg_values_supported as string[];
  const { body } = await ask(rs256.prove(HERE));
  assert.equal(
    body.error_description,
    `the DPoP proof is not valid: its algorithm is none of ${listed.join(", ")}`,
  );
  const others = await ask(prove({ claims: { htm: "GET" } }));
  assert.equal(others.body.error_description, "the DPoP proof is not valid");
  const headers = { authorization: "DPoP a.b.c", dpop: rs256.prove(EXPLAIN) };
  const refused = await service.get("/policy/explain", { method: "POST", headers });
  assert.match(refused.headers["www-authenticate"] ?? "", new RegExp(`algs="${listed.join(" ")}"`));
});

test("RFC9449-4-2 a proof is no client authentication, and no authorization", async () => {
  const unauthenticated = await service.token({ ...CC, client_id: "operator" }, { dpop: prove() });
  assert.deepEqual([unauthenticated.status, unauthenticated.body.error], [400, "invalid_client"]);
  const unauthorized = await ask(prove(), { ...CC, scope: "trips.pay" });
  assert.equal(unauthorized.body.error, "invalid_scope");
});

test("RFC9449-4.3-9, RFC9449-4.3-13 another spelling of the same URL is accepted", async () => {
  assertBound(await ask(prove({ claims: { htu: "HTTPS://AS.example:443/%74oken?q#f" } })));
});

test("RFC9449-4-1, RFC9449-11.1-2 a proof is used once, by its key and jti", async () => {
  const proof = prove();
  assertBound(await ask(proof));
  const again = await ask(proof);
  await assertRefused(again, "invalid_dpop_proof", "proof_replayed");
  assert.equal((await eventOf(again))?.type, "replay.detected");
  // Made anew with the same jti, for another request.
  const { jti } = claimsOf(proof);
  await assertRefused(await ask(prove({ claims: { jti } })), "invalid_dpop_proof", "proof_replayed");
  assertBound(await ask(thief.prove(HERE, { claims: { jti } })), thief.jkt);
});

test("HTTP-D-29, RFC9449-11.1-2 a proof of a request that is refused is not used up", async () => {
  const proof = prove();
  await assertRefused(
    await ask(proof, { ...CC, audience: "https://nowhere.example" }),
    "invalid_target",
    "target_unknown",
  );
  await assertRefused(
    await ask(proof, { ...CC, audience: BY_CERTIFICATE }),
    "invalid_request",
    "binding_excluded",
  );
  await assertRefused(await ask(proof, { ...CC, scope: "trips.pay" }), "invalid_scope", "scope_empty");
  assertBound(await ask(proof));
});

test("RFC9449-11.1-2 a jti that was used with a bad proof is not used up", async () => {
  const jti = randomUUID();
  await assertRefused(
    await ask(prove({ claims: { jti, htm: "GET" } })),
    "invalid_dpop_proof",
    "proof_method_differs",
  );
  assertBound(await ask(prove({ claims: { jti } })));
});

test("RFC9449-5-2 of one proof that is sent many times at once, one request gets a token", async () => {
  const proof = prove();
  const answers = await Promise.all(Array.from({ length: 8 }, () => ask(proof)));
  const outcomes = answers.map(({ status, body }) => (status === 200 ? "token" : body.error)).sort();
  assert.deepEqual(outcomes, [...Array(7).fill("invalid_dpop_proof"), "token"]);
});

for (const name of ["DPoP", "dpop"]) {
  test(`HTTP-D-27, RFC9449-4.1-1, RFC9449-5-3 a proof inside the body, as ${name}, is refused and not used up`, async () => {
    const proof = prove();
    for (const audience of [API, STRICT]) {
      const refused = await ask(undefined, { ...CC, audience, [name]: proof });
      await assertRefused(refused, "invalid_dpop_proof", "proof_in_body");
    }
    const beside = await ask(proof, { ...CC, [name]: proof });
    await assertRefused(beside, "invalid_dpop_proof", "proof_in_body");
    assertBound(await ask(proof));
    const inUri = await service.get(`/token?${name}=${proof}`, {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: "grant_type=client_credentials",
    });
    assert.deepEqual([inUri.status, inUri.body.error], [400, "invalid_request"]);
  });
}

test("RFC9449-5.2-1, RFC9449-5.2-2, MDP-4-1 a client that demands bound tokens gets no other, and its metadata default to false", async () => {
  const refused = await ask(undefined, CC, service, "careful");
  await assertRefused(refused, "invalid_request", "binding_not_proven");
  assertBound(await ask(prove(), CC, service, "careful"));
  for (const client of ["operator", "careless"]) {
    assert.equal((await ask(undefined, CC, service, client)).body.token_type, "Bearer");
  }
});

test("RFC9449-5-1 a target that demands DPoP gets no other token", async () => {
  await assertRefused(
    await ask(undefined, { ...CC, audience: STRICT }),
    "invalid_request",
    "binding_not_proven",
  );
  assertBound(await ask(prove(), { ...CC, audience: STRICT }));
});

test("RFC9449-5.1-1, MDP-3-1 the metadata list the algorithms of proofs, where DPoP is on", async () => {
  const path = "/.well-known/oauth-authorization-server";
  const { body } = await service.get(path);
  assert.deepEqual(body.dpop_signing_alg_values_supported, ["ES256", "ES384", "EdDSA", "Ed25519", "PS256"]);
  assert.equal((await without.get(path)).body.dpop_signing_alg_values_supported, undefined);
});

test("HTTP-D-26, RFC9449-5-2 where DPoP is off, a proof is refused, good or bad", async () => {
  await assertRefused(await ask(prove(), CC, without), "invalid_dpop_proof", "proof_unsupported", without);
  await assertRefused(await ask("proof", CC, without), "invalid_dpop_proof", "proof_unsupported", without);
  assert.equal((await ask(undefined, CC, without)).body.token_type, "Bearer");
});

test("RFC9449-5.2-1 a registration that demands DPoP is recorded where it is on, and refused where it is off", async () => {
  const metadata = {
    grant_types: ["client_credentials"],
    token_endpoint_auth_method: "client_secret_basic",
    dpop_bound_access_tokens: true,
    tls_client_certificate_bound_access_tokens: true,
  };
  const register = (at: Service): Promise<Answer> =>
    at.get("/register", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(metadata),
    });
  const { status, body } = await register(service);
  assert.deepEqual([status, body.dpop_bound_access_tokens], [201, true]);
  assert.equal(body.tls_client_certificate_bound_access_tokens, true);
  const asIt = { authorization: basic(String(body.client_id), String(body.client_secret)) };
  await assertRefused(await service.token(CC, asIt), "invalid_request", "binding_not_proven");
  assertBound(await service.token(CC, { ...asIt, dpop: prove() }));
  const refused = await register(without);
  assert.deepEqual([refused.status, refused.body.error], [400, "invalid_client_metadata"]);
});

// --- nonces -------------------------------------------------------------------------------------------------------

test("RFC9449-8-1, RFC9449-8-2, RFC9449-8.2-3, RFC9449-4.3-10 a proof without a nonce is challenged with one, which is accepted then", async () => {
  const proof = prove();
  const challenge = await ask(proof, CC, noncing);
  await assertRefused(challenge, "use_dpop_nonce", "proof_nonce_missing", noncing);
  const nonce = challenge.headers["dpop-nonce"] ?? "";
  // RFC9449-8.1-1: characters of a scope-token, and one value.
  assert.match(nonce, /^[\x21\x23-\x5b\x5d-\x7e]+$/);
  assert.doesNotMatch(nonce, /,/);
  assert.equal(challenge.headers["cache-control"], "no-store");
  const answer = await ask(prove({ claims: { nonce } }), CC, noncing);
  assertBound(answer);
  assert.equal(answer.headers["dpop-nonce"], nonce, "RFC9449-8.2-1 the newest comes with each answer");
});

test("RFC9449-8.1-1, RFC9449-8-3 a nonce has characters of a scope token, and cannot be guessed", async () => {
  const nonce = (await ask(prove(), CC, noncing)).headers["dpop-nonce"] ?? "";
  assert.match(nonce, /^[A-Za-z0-9_-]{43}$/);
});

test("RFC9449-8-5, RFC9449-8-6, RFC9449-9-1, RFC9449-11.3-1 any other nonce is challenged with a new one", async () => {
  for (const nonce of ["", "made up", "A".repeat(43), 7, null]) {
    const answer = await ask(prove({ claims: { nonce } }), CC, noncing);
    await assertRefused(answer, "use_dpop_nonce", "proof_nonce_refused", noncing);
    assert.ok(answer.headers["dpop-nonce"]);
  }
  // Of another server, with another key-encryption key.
  const other = await makeService(configuration({ nonces: ["token"] }));
  const { headers } = await ask(prove(), CC, other);
  await other.stop();
  const foreign = await ask(prove({ claims: { nonce: headers["dpop-nonce"] } }), CC, noncing);
  await assertRefused(foreign, "use_dpop_nonce", "proof_nonce_refused", noncing);
});

test("RFC9449-4.3-6, RFC9449-8-2 a bad proof is not challenged, and a request without a proof gets no nonce", async () => {
  const bad = await ask(prove({ header: { jwk: thief.jwk } }), CC, noncing);
  await assertRefused(bad, "invalid_dpop_proof", "proof_signature_invalid", noncing);
  assert.equal((await ask(undefined, CC, noncing)).headers["dpop-nonce"], undefined);
});

test("HTTP-D-30, RFC9449-11.1-5 with a nonce its time counts, and that of iat does not", async () => {
  const nonce = (await ask(prove(), CC, noncing)).headers["dpop-nonce"];
  assertBound(await ask(prove({ claims: { nonce, iat: 1 } }), CC, noncing));
});

// --- our own endpoints --------------------------------------------------------------------------------------------

const ownToken = async (proof: string | undefined, at = service): Promise<string> => {
  const answer = await ask(proof, { ...CC, audience: OWN, scope: "policy:explain" }, at);
  assert.equal(answer.status, 200, answer.text);
  return String(answer.body.access_token);
};
const QUESTION = JSON.stringify({ client: "operator", target: STRICT });
const call = (headers: Record<string, string>, at = service, path = "/policy/explain"): Promise<Answer> =>
  at.get(path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: QUESTION,
  });
const withProof = (token: string, changes: Forgery = {}, by = prover): Record<string, string> => ({
  authorization: `DPoP ${token}`,
  dpop: by.prove(EXPLAIN, {
    ...changes,
    claims: { ath: athOf(token), ...(typeof changes.claims === "object" ? changes.claims : {}) },
  }),
});

function assertChallenged(answer: Answer, error: string | undefined, scheme: "Bearer" | "DPoP"): void {
  const challenge = answer.headers["www-authenticate"] ?? "";
  assert.equal(answer.status, 401, answer.text);
  assert.equal(answer.body.error, error);
  const [bearer = "", dpop = ""] = challenge.split(/, (?=DPoP )/);
  assert.match(bearer, /^Bearer realm="as\.example"/);
  // RFC9449-7.1-3
  assert.match(dpop, /^DPoP realm="as\.example".*, algs="ES256 ES384 EdDSA Ed25519 PS256"$/);
  const used = scheme === "DPoP" ? [dpop, bearer] : [bearer, dpop];
  const errors = used.map((one) => /error="(\w+)"/.exec(one)?.[1]);
  assert.deepEqual(errors, [error, undefined]);
}

test("RFC9449-7.1-1 a bound token is accepted with a proof for it", async () => {
  const token = await ownToken(prove());
  const { status, text } = await call(withProof(token));
  assert.equal(status, 200, text);
});

test("RFC9449-7.2-1, RFC9700-4.10.1-1 a stolen bound token is refused under the scheme Bearer, with a proof beside it too", async () => {
  const token = await ownToken(prove());
  const { dpop = "" } = withProof(token);
  for (const beside of [{}, { dpop }]) {
    assertChallenged(await call({ authorization: `Bearer ${token}`, ...beside }), "invalid_token", "Bearer");
  }
});

test("HTTP-D-28, RFC9449-5-2 a field DPoP under the scheme Bearer is a valid proof, or the request is refused", async () => {
  const token = await ownToken(undefined);
  const authorization = `Bearer ${token}`;
  const { dpop = "" } = withProof(token);
  assert.equal((await call({ authorization, dpop })).status, 200);
  assertChallenged(await call({ authorization, dpop }), "invalid_dpop_proof", "Bearer");
  for (const wrong of ["", "proof", prove(), withProof(`${token}x`).dpop ?? ""]) {
    assertChallenged(await call({ authorization, dpop: wrong }), "invalid_dpop_proof", "Bearer");
  }
  const off = await ownToken(undefined, without);
  const answer = await call({ authorization: `Bearer ${off}`, dpop: withProof(off).dpop ?? "" }, without);
  assert.deepEqual([answer.status, answer.body.error], [401, "invalid_dpop_proof"]);
});

test("RFC9449-6-2, RFC9449-4.3-12 a stolen bound token is refused with the proof of another key", async () => {
  const token = await ownToken(prove());
  assertChallenged(await call(withProof(token, {}, thief)), "invalid_token", "DPoP");
});

const WRONG_HERE: [name: string, headers: (token: string) => Record<string, string>][] = [
  ["RFC9449-7-1, RFC9449-7.1-1 no proof", (token) => ({ authorization: `DPoP ${token}` })],
  [
    "RFC9449-7-1, RFC9449-4.2-6, RFC9449-4.3-12 no ath",
    (token) => withProof(token, { claims: { ath: undefined } }),
  ],
  [
    "RFC9449-4.3-12 the ath of another token",
    (token) => withProof(token, { claims: { ath: athOf(`${token}x`) } }),
  ],
  ["RFC9449-4.3-9 another URL", (token) => withProof(token, { claims: { htu: HERE } })],
  ["RFC9449-4.3-6 a bad signature", (token) => withProof(token, { header: { jwk: thief.jwk } })],
];
for (const [name, headers] of WRONG_HERE) {
  test(`RFC9449-7.1-2, RFC9449-7.1-3, RFC9449-7.2-3, ${name}: invalid_dpop_proof`, async () => {
    assertChallenged(await call(headers(await ownToken(prove()))), "invalid_dpop_proof", "DPoP");
  });
}

test("RFC9449-7.1-1 an unbound token is refused under the scheme DPoP", async () => {
  const token = await ownToken(undefined);
  assertChallenged(await call(withProof(token)), "invalid_token", "DPoP");
  assert.equal((await call({ authorization: `Bearer ${token}` })).status, 200);
});

test("HTTP-D-29, RFC9449-11.1-2, AUDIT-D-2 a proof is used once at our own endpoints, and not by a request that is refused", async () => {
  const token = await ownToken(prove());
  const headers = withProof(token);
  assertChallenged(await call({ ...headers, authorization: `DPoP ${token}x` }), "invalid_dpop_proof", "DPoP");
  const scope = await ask(prove(), { ...CC, audience: OWN, scope: "consent:manage" });
  const narrow = withProof(String(scope.body.access_token));
  for (const _ of [1, 2]) assert.equal((await call(narrow)).status, 403);
  assert.equal((await call(headers)).status, 200);
  const again = await call(headers);
  assertChallenged(again, "invalid_dpop_proof", "DPoP");
  const replay = await eventOf(again);
  assert.equal(replay?.type, "replay.detected");
  const client = { client_id: "operator", auth_method: "bearer", jti: claimsOf(token).jti, jkt: prover.jkt };
  assert.deepEqual(replay.client, client);
  const used = (await service.events()).filter(({ reason }) => reason === "proof_used").at(-1);
  assert.deepEqual(used?.client, client);
});

test("RFC9449-7.2-2 a request without credentials gets both challenges without an error", async () => {
  assertChallenged(await call({}), undefined, "Bearer");
  assertChallenged(await call({ authorization: "Other x" }), undefined, "Bearer");
});

test("RFC9449-7.1-1, RFC6750-3.1-1 malformed credentials of the scheme, and a token in the query", async () => {
  const token = await ownToken(prove());
  for (const value of ["DPoP", "DPoP a b", `DPoP "${token}"`]) {
    const { status, body } = await call({ ...withProof(token), authorization: value });
    assert.deepEqual([status, body.error], [400, "invalid_request"], value);
  }
  const inQuery = await call(withProof(token), service, `/policy/explain?access_token=${token}`);
  assert.deepEqual([inQuery.status, inQuery.body.error], [400, "invalid_request"]);
});

test("HTTP-D-31, RFC9449-8-1, RFC9449-8-2 at our own endpoints a nonce is demanded by a challenge", async () => {
  const nonce = (await ask(prove(), CC, noncing)).headers["dpop-nonce"];
  const token = await ownToken(prove({ claims: { nonce } }), noncing);
  const challenge = await call(withProof(token), noncing);
  assertChallenged(challenge, "use_dpop_nonce", "DPoP");
  const newest = challenge.headers["dpop-nonce"];
  const { status, text } = await call(withProof(token, { claims: { nonce: newest } }), noncing);
  assert.equal(status, 200, text);
});

test("RFC9449-7.1-1 where DPoP is off, its scheme is not offered", async () => {
  const token = await ownToken(undefined, without);
  const { status, headers } = await call(withProof(token), without);
  assert.equal(status, 401);
  const challenge = headers["www-authenticate"] ?? "";
  assert.ok(challenge.startsWith('Bearer realm="as.example"') && !challenge.includes("DPoP"), challenge);
});

test("RFC9449-7.1-1 registration and consents take a bound administrator's token too, and no other credential under the scheme", async () => {
  const bound = async (scope: string): Promise<string> =>
    String((await ask(prove(), { ...CC, audience: OWN, scope })).body.access_token);
  const admin = await bound("client:manage");
  const register = (token: string): Promise<Answer> =>
    service.get("/register", {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: `DPoP ${token}`,
        dpop: prover.prove(`${ISSUER}/register`, { claims: { ath: athOf(token) } }),
      },
      body: JSON.stringify({ grant_types: ["client_credentials"] }),
    });
  const registered = await register(admin);
  assert.equal(registered.status, 201, registered.text);
  assertChallenged(await register(await createInitialToken(service, "crew")), "invalid_token", "DPoP");
  const uri = new URL(String(registered.body.registration_client_uri));
  const own = String(registered.body.registration_access_token);
  const manage = (headers: Record<string, string>): Promise<Answer> => service.get(uri.pathname, { headers });
  const proof = prover.prove(uri.href, { claims: { htm: "GET", ath: athOf(own) } });
  assertChallenged(await manage({ authorization: `DPoP ${own}`, dpop: proof }), "invalid_token", "DPoP");
  assert.equal((await manage({ authorization: `Bearer ${own}` })).status, 200);
  const consents = await bound("consent:manage");
  const listed = await service.get("/consents", {
    headers: {
      authorization: `DPoP ${consents}`,
      dpop: prover.prove(`${ISSUER}/consents`, { claims: { htm: "GET", ath: athOf(consents) } }),
    },
  });
  assert.equal(listed.status, 200, listed.text);
});

test("RFC9449-7.1-1, RFC9449-7.2-1 a user's own token for consents that its issuer bound needs a proof too", async () => {
  const token = await service.idp.mintUserToken({
    sub: "u-1",
    aud: `${ISSUER}/consents`,
    claims: { azp: "account", cnf: { jkt: prover.jkt } },
  });
  const list = (headers: Record<string, string>): Promise<Answer> => service.get("/consents", { headers });
  const by = ({ prove }: Prover) => ({
    authorization: `DPoP ${token}`,
    dpop: prove(`${ISSUER}/consents`, { claims: { htm: "GET", ath: athOf(token) } }),
  });
  assertChallenged(await list({ authorization: `Bearer ${token}` }), "invalid_token", "Bearer");
  assertChallenged(await list(by(thief)), "invalid_token", "DPoP");
  assert.equal((await list(by(prover))).status, 200);
});

test("RFC9449-5-1 a question to the policy is told the binding that would be demanded", async () => {
  const token = await ownToken(undefined);
  const { body } = await call({ authorization: `Bearer ${token}` });
  assert.equal(body.decision, "allow");
  assert.equal((body.would_issue as { binding?: string }).binding, "dpop");
  assert.match(String(body.explanation), /needs a DPoP proof/);
});

test("RFC9449-6.2-1, RFC9449-6.2-2, RFC9449-6.2-3 introspection tells the key of a bound token, and asks for no proof of it", async () => {
  const introspect = async (token: unknown): Promise<Record<string, unknown>> => {
    const headers = {
      authorization: basic("operator", SECRET),
      "content-type": "application/x-www-form-urlencoded",
    };
    return (await service.get("/introspect", { method: "POST", headers, body: `token=${token}` })).body;
  };
  const bound = await introspect((await ask(prove())).body.access_token);
  assert.deepEqual([bound.active, bound.token_type, bound.cnf], [true, "DPoP", { jkt: prover.jkt }]);
  const plain = await introspect((await ask(undefined)).body.access_token);
  assert.deepEqual([plain.active, plain.token_type, plain.cnf], [true, "Bearer", undefined]);
});

// --- bound input --------------------------------------------------------------------------------------------------

/** What the planner holds: a token for the booking agent, bound to the planner's key. */
async function heldByPlanner(): Promise<string> {
  const svid = await service.svid("agents/planner");
  const subject_token = await service.idp.mintUserToken({ sub: "u-1", aud: ISSUER, scope: "trips.read" });
  const form = { grant_type: EXCHANGE, subject_token, subject_token_type: JWT, audience: "booking-agent" };
  const actor = { actor_token: svid, actor_token_type: JWT };
  const answer = await service.token({ ...form, ...actor, ...service.as(svid) }, { dpop: prove() });
  assertBound(answer);
  return String(answer.body.access_token);
}

async function exchange(subject_token: string, proof: string | undefined): Promise<Answer> {
  const svid = await service.svid("agents/booking");
  const form = { grant_type: EXCHANGE, subject_token, subject_token_type: ACCESS_TOKEN, audience: API };
  const actor = { actor_token: svid, actor_token_type: JWT };
  return service.token(
    { ...form, ...actor, ...service.as(svid) },
    proof === undefined ? {} : { dpop: proof },
  );
}

test("RFC9449-4.3-12, RFC9700-4.10.1-1, IDC-5.2-1 a stolen bound token is not exchanged", async () => {
  const held = await heldByPlanner();
  for (const proof of [undefined, thief.prove(HERE)]) {
    await assertRefused(await exchange(held, proof), "invalid_request", "subject_key_not_proven");
  }
  // The holder of the key may, and the trail names the key of both tokens.
  const answer = await exchange(held, prove());
  assertBound(answer);
  const event = await eventOf(answer);
  assert.ok(event);
  assert.deepEqual((event as Trailed).subject?.token.cnf, { jkt: prover.jkt });
});

test("RFC9449-4.3-12 a stolen bound token is no actor token", async () => {
  const own = await ask(prove(), CC, service, "desk");
  const actor_token = String(own.body.access_token);
  const subject_token = await service.idp.mintUserToken({ sub: "u-1", aud: ISSUER, scope: "trips.read" });
  const form = { grant_type: EXCHANGE, subject_token, subject_token_type: JWT, audience: API };
  const act = (proof: string | undefined): Promise<Answer> =>
    ask(proof, { ...form, actor_token, actor_token_type: ACCESS_TOKEN }, service, "desk");
  for (const proof of [undefined, thief.prove(HERE)]) {
    await assertRefused(await act(proof), "invalid_request", "actor_key_not_proven");
  }
  assert.deepEqual(assertBound(await act(prove())).act, { sub: DESK });
});

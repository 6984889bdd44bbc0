/** Codes that are bound to the key of a DPoP proof (RFC 9449 10): by `dpop_jkt`, or by a proof with the pushed request. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Answer, encodeForm } from "../../../scripts/http-client.ts";
import { makeProver, type Prover } from "../../support/dpop.ts";
import {
  AS_WEB,
  type Asked,
  Browser,
  files,
  forPeople,
  LOOPBACK_REDIRECT,
  PRIVATE,
  PUBLIC,
  parametersOf,
  redeem,
  request,
  SCOPES,
  verifierOf,
} from "../../support/people.ts";
import { startProvider, type TestProvider } from "../../support/provider.ts";
import { makeService } from "../../support/service.ts";
import { stop } from "../../support/stop.ts";
import { claimsOf, ISSUER, type Service } from "../../support/world.ts";

let provider: TestProvider;
let service: Service;
let owner: Prover;
let other: Prover;
const publicly = { client_id: PUBLIC, redirect_uri: LOOPBACK_REDIRECT };

before(async () => {
  [owner, other] = [await makeProver(), await makeProver("EdDSA")];
  provider = await startProvider();
  service = await openService();
});
after(() => stop(service, provider));

const openService = (dpop: object = {}): Promise<Service> => {
  const base = forPeople(provider);
  const policies = base.policies.map((rule) => ({ ...rule, refresh: true }));
  return makeService({ ...base, policies, dpop }, { files: files(provider) });
};

/** What a browser comes back with once its user allowed this request. */
const allow = (asked: Asked, at = service): Promise<string> => new Browser(at, provider).codeFor(asked);

const redeemBy = (
  by: Prover | undefined,
  code: string,
  verifier: string,
  extra: Asked = {},
  headers: Record<string, string> = AS_WEB,
): Promise<Answer> =>
  redeem(service, code, verifier, extra, {
    ...headers,
    ...(by && { dpop: by.prove(`${ISSUER}/token`) }),
  });

const push = (
  asked: Asked,
  headers: Record<string, string> = {},
  at = service,
  identity: Record<string, string> = AS_WEB,
): Promise<Answer> =>
  at.get("/par", {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded", ...identity, ...headers },
    body: encodeForm(asked),
  });

/** Pushes, and lets the user allow what was pushed. */
async function allowPushed(verifier: string, extra: Asked, headers: Record<string, string>): Promise<string> {
  const pushed = await push(request(verifier, extra), headers);
  assert.equal(pushed.status, 201, pushed.text);
  return allow({ client_id: PRIVATE, request_uri: String(pushed.body.request_uri) });
}

const atPar = (by: Prover, changes?: Parameters<Prover["prove"]>[1]) => ({
  dpop: by.prove(`${ISSUER}/par`, changes),
});

const lastReason = async (type: string, at = service): Promise<unknown> =>
  (await at.events()).findLast((event) => event.type === type)?.reason;

const errorOf = ({ status, body }: Answer): unknown[] => [status, body.error];

// --- dpop_jkt (10) ------------------------------------------------------------------------------------------------

test("RFC9449-10-1 a code that was asked for with dpop_jkt is redeemed with a proof by that key", async () => {
  const verifier = verifierOf();
  const code = await allow(request(verifier, { dpop_jkt: owner.jkt }));
  const { status, body } = await redeemBy(owner, code, verifier);
  assert.deepEqual([status, body.token_type], [200, "DPoP"]);
  assert.deepEqual(claimsOf(String(body.access_token)).cnf, { jkt: owner.jkt });
});

for (const [name, by] of [
  ["a proof by another key", () => other],
  ["no proof", () => undefined],
] as const) {
  test(`RFC9449-10-1 ${name} for a code that was asked for with dpop_jkt uses the code up, and is refused`, async () => {
    const verifier = verifierOf();
    const code = await allow(request(verifier, { dpop_jkt: owner.jkt }));
    assert.deepEqual(errorOf(await redeemBy(by(), code, verifier)), [400, "invalid_grant"]);
    assert.equal(await lastReason("token.denied"), "code_key_not_proven");
    assert.deepEqual(errorOf(await redeemBy(owner, code, verifier)), [400, "invalid_grant"]);
  });
}

test("RFC9449-10-1, RFC9449-5-5, RFC9449-5-7 a public client's refresh token has the key of its code, and any other is refused", async () => {
  const verifier = verifierOf();
  const asked = { ...publicly, dpop_jkt: owner.jkt, scope: [...SCOPES, "offline_access"].join(" ") };
  const first = await redeemBy(owner, await allow(request(verifier, asked)), verifier, publicly, {});
  assert.equal(first.status, 200, first.text);
  const refresh = (by: Prover): Promise<Answer> =>
    service.token(
      { grant_type: "refresh_token", refresh_token: String(first.body.refresh_token), client_id: PUBLIC },
      { dpop: by.prove(`${ISSUER}/token`) },
    );
  assert.deepEqual(errorOf(await refresh(other)), [400, "invalid_grant"]);
  assert.equal((await refresh(owner)).status, 200);
});

test("RFC9449-10-1 a dpop_jkt that is no SHA-256 thumbprint is told to the client, and refused", async () => {
  for (const dpop_jkt of ["short", `${owner.jkt}=`, `${owner.jkt.slice(0, -1)}_`]) {
    const answer = await new Browser(service, provider).authorize(request(verifierOf(), { dpop_jkt }));
    assert.equal(parametersOf(answer).error, "invalid_request", dpop_jkt);
  }
  const twice = encodeForm({ ...request(verifierOf()), dpop_jkt: [owner.jkt, owner.jkt] });
  const answer = await new Browser(service, provider).get(`/authorize?${twice}`);
  assert.equal(answer.status, 400);
});

test("RFC9449-10-1, RFC9449-10.1-2 where DPoP is off, a request that wants a bound code is refused", async (t) => {
  const without = await openService({ algorithms: [] });
  t.after(() => without.stop());
  const answer = await new Browser(without, provider).authorize(
    request(verifierOf(), { dpop_jkt: owner.jkt }),
  );
  assert.equal(parametersOf(answer).error, "invalid_request");
  const pushed = await push(request(verifierOf(), { dpop_jkt: owner.jkt }), {}, without);
  assert.deepEqual(errorOf(pushed), [400, "invalid_request"]);
  assert.equal(await lastReason("authorization.denied", without), "dpop_jkt_unsupported");
  const proven = await push(request(verifierOf()), atPar(owner), without);
  assert.deepEqual(errorOf(proven), [400, "invalid_dpop_proof"]);
});

// --- pushed requests (10.1) ---------------------------------------------------------------------------------------

for (const [name, extra, headers] of [
  ["RFC9449-10.1-1 a proof", () => ({}), () => atPar(owner)],
  ["RFC9449-10.1-2 dpop_jkt", () => ({ dpop_jkt: owner.jkt }), () => ({})],
  ["RFC9449-10.1-3 both, of one key,", () => ({ dpop_jkt: owner.jkt }), () => atPar(owner)],
] as const) {
  test(`${name} with the pushed request binds the code: its own key is accepted, and any other refused`, async () => {
    const verifier = verifierOf();
    const code = await allowPushed(verifier, extra(), headers());
    assert.deepEqual(errorOf(await redeemBy(other, code, verifier)), [400, "invalid_grant"]);
    const next = verifierOf();
    const { status, body } = await redeemBy(owner, await allowPushed(next, extra(), headers()), next);
    assert.deepEqual([status, body.token_type], [200, "DPoP"]);
  });
}

test("RFC9449-10.1-3 a pushed request with the proof of one key and the dpop_jkt of another is refused", async () => {
  const pushed = await push(request(verifierOf(), { dpop_jkt: owner.jkt }), atPar(other));
  assert.deepEqual(errorOf(pushed), [400, "invalid_request"]);
  assert.equal(await lastReason("authorization.denied"), "dpop_jkt_differs");
});

for (const [name, headers, reason] of [
  ["for the token endpoint", () => ({ dpop: owner.prove(`${ISSUER}/token`) }), "proof_url_differs"],
  ["that is too old", () => atPar(owner, { claims: { iat: 1 } }), "proof_jwt_too_old"],
  [
    "that another key signed",
    () => atPar(owner, { header: { jwk: other.jwk, alg: "EdDSA" } }),
    "proof_signature_invalid",
  ],
  ["that is no JWT", () => ({ dpop: "no proof" }), "proof_jws_not_compact"],
] as const) {
  test(`RFC9449-10.1-1 a proof ${name} is not ignored at /par, and the request is refused`, async () => {
    const pushed = await push(request(verifierOf()), headers());
    assert.deepEqual(errorOf(pushed), [400, "invalid_dpop_proof"]);
    assert.equal(await lastReason("authorization.denied"), reason);
    const denied = (await service.events()).findLast(({ type }) => type === "authorization.denied");
    assert.equal(Object(denied?.client).client_id, PRIVATE);
  });
}

test("RFC9449-4.1-1 a proof in the body of a pushed request is refused", async () => {
  const pushed = await push(request(verifierOf(), { DPoP: owner.prove(`${ISSUER}/par`) }));
  assert.deepEqual(errorOf(pushed), [400, "invalid_dpop_proof"]);
});

test("RFC9449-10.1-1 a public client's proof binds its pushed request; a wrong one is counted, and refused", async () => {
  const asked = request(verifierOf(), publicly);
  const refused = await push(asked, { dpop: "no proof" }, service, {});
  assert.deepEqual(errorOf(refused), [400, "invalid_dpop_proof"]);
  const verifier = verifierOf();
  const pushed = await push(request(verifier, publicly), atPar(owner), service, {});
  assert.equal(pushed.status, 201, pushed.text);
  const code = await allow({ client_id: PUBLIC, request_uri: String(pushed.body.request_uri) });
  assert.deepEqual(errorOf(await redeemBy(other, code, verifier, publicly, {})), [400, "invalid_grant"]);
});

test("RFC9449-8-2, RFC9449-8-4, RFC9449-10.1-1 where the token endpoint demands nonces, /par does: a proof without one is refused", async (t) => {
  const demanding = await openService({ nonces: ["token"] });
  t.after(() => demanding.stop());
  const first = await push(request(verifierOf()), atPar(owner), demanding);
  assert.deepEqual(errorOf(first), [400, "use_dpop_nonce"]);
  const nonce = String(first.headers["dpop-nonce"]);
  const second = await push(request(verifierOf()), atPar(owner, { claims: { nonce } }), demanding);
  assert.equal(second.status, 201, second.text);
  assert.equal(second.headers["dpop-nonce"], nonce);
});

/** Tokens of ours that come back: which of the JWTs that we sign are access tokens, under whatever type they are sent. */

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { introspect } from "../../src/flows/introspect.ts";
import { answerTokenRequest } from "../../src/flows/token.ts";
import { verifyAssertion } from "../../src/flows/verify-assertion.ts";
import type { Signer } from "../../src/ports.ts";
import { TOKEN_PATH } from "../../src/settings/audiences.ts";

import { JWT_BEARER, JWT_BEARER_GRANT } from "../../src/spec/rfc7523.ts";
import type { JsonObject } from "../../src/spec/rfc8259.ts";
import { AT_TOKEN, formOf, openFlow } from "../support/flow.ts";
import { ACCESS_TOKEN, claimsOf, EXCHANGE, ISSUER, JWT, workload } from "../support/world.ts";

const ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token";
const DESK = "https://desk.example";
const PLAIN = "https://plain.example";
const PARTNER = "https://as.partner.example";
const scopes = ["trips.read"];
const crew = workload("crew");

const configured = (typ: string) => ({
  drafts: ["draft-ietf-oauth-identity-chaining-17", "draft-ietf-oauth-identity-assertion-authz-grant-04"],
  trustedIssuers: {
    [PARTNER]: {
      keys: { url: `${PARTNER}/jwks` },
      acceptAs: [],
      subjects: { prefix: "p:" },
      grants: { scopes },
    },
  },
  clients: {
    app: { method: "client_secret_basic", secrets: ["a secret that nothing reads 1234567"], workload: crew },
    source: { method: "client_secret_basic", secrets: ["a secret that nothing reads 1111111"] },
    gate: { method: "client_secret_basic", secrets: ["a secret that nothing reads 7654321"] },
  },
  targets: [
    { names: [DESK], owners: [crew], introspectors: ["gate"], scopes },
    { names: [PLAIN], owners: [crew], introspectors: ["gate"], typ, scopes },
    { kind: "partner", issuer: PARTNER, scopes },
  ],
  policies: [
    {
      id: "own",
      allow: "client_credentials",
      clients: ["source"],
      targets: [DESK, PLAIN, `${ISSUER}/api`],
      scopes: [...scopes, "policy:explain"],
    },
    {
      id: "on",
      allow: "impersonation",
      clients: ["app"],
      subjects: { issuers: [ISSUER] },
      subjectToken: { audiences: ["self"] },
      consent: "implied",
      acknowledge: "subjects-not-asked",
      targets: [DESK, PLAIN],
      scopes,
    },
    {
      id: "abroad",
      allow: "impersonation",
      clients: ["app"],
      subjects: { issuers: [ISSUER] },
      subjectToken: { audiences: ["self"] },
      consent: "implied",
      acknowledge: "subjects-not-asked",
      issues: "grant",
      targets: [PARTNER],
      scopes,
    },
  ],
});

async function openDesk(t: TestContext) {
  const flow = await openFlow(t, configured("JWT"), {});
  const answer = (by: string, form: Record<string, string>) =>
    answerTokenRequest(
      flow.ports,
      {
        client: flow.client(by),
        form: formOf(form),
        request: { id: "r", endpoint: "/token", source_ip: "192.0.2.1" },
      },
      AT_TOKEN,
      flow.people,
    );
  const obtain = async (form: Record<string, string>): Promise<string> => {
    const got = await answer("source", { grant_type: "client_credentials", scope: "trips.read", ...form });
    assert.ok(got.ok, JSON.stringify(got));
    return got.value.access_token;
  };
  const exchange = async (token: string, type = JWT, audience = DESK) => {
    const form = { grant_type: EXCHANGE, subject_token: token, subject_token_type: type, audience };
    const got = await answer("app", form);
    return got.ok ? got.value.access_token : "event" in got.error ? String(got.error.event.reason) : "waits";
  };
  /** The same claims, but for what changes, signed by a key of ours as a JWT of this type. */
  const resign = async (signer: Signer, token: string, typ: string, change: JsonObject = {}) =>
    signer.sign(
      await signer.current("ES256"),
      typ,
      JSON.stringify({ ...(claimsOf(token) as JsonObject), ...change }),
    );
  return { ...flow, answer, obtain, exchange, resign };
}

const headerOf = (token: string): JsonObject =>
  JSON.parse(Buffer.from(token.split(".")[0] ?? "", "base64url").toString());

for (const type of [ACCESS_TOKEN, JWT]) {
  test(`RFC8693-D-1 an access token of ours is taken as ${type.split(":").at(-1)}, and nothing else that we sign is`, async (t) => {
    const { ports, obtain, exchange, resign } = await openDesk(t);
    const token = await obtain({ audience: DESK });
    assert.equal(claimsOf(await exchange(token, type)).aud, DESK);
    const grant = await exchange(token, type, PARTNER);
    assert.equal(headerOf(grant).typ, "authz-grant+jwt");
    const { signer, grantSigner } = ports;
    const forOwn = await obtain({ audience: `${ISSUER}/api`, scope: "policy:explain" });
    const refused: [string, string, string][] = [
      ["a grant for a partner", grant, "subject_jwt_type_refused"],
      [
        "a grant for a partner that is typed as an access token",
        await resign(grantSigner, grant, "at+jwt"),
        "subject_key_unknown",
      ],
      [
        "such a grant under the key of access tokens",
        await resign(signer, grant, "JWT"),
        "subject_jwt_type_refused",
      ],
      ["a security event", await resign(signer, token, "secevent+jwt"), "subject_jwt_type_refused"],
      ["a checkpoint", await resign(signer, token, "audit-checkpoint+jwt"), "subject_jwt_type_refused"],
      [
        "a client assertion",
        await resign(signer, token, "JWT", { aud: PARTNER }),
        "subject_jwt_type_refused",
      ],
      [
        "a token without a row",
        await resign(signer, token, "at+jwt", { jti: "unknown" }),
        "subject_token_unknown",
      ],
      ["a token for our own endpoints", forOwn, "subject_token_for_own_endpoints"],
    ];
    for (const [name, one, reason] of refused) assert.equal(await exchange(one, type), reason, name);
    assert.equal(await exchange(token, ID_TOKEN), "subject_issuer_unknown");
  });
}

test("RFC9068-D-1 an access token of ours that is typed JWT is no grant and authenticates no client", async (t) => {
  const { ports, answer, obtain } = await openDesk(t);
  const token = await obtain({ audience: PLAIN });
  const grant = await answer("app", { grant_type: JWT_BEARER_GRANT, assertion: token });
  assert.equal(!grant.ok && "event" in grant.error && grant.error.event.reason, "grant_self_issued");
  const presented = { kind: "assertion", type: JWT_BEARER, assertion: token } as never;
  const proven = await verifyAssertion(
    ports as never,
    presented,
    { address: "192.0.2.1", certificates: [] },
    {} as never,
    TOKEN_PATH,
  );
  assert.deepEqual(proven, { ok: false, error: { reason: "issuer_does_not_vouch" } });
});

test("RFC9068-D-1 a target may have its access tokens typed JWT, and they are exchanged and introspected as such", async (t) => {
  const { ports, client, obtain, exchange, resign, reload } = await openDesk(t);
  const ask = async (token: string) => (await introspect(ports, client("gate"), token)).answer.active;
  const [plain, typed] = [await obtain({ audience: PLAIN }), await obtain({ audience: DESK })];
  assert.deepEqual([headerOf(plain).typ, headerOf(typed).typ], ["JWT", "at+jwt"]);
  assert.equal(claimsOf(await exchange(plain)).aud, DESK);
  assert.equal(claimsOf(await exchange(plain, ACCESS_TOKEN)).aud, DESK);
  assert.equal(await exchange(plain, ID_TOKEN), "subject_issuer_unknown");
  assert.deepEqual([await ask(plain), await ask(typed)], [true, true]);
  // Each target has one type: the other one is no access token for it.
  const swapped = [
    await resign(ports.signer, typed, "JWT"),
    await resign(ports.signer, plain, "at+jwt"),
    // The row tells the target, whatever the token says of it.
    await resign(ports.signer, typed, "JWT", { aud: PLAIN }),
    await resign(ports.signer, plain, "at+jwt", { aud: DESK }),
  ];
  for (const one of swapped) {
    assert.match(await exchange(one), /^subject_(jwt_type_refused|token_unknown)$/);
    assert.equal(await ask(one), false);
  }
  reload(configured("at+jwt"));
  assert.equal(await exchange(plain), "subject_jwt_type_refused");
  assert.equal(await ask(plain), false);
});

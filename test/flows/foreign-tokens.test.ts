/** Subject tokens of a trusted issuer: every algorithm, the types of their headers, and the types that are declared. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Answer } from "../../scripts/http-client.ts";
import { type Forgery, forge, makeKey, seconds } from "../support/forge.ts";
import { makeService } from "../support/service.ts";
import { stop } from "../support/stop.ts";
import { ACCESS_TOKEN, EXCHANGE, IDP, ISSUER, JWT, type Service, workload } from "../support/world.ts";

const API = "https://api.example";
const ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token";
const LAX = "https://lax.example";
const ec = makeKey("ES256", "ec");
const keys = [ec, ...["EdDSA", "RS256"].map((alg) => makeKey(alg, alg))];

let world: Service;

before(async () => {
  const from = { keys: { file: "jwks.json" }, scopes: ["read"] };
  world = await makeService(
    {
      trustedIssuers: {
        [IDP]: { ...from, acceptAs: ["jwt", "id_token"], subjects: "keep" },
        [LAX]: { ...from, acceptAs: ["access_token"], subjects: { prefix: "lax:" } },
      },
      targets: [{ names: [API], scopes: ["read"] }],
      policies: [
        {
          id: "delegates",
          allow: "delegation",
          actors: [workload("*")],
          subjects: { issuers: [IDP, LAX] },
          subjectToken: { audiences: [ISSUER] },
          consent: "implied",
          acknowledge: "subjects-not-asked",
          targets: [API],
          scopes: ["read"],
        },
      ],
    },
    { files: { "jwks.json": JSON.stringify({ keys: keys.map(({ jwk }) => jwk) }) } },
  );
});

after(() => stop(world));

const tokenOf = (iss: string, forgery: Forgery = {}, key = ec): string => {
  const now = seconds();
  return forge(key, { iss, sub: "u-1", aud: ISSUER, iat: now, exp: now + 60, jti: "j" }, forgery);
};

async function exchange(subjectToken: string, type: string): Promise<Answer> {
  const svid = await world.svid("agents/planner");
  return world.token({
    grant_type: EXCHANGE,
    subject_token: subjectToken,
    subject_token_type: type,
    actor_token: svid,
    actor_token_type: JWT,
    ...world.as(svid),
    audience: API,
  });
}

const cases: [name: string, token: () => string, type: string, want: string][] = [
  ...keys.map((key): [string, () => string, string, string] => [
    `RFC8725-3.2-v2 a signature by ${key.alg}`,
    () => tokenOf(IDP, {}, key),
    JWT,
    "issued",
  ]),
  ...["JWT", "at+jwt", "application/at+jwt"].map((typ): [string, () => string, string, string] => [
    `RFC8725-3.11-v1 the type ${typ}`,
    () => tokenOf(IDP, { header: { typ } }),
    JWT,
    "issued",
  ]),
  [
    "RFC8725-3.11-v1 the type of a logout token",
    () => tokenOf(IDP, { header: { typ: "logout+jwt" } }),
    JWT,
    "subject_jwt_type_refused",
  ],
  [
    "CONF-D-7, RFC8725-3.12-v1 an ID token under another type",
    () => tokenOf(IDP, { claims: { nonce: "n" } }),
    JWT,
    "subject_untyped_id_token",
  ],
  [
    "CONF-D-7, RFC8725-3.12-v1 an ID token typed JWT, under another type",
    () => tokenOf(IDP, { claims: { nonce: "n" }, header: { typ: "JWT" } }),
    JWT,
    "subject_untyped_id_token",
  ],
  [
    "CONF-D-7 an access token that says so, with a nonce",
    () => tokenOf(IDP, { claims: { nonce: "n" }, header: { typ: "at+jwt" } }),
    JWT,
    "issued",
  ],
  [
    "OIDC-D-10 an ID token for us and for an audience that is not trusted",
    () => tokenOf(IDP, { claims: { nonce: "n", aud: [ISSUER, "https://app.example"] } }),
    ID_TOKEN,
    "subject_jwt_audience_untrusted",
  ],
  [
    "RFC7519-4.1.3-v1 another token for us and for an audience that is not ours",
    () => tokenOf(IDP, { claims: { aud: [ISSUER, "https://app.example"] } }),
    JWT,
    "issued",
  ],
  ["RFC8725-3.12-v1 an ID token as one", () => tokenOf(IDP, { claims: { nonce: "n" } }), ID_TOKEN, "issued"],
  ...[JWT, ID_TOKEN].flatMap((type) =>
    [undefined, "JWT"].map((typ): [string, () => string, string, string] => [
      `CONF-D-7, RFC8725-3.12-v1 a security event typed ${typ}, as ${type.slice(-8)}`,
      () => tokenOf(IDP, { claims: { events: {} }, header: { typ } }),
      type,
      "subject_untyped_event",
    ]),
  ),
  [
    "RFC8693-3-3 a foreign access token as a JWT",
    () => tokenOf(LAX),
    JWT,
    "subject_issuer_not_accepted_as_type",
  ],
  [
    "RFC8693-3-3 a foreign access token whose issuer's entry says it",
    () => tokenOf(LAX),
    ACCESS_TOKEN,
    "issued",
  ],
  [
    "RFC8693-3-3 a foreign access token of another issuer",
    () => tokenOf(IDP),
    ACCESS_TOKEN,
    "subject_jwt_type_refused",
  ],
  [
    "RFC8693-3-3 a token in our name by a foreign key",
    () => tokenOf(ISSUER, { header: { typ: "at+jwt" } }),
    ACCESS_TOKEN,
    "subject_key_unknown",
  ],
];
for (const [name, token, type, want] of cases) {
  test(`${name}: ${want}`, async () => {
    const answer = await exchange(token(), type);
    const refused = answer.status === 200 ? "issued" : (await world.events()).at(-1)?.reason;
    assert.equal(refused, want, answer.text);
    if (refused !== "issued") assert.deepEqual([answer.status, answer.body.error], [400, "invalid_request"]);
  });
}

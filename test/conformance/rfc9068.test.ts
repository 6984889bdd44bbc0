/** Validation of our access tokens, by resource servers with the published keys, and by our own endpoints. */
import assert from "node:assert/strict";
import { createPrivateKey, sign } from "node:crypto";
import { after, before, test } from "node:test";
import { createLocalJWKSet, jwtVerify } from "jose";
import { makeKeyPem } from "../../scripts/dev-keys.ts";
import { type Answer, basic } from "../../scripts/http-client.ts";
import { stop } from "../support/stop.ts";
import { claimsOf, ISSUER, makeWorld, type World } from "../support/world.ts";

const SECRET = "operator-operator-operator-12345";
const OWN = `${ISSUER}/api`;
const DOCUMENTS = ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"];
const APIS = { ES256: "https://es.example", EdDSA: "https://ed.example", RS256: "https://rs.example" };

const CONFIGURATION = {
  clients: { operator: { method: "client_secret_basic", secrets: [SECRET] } },
  targets: Object.entries(APIS).map(([alg, name]) => ({ names: [name], scopes: ["read"], alg })),
  policies: [
    {
      id: "operator",
      allow: "client_credentials",
      clients: ["operator"],
      targets: [OWN, ...Object.values(APIS)],
      scopes: ["policy:explain", "read"],
    },
  ],
  limits: { failuresPerMinuteBySource: 100_000, failuresPerMinuteByClient: 100_000 },
};

let world: World;
let token: string;

before(async () => {
  world = await makeWorld(CONFIGURATION);
  token = await obtain(OWN);
});

after(() => stop(world));

async function obtain(audience: string): Promise<string> {
  const form = { grant_type: "client_credentials", audience };
  const answer = await world.token(form, { authorization: basic("operator", SECRET) });
  assert.equal(answer.status, 200, answer.text);
  return String(answer.body.access_token);
}

const present = (bearer: string): Promise<Answer> =>
  world.get("/policy/explain", {
    method: "POST",
    headers: { authorization: `Bearer ${bearer}`, "content-type": "application/json" },
    body: JSON.stringify({ client: "operator", target: OWN }),
  });

// --- by resource servers ------------------------------------------------------------------------------------------

test("RFC9068-4-2, RFC9068-4-3, RFC9068-4-4 both metadata documents have the same values and name the key set", async () => {
  const [one, other] = await Promise.all(DOCUMENTS.map((path) => world.get(path)));
  assert.deepEqual([one?.status, other?.status], [200, 200]);
  const more = {
    subject_types_supported: ["public"],
    id_token_signing_alg_values_supported: ["RS256", "ES256", "EdDSA"],
  };
  assert.deepEqual(other?.body, { ...one?.body, ...more });
  assert.deepEqual([one?.body.issuer, one?.body.jwks_uri], [ISSUER, `${ISSUER}/jwks`]);
});

for (const [alg, audience] of Object.entries(APIS)) {
  test(`RFC9068-2.1-2, RFC9068-4-1, RFC9068-2.2-6 a token with ${alg} verifies with the published keys`, async () => {
    const { body } = await world.get("/jwks");
    const keys = createLocalJWKSet(body as unknown as Parameters<typeof createLocalJWKSet>[0]);
    const verified = await jwtVerify(await obtain(audience), keys, {
      issuer: ISSUER,
      audience,
      typ: "at+jwt",
      algorithms: [alg],
    });
    assert.deepEqual([verified.payload.sub, verified.payload.client_id], ["operator", "operator"]);
  });
}

// --- by our own endpoints -----------------------------------------------------------------------------------------

const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString("base64url");
const headerOf = (jwt: string): object =>
  JSON.parse(Buffer.from(jwt.split(".")[0] ?? "", "base64url").toString());

/** The token with a changed header or claims and its original signature. */
function altered({ header = {}, claims = {} }: { header?: object; claims?: object }): string {
  const signature = token.split(".")[2] ?? "";
  return `${encode({ ...headerOf(token), ...header })}.${encode({ ...claimsOf(token), ...claims })}.${signature}`;
}

/** The same header and claims, signed with another key. */
async function resigned(): Promise<string> {
  const input = token.split(".").slice(0, 2).join(".");
  const key = { key: createPrivateKey(await makeKeyPem()), dsaEncoding: "ieee-p1363" } as const;
  return `${input}.${sign("sha256", Buffer.from(input), key).toString("base64url")}`;
}

test("RFC9068-4-10, RFC6749-10.3-3, RFC6750-5.2-2 an unchanged token is accepted", async () => {
  assert.equal(altered({}), token);
  assert.equal((await present(token)).status, 200);
});

const ALTERED: [id: string, what: string, make: () => string | Promise<string>][] = [
  [
    "RFC6749-10.3-3, RFC6750-5.2-2",
    "with more scope",
    () => altered({ claims: { scope: "audit:read policy:explain" } }),
  ],
  ["RFC6749-10.3-3, RFC6750-5.2-2", "for another subject", () => altered({ claims: { sub: "u-1" } })],
  ["RFC6749-10.3-3, RFC6750-5.2-2", "with a later exp", () => altered({ claims: { exp: 4_000_000_000 } })],
  ["RFC6749-10.3-3, RFC6750-5.2-2", "signed with another key", resigned],
  ["RFC9068-4-10", "with another algorithm in its header", () => altered({ header: { alg: "RS256" } })],
  ["RFC9068-4-10", "with an algorithm that we do not use", () => altered({ header: { alg: "HS256" } })],
  ["RFC9068-4-11", "with alg none", () => altered({ header: { alg: "none" } })],
  [
    "RFC9068-4-11",
    "with alg none and without a signature",
    () => altered({ header: { alg: "none" } }).replace(/[^.]+$/, ""),
  ],
  [
    "RFC9068-4-11",
    "with alg nOnE and without kid",
    () => altered({ header: { alg: "nOnE", kid: undefined } }),
  ],
];
for (const [id, what, make] of ALTERED) {
  test(`${id} a token ${what}: invalid_token`, async () => {
    const answer = await present(await make());
    assert.deepEqual([answer.status, answer.body.error], [401, "invalid_token"], answer.text);
  });
}

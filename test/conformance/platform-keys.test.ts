/** Key sets of issuers in the shapes of real providers, and client assertions that live too long, over TLS. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Answer } from "../../scripts/http-client.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { DRAFT } from "../../src/spec/workload-grant.ts";
import { forge, makeKey, seconds } from "../support/forge.ts";
import { byClient, byGrant, makePlatform } from "../support/platforms.ts";
import { stop } from "../support/stop.ts";
import { until } from "../support/until.ts";
import { ISSUER, makeWorld, type World } from "../support/world.ts";

const API = "https://api.example";
const ec = makeKey("ES256", "a");
const other = makeKey("ES256", "a");
const rsa = makeKey("RS256", "r");
const secret = makeKey("RS256", "r");
const mlDsa = { kty: "AKP", alg: "ML-DSA-44", kid: "b", pub: "AAAA" };

type Set = [
  name: string,
  keys: object[],
  signs: typeof ec,
  alg: string,
  refused?: string,
  algorithms?: string[],
];
const sets: Set[] = [
  ["JWKS-D-1 with the same key twice is accepted", [ec.jwk, { ...ec.jwk, use: "sig" }], ec, "ES256"],
  [
    "JWKS-D-2 with two keys of one kid is refused as ambiguous",
    [ec.jwk, other.jwk],
    ec,
    "ES256",
    "issuer_key_ambiguous",
  ],
  ["JWKS-D-2 without the key is refused as unknown", [rsa.jwk], ec, "ES256", "issuer_key_unknown"],
  ["JWKS-D-3 with RSA without alg verifies PS256", [rsa.jwk], rsa, "PS256"],
  ["JWKS-D-3 with RSA without alg verifies RS256", [rsa.jwk], rsa, "RS256"],
  [
    "JWKS-D-3 with RSA without alg refuses PS256 that the issuer's list lacks",
    [rsa.jwk],
    rsa,
    "PS256",
    "jwt_algorithm_refused",
    ["RS256"],
  ],
  [
    "JWKS-D-3 with RSA for RS256 refuses PS256",
    [{ ...rsa.jwk, alg: "RS256" }],
    rsa,
    "PS256",
    "issuer_key_unknown",
  ],
  ["FEDC-K-1, RFC7517-5-3 with a key of an unknown kind beside it is accepted", [ec.jwk, mlDsa], ec, "ES256"],
  [
    "RFC7517-4.2-1 with a key for encryption of the same kid is accepted",
    [
      { ...secret.jwk, use: "enc" },
      { ...rsa.jwk, use: "sig" },
    ],
    rsa,
    "RS256",
  ],
];
const issuerOf = (index: number): string => `https://p${index}.example`;

let world: World;
before(async () => {
  const trusted = sets.map(([, , , , , algorithms], index) => [
    issuerOf(index),
    {
      keys: { file: `p${index}.json` },
      ...(algorithms !== undefined && { algorithms }),
      workloads: { [`p${index}`]: { tenancy: "dedicated", subjects: ["a"] } },
    },
  ]);
  world = await makeWorld(
    {
      trustedIssuers: Object.fromEntries(trusted),
      clients: {
        app: { method: "private_key_jwt", jwks: { keys: [ec.jwk] } },
        old: { method: "private_key_jwt", jwks: { keys: [rsa.jwk] } },
      },
      targets: [{ names: [API], scopes: ["read"] }],
      policies: [
        {
          id: "own",
          allow: "client_credentials",
          actors: sets.map((_, index) => `platform://p${index}/*`),
          targets: [API],
          scopes: ["read"],
        },
        { id: "app", allow: "client_credentials", clients: ["app"], targets: [API], scopes: ["read"] },
      ],
      drafts: [SPIFFE_DRAFT, DRAFT],
    },
    {
      skipsLooks: true,
      files: Object.fromEntries(sets.map(([, keys], index) => [`p${index}.json`, JSON.stringify({ keys })])),
    },
  );
});
after(() => stop(world));

async function reasonOf({ headers }: Answer): Promise<unknown> {
  const line = () => world.server.lines.find((one) => one.includes(String(headers["x-request-id"])));
  await until(() => line() !== undefined, "the refusal is logged");
  return JSON.parse(line() ?? "").refused;
}

for (const [index, [name, , signs, alg, refused]] of sets.entries()) {
  test(`${name}: a key set of an issuer`, async () => {
    const platform = makePlatform(issuerOf(index), { sub: "a" });
    const { iss, sub, aud, iat, exp, jti } = JSON.parse(
      Buffer.from(platform.token().split(".")[1] ?? "", "base64url").toString(),
    );
    const token = forge({ ...signs, alg }, { iss, sub, aud, iat, exp, jti });
    const answer = await world.token(byGrant(token, { resource: API }));
    if (refused === undefined) return assert.equal(answer.status, 200, answer.text);
    assert.deepEqual([answer.status, answer.body.error_description], [400, "the grant is not accepted"]);
    assert.equal(await reasonOf(answer), refused);
  });
}

const assertion = (key: typeof ec, lifeSeconds: number, jti = "j", client = "app"): string =>
  forge(key, {
    iss: client,
    sub: client,
    aud: ISSUER,
    iat: seconds(),
    exp: seconds() + lifeSeconds,
    jti: `${jti}${lifeSeconds}`,
  });
const send = (client: string): Promise<Answer> =>
  world.token(byClient(client, { grant_type: "client_credentials", resource: API }));

test("RFC7523-D-1 an assertion of ten minutes is told as that to the holder of the key", async () => {
  assert.equal((await send(assertion(ec, 300))).status, 200);
  const { status, body, ...answer } = await send(assertion(ec, 600));
  assert.deepEqual([status, body.error], [400, "invalid_client"]);
  assert.match(String(body.error_description), /client authentication failed: .*lives longer/);
  assert.equal(await reasonOf({ status, body, ...answer }), "assertion_lives_too_long");
});

test("RFC7523-D-1 with the signature of another it is told as any failure, and the log has the reason", async () => {
  const answer = await send(assertion(other, 600, "other"));
  assert.deepEqual([answer.status, answer.body.error_description], [400, "client authentication failed"]);
  assert.equal(await reasonOf(answer), "jwt_lifetime_too_long");
});

test("JWKS-D-3 a client's RSA key without alg verifies RS256 alone", async () => {
  const { status, body } = await send(assertion({ ...rsa, alg: "PS256" }, 60, "ps", "old"));
  assert.deepEqual([status, body.error], [400, "invalid_client"]);
  const answer = await send(assertion(rsa, 60, "rs", "old"));
  assert.deepEqual(
    [answer.status, answer.body.error_description],
    [400, "the client may not use this grant_type"],
  );
});
